"""What if switches are joined without levels? HyperX and random regular graphs, GPUs under every switch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any

import networkx as nx

from topo._asked import Asked, Link, add_cable, add_gpus, add_switch, gpu_labels

__all__ = ["hyperx", "random_regular", "routers"]


def hyperx(
    dims: Sequence[int], lanes: int | Sequence[int] = 1, hosts: int = 1, radix: int | None = None,
    bandwidth: Any = None, latency: Any = None,
) -> nx.Graph[str]:  # fmt: skip
    """Return a HyperX: switches on a grid, those that differ in one coordinate only all linked.

    R = product of the sides switches; an axis of side n has R (n - 1)/2 links (times its
    lanes); switch diameter: the number of axes with a side above one.

    Parameters
    ----------
    dims : sequence of int
        Side of every axis.
    lanes : int or sequence of int, optional
        Cables of each link, for all axes or one per axis.
    hosts : int, optional
        GPUs per switch.
    radix : int, optional
        Ports of a switch, if they are to be checked.
    bandwidth, latency : str or number, optional
        Per cable, bandwidth per direction.

    References
    ----------
    .. [1] J. H. Ahn et al., "HyperX: Topology, Routing, and Packaging of Efficient Large-Scale
       Networks", SC 2009.

    Examples
    --------
    >>> from topo import build
    >>> graph = build("hyperx", dims=(3, 4), hosts=2)
    >>> graph.degree("router0"), graph.number_of_edges()
    (7, 54)
    """
    asked = Asked("hyperx")
    sides = [asked.whole(place, side) for place, side in asked.listed("dims", dims)]
    each = [asked.lanes(place, n) for place, n in asked.listed("lanes", lanes, len(sides))] if sides else []
    down = asked.whole("hosts", hosts)
    degree = sum((side - 1) * n for side, n in zip(sides, each, strict=False))
    asked.size("dims", dims, prod(sides) * (2 + 4 * down + sum(side - 1 for side in sides)) // 2)
    ports = asked.ports(radix, ("a switch", degree + down))
    link = asked.link("scale-out", bandwidth, latency)
    asked.settle()
    n = prod(sides)
    graph = routers(n, down, ports, link)
    strides = [prod(sides[:axis]) for axis in range(len(sides))]
    for r in range(n):
        graph.nodes[f"router{r}"]["coordinates"] = [
            r // stride % side for stride, side in zip(strides, sides, strict=True)
        ]
        for axis, (stride, side) in enumerate(zip(strides, sides, strict=True)):
            for other in range(r // stride % side + 1, side):
                to = r + (other - r // stride % side) * stride
                add_cable(graph, f"router{r}", f"router{to}", link, each[axis], axis=axis)
    return asked.named(
        graph, dims=sides, lanes=each, hosts=down, radix=radix, bandwidth=link.bandwidth, latency=link.latency
    )


def random_regular(
    n: int, degree: int, hosts: int = 1, seed: int = 0, radix: int | None = None, bandwidth: Any = None,
    latency: Any = None,
) -> nx.Graph[str]:  # fmt: skip
    """Return n switches, each cabled to `degree` others drawn at random, connected: a Jellyfish.

    n degree/2 links between switches. The same seed gives the same graph.

    Parameters
    ----------
    n, degree : int
        Switches, and links of each to others; their product is even.
    hosts : int, optional
        GPUs per switch.
    seed : int, optional
        Of the draw.
    radix : int, optional
        Ports of a switch, if they are to be checked.
    bandwidth, latency : str or number, optional
        Per cable, bandwidth per direction.

    References
    ----------
    .. [1] A. Singla et al., "Jellyfish: Networking Data Centers Randomly", NSDI 2012.

    Examples
    --------
    >>> from topo import build
    >>> graph = build("random_regular", n=10, degree=3, hosts=2, seed=1)
    >>> graph.number_of_edges()
    35
    """
    asked = Asked("random_regular")
    size, links, down = asked.whole("n", n, 2), asked.whole("degree", degree), asked.whole("hosts", hosts)
    draw = asked.whole("seed", seed, 0)
    if asked.sound("n", "degree"):
        _can_be_regular(asked, size, links, n, degree)
    asked.size("n", n, size * (2 + 4 * down + links) // 2)
    ports = asked.ports(radix, ("a switch", links + down))
    link = asked.link("scale-out", bandwidth, latency)
    asked.settle()
    graph = routers(size, down, ports, link)
    for a, b in sorted(_regular(size, links, random.Random(draw))):
        add_cable(graph, f"router{a}", f"router{b}", link)
    return asked.named(
        graph, n=size, degree=links, hosts=down, seed=draw, radix=radix, bandwidth=link.bandwidth, latency=link.latency
    )


def routers(n: int, hosts: int, radix: int, link: Link) -> nx.Graph[str]:
    """Return n switches "router0", ... with `hosts` GPUs each, not joined yet."""
    graph: nx.Graph[str] = nx.Graph()
    gpus = gpu_labels(n * hosts)
    add_gpus(graph, gpus)
    for r in range(n):
        add_switch(graph, f"router{r}", "leaf", radix)
        for gpu in gpus[r * hosts : (r + 1) * hosts]:
            add_cable(graph, gpu, f"router{r}", link)
    return graph


def _can_be_regular(asked: Asked, n: int, degree: int, given_n: object, given: object) -> None:
    most = f"Take {n - 1} or less, or more switches."
    asked.must(degree < n, "degree", given, f"{n} switches have {n - 1} others each", most)
    if n > 2:
        asked.must(degree > 1, "degree", given, f"joins {n} switches in pairs only", "Take two or more.")
    rule = f"{n} switches of degree {degree} have {n * degree} ends of links, an odd number"
    asked.must(n * degree % 2 == 0, "n, degree", (given_n, given), rule, "Make one of them even.")


def _regular(n: int, degree: int, rng: random.Random) -> list[tuple[int, int]]:
    """Draw a connected regular graph; where it is dense, what it leaves out."""
    if degree == 2:  # of random ones few are connected: draw a ring
        order = rng.sample(range(n), n)
        return [(min(a, b), max(a, b)) for a, b in zip(order, [*order[1:], order[0]], strict=True)]
    sparse = min(degree, n - 1 - degree)
    while True:
        drawn = {(min(a, b), max(a, b)) for a, b in nx.random_regular_graph(sparse, n, seed=rng).edges}
        pairs = drawn if sparse == degree else set(combinations(range(n), 2)) - drawn
        found: nx.Graph[int] = nx.Graph(sorted(pairs))
        if len(found) == n and nx.is_connected(found):
            return sorted(pairs)
