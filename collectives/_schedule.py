"""Which bytes go between which ranks, phase by phase? One verb over the table of kinds and algorithms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collectives._kinds import KINDS, Kind
from collectives._moe import MoE
from collectives._moe_traffic import traffic_of
from collectives._msccl import Algorithm
from collectives._plan import Builder, Plan, Team
from collectives._records import Chunks, Outer, Schedule
from topo import Fabric, Fault, InputError, Ranks, suggest
from topo.units import LARGEST

__all__ = ["schedule", "stages_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Stages = Sequence[Sequence[str] | Sequence[int] | NDArray[np.intp]] | None
#: One ring, or several: labels or rank numbers in order.
Order = Sequence[Any] | NDArray[np.intp] | None

#: What a barrier's flag is taken to hold [bytes].
FLAG_BYTES = 1.0


def schedule(
    kind: str,
    graph: nx.Graph[str] | Fabric,
    n_bytes: float | ArrayLike | Outer | MoE | None = None,
    *,
    ranks: Ranks = None,
    algorithm: str | Algorithm | None = None,
    stages: Stages = None,
    root: str | int | None = None,
    channels: int | None = None,
    order: Order = None,
) -> Schedule:
    """Return a collective as data.

    Parameters
    ----------
    kind : str
        A row of `collectives.KINDS`: all_to_all, all_gather, all_reduce and so on.
        all_to_all_v: n_bytes is an (n, n) matrix or an Outer, row sends to column, the
        diagonal stays. send: rank i of stage s sends n_bytes to rank i of stage s + 1.
        sendrecv: every rank sends n_bytes to the next one, the last to the first.
        barrier: a flag of every rank reaches all. moe_dispatch, moe_combine: n_bytes is a
        `MoE`; its size is that of the copies for the experts of the busiest rank's tokens.
    graph : networkx.Graph or Fabric
        Where the ranks live.
    n_bytes : float, (n, n) array, Outer or MoE
        nccl-tests' size [bytes]: the larger of a rank's send and receive buffer; an
        all-to-all sends n_bytes/n to each rank, itself included (no wire). Of zero bytes
        nothing is sent. A barrier's flags, all together, are a byte each if it is zero or
        left out.
    ranks : int or sequence, optional
        A number of ranks (the fewest domains that hold them, equal shares), rank labels
        or rank numbers; all by default.
    algorithm : str or Algorithm, optional
        A row of ``collectives.KINDS[kind].algorithms``, the first by default; or what
        `read_algorithm` returns.
    stages : sequence of sequences, optional
        For "send": rank labels or numbers of each stage; by default one stage per domain,
        with one domain its two halves.
    root : str or int, optional
        Label or rank number of the root; the first rank by default.
    channels : int, optional
        Rings at a time. By default one; over several domains one for every rank of the
        smallest, so that every NIC is used.
    order : sequence, optional
        Ranks in the order of the ring, or several such: by default domain after domain.

    Raises
    ------
    InputError
        Unknown kind or algorithm, one that does not apply (and why), sizes that are not
        finite and zero or more, stages of unequal size.

    Examples
    --------
    >>> import topo
    >>> schedule("all_to_all", topo.load("hgx-h100-8"), 8e9)
    Schedule(all_to_all direct, 8 ranks, 8 GB, 1 phases)
    >>> schedule("all_reduce", topo.load("hgx-h100-8"), 8e9)
    Schedule(all_reduce ring, 8 ranks, 8 GB, 14 phases)
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(Fault("collective", kind, "is not a known collective", suggest(str(kind), KINDS)))
    row = KINDS[kind]
    name, builder = _chosen(kind, row, algorithm)
    _require_fit(kind, row, name, ranks=ranks, stages=stages, root=root, channels=channels, order=order)
    fabric = Fabric.from_graph(graph)
    numbers = fabric.rank_numbers(ranks)
    team, assumed = _team(kind, row, fabric, numbers, n_bytes, stages, root, channels, order)
    plan = _built(name, builder, team)
    ends = team.n + len(plan.switches)
    sizes = plan.sizes_of(team) if any(step.traffic is None for step in plan.steps) else np.zeros(0)
    phases = (step.phase(sizes, ends) for step in plan.steps)

    def content() -> Chunks:
        whole = plan.sizes_of(team)
        return Chunks(whole, *row.ends(team, len(whole)))

    def again(fabric: Fabric, other: str) -> Schedule:
        asked = ranks if stages is not None else numbers
        return schedule(kind, fabric, n_bytes, ranks=asked, algorithm=other, stages=stages, root=root)

    return Schedule(
        kind, name, team.ranks, team.n_bytes, row.busbw(team.n), tuple(phases),
        None if isinstance(algorithm, Algorithm) else content, plan.switches, plan.pipelined, (*assumed, *plan.notes),
        again,
    )  # fmt: skip


