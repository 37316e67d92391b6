"""What does a topology file of NCCL or RCCL say? CPUs, PCIe, GPUs with NVLink or XGMI, NICs with their rate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

import networkx as nx

from topo._errors import Fault, InputError
from topo.readers._chips import CHIPS, Chip, chip_of, pcie_rate
from topo.readers._host import Pair, add_cpu_links, add_device, add_links, add_pcie, domains_of, finish, new_host
from topo.readers._reading import Reader, Reading, Source
from topo.readers._xml_text import line_of, root_of

__all__ = ["READERS"]

_KIND = "nccl-xml"
_NVSWITCH, _TO_CPU = "0x0680", ("0x068001", "0x0604")  # the latter: the bridge of a POWER CPU
_GPU, _NIC, _BRIDGE = ("0x03", "0x12", "0x0b40"), ("0x02", "0x0c06"), ("0x0604", "0x0608", "0x0600")
#: A link whose speed the file does not give: PCIe 3.0 with 16 lanes, as NCCL takes it [bytes/s].
_PCIE = CHIPS["V100"].pcie


_WHOLE = re.compile(r"[0-9]{1,9}")
_BUSID = re.compile(r"[0-9a-f]{4,8}(?::[0-9a-f]{1,2}){1,2}\.[0-9a-f]{1,2}", re.IGNORECASE)
_CLASS = re.compile(r"0x[0-9a-f]{2,6}", re.IGNORECASE)
_FORMS = {_WHOLE: "a whole number", _BUSID: "a PCI address as 0000:07:00.0", _CLASS: "a PCI class as 0x030200"}
_KNOWN = {"system", "cpu", "pci", "gpu", "nvlink", "xgmi", "c2c", "pcilink", "nic", "net"}
_TEMPLATE = (
    "the file has no gpu, net or nvlink elements (a cloud's template, which NCCL fills in when it runs): "
    "NVLinks and NIC rates are not known; NCCL_TOPO_DUMP_FILE writes them"
)


@dataclass
class _Found:
    """What was found so far; `gpus`: host and bus id -> label, element, chip; `slow`: PCIe without a speed."""

    source: Source
    graph: nx.Graph[str] = field(default_factory=new_host)
    notes: list[str] = field(default_factory=list)
    gpus: dict[tuple[str, str], tuple[str, Element | None, Chip | None]] = field(default_factory=dict)
    cpus: dict[str, list[str]] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)
    slow: list[str] = field(default_factory=list)
    several_hosts: bool = False

    def label(self, host: str, name: str) -> str:
        """Return a label: the name, with its host where the file holds several."""
        label = f"{host}/{name}" if self.several_hosts else name
        if label in self.graph:
            raise InputError(
                Fault(line_of(self.source, name), label, "stands there twice", "Give the file as NCCL wrote it.",
                      self.source.file)
            )  # fmt: skip
        return label


def _recognises(source: Source) -> bool:
    return bool(re.search(r"<system[\s>]", source.clean)) and "<graphs" not in source.clean


def read(source: Source) -> Reading:
    """Return the host, or the hosts of one NVLink domain, of a topology file."""
    root, notes, cut = root_of(source, "system")
    found = _Found(source, notes=notes)
    cpus = [part for part in root if part.tag == "cpu"]
    hosts = {part.get("host_hash", "host0"): None for part in cpus}
    found.several_hosts = len(hosts) > 1
    for part in cpus:
        _cpu(found, part)
    if not found.gpus:
        raise InputError(
            Fault("<system>", len(cpus), "has no GPU", "Give a topology file of NCCL or RCCL.", source.file)
        )
    for host in hosts:
        found.notes += add_cpu_links(found.graph, found.cpus.get(host, ()))
    _scale_up(found, cut)
    _number(found)
    if found.slow:
        which = f"{', '.join(found.slow[:4])}{', ...' if len(found.slow) > 4 else ''} ({len(found.slow)})"
        found.notes.append(f"PCIe links without a speed: {_PCIE / 1e9:.4g} GB/s per direction assumed: {which}")
    if odd := sorted({str(part.tag) for part in root.iter()} - _KNOWN):
        found.notes.append(f"elements left aside, not known to be NCCL's: {', '.join(odd)}")
    if found.unknown:
        what = ", ".join(f"{n} of class {name}" for name, n in found.unknown.items())
        found.notes.append(f"devices left aside, neither GPU, NIC nor bridge: {what}")
    return finish(found.graph, _KIND, found.notes)


def _cpu(found: _Found, part: Element) -> None:
    host = part.get("host_hash", "host0")
    cpu = found.label(host, f"CPU{part.get('numaid', '0')}")
    add_device(found.graph, cpu, "cpu", host)
    found.cpus.setdefault(host, []).append(cpu)
    _below(found, part, cpu, host)


def _below(found: _Found, part: Element, above: str, host: str, slot: float | None = None) -> None:
    """Add what hangs on a CPU or a slot; the ports of one adapter share its slot [bytes/s]."""
    for child in part:
        if child.tag == "pci":
            _pci(found, child, above, host)
        elif child.tag == "nic":
            _nets(found, child, above, host, slot or _PCIE)
            found.slow += [] if slot else [net.get("name", "net") for net in child.findall("net")]


def _pci(found: _Found, part: Element, above: str, host: str) -> None:
    """Add a device and what hangs on it."""
    busid, kind = part.get("busid", "").lower(), part.get("class", "").lower()
    _require(found, part, "busid", _BUSID)
    if kind or not len(part):
        _require(found, part, "class", _CLASS)
    rate = pcie_rate(part.get("link_speed", ""), part.get("link_width", ""))
    gpu, nic = part.find("gpu"), part.find("nic")
    nets = [] if nic is None else nic.findall("net")
    if gpu is not None or (kind.startswith(_GPU) and nic is None):
        _gpu(found, part, gpu, above, host, rate or _PCIE)
    elif len(nets) == 1 and nic is not None:
        _nets(found, nic, above, host, rate or _PCIE)
    elif nets or kind.startswith(_BRIDGE) or len(part):
        switch = found.label(host, busid)
        add_device(found.graph, switch, "switch", host)
        add_pcie(found.graph, switch, above, rate or _PCIE)
        _below(found, part, switch, host, rate or _PCIE)
    elif kind.startswith(_NIC):
        label = found.label(host, busid)
        add_device(found.graph, label, "nic", host, nic=busid)
        add_pcie(found.graph, label, above, rate or _PCIE)
    else:
        found.unknown[kind] += 1
        return
    if rate is None:
        found.slow.append(busid)


def _gpu(found: _Found, part: Element, gpu: Element | None, above: str, host: str, rate: float) -> None:
    busid = part.get("busid", "").lower()
    label = found.label(host, busid if gpu is None else f"GPU{_whole(found, gpu, 'dev')}")
    if len(part.findall("gpu")) > 1:
        found.notes.append(f"{label}: several ranks share this GPU; one taken")
    rank = gpu.get("rank", "") if gpu is not None else ""
    add_device(found.graph, label, "gpu", host, rank=int(rank) if _WHOLE.fullmatch(rank) else None, pci=busid)
    add_pcie(found.graph, label, above, rate)
    found.gpus[host, busid] = (label, gpu, chip_of(part.attrib, {} if gpu is None else gpu.attrib))
    for c2c in part.iterfind("gpu/c2c"):
        bandwidth, count = _whole(found, c2c, "bw") * 1e6, _whole(found, c2c, "count")
        cpu = found.cpus[host][-1]
        if bandwidth and count:
            add_pcie(found.graph, label, cpu, count * bandwidth)
            found.notes.append(f"{label} - {cpu}: chip-to-chip links as a pcie edge of the stated bandwidth")
        break


def _nets(found: _Found, nic: Element, above: str, host: str, rate: float) -> None:
    for net in nic.findall("net"):
        name = net.get("name", "net")
        label = f"{host}/{name}" if found.several_hosts else name
        if label in found.graph:
            found.notes.append(f"{label} is listed twice: the first place taken")
            continue
        speed, guid = net.get("speed", ""), net.get("guid")
        known = float(speed) * 1e6 / 8 if re.fullmatch(r"[0-9]{1,9}", speed) and int(speed) else None
        add_device(found.graph, label, "nic", host, nic=name, guid=guid, bandwidth=known)
        add_pcie(found.graph, label, above, rate)
        if known is None:
            found.notes.append(f"{label}: the file does not state its rate")


def _scale_up(found: _Found, cut: bool) -> None:
    """Add NVLink and XGMI: one domain of those on switches, links of those wired directly."""
    lanes: dict[str, int] = {}
    stated: dict[Pair, int] = {}
    for (host, busid), (label, gpu, _) in list(found.gpus.items()):
        for link in [] if gpu is None else [p for p in gpu if p.tag in ("nvlink", "xgmi")]:
            target, kind = link.get("target", "").lower(), link.get("tclass", "").lower()
            count = _whole(found, link, "count")
            if kind.startswith(_TO_CPU):
                _to_cpu(found, label, count)
            elif kind.startswith(_NVSWITCH) or target.startswith("fffffff:ff"):
                lanes[label] = lanes.get(label, 0) + count
            else:
                peer = _peer(found, host, target, busid, cut)
                stated[label, peer] = stated.get((label, peer), 0) + count
    pairs = _pairs(found, stated, cut)
    both = {gpu for pair in pairs for gpu in pair} & set(lanes)
    if both:
        rule = "has links to a switch and to GPUs"
        raise InputError(Fault(min(both), lanes[min(both)], rule, "Give the file as NCCL wrote it.", found.source.file))
    if pairs or lanes:
        chip = _rate(found, lanes, pairs)
        most = chip.links if chip.nvlink else sum(pairs.values())
        direct = domains_of(pairs, most, found.source.file, "<nvlink>") if pairs else []
        switched = add_links(found.graph, [*direct, *([(lanes, {})] if lanes else [])], chip)
        if switched > bool(lanes):
            found.notes.append("more links to every peer than the GPU has: taken as an NVSwitch domain")
        if lanes:
            found.notes.append("links to NVSwitch chips: all GPUs with them are one domain, the chips folded into one")
    elif all(gpu is None for _, gpu, _ in found.gpus.values()):
        found.notes.append(_TEMPLATE)


def _whole(found: _Found, part: Element, key: str) -> int:
    _require(found, part, key, _WHOLE)
    return int(part.get(key, ""))


def _require(found: _Found, part: Element, key: str, form: re.Pattern[str]) -> None:
    text = part.get(key, "")
    if not form.fullmatch(text):
        place, cure = f"{line_of(found.source, text)}, <{part.tag}> {key}", "Give the file as NCCL wrote it."
        raise InputError(Fault(place, text, f"must be {_FORMS[form]}", cure, found.source.file))


def _to_cpu(found: _Found, label: str, count: int) -> None:
    near = next(node for node in nx.bfs_tree(found.graph, label) if found.graph.nodes[node]["kind"] == "cpu")
    add_pcie(found.graph, label, near, count * CHIPS["V100"].rate)
    found.notes.append(f"{label} - {near}: NVLinks to the CPU as a pcie edge, 25 GB/s per link and direction assumed")


def _peer(found: _Found, host: str, target: str, own: str, cut: bool) -> str:
    """Return the GPU a link leads to; one that a cut file only names is added without a place."""
    if (host, target) in found.gpus and target != own:
        return found.gpus[host, target][0]
    if not cut or target == own:
        rule = "is the target of a link, but no other GPU of the file"
        place = line_of(found.source, target)
        raise InputError(Fault(place, target, rule, "Give the whole file.", found.source.file))
    label = found.label(host, target)
    add_device(found.graph, label, "gpu", host, pci=target)
    found.gpus[host, target] = (label, None, None)
    found.notes.append(f"{label} is only named as the end of a link (the file is cut): its place on PCIe is not known")
    return label


def _pairs(found: _Found, stated: dict[Pair, int], cut: bool) -> dict[Pair, int]:
    """Return links per pair, which both ends must state alike."""
    faults = list(_one_sided(found, stated, cut))
    if faults:
        raise InputError(*faults[:20])
    order = {label: number for number, (label, _, _) in enumerate(found.gpus.values())}
    return {(a, b) if order[a] < order[b] else (b, a): n for (a, b), n in stated.items() if n}


def _one_sided(found: _Found, stated: dict[Pair, int], cut: bool) -> Iterator[Fault]:
    for (a, b), n in stated.items():
        back = stated.get((b, a))
        if back is None and cut:
            continue
        if back != n and (back is None or a < b):
            rule = f"links from {a} to {b}, but {back or 0} from {b} to {a}"
            yield Fault(f"{a} - {b}", n, rule, "Give the file as NCCL wrote it.", found.source.file)


def _rate(found: _Found, lanes: dict[str, int], pairs: dict[Pair, int]) -> Chip:
    """Return the chip of the linked GPUs, and note its rate."""
    linked = set(lanes) | {gpu for pair in pairs for gpu in pair}
    chips = {chip for label, _, chip in found.gpus.values() if label in linked and chip}
    whose = "as its generation has" if len(chips) == 1 else "assumed"
    chip = chips.pop() if len(chips) == 1 else CHIPS["H100"]
    found.notes.append(f"scale-up links counted, rate not in the file: {chip.rate / 1e9:g} GB/s per direction, {whose}")
    if len(set(lanes.values())) > 1:
        counts = ", ".join(f"{gpu} {n}" for gpu, n in lanes.items())
        found.notes.append(f"the GPUs do not have the same number of links to the switches: {counts}")
    return chip


def _number(found: _Found) -> None:
    """Rank the GPUs: as the file does, else in the order of their bus ids, as nvidia-smi numbers them."""
    graph = found.graph
    labels = [label for _, (label, _, _) in sorted(found.gpus.items(), key=lambda item: item[0])]
    ranks = [graph.nodes[label].get("rank") for label in labels]
    if None not in ranks and len(set(ranks)) == len(ranks):
        return
    for rank, label in enumerate(labels):
        graph.nodes[label]["rank"] = rank
    found.notes.append(
        "ranks are not in the file: GPUs are ranked in the order of their PCI bus ids, as nvidia-smi does"
    )


READERS = (Reader(_KIND, "topology file of NCCL or RCCL (XML)", _recognises, read),)
