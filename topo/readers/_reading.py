"""What does a reader get, and what does it give back? The records of this folder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import networkx as nx

__all__ = ["Foreign", "Reader", "Reading", "Source", "Tables"]

#: Colours and cursor moves of a terminal, as a pasted session has them.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_PLURAL = {"switch": "switches"}


@dataclass(frozen=True)
class Source:
    """A file as a reader sees it: its name for messages, its text as it is and cleaned.

    Attributes
    ----------
    file : str
        For messages.
    text : str
        Decoded, line ends normalised to newline, nothing else changed.
    """

    file: str
    text: str

    @cached_property
    def clean(self) -> str:
        """The text without terminal colours and carriage returns."""
        return _ANSI.sub("", self.text).replace("\r", "")

    @cached_property
    def lines(self) -> list[str]:
        """Lines of the cleaned text; line number = index + 1."""
        return self.clean.split("\n")


@dataclass(frozen=True, eq=False, repr=False)
class Tables:
    """Forwarding tables of a subnet manager: which port a switch sends on towards which LID.

    Attributes
    ----------
    engine : str
        Routing engine, "" where the file does not say.
    next_port : dict of dict
        Switch node GUID ("0x" and 16 hex digits) -> LID -> port number it leaves by (0: the
        switch itself).
    names : dict
        Switch node GUID -> its name in the file, "" where it has none.
    lids : dict
        LID -> (port GUID, name) of its owner, where the file says so.
    """

    engine: str
    next_port: dict[str, dict[int, int]]
    names: dict[str, str] = field(default_factory=dict)
    lids: dict[int, tuple[str, str]] = field(default_factory=dict)

    def __repr__(self) -> str:
        rows = sum(len(row) for row in self.next_port.values())
        return f"Tables({self.engine or 'engine not stated'}: {len(self.next_port)} switches, {rows} entries)"


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """What a file says.

    Attributes
    ----------
    kind : str
        Name of the format, a row of `topo.READERS`.
    graph : networkx.Graph or None
        Attributes as docs/graph.md; None where the file holds forwarding tables alone.
    notes : tuple of str
        Everything the reader had to assume or could not know.
    routing : Tables or None
        Forwarding tables, where the file has them.
    """

    kind: str
    graph: nx.Graph[str] | None
    notes: tuple[str, ...] = ()
    routing: Tables | None = None

    def __repr__(self) -> str:
        held = [] if self.graph is None else [_counted(self.graph)]
        held += [] if self.routing is None else [repr(self.routing)]
        return f"Reading({self.kind}: {'; '.join(held)}; {len(self.notes)} notes)"


@dataclass(frozen=True)
class Reader:
    """One format.

    Attributes
    ----------
    kind : str
        Its name, for `kind=` and ``--as``.
    title : str
        What people call such a file.
    recognises : callable
        Whether a source is of this format, by its content; cheap, and never raises.
    read : callable
        The reading; raises InputError with file, line, value, rule and cure.
    """

    kind: str
    title: str
    recognises: Callable[[Source], bool]
    read: Callable[[Source], Reading]


@dataclass(frozen=True)
class Foreign:
    """A format that holds no topology: named for what it is, with the verb that takes it."""

    kind: str
    title: str
    recognises: Callable[[Source], bool]
    cure: str


def _counted(graph: nx.Graph[str]) -> str:
    kinds = Counter(str(kind) for _, kind in graph.nodes(data="kind"))
    nodes = ", ".join(f"{n} {kind if n == 1 else _PLURAL.get(kind, f'{kind}s')}" for kind, n in kinds.items())
    return f"{nodes}, {graph.number_of_edges()} links"
