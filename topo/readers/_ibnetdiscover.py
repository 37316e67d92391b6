"""What does `ibnetdiscover` say? Its topology listing, and its list of ports (-p)."""

from __future__ import annotations

import re

from topo.readers._ib_graph import reading_of
from topo.readers._infiniband import End, Listing, Wiring, guid_text, rate_of
from topo.readers._reading import Foreign, Reader, Reading, Source

__all__ = ["FOREIGN", "HEADER", "READERS", "is_topology", "read_blocks"]

_KINDS = {"switch": "SW", "ca": "CA", "hca": "CA", "rt": "RT", "s": "SW", "h": "CA", "r": "RT"}
#: Switch	36 "S-f452140000058af0"		# "MF0;ib3:SX6036/U1" enhanced port 0 lid 65 lmc 0
HEADER = re.compile(r'\s*(?P<kind>Switch|H?Ca|Rt)\s+(?P<ports>\d+)\s+"(?P<id>[^"]+)"(?P<rest>.*)', re.IGNORECASE)
#: [1][ext 5](24be050000010031) 	"S-f452140000058af0"[26][ext 5](guid)	# lid 1 lmc 0 "name" lid 2 4xFDR10
_PORT = re.compile(
    r"\s*\[(?P<port>\d+)\](?:\[ext \d+\])?\s*(?:\((?P<guid>[^)]*)\))?\s*"
    r'"(?P<id>[^"]+)"\s*\[(?P<far>\d+)\](?:\[ext \d+\])?\s*(?:\((?P<far_guid>[^)]*)\))?(?P<rest>.*)'
)
#: # lid 121 lmc 0 "MF0;ib5:SX6036/U1" lid 128 4xQDR s=4 w=2
_COMMENT = re.compile(
    r'[^#]*#\s*(?:lid\s+(?P<lid>\d+)[^"]*)?"(?P<name>.*)"(?:.*?\blid\s+(?P<far_lid>\d+))?(?P<tail>.*)', re.IGNORECASE
)
_RATE = re.compile(r"\b(\d+)x\s*([A-Za-z]+\d*)\b")
#: Options of an ibsim net file: width, and speed as InfiniBand codes it.
_OPTION = re.compile(r"\b([ws])=(\d+)")
_CODES = {"1": "SDR", "2": "DDR", "4": "QDR"}
#: CA   134  1 0x7cfe900000014bde 4x EDR - SW  1719 10 0x7cfe90000002e5b0 ( 'node001 HCA-1' - 'ib-l1s01' )
_ROW = re.compile(
    r"\s*(?P<kind>CA|SW|RT)\s+(?P<lid>\d+)\s+(?P<port>\d+)\s+(?P<guid>0x[0-9a-f]+)\s+(?P<width>\d+x|\?+)\s+(?P<speed>\S+)"
    r"(?:\s+-\s+(?P<far_kind>CA|SW|RT)\s+(?P<far_lid>\d+)\s+(?P<far_port>\d+)\s+(?P<far_guid>0x[0-9a-f]+)\s+"
    r"\(\s*'(?P<name>.*?)'\s+-\s+'(?P<far_name>.*)'\s*\)|\s+'(?P<alone>.*)')\s*",
    re.IGNORECASE,
)


def read_blocks(wiring: Wiring) -> None:
    """Find devices and cables in blocks of a header and its ports, the grammar ibnetdiscover and ibsim share."""
    lines = wiring.source.lines
    for number, line in enumerate(lines, 1):
        if found := HEADER.match(line):
            _header(wiring, found, number, number < len(lines))
    here: str | None = None
    for number, line in enumerate(lines, 1):
        header, port = HEADER.match(line), _PORT.match(line)
        if header:
            here = _identity(header["id"])[0]
        elif port and (number < len(lines) or _whole(wiring, port)):
            if here is None:
                rule = "is a port without the Switch or Ca line it belongs to"
                wiring.fault(number, line.strip()[:60], rule, "Give the whole file.")
            else:
                _port(wiring, here, port, number)
        else:
            _unread(wiring, line, number, line.lstrip().startswith("["))


def _whole(wiring: Wiring, found: re.Match[str]) -> bool:
    """Whether a line without an end of line was not cut; FDR may be the start of FDR10."""
    rest = _COMMENT.match(found["rest"])
    if rest is None:
        return wiring.kind == "ibsim-net" and not found["rest"].strip()
    return not (_rate(rest["tail"]) or "FDR").endswith("FDR")


def _header(wiring: Wiring, found: re.Match[str], number: int, whole: bool) -> None:
    kind, rest = _KINDS[found["kind"].lower()], _COMMENT.match(found["rest"])
    key, guid, _ = _identity(found["id"])
    known = {"guid": guid, "radix": int(found["ports"]) if kind != "CA" else None}
    if rest and whole and kind == "SW" and rest["far_lid"]:
        known["lid"] = int(rest["far_lid"])
    wiring.see(key, kind, _name(rest["name"] if rest else "" if guid else key), number, listed=True, **known)


