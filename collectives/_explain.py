"""Which algorithm and protocol does NCCL's tuning model pick on this graph, at which sizes, and why?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from collectives._profile import Profile, list_profiles, load_profile
from collectives._results import plain
from collectives._tuner import TUNED_KINDS, Choice, Team, choices
from topo import EDGE_KINDS, NODE_KINDS, Fabric, Fault, InputError, Ranks, suggest
from topo.units import format_quantity

__all__ = ["Explanation", "Switch", "explain"]

_LAW = "nccl-model"
#: Sizes at which the pick is asked for: 8 B to 16 GiB.
_SIZES = tuple(2**k for k in range(3, 35))


@dataclass(frozen=True)
class Switch:
    """From which size on an algorithm and protocol is picked [bytes]."""

    n_bytes: int
    algorithm: str
    protocol: str


@dataclass(frozen=True, repr=False)
class Explanation:
    """What NCCL picks, and why.

    Attributes
    ----------
    kind : str
        Collective.
    n_bytes : float
        Size [bytes].
    n_ranks, n_domains : int
        Who takes part; a domain is what NCCL calls a node.
    choices : tuple of Choice
        Every algorithm and protocol that applies, the one picked first.
    switches : tuple of Switch
        What is picked from which size on, 8 B to 16 GiB in powers of two.
    why : tuple of str
        In sentences.
    profile : str
        Table of constants.
    assumptions : tuple of str
        What the model leaves out or was filled in.
    """

    kind: str
    n_bytes: float
    n_ranks: int
    n_domains: int
    choices: tuple[Choice, ...]
    switches: tuple[Switch, ...]
    why: tuple[str, ...]
    profile: str
    assumptions: tuple[str, ...]

    @property
    def pick(self) -> Choice:
        """What NCCL picks."""
        return self.choices[0]

    def __repr__(self) -> str:
        time = format_quantity(self.pick.seconds, "seconds")
        return f"Explanation({self.pick.algorithm}/{self.pick.protocol}, {time}: {self.kind} over {self.n_ranks} ranks)"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units."""
        result: dict[str, Any] = plain(self)
        return result


def explain(
    graph: nx.Graph[str] | Fabric,
    kind: str,
    n_bytes: float,
    *,
    ranks: Ranks = None,
    profile: str | os.PathLike[str] | Profile | None = None,
) -> Explanation:
    """Return which algorithm and protocol NCCL's published tuning model picks, and why.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        Of NVIDIA GPUs with NVLink.
    kind : str
        all_reduce, all_gather, reduce_scatter, broadcast or reduce: NCCL has no choice to make for others.
    n_bytes : float
        nccl-tests' size [bytes].
    ranks
        As `cost`.
    profile : str, path or Profile, optional
        A table of the law "nccl-model"; by default that of the GPUs' generation.

    Raises
    ------
    InputError
        Another kind, one rank, no NVLink, no table for these GPUs.

    Examples
    --------
    >>> import topo
    >>> explain(topo.load("hgx-h100-8"), "all_reduce", 1e9)
    Explanation(nvls/simple, 3.594 ms: all_reduce over 8 ranks)
    >>> explain(topo.load("hgx-h100-8"), "all_reduce", 1e3).why[0]
    'ring/ll: 15 us of latency and 12.41 ns for the bytes at 80.57 GB/s; tree/ll is next, 1.014 times as long'
    """
    if kind not in TUNED_KINDS:
        rule = "is no collective that NCCL picks an algorithm for: it sends directly"
        raise InputError(Fault("kind", kind, rule, suggest(kind, TUNED_KINDS)))
    fabric = Fabric.from_graph(graph)
    rows = fabric.rank_numbers(ranks)
    table = _table(fabric, rows, profile)
    team = _team(fabric, rows)
    found = choices(table.constants, kind, n_bytes, team)
    switches = tuple(_switches(table, kind, team))
    return Explanation(kind, n_bytes, team.n_ranks, team.n_domains, found, switches,
                       tuple(_why(found, n_bytes)), table.name, tuple(_assumptions(table, team)))  # fmt: skip


