"""Which switches are alike? Those share one node, and their links one edge.

Two transit nodes are alike when they have the same number of links, of the same bandwidth
and latency, to and from every class of alike nodes: the coarsest equitable partition, in
which every source and target group is a class of its own. From a source to a target, every
node of a class then stands as many hops away and carries the same traffic, if the rule
gives equal links equal parts (by induction along the hops): one row of numbers says it for
all. Spines of a pod are alike, and cores; 100,080 GPUs under 128-port switches have
thousands of switches and tens of classes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topo._classes import ClassGraph

__all__ = ["fold_switches"]

Ints = NDArray[np.intp]


def fold_switches(graph: ClassGraph) -> ClassGraph:
    """Return the class graph with alike transit nodes as one; `size` and `members` say of how many.

    Parameters
    ----------
    graph : ClassGraph
        Twin ranks folded or not, transit nodes single.
    """
    bandwidth, latency = (np.unique(x, return_inverse=True)[1] for x in (graph.bandwidth, graph.latency))
    numbers = np.unique(bandwidth * (len(latency) + 1) + latency, return_inverse=True)[1]
    node = _classes(graph, numbers)
    first_node = np.unique(node, return_index=True)[1]
    tail, head = node[graph.tail], node[graph.head]
    key = (tail * graph.n_nodes + head) * (len(numbers) + 1) + numbers
    _, first, edge = np.unique(key, return_index=True, return_inverse=True)
    edge = np.append(edge.reshape(-1), -1)  # what is -1 stays it
    return replace(
        graph, n_nodes=int(node.max()) + 1, tail=tail[first], head=head[first],
        bandwidth=graph.bandwidth[first], latency=graph.latency[first],
        through_edge=edge[graph.through_edge], size=np.bincount(node, graph.size).astype(np.intp),
        members=np.bincount(edge[:-1], graph.members, len(first)).astype(np.intp),
        source_edge=edge[graph.source_edge], target_edge=edge[graph.target_edge],
        place=graph.place[first_node], sample=graph.sample[first],
    )  # fmt: skip


def _classes(graph: ClassGraph, numbers: Ints) -> Ints:
    """Return the class of every node, classes numbered by their first node; groups keep their numbers.

    All transit nodes are one class at first. Classes whose nodes see different links, by
    number, to or from different classes are split until none is.
    """
    n_groups = graph.n_sources + graph.n_targets
    found = np.minimum(np.arange(graph.n_nodes), n_groups)
    node, other = np.concatenate([graph.tail, graph.head]), np.concatenate([graph.head, graph.tail])
    link = np.concatenate([numbers, numbers + len(numbers)])  # the way out, the way in
    through = node >= n_groups
    node, other, link = node[through], other[through], link[through]
    ends = np.searchsorted(np.sort(node), np.arange(n_groups, graph.n_nodes + 1))
    count = 0
    while count < (count := int(found.max()) + 1):
        seen = link * count + found[other]
        seen = seen[np.lexsort((seen, node))]
        split: dict[tuple[int, bytes], int] = {}
        for i, (begin, end) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True), n_groups):
            found[i] = split.setdefault((int(found[i]), seen[begin:end].tobytes()), n_groups + len(split))
    return found
