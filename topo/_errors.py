"""What a user can get wrong, and how it is said: file, place, value, rule, cure."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["Fault", "InputError", "suggest", "together"]

#: Letters of a value that are shown.
_MOST_SHOWN = 200


@dataclass(frozen=True)
class Fault:
    """One thing wrong with what the user gave.

    Parameters
    ----------
    place : str
        Dotted key, line, node, edge or argument the fault is in.
    value : object
        What stands there.
    rule : str
        What must hold, as the end of a sentence that starts with the place.
    cure : str
        What to do about it.
    file : str or None
        The file the place is in; None for arguments and graphs in memory.
    """

    place: str
    value: object
    rule: str
    cure: str
    file: str | None = None

    def __str__(self) -> str:
        where = f"{self.file}: {self.place}" if self.file else self.place
        return f"{where} = {_shown(self.value)}: {self.rule}. {self.cure}"


def _shown(value: object) -> str:
    """Return a value on one line; of a long one its beginning and its end."""
    text = " ".join(repr(value).split()) if not isinstance(value, str) else repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 50]} ... {text[-40:]}"


class InputError(ValueError):
    """Everything wrong with one input, said at once: the root of what a user can cause.

    Parameters
    ----------
    *faults : Fault
        At least one.

    Examples
    --------
    >>> raise InputError(Fault("--bytes", "1", "a size needs a unit", "Write 1GB."))
    Traceback (most recent call last):
        ...
    topo._errors.InputError: --bytes = '1': a size needs a unit. Write 1GB.
    """

    def __init__(self, *faults: Fault) -> None:
        self.faults = faults
        super().__init__("\n".join(str(fault) for fault in faults))


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a cure that lists the known names and suggests the nearest one.

    Parameters
    ----------
    name : str
        The name that is not known.
    known : iterable of str
        The names that are.

    Examples
    --------
    >>> suggest("evn", ["ecmp", "even"])
    "Did you mean 'even'? Known: ecmp, even."
    """
    names = sorted(known)
    by_fold = {candidate.casefold(): candidate for candidate in names}
    near = difflib.get_close_matches(name.casefold(), list(by_fold), n=1, cutoff=0.4)
    hint = f"Did you mean {by_fold[near[0]]!r}? " if near else ""
    return f"{hint}Known: {', '.join(names)}."


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Return what every call returns, or raise the faults of all of them at once.

    Parameters
    ----------
    *calls : callable
        Each without arguments.

    Raises
    ------
    InputError
        With every fault of every call, each once.

    Examples
    --------
    >>> together(lambda: 1, lambda: 2)
    [1, 2]
    """
    found: list[Any] = []
    faults: list[Fault] = []
    for call in calls:
        try:
            found.append(call())
        except InputError as error:
            faults += [fault for fault in error.faults if fault not in faults]
    if faults:
        raise InputError(*faults)
    return found
