"""What does `iblinkinfo` say? Its blocks per node, and its one line per port (-l); LIDs tell the ends apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from topo.readers._ib_graph import reading_of
from topo.readers._ib_names import AGGREGATION, host_name
from topo.readers._infiniband import End, Listing, Wiring, guid_text, rate_of
from topo.readers._reading import Reader, Reading, Source

__all__ = ["READERS"]

_HEADER = re.compile(
    r"\s*(?P<kind>CA|Switch|Router)\s*:?\s+(?:(?P<guid>0x[0-9a-f]+)\s+)?(?P<name>.*?)\s*:\s*", re.IGNORECASE
)
_ROW = re.compile(
    r'\s*(?:(?P<guid>0x[0-9a-f]+)\s+)?(?:"(?P<name>[^"]*)"\s+)?(?P<lid>\d+)\s+(?P<port>\d+)\s*\[\s*\d*\s*\]\s*'
    r"<?==\((?P<link>[^)]*)\)==>\s*(?:(?P<far_guid>0x[0-9a-f]+)\s+)?(?:(?P<far_lid>\d+)\s+(?P<far_port>\d+))?\s*"
    r'\[\s*\d*\s*\]\s*"(?P<far_name>.*)"\s*\(.*',
    re.IGNORECASE,
)
_LINK = re.compile(
    r"\s*(?P<width>\d+X)\s+(?P<speed>[\w.]+)(?:\s*Gbps)?\s+(?P<state>\w+)\s*/\s*(?P<physical>\w+)\s*", re.IGNORECASE
)
_KINDS = {"ca": "CA", "switch": "SW", "router": "RT"}
#: What switches are called before and after somebody names them.
_SWITCHES = re.compile(r"^\w+;|switch|infiniscale|quantum|\bM?(SX|SB|QM)\d{4}", re.IGNORECASE)


@dataclass(frozen=True)
class _Port:
    """A row: the node it belongs to, as far as known, and the other end; `far` is None where the port is down."""

    line: int
    kind: str
    name: str
    guid: str
    end: tuple[int, int]
    far: tuple[int, int] | None
    far_name: str
    far_guid: str
    port_guid: str
    rate: str | None
    active: bool


@dataclass(frozen=True)
class _Block:
    """The line above ports that names their node."""

    kind: str = ""
    name: str = ""
    guid: str = ""


def _read(source: Source) -> Reading:
    wiring = Wiring("iblinkinfo", source)
    rows = _rows(wiring)
    owner = _owners(wiring, rows)
    for row in rows:
        if row.far is not None:
            near, far = (End(owner[lid], port) for lid, port in (row.end, row.far))
            wiring.listings.append(Listing(near, far, row.rate, row.line))
            for end, lid, guid in ((near, row.end[0], row.port_guid), (far, row.far[0], row.far_guid)):
                if wiring.devices[end.device].kind == "CA":
                    wiring.port(wiring.devices[end.device], end.port, lid, guid, row.line)
    return reading_of(wiring)


def _rows(wiring: Wiring) -> list[_Port]:
    """Return the ports, each with what the line above its block says of its node."""
    block = _Block()
    rows: list[_Port] = []
    bare = 0
    lines = wiring.source.lines
    for number, line in enumerate(lines, 1):
        header, found = _HEADER.fullmatch(line), _ROW.fullmatch(line)
        if header:
            guid = guid_text(header["guid"] or "")
            block = _Block(_KINDS[header["kind"].lower()], _clean(header["name"]), guid)
        elif found:
            bare += found["name"] is None and not block.kind
            rows.append(_row(found, block, number))
        elif line.strip() == "...":
            wiring.notes.append(f"line {number} is '...': something was cut out there")
        elif "==" in line and any(rest.strip() for rest in lines[number:]):
            cure = "Restore the line, or take it out."
            wiring.fault(number, line.strip()[:80], "cannot be read as a port and its link", cure)
        elif line.strip() and number == len(lines):
            wiring.notes.append(f"line {number}, the last, is cut and left out: {line.strip()[:40]!r}")
    wiring.down += sum(row.far is None for row in rows)
    idle = sum(row.far is not None and not row.active for row in rows)
    if bare:
        wiring.notes.append(f"{bare} ports stand without the line that names their node: taken by LID")
    if idle:
        wiring.notes.append(f"{idle} ports are up but not Active (no subnet manager yet?): taken")
    return rows


def _row(found: re.Match[str], block: _Block, number: int) -> _Port:
    """Return a port; a line that names its node itself (-l) states the node's GUID, others an adapter port's."""
    own = found["name"] is not None
    link = _LINK.fullmatch(found["link"])
    state = link["state"].lower() if link else "down"
    up = state != "down" and found["far_lid"] is not None
    guid = guid_text(found["guid"] or "")
    kind = "" if own else block.kind or ("CA" if guid else "SW")
    return _Port(
        number, kind, _clean(found["name"]) if own else block.name,
        guid or ("" if own or kind == "CA" else block.guid), (int(found["lid"]), int(found["port"])),
        (int(found["far_lid"]), int(found["far_port"])) if up else None, _clean(found["far_name"]),
        guid_text(found["far_guid"] or ""), "" if own else guid,
        rate_of(link["width"], link["speed"]) if link else None, state == "active",
    )  # fmt: skip


def _clean(name: str | None) -> str:
    return " ".join((name or "").split())


def _owners(wiring: Wiring, rows: list[_Port]) -> dict[int, str]:
    """Return LID -> device key. A LID has one owner; ports that are down may have none."""
    owner: dict[int, str] = {}
    used = _used_ports(rows)
    known = [row for row in rows if row.far or row.kind == "SW"]
    names = _names(wiring, known)
    adapters: dict[tuple[str, object], str] = {}
    for row in known:
        name = row.name or names.get(row.end[0], "")
        kind = row.kind or _kind(name, used[row.end[0]], False)
        key = row.guid or f"LID {row.end[0]}"
        if kind == "CA":
            base = int(row.guid, 16) - row.end[1] if row.guid else row.end[0]
            key = adapters.get((name, row.guid)) or adapters.get((name, base)) or key
            adapters |= {(name, row.guid): key, (name, base): key} if row.guid else {}
        _own(wiring, owner, row.end[0], key, row.line)
        stated: dict[str, Any] = {} if kind == "CA" else {"guid": row.guid, "lid": row.end[0]}
        wiring.see(key, kind, name, row.line, listed=True, **stated)
    _add_strangers(wiring, owner, known, names, used)
    told = {owner[row.end[0]] for row in known if row.kind}
    unsure = [wiring.devices[key].name for key in dict.fromkeys(owner.values()) if key not in told]
    unsure = [name for name in unsure if not _telling(name) and not _SWITCHES.search(name)]
    if unsure:
        shown = ", ".join(unsure[:3])
        wiring.notes.append(f"{len(unsure)} nodes are taken as hosts or switches by their ports: {shown}")
    return owner


def _add_strangers(
    wiring: Wiring, owner: dict[int, str], known: list[_Port], names: dict[int, str], used: dict[int, set[int]]
) -> None:
    """Add the nodes that only their neighbours' ports tell of."""
    by_adapter = {row.far[0] for row in known if row.far and wiring.devices[owner[row.end[0]]].kind == "CA"}
    for row in known:
        if row.far and row.far[0] not in owner:
            lid = row.far[0]
            kind = _kind(row.far_name, used[lid], lid in by_adapter)
            owner[lid] = f"LID {lid}"
            stated: dict[str, Any] = {} if kind == "CA" else {"guid": row.far_guid, "lid": lid}
            wiring.see(owner[lid], kind, names[lid], row.line, **stated)


