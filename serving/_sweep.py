"""Which layouts, batches and contexts are worth having, of all there are?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives import Profile, expert_shares, plain
from serving._assumptions import assumptions_of
from serving._chip import chip_numbers
from serving._elementwise import larger
from serving._engine import band_of, engine_seconds, engine_work, on_ideal_wires
from serving._layout import Groups, Layout, drafting_faults, require_layout
from serving._model import Model
from serving._plan import plan_for, require_records
from serving._points import Points
from serving._software import ProfileLike, Software
from serving._task import Task
from serving._times import PLAIN_TIMES, TIMES, rates_of, times_of
from serving._wires import Wires
from serving._workload import Workload, whole
from topo import Fabric, Fault, InputError, route, suggest

__all__ = ["Sweep", "pareto_front", "sweep"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Graph: TypeAlias = "nx.Graph[str] | Fabric"

#: Most points of a sweep: 57 bytes each and as much again while a layout is worked out.
MOST_POINTS = 20_000_000
_ARRAYS = ("lower", "serial", "seconds", "tokens_per_second", "tokens_per_user", "memory_per_gpu")


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """Steps over a grid of layouts, batches and contexts.

    Attributes
    ----------
    axes : dict
        design, model, workload, ep, tp, pp, batch, context -> the values asked; arrays have an axis
        for each, in this order.
    lower, serial, seconds : (...) float
        As `Step`, `seconds` at `time` [s]; NaN where the layout cannot exist.
    tokens_per_second, tokens_per_user : (...) float
        As `Step` [1/s].
    memory_per_gpu : (...) float
        Weights and KV cache of the fullest GPU [bytes].
    gpus : (...) int
        GPUs of the layout, 0 where it cannot exist.
    fits : (...) bool
        Whether it exists and its memory is within what is usable.
    refused : dict
        Why layouts cannot exist -> how many cannot.
    time : str
        The name of `TIMES` rates are worked out at.
    profile : str
        "ideal", or the engine.
    assumptions : tuple of str
        Everything that was filled in.
    """

    axes: dict[str, tuple[Any, ...]]
    lower: Floats
    serial: Floats
    seconds: Floats
    tokens_per_second: Floats
    tokens_per_user: Floats
    memory_per_gpu: Floats
    gpus: Ints
    fits: NDArray[np.bool_]
    refused: dict[str, int]
    time: str
    profile: str
    assumptions: tuple[str, ...]

    @property
    def tokens_per_gpu(self) -> Floats:
        """Tokens per second of a GPU, (...) float [1/s]."""
        return self.tokens_per_second / np.where(self.gpus > 0, self.gpus, 1)

    @property
    def speed(self) -> Floats:
        """What a user sees: tokens per second, or passes per second where prompts give none [1/s]."""
        return np.where(self.tokens_per_user > 0, self.tokens_per_user, 1 / self.seconds)

    def front(self, design: str | None = None) -> Ints:
        """Return the points that fit and that no other beats in both speed and tokens per GPU: flat, fastest first.

        Parameters
        ----------
        design : str, optional
            Of the points of that design alone.

        Examples
        --------
        >>> import topo, serving
        >>> work = serving.Workload(context=4096, batch_per_gpu=1)
        >>> found = sweep(
        ...     topo.load("hgx-h100-8"), serving.load_model("mixtral-8x7b"), work, ep=[4, 8], batch=[1, 16, 256]
        ... )
        >>> [(row["ep"], row["batch"]) for row in map(found.point, found.front())]
        [(8, 1), (8, 16)]
        """
        fits = self.fits if design is None else self.fits & _along(self.axes["design"], design, self.fits.ndim)
        there = np.flatnonzero(fits)
        return there[pareto_front(self.speed.ravel()[there], self.tokens_per_gpu.ravel()[there])]

    def point(self, i: int) -> dict[str, Any]:
        """Return one point by its flat number: its place on every axis, its layout and its results.

        Raises
        ------
        InputError
            There is no such point.
        """
        if isinstance(i, bool) or not isinstance(i, int | np.integer) or not 0 <= i < self.fits.size:
            rule = f"must be a point's number, 0 to {self.fits.size - 1}"
            raise InputError(Fault("i", i, rule, "Take one that `front` gives."))
        at = np.unravel_index(int(i), self.fits.shape)
        found = {name: values[int(k)] for (name, values), k in zip(self.axes.items(), at, strict=True)}
        names = (*_ARRAYS, "tokens_per_gpu", "speed", "gpus", "fits")
        return found | {name: plain(getattr(self, name)[at]) for name in names}

    def __repr__(self) -> str:
        front, size = self.front(), self.fits.size
        said = f"Sweep({size:,} points, {int(self.fits.sum()):,} fit, {len(front)} on the front"
        if not len(front):
            return f"{said})"
        best = self.point(int(front[-1]))
        cut = f"ep {best['ep']}, tp {best['tp']}, pp {best['pp']}, batch {best['batch']}"
        return f"{said}; most {best['tokens_per_gpu']:.4g} tokens/s per GPU: {cut} on {best['design']})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values: axes, counts and the points of the front."""
        return {
            "axes": {name: list(values) for name, values in self.axes.items()}, "points": self.fits.size,
            "exist": int((self.gpus > 0).sum()), "fit": int(self.fits.sum()), "refused": self.refused,
            "time": self.time, "profile": self.profile, "front": [self.point(int(i)) for i in self.front()],
        }  # fmt: skip


