"""Does XML keep its lines, and are entities refused?"""

from __future__ import annotations

import pytest

from topo import InputError, parse_xml


def test_elements_know_their_line() -> None:
    root = parse_xml(b'<?xml version="1.0"?>\n<a>\n  <b/>\n  <b\n  x="1"/>\n</a>', "file.xml")
    assert [root.line, *(element.line for element in root)] == [2, 3, 4]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"<a>\n<b></a>", "file.xml: line 2 = .*not well-formed"),
        (b'<!DOCTYPE a [<!ENTITY e "x">]>\n<a>&e;</a>', "file.xml: line 1 = 'entity'"),
    ],
)
def test_what_is_refused_names_its_line(text: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_xml(text, "file.xml")
