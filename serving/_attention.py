"""What does one attention layer hold, cache and compute?

Grouped-query attention, multi-head latent attention (DeepSeek-V2, arXiv 2405.04434) with or without an
indexer (DeepSeek-V3.2, arXiv 2512.02556), compressed attention (DeepSeek-V4), multi-matrix factorisation
attention (Step-3, arXiv 2507.19427), and heads that differ between full and sliding layers (MiMo-V2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from serving._keys import Keys
from serving._mixer import Cache, Mixer

__all__ = [
    "HEADS", "KV_HEADS", "Gqa", "ReadMixer", "compressed", "factored", "indexed", "mla", "mla_pair", "two_widths",
]  # fmt: skip

#: One layer of a family, from its keys and the width of the stream.
ReadMixer = Callable[[Keys, int], Mixer]

HEADS = ("num_attention_heads", "n_heads", "n_head", "num_q_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "attn_config.kv_n_heads", "multi_query_group_num",
            "num_attention_groups")  # fmt: skip
HEAD_DIM = ("head_dim", "attention_head_dim", "kv_channels", "key_size")


def mla(keys: Keys, hidden: int) -> Mixer:
    """Read multi-head latent attention; ``q_lora_rank: null`` means queries are not compressed."""
    heads = keys.whole(*HEADS)
    latent = keys.whole("kv_lora_rank")
    rope, nope, value = (keys.whole(f"{part}_head_dim") for part in ("qk_rope", "qk_nope", "v"))
    rank = keys.whole_or(0, "q_lora_rank", minimum=0, said="queries are projected without a latent") or 0
    query = heads * (nope + rope)
    params = hidden * rank + rank * query if rank else hidden * query
    params += hidden * (latent + rope) + latent * heads * (nope + value) + heads * value * hidden
    if keys.flag("attention_bias"):
        params += rank + latent + rope + hidden
    if keys.flag("mla_use_output_gate", quiet=True):
        params += hidden * heads * value
    # Absorbed form: scores over latent + rope, values over the latent, 2 FLOP per multiply-add. Many new tokens
    # are cheaper with keys and values expanded, those of earlier tokens once more.
    expanded = (2 * heads * (nope + rope + value), 2 * latent * heads * (nope + value))
    cache = Cache(latent + rope, 2 * heads * (latent + rope + latent), expanded=expanded)
    return Mixer("mla", params, rank + latent, (cache,), heads=heads)


def mla_pair(keys: Keys, hidden: int) -> Mixer:
    """Two attentions in one layer (LongCat-Flash)."""
    return mla(keys, hidden).times(2)


def indexed(keys: Keys, hidden: int, *, scores: bool = True) -> Mixer:
    """Latent attention to the positions an indexer selects; `scores`: the indexer is the layer's own."""
    one = mla(keys, hidden)
    heads, dim, top = (keys.whole(f"index_{name}") for name in ("n_heads", "head_dim", "topk"))
    rank = keys.whole("q_lora_rank")
    one = replace(
        one, kind="sparse mla", caches=tuple(replace(cache, selected=top, expanded=None) for cache in one.caches)
    )
    if not scores:
        return one
    params = one.params + rank * heads * dim + hidden * dim + hidden * heads
    caches = (*one.caches, Cache(dim, 2 * heads * dim))
    return replace(one, params=params, norm_params=one.norm_params + dim, caches=caches)


def compressed(keys: Keys, hidden: int, ratio: int, *, indexer: bool) -> Mixer:
    """One layer of DeepSeek-V4: a window, and every `ratio` tokens one entry of which an indexer selects some."""
    heads, dim, rank = keys.whole(*HEADS), keys.whole(*HEAD_DIM), keys.whole("q_lora_rank")
    groups, out = keys.whole("o_groups"), keys.whole("o_lora_rank")
    params = hidden * rank + rank * heads * dim + hidden * dim + heads * dim * out + groups * out * hidden + heads
    caches = [Cache(dim, 4 * heads * dim, window=keys.whole("sliding_window"))]
    if ratio:
        series = 2 if indexer else 1
        params += series * (2 * hidden * dim + ratio * dim)
        top = keys.whole("index_topk") if indexer else None
        caches.append(Cache(dim, 4 * heads * dim, stride=ratio, selected=top))
    if ratio and indexer:
        n, small = keys.whole("index_n_heads"), keys.whole("index_head_dim")
        params += 2 * (2 * hidden * small + ratio * small) + rank * n * small + hidden * n
        caches.append(Cache(small, 2 * n * small, stride=ratio))
    return Mixer("compressed", params, rank + dim, tuple(caches), heads=heads)


