"""What does a step stand on, checked and filled in?"""

from __future__ import annotations

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from collectives import expert_shares, inclusion_shares
from serving._chip import chip_numbers
from serving._layout import Groups, Layout, require_layout
from serving._model import Model
from serving._one_step import OneStep
from serving._plan import PlacementPlan, plan_for, require_plan, require_records
from serving._shared import spread
from serving._software import Software
from serving._task import Task
from serving._workload import Workload
from topo import Fabric, Routes, route

__all__ = ["Asked"]


class Asked:
    """A step as asked for, checked: routes, model with its shares, layout, and the plan nobody has to give."""

    def __init__(
        self, graph: nx.Graph[str] | Fabric, model: Model, workload: Workload, layout: Layout | None,
        plan: PlacementPlan | None, expert_load: ArrayLike | None, routing: str | Routes,
    ) -> None:  # fmt: skip
        self.routes, self.workload = route(graph, routing), workload
        require_records(model, workload, layout, plan)
        ranks = self.routes.fabric.n_ranks if model.is_moe else 1
        self.layout = layout or (Layout(plan.ep, pp=plan.pp) if plan else Layout(ranks))
        require_layout(self.layout, self.routes.fabric, model, workload)
        asked = expert_shares(model.n_experts, expert_load, model.n_moe_layers) if model.is_moe else np.zeros((0, 0))
        if self.layout.shared == "spread":
            model, asked = spread(model, asked)
        self.model = model
        self.shares = inclusion_shares(asked, model.top_k) if model.is_moe else asked
        self.capped = int((asked > self.shares * (1 + 1e-9)).sum())
        self.usual = plan_for(model, self.layout, self.shares)
        if plan is not None:
            require_plan(plan, model, self.layout)

    def stages(self, plan: PlacementPlan, software: Software) -> OneStep:
        """Return the step with a plan."""
        groups = Groups(self.routes.fabric, self.layout)
        chip = chip_numbers(self.routes.fabric, groups.all)
        task = Task(self.model, self.workload, self.layout, plan, self.shares, groups, chip, software)
        return OneStep(task, self.routes)
