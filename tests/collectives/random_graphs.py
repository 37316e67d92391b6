"""Which graphs could break the folding of twins? Random ones of every family, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import networkx as nx

import topo

Graph = nx.Graph


class Dice(random.Random):
    """Random numbers with a palette, so that equal links (twins) and unequal ones both turn up."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.bandwidths = [self.choice([1e9, 2e9, 3e9, 7e9]) for _ in range(self.choice([1, 2, 3]))]
        self.latencies = [self.choice([0.0, 1e-6, 2.5e-6, 1e-4]) for _ in range(self.choice([1, 2, 3]))]
        self.odd = self.choice([0.0, 0.0, 0.1, 0.5])

    def yes(self, probability: float) -> bool:
        return self.random() < probability

    def edge(self, kind: str) -> dict[str, object]:
        odd = self.yes(self.odd)
        bandwidth = self.uniform(1e9, 9e9) if odd else self.choice(self.bandwidths)
        latency = self.uniform(0, 1e-5) if odd else self.choice(self.latencies)
        return {"kind": kind, "bandwidth": bandwidth, "latency": latency}


def switches_and_gpus(dice: Dice) -> Graph:
    """Domains of any size and wiring, GPUs that may forward, any leaf and spine wiring."""
    graph = nx.Graph()
    leaves = [f"leaf{i}" for i in range(dice.randint(1, 3))]
    spines = [f"spine{i}" for i in range(dice.randint(0, 3))]
    graph.add_nodes_from(leaves + spines, kind="switch")
    graph.add_edges_from((a, b, dice.edge("scale-out")) for a in leaves for b in spines if dice.yes(0.8))
    forwards = dice.choice([0.0, 0.0, 0.3, 1.0])
    for d in range(dice.randint(1, 3)):
        gpus = [f"gpu{d}.{i}" for i in range(dice.randint(1, 5))]
        planes = [f"plane{d}.{i}" for i in range(dice.choice([0, 1, 1, 2, 3]))]
        for gpu in gpus:
            graph.add_node(gpu, kind="gpu", **({"forwards": True} if dice.yes(forwards) else {}))
        graph.add_nodes_from(planes, kind="switch", tier="scale-up")
        graph.add_edges_from((a, b, dice.edge("scale-up")) for a in gpus for b in planes if dice.yes(0.9))
        chain = pairwise(planes)
        graph.add_edges_from((a, b, dice.edge("scale-up")) for a, b in chain if dice.yes(0.5))
        pairs = [(a, b) for i, a in enumerate(gpus) for b in gpus[:i]]
        direct = dice.choice([0.0, 0.3]) if planes else dice.choice([0.5, 1.0])
        graph.add_edges_from((a, b, dice.edge("scale-up")) for a, b in pairs if dice.yes(direct))
        fabric = dice.choice([0.7, 1.0, 1.0])
        graph.add_edges_from(
            (a, b, dice.edge("scale-out")) for a in gpus for b in leaves if dice.yes(fabric / len(leaves))
        )
        graph.add_edges_from(
            (a, b, dice.edge("scale-out")) for a, b in pairs if dice.yes(0.05) and (a, b) not in graph.edges
        )
    return _joined(graph, dice, leaves)


def hosts(dice: Dice) -> Graph:
    """Hosts with CPUs, pcie switches and NIC nodes; some GPUs with scale-up links, some hosts with bare NICs."""
    graph = nx.Graph()
    leaves = [f"leaf{i}" for i in range(dice.randint(1, 2))]
    spines = [f"spine{i}" for i in range(dice.randint(0, 2))]
    graph.add_nodes_from(leaves + spines, kind="switch", tier="leaf")
    graph.add_edges_from((a, b, dice.edge("scale-out")) for a in leaves for b in spines)
    for h in range(dice.randint(1, 3)):
        cpus = [f"h{h}/cpu{i}" for i in range(dice.choice([0, 1, 1, 2]))]
        bridges = [f"h{h}/pcie{i}" for i in range(dice.randint(0 if cpus else 1, 2))]
        roots = bridges or cpus
        graph.add_nodes_from(cpus, kind="cpu", host=f"h{h}")
        graph.add_nodes_from(bridges, kind="switch", host=f"h{h}")
        graph.add_edges_from((a, b, dice.edge("pcie")) for a in bridges for b in cpus if dice.yes(0.9))
        graph.add_edges_from((a, b, dice.edge("pcie")) for a, b in pairwise(cpus))
        gpus = [f"h{h}/gpu{i}" for i in range(dice.randint(1, 4))]
        graph.add_nodes_from(gpus, kind="gpu", host=f"h{h}")
        graph.add_edges_from((gpu, dice.choice(roots), dice.edge("pcie")) for gpu in gpus)
        pairs = [(a, b) for i, a in enumerate(gpus) for b in gpus[:i]]
        wired = dice.choice([0.0, 0.5, 1.0])
        graph.add_edges_from((a, b, dice.edge("scale-up")) for a, b in pairs if dice.yes(wired))
        for i in range(dice.choice([0, 1, 1, 2, 3])):
            nic = f"h{h}/nic{i}"
            graph.add_node(nic, kind="nic", host=f"h{h}")
            for root in dice.sample(roots, dice.choice([1, 1, len(roots)])):
                graph.add_edge(nic, root, **dice.edge("pcie"))
            graph.add_edges_from(
                (nic, leaf, dice.edge("scale-out")) for leaf in dice.sample(leaves, dice.randint(1, len(leaves)))
            )
        direct = dice.choice([0.0, 0.0, 0.4])  # a NIC that is the edge itself
        graph.add_edges_from((gpu, dice.choice(leaves), dice.edge("scale-out")) for gpu in gpus if dice.yes(direct))
    if dice.yes(0.1):
        nics = [node for node, kind in graph.nodes(data="kind") if kind == "nic"]
        graph.add_edges_from((a, b, dice.edge("scale-out")) for a, b in pairwise(nics))
    return _joined(graph, dice, leaves)


