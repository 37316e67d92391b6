"""Claims 31 to 66 of the lecture: the expert layer on a rack, and pipelining between racks."""

from __future__ import annotations

import math

from collectives import cost
from collectives.laws import expected_distinct_groups, scale_up_to_scale_out_time
from placement import expert_layer_bound
from rackbound._claims import Claim
from rackbound._defaults import BUDGET
from rackbound._lecture_case import Case
from serving import Step
from serving.laws import least_redundant_experts, pipeline_bubble
from topo import hop_counts, load_design
from topo.units import format_quantity, parse_quantity

__all__ = ["RACK_CLAIMS", "distinct_gpus", "named_seconds"]


def named_seconds(step: Step, *names: str) -> float:
    """Return the time of some operations of a step [s]."""
    return sum(part.seconds for part in step.parts if part.name in names)


def _bound(case: Case) -> float:
    found = expert_layer_bound(
        case.racks(2), case.model, case.workload, step_budget=parse_quantity(BUDGET, "seconds")
    )  # fmt: skip
    return found.one_domain[0] / found.beyond[0] if found.beyond[0] else math.inf


def _two_racks(case: Case) -> float:
    one, two = (cost(case.racks(n), "all_to_all", 1e9).seconds for n in (1, 2))
    return two / one


def distinct_gpus(case: Case) -> float:
    """Return the GPUs of a domain that a token's experts lie on, on average."""
    share, extra = divmod(case.model.n_experts, case.width)
    sizes = [share + (i < extra) for i in range(case.width)]
    return expected_distinct_groups(case.model.n_experts, sizes, case.model.top_k)


def _rack_ratio(case: Case) -> float:
    """Return the time of a layer's dispatch and combine in the rack over that of a send to the next, as stepped."""
    two = case.step(2)
    return named_seconds(two, "dispatch", "combine") / case.model.n_moe_layers / named_seconds(two, "pipeline sends")


def _per_gpu(step: Step) -> float:
    return step.tokens_per_second / step.layout.gpus


def _fullest(case: Case) -> str:
    return f"{-(-case.model.layers // 4)} of {case.model.layers} layers"


def _hop(case: Case) -> float:
    return named_seconds(case.four, "pipeline sends") / 3


