"""Which routers of a Slim Fly are linked? McKay-Miller-Siran graphs over GF(q): diameter two, near the Moore bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from topo._asked import Asked, add_cable
from topo._direct import routers
from topo._galois import Field, field, prime_power

__all__ = ["slim_fly"]


def slim_fly(
    q: int, p: int | None = None, radix: int | None = None, bandwidth: Any = None, latency: Any = None
) -> nx.Graph[str]:
    """Return a Slim Fly: 2 q^2 routers, any two at most two hops apart.

    With q = 4 w + d, d one of -1, 0, 1: degree (3 q - d)/2, q^2 (3 q - d)/2 links between
    routers.

    Parameters
    ----------
    q : int
        A prime power, 3 or more.
    p : int, optional
        GPUs per router; half the degree, rounded up, by default.
    radix : int, optional
        Ports of a router, if they are to be checked.
    bandwidth, latency : str or number, optional
        Per cable, bandwidth per direction.

    Notes
    -----
    Routers (0, x, y) and (1, m, c) with x, y, m, c in GF(q); (0, x, y) and (0, x, y') are
    linked where y - y' is in X, (1, m, c) and (1, m, c') where c - c' is in X', (0, x, y)
    and (1, m, c) where y = m x + c. X are even powers of a primitive element and X' odd
    ones, both so that they hold the negative of each of their elements.

    References
    ----------
    .. [1] M. Besta, T. Hoefler, "Slim Fly: A Cost Effective Low-Diameter Network Topology",
       SC 2014.
    .. [2] P. R. Hafner, "Geometric realisation of the graphs of McKay-Miller-Siran", Journal
       of Combinatorial Theory B 90 (2004).

    Examples
    --------
    >>> from topo import build
    >>> graph = build("slim_fly", q=5, p=1)
    >>> graph.degree("router0") - 1, graph.number_of_edges() - 50
    (7, 175)
    >>> build("slim_fly", q=28)
    Traceback (most recent call last):
        ...
    topo._errors.InputError: q = 28: is no prime power, and a Slim Fly needs one. Nearest that work: 27 and 29.
    """
    asked = Asked("slim_fly")
    order = asked.whole("q", q)
    d = (order + 1) % 4 - 1
    degree = (3 * order - d) // 2
    hosts = -(-degree // 2) if p is None else asked.whole("p", p)
    asked.size("q", q, order**2 * (2 + 4 * hosts + degree))
    if asked.sound("q") and not works(order):
        below = next((n for n in range(order, 2, -1) if works(n)), None)
        above = next(n for n in range(order, 2 * order + 4) if works(n))
        near = f"{below} and {above}" if below else str(above)
        rule = "is no prime power, and a Slim Fly needs one" if prime_power(order) is None else "is too small a field"
        asked.must(False, "q", q, rule, f"Nearest that work: {near}.")
    ports = asked.ports(radix, ("a router", degree + hosts))
    link = asked.link("scale-out", bandwidth, latency)
    asked.settle()
    graph = routers(2 * order**2, hosts, ports, link)
    for r in range(2 * order**2):
        graph.nodes[f"router{r}"]["group"] = r // order
    for one, other in cables(field(order), d):
        add_cable(graph, f"router{one}", f"router{other}", link)
    return asked.named(graph, q=order, p=hosts, radix=radix, bandwidth=link.bandwidth, latency=link.latency)


def works(q: int) -> bool:
    """Whether there is a Slim Fly over GF(q)."""
    return q > 2 and prime_power(q) is not None


def cables(gf: Field, d: int) -> Iterator[tuple[int, int]]:
    """Yield the linked routers, (0, x, y) as x q + y and (1, m, c) as q^2 + m q + c."""
    q = len(gf.add)
    generators = _generators(gf, d)
    for side in (0, 1):
        for y in range(q):
            for z in sorted(int(gf.add[y, step]) for step in generators[side]):
                if y < z:
                    yield from ((side * q * q + x * q + y, side * q * q + x * q + z) for x in range(q))
    for x in range(q):
        for m in range(q):
            yield from ((x * q + int(gf.add[gf.multiply[m, x], c]), q * q + m * q + c) for c in range(q))


def _generators(gf: Field, d: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return X and X', each closed under negation.

    For d = 1 the square roots of one and minus one are even powers already, for d = 0
    every element is its own negative; for d = -1 the negatives of the lower even powers
    are odd ones.
    """
    q = len(gf.add)
    if d == -1:
        w = (q + 1) // 4
        low, high = np.arange(0, 2 * w - 1, 2), np.arange(2 * w - 1, 4 * w - 2, 2)
        exponents = np.concatenate([low, high])
        return gf.powers[exponents], gf.powers[(exponents + 1) % (q - 1)]
    even = np.arange(0, q - 1, 2)
    return gf.powers[even], gf.powers[(even + 1) % (q - 1)]
