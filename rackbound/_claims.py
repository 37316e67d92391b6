"""What is a claim of the lecture, on what is it tried, and when does it hold?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from collectives import plain
from serving import ChipNumbers, Layout, Model, Step, Workload, chip_numbers, dtype_bytes, step
from serving.laws import drain_seconds
from topo import Design, Fabric, list_designs, load, load_design
from topo.units import format_quantity

__all__ = ["LOOSE", "NEAR", "Case", "Claim", "Told", "tell"]

#: A figure from a blackboard holds within this factor, and is loose within that one.
NEAR, LOOSE = 1.2, 3.0

Verdict = Literal["true", "loose", "false", "not told"]


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

    def step(self, stages: int, *, workload: Workload | None = None, in_flight: int | None = None) -> Step:
        """Return a step in so many stages, a domain each."""
        layout = Layout(self.width, pp=stages, micro_batches=in_flight)
        return step(self.racks(stages), self.model, workload or self.workload, layout=layout)

    def lacks(self, needs: str) -> str:
        """Say what of the things a claim needs is not there."""
        kinds = {
            "experts": (self.model.is_moe, f"{self.model.name} has no experts"),
            "scale-out": (self.shown.scale_out is not None, f"{self.shown.design.name} states no scale-out"),
            "cache": (self.kv > 0, f"{self.model.name} keeps no cache that grows"),
        }
        asked = [kinds.get(word, (word == self.model.name, f"it is said of {word}")) for word in needs.split()]
        return "; ".join(why for there, why in asked if not there)


@dataclass(frozen=True)
class Claim:
    """One number of the lecture and the function that gives ours.

    Attributes
    ----------
    number : int
        Of the list of claims; several rows may bear one.
    at : str
        Time in the video.
    statement : str
        In our words.
    said : float or (float, float)
        The lecture's number, or from where to where; "at least" and "at most" have no end or begin at 0.
    ours : callable
        Our number of a case.
    note : callable
        Why it holds or not, in one sentence or two.
    unit : str
        A kind of quantity, or a word.
    needs : str
        "experts", "scale-out", "cache", or the model it is said of.
    """

    number: int
    at: str
    statement: str
    said: float | tuple[float, float]
    ours: Callable[[Case], float]
    note: Callable[[Case], str]
    unit: str = ""
    needs: str = ""

    @property
    def low(self) -> float:
        """Least value the lecture allows."""
        return self.said[0] if isinstance(self.said, tuple) else self.said

    @property
    def high(self) -> float:
        """Largest value the lecture allows."""
        return self.said[1] if isinstance(self.said, tuple) else self.said


@dataclass(frozen=True)
class Told:
    """A claim, tried.

    Attributes
    ----------
    number : int
        As in `Claim`.
    at, statement, unit : str
        As in `Claim`.
    low, high : float
        The lecture's number, from where to where.
    ours : float or None
        Ours; None where it cannot be told.
    verdict : str
        "true", "loose", "false" or "not told".
    why : str
        The sentence why.
    """

    number: int
    at: str
    statement: str
    unit: str
    low: float
    high: float
    ours: float | None
    verdict: Verdict
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; an infinite number is the word."""
        result: dict[str, Any] = plain(self)
        return result

    @property
    def lecture_text(self) -> str:
        """The lecture's number as it is printed."""
        if self.low == self.high:
            return shown(self.low, self.unit)
        if math.isinf(self.high):
            return f"at least {shown(self.low, self.unit)}"
        if self.low == 0:
            return f"at most {shown(self.high, self.unit)}"
        return f"{shown(self.low, self.unit)} to {shown(self.high, self.unit)}"

    @property
    def our_text(self) -> str:
        """Our number as it is printed."""
        return "-" if self.ours is None else shown(self.ours, self.unit)


def shown(value: float, unit: str) -> str:
    """Return a number of the table with its unit.

    Examples
    --------
    >>> shown(2e14, "tokens"), shown(0.0248, "seconds"), shown(0.25, "%"), shown(1668.2, "tokens")
    ('200 T tokens', '24.8 ms', '25 %', '1,668 tokens')
    """
    if math.isinf(value):
        return "no limit"
    if unit in ("seconds", "bytes"):
        return format_quantity(value, unit, 3)  # type: ignore[arg-type]
    if unit == "%":
        return f"{100 * value:.3g} %"
    scale, letter = next((row for row in ((1e12, " T"), (1e9, " B"), (1e6, " M")) if value >= row[0]), (1.0, ""))
    digits = f"{value / scale:.3g}" if letter or value < 1000 else f"{value:,.0f}"
    return f"{digits}{letter} {unit}".strip()


def tell(claim: Claim, case: Case) -> Told:
    """Try a claim on a case."""
    missing = case.lacks(claim.needs)
    ours = None if missing else float(claim.ours(case))
    return Told(
        claim.number, claim.at, claim.statement, claim.unit, claim.low, claim.high, ours,
        "not told" if ours is None else judged(claim.low, claim.high, ours), missing or claim.note(case),
    )  # fmt: skip


def judged(low: float, high: float, ours: float) -> Verdict:
    """Return whether a number holds: a single one within `NEAR`, a range as it stands; loose within `LOOSE`.

    Examples
    --------
    >>> (
    ...     judged(20, 20, 24),
    ...     judged(20, 20, 25),
    ...     judged(20, 20, 70),
    ...     judged(1, 2, 2.1),
    ...     judged(1, float("inf"), 5),
    ... )
    ('true', 'loose', 'false', 'loose', 'true')
    """
    short = (low / ours if ours else math.inf) if low else 0.0
    over = ours / high if math.isfinite(high) else 0.0
    if max(short, over) <= (NEAR if low == high else 1.0):
        return "true"
    return "loose" if max(short, over) <= LOOSE else "false"
