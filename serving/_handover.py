"""How does a prompt's KV cache get from the pool that reads it to the pool that answers?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from collectives import cost, plain
from serving._layout import Groups, Layout
from serving._model import Model
from serving._operations import kv_bytes_at
from serving._plan import require_types
from serving._software import ProfileLike
from serving._step import step
from serving._workload import Workload
from serving.laws import handover_seconds
from topo import Fabric, Fault, InputError, Routes, route
from topo.units import format_quantity

__all__ = ["Handover", "handover", "sending_dominates_from"]

Ints = NDArray[np.intp]


@dataclass(frozen=True, repr=False)
class Handover:
    """KV caches of one prefill pass on their way.

    Attributes
    ----------
    n_bytes : float
        Caches of all prompts of the pass [bytes].
    send_seconds : float
        Sending them on otherwise idle links [s].
    exposed_seconds : float
        What it adds to the pass when layers are sent while later ones compute [s].
    binding_link : str
        Link, with its class, that sending waits for.
    link_share : float
        Part of the time that link is busy when passes follow each other; above 1 the links set the pace.
    dominates : bool
        Whether sending takes longer than the pass.
    """

    n_bytes: float
    send_seconds: float
    exposed_seconds: float
    binding_link: str
    link_share: float
    dominates: bool

    def __repr__(self) -> str:
        sent, alone = format_quantity(self.n_bytes, "bytes"), format_quantity(self.send_seconds, "seconds")
        more = format_quantity(self.exposed_seconds, "seconds")
        return f"Handover({more} after the pass: {sent} in {alone} over {self.binding_link})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        result: dict[str, Any] = plain(self)
        return result


def handover(
    graph: nx.Graph[str] | Fabric,
    model: Model,
    workload: Workload,
    prefill_seconds: float,
    *,
    prefill: Layout,
    decode: Layout,
    routing: str | Routes = "ecmp",
) -> Handover:
    """Return what sending the caches of one prefill pass takes.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        Holds both pools: the prefill layout takes its ranks first, the decode layout domains of its own if it can.
    model : Model
        From `load_model`.
    workload : Workload
        The prefill: `context` tokens of each prompt, those cached among them, and the batch of prompts.
    prefill_seconds : float
        Time of the pass, `Step.seconds` [s].
    prefill, decode : Layout
        One unit of each pool.
    routing
        As `collectives.cost`.

    Returns
    -------
    Handover
        A prompt's cache leaves from the GPUs it is on and is spread evenly over the decode pool; what the ranks
        of a tensor-parallel group there hold twice (a latent) they copy among themselves, which is not counted.

    Raises
    ------
    InputError
        The graph has no room for both, a time that is none, a workload that is no prefill.

    Examples
    --------
    >>> import topo, serving
    >>> model, work = serving.load_model("deepseek-v3"), Workload("prefill", context=4096, batch=64)
    >>> handover(topo.load("gb200-nvl72", 2), model, work, 0.2, prefill=Layout(64), decode=Layout(64))
    Handover(94.4 us after the pass: 18.42 GB in 5.758 ms over scale-out d0/gpu0 -> leaf0)
    """
    require_types(model=(model, Model), workload=(workload, Workload), prefill=(prefill, Layout),
                  decode=(decode, Layout))  # fmt: skip
    number = isinstance(prefill_seconds, int | float) and not isinstance(prefill_seconds, bool)
    if not (number and 0 < prefill_seconds < math.inf):
        rule = "must be a finite time above zero [s]"
        raise InputError(Fault("prefill_seconds", prefill_seconds, rule, "Give Step.seconds of the pass."))
    if workload.phase != "prefill":
        rule = "must be prefill: decode has no caches to hand over"
        raise InputError(Fault("workload.phase", workload.phase, rule, 'Give Workload("prefill", ...).'))
    routes = route(graph, routing)
    fabric = routes.fabric
    if prefill.gpus + decode.gpus > fabric.n_ranks:
        rule = f"needs {prefill.gpus} + {decode.gpus} GPUs side by side and the graph has {fabric.n_ranks}"
        cure = f"Take {-(-(prefill.gpus + decode.gpus) // int(fabric.domain_sizes.max()))} domains, or smaller units."
        raise InputError(Fault("layout", f"{prefill} and {decode}", rule, cure))
    first = Groups(fabric, prefill)
    free = ~np.isin(fabric.rank_domain, fabric.rank_domain[first.all])
    if free.sum() < decode.gpus:
        free = ~np.isin(np.arange(fabric.n_ranks), first.all)
    there = fabric.group(decode.gpus, free)
    sent = _sent(model, workload, prefill)
    ranks = np.concatenate([first.all, there])
    traffic = np.zeros((len(ranks), len(ranks)))
    traffic[: len(sent), len(sent) :] = sent[:, None] / len(there)
    found = cost(fabric, "all_to_all_v", traffic, ranks=ranks, routing=routes)
    seconds = handover_seconds(prefill_seconds, found.seconds, model.layers)
    return Handover(
        n_bytes=float(sent.sum()), send_seconds=found.seconds, exposed_seconds=seconds - prefill_seconds,
        binding_link=f"{found.bottleneck_kind} {found.bottleneck}",
        link_share=found.bandwidth_seconds / prefill_seconds, dominates=found.seconds > prefill_seconds,
    )  # fmt: skip


def sending_dominates_from(
    graph: nx.Graph[str] | Fabric,
    model: Model,
    workload: Workload,
    *,
    prefill: Layout,
    decode: Layout,
    routing: str | Routes = "ecmp",
    profile: ProfileLike = "ideal",
) -> int | None:
    """Return the fewest cached tokens of a prompt with which sending its cache takes longer than the pass.

    All of a context is sent, and only what is not cached is computed.

    Parameters
    ----------
    graph, model, workload, prefill, decode, routing
        As `handover`; what the workload has cached does not count.
    profile
        As `step`, of the pass.

    Returns
    -------
    int or None
        None where the pass of the last token alone still takes longer.

    Raises
    ------
    InputError
        The graph has no room for both.

    Examples
    --------
    >>> import topo, serving
    >>> model, work = serving.load_model("deepseek-v3"), Workload("prefill", context=4096, batch=64)
    >>> pools = {"prefill": Layout(64), "decode": Layout(64)}
    >>> sending_dominates_from(topo.load("gb200-nvl72", 2), model, work, **pools)
    4035
    """
    require_types(model=(model, Model), workload=(workload, Workload), prefill=(prefill, Layout),
                  decode=(decode, Layout))  # fmt: skip
    routes = route(graph, routing)

    def sooner(cached: int) -> bool:
        asked = replace(workload, cached=cached)
        return step(routes.fabric, model, asked, layout=prefill, routing=routes, profile=profile).seconds < sent

    sent = handover(routes.fabric, model, workload, 1.0, prefill=prefill, decode=decode, routing=routes).send_seconds
    low, high = -1, workload.context
    while high - low > 1:  # a pass is the shorter the more is cached
        middle = (low + high) // 2
        low, high = (low, middle) if sooner(middle) else (middle, high)
    return high if high < workload.context else None


def _sent(model: Model, workload: Workload, layout: Layout) -> NDArray[np.float64]:
    """Return what every GPU of the layout sends, stage by stage: its part of its replica's prompts [bytes]."""
    each = layout.tp * layout.cp
    prompts = workload.batch_of(layout.replicas) * (each if workload.batch_per_gpu is not None else 1)
    stage = np.arange(model.layers) * layout.pp // model.layers
    of_stage = [
        kv_bytes_at(float(workload.context), model, workload.kv_dtype, [int(i) for i in np.flatnonzero(stage == s)])
        for s in range(layout.pp)
    ]
    return np.concatenate([np.repeat(prompts * n_bytes / each, each) for n_bytes in of_stage])
