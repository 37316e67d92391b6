"""What does one failed NIC, switch chip or tray leave of the largest expert layer?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from collectives import Part, Profile, kin_of, parts_of, plain, some_of
from placement._bound import expert_layer_bound
from placement._widths import Terms, WidthStep, software_of
from serving import Model, Workload, assumptions_of, chip_numbers, require_records
from topo import Fabric, Fault, InputError, Routes, fail, route, together

__all__ = ["BoundFailure", "BoundFailures", "bound_failures"]

Bools = NDArray[np.bool_]
_KINDS = ("nic", "switch", "tray")


@dataclass(frozen=True)
class BoundFailure:
    """The largest expert layer without one part.

    Attributes
    ----------
    kind, name : str
        What failed: nic, switch or tray.
    alike : int
        Parts that are alike, by symmetry, this one included.
    dropped : int
        GPUs that failed with it, of the layer's domains.
    width, n_experts, n_bytes : int, int, float
        The largest layer on what is left of the domains that held the largest before [bytes].
    loss : int
        Experts fewer than before.
    binding : str
        What stops one more expert per GPU then.
    elsewhere : tuple of int
        (experts, width) of the largest layer on all that is left: what a spare domain saves.
    """

    kind: str
    name: str
    alike: int
    dropped: int
    width: int
    n_experts: int
    n_bytes: float
    loss: int
    binding: str
    elsewhere: tuple[int, int]

    def __repr__(self) -> str:
        what = f"{self.kind} {self.name}, one of {self.alike:,}"
        return f"BoundFailure({self.n_experts:,} experts over {self.width}: {what})"


@dataclass(frozen=True, eq=False, repr=False)
class BoundFailures:
    """What each failed NIC, switch chip and tray leaves of the largest expert layer.

    Attributes
    ----------
    width, n_experts, n_bytes, binding : int, int, float, str
        The largest layer with nothing failed.
    singles : tuple of BoundFailure
        One per class of parts that symmetry cannot tell apart, the worst first. None where
        no layer is possible.
    status : str
        As `expert_layer_bound`.
    step_budget, overlap : float, str
        As asked.
    routing : str
        Rule.
    assumptions : tuple of str
        What was filled in.
    """

    width: int
    n_experts: int
    n_bytes: float
    binding: str
    singles: tuple[BoundFailure, ...]
    status: str
    step_budget: float
    overlap: str
    routing: str
    assumptions: tuple[str, ...]

    @property
    def worst(self) -> BoundFailure | None:
        """The failure that leaves least; none where nothing can fail."""
        return self.singles[0] if self.singles else None

    @property
    def n_parts(self) -> int:
        """Parts that can fail."""
        return sum(one.alike for one in self.singles)

    def __repr__(self) -> str:
        if self.status != "bounded":
            return f"BoundFailures({self.status}: {self.binding})"
        worst = "nothing can fail" if self.worst is None else f"worst {self.worst!r}"
        return f"BoundFailures({self.n_experts:,} experts over {self.width} GPUs without; {worst})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys."""
        own: dict[str, Any] = plain(self)
        return own | {"n_parts": self.n_parts}


def bound_failures(
    graph: nx.Graph[str],
    model: Model,
    workload: Workload,
    *,
    step_budget: float,
    overlap: str = "none",
    routing: str = "ecmp",
    profile: str | os.PathLike[str] | Profile = "ideal",
) -> BoundFailures:
    """Return the largest expert layer with every NIC, switch chip and tray failed in turn.

    The layer stays in the scale-up domains that held the largest one before and takes the
    GPUs there that still reach each other, at whatever width is best. What it could do
    anywhere, a spare domain included, is told beside that.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
        The topology, with chips.
    model, workload, step_budget, overlap, routing, profile
        As `expert_layer_bound`.

    Raises
    ------
    InputError
        As `expert_layer_bound`; a Fabric, which does not say what can fail.

    Examples
    --------
    >>> import topo, serving
    >>> rack = topo.load("gb200-nvl72", overrides={"scale_up.latency": "0 s"})
    >>> work = serving.Workload(context=4096, batch_per_gpu=114)
    >>> bound_failures(rack, serving.load_model("deepseek-v3"), work, step_budget=20e-3).worst
    BoundFailure(2,652 experts over 68: tray host0, one of 18)
    """
    if not isinstance(graph, nx.Graph):
        raise InputError(Fault("graph", repr(graph), "does not say what can fail", "Give the graph itself."))
    terms, fabric, _ = together(
        lambda: Terms(step_budget, overlap), lambda: Fabric.from_graph(graph), lambda: require_records(model, workload)
    )
    asked = _Asked(model, workload, terms, routing, software_of(profile))
    routes = route(fabric, routing)
    before = asked.largest(routes, np.ones(fabric.n_ranks, dtype=bool)) if model.is_moe else None
    if before is None:
        none = expert_layer_bound(
            fabric, model, workload, step_budget=step_budget, overlap=overlap, routing=routes, profile=asked.profile
        )
        return BoundFailures(
            0, 0, 0.0, none.binding, (), none.status, step_budget, overlap, routes.rule, none.assumptions
        )
    home = np.isin(fabric.rank_domain, fabric.rank_domain[before.group])
    trial = _Trial(graph, asked, {fabric.rank_labels[rank] for rank in np.flatnonzero(home)}, asked.experts(before))
    parts = [part for part in parts_of(graph, np.flatnonzero(home)) if part.kind in _KINDS]
    found = [trial.least(kin) for kin in kin_of(parts, routing)]
    return BoundFailures(
        before.width, trial.before, float(trial.before * model.expert_bytes), before.binding(terms),
        tuple(sorted(found, key=_best)), "bounded", step_budget, overlap, routes.rule,
        assumptions_of(
            fabric, model, workload, chip_numbers(fabric, np.arange(fabric.n_ranks)), profile=asked.profile.name
        ),
    )  # fmt: skip


