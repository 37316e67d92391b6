"""What does a layer with a fixed state hold and compute?

Linear attention, state-space models and short convolutions: their memory does not grow with the context.
"""

from __future__ import annotations

from serving._attention import HEADS
from serving._keys import Keys
from serving._mixer import Mixer
from serving.laws import recurrence_flop

__all__ = ["gated_delta", "kimi_delta", "lightning", "mamba", "mamba2", "short_convolution"]


def mamba(keys: Keys, hidden: int) -> Mixer:
    """Read Mamba (arXiv 2312.00752): a state of `state` elements for each of the inner channels."""
    # Mamba states the inner width; where Mamba is one kind of layer among others, that key is the MLP's.
    own = keys.has("state_size") and keys.value("intermediate_size") is not None
    inner = keys.whole("intermediate_size") if own else hidden * keys.whole("mamba_expand", "expand")
    state, kernel = keys.whole("state_size", "mamba_d_state"), keys.whole("conv_kernel", "mamba_d_conv")
    default = -(-hidden // 16)
    stated = keys.value(keys.spelling(("mamba_dt_rank", "time_step_rank")) or "")
    rank = default if stated in (None, "auto") else keys.whole("mamba_dt_rank", "time_step_rank")
    params = 2 * hidden * inner + inner * (kernel + 1) + inner * (rank + 2 * state) + rank * inner + inner
    params += inner * state + inner + inner * hidden
    flops = recurrence_flop(inner * state, 2) + 2 * inner * kernel
    return Mixer("ssm", params, 0, (), inner * (state + kernel - 1), flops)


def mamba2(keys: Keys, hidden: int) -> Mixer:
    """Read Mamba-2 (arXiv 2405.21060): heads of a size, each with a state; B and C are shared by groups."""
    heads = keys.whole("mamba_num_heads", "mamba_n_heads", "num_heads")
    expand = keys.whole_or(2, "mamba_expand", "expand", minimum=1) or 2
    said = "expand x hidden_size / heads taken"
    size = expand * hidden // (heads or 1)
    name = keys.spelling(("mamba_head_dim", "mamba_d_head", "head_dim" if keys.has("num_heads") else "mamba_head_dim"))
    dim = size if name is None or keys.value(name) == "auto" else keys.whole(name)
    if name is None:
        keys.note(f"mamba_head_dim is missing: {said}")
    state = keys.whole("ssm_state_size", "mamba_d_state", "state_size")
    groups = keys.whole("n_groups", "mamba_n_groups")
    kernel = keys.whole("conv_kernel", "mamba_d_conv")
    inner = heads * dim
    mixed = inner + 2 * groups * state
    params = hidden * (inner + mixed + heads) + mixed * (kernel + 1) + 3 * heads + inner * hidden
    flops = recurrence_flop(inner * state, 2) + 2 * mixed * kernel
    return Mixer("ssm", params, inner, (), inner * state + mixed * (kernel - 1), flops)


def gated_delta(keys: Keys, hidden: int) -> Mixer:
    """Read a gated DeltaNet layer (arXiv 2412.06464) as Qwen3-Next writes it."""
    key_heads, heads = keys.whole("linear_num_key_heads"), keys.whole("linear_num_value_heads")
    dim, value = keys.whole("linear_key_head_dim"), keys.whole("linear_value_head_dim")
    kernel = keys.whole("linear_conv_kernel_dim")
    key_width, width = key_heads * dim, heads * value
    mixed = 2 * key_width + width
    params = hidden * (mixed + width + 2 * heads) + mixed * kernel + 2 * heads + width * hidden
    state = heads * dim * value
    flops = recurrence_flop(state, 3) + 2 * mixed * kernel
    return Mixer("linear", params, value, (), state + mixed * (kernel - 1), flops)


def kimi_delta(keys: Keys, hidden: int) -> Mixer:
    """Read Kimi Delta Attention (arXiv 2510.26692): the delta rule with a forget gate per key channel."""
    said = "the default of the model's class taken"
    heads, dim, kernel = (
        keys.whole_or(default, f"linear_attn_config.{old}", new, minimum=1, said=f"{default}, {said}") or default
        for old, new, default in (
            ("num_heads", "linear_num_heads", 32), ("head_dim", "linear_head_dim", 128),
            ("short_conv_kernel_size", "linear_conv_kernel_dim", 4),
        )
    )  # fmt: skip
    width = heads * dim
    # Queries, keys, values with their convolutions; low-rank forget and output gates; beta; the way out.
    params = 3 * hidden * width + 3 * width * kernel + 2 * (hidden * dim + dim * width) + hidden * heads
    params += width * hidden + heads + width
    flops = recurrence_flop(width * dim, 3) + 2 * 3 * width * kernel
    return Mixer("linear", params, dim, (), width * dim + 3 * width * (kernel - 1), flops)


def lightning(keys: Keys, hidden: int) -> Mixer:
    """Read lightning attention (arXiv 2501.08313): queries, keys, values, a gate and the way out."""
    heads, dim = keys.whole(*HEADS), keys.whole("head_dim")
    width = heads * dim
    return Mixer("linear", 5 * hidden * width, width, (), width * dim, recurrence_flop(width * dim, 2))


def short_convolution(keys: Keys, hidden: int) -> Mixer:
    """Read a gated short convolution (LFM2): three projections in, one out, a few past inputs kept."""
    kernel = keys.whole("conv_L_cache")
    params = 4 * hidden * hidden + hidden * kernel
    return Mixer("convolution", params, 0, (), hidden * (kernel - 1), 2 * hidden * kernel)
