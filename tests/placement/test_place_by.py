"""Is what `place_by` says of its objectives so, is no bound above any placement, and are rules kept to?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import placement
import serving
import topo
from placement import Gpus, LinkTimes, Rules, link_times, place_by
from placement._objective_search import Goal, improve_seating, seating_of, values
from serving import PlacementPlan
from topo import InputError

MACHINE = Gpus([2] * 4, domain=[0, 0, 1, 1], host=[0, 1, 2, 3])
NAMES = list(placement.OBJECTIVES)


@cache
def links() -> LinkTimes:
    """Two boxes of two GPUs."""
    graph = topo.load("hgx-h100-8", 2, {"design.domain_size": 2})
    return link_times(graph, serving.load_model("mixtral-8x7b"), serving.Workload(batch_per_gpu=64))


def drawn(seed: int, domains: int = 2, experts: int = 6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.exp(rng.standard_normal((domains, experts)))


def told(seats: Any, asked: np.ndarray, gpus: Gpus, now: set[tuple[int, int]], times: LinkTimes | None) -> np.ndarray:
    """The four objectives of a placement, GPU -> experts, written down anew."""
    asked = asked / asked.sum()
    flow = np.zeros((len(asked), len(seats)))
    for e in range(asked.shape[1]):
        held = [g for g, row in enumerate(seats) if e in row]
        for d in range(len(asked)):
            here = [g for g in held if gpus.domain[g] == d] or held
            flow[d, here] += asked[d, e] / len(here)
    load = flow.sum(axis=0) / gpus.speed
    able = gpus.slots > 0
    heavy = load.max() / (1 / gpus.speed[able].sum())
    crossing = sum(flow[d, g] for d in range(len(asked)) for g in range(len(seats)) if gpus.domain[g] != d)
    busy = 0.0 if times is None else float((columns() @ flow.ravel()).max())
    new = sum((g, e) not in now for g, row in enumerate(seats) for e in row)
    return np.array([heavy, crossing, busy, new])


@cache
def columns() -> np.ndarray:
    """Time of every link by domain and GPU."""
    times = links()
    table = np.zeros((len(times.labels), len(times.indptr) - 1))
    for row in range(len(times.indptr) - 1):
        part = slice(times.indptr[row], times.indptr[row + 1])
        table[times.link[part], row] += times.seconds[part]
    return table


def every(gpus: Gpus, n: int, copies: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All placements of so many copies, each expert once at least, none twice on a GPU."""
    for seats in product(*(tuple(combinations(range(n), int(k))) for k in gpus.slots)):
        if sum(map(len, seats)) == copies and len({e for row in seats for e in row}) == n:
            yield seats


def seats_of(plan: PlacementPlan, layer: int = 0) -> list[tuple[int, ...]]:
    both = plan.slot_rank[layer], plan.slot_expert[layer]
    return [tuple(sorted(both[1][both[0] == g].tolist())) for g in range(plan.ep)]


def plan_of(seats: Any) -> PlacementPlan:
    rank = np.repeat(np.arange(len(seats)), [len(row) for row in seats])
    return PlacementPlan(
        np.array([[e for row in seats for e in row]]), rank[None], np.zeros(1, dtype=int), len(seats), 1
    )


@pytest.mark.parametrize("seed", range(3))
def test_one_objective_is_the_best_of_all_placements(seed: int) -> None:
    """Six experts in eight slots of two boxes: no placement is better, and no bound above any."""
    asked, now = drawn(seed), plan_of([(0, 1), (2, 3), (4, 5), (0, 2)])
    held = {(g, e) for g, row in enumerate(seats_of(now)) for e in row}
    all_of_them = np.array([told(seats, asked, MACHINE, held, links()) for seats in every(MACHINE, 6, 8)])
    for i, name in enumerate(NAMES):
        words = {"replicas": 2, "current": now, "links": links()}
        found, free = (place_by(asked, MACHINE, name, sharing=how, **words) for how in ("equal", "weighted"))
        assert found.plan is not None
        assert found.plan.slot_share is None
        values = np.array([found.value[each][0] for each in NAMES])
        assert told(seats_of(found.plan), asked, MACHINE, held, links()) == pytest.approx(values)
        assert values[i] == pytest.approx(all_of_them[:, i].min())
        assert found.bound[name][0] <= values[i] + 1e-12
        assert free.bound[name][0] - 1e-12 <= free.value[name][0] <= values[i] + 1e-9