def _chosen(kind: str, row: Kind, algorithm: str | Algorithm | None) -> tuple[str, Builder]:
    """Return the algorithm's name and its builder."""
    if isinstance(algorithm, Algorithm):
        return algorithm.name, partial(algorithm.plan, kind)
    name = row.default if algorithm is None else algorithm
    if name == "best":
        raise InputError(Fault("algorithm", name, "is chosen by what algorithms cost", "Ask collectives.cost."))
    if not isinstance(name, str) or name not in row.algorithms:
        cure = suggest(str(name), [*row.algorithms, "best"])
        raise InputError(Fault("algorithm", name, f"is not an algorithm of {kind}", cure))
    return name, row.algorithms[name]


def _built(name: str, builder: Builder, team: Team) -> Plan:
    """Return the plan; an algorithm that is part of another is refused by the name that was asked for."""
    try:
        return builder(team)
    except InputError as error:
        faults = (replace(fault, value=name) if fault.place == "algorithm" else fault for fault in error.faults)
        raise InputError(*faults) from None


def _require_fit(kind: str, row: Kind, name: str, **given: Any) -> None:
    """Refuse what this kind or algorithm does not take."""
    if given["stages"] is not None and given["ranks"] is not None:
        raise InputError(Fault("ranks", "given", "the stages name their ranks", "Leave ranks or stages out."))
    for word in ("stages", "root"):
        if given[word] is not None and word not in row.takes:
            takers = ", ".join(name for name, other in KINDS.items() if word in other.takes)
            raise InputError(Fault(word, "given", f"{kind} has none", f"Kinds that take it: {takers}."))
    for word in ("channels", "order"):
        if given[word] is not None and name not in ("ring", "scatter_all_gather"):
            raise InputError(Fault(word, given[word], f"{kind} {name} has no rings", "Only ring takes it."))
    if given["channels"] is not None and given["order"] is not None:
        raise InputError(Fault("channels", "given", "the orders say how many rings", "Leave channels or order out."))


def _team(
    kind: str, row: Kind, fabric: Fabric, ranks: Ints, n_bytes: Any, stages: Stages, root: str | int | None,
    channels: int | None, order: Order,
) -> tuple[Team, tuple[str, ...]]:  # fmt: skip
    """Read sizes, root and rings; say what was filled in."""
    if "matrix" in row.takes:
        traffic, largest = _matrix(len(ranks), n_bytes)
        return Team(fabric, ranks, largest, traffic=traffic), ()
    if {"dispatch_bytes", "combine_bytes"} & set(row.takes):
        return _experts(fabric, ranks, row, n_bytes)
    size, n = 0.0 if n_bytes is None and "default_bytes" in row.takes else _size(n_bytes), len(ranks)
    if not size and "default_bytes" in row.takes:
        return Team(fabric, ranks, FLAG_BYTES * n), (f"{kind}: flags of {FLAG_BYTES:.0f} byte each",)
    if "stages" in row.takes:
        ranks, pairs = _sends(fabric, ranks, stages)
        return Team(fabric, ranks, size, pairs=pairs), ()
    if kind == "all_to_all":
        return Team(fabric, ranks, size, traffic=Outer(np.full(n, size / n), np.ones(n))), ()
    at, assumed = _root(fabric, ranks, root) if "root" in row.takes else (0, ())
    team = Team(fabric, ranks, size, at, channels=_channels(channels), order=_orders(fabric, ranks, order))
    return team, assumed


def _experts(fabric: Fabric, ranks: Ints, row: Kind, moe: Any) -> tuple[Team, tuple[str, ...]]:
    if not isinstance(moe, MoE):
        raise InputError(
            Fault("n_bytes", moe, "must be a collectives.MoE", "Say MoE(tokens=, hidden=, top_k=, experts=).")
        )
    team = Team(fabric, ranks, 0.0)
    traffic, token_bytes = traffic_of(moe, team.home), moe.hidden * float(getattr(moe, row.takes[0]))
    size = float(traffic.tokens.max()) * moe.top_k * token_bytes
    direct = traffic.traffic(traffic.copies, token_bytes)
    return replace(team, n_bytes=size, traffic=direct, moe=traffic, token_bytes=token_bytes), traffic.assumptions


def _root(fabric: Fabric, ranks: Ints, root: str | int | None) -> tuple[int, tuple[str, ...]]:
    if root is None:
        return 0, (f"root: {fabric.rank_labels[ranks[0]]}, the first rank",)
    asked: Any = [root]
    number = int(_placed("root", fabric, asked)[0])
    if number not in ranks:
        raise InputError(Fault("root", root, "does not take part", "Name one of the ranks."))
    return int(np.flatnonzero(ranks == number)[0]), ()


def _placed(place: str, fabric: Fabric, ranks: Any) -> Ints:
    """Return rank numbers; what is wrong with them is wrong with the argument that names them."""
    try:
        return fabric.rank_numbers(ranks)
    except InputError as error:
        raise InputError(*(replace(fault, place=place) for fault in error.faults)) from None


