"""Which software runs the collective, and what does it cost beyond the wires? Named sets of measured constants."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cache
from importlib import resources
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict

from collectives._constants import CONSTANTS, Constant
from topo import Fault, InputError, suggest
from topo.units import format_quantity, parse_quantity

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["Profile", "Shelf", "list_profiles", "load_profile", "write_profile"]


@dataclass(frozen=True, eq=False)
class Shelf:
    """Profiles that ship with one package, and the laws files of their kind may have.

    Attributes
    ----------
    package : str
        Their folder is its `profiles`.
    laws : mapping of str to mapping of str to Constant
        Law -> constant -> unit and meaning.
    docs : str
        The page that lists every key.
    """

    package: str
    laws: Mapping[str, Mapping[str, Constant]]
    docs: str


#: Of libraries of collectives.
_LIBRARIES = Shelf("collectives", CONSTANTS, "docs/predictions.md")
_RATE, _FACTOR = Constant("bandwidth", "scale-up of a GPU"), Constant("ratio", "factor on latencies", 1e-6)


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A named, versioned set of constants of one library on one generation of chips.

    Attributes
    ----------
    name : str
        What results print.
    version : int
        Goes up when constants change.
    law : str
        The row of its shelf's laws (`collectives.CONSTANTS`) that lists its constants; "ideal" has none.
    source : str
        What it was fitted to.
    fitted : date or None
        When.
    libraries : tuple of str
        Texts of which a measured table's library holds one, in any case.
    chips : tuple of str
        Chips it was fitted on.
    bandwidth : float
        Nominal scale-up bandwidth of a GPU it was fitted at; 0 if none [bytes/s].
    band : (float, float)
        Median and 90th percentile of |predicted / measured - 1| on curves left out of the fit.
    constants : dict
        Dotted name -> SI value or ratio.
    errors : dict
        Dotted name -> relative standard error of the fit.
    environments : dict
        Text in a library's name -> factor on its latencies (clouds differ).
    copies : str
        How an expert layer's tokens are copied: a row of `collectives.COPIES`.

    Examples
    --------
    >>> load_profile("ideal").law
    'ideal'
    """

    __pydantic_config__ = ConfigDict(extra="forbid")
    name: str
    version: int
    law: str
    source: str
    fitted: date | None = None
    libraries: tuple[str, ...] = ()
    chips: tuple[str, ...] = ()
    bandwidth: float = 0.0
    band: tuple[float, float] = (0.0, 0.0)
    constants: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    environments: dict[str, float] = field(default_factory=dict)
    copies: str = "direct"

    def within(self, library: str) -> Profile:
        """Return the profile in the environment that a library's name tells of."""
        for text, factor in self.environments.items():
            if text.casefold() in library.casefold():
                latency = factor * self.constants["latency.environment"]
                return replace(self, constants={**self.constants, "latency.environment": latency})
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, SI units."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        fitted = None if self.fitted is None else self.fitted.isoformat()
        listed = {name: list(found[name]) for name in ("libraries", "chips", "band")}
        return {**found, "fitted": fitted, **listed}


@cache
def list_profiles(shelf: Shelf = _LIBRARIES) -> tuple[str, ...]:
    """Return the names of the profiles that ship: those of libraries, unless another shelf is named.

    Examples
    --------
    >>> "ideal" in list_profiles()
    True
    """
    folder = resources.files(shelf.package) / "profiles"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_profile(name_or_path: str | os.PathLike[str] | Profile, shelf: Shelf = _LIBRARIES) -> Profile:
    """Return the validated profile of a name or a TOML file; a Profile is given back.

    Parameters
    ----------
    name_or_path : str, path or Profile
        A name of `list_profiles`, or a file that `write_profile` wrote.
    shelf : Shelf, optional
        Where names are looked up, and the laws a file may have.

    Raises
    ------
    InputError
        Unknown name, unreadable file, or anything wrong in it (all at once).

    Examples
    --------
    >>> load_profile("ideal").constants
    {}
    """
    if isinstance(name_or_path, Profile):
        return name_or_path
    if not isinstance(name_or_path, str | os.PathLike):
        rule = "must be a name, a file or a Profile"
        raise InputError(Fault("profile", name_or_path, rule, suggest("", list_profiles(shelf))))
    text, file = _read(os.fspath(name_or_path), shelf)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(Fault("TOML", str(error), "is not valid TOML", "Correct that line.", file)) from None
    return _validated(data, file, shelf)


