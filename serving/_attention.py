"""What does one attention layer hold, cache and compute?

Two kinds: grouped-query attention and multi-head latent attention (DeepSeek-V2, arXiv 2405.04434).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from serving._keys import Keys

__all__ = ["Attention", "Gqa", "alternating", "full", "mla", "windowed", "windows_above", "windows_if_used"]

Windows = tuple[int | None, ...]


class Attention(NamedTuple):
    """One layer of attention: parameters, norm parameters, KV elements per token, FLOP per context position."""

    kind: str
    params: int
    norms: int
    kv_elements: int
    flops_per_position: int


def mla(keys: Keys, hidden: int) -> Attention:
    """Read multi-head latent attention; ``q_lora_rank: null`` means queries are not compressed."""
    heads = keys.whole("num_attention_heads")
    latent = keys.whole("kv_lora_rank")
    rope, nope, value = (keys.whole(f"{part}_head_dim") for part in ("qk_rope", "qk_nope", "v"))
    rank = keys.whole_or(0, "q_lora_rank", minimum=1, said="queries are projected without a latent") or 0
    query = heads * (nope + rope)
    params = hidden * rank + rank * query if rank else hidden * query
    params += hidden * (latent + rope) + latent * heads * (nope + value) + heads * value * hidden
    if keys.flag("attention_bias"):
        params += rank + latent + rope + hidden
    # Absorbed form: scores over latent + rope, values over the latent, 2 FLOP per multiply-add.
    return Attention("mla", params, rank + latent, latent + rope, 2 * heads * (latent + rope + latent))


@dataclass(frozen=True)
class Gqa:
    """How a family writes grouped-query attention.

    `head_dim`: "stated" (must be there), or "derived" (hidden / heads when missing). `bias`: projections
    with a bias, "none", "qkv", or by the key attention_bias "key:qkv" or "key:qkvo". `qk_norm`: "none",
    "head", or by the key use_qk_norm "key:head" or "key:layer". `kv_heads`: "stated", or "derived" (= heads).
    """

    head_dim: str = "stated"
    bias: str = "none"
    qk_norm: str = "none"
    kv_heads: str = "stated"

    def __call__(self, keys: Keys, hidden: int) -> Attention:
        """Read one layer."""
        heads = keys.whole("num_attention_heads")
        kv_heads = self._kv_heads(keys, heads)
        dim = self._head_dim(keys, hidden, heads)
        query, key_value = heads * dim, 2 * kv_heads * dim
        params = hidden * (query + key_value) + query * hidden
        biased = self.bias.removeprefix("key:") if _applies(keys, self.bias, "attention_bias") else "none"
        params += {"none": 0, "qkv": query + key_value, "qkvo": query + key_value + hidden}[biased]
        normed = self.qk_norm.removeprefix("key:") if _applies(keys, self.qk_norm, "use_qk_norm") else "none"
        norms = {"none": 0, "head": 2 * dim, "layer": (heads + kv_heads) * dim}[normed]
        return Attention("gqa", params, norms, key_value, 4 * heads * dim)

    def _kv_heads(self, keys: Keys, heads: int) -> int:
        if self.kv_heads == "derived":
            said = "as many as num_attention_heads taken"
            kv_heads = keys.whole_or(heads, "num_key_value_heads", minimum=1, said=said) or 0
        else:
            kv_heads = keys.whole("num_key_value_heads")
        if heads and kv_heads and heads % kv_heads:
            rule = f"must divide num_attention_heads = {heads}"
            keys.fault("num_key_value_heads", kv_heads, rule, "Correct one of the two.")
        return kv_heads

    def _head_dim(self, keys: Keys, hidden: int, heads: int) -> int:
        if self.head_dim == "stated":
            return keys.whole("head_dim")
        dim = keys.whole_or(None, "head_dim", minimum=1, said="hidden_size / num_attention_heads taken")
        if dim is None and heads and hidden % heads:
            rule = f"is not a multiple of num_attention_heads = {heads}, and head_dim is missing"
            keys.fault("hidden_size", hidden, rule, "Give head_dim, or correct one of the two.")
        return dim if dim is not None else hidden // (heads or 1)


def _applies(keys: Keys, rule: str, key: str) -> bool:
    return keys.flag(key) if rule.startswith("key:") else True


def full(keys: Keys, layers: int) -> Windows:
    """Every layer sees the whole context; a sliding_window that is set is noted as ignored."""
    if keys.config.get("sliding_window") is not None:
        keys.note(f"sliding_window = {keys.config['sliding_window']!r} is ignored: this family attends in full")
    return (None,) * layers


def windowed(keys: Keys, layers: int) -> Windows:
    """Every layer sees the sliding_window, the whole context where that is null or missing."""
    said = "" if keys.config.get("sliding_window", 0) is None else "full attention taken"
    return (keys.whole_or(None, "sliding_window", minimum=1, said=said),) * layers


def windows_if_used(keys: Keys, layers: int) -> Windows:
    """Every layer sees the sliding_window when use_sliding_window is true."""
    if not keys.flag("use_sliding_window", quiet=True):
        return (None,) * layers
    return (keys.whole("sliding_window"),) * layers


def windows_above(keys: Keys, layers: int) -> Windows:
    """Layers from max_window_layers on see the sliding_window when use_sliding_window is true."""
    if not keys.flag("use_sliding_window", quiet=True):
        return (None,) * layers
    if "layer_types" in keys.config:
        return _by_layer_types(keys, layers)
    first, window = keys.whole("max_window_layers", minimum=0), keys.whole("sliding_window")
    return tuple(window if layer >= first else None for layer in range(layers))


def alternating(keys: Keys, layers: int) -> Windows:
    """Layers follow layer_types; where that is missing every other layer slides, the first one included."""
    if "layer_types" in keys.config:
        return _by_layer_types(keys, layers)
    window = keys.whole("sliding_window")
    keys.note("layer_types is missing: layers 0, 2, 4, ... slide, the default of the model's class")
    return tuple(window if layer % 2 == 0 else None for layer in range(layers))


def _by_layer_types(keys: Keys, layers: int) -> Windows:
    types = keys.config["layer_types"]
    known = {"full_attention", "sliding_attention"}
    if not isinstance(types, list) or any(kind not in known for kind in map(str, types)):
        keys.fault("layer_types", types, f"must be a list of {' or '.join(sorted(known))}")
        return (None,) * layers
    if layers and len(types) != layers:
        keys.fault("layer_types", f"{len(types)} entries", f"must have one entry per layer, {layers} of them")
    window = keys.whole("sliding_window") if "sliding_attention" in types else None
    return tuple(window if kind == "sliding_attention" else None for kind in types)


#: Shared signature of the two tables above.
ReadAttention = Callable[[Keys, int], Attention]
ReadWindows = Callable[[Keys, int], Windows]
