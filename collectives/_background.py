"""What do other jobs leave of the links?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from collectives._loads import phase_loads
from topo import Fabric, Fault, InputError, Routes, Routing, route
from topo.units import format_quantity

__all__ = ["beside"]

#: A link with less than this part left is full: what is left is rounding.
_FULL = 1e-9


def beside(graph: nx.Graph[str] | Fabric, background: ArrayLike | None, routing: Routing) -> Routes:
    """Return routes over what other jobs' steady traffic leaves of every link.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology.
    background : (ranks, ranks) array or None
        Bytes/s from every rank of the graph (row) to every other one; None for none.
    routing : str, Hash, Tables or Routes
        Rule of the other jobs and of the collective.

    Raises
    ------
    InputError
        A matrix of another shape, rates that are not finite and zero or more, pairs that no
        path joins, a link that the background fills.
    """
    routes = route(graph, routing)
    if background is None:
        return routes
    fabric, rates = routes.fabric, _rates(routes, background)
    loads = phase_loads(routes, np.arange(fabric.n_ranks), rates).loads
    left = fabric.bandwidth - loads
    full = np.flatnonzero(left <= _FULL * fabric.bandwidth)
    if len(full):
        link = int(full[np.argmin(left[full])])
        much, has = (format_quantity(float(x[link]), "bandwidth") for x in (loads, fabric.bandwidth))
        rule = f"fills {len(full)} links, the fullest {fabric.link_label(link)}: {much} over {has}"
        raise InputError(Fault("background", f"{len(rates)} ranks", rule, "Lower its rates."))
    total = format_quantity(float(rates.sum()), "bandwidth")
    said = f"background: other jobs send {total} in all, routed {routes.rule}, and have the right of way on every link"
    rest = replace(fabric, bandwidth=left, assumptions=(*fabric.assumptions, said))
    return route(rest, routes.asked)


def _rates(routes: Routes, background: ArrayLike) -> np.ndarray[Any, np.dtype[np.float64]]:
    n = routes.fabric.n_ranks
    try:
        rates = np.array(background, dtype=np.float64)
    except (TypeError, ValueError):  # ragged, or not numbers
        rates = np.zeros(0)
    if rates.shape != (n, n) or not np.isfinite(rates).all() or (rates < 0).any():
        rule = f"must be a matrix of shape ({n}, {n}) of finite bytes/s, zero or more"
        raise InputError(Fault("background", f"shape {rates.shape}", rule, "Rows send, columns receive."))
    np.fill_diagonal(rates, 0.0)
    return rates
