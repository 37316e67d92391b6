"""What does a design file hold? A record per table; validation is `topo._validate`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator

from topo._errors import Fault, InputError
from topo.units import Kind, parse_quantity

__all__ = ["ANNOUNCED", "DEFAULTS", "FLOPS_KEYS", "Chip", "Design", "Overview", "ScaleOut", "ScaleUp"]


def _quantity(kind: Kind, *, zero: bool = False) -> BeforeValidator:
    return BeforeValidator(lambda text: parse_quantity(text, kind, zero=zero))


def _lanes(value: Any) -> int | tuple[int, ...]:
    """Return a count or counts; whatever is wrong is one fault."""
    counts = value if isinstance(value, list | tuple) else [value]
    if not counts or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in counts):
        rule = "must be a whole number, one or more, or a list of such"
        raise InputError(Fault("lanes", value, rule, "Write 18, or [5, 4, 4, 5]."))
    return tuple(counts) if isinstance(value, list | tuple) else int(counts[0])


Size = Annotated[float, _quantity("bytes")]
Bandwidth = Annotated[float, _quantity("bandwidth")]
Latency = Annotated[float, _quantity("seconds", zero=True)]
Rate = Annotated[float, _quantity("flops")]
Power = Annotated[float, _quantity("watts")]
Price = Annotated[float, _quantity("dollars")]
Count = Annotated[int, Field(strict=True, ge=1)]
Flag = Annotated[bool, Field(strict=True)]
Ratio = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
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

    `lanes` is the number of links per GPU over all planes of a switched domain (or one
    number per plane), and the number of links per pair in a full mesh. Prices [$] and
    powers [W] are of one switch chip and of one link's cable with its transceivers.
    """

    __pydantic_config__ = _STRICT
    shape: Name
    bandwidth: Bandwidth
    latency: Latency
    planes: Count = 1
    lanes: Annotated[int | tuple[int, ...] | None, PlainValidator(_lanes)] = None
    reduces: Flag = False
    multicasts: Flag = False
    switch_price: Price | None = None
    switch_power: Power | None = None
    cable_price: Price | None = None
    cable_power: Power | None = None


@dataclass(frozen=True)
class ScaleOut:
    """Table [scale_out]: NIC rate per GPU and direction [bytes/s], latency per link [s], unit prices and powers."""

    __pydantic_config__ = _STRICT
    bandwidth: Bandwidth
    latency: Latency
    shape: Name = "rail_optimised"
    radix: Annotated[int, Field(strict=True, ge=2)] = 64
    oversubscription: Ratio = 1.0
    nic: str = ""
    nic_price: Price | None = None
    nic_power: Power | None = None
    switch_price: Price | None = None
    switch_power: Power | None = None
    cable_price: Price | None = None
    cable_power: Power | None = None


@dataclass(frozen=True)
class Design:
    """One rack design: what `topo.load` builds a graph from.

    Attributes
    ----------
    design, chip, scale_up, scale_out : records
        The tables of the file. Without `scale_out` only one domain can be built.
    sources : dict
        Dotted key -> where its value comes from. A text that starts with "assumed" marks
        a value nobody published.
    """

    __pydantic_config__ = _STRICT
    design: Overview
    chip: Chip
    scale_up: ScaleUp
    scale_out: ScaleOut | None = None
    sources: dict[str, str] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