def _along(names: tuple[str, ...], name: str, ndim: int) -> NDArray[np.bool_]:
    if not isinstance(name, str) or name not in names:
        raise InputError(Fault("design", name, "was not swept", suggest(str(name), names)))
    return np.array([one == name for one in names]).reshape(-1, *[1] * (ndim - 1))


def pareto_front(a: ArrayLike, b: ArrayLike) -> Ints:
    """Return the points that no other beats in one of two values without losing in the other.

    Parameters
    ----------
    a, b : (n,) float
        Of both more is better; a point with a NaN is on no front.

    Returns
    -------
    (front,) int
        Numbers of the points, `a` falling and `b` rising; of equal points the first.

    Raises
    ------
    InputError
        They are no rows of numbers, or not as many.

    Examples
    --------
    >>> pareto_front([3, 2, 2, 1], [1, 5, 4, 5]).tolist()
    [0, 1]
    """
    try:
        first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    except (TypeError, ValueError):
        first = second = np.zeros(())
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(Fault("a, b", (a, b), "must be two rows of numbers, as many in each", "Flatten them."))
    order = np.lexsort((-second, -first))
    order = order[~(np.isnan(first) | np.isnan(second))[order]]
    best = np.maximum.accumulate(np.concatenate([[-np.inf], second[order]]))[:-1]
    return order[second[order] > best]


def sweep(
    graphs: Graph | Sequence[Graph] | Mapping[str, Graph],
    models: Model | Sequence[Model] | Mapping[str, Model],
    workloads: Workload | Sequence[Workload] | Mapping[str, Workload],
    *,
    ep: ArrayLike,
    tp: ArrayLike = 1,
    pp: ArrayLike = 1,
    batch: ArrayLike | None = None,
    context: ArrayLike | None = None,
    time: str | None = None,
    routing: str = "ecmp",
    profile: ProfileLike = "ideal",
) -> Sweep:
    """Return the steps of every combination.

    Parameters
    ----------
    graphs : graph, or several, or a mapping of names to them
        Chips and numbers of domains.
    models : Model, or several, or a mapping
        Types of weights are a model's: one model may stand there in several.
    workloads : Workload, or several, or a mapping
        Phase and types of cache and traffic; whichever batch they state is what `batch` counts.
    ep, tp, pp : int or sequence of int
        As `Layout`.
    batch, context : int or sequence of int, optional
        By default those of the first workload.
    time, routing
        As `step`.
    profile : str or Profile, optional
        "ideal", or a serving engine, as `step` takes it.

    Returns
    -------
    Sweep
        Layouts that cannot exist are counted by their reason.

    Raises
    ------
    InputError
        Numbers that are none, more points than memory holds, a chip without numbers, a profile of collectives,
        guesses by a layer that a model does not have.

    Examples
    --------
    >>> import topo, serving
    >>> model, work = serving.load_model("deepseek-v3"), serving.Workload(batch_per_gpu=1)
    >>> sweep(topo.load("gb200-nvl72"), model, work, ep=[32, 64], batch=[1, 64])
    Sweep(4 points, 4 fit, 2 on the front; most 1.002e+04 tokens/s per GPU: ep 64, tp 1, pp 1, batch 64 on gb200-nvl72)
    """
    fabrics = _named(graphs, lambda graph: Fabric.from_graph(graph).name or "graph")
    pairs = list(product(_things(models), _things(workloads)))
    for model, work in pairs:
        require_records(model, work)
    kinds, works = _named(models, lambda model: model.name), _named(workloads, lambda work: work.phase)
    given = {"graphs": fabrics, "models": kinds, "workloads": works}
    faults = [Fault(name, "empty", "holds none", "Give one or more.") for name, found in given.items() if not found]
    faults += [fault for model, work in pairs for fault in drafting_faults(model, work)]
    if faults:
        raise InputError(*faults)
    first = next(iter(works.values()))
    axes = {"design": tuple(fabrics), "model": tuple(kinds), "workload": tuple(works)} | _numbers(
        ep=ep, tp=tp, pp=pp, batch=first.batch or first.batch_per_gpu if batch is None else batch,
        context=first.context if context is None else context,
    )  # fmt: skip
    engine = on_ideal_wires(profile)
    time = ("engine" if engine else "serial") if time is None else time
    known = tuple(TIMES) if engine else PLAIN_TIMES
    if not isinstance(time, str) or time not in known:
        raise InputError(Fault("time", time, "is not known", suggest(str(time), known)))
    return _Grid(axes, time, engine).filled(fabrics, list(kinds.values()), list(works.values()), routing)


