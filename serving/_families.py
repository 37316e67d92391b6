"""How does each family of models write its shape into config.json?

A family is one row of `FAMILIES`; a model_type without a row is refused, never guessed.
"""

from __future__ import annotations

from dataclasses import replace

from serving import _feed_forward as ffn
from serving._attention import Gqa, factored, mla, mla_pair, two_widths
from serving._feed_forward import Family
from serving._layer_patterns import (
    bamba_kinds,
    by_kinds,
    compressed_layers,
    every,
    indexed_layers,
    jamba_kinds,
    kimi_kinds,
    list_of,
    pattern_kinds,
    sliding_kinds,
)
from serving._recurrent import gated_delta, kimi_delta, lightning, mamba, mamba2, short_convolution
from serving._windows import by_types, chunked, periodic, sliding, windowed, windows_above, windows_if_used

__all__ = ["ARCHITECTURES", "FAMILIES", "INNER_TYPES", "NESTED", "REFUSED", "SIGNATURES"]

_DERIVED = Gqa(head_dim="derived", kv_heads="derived")
_HIDDEN_WIDTH = ffn.stated("intermediate_size")

_LLAMA = Family(every(replace(_DERIVED, bias="attention_bias:qkvo")), biases=ffn.mlp_bias)
_DEEPSEEK = Family(every(mla), moe=True, moe_layers=ffn.after_first_dense, shared=ffn.shared_count)
_QWEN3 = Gqa(bias="attention_bias:qkvo", qk_norm="head")
_QWEN3_MOE = Family(every(_QWEN3, windows_if_used), moe=True, moe_layers=ffn.sparse_step)
_QWEN_SHARED = ffn.shared_width("shared_expert_intermediate_size")
_QWEN3_NEXT = Family(
    by_kinds(list_of(4), {"full": replace(_QWEN3, gate=True), "linear": gated_delta}),
    moe=True, moe_layers=ffn.sparse_step, shared=_QWEN_SHARED, shared_gate=True,
)  # fmt: skip
_MIXTRAL = Family(every(_DERIVED, windowed), moe=True, expert_width=ffn.stated(*ffn.WIDTH))
_GLM4_MOE = Family(
    every(Gqa(bias="attention_bias:qkv", qk_norm="use_qk_norm:head")),
    moe=True, moe_layers=ffn.after_first_dense, shared=ffn.shared_count,
)  # fmt: skip
_GRANITE = Family(every(replace(_DERIVED, bias="attention_bias:qkvo")), tied=True)
_GRANITE_MOE = replace(_GRANITE, moe=True, expert_width=_HIDDEN_WIDTH)
_GEMMA = Family(every(Gqa(bias="attention_bias:qkvo")), tied=True)
_LIGHTNING = Family(by_kinds(pattern_kinds, {"full": Gqa(), "linear": lightning}), moe=True, expert_width=_HIDDEN_WIDTH)
_PLAIN = Family(every(replace(_DERIVED, bias="qkvo")), matrices=2, biases=ffn.plain_biases)
_HUNYUAN = Family(every(replace(_DERIVED, bias="attention_bias:qkvo", qk_norm="use_qk_norm:head")))
_ERNIE = Family(every(replace(_DERIVED, bias="use_bias:qkvo")), tied=True)
_BAILING = Family(
    every(replace(_DERIVED, bias="use_qkv_bias:qkv")),
    moe=True, moe_layers=ffn.after_first_dense, shared=ffn.shared_count,
)  # fmt: skip
_LFM2 = Family(by_kinds(pattern_kinds, {"full": replace(_DERIVED, qk_norm="head"), "linear": short_convolution}),
               tied=True)  # fmt: skip
_GROK = Family(
    every(Gqa()), moe=True, expert_width=ffn.grok_width, norms=4,
    residual=lambda keys, hidden: keys.whole("intermediate_size") if keys.flag("residual_moe", quiet=True) else 0,
)  # fmt: skip

