"""How many racks does a traffic need, what do they cost, and what does one failure take away?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx

from collectives import plain
from serving._assumptions import assumptions_of
from serving._chip import chip_numbers
from serving._engine import band_of, on_ideal_wires
from serving._handover import Handover
from serving._losses import Loss, losses_of
from serving._model import Model
from serving._plan import require_types
from serving._pools import Pool, decode_pool, in_phase, one_new, prefill_pool
from serving._software import ProfileLike
from serving._step import step
from serving._traffic import Traffic
from serving._workload import Workload
from topo import Fault, InputError, route

__all__ = ["Fleet", "size"]


@dataclass(frozen=True, eq=False, repr=False)
class Fleet:
    """Racks for a traffic.

    Attributes
    ----------
    status : {"sized", "infeasible"}
        Infeasible: `binding` says what cannot be kept, all else is zero or None.
    binding : str
        What sets the size of each pool, or why there is none.
    prefill, decode : Pool or None
        The two pools.
    handover : Handover or None
        KV caches of a long prompt's pass between them.
    ttft, tpot : float
        First token of a long prompt that has just missed a pass, and each further token [s].
    racks, spare_racks : int
        Scale-up domains, spares counted; and those.
    gpus : int
        GPUs of all racks.
    watts : float or None
        What the racks draw by the powers the design states [W].
    dollars_per_hour : float
        [$ per hour].
    dollars_per_million : dict
        Of "prefill", "cached" and "decode" tokens [$ per million].
    unit_share : float
        What one decode unit answers when never idle, as a part of the traffic.
    pool_ratio : float
        GPUs that read for each that answers, were units divisible.
    losses : tuple of Loss
        One lost tray, switch, rack.
    assumptions : tuple of str
        Everything that was filled in.
    """

    status: str
    binding: str
    prefill: Pool | None = None
    decode: Pool | None = None
    handover: Handover | None = None
    ttft: float = 0.0
    tpot: float = 0.0
    racks: int = 0
    spare_racks: int = 0
    gpus: int = 0
    watts: float | None = None
    dollars_per_hour: float = 0.0
    dollars_per_million: dict[str, float] | None = None
    unit_share: float = 0.0
    pool_ratio: float = 0.0
    losses: tuple[Loss, ...] = ()
    assumptions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        if self.prefill is None or self.decode is None:
            return f"Fleet(infeasible: {self.binding})"
        ratio = f"{self.prefill.gpus} GPUs read and {self.decode.gpus} answer"
        return f"Fleet({self.racks} racks, {self.dollars_per_hour:,.0f} $/h: {ratio}; {self.binding})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        result: dict[str, Any] = plain(self)
        return result


def size(
    graph: nx.Graph[str],
    model: Model,
    traffic: Traffic,
    *,
    workload: Workload | None = None,
    ep: Sequence[int] | None = None,
    tp: Sequence[int] = (1,),
    pp: Sequence[int] = (1,),
    dollars_per_gpu_hour: float = 2.0,
    spare_racks: int = 1,
    profile: ProfileLike = "ideal",
) -> Fleet:
    """Return the fewest racks of a design that serve a traffic.

    Parameters
    ----------
    graph : networkx.Graph
        One unit of each pool side by side: two domains where a unit fills one.
    model : Model
        From `load_model`.
    traffic : Traffic
        Requests, lengths, promises, headroom.
    workload : Workload, optional
        Types, copies, and what is guessed while answering; its phase, batch, context, cached and pieces do not count.
    ep, tp, pp : sequence of int, optional
        Layouts to choose from, for each pool its own; ep by default one domain and the power of two in it
        (a dense model: 1).
    dollars_per_gpu_hour : float, optional
        Rent [$ per GPU and hour]; 2 is the lecture's. Spares are paid too.
    spare_racks : int, optional
        Racks beyond what the traffic needs.
    profile : str or Profile, optional
        "ideal", or a serving engine, as `step` takes it. Caches are sent over ideal wires.

    Returns
    -------
    Fleet
        A promise that cannot be kept is a result with a reason.

    Raises
    ------
    InputError
        No room for two units, a chip without numbers, a rent or spares below zero, a profile of collectives.

    Examples
    --------
    >>> import topo, serving
    >>> traffic = Traffic(200, prompt=2000, answer=500, ttft=2, tpot=0.03)
    >>> size(topo.load("gb200-nvl72", 2), serving.load_model("deepseek-v3"), traffic)
    Fleet(3 racks, 432 $/h: 64 GPUs read and 64 answer; 3.66 of 30 ms per token, 87.99 of 2000 ms to the first)
    """
    require_types(model=(model, Model), traffic=(traffic, Traffic))
    require_types(optional=True, workload=(workload, Workload))
    _require_terms(dollars_per_gpu_hour, spare_racks)
    routes, work = route(graph), in_phase(workload or _PLAIN, "decode")
    one = int(routes.fabric.domain_sizes.max())
    usual = sorted({one, 1 << (one.bit_length() - 1)}) if model.is_moe else [1]
    widths = usual if ep is None else ep
    axes = {"ep": widths, "tp": tp, "pp": pp}
    chip = chip_numbers(routes.fabric, routes.fabric.group(routes.fabric.n_ranks))
    engine = on_ideal_wires(profile)
    said = (*assumptions_of(routes.fabric, model, work, chip), *_ASSUMED)
    said += tuple(band_of(0.0, engine, chip.name)[1]) if engine else ()
    runs = engine or "ideal"
    decode = decode_pool(routes, model, work, traffic, axes, runs)
    if isinstance(decode, str):
        return Fleet("infeasible", decode, assumptions=said)
    read = prefill_pool(routes, model, work, traffic, axes, decode, runs)
    if isinstance(read, str):
        return Fleet("infeasible", read, assumptions=said)
    prefill, sent, first = read
    racks = _racks(prefill, one) + _racks(decode, one) + spare_racks
    bill = routes.fabric.bill
    watts = {name: part.power for name, part in bill.items()}
    unstated = [name for name, power in watts.items() if power is None]
    if unstated:
        said += (f"the design states no power of {', '.join(unstated)}: they are not in the kW",)
    stated = sum(power for power in watts.values() if power is not None)
    hourly = dollars_per_gpu_hour * one
    ratio = prefill.layout.gpus / prefill.rate / (decode.layout.gpus / decode.rate)
    return Fleet(
        "sized", _binding(traffic, decode, first), prefill, decode, sent, first, decode.seconds,
        racks, spare_racks, racks * one, racks * one * stated / routes.fabric.n_ranks if stated else None,
        racks * hourly, _prices(graph, model, work, traffic, prefill, decode, dollars_per_gpu_hour, runs),
        decode.rate / traffic.requests_per_second, ratio,
        losses_of(graph, model, work, traffic, decode, one, runs), said,
    )  # fmt: skip


_PLAIN = Workload(batch_per_gpu=1)
_ASSUMED = (
    "prompts alike share a pass, and one waits for the pass under way; arrivals are even, no queue builds up",
    "decode at the mean context of what is under way; memory varies with it, no more",
)


def _require_terms(rent: object, spares: object) -> None:
    faults = []
    if isinstance(rent, bool) or not isinstance(rent, int | float) or not 0 <= rent < math.inf:
        faults.append(Fault("dollars_per_gpu_hour", rent, "must be a finite number, not below zero", "Give 2.0."))
    if isinstance(spares, bool) or not isinstance(spares, int) or spares < 0:
        faults.append(Fault("spare_racks", spares, "must be a whole number, not below zero", "Give 1."))
    if faults:
        raise InputError(*faults)


def _racks(pool: Pool, one: int) -> int:
    """Return the racks of a pool: as many whole units in each as it holds, or several racks a unit."""
    if pool.layout.gpus <= one:
        return -(-pool.units // (one // pool.layout.gpus))
    return pool.units * -(-pool.layout.gpus // one)


def _binding(traffic: Traffic, decode: Pool, first: float) -> str:
    said = f"{1e3 * decode.seconds:.3g} of {1e3 * traffic.tpot:g} ms per token, "
    return said + f"{1e3 * first:.4g} of {1e3 * traffic.ttft:g} ms to the first"


def _prices(
    graph: nx.Graph[str],
    model: Model,
    work: Workload,
    traffic: Traffic,
    prefill: Pool,
    decode: Pool,
    rent: float,
    profile: ProfileLike,
) -> dict[str, float]:
    """Return dollars per million tokens, headroom paid by those who come.

    A cached token costs what it adds to the pass: attention of the new tokens to it.
    """
    second = traffic.requests_per_second
    answered = decode.gpus * rent / 3600 / (second * traffic.mean_answer)
    mean = round(traffic.mean_prompt)
    new = one_new(work, traffic, mean)
    read = in_phase(work, "prefill", batch=prefill.batch, batch_per_gpu=None)
    whole, alone = (
        step(
            graph, model, replace(read, context=context, cached=context - new), layout=prefill.layout, profile=profile
        ).seconds
        for context in (mean, new)
    )
    each = prefill.gpus * rent / 3600 / second
    cached = mean - new
    return {
        "prefill": 1e6 * each * alone / whole / new,
        "cached": 1e6 * each * (1 - alone / whole) / cached if cached else 0.0,
        "decode": 1e6 * answered,
    }
