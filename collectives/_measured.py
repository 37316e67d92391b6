"""Which collective did a row of measurements time? CSV rows as records, or the reason why one is skipped."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from collectives._kinds import KINDS
from collectives._moe import MoE
from topo import Fault, InputError, suggest

__all__ = ["Measurement", "Skipped", "is_predicted", "moe_of", "read_measurements"]

#: Columns a row cannot do without, and those it may leave out.
_COLUMNS = ("system", "collective", "n_gpus", "bytes", "time_us")
_OPTIONAL = ("id", "algbw_GBps", "library", "dtype", "scaleup_domains", "params")
#: Kinds a profile predicts.
_PREDICTED = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "moe_dispatch", "moe_combine")
#: Names of a measured table, in small letters alone -> kinds.
_KIND_NAMES = {name.replace("_", ""): name for name in _PREDICTED} | {
    "epdispatch": "moe_dispatch", "epcombine": "moe_combine",
}  # fmt: skip
#: Key of an expert row's params -> what is taken where a row does not say; experts are DeepSeek-V3's.
_PARAMS = {"tokens": "", "hidden": "", "topk": "", "experts": "256"}


@dataclass(frozen=True)
class Measurement:
    """One timed collective.

    Attributes
    ----------
    id, system, kind, library, dtype : str
        As the file has them; `kind` a row of `collectives.KINDS`.
    ranks, domains : int
        Taking part, over so many scale-up domains; 0 where that is not said.
    n_bytes : float
        nccl-tests' size; 0 of an expert layer [bytes].
    seconds : float
        As measured [s].
    params : dict
        tokens, hidden, topk, experts and what else the row says.
    """

    id: str
    system: str
    kind: str
    library: str
    dtype: str
    ranks: int
    domains: int
    n_bytes: float
    seconds: float
    params: dict[str, str] = field(default_factory=dict)

    @property
    def curve(self) -> tuple[str, str, int, str, str]:
        """What a cross-validation leaves out whole: system, collective, ranks, library, dtype."""
        return self.system, self.kind, self.ranks, self.library, self.dtype

    @property
    def is_expert(self) -> bool:
        """Whether it is an expert layer's: predicted from its params."""
        return self.kind.startswith("moe_")


@dataclass(frozen=True)
class Skipped:
    """A row that no prediction is made for, and why."""

    id: str
    reason: str


def is_predicted(kind: str) -> bool:
    """Whether profiles predict a kind."""
    return kind in KINDS and kind in _PREDICTED


def read_measurements(path: str | os.PathLike[str]) -> tuple[list[Measurement], list[Skipped]]:
    """Return the rows of a CSV file with a time, and those skipped.

    The columns needed are system, collective, n_gpus, bytes and time_us; id, algbw_GBps, library,
    dtype, scaleup_domains and params may be missing.

    Raises
    ------
    InputError
        The file cannot be read, or columns are missing.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        rule = f"cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}"
        raise InputError(Fault("measurements", os.fspath(path), rule, "Give a CSV file.")) from None
    reader = csv.DictReader(text.splitlines())
    missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        cure = f"Its header needs {', '.join(_COLUMNS)}."
        raise InputError(Fault("columns", ", ".join(missing), "are missing", cure, os.fspath(path)))
    rows = [_measurement(row, number) for number, row in enumerate(reader, 2)]
    kept = [row for row in rows if isinstance(row, Measurement)]
    return kept, [row for row in rows if isinstance(row, Skipped)]


def _measurement(row: Mapping[str, str | None], number: int) -> Measurement | Skipped:
    cell = {name: (row.get(name) or "").strip() for name in (*_COLUMNS, *_OPTIONAL)}
    name = cell["id"] or f"line {number}"
    kind = _KIND_NAMES.get(cell["collective"].casefold().replace("_", ""), "")
    if not kind:
        return Skipped(name, f"{cell['collective']}: no profile predicts this quantity")
    parts = (part.split("=", 1) for part in cell["params"].split(";") if "=" in part)
    params = {key.strip(): value.strip() for key, value in parts if value.strip()}
    is_expert = kind.startswith("moe_")
    if is_expert and (lacking := [key for key, least in _PARAMS.items() if not params.get(key, least).isdigit()]):
        return Skipped(name, f"params lack {', '.join(lacking)}")
    try:
        ranks, domains = _whole(cell["n_gpus"]), _whole(cell["scaleup_domains"] or "0")
        n_bytes = 0.0 if is_expert else float(cell["bytes"] or "nan")
        seconds = _seconds(cell, n_bytes, is_expert)
    except ValueError:
        return Skipped(name, "a number cannot be read")
    if not (ranks >= 2 and 0 <= domains <= ranks):
        return Skipped(name, f"{ranks} ranks in {domains} domains is no group")
    if not is_expert and not 0 < n_bytes < inf:
        return Skipped(name, "no size")
    if not 0 < seconds < inf:
        rated = is_expert and cell["algbw_GBps"] and not cell["time_us"]
        return Skipped(name, "no time" + (", and a bandwidth does not say of which bytes" if rated else ""))
    return Measurement(
        name, cell["system"], kind, cell["library"], cell["dtype"], ranks, domains, n_bytes, seconds, params
    )


def _whole(text: str) -> int:
    """Return a whole number, which tables with gaps write as 8.0."""
    number = float(text)
    if not number.is_integer():
        raise ValueError(text)
    return int(number)


def _seconds(cell: Mapping[str, str], n_bytes: float, is_expert: bool) -> float:
    """Return the time; where only bandwidth was published, size / algbw, which nccl-tests' rules fix."""
    if cell["time_us"]:
        return float(cell["time_us"]) * 1e-6
    if is_expert or not cell["algbw_GBps"]:
        return 0.0
    return n_bytes / (float(cell["algbw_GBps"]) * 1e9)


#: Nodes a token goes to at most, in DeepEP's benchmark of its normal kernels.
_NODE_LIMIT = 4
#: dtype -> bytes of an element in a token (NVFP4 with its scales, 1 byte for 16), and what DeepEP's FP8 scales add.
_ELEMENT = {
    "fp8": 1.0, "bf16": 2.0, "bfloat16": 2.0, "half": 2.0, "nvfp4": 0.5 + 1 / 16, "int8": 1.0,
}  # fmt: skip
_SCALE = 4 / 128


def moe_of(row: Measurement, tokens: float, *, merged: bool = False) -> MoE:
    """Return the expert layer of a row, with so many tokens of every rank.

    DeepEP's own benchmark of its normal kernels, which merge copies per node, limits a token
    to four nodes: `merged` copies over more domains than that.

    Raises
    ------
    InputError
        Its dtype is not known.
    """
    dtype = row.dtype.casefold()
    element = _ELEMENT.get(dtype)
    if element is None:
        raise InputError(Fault("dtype", row.dtype, "is not that of a token", suggest(row.dtype, _ELEMENT)))
    if dtype == "fp8" and "deepep" in row.library.casefold():
        element += _SCALE
    return MoE(
        tokens=tokens, hidden=int(row.params["hidden"]), top_k=int(row.params["topk"]),
        experts=int(row.params.get("experts", _PARAMS["experts"])), dispatch_bytes=element, combine_bytes=element,
        limit=_NODE_LIMIT if merged and row.domains > _NODE_LIMIT else None,
    )  # fmt: skip