def factored(keys: Keys, hidden: int) -> Mixer:
    """Grouped-query attention whose queries come through one narrow projection that heads share (Step-3)."""
    one, heads, dim = Gqa()(keys, hidden), keys.whole(*HEADS), keys.whole(*HEAD_DIM)
    rank = keys.whole("share_q_dim")
    params = one.params - hidden * heads * dim + hidden * rank + rank * heads * dim
    return replace(one, params=params, norm_params=rank)


def two_widths(prefix: str) -> ReadMixer:
    """Grouped-query attention whose keys are wider than its values; `prefix` before its own keys (MiMo-V2)."""

    def read(keys: Keys, hidden: int) -> Mixer:
        heads, kv_heads, dim, value = (
            keys.whole(prefix + name)
            for name in ("num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim")
        )
        key_value = kv_heads * (dim + value)
        params = hidden * (heads * dim + key_value) + heads * value * hidden
        if keys.flag("attention_bias"):
            params += heads * dim + key_value
        params += heads * keys.flag(f"add_{prefix or 'full_'}attention_sink_bias", quiet=True)
        return Mixer("gqa", params, 0, (Cache(key_value, 2 * heads * (dim + value), heads=kv_heads),), heads=heads)

    return read


@dataclass(frozen=True)
class Gqa:
    """How a family writes grouped-query attention.

    `head_dim`: "stated" (must be there), or "derived" (hidden / heads when missing). `bias`: projections
    with a bias, "none", "qkv", "qkvo", or by a key "attention_bias:qkvo". `qk_norm`: "none", "head",
    "layer", or by a key "use_qk_norm:head". `kv_heads`: "stated", or "derived" (= heads), or
    "falcon". `gate`: queries are twice as wide, half of them a gate on the output.
    """

    head_dim: str = "stated"
    bias: str = "none"
    qk_norm: str = "none"
    kv_heads: str = "stated"
    gate: bool = False

    def __call__(self, keys: Keys, hidden: int) -> Mixer:
        """Read one layer."""
        heads = keys.whole(*HEADS)
        kv_heads = self._kv_heads(keys, heads)
        dim = self._head_dim(keys, hidden, heads)
        query, key_value = heads * dim, 2 * kv_heads * dim
        params = hidden * (query * (2 if self.gate else 1) + key_value) + query * hidden
        params += {"none": 0, "qkv": query + key_value, "qkvo": query + key_value + hidden}[_ruled(keys, self.bias)]
        norms = {"none": 0, "head": 2 * dim, "layer": (heads + kv_heads) * dim}[_ruled(keys, self.qk_norm)]
        return Mixer("gqa", params, norms, (Cache(key_value, 4 * heads * dim, heads=kv_heads),), heads=heads)

    def _kv_heads(self, keys: Keys, heads: int) -> int:
        if self.kv_heads == "falcon" and not keys.flag("new_decoder_architecture"):
            return 1 if keys.flag("multi_query", default=True) else heads
        if self.kv_heads == "stated":
            kv_heads = keys.whole(*KV_HEADS)
        else:
            kv_heads = keys.whole_or(heads, *KV_HEADS, minimum=1, said="as many as the attention heads taken") or 0
        if heads and kv_heads and heads % kv_heads:
            rule = f"must divide {keys.spelling(HEADS)} = {heads}"
            keys.fault(keys.spelling(KV_HEADS) or KV_HEADS[0], kv_heads, rule, "Correct one of the two.")
        return kv_heads

    def _head_dim(self, keys: Keys, hidden: int, heads: int) -> int:
        if self.head_dim == "stated":
            return keys.whole(*HEAD_DIM)
        dim = keys.whole_or(None, *HEAD_DIM, minimum=1, said="hidden_size / num_attention_heads taken")
        if dim is None and heads and hidden % heads:
            rule = f"is not a multiple of num_attention_heads = {heads}, and head_dim is missing"
            keys.fault("hidden_size", hidden, rule, "Give head_dim, or correct one of the two.")
        return dim if dim is not None else hidden // (heads or 1)


def _ruled(keys: Keys, rule: str) -> str:
    """Return what a rule says, "none" where its key says false."""
    key, colon, name = rule.rpartition(":")
    return name if not colon or keys.flag(key) else "none"
