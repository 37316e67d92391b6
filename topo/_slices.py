"""Which slice of a pod is meant? ``tpu-v5p-4x4x8`` is the torus of that design with those sides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any

from topo._design import Slices
from topo._errors import Fault, InputError

__all__ = ["slice_tables", "split_name"]

_NAME = re.compile(r"(?P<design>.+)-(?P<dims>\d+(?:x\d+)+)(?P<twisted>-twisted)?", re.IGNORECASE)


def split_name(name: str) -> tuple[str, tuple[int, ...], bool] | None:
    """Return design, sides and whether twisted of a slice's name; None where it names none.

    Examples
    --------
    >>> split_name("tpu-v5p-4x4x8-twisted")
    ('tpu-v5p', (4, 4, 8), True)
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return match["design"], tuple(int(n) for n in match["dims"].split("x")), match["twisted"] is not None


def slice_tables(
    raw: Mapping[str, Any], slices: Slices, dims: tuple[int, ...], twisted: bool, name: str
) -> dict[str, Any]:
    """Return the tables of a design file for one slice.

    Raises
    ------
    InputError
        Sides that no slice has.
    """
    rules = [
        (len(dims) == slices.axes, f"must have {slices.axes} sides"),
        (all(dims), "has a side of nothing"),
        (prod(dims) <= slices.most_chips, f"has {prod(dims):,} chips, more than the {slices.most_chips:,} of a pod"),
    ]
    faults = [Fault("slice", name, rule, "Name another, as 4x4x8.") for holds, rule in rules if not holds]
    shifts = _twist(dims) if twisted and not faults else []
    if twisted and not faults and not (slices.twisted and shifts):
        faults.append(Fault("slice", name, "only n x n x 2n and n x 2n x 2n are twisted", "Leave -twisted out."))
    if faults:
        raise InputError(*faults)
    rings = [side > 1 and side % slices.wrap_multiple == 0 for side in dims]
    if slices.wrap_whole:
        rings = [all(rings)] * len(dims)
    shape = {"dims": list(dims), "wrap": rings} | ({"twist": shifts} if shifts else {})
    aliases: list[str] = []
    return {
        **raw,
        "design": {**raw["design"], "name": name, "aliases": aliases, "domain_size": prod(dims)},
        "scale_up": {**raw["scale_up"], **shape},
    }


def _twist(dims: tuple[int, ...]) -> list[list[int]]:
    """Return the twist of a slice whose sides are n and 2n: where a short axis wraps, long ones shift by n.

    References
    ----------
    .. [1] N. Jouppi et al., "TPU v4", ISCA 2023, arXiv 2304.01433.
    .. [2] J. M. Camara et al., IEEE TPDS 21 (2010).
    """
    short = min(dims)
    if set(dims) != {short, 2 * short} or len(dims) != 3:
        return []
    return [[axis, other, short] for axis in range(3) for other in range(3) if dims[axis] == short < dims[other]]