RACK_CLAIMS: tuple[Claim, ...] = (
    Claim(33, "34:20", "8 GPUs of a rack of 72 idle, since 72 does not divide 256 experts", 8,
          lambda c: float(c.size - c.width),
          lambda c: f"{c.width} of {c.size} work: with {least_redundant_experts(c.model.n_experts, c.width)} second "
          "copies of experts every GPU holds as many.", "GPUs", needs="experts"),
    Claim(34, "35:00", "dispatch and combine cost the same: combine over dispatch",
          1.0, lambda c: named_seconds(c.one, "combine") / named_seconds(c.one, "dispatch"),
          lambda c: f"Dispatch goes at {c.workload.dispatch_dtype}, combine at {c.workload.combine_dtype}.", "x",
          needs="experts"),
    Claim(36, "36:27", "one rack bounds an expert layer: largest within one over largest over two",
          (1, math.inf), _bound,
          lambda c: f"With {c.workload.batch_policy}, {BUDGET} and nothing overlapped. DeepSeek-V3 on GB200 is "
          "turned by a constant total batch, full overlap, twice the scale-out (rackbound bound), or one copy of a "
          "token for each rack (rackbound step --copies per_domain: 4.5 ms of wires, not 13).", "x",
          needs="experts scale-out"),
    Claim(37, "37:31", "a rack holds about 64 accelerators", 64, lambda c: float(c.size),
          lambda c: "GPUs of a scale-up domain: 8 in HGX boxes, thousands in TPU pods.", "GPUs"),
    Claim(38, "37:55", "any pair in the rack is two hops apart", 2.0, lambda c: float(hop_counts(c.racks(1)).max()),
          lambda c: f"The longest way in a domain wired as {c.shown.scale_up.shape}.", "hops"),
    Claim(39, "39:00", "scale-out is 8 times slower than scale-up", 8.0, lambda c: c.slowdown,
          lambda c: "Per GPU and direction; 9 on H100 and H200 and with 800 Gb/s on Blackwell, 18 with 400 Gb/s.",
          "x", needs="scale-out"),
    Claim(40, "39:34", "an all-to-all over two racks takes 4 times as long", 4.0, _two_racks,
          lambda c: f"Half of the bytes at 1/{c.slowdown:.3g} of the rate, hop by hop; at 8 times it is 4.",
          "x", needs="scale-out"),
    Claim(42, "40:32", "Rubin's scale-up domain is 500-odd", 500,
          lambda c: float(load_design("vr-nvl576").design.domain_size),
          lambda c: "576 counts dies: 144 packages of 4, as announced.", "GPUs"),
    Claim(44, "45:00", "a Blackwell domain has 10 to 20 TB", (10e12, 20e12), lambda c: c.size * c.chip.hbm_bytes,
          lambda c: f"{c.size} x {format_quantity(c.chip.hbm_bytes, 'bytes', 4)}.", "bytes"),
    Claim(47, "48:29", "a model has about 100 MoE layers", 100, lambda c: float(c.model.n_moe_layers),
          lambda c: f"{c.model.name} has {c.model.n_moe_layers} of {c.model.layers}.", "layers", needs="experts"),
    Claim(48, "49:40", "a token is sent to as many GPUs as it has active experts: distinct GPUs over experts",
          1.0, lambda c: distinct_gpus(c) / c.model.top_k,
          lambda c: f"{distinct_gpus(c):.4g} GPUs for {c.model.top_k} experts over {c.width}: where a GPU holds "
          "several, two of them may share it.", "x", needs="experts"),
    Claim(49, "51:08", "scale-up over scale-out time of a rack with one layer of 8 active experts is 2",
          scale_up_to_scale_out_time(8, 1), _rack_ratio,
          lambda c: f"From the graph: {c.model.top_k} copies at {c.slowdown:.3g} times the rate, FP8 out and BF16 back "
          "against a BF16 send (1.5 where the lecture has 2).", "x", needs="experts scale-out"),
    Claim(50, "52:29", "one layer per rack is enough to keep scale-up the slower part: layers it takes",
          1.0, lambda c: float(math.ceil(1 / _rack_ratio(c))),
          lambda c: f"Layers per rack, so {c.model.n_moe_layers / math.ceil(1 / _rack_ratio(c)):.0f} racks at most.",
          "layers", needs="experts scale-out"),
    Claim(53, "57:43", "four racks and one batch idle three quarters of the time", 0.75,
          lambda c: 1 - _per_gpu(c.step(4, in_flight=1)) / _per_gpu(c.four),
          lambda c: "Rate per GPU with one micro-batch in flight against four, as stepped.", "%",
          needs="experts scale-out"),
    Claim(54, "59:00", "in training 1F1B fills the bubble: idle share of 4 stages and 32 micro-batches",
          (0, 0.05), lambda c: pipeline_bubble(4, 32),
          lambda c: "1F1B idles as long as GPipe and saves memory; 2 pieces a stage halve the bubble, zero-bubble "
          f"schedules leave {100 * pipeline_bubble(4, 32, 'zb-h1'):.2g} % (H1) or none (H2, twice the activations).",
          "%"),
    Claim(55, "1:00:52", "pipelining is neutral for latency: four stages over one",
          1.0, lambda c: c.four.serial / c.one.serial,
          lambda c: f"Three hops of {format_quantity(_hop(c), 'seconds', 3)}, and nothing else.",
          "x", needs="experts scale-out"),
    Claim(55, "1:00:52", "pipelining is neutral for throughput per GPU: four stages over one",
          1.0, lambda c: _per_gpu(c.four) / _per_gpu(c.one),
          lambda c: f"The slowest stage sets the pace, with {_fullest(c)}.", "x",
          needs="experts scale-out"),
    Claim(55, "1:00:52", "four stages hold a quarter of the weights per GPU", 0.25,
          lambda c: c.four.weight_bytes / c.one.weight_bytes,
          lambda c: f"The fullest stage has {_fullest(c)}, and embedding or head.", "x", needs="experts scale-out"),
    Claim(56, "1:01:34", "1 T parameters are little beside a rack's memory", (0, 0.1),
          lambda c: c.weights / (c.size * c.chip.hbm_bytes),
          lambda c: f"{format_quantity(c.weights, 'bytes', 3)} of weights in "
          f"{format_quantity(c.size * c.chip.hbm_bytes, 'bytes', 3)}.", "%"),
    Claim(59, "1:12:28", "KV cache per GPU is independent of the stages: four over one",
          1.0, lambda c: c.four.kv_bytes / c.one.kv_bytes,
          lambda c: f"Four times the sequences of a quarter of the layers, in the fullest stage of {_fullest(c)}.",
          "x", needs="experts scale-out cache"),
    Claim(60, "1:12:55", "with two stages weights are minor beside the KV cache: weights over cache", (0, 1),
          lambda c: (two := c.step(2)).weight_bytes / two.kv_bytes,
          lambda c: f"With {c.workload.batch_policy} at {c.workload.context:,} tokens.", "x",
          needs="experts scale-out cache"),
    Claim(62, "1:15:12", "a hop from rack to rack takes a few ms", (2e-3, 5e-3), _hop,
          lambda c: f"The activations of a GPU's tokens over its NIC and the fabric; three hops add "
          f"{100 * (c.four.serial / c.one.serial - 1):.2g} % to a token. DeepEP measures a whole cross-node dispatch "
          "at 77 to 194 us.", "seconds", needs="experts scale-out"),
    Claim(64, "1:18:00", "from Hopper scale-up size grew 8 times", 8.0,
          lambda c: c.size / load_design("hgx-h100-8").design.domain_size,
          lambda c: "Domain over that of HGX H100; 72 over 8 is 9.", "x"),
    Claim(64, "1:18:00", "bandwidth of a GPU grows 1.5 to 2 times per generation", (1.5, 2.0),
          lambda c: c.bandwidth / load_design("hgx-h100-8").chip.hbm_bandwidth,
          lambda c: "Over H100's 3.35 TB/s; H200 lies between H100 and Blackwell.", "x"),
)  # fmt: skip
