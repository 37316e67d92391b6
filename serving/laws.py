"""What does an operation of a step cost? One formula per function."""

from __future__ import annotations

from serving._batch_laws import (
    dollars_per_token,
    drain_seconds,
    fast_mode_batches,
    fast_mode_kv_share,
    fast_mode_price,
    knee_batch,
    lecture_seconds,
    machine_balance,
    scaling_book_seconds,
    train_wait,
)
from serving._context_laws import (
    break_even_seconds,
    crossing_context,
    hold_dollars,
    kv_bytes_at_crossing,
    kv_bytes_per_token,
    kv_wall_context,
    sparse_positions,
    utilisation,
)
from serving._elementwise import Number, larger, smaller
from serving._pipeline_laws import (
    BUBBLES,
    cost_ratio_at_minimum,
    equal_cost_tokens,
    over_training,
    pipeline_bubble,
    pipeline_bytes_per_gpu,
    pipeline_idle_share,
    pipeline_seconds,
)
from serving._pool_laws import context_in_flight, handover_seconds

__all__ = [
    "BUBBLES",
    "break_even_seconds",
    "context_in_flight",
    "cost_ratio_at_minimum",
    "crossing_context",
    "decode_tokens_per_second",
    "dollars_per_token",
    "drain_seconds",
    "equal_cost_tokens",
    "expected_accepted",
    "expected_experts_hit",
    "fast_mode_batches",
    "fast_mode_kv_share",
    "fast_mode_price",
    "handover_seconds",
    "hold_dollars",
    "kernel_seconds",
    "knee_batch",
    "kv_bytes_at_crossing",
    "kv_bytes_per_token",
    "kv_wall_context",
    "least_redundant_experts",
    "lecture_seconds",
    "machine_balance",
    "matmul_flop",
    "mean_token_seconds",
    "over_training",
    "pipeline_bubble",
    "pipeline_bytes_per_gpu",
    "pipeline_idle_share",
    "pipeline_seconds",
    "recurrence_flop",
    "scaling_book_seconds",
    "sparse_positions",
    "train_wait",
    "two_batch_seconds",
    "utilisation",
    "visible_positions",
]


def matmul_flop(tokens: Number, weights: Number | float) -> Number:
    """Return the work of tokens passing weights: a multiply and an add each.

    Parameters
    ----------
    tokens : float or array
        Tokens.
    weights : float or array
        Weights each token meets.

    Returns
    -------
    float or array
        [FLOP].

    Examples
    --------
    >>> matmul_flop(2.0, 10.0)
    40.0
    """
    return 2 * tokens * weights


def kernel_seconds(flop: Number, flops: float, n_bytes: Number, bandwidth: float) -> Number:
    """Return the time of one kernel: compute and memory traffic overlap inside it.

    Parameters
    ----------
    flop, n_bytes : float or array
        Work [FLOP] and HBM traffic [bytes].
    flops, bandwidth : float
        Rate [FLOP/s] and HBM bandwidth [bytes/s].

    Returns
    -------
    float or array
        max(flop / flops, n_bytes / bandwidth) [s].

    References
    ----------
    Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.

    Examples
    --------
    >>> kernel_seconds(1e12, 1e15, 8e9, 8e12)
    0.001
    """
    seconds: Number = larger(flop / flops, n_bytes / bandwidth)
    return seconds


def expected_experts_hit(n_experts: Number | float, inclusion: Number | float, tokens: Number) -> Number:
    """Return how many of some experts at least one token goes to, on average.

    Parameters
    ----------
    n_experts : float or array
        Experts looked at.
    inclusion : float or array
        Chance that one token goes to one of them: top_k / n_experts of the layer when
        uniform.
    tokens : float or array
        Independent tokens.

    Returns
    -------
    float or array
        n (1 - (1 - p)^tokens), exact for tokens that choose independently.

    Examples
    --------
    >>> round(expected_experts_hit(256.0, 8 / 256, 32.0), 2)
    163.31
    """
    hit: Number = n_experts * (1 - (1 - inclusion) ** tokens)
    return hit


def mean_token_seconds(decode: Number, prefill: Number, sequences: Number, output: Number) -> Number:
    """Return the time between two tokens of a sequence on GPUs that prefill and decode.

    In the steady state every sequence that ends makes room for a prompt: while one sequence gains
    `output` tokens each of the `sequences` places of its replica passes one prompt, and all wait.

    Parameters
    ----------
    decode, prefill : float or array
        A decode step, and the pass of one prompt (on every replica at once) [s].
    sequences : float or array
        Sequences in flight on one replica.
    output : float or array
        Tokens each of them gains.

    Returns
    -------
    float or array
        decode + prefill x sequences / output [s].

    Examples
    --------
    >>> round(mean_token_seconds(0.020, 0.4, 64.0, 1024.0), 9)
    0.045
    """
    return decode + prefill * sequences / output


