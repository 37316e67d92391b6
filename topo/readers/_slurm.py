"""What does Slurm know of a network? topology.conf and topology.yaml: who is near whom, but no speed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from topo._errors import Fault, InputError, suggest
from topo._nodelist import expand_hostlist
from topo.readers._reading import Reader, Reading, Source
from topo.readers._slurm_graph import Group, Lattices, Tree, lattice_reading, tree_reading
from topo.readers._yaml import load_yaml

__all__ = ["READERS"]

T = TypeVar("T")
_KEYS = ("switchname", "switches", "nodes", "linkspeed", "blockname", "blocksizes")
_CONF = re.compile(r"\s*(SwitchName|BlockName|BlockSizes)\s*=", re.IGNORECASE)
_YAML = re.compile(r"\s*(?:-\s*)?topology\s*:\s*\S")
_BLOCK = (
    "a block is nodes close to each other (in an NVL72 one scale-up domain), taken as one leaf switch: "
    'topo.join(..., domains="blocks") makes it a domain'
)
_KINDS = ("tree", "block", "ring", "torus3d", "flat")
_SHAPE = re.compile(rf"\s*({'|'.join(_KINDS)})\s*:")


def _read_conf(source: Source) -> Reading:
    tree, blocks = Tree("slurm-topology", source), Tree("slurm-topology", source)
    text = source.clean.replace("\\\n", " \0")  # a continued line keeps its number
    number = 1
    for line in text.split("\n"):
        words = _words(tree, line.partition("#")[0].replace("\0", ""), number)
        _entry(tree, blocks, words, number)
        number += 1 + line.count("\0")
    if tree.groups and blocks.groups:
        tree.fault(
            1, "SwitchName and BlockName", "stand in one file, which Slurm does not read", "Take one of the two out."
        )
    tree.faults += blocks.faults
    tree.notes += blocks.notes
    if source.lines[-1].strip():
        tree.notes.append("the last line has no line end: the file may be cut; taken as it stands")
    if blocks.groups:
        blocks.faults, blocks.notes = tree.faults, tree.notes
        return tree_reading(_joined(blocks))
    return tree_reading(tree)


def _words(tree: Tree, line: str, number: int) -> dict[str, str]:
    """Return key -> value of one line; keys in lower case."""
    words: dict[str, str] = {}
    rest = re.sub(r"\s*=\s*", "=", line).split()
    for word in rest:
        key, equals, value = word.partition("=")
        if not equals or key.lower() not in _KEYS:
            cure = suggest(key, ("SwitchName", "Switches", "Nodes", "LinkSpeed", "BlockName", "BlockSizes"))
            tree.fault(number, word[:60], "is no key=value that topology.conf knows", cure)
        elif key.lower() in words:
            tree.fault(number, word[:60], "gives a key twice in one line", "Take one of the two out.")
        else:
            words[key.lower()] = value.strip('"')
    return words


def _entry(tree: Tree, blocks: Tree, words: Mapping[str, str], number: int) -> None:
    if "switchname" in words:
        for name in tree.names(words["switchname"], number):
            tree.add(
                Group(
                    name,
                    tree.names(words.get("switches", ""), number),
                    tree.names(words.get("nodes", ""), number),
                    number,
                )
            )
        if "linkspeed" in words:
            tree.notes.append("LinkSpeed is a number without a unit that Slurm does not use either: left out")
    elif "blockname" in words:
        for name in blocks.names(words["blockname"], number):
            blocks.add(Group(name, [], blocks.names(words.get("nodes", ""), number), number))
    elif words and "blocksizes" not in words:
        tree.fault(
            number,
            " ".join(words),
            "needs SwitchName or BlockName in the same line",
            "Write SwitchName=s1 Nodes=n[1-8].",
        )


def _joined(blocks: Tree) -> Tree:
    """Return blocks as leaves that one switch joins: what lies between blocks is not stated."""
    names = [group.name for group in blocks.groups.values()]
    for group in blocks.groups.values():
        blocks.block |= dict.fromkeys(group.nodes, group.name)
    if len(names) > 1:
        top = "between blocks"
        blocks.add(Group(top, names, [], 1))
        blocks.notes.append(f"what joins the {len(names)} blocks is not stated: one switch {top!r} (assumed)")
    blocks.notes.append(_BLOCK)
    return blocks


def _read_yaml(source: Source) -> Reading:
    shape = _Shape(source)
    topologies = [shape.mapping(item, "topology") for item in shape.items(load_yaml(source), "topologies")]
    shape.settle()
    stated = [topology for topology in topologies if _kind(topology) not in ("", "flat")]
    if not stated:
        kinds = ", ".join(_kind(topology) or "nothing" for topology in topologies) or "nothing"
        raise InputError(
            Fault(
                "topologies",
                kinds,
                "say nothing about wiring",
                "Give one with tree, block, ring or torus3d.",
                source.file,
            )
        )
    chosen = next((topology for topology in stated if topology.get("cluster_default") is True), stated[0])
    notes = (
        [f"{len(topologies)} topologies; {chosen.get('topology')!r} ({_kind(chosen)}) is read"]
        if len(topologies) > 1
        else []
    )
    kind = _kind(chosen)
    if kind in ("ring", "torus3d"):
        return lattice_reading(_lattices(shape, kind, chosen[kind], notes))
    tree = _tree(shape, chosen)
    tree.notes[:0] = notes
    for other in stated:
        if other is not chosen and _kind(other) == "block" and not tree.block:
            groups = _tree(shape, other).groups.values()
            mine = {node for group in tree.groups.values() for node in group.nodes}
            tree.block |= {node: group.name for group in groups for node in group.nodes if node in mine}
            if tree.block:
                tree.notes.append(f"blocks of nodes are those of {other.get('topology')!r}")
    return tree_reading(_joined(tree) if kind == "block" else tree)


def _kind(topology: Mapping[str, object]) -> str:
    return next((kind for kind in _KINDS if kind in topology), "")


def _tree(shape: _Shape, topology: Mapping[str, object]) -> Tree:
    tree = Tree("slurm-topology-yaml", shape.source)
    kind = _kind(topology)
    many, one = ("switches", "switch") if kind == "tree" else ("blocks", "block")
    for i, item in enumerate(shape.items(shape.mapping(topology[kind], kind).get(many), f"{kind}.{many}"), 1):
        entry, place = shape.mapping(item, f"{kind}.{many}[{i}]"), f"{kind}.{many}[{i}]"
        name = shape.text(entry.get(one), f"{place}.{one}")
        tree.add(Group(name, shape.names(entry.get("children"), place), shape.names(entry.get("nodes"), place), place))
    shape.settle()
    return tree


def _lattices(shape: _Shape, kind: str, data: object, notes: list[str]) -> Lattices:
    found = Lattices("slurm-topology-yaml", shape.source, notes=notes)
    many = {"ring": "rings", "torus3d": "toruses"}[kind]
    for i, item in enumerate(shape.items(shape.mapping(data, kind).get(many), f"{kind}.{many}"), 1):
        place = f"{kind}.{many}[{i}]"
        entry = shape.mapping(item, place)
        nodes = shape.names(entry.get("nodes"), place)
        sides = shape.mapping(entry.get("dims"), f"{place}.dims") if kind == "torus3d" else {"x": len(nodes)}
        dims = tuple(
            shape.whole(sides.get(axis), f"{place}.dims.{axis}")
            for axis in ("x", "y", "z")[: 3 if kind == "torus3d" else 1]
        )
        found.grids.append((nodes, dims, place))
    shape.settle()
    return found


class _Shape:
    """Checks what YAML gave: lists, mappings and names where they should be; faults are gathered."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.faults: list[Fault] = []

    def items(self, value: object, place: str) -> list[object]:
        """Return a list, or a fault and nothing."""
        return value if isinstance(value, list) else self._wrong(value, place, "a list", [])

    def mapping(self, value: object, place: str) -> dict[str, object]:
        """Return a mapping, or a fault and nothing."""
        return value if isinstance(value, dict) else self._wrong(value, place, "keys and values", {})

    def text(self, value: object, place: str) -> str:
        """Return a name; YAML makes 8 of a bare 010, so numbers are refused."""
        return value if isinstance(value, str) and value else self._wrong(value, place, "a name (quote it)", "")

    def whole(self, value: object, place: str) -> int:
        """Return a whole number above zero."""
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        return self._wrong(value, place, "a whole number above zero", 1)

    def names(self, value: object, place: str) -> list[str]:
        """Return the names of a hostlist, or of a list of hostlists."""
        found: list[str] = []
        for item in value if isinstance(value, list) else [] if value is None else [value]:
            try:
                found += expand_hostlist(self.text(item, place), place=place, file=self.source.file)
            except InputError as error:
                self.faults += error.faults
        return found

    def settle(self) -> None:
        """Raise what was found."""
        if self.faults:
            raise InputError(*self.faults)

    def _wrong(self, value: object, place: str, wanted: str, instead: T) -> T:
        self.faults.append(
            Fault(place, repr(value)[:60], f"must be {wanted}", "See topology.yaml(5).", self.source.file)
        )
        return instead


READERS: tuple[Reader, ...] = (
    Reader("slurm-topology", "Slurm's topology.conf (tree or block)",
           lambda source: any(map(_CONF.match, source.lines)), _read_conf),
    Reader("slurm-topology-yaml", "Slurm's topology.yaml (tree, block, ring, torus3d)",
           lambda source: all(any(map(pattern.match, source.lines)) for pattern in (_YAML, _SHAPE)), _read_yaml),
)  # fmt: skip