def _things(given: Any) -> list[Any]:
    if isinstance(given, Mapping):
        return list(given.values())
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def _named(given: Any, name: Any) -> dict[str, Any]:
    """Return name -> thing; things of one name are numbered."""
    if isinstance(given, Mapping):
        return dict(given)
    things = _things(given)
    names = [str(name(thing)) for thing in things]
    count = Counter(names)
    return {
        one if count[one] == 1 else f"{one} #{names[:i].count(one) + 1}": thing
        for i, (one, thing) in enumerate(zip(names, things, strict=True))
    }


def _numbers(**given: ArrayLike) -> dict[str, tuple[int, ...]]:
    found, faults = {}, []
    for name, values in given.items():
        try:
            row = np.atleast_1d(np.asarray(values)).ravel().tolist()
        except ValueError:  # lists of lists of different lengths
            row = [values]
        faults += [fault for value in row for fault in whole(name, value)]
        found[name] = tuple(row)
    if faults:
        raise InputError(*faults)
    return found


class _Grid:
    """The arrays of a sweep, being filled."""

    def __init__(self, axes: dict[str, tuple[Any, ...]], time: str, engine: Profile | None) -> None:
        shape = tuple(len(values) for values in axes.values())
        if not 0 < (size := int(np.prod(shape, dtype=np.float64))) <= MOST_POINTS:
            rule = f"are {size:,} points, and 1 to {MOST_POINTS:,} can be worked out at once"
            raise InputError(Fault("axes", shape, rule, "Give other axes."))
        self.axes, self.time, self.engine, self.refused = axes, time, engine, Counter[str]()
        self.arrays = {name: np.full(shape, np.nan) for name in _ARRAYS}
        self.gpus, self.fits = np.zeros(shape, dtype=np.intp), np.zeros(shape, dtype=bool)
        self.batch, self.context = (grid.ravel() for grid in np.meshgrid(axes["batch"], axes["context"], indexing="ij"))

    def filled(self, fabrics: dict[str, Any], models: list[Model], works: list[Workload], routing: str
               ) -> Sweep:  # fmt: skip
        """Work out everything; of groups alike in several fabrics the smallest is costed."""
        known: dict[Hashable, Any] = {}
        routes = [route(graph, routing) for graph in fabrics.values()]
        said: dict[str, None] = {}
        for g in sorted(range(len(routes)), key=lambda i: routes[i].fabric.n_ranks):
            wires = Wires(routes[g], known)
            for (m, model), (w, work) in product(enumerate(models), enumerate(works)):
                chip = chip_numbers(wires.routes.fabric, np.arange(wires.routes.fabric.n_ranks))
                said |= dict.fromkeys(assumptions_of(wires.routes.fabric, model, work, chip))
                said |= dict.fromkeys(band_of(0.0, self.engine, chip.name)[1] if self.engine else ())
                self._layouts(wires, model, work, (g, m, w))
        return Sweep(self.axes, **self.arrays, gpus=self.gpus, fits=self.fits, refused=dict(self.refused),
                     time=self.time, profile=self.engine.name if self.engine else "ideal", assumptions=tuple(said),
                     )  # fmt: skip

    def _layouts(self, wires: Wires, model: Model, work: Workload, at: tuple[int, int, int]) -> None:
        shares = expert_shares(model.n_experts, None, model.n_moe_layers) if model.is_moe else np.zeros((0, 0))
        software = Software.load("ideal", None)
        cuts = product(*(enumerate(self.axes[name]) for name in ("ep", "tp", "pp")))
        for (i, ep), (j, tp), (k, pp) in cuts:
            try:
                layout = Layout(ep, tp=tp, pp=pp)
                require_layout(layout, wires.routes.fabric, model, work)
            except InputError as error:
                self.refused[f"{error.faults[0].place} {error.faults[0].rule}"] += len(self.batch)
                continue
            groups = Groups(wires.routes.fabric, layout)
            chip = chip_numbers(wires.routes.fabric, groups.all)
            task = Task(model, work, layout, plan_for(model, layout, shares), shares, groups, chip, software)
            self._fill((*at, i, j, k), Points(task, wires, self.batch, self.context))

    def _fill(self, at: tuple[int, ...], worked: Points) -> None:
        shape, work = self.fits.shape[-2:], worked.workload
        found: dict[str, Any] = times_of(worked, *{"lower", "serial", self.time} - {"engine"})
        if self.engine is not None:
            parts = worked.all_parts
            spent = engine_work(parts, worked.model, worked.layout, work.draft)
            found["engine"] = engine_seconds(self.engine.constants, spent) + 0.0 * worked.context
        found["seconds"] = found[self.time]
        found["tokens_per_second"], found["tokens_per_user"] = rates_of(worked, found["seconds"])
        found["memory_per_gpu"] = reduce(larger, [weights + kv for weights, kv, _ in worked.memory()])
        for name in _ARRAYS:
            self.arrays[name][at] = found[name].reshape(shape)
        self.gpus[at] = worked.layout.gpus
        usable = worked.chip.hbm_bytes * (1 - work.hbm_reserve)
        self.fits[at] = (found["memory_per_gpu"] <= usable).reshape(shape)
