"""How is a model cut over GPUs, and which cut would exist where the asked one cannot?"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from serving._model import Model
from serving._workload import Workload, whole
from topo import Fabric, Fault, InputError, suggest

__all__ = ["Groups", "Layout", "drafting_faults", "require_layout"]

Ints = NDArray[np.intp]

SHARED = ("local", "spread")


@dataclass(frozen=True, repr=False)
class Layout:
    """How a model is cut: `pp` stages of dp x tp x cp GPUs, the experts of a layer spread over `ep` of them.

    Parameters
    ----------
    ep : int
        GPUs over which the experts of a layer are spread. Where a stage has more, each `ep` of
        them hold all experts: expert-parallel groups side by side.
    pp : int, optional
        Pipeline stages.
    tp : int, optional
        GPUs that share one attention replica's weights, dense feed-forwards and head.
    cp : int, optional
        GPUs over which the tokens of a prompt are cut (prefill only).
    dp : int, optional
        Attention replicas of a stage; by default as many as `ep` GPUs make.
    shared : {"local", "spread"}, optional
        Shared experts: with the dense weights on every replica, or as further routed experts that
        every token goes to.
    redundant : int, optional
        Expert slots of a layer beyond one per expert, for copies of the most loaded.
    micro_batches : int, optional
        Batches in flight; by default one per stage.

    Examples
    --------
    >>> Layout(72, pp=2).gpus, Layout(64, tp=8).replicas
    (144, 8)
    """

    ep: int
    pp: int = field(default=1, kw_only=True)
    tp: int = field(default=1, kw_only=True)
    cp: int = field(default=1, kw_only=True)
    dp: int | None = field(default=None, kw_only=True)
    shared: str = field(default="local", kw_only=True)
    redundant: int = field(default=0, kw_only=True)
    micro_batches: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse what cannot be, and say what would."""
        faults = [fault for name in ("ep", "pp", "tp", "cp") for fault in whole(name, getattr(self, name))]
        faults += [fault for name in ("dp", "micro_batches") for fault in whole(name, getattr(self, name), None)]
        faults += whole("redundant", self.redundant, least=0)
        if self.shared not in SHARED:
            faults.append(Fault("shared", self.shared, "is not known", suggest(str(self.shared), SHARED)))
        if not faults and self.stage % self.ep:
            faults.append(self._uneven())
        if faults:
            raise InputError(*faults)

    def _uneven(self) -> Fault:
        """Say which neighbours of a layout exist."""
        each = self.tp * self.cp
        said = (
            f"dp {self.replicas} x tp {self.tp} x cp {self.cp} = {self.stage} GPUs are not a whole number of times ep"
        )
        if self.dp is None:
            below, above = self.ep // each * each, -(-self.ep // each) * each
            widths = " or ".join(str(n) for n in dict.fromkeys((below, above)) if n)
            tensor = max(n for n in range(1, self.tp + 1) if self.ep % (n * self.cp) == 0 or n == 1)
            return Fault("layout.ep", self.ep, said, f"ep {widths} would do, or tp {tensor}.")
        divisors = [n for n in range(1, self.stage + 1) if self.stage % n == 0]
        near = sorted(divisors, key=lambda n: (abs(n - self.ep), n))[:2]
        return Fault("layout.ep", self.ep, said, f"ep {' or '.join(map(str, sorted(near)))} would do.")

    @property
    def replicas(self) -> int:
        """Attention replicas of a stage."""
        return self.dp or max(1, -(-self.ep // (self.tp * self.cp)))

    @property
    def stage(self) -> int:
        """GPUs of a stage."""
        return self.replicas * self.tp * self.cp

    @property
    def gpus(self) -> int:
        """GPUs of all stages."""
        return self.stage * self.pp

    @property
    def in_flight(self) -> int:
        """Micro-batches in flight."""
        return self.micro_batches or self.pp

    def __repr__(self) -> str:
        told = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)
                if f.name in ("ep", "pp") or getattr(self, f.name) != f.default]  # fmt: skip
        return f"Layout({', '.join(told)})"


