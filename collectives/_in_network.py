"""What do switches that reduce and multicast save? Ranks send to them, they add up, they send to all.

Switches are ends of flows like ranks, rows from n on; such a flow crosses one link.
Chunks are cut fine, so the way up and the way down overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from collectives._loads import PathTerm, PhaseLoads
from collectives._plan import Plan, Step, Team, unfit
from collectives._records import Flows, Transfers
from topo import EDGE_KINDS, NODE_KINDS, Fabric, Fault, InputError

__all__ = [
    "link_loads", "nvls_all_gather", "nvls_all_reduce", "nvls_broadcast", "nvls_reduce", "nvls_reduce_scatter",
    "one_link", "sharp",
]  # fmt: skip

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
_UP, _OUT = (EDGE_KINDS.index(kind) for kind in ("scale-up", "scale-out"))


def link_loads(fabric: Fabric, nodes: Ints, flows: Flows) -> PhaseLoads:
    """Put every flow on the one link between its ends.

    Parameters
    ----------
    fabric : Fabric
        The topology.
    nodes : (ends,) int
        Node of every end.
    flows : Flows
        Each between a rank or switch and a switch it is linked to.

    Raises
    ------
    InputError
        A flow between ends that no link joins: a schedule of another topology.
    """
    link = one_link(fabric, nodes[flows.source], nodes[flows.target])
    loads, least = np.zeros(len(fabric.source)), np.full(len(fabric.source), np.inf)
    loads[link], least[link] = flows.n_bytes, fabric.latency[link]
    seconds = flows.n_bytes / fabric.bandwidth[link]
    worst = int(np.argmax(seconds + fabric.latency[link]))
    latency = float(fabric.latency[link[worst]])
    return PhaseLoads(loads, least, PathTerm(latency, float(seconds[worst])))


def one_link(fabric: Fabric, source: Ints, target: Ints) -> Ints:
    """Return the directed links between nodes.

    Raises
    ------
    InputError
        No link joins some of them: a schedule of another topology.
    """
    link = _links(fabric, source, target)
    if (link < 0).any():
        rule = (
            f"has a flow to or from a switch without a link, {fabric.labels[source[0]]} to {fabric.labels[target[0]]}"
        )
        raise InputError(Fault("schedule", fabric.name, rule, "Make the schedule for this topology."))
    return link


def _links(fabric: Fabric, source: Ints, target: Ints) -> Ints:
    """Directed links between nodes, -1 where there is none."""
    width = len(fabric.labels)
    keys = fabric.source * width + fabric.target
    order = np.argsort(keys)
    wanted = source * width + target
    place = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
    return np.where(keys[place] == wanted, place, -1)


# --- NVLS: one level of switches in a domain -------------------------------------------------------------------------


def nvls_all_reduce(team: Team) -> Plan:
    """Every rank has the switches add up its block from all, and multicast the sum."""
    planes = _Planes(team, reduces=True, multicasts=True)
    everyone, owner = planes.everyone, planes.owner
    return planes.plan(planes.up(everyone, True), planes.down(owner), planes.up(owner), planes.down(everyone))


def nvls_reduce_scatter(team: Team) -> Plan:
    """Every rank has the switches add up its block from all."""
    planes = _Planes(team, reduces=True)
    return planes.plan(planes.up(planes.everyone, True), planes.down(planes.owner))


def nvls_all_gather(team: Team) -> Plan:
    """Every rank has the switches multicast its block."""
    planes = _Planes(team, multicasts=True)
    return planes.plan(planes.up(planes.owner), planes.down(planes.everyone))


def nvls_reduce(team: Team) -> Plan:
    """Have the switches add up what all ranks have, for the root."""
    planes = _Planes(team, whole=True, reduces=True)
    return planes.plan(planes.up(planes.everyone, True), planes.down(planes.owner))


def nvls_broadcast(team: Team) -> Plan:
    """Have the switches multicast what the root has."""
    planes = _Planes(team, whole=True, multicasts=True)
    return planes.plan(planes.up(planes.owner), planes.down(planes.everyone))


class _Planes:
    """The switches every rank hangs off; each takes its share of every block: chunk = block x planes + plane."""

    def __init__(self, team: Team, whole: bool = False, reduces: bool = False, multicasts: bool = False) -> None:
        self.team, self.blocks = team, 1 if whole else team.n
        self.switches, share = _planes_of(team, reduces, multicasts)
        self.sizes = np.tile(share * team.n_bytes / self.blocks, self.blocks)
        owners = np.array([team.root]) if whole else np.arange(team.n)
        #: Rank and block: every rank with every block; the rank that asks for a block with that block.
        self.everyone = (np.tile(np.arange(team.n), self.blocks), np.repeat(np.arange(self.blocks), team.n))
        self.owner = (owners, np.arange(self.blocks))

    def _ends(self, who: tuple[Ints, Ints]) -> Transfers:
        planes = np.arange(len(self.switches))
        rank, block = (np.repeat(column, len(planes)) for column in who)
        plane = np.tile(planes, len(who[0]))
        return rank, self.team.n + plane, block * len(planes) + plane

    def up(self, who: tuple[Ints, Ints], reduces: bool = False) -> Step:
        return Step(lambda _: self._ends(who), reduces=reduces)

    def down(self, who: tuple[Ints, Ints]) -> Step:
        def carries(_: int) -> Transfers:
            rank, switch, chunk = self._ends(who)
            return switch, rank, chunk

        return Step(carries)

    def plan(self, *steps: Step) -> Plan:
        return Plan(self.sizes, steps if self.team.n > 1 else (), pipelined=True, switches=self.switches)


def _planes_of(team: Team, reduces: bool, multicasts: bool) -> tuple[Ints, Floats]:
    """Switches that do what is needed and that all ranks hang off by scale-up links, and the share each takes."""
    fabric, nodes = team.fabric, team.fabric.ranks[team.ranks]
    able = _able(fabric, reduces, multicasts)
    there = np.isin(fabric.source, nodes) & able[fabric.target] & (fabric.link_kind == _UP)
    switch, count = np.unique(fabric.target[there], return_counts=True)
    shared = switch[count == team.n]
    down = _links(fabric, np.repeat(shared, team.n), np.tile(nodes, len(shared)))
    if not len(shared) or (down < 0).any():
        what = " and ".join(word for word, on in (("reduces", reduces), ("multicasts", multicasts)) if on)
        why = f"no scale-up switch that {what} is linked to every rank"
        why += " by one link: this routing rule takes cables one by one" * bool(fabric.marks.cables)
        raise unfit("nvls", why, "Take ranks of one domain whose switches do, or another algorithm.")
    up = _links(fabric, np.tile(nodes, len(shared)), np.repeat(shared, team.n))
    narrowest = np.minimum(fabric.bandwidth[up], fabric.bandwidth[down]).reshape(len(shared), team.n).min(axis=1)
    return shared, narrowest / narrowest.sum()


def _able(fabric: Fabric, reduces: bool, multicasts: bool) -> NDArray[np.bool_]:
    able: NDArray[np.bool_] = fabric.node_kind == NODE_KINDS.index("switch")
    return able & (fabric.reduces | (not reduces)) & (fabric.multicasts | (not multicasts))


# --- SHARP: trees of switches ----------------------------------------------------------------------------------------


def sharp(team: Team) -> Plan:
    """All-reduce up trees of fabric switches and down again; each root of such a tree takes an equal share."""
    trees = _trees(team)
    switches = np.unique(np.concatenate([head for tree in trees for head in (*tree.heads, tree.root)]))
    row = np.full(len(team.fabric.labels), -1, dtype=np.intp)
    row[switches] = team.n + np.arange(len(switches))
    row[team.fabric.ranks[team.ranks]] = np.arange(team.n)
    deepest = max(len(tree.tails) for tree in trees)
    ups = [Step(_hop(trees, row, level, up=True), reduces=True) for level in range(deepest)]
    downs = [Step(_hop(trees, row, level, up=False)) for level in reversed(range(deepest))]
    sizes = np.full(len(trees), team.n_bytes / len(trees))
    return Plan(sizes, (*ups, *downs), pipelined=True, switches=switches)


class _Tree:
    """A tree of switches over the ranks: tails and heads of its links, level by level from the ranks up."""

    def __init__(self, root: int, parent: dict[int, int], ranks: Iterable[int]) -> None:
        self.root = np.array([root])
        self.tails: list[Ints] = []
        self.heads: list[Ints] = []
        depth: dict[int, int] = {}
        for rank in ranks:
            node, way = rank, [rank]
            while node != root:
                node = parent[node]
                way.append(node)
            depth.update((at, len(way) - 1 - i) for i, at in enumerate(way[:-1]))
        for level in sorted(set(depth.values()), reverse=True):
            tails = np.array(sorted(node for node, d in depth.items() if d == level), dtype=np.intp)
            self.tails.append(tails)
            self.heads.append(np.array([parent[int(node)] for node in tails], dtype=np.intp))


def _hop(trees: list[_Tree], row: Ints, level: int, up: bool) -> Callable[[int], Transfers]:
    def carries(_: int) -> Transfers:
        tails = np.concatenate([row[tree.tails[level]] for tree in trees])
        heads = np.concatenate([row[tree.heads[level]] for tree in trees])
        chunk = np.repeat(np.arange(len(trees)), [len(tree.tails[level]) for tree in trees])
        return (tails, heads, chunk) if up else (heads, tails, chunk)

    return carries


def _trees(team: Team) -> list[_Tree]:
    """Breadth-first trees from every switch that is fewest hops from the farthest rank."""
    fabric, nodes = team.fabric, team.fabric.ranks[team.ranks].tolist()
    able = _able(fabric, True, True)
    ends = able | np.isin(np.arange(len(able)), nodes)
    use = (fabric.link_kind == _OUT) & able[fabric.target] & ends[fabric.source]
    below: dict[int, list[int]] = {}
    for low, high in zip(fabric.source[use].tolist(), fabric.target[use].tolist(), strict=True):
        below.setdefault(high, []).append(low)
    found = {root: _breadth_first(root, below) for root in below}
    far = {
        root: max(depth[node] for node in nodes)
        for root, (_, depth) in found.items()
        if all(node in depth for node in nodes)
    }
    if not far or team.n < 2:
        why = "no scale-out switches that reduce and multicast join all ranks"
        raise unfit("sharp", why, "Mark the switches that can with reduces and multicasts, or take another algorithm.")
    return [_Tree(root, found[root][0], nodes) for root in sorted(far) if far[root] == min(far.values())]


def _breadth_first(root: int, below: dict[int, list[int]]) -> tuple[dict[int, int], dict[int, int]]:
    """Parent and depth of every node that leads up to a root."""
    parent, depth, ring = {root: root}, {root: 0}, [root]
    while ring:
        onward = []
        for node in ring:
            for low in below.get(node, ()):
                if low not in depth:
                    parent[low], depth[low] = node, depth[node] + 1
                    onward.append(low)
        ring = onward
    return parent, depth
