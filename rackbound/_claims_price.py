"""Claims 67 to 85 of the lecture: compute split, and what prices give away."""

from __future__ import annotations

import math

from rackbound._claims import Claim
from rackbound._claims_batch import RENT, crossing
from rackbound._lecture_case import Case
from serving import TIERS, Tier
from serving.laws import (
    break_even_seconds,
    cost_ratio_at_minimum,
    drain_seconds,
    equal_cost_tokens,
    hold_dollars,
    kv_bytes_at_crossing,
    lecture_seconds,
    over_training,
)
from topo.units import format_quantity

__all__ = ["PRICE_CLAIMS", "memories"]

_MONTHS = 2 * 30 * 86400.0


def memories(case: Case) -> dict[str, tuple[float, float]]:
    """Return, per place a token's cache may wait in, cost of fetching it once [$] and of holding it [$/s].

    Computing it anew costs the weights' arithmetic and nothing to hold; HBM costs the GPU to hold; below, fetching
    keeps the GPU busy too.
    """
    gpu = RENT / 3600
    found = {"HBM": (0.0, hold_dollars(case.kv, case.chip.hbm_bytes, gpu, 1.0))}
    for tier in TIERS:
        fetched = drain_seconds(case.kv, tier.bandwidth) * (gpu + tier.dollars_per_second)
        found[tier.name] = (fetched, hold_dollars(case.kv, tier.n_bytes, tier.dollars_per_second, 1.0))
    return found | {"anew": (case.token_seconds * gpu, 0.0)}


def _tier(name: str) -> Tier:
    return next(tier for tier in TIERS if tier.name == name)


def _tier_drain(name: str) -> float:
    return drain_seconds(_tier(name).n_bytes, _tier(name).bandwidth)


def _decode_gap(case: Case) -> float:
    sequences = float(case.workload.batch_of(case.size).sum())
    memory = lecture_seconds(0.0, 1.0, case.weights, sequences * case.sequence, case.size * case.bandwidth)
    return memory / (sequences * case.token_seconds / case.size)


def _attention_context(case: Case) -> float:
    flops = case.model.flops_per_token
    slope = (flops(2_000_000) - flops(1_000_000)) / 1e6
    return flops(1) / slope if slope else math.inf


def _fetch_over_anew(case: Case, tier: str) -> float:
    found = memories(case)
    return found[tier][0] / found["anew"][0]


def _break_even(case: Case, quick: str, cheap: str) -> str:
    found = memories(case)
    return format_quantity(break_even_seconds(found[quick], found[cheap]), "seconds", 2)


def _longest(case: Case) -> float:
    return case.model.kv_bytes(1e8, case.workload.kv_dtype)


def _long(case: Case) -> float:
    usable = case.size * case.chip.hbm_bytes * (1 - case.workload.hbm_reserve)
    return max(0.0, (usable - case.weights) / _longest(case))


#: Exponents of loss against weights and against tokens: Hoffmann et al., arXiv 2203.15556, approach 3.
_LOSS = (0.34, 0.28)

