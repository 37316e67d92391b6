"""Which bytes go between which ranks? One row of KINDS per collective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._records import Outer, Phase, Schedule
from topo import Fabric, Fault, InputError, Ranks, suggest

__all__ = ["KINDS", "schedule"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Builder = Callable[..., Schedule]
Stages = Sequence[Sequence[str] | Sequence[int] | NDArray[np.intp]] | None


def schedule(
    kind: str,
    graph: nx.Graph[str] | Fabric,
    n_bytes: float | ArrayLike | Outer,
    *,
    ranks: Ranks = None,
    algorithm: str = "direct",
    stages: Stages = None,
) -> Schedule:
    """Return a collective as data.

    Parameters
    ----------
    kind : {"all_to_all", "all_to_all_v", "send"}
        all_to_all: every rank sends n_bytes/n to each rank, itself included (no wire).
        all_to_all_v: n_bytes is an (n, n) matrix or an Outer, row sends to column, the
        diagonal stays.
        send: rank i of stage s sends n_bytes to rank i of stage s + 1.
    graph : networkx.Graph or Fabric
        Where the ranks live.
    n_bytes : float, (n, n) array or Outer
        nccl-tests' size [bytes]: the send buffer of one rank.
    ranks : int or sequence, optional
        A number of ranks (the fewest domains that hold them, equal shares), rank labels
        or rank numbers; all by default.
    algorithm : str, optional
        "direct": every pair at once.
    stages : sequence of sequences, optional
        For "send": rank labels or numbers of each stage; by default one stage per domain,
        with one domain its two halves.

    Raises
    ------
    InputError
        Unknown kind or algorithm, sizes that are not finite and above zero, stages of
        unequal size.

    Examples
    --------
    >>> import topo
    >>> schedule("all_to_all", topo.load("hgx-h100-8"), 8e9)
    Schedule(all_to_all direct, 8 ranks, 8 GB, 1 phases)
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(Fault("collective", kind, "is not a known collective", suggest(str(kind), KINDS)))
    if algorithm != "direct":
        raise InputError(
            Fault("algorithm", algorithm, f"is not an algorithm of {kind}", suggest(algorithm, ["direct"]))
        )
    if stages is not None and ranks is not None:
        raise InputError(Fault("ranks", "given", "the stages name their ranks", "Leave ranks or stages out."))
    if stages is not None and kind != "send":
        raise InputError(Fault("stages", "given", f"{kind} has no stages", "Only send takes them."))
    fabric = Fabric.from_graph(graph)
    numbers = fabric.rank_numbers(ranks)
    return KINDS[kind](fabric, numbers, n_bytes, stages)


def _all_to_all(fabric: Fabric, ranks: Ints, n_bytes: Any, stages: None) -> Schedule:
    size = _size(n_bytes)
    n = len(ranks)
    return Schedule("all_to_all", "direct", ranks, size, (n - 1) / n, (Phase(Outer(np.full(n, size / n), np.ones(n))),))


def _all_to_all_v(fabric: Fabric, ranks: Ints, n_bytes: Any, stages: None) -> Schedule:
    n = len(ranks)
    shape = f"must be a matrix of shape ({n}, {n}), or an Outer of two vectors of {n}"
    try:
        arrays = [np.asarray(a, dtype=np.float64) for a in _parts(n_bytes)]
    except (TypeError, ValueError):  # ragged, or not numbers
        raise InputError(Fault("n_bytes", n_bytes, shape, "Rows send, columns receive.")) from None
    if [a.shape for a in arrays] not in ([(n, n)], [(n,), (n,)]):
        raise InputError(Fault("n_bytes", [a.shape for a in arrays], shape, "Rows send, columns receive."))
    if any(not np.isfinite(a).all() or (a < 0).any() or not a.any() for a in arrays):
        rule = "must hold finite bytes, zero or more, not all zero"
        raise InputError(Fault("n_bytes", "matrix", rule, "Correct it."))
    traffic = Outer(*arrays) if len(arrays) == 2 else arrays[0]
    largest = float(arrays[0].max() * arrays[1].sum() if len(arrays) == 2 else arrays[0].sum(axis=1).max())
    return Schedule("all_to_all_v", "direct", ranks, largest, (n - 1) / n, (Phase(traffic),))


def _parts(n_bytes: Any) -> tuple[Any, ...]:
    return (n_bytes.sent, n_bytes.received) if isinstance(n_bytes, Outer) else (n_bytes,)


def _send(fabric: Fabric, ranks: Ints, n_bytes: Any, stages: Stages) -> Schedule:
    size = _size(n_bytes)
    if stages is not None and (isinstance(stages, str) or not isinstance(stages, Sequence)):
        raise InputError(Fault("stages", stages, "must be a list of stages, each a list of ranks", "Correct it."))
    groups = [fabric.rank_numbers(stage) for stage in stages] if stages is not None else _stages(fabric, ranks)
    if len(groups) < 2 or len({len(group) for group in groups}) > 1:
        sizes = [len(group) for group in groups]
        raise InputError(
            Fault("stages", sizes, "send needs two or more stages of equal size", "Name them with stages=.")
        )
    flat = np.concatenate(groups)
    place = {int(rank): i for i, rank in enumerate(flat)}
    if len(place) < len(flat):
        raise InputError(
            Fault("stages", [len(g) for g in groups], "a rank stands in two stages", "Name each rank once.")
        )
    matrix = np.zeros((len(flat), len(flat)))
    for sending, receiving in pairwise(groups):
        matrix[[place[int(r)] for r in sending], [place[int(r)] for r in receiving]] = size
    return Schedule("send", "direct", flat, size, 1.0, (Phase(matrix),))


def _stages(fabric: Fabric, ranks: Ints) -> list[Ints]:
    """One stage per domain, of the ranks each has; one domain is cut into two halves."""
    homes = fabric.rank_domain[ranks]
    domains = list(dict.fromkeys(homes.tolist()))
    if len(domains) > 1:
        return [ranks[homes == d] for d in domains]
    half = (len(ranks) + 1) // 2
    return [ranks[:half], ranks[half:]]


def _size(n_bytes: Any) -> float:
    if isinstance(n_bytes, int | float | np.number) and not isinstance(n_bytes, bool):
        size = float(n_bytes) if n_bytes < 1e300 else np.inf
        if np.isfinite(size) and size > 0:
            return size
    raise InputError(Fault("n_bytes", n_bytes, "must be a finite number of bytes above zero", "Give bytes, as 1e9."))


KINDS: dict[str, Builder] = {"all_to_all": _all_to_all, "all_to_all_v": _all_to_all_v, "send": _send}
