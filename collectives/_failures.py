"""What does one failure cost, which is the worst, and who can no longer reach whom?"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._cost import cost
from collectives._failure_trial import Outcome, Trial
from collectives._kinds import KINDS
from collectives._moe import MoE
from collectives._msccl import Algorithm
from collectives._parts import Part, kin_of, parts_of, some_of
from collectives._profile import Profile, load_profile
from collectives._records import Outer, Schedule
from collectives._results import plain
from collectives._schedule import Stages, schedule, stages_of
from collectives._symmetry import Classes, classes_of, numbered, tied
from topo import Fabric, Fault, Hash, InputError, Ranks, Tables
from topo.units import format_quantity

__all__ = ["Failure", "Failures", "failures"]

Ints = NDArray[np.intp]
_ROUNDING = 1e-12
#: With which what is said of double failures not sampled holds.
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Failure:
    """What one failure does.

    Attributes
    ----------
    parts : tuple of (str, str)
        What failed: kind (link, lane, nic, switch, tray) and name; two of them in a double failure.
    alike : int
        Failures that do the same, by symmetry, this one included.
    seconds : float
        Time of the collective then, of the ranks that are left; infinite where no
        algorithm does it any more [s].
    loss : float
        What that is more than the same algorithm takes with nothing failed; than the one
        asked for, where it does not apply then [s].
    bottleneck : str
        What binds then; empty where nothing is done.
    algorithm : str
        That of the time.
    instead : bool
        Whether it is another one than asked for, which does not do any more.
    dropped : int
        Ranks that failed themselves, and take no part.
    unreachable : int
        Ordered pairs of ranks that have something to send and no path; 0 where the
        algorithm, made anew, does without.
    pairs : tuple of str
        The first of those, "a => b".
    """

    parts: tuple[tuple[str, str], ...]
    alike: int
    seconds: float
    loss: float
    bottleneck: str
    algorithm: str
    instead: bool
    dropped: int
    unreachable: int
    pairs: tuple[str, ...]

    @property
    def name(self) -> str:
        """What failed, in words."""
        return " and ".join(f"{kind} {name}" for kind, name in self.parts)

    @property
    def stopped(self) -> str:
        """Why the collective can no longer be done, in words; empty where it can."""
        if math.isfinite(self.seconds):
            return ""
        if self.unreachable:
            return f"{self.unreachable:,} pair{'s' * (self.unreachable > 1)} without a path"
        return f"{self.dropped:,} rank{'s' * (self.dropped > 1)} lost" if self.dropped else "no algorithm applies"

    def __repr__(self) -> str:
        what = self.stopped or _plus(self.loss) + (f" by {self.algorithm}" if self.instead else "")
        return f"Failure({what}: {self.name}, one of {self.alike:,} alike)"


@dataclass(frozen=True, eq=False, repr=False)
class Failures:
    """What single failures, and sampled double ones, do to a collective.

    Attributes
    ----------
    seconds : float
        Time with nothing failed [s].
    singles : tuple of Failure
        One per class of parts that symmetry cannot tell apart, the worst first: those after
        which no algorithm does it, then those that the algorithm asked for does not stand.
    doubles : tuple of Failure
        As sampled, the worst first.
    n_doubles : int
        All pairs of parts they are drawn from, each as likely as any other.
    seed : int
        Of the sample.
    kind, algorithm, routing, profile : str
        Collective, algorithm, routing rule and software.
    n_bytes : float
        nccl-tests' size [bytes].
    n_ranks : int
        Ranks taking part.
    assumptions : tuple of str
        What was filled in.
    """

    seconds: float
    singles: tuple[Failure, ...]
    doubles: tuple[Failure, ...]
    n_doubles: int
    seed: int
    kind: str
    algorithm: str
    routing: str
    n_bytes: float
    n_ranks: int
    profile: str
    assumptions: tuple[str, ...]

    @property
    def worst(self) -> Failure | None:
        """The first of those; none where nothing can fail."""
        return self.singles[0] if self.singles else None

    @property
    def n_parts(self) -> int:
        """Parts that can fail."""
        return sum(one.alike for one in self.singles)

    @property
    def worse_doubles(self) -> float | None:
        """Share of all double failures that may be worse than the worst sampled, with a confidence of 95 %.

        Of n drawn without regard to how bad they are, none lies in the worst share p of
        all with probability (1 - p)^n at most; that is 5 % at p = 1 - 0.05^(1/n). None
        without a sample, 0 where all pairs were tried.
        """
        if not self.doubles:
            return None
        return 0.0 if len(self.doubles) == self.n_doubles else float(1 - (1 - _CONFIDENCE) ** (1 / len(self.doubles)))

    @property
    def stopping_doubles(self) -> tuple[float, float] | None:
        """Between which shares of all double failures no algorithm does the collective any more, confidence 95 %.

        Clopper and Pearson's exact limits. None without a sample.
        """
        from scipy.special import betaincinv

        if not self.doubles:
            return None
        n, k, tail = len(self.doubles), sum(math.isinf(one.seconds) for one in self.doubles), (1 - _CONFIDENCE) / 2
        if n == self.n_doubles:
            return k / n, k / n
        low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
        return low, float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0

    def __repr__(self) -> str:
        worst = "nothing can fail" if self.worst is None else f"worst {self.worst!r}"
        return f"Failures({format_quantity(self.seconds, 'seconds')} without; {worst})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units, field names as keys."""
        own: dict[str, Any] = plain(self)
        shares = {"worse_doubles": self.worse_doubles, "stopping_doubles": self.stopping_doubles}
        return own | {"n_parts": self.n_parts} | {name: plain(share) for name, share in shares.items()}


