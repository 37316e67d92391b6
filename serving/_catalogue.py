"""Which config does a name or a path mean?"""

from __future__ import annotations

import functools
import json
import os
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from topo import Fault, InputError, suggest

__all__ = ["Config", "find_config", "list_models"]


class Config(NamedTuple):
    """A parsed config.json: the model's name, the object, the file for faults, its source, notes on it."""

    name: str
    content: dict[str, object]
    file: str
    source: str
    notes: tuple[str, ...] = ()


def list_models() -> tuple[str, ...]:
    """Return the names of the catalogue's models; `load_model` takes their other names too.

    Returns
    -------
    tuple of str
        Sorted, one name per model.

    Examples
    --------
    >>> "deepseek-v3" in list_models()
    True
    """
    return tuple(sorted(set(_stems().values())))


@functools.cache
def _stems() -> dict[str, str]:
    """Name or alias -> file of the catalogue."""
    stems: dict[str, str] = {}
    for entry in (resources.files("serving") / "catalogue").iterdir():
        if entry.name.endswith(".json"):
            stem = entry.name.removesuffix(".json")
            aliases = json.loads(entry.read_text(encoding="utf-8")).get("_aliases", [])
            stems |= dict.fromkeys([stem, *aliases], stem)
    return stems


def find_config(name_or_path: str | os.PathLike[str]) -> Config:
    """Return the config a catalogue name, a file or a directory with a config.json stands for.

    Raises
    ------
    InputError
        There is no such name or file, or the file does not hold a JSON object.
    """
    if not isinstance(name_or_path, str | os.PathLike) or not os.fspath(name_or_path):
        value = name_or_path if isinstance(name_or_path, str) else type(name_or_path).__name__
        raise InputError(Fault("model", value, "must be a name or a path", "Give a catalogue name or a config.json."))
    text = os.fspath(name_or_path)
    name = text.casefold()
    if isinstance(name_or_path, str) and name in _stems():
        return _from_catalogue(name)
    path = Path(text)
    if path.is_dir():
        return _from_file(path / "config.json", path.resolve().name)
    if path.exists():
        return _from_file(path, path.stem.removesuffix(".config"))
    if isinstance(name_or_path, str) and not _looks_like_path(text):
        rule = "is neither a model of the catalogue nor a file"
        raise InputError(Fault("model", text, rule, suggest(text, _stems())))
    return _from_file(path, path.stem)


def _looks_like_path(text: str) -> bool:
    return "/" in text or os.sep in text or text.casefold().endswith(".json")


def _from_catalogue(name: str) -> Config:
    stem = _stems()[name]
    entry = resources.files("serving") / "catalogue" / f"{stem}.json"
    content = json.loads(entry.read_text(encoding="utf-8"))
    source = content["_source"]
    notes = tuple(content.get("_notes", ()))
    if name != stem:
        notes += (f"{name} has the same numbers as {stem}",)
    said = f"{source['config_source']} (confidence {source['confidence']})"
    return Config(name, content, f"catalogue/{stem}.json", said, notes)


def _from_file(path: Path, name: str) -> Config:
    file = str(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(Fault("model", file, "there is no such file", _nearest(path), file)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Fault("model", file, f"cannot be read: {error}", "Give a readable text file.", file)) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        line = (error.doc.splitlines() or [""])[min(error.lineno, len(error.doc.splitlines()) or 1) - 1].strip()[:60]
        cure = "Give the model's config.json as published."
        raise InputError(Fault(place, line, f"is not JSON: {error.msg}", cure, file)) from None
    except ValueError as error:
        rule = f"is not a config: {error}"
        raise InputError(Fault("(whole file)", file, rule, "Give the model's config.json.", file)) from None
    except RecursionError:
        raise InputError(Fault("model", file, "is nested too deep", "Give the model's config.json.", file)) from None
    if not isinstance(content, dict):
        rule = "must hold one JSON object"
        raise InputError(Fault("(whole file)", type(content).__name__, rule, "Give the model's config.json.", file))
    return Config(name, content, file, file)


def _nearest(path: Path) -> str:
    where = "The directory has no config.json. " if path.name == "config.json" and path.parent.is_dir() else ""
    return where + "Give a config.json, or a name of the catalogue. " + suggest(path.name, _stems())
