"""Does one rack bound this model's expert layer? The whole answer for one or many designs, as records."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from collectives import Bracket, Cost, Profile, cost, load_profile, plain
from placement import ExpertLayerBound, Solution, Terms, WidthSteps, expert_layer_bound, solve, width_steps
from rackbound._brackets import told
from rackbound._defaults import BATCH_PER_GPU, BUDGET, CONTEXT, DOMAINS
from rackbound._graphs import graph_of
from rackbound._sentences import bandwidth_flip, binding_sentence, budget_flip, compared, summary_sentence
from serving import DTYPE_BYTES, Layout, Model, Step, Workload, load_model, step, step_brackets
from topo import Fabric, Fault, InputError, Routes, route, together
from topo.units import parse_quantity

__all__ = ["DesignAnswer", "Evaluation", "StepCurve", "evaluate"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Widths at which the model's own step is worked out for the figure.
_CURVE_POINTS = 48
_BUDGET = parse_quantity(BUDGET, "seconds")


@dataclass(frozen=True, eq=False)
class StepCurve:
    """The model's own step against the width of its expert-parallel group.

    Attributes
    ----------
    width : (points,) int
        GPUs of the group.
    serial, lower, all_to_all : (points,) float
        Step without and with overlap, and its dispatch and combine [s].
    fits : (points,) bool
        Whether the fullest GPU's memory holds it.
    """

    width: Ints
    serial: Floats
    lower: Floats
    all_to_all: Floats
    fits: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class DesignAnswer:
    """The answer for one design.

    Attributes
    ----------
    design : str
        Name.
    layer_experts, layer_bytes : int, float
        The model's own expert layer [bytes].
    bound : ExpertLayerBound
        The largest layer of the model's kind.
    ratio : float or None
        bound / the model's own layer; None for a dense model.
    within_bound : bool or None
        Whether the model's own layer is within the bound; None for a dense model.
    domain_size, n_ranks : int
        GPUs of the largest scale-up domain, and of all.
    step : Step
        The model's own step at the fastest width tried that fits, or the one that
        needs least memory.
    placement : Solution
        Layers on stages and experts on GPUs.
    curve : StepCurve or None
        None for a dense model.
    dispatch : Cost or None
        Dispatch of one layer over all ranks, for the picture of the topology.
    brackets : dict
        Operation of `step` -> between which times its collective lies, of the slowest layer.
    summary, binding : str
        The first line, and a sentence on what binds.
    flips : tuple of str
        Where the answer flips.
    assumptions : tuple of str
        Everything that was filled in.
    """

    design: str
    layer_experts: int
    layer_bytes: float
    bound: ExpertLayerBound
    ratio: float | None
    within_bound: bool | None
    domain_size: int
    n_ranks: int
    step: Step
    placement: Solution
    curve: StepCurve | None
    dispatch: Cost | None
    brackets: dict[str, Bracket]
    summary: str
    binding: str
    flips: tuple[str, ...]
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        return f"DesignAnswer({self.summary})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys."""
        own = plain(self, leave_out=("bound", "placement", "dispatch", "brackets"))
        dispatch = self.dispatch.to_dict() if self.dispatch else None
        rest = {"bound": self.bound.to_dict(), "placement": self.placement.to_dict(), "dispatch": dispatch}
        result: dict[str, Any] = own | rest | {"brackets": told(self.brackets)}
        return result


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Answers for all designs of one question.

    Attributes
    ----------
    model : Model
        As loaded.
    workload : Workload
        As asked.
    budget : float
        Time for one token through all layers [s].
    domains : int
        Scale-up domains joined, of graph files the most that one has.
    overlap : str
        "none" or "full".
    designs : tuple of DesignAnswer
        In the order asked.
    graphs : tuple of networkx.Graph
        Their topologies, for figures.
    """

    model: Model
    workload: Workload
    budget: float
    domains: int
    overlap: str
    designs: tuple[DesignAnswer, ...]
    graphs: tuple[nx.Graph[str], ...]

    def __repr__(self) -> str:
        return f"Evaluation({'; '.join(answer.summary for answer in self.designs)})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys (graphs left out)."""
        own: dict[str, Any] = plain(self, leave_out=("graphs", "designs", "model"))
        return own | {"model": self.model.to_dict(), "designs": [answer.to_dict() for answer in self.designs]}


