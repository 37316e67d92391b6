"""What stands under a key of a config, and what is wrong with it?

Faults and notes are gathered, never raised here: the caller says everything at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from topo import Fault

__all__ = ["Keys"]

#: No size in a config comes near it, and products of sizes stay within a float.
_MOST = 1_000_000_000

_ABSENT = object()

_GIVE = "Give the key as the model's publisher does."


@dataclass
class Keys:
    """One JSON object of a config, with the faults found and the notes taken while reading it.

    Parameters
    ----------
    config : mapping of str to object
        The object.
    file : str
        Where it was read, for the faults.
    prefix : str
        Dotted place of the object in the file ("text_config."), empty for the whole file.
    outer : mapping of str to object
        Where `anywhere` looks when the object lacks a key: the file around a nested object.
    """

    config: Mapping[str, object]
    file: str
    prefix: str = ""
    outer: Mapping[str, object] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fault(self, key: str, value: object, rule: str, cure: str = _GIVE) -> None:
        """Remember one fault; `key` without the prefix."""
        root = key.split(".")[0]
        prefix = "" if root in self.outer and root not in self.config else self.prefix
        self.faults.append(Fault(prefix + key, value, rule, cure, self.file))

    def note(self, text: str) -> None:
        """Remember something that was filled in or ignored."""
        self.notes.append(text)

    def has(self, name: str) -> bool:
        """Whether a key is there; dots lead into nested objects."""
        return self._found(name) is not _ABSENT

    def value(self, name: str) -> object:
        """Return what stands under a key, None when it is not there."""
        found = self._found(name)
        return None if found is _ABSENT else found

    def _found(self, name: str) -> object:
        place: object = self.config
        for piece in name.split("."):
            if not isinstance(place, Mapping) or piece not in place:
                return _ABSENT
            place = place[piece]
        return place

    def spelling(self, names: tuple[str, ...]) -> str | None:
        """Return the first of the spellings that holds something, else one that is null; two at odds are a fault."""
        there = [name for name in names if self.has(name)]
        stated = [name for name in there if self.value(name) is not None]
        for other in stated[1:]:
            if self.value(other) != self.value(stated[0]):
                rule = f"disagrees with {self.prefix}{stated[0]} = {self.value(stated[0])!r}, the same thing"
                self.fault(other, self.value(other), rule, "Keep one of the two.")
        return next(iter(stated or there), None)

    def whole(self, *names: str, minimum: int = 1) -> int:
        """Return the whole number a key must hold, under any of its spellings; 0 when it is at fault."""
        name = self.spelling(names)
        if name is None:
            looked = ", ".join(self.prefix + spelling for spelling in names)
            self.fault(names[0], None, f"key is missing; looked for {looked}")
            return 0
        return self._checked(name, minimum)

    def alike(self, *names: str, default: int | None = None, said: str = "", minimum: int = 1) -> int:
        """Return a whole number that may also be stated layer by layer; layers that differ are a fault.

        A key that is absent is a fault too unless there is a `default` (noted if `said`).
        """
        name = self.spelling(names)
        rows = self.value(name) if name else None
        if name is None or not isinstance(rows, list):
            if default is None:
                return self.whole(*names, minimum=minimum)
            return self.whole_or(default, *names, minimum=minimum, said=said) or 0
        if not rows or any(row != rows[0] for row in rows):
            self.fault(name, rows, "differs from layer to layer, which is not modelled", "Take the model apart.")
            return 0
        return self._checked(name, minimum, rows[0])

    def whole_or(self, default: int | None, *names: str, minimum: int = 0, said: str = "") -> int | None:
        """Return the whole number under a key that may be absent or null, then `default` (noted if `said`)."""
        name = self.spelling(names)
        if name is None or self.value(name) is None:
            if said:
                state = "is missing" if name is None else "is null"
                self.note(f"{self.prefix}{names[0]} {state}: {said}")
            return default
        return self._checked(name, minimum)

    def _checked(self, name: str, minimum: int, row: object = None) -> int:
        value = self.value(name) if row is None else row
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            kind = "a positive whole number" if minimum == 1 else f"a whole number of at least {minimum}"
            state = "is null where there must be" if value is None else "must be"
            self.fault(name, value, f"{state} {kind}")
            return 0
        if value > _MOST:
            self.fault(name, value, f"is more than {_MOST:,}, which no model has")
            return 0
        return value

    def flag(self, name: str, *, default: bool = False, quiet: bool = False) -> bool:
        """Return the true or false under a key, here or in the file around; the default, and noted, when missing."""
        value = self.anywhere(name)
        if value is None:
            if not quiet:
                self.note(f"{name} is missing: {str(default).lower()} taken, the default of the model's class")
            return default
        if not isinstance(value, bool):
            self.fault(name, value, "must be true or false")
        return value is True

    def anywhere(self, *names: str) -> object:
        """Return what stands under the first of the keys that is there and not null, here or in the file around."""
        for source in (self.config, self.outer):
            for name in names:
                if source.get(name) is not None:
                    return source[name]
        return None
