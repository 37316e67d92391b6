"""Does every schedule move exactly the right chunks, reduced once, whatever the ranks? And would the check notice?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives
from collectives import KINDS, Flows, MoE, Schedule
from topo import Fabric, InputError

from .shapes import racks, star, torus

ALGORITHMS = [(kind, name) for kind, row in KINDS.items() for name in row.algorithms]
SEVERAL = [(3, 5), (1, 1, 1), (1, 6), (5, 3, 2, 7), (4, 4)]
ONE = {name: Fabric.from_graph(star(17, kind=kind)) for name, kind in (("up", "scale-up"), ("out", "scale-out"))}


def size_of(kind: str, n: int) -> object:
    """Bytes for a kind; a matrix has zeros and unequal entries, an expert layer unequal loads and tokens."""
    if kind.startswith("moe"):
        return MoE(
            np.arange(n) % 3, 8, 2, 2 * n + 1, expert_load=np.arange(1, 2 * n + 2), placement=np.arange(2 * n + 1) % n
        )
    return (np.arange(n * n).reshape(n, n) * 7 % 5) * 1e3 + np.eye(n) if kind == "all_to_all_v" else 1e6


def wanted(kind: str, name: str, domains: int, n: int) -> bool:
    """Whether the algorithm applies: some need domains, coordinates, switches of one domain, a fabric."""
    if kind == "send" and (domains > 1 or n % 2):
        return False
    if name in ("hierarchical", "rail_aligned", "rail_pipelined"):
        return domains > 1
    return name not in ("torus", "nvls", "sharp")


@pytest.mark.parametrize(("kind", "name"), ALGORITHMS, ids=[f"{kind}-{name}" for kind, name in ALGORITHMS])
def test_every_schedule_means_what_it_says(kind: str, name: str) -> None:
    """One to 17 ranks of one domain, as a subset in any order."""
    fabric = ONE["out" if name == "sharp" else "up"]
    done = 0
    for n in range(1, 18):
        ranks = np.random.default_rng(n).permutation(17)[:n]
        if not (wanted(kind, name, n if name == "sharp" else 1, n) or (name in ("nvls", "sharp") and n > 1)):
            continue
        plan = collectives.schedule(kind, fabric, size_of(kind, n), ranks=ranks, algorithm=name)
        assert collectives.verify(plan) == []
        done += 1
    assert done >= 8 or name in ("torus", "hierarchical", "rail_aligned", "rail_pipelined")  # below


@pytest.mark.parametrize("sizes", SEVERAL, ids=str)
def test_uneven_domains(sizes: tuple[int, ...]) -> None:
    fabric, n = Fabric.from_graph(racks(*sizes)), sum(sizes)
    done = 0
    for kind, name in ALGORITHMS:
        if wanted(kind, name, len(sizes), n) or name == "sharp":
            plan = collectives.schedule(kind, fabric, size_of(kind, n), algorithm=name)
            assert collectives.verify(plan) == [], (kind, name)
            done += 1
    assert done == len(ALGORITHMS) - 3 - 5 - 2  # torus, nvls (no common switch), send (domains unequal)


@pytest.mark.parametrize("dims", [(1,), (2,), (5,), (3, 4), (2, 3, 4), (2, 2, 2), (5, 1, 3)], ids=str)
@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce"])
def test_tori(kind: str, dims: tuple[int, ...]) -> None:
    assert collectives.verify(collectives.schedule(kind, torus(*dims), 1e6, algorithm="torus")) == []


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce"])
@pytest.mark.parametrize(
    "words", [{"channels": 3}, {"order": [4, 2, 0, 1, 3]}, {"order": [[0, 1, 2, 3, 4], [0, 2, 4, 1, 3]]}], ids=str
)
def test_rings_of_any_order(kind: str, words: dict[str, object]) -> None:
    plan = collectives.schedule(kind, star(5), 1e6, algorithm="ring", **words)
    assert collectives.verify(plan) == []


@pytest.mark.parametrize("kind", [kind for kind, row in KINDS.items() if "root" in row.takes])
def test_any_root(kind: str) -> None:
    for name in KINDS[kind].algorithms:
        graph, root = (star(6), "gpu4") if name == "nvls" or wanted(kind, name, 1, 3) else (racks(3, 3), "1.1")
        plan = collectives.schedule(kind, graph, 1e6, algorithm=name, root=root, ranks=[5, 4, 1])
        assert collectives.verify(plan) == []


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_any_team(seed: int) -> None:
    """Some ranks of some domains in any order, on one leaf or on rails."""
    dice = np.random.default_rng(seed)
    sizes = dice.integers(1, 7, dice.integers(1, 5))
    graph, total = racks(*sizes, rails=bool(dice.integers(2))), int(sizes.sum())
    ranks = dice.permutation(total)[: dice.integers(1, total + 1)]
    kind, name = ALGORITHMS[dice.integers(len(ALGORITHMS))]
    try:
        plan = collectives.schedule(kind, graph, size_of(kind, len(ranks)), ranks=ranks, algorithm=name)
    except InputError as error:
        if "does not apply" not in str(error) and kind != "send":
            raise
        return
    assert collectives.verify(plan) == []


# --- the check can fail ----------------------------------------------------------------------------------------------


def broken() -> Iterator[tuple[str, Schedule]]:
    """Schedules with one thing wrong, and what must be said."""
    ring = collectives.schedule("all_reduce", star(4), 1e6)
    scatter, gather = ring.phases
    yield "is not right", replace(ring, phases=(scatter,))
    yield "is not right", replace(ring, phases=(scatter, replace(gather, repeats=2)))
    yield "is not right", replace(ring, phases=(scatter, replace(gather, reduces=True)))
    yield "is not right", replace(ring, phases=(replace(scatter, reduces=False), gather))
    assert isinstance(gather.traffic, Flows)
    half = replace(gather.traffic, n_bytes=gather.traffic.n_bytes / 2)
    yield "other bytes", replace(ring, phases=(scatter, replace(gather, traffic=half)))
    spread = collectives.schedule("all_gather", star(8), 1e6, algorithm="bruck")
    yield "does not hold", replace(spread, phases=spread.phases[1:])
    yield "is missing", replace(spread, phases=spread.phases[:-1])
    twice = collectives.schedule("reduce_scatter", star(4), 1e6, algorithm="direct")
    yield "is not right", replace(twice, phases=twice.phases * 2)
    yield "does not say", replace(ring, phases=(replace(scatter, carries=None), gather))
    source, target, chunk = gather.carries(0)
    doubled = (np.concatenate([a, a]) for a in (source, target, chunk))
    moved = tuple(doubled)
    yield "twice over one flow", replace(ring, phases=(scatter, replace(gather, carries=lambda _: moved)))


@pytest.mark.parametrize(("rule", "plan"), list(broken()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_broken_schedule_is_noticed(rule: str, plan: Schedule) -> None:
    (fault, *_) = collectives.verify(plan)
    assert rule in fault.rule


def test_a_partner_counted_twice_is_noticed() -> None:
    """Dissemination of a sum among five ranks counts some parts twice: not an all-reduce."""
    plan = collectives.schedule("all_reduce", star(5), 1e6, algorithm="recursive_doubling")
    rank, whole = np.arange(5), np.zeros(5, dtype=np.intp)

    def phase(distance: int) -> collectives.Phase:
        traffic = Flows(rank, (rank + distance) % 5, np.full(5, 1e6), 5)
        return collectives.Phase(traffic, 1, True, lambda _: (rank, (rank + distance) % 5, whole))

    (fault,) = collectives.verify(replace(plan, phases=tuple(phase(d) for d in (1, 2, 4))))
    assert "is not right" in fault.rule


def test_unfit_algorithms_say_why() -> None:
    for graph, kind, name, why in [
        (star(4), "all_to_all", "rail_aligned", "one scale-up domain"),
        (star(4), "all_gather", "torus", "no coordinates"),
        (racks(2, 2), "all_reduce", "nvls", "no scale-up switch"),
        (star(4), "all_reduce", "sharp", "no scale-out switches"),
    ]:
        with pytest.raises(InputError, match=f"does not apply: .*{why}"):
            collectives.schedule(kind, graph, 1e6, algorithm=name)
    with pytest.raises(InputError, match=r"7 ranks do not fill a box of sides \[4, 2\]"):
        collectives.schedule("all_gather", torus(4, 2), 1e6, algorithm="torus", ranks=7)
