"""Which layers have experts, and how many parameters has each piece of a feed-forward?

The pieces a family's row is put together from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from serving._keys import Keys
from serving._layer_patterns import ReadMixers, pattern_kinds

__all__ = ["EXPERTS", "TOP_K", "Family", "FeedForward", "read_feed_forward"]

EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts", "ffn_config.moe_num_experts",
           "moe.num_experts")  # fmt: skip
TOP_K = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_top_k", "moe_topk", "moe_k",
         "num_selected_experts", "n_activated_experts", "ffn_config.moe_top_k", "moe.num_experts_per_tok")  # fmt: skip
WIDTH = ("intermediate_size", "inter_dim", "ffn_hidden_size", "n_inner", "hidden_dim", "ffn_config.ffn_hidden_size")
MOE_WIDTH = ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_inter_dim")

#: From the keys and the number of layers, or from the keys and a width.
ReadMask = Callable[[Keys, int], tuple[bool, ...]]
ReadWidth = Callable[[Keys, int], int]


class FeedForward(NamedTuple):
    """The feed-forward part of a model: which layers are MoE, and the parameters of one of each piece."""

    moe_layer_mask: tuple[bool, ...]
    dense_params: tuple[int, ...]
    n_experts: int = 0
    top_k: int = 0
    expert_params: int = 0
    shared_params: int = 0
    router_params: int = 0
    expert_hidden_size: int = 0
    n_group: int | None = None
    topk_group: int | None = None


# --- which layers are MoE --------------------------------------------------------------------------------------------


def every_layer(keys: Keys, layers: int) -> tuple[bool, ...]:
    """Say that every layer is MoE."""
    return (True,) * layers


def after_first_dense(keys: Keys, layers: int) -> tuple[bool, ...]:
    """Dense up to first_k_dense_replace; then moe_layer_freq is a step, or a list of 0 and 1 for all layers."""
    mask = keys.config.get("moe_layer_freq")
    if isinstance(mask, list):
        if len(mask) != layers or any(row not in (0, 1) for row in mask):
            keys.fault("moe_layer_freq", mask, f"must be a number, or {layers} entries of 0 and 1")
        return tuple(bool(row) for row in mask[:layers])
    names = ("first_k_dense_replace", "n_dense_layers", "num_dense_layers")
    first = keys.whole(*names, minimum=0)
    if layers and first > layers:
        keys.fault(keys.spelling(names) or names[0], first, f"is more than num_hidden_layers = {layers}")
    every = keys.whole_or(1, "moe_layer_freq", minimum=1, said="every layer after the dense ones is MoE") or 1
    return tuple(layer >= first and layer % every == 0 for layer in range(layers))


def by_mlp_types(keys: Keys, layers: int) -> tuple[bool, ...]:
    """Layers follow mlp_layer_types, "sparse" or "moe"; without it dense up to first_k_dense_replace."""
    types = keys.config.get("mlp_layer_types")
    if types is None:
        return after_first_dense(keys, layers)
    if not isinstance(types, list) or len(types) != layers or any(kind not in ("dense", "sparse") for kind in types):
        keys.fault("mlp_layer_types", types, f"must be a list of {layers} times dense or sparse")
        return (True,) * layers
    return tuple(kind == "sparse" for kind in types)


def sparse_step(keys: Keys, layers: int) -> tuple[bool, ...]:
    """Every decoder_sparse_step-th layer, counted from 1, is MoE, those in mlp_only_layers excepted."""
    said = "every layer is MoE, the default of the model's class"
    step = keys.whole_or(1, "decoder_sparse_step", minimum=1, said=said) or 1
    dense = keys.config.get("mlp_only_layers") or []
    if not isinstance(dense, list) or any(layers and layer not in range(layers) for layer in dense):
        keys.fault("mlp_only_layers", dense, f"must be a list of layer numbers from 0 to {layers - 1}")
        dense = []
    return tuple(layer not in dense and (layer + 1) % step == 0 for layer in range(layers))


def every_nth_moe(name: str) -> ReadMask:
    """Every n-th layer, counted from 1, is MoE; n stands under a key."""

    def mask(keys: Keys, layers: int) -> tuple[bool, ...]:
        step = keys.whole(name)
        return tuple(bool(step) and (layer + 1) % step == 0 for layer in range(layers))

    return mask


def jamba_moe(keys: Keys, layers: int) -> tuple[bool, ...]:
    """Layers expert_layer_offset, then each expert_layer_period on, are MoE."""
    period, offset = keys.whole("expert_layer_period"), keys.whole("expert_layer_offset", minimum=0)
    return tuple(bool(period) and layer % period == offset for layer in range(layers))


def ernie_moe(keys: Keys, layers: int) -> tuple[bool, ...]:
    """Layers from moe_layer_start_index to moe_layer_end_index (-1: the last), each moe_layer_interval-th."""
    first = keys.alike("moe_layer_start_index", minimum=0)
    every = keys.whole_or(1, "moe_layer_interval", minimum=1, said="1 taken") or 1
    last = keys.whole_or(-1, "moe_layer_end_index", minimum=-1) or 0
    last = layers - 1 if last == -1 else last
    return tuple((layer + 1) % every == 0 and first <= layer <= last for layer in range(layers))


def listed_moe(keys: Keys, layers: int) -> tuple[bool, ...]:
    """Layers of moe_layers_enum, numbers from 0 in a list or parted by commas, are MoE."""
    stated = keys.value("moe_layers_enum")
    rows = [row.strip() for row in stated.split(",")] if isinstance(stated, str) else stated
    known = {str(layer): layer for layer in range(layers)}
    if not isinstance(rows, list) or (layers and any(str(row) not in known for row in rows)):
        keys.fault("moe_layers_enum", stated, f"must be layer numbers from 0 to {layers - 1}")
        return (True,) * layers
    moe = {known.get(str(row)) for row in rows}
    return tuple(layer in moe for layer in range(layers))


def pattern_moe(keys: Keys, layers: int) -> tuple[bool, ...]:
    """Layers that a pattern calls moe."""
    return tuple(kind == "moe" for kind in pattern_kinds(keys, layers))


# --- which layers are dense ------------------------------------------------------------------------------------------


def pattern_dense(keys: Keys, layers: int) -> tuple[bool, ...]:
    """Layers that a pattern calls mlp."""
    return tuple(kind == "mlp" for kind in pattern_kinds(keys, layers))


def nowhere(keys: Keys, layers: int) -> tuple[bool, ...]:
    """No layer has a dense feed-forward."""
    return (False,) * layers


# --- widths ----------------------------------------------------------------------------------------------------------


def stated(*names: str) -> ReadWidth:
    """Return a reader of the width under a key, the same in every layer."""
    return lambda keys, hidden: keys.alike(*names)


_MOE_WIDTH, _WIDTH = stated(*MOE_WIDTH), stated(*WIDTH)


def four_times(*names: str) -> ReadWidth:
    """Return a reader of a width that is four times that of the stream where its key is missing."""
    return lambda keys, hidden: keys.alike(*names, default=4 * hidden, said="four times the hidden size taken")


def grok_width(keys: Keys, hidden: int) -> int:
    """Two thirds of widening_factor x emb_size, rounded up to a multiple of 8 (xai-org/grok-1, model.py)."""
    if not keys.has("widening_factor"):
        return keys.whole(*MOE_WIDTH)
    return -(-(keys.whole("widening_factor") * hidden * 2 // 3) // 8) * 8


def no_shared(keys: Keys, expert_width: int) -> int:
    """No shared experts."""
    return 0


def shared_count(keys: Keys, expert_width: int) -> int:
    """So many shared experts, each as wide as a routed one."""
    names = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
    return expert_width * keys.alike(*names, default=0, said="no shared experts", minimum=0)


def shared_width(*names: str) -> ReadWidth:
    """Return a reader of the width of all shared experts together."""
    return lambda keys, expert_width: keys.whole_or(0, *names, said="no shared expert") or 0


def no_bias(keys: Keys, hidden: int, width: int) -> int:
    """No biases."""
    return 0


def gated_biases(keys: Keys, hidden: int, width: int) -> int:
    """Biases of gate, up and down."""
    return 2 * width + hidden


def plain_biases(keys: Keys, hidden: int, width: int) -> int:
    """Biases of up and down."""
    return width + hidden


def mlp_bias(keys: Keys, hidden: int, width: int) -> int:
    """Biases of gate, up and down where mlp_bias says so."""
    return gated_biases(keys, hidden, width) if keys.flag("mlp_bias") else 0


@dataclass(frozen=True)
class Family:
    """How one family is read.

    Parameters
    ----------
    mixers : callable
        What mixes tokens in each layer.
    moe : bool, optional
        Whether its models have experts; one that counts none (0, 1 or null) is dense.
    expert_width, dense, residual : callable, optional
        Widths of an expert, of a dense layer, and of the dense feed-forward beside the experts.
    moe_layers, dense_layers : callable, optional
        Layers with experts; those with a dense feed-forward, by default all others.
    shared : callable, optional
        Width of all shared experts of a layer.
    latent : tuple of str, optional
        Keys of the width that experts work at, where it is not that of the stream.
    matrices : int, optional
        3 for a gated feed-forward, 2 for a plain one.
    biases : callable, optional
        Biases of one feed-forward, an expert or a dense one.
    router_bias, shared_gate : bool, optional
        The router is a linear with a bias; shared experts have a gate of one number. (A score
        correction, which multiplies nothing, is not counted.)
    unused : tuple of str, optional
        Key of a number of experts without weights that take their part of the top-k.
    norms : int, optional
        Norms of the stream in each layer.
    tied : bool, optional
        Whether the head is the embedding where the config does not say.
    """

    mixers: ReadMixers
    moe: bool = False
    expert_width: ReadWidth = _MOE_WIDTH
    dense: ReadWidth = _WIDTH
    residual: ReadWidth | None = None
    moe_layers: ReadMask = every_layer
    dense_layers: ReadMask | None = None
    shared: ReadWidth = no_shared
    latent: tuple[str, ...] = ()
    matrices: int = 3
    biases: Callable[[Keys, int, int], int] = no_bias
    router_bias: bool = False
    shared_gate: bool = False
    unused: tuple[str, ...] = ()
    norms: int = 2
    tied: bool = False


def read_feed_forward(keys: Keys, family: Family, hidden: int, layers: int) -> FeedForward:
    """Return the feed-forward part; what is wrong is left in ``keys.faults``."""
    mask = _moe_mask(keys, family, layers)
    dense = family.dense_layers(keys, layers) if family.dense_layers else tuple(not moe for moe in mask)
    width = family.dense(keys, hidden) if any(dense) else 0
    beside = family.residual(keys, hidden) if family.residual and any(mask) else 0
    size = _size(keys, family, hidden, width) if any(dense) else 0
    extra = family.matrices * hidden * beside
    params = tuple(size * is_dense + extra * is_moe for is_dense, is_moe in zip(dense, mask, strict=True))
    found = FeedForward(mask, params)
    # With the number of layers missing, say what else is.
    return _experts(keys, family, hidden, found) if any(mask) or (family.moe and not layers) else found


def _size(keys: Keys, family: Family, hidden: int, width: int) -> int:
    return family.matrices * hidden * width + family.biases(keys, hidden, width)


def _moe_mask(keys: Keys, family: Family, layers: int) -> tuple[bool, ...]:
    counted = keys.spelling(EXPERTS)
    if not family.moe or (counted and keys.value(counted) in (None, 0, 1)):
        return (False,) * layers
    mask = family.moe_layers(keys, layers)
    if counted and layers and not any(mask):
        keys.note(f"{keys.value(counted)} experts are stated but no layer is MoE: read as a dense model")
    return mask


def _experts(keys: Keys, family: Family, hidden: int, dense: FeedForward) -> FeedForward:
    n_experts, top_k = keys.alike(*EXPERTS), keys.alike(*TOP_K)
    inner = keys.whole_or(None, *family.latent, minimum=1) if family.latent else None
    at = inner or hidden
    width = family.expert_width(keys, hidden)
    if inner:
        keys.note(f"experts work at width {inner}: the two projections to it are counted with the shared experts")
    if n_experts and top_k > n_experts:
        rule = f"is more than the number of experts, {n_experts}"
        keys.fault(keys.spelling(TOP_K) or TOP_K[0], top_k, rule, "Correct one of the two.")
    idle = keys.whole_or(0, *family.unused) or 0 if family.unused else 0
    shared = family.matrices * hidden * family.shared(keys, width)
    groups = _group_limit(keys, n_experts)
    return dense._replace(
        n_experts=n_experts,
        top_k=_with_weights(keys, top_k, n_experts, idle),
        expert_params=_size(keys, family, at, width),
        shared_params=shared + hidden * (family.shared_gate and shared > 0) + 2 * hidden * (inner or 0),
        router_params=hidden * (n_experts + idle) + (n_experts if family.router_bias else 0),
        expert_hidden_size=at,
        n_group=groups[0],
        topk_group=groups[1],
    )


def _with_weights(keys: Keys, top_k: int, n_experts: int, idle: int) -> int:
    """Return how many of the top-k have weights on average, rounded up, when some experts only pass tokens on."""
    if not idle or not n_experts:
        return top_k
    found = -(-top_k * n_experts // (n_experts + idle))
    keys.note(f"{idle} experts only pass tokens on: of a token's {top_k}, {found} have weights if all are used alike")
    return found


def _group_limit(keys: Keys, n_experts: int) -> tuple[int | None, int | None]:
    names = (("n_group", "num_expert_group", "n_expert_groups"), ("topk_group", "n_limited_groups"))
    n_group, topk_group = (keys.whole_or(None, *spellings, minimum=1) for spellings in names)
    if n_group and n_experts % n_group:
        keys.fault("n_group", n_group, f"must divide the number of experts, {n_experts}")
    if n_group and topk_group and topk_group > n_group:
        keys.fault("topk_group", topk_group, f"is more than n_group = {n_group}")
    return n_group, topk_group