def _channels(channels: Any) -> int | None:
    if channels is None:
        return None
    if isinstance(channels, int | np.integer) and not isinstance(channels, bool) and 1 <= channels <= 1024:
        return int(channels)
    raise InputError(Fault("channels", channels, "must be a whole number from 1 to 1024", "Correct it."))


def _orders(fabric: Fabric, ranks: Ints, order: Order) -> Ints | None:
    """Rows in the order of each ring."""
    if order is None:
        return None
    if isinstance(order, str) or not isinstance(order, Sequence | np.ndarray) or not np.iterable(order):
        rule = "must be a list of the ranks in the order of the ring, or several such"
        raise InputError(Fault("order", order, rule, "Correct it."))
    several = len(order) > 0 and isinstance(order[0], Sequence | np.ndarray) and not isinstance(order[0], str)
    rings = order if several else [order]
    place = {int(rank): row for row, rank in enumerate(ranks)}
    rows = [[place.get(int(rank), -1) for rank in _placed("order", fabric, ring)] for ring in rings]
    if any(sorted(ring) != list(range(len(ranks))) for ring in rows):
        raise InputError(Fault("order", order, "must name every rank that takes part once", "Correct it."))
    return np.array(rows, dtype=np.intp)


def _matrix(n: int, n_bytes: Any) -> tuple[Floats | Outer, float]:
    """Read the matrix of an all_to_all_v; its size is the largest send buffer."""
    shape = f"must be a matrix of shape ({n}, {n}), or an Outer of two vectors of {n}"
    parts = (n_bytes.sent, n_bytes.received) if isinstance(n_bytes, Outer) else (n_bytes,)
    try:
        arrays = [_real(a) for a in parts]
    except (TypeError, ValueError):  # ragged, or not real numbers
        raise InputError(Fault("n_bytes", n_bytes, shape, "Rows send, columns receive.")) from None
    shapes = [a.shape for a in arrays]
    if shapes not in ([(n, n)], [(n,), (n,)]):
        given = n_bytes if shapes == [()] else shapes[0] if len(shapes) == 1 else shapes
        raise InputError(Fault("n_bytes", given, shape, "Rows send, columns receive."))
    if any(not ((a >= 0) & (a <= LARGEST)).all() for a in arrays):
        rule = f"must hold finite bytes, zero or more, at most {LARGEST:g}"
        raise InputError(Fault("n_bytes", "matrix", rule, "Correct it."))
    if isinstance(n_bytes, Outer):
        if n_bytes.blocks.shape != (n,) or n_bytes.blocks.dtype.kind != "i" or (n_bytes.blocks < 0).any():
            raise InputError(Fault("n_bytes", "block", f"must be {n} whole numbers, zero or more", "Correct it."))
        gets = np.bincount(n_bytes.blocks, arrays[1])[n_bytes.blocks]
        return Outer(arrays[0], arrays[1], n_bytes.block), float((arrays[0] * gets).max())
    return arrays[0], float(arrays[0].sum(axis=1).max())


def _real(values: Any) -> Floats:
    if np.iscomplexobj(values):
        raise TypeError
    return np.asarray(values, dtype=np.float64)


def _sends(fabric: Fabric, ranks: Ints, stages: Stages) -> tuple[Ints, Ints]:
    """Ranks of all stages, and the rows that send and receive."""
    groups = stages_of(fabric, ranks, stages)
    sizes = [len(group) for group in groups]
    if len(groups) < 2 or len(set(sizes)) > 1:
        raise InputError(
            Fault("stages", sizes, "send needs two or more stages of equal size", "Name them with stages=.")
        )
    flat = np.concatenate(groups)
    if len(np.unique(flat)) < len(flat):
        raise InputError(Fault("stages", sizes, "a rank stands in two stages", "Name each rank once."))
    source = np.arange(len(flat) - sizes[0])
    return flat, np.stack([source, source + sizes[0]])


def stages_of(fabric: Fabric, ranks: Ints, stages: Stages) -> list[Ints]:
    """Return the ranks of every stage, as named or as they come by default."""
    if stages is None:
        return _stages(fabric, ranks)
    if not (_is_list(stages) and all(map(_is_list, stages))):
        raise InputError(Fault("stages", stages, "must be a list of stages, each a list of ranks", "Correct it."))
    return [_placed("stages", fabric, stage) for stage in stages]


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


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
        try:
            size = float(n_bytes)
        except OverflowError:
            size = n_bytes = np.inf  # not its hundreds of digits
        if 0 <= size <= LARGEST:
            return size
    rule = f"must be a finite number of bytes, zero to {LARGEST:g}"
    raise InputError(Fault("n_bytes", n_bytes, rule, "Give bytes, as 1e9."))