def evaluate(
    designs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    model: str | os.PathLike[str] | Model,
    *,
    workload: Workload | None = None,
    budget: float = _BUDGET,
    domains: int | Sequence[int] | None = None,
    overlap: str = "none",
    overrides: Mapping[str, Any] | None = None,
    profile: str | os.PathLike[str] | Profile = "ideal",
) -> Evaluation:
    """Return whether one rack bounds a model's expert layer, for one or many designs.

    Parameters
    ----------
    designs : str, path or sequence of them
        Catalogue names or design files.
    model : str, path or Model
        Catalogue name or config.json.
    workload : Workload, optional
        By default 114 sequences per GPU at a context of 4096.
    budget : float, optional
        Time for one token through all layers [s].
    domains : int or sequence of int, optional
        Scale-up domains joined by the design's scale-out fabric, or the GPUs of each; by
        default 2, and 1 for a design without NIC rate. A graph file has those it has.
    overlap : {"none", "full"}, optional
        How operations share time.
    overrides : mapping, optional
        Dotted key -> value for every design, as in the file.
    profile : str, path or Profile, optional
        Software of the collectives, as `placement.width_steps`.

    Returns
    -------
    Evaluation
        A model that does not fit, or has no experts, is an answer.

    Raises
    ------
    InputError
        Everything wrong with the designs, the model and the numbers.

    Examples
    --------
    >>> from rackbound import evaluate
    >>> evaluate("gb200-nvl72", "deepseek-v3").designs[0].bound.width
    72
    """
    names: list[Any] = list(designs) if isinstance(designs, list | tuple) else [designs]
    for name in names:
        if not isinstance(name, str | os.PathLike):
            value = type(name).__name__
            raise InputError(Fault("designs", value, "must be names or paths", "Give catalogue names or design files."))
    if not names:
        raise InputError(Fault("designs", names, "needs at least one design", "Name one; `rackbound design list`."))
    if workload is not None and not isinstance(workload, Workload):
        raise InputError(Fault("workload", workload, "must be a serving.Workload", "Make one, or leave it out."))
    work = workload or Workload(context=CONTEXT, batch_per_gpu=BATCH_PER_GPU)
    loaded, _, software, *graphs = together(
        lambda: model if isinstance(model, Model) else load_model(model),
        lambda: Terms(budget, overlap),
        lambda: load_profile(profile),
        *(partial(graph_of, name, domains, DOMAINS, overrides) for name in dict.fromkeys(names)),
    )
    built = dict(zip(dict.fromkeys(names), graphs, strict=True))
    question = _Question(loaded, work, budget, overlap, software)
    answers = tuple(map(question.answer, built.values(), _labels(built)))
    count = max(len(Fabric.from_graph(graph).domain_sizes) for graph in built.values())
    return Evaluation(loaded, work, budget, count, overlap, answers, tuple(built.values()))


def _labels(built: Mapping[Any, nx.Graph[str]]) -> list[str]:
    """Return the designs' names, with their files where two bear one name."""
    names = [graph.graph["name"] for graph in built.values()]
    return [
        name if names.count(name) == 1 else f"{name} ({os.fspath(path)})"
        for name, path in zip(names, built, strict=True)
    ]


