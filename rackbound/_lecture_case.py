"""On what are the lecture's claims tried? A design, a model and a workload, and what claims ask of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from serving import ChipNumbers, Layout, Model, Step, Workload, chip_numbers, dtype_bytes, step
from serving.laws import drain_seconds
from topo import Design, Fabric, list_designs, load, load_design

__all__ = ["Case"]


@dataclass(frozen=True, eq=False)
class Case:
    """A design, a model and a workload, and what claims ask of them, each worked out once.

    Attributes
    ----------
    design : str
        Catalogue name or design file.
    model : Model
        From `serving.load_model`.
    workload : Workload
        A decode.
    overrides : mapping
        As `topo.load`.
    """

    design: str
    model: Model
    workload: Workload
    overrides: Mapping[str, Any] = field(default_factory=dict)
    _built: dict[int, Fabric] = field(default_factory=dict, repr=False)

    @cached_property
    def shown(self) -> Design:
        """The design as its file states it."""
        return load_design(self.design, self.overrides)

    @cached_property
    def catalogue(self) -> tuple[Design, ...]:
        """Every design of the catalogue that ships."""
        designs = (load_design(name) for name in list_designs())
        return tuple(one for one in designs if one.design.status == "shipping")

    def racks(self, domains: int) -> Fabric:
        """Return so many scale-up domains of the design."""
        if domains not in self._built:
            self._built[domains] = Fabric.from_graph(load(self.design, domains, self.overrides))
        return self._built[domains]

    @cached_property
    def chip(self) -> ChipNumbers:
        """Numbers of the weakest GPU of a domain."""
        return chip_numbers(self.racks(1), np.arange(self.size))

    @property
    def size(self) -> int:
        """GPUs of a domain."""
        return self.racks(1).n_ranks

    @property
    def width(self) -> int:
        """GPUs of a domain that its experts are spread over: at most one per expert."""
        return min(self.size, self.model.n_experts)

    @property
    def flops(self) -> float:
        """Rate of a GPU at the weights' type [FLOP/s]."""
        return self.chip.rate(self.model.weight_dtype)

    @property
    def bandwidth(self) -> float:
        """Of a GPU's HBM [bytes/s]."""
        return self.chip.hbm_bandwidth

    @property
    def drain(self) -> float:
        """Time to read all HBM once [s]."""
        return drain_seconds(self.chip.hbm_bytes, self.bandwidth)

    @property
    def slowdown(self) -> float:
        """Scale-up over scale-out bandwidth of a GPU."""
        assert self.shown.scale_out is not None
        return self.shown.scale_up.bandwidth / self.shown.scale_out.per_gpu

    @property
    def met(self) -> float:
        """Weights a token is multiplied with: the active ones, without an embedding that is only looked up."""
        model = self.model
        return float(model.active_params - (model.embedding_params if model.head_params else 0))

    @property
    def weights(self) -> float:
        """All weights [bytes]."""
        return self.model.total_weight_bytes

    @property
    def weight_size(self) -> float:
        """Bytes per weight."""
        return dtype_bytes(self.model.weight_dtype)

    @property
    def kv(self) -> float:
        """KV cache of a token [bytes]."""
        return self.model.kv_bytes(1, self.workload.kv_dtype)

    @property
    def beyond(self) -> tuple[float, float]:
        """Bytes a token adds to a sequence longer than every window, and what it has kept by then [bytes]."""
        one, two = (self.model.kv_bytes(n, self.workload.kv_dtype) for n in (1e8, 2e8))
        return (two - one) / 1e8, 2 * one - two

    @property
    def sequence(self) -> float:
        """KV cache of a sequence of the workload [bytes]."""
        return self.model.kv_bytes(self.workload.context, self.workload.kv_dtype)

    @property
    def token_seconds(self) -> float:
        """Weights' arithmetic of one token on one GPU [s]."""
        return 2 * self.met / self.flops

    @cached_property
    def one(self) -> Step:
        """The workload's step on one domain."""
        return self.step(1)

    @cached_property
    def four(self) -> Step:
        """The same in four stages, a domain each."""
        return self.step(4)

    @property
    def room(self) -> float:
        """What the weights leave of the fullest GPU's memory, on one domain [bytes]."""
        return self.one.memory_usable - self.one.weight_bytes

    def step(self, stages: int, *, workload: Workload | None = None, in_flight: int | None = None) -> Step:
        """Return a step in so many stages, a domain each."""
        layout = Layout(self.width, pp=stages, micro_batches=in_flight)
        return step(self.racks(stages), self.model, workload or self.workload, layout=layout)

    def lacks(self, needs: str) -> str:
        """Say what is not there of the things a claim needs, the first of them."""
        there: dict[str, Callable[[], tuple[bool, str]]] = {
            "experts": lambda: (self.model.is_moe, f"{self.model.name} has no experts"),
            "scale-out": lambda: (self.shown.scale_out is not None, f"{self.shown.design.name} states no scale-out"),
            "cache": lambda: (self.kv > 0, f"{self.model.name} keeps no cache that grows"),
            "room": lambda: (self.room > 0, f"{self.model.name}'s weights leave no room for a cache on one domain"),
        }
        for word in needs.split():
            found, why = there[word]() if word in there else (word == self.model.name, f"it is said of {word}")
            if not found:
                return why
        return ""
