"""What did the subnet manager decide? OpenSM's forwarding tables in every form, and its list of links."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from topo._errors import Fault, InputError
from topo.readers._ib_graph import reading_of
from topo.readers._infiniband import End, Listing, Wiring, guid_text, rate_of
from topo.readers._reading import Reader, Reading, Source, Tables

__all__ = ["READERS"]

#: Unicast lids [0x0-0x2c] of switch Lid 2 guid 0x0000000000200000 ('spine01'):
_LFT = re.compile(
    r"\s*Unicast lids \[.*?\] of switch\b.*?\bguid\s+(?P<guid>0x[0-9a-f]+)\s*(?:\('?(?P<name>.*?)'?\))?:?\s*",
    re.IGNORECASE,
)
#: osm_ucast_mgr_dump_ucast_routes: Switch 0x0000000000200000
_FDB = re.compile(r".*dump_ucast_routes:\s*Switch\s+(?P<guid>0x[0-9a-f]+)\s*", re.IGNORECASE)
#: 0x0001 005 : (Channel Adapter portguid 0x0000000000100001: 'node001')
_ROW = re.compile(
    r"\s*(?P<lid>0x[0-9a-f]{4,})\s*:?\s+(?P<port>\d{3})\b"
    r"(?:[^'(]*?\(?\s*(?P<kind>Switch|[\w ]+?) portguid (?P<guid>0x[0-9a-f]{16})\b(?:: '(?P<name>.*)')?)?.*",
    re.IGNORECASE,
)
_NO_ROUTE = re.compile(r"\s*0x[0-9a-f]{4,}\s*:?\s+(UNREACHABLE|path unknown).*", re.IGNORECASE)
_END = re.compile(r"\s*(?P<count>\d+)\s+(?P<valid>valid\s+)?lids dumped\s*", re.IGNORECASE)
_MULTICAST = re.compile(r"\s*Multicast mlids \[", re.IGNORECASE)
#: { CA-SM Ports:01 SystemGUID:.. NodeGUID:.. PortGUID:.. VenID:.. DevID:.. Rev:.. {node001} LID:0001 PN:01 }
_SIDE = (
    r"\{{\s*(?P<{0}kind>CA|SW|Rt)\S*\s+Ports:(?P<{0}ports>[0-9a-f]+)\s.*?NodeGUID:(?P<{0}node>[0-9a-f]+)\s+PortGUID:(?P<{0}guid>[0-9a-f]+)"
    r".*?\{{(?P<{0}name>.*?)\}}\s+LID:(?P<{0}lid>[0-9a-f]+)\s+PN:(?P<{0}port>[0-9a-f]+)\s*\}}"
)
_LINK = re.compile(
    r"\s*"
    + _SIDE.format("")
    + r"\s*"
    + _SIDE.format("far_")
    + r"\s*PHY=(?P<width>\S+)\s+LOG=(?P<state>\w+)\s+SPD=(?P<speed>\S+)\s*",
    re.IGNORECASE,
)
#: LIDs from here on are multicast groups.
_MULTICAST_LID = 0xC000
#: What a switch holds for a LID it has no route to.
_NO_PORT = 255


@dataclass
class _Dump:
    """Tables while they are read; `here` is the switch of the block, `fresh` the LIDs of it so far."""

    source: Source
    tables: Tables = field(default_factory=lambda: Tables("", {}))
    here: str | None = None
    fresh: set[int] = field(default_factory=set)
    switches: dict[str, str] = field(default_factory=dict)
    last: int = 0
    shuffled: bool = False
    notes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def fault(self, line: int, value: object, rule: str, cure: str = "Take one of the two out.") -> None:
        """Add what is wrong with a line."""
        self.faults.append(Fault(f"line {line}", value, rule, cure, self.source.file))


def _read_tables(source: Source) -> Reading:
    dump = _Dump(source)
    without_route = 0
    for number, line in enumerate(source.lines, 1):
        if head := _LFT.fullmatch(line) or _FDB.fullmatch(line):
            _open(dump, head, number)
        elif _MULTICAST.match(line):
            dump.here = None
            dump.notes.append(f"multicast tables from line {number} on are not read")
        elif row := _ROW.fullmatch(line):
            _row(dump, row, number)
        elif _NO_ROUTE.fullmatch(line):
            without_route += 1
        elif end := _END.fullmatch(line):
            _close(dump, end, number)
        elif re.match(r"\s*0x[0-9a-f]|.*(Unicast lids|ucast_routes)", line, re.IGNORECASE):
            _unread(dump, line, number)
    return _finish(dump, without_route)


def _open(dump: _Dump, head: re.Match[str], number: int) -> None:
    found = head.groupdict()
    dump.here, dump.fresh, dump.last = guid_text(found["guid"]), set(), 0
    if dump.here in dump.tables.next_port:
        dump.notes.append(f"the tables of {dump.here} are there again from line {number} on")
    dump.tables.next_port.setdefault(dump.here, {})
    dump.tables.names[dump.here] = found.get("name") or dump.tables.names.get(dump.here, "")


def _row(dump: _Dump, row: re.Match[str], number: int) -> None:
    lid, port = int(row["lid"], 16), int(row["port"])
    if lid >= _MULTICAST_LID and dump.here is None:
        return
    if dump.here is None or not 0 < lid < _MULTICAST_LID or port > _NO_PORT:
        known = "no switch is named before it" if dump.here is None else "a LID is 1 to 0xbfff, a port 0 to 254"
        dump.fault(number, row[0].strip()[:60], known, "Give the whole dump.")
        return
    if port == _NO_PORT:
        return
    if lid < dump.last and not dump.shuffled:
        dump.shuffled = True
        dump.notes.append(f"line {number}: LIDs are out of order, so lines may stand under another switch's name")
    dump.fresh.add(lid)
    dump.last = lid
    was = dump.tables.next_port[dump.here].setdefault(lid, port)
    if was != port:
        dump.fault(number, f"LID {lid} port {port}", f"contradicts port {was} in the same switch before")
    owner = (guid_text(row["guid"] or ""), row["name"] or "")
    if (row["kind"] or "").lower() == "switch":
        dump.switches.setdefault(*owner)
    if port == 0 and not owner[0]:
        owner = (dump.here, dump.tables.names[dump.here])
    if owner[0] and dump.tables.lids.setdefault(lid, owner)[0] != owner[0]:
        dump.fault(number, owner[0], f"contradicts {dump.tables.lids[lid][0]} as owner of LID {lid} before")


def _close(dump: _Dump, end: re.Match[str], number: int) -> None:
    """Check the count of ibroute; OpenSM's own dump states the highest LID there."""
    if dump.here is not None and end["valid"] and int(end["count"]) != len(dump.fresh):
        rule = f"says how many LIDs the block has, and it has {len(dump.fresh)}"
        dump.fault(number, end[0].strip(), rule, "Give the whole dump.")


