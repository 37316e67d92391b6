"""What does `nvidia-smi topo -m` say? GPUs and NICs of one host, NVLinks counted, PCIe by how near."""

from __future__ import annotations

import re
from collections.abc import Mapping

import networkx as nx

from topo._errors import Fault, InputError
from topo.readers._chips import CHIPS, Chip, named_chip, nvlink_of
from topo.readers._host import add_device, add_links, domains_of, finish, new_host
from topo.readers._matrix import Matrix, find_matrices, pairs_of
from topo.readers._places import PIX, PXB, SAME_CPU, SYS, place_devices
from topo.readers._reading import Foreign, Reader, Reading, Source

__all__ = ["FOREIGN", "READERS"]

_KIND = "nvidia-smi-topo"
_CELL = re.compile(r"X(?!GMI)|NV\d{1,2}|SYS|SOC|NODE|PHB|PXB|PIX|PSB|N/A")
_LEVELS = {"PIX": PIX, "PSB": PIX, "PXB": PXB, "PHB": SAME_CPU, "NODE": SAME_CPU, "SYS": SYS, "SOC": SYS}
_ROW = re.compile(r"\b(?:GPU|NIC)\d+[ \t|]*(?:X(?!GMI)(?![a-z])|NV\d|SYS|SOC|NODE|PHB|PXB|PIX)")
_P2P = re.compile(r"\bGPU\d+[\s|]+(?:X\b|OK\b|NS\b|CNS\b|GNS\b|TNS\b|DR\b|U\b).*\b(?:OK|NS|CNS|GNS|TNS|DR|U)\b")
_PATHS = re.compile(r"\bGPU\d+[\s|]+(?:.*\s)?(?:NV\d+|SYS|SOC|NODE|PHB|PXB|PIX)\b")
_LEGEND = re.compile(r"\b(NIC\d+)\s*:\s*(\S+)")
_NO_LINKS = re.compile(r"topo\s+(?:-mp|--matrix_pci)\b")
#: Cores of the two Grace CPUs of a tray.
_GRACE = {"0-71", "72-143"}
Pair = tuple[str, str]


def _recognises(source: Source) -> bool:
    return bool(_ROW.search(source.clean)) and not source.clean.lstrip().startswith(("<", "{"))


def read(source: Source) -> Reading:
    """Return the host of a topology matrix."""
    matrix, notes = _one(find_matrices(source, _CELL), source.file)
    cells, filled = pairs_of(matrix, "X", source.file)
    gpus = [name for name in matrix.devices if re.fullmatch(r"GPU\d{1,5}", name)]
    nics = [name for name in matrix.devices if name not in gpus]
    _require_known(matrix, gpus, cells, source.file)
    unknown = [f"{a} - {b}" for i, a in enumerate(matrix.devices) for b in matrix.devices[i + 1 :]
               if (a, b) not in cells]  # fmt: skip
    if unknown:
        filled.append(f"{len(unknown)} pairs with a NIC are not in the file (cut): {', '.join(unknown[:4])}")
    nvlinks = {pair: int(cell[2:]) for pair, cell in cells.items() if cell.startswith("NV") and cell != "NV0"}
    chip, most, said = _chip(source, matrix, gpus, nvlinks)
    graph = _devices(source, gpus, nics)
    levels = {pair: _LEVELS[cell] for pair, cell in cells.items() if cell in _LEVELS}
    where = place_devices(graph, matrix.devices, levels, _homes(matrix), chip.pcie)
    switched = add_links(graph, domains_of(nvlinks, most, source.file, f"line {matrix.line}"), chip)
    if switched:
        what = f"{max(nvlinks.values())} NVLinks to every peer are more than the GPU has"
        said.append(f"{what}: {switched} NVSwitch domain{'s' * (switched > 1)}, switch chips folded into one each")
    pcie = f"PCIe links: {chip.pcie / 1e9:.4g} GB/s per direction (16 lanes): assumed, the file states no speed"
    return finish(graph, _KIND, [*notes, *filled, *said, *where, pcie])