def _best(one: BoundFailure) -> tuple[int, int]:
    return one.n_experts, one.elsewhere[0]


@dataclass(frozen=True, eq=False)
class _Asked:
    """What layer is asked for."""

    model: Model
    workload: Workload
    terms: Terms
    routing: str
    profile: Profile

    def experts(self, step: WidthStep | None) -> int:
        return step.width * step.most(self.terms) if step else 0

    def largest(self, routes: Routes, allowed: Bools) -> WidthStep | None:
        """Return the width with the largest layer on some ranks, the narrowest of several; None where there is none."""
        steps = [
            WidthStep(routes, self.model, self.workload, width, free, self.profile)
            for free in _groups(routes, allowed) for width in range(1, int(free.sum()) + 1)
        ]  # fmt: skip
        # What the wires would leave at best: most widths need not be routed.
        hopes = [(step.width * step.most(self.terms, 0.0), step) for step in steps]
        best, most = None, 0
        for hope, step in sorted(hopes, key=lambda pair: (-pair[0], pair[1].width)):
            if hope < max(most, 1):
                break
            n = self.experts(step)
            if n > most or (best is not None and n == most and step.width < best.width):
                best, most = step, n
        return best


def _groups(routes: Routes, allowed: Bools) -> Iterator[Bools]:
    """Yield sets of ranks that all reach each other, one of them with as many as are found one by one."""
    joined = routes.pair_class != -1
    joined &= joined.T
    if joined[np.ix_(allowed, allowed)].all():
        yield allowed
        return
    reach = (joined & allowed).sum(axis=1)
    free = np.zeros_like(allowed)
    for rank in sorted(np.flatnonzero(allowed).tolist(), key=lambda rank: -int(reach[rank])):
        free[rank] = joined[rank, free].all()
    yield free
    home = routes.fabric.rank_domain
    for domain in np.unique(home[allowed & ~free]):
        part = allowed & (home == domain)
        if joined[np.ix_(part, part)].all():
            yield part


@dataclass(frozen=True, eq=False)
class _Trial:
    """A layer in its domains, to be placed anew without some part."""

    graph: nx.Graph[str]
    asked: _Asked
    home: set[str]
    before: int

    def least(self, kin: list[Part]) -> BoundFailure:
        """Return what a failure leaves of parts that are alike; groups go by the order of ranks, so several are tried.

        The layer that is possible without one of them is, by symmetry, possible without
        each other, on other ranks.
        """
        found: list[BoundFailure] = []
        for part in some_of(kin):
            found.append(self.lose(part, len(kin)))
            if not found[-1].loss:
                break
        return max(found, key=_best)

    def lose(self, part: Part, alike: int) -> BoundFailure:
        """Return what one failure leaves."""
        edited, asked = fail(self.graph, **part.given), self.asked
        routed = [route(piece, asked.routing) for piece in _pieces(edited)]
        homes = [np.array([label in self.home for label in routes.fabric.rank_labels]) for routes in routed]
        best = self._best(zip(routed, homes, strict=True))
        n, other = asked.experts(best), best
        for places in (
            [~home for home in homes],
            [np.ones_like(home) for home in homes],
        ):  # spare domains, then all there is
            if asked.experts(other) < self.before:
                more = self._best(zip(routed, places, strict=True))
                other = max(other, more, key=asked.experts)
        return BoundFailure(
            part.kind, part.name, alike, sum(label not in edited for label in self.home), best.width if best else 0, n,
            float(n * asked.model.expert_bytes), self.before - n, best.binding(asked.terms) if best else "nothing fits",
            (asked.experts(other), other.width if other else 0),
        )  # fmt: skip

    def _best(self, places: Iterable[tuple[Routes, Bools]]) -> WidthStep | None:
        found = [self.asked.largest(routes, allowed) for routes, allowed in places if allowed.any()]
        return max(found, key=self.asked.experts, default=None)


def _pieces(graph: nx.Graph[str]) -> Iterator[nx.Graph[str]]:
    """Yield the parts of a graph that hold ranks, in the graph's order."""
    parts = list(nx.connected_components(graph.to_undirected(as_view=True)))
    ends = {kind: [node for node, data in graph.nodes(data=True) if data["kind"] == kind] for kind in ("gpu", "host")}
    ranks = ends["gpu"] or ends["host"]
    for part in parts:
        if not part.isdisjoint(ranks):
            piece = graph.copy()
            piece.remove_nodes_from([node for node in graph if node not in part])
            yield piece
