"""How is XML from the field read? A DTD is taken, not fetched; entities and external references are refused."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from topo._errors import Fault, InputError

__all__ = ["parse_xml"]


def parse_xml(text: bytes, file: str) -> Element:
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
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True

    def refuse(*_: Any) -> None:
        cure = "Write the text of the entity where it stands."
        raise InputError(
            Fault(
                f"line {parser.CurrentLineNumber}", "entity", "entities and external references are refused", cure, file
            )
        )

    parser.StartElementHandler = lambda name, attributes: _drop(
        builder.start(_qualified(name), {_qualified(key): value for key, value in attributes.items()})
    )
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
    return builder.close()


def _qualified(name: str) -> str:
    return f"{{{name}" if "}" in name else name


def _drop(_: object) -> None:
    """Expat's handlers return nothing."""
