"""Between which times does each collective of a step lie?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx
from numpy.typing import ArrayLike

from collectives import Bracket, Cost, bracket
from serving._asked import Asked
from serving._layout import Layout
from serving._model import Model
from serving._plan import PlacementPlan
from serving._software import Software
from serving._workload import Workload
from topo import Fabric, Routes

__all__ = ["step_brackets"]


def step_brackets(
    graph: nx.Graph[str] | Fabric,
    model: Model,
    workload: Workload,
    *,
    layout: Layout | None = None,
    plan: PlacementPlan | None = None,
    expert_load: ArrayLike | None = None,
    routing: str | Routes = "ecmp",
) -> dict[str, Bracket]:
    """Return between which times each collective of a step lies: one layer's, the slowest of its name.

    Parameters
    ----------
    graph, model, workload, layout, plan, expert_load, routing
        As `step`.

    Returns
    -------
    dict
        Operation -> `collectives.Bracket`; nothing of a step without collectives.

    Examples
    --------
    >>> import topo, serving
    >>> graph, model = topo.load("hgx-h100-8"), serving.load_model("mixtral-8x7b")
    >>> step_brackets(graph, model, Workload(batch_per_gpu=64))["dispatch"]
    Bracket(2.019 us <= 2.019 us <= 2.019 us, gap 0 %: all_to_all_v)
    """
    asked = Asked(graph, model, workload, layout, plan, expert_load, routing)
    worked = asked.stages(plan or asked.usual, Software.load("ideal", None))
    assert worked.all_parts
    return {
        name: bracket(worked.routes.fabric, routing=worked.routes, **words | _named(found, words))
        for name, (found, words) in worked.slowest.items()
    }


def _named(found: Cost, words: Mapping[str, Any]) -> dict[str, str]:
    """Return the algorithm that was best, where the best was asked for."""
    return {"algorithm": found.algorithm} if words.get("algorithm") == "best" else {}
