"""Which routing rules are there? One row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from topo._classes import ClassGraph
from topo._dor import dimension_order, places_apart
from topo._fabric import Fabric
from topo._groups import groups_apart, minimal_over_groups
from topo._shares import Floats, Hops, by_capacity, by_paths, evenly
from topo._single import destination_mod_k

__all__ = ["RULES", "Rule"]

Work = Callable[[Fabric, ClassGraph], tuple[Hops, Floats]]


def _always(fabric: Fabric) -> bool:
    return True


def _never(fabric: Fabric) -> bool:
    return False


@dataclass(frozen=True)
class Rule:
    """How one rule works.

    Attributes
    ----------
    title : str
        What it does.
    work : callable
        Hops from every node to every target group over the rule's own ways, (targets,
        nodes), and the share of every edge, (targets, edges).
    folds : callable
        Whether the rule gives twins of a fabric the same ways, so that they share a node.
    alike : bool
        Whether it gives equal links equal parts, so that alike switches share a node; it counts `ClassGraph.fan`.
    mark : str
        Mark of the nodes that the rule goes by, "" for none; classes without it are routed by ecmp.
    cables : bool
        Whether one flow stays on one cable of a bundle, so that lanes are unfolded.
    """

    title: str
    work: Work
    folds: Callable[[Fabric], bool] = _always
    alike: bool = False
    mark: str = ""
    cables: bool = False


RULES: dict[str, Rule] = {
    "ecmp": Rule("fewest hops, split by the capacity of the next edges", by_capacity, alike=True),
    "even": Rule("fewest hops, split equally over the next edges", evenly, alike=True),
    "paths": Rule("fewest hops, split equally over the paths", by_paths, alike=True),
    "single": Rule("one cable a hop, D-mod-k", destination_mod_k, _never, cables=True),
    "dor": Rule("dimension order, ties in the plus direction", dimension_order, places_apart, mark="coordinates"),
    "dragonfly": Rule("minimal: local, global, local", minimal_over_groups, groups_apart, mark="group"),
    "valiant": Rule("over a group, router or node drawn at random, both ways minimal", by_capacity, _never),
    "table": Rule("forwarding tables of a subnet manager", by_capacity, _never, cables=True),
    "hash": Rule("every flow by a hash, cable by cable", evenly, _never, cables=True),
}
