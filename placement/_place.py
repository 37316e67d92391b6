"""Which GPUs hold copies of which experts? The heaviest GPU as light as can be, with a proof how light that is."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives import plain
from placement._certificates import filled_bound, least_heaviest, ruled_bound
from placement._copies_bound import copies_bound, copies_within
from placement._moves import Layer, layer_of
from placement._pairs import paired, seated_in_pairs
from placement._place_asked import asked_to_place
from placement._place_layers import Found, Task, layers_under, quick_layers
from placement._place_small import annealed, homed, is_small, settled, small_under
from placement._rules import Gpus, Rules
from placement._search import search
from placement._start import start
from serving import PlacementPlan

__all__ = ["ExpertPlacement", "place"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Gap that ends the search, and what it may look at in a layer: both are deterministic, the clock is not.
GAP, WORK = 5e-4, {"equal": 6000, "weighted": 9000}
#: Gap at which a layer is searched once more, and how much longer.
_WIDE, _LONGER = {"equal": 0.004, "weighted": 0.001}, {"equal": 4, "weighted": 10}
#: Looks that cost as much as a move of a copy among pairs; the gap at which these go on, and how much longer.
_MOVE, _WIDE_PAIRS, _LONGER_PAIRS = 100, 0.008, 5
#: Loads of a layer to try to refute with whole numbers of copies.
_ROUNDS = 12
#: Searches of a layer: what they try by chance, and their part of the work.
_CHANCES = ((12345, 0.7), (1, 0.15), (2, 0.15))


@dataclass(frozen=True, eq=False, repr=False)
class ExpertPlacement:
    """A placement of experts, and how good it is at least.

    Attributes
    ----------
    plan : PlacementPlan or None
        Slots, their GPUs, and under weighted sharing their shares; None when infeasible.
    gpu_load : (layers, gpus) float
        Load over speed of every GPU, over the mean: 1 is level.
    objective, bound, gap : float or None
        Heaviest GPU over the mean, averaged over layers; what no placement is below; and
        objective / bound - 1.
    status : str
        "optimal", "feasible" or "infeasible", and why.
    binding : str
        What keeps the objective from falling.
    layer_objective, layer_bound : (layers,) float
        The same for every layer.
    layer_binding : tuple of str
        What each layer's bound comes from.
    """

    plan: PlacementPlan | None
    gpu_load: Floats
    objective: float | None
    bound: float | None
    gap: float | None
    status: str
    binding: str
    layer_objective: Floats
    layer_bound: Floats
    layer_binding: tuple[str, ...]

    def __repr__(self) -> str:
        if self.objective is None:
            return f"ExpertPlacement({self.status})"
        reached = f"max/mean load {self.objective:.4f}, bound {self.bound:.4f}"
        return f"ExpertPlacement({self.status}; {reached}; {self.binding})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, field names as keys."""
        whole: dict[str, Any] = plain(self, leave_out=("plan",))
        return whole | {"plan": self.plan.to_dict() if self.plan else None}


