"""What if? Edits of a topology, each a new one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

import networkx as nx
import numpy as np

from topo._check import EDGE_KINDS
from topo._errors import Fault, InputError, suggest
from topo._fabric import Fabric

__all__ = ["scale"]

AnyTopology = TypeVar("AnyTopology", "nx.Graph[str]", Fabric)


def scale(graph: AnyTopology, *, kind: str, bandwidth: float = 1.0, latency: float = 1.0) -> AnyTopology:
    """Return a topology in which every link of one kind is so many times as fast and as late.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        Left as it is.
    kind : {"scale-up", "scale-out", "pcie"}
        Which links.
    bandwidth, latency : float, optional
        Factors; bandwidth above zero, latency zero or more.

    Returns
    -------
    networkx.Graph or Fabric
        Of the type given.

    Raises
    ------
    InputError
        Unknown kind, or a factor that is not a finite number in its range.

    Examples
    --------
    >>> from topo import load
    >>> faster = scale(load("hgx-h100-8", domains=2), kind="scale-out", bandwidth=2.0)
    >>> faster.edges["d0/gpu0", "leaf0"]["bandwidth"]
    100000000000.0
    """
    if kind not in EDGE_KINDS:
        raise InputError(Fault("kind", kind, "is not a kind of edge", suggest(kind, EDGE_KINDS)))
    if not (math.isfinite(bandwidth) and bandwidth > 0 and math.isfinite(latency) and latency >= 0):
        rule = "factors must be finite, bandwidth above zero, latency zero or more"
        raise InputError(Fault("bandwidth, latency", (bandwidth, latency), rule, "Correct them."))
    if isinstance(graph, Fabric):
        of_kind = graph.link_kind == EDGE_KINDS.index(kind)
        rates = np.where(of_kind, graph.bandwidth * bandwidth, graph.bandwidth)
        return replace(graph, bandwidth=rates, latency=np.where(of_kind, graph.latency * latency, graph.latency))
    edited = graph.copy()
    for _, _, data in edited.edges(data=True):
        if data["kind"] == kind:
            data["bandwidth"] *= bandwidth
            data["latency"] *= latency
    return edited
