"""What does a config say once a user has stated what it leaves out?"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from serving._catalogue import Config
from topo import Fault, InputError

__all__ = ["assumed"]


def assumed(config: Config, assume: Mapping[str, object]) -> Config:
    """Return a config with keys set as assumed, each with a note; see `load_model`.

    Raises
    ------
    InputError
        A key that is no path into the config, or "@key" where the config has no such key.
    """
    if not isinstance(assume, Mapping) or not all(isinstance(key, str) for key in assume):
        raise InputError(Fault("assume", repr(assume), "must map keys to values", "Write {'model_type': 'mixtral'}."))
    if not assume:
        return config
    content, notes, faults = copy.deepcopy(config.content), [], []
    for key, value in assume.items():
        taken = value
        if isinstance(value, str) and value.startswith("@"):
            found, taken = _dig(config.content, value[1:])
            if not found:
                rule = f"names {value[1:]}, a key the config does not have"
                faults.append(Fault(f"assume {key}", value, rule, "Name a key of the file, dots for nested ones."))
                continue
        before, old = _dig(content, key)
        if not _set(content, key, taken):
            faults.append(Fault(f"assume {key}", value, "leads into what is not an object", "Correct the path."))
            continue
        instead = f", in the place of {_short(old)}" if before and old != taken else ""
        notes.append(f"assumed: {key} = {_short(taken)}{instead}")
    if faults:
        raise InputError(*faults)
    return config._replace(content=content, notes=(*notes, *config.notes))


def _dig(content: object, path: str) -> tuple[bool, object]:
    for piece in path.split("."):
        if not isinstance(content, dict) or piece not in content:
            return False, None
        content = content[piece]
    return True, content


def _set(content: dict[str, Any], path: str, value: object) -> bool:
    *way, last = path.split(".")
    place: Any = content
    for piece in way:
        place = place.setdefault(piece, {})
        if not isinstance(place, dict):
            return False
    place[last] = value
    return bool(last)


def _short(value: object) -> str:
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else text[:57] + "..."
