"""What does a builder of an algorithm get, and what does it give back? A team in, a plan out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from collectives._moe import MoETraffic
from collectives._records import Flows, Outer, Phase, Traffic, Transfers
from topo import Fabric, Fault, InputError

__all__ = ["Builder", "Plan", "Step", "Team", "blocks", "flows_of", "then", "turned", "unfit"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Team:
    """Who takes part in a collective, and what was asked.

    Attributes
    ----------
    fabric : Fabric
        Where the ranks live.
    ranks : (n,) int
        Rank numbers; builders name a rank by its row here.
    n_bytes : float
        nccl-tests' size [bytes].
    root : int
        Row of the root of a rooted collective.
    traffic : (n, n) float or Outer, optional
        Bytes from rank to rank of an all-to-all.
    order : (channels, n) int, optional
        Rows in the order of each ring, as asked.
    channels : int, optional
        Rings at a time, as asked.
    pairs : (2, sends) int, optional
        Senders and receivers of a send.
    moe : MoETraffic, optional
        Copies of the tokens of an expert layer.
    token_bytes : float
        Size of one copy [bytes].
    """

    fabric: Fabric
    ranks: Ints
    n_bytes: float
    root: int = 0
    traffic: Floats | Outer | None = None
    order: Ints | None = None
    channels: int | None = None
    pairs: Ints | None = None
    moe: MoETraffic | None = None
    token_bytes: float = 0.0

    @property
    def n(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    @property
    def sizes(self) -> Floats:
        """Bytes of an all-to-all from rank to rank, chunk source x n + target."""
        assert self.traffic is not None
        return _listed(self.traffic)

    @cached_property
    def home(self) -> Ints:
        """Domain of every row, numbered by first appearance."""
        _, first, number = np.unique(self.fabric.rank_domain[self.ranks], return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[number]

    @cached_property
    def domains(self) -> list[Ints]:
        """Rows of every domain."""
        return [np.flatnonzero(self.home == d) for d in range(int(self.home.max()) + 1)]

    @cached_property
    def slot(self) -> Ints:
        """Place of every row within its domain."""
        slot = np.zeros(self.n, dtype=np.intp)
        for members in self.domains:
            slot[members] = np.arange(len(members))
        return slot


@dataclass(frozen=True, eq=False)
class Step:
    """A phase before its bytes are counted: which chunks go where, in every repeat; `shares` as in `Phase`."""

    carries: Callable[[int], Transfers]
    repeats: int = 1
    reduces: bool = False
    traffic: Traffic | None = None
    shares: bool = False

    def phase(self, sizes: Floats, ends: int) -> Phase:
        """Return the phase: bytes follow from the chunks, unless the traffic is known without listing them."""
        traffic = flows_of(self.carries(0), sizes, ends) if self.traffic is None else self.traffic
        return Phase(traffic, self.repeats, self.reduces, self.carries, self.shares)


@dataclass(frozen=True, eq=False)
class Plan:
    """What an algorithm does: sizes of the chunks [bytes] and steps in order.

    `sizes` is None where the chunks are those of an all-to-all's own traffic, and may be the traffic of another.
    """

    sizes: Floats | Outer | None
    steps: tuple[Step, ...]
    pipelined: bool = False
    switches: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    notes: tuple[str, ...] = ()

    def sizes_of(self, team: Team) -> Floats:
        """Return the sizes of all chunks [bytes]."""
        return team.sizes if self.sizes is None else _listed(self.sizes)


Builder = Callable[[Team], Plan]


def _listed(traffic: Floats | Outer) -> Floats:
    matrix: Floats = traffic.matrix if isinstance(traffic, Outer) else traffic
    return matrix.ravel()


def flows_of(transfers: Transfers, sizes: Floats, ends: int) -> Flows:
    """Sum what goes between every pair of ends."""
    source, target, chunk = transfers
    key, n_bytes = source * ends + target, sizes[chunk]
    if 8 * len(key) > ends * ends:
        total = np.bincount(key, n_bytes, ends * ends).astype(np.float64)
        found = np.flatnonzero(total)
        return Flows(found // ends, found % ends, total[found], ends)
    found, place = np.unique(key, return_inverse=True)
    total = np.bincount(place, n_bytes, len(found)).astype(np.float64)
    busy = total > 0
    return Flows(found[busy] // ends, found[busy] % ends, total[busy], ends)


def turned(plan: Plan, reduces: bool = True) -> Plan:
    """Return a plan run backwards: what spread from one place is brought together there.

    An all-gather becomes a reduce-scatter, a broadcast a reduce, a scatter a gather.
    """
    return replace(plan, steps=tuple(_turned(step, reduces) for step in reversed(plan.steps)))


def _turned(step: Step, reduces: bool) -> Step:
    def carries(k: int) -> Transfers:
        source, target, chunk = step.carries(step.repeats - 1 - k)
        return target, source, chunk

    traffic = step.traffic
    if isinstance(traffic, Outer):
        traffic = _outer_turned(traffic)
    elif isinstance(traffic, tuple):
        traffic = tuple(map(_outer_turned, traffic))
    elif isinstance(traffic, Flows):
        traffic = replace(traffic, source=traffic.target, target=traffic.source)
    elif traffic is not None:
        traffic = traffic.T
    return replace(step, carries=carries, reduces=reduces, traffic=traffic)


def _outer_turned(traffic: Outer) -> Outer:
    return Outer(traffic.received, traffic.sent, traffic.block)


def then(first: Plan, second: Plan) -> Plan:
    """Return one plan after another over the same chunks."""
    notes = tuple(dict.fromkeys(first.notes + second.notes))
    return replace(first, steps=first.steps + second.steps, notes=notes)


def blocks(team: Team, parts: int = 1) -> Floats:
    """Sizes of one block per rank in equal parts: chunk = block x parts + part."""
    return np.full(team.n * parts, team.n_bytes / (team.n * parts))


def unfit(algorithm: str, why: str, cure: str) -> InputError:
    """Return the error of an algorithm that does not apply."""
    return InputError(Fault("algorithm", algorithm, f"does not apply: {why}", cure))