def _port(wiring: Wiring, here: str, found: re.Match[str], number: int) -> None:
    near, rest = wiring.devices[here], _COMMENT.match(found["rest"])
    key, guid, kind = _identity(found["id"])
    if not kind and key not in wiring.devices:
        cure = "Restore its block, or take the cable out."
        wiring.fault(number, found["id"], "is no node that a Switch or Hca line names", cure)
        return
    kind = kind or wiring.devices[key].kind
    far = wiring.see(key, kind, _name(rest["name"] if rest else "" if guid else key), number, guid=guid)
    lid, far_lid = (int(rest[part] or 0) for part in ("lid", "far_lid")) if rest else (0, 0)
    if far.kind == "SW" and far_lid:
        wiring.see(key, "SW", far.name, number, lid=far_lid)
    if far.kind == "CA":
        wiring.port(far, int(found["far"]), far_lid, guid_text(found["far_guid"] or ""), number)
    if near.kind == "CA":
        wiring.port(near, int(found["port"]), lid, guid_text(found["guid"] or ""), number)
    rate = _rate(rest["tail"] if rest else found["rest"])
    wiring.listings.append(Listing(End(here, int(found["port"])), End(key, int(found["far"])), rate, number))


def _identity(text: str) -> tuple[str, str, str]:
    """Return key, GUID and kind that "S-f452140000058af0" says; names of simulated nodes say only a key."""
    prefix, dash, rest = text.partition("-")
    if dash and prefix.lower() in _KINDS and len(prefix) == 1:
        guid = guid_text(rest)
        return guid or text, guid, _KINDS[prefix.lower()]
    return text, "", ""


def _name(text: str) -> str:
    return " ".join(text.split())


def _rate(tail: str) -> str | None:
    options = dict(_OPTION.findall(tail))
    stated = _RATE.findall(tail)
    if stated:
        return rate_of(*stated[-1])
    return rate_of(options.get("w", "4"), _CODES.get(options.get("s", "1"), "?")) if options else None


def _unread(wiring: Wiring, line: str, number: int, like_a_cable: bool) -> None:
    """Say what becomes of a line that is no header and no cable."""
    if line.strip().strip(".") == "" and "..." in line:
        wiring.notes.append(f"line {number} is '...': something was cut out there")
    elif like_a_cable and any(rest.strip() for rest in wiring.source.lines[number:]):
        wiring.fault(
            number, line.strip()[:80], "cannot be read as a port and its cable", "Restore the line, or take it out."
        )
    elif like_a_cable:
        wiring.notes.append(f"line {number}, the last, is cut and left out: {line.strip()[:40]!r}")


def _read_topology(source: Source) -> Reading:
    wiring = Wiring("ibnetdiscover", source)
    read_blocks(wiring)
    return reading_of(wiring)


def _read_ports(source: Source) -> Reading:
    wiring = Wiring("ibnetdiscover", source)
    for number, line in enumerate(source.lines, 1):
        found = _ROW.fullmatch(line)
        if found is None:
            _unread(wiring, line, number, re.match(r"\s*(CA|SW|RT)\s+\d+\s", line) is not None)
        else:
            near = _row_end(wiring, found, "", found["name"] or found["alone"] or "", number)
            if found["far_guid"] is None:
                wiring.down += 1
                wiring.devices[near.device].ports.pop(near.port, None)
                continue
            far = _row_end(wiring, found, "far_", found["far_name"], number)
            wiring.listings.append(Listing(near, far, rate_of(found["width"], found["speed"]), number))
    return reading_of(wiring)


def _row_end(wiring: Wiring, found: re.Match[str], side: str, name: str, number: int) -> End:
    """Return one end of a row. Ports of a CA have the GUIDs that follow the adapter's: two ports, one adapter."""
    kind, port, lid = found[f"{side}kind"].upper(), int(found[f"{side}port"]), int(found[f"{side}lid"])
    guid = guid_text(found[f"{side}guid"])
    listed = not side
    if kind != "CA":
        wiring.see(guid, kind, _name(name), number, listed=listed, guid=guid, lid=lid)
        return End(guid, port)
    key = f"0x{int(guid, 16) - port:016x}"
    if key in wiring.devices and wiring.devices[key].name != _name(name):
        wiring.fault(number, name, f"has the GUID of {wiring.devices[key].name!r}", "Take one of the two out.")
    wiring.port(wiring.see(key, kind, _name(name), number, listed=listed), port, lid, guid, number)
    return End(key, port)


def _read(source: Source) -> Reading:
    return _read_ports(source) if _is_ports(source) else _read_topology(source)


def _is_ports(source: Source) -> bool:
    return any(_ROW.fullmatch(line) for line in source.lines)


def is_topology(source: Source) -> bool:
    """Whether headers name their nodes as ibnetdiscover does, S-, H- or R- and a GUID."""
    return any(found and re.match(r"[SHR]-", found["id"], re.IGNORECASE) for found in map(HEADER.match, source.lines))


def _is_node_list(source: Source) -> bool:
    return any(re.match(r"\s*(Switch|Ca|Rt)\s*: 0x[0-9a-f]+ ports \d+", line, re.IGNORECASE) for line in source.lines)


READERS: tuple[Reader, ...] = (
    Reader("ibnetdiscover", "output of ibnetdiscover (topology, or ports with -p)",
           lambda source: is_topology(source) or _is_ports(source), _read),
)  # fmt: skip
FOREIGN: tuple[Foreign, ...] = (
    Foreign("ib-nodes", "a list of InfiniBand nodes without cables (ibnetdiscover -l, ibswitches, ibhosts)",
            _is_node_list, "Give the output of plain ibnetdiscover, which lists the cables."),
)  # fmt: skip
