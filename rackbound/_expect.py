"""Which bus bandwidth should nccl-tests show on this design, why, and what would less mean?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives import KINDS, Cost, plain
from collectives.laws import multi_node_all_to_all_busbw
from topo import EDGE_KINDS, NODE_KINDS, Fabric, Fault, InputError, Ranks
from topo.units import format_quantity

__all__ = ["Expectation", "nccl_tests"]

Ints = NDArray[np.intp]

#: Collective -> program of nccl-tests.
PROGRAMS = {
    "all_to_all": "alltoall_perf", "all_gather": "all_gather_perf", "reduce_scatter": "reduce_scatter_perf",
    "all_reduce": "all_reduce_perf", "broadcast": "broadcast_perf", "reduce": "reduce_perf",
    "gather": "gather_perf", "scatter": "scatter_perf", "sendrecv": "sendrecv_perf",
}  # fmt: skip


@dataclass(frozen=True)
class Expectation:
    """What a program of nccl-tests should show at large sizes.

    Attributes
    ----------
    program : str
        Its name.
    busbw : float
        The wires' bound, latency and software aside [bytes/s].
    derivation : tuple of str
        How it follows from the graph, a line each.
    lower : tuple of str
        What a lower figure would mean.
    """

    program: str
    busbw: float
    derivation: tuple[str, ...]
    lower: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units."""
        result: dict[str, Any] = plain(self)
        return result


def nccl_tests(fabric: Fabric, cost: Cost, ranks: Ranks = None) -> Expectation:
    """Return what nccl-tests should show for a collective that was costed on these ranks of a fabric.

    Raises
    ------
    InputError
        A kind nccl-tests has no program for, or one that used no wire.
    """
    if cost.kind not in PROGRAMS:
        rule = f"nccl-tests has no program for {cost.kind}"
        raise InputError(Fault("--expect", "nccl-tests", rule, f"Ask for one of {', '.join(PROGRAMS)}."))
    if not cost.bandwidth_seconds:
        raise InputError(Fault("--expect", "nccl-tests", "nothing goes over a wire", "Take two ranks, and bytes."))
    busbw = cost.n_bytes * KINDS[cost.kind].busbw(cost.n_ranks) / cost.bandwidth_seconds
    sizes = np.bincount(fabric.rank_domain[fabric.rank_numbers(ranks)])
    said = _derivation(fabric, cost, busbw, sizes[sizes > 0])
    return Expectation(
        PROGRAMS[cost.kind], busbw, tuple(said), tuple(_lower(fabric, cost, busbw, int((sizes > 0).sum())))
    )


def _rate(value: float) -> str:
    return format_quantity(value, "bandwidth")


def _busiest(fabric: Fabric, cost: Cost) -> int:
    seconds = cost.loads / fabric.bandwidth
    return int(np.flatnonzero(seconds >= seconds.max() * (1 - 1e-12))[0])


def _derivation(fabric: Fabric, cost: Cost, busbw: float, sizes: Ints) -> Iterator[str]:
    algbw, n = cost.n_bytes / cost.bandwidth_seconds, cost.n_ranks
    link = _busiest(fabric, cost)
    load, rate = float(cost.loads[link]), float(fabric.bandwidth[link])
    where = f"{EDGE_KINDS[fabric.link_kind[link]]} {fabric.link_label(link)}"
    if abs(load / rate - cost.bandwidth_seconds) <= 1e-9 * cost.bandwidth_seconds:
        yield (
            f"{cost.algorithm}: the busiest link, {where} of {_rate(rate)}, carries {load / cost.n_bytes:.5g} of the "
            f"size: algbw {_rate(rate)} / {load / cost.n_bytes:.5g} = {_rate(algbw)}"
        )
    else:
        yield (
            f"{cost.algorithm}: phases one after the other, each bound by its own link: together "
            f"{format_quantity(cost.bandwidth_seconds, 'seconds')}, algbw {_rate(algbw)}"
        )
    yield f"busbw = algbw x {KINDS[cost.kind].busbw(n):.5g}, the factor of {cost.kind} over {n} ranks: {_rate(busbw)}"
    if cost.kind != "all_to_all" or len(sizes) < 2 or len(set(sizes.tolist())) > 1:
        return
    nic = float(fabric.bandwidth[_nics(fabric, cost)].sum()) / n
    if abs(multi_node_all_to_all_busbw(len(sizes), int(sizes[0]), nic) - busbw) <= 1e-9 * busbw:
        yield (
            f"the same by hand: b N/(N-1) x (NG-1)/(NG), N = {len(sizes)} domains of G = {sizes[0]} GPUs, "
            f"b = {_rate(nic)} of NIC a GPU; to b as N grows"
        )


def _lower(fabric: Fabric, cost: Cost, busbw: float, domains: int) -> Iterator[str]:
    yield (
        "some per cent less: latency of small sizes (raise -e), and the protocols of rings, trees and NVLS, which come "
        "on top: this is the wires' bound, no profile is applied"
    )
    link = _busiest(fabric, cost)
    used = len(_nics(fabric, cost)) // domains
    between_switches = not (_ends(fabric)[fabric.source[link]] or _ends(fabric)[fabric.target[link]])
    if fabric.link_kind[link] == EDGE_KINDS.index("scale-out"):
        if used > 1 and not between_switches:
            yield (
                f"{_rate(busbw / 2)}: half of the {used} NICs of a domain carry it: only those of GPUs that take part, "
                "not those a node lacks or NCCL_IB_HCA leaves out"
            )
            yield f"{_rate(busbw / used)}: one NIC carries all"
    elif fabric.lanes[link] > 1:
        lanes = int(fabric.lanes[link])
        yield f"{_rate(busbw * (lanes - 1) / lanes)}: one of the {lanes} lanes of a link is down"
    yield (
        f"under {_rate(busbw / 3)}: a fault, not the wires: GPUDirect off or the NIC behind the CPU, or settings; look "
        'also at the column "#wrong", which must be 0'
    )


def _nics(fabric: Fabric, cost: Cost) -> Ints:
    """Return the links by which NICs send out what they carry."""
    out = (fabric.link_kind == EDGE_KINDS.index("scale-out")) & _ends(fabric)[fabric.source] & (cost.loads > 0)
    return np.flatnonzero(out)


def _ends(fabric: Fabric) -> Any:
    """Whether a node is an end of the fabric: a GPU, NIC or host."""
    return np.isin(fabric.node_kind, [NODE_KINDS.index(kind) for kind in ("gpu", "nic", "host")])
