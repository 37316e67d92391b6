"""Which collectives are there, what do they mean, and which algorithms do them? One row per kind, one per algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectives import _dispatch, _domains, _exchanges, _in_network, _rings, _trees
from collectives._plan import Builder, Team, then, turned

__all__ = ["KINDS", "Kind"]

Ints = NDArray[np.intp]
Ends = tuple[Ints, Ints]
EVERY = -1


@dataclass(frozen=True)
class Kind:
    """One collective.

    Attributes
    ----------
    algorithms : dict
        Name -> builder; the first is the default.
    ends : callable
        (team, number of chunks) -> origin and goal of every chunk, as in `Chunks`.
    busbw : callable
        Number of ranks -> busbw / algbw, as nccl-tests has it.
    takes : tuple of str
        Which of root, stages, matrix, default_bytes and the dispatch_bytes or combine_bytes of a MoE it takes.
    """

    algorithms: Mapping[str, Builder]
    ends: Callable[[Team, int], Ends]
    busbw: Callable[[int], float]
    takes: tuple[str, ...] = ()

    @property
    def default(self) -> str:
        """The algorithm taken when none is named."""
        return next(iter(self.algorithms))


def _backwards(builder: Builder, reduces: bool = True) -> Builder:
    return lambda team: turned(builder(team), reduces)


def _both(scatter: Builder, gather: Builder) -> Builder:
    """All-reduce: a reduce-scatter and an all-gather of the same blocks."""
    return lambda team: then(scatter(team), gather(team))


def _twice(gather: Builder) -> Builder:
    return _both(_backwards(gather), gather)


def _with_rails(direct: Builder) -> dict[str, Builder]:
    return {"direct": direct, "rail_aligned": _domains.railed(direct)}


# --- what every chunk means ------------------------------------------------------------------------------------------


def _block(team: Team, chunks: int) -> Ints:
    """Chunks of a block follow each other, blocks in the order of ranks."""
    return np.arange(chunks) // max(1, chunks // team.n)


def _all(value: int, chunks: int) -> Ints:
    return np.full(chunks, value, dtype=np.intp)


def _to_each(team: Team, chunks: int) -> Ends:
    pair = np.arange(chunks)
    return pair // team.n, pair % team.n


def _to_next(team: Team, chunks: int) -> Ends:
    return np.arange(chunks), (np.arange(chunks) + 1) % team.n


def _to_receiver(team: Team, chunks: int) -> Ends:
    assert team.pairs is not None
    return team.pairs[0], team.pairs[1]


def _ring_factor(n: int) -> float:
    return (n - 1) / n


ALL_TO_ALL: dict[str, Builder] = {
    "direct": _exchanges.direct_all_to_all,
    "pairwise": _exchanges.pairwise,
    "bruck": _exchanges.bruck_all_to_all,
    "hierarchical": _domains.hierarchical_all_to_all,
    "rail_aligned": _domains.rail_aligned,
    "rail_pipelined": _domains.rail_pipelined,
}
DISPATCH: dict[str, Builder] = {
    "direct": _exchanges.direct_all_to_all,
    "per_gpu": _dispatch.per_gpu,
    "per_domain": _dispatch.per_domain,
    "rail_aligned": _domains.rail_aligned,
    "rail_pipelined": _domains.rail_pipelined,
}
ALL_GATHER: dict[str, Builder] = {
    "ring": _rings.ring,
    "direct": _exchanges.direct_all_gather,
    "recursive_doubling": _exchanges.doubling_all_gather,
    "bruck": _exchanges.bruck,
    "pat": _exchanges.pat,
    "torus": _rings.torus,
    "hierarchical": _domains.hierarchical_all_gather,
    "nvls": _in_network.nvls_all_gather,
}
REDUCE_SCATTER: dict[str, Builder] = {
    "ring": _rings.ring_back,
    "direct": _backwards(_exchanges.direct_all_gather),
    "recursive_halving": _backwards(_exchanges.doubling_all_gather),
    "pat": _backwards(_exchanges.pat),
    "torus": _backwards(_rings.torus),
    "hierarchical": _backwards(_domains.hierarchical_all_gather),
    "nvls": _in_network.nvls_reduce_scatter,
}
ALL_REDUCE: dict[str, Builder] = {
    "ring": _both(_rings.ring_back, _rings.ring),
    "direct": _twice(_exchanges.direct_all_gather),
    "recursive_doubling": _exchanges.doubling_all_reduce,
    "rabenseifner": _twice(_exchanges.doubling_all_gather),
    "binomial": _trees.binomial_all_reduce,
    "double_binary_tree": _trees.double_binary_tree,
    "pat": _twice(_exchanges.pat),
    "torus": _twice(_rings.torus),
    "hierarchical": _twice(_domains.hierarchical_all_gather),
    "nvls": _in_network.nvls_all_reduce,
    "sharp": _in_network.sharp,
}
BROADCAST: dict[str, Builder] = {
    "ring": _rings.chain_broadcast,
    "direct": _trees.direct_broadcast,
    "binomial": _trees.binomial_broadcast,
    "scatter_all_gather": _trees.scatter_all_gather,
    "hierarchical": _domains.hierarchical_broadcast,
    "nvls": _in_network.nvls_broadcast,
}
REDUCE: dict[str, Builder] = {
    "ring": _backwards(_rings.chain_broadcast),
    "direct": _backwards(_trees.direct_broadcast),
    "binomial": _backwards(_trees.binomial_broadcast),
    "hierarchical": _backwards(_domains.hierarchical_broadcast),
    "nvls": _in_network.nvls_reduce,
}
SCATTER: dict[str, Builder] = {
    "direct": _trees.direct_scatter,
    "binomial": _trees.binomial_scatter,
    "rail_aligned": _domains.railed(_trees.direct_scatter),
}

#: Collective -> row.
KINDS: dict[str, Kind] = {
    "all_to_all": Kind(ALL_TO_ALL, _to_each, _ring_factor),
    "all_to_all_v": Kind(ALL_TO_ALL, _to_each, _ring_factor, ("matrix",)),
    "all_gather": Kind(ALL_GATHER, lambda team, n: (_block(team, n), _all(EVERY, n)), _ring_factor),
    "reduce_scatter": Kind(REDUCE_SCATTER, lambda team, n: (_all(EVERY, n), _block(team, n)), _ring_factor),
    "all_reduce": Kind(ALL_REDUCE, lambda _, n: (_all(EVERY, n), _all(EVERY, n)), lambda n: 2 * (n - 1) / n),
    "broadcast": Kind(
        BROADCAST, lambda team, n: (_all(team.root, n), _all(EVERY, n)), lambda _: 1.0, ("root",)
    ),
    "reduce": Kind(REDUCE, lambda team, n: (_all(EVERY, n), _all(team.root, n)), lambda _: 1.0, ("root",)),
    "gather": Kind(
        {name: _backwards(builder, reduces=False) for name, builder in SCATTER.items()},
        lambda team, n: (_block(team, n), _all(team.root, n)), _ring_factor, ("root",),
    ),
    "scatter": Kind(SCATTER, lambda team, n: (_all(team.root, n), _block(team, n)), _ring_factor, ("root",)),
    "send": Kind(_with_rails(_exchanges.direct_send), _to_receiver, lambda _: 1.0, ("stages",)),
    "sendrecv": Kind(_with_rails(_exchanges.neighbours), _to_next, lambda _: 1.0),
    # A flag from everyone to everyone; nccl-tests has no barrier, so no bus bandwidth.
    "barrier": Kind(
        {
            "dissemination": _exchanges.bruck, "direct": _exchanges.direct_all_gather,
            "hierarchical": _domains.hierarchical_all_gather,
        },
        lambda team, n: (_block(team, n), _all(EVERY, n)), lambda _: 0.0, ("default_bytes",),
    ),
    "moe_dispatch": Kind(DISPATCH, _to_each, _ring_factor, ("dispatch_bytes",)),
    "moe_combine": Kind(
        {name: _backwards(builder, reduces=False) for name, builder in DISPATCH.items()},
        lambda team, n: _to_each(team, n)[::-1], _ring_factor, ("combine_bytes",),
    ),
}  # fmt: skip
