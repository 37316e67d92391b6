"""Which rules does a file state?"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from placement._rules import Rules
from serving import Model
from topo import Fault, InputError, suggest

__all__ = ["read_rules"]

_KEYS = ("pin", "forbid", "together", "apart")
#: In place of groups of experts: the model's own.
_OWN = "groups"


def read_rules(path: str | os.PathLike[str], *, model: Model | None = None) -> Rules:
    r"""Return the rules of a TOML or JSON file.

    `pin` and `forbid` are tables, expert -> GPU or list of GPUs, and expert -> list of GPUs; `together` is a list of
    lists of experts, or "groups": the model's own, as node-limited routing needs them; `apart` is
    "gpu", "host" or "domain".

    Parameters
    ----------
    path : str or path
        The file, JSON where its name ends in .json.
    model : Model, optional
        Whose groups "groups" are.

    Raises
    ------
    InputError
        A file that cannot be read, keys that are not known, values of another shape: all at once.

    Examples
    --------
    >>> import tempfile, serving
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "rules.toml"
    ...     _ = file.write_text('apart = "domain"\ntogether = "groups"\n[pin]\n0 = 3\n')
    ...     rules = read_rules(file, model=serving.load_model("deepseek-v3"))
    >>> rules.apart, dict(rules.pin), len(rules.together), rules.together[1][:3]
    ('domain', {0: 3}, 8, (32, 33, 34))
    """
    file = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
        stated: Any = json.loads(text) if file.casefold().endswith(".json") else tomllib.loads(text)
    except OSError as error:
        rule = f"cannot be read: {error.strerror}"
        raise InputError(Fault("rules", file, rule, "Give a TOML or JSON file.")) from None
    except (ValueError, RecursionError) as error:
        raise InputError(Fault("rules", str(error), "is no TOML or JSON", "Correct it.", file)) from None
    if not isinstance(stated, dict):
        raise InputError(Fault("rules", type(stated).__name__, "must be a table of rules", "See read_rules.", file))
    faults = [
        Fault(str(key), "given", "is no rule", suggest(str(key), _KEYS), file) for key in stated if key not in _KEYS
    ]
    together = stated.get("together", ())
    if together == _OWN:
        if model is None or model.n_group is None:
            rule = "has no groups of its own" if model else "needs the model told"
            faults.append(Fault("together", _OWN, rule, "List the experts of every group.", file))
        else:
            parts = np.split(np.arange(model.n_experts), model.n_group)
            together = tuple(tuple(int(e) for e in part) for part in parts)
    elif not _rows(together):
        rule = f'must be a list of lists of experts, or "{_OWN}"'
        faults.append(Fault("together", together, rule, "Write [[0, 1], [2, 3]].", file))
    tables = {}
    for name, fits, shape in (("pin", _pinned, "expert = GPU, or [GPU, GPU]"), ("forbid", _row, "expert = [GPU, GPU]")):
        table = stated.get(name, {})
        if not isinstance(table, dict) or not all(str(key).isdigit() and fits(value) for key, value in table.items()):
            faults.append(
                Fault(name, table, f"must be a table of {shape}", f"Write a line {shape} with numbers.", file)
            )
        else:
            tables[name] = {int(key): value for key, value in table.items()}
    apart = stated.get("apart")
    if apart not in (None, "gpu", "host", "domain"):
        faults.append(Fault("apart", apart, "is not known", 'Say "gpu", "host" or "domain".', file))
    if faults:
        raise InputError(*faults)
    return Rules(pin=tables["pin"], forbid=tables["forbid"], together=together, apart=apart)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _pinned(value: object) -> bool:
    return _whole(value) or _row(value)


def _row(value: object) -> bool:
    return isinstance(value, list) and all(map(_whole, value))


def _rows(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_row, value))
