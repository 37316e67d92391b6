"""Where in a text is the XML, and what if it was cut off? Pasted files have prose around them, or no end."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

from topo._errors import Fault, InputError
from topo._xml import parse_xml
from topo.readers._reading import Source

__all__ = ["line_of", "root_of"]

_TAG = re.compile(r"<!--(?:.*?-->|.*\Z)|<(/?)([A-Za-z_][\w:.-]*)((?:\"[^\"<]*\"|'[^'<]*'|[^<>\"'])*+)>", re.DOTALL)
_DEEPEST, _MOST_ROOTS = 200, 64


def root_of(source: Source, tag: str) -> tuple[Element, list[str], bool]:
    """Return the element of a tag in a text, notes, and whether its end is missing.

    Parameters
    ----------
    source : Source
        The text.
    tag : str
        Of the root.

    Raises
    ------
    InputError
        XML with faults other than a missing end; several different roots; too deep.
    """
    text = source.clean
    starts = [match.start() for match in re.finditer(rf"<{tag}(?=[\s/>])", text)]
    if not starts:
        raise InputError(Fault(f"<{tag}>", None, "is not in the file", f"Give a file with <{tag}>.", source.file))
    if len(starts) > _MOST_ROOTS:
        rule = f"stands there more than {_MOST_ROOTS} times"
        raise InputError(Fault(f"<{tag}>", len(starts), rule, "Give one file per host.", source.file))
    bodies = [_body(text, start, tag) for start in starts]
    for start, body in zip(starts[1:], bodies[1:], strict=True):
        if body.split() != bodies[0].split():
            rule = f"is another <{tag}> than the first"
            cure = "Give one file per host."
            raise InputError(Fault(f"line {_line(text, start)}", f"<{tag}>", rule, cure, source.file))
    notes = [f"<{tag}> stands there {len(starts)} times, the same: taken once"] if len(starts) > 1 else []
    head = text[: starts[0]]
    doctype = "".join(re.findall(r"<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>", head[:16384], re.DOTALL)[:1])
    blank = "\n" * (head.count("\n") - doctype.count("\n"))
    body, cut = _closed(bodies[0], source.file)
    if cut:
        end = _line(text, starts[0] + len(bodies[0].rstrip()))
        notes.append(f"the file is cut off at line {end}: what stands before is read, what came after is not known")
    return parse_xml((doctype + blank + body).encode("utf-8", "surrogatepass"), source.file), notes, cut


def _body(text: str, start: int, tag: str) -> str:
    end = text.find(f"</{tag}>", start)
    following = re.compile(rf"<{tag}(?=[\s/>])").search(text, start + 1)
    if end >= 0 and (following is None or end < following.start()):
        return text[start : end + len(tag) + 3]
    if alone := re.compile(rf"<{tag}[^<>]*/>").match(text, start):
        return alone[0]
    return text[start : following.start() if following else len(text)]


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _closed(body: str, file: str) -> tuple[str, bool]:
    """Return XML with the tags closed that its missing end leaves open, and whether there were any."""
    open_tags: list[str] = []
    end = 0
    for match in _TAG.finditer(body):
        closing, name, rest = match[1], match[2], match[3] or ""
        if name is None and not match[0].endswith("-->"):
            break  # a comment without an end
        if name is None:
            pass
        elif closing and (not open_tags or open_tags.pop() != name):
            return body, False  # the parser says what is wrong
        elif not closing and not rest.rstrip().endswith("/"):
            open_tags.append(name)
        if len(open_tags) > _DEEPEST:
            rule = f"has elements more than {_DEEPEST} deep"
            raise InputError(Fault(f"line {_line(body, match.start())}", name, rule, "Give a file of a host.", file))
        end = match.end()
    if not open_tags:
        return body, False
    if not re.fullmatch(r"[^<>]*+(?:<[^>]*+|<!--.*)?", body[end:], re.DOTALL):
        return body, False
    return body[:end] + "".join(f"</{name}>" for name in reversed(open_tags)), True


def line_of(source: Source, value: str) -> str:
    """Return the place of a value in the text, as a fault states it."""
    at = source.clean.find(f'"{value}"')
    return f"line {_line(source.clean, at)}" if at >= 0 else "file"
