"""How many experts does a step leave room for? The bound again, in plain arithmetic on published numbers.

Nothing of the project is used here. Definition: constant or shared batch, whole experts spread evenly over `width`
GPUs, one token through all layers within a budget; latencies zero; the fabric between domains does not block.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

#: Bytes per element. MXFP4: 32 values of 4 bits and one 8-bit scale.
BYTES = {"fp8": 1.0, "bf16": 2.0, "mxfp4": (32 * 4 + 8) / 8 / 32}


@dataclass(frozen=True)
class Facts:
    """One model: layers, widths, weights per piece, KV elements and attention FLOP per position, dtypes."""

    layers: int
    moe: int
    hidden: int
    top_k: int
    attention: int
    expert: int
    shared: int
    dense: int
    router: int
    vocab: int
    kv: int
    position_flop: int
    dtype: str  # of expert, shared and dense weights
    other: str  # of attention, router, embedding and head
    windows: dict[int, int] = field(default_factory=dict)  # layers of that window; the rest sees all


def _mla(hidden: int, heads: int) -> tuple[int, int, int]:
    """Weights, KV elements, FLOP per position: q rank 1536, latent 512, rope 64, nope and value 128."""
    query = hidden * 1536 + 1536 * heads * (128 + 64)
    return query + hidden * (512 + 64) + 512 * heads * 256 + heads * 128 * hidden, 576, 2 * heads * (576 + 512)


def _gqa(hidden: int, heads: int, kv: int, dim: int, bias: bool = False) -> tuple[int, int, int]:
    weights = hidden * (heads + 2 * kv) * dim + heads * dim * hidden
    return weights + ((heads + 2 * kv) * dim + hidden) * bias, 2 * kv * dim, 4 * heads * dim


def _facts(
    layers: int, moe: int, hidden: int, experts: int, top_k: int, width: int, vocab: int, attends: tuple[int, int, int]
) -> Facts:
    weights, kv, flop = attends
    return Facts(
        layers, moe, hidden, top_k, weights, 3 * hidden * width, 0, 0, hidden * experts, vocab, kv, flop, "bf16", "bf16"
    )


_DEEPSEEK = replace(
    _facts(61, 58, 7168, 256, 8, 2048, 129280, _mla(7168, 128)),
    shared=3 * 7168 * 2048, dense=3 * 7168 * 18432, dtype="fp8", other="fp8",
)  # fmt: skip

#: From the publishers' config.json files.
MODELS = {
    "deepseek-v3": _DEEPSEEK,
    # Kimi K2 is DeepSeek-V3 with 64 heads, 384 experts, one dense layer.
    "kimi-k2": replace(
        _facts(61, 60, 7168, 384, 8, 2048, 163840, _mla(7168, 64)),
        shared=3 * 7168 * 2048, dense=3 * 7168 * 18432, dtype="fp8", other="fp8",
    ),
    "qwen3-235b-a22b": _facts(94, 94, 4096, 128, 8, 1536, 151936, _gqa(4096, 64, 4, 128)),
    "mixtral-8x7b": _facts(32, 32, 4096, 8, 2, 14336, 32000, _gqa(4096, 32, 8, 128)),
    # Biases everywhere; every other layer sees 128 positions; all but the experts stays BF16.
    "gpt-oss-120b": replace(
        _facts(36, 36, 2880, 128, 4, 2880, 201088, _gqa(2880, 64, 8, 64, bias=True)),
        expert=3 * 2880 * 2880 + 2 * 2880 + 2880, router=2880 * 128 + 128, dtype="mxfp4", windows={128: 18},
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """Domains of equal GPUs: HBM [bytes, bytes/s], FLOP/s by dtype, wires per GPU and direction [bytes/s]."""

    domains: int
    size: int
    hbm: float
    hbm_rate: float
    flops: dict[str, float]
    scale_up: float
    nic: float


#: 189,471 MiB and 80 GiB; dense rates. H100 has no FP4 rate and multiplies MXFP4 at its FP8 rate.
GB200 = Machine(1, 72, 189471 * 2**20, 8e12, {"bf16": 2.5e15, "fp8": 5e15, "mxfp4": 10e15}, 900e9, 50e9)
H100 = Machine(1, 8, 80 * 2**30, 3.35e12, {"bf16": 989e12, "fp8": 1978e12, "mxfp4": 1978e12}, 450e9, 50e9)


@dataclass(frozen=True)
class Ask:
    """Context, batch (one of the two), budget [s], full overlap or none."""

    budget: float = 20e-3
    context: int = 4096
    per_gpu: int | None = 114
    total: int | None = None
    full: bool = False


def experts(facts: Facts, machine: Machine, ask: Ask, width: int) -> int:
    """Return the most whole experts a layer over `width` GPUs can have."""
    batch = _batch(ask, width)
    room = _slots(facts, machine, ask, max(batch))
    compute, memory = _fixed(facts, machine, ask, max(batch))
    wires = facts.moe * facts.top_k * facts.hidden * (1 + 2) * _wire_seconds(machine, width, batch)
    tokens = sum(batch)
    ours = 2 * tokens * facts.top_k / width * facts.expert * facts.moe / machine.flops[facts.dtype]

    def seconds(n: int) -> float:
        hit = n * (1 - (1 - min(1.0, facts.top_k / (n * width))) ** tokens)
        read = hit * facts.expert * facts.moe * BYTES[facts.dtype] / machine.hbm_rate
        if ask.full:
            return max(sum(compute) + ours, sum(memory) + read, wires)
        return sum(map(max, compute, memory)) + max(ours, read) + wires

    n = 0
    while n < room and seconds(n + 1) <= ask.budget:
        n += 1
    return n * width if n * width >= facts.top_k else 0


def _batch(ask: Ask, width: int) -> list[int]:
    if ask.total is None:
        assert ask.per_gpu is not None
        return [ask.per_gpu] * width
    return [ask.total // width + (gpu < ask.total % width) for gpu in range(width)]


def _positions(facts: Facts, context: int) -> int:
    windowed = sum(min(window, context) * layers for window, layers in facts.windows.items())
    return windowed + context * (facts.layers - sum(facts.windows.values()))


def _slots(facts: Facts, machine: Machine, ask: Ask, batch: int) -> int:
    held = facts.layers * facts.attention + facts.moe * facts.router + 2 * facts.vocab * facts.hidden
    weights = held * BYTES[facts.other]
    weights += (facts.moe * facts.shared + (facts.layers - facts.moe) * facts.dense) * BYTES[facts.dtype]
    cache = batch * _positions(facts, ask.context) * facts.kv * 2
    left = 0.9 * machine.hbm - weights - cache
    return max(0, int(left // (facts.moe * facts.expert * BYTES[facts.dtype])))


def _fixed(facts: Facts, machine: Machine, ask: Ask, batch: int) -> tuple[list[float], list[float]]:
    """Compute and memory seconds of projections, of attention, and of dense layers, shared experts and head."""
    flops, projections = machine.flops, facts.layers * facts.attention
    seen = batch * _positions(facts, ask.context)
    dense, head = (facts.layers - facts.moe) * facts.dense + facts.moe * facts.shared, facts.vocab * facts.hidden
    compute = [
        2 * batch * projections / flops[facts.other],
        seen * facts.position_flop / flops["bf16"],
        2 * batch * (dense / flops[facts.dtype] + head / flops[facts.other]),
    ]
    n_bytes = [
        projections * BYTES[facts.other],
        seen * facts.kv * 2,
        dense * BYTES[facts.dtype] + head * BYTES[facts.other],
    ]
    return compute, [n / machine.hbm_rate for n in n_bytes]


def _wire_seconds(machine: Machine, width: int, batch: list[int]) -> float:
    """One byte for every sequence, spread over the group: the busiest link, whichever way it points."""
    count = -(-width // machine.size)
    shares = [width // count + (d >= count - width % count) for d in range(count)]
    worst, first = 0.0, 0
    for size in shares:
        inside = batch[first : first + size]
        first += size
        for own in inside:
            near = max(own * (size - 1), sum(inside) - own) / width
            far = max(own * (width - size), sum(batch) - sum(inside)) / width
            worst = max(worst, near / machine.scale_up, far / machine.nic)
    return worst
