"""What does `rocm-smi --showtopo` say? GPUs of one host, which pairs have XGMI links, and their NUMA nodes."""

from __future__ import annotations

import re

from topo._errors import Fault, InputError
from topo.readers._chips import CHIPS, Chip, named_chip
from topo.readers._host import add_device, add_links, finish, new_host
from topo.readers._matrix import Matrix, find_matrices, pairs_of
from topo.readers._places import SAME_CPU, SYS, place_devices
from topo.readers._reading import Reader, Reading, Source

__all__ = ["READERS"]

_KIND = "rocm-smi-topo"
_TITLE = re.compile(r"(Weight|Hops|Link Type|Link access\w*) between two GPUs", re.IGNORECASE)
_CELL = re.compile(r"XGMI|PCIE|PCIe|N/A|UNK\w*|True|False|\d{1,6}")
_NUMA = re.compile(r"GPU\s*\[?(\d{1,5})\]?\s*:\s*\(Topology\)\s*Numa Node:\s*(-?\d{1,5})", re.IGNORECASE)
#: What one XGMI hop weighs; more is a way over other GPUs.
_ONE_HOP = 15
Pair = tuple[str, str]


def _recognises(source: Source) -> bool:
    return bool(_TITLE.search(source.clean))


def read(source: Source) -> Reading:
    """Return the host of the tables."""
    tables = _tables(source)
    if "link type" not in tables:
        cure = "Give the whole output of `rocm-smi --showtopo`."
        raise InputError(Fault("Link Type between two GPUs", None, "is not in the file", cure, source.file))
    matrix, types, notes = tables["link type"]
    gpus = matrix.devices
    if missing := [f"{a} - {b}" for i, a in enumerate(gpus) for b in gpus[i + 1 :] if (a, b) not in types]:
        rule = f"does not say how {', '.join(missing[:4])} are joined"
        place = f"line {matrix.line}, Link Type"
        raise InputError(Fault(place, len(matrix.lines), rule, "Give all rows of the table.", source.file))
    xgmi = [pair for pair, cell in types.items() if cell == "XGMI"]
    direct, said = _direct(xgmi, {pair: int(w) for pair, w in _cells(tables, "weight").items() if w.isdigit()})
    chip, rate = _chip(source, direct)
    graph = new_host()
    relay = len(direct) < len(xgmi)
    for gpu in gpus:
        add_device(graph, gpu, "gpu", rank=int(gpu[3:]))
        graph.nodes[gpu]["forwards"] = relay
    homes = {f"GPU{gpu}": node for gpu, node in _NUMA.findall(source.clean) if int(node) >= 0}
    hops = {pair: int(n) for pair, n in _cells(tables, "hops").items() if n.isdigit() and types.get(pair) != "XGMI"}
    levels = {pair: SAME_CPU if n <= 2 else SYS for pair, n in hops.items() if n}
    levels = {pair: level for pair, level in levels.items() if not set(pair) & set(homes)}
    where = place_devices(graph, gpus, levels, {gpu: home for gpu, home in homes.items() if gpu in gpus}, chip.pcie)
    add_links(graph, [({}, dict.fromkeys(direct, 1))] if direct else [], chip)
    pcie = f"PCIe links: {chip.pcie / 1e9:.4g} GB/s per direction (16 lanes): assumed, the file states no speed"
    return finish(graph, _KIND, [*notes, *said, *([rate] if direct else []), *where, pcie])


def _tables(source: Source) -> dict[str, tuple[Matrix, dict[Pair, str], list[str]]]:
    """Return the tables by their title, each with what it says of every pair."""
    titles = [(number, match[1].lower()) for number, line in enumerate(source.lines, 1)
              if (match := _TITLE.search(line))]  # fmt: skip
    found: dict[str, tuple[Matrix, dict[Pair, str], list[str]]] = {}
    for matrix in find_matrices(source, _CELL):
        above = [title for number, title in titles if number < matrix.line]
        if not above or not all(re.fullmatch(r"GPU\d{1,5}", name) for name in matrix.columns):
            continue
        name = above[-1]
        if name in found and not matrix.same(found[name][0]):
            rule = f"holds another {name} table than line {found[name][0].line}"
            raise InputError(Fault(f"line {matrix.line}", name, rule, "Give one file per host.", source.file))
        if name == "link type" or name not in found:
            pairs, notes = pairs_of(matrix, "0", source.file)
            found[name] = (matrix, pairs, [f"{name}: {note}" for note in notes])
    return found


def _cells(tables: dict[str, tuple[Matrix, dict[Pair, str], list[str]]], name: str) -> dict[Pair, str]:
    return tables[name][1] if name in tables else {}


def _direct(xgmi: list[Pair], weights: dict[Pair, int]) -> tuple[list[Pair], list[str]]:
    """Return the pairs with a link of their own, and what was assumed."""
    if not xgmi:
        return [], []
    said = ["XGMI links per pair: one assumed, the file does not count them"]
    known = [weights[pair] for pair in xgmi if pair in weights]
    if len(known) < len(xgmi):
        return xgmi, [*said, "no weights for every pair: each XGMI pair taken as a link of its own"]
    least = min(known)
    if least != _ONE_HOP:
        said.append(f"one XGMI hop weighs {_ONE_HOP}; here the least, {least}, is taken as one hop")
    direct = [pair for pair in xgmi if weights[pair] == least]
    if len(direct) < len(xgmi):
        said.append(f"{len(xgmi) - len(direct)} XGMI pairs weigh more than one hop: no link of their own, GPUs relay")
    return direct, said


def _chip(source: Source, direct: list[Pair]) -> tuple[Chip, str]:
    """Return the chip and where its rate is from."""
    product = named_chip(source.clean)
    most = max((sum(gpu in pair for pair in direct) for gpu in {g for pair in direct for g in pair}), default=0)
    if product.startswith("MI"):
        return CHIPS[product], f"the file names {product}: {CHIPS[product].rate / 1e9:g} GB/s per link and direction"
    name = "MI300X" if most >= 7 else "MI250X"
    taken = f"{CHIPS[name].rate / 1e9:g} GB/s per link and direction assumed (as {name})"
    return CHIPS[name], f"the file does not name the GPU: {taken}"


READERS = (Reader(_KIND, "tables of rocm-smi --showtopo", _recognises, read),)
