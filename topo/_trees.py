"""What does a tree of switches look like? Leaf/spine and fat trees, with oversubscription at every level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import networkx as nx

from topo._asked import MOST, Asked, Link, add_cable, add_gpus, add_switch, gpu_labels
from topo._fabrics import spread

__all__ = ["fat_tree", "leaf_spine", "plant"]


def leaf_spine(
    leaves: int, spines: int, hosts: int, lanes: int | None = None, oversubscription: float | None = None,
    radix: int | None = None, bandwidth: Any = None, latency: Any = None,
) -> nx.Graph[str]:  # fmt: skip
    """Return GPUs under leaves, every leaf cabled to every spine.

    leaves x hosts GPUs, leaves + spines switches, leaves x uplinks cables between them.

    Parameters
    ----------
    leaves, spines, hosts : int
        Switches of both levels; GPUs under each leaf.
    lanes : int, optional
        Cables from each leaf to each spine: spines x lanes uplinks of a leaf.
    oversubscription : float, optional
        Down over up ports of a leaf, where lanes are not given: ceil(hosts / oversubscription)
        uplinks, spread over the spines as equal as they divide. One by default.
    radix : int, optional
        Ports of a switch, if they are to be checked.
    bandwidth, latency : str or number, optional
        Per cable, bandwidth per direction.

    Examples
    --------
    >>> from topo import build
    >>> graph = build("leaf_spine", leaves=4, spines=2, hosts=8, oversubscription=2.0)
    >>> graph.edges["leaf0", "spine1"]["lanes"]
    2
    """
    asked = Asked("leaf_spine")
    n_leaves, n_spines, down = (
        asked.whole(place, n) for place, n in (("leaves", leaves), ("spines", spines), ("hosts", hosts))
    )
    up = _uplinks(asked, n_spines, down, lanes, oversubscription)
    asked.size("leaves", leaves, 2 * n_leaves * down + n_spines + n_leaves * n_spines)
    link = asked.link("scale-out", bandwidth, latency)
    good = asked.sound("leaves", "spines", "hosts", "lanes", "oversubscription")
    rows = spread([up] * n_leaves, n_spines) if good else [[1]]
    most = max(sum(column) for column in zip(*rows, strict=True))
    ports = asked.ports(radix, ("a leaf", down + up), ("a spine", most))
    asked.settle()
    graph: nx.Graph[str] = nx.Graph()
    add_gpus(graph, gpu_labels(n_leaves * down))
    for i in range(n_leaves):
        _leaf(graph, f"leaf{i}", i, down, ports, link)
    for j in range(n_spines):
        add_switch(graph, f"spine{j}", "spine", ports)
    for i, row in enumerate(rows):
        for j, n in enumerate(row):
            add_cable(graph, f"leaf{i}", f"spine{j}", link, n)
    return asked.named(
        graph, leaves=n_leaves, spines=n_spines, hosts=down, lanes=None if up % n_spines else up // n_spines,
        oversubscription=down / up, radix=radix, bandwidth=link.bandwidth, latency=link.latency,
    )  # fmt: skip


def fat_tree(
    k: int, levels: int = 3, oversubscription: float | Sequence[float] = 1.0, bandwidth: Any = None,
    latency: Any = None,
) -> nx.Graph[str]:  # fmt: skip
    """Return a fat tree of switches with k ports, half of them down except at the top.

    Two levels: k^2/2 GPUs, k leaves, k/2 spines, k^2/2 links between switches. Three: k^3/4
    GPUs in k pods, 5 k^2/4 switches, k^3/2 links between switches, diameter 6 between
    GPUs, bisection k^3/8 links.

    Parameters
    ----------
    k : int
        Ports of a switch, an even number.
    levels : {2, 3}, optional
        Levels of switches.
    oversubscription : float or sequence of float, optional
        Down over up ports of a switch, for every level below the top or one per such level,
        the leaves first. GPUs stay; ceil(k/2 / oversubscription) ports go up, and there are
        fewer switches above.
    bandwidth, latency : str or number, optional
        Per cable, bandwidth per direction.

    References
    ----------
    .. [1] M. Al-Fares, A. Loukissas, A. Vahdat, "A Scalable, Commodity Data Center Network
       Architecture", SIGCOMM 2008.

    Examples
    --------
    >>> from topo import build
    >>> graph = build("fat_tree", k=4)
    >>> len(graph), graph.number_of_edges()
    (36, 48)
    """
    asked = Asked("fat_tree")
    ports = even(asked, k)
    n_levels = asked.whole("levels", levels, 2)
    asked.must(n_levels <= 3, "levels", levels, "must be 2 or 3", "Take one of them.")
    ratios = _ratios(asked, oversubscription, n_levels - 1) if asked.sound("levels") else []
    asked.size("k", k, 3 * ports**2 // 2 if n_levels == 2 else ports**3)
    link = asked.link("scale-out", bandwidth, latency)
    asked.settle()
    ups = [max(1, math.ceil(ports // 2 / ratio - 1e-9)) for ratio in ratios]
    whole = ports // 2
    said = [f"{whole} / {up}" for up in ups]
    if any(abs(whole / up - ratio) > 1e-6 for up, ratio in zip(ups, ratios, strict=True)):
        asked.said.append(f"oversubscription = {', '.join(said)} (ports down / up): uplinks are rounded up")
    elif n_levels == 3 and not isinstance(oversubscription, Sequence) and ups[0] < whole:
        asked.said.append(f"oversubscription = {ratios[0]:g} at both levels, {ratios[0] * ratios[1]:g} in all")
    graph: nx.Graph[str] = nx.Graph()
    gpus = gpu_labels(2 * whole**n_levels)
    add_gpus(graph, gpus)
    plant(graph, ports, ups, link, "", gpus)
    return asked.named(
        graph, k=ports, levels=n_levels, oversubscription=[whole / up for up in ups],
        bandwidth=link.bandwidth, latency=link.latency,
    )  # fmt: skip


def plant(graph: nx.Graph[str], k: int, ups: Sequence[int], link: Link, prefix: str, gpus: Sequence[str]) -> None:
    """Add the switches of a fat tree over `gpus`: `ups` ports go up at each level below the top."""
    half = k // 2
    pods = k if len(ups) == 2 else 1
    per_pod = half if len(ups) == 2 else k
    for i in range(pods * per_pod):
        _leaf(graph, f"{prefix}leaf{i}", i, half, k, link, gpus)
    for pod in range(pods):
        for j in range(ups[0]):
            spine = _spine(prefix, pod if pods > 1 else None, j)
            add_switch(graph, spine, "spine", k)
            for i in range(pod * per_pod, (pod + 1) * per_pod):
                add_cable(graph, f"{prefix}leaf{i}", spine, link)
    if len(ups) == 2:
        for j in range(ups[0]):
            for i in range(ups[1]):
                add_switch(graph, f"{prefix}core{j}.{i}", "core", k)
                for pod in range(pods):
                    add_cable(graph, _spine(prefix, pod, j), f"{prefix}core{j}.{i}", link)


def even(asked: Asked, k: Any) -> int:
    """Return the ports of a fat tree's switch: an even number."""
    ports = asked.whole("k", k, 2)
    if asked.sound("k"):
        rule = "is odd, and half of a switch's ports go down, half up"
        asked.must(ports % 2 == 0, "k", k, rule, f"Take {ports - 1} or {ports + 1}.")
    return ports


