"""How do blocks go round rings? One ring or several at a time, or the rings of every axis of a torus."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from collectives._crossings import joined
from collectives._plan import Plan, Step, Team, blocks, turned, unfit
from collectives._rail_rings import rail_rings
from collectives._records import Transfers
from topo import InputError

__all__ = ["chain_broadcast", "ring", "ring_back", "ring_orders", "torus"]

Ints = NDArray[np.intp]


def ring_orders(team: Team) -> tuple[Ints, tuple[str, ...]]:
    """Return the rows in the order of every ring, and what was filled in.

    Rings pass domain after domain, there and back in turn, so that a ring leaves a domain
    from the slot at which it enters the next: with rails it stays on one. Several rings
    start at different slots, so that every NIC gets one to carry out and one to carry in.
    Where wires do not join what this makes neighbours, they cross where wires do (`rail_rings`).
    In one domain they follow the ranks, on a torus its lines.
    """
    if team.order is not None:
        return team.order, ()
    notes: tuple[str, ...] = ()
    count = team.channels
    if count is None:
        count = min(map(len, team.domains)) if len(team.domains) > 1 else 1
        if count > 1:
            notes = (f"ring: {count} channels, one for every rank of the smallest domain",)
    domains = team.domains if len(team.domains) > 1 else [_wound(team)]
    starts = [[c * len(members) // count for members in domains] for c in range(count)]
    orders = np.stack([_snake(domains, start) for start in starts])
    if len(domains) == 1 or joined(team, orders, np.roll(orders, -1, axis=1)).all():
        return orders, notes
    orders = rail_rings(team, team.channels)
    said = f"ring: {len(orders)} channels over rails, one for every pair of ranks that join the least joined domains"
    return orders, (said,) if team.channels is None else ()


def _wound(team: Team) -> Ints:
    """Return the rows of one domain in order; on a torus winding along its lines, so that neighbours are linked."""
    try:
        grid = _grid(team)
    except InputError:
        return np.arange(team.n)
    while grid.ndim > 1:  # first along the first axis, turning back at every step on the next
        lines = [grid[:, k][:: -1 if k % 2 else 1] for k in range(grid.shape[1])]
        grid = np.concatenate(lines)
    return grid


def _snake(domains: list[Ints], start: list[int]) -> Ints:
    turns = [np.roll(members, -first) for members, first in zip(domains, start, strict=True)]
    return np.concatenate([turn[::-1] if d % 2 else turn for d, turn in enumerate(turns)])


def ring(team: Team) -> Plan:
    """All-gather: every rank passes on what it received last."""
    order, notes = ring_orders(team)
    return _around(team, order, notes)


def ring_back(team: Team) -> Plan:
    """Reduce-scatter in the same direction: the all-gather of the reversed ring, backwards."""
    order, notes = ring_orders(team)
    return turned(_around(team, order[:, ::-1], notes))


def _around(team: Team, order: Ints, notes: tuple[str, ...]) -> Plan:
    channels = len(order)
    source, target = order.ravel(), np.roll(order, -1, axis=1).ravel()

    def carries(k: int) -> Transfers:
        block = np.roll(order, k, axis=1)
        return source, target, (block * channels + np.arange(channels)[:, None]).ravel()

    steps = (Step(carries, team.n - 1),) if team.n > 1 else ()
    return Plan(blocks(team, channels), steps, notes=notes)


def chain_broadcast(team: Team) -> Plan:
    """Broadcast from rank to rank along every ring, cut so fine that all hops run at once."""
    order, notes = ring_orders(team)
    chains = np.stack([np.roll(row, -int(np.flatnonzero(row == team.root)[0])) for row in order])
    part = np.arange(len(order))

    def step(hop: int) -> Step:
        return Step(lambda _: (chains[:, hop], chains[:, hop + 1], part))

    sizes = np.full(len(order), team.n_bytes / len(order))
    return Plan(sizes, tuple(step(hop) for hop in range(team.n - 1)), pipelined=True, notes=notes)


def torus(team: Team) -> Plan:
    """All-gather axis by axis in both directions; each part of the data starts on another axis, so all are busy."""
    grid = _grid(team)
    axes = [axis for axis, side in enumerate(grid.shape) if side > 1]
    steps = [step for stage in range(len(axes)) for step in _stage(grid, axes, stage)]
    return Plan(blocks(team, 2 * max(1, len(axes))), tuple(steps))


def _grid(team: Team) -> Ints:
    """Rows by their place on the torus."""
    points = [team.fabric.coordinates[rank] for rank in team.ranks]
    cure = "Take all chips of a box of a torus, or another algorithm."
    if any(not point or len(point) != len(points[0]) for point in points):
        raise unfit("torus", "the ranks have no coordinates", cure)
    places = [np.unique(axis, return_inverse=True)[1] for axis in zip(*points, strict=True)]
    sides = tuple(int(place.max()) + 1 for place in places)
    grid = np.full(sides, -1, dtype=np.intp)
    grid[tuple(places)] = np.arange(team.n)
    if (grid < 0).any() or int(np.prod(sides)) != team.n:
        raise unfit("torus", f"{team.n} ranks do not fill a box of sides {list(sides)}", cure)
    return grid


def _stage(grid: Ints, axes: list[int], stage: int) -> list[Step]:
    """Return the steps of one stage: part j of the data goes round its (stage + j)-th axis, cyclically."""
    rings = [_AxisRing(grid, axes, j, stage) for j in range(len(axes))]
    steps, done = [], 0
    for length in sorted({ring.length for ring in rings}):
        steps.append(Step(_rings_from(rings, done), length - done))
        rings, done = [ring for ring in rings if ring.length > length], length
    return steps


def _rings_from(rings: list[_AxisRing], first: int) -> Callable[[int], Transfers]:
    def carries(k: int) -> Transfers:
        parts = [way for ring in rings for way in ring.pass_on(first + k)]
        source, target, chunk = (np.concatenate(column) for column in zip(*parts, strict=True))
        return source, target, chunk

    return carries


class _AxisRing:
    """One part of the data going round the rings of one axis, half of it each way."""

    def __init__(self, grid: Ints, axes: list[int], part: int, stage: int) -> None:
        turn = axes[part:] + axes[:part]
        self.grid, self.axis, self.part, self.parts = grid, turn[stage], part, 2 * len(axes)
        self.length = grid.shape[self.axis] - 1
        seen = turn[:stage]
        kept = [axis for axis in range(grid.ndim) if axis not in seen]
        lines = grid.transpose(kept + seen).reshape(-1, int(np.prod([grid.shape[a] for a in seen], dtype=int)))
        #: Blocks each row holds before the stage: of all chips that differ on the axes seen.
        self.held = np.zeros((grid.size, lines.shape[1]), dtype=np.intp)
        self.held[lines.ravel()] = np.repeat(lines, lines.shape[1], axis=0)

    def pass_on(self, k: int) -> list[Transfers]:
        """Transfers of the k-th step, up and down: what was held k chips behind."""
        ways = []
        for half, way in enumerate((1, -1)):
            target, behind = (np.roll(self.grid, by, axis=self.axis).ravel() for by in (-way, way * k))
            chunk = self.held[behind] * self.parts + 2 * self.part + half
            width = chunk.shape[1]
            ways.append((np.repeat(self.grid.ravel(), width), np.repeat(target, width), chunk.ravel()))
        return ways
