"""What does a rule that goes by places do where nodes have none? Takes the only way; else says what it lacks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topo._classes import ClassGraph
from topo._errors import Fault, InputError
from topo._fabric import Fabric
from topo._shares import Floats, Hops, by_capacity

__all__ = ["has_choice", "unplaced", "without_places"]


def unplaced(graph: ClassGraph, stated: Mapping[int, object]) -> list[int]:
    """Return the fabric nodes that traffic may pass through and that have no place."""
    passed = np.unique(graph.place[graph.n_sources + graph.n_targets :]).tolist()
    return [node for node in passed if node not in stated]


def has_choice(share: Floats) -> bool:
    """Whether a flow has several ways somewhere."""
    return bool(((share > 0) & (share < 1)).any())


def without_places(
    fabric: Fabric, graph: ClassGraph, rule: str, mark: str, stated: Mapping[int, object]
) -> tuple[Hops, Floats]:
    """Route a class whose nodes have no places by capacity, where others of the graph have them or there is no choice.

    Raises
    ------
    InputError
        There is a choice, and the graph states no place at all, or this class links nodes
        that have some.
    """
    hops, share = by_capacity(fabric, graph)
    bare = unplaced(graph, stated)
    placed = np.isin(graph.place, list(stated))
    some = bool((placed[graph.tail] & placed[graph.head]).any())
    if has_choice(share) and (some or not stated):
        rule_ = f"has several ways over {graph.kind}, and {fabric.labels[bare[0]]} states no {mark} to choose by"
        cure = f"Take another rule, or state the `{mark}` of every node that forwards."
        raise InputError(Fault("routing", rule, rule_, cure))
    return hops, share
