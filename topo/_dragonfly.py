"""Which router of which group has a cable to which? The dragonfly, with as many groups as wanted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx

from topo._asked import Asked, add_cable
from topo._direct import routers

__all__ = ["dragonfly"]

Pair = tuple[int, int]


def dragonfly(
    a: int, p: int, h: int, groups: int | None = None, radix: int | None = None, bandwidth: Any = None,
    latency: Any = None,
) -> nx.Graph[str]:  # fmt: skip
    """Return groups of fully linked routers, the groups fully linked as well.

    g groups: a g routers, a p g GPUs, g a (a - 1)/2 local and g a h/2 global links, router
    diameter 3. With fewer groups than a h + 1 all global ports are used still: every two
    groups share floor(a h / (g - 1)) links or one more. Where g a h is odd one port stays
    empty, and the graph says so.

    Parameters
    ----------
    a, p, h : int
        Routers of a group; GPUs and global links of a router.
    groups : int, optional
        From 2 to a h + 1, which is the default.
    radix : int, optional
        Ports of a router, if they are to be checked.
    bandwidth, latency : str or number, optional
        Per cable, bandwidth per direction.

    References
    ----------
    .. [1] J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-Driven, Highly-Scalable
       Dragonfly Topology", ISCA 2008.

    Examples
    --------
    >>> from topo import build
    >>> graph = build("dragonfly", a=4, p=2, h=2)
    >>> routers = [node for node, kind in graph.nodes(data="kind") if kind == "switch"]
    >>> len(routers), graph.subgraph(routers).number_of_edges()
    (36, 90)
    """
    asked = Asked("dragonfly")
    size, hosts, up = asked.whole("a", a), asked.whole("p", p), asked.whole("h", h)
    most = size * up + 1
    g = most if groups is None else asked.whole("groups", groups, 2)
    if asked.sound("a", "h", "groups"):
        rule = f"a h = {size * up} global links of a group do not reach that many others"
        asked.must(g <= most, "groups", groups, rule, f"Take {most} groups or fewer, or raise a or h.")
    asked.size("groups", g, g * size * (1 + 4 * hosts + size + up) // 2)
    ports = asked.ports(radix, ("a router", size - 1 + up + hosts))
    link = asked.link("scale-out", bandwidth, latency)
    asked.settle()
    if g * size * up % 2:
        asked.said.append(f"g a h = {g * size * up} is odd: one global port of the last group stays empty")
    graph = routers(g * size, hosts, ports, link)
    for r in range(g * size):
        graph.nodes[f"router{r}"]["group"] = r // size
        for other in range(r + 1, (r // size + 1) * size):
            add_cable(graph, f"router{r}", f"router{other}", link)
    for (i, port), (j, far) in global_cables(g, size * up):
        ends = f"router{i * size + port // up}", f"router{j * size + far // up}"
        lanes = graph.edges[ends]["lanes"] + 1 if graph.has_edge(*ends) else 1
        add_cable(graph, *ends, link, lanes)
    return asked.named(
        graph, a=size, p=hosts, h=up, groups=g, radix=radix, bandwidth=link.bandwidth, latency=link.latency
    )


def global_cables(groups: int, ports: int) -> Iterator[tuple[Pair, Pair]]:
    """Yield the cables between groups as (group, port), (group, port), ports counted within the group.

    Whole rounds first, each a cable from every group to every other, the nearest (counted
    upward) on the lowest port; then what is left over, spread over the nearest groups.
    Ports are dealt to routers in order, so a round spreads over neighbouring routers.
    """
    rounds, rest = divmod(ports, groups - 1)
    for turn in range(rounds):
        first = turn * (groups - 1)
        for i in range(groups):
            for j in range(i + 1, groups):
                yield (i, first + j - i - 1), (j, first + groups - (j - i) - 1)
    taken = [rounds * (groups - 1)] * groups
    for i, j in _left_over(groups, rest):
        yield (i, taken[i]), (j, taken[j])
        taken[i] += 1
        taken[j] += 1


def _left_over(groups: int, each: int) -> list[Pair]:
    """Return pairs in which every group stands `each` times, the last once less where that is odd, no pair twice."""
    odd = each % 2 == 1
    if odd and groups % 2 == 0:
        pairs = [(i, i + groups // 2) for i in range(groups // 2)]
        steps = range(1, each // 2 + 1)
    elif odd:
        pairs = [(i, i + 1) for i in range(0, groups - 1, 2)]
        steps = range(2, each // 2 + 2)
    else:
        pairs, steps = [], range(1, each // 2 + 1)
    return pairs + [(i, (i + step) % groups) for step in steps for i in range(groups)]