def write_profile(profile: Profile, path: str | os.PathLike[str], shelf: Shelf = _LIBRARIES) -> None:
    """Write a profile as the TOML file that `load_profile` reads.

    Constants are written with their units and six digits.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    try:
        Path(path).write_text("".join(f"{line}\n" for line in _lines(profile, shelf)), encoding="utf-8")
    except OSError as error:
        rule = f"cannot be written: {error.strerror or error}"
        raise InputError(Fault("profile", os.fspath(path), rule, "Name a file you may write to.")) from None


def _read(name: str, shelf: Shelf) -> tuple[str, str]:
    if name in list_profiles(shelf):
        return (resources.files(shelf.package) / "profiles" / f"{name}.toml").read_text(encoding="utf-8"), name
    if not name.endswith(".toml") and not os.path.isfile(name):
        cure = suggest(name, list_profiles(shelf))
        raise InputError(Fault("profile", name, "is not a known profile and no file", cure))
    try:
        return Path(name).read_text(encoding="utf-8-sig"), name
    except (OSError, ValueError) as error:
        rule = f"cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}"
        raise InputError(Fault("profile", name, rule, "Give a file of `rackbound calibrate --save`.")) from None


def _validated(data: dict[str, Any], file: str, shelf: Shelf) -> Profile:
    from pydantic import ValidationError

    faults: list[Fault] = []
    rows = shelf.laws.get(str(data.get("law")), {})
    cure = f"Add it; {shelf.docs} lists every key."
    if "law" in data and data["law"] not in shelf.laws:
        faults.append(Fault("law", data["law"], "is no known law", suggest(str(data["law"]), shelf.laws), file))
    tables = {name: dict(_flat(data.get(name, {}))) for name in ("constants", "errors")}
    faults += _strange(tables, rows, file, cure) if rows or not faults else []
    values: dict[str, float] = {}
    for key in [key for key in tables["constants"] if key in rows]:
        values[key] = _value(tables["constants"][key], rows[key], f"constants.{key}", faults, file)
    stated = {"bandwidth": _value(data["bandwidth"], _RATE, "bandwidth", faults, file)} if "bandwidth" in data else {}
    for text, factor in _flat(data.get("environments", {})):
        _value(factor, _FACTOR, f"environments.{text}", faults, file)
    try:
        found = _adapter().validate_python({**data, **tables, **stated, "constants": values})
    except ValidationError as error:
        faults += [_fault(detail, file, cure) for detail in error.errors()]
    else:
        if not 0 <= found.band[0] <= found.band[1] < inf:
            rule = "must be the median and the 90th percentile of an error"
            faults.append(Fault("band", data["band"], rule, "Write [0.05, 0.15].", file))
    if faults:
        raise InputError(*faults)
    return found


@cache
def _adapter() -> TypeAdapter[Profile]:
    from pydantic import TypeAdapter

    return TypeAdapter(Profile)


def _strange(tables: dict[str, dict[str, Any]], rows: Mapping[str, Any], file: str, cure: str) -> Iterator[Fault]:
    """Find constants of another law, and those this law misses."""
    for table, found in tables.items():
        for key in found:
            if key not in rows:
                yield Fault(f"{table}.{key}", found[key], "is no constant of this law", suggest(key, rows), file)
    for key in rows:
        if key not in tables["constants"]:
            yield Fault(f"constants.{key}", None, "is missing", cure, file)


def _flat(table: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items() if isinstance(table, Mapping) else ():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _value(value: Any, row: Constant, place: str, faults: list[Fault], file: str) -> float:
    """Return a constant; what is wrong with it joins the faults."""
    try:
        if row.unit != "ratio":
            return parse_quantity(value, row.unit, place=place, zero=True)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < inf:
            raise InputError(Fault(place, value, "must be a finite number", "Write 0.8."))
        if not row.least <= value <= row.most:
            rule = f"must be {row.least:g} or more" if value < row.least else f"must not be more than {row.most:g}"
            raise InputError(Fault(place, value, rule, f"It is: {row.meaning}."))
        return float(value)
    except InputError as error:
        faults += [replace(fault, file=file) for fault in error.faults]
        return 0.0


def _fault(detail: Any, file: str, cure: str) -> Fault:
    place = ".".join(str(part) for part in detail["loc"])
    if detail["type"] in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return Fault(place, None, "is missing", cure, file)
    if detail["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        cure = suggest(place, [f.name for f in fields(Profile)])
        return Fault(place, detail["input"], "is not a key of a profile", cure, file)
    rule = detail["msg"][0].lower() + detail["msg"][1:]
    return Fault(place, detail["input"], rule, "Correct the value.", file)


def _lines(profile: Profile, shelf: Shelf) -> Iterator[str]:
    for name in ("name", "version", "law", "libraries", "source", "fitted", "chips", "band", "copies"):
        value = getattr(profile, name)
        if value is not None and (name, value) != ("copies", "direct"):
            yield f"{name} = {_toml(value)}"
    if profile.bandwidth:
        yield f"bandwidth = {_toml(format_quantity(profile.bandwidth, 'bandwidth'))}"
    for table in ("constants", "errors"):
        found = getattr(profile, table)
        for group in dict.fromkeys(key.partition(".")[0] for key in found):
            yield from ("", f"[{table}.{group}]")
            for key in [key for key in found if key.partition(".")[0] == group]:
                row = shelf.laws[profile.law][key]
                if table == "errors" or row.unit == "ratio":
                    written: Any = float(f"{found[key]:.6g}")
                else:
                    written = format_quantity(found[key], row.unit, 6)
                said = f"  # {row.meaning}" if table == "constants" else ""
                yield f"{key.partition('.')[2]} = {_toml(written)}{said}"
    if profile.environments:
        yield from ("", "[environments]")
        yield from (f"{_toml(text)} = {_toml(factor)}" for text, factor in profile.environments.items())


def _toml(value: Any) -> str:
    """Return a value as TOML writes it; a JSON text is a TOML basic string."""
    import json

    if isinstance(value, tuple):
        return f"[{', '.join(_toml(each) for each in value)}]"
    return value.isoformat() if isinstance(value, date) else json.dumps(value)