PRICE_CLAIMS: tuple[Claim, ...] = (
    Claim(67, "1:21:20", "opposing costs are least where they are equal: their ratio there, of a model and its tokens",
          1.0, lambda c: cost_ratio_at_minimum(*_LOSS[::-1]),
          lambda c: "Exact for x and 1/x. A training loss of A/N^0.34 + B/D^0.28 at fixed N x D (Chinchilla) is least "
          "where 0.34 A/N^0.34 = 0.28 B/D^0.28.", "x"),
    Claim(69, "1:26:18", "equal thirds: as many tokens in inference as in pretraining", 1.0,
          lambda c: equal_cost_tokens(1.0, 2, 0.3),
          lambda c: "6 FLOP per weight and token against 2 at 30 % of the rate.", "x"),
    Claim(69, "1:26:18", "equal thirds: reinforcement learning gets 1/1.5 of the tokens", 1 / 1.5,
          lambda c: equal_cost_tokens(1.0, 4, 0.3),
          lambda c: "At 4 FLOP per weight and token; from 2 to 6 it is 0.9 to 0.3.", "x"),
    Claim(70, "1:30:12", "a tenth of 500 M tokens/s for two months is 200 T tokens", 200e12,
          lambda c: 500e6 / 10 * _MONTHS, lambda c: "2.6e14 by arithmetic alone.", "tokens"),
    Claim(71, "1:31:07", "100 B active and 150 T tokens are 100 times over-trained", 100,
          lambda c: over_training(150e12, 100e9),
          lambda c: f"150 T / (20 x 100 B) is 75. {c.model.name}'s {c.met / 1e9:.3g} B at 15 T would be "
          f"{over_training(15e12, c.met):.2g}.", "x"),
    Claim(72, "1:32:51", "memory crosses compute at 200 K of context, where the price steps up", 200e3, crossing,
          lambda c: f"With {c.kv:,.0f} bytes of cache per token; at 200 K it would be "
          f"{kv_bytes_at_crossing(200e3, c.met, c.flops, c.bandwidth):,.0f}.", "tokens",
          needs="cache"),
    Claim(73, "1:35:47", "the step at 200 K gives away 1,667 bytes per token, at 100 B active", 1667,
          lambda c: kv_bytes_at_crossing(200e3, 100e9, c.flops, c.bandwidth),
          lambda c: f"On this chip at {c.model.weight_dtype}; twice the rate at FP4 halves it.", "bytes"),
    Claim(74, "1:40:00", "a token's cache is about 2 KB", 2048, lambda c: c.kv,
          lambda c: "2 x 128 x 8 x 1 byte of a single global layer; a model with a cache in every layer keeps tens to "
          "hundreds of KB.", "bytes", needs="cache"),
    Claim(77, "1:41:38", "output costs 3 to 5 times input, since decode waits that much longer for memory",
          (3, 5), _decode_gap,
          lambda c: f"Memory over compute of the lecture's pass with {c.workload.batch_policy} at "
          f"{c.workload.context:,} tokens; prefill reads the same weights for a whole prompt.", "x"),
    Claim(79, "1:51:23", "attention arithmetic shows only at millions of tokens: where it equals the weights'",
          1e6, _attention_context,
          lambda c: "For a token of decode; over a prompt the mean is half, and latent attention is cheaper "
          "expanded.", "tokens"),
    Claim(80, "1:54:00", "100 M of context has no path: such sequences a domain holds", (0, 1), _long,
          lambda c: f"{format_quantity(_longest(c), 'bytes', 3)} each; read once a token over the whole domain they "
          f"take {format_quantity(_longest(c) / (c.size * c.bandwidth), 'seconds', 3)}. The wall is the price of a "
          "domain per user.", "sequences", needs="cache"),
    Claim(81, "1:48:52", "a cache hit is 10 times cheaper than a miss: computing anew over fetching from DDR",
          10, lambda c: 1 / _fetch_over_anew(c, "DDR"),
          lambda c: "GPU time alone, and no attention in the arithmetic; published prices say 10 (5 $ and 0.50 $).",
          "x", needs="cache"),
    Claim(83, "2:00:00", "holding for 5 minutes costs 1.25 $ per M tokens (6.25 - 5): in HBM, the dearest place",
          1.25, lambda c: memories(c)["HBM"][1] * 300 * 1e6,
          lambda c: f"Of GPUs at {RENT:g} $ an hour: the price is not that of memory. A write for an hour is 10 $ in "
          "price lists, per second a third.", "$", needs="cache"),
    Claim(84, "2:00:24", "HBM drains in 20 ms, DDR in 1 to 10 s", (1, 10), lambda c: _tier_drain("DDR"),
          lambda c: f"{_tier('DDR').source}. Holding in HBM beats computing anew for {_break_even(c, 'HBM', 'anew')}, "
          f"DDR beats HBM from {_break_even(c, 'HBM', 'DDR')} on.", "seconds", needs="cache"),
    Claim(84, "2:00:24", "flash drains in 1 minute, so 5 minutes are flash", 60, lambda c: _tier_drain("flash"),
          lambda c: f"{_tier('flash').source}; nearer to 5 minutes than to one.", "seconds"),
    Claim(84, "2:00:24", "disk drains in 1 hour, so 1 hour is disk", 3600, lambda c: _tier_drain("disk"),
          lambda c: f"{_tier('disk').source}: a day, so an hour is flash. With the GPU waiting, fetching costs "
          f"{_fetch_over_anew(c, 'disk'):.2g} times what computing anew does.", "seconds", needs="cache"),
)  # fmt: skip