def designs(dice: Dice) -> Graph:
    """Catalogue designs, made small, folded or not, over- and undersubscribed, with some links degraded."""
    mesh = dice.yes(0.3)
    size = dice.randint(2, 6)
    overrides = {
        "design.domain_size": size,
        "design.gpus_per_host": size,
        "scale_out.radix": dice.choice([5, 6, 7, 8, 64]),
        "scale_out.oversubscription": dice.choice([1.0, 1.0, 1.5, 2.0, 4.0]),
        "scale_out.latency": dice.choice(["0 s", "1 us", "100 us"]),
        "scale_up.latency": dice.choice(["0 s", "0.5 us"]),
        "scale_out.bandwidth": "2 GB/s",
        "scale_up.bandwidth": "9 GB/s",
    }
    if not mesh:
        lanes = dice.choice([[1], [2, 2], [5, 4, 4, 5]])
        overrides |= {"scale_up.lanes": lanes, "scale_up.planes": len(lanes)}
    graph = topo.load("mi300x-8" if mesh else "hgx-h100-8", dice.randint(1, 3), overrides, planes=dice.yes(0.5))
    for a, b in dice.sample(list(graph.edges), min(dice.choice([0, 0, 1, 3]), graph.number_of_edges())):
        graph.edges[a, b]["bandwidth"] *= dice.choice([0.5, 0.75])
    return graph


def levels(dice: Dice) -> Graph:
    """Switches over switches, many of them alike: trees, planes and dragonflies with a few GPUs and some links hurt."""
    shape, parameters = dice.choice(
        [
            ("fat_tree", {"k": 4, "oversubscription": dice.choice([1.0, 2.0, [1.0, 2.0]])}),
            ("fat_tree", {"k": 6, "levels": 2, "oversubscription": dice.choice([1.0, 1.5])}),
            ("leaf_spine", {"leaves": 3, "spines": 3, "hosts": 5, "oversubscription": dice.choice([1.0, 1.25])}),
            ("multi_plane_fat_tree", {"planes": 2, "k": 4}),
            ("dragonfly", {"a": 2, "p": 1, "h": 2, "groups": dice.choice([3, 5])}),
        ]
    )
    graph = topo.build(shape, **parameters)
    gpus = [node for node, kind in graph.nodes(data="kind") if kind == "gpu"]
    graph.remove_nodes_from(dice.sample(gpus, max(0, len(gpus) - dice.randint(4, 7))))
    for a, b in dice.sample(list(graph.edges), dice.choice([0, 0, 1, 2])):
        graph.edges[a, b][dice.choice(["bandwidth", "latency"])] *= 0.5
    return graph


def one_way(dice: Dice) -> Graph:
    """A DiGraph of another family: each direction with numbers of its own, some directions missing."""
    graph = dice.choice([switches_and_gpus, hosts, designs, levels])(dice).to_directed()
    uneven, missing = dice.choice([0.1, 0.5]), dice.choice([0.0, 0.0, 0.05])
    for a, b in list(graph.edges):
        if dice.yes(uneven):
            graph.add_edge(a, b, **dice.edge(graph.edges[a, b]["kind"]))
        elif dice.yes(missing) and graph.has_edge(b, a):
            graph.remove_edge(a, b)
    return graph


FAMILIES: dict[str, Callable[[Dice], Graph]] = {
    "switches_and_gpus": switches_and_gpus,
    "hosts": hosts,
    "designs": designs,
    "levels": levels,
    "one_way": one_way,
}


def shuffled(graph: Graph, dice: Dice) -> Graph:
    """Return the same graph with its nodes and edges put in another order."""
    nodes, edges = list(graph.nodes(data=True)), list(graph.edges(data=True))
    dice.shuffle(nodes)
    dice.shuffle(edges)
    other = graph.__class__(**graph.graph)
    other.add_nodes_from((node, dict(data)) for node, data in nodes)
    turn = not graph.is_directed()
    other.add_edges_from((b, a, dict(d)) if turn and dice.yes(0.5) else (a, b, dict(d)) for a, b, d in edges)
    return other


def traffic(dice: Dice, gpus: list[str]) -> tuple[list[str], list[list[float]]]:
    """Return some of the ranks, in any order, and what each sends to each: equal, uneven, with zeros."""
    ranks = dice.sample(gpus, dice.choice([len(gpus), dice.randint(1, len(gpus))]))
    zeros, palette = dice.choice([0.0, 0.3, 0.9]), [dice.choice([1e3, 5e4, 1e6]) for _ in range(2)]
    style = dice.choice(["equal", "palette", "any"])
    draw = {"equal": lambda: 1e4, "palette": lambda: dice.choice(palette), "any": lambda: dice.uniform(0, 1e6)}[style]
    return ranks, [[0.0 if dice.yes(zeros) else draw() for _ in ranks] for _ in ranks]


def _joined(graph: Graph, dice: Dice, leaves: list[str]) -> Graph:
    """Join parts that stand alone: NICs and GPUs to a leaf over the fabric."""
    for part in list(nx.connected_components(graph)):
        if leaves[0] in part or any(graph.nodes[node].get("tier") in ("spine", "core") for node in part):
            continue
        ends = sorted(node for node in part if graph.nodes[node]["kind"] in ("nic", "gpu"))
        if ends:
            graph.add_edge(dice.choice(ends), leaves[0], **dice.edge("scale-out"))
        else:
            graph.add_edge(min(part), leaves[0], **dice.edge("scale-out"))
    return graph