def _table(fabric: Fabric, rows: Any, profile: str | os.PathLike[str] | Profile | None) -> Profile:
    """Return the table asked for, or that of the GPUs' generation."""
    if profile is not None:
        given = load_profile(profile)
        if given.law != _LAW:
            rule = f"is a profile of the law {given.law}, not {_LAW}: it has no algorithms to pick from"
            raise InputError(Fault("profile", given.name, rule, f"Take one of {', '.join(_tables())}."))
        return given
    chips = sorted({fabric.chip[row] for row in rows})
    fitting = [one for one in map(load_profile, _tables()) if set(chips) <= set(one.chips)]
    if not fitting:
        rule = "is no GPU that NCCL's tuning model knows"
        cure = f"Name a table: profile= (--profile), one of {', '.join(_tables())}."
        raise InputError(Fault("chip", ", ".join(chips), rule, cure))
    return fitting[0]


def _tables() -> list[str]:
    return [name for name in list_profiles() if load_profile(name).law == _LAW]


def _team(fabric: Fabric, rows: Any) -> Team:
    """Return what the model sees of these ranks of a fabric."""
    nodes, domains = fabric.ranks[rows], np.unique(fabric.rank_domain[rows])
    up, out = (_leaving(fabric, kind) for kind in ("scale-up", "scale-out"))
    if len(nodes) < 2 or not up[nodes].all():
        rule = "the model is of two ranks or more with NVLink"
        raise InputError(Fault("ranks", len(nodes), rule, "Take GPUs with scale-up links."))
    if not out[nodes].any():  # NICs are nodes of their own
        nics = fabric.node_kind == NODE_KINDS.index("nic")
        out = np.full(len(out), out[nics].sum() / fabric.n_ranks)
    reduces = bool((fabric.reduces & np.isin(fabric.domain, domains)).any())
    if len(domains) > 1 and not out[nodes].any():
        raise InputError(Fault("ranks", len(nodes), "are in several domains that no NIC joins", "Take one domain."))
    return Team(len(nodes), len(domains), float(up[nodes].min()), float(out[nodes].mean()), reduces)


def _leaving(fabric: Fabric, kind: str) -> Any:
    """Return the bandwidth that leaves every node over links of a kind."""
    links = fabric.link_kind == EDGE_KINDS.index(kind)
    return np.bincount(fabric.source[links], fabric.bandwidth[links], len(fabric.labels))


def _switches(table: Profile, kind: str, team: Team) -> Iterator[Switch]:
    last = None
    for size in _SIZES:
        pick = choices(table.constants, kind, size, team)[0]
        if (pick.algorithm, pick.protocol) != last:
            last = pick.algorithm, pick.protocol
            yield Switch(size, *last)


def _named(choice: Choice) -> str:
    return f"{choice.algorithm}/{choice.protocol}"


def _why(found: tuple[Choice, ...], n_bytes: float) -> Iterator[str]:
    pick, *others = found
    time = format_quantity(n_bytes / pick.bandwidth, "seconds")
    latency, rate = format_quantity(pick.latency, "seconds"), format_quantity(pick.bandwidth, "bandwidth")
    line = f"{_named(pick)}: {latency} of latency and {time} for the bytes at {rate}"
    if others:
        line += f"; {_named(others[0])} is next, {others[0].seconds / pick.seconds:.4g} times as long"
    yield line
    quick, wide = min(found, key=lambda one: one.latency), max(found, key=lambda one: one.bandwidth)
    if quick is not wide:
        least, most = format_quantity(quick.latency, "seconds"), format_quantity(wide.bandwidth, "bandwidth")
        yield f"{_named(quick)} has the least latency, {least}; {_named(wide)} the most bandwidth, {most}"


def _assumptions(table: Profile, team: Team) -> Iterator[str]:
    yield f"{table.name}: what NCCL picks by, not what is measured; limits per channel and CollNet are left out"
    if team.n_domains > 1:
        yield "CPUs of Intel: those of AMD have other limits of ll and 2 us a hop (net.overhead)"
    if team.n_ranks % team.n_domains:
        yield f"{team.per_domain} ranks a domain: NCCL rounds {team.n_ranks} over {team.n_domains} down"
