"""What does a design file hold? A record per table; validation is `topo._validate`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator

from topo._errors import Fault, InputError
from topo.units import Kind, parse_quantity

__all__ = ["ANNOUNCED", "DEFAULTS", "FLOPS_KEYS", "Chip", "Design", "Overview", "ScaleOut", "ScaleUp", "Slices"]


def _quantity(kind: Kind, *, zero: bool = False) -> BeforeValidator:
    return BeforeValidator(lambda text: parse_quantity(text, kind, zero=zero))


def _lanes(value: Any) -> int | tuple[int, ...]:
    """Return a count or counts; whatever is wrong is one fault."""
    counts = value if isinstance(value, list | tuple) else [value]
    if not counts or any(isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= 10**9 for n in counts):
        rule = "must be a whole number, one or more, or a list of such"
        raise InputError(Fault("lanes", value, rule, "Write 18, or [5, 4, 4, 5]."))
    return tuple(counts) if isinstance(value, list | tuple) else int(counts[0])


def _one_or_many(read: Callable[[Any], float], rule: str, cure: str) -> PlainValidator:
    """Return what reads one value, or a list of them as a tuple."""

    def number(value: Any) -> float | tuple[float, ...]:
        if isinstance(value, list | tuple):
            if not value:
                raise InputError(Fault("list", value, rule, cure))
            return tuple(read(each) for each in value)
        return read(value)

    return PlainValidator(number)


def _ratio(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        rule = "must be a finite number above zero, or a list of such"
        raise InputError(Fault("oversubscription", value, rule, "Write 2.0, or [2.0, 1.5] for leaves and spines."))
    return float(value)


def _slot(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(Fault("off", value, "must be a whole number, zero or more", "Count slots from 0."))
    return value


Size = Annotated[float, _quantity("bytes")]
Bandwidth = Annotated[float, _quantity("bandwidth")]
Latency = Annotated[float, _quantity("seconds", zero=True)]
Rate = Annotated[float, _quantity("flops")]
Power = Annotated[float, _quantity("watts")]
Price = Annotated[float, _quantity("dollars")]
Count = Annotated[int, Field(strict=True, ge=1, le=10**9)]
#: Of planes, and of NICs and ports of one GPU: a list holds each of them.
Few = Annotated[int, Field(strict=True, ge=1, le=1024)]
Flag = Annotated[bool, Field(strict=True)]
Ratios = Annotated[
    float | tuple[float, ...], _one_or_many(_ratio, "must hold at least one number", "Write 2.0, or [2.0, 1.5].")
]
LinkBandwidth = Annotated[
    float | tuple[float, ...] | None,
    _one_or_many(lambda text: parse_quantity(text, "bandwidth"), "must hold at least one", "Give one per axis."),
]
Side = Annotated[int, Field(strict=True, ge=1)]
Name = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f\x7f]+$")]

#: Compute rates a chip may state, dense.
FLOPS_KEYS = ("bf16", "fp8", "fp4")
#: Used, and reported as assumed, where a file states no latency.
DEFAULTS: dict[str, str] = {"scale_up.latency": "0.5 us", "scale_out.latency": "0.8 us"}
#: First of the assumptions of a design whose status is "announced".
ANNOUNCED = "announced only: figures from announcements, not from a shipping part"
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Overview:
    """Table [design]: its name and how many GPUs one scale-up domain holds.

    `status` "announced" marks figures that come from announcements, not from a shipping part.
    """

    __pydantic_config__ = _STRICT
    name: Name
    domain_size: Count
    title: str = ""
    aliases: tuple[str, ...] = ()
    status: Literal["shipping", "announced"] = "shipping"
    gpus_per_host: Count | None = None
    domain_is_rack: Flag = False


@dataclass(frozen=True)
class Chip:
    """Table [chip]: HBM [bytes, bytes/s], dense compute rates by dtype [FLOP/s], power [W], price [$]."""

    __pydantic_config__ = _STRICT
    name: Name
    hbm_bytes: Size
    hbm_bandwidth: Bandwidth
    flops: dict[str, Rate]
    power: Power | None = None
    price: Price | None = None


@dataclass(frozen=True)
class ScaleUp:
    """Table [scale_up]: bandwidth per GPU and direction [bytes/s], latency per link [s].

    `link_bandwidth` is that of one link, or one per axis of a torus; a file states either,
    validation works out the other. `lanes` is the number of links per GPU over all planes
    of a switched domain (or one number per plane), and the number of links per pair in a
    full mesh. `off` names slots whose GPUs have no scale-up link. Prices [$] and powers
    [W] are of one switch chip and of one link's cable with its transceivers. `parameters`
    are the keys that only this shape takes.
    """

    __pydantic_config__ = _STRICT
    shape: Name
    latency: Latency
    bandwidth: Bandwidth = 0.0
    link_bandwidth: LinkBandwidth = None
    planes: Few = 1
    lanes: Annotated[int | tuple[int, ...] | None, PlainValidator(_lanes)] = None
    reduces: Flag = False
    multicasts: Flag = False
    off: tuple[Annotated[int, PlainValidator(_slot)], ...] = ()
    host_block: tuple[Side, ...] = ()
    switch_price: Price | None = None
    switch_power: Power | None = None
    cable_price: Price | None = None
    cable_power: Power | None = None
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ScaleOut:
    """Table [scale_out]: rate of one NIC per direction [bytes/s], latency per link [s].

    A GPU has `nics_per_gpu` NICs, or `gpus_per_nic` neighbours of a host share one. A NIC
    has `ports_per_nic` ports, which share its rate; port k of a domain goes to fabric
    plane k mod `planes`. `parameters` are the keys that only this fabric takes.
    """

    __pydantic_config__ = _STRICT
    bandwidth: Bandwidth
    latency: Latency
    shape: Name = "rail_optimised"
    radix: Annotated[int, Field(strict=True, ge=2, le=10**9)] = 64
    oversubscription: Ratios = 1.0
    nic: str = ""
    nics_per_gpu: Few = 1
    gpus_per_nic: Count = 1
    ports_per_nic: Few = 1
    planes: Few = 1
    pcie_bandwidth: Bandwidth | None = None
    levels: Annotated[int, Field(strict=True, ge=2, le=3)] | None = None
    nic_price: Price | None = None
    nic_power: Power | None = None
    switch_price: Price | None = None
    switch_power: Power | None = None
    cable_price: Price | None = None
    cable_power: Power | None = None
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def per_gpu(self) -> float:
        """Rate of a GPU's NICs, or its part of a shared one [bytes/s]."""
        return self.bandwidth * self.nics_per_gpu / self.gpus_per_nic

    @property
    def port_bandwidth(self) -> float:
        """Rate of one port and cable [bytes/s]."""
        return self.bandwidth / self.ports_per_nic

    @property
    def ratios(self) -> tuple[float, float]:
        """Oversubscription of leaves and of spines, which have none unless stated."""
        given = self.oversubscription
        leaf, *above = (given,) if isinstance(given, float) else given
        return leaf, above[0] if above else 1.0


@dataclass(frozen=True)
class Slices:
    """Table [slices]: which tori of these chips can be asked for by name, as ``tpu-v5p-4x4x8``.

    An axis closes to a ring where its side is a multiple of `wrap_multiple`; with
    `wrap_whole` only if every side is one. `twisted` slices are those of n x n x 2n and n x
    2n x 2n chips.
    """

    __pydantic_config__ = _STRICT
    axes: Count
    wrap_multiple: Count
    most_chips: Count
    wrap_whole: Flag = False
    twisted: Flag = False


@dataclass(frozen=True)
class Design:
    """One rack design: what `topo.load` builds a graph from.

    Attributes
    ----------
    design, chip, scale_up, scale_out, slices : records
        The tables of the file. Without `scale_out` only one domain can be built, without
        `slices` nothing is known by ``name-4x4x8``.
    sources : dict
        Dotted key -> where its value comes from. A text that starts with "assumed" marks
        a value nobody published.
    """

    __pydantic_config__ = _STRICT
    design: Overview
    chip: Chip
    scale_up: ScaleUp
    scale_out: ScaleOut | None = None
    slices: Slices | None = None
    sources: dict[str, str] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