def place(
    load: ArrayLike,
    gpus: int | Gpus,
    *,
    replicas: int = 0,
    sharing: str = "equal",
    rules: Rules | None = None,
    gap: float = GAP,
    work: int | None = None,
    time_limit: float | None = None,
    exact: bool = False,
) -> ExpertPlacement:
    """Place experts and spare copies on GPUs so that the heaviest GPU is light.

    A quick start for all layers at once, then exchanges, other spare copies and other
    shares layer by layer, and a bound that no placement beats.

    Parameters
    ----------
    load : (experts,), (layers, experts) or (steps, layers, experts) array
        Tokens of every expert, in any unit; those of several steps are added up. A layer
        without any counts as uniform.
    gpus : int or Gpus
        Alike GPUs with as many slots as are needed, or what each is.
    replicas : int, optional
        Spare copies beyond one of each expert.
    sharing : {"equal", "weighted"}, optional
        Whether copies of an expert get equal parts of its tokens, or any.
    rules : Rules, optional
        What the placement must keep to.
    gap : float, optional
        objective / bound - 1 at which a layer is good enough.
    work : int, optional
        Looks of a layer's heaviest GPU at all others; by default 6000, and 9000 where
        shares are weighted.
    time_limit : float, optional
        For all layers [s]. Without it the answer does not depend on the machine's speed.
    exact : bool, optional
        Whether to prove with whole numbers what the quick proof leaves open, where copies share equally: seconds
        a layer. In layers of a few copies on a few GPUs, rules and all, the lightest placement is looked for (in
        the smallest always); on GPUs alike with two slots each the answer is within `gap` of the best there is.

    Returns
    -------
    ExpertPlacement
        Infeasible is a status that names the rule.

    Raises
    ------
    InputError
        Loads that are no numbers, fewer slots than copies, unknown names.

    Examples
    --------
    >>> place([[4.0, 3.0, 2.0, 1.0]], 2).objective
    1.0
    >>> place([[6.0, 1.0, 3.0]], 2, replicas=1, sharing="weighted", work=50).gpu_load.round(6).tolist()
    [[1.0, 1.0]]
    """
    whole, machine, rules = asked_to_place(load, gpus, replicas, sharing, rules or Rules(), gap, work, time_limit)
    work = WORK[sharing] if work is None else work
    loads, layer = np.unique(whole, axis=0, return_inverse=True)  # alike layers are placed once, and alike
    until = None if time_limit is None else time.perf_counter() + time_limit
    copies = loads.shape[1] + replicas
    if is_small(copies) and rules.given and not rules.together:
        found = small_under(loads, machine, rules, copies, sharing)
    elif rules.given:
        layers = layers_under(loads, machine, rules, copies)
        found = layers if isinstance(layers, str) else [
            _solved(each, machine, copies, sharing, gap, work, until) for each in layers
        ]  # fmt: skip
        if is_small(copies) and not isinstance(found, str):
            found = homed(found, loads, machine, rules, copies, sharing)
    else:
        quick = quick_layers(loads, start(loads, machine.slots, machine.speed, copies, doubled=False), machine)
        found = [_solved(each, machine, copies, sharing, gap, work, until) for each in quick]
        if is_small(copies):
            found = [annealed(each, machine, copies, sharing, gap) for each in found]
    if isinstance(found, str):
        return _infeasible(found)
    found = [settled(each, machine, rules, copies, sharing, gap, until, exact) for each in found]
    if exact:
        found = [_proven(each, machine, copies, sharing, gap, until) for each in found]
    return _answer(whole, machine, [found[i] for i in layer.ravel()], sharing)