def _unread(dump: _Dump, line: str, number: int) -> None:
    if any(rest.strip() for rest in dump.source.lines[number:]):
        dump.fault(number, line.strip()[:60], "cannot be read as an entry", "Restore the line, or take it out.")
    else:
        dump.notes.append(f"line {number}, the last, is cut and left out: {line.strip()!r}")


def _finish(dump: _Dump, without_route: int) -> Reading:
    tables, notes = dump.tables, dump.notes
    if not dump.faults and not any(tables.next_port.values()):
        dump.fault(1, "forwarding tables", "hold no entry", "Give the whole dump.")
    if dump.faults:
        raise InputError(*dump.faults)
    lids = {lid for row in tables.next_port.values() for lid in row}
    untold = [name or guid for guid, name in dump.switches.items() if guid not in tables.next_port]
    if untold:
        notes.append(f"{len(untold)} switches have no tables in the file (is it cut?): {', '.join(untold[:3])}")
    short = [guid for guid, row in tables.next_port.items() if len(row) < len(lids)]
    if short:
        shown = ", ".join(tables.names[guid] or guid for guid in short[:3])
        missing = sum(len(lids) - len(tables.next_port[guid]) for guid in short)
        which = f"{len(short)} of {len(tables.next_port)} switches"
        notes.append(f"{which} lack {missing} routes to some of the {len(lids)} LIDs: {shown}")
    if without_route:
        notes.append(f"{without_route} entries are UNREACHABLE")
    notes.append(
        "routing engine not stated in the file; the tables are joined to a fabric by GUIDs, LIDs and port numbers"
    )
    return Reading("opensm-lfts", None, tuple(notes), tables)


def _read_links(source: Source) -> Reading:
    wiring = Wiring("opensm-subnet", source)
    for number, line in enumerate(source.lines, 1):
        found = _LINK.fullmatch(line)
        if found:
            near, far = (_side(wiring, found, side, number) for side in ("", "far_"))
            wiring.listings.append(Listing(near, far, rate_of(found["width"], found["speed"]), number))
        elif line.strip() and any(rest.strip() for rest in source.lines[number:]):
            wiring.fault(number, line.strip()[:60], "cannot be read as a link", "Restore the line, or take it out.")
        elif line.strip():
            wiring.notes.append(f"line {number}, the last, is cut and left out")
    return reading_of(wiring)


def _side(wiring: Wiring, found: re.Match[str], side: str, number: int) -> End:
    kind, key, lid = found[f"{side}kind"].upper(), guid_text(found[f"{side}node"]), int(found[f"{side}lid"], 16)
    known = {"lid": lid, "radix": int(found[f"{side}ports"], 16)} if kind != "CA" else {}
    device = wiring.see(key, kind, found[f"{side}name"].strip(), number, listed=not side, guid=key, **known)
    end = End(key, int(found[f"{side}port"], 16))
    if kind == "CA":
        wiring.port(device, end.port, lid, guid_text(found[f"{side}guid"]), number)
    return end


READERS: tuple[Reader, ...] = (
    Reader("opensm-lfts", "forwarding tables of OpenSM (lfts dump, dump_lfts.sh, ibroute, opensm.fdbs)",
           lambda source: any(_LFT.fullmatch(line) or _FDB.fullmatch(line) for line in source.lines), _read_tables),
    Reader("opensm-subnet", "OpenSM's list of links (subnet.lst)",
           lambda source: any(map(_LINK.fullmatch, source.lines)), _read_links),
)  # fmt: skip