def test_the_bound_of_the_busiest_link_counts_what_must_cross() -> None:
    """All NICs of two racks alike busy with the fewest tokens that can cross: FP8 out and BF16 back, by hand."""
    racks, model = topo.load("gb200-nvl72", [36, 36]), serving.load_model("deepseek-v3")
    work, rng = serving.Workload(batch_per_gpu=114), np.random.default_rng(9)
    load, home = np.exp(0.7 * rng.standard_normal(256)), rng.integers(0, 2, 256) == np.arange(2)[:, None]
    gpus = Gpus([4] * 72, domain=np.arange(72) // 36)
    found = place_by(load * (0.25 + 0.5 * home), gpus, "busiest_link", replicas=32, work=20,
                     links=link_times(racks, model, work))  # fmt: skip
    fewest = found.bound["crossing"][0]
    level = fewest * 72 * 114 * 8 * 7168 * (1 + 2) / 50e9 / 72
    assert found.bound["busiest_link"][0] == pytest.approx(level, rel=0.01)
    assert found.bound["busiest_link"][0] <= found.value["busiest_link"][0]


@pytest.mark.parametrize("seed", range(3))
def test_in_turn_the_second_is_best_within_what_is_enough_of_the_first(seed: int) -> None:
    asked = drawn(seed + 10)
    first, second = "heaviest_gpu", "busiest_link"
    every_value = np.array([told(seats, asked, MACHINE, set(), links()) for seats in every(MACHINE, 6, 8)])
    enough = 1.15 * every_value[:, 0].min()
    found = place_by(asked, MACHINE, (first, second), replicas=2, links=links(), enough={first: enough})
    within = every_value[every_value[:, 0] <= enough * (1 + 1e-9)]
    assert found.value[first][0] <= enough * (1 + 1e-9)
    assert found.value[second][0] <= within[:, 2].min() * (1 + 1e-9)
    assert found.bound[second][0] <= within[:, 2].min() * (1 + 1e-9)  # what no placement within is below
    assert found.status.startswith("feasible: heaviest_gpu ")


@pytest.mark.parametrize("seed", range(6))
def test_what_came_first_is_kept_whatever_its_unit(seed: int) -> None:
    """The busiest link, tens of microseconds, is no busier for copies that stay where they are."""
    asked, now = drawn(seed + 50), plan_of([(0, 1), (2, 3), (4, 5), (0, 2)])
    held = {(g, e) for g, row in enumerate(seats_of(now)) for e in row}
    values = np.array([told(seats, asked, MACHINE, held, links()) for seats in every(MACHINE, 6, 8)])
    found = place_by(
        asked, MACHINE, ("busiest_link", "moved"), replicas=2, current=now, links=links(), sharing="equal"
    )  # fmt: skip
    least = values[:, 2].min()
    assert found.value["busiest_link"][0] == pytest.approx(least, rel=1e-6)
    assert found.value["moved"][0] == values[values[:, 2] <= least * (1 + 1e-9)][:, 3].min()


@pytest.mark.parametrize(
    "rules", [Rules(pin={0: 3}), Rules(forbid={1: range(9)}), Rules(together=[[0, 1, 2]])], ids=str
)
def test_a_rule_costs_little_where_it_asks_little(rules: Rules) -> None:
    """Two domains of eight GPUs: about as level as without it, and hardly more that crosses."""
    rng = np.random.default_rng(9)
    load, home = np.exp(0.7 * rng.standard_normal(56)), rng.integers(0, 2, 56) == np.arange(2)[:, None]
    gpus = Gpus([4] * 16, domain=np.arange(16) // 8)
    order, words = ("heaviest_gpu", "crossing"), {"replicas": 8, "enough": {"heaviest_gpu": 1.05}}
    free, ruled = (place_by(load * (0.25 + 0.5 * home), gpus, order, rules=some, **words) for some in (None, rules))
    assert ruled.plan is not None
    assert kept(seats_of(ruled.plan), rules, gpus)
    assert ruled.value["heaviest_gpu"][0] <= 1.05 + 1e-9
    assert ruled.value["crossing"][0] <= free.value["crossing"][0] + 0.02


def test_no_token_is_lost_while_copies_of_unlike_weights_come_and_go() -> None:
    """Sums kept up over many exchanges are those of the placement that comes out."""
    asked = drawn(3, experts=12)
    a = seating_of(
        np.array([[0, 1, 2, 0], [3, 4, 5, 1], [6, 7, 8, 2], [9, 10, 11, 3]]), asked / asked.sum(), MACHINE.domain,
        MACHINE.speed, np.ones((12, 4), dtype=bool), weight=np.full((4, 4), [1e-3, 1e3, 1.0, 30.0]),
    )  # fmt: skip
    goal = Goal(np.array([1.0, 1.0, 0, 0]), np.full(4, np.inf), np.zeros(4))
    found = improve_seating(a, goal, 200_000, 1, 0.5, 0.1, True)
    assert found == pytest.approx(values(a), rel=1e-9)


def test_domains_that_send_nothing_over_wires_have_a_bound_of_nothing() -> None:
    still = LinkTimes((), np.zeros(9, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), np.array([0, 0, 1, 1]))
    found = place_by(drawn(1), MACHINE, "crossing", replicas=2, links=still)
    assert (found.value["busiest_link"][0], found.bound["busiest_link"][0]) == (0, 0)


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_summed(seed: int) -> None:
    asked, weight = drawn(seed + 20), {"heaviest_gpu": 1.0, "crossing": 2.0}
    found = place_by(asked, MACHINE, weight, replicas=2)
    sums = [told(seats, asked, MACHINE, set(), None)[:2] @ [1.0, 2.0] for seats in every(MACHINE, 6, 8)]
    reached = sum(factor * found.value[name][0] for name, factor in weight.items())
    assert reached <= min(sums) + 1e-9
    assert found.gap is not None
    assert found.gap >= 0


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_for_every_placement(seed: int) -> None:
    """Three GPUs of unlike slots, speeds and domains; sources of two."""
    gpus = Gpus([2, 2, 3], speed=[1.0, 2.0, 1.0], domain=[0, 1, 1])
    asked = drawn(seed + 30, experts=4)
    found = place_by(asked, gpus, "crossing", replicas=3)
    values = np.array([told(seats, asked, gpus, set(), None) for seats in every(gpus, 4, 7)])
    for i, name in enumerate(("heaviest_gpu", "crossing")):
        assert found.bound[name][0] <= values[:, i].min() + 1e-9
    assert found.value["crossing"][0] <= values[:, 1].min() + 1e-9


def kept(seats: Any, rules: Rules, gpus: Gpus) -> bool:
    """Whether a placement keeps to the rules, by their words."""
    where = {e: {g for g, row in enumerate(seats) if e in row} for row in seats for e in row}
    zone = {"gpu": np.arange(len(seats)), "host": gpus.host, "domain": gpus.domain}.get(str(rules.apart))
    return (
        all(g in where[e] for e, row in rules.pin.items() for g in ([row] if isinstance(row, int) else row))
        and all(not where[e] & set(row) for e, row in rules.forbid.items())
        and all(len({gpus.domain[g] for e in group for g in where[e]}) == 1 for group in rules.together)
        and (zone is None or all(len({int(zone[g]) for g in held}) > 1 for held in where.values()))
    )


RULES = [
    Rules(pin={0: 3, 1: 3}), Rules(forbid={0: [0, 1], 3: [2]}), Rules(together=[[0, 1], [4, 5]]), Rules(apart="gpu"),
    Rules(apart="domain"), Rules(pin={2: 0}, forbid={1: [0]}, together=[[2, 3]]), Rules(apart="host", forbid={0: [3]}),
    Rules(pin={0: 0}, forbid={0: [0]}), Rules(together=[[0, 1, 2, 3, 4]]), Rules(pin={0: 0, 1: 0, 2: 0}),
    Rules(apart="domain", together=[[0, 1]]), Rules(pin={0: [0, 3], 1: 2}), Rules(pin={0: [0, 3]}, together=[[0, 1]]),
]  # fmt: skip


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("copies", [6, 8])
def test_rules_are_kept_to_or_named(rules: Rules, copies: int) -> None:
    n = copies // 2 if rules.apart else 6
    asked = drawn(40, experts=n)
    rules = Rules(pin={e: g for e, g in rules.pin.items() if e < n}, apart=rules.apart,
                  forbid={e: g for e, g in rules.forbid.items() if e < n},
                  together=[[e for e in group if e < n] for group in rules.together if group[0] < n])  # fmt: skip
    all_of_them = [seats for seats in all_seats(n, copies) if kept(seats, rules, MACHINE)]
    found = place_by(asked, MACHINE, "heaviest_gpu", replicas=copies - n, rules=rules, sharing="equal")
    if not all_of_them:
        assert found.plan is None
        assert found.status.startswith("infeasible: ")
        assert any(f"rules.{name}" in found.status for name in rules.given)
        return
    assert found.plan is not None
    assert kept(seats_of(found.plan), rules, MACHINE)
    least = min(told(seats, asked, MACHINE, set(), None)[0] for seats in all_of_them)
    assert found.bound["heaviest_gpu"][0] <= least + 1e-9
    assert found.value["heaviest_gpu"][0] == pytest.approx(least)


@cache
def all_seats(n: int, copies: int) -> list[Any]:
    """All placements, some slots empty."""
    choices = [tuple(combinations(range(n), k)) for k in range(3)]
    rows = [one for some in choices for one in some]
    return [seats for seats in product(rows, repeat=4)
            if sum(map(len, seats)) == copies and len({e for row in seats for e in row}) == n]  # fmt: skip


def test_links_are_those_of_the_costed_plan() -> None:
    """`cost_plan` and the search see the same busiest link."""
    graph, model = topo.load("hgx-h100-8", 2), serving.load_model("mixtral-8x7b")
    work, asked = serving.Workload(batch_per_gpu=64), drawn(5, experts=8)
    times = link_times(graph, model, work)
    gpus = Gpus([1] * 16, domain=np.arange(16) // 8)
    found = place_by(asked, gpus, "busiest_link", replicas=8, links=times)
    assert found.plan is not None
    loads = placement.ExpertLoads(np.tile(asked.sum(axis=0), (32, 1)), None, np.tile(asked, (32, 1, 1)), None, "eplb")
    rows = (found.plan.slot_expert, found.plan.slot_rank, found.plan.shares)
    expert, rank, share = (np.tile(row, (32, 1)) for row in rows)
    whole = PlacementPlan(expert, rank, np.zeros(32, dtype=int), 16, 1, share)
    costed = placement.cost_plan(graph, model, work, whole, loads)
    assert costed.hot_seconds == pytest.approx(32 * found.value["busiest_link"][0])
    assert costed.crossing[0] == pytest.approx(found.value["crossing"][0])
    assert costed.worst == pytest.approx(found.value["heaviest_gpu"][0])


def test_times_are_said_with_their_unit() -> None:
    found = place_by(
        drawn(5),
        MACHINE,
        ("busiest_link", "moved"),
        replicas=2,
        links=links(),
        current=plan_of([(0, 1), (2, 3), (4, 5), (0, 2)]),
    )
    assert re.fullmatch(r"feasible: busiest_link [\d.]+ us \(bound [\d.]+ us\), moved \d+ \(bound \d+\)", found.status)


def test_layers_alike_are_placed_alike_and_answers_repeat() -> None:
    asked = np.stack([drawn(1), drawn(2), drawn(1)])
    one, two = (place_by(asked, MACHINE, ("heaviest_gpu", "crossing"), replicas=2) for _ in range(2))
    assert one.plan is not None
    assert two.plan is not None
    assert (one.plan.slot_expert == two.plan.slot_expert).all()
    assert (one.plan.slot_rank[0] == one.plan.slot_rank[2]).all()
    assert one.to_dict() == two.to_dict()


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ({"objective": "lightest"}, "objective"), ({"objective": ()}, "objective"),
        ({"objective": ("crossing", "crossing")}, "objective"), ({"objective": {"crossing": -1.0}}, "objective"),
        ({"objective": {"crossing": float("nan")}}, "objective"), ({"objective": "moved"}, "current"),
        ({"objective": "busiest_link"}, "links"), ({"enough": {"speed": 1.0}}, "enough"),
        ({"enough": {"crossing": True}}, "enough"), ({"work": -1}, "work"), ({"replicas": 3}, "gpus.slots"),
        ({"rules": Rules(pin={9: 0})}, "rules.pin"), ({"sources": [[1.0, 2.0]]}, "sources"),
        ({"current": plan_of([(0, 1), (2, 3)])}, "current"),
        ({"current": plan_of([(0, 9), (2,), (3,), (1,)])}, "current"),
        ({"links": link_times(topo.load("hgx-h100-8"), serving.load_model("mixtral-8x7b"), serving.Workload(batch=8))},
         "links"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_input_is_refused(words: dict[str, Any], place: str) -> None:
    given = {"sources": drawn(0), "objective": "crossing"} | words
    with pytest.raises(InputError) as caught:
        place_by(given.pop("sources"), MACHINE, given.pop("objective"), **given)
    assert place in [fault.place for fault in caught.value.faults]