def _one(matrices: list[Matrix], file: str) -> tuple[Matrix, list[str]]:
    """Return the one host of a text; the same matrix twice is one."""
    if not matrices:
        cure = "Give the whole output of `nvidia-smi topo -m`."
        raise InputError(
            Fault("matrix", None, "has rows, but no header line with GPU0, GPU1, ... above them", cure, file)
        )
    linked = [m for m in matrices if any(cell.startswith("NV") for cell, _ in m.cells.values())]
    plain = [m for m in matrices if m not in linked and any(m.devices == other.devices for other in linked)]
    notes = ["a second matrix without NVLinks (`topo -mp`) left aside"] if plain else []
    rest = [m for m in matrices if m not in plain]
    if different := [m for m in rest if not m.same(rest[0])]:
        rule = f"holds another host than line {rest[0].line}"
        cure = "Give one file per host; topo.join makes them one cluster."
        raise InputError(Fault(f"line {different[0].line}", different[0].devices[:4], rule, cure, file))
    if len(rest) > 1:
        notes.append(f"the matrix stands there {len(rest)} times, the same: taken once")
    return rest[0], notes


def _require_known(matrix: Matrix, gpus: list[str], cells: Mapping[Pair, str], file: str) -> None:
    missing = [(a, b) for i, a in enumerate(gpus) for b in gpus[i + 1 :] if (a, b) not in cells]
    if not gpus:
        raise InputError(Fault(f"line {matrix.line}", matrix.devices, "has no GPU", "Give the whole matrix.", file))
    if missing:
        names = ", ".join(f"{a} - {b}" for a, b in missing[:4])
        rule = f"is cut: it does not say how {names}{', ...' if len(missing) > 4 else ''} are joined"
        last = max(matrix.lines.values())
        raise InputError(Fault(f"line {last}", len(matrix.lines), rule, "Give all rows of the matrix.", file))


def _chip(
    source: Source, matrix: Matrix, gpus: list[str], nvlinks: Mapping[Pair, int]
) -> tuple[Chip, int | None, list[str]]:
    """Return the chip, how many links it has where that is known, and what was assumed."""
    product = named_chip(source.clean)
    if product and not CHIPS[product].nvlink:
        product = ""
    if not nvlinks:
        hidden = (
            ["`topo -mp` leaves NVLinks out: give the output of `topo -m`"] if _NO_LINKS.search(source.clean) else []
        )
        return CHIPS[product or "A100"], None, hidden
    peers = {gpu: [n for pair, n in nvlinks.items() if gpu in pair] for gpu in gpus}
    most, direct = max(nvlinks.values()), max(sum(found) for found in peers.values())
    if product and most > CHIPS[product].links:
        product = ""
    cores = {matrix.sides.get((gpu, "CPUAFFINITY"), "") for gpu in gpus}
    if not product and most == 18 and len(gpus) == 4 and cores <= _GRACE:
        rate = CHIPS["GB200"].rate / 1e9
        return CHIPS["GB200"], 18, [f"4 GPUs and CPUs of 72 cores: taken as a tray of GB200, {rate:g} GB/s per NVLink"]
    chip, said = nvlink_of(product, direct if direct <= (CHIPS[product].links if product else 18) else most)
    notes = [said]
    if any(len(found) == 1 and found[0] > 4 for found in peers.values()):
        notes.append("a pair with many NVLinks may sit behind a switch: taken as direct, the bandwidth is the same")
    return chip, CHIPS[product].links if product else None, notes


def _devices(source: Source, gpus: list[str], nics: list[str]) -> nx.Graph[str]:
    graph = new_host()
    names = dict(_LEGEND.findall(source.clean))
    for gpu in gpus:
        add_device(graph, gpu, "gpu", rank=int(gpu[3:]))
    for nic in nics:
        add_device(graph, nic, "nic", nic=names.get(nic))
    return graph


def _homes(matrix: Matrix) -> dict[str, str]:
    """Return NUMA node, else CPUs, of every device that has them."""
    found: dict[str, str] = {}
    for side in ("CPUAFFINITY", "NUMAAFFINITY"):
        stated = {name: matrix.sides.get((name, side), "N/A") for name in matrix.lines}
        if side == "CPUAFFINITY" or all(value != "N/A" for name, value in stated.items() if name.startswith("GPU")):
            found |= {name: value for name, value in stated.items() if value != "N/A"}
    return found


READERS = (Reader(_KIND, "topology matrix of nvidia-smi topo -m", _recognises, read),)
FOREIGN = (
    Foreign("nvidia-smi-p2p", "peer-to-peer matrix of nvidia-smi topo -p2p: what may be done, not what is wired",
            lambda source: bool(_P2P.search(source.clean)) and not _PATHS.search(source.clean),
            "Give the output of `nvidia-smi topo -m`."),
)  # fmt: skip
