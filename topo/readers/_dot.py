"""What does a Graphviz file say? The graph it draws, where nodes and edges state what this project needs.

A small parser of its own: DOT is a grammar of ten rules, and pydot, the library for it, prints
its errors instead of raising them with a line and takes minutes for a fabric of 10,000 hosts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import networkx as nx

from topo._asked import MOST
from topo._errors import InputError
from topo._values import from_plain
from topo.readers._parts import Checked
from topo.readers._reading import Reader, Reading, Source
from topo.units import Kind, parse_quantity

__all__ = ["DOT"]

_OPENING = re.compile(
    r"\s*(?:(?://|#)[^\n]*\n\s*|/\*.*?\*/\s*)*(?:strict\s+)?(?:di)?graph\b\s*(?:\"(?:\\.|[^\"\\])*\"|[\w.]+)?\s*\{",
    re.S | re.I,
)
_TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*|^\#[^\n]*|/\*.*?\*/)"
    r"|(?P<quoted>\"(?:\\.|[^\"\\])*\")|(?P<edge>--|->)|(?P<mark>[{}\[\];,=:+])"
    r"|(?P<word>-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)|[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)|(?P<html><)",
    re.S | re.M,
)
_NEEDED = {"node": ("kind",), "edge": ("kind", "bandwidth", "latency")}
#: Attributes that are text whatever they look like.
_TEXTS = ("kind", "tier", "chip", "name", "nic")
_JSON = json.JSONDecoder(parse_constant=str)
_UNITS: dict[str, Kind] = {"bandwidth": "bandwidth", "latency": "seconds"}


class _Token(NamedTuple):
    """A piece of the file: its line, what it is (a mark, "id", "edge" or "end") and its text."""

    line: int
    what: str
    text: str


@dataclass
class _Scope:
    """Defaults of nodes and edges within one pair of braces."""

    node: dict[str, str] = field(default_factory=dict)
    edge: dict[str, str] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)

    def within(self) -> _Scope:
        return _Scope(dict(self.node), dict(self.edge))


def _recognises(source: Source) -> bool:
    return bool(_OPENING.match(source.clean[:20_000].lstrip("\ufeff")))


def _read(source: Source) -> Reading:
    checked = Checked(source.file)
    parser = _Parser(checked, list(_tokens(checked, source.clean.lstrip("\ufeff"))))
    graph = parser.graph()
    for line, what, data in parser.stated:
        for key in _NEEDED[what[:4]]:
            if key not in data:
                cure = f'State it, or give all of them a default: {what[:4]} [{key}="..."];'
                checked.fault(f"line {line} {what} {key}", None, "is not stated", cure)
    for line, what, data in parser.stated:
        for key in set(_UNITS) & set(data):
            if isinstance(data[key], str):
                data[key] = _quantity(checked, f"line {line} {what} {key}", data[key], _UNITS[key])
    checked.settle()
    notes: list[str] = []
    if graph.graph.get("schema") != 1:
        graph.graph.update(schema=1, assumptions=notes)
        notes.append("attributes whose text is a number or JSON are read as that")
    return Reading("dot", graph, tuple(notes))


def _quantity(checked: Checked, place: str, text: str, kind: Kind) -> float:
    try:
        return parse_quantity(text, kind, place=place, file=checked.file, zero=kind == "seconds")
    except InputError as error:
        checked.faults += error.faults
        return 1.0


def _tokens(checked: Checked, text: str) -> Iterator[_Token]:
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            found = text[at : at + 20].split("\n")[0]
            rule = "is an open quotation" if found[0] == '"' else "is no DOT"
            raise checked.refuse(f"line {line}", found, rule, "Correct that line; the file may be cut off.")
        what, found = str(match.lastgroup), match[0]
        if what == "html":
            raise checked.refuse(f"line {line}", text[at : at + 20], "is HTML text, which is not read", "Quote it.")
        if what != "skip":
            kind = {"quoted": "id", "word": "id", "mark": found}.get(what, what)
            yield _Token(line, kind, _unquoted(found) if what == "quoted" else found)
        line += found.count("\n")
        at = match.end()
    yield _Token(line, "end", "the end of the file")


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    return re.sub(r'\\(["\\])', r"\1", inner.replace("\\\n", "")) if "\\" in inner else inner


def _value(key: str, text: str) -> Any:
    """Return an attribute's value: JSON where its text is JSON, as `topo.write` writes what is no text."""
    if key in _TEXTS:
        return text
    try:
        value = _JSON.decode(text)
    except (ValueError, RecursionError):
        return text
    return from_plain(value)