def decode_tokens_per_second(layer_seconds: float, layers: int, micro_batches: int = 2) -> float:
    """Return a sequence's decode speed when only the all-to-all of every layer counts.

    Parameters
    ----------
    layer_seconds : float
        Dispatch and combine of one layer and micro-batch [s].
    layers : int
        Layers a token passes.
    micro_batches : int, optional
        Micro-batches that take turns on the wires.

    Returns
    -------
    float
        [tokens/s].

    References
    ----------
    DeepSeek-V3 hardware paper, arXiv 2505.09343, section 2.3.2: 14.76 ms, 67 tokens/s.

    Examples
    --------
    >>> round(decode_tokens_per_second(120.96e-6, 61), 1)
    67.8
    """
    return 1 / (layer_seconds * micro_batches * layers)


def least_redundant_experts(n_experts: int, ep: int) -> int:
    """Return the fewest replicas of experts with which every GPU holds as many.

    Parameters
    ----------
    n_experts : int
        Routed experts of a layer.
    ep : int
        GPUs they are spread over.

    Returns
    -------
    int
        (ep - E mod ep) mod ep; every GPU then has (E + R) / ep slots.

    References
    ----------
    vllm-project/vllm#30614 and #24537; TensorRT-LLM's examples/ep_load_balancer has 288
    slots for 256 experts on 36 GPUs.

    Examples
    --------
    >>> least_redundant_experts(256, 36)
    32
    """
    return -n_experts % ep


def visible_positions(before: Number, after: Number, reach: float | None = None) -> Number:
    """Return the context positions that new tokens look at, all together.

    Parameters
    ----------
    before, after : float or array
        Tokens in the context before and after: token t = before + 1, ..., after looks at t positions.
    reach : float, optional
        Most positions one token looks at; no limit by default.

    Returns
    -------
    float or array
        Sum of min(t, reach) over the tokens, as t (t + 1) / 2 up to the reach and reach beyond.

    References
    ----------
    Vaswani et al., arXiv 1706.03762 (causal); Beltagy et al., arXiv 2004.05150 (window).

    Examples
    --------
    >>> visible_positions(0, 4), visible_positions(0, 4, 2), visible_positions(99, 100)
    (10.0, 7.0, 100.0)
    """
    if reach is None:
        return (after * (after + 1) - before * (before + 1)) / 2
    low, high = smaller(before, reach), smaller(after, reach)
    beyond = reach * (larger(after, reach) - larger(before, reach))
    seen: Number = (high * (high + 1) - low * (low + 1)) / 2 + beyond
    return seen


def recurrence_flop(state_elements: int, multiply_adds: int) -> int:
    """Return the arithmetic of one token on a recurrent state.

    Parameters
    ----------
    state_elements : int
        Elements of the state.
    multiply_adds : int
        Multiply-adds per element: 2 to update and read it (linear attention, Mamba), 3 with the
        recall of the delta rule.

    Returns
    -------
    int
        [FLOP].

    References
    ----------
    Dao, Gu, arXiv 2405.21060 (Mamba-2); Yang et al., arXiv 2412.06464 (gated delta rule).

    Examples
    --------
    >>> recurrence_flop(128 * 128, 3)
    98304
    """
    return 2 * multiply_adds * state_elements


def expected_accepted(draft: int, acceptance: float) -> float:
    """Return the tokens a checked guess yields on average, the one of the check itself among them.

    Parameters
    ----------
    draft : int
        Tokens guessed.
    acceptance : float
        Chance that a guessed token is right when all before it are.

    Returns
    -------
    float
        1 + a + ... + a^draft = (1 - a^(draft + 1)) / (1 - a).

    References
    ----------
    Leviathan, Kalman, Matias, arXiv 2211.17192, equation 1. DeepSeek-V3 (arXiv 2412.19437, section
    5.4.3): one token guessed, accepted in 85 to 90 % of cases, 1.8 times the speed.

    Examples
    --------
    >>> expected_accepted(1, 0.85), expected_accepted(3, 1.0)
    (1.85, 4.0)
    """
    return float(sum(acceptance**i for i in range(draft + 1)))


def two_batch_seconds(local: Number, dispatch: Number, experts: Number, combine: Number) -> Number:
    """Return the time of one layer for two half batches that take turns on the GPU and on the wires.

    Parameters
    ----------
    local, dispatch, experts, combine : float
        One half batch: attention and what else is the GPU's own, sending, experts, fetching back [s].

    Returns
    -------
    float
        While one half computes the other is on the wires, in lock step: max(local, combine) +
        max(dispatch, local) + max(experts, dispatch) + max(combine, experts) [s].

    References
    ----------
    DeepSeek-V3, arXiv 2412.19437, section 3.4: two micro-batches overlap attention of one with
    dispatch and combine of the other.

    Examples
    --------
    >>> two_batch_seconds(3.0, 1.0, 2.0, 1.0)
    10.0
    """
    ways = ((local, combine), (dispatch, local), (experts, dispatch), (combine, experts))
    found: Number = larger(*ways[0]) + larger(*ways[1]) + larger(*ways[2]) + larger(*ways[3])
    return found