@dataclass(frozen=True)
class _Question:
    model: Model
    workload: Workload
    budget: float
    overlap: str
    profile: Profile

    def answer(self, graph: nx.Graph[str], name: str) -> DesignAnswer:
        """Everything about one design."""
        model, routes = self.model, route(graph)
        fabric = routes.fabric
        steps = width_steps(fabric, model, self.workload, routing=routes, profile=self.profile)
        bound = self._bound(steps)
        ratio = bound.n_experts / model.n_experts if model.is_moe else None
        own_steps = self._own_steps(routes)
        own = min(own_steps, key=lambda one: (not one.fits, one.serial if one.fits else one.memory_per_gpu))
        placed = solve(fabric, model, self.workload, routing=routes)
        flips = self._flips(routes, steps, bound) if model.is_moe else ()
        return DesignAnswer(
            design=name, layer_experts=model.n_experts, layer_bytes=model.n_experts * model.expert_bytes,
            bound=bound, ratio=ratio, within_bound=None if ratio is None else ratio >= 1,
            domain_size=int(fabric.domain_sizes.max()), n_ranks=fabric.n_ranks, step=own,
            placement=placed, curve=_curve(own_steps) if model.is_moe else None,
            dispatch=self._dispatch(routes),
            brackets=step_brackets(fabric, model, self.workload, layout=own.layout, routing=routes),
            summary=summary_sentence(name, model, bound),
            binding=binding_sentence(name, bound, own, placed), flips=flips, assumptions=own.assumptions,
        )  # fmt: skip

    def _bound(self, steps: WidthSteps, overlap: str | None = None) -> ExpertLayerBound:
        return expert_layer_bound(
            steps.routes.fabric, steps.model, steps.workload,
            step_budget=self.budget, overlap=overlap or self.overlap, routing=steps.routes, steps=steps,
        )  # fmt: skip

    def _own_steps(self, routes: Routes) -> list[Step]:
        """Work out the model's own step at telling widths: each domain's end, what divides its experts, and between."""
        own = partial(step, routes.fabric, self.model, self.workload, routing=routes, profile=self.profile)
        if not self.model.is_moe:
            return [own(layout=Layout(1))]
        n = routes.fabric.n_ranks
        ends = np.unique(np.cumsum(np.sort(routes.fabric.domain_sizes)[::-1]))
        even = np.round(np.linspace(1, n, min(n, _CURVE_POINTS)))
        whole = [w for w in range(1, n + 1) if self.model.n_experts % w == 0]
        widths = np.unique(np.concatenate([even, ends, ends[:-1] + 1, whole])).astype(np.intp)
        return [own(layout=Layout(int(w))) for w in widths]

    def _dispatch(self, routes: Routes) -> Cost | None:
        """Dispatch of one layer over all ranks, experts as equal as can be."""
        if not self.model.is_moe:
            return None
        copies = int(self.workload.batch_of(routes.fabric.n_ranks).max()) * self.model.top_k
        n_bytes = copies * self.model.expert_hidden_size * DTYPE_BYTES[self.workload.dispatch_dtype]
        return cost(routes.fabric, "all_to_all", n_bytes, routing=routes)

    def _flips(self, routes: Routes, steps: WidthSteps, bound: ExpertLayerBound) -> tuple[str, ...]:
        return tuple(
            sentence
            for sentence in (
                bandwidth_flip(bound),
                self._overlap_flip(steps, bound),
                self._batch_flip(routes, bound),
                self._budget_flip(steps, bound),
            )
            if sentence
        )

    def _overlap_flip(self, steps: WidthSteps, bound: ExpertLayerBound) -> str:
        if bound.scale_out_needed is None:
            return ""
        other = "none" if self.overlap == "full" else "full"
        name = "with everything overlapped" if other == "full" else "with nothing overlapped"
        return compared(name, self._bound(steps, other), bound)

    def _batch_flip(self, routes: Routes, bound: ExpertLayerBound) -> str:
        """Hold the total batch at what one domain has, or the batch per GPU at what one domain gives."""
        if bound.scale_out_needed is None:
            return ""
        size = int(routes.fabric.domain_sizes.max())
        if self.workload.batch_per_gpu is not None:
            other = _with_batch(self.workload, batch=self.workload.batch_per_gpu * size)
        else:
            other = _with_batch(self.workload, batch_per_gpu=max(1, (self.workload.batch or 1) // size))
        steps = width_steps(routes.fabric, self.model, other, routing=routes, profile=self.profile)
        return compared(f"at a constant {other.batch_policy}", self._bound(steps), bound)

    def _budget_flip(self, steps: WidthSteps, bound: ExpertLayerBound) -> str:
        least, width = steps.least_budget(self.model.n_experts, self.overlap)
        return budget_flip(bound, self.model.n_experts, least, width)


def _curve(steps: list[Step]) -> StepCurve:
    wires = [sum(part.network_seconds for part in one.parts) for one in steps]
    return StepCurve(
        np.array([one.layout.ep for one in steps]), np.array([one.serial for one in steps]),
        np.array([one.lower for one in steps]), np.array(wires), np.array([one.fits for one in steps]),
    )  # fmt: skip


def _with_batch(workload: Workload, batch: int | None = None, batch_per_gpu: int | None = None) -> Workload:
    return replace(workload, batch=batch, batch_per_gpu=batch_per_gpu)