#: model_type -> how its config is read. Projections, biases and norms follow the model's class in
#: Hugging Face transformers (src/transformers/models/<model_type>/modeling_<model_type>.py) or, where
#: it has none, the repository of its publisher.
FAMILIES: dict[str, Family] = {
    # DeepSeek and what is built like it
    "deepseek": Family(
        every(_DERIVED), moe=True, moe_layers=ffn.after_first_dense, shared=ffn.shared_count
    ),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": replace(_DEEPSEEK, mixers=indexed_layers),
    "deepseek_v4": Family(compressed_layers, moe=True, shared=ffn.shared_count),
    "kimi_k2": _DEEPSEEK,
    "kimi_linear": Family(
        by_kinds(kimi_kinds, {"full": mla, "linear": kimi_delta}), moe=True, moe_layers=ffn.after_first_dense,
        shared=ffn.shared_count, latent=("routed_expert_hidden_size",),
    ),
    "glm_moe_dsa": replace(_DEEPSEEK, mixers=indexed_layers, moe_layers=ffn.by_mlp_types),
    "glm4_moe_lite": replace(_DEEPSEEK, moe_layers=ffn.by_mlp_types),
    "glm4_moe": _GLM4_MOE,
    "dots1": replace(_GLM4_MOE, mixers=every(_QWEN3)),
    "longcat_flash": Family(
        every(mla_pair), moe=True, residual=lambda keys, hidden: 2 * keys.whole("ffn_hidden_size"),
        unused=("zero_expert_num",), norms=4,
    ),
    "bailing_moe": _BAILING,
    "bailing_moe_v2": replace(_BAILING, mixers=every(replace(_DERIVED, bias="use_qkv_bias:qkv", qk_norm="head"))),
    # Qwen
    "qwen2": Family(every(Gqa(head_dim="derived", bias="qkv"), windows_above)),
    "qwen2_moe": Family(
        every(replace(_DERIVED, bias="qkv"), windows_above), moe=True, moe_layers=ffn.sparse_step,
        shared=_QWEN_SHARED, shared_gate=True,
    ),
    "qwen3": Family(every(_QWEN3, windows_above)),
    "qwen3_moe": _QWEN3_MOE,
    "qwen3_vl_text": Family(every(_QWEN3, windows_above)),
    "qwen3_vl_moe_text": _QWEN3_MOE,
    "qwen3_omni_moe_text": _QWEN3_MOE,
    "qwen3_next": _QWEN3_NEXT,
    "qwen3_5_text": replace(_QWEN3_NEXT, moe=False),
    "qwen3_5_moe_text": _QWEN3_NEXT,
    # Mistral
    "mistral": Family(every(Gqa(head_dim="derived"), windowed)),
    "ministral": Family(every(_DERIVED, by_types)),
    "mixtral": _MIXTRAL,
    "phimoe": replace(_MIXTRAL, mixers=every(replace(_DERIVED, bias="attention_bias:qkvo"), windowed)),
    # Meta
    "llama": _LLAMA,
    "llama4_text": Family(
        every(Gqa(bias="attention_bias:qkvo"), chunked), moe=True,
        moe_layers=ffn.every_nth_moe("interleave_moe_layer_step"), expert_width=_HIDDEN_WIDTH,
        shared=lambda keys, width: width, dense=ffn.stated("intermediate_size_mlp"),
    ),
    # OpenAI
    "gpt_oss": Family(
        every(Gqa(bias="attention_bias:qkvo"), periodic(2)), moe=True, expert_width=_HIDDEN_WIDTH,
        biases=ffn.gated_biases, router_bias=True,
    ),
    "gpt2": replace(_PLAIN, dense=ffn.four_times("n_inner"), tied=True),
    # Google
    "gemma": _GEMMA,
    "gemma2": replace(_GEMMA, mixers=every(Gqa(bias="attention_bias:qkvo"), periodic(2)), norms=4),
    "gemma3_text": replace(_GEMMA, mixers=every(_QWEN3, periodic(6)), norms=4),
    # MiniMax
    "minimax": _LIGHTNING,
    "minimax_text_01": _LIGHTNING,
    "minimax_m1": _LIGHTNING,
    "minimax_m2": Family(
        every(Gqa(qk_norm="use_qk_norm:layer")), moe=True, expert_width=_HIDDEN_WIDTH,
        shared=ffn.shared_width("shared_intermediate_size"),
    ),
    # NVIDIA
    "nemotron": Family(every(replace(_DERIVED, bias="attention_bias:qkvo")), matrices=2),
    "nemotron_h": Family(
        by_kinds(pattern_kinds, {"full": Gqa(), "linear": mamba2}), moe=True, matrices=2,
        moe_layers=ffn.pattern_moe, dense_layers=ffn.pattern_dense,
        shared=ffn.shared_width("moe_shared_expert_intermediate_size"), latent=("moe_latent_size",), norms=1,
    ),
    # state spaces
    "mamba": Family(every(mamba), dense_layers=ffn.nowhere, norms=1, tied=True),
    "falcon_mamba": Family(every(mamba), dense_layers=ffn.nowhere, norms=1, tied=True),
    "mamba2": Family(every(mamba2), dense_layers=ffn.nowhere, norms=1),
    "jamba": Family(
        by_kinds(jamba_kinds, {"full": _DERIVED, "linear": mamba}), moe=True, moe_layers=ffn.jamba_moe,
        expert_width=_HIDDEN_WIDTH,
    ),
    "bamba": Family(by_kinds(bamba_kinds, {"full": replace(_DERIVED, bias="attention_bias:qkvo"), "linear": mamba2})),
    "lfm2": _LFM2,
    "lfm2_moe": replace(_LFM2, moe=True, moe_layers=ffn.after_first_dense),
    # IBM
    "granite": _GRANITE,
    "granitemoe": _GRANITE_MOE,
    "granitemoeshared": replace(_GRANITE_MOE, shared=ffn.shared_width("shared_intermediate_size")),
    "granitemoehybrid": Family(
        by_kinds(pattern_kinds, {"full": replace(_DERIVED, bias="attention_bias:qkvo"), "linear": mamba2}),
        moe=True, expert_width=_HIDDEN_WIDTH, dense=ffn.stated("shared_intermediate_size"),
        shared=ffn.shared_width("shared_intermediate_size"), tied=True,
    ),
    # AI2
    "olmo": Family(every(_DERIVED)),
    "olmo2": Family(every(replace(_DERIVED, qk_norm="layer"))),
    "olmo3": Family(every(replace(_DERIVED, qk_norm="layer"), periodic(4))),
    "olmoe": Family(every(replace(_DERIVED, qk_norm="layer")), moe=True, expert_width=_HIDDEN_WIDTH),
    # others with experts
    "dbrx": replace(_MIXTRAL, mixers=every(_DERIVED)),
    "grok": _GROK,
    "arctic": Family(
        every(_DERIVED), moe=True, moe_layers=ffn.every_nth_moe("moe_layer_frequency"),
        expert_width=_HIDDEN_WIDTH,
        residual=lambda keys, hidden: hidden if keys.flag("parallel_attn_mlp_res") else 0,
    ),
    "hunyuan_v1_dense": _HUNYUAN,
    "hunyuan_v1_moe": replace(_HUNYUAN, moe=True, shared=ffn.shared_count),
    "ernie4_5": _ERNIE,
    "ernie4_5_moe": replace(_ERNIE, moe=True, moe_layers=ffn.ernie_moe, shared=ffn.shared_count),
    "mimo_v2_flash": Family(
        by_kinds(sliding_kinds, {"full": two_widths(""), "sliding": sliding(two_widths("swa_"))}), moe=True,
        moe_layers=ffn.after_first_dense, shared=ffn.shared_count,
    ),
    "step3_text": Family(
        every(factored), moe=True, moe_layers=ffn.listed_moe, shared=ffn.shared_width("share_expert_dim"),
    ),
    "step3p7": Family(
        every(Gqa(), by_types), moe=True, moe_layers=ffn.after_first_dense,
        shared=ffn.shared_width("share_expert_dim"),
    ),
    # dense
    "cohere": Family(every(replace(_DERIVED, bias="attention_bias:qkvo", qk_norm="use_qk_norm:layer")), norms=1,
                     tied=True),
    "cohere2": Family(every(replace(_DERIVED, bias="attention_bias:qkvo"), periodic(4)), norms=1, tied=True),
    "falcon": Family(every(Gqa(head_dim="derived", kv_heads="falcon")), matrices=2,
                     dense=ffn.four_times("ffn_hidden_size"), tied=True),
    "bloom": replace(_PLAIN, dense=ffn.four_times("n_inner"), norms=4, tied=True),
    "gpt_neox": replace(_PLAIN, norms=4),
    "phi": replace(_PLAIN, norms=1),
    "phi3": Family(every(_DERIVED, windowed)),
    "starcoder2": Family(every(replace(_DERIVED, bias="use_bias:qkvo"), windowed), matrices=2,
                         biases=lambda keys, hidden, width: width + hidden if keys.flag("use_bias") else 0, tied=True),
    "stablelm": Family(every(replace(_DERIVED, bias="use_qkv_bias:qkv")), norms=4),
    "internlm2": Family(every(replace(_DERIVED, bias="bias:qkvo"))),
    "chatglm": Family(every(replace(_DERIVED, bias="add_qkv_bias:qkv"))),
    "glm": Family(every(replace(_DERIVED, bias="attention_bias:qkv"))),
    "glm4": Family(every(replace(_DERIVED, bias="attention_bias:qkv")), norms=4),
    "exaone4": Family(every(replace(_DERIVED, qk_norm="head"), periodic(4))),
    "seed_oss": Family(every(Gqa(bias="attention_bias:qkv"))),
    "apertus": Family(every(replace(_DERIVED, bias="attention_bias:qkvo", qk_norm="head")), matrices=2),
    "smollm3": _LLAMA,
}  # fmt: skip

