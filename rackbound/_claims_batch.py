"""Claims 1 to 30 of the lecture: roofline, batch, latency and cost."""

from __future__ import annotations

import math

from rackbound._claims import Claim, shown
from rackbound._lecture_case import Case
from serving import Workload, matmul_rate
from serving.laws import (
    crossing_context,
    dollars_per_token,
    drain_seconds,
    fast_mode_batches,
    fast_mode_kv_share,
    fast_mode_price,
    knee_batch,
    lecture_seconds,
    machine_balance,
    sparse_positions,
    train_wait,
    utilisation,
)  # fmt: skip
from topo import Design, load_design
from topo.units import format_quantity

__all__ = ["BATCH_CLAIMS", "RENT", "crossing", "knee", "pass_seconds"]

#: Rent of a GPU in the lecture [$/h], and the tokens a second of all of Gemini it reckons with.
RENT, GEMINI = 2.0, 500e6


def _attention_share(case: Case) -> float:
    flop = case.model.flops_per_token(1)
    return case.model.flops_per_token(case.workload.context) / flop - 1


def _per_byte(case: Case) -> float:
    return _attention_share(case) * case.model.flops_per_token(1) / case.sequence if case.sequence else math.inf


def knee(case: Case) -> float:
    """Return the batch at which compute takes as long as reading the weights [sequences]."""
    return knee_batch(case.weights, case.met, case.flops, case.bandwidth)


def pass_seconds(case: Case, batch: float) -> float:
    """Return the lecture's time of a pass on one domain [s]."""
    gpus = case.size
    return lecture_seconds(batch * 2 * case.met, gpus * case.flops, case.weights, batch * case.sequence,
                           gpus * case.bandwidth)  # fmt: skip


def _floor(case: Case) -> float:
    """Return the least GPU-seconds of a token at any batch, times the GPUs of a domain's part [s]."""
    return max(case.token_seconds, case.sequence / case.bandwidth) / case.size


def crossing(case: Case) -> float:
    """Return the context at which memory takes as long as the weights' arithmetic at a large batch [tokens].

    A cache grows in full within windows, and beyond them on the slope of the layers without one: the later of the two.
    """
    law = (case.met, case.flops)
    within = crossing_context(*law, case.kv, case.bandwidth)
    slope, kept = case.beyond
    if not slope:
        return within if kept > case.token_seconds * case.bandwidth else math.inf
    return max(within, crossing_context(*law, slope, case.bandwidth, kept, 1.0))


def kv_over_weights(case: Case) -> float:
    """Return the KV cache that fits beside the weights of the fullest GPU, over them."""
    return case.room / case.one.weight_bytes


def balances(designs: tuple[Design, ...]) -> dict[str, float]:
    """Return the balance of designs at FP8, or at 16 bits where there is none."""
    found = {}
    for one in designs:
        rate, key = matmul_rate(one.chip.flops, "fp8")
        size = {"fp8": 1.0, "bf16": 2.0}[key]
        found[one.design.name] = machine_balance(rate, one.chip.hbm_bandwidth, size)
    return found


def _spread(values: dict[str, float], unit: str = "") -> str:
    low, high = min(values, key=lambda name: values[name]), max(values, key=lambda name: values[name])
    said = [format_quantity(values[name], "seconds", 3) if unit else f"{values[name]:.3g}" for name in (low, high)]
    return f"from {said[0]} ({low}) to {said[1]} ({high})"


def _drains(case: Case) -> str:
    return _spread({one.design.name: drain_seconds(one.chip.hbm_bytes, one.chip.hbm_bandwidth)
                    for one in case.catalogue}, "seconds")  # fmt: skip


def _generations() -> dict[str, float]:
    return balances(tuple(load_design(name) for name in ("hgx-a100-8", "hgx-h100-8", "hgx-b200-8")))


def _rubin(case: Case) -> float:
    chip = load_design("vr-nvl72").chip
    return drain_seconds(chip.hbm_bytes, chip.hbm_bandwidth)


def _two_thousand(case: Case) -> float:
    return case.step(1, workload=Workload(context=case.workload.context, batch=2000)).tokens_per_second


def _single(case: Case) -> float:
    floor = drain_seconds(case.weights, case.size * case.bandwidth)
    return case.step(1, workload=Workload(context=case.workload.context, batch=1)).serial / floor


