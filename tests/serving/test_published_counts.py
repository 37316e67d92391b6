"""Are families that nobody handed over counted as their publishers say?

Shapes from the models' published config.json files (and, for those with an interface of their own, the
keys of their configuration classes in Hugging Face transformers); totals from names and model cards.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serving import load_model

DATA = Path(__file__).parents[1] / "data"
MORE: dict[str, Any] = json.loads((DATA / "models-more.json").read_text())["models"]


def load(tmp_path: Path, config: dict[str, Any]) -> Any:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    return load_model(path)


@pytest.mark.parametrize("name", sorted(MORE))
def test_more_counts_equal_the_independent_ones(tmp_path: Path, name: str) -> None:
    row = MORE[name]
    model = load(tmp_path, row["config"])
    routed = model.n_moe_layers * model.n_experts * model.expert_params
    assert round(routed / 1e9, 3) == row["routed_experts_B"]
    if row["computed_total_B"] is not None:
        assert round(model.total_params / 1e9, 3) == row["computed_total_B"]
        assert round(model.active_params / 1e9, 3) == row["computed_active_B"]


def attention(layers: int, hidden: int, heads: int, kv: int, vocab: int, **more: Any) -> dict[str, Any]:
    return {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
            "num_key_value_heads": kv, "vocab_size": vocab} | more  # fmt: skip


def experts(key: str, n: int, top: int, width: int | None = None, **more: Any) -> dict[str, Any]:
    return {key: n, "num_experts_per_tok": top} | ({"moe_intermediate_size": width} if width else {}) | more


MLA = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
SSM2 = {"n_groups": 8, "conv_kernel": 4, "ssm_state_size": 128, "expand": 2}
NANO = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"

#: config, published total and active parameters [1e9] (None: not published), tolerance.
PUBLISHED: dict[str, tuple[dict[str, Any], float, float | None, float]] = {
    "Qwen3-Next-80B-A3B": (
        attention(48, 2048, 16, 2, 151936, head_dim=256, model_type="qwen3_next", decoder_sparse_step=1)
        | experts("num_experts", 512, 10, 512, shared_expert_intermediate_size=512, intermediate_size=5120)
        | {"linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
           "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "full_attention_interval": 4},
        79.7, 3.9, 0.01,
    ),
    "Kimi-Linear-48B-A3B": (
        attention(27, 2304, 32, 32, 163840, model_type="kimi_linear", intermediate_size=9216, q_lora_rank=None)
        | MLA | {"num_experts": 256, "num_experts_per_token": 8, "moe_intermediate_size": 1024}
        | {"num_shared_experts": 1, "first_k_dense_replace": 1, "moe_layer_freq": 1,
           "linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "head_dim": 128, "num_heads": 32,
                                  "short_conv_kernel_size": 4}},
        49.1, 3.5, 0.03,
    ),
    "Jamba-1.5-Large": (
        attention(72, 8192, 64, 8, 65536, model_type="jamba", intermediate_size=24576)
        | experts("num_experts", 16, 2, expert_layer_period=2, expert_layer_offset=1)
        | {"attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
           "mamba_dt_rank": 512},
        398, 94, 0.01,
    ),
    "Nemotron-3-Nano-30B-A3B": (
        attention(52, 2688, 32, 2, 131072, head_dim=128, model_type="nemotron_h", hybrid_override_pattern=NANO)
        | experts("n_routed_experts", 128, 6, 1856, moe_shared_expert_intermediate_size=3712, n_shared_experts=1)
        | SSM2 | {"mamba_num_heads": 64, "mamba_head_dim": 64, "intermediate_size": 1856},
        31.6, 3.6, 0.01,
    ),
    "Nemotron-3-Super-120B-A12B": (  # 40 Mamba, 40 MoE and 8 attention layers; in which order does not count
        attention(88, 4096, 32, 2, 131072, head_dim=128, model_type="nemotron_h",
                  hybrid_override_pattern="ME" * 40 + "*" * 8)
        | experts("n_routed_experts", 512, 22, 2688, moe_shared_expert_intermediate_size=5376, moe_latent_size=1024)
        | SSM2 | {"mamba_num_heads": 128, "mamba_head_dim": 64},
        120.6, 12.7, 0.005,
    ),
    "Qwen3.5-397B-A17B": (
        {"model_type": "qwen3_5_moe", "vision_config": {}, "tie_word_embeddings": False, "text_config": attention(
            60, 4096, 32, 2, 248320, head_dim=256, model_type="qwen3_5_moe_text",
            layer_types=(["linear_attention"] * 3 + ["full_attention"]) * 15, linear_num_key_heads=16,
            linear_num_value_heads=64, linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4)
            | experts("num_experts", 512, 10, 1024, shared_expert_intermediate_size=1024, mtp_num_hidden_layers=1)},
        397, 17, 0.01,
    ),
    "Step-3": (  # 316 B and 38 B: arXiv 2507.19427, table 1
        {"model_type": "step3_vl", "vision_config": {}, "text_config": {
            "model_type": "step3_text", "num_hidden_layers": 61, "hidden_size": 7168, "intermediate_size": 18432,
            "num_attention_heads": 64, "num_attention_groups": 1, "head_dim": 256, "share_q_dim": 2048,
            "vocab_size": 128815, "moe_num_experts": 48, "moe_top_k": 3, "moe_intermediate_size": 5120,
            "share_expert_dim": 5120, "moe_layers_enum": ",".join(map(str, range(4, 60)))}},
        316, 38, 0.003,
    ),
    "MiMo-V2-Flash": (  # 309 B and 15 B: its model card
        attention(48, 4096, 64, 4, 152576, model_type="mimo_v2_flash", intermediate_size=16384, head_dim=192,
                  v_head_dim=128, swa_num_attention_heads=64, swa_num_key_value_heads=8, swa_head_dim=192,
                  swa_v_head_dim=128, sliding_window=128, add_swa_attention_sink_bias=True,
                  hybrid_layer_pattern=[0, 1, 1, 1, 1] + [0, 1, 1, 1, 1, 1] * 7 + [0], moe_layer_freq=[0] + [1] * 47)
        | experts("n_routed_experts", 256, 8, 2048, n_shared_experts=None),
        309, 15, 0.003,
    ),
    "Qwen3-Omni-30B-A3B, its text part": (
        {"model_type": "qwen3_omni_moe", "thinker_config": {"text_config": attention(
            48, 2048, 32, 4, 152064, head_dim=128, model_type="qwen3_omni_moe_text", decoder_sparse_step=1)
            | experts("num_experts", 128, 8, 768)}},
        30.5, 3.3, 0.003,
    ),
    "Bamba-9B": (  # 9.78 B: the model's page
        attention(32, 4096, 32, 8, 128256, model_type="bamba", intermediate_size=14336, attn_layer_indices=[9, 18, 27],
                  mamba_n_heads=128, mamba_d_head=64, mamba_d_state=128, mamba_n_groups=1, mamba_d_conv=4,
                  mamba_expand=2),
        9.78, 9.78, 0.002,
    ),
    "Apertus-70B": (
        attention(80, 8192, 64, 8, 131072, model_type="apertus", intermediate_size=43008),
        70.6, 70.6, 0.002,
    ),
    "Kimi-K2.5, written flat": (
        attention(61, 7168, 64, 64, 163840, model_type="kimi_k25", intermediate_size=18432, q_lora_rank=1536) | MLA
        | experts("n_routed_experts", 384, 8, 2048, n_shared_experts=1, first_k_dense_replace=1, moe_layer_freq=1),
        1026.4, 32.9, 0.001,
    ),
    "GLM-4.7-Flash": (
        attention(47, 2048, 20, 20, 154880, model_type="glm4_moe_lite", intermediate_size=10240, q_lora_rank=768)
        | {"kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256}
        | experts("n_routed_experts", 64, 4, 1536, n_shared_experts=1, first_k_dense_replace=1),
        30, None, 0.02,
    ),
    "Mamba-2.8B": (
        {"model_type": "mamba", "hidden_size": 2560, "num_hidden_layers": 64, "vocab_size": 50280, "state_size": 16,
         "conv_kernel": 4, "expand": 2, "time_step_rank": 160, "intermediate_size": 5120},
        2.77, None, 0.01,
    ),
    "Mamba-Codestral-7B": (
        {"model_type": "mamba2", "hidden_size": 4096, "num_hidden_layers": 64, "vocab_size": 32768, "state_size": 128,
         "conv_kernel": 4, "expand": 2, "num_heads": 128, "head_dim": 64, "n_groups": 8},
        7.29, None, 0.01,
    ),
    "Snowflake-Arctic": (
        attention(35, 7168, 56, 8, 32000, model_type="arctic", intermediate_size=4864, parallel_attn_mlp_res=True)
        | experts("num_local_experts", 128, 2, moe_layer_frequency=1),
        480, 17, 0.01,
    ),
    "OLMoE-1B-7B": (
        attention(16, 2048, 16, 16, 50304, model_type="olmoe", intermediate_size=1024)
        | experts("num_experts", 64, 8),
        6.92, 1.28, 0.01,
    ),
    "Phi-3.5-MoE": (
        attention(32, 4096, 32, 8, 32064, model_type="phimoe", intermediate_size=6400, attention_bias=True)
        | experts("num_local_experts", 16, 2),
        41.9, 6.6, 0.01,
    ),
    "Hunyuan-A13B": (
        attention(32, 4096, 32, 8, 128167, model_type="hunyuan_v1_moe", intermediate_size=3072, head_dim=128)
        | {"num_experts": 64, "moe_topk": [8] * 32, "moe_intermediate_size": [3072] * 32, "use_qk_norm": True,
           "num_shared_expert": [1] * 32, "tie_word_embeddings": True},
        80.4, 13, 0.01,
    ),
    "ERNIE-4.5-300B-A47B": (
        attention(54, 8192, 64, 8, 103424, model_type="ernie4_5_moe", intermediate_size=28672, use_bias=False)
        | {"moe_num_experts": 64, "moe_k": 8, "moe_intermediate_size": 3584, "moe_layer_start_index": 3,
           "moe_layer_interval": 1, "moe_layer_end_index": -1, "tie_word_embeddings": False},
        300, 47, 0.01,
    ),
    "LongCat-Flash": (
        {"model_type": "longcat_flash", "num_layers": 28, "hidden_size": 6144, "num_attention_heads": 64,
         "vocab_size": 131072, "ffn_hidden_size": 12288, "expert_ffn_hidden_size": 2048, "n_routed_experts": 512,
         "zero_expert_num": 256, "moe_topk": 12, "q_lora_rank": 1536} | MLA,
        560, 27, 0.02,
    ),
    "Qwen2-57B-A14B": (
        attention(28, 3584, 28, 4, 151936, model_type="qwen2_moe", intermediate_size=18944, decoder_sparse_step=1)
        | experts("num_experts", 64, 8, 2560, shared_expert_intermediate_size=20480),
        57.4, 14.2, 0.01,
    ),
    "DeepSeek-MoE-16B": (
        attention(28, 2048, 16, 16, 102400, model_type="deepseek", intermediate_size=10944, first_k_dense_replace=1)
        | experts("n_routed_experts", 64, 6, 1408, n_shared_experts=2, moe_layer_freq=1),
        16.4, 2.8, 0.01,
    ),
    "GLM-4.5-Air": (
        attention(46, 4096, 96, 8, 151552, head_dim=128, model_type="glm4_moe", intermediate_size=10944,
                  attention_bias=True, use_qk_norm=False, first_k_dense_replace=1)
        | experts("n_routed_experts", 128, 8, 1408, n_shared_experts=1),
        106, 12, 0.02,
    ),
    "LFM2-8B-A1B": (
        attention(24, 2048, 32, 8, 65536, model_type="lfm2_moe", intermediate_size=7168, num_dense_layers=2,
                  conv_L_cache=3)
        | experts("num_experts", 32, 4, 1792)
        | {"layer_types": ["full_attention" if i in (2, 6, 10, 14, 18, 21) else "conv" for i in range(24)]},
        8.3, 1.5, 0.02,
    ),
    "MiniMax-Text-01": (
        attention(80, 6144, 64, 8, 200064, head_dim=128, model_type="minimax_text_01", intermediate_size=9216,
                  attn_type_list=([0] * 7 + [1]) * 10)
        | experts("num_local_experts", 32, 2),
        456, None, 0.001,
    ),
    "Qwen1.5-MoE-A2.7B": (
        attention(24, 2048, 16, 16, 151936, model_type="qwen2_moe", intermediate_size=5632, decoder_sparse_step=1)
        | experts("num_experts", 60, 4, 1408, shared_expert_intermediate_size=5632),
        14.3, 2.7, 0.01,
    ),
    "Granite-4.0-H-Small": (
        attention(40, 4096, 32, 8, 100352, model_type="granitemoehybrid", intermediate_size=768,
                  shared_intermediate_size=1536, attention_bias=False, tie_word_embeddings=True)
        | experts("num_local_experts", 72, 10)
        | {"mamba_n_heads": 128, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_d_conv": 4,
           "mamba_expand": 2,
           "layer_types": ["attention" if i in (5, 15, 25, 35) else "mamba" for i in range(40)]},
        32, 9, 0.02,
    ),
    "Gemma-2-27B": (
        attention(46, 4608, 32, 16, 256000, head_dim=128, model_type="gemma2", intermediate_size=36864,
                  sliding_window=4096),
        27.2, None, 0.01,
    ),
    "Gemma-3-27B": (
        {"model_type": "gemma3", "text_config": attention(
            62, 5376, 32, 16, 262208, head_dim=128, model_type="gemma3_text", intermediate_size=21504,
            sliding_window=1024), "vision_config": {}},
        27.0, None, 0.01,
    ),
    "Command-R-Plus": (
        attention(64, 12288, 96, 8, 256000, model_type="cohere", intermediate_size=33792, use_qk_norm=True),
        104, None, 0.01,
    ),
    "Falcon-180B": (
        attention(80, 14848, 232, 232, 65024, model_type="falcon", new_decoder_architecture=True, num_kv_heads=8)
        | {"num_key_value_heads": None},
        180, None, 0.01,
    ),
    "BLOOM-176B": (
        {"model_type": "bloom", "n_layer": 70, "hidden_size": 14336, "n_head": 112, "vocab_size": 250880},
        176.2, None, 0.001,
    ),
    "ChatGLM3-6B": (
        {"model_type": "chatglm", "num_layers": 28, "hidden_size": 4096, "num_attention_heads": 32,
         "multi_query_group_num": 2, "kv_channels": 128, "ffn_hidden_size": 13696, "padded_vocab_size": 65024,
         "add_qkv_bias": True},
        6.24, None, 0.01,
    ),
    "Phi-3-mini": (
        attention(32, 3072, 32, 32, 32064, model_type="phi3", intermediate_size=8192, sliding_window=2047),
        3.82, None, 0.01,
    ),
    "GPT-NeoX-20B": (
        {"model_type": "gpt_neox", "num_hidden_layers": 44, "hidden_size": 6144, "num_attention_heads": 64,
         "intermediate_size": 24576, "vocab_size": 50432},
        20.6, None, 0.01,
    ),
    "Mixtral-8x7B as Mistral's params.json": (
        {"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8,
         "vocab_size": 32000, "moe": {"num_experts_per_tok": 2, "num_experts": 8}},
        46.7, 12.9, 0.002,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_families_not_handed_over_count_what_is_published(tmp_path: Path, name: str) -> None:
    config, total, active, tolerance = PUBLISHED[name]
    model = load(tmp_path, config)
    assert model.total_params / 1e9 == pytest.approx(total, rel=tolerance)
    if active is not None:
        # Published active counts leave embedding and head out, or not, and are rounded.
        low, high = model.active_params - model.embedding_params - model.head_params, model.active_params
        assert low / 1e9 * 0.97 <= active <= high / 1e9 * 1.03
    assert model.active_params <= model.total_params
    assert sum(row["params"] for row in model.layer_table()) + model.embedding_params + model.head_params == (
        model.total_params
    )
    assert sum(row["kv_bytes_per_token"] for row in model.layer_table()) == pytest.approx(model.kv_bytes_per_token)


def test_caches_of_heads_that_differ_by_hand(tmp_path: Path) -> None:
    """MiMo-V2-Flash: 9 full layers of 4 heads x (192 + 128), 39 sliding over 128 with 8; Step-3: 2 x 256 a layer."""
    mimo = load(tmp_path, PUBLISHED["MiMo-V2-Flash"][0])
    context = 128_000
    assert mimo.kv_bytes(context, "bf16") == 2 * (9 * 4 * 320 * context + 39 * 8 * 320 * 128)
    full, slides = mimo.mixers[0], mimo.mixers[1]
    assert full.flop(999, 1000) == 2 * 64 * (192 + 128) * 1000
    assert slides.flop(999, 1000) == 2 * 64 * (192 + 128) * 128
    step3 = load(tmp_path, PUBLISHED["Step-3"][0])
    assert step3.kv_bytes_per_token == 61 * 2 * 256 * 2
    assert step3.mixers[0].params == 7168 * (2048 + 2 * 256) + 2048 * 64 * 256 + 64 * 256 * 7168
    assert [layer for layer, moe in enumerate(step3.moe_layer_mask) if not moe] == [0, 1, 2, 3, 60]
