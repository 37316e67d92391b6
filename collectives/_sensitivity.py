"""Which links would save time if they were faster, and how much?"""

from __future__ import annotations

from typing import Any

import networkx as nx
from numpy.typing import ArrayLike

from collectives._cost import cost
from collectives._moe import MoE
from collectives._records import Outer, Schedule
from collectives._results import Sensitivity
from topo import Fabric, Fault, InputError, Routes, scale

__all__ = ["sensitivity"]

#: Relative increase of a bandwidth: small against any tie, large against rounding.
_INCREASE = 2.0**-20
#: Part of the time below which a slope is rounding.
_ROUNDING = 1e-8


def sensitivity(
    graph: nx.Graph[str] | Fabric,
    kind_or_schedule: str | Schedule,
    n_bytes: float | ArrayLike | Outer | MoE | None = None,
    **words: Any,
) -> Sensitivity:
    """Return the time saved per relative increase of each link kind's bandwidth.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology.
    kind_or_schedule, n_bytes
        As `cost`.
    **words
        What `cost` takes besides; routing is a rule, since routes are worked out anew.

    Returns
    -------
    Sensitivity
        Every kind of link is made faster in turn and the collective costed again, with the
        algorithm that is then best under ``algorithm="best"``. One-sided: at a tie of two
        kinds neither saves anything alone.

    Raises
    ------
    InputError
        As `cost`; routes worked out before.

    Examples
    --------
    >>> import topo
    >>> found = sensitivity(topo.load("hgx-h100-8", 2), "all_to_all", 1e9)
    >>> found.saved["scale-up"], round(found.saved["scale-out"], 9)  # half of 1 GB at 50 GB/s
    (0.0, 0.01)
    """
    if isinstance(words.get("routing"), Routes):
        raise InputError(Fault("routing", "Routes", "hold for these bandwidths only", "Name the rule."))
    fabric = Fabric.from_graph(graph)
    now = cost(fabric, kind_or_schedule, n_bytes, **words)
    saved = {}
    for kind in now.classes:
        faster = cost(scale(fabric, kind=kind, bandwidth=1 + _INCREASE), kind_or_schedule, n_bytes, **words)
        # t(b) = latency + bytes / b: the slope at the increase, taken back to b, is that at b.
        slope = (now.seconds - faster.seconds) * (1 + _INCREASE) / _INCREASE
        saved[kind] = 0.0 if abs(slope) < _ROUNDING * now.seconds else slope
    return Sensitivity(now, saved)
