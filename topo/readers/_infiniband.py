"""What do the files of InfiniBand tools have in common? Devices, ports, cables and rates."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from topo._errors import Fault
from topo.readers._reading import Source

__all__ = ["Device", "End", "Listing", "Wiring", "bandwidth_of", "guid_text", "rate_of"]

#: Speed -> (signalling rate, data rate) of one lane [Gb/s]: 8b/10b up to QDR, then 64b/66b, with FEC from HDR on.
_SPEEDS: dict[str, tuple[float, float]] = {
    "SDR": (2.5, 2.0), "DDR": (5.0, 4.0), "QDR": (10.0, 8.0), "FDR10": (10.3125, 10.0),
    "FDR": (14.0625, 14.0625 * 64 / 66), "EDR": (25.78125, 25.0), "HDR": (53.125, 50.0), "NDR": (106.25, 100.0),
    "XDR": (212.5, 200.0),
}  # fmt: skip


class End(NamedTuple):
    """A port of a device: key of the device, number of the port."""

    device: str
    port: int

    def __str__(self) -> str:
        return f"{self.device} port {self.port}"


class Listing(NamedTuple):
    """A cable as one line lists it; `rate` like "4xEDR", None where the line does not say."""

    near: End
    far: End
    rate: str | None
    line: int


@dataclass
class Device:
    """A node of the fabric while a file is read.

    `kind` is "CA", "SW" or "RT"; `guid` that of the node, "" where the file has none; `lid` of a
    switch; `ports` of a CA: number -> (LID or None, port GUID or "").
    """

    kind: str
    name: str
    guid: str = ""
    lid: int | None = None
    radix: int | None = None
    listed: bool = False
    ports: dict[int, tuple[int | None, str]] = field(default_factory=dict)


@dataclass
class Wiring:
    """What a reader found: devices by key, cables as listed, and what there is to say."""

    kind: str
    source: Source
    devices: dict[str, Device] = field(default_factory=dict)
    listings: list[Listing] = field(default_factory=list)
    down: int = 0
    default_rate: str | None = None
    renamed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def fault(self, line: int, value: object, rule: str, cure: str) -> None:
        """Add what is wrong with a line."""
        self.faults.append(Fault(f"line {line}", value, rule, cure, self.source.file))

    def see(self, key: str, kind: str, name: str, line: int, *, listed: bool = False, **known: Any) -> Device:
        """Return the device of a key, with what this line adds; its own block has the last word on its name."""
        device = self.devices.setdefault(key, Device(kind, name))
        if device.kind != kind:
            self.fault(line, f"{kind} {key}", f"is a {device.kind} elsewhere in the file", "Take one of the two out.")
        if name and device.name and name != device.name:
            self.renamed.setdefault(key, f"line {line} calls {device.name!r} {name!r}")
        if listed and not device.listed:
            device.name, device.listed = name or device.name, True
        device.name = device.name or name
        for what, value in known.items():
            before = getattr(device, what)
            if value and before and before != value:
                rule = f"gives {key} another {what} than {before} elsewhere in the file"
                self.fault(line, value, rule, "Take one of the two out.")
            elif value:
                setattr(device, what, value)
        return device

    def port(self, device: Device, number: int, lid: int | None, guid: str, line: int) -> None:
        """Note LID and GUID of a CA's port."""
        was_lid, was_guid = device.ports.get(number, (None, ""))
        if (lid and was_lid and lid != was_lid) or (guid and was_guid and guid != was_guid):
            rule = f"gives port {number} of {device.name!r} another LID or GUID than ({was_lid}, {was_guid or 'none'})"
            self.fault(line, (lid, guid), rule, "Take one of the two out.")
        device.ports[number] = (was_lid or lid or None, was_guid or guid)


def guid_text(text: str) -> str:
    """Return a GUID as "0x" and 16 hex digits, whatever its case, prefix and leading zeros; "" if it is none.

    Examples
    --------
    >>> guid_text("2c9"), guid_text("0xF45214000005A570"), guid_text("leaf1")
    ('0x00000000000002c9', '0xf45214000005a570', '')
    """
    return f"0x{int(text, 16):016x}" if re.fullmatch(r"(?:0[xX])?[0-9a-fA-F]{1,16}", text) else ""


def rate_of(width: str, speed: str) -> str | None:
    """Return "4xEDR" for a width and a speed by name or by signalling rate in Gb/s; None if not known.

    Examples
    --------
    >>> rate_of("4X", "25.78125"), rate_of("4x", "fdr10"), rate_of("4x", "???")
    ('4xEDR', '4xFDR10', None)
    """
    lanes = re.fullmatch(r"(\d+)x?", width, re.IGNORECASE)
    name: str | None = speed.upper()
    if re.fullmatch(r"\d+(\.\d+)?", speed):
        name = next((known for known, (rate, _) in _SPEEDS.items() if abs(rate - float(speed)) < 0.01 * rate), None)
    return f"{int(lanes[1])}x{name}" if lanes and int(lanes[1]) and name in _SPEEDS else None


def bandwidth_of(rate: str) -> float:
    """Return data bytes/s per direction of "4xEDR".

    Examples
    --------
    >>> [8 * bandwidth_of(rate) / 1e9 for rate in ("4xSDR", "4xQDR", "4xFDR10", "2xHDR", "4xXDR")]
    [8.0, 32.0, 40.0, 100.0, 800.0]
    """
    width, _, speed = rate.partition("x")
    return int(width) * _SPEEDS[speed][1] * 1e9 / 8
