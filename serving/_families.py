"""How does each family of models write its shape into config.json?

A family is one row of `FAMILIES`; a model_type without a row is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from serving._attention import (
    Gqa,
    ReadAttention,
    ReadWindows,
    alternating,
    full,
    mla,
    windowed,
    windows_above,
    windows_if_used,
)
from serving._keys import Keys

__all__ = ["FAMILIES", "REFUSED", "Family", "FeedForward", "read_feed_forward"]

_TOP_K = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token")


class FeedForward(NamedTuple):
    """The feed-forward part of a model: which layers are MoE, and the parameters of one of each piece."""

    moe_layer_mask: tuple[bool, ...]
    n_experts: int = 0
    top_k: int = 0
    expert_params: int = 0
    shared_params: int = 0
    router_params: int = 0
    dense_params: int = 0
    n_group: int | None = None
    topk_group: int | None = None


def _every_layer(keys: Keys, layers: int) -> tuple[bool, ...]:
    return (True,) * layers


def _after_first_dense(keys: Keys, layers: int) -> tuple[bool, ...]:
    """Dense up to first_k_dense_replace, then every moe_layer_freq-th layer is MoE."""
    first = keys.whole("first_k_dense_replace", minimum=0)
    if layers and first > layers:
        keys.fault("first_k_dense_replace", first, f"is more than num_hidden_layers = {layers}")
    every = keys.whole_or(1, "moe_layer_freq", minimum=1, said="every layer after the dense ones is MoE") or 1
    return tuple(layer >= first and layer % every == 0 for layer in range(layers))


def _sparse_step(keys: Keys, layers: int) -> tuple[bool, ...]:
    """Every decoder_sparse_step-th layer, counted from 1, is MoE, those in mlp_only_layers excepted."""
    said = "every layer is MoE, the default of the model's class"
    step = keys.whole_or(1, "decoder_sparse_step", minimum=1, said=said) or 1
    dense = keys.config.get("mlp_only_layers") or []
    if not isinstance(dense, list) or any(layers and layer not in range(layers) for layer in dense):
        keys.fault("mlp_only_layers", dense, f"must be a list of layer numbers from 0 to {layers - 1}")
        dense = []
    return tuple(layer not in dense and (layer + 1) % step == 0 for layer in range(layers))


def _no_shared(keys: Keys, expert_width: int) -> int:
    return 0


def _shared_count(keys: Keys, expert_width: int) -> int:
    """n_shared_experts experts, each as wide as a routed one."""
    return expert_width * (keys.whole_or(0, "n_shared_experts", said="no shared experts") or 0)


def _shared_width(keys: Keys, expert_width: int) -> int:
    return keys.whole_or(0, "shared_intermediate_size", said="no shared expert") or 0


def _no_bias(keys: Keys, hidden: int, width: int) -> int:
    return 0


def _all_biases(keys: Keys, hidden: int, width: int) -> int:
    return 2 * width + hidden


def _mlp_bias(keys: Keys, hidden: int, width: int) -> int:
    return _all_biases(keys, hidden, width) if keys.flag("mlp_bias") else 0


@dataclass(frozen=True)
class Family:
    """How one family is read. `experts` are the spellings of the number of experts, empty when dense.

    `nested` is the key of the object that holds the language model. `biases` counts the biases of one
    gated feed-forward, an expert or a dense one; `router_bias` says the router is a linear with a bias
    (a score correction, which multiplies nothing, is not counted).
    """

    attention: ReadAttention
    windows: ReadWindows = full
    experts: tuple[str, ...] = ()
    expert_width: str = "moe_intermediate_size"
    moe_layers: Callable[[Keys, int], tuple[bool, ...]] = _every_layer
    shared: Callable[[Keys, int], int] = _no_shared
    biases: Callable[[Keys, int, int], int] = _no_bias
    router_bias: bool = False
    nested: str | None = None
    nested_type: str | None = None


def read_feed_forward(keys: Keys, family: Family, hidden: int, layers: int) -> FeedForward:
    """Return the feed-forward part; what is wrong is left in ``keys.faults``."""
    if not family.experts:
        width = keys.whole("intermediate_size")
        dense = 3 * hidden * width + family.biases(keys, hidden, width)
        return FeedForward((False,) * layers, dense_params=dense)
    mask = family.moe_layers(keys, layers)
    n_experts, top_k = keys.whole(*family.experts), keys.whole(*_TOP_K)
    width = keys.whole(family.expert_width)
    groups = _group_limit(keys, n_experts)
    if n_experts and top_k > n_experts:
        name = next(name for name in _TOP_K if name in keys.config)
        keys.fault(name, top_k, f"is more than the number of experts, {n_experts}", "Correct one of the two.")
    return FeedForward(
        mask,
        n_experts,
        top_k,
        expert_params=3 * hidden * width + family.biases(keys, hidden, width),
        shared_params=3 * hidden * family.shared(keys, width),
        router_params=hidden * n_experts + (n_experts if family.router_bias else 0),
        dense_params=0 if all(mask) else 3 * hidden * keys.whole("intermediate_size"),
        n_group=groups[0],
        topk_group=groups[1],
    )


def _group_limit(keys: Keys, n_experts: int) -> tuple[int | None, int | None]:
    n_group = keys.whole_or(None, "n_group", minimum=1)
    topk_group = keys.whole_or(None, "topk_group", minimum=1)
    if n_group and n_experts % n_group:
        keys.fault("n_group", n_group, f"must divide the number of experts, {n_experts}")
    if n_group and topk_group and topk_group > n_group:
        keys.fault("topk_group", topk_group, f"is more than n_group = {n_group}")
    return n_group, topk_group


_DEEPSEEK = Family(
    mla,
    experts=("n_routed_experts", "num_local_experts"),
    moe_layers=_after_first_dense,
    shared=_shared_count,
)
_QWEN3_MOE = Family(
    Gqa(bias="key:qkvo", qk_norm="head"),
    windows=windows_if_used,
    experts=("num_experts", "num_local_experts"),
    moe_layers=_sparse_step,
)

#: model_type -> how its config is read. Projections, biases and norms follow the model's class in
#: Hugging Face transformers (src/transformers/models/<model_type>/modeling_<model_type>.py).
FAMILIES: dict[str, Family] = {
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "kimi_k2": _DEEPSEEK,
    "qwen3_moe": _QWEN3_MOE,
    "qwen3_vl_moe": Family(
        _QWEN3_MOE.attention,
        windows=windows_if_used,
        experts=_QWEN3_MOE.experts,
        moe_layers=_sparse_step,
        nested="text_config",
        nested_type="qwen3_vl_moe_text",
    ),
    "qwen3_vl_moe_text": _QWEN3_MOE,
    "qwen3": Family(Gqa(bias="key:qkvo", qk_norm="head"), windows=windows_above),
    "qwen2": Family(Gqa(head_dim="derived", bias="qkv"), windows=windows_above),
    "mixtral": Family(
        Gqa(head_dim="derived"),
        windows=windowed,
        experts=("num_local_experts", "num_experts"),
        expert_width="intermediate_size",
    ),
    "mistral": Family(Gqa(head_dim="derived"), windows=windowed),
    "gpt_oss": Family(
        Gqa(bias="key:qkvo"),
        windows=alternating,
        experts=("num_local_experts", "num_experts"),
        expert_width="intermediate_size",
        biases=_all_biases,
        router_bias=True,
    ),
    "llama": Family(Gqa(head_dim="derived", bias="key:qkvo", kv_heads="derived"), biases=_mlp_bias),
    "glm4_moe": Family(
        Gqa(bias="key:qkv", qk_norm="key:head"),
        experts=("n_routed_experts", "num_local_experts"),
        moe_layers=_after_first_dense,
        shared=_shared_count,
    ),
    "minimax_m2": Family(
        Gqa(qk_norm="key:layer"),
        experts=("num_local_experts", "num_experts"),
        expert_width="intermediate_size",
        shared=_shared_width,
    ),
}

_LINEAR = "layers that keep a fixed state instead of a growing KV cache are not modelled"
_INDEXED = "attention to an indexed part of the context is not modelled"

#: model_type -> why it is refused although it is well known.
REFUSED: dict[str, str] = {
    "llama4": "attention in chunks and dense layers between MoE layers are not modelled",
    "llama4_text": "attention in chunks and dense layers between MoE layers are not modelled",
    "nemotron_h": _LINEAR,
    "minimax_m1": _LINEAR,
    "kimi_k3": _LINEAR,
    "kimi_linear": _LINEAR,
    "glm_moe_dsa": _INDEXED,
    "deepseek_v32": _INDEXED,
    "deepseek_v4": _INDEXED,
    "step3p7": "the shared expert and the sliding layers of this family are not modelled",
    "dbrx": "its nested attn_config and ffn_config are not read",
}