def _spine(prefix: str, pod: int | None, j: int) -> str:
    return f"{prefix}spine{j}" if pod is None else f"{prefix}pod{pod}/spine{j}"


def _leaf(
    graph: nx.Graph[str], name: str, i: int, down: int, radix: int, link: Link, gpus: Sequence[str] | None = None
) -> None:
    """Add leaf i over its `down` GPUs."""
    add_switch(graph, name, "leaf", radix)
    for host in range(i * down, (i + 1) * down):
        add_cable(graph, f"gpu{host}" if gpus is None else gpus[host], name, link)


def _ratios(asked: Asked, oversubscription: Any, n: int) -> list[float]:
    ratios = []
    for place, value in asked.listed("oversubscription", oversubscription, n, "level below the top"):
        ratio = asked.ratio(place, value)
        if asked.sound("oversubscription"):
            asked.must(ratio >= 1, place, value, "below one asks for more than k/2 ports up", "Take one or more.")
        ratios.append(ratio)
    return ratios


def _uplinks(asked: Asked, spines: int, down: int, lanes: Any, oversubscription: Any) -> int:
    """Return the uplinks of a leaf, from lanes to each spine or from the oversubscription."""
    ratio = asked.ratio("oversubscription", 1.0 if oversubscription is None else oversubscription)
    if lanes is not None:
        up = spines * asked.lanes("lanes", lanes)
        if oversubscription is not None and asked.sound("lanes", "spines", "hosts", "oversubscription"):
            rule = f"is not what {down} hosts over {up} uplinks make: {down / up:.4g}"
            same = math.isclose(ratio, down / up, rel_tol=1e-6)
            asked.must(same, "oversubscription", oversubscription, rule, "Give lanes or oversubscription.")
        return up
    up = math.ceil(min(down, MOST) / ratio - 1e-9)  # more hosts are refused by their number
    if asked.sound("spines", "hosts", "oversubscription"):
        rule = f"a leaf has {up} uplinks and does not reach every spine"
        asked.must(up >= spines, "spines", spines, rule, f"Take {up} spines or fewer, or give lanes.")
    if up % spines:
        asked.said.append(
            f"{up} uplinks of a leaf do not divide over {spines} spines ({up // spines} or {up // spines + 1} lanes "
            "each): traffic split by local capacity may be blocked there"
        )
    return max(up, 1)
