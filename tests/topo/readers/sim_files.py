"""Files of simulators for the tests beside this one, and hands to damage them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx

from topo import Fault, InputError
from topo.readers._reading import Reader, Reading, Source

FOLDER = Path(__file__).parent.parent.parent / "data" / "readers-sim"


def source(name: str) -> Source:
    return Source(name, (FOLDER / name).read_text(encoding="utf-8"))


def read(reader: Reader, name: str) -> Reading:
    """A reading of a file that its reader recognises."""
    found = source(name)
    assert reader.recognises(found)
    reading = reader.read(found)
    assert reading.kind == reader.kind
    return reading


def graph_of(reading: Reading) -> nx.Graph[str]:
    assert reading.graph is not None
    return reading.graph


def kinds(graph: nx.Graph[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for _, kind in graph.nodes(data="kind"):
        found[kind] = found.get(kind, 0) + 1
    return found


def damaged(text: str, seed: int = 1) -> Iterator[str]:
    """The text cut at lines, with lines shuffled, doubled, and with random characters in it."""
    lines, draw = text.split("\n"), random.Random(seed)
    yield from ("\n".join(lines[:n]) for n in range(0, len(lines), max(1, len(lines) // 25)))
    yield text[: len(text) // 2]
    for _ in range(5):
        yield "\n".join(draw.sample(lines, len(lines)))
        twice = draw.randrange(len(lines))
        yield "\n".join([*lines[:twice], lines[twice], *lines[twice:]])
    for _ in range(20):
        at = draw.randrange(max(1, len(text)))
        yield (
            text[:at]
            + draw.choice(["", "\x00", "9999999999999999999", '"', "<", "{", "-1", "é", "nan"])
            + text[at + 1 :]
        )


def survives(reader: Reader, text: str, check: Callable[[nx.Graph[str]], object]) -> None:
    """Reading damaged text ends in a sound graph or in an InputError that names file and line."""
    for number, broken in enumerate(damaged(text)):
        found = Source("damaged.txt", broken)
        reader.recognises(found)
        faults, graph = outcome(reader, found)
        if graph is None:
            assert faults, number
            assert all(fault.file == "damaged.txt" for fault in faults), faults
        else:
            check(graph)


def outcome(reader: Reader, found: Source) -> tuple[tuple[Fault, ...], nx.Graph[str] | None]:
    """What is wrong with a file, or the graph it holds."""
    try:
        return (), graph_of(reader.read(found))
    except InputError as error:
        return error.faults, None
