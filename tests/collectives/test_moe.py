"""Do an expert layer's tokens reach the ranks and domains they should, and cost what hand numbers say?"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

import collectives
import serving
import topo
from collectives import MoE, expert_shares, inclusion_shares, moe_traffic
from collectives._distinct import free_groups, token_law
from topo import InputError

from .shapes import racks, star

DRY = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}
SKEWED = np.array([5.0, 1, 1, 2, 3, 1, 4, 2, 1, 2, 1, 1])


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-12, abs=0.0)


def free(shares: np.ndarray, k: int) -> Any:
    group = free_groups(shares.shape[1])
    return token_law(shares, k, group, int(group[-1]) + 1)


# --- probabilities ---------------------------------------------------------------------------------------------------


# oracles, section 12: top-8 of 256, uniform
@pytest.mark.parametrize(("gpus", "sizes", "distinct"), [(64, 8, 7.6758), (8, 1, 5.2947), (2, 1, 1.9930)])
def test_distinct_places_of_a_token(gpus: int, sizes: int, distinct: float) -> None:
    graph = racks(*[sizes] * (gpus // sizes))
    found = moe_traffic(graph, MoE(tokens=1, hidden=1, top_k=8, experts=256))
    assert found.distinct_gpus == pytest.approx(distinct, abs=5e-5)
    assert found.other_gpus == close(found.distinct_gpus * (gpus - 1) / gpus)  # its own is as likely as any
    if sizes == 1:
        assert (found.distinct_domains, found.other_domains) == (close(found.distinct_gpus), close(found.other_gpus))


def test_every_expert_is_taken_as_often_as_asked() -> None:
    """Zipf 1.0 over 256 experts: the first is capped, so that every token takes it."""
    shares = inclusion_shares(expert_shares(256, 1 / np.arange(1, 257), 1), 8)
    law = free(shares, 8)
    np.testing.assert_allclose(law.inclusion(), 8 * shares, rtol=1e-12)
    alone = law.hit(1 - np.eye(256))
    np.testing.assert_allclose(alone, 8 * shares, rtol=1e-9)
    assert alone[0, 0] == 1.0


@pytest.mark.parametrize("heavy", [1e3, 1e6, 1e9, 1e11])
def test_as_many_heavy_experts_as_a_token_takes(heavy: float) -> None:
    """Three hold nearly all: a token takes them, but for once in a while one of the other 17 in the place of one."""
    shares = inclusion_shares(expert_shares(20, [heavy] * 3 + [1.0] * 17, 1), 3)
    law = free(shares, 3)
    np.testing.assert_allclose(law.inclusion(), 3 * shares, rtol=1e-9)
    # Odds by hand: 3 sets of two heavy ones for each other one, against the one set of all three.
    light = float(shares[0, -1]) * 3
    if heavy > 1e3:
        assert law.odds[0, -1] / law.odds[0, 0] == pytest.approx(light / 3, rel=100 / heavy + 1e-8)


def test_experts_too_light_to_be_taken() -> None:
    """What is below a part in 10^12 of a token is never taken, and the load is not refused."""
    law = free(inclusion_shares(expert_shares(20, [1e15] * 3 + [1.0] * 17, 1), 3), 3)
    assert law.inclusion()[0].tolist() == [1.0] * 3 + [0.0] * 17


def test_chances_not_to_be_taken() -> None:
    """Of every set of three out of 12 within two of four groups, those without an expert."""
    law = token_law(inclusion_shares(expert_shares(12, SKEWED, 1), 3), 3, np.arange(12) // 3, 2)
    taken, not_taken = law.chances()
    np.testing.assert_allclose(not_taken, 1 - taken, rtol=1e-12)


def sets_of(law: Any, k: int) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Every set of k experts and its chance, by the product of odds times the ways to choose groups around it."""
    n, groups = law.odds.shape[1], int(law.group.max()) + 1
    sets = list(combinations(range(n), k))
    weight = []
    for one in sets:
        spanned = len(set(law.group[list(one)].tolist()))
        ways = comb(groups - spanned, law.limit - spanned) if spanned <= law.limit else 0
        weight.append(ways * np.prod(law.odds[0, list(one)]))
    return sets, np.array(weight) / np.sum(weight)