def _plus(loss: float) -> str:
    return f"{'-' if loss < 0 else '+'}{format_quantity(abs(loss), 'seconds')}"


def failures(
    graph: nx.Graph[str],
    kind_or_schedule: str | Schedule,
    n_bytes: float | ArrayLike | Outer | MoE | None = None,
    *,
    ranks: Ranks = None,
    algorithm: str | Algorithm | None = None,
    routing: str | Hash | Tables = "ecmp",
    profile: str | os.PathLike[str] | Profile = "ideal",
    stages: Stages = None,
    root: str | int | None = None,
    doubles: int = 0,
    seed: int = 0,
) -> Failures:
    """Cost a collective with every single link, lane, NIC, switch and tray failed in turn.

    The schedule is made anew for what is left: ranks of a tray that failed are dropped,
    the size stays. Where the algorithm does not apply any more, or leaves some pair
    without a path, the fastest of the kind's others that does it is taken.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
        The topology. In a DiGraph a link fails both ways.
    kind_or_schedule, n_bytes, ranks, algorithm, profile, stages, root
        As `cost`. A Schedule stays what it is: only routes find other ways. The stages of
        "send" stay the ranks they are.
    routing : str, Hash or Tables, optional
        As `cost`.
    doubles : int, optional
        Double failures to sample, each two different parts, single lanes included.
    seed : int, optional
        Of the sample.

    Raises
    ------
    InputError
        As `cost`; a Fabric, which does not say what can fail; a Schedule with switches as
        ends, which is made for the switches there are.

    Examples
    --------
    >>> import topo
    >>> failures(topo.load("hgx-h100-8", 2, {"scale_out.latency": "0 s"}), "all_to_all", 16e9).worst
    Failure(128 pairs without a path: switch leaf0, one of 1 alike)
    """
    if not isinstance(graph, nx.Graph):
        raise InputError(Fault("graph", repr(graph), "does not say what can fail", "Give the graph itself."))
    if isinstance(doubles, bool) or not isinstance(doubles, int) or doubles < 0:
        raise InputError(Fault("doubles", doubles, "must be a whole number, zero or more", "Correct it."))
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InputError(
            Fault("seed", seed, "must be a whole number: the same seed draws the same pairs", "Correct it.")
        )
    words: dict[str, Any] = {"ranks": ranks, "stages": stages, "root": root}
    ways: dict[str, Any] = {"routing": routing, "profile": load_profile(profile)}
    healthy = cost(graph, kind_or_schedule, n_bytes, algorithm=algorithm, **ways, **words)
    fabric = Fabric.from_graph(graph)
    plan = _planned(fabric, kind_or_schedule, n_bytes, healthy.algorithm if algorithm == "best" else algorithm, words)
    trial = Trial(
        graph, plan, [fabric.rank_labels[rank] for rank in plan.ranks],
        _asked(fabric, kind_or_schedule, n_bytes, algorithm, root, stages, ranks), **ways,
    )  # fmt: skip
    found = parts_of(graph, classes=_classes(fabric, plan))

    return Failures(
        healthy.seconds, _worst_first([_one_of(healthy.seconds, trial, same) for same in kin_of(found, routing)]),
        _worst_first([_failure(healthy.seconds, trial, pair, 1) for pair in _sampled(found, doubles, seed)]),
        math.comb(len(found), 2), seed,
        plan.kind, plan.algorithm, healthy.routing, plan.n_bytes, len(plan.ranks), healthy.profile, healthy.assumptions,
    )  # fmt: skip