def _cost(case: Case) -> str:
    batch = knee(case)
    dollars = dollars_per_token(pass_seconds(case, batch), batch, case.size, RENT)
    return f"{dollars * 1e6:.3g} $ per million tokens at {RENT:g} $ per GPU-hour"


def _sparse(case: Case) -> float:
    return sparse_positions(1e5, 2048, 128 / (2 * 576))


_FAST = fast_mode_kv_share(6, 2.5)

BATCH_CLAIMS: tuple[Claim, ...] = (
    Claim(1, "3:12", "a pass takes at least max(compute, weights + KV cache): our step over that bound",
          (1, math.inf), lambda c: c.one.serial / c.one.times["lecture"],
          lambda c: f"{format_quantity(c.one.times['lecture'], 'seconds', 3)} against "
          f"{format_quantity(c.one.serial, 'seconds', 3)} one operation after the other. At small batches it is no "
          "bound: it reads every expert, a step only those some token goes to.", needs="experts"),
    Claim(2, "3:12", "attention arithmetic is small beside that of the weights",
          (0, 0.1), _attention_share,
          lambda c: f"At {c.workload.context:,} tokens a token takes "
          f"{c.model.flops_per_token(1) / 1e9:.3g} GFLOP of weights and "
          f"{c.model.flops_per_token(c.workload.context) / 1e9 - c.model.flops_per_token(1) / 1e9:.3g} of attention "
          f"({c.model.attention}), {_per_byte(c):.3g} FLOP per byte of cache.", "%"),
    Claim(3, "5:11", "a pass reads all weights: part of the experts some token goes to",
          1.0, lambda c: c.one.imbalance.experts_hit_per_layer / c.model.n_experts if c.one.imbalance else 1.0,
          lambda c: f"With {c.workload.batch_policy}; a single sequence reads {c.model.top_k} of {c.model.n_experts}.",
          "%", needs="experts"),
    Claim(4, "4:58", "DeepSeek V3 has 700 B parameters",
          700e9, lambda c: float(c.model.total_params),
          lambda c: f"{c.model.total_params / 1e9:.0f} B without the multi-token-prediction layer, "
          f"{c.model.active_params / 1e9:.1f} B active.", "parameters", needs="deepseek-v3"),
    Claim(5, "4:21", "a token of a batch of one costs 1,000 times as much",
          1000, lambda c: pass_seconds(c, 1) / _floor(c),
          lambda c: f"By the lecture's own roofline; without a KV cache it is the knee, {knee(c):,.0f}. "
          "A sparse model read alone needs only its active weights, which makes it "
          f"{pass_seconds(c, 1) / _floor(c) * c.met / c.model.total_params:,.3g}.", "x"),
    Claim(7, "9:45", "no spend makes a pass faster than weights / bandwidth: our batch of one over that floor",
          (1, math.inf), _single,
          lambda c: f"The floor is {format_quantity(drain_seconds(c.weights, c.size * c.bandwidth), 'seconds', 3)} on "
          "one domain. A lone sequence reads only its active weights, so a sparse model may get below; but one GPU "
          "reads the weights of all attention, where that is data-parallel.", needs="experts"),
    Claim(9, "15:18", "a slow mode buys little: cost of a token at the knee over that at any batch",
          (1, 1.2), lambda c: pass_seconds(c, knee(c)) / knee(c) / _floor(c),
          lambda c: "At the knee weights cost as much as compute, so at most 2 is left to gain, and where the KV cache "
          f"costs more than compute, less; here the knee costs {_cost(c)}.", "x"),
    Claim(10, "0:00", "a fast mode at 6 times the price for 2.5 times the speed is batch size: what 2.5 times costs",
          6, lambda c: fast_mode_price(kv_over_weights(c), 2.5),
          lambda c: f"Price x speed = {fast_mode_batches(6, 2.5):g} times smaller batches, and a slow mode that reads "
          f"{_FAST:g} bytes of KV cache per byte of weights. Here {kv_over_weights(c):.2g} fit, so 2.5 times the "
          f"speed by batch alone costs {'less' if kv_over_weights(c) > _FAST else 'more'}; the rest is margin, or a "
          "slow mode with fewer sequences.", "x", needs="experts room"),
    Claim(13, "11:25", "balanced at 100 K of context, so 50 % utilisation at 200 K",
          0.5, lambda c: utilisation(200e3, 100e3),
          lambda c: f"As algebra it holds. This machine and model balance at {shown(crossing(c), 'tokens')}; beyond, "
          "attention arithmetic, which the lecture leaves out, keeps the matrix units busier.", "%", needs="cache"),
    Claim(14, "12:25", "sparse attention reads the square root of the context: positions of 100 K",
          math.sqrt(1e5), _sparse,
          lambda c: "DeepSeek-V3.2 attends to 2,048, and its indexer reads 128 bytes of every position's 1,152: linear "
          "still, on a slope nine times lower.", "positions"),
    Claim(16, "18:00", "multiplies per byte: FP4 rate x half a byte / bandwidth is 300 on most GPUs",
          300, lambda c: machine_balance(c.flops, c.bandwidth, c.weight_size),
          lambda c: f"At {c.model.weight_dtype}. Shipping designs: {_spread(balances(c.catalogue))}; it counts "
          "multiplies and weight bytes, so the same number holds at FP8 only where FP4 is twice as fast."),
    Claim(17, "18:41", "it stayed the same from A100 to H100 to B200: largest over smallest",
          1.0, lambda c: max(_generations().values()) / min(_generations().values()),
          lambda c: f"It goes {_spread(_generations())}; A100 at 16 bits, the others at FP8: the type did it.", "x"),
    Claim(18, "19:00", "300 x sparsity is 2,400 sequences for DeepSeek", 2400, knee,
          lambda c: f"All weights over those met are {c.model.total_params / c.met:.3g}, and experts alone "
          f"{c.model.n_experts}/{c.model.top_k} = {c.model.n_experts / c.model.top_k:.3g}. The lecture's 8 is 256/32; "
          "DeepSeek's own text says 8 of 256, which at 300 gives 9,600.", "sequences", needs="experts"),
    Claim(20, "19:52", "the KV cache pushes the knee higher", (1, math.inf),
          lambda c: knee_batch(c.weights, c.met, c.flops, c.bandwidth, c.sequence) / knee(c),
          lambda c: f"Beyond {shown(crossing(c), 'tokens')} of context there is no knee: memory binds at every batch.",
          "x", needs="cache"),
    Claim(23, "22:13", "worst wait with a pass every 20 ms is 40 ms: twice the drain time",
          0.040, lambda c: train_wait(c.drain)[1],
          lambda c: f"Mean {format_quantity(train_wait(c.drain)[0], 'seconds', 3)}: half a period to depart, one to "
          "arrive.", "seconds"),
    Claim(24, "22:44", "HBM drains in 20 ms on many generations", 0.020, lambda c: c.drain,
          lambda c: f"Shipping designs: {_drains(c)}.", "seconds"),
    Claim(25, "22:44", "Rubin drains in 15 ms", 0.015, _rubin,
          lambda c: "288 GB at 22 TB/s as announced; 288 GB / 20 TB/s is 14.4 ms.", "seconds"),
    Claim(26, "24:10", "a pass of 30 ms reads HBM twice", 2.0, lambda c: 0.030 / c.drain,
          lambda c: "30 ms over the drain time; what counts is what is resident, and a part of HBM stays free.",
          "x"),
    Claim(27, "26:15", "a drain time makes 64 passes a second", 64, lambda c: 1 / c.drain,
          lambda c: "64 a second is 15.6 ms, and 20 ms gives 50.", "1/s"),
    Claim(27, "26:15", "2,000 sequences make 128,000 tokens/s", 128e3, _two_thousand,
          lambda c: "Our step with 2,000 sequences on one domain: a pass lasts as long as what it reads.", "tokens/s",
          needs="experts"),
    Claim(28, "27:18", "one deployment is a thousandth of Gemini", 1e-3, lambda c: c.one.tokens_per_second / GEMINI,
          lambda c: f"{c.one.tokens_per_second:,.0f} tokens/s of {GEMINI:,.0f} on one domain, with "
          f"{c.workload.batch_policy}; said were hundreds of millions, and 500 M where it is reckoned with (70).",
          needs="experts"),
    Claim(29, "30:10", "64 experts at 370 M active match 1.3 B dense: 64 times the weights for 4 times less compute",
          4, lambda c: 1.3e9 / 370e6,
          lambda c: f"1.3 B / 370 M. On this machine the weights' part is paid by batch: the knee of a dense model, "
          f"{machine_balance(c.flops, c.bandwidth, c.weight_size):,.0f} sequences, grows with total over "
          "active weights, up to 64 times.", "x"),
)  # fmt: skip