@pytest.mark.parametrize(
    ("group", "limit"), [(np.arange(12) // 3, 4), (np.arange(12) // 3, 2), (np.arange(12) % 5, 3)], ids=str
)
def test_chances_against_all_sets(group: np.ndarray, limit: int) -> None:
    k, shares = 3, inclusion_shares(expert_shares(12, SKEWED, 1), 3)
    law = token_law(shares, k, group, limit)
    sets, chance = sets_of(law, k)
    taken = [sum(p for one, p in zip(sets, chance, strict=True) if e in one) for e in range(12)]
    np.testing.assert_allclose(taken, k * shares[0], rtol=1e-9)
    # Two places: experts 0, 4, 7; and half of the copies of expert 1 with all of 2's.
    held = np.zeros((2, 12))
    held[0, [0, 4, 7]], held[1, 1], held[1, 2] = 1.0, 0.5, 1.0
    missed = [sum(p * np.prod(1 - row[list(one)]) for one, p in zip(sets, chance, strict=True)) for row in held]
    np.testing.assert_allclose(law.hit(1 - held)[0], 1 - np.array(missed), rtol=1e-12)


def test_uniform_group_limit_by_hand() -> None:
    """Any 4 of 8 groups, any 8 of their 128 experts: a GPU with 4 of one group; a node with a whole group."""
    law = token_law(np.full((1, 256), 1 / 256), 8, np.arange(256) // 32, 4)
    held = np.zeros((2, 256))
    held[0, :4] = held[1, :32] = 1.0
    gpu, node = law.hit(1 - held)[0]
    assert gpu == close(0.5 * (1 - comb(124, 8) / comb(128, 8)))
    assert node == close(0.5 * (1 - comb(96, 8) / comb(128, 8)))
    assert 8 * node < 4


def test_what_the_group_limit_leaves_out() -> None:
    """DeepSeek-V3's router takes the 4 of 8 groups whose best two scores sum to most: it reaches more of them."""
    scores = np.random.default_rng(0).standard_normal((10_000, 8, 32))
    best_two = np.sort(scores, axis=2)[:, :, -2:].sum(axis=2)
    shut = np.argsort(best_two, axis=1)[:, :4]
    np.put_along_axis(scores, shut[:, :, None], -np.inf, axis=1)
    taken = np.argpartition(scores.reshape(len(scores), 256), -8, axis=1)[:, -8:]
    groups, gpus = (np.mean([len(set(row)) for row in (taken // size).tolist()]) for size in (32, 4))
    moe = MoE(1, 1, 8, 256, limit=4, groups=8)
    nodes, chips = (moe_traffic(star(n), moe).distinct_gpus for n in (8, 64))
    assert (groups, nodes) == (pytest.approx(3.97, abs=0.01), pytest.approx(3.63, abs=5e-3))  # as the page says
    assert (gpus, chips) == (pytest.approx(7.48, abs=0.03), pytest.approx(7.36, abs=5e-3))


@pytest.mark.parametrize("limit", [None, 2], ids=["free", "two of four domains"])
def test_distinct_places_against_sampled_tokens(limit: int | None) -> None:
    """Gumbel's race draws sets in proportion to the product of their odds, if sets with a repeat are thrown away."""
    dice, k, n = np.random.default_rng(8), 3, 30_000
    moe = MoE(tokens=1, hidden=1, top_k=k, experts=12, expert_load=SKEWED, limit=limit)
    found = moe_traffic(racks(2, 2, 2, 2), moe)
    p = found.law.odds[0] / found.law.odds.sum()
    drawn = dice.choice(12, (20 * n, k), p=p)
    drawn = drawn[(np.diff(np.sort(drawn, axis=1), axis=1) > 0).all(axis=1)]
    domains = np.sort(drawn // 3, axis=1)
    different = 1 + (np.diff(domains, axis=1) > 0).sum(axis=1)
    if limit:  # a set in one domain has three pairs of domains around it, one in two has one
        drawn = drawn[dice.random(len(drawn)) < np.where(different == 1, 1.0, np.where(different == 2, 1 / 3, 0.0))]
        different = np.array([len(set(row)) for row in (drawn // 3).tolist()])
    assert len(different) > 20_000
    error = different.std() / np.sqrt(len(different))
    assert found.distinct_domains == pytest.approx(different.mean(), abs=4 * error)
    rank = np.argmax(found.held, axis=0)
    gpus = np.array([len(set(row)) for row in rank[drawn].tolist()])
    assert found.distinct_gpus == pytest.approx(gpus.mean(), abs=4 * gpus.std() / np.sqrt(len(gpus)))


def test_replicas_share_their_experts_tokens() -> None:
    """One expert on two of four ranks, top-1: half of the tokens each."""
    moe = MoE(tokens=1, hidden=1, top_k=1, experts=2, placement=([0, 0, 1, 1], [0, 1, 2, 2]))
    found = moe_traffic(star(4), moe)
    np.testing.assert_allclose(found.copies, [[0.25, 0.25, 0.5, 0.0]])
    np.testing.assert_allclose(found.to_gpu, found.copies)


# --- costs -----------------------------------------------------------------------------------------------------------


# DeepSeek-V3 hardware paper, arXiv 2505.09343, section 2.3.2: every copy over the wire
def test_slots_may_get_unequal_parts_of_an_experts_tokens() -> None:
    """By hand over the six pairs of four experts: expert 0 is on rank 0 three times out of four, else on rank 1."""
    pair = ([0, 1, 2, 3, 0], [0, 0, 1, 1, 1])
    moe = MoE(1, 8, 2, 4, placement=pair, slot_share=[0.75, 1, 1, 1, 0.25])
    found = moe_traffic(star(2), moe)
    assert found.to_gpu == pytest.approx(np.array([[1 - (0.25 + 0.25 + 1) / 6, 1 - 0.75 / 6]]))
    assert found.copies == pytest.approx(np.array([[0.5 * 1.75, 0.5 * 2.25]]))
    scaled = MoE(1, 8, 2, 4, placement=pair, slot_share=[3, 7, 1, 2, 1])
    assert moe_traffic(star(2), scaled).to_gpu == pytest.approx(found.to_gpu)
    equal = [moe_traffic(star(2), MoE(1, 8, 2, 4, placement=pair, slot_share=each)) for each in (None, [2.0] * 5)]
    assert equal[0].to_gpu == pytest.approx(equal[1].to_gpu)


@pytest.mark.parametrize(("bandwidth", "micros"), [(50e9, 120.96), (900e9, 6.72)])
def test_dispatch_and_combine_of_the_paper(bandwidth: float, micros: float) -> None:
    moe = MoE(tokens=[32, 0], hidden=7000, top_k=9, experts=9, placement=[1] * 9)
    graph = star(2, bandwidth)
    both = [collectives.cost(graph, kind, moe).seconds for kind in ("moe_dispatch", "moe_combine")]
    assert sum(both) * 1e6 == pytest.approx(micros, abs=5e-3)
    assert both[1] == close(2 * both[0])
    once = collectives.cost(graph, "moe_dispatch", moe, algorithm="per_gpu")
    assert once.seconds == close(both[0] / 9)  # all nine experts on one GPU: one copy


def test_two_racks_by_domain() -> None:
    """Direct: half of 8 copies leave the rack. Per domain: one, if any of the other rack's experts is hit."""
    graph = topo.load("gb200-nvl72", 2, overrides=DRY)
    moe = MoE(tokens=128, hidden=7168, top_k=8, experts=288)
    direct, by_domain = (
        collectives.cost(graph, "moe_dispatch", moe, algorithm=name).classes["scale-out"]
        for name in ("direct", "per_domain")
    )
    other = 1 - comb(144, 8) / comb(288, 8)
    assert direct.busiest_seconds == close(128 * 4 * 7168 / 50e9)
    assert by_domain.busiest_seconds == close(128 * other * 7168 / 50e9)
    assert direct.busiest_seconds / by_domain.busiest_seconds == close(4 / other)


def test_handed_on_inside_by_hand() -> None:
    """2 x 2 ranks of one expert each, top-2: one copy across if one of the other two is hit, then to each GPU."""
    graph = racks(2, 2, up=10e9, out=1e9)
    moe = MoE(tokens=1e6, hidden=1000, top_k=2, experts=4)
    cost = collectives.cost(graph, "moe_dispatch", moe, algorithm="per_domain")
    across, inside = cost.phases
    assert across.seconds == close(1e9 * (1 - 1 / 6) / 1e9)  # one of the six pairs is both at home
    # A rank hands its neighbour its own tokens and those of its namesake, half of each.
    assert inside.seconds == close(1e9 * (0.5 + 0.5) / 10e9)
    assert cost.seconds == close(across.seconds + inside.seconds)
    assert inside.classes["scale-out"].n_bytes == across.classes["scale-up"].n_bytes == 0.0


def test_combine_is_dispatch_backwards() -> None:
    dice = np.random.default_rng(3)
    load = dice.random((7, 20)) + 0.1
    for name in collectives.KINDS["moe_dispatch"].algorithms:
        moe = MoE(dice.integers(1, 9, 7), 64, 4, 20, 2.0, 2.0, dice.integers(0, 7, 20), load)
        there, back = (
            collectives.schedule(kind, racks(3, 4), moe, algorithm=name) for kind in ("moe_dispatch", "moe_combine")
        )
        for first, last in zip(there.phases, reversed(back.phases), strict=True):
            np.testing.assert_allclose(first.n_bytes, last.n_bytes.T, rtol=1e-12)
        assert collectives.verify(there) == collectives.verify(back) == []


def test_copies_only_get_fewer() -> None:
    moe = MoE(8, 64, 4, 24, expert_load=np.arange(1, 25))
    sent = {
        name: collectives.cost(racks(3, 3, 2), "moe_dispatch", moe, algorithm=name).classes["scale-out"].n_bytes
        for name in ("direct", "per_gpu", "per_domain")
    }
    assert sent["direct"] > sent["per_gpu"] > sent["per_domain"] > 0


def test_a_loaded_row_per_sender_is_the_common_row_if_all_are_alike() -> None:
    graph, load = racks(2, 3), np.arange(1.0, 11)
    for name in collectives.KINDS["moe_dispatch"].algorithms:
        one, each = (
            collectives.cost(graph, "moe_dispatch", MoE(5, 64, 3, 10, expert_load=given), algorithm=name)
            for given in (load, np.tile(load, (5, 1)))
        )
        np.testing.assert_allclose(one.loads, each.loads, rtol=1e-9)


def test_one_domain_has_nothing_to_hand_across() -> None:
    moe = MoE(64, 512, 4, 24)
    by_gpu, by_domain = (
        collectives.cost(star(6), "moe_dispatch", moe, algorithm=name) for name in ("per_gpu", "per_domain")
    )
    assert by_domain.seconds == close(by_gpu.seconds)
    assert len(by_domain.phases) == 1


def test_a_step_counts_the_same_wires() -> None:
    """Serving's dispatch and combine of 58 layers are those of the direct copies here."""
    graph, model = topo.load("gb200-nvl72", 2), serving.load_model("deepseek-v3")
    load = np.random.default_rng(1).random(256) + 0.5
    step = serving.step(graph, model, serving.Workload(batch_per_gpu=20), expert_load=load)
    moe = MoE(20, model.hidden_size, model.top_k, model.n_experts, expert_load=load)
    for part, kind in (("dispatch", "moe_dispatch"), ("combine", "moe_combine")):
        (found,) = [one for one in step.parts if one.name == part]
        assert found.seconds == pytest.approx(58 * collectives.cost(graph, kind, moe).seconds, rel=1e-9)


def test_what_was_filled_in_is_said() -> None:
    moe = MoE(1, 1, 8, 256, expert_load=1 / np.arange(1, 257), limit=2)
    said = collectives.cost(racks(2, 2, 2, 2), "moe_dispatch", moe).assumptions
    assert "1 expert loads above 1/top_k = 1/8 are capped: a token goes to an expert once" in said
    assert "experts on ranks in order, as equal as they divide" in said
    assert any(line.startswith("a token takes any 2 domains and any 8 experts in them") for line in said)
    assert "uniform expert load" in collectives.schedule("moe_dispatch", star(2), MoE(1, 1, 1, 2)).assumptions
    wide = collectives.schedule("moe_dispatch", racks(2, 2), MoE(1, 1, 2, 8, limit=5)).assumptions
    assert "a limit of 5 domains leaves out nothing: there are 2" in wide
    assert any(line.startswith("a token takes any 2 domains") for line in wide)


def test_tokens_are_asked_for_by_name() -> None:
    for size in (None, 1e9):
        with pytest.raises(InputError, match=r"must be a collectives\.MoE\. Say MoE\(tokens="):
            collectives.cost(star(2), "moe_dispatch", size)


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ({"tokens": -1}, "tokens"), ({"tokens": [1, 2]}, "tokens"), ({"tokens": float("nan")}, "tokens"),
        ({"tokens": "many"}, "tokens"), ({"tokens": True}, "tokens"), ({"tokens": 1e31}, "tokens"),
        ({"tokens": [True] * 4}, "tokens"), ({"hidden": 0}, "hidden"), ({"top_k": 9}, "top_k"),
        ({"experts": 2.5}, "experts"), ({"experts": 10**9}, "experts"), ({"dispatch_bytes": 1e31}, "dispatch_bytes"),
        ({"dispatch_bytes": -1}, "dispatch_bytes"), ({"combine_bytes": True}, "combine_bytes"),
        ({"placement": [0] * 7}, "placement"), ({"placement": [4] * 8}, "placement"),
        ({"placement": [0.5] * 8}, "placement"), ({"placement": ([0, 1], [0])}, "placement"),
        ({"placement": ([0, 1], [0, 1])}, "placement"), ({"expert_load": [1.0] * 7}, "expert_load"),
        ({"expert_load": [[1.0] * 8] * 3}, "expert_load"), ({"expert_load": [1.0] + [0.0] * 7}, "expert_load"),
        ({"groups": 2}, "groups"), ({"limit": 1, "groups": 3}, "groups"), ({"limit": 1, "groups": [0] * 7}, "groups"),
        ({"limit": 1, "groups": 8}, "limit"), ({"limit": 0}, "limit"), ({"slot_share": [1.0] * 7}, "slot_share"),
        ({"slot_share": [-1.0] + [1.0] * 7}, "slot_share"), ({"slot_share": [0.0] + [1.0] * 7}, "slot_share"),
        ({"slot_share": ["half"] * 8}, "slot_share"), ({"slot_share": [float("nan")] * 8}, "slot_share"),
        ({"limit": 1, "groups": 4, "expert_load": [8, 1, 1, 1, 1, 1, 1, 1]}, "expert_load"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_layers_are_refused(words: dict[str, Any], place: str) -> None:
    given = {"tokens": 1, "hidden": 1, "top_k": 2, "experts": 8} | words
    with pytest.raises(InputError) as caught:
        collectives.cost(star(4), "moe_dispatch", MoE(**given))
    assert [fault.place for fault in caught.value.faults] == [place]


def test_bytes_are_no_tokens() -> None:
    with pytest.raises(InputError, match=r"must be a collectives\.MoE"):
        collectives.cost(star(4), "moe_dispatch", 1e6)
    with pytest.raises(InputError, match="finite number of bytes"):
        collectives.cost(star(4), "all_gather", MoE(1, 1, 1, 4))


def test_a_limit_to_domains_needs_experts_in_one() -> None:
    moe = MoE(1, 1, 1, 2, placement=([0, 0, 1], [0, 1, 1]), limit=1)
    with pytest.raises(InputError, match="slots in several"):
        moe_traffic(racks(1, 1), moe)