class Groups:
    """The ranks of a layout on a fabric: rows of replicas and of expert-parallel groups, stage by stage."""

    def __init__(self, fabric: Fabric, layout: Layout) -> None:
        free = np.ones(fabric.n_ranks, dtype=bool)
        self.layout, self.stages = layout, list[Ints]()
        for _ in range(layout.pp):
            self.stages.append(fabric.group(layout.stage, free))
            free[self.stages[-1]] = False

    @property
    def all(self) -> Ints:
        """Every rank taking part."""
        return np.concatenate(self.stages)

    def tensor(self, s: int) -> list[Ints]:
        """Return a stage's groups that share a replica's weights: neighbours."""
        return list(self.stages[s].reshape(-1, self.layout.tp))

    def context(self, s: int) -> list[Ints]:
        """Return a stage's groups that share a prompt: the same place in each tensor-parallel group of a replica."""
        grid = self.stages[s].reshape(-1, self.layout.cp, self.layout.tp)
        return [row for replica in grid for row in replica.T]


def require_layout(layout: Layout, fabric: Fabric, model: Model, workload: Workload) -> None:
    """Refuse a layout that cannot exist here, and say what would.

    Raises
    ------
    InputError
        Everything wrong with it.
    """
    faults = []
    if layout.gpus > fabric.n_ranks:
        faults.append(_too_many(layout, fabric, model.layers))
    if layout.pp > model.layers:
        rule = f"the model has {model.layers} layers"
        faults.append(Fault("layout.pp", layout.pp, rule, "Take at most that many stages."))
    if layout.cp > 1 and workload.phase != "prefill":
        rule = "cuts the tokens of a prompt, and this is no prefill"
        faults.append(Fault("layout.cp", layout.cp, rule, "Take tp or dp, or phase prefill."))
    elif layout.cp > (new := workload.context - workload.cached):
        rule = f"cuts a prompt of {new} new token{'s' * (new > 1)}"
        faults.append(Fault("layout.cp", layout.cp, rule, "Take at most that many."))
    heads = model.attention_heads
    if heads and heads % layout.tp:
        cure = f"tp {max(n for n in range(1, layout.tp) if heads % n == 0)} would do."
        faults.append(Fault("layout.tp", layout.tp, f"does not divide the {heads} attention heads", cure))
    if layout.redundant and not model.is_moe:
        faults.append(Fault("layout.redundant", layout.redundant, f"{model.name} has no experts", "Leave it out."))
    most = model.n_experts * (layout.ep - 1)
    if model.is_moe and layout.redundant > most:
        rule = f"is more than every GPU holding every expert, {most}"
        faults.append(Fault("layout.redundant", layout.redundant, rule, "Take fewer."))
    if faults:
        raise InputError(*faults)


def _too_many(layout: Layout, fabric: Fabric, layers: int) -> Fault:
    """Say what of a layout the graph has room for."""
    of = f"ep {layout.ep} x pp {layout.pp}" if layout.stage == layout.ep else f"{layout.stage} GPUs x pp {layout.pp}"
    rule = f"needs {layout.gpus} GPUs and the graph has {fabric.n_ranks}"
    size = int(fabric.domain_sizes.max())
    would = [f"{-(-layout.gpus // size)} domains of {size}"] if layout.pp <= layers else []
    if fabric.n_ranks >= layout.stage:
        would.append(f"pp {min(layers, fabric.n_ranks // layout.stage)}")
    elif layout.pp == 1 and layout.dp is None and layout.tp * layout.cp <= fabric.n_ranks:
        would.append(f"ep {fabric.n_ranks // (layout.tp * layout.cp) * layout.tp * layout.cp}")
    return Fault("layout", of, rule, f"{' or '.join(would)} would do." if would else "Take fewer GPUs a stage.")


def drafting_faults(model: Model, workload: Workload) -> list[Fault]:
    """Return what keeps a model from guessing tokens as the workload asks."""
    if not workload.draft or workload.drafter != "mtp" or model.mtp_layers:
        return []
    rule = f"{model.name} has no multi-token-prediction layer"
    return [Fault("workload.drafter", "mtp", rule, "Take drafter free, which costs nothing.")]
