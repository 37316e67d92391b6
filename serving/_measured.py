"""What was run when a published serving benchmark measured a time per token?"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass, replace
from functools import cache

from serving._layout import Layout
from serving._model import Model
from serving._reading import load_model
from serving._workload import Workload

__all__ = ["Served", "read_served"]

#: Parts a quantised checkpoint leaves at 16 bits; NVFP4 checkpoints of MoE models also attention.
_PLAIN = ("router", "embedding", "head")


@dataclass(frozen=True)
class Served:
    """One measured time per output token, and the deployment it was measured on.

    Attributes
    ----------
    id, system, engine : str
        Row, design or alias, engine with its release.
    configuration : tuple
        The deployment: rows of one differ in lengths and concurrency only.
    model, layout : records
        Weights in the types the row names.
    sequences, prompt, output : int
        In flight on all GPUs; tokens of each prompt; tokens generated.
    seconds : float
        Mean time between two tokens of a sequence, other prompts' prefill included [s].
    told : bool
        Whether the row says how the GPUs were used; else `layout` is the widest expert parallelism.
    """

    id: str
    system: str
    engine: str
    configuration: tuple[str | int, ...]
    model: Model
    layout: Layout
    sequences: int
    prompt: int
    output: int
    seconds: float
    told: bool

    @property
    def per_replica(self) -> float:
        """Sequences in flight on an attention replica."""
        return self.sequences / self.layout.replicas

    @property
    def decode(self) -> Workload:
        """The decode step, sequences half way through their output."""
        return Workload(context=self.prompt + self.output // 2, batch=self.sequences, kv_dtype="fp8")

    @property
    def prefill(self) -> Workload:
        """The pass of one prompt on every replica."""
        return Workload(phase="prefill", context=self.prompt, batch=self.layout.replicas, kv_dtype="fp8")


def read_served(path: str | os.PathLike[str]) -> tuple[Served, ...]:
    """Return the rows of a table of measured times per output token (`tpot_ms`); its other metrics are passed over."""
    with open(path, encoding="utf-8", newline="") as file:
        return tuple(_served(row) for row in csv.DictReader(file) if row["metric"] == "tpot_ms")


def _served(row: dict[str, str]) -> Served:
    said = dict(pair.split("=", 1) for pair in row["params"].split(";"))
    tp, ep, dp, concurrency = (int(said[key]) for key in ("tp", "ep", "attention_dp", "concurrency"))
    # Of a rack the GPUs of all pools are given, prefill's too, as if they were one tensor-parallel group.
    told = "NVL72" not in row["system"]
    # With data-parallel attention tp is 1 or the GPUs, and ep or dp may be a product with it; concurrency is per dp.
    gpus = tp if dp == 1 or tp > 1 else ep
    name = row["model"].rpartition("/")[2].lower()
    model = _model("deepseek-v3" if name == "deepseek-r1" else name, said["precision"])
    layout = Layout(gpus) if dp > 1 or not told else Layout(gpus if model.is_moe else 1, tp=gpus)
    return Served(
        id=row["id"], system=row["system"], engine=said["backend"], model=model, layout=layout,
        configuration=(row["system"], model.name, said["backend"].split()[0], said["precision"], gpus, dp > 1, ep > 1),
        sequences=concurrency * dp, prompt=int(said["isl"]), output=int(said["osl"]),
        seconds=float(row["value"]) / 1e3, told=told,
    )  # fmt: skip


@cache
def _model(name: str, precision: str) -> Model:
    """Return a model with weights of the row's precision; gpt-oss is published in one."""
    model = load_model(name)
    if model.weight_dtype == "mxfp4":
        return model
    if precision == "fp8":
        return replace(model, weight_dtype="fp8", other_dtype="bf16", unquantised=_PLAIN)
    unquantised = ("attention", *_PLAIN) if model.is_moe else _PLAIN
    return replace(model, weight_dtype="nvfp4", other_dtype="bf16", unquantised=unquantised)
