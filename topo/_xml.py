"""How is XML from the field read? A DTD is taken, not fetched; entities and external references are refused."""

from __future__ import annotations

from typing import Any, cast
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from topo._errors import Fault, InputError

__all__ = ["XmlElement", "parse_xml"]


class XmlElement(Element):
    """An element that knows the line it starts on."""

    line: int = 0


def parse_xml(text: bytes, file: str) -> XmlElement:
    """Return the root element of an XML document.

    Parameters
    ----------
    text : bytes
        The document, in the encoding it states.
    file : str
        For messages.

    Raises
    ------
    InputError
        Text that is not well-formed, with its line; a declared, external or unknown
        entity, which could read files or grow without end.
    """
    builder = TreeBuilder(element_factory=XmlElement)
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True

    def refuse(*_: Any) -> None:
        cure = "Write the text of the entity where it stands."
        raise InputError(
            Fault(
                f"line {parser.CurrentLineNumber}", "entity", "entities and external references are refused", cure, file
            )
        )

    def start(name: str, attributes: dict[str, str]) -> None:
        named = {_qualified(key): value for key, value in attributes.items()}
        cast(XmlElement, builder.start(_qualified(name), named)).line = parser.CurrentLineNumber

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: _drop(builder.end(_qualified(name)))
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = refuse
    parser.UnparsedEntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse  # type: ignore[assignment]
    parser.SkippedEntityHandler = refuse
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        line = f"line {getattr(error, 'lineno', 1)}"
        raise InputError(Fault(line, str(error), "is not well-formed XML", "Correct that line.", file)) from None
    return cast(XmlElement, builder.close())


def _qualified(name: str) -> str:
    return f"{{{name}" if "}" in name else name


def _drop(_: object) -> None:
    """Expat's handlers return nothing."""
