"""What does an hwloc file (`lstopo --of xml`) say? CPUs, PCIe with its speeds, GPUs, NICs, NVLink bandwidths."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import product
from xml.etree.ElementTree import Element

import networkx as nx

from topo._errors import Fault, InputError
from topo.readers._chips import CHIPS, Chip, named_chip
from topo.readers._host import Pair, add_cpu_links, add_device, add_links, add_pcie, finish, new_host
from topo.readers._reading import Reader, Reading, Source
from topo.readers._xml_text import root_of

__all__ = ["READERS"]

_KIND = "hwloc-xml"
_HOMES = ("Package", "Socket", "Die", "Group", "NUMANode")
_LINKS = ("NVLinkBandwidth", "XGMIBandwidth")
_GPU_NAME = re.compile(r"(?:nvml|cuda|rsmi|ve|ze)(\d{1,5})")
_FABRIC_NAME = re.compile(r"(?:mlx|hfi|bnxt_re|irdma|qib|opap|efa|rdmap|roce|hsn|bxi|cxi)\w*")
#: A link whose speed the file does not give: PCIe 3.0 with 16 lanes [bytes/s].
_PCIE = CHIPS["V100"].pcie


@dataclass
class _Found:
    """What was found so far; `by_index`: kind and gp_index of an object -> node, "switch" for an NVSwitch chip."""

    host: str
    graph: nx.Graph[str] = field(default_factory=new_host)
    notes: list[str] = field(default_factory=list)
    by_index: dict[str, str] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)
    slow: bool = False


def _recognises(source: Source) -> bool:
    return bool(re.search(r"<topology(?:\s[^>]*)?>\s*<(?:object|info)", source.clean))


def read(source: Source) -> Reading:
    """Return the host of an hwloc file."""
    root, notes, cut = root_of(source, "topology")
    names = [info.get("value", "") for info in root.iter("info") if info.get("name") == "HostName"]
    found = _Found(names[0] if names and names[0] else "host0", notes=notes)
    machine = root.find("object")
    cpus = {} if machine is None else _cpus(found, machine)
    for part, above in list(_io(machine, None)) if machine is not None else []:
        home = cpus.get(id(above)) or next(iter(cpus.values()))
        for label, rate in _pci(found, part):
            add_pcie(found.graph, label, home, rate)
    if not any(data["kind"] == "gpu" for _, data in found.graph.nodes(data=True)):
        cure = "Write it with I/O devices: lstopo --whole-io --of xml."
        raise InputError(Fault("<topology>", None, "has no GPU", cure, source.file))
    found.notes += add_cpu_links(found.graph, dict.fromkeys(cpus.values()))
    if found.slow:
        found.notes.append(f"PCIe links without a speed in the file: {_PCIE / 1e9:.4g} GB/s per direction assumed")
    found.notes.append("PCIe speeds are those at the time of writing: an idle GPU may have been slowed down")
    _scale_up(found, root, source.file, cut)
    _number(found)
    return finish(found.graph, _KIND, found.notes)


def _cpus(found: _Found, machine: Element) -> dict[int, str]:
    """Add a CPU per package, or per part of one that has I/O of its own; return object -> CPU."""
    owners = {id(above): above for _, above in _io(machine, None) if above is not None and above.get("type") in _HOMES}
    packages = [part for part in machine.iter("object") if part.get("type") in ("Package", "Socket")]
    alone = [part for part in packages if not any(id(inner) in owners for inner in part.iter("object"))]
    inside = {id(inner) for owner in owners.values() for inner in owner.iter("object")}
    chosen = [*owners.values(), *(part for part in alone if id(part) not in inside)] or [machine]
    order = {id(part): number for number, part in enumerate(machine.iter("object"))}
    cpus = {}
    for number, part in enumerate(sorted(chosen, key=lambda part: order[id(part)])):
        cpus[id(part)] = f"CPU{number}"
        add_device(found.graph, f"CPU{number}", "cpu", found.host)
        found.by_index[f"{part.get('type')}:{part.get('gp_index')}"] = f"CPU{number}"
    if any(above is None or id(above) not in cpus for _, above in _io(machine, None)) and len(cpus) > 1:
        found.notes.append("I/O that the file hangs on no CPU: on the first one here")
    return cpus


def _io(part: Element | None, home: Element | None) -> list[tuple[Element, Element | None]]:
    """Return the outermost bridges and PCI devices, each with the CPU part that has them."""
    rows: list[tuple[Element, Element | None]] = []
    for child in () if part is None else part.findall("object"):
        if child.get("type") in ("Bridge", "PCIDev"):
            rows.append((child, home))
        else:
            rows += _io(child, child if child.get("type") in _HOMES else home)
    return rows


def _pci(found: _Found, part: Element) -> list[tuple[str, float]]:
    """Add what a bridge or device holds; return what is to be joined to the node above, at which rate."""
    rate = _rate(part)
    if part.get("type") == "PCIDev":
        label = _device(found, part)
        found.slow |= bool(label) and rate is None
        return [(label, rate or _PCIE)] if label else []
    below = [row for child in part.findall("object") for row in _pci(found, child)]
    if part.get("bridge_type", "").startswith("0") or not below:
        return below
    if len(below) == 1:
        return [(below[0][0], min(below[0][1], rate or below[0][1]))]
    switch = part.get("pci_busid", f"bridge{part.get('gp_index')}")
    found.slow |= rate is None
    add_device(found.graph, switch, "switch", found.host)
    for label, own in below:
        add_pcie(found.graph, label, switch, own)
    return [(switch, rate or _PCIE)]


def _rate(part: Element) -> float | None:
    text = part.get("pci_link_speed", "")
    rate = float(text) * 1e9 if re.fullmatch(r"\d{1,4}(?:\.\d{1,9})?", text) else 0.0
    return rate or None


def _device(found: _Found, part: Element) -> str:
    """Add a GPU or NIC and return its label, "" for other devices."""
    kind, busid = part.get("pci_type", ""), part.get("pci_busid", "").lower()
    inner = [child for child in part.findall("object") if child.get("type") == "OSDev"]
    names = [child.get("name", "") for child in inner]
    numbers = [match[1] for name in names if (match := _GPU_NAME.fullmatch(name))]
    if part.get("subtype") == "NVSwitch" or kind.startswith("0680 [10de"):
        found.by_index[f"PCIDev:{part.get('gp_index')}"] = "switch"
        return ""
    if numbers or re.match(r"(?:03|12)\w\w \[(?:10de|1002)", kind):
        label = f"GPU{numbers[0]}" if numbers else busid
        if label in found.graph:
            label = busid
        add_device(found.graph, label, "gpu", found.host, pci=busid, rank=int(numbers[0]) if numbers else None)
        found.models |= {info.get("value", "") for info in part.iter("info") if info.get("name") == "GPUModel"}
    elif kind.startswith("02") or any(_FABRIC_NAME.fullmatch(name) for name in names):
        label = min((name for name in names if name), key=lambda name: not _FABRIC_NAME.fullmatch(name), default=busid)
        label = busid if label in found.graph else label
        add_device(found.graph, label, "nic", found.host, nic=label)
    else:
        return ""
    for item in (part, *inner):
        found.by_index[f"{item.get('type')}:{item.get('gp_index')}"] = label
    return label


def _scale_up(found: _Found, root: Element, file: str, cut: bool) -> None:
    """Add the links of the bandwidth matrices: MB/s per direction between two objects."""
    lanes: dict[str, float] = {}
    pairs: dict[Pair, float] = {}
    for table in [*root.iter("distances2hetero"), *root.iter("distances2")]:
        for a, b, rate in _entries(found, table, file) if table.get("name") in _LINKS else ():
            kinds = [found.graph.nodes[node]["kind"] if node != "switch" else "switch" for node in (a, b)]
            if kinds == ["gpu", "switch"]:
                lanes[a] = lanes.get(a, 0) + rate
            elif kinds == ["gpu", "gpu"] and a != b:
                pairs[a, b] = rate
            elif kinds == ["gpu", "cpu"]:
                add_pcie(found.graph, a, b, rate)
                found.notes.append(f"{a} - {b}: NVLinks to the CPU as a pcie edge of the stated bandwidth")
    if odd := [(a, b) for (a, b), rate in pairs.items() if pairs.get((b, a)) != rate]:
        rule = f"has other bandwidths from {odd[0][0]} to {odd[0][1]} than back"
        raise InputError(Fault("distances", pairs[odd[0]], rule, "Give the file as lstopo wrote it.", file))
    if not (lanes or pairs):
        found.notes.append(f"no NVLink or XGMI bandwidths in the file{' (it is cut)' if cut else ''}: "
                           "lstopo writes them where it was built with NVML or ROCm SMI")  # fmt: skip
        return
    product_name = named_chip(f"NVIDIA {' '.join(found.models)}")
    chip = CHIPS[product_name] if product_name else Chip(0, min([*lanes.values(), *pairs.values()]), _PCIE)
    counted: dict[Pair, int] = {}
    for (a, b), rate in pairs.items():
        if (b, a) not in counted:
            counted[a, b] = max(1, round(rate / chip.rate))
    chip = replace(chip, rate=min((pairs[pair] / n for pair, n in counted.items()), default=chip.rate))
    add_links(found.graph, [({}, counted)] if counted else [], chip)
    links = {gpu: max(1, round(rate / chip.rate)) for gpu, rate in lanes.items()}
    if add_links(found.graph, [(links, {})] if links else [], chip):
        found.notes.append("links to NVSwitch chips: all GPUs with them are one domain, the chips folded into one")


def _entries(found: _Found, table: Element, file: str) -> list[tuple[str, str, float]]:
    """Return the rows of a matrix that are above zero: two nodes and bytes/s."""
    prefix = f"{table.get('type')}:" if table.tag == "distances2" else ""
    indexes = [f"{prefix}{word}" for part in table.iter("indexes") for word in (part.text or "").split()]
    values = [word for part in table.iter("u64values") for word in (part.text or "").split()]
    if len(values) != len(indexes) ** 2 or not all(re.fullmatch(r"\d{1,12}", word) for word in values):
        rule = f"must hold {len(indexes)} x {len(indexes)} whole numbers"
        raise InputError(Fault(str(table.get("name")), len(values), rule, "Give the whole file.", file))
    rows = zip(product(indexes, indexes), values, strict=True)
    return [(found.by_index[a], found.by_index[b], int(word) * 1e6) for (a, b), word in rows
            if a != b and int(word) and a in found.by_index and b in found.by_index]  # fmt: skip


def _number(found: _Found) -> None:
    gpus = [node for node, data in found.graph.nodes(data=True) if data["kind"] == "gpu"]
    ranks = [found.graph.nodes[gpu].get("rank") for gpu in gpus]
    if None in ranks or len(set(ranks)) < len(ranks):
        for rank, gpu in enumerate(gpus):
            found.graph.nodes[gpu]["rank"] = rank
        found.notes.append("GPUs are not numbered in the file: ranked in its order")


READERS = (Reader(_KIND, "hwloc topology (lstopo --of xml)", _recognises, read),)
