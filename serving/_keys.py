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

    def spelling(self, names: tuple[str, ...]) -> str | None:
        """Return the first of the spellings that is there; two that disagree are a fault."""
        there = [name for name in names if name in self.config]
        for other in there[1:]:
            if self.config[other] != self.config[there[0]]:
                rule = f"disagrees with {self.prefix}{there[0]} = {self.config[there[0]]!r}, the same thing"
                self.fault(other, self.config[other], rule, "Keep one of the two.")
        return there[0] if there else None

    def whole(self, *names: str, minimum: int = 1) -> int:
        """Return the whole number a key must hold, under any of its spellings; 0 when it is at fault."""
        name = self.spelling(names)
        if name is None:
            looked = ", ".join(self.prefix + spelling for spelling in names)
            self.fault(names[0], None, f"key is missing; looked for {looked}")
            return 0
        return self._checked(name, minimum)

    def whole_or(self, default: int | None, *names: str, minimum: int = 0, said: str = "") -> int | None:
        """Return the whole number under a key that may be absent or null, then `default` (noted if `said`)."""
        name = self.spelling(names)
        if name is None or self.config[name] is None:
            if said:
                state = "is missing" if name is None else "is null"
                self.note(f"{self.prefix}{names[0]} {state}: {said}")
            return default
        return self._checked(name, minimum)

    def _checked(self, name: str, minimum: int) -> int:
        value = self.config[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            kind = "a positive whole number" if minimum == 1 else f"a whole number of at least {minimum}"
            state = "is null where there must be" if value is None else "must be"
            self.fault(name, value, f"{state} {kind}")
            return 0
        if value > _MOST:
            self.fault(name, value, f"is more than {_MOST:,}, which no model has")
            return 0
        return value

    def flag(self, name: str, *, quiet: bool = False) -> bool:
        """Return the true or false under a key, here or in the file around; false, and noted, when missing."""
        value = self.anywhere(name)
        if value is None and not quiet:
            self.note(f"{name} is missing: false taken, the default of the model's class")
        if value is not None and not isinstance(value, bool):
            self.fault(name, value, "must be true or false")
        return value is True

    def anywhere(self, *names: str) -> object:
        """Return what stands under the first of the keys that is there and not null, here or in the file around."""
        for source in (self.config, self.outer):
            for name in names:
                if source.get(name) is not None:
                    return source[name]
        return None
