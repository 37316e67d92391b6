"""What is left of a step for routed experts, at every width of the expert-parallel group?

A layer of E = width x n experts is spread over `width` GPUs, n whole experts on each. All
but the routed experts is worked out once per width; budget and overlap are applied to it.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from collectives import Bracket, Cost, Outer, Profile, bracket, cost, load_profile
from serving import (
    DTYPE_BYTES,
    Model,
    Workload,
    chip_numbers,
    expert_part,
    kv_bytes,
    local_parts,
    require_records,
    resident_bytes,
)
from serving.laws import expected_experts_hit
from topo import Fabric, Fault, InputError, Routes, route, suggest
from topo.units import format_quantity

__all__ = ["OVERLAPS", "Terms", "WidthStep", "WidthSteps", "software_of", "width_brackets", "width_steps"]

#: How operations share time; see Terms.
OVERLAPS = ("none", "full")


@dataclass(frozen=True)
class Terms:
    """What a step must keep.

    Attributes
    ----------
    budget : float
        Time for one token through all layers [s].
    overlap : {"none", "full"}
        none: operations one after the other; full: compute, memory and wires all overlap.
    """

    budget: float
    overlap: str = "none"

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        faults, budget = [], self.budget
        if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 < budget < math.inf:
            rule = "must be a finite time above zero [s]"
            faults.append(Fault("step_budget", budget, rule, "Give seconds, as 20e-3."))
        if self.overlap not in OVERLAPS:
            faults.append(Fault("overlap", self.overlap, "is not known", suggest(str(self.overlap), OVERLAPS)))
        if faults:
            raise InputError(*faults)


@dataclass(frozen=True, eq=False, repr=False)
class WidthSteps:
    """Every width of one model and workload on one topology.

    Attributes
    ----------
    routes : Routes
        The topology's routes.
    model, workload : records
        As given.
    steps : tuple of WidthStep
        Widths 1, 2, ... up to all ranks.
    profile : str
        Software of dispatch and combine.
    """

    routes: Routes
    model: Model
    workload: Workload
    steps: tuple[WidthStep, ...]
    profile: str = "ideal"

    def __repr__(self) -> str:
        return f"WidthSteps({self.model.name} on {self.routes.fabric!r}, widths 1 .. {len(self.steps)})"

    @property
    def said(self) -> tuple[str, ...]:
        """What a prediction says of itself: its band, and a chip it was not fitted on; nothing of the wires alone."""
        if self.profile == "ideal":
            return ()
        last = self.steps[-1]
        found = last.cost(last.traffic()["dispatch"], self.routes)
        return tuple(line for line in found.assumptions if line.startswith("profile "))

    def least_budget(self, n_experts: int, overlap: str = "none") -> tuple[float, int]:
        """Return the shortest step a layer of so many experts allows, and its width.

        Parameters
        ----------
        n_experts : int
            Routed experts; each GPU holds at most their number over the width, rounded up.
        overlap : {"none", "full"}, optional
            As `expert_layer_bound`.

        Returns
        -------
        float and int
            [s] and GPUs; infinite and 0 when it fits into no width's memory.
        """
        found = (math.inf, 0)
        for step in self.steps:
            n = -(-n_experts // step.width)
            if n <= step.slots:
                found = min(found, (step.seconds(n, overlap), step.width))
        return found


def width_steps(
    graph: nx.Graph[str] | Fabric,
    model: Model,
    workload: Workload,
    *,
    routing: str | Routes = "ecmp",
    profile: str | os.PathLike[str] | Profile = "ideal",
) -> WidthSteps:
    """Return the step of a MoE model but for its routed experts, at every width up to all ranks.

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology, with chips.
    model, workload : records
        Its experts' number plays no part.
    routing : str or Routes, optional
        As `collectives.cost`.
    profile : str, path or Profile, optional
        Software of dispatch and combine, as `collectives.cost`: one of collectives of bytes,
        which predicts them as all-to-alls.

    Returns
    -------
    WidthSteps
        For `expert_layer_bound(steps=)`.

    Examples
    --------
    >>> import topo, serving
    >>> work = serving.Workload(batch_per_gpu=114)
    >>> width_steps(topo.load("hgx-h100-8"), serving.load_model("mixtral-8x7b"), work)
    WidthSteps(mixtral-8x7b on Fabric(hgx-h100-8: 8 ranks in 1 domains, 9 nodes, 16 directed links), widths 1 .. 8)
    """
    require_records(model, workload)
    routes, software = route(graph, routing), software_of(profile)
    widths = range(1, routes.fabric.n_ranks + 1) if model.is_moe else range(0)
    steps = tuple(WidthStep(routes, model, workload, width, profile=software) for width in widths)
    return WidthSteps(routes, model, workload, steps, software.name)


def software_of(profile: str | os.PathLike[str] | Profile) -> Profile:
    """Return a profile, and refuse one that predicts layers of a known number of experts."""
    software = load_profile(profile)
    if software.law == "expert":
        rule = "predicts layers of a known number of experts; the bound's layer may have any"
        raise InputError(Fault("profile", software.name, rule, "Take one of collectives of bytes, as nccl-hopper."))
    return software


def width_brackets(steps: WidthSteps, width: int) -> dict[str, Bracket]:
    """Return between which times dispatch and combine of one layer over a width lie.

    Parameters
    ----------
    steps : WidthSteps
        From `width_steps`.
    width : int
        GPUs of the group.

    Returns
    -------
    dict
        Operation -> `collectives.Bracket`.

    Examples
    --------
    >>> import topo, serving
    >>> work = serving.Workload(batch_per_gpu=114)
    >>> steps = width_steps(topo.load("gb200-nvl72"), serving.load_model("deepseek-v3"), work)
    >>> width_brackets(steps, 72)["dispatch"]
    Bracket(8.023 us <= 8.023 us <= 8.023 us, gap 0 %: all_to_all_v)
    """
    routes, step = steps.routes, steps.steps[width - 1]
    return {
        name: bracket(routes.fabric, "all_to_all_v", traffic, ranks=step.group, routing=routes)
        for name, traffic in step.traffic().items()
    }


class WidthStep:
    """A group of one width: its step but for the routed experts, and what those add."""

    def __init__(
        self,
        routes: Routes,
        model: Model,
        workload: Workload,
        width: int,
        free: NDArray[np.bool_] | None = None,
        profile: str | Profile = "ideal",
    ) -> None:
        self.profile = load_profile(profile)
        self.routes, self.model, self.workload, self.width = routes, model, workload, width
        self.group = routes.fabric.group(width, free)
        self.domains = len(np.unique(routes.fabric.rank_domain[self.group]))
        self.batch = workload.batch_of(width)
        self.chip = chip_numbers(routes.fabric, self.group)
        layers, heaviest = range(model.layers), int(self.batch.max())
        self.parts = local_parts(model, workload, self.chip, heaviest, layers)
        self.fixed = sum(part.seconds for part in self.parts)
        self.busy_compute = sum(part.compute_seconds for part in self.parts)
        self.busy_memory = sum(part.memory_seconds for part in self.parts)
        self.usable = self.chip.hbm_bytes * (1 - workload.hbm_reserve)
        room = self.usable - resident_bytes(model, layers) - kv_bytes(model, workload, layers) * heaviest
        self.slots = max(0, math.floor(room / (model.expert_bytes * model.n_moe_layers)))

    @cached_property
    def _wires(self) -> tuple[float, float, float]:
        return self.network(self.routes)

    @property
    def all_to_all(self) -> float:
        """Dispatch and combine of all layers [s]."""
        return self._wires[0]

    @property
    def remote_share(self) -> float:
        """Share of copies that leaves its domain."""
        return self._wires[1]

    @property
    def scale_out_wires(self) -> float:
        """Transfer time on scale-out links within the all-to-all [s]."""
        return self._wires[2]

    def network(self, routes: Routes) -> tuple[float, float, float]:
        """Return dispatch and combine of all layers [s] and the share of copies that leaves its domain.

        Last, the transfer time on scale-out links within the first [s]: at f times the
        scale-out bandwidth the all-to-all takes at least this over f.
        """
        seconds, remote, wires, layers = 0.0, 0.0, 0.0, self.model.n_moe_layers
        for traffic in self.traffic().values():
            result = cost(
                routes.fabric, "all_to_all_v", traffic, ranks=self.group, routing=routes, profile=self.profile
            )
            seconds, remote = seconds + result.seconds, result.remote_share
            if result.bottleneck_kind == "scale-out":  # of a prediction: its parts do not add up
                wires += result.bandwidth_seconds if result.profile == "ideal" else result.seconds
        return seconds * layers, remote, wires * layers

    def cost(self, traffic: Outer, routes: Routes) -> Cost:
        """Return what one of `traffic` costs."""
        return cost(routes.fabric, "all_to_all_v", traffic, ranks=self.group, routing=routes, profile=self.profile)

    def traffic(self) -> dict[str, Outer]:
        """Return what one layer sends."""
        model, work = self.model, self.workload
        copies, each = self.batch * float(model.top_k), np.full(self.width, model.expert_hidden_size / self.width)
        return {
            "dispatch": Outer(copies, each * DTYPE_BYTES[work.dispatch_dtype]),
            "combine": Outer(each * DTYPE_BYTES[work.combine_dtype], copies),
        }

    def seconds(self, n: int, overlap: str, all_to_all: float | None = None) -> float:
        """Return the step time with n experts of every layer on each GPU [s]."""
        wires = self.all_to_all if all_to_all is None else all_to_all
        compute, memory = self.expert_seconds(n)
        if overlap == "none":
            return self.fixed + max(compute, memory) + wires
        return max(self.busy_compute + compute, self.busy_memory + memory, wires)

    def expert_seconds(self, n: int) -> tuple[float, float]:
        """Return compute and memory time of the routed experts of all layers [s]."""
        if n == 0:
            return 0.0, 0.0
        tokens, k = float(self.batch.sum()), self.model.top_k
        hit = expected_experts_hit(float(n), min(1.0, k / (n * self.width)), tokens)
        ours = np.array([tokens * k / self.width])
        part = expert_part(self.model, self.workload, self.chip, ours, np.array([float(n)]), np.array([hit]))
        return part.compute_seconds * self.model.n_moe_layers, part.memory_seconds * self.model.n_moe_layers

    def keeps(self, n: int, terms: Terms, all_to_all: float | None = None) -> bool:
        """Whether n experts per GPU keep the budget, rounding aside."""
        return self.seconds(n, terms.overlap, all_to_all) <= terms.budget * (1 + 1e-12)

    def most(self, terms: Terms, all_to_all: float | None = None) -> int:
        """Return the most whole experts per GPU within memory and budget; time only grows with their number."""
        low, high = 0, self.slots
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.keeps(middle, terms, all_to_all) else (low, middle - 1)
        # A layer of fewer experts than a token goes to is none.
        return low if low * self.width >= self.model.top_k else 0

    def binding(self, terms: Terms) -> str:
        """Say what stops one more expert per GPU."""
        n = self.most(terms)
        if n == self.slots and self.keeps(n + 1, terms):
            return f"HBM capacity: {format_quantity(self.usable, 'bytes')} usable per GPU"
        compute, memory = self.expert_seconds(max(1, n))
        times = {f"{part.name} ({part.resource})": part.seconds for part in self.parts}
        times["routed experts (memory)" if memory >= compute else "routed experts (compute)"] = max(compute, memory)
        times["all-to-all (network)"] = self.all_to_all
        longest = max(times, key=lambda name: times[name])
        budget, share = format_quantity(terms.budget, "seconds"), format_quantity(times[longest], "seconds", 3)
        return f"step budget of {budget}: {longest} takes {share}"