def _solved(
    task: Task, machine: Gpus, copies: int, sharing: str, gap: float, work: int, until: float | None
) -> Found:  # fmt: skip
    """Search, prove, and search on where the proof leaves a gap."""
    load = task.layer.load[:-1]
    bound, why = least_heaviest(task.whole, copies, machine.slots, machine.speed)
    if task.may is not None:
        tighter = ruled_bound(task.whole, task.may, machine.speed)
        bound, why = (tighter, "the rules") if tighter > bound * (1 + 1e-9) else (bound, why)
    elif (full := filled_bound(load, copies, machine.slots, machine.speed, bound)) > bound * (1 + 1e-9):
        bound, why = full, "whole experts beside the lightest"
    alike = _alike(task, machine, sharing)
    pair = alike and bool((machine.slots == 2).all()) and copies == 2 * len(machine.slots)
    begun = task.layer.copies[:-1]
    if pair:
        task = _paired(task, begun, machine, work // _MOVE)
    best = float((task.layer.share.sum(axis=1) / machine.speed).max())
    stopped = until is not None and time.perf_counter() > until
    if best > bound * (1 + gap) and not stopped:
        best, layer = _searched(task.layer, bound * (1 + 0.6 * gap), work, sharing == "weighted")
        task = replace(task, layer=layer)
        stopped = until is not None and time.perf_counter() > until
    if best > bound * (1 + gap) and alike and not stopped:
        slots = machine.slots[machine.slots > 0]
        proven = copies_bound(load / machine.speed[0], copies, len(slots), int(slots.max()), bound, best, gap)
        if proven > bound:
            bound, why = proven, "whole copies in whole slots"
    if best > bound * (1 + (_WIDE_PAIRS if pair else _WIDE[sharing])) and not stopped:
        if pair:
            task = _paired(task, begun, machine, _LONGER_PAIRS * work // _MOVE)
            return Found(task, min(bound, float(task.layer.share.sum(axis=1).max() / machine.speed[0])), why, stopped)
        again, layer = _searched(task.layer, bound * (1 + 0.6 * gap), _LONGER[sharing] * work, sharing == "weighted")
        if again < best:
            best, task = again, replace(task, layer=layer)
    return Found(task, min(bound, best), why, stopped)


def _paired(task: Task, count: Ints, machine: Gpus, moves: int) -> Task:
    """Search numbers of copies that pair well, from these, and take them where they are lighter."""
    load = task.layer.load[:-1]
    seats = paired(load, count, len(machine.slots), moves)
    pairs = layer_of(load, seats.expert[0], seats.count[0], machine.slots, machine.speed)
    lighter = pairs.share.sum(axis=1).max() < task.layer.share.sum(axis=1).max()
    return replace(task, layer=pairs) if lighter else task


def _alike(task: Task, machine: Gpus, sharing: str) -> bool:
    """Whether whole copies go to GPUs that are all the same, which is what `copies_bound` knows of."""
    return sharing == "equal" and not task.ruled and len(set(machine.speed)) == 1


def _proven(found: Found, machine: Gpus, copies: int, sharing: str, gap: float, until: float | None) -> Found:
    """Prove with whole numbers of copies; with two slots a GPU what cannot be refuted is a better placement."""
    slots = machine.slots[machine.slots > 0]
    task, bound, why = found.task, found.bound, found.why
    load, pair = task.layer.load[:-1], bool((machine.slots == 2).all()) and copies == 2 * len(slots)
    best = float((task.layer.share.sum(axis=1) / machine.speed).max())
    if not _alike(task, machine, sharing):
        return found
    low, high = bound, best
    for _ in range(_ROUNDS):
        if best <= bound * (1 + gap) or high <= low * (1 + gap) or (until and time.perf_counter() > until):
            break
        tried = high / (1 + gap) if pair or high == best else (low * high) ** 0.5
        count = copies_within(load / machine.speed[0], copies, len(slots), int(slots.max()), tried)
        if count is None:
            bound, low, why = max(bound, tried), tried, "whole copies in whole slots"
            continue
        high = tried
        if pair and len(count):
            seats = seated_in_pairs(load, count, len(slots))
            layer = layer_of(load, seats.expert[0], seats.count[0], machine.slots, machine.speed)
            reached = float(layer.share.sum(axis=1).max() / machine.speed[0])
            if reached < best:
                task, best, high = replace(task, layer=layer), reached, reached
    return Found(task, min(bound, best), why, found.stopped)


def _searched(start: Layer, goal: float, work: int, weighted: bool) -> tuple[float, Layer]:
    """Search from the start by several chances and return the best."""
    best, found = np.inf, start
    for seed, part in _CHANCES:
        layer = start._replace(expert=start.expert.copy(), share=start.share.copy(), copies=start.copies.copy())
        heavy = search(layer, goal, int(work * part), weighted, seed)
        if heavy < best:
            best, found = heavy, layer
        if best <= goal:
            break
    return best, found


def _infeasible(why: str) -> ExpertPlacement:
    none = np.zeros(0)
    return ExpertPlacement(None, np.zeros((0, 0)), None, None, None, f"infeasible: {why}", why, none, none, ())


def _answer(loads: Floats, machine: Gpus, found: list[Found], sharing: str) -> ExpertPlacement:
    """Put layers together in one plan, and weigh it again from the plan alone."""
    expert, rank, share = (np.array(part) for part in zip(*(_slots(each.task) for each in found), strict=True))
    stage = np.zeros(len(loads), dtype=np.intp)
    plan = PlacementPlan(expert, rank, stage, len(machine.slots), 1)
    if sharing == "weighted" and not np.allclose(share, plan.shares, rtol=1e-9, atol=0):
        plan = replace(plan, slot_share=share)
    weight = plan.gpu_load(loads) / machine.speed
    mean = loads.sum(axis=1) / machine.speed[machine.slots > 0].sum()
    heavy = weight.max(axis=1) / mean
    bound = np.minimum(np.array([each.bound for each in found]) / mean, heavy)
    objective, least = float(heavy.mean()), float(bound.mean())
    gap, worst = objective / least - 1, found[int(np.argmax(heavy))]
    stopped = sum(each.stopped for each in found)
    status = "optimal" if gap <= 1e-9 else f"feasible, within {100 * gap:.3g} % of any other"
    return ExpertPlacement(
        plan, weight / mean[:, None], objective, least, gap,
        status + (f"; the clock stopped {stopped} of {len(found)} layers" if stopped else ""),
        worst.why, heavy, bound, tuple(each.why for each in found),
    )  # fmt: skip


def _slots(task: Task) -> tuple[Ints, Ints, Floats]:
    """Return expert, GPU and part of the expert's tokens of every copy, GPU after GPU, the heaviest first."""
    a, n = task.layer, len(task.layer.load) - 1
    gpu, seat = np.nonzero(a.expert < n)
    order = np.lexsort((-a.share[gpu, seat], gpu))
    gpu, seat = gpu[order], seat[order]
    piece, load = a.expert[gpu, seat], a.share[gpu, seat]
    expert = task.expert[piece]
    whole = np.bincount(task.expert, a.load[:-1])[expert]
    many = np.bincount(task.expert, a.copies[:-1])[expert]
    return expert, gpu, np.where(whole > 0, load / np.where(whole > 0, whole, 1.0), 1 / many)
