"""Which bus bandwidth should nccl-tests show on this design, why, and what would less mean?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives import KINDS, PROGRAMS, ClassLoad, Cost, plain
from collectives import cost as costed
from collectives.laws import multi_node_all_to_all_busbw
from topo import EDGE_KINDS, NODE_KINDS, Fabric, Fault, InputError, Ranks
from topo.units import format_quantity

__all__ = ["Expectation", "nccl_tests"]

Ints = NDArray[np.intp]


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
    said = (*_derivation(fabric, cost, busbw, sizes[sizes > 0]), *_nvls(fabric, cost, busbw, ranks))
    return Expectation(PROGRAMS[cost.kind], busbw, said, tuple(_lower(fabric, cost, busbw)))


def _rate(value: float) -> str:
    return format_quantity(value, "bandwidth")


def _busiest(fabric: Fabric, cost: Cost, kind: str) -> int | None:
    """Return the first of the busiest links of a kind, None if none carries anything."""
    seconds = np.where(fabric.link_kind == EDGE_KINDS.index(kind), cost.loads / fabric.bandwidth, 0.0)
    return int(np.flatnonzero(seconds >= seconds.max() * (1 - 1e-12))[0]) if seconds.any() else None


def _derivation(fabric: Fabric, cost: Cost, busbw: float, sizes: Ints) -> Iterator[str]:
    algbw, n = cost.n_bytes / cost.bandwidth_seconds, cost.n_ranks
    seconds = cost.loads / fabric.bandwidth
    link = int(np.flatnonzero(seconds >= seconds.max() * (1 - 1e-12))[0])
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


def _nvls(fabric: Fabric, cost: Cost, busbw: float, ranks: Ranks) -> Iterator[str]:
    """Say what switches that reduce would show, where that is more."""
    if cost.algorithm == "nvls" or "nvls" not in KINDS[cost.kind].algorithms:
        return
    try:
        found = costed(fabric, cost.kind, cost.n_bytes, ranks=ranks, algorithm="nvls")
    except InputError:  # no switches that reduce and all ranks hang off
        return
    more = cost.n_bytes * KINDS[cost.kind].busbw(cost.n_ranks) / found.bandwidth_seconds
    if more > busbw * (1 + 1e-9):
        yield (
            f"that is {cost.algorithm}; the switches reduce: NVLS, where NCCL takes it, up to {_rate(more)} "
            "(algorithm nvls)"
        )


def _lower(fabric: Fabric, cost: Cost, busbw: float) -> Iterator[str]:
    yield (
        "some per cent less: latency of small sizes (raise -e), and the protocols of rings, trees and NVLS, which come "
        f"on top: this is the wires' bound of {cost.algorithm}, no profile is applied"
    )
    one_nic = busbw
    used, place = _nics_where_busiest(fabric, cost)
    if used > 1:
        some = used - used // 2
        one_nic, half = (busbw * _slower(cost, "scale-out", used / carrying) for carrying in (1, some))
        part = "half" if 2 * some == used else str(some)
        yield (
            f"{_rate(half)}: {part} of the {used} NICs of a domain carry it (here {place}): only those of GPUs that "
            "take part, not those a node lacks or NCCL_IB_HCA leaves out"
        )
        if some > 1:
            yield f"{_rate(one_nic)}: one NIC carries all"
    up = _busiest(fabric, cost, "scale-up")
    if up is not None and (lanes := int(fabric.lanes[up])) > 1:
        down = busbw * _slower(cost, "scale-up", lanes / (lanes - 1))
        if down < busbw * (1 - 1e-9):
            yield f"{_rate(down)}: one of the {lanes} lanes of a link is down"
    third = busbw / 3
    fault = "a fault, or one NIC" if one_nic < third * (1 - 1e-9) else "a fault"
    yield (
        f"under {_rate(third)}: {fault}, not the wires: GPUDirect off or the NIC behind the CPU, or settings; "
        'look also at the column "#wrong", which must be 0'
    )


def _slower(cost: Cost, kind: str, factor: float) -> float:
    """Return what is left of the bandwidth if one kind of link takes so many times as long, phase by phase."""

    def seconds(loads: Mapping[str, ClassLoad], slower: float) -> float:
        times = (load.busiest_seconds * (slower if name == kind else 1.0) for name, load in loads.items())
        return max(times, default=0.0)

    parts = [(cost.classes, 1)] if cost.pipelined else [(phase.classes, phase.repeats) for phase in cost.phases]
    more = sum(repeats * (seconds(loads, factor) - seconds(loads, 1.0)) for loads, repeats in parts)
    return cost.bandwidth_seconds / (cost.bandwidth_seconds + more)


def _nics_where_busiest(fabric: Fabric, cost: Cost) -> tuple[int, str]:
    """Return how many NICs the domain of the busiest one uses, and whose it is; none where no NIC binds."""
    link = _busiest(fabric, cost, "scale-out")
    if link is None or _slower(cost, "scale-out", 2.0) > 1 - 1e-9:
        return 0, ""
    ends, home = _ends(fabric), _domains(fabric)
    end = fabric.source[link] if ends[fabric.source[link]] else fabric.target[link]
    if not ends[end]:
        return 0, ""
    first = int(fabric.ranks[np.flatnonzero(home[fabric.ranks] == home[end])[0]])
    return int((home[fabric.source[_nics(fabric, cost)]] == home[end]).sum()), f"{fabric.labels[first]}'s"


def _domains(fabric: Fabric) -> Ints:
    """Return the domain of every node; a NIC is of its host's."""
    of_host = np.full(int(fabric.host.max(initial=-1)) + 2, -1)
    of_host[fabric.host[fabric.ranks]] = fabric.rank_domain
    of_host[-1] = -1
    return np.where(fabric.domain >= 0, fabric.domain, of_host[fabric.host])


def _nics(fabric: Fabric, cost: Cost) -> Ints:
    """Return the links by which NICs send out what they carry."""
    out = (fabric.link_kind == EDGE_KINDS.index("scale-out")) & _ends(fabric)[fabric.source] & (cost.loads > 0)
    return np.flatnonzero(out)


def _ends(fabric: Fabric) -> Any:
    """Whether a node is an end of the fabric: a GPU, NIC or host."""
    return np.isin(fabric.node_kind, [NODE_KINDS.index(kind) for kind in ("gpu", "nic", "host")])