def _planned(
    fabric: Fabric, kind_or_schedule: str | Schedule, n_bytes: Any, algorithm: Any, words: dict[str, Any]
) -> Schedule:
    if not isinstance(kind_or_schedule, Schedule):
        return schedule(kind_or_schedule, fabric, n_bytes, algorithm=algorithm, **words)
    if len(kind_or_schedule.switches):
        rule, cure = "has switches add up, and is made for the switches there are", "Name collective and algorithm."
        raise InputError(Fault("schedule", kind_or_schedule.algorithm, rule, cure))
    return kind_or_schedule


def _asked(
    fabric: Fabric,
    kind_or_schedule: str | Schedule,
    n_bytes: Any,
    algorithm: Any,
    root: str | int | None,
    stages: Stages,
    ranks: Ranks,
) -> dict[str, Any]:
    """Return what makes the schedule anew, ranks aside; nothing where it is given ready made."""
    if isinstance(kind_or_schedule, Schedule):
        return {}
    label = root if root is None or isinstance(root, str) else fabric.rank_labels[root]
    named = None
    if "stages" in KINDS[kind_or_schedule].takes:
        groups = stages_of(fabric, fabric.rank_numbers(ranks), stages)
        named = [[fabric.rank_labels[rank] for rank in group] for group in groups]
    return {"kind": kind_or_schedule, "n_bytes": n_bytes, "algorithm": algorithm, "root": label, "stages": named}


def _one_of(before: float, trial: Trial, same: list[Part]) -> Failure:
    """Lose one of parts that are alike; several, where the schedule comes out otherwise with their place in its order.

    What can be done without one of them can, by symmetry, be done without each other,
    with the ranks in another order: the least time is theirs all.
    """
    first = trial.lose(same[:1])
    found = [_told(before, trial, same[:1], len(same), first)]
    more = [] if first.settled else some_of(same)[1:]
    found += [_failure(before, trial, [part], len(same)) for part in more]
    return min(found, key=lambda one: (one.seconds, one.unreachable))


def _failure(before: float, trial: Trial, parts: Sequence[Part], alike: int) -> Failure:
    return _told(before, trial, parts, alike, trial.lose(parts))


def _told(before: float, trial: Trial, parts: Sequence[Part], alike: int, found: Outcome) -> Failure:
    names = tuple((part.kind, part.name) for part in parts)
    pairs = tuple(f"{a} => {b}" for a, b in found.pairs)
    if found.cost is None:
        return Failure(names, alike, math.inf, math.inf, "", "", False, found.dropped, found.unreachable, pairs)
    then, instead = found.cost, trial.instead(found.cost.algorithm)
    before = (trial.before(then.algorithm) if instead else None) or before
    loss = then.seconds - before
    return Failure(
        names, alike, then.seconds, loss if abs(loss) > _ROUNDING * before else 0.0, then.bottleneck, then.algorithm,
        instead, found.dropped, found.unreachable, pairs,
    )  # fmt: skip


def _worst_first(found: list[Failure]) -> tuple[Failure, ...]:
    """Sort by what no algorithm does any more, what another one has to do, and what takes longest."""
    return tuple(sorted(found, key=lambda one: (not one.stopped, not one.instead, -one.unreachable, -one.seconds)))


def _sampled(found: Sequence[Part], count: int, seed: int) -> list[tuple[Part, Part]]:
    """Return so many different pairs of parts, each as likely as any other, or all where there are no more."""
    if count >= math.comb(len(found), 2):
        return list(combinations(found, 2))
    dice, pairs = random.Random(seed), dict[tuple[int, int], None]()
    while len(pairs) < count:
        a, b = sorted(dice.sample(range(len(found)), 2))
        pairs[a, b] = None
    return [(found[a], found[b]) for a, b in pairs]


def _classes(fabric: Fabric, plan: Schedule) -> Classes:
    """Classes of nodes and links that the schedule does not tell apart, phase by phase."""
    ends = np.concatenate([fabric.ranks[plan.ranks], plan.switches])
    apart = ~np.eye(len(ends), dtype=bool)
    label = np.zeros((len(ends), len(ends)))
    for n_bytes in {phase.n_bytes.tobytes(): phase.n_bytes for phase in plan.phases}.values():
        label[apart] = numbered(label[apart], n_bytes[apart])
    alike = classes_of(fabric, plan.ranks)
    if not label.any():
        return alike
    i, j = np.nonzero(label)
    return tied(alike, fabric, ends[i], ends[j], numbered(label[i, j]))