#: Where a config keeps its language model when it has more than one.
NESTED = ("text_config", "llm_config", "language_config", "thinker_config.text_config")
#: model_type of a config with several parts -> that of its language model where the part does not say.
INNER_TYPES: dict[str, str] = {
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_omni_moe": "qwen3_omni_moe_text",
    "step3_vl": "step3_text",
    "llama4": "llama4_text",
    "gemma3": "gemma3_text",
    "mistral3": "mistral",
    "glm4v_moe": "glm4_moe",
    "kimi_k25": "kimi_k2",
    "kimi_k3": "kimi_linear",
}
#: Classes that say more than the model_type of their configs.
ARCHITECTURES: dict[str, str] = {"Grok1ForCausalLM": "grok", "Grok1ModelForCausalLM": "grok"}
#: Keys of publishers' own inference configs, which have no model_type -> the family they are of.
SIGNATURES: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"dim", "n_layers", "n_heads", "moe_inter_dim", "kv_lora_rank"}), "deepseek_v3"),
    (frozenset({"emb_size", "widening_factor", "num_q_heads", "num_layers"}), "grok"),
    (frozenset({"dim", "n_layers", "hidden_dim", "n_heads", "moe"}), "mixtral"),
    (frozenset({"dim", "n_layers", "hidden_dim", "n_heads", "n_kv_heads"}), "mistral"),
)

_TWO_SIDED = "it has an encoder and a decoder"

#: model_type -> why it is refused although it is well known.
REFUSED: dict[str, str] = {
    "gemma3n_text": "its layers share KV caches and have embeddings of their own",
    "hunyuan": "its layers share KV caches",
    "mllama": "some of its layers attend to an image",
    "recurrentgemma": "its recurrent blocks are not modelled",
    "rwkv": "its recurrence is not modelled",
    "t5": _TWO_SIDED,
    "whisper": _TWO_SIDED,
    "zamba2": "its layers share weights",
}