class _Parser:
    """The statements of one file, token by token."""

    def __init__(self, checked: Checked, tokens: list[_Token]) -> None:
        self.checked, self.tokens, self.at = checked, tokens, 0
        self.made: nx.Graph[str] = nx.Graph()
        self.depth = 0
        #: Line, what, and attributes of every node and edge, for what is missing in the end.
        self.stated: list[tuple[int, str, dict[str, Any]]] = []

    def take(self, *whats: str) -> _Token:
        """Return the next token, which must be one of these."""
        token = self.tokens[self.at]
        if token.what not in whats:
            wanted = " or ".join("a name" if what == "id" else repr(what) for what in whats)
            cure = "Correct that line; the file may be cut off."
            raise self.checked.refuse(f"line {token.line}", token.text[:40], f"stands where {wanted} must", cure)
        self.at += token.what != "end"
        return token

    def next_is(self, *whats: str) -> bool:
        return self.tokens[self.at].what in whats

    def graph(self) -> nx.Graph[str]:
        word = self.take("id").text.lower()
        if word == "strict":
            word = self.take("id").text.lower()
        self.made = nx.DiGraph() if word == "digraph" else nx.Graph()
        if self.next_is("id"):
            self.made.graph["name"] = self.name()
        self.take("{")
        self.statements(_Scope())
        self.take("end")
        return self.made

    def name(self) -> str:
        text = self.take("id").text
        while self.next_is("+"):
            self.take("+")
            text += self.take("id").text
        return text

    def statements(self, scope: _Scope) -> None:
        """Read to the closing brace."""
        self.depth += 1
        if self.depth > 50:
            token = self.tokens[self.at]
            raise self.checked.refuse(f"line {token.line}", token.text, "is within more than 50 pairs of braces")
        while not self.next_is("}"):
            if self.next_is(";", ","):
                self.take(";", ",")
                continue
            self.statement(scope)
        self.take("}")
        self.depth -= 1

    def statement(self, scope: _Scope) -> None:
        start = self.tokens[self.at]
        word, following = start.text.lower(), self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        if word in ("node", "edge", "graph") and following.what == "[":
            self.take("id")
            given = self.attributes()
            if word == "graph":
                self.about(given)
            else:
                (scope.node if word == "node" else scope.edge).update(given)
        elif start.what == "id" and following.what == "=":
            key = self.name()
            self.take("=")
            self.about({key: self.name()})
        else:
            self.chain(scope, start)

    def about(self, given: dict[str, str]) -> None:
        if self.depth == 1:
            self.made.graph.update({key: _value(key, text) for key, text in given.items()})

    def attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while self.next_is("["):
            self.take("[")
            while not self.next_is("]"):
                key = self.name()
                found[key] = "true"
                if self.next_is("="):
                    self.take("=")
                    found[key] = self.name()
                if self.next_is(",", ";"):
                    self.take(",", ";")
            self.take("]")
        return found

    def chain(self, scope: _Scope, start: _Token) -> None:
        """Read a node, or nodes and subgraphs with edges between."""
        groups = [self.operand(scope)]
        while self.next_is("edge"):
            arrow = self.take("edge")
            if (arrow.text == "->") != self.made.is_directed():
                rule = "must be -> in a digraph and -- in a graph"
                raise self.checked.refuse(f"line {arrow.line}", arrow.text, rule)
            groups.append(self.operand(scope))
        given = self.attributes()
        if len(groups) == 1:
            for name in groups[0] if given else ():
                self.made.nodes[name].update({key: _value(key, text) for key, text in given.items()})
            return
        data = {key: _value(key, text) for key, text in (scope.edge | given).items()}
        for tails, heads in pairwise(groups):
            for a, b in ((a, b) for a in tails for b in heads):
                self.edge(start.line, a, b, dict(data))

    def edge(self, line: int, a: str, b: str, data: dict[str, Any]) -> None:
        if self.made.has_edge(a, b):
            cure = "Merge parallel cables into one edge: bandwidth of the bundle, lanes = their number."
            self.checked.fault(f"line {line}", f"{a} {b}", "stands there twice", cure)
        if len(self.stated) >= MOST:
            raise self.checked.refuse(f"line {line}", f"{a} {b}", f"is more than {MOST:,} nodes and edges")
        self.made.add_edge(a, b, **data)
        self.stated.append((line, f"edge {a} {b}", self.made.edges[a, b]))

    def operand(self, scope: _Scope) -> list[str]:
        """Return the nodes of a node or subgraph, which is read."""
        if self.next_is("{") or self.tokens[self.at].text.lower() == "subgraph":
            if not self.next_is("{"):
                self.take("id")
                if self.next_is("id"):
                    self.name()
            self.take("{")
            inner = scope.within()
            self.statements(inner)
            scope.names.update(inner.names)
            return list(inner.names)
        line = self.tokens[self.at].line
        name = self.name()
        for _ in range(2):  # a port and its compass point say where a line is drawn
            if self.next_is(":"):
                self.take(":")
                self.take("id")
        if name not in self.made:
            self.made.add_node(name, **{key: _value(key, text) for key, text in scope.node.items()})
            self.stated.append((line, f"node {name}", self.made.nodes[name]))
        scope.names[name] = None
        return [name]


DOT = Reader("dot", "Graphviz file", _recognises, _read)