def _own(wiring: Wiring, owner: dict[int, str], lid: int, key: str, line: int) -> None:
    taken = owner.setdefault(lid, key)
    if lid == 0:
        cure = "Give the output of ibnetdiscover."
        wiring.fault(line, "LID 0", "tells no ends apart: no subnet manager gave out LIDs", cure)
    elif taken != key:
        rule = f"belongs to {taken} and to {key}"
        wiring.fault(line, f"LID {lid}", rule, "Give each subnet in a file of its own.")


def _names(wiring: Wiring, rows: list[_Port]) -> dict[int, str]:
    """Return LID -> name: what the node's own ports say, else what the ports wired to it say."""
    own = {row.end[0]: row.name for row in rows if row.name}
    names = dict(own)
    others = set()
    for row in rows:
        if row.far and names.setdefault(row.far[0], row.far_name) != row.far_name:
            if row.far[0] not in own:
                rule = f"is the name of LID {row.far[0]}, which is {names[row.far[0]]!r} elsewhere in the file"
                wiring.fault(row.line, row.far_name, rule, "Give each subnet in a file of its own.")
            others.add(f"{names[row.far[0]]!r} is {row.far_name!r} to its neighbour")
    wiring.notes += sorted(others)[:3]
    return names


def _used_ports(rows: list[_Port]) -> dict[int, set[int]]:
    used: dict[int, set[int]] = {}
    for row in rows:
        for lid, port in filter(None, (row.end, row.far)):
            used.setdefault(lid, set()).add(port)
    return used


def _kind(name: str, ports: set[int], by_ca: bool) -> str:
    """Return what a node is that no block tells about: by name, ports, and whether an adapter is wired to it."""
    if _telling(name):
        return "CA"
    return "SW" if by_ca or len(ports) > 2 or max(ports) > 2 or _SWITCHES.search(name) else "CA"


def _telling(name: str) -> bool:
    """Whether a name says that it is an adapter's."""
    return bool(host_name(name)[1] or AGGREGATION.search(name))


READERS: tuple[Reader, ...] = (
    Reader("iblinkinfo", "output of iblinkinfo (blocks, or one line a port with -l)",
           lambda source: any(map(_ROW.fullmatch, source.lines)), _read),
)  # fmt: skip
