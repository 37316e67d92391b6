"""Is every family read as its published configs mean it, and is everything else refused with a cure?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from serving import list_models, load_model
from topo import InputError

from .configs import CONFIGS, FP8, case, faults, load, windows

# The right readings of SOURCES-hf-config.md: layers, MoE layers, experts, top-k.
READINGS = [
    ("DeepSeek-V3", 61, 58, 256, 8),
    ("Kimi-K2-Instruct", 61, 60, 384, 8),
    ("Qwen3-235B-A22B", 94, 94, 128, 8),
    ("Qwen3-VL-235B-A22B-Instruct", 94, 94, 128, 8),
    ("Qwen3-32B", 64, 0, 0, 0),
    ("Meta-Llama-3.1-405B", 126, 0, 0, 0),
    ("Mixtral-8x22B-v0.1", 56, 56, 8, 2),
    ("MiniMax-M2.5", 62, 62, 256, 8),
    ("deepseek-v2-lite", 27, 26, 64, 6),
    ("llama-2-7b-hf", 32, 0, 0, 0),
    ("GLM-5.2", 78, 75, 256, 8),
    ("Nemotron-H-56B-Base-8K", 118, 0, 0, 0),
    ("Step-3.7-Flash", 45, 42, 288, 8),
    ("llama-4-scout-17b-16e-instruct-fp8-dynamic", 48, 48, 16, 1),
]


@pytest.mark.parametrize(("name", "layers", "moe", "experts", "top_k"), READINGS)
def test_published_configs_read_right(name: str, layers: int, moe: int, experts: int, top_k: int) -> None:
    model = load_model(CONFIGS / f"{name}.config.json")
    assert model.name == name
    assert (model.layers, model.n_moe_layers, model.n_experts, model.top_k) == (layers, moe, experts, top_k)


@pytest.mark.parametrize(
    ("name", "catalogue"),
    [
        ("DeepSeek-V3", "deepseek-v3"),
        ("Kimi-K2-Instruct", "kimi-k2"),
        ("Qwen3-235B-A22B", "qwen3-235b-a22b"),
        ("Qwen3-VL-235B-A22B-Instruct", "qwen3-235b-a22b"),
        ("Meta-Llama-3.1-405B", "llama-3.1-405b"),
        ("Mixtral-8x22B-v0.1", "mixtral-8x22b"),
        ("MiniMax-M2.5", "minimax-m2"),
    ],
)
def test_a_published_file_gives_the_catalogue_numbers(name: str, catalogue: str) -> None:
    told = ("name", "family", "source", "notes")
    one, other = (
        {key: value for key, value in model.to_dict().items() if key not in told}
        for model in (load_model(CONFIGS / f"{name}.config.json"), load_model(catalogue))
    )
    assert one == other


def test_expert_width_is_the_key_the_family_means() -> None:
    assert load_model(CONFIGS / "Qwen3-235B-A22B.config.json").expert_params == 3 * 4096 * 1536
    assert load_model(CONFIGS / "Mixtral-8x22B-v0.1.config.json").expert_params == 3 * 6144 * 16384
    assert load_model(CONFIGS / "MiniMax-M2.5.config.json").expert_params == 3 * 3072 * 1536


def test_queries_without_a_latent() -> None:
    model = load_model(CONFIGS / "deepseek-v2-lite.config.json")
    by_hand = 2048 * 16 * 192 + 2048 * 576 + 512 * 16 * 256 + 16 * 128 * 2048
    assert model.mixers[0].params == by_hand
    assert model.shared_params == 2 * 3 * 2048 * 1408
    # DeepSeek-V2-Lite model card: 15.7 B total, 2.4 B active (without the 0.2 B embedding).
    assert model.total_params / 1e9 == pytest.approx(15.7, abs=0.05)
    assert (model.active_params - model.embedding_params) / 1e9 == pytest.approx(2.4, abs=0.06)


def test_qwen2_biases_and_kv(tmp_path: Path) -> None:
    # Qwen2.5-72B: 327.680 KB of KV per token, arXiv 2505.09343, table 1.
    sizes = {"num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8}
    config = {"model_type": "qwen2", "intermediate_size": 29568, "vocab_size": 152064, **sizes}
    model = load(tmp_path, config)
    assert model.kv_bytes_per_token == 327_680
    assert model.mixers[0].params == 2 * 8192 * 8192 + 2 * 8192 * 1024 + 8192 + 2 * 1024
    assert any("bf16 taken" in note for note in model.notes)


def test_a_directory_stands_for_its_config(tmp_path: Path) -> None:
    load(tmp_path, case("Qwen3-32B"))
    assert load_model(str(tmp_path)).name == tmp_path.name


def test_a_tied_head_is_not_counted_twice(tmp_path: Path) -> None:
    tied = load(tmp_path, case("Qwen3-32B") | {"tie_word_embeddings": True})
    untied = load(tmp_path, case("Qwen3-32B"))
    assert tied.head_params == 0
    assert untied.total_params - tied.total_params == 151936 * 5120


def test_sparse_step_and_dense_layers(tmp_path: Path) -> None:
    change = {"num_hidden_layers": 6, "decoder_sparse_step": 2, "mlp_only_layers": [3]}
    model = load(tmp_path, case("Qwen3-235B-A22B") | change)
    assert model.moe_layer_mask == (False, True, False, False, False, True)
    assert model.dense_params == tuple(0 if moe else 3 * 4096 * 12288 for moe in model.moe_layer_mask)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"use_sliding_window": False, "sliding_window": 9}, (None,) * 4),
        ({"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 3}, (None, None, None, 9)),
        (
            {
                "use_sliding_window": True,
                "sliding_window": 9,
                "layer_types": ["full_attention", "sliding_attention"] * 2,
            },
            (None, 9, None, 9),
        ),
    ],
)
def test_windows(tmp_path: Path, change: dict[str, object], expected: tuple[int | None, ...]) -> None:
    assert windows(load(tmp_path, case("Qwen3-32B") | {"num_hidden_layers": 4} | change)) == expected


def test_mixtral_and_mistral_slide_in_every_layer(tmp_path: Path) -> None:
    model = load(tmp_path, case("Mixtral-8x22B-v0.1") | {"sliding_window": 4096})
    assert windows(model) == (4096,) * 56
    dense = load(tmp_path, case("Mixtral-8x22B-v0.1") | {"sliding_window": 4096, "model_type": "mistral"})
    assert (windows(dense), dense.is_moe) == ((4096,) * 56, False)


def test_gpt_oss_without_layer_types_alternates(tmp_path: Path) -> None:
    sizes = {"num_hidden_layers": 4, "hidden_size": 2880, "vocab_size": 201088, "head_dim": 64, "sliding_window": 128}
    heads = {"num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 2880}
    experts = {"num_local_experts": 128, "experts_per_token": 4, "quantization_config": {"quant_method": "mxfp4"}}
    model = load(tmp_path, {"model_type": "gpt_oss", **sizes, **heads, **experts})
    assert windows(model) == (128, None, 128, None)
    assert model.unquantised == ("attention", "router", "embedding", "head")


QUANTISATIONS: list[tuple[dict[str, object], str, tuple[str, ...]]] = [
    (FP8, "fp8", ()),
    ({**FP8, "modules_to_not_convert": ["lm_head", "mlp.gate"]}, "fp8", ("router", "head")),
    ({**FP8, "modules_to_not_convert": ["model.layers.0.mlp.gate"]}, "fp8", ()),
    ({**FP8, "ignored_layers": ["re:.*self_attn.*", "model.embed_tokens"]}, "fp8", ("attention", "embedding")),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}, "nvfp4", ("embedding", "head")),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8", ("embedding",)),
    ({"quant_method": "awq", "bits": 4}, "int4", ("router", "embedding", "head")),
    ({"quant_method": "gptq", "bits": 8, "lm_head": True}, "int8", ("router", "embedding")),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4", ("embedding", "head")),
    (
        {"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["self_attn"], "activation_scale_ub": 1200.0},
        "fp8",
        ("attention", "embedding", "head"),
    ),
]


@pytest.mark.parametrize(("config", "dtype", "unquantised"), QUANTISATIONS)
def test_quantisation(tmp_path: Path, config: dict[str, object], dtype: str, unquantised: tuple[str, ...]) -> None:
    model = load(tmp_path, case("Qwen3-235B-A22B") | {"quantization_config": config})
    assert (model.weight_dtype, model.other_dtype, model.unquantised) == (dtype, "bf16", unquantised)


@pytest.mark.parametrize(
    ("weights", "dtype"),
    [
        ({"num_bits": 8, "type": "float"}, "fp8"),
        ({"num_bits": 8, "type": "int"}, "int8"),
        ({"num_bits": 4, "type": "int", "group_size": 32}, "int4"),
        ({"num_bits": 4, "type": "float", "group_size": 16}, "nvfp4"),
        ({"num_bits": 4, "type": "float", "group_size": 32}, "mxfp4"),
    ],
)
def test_compressed_tensors(tmp_path: Path, weights: dict[str, object], dtype: str) -> None:
    gates = [f"model.layers.{layer}.mlp.gate" for layer in range(94)]
    groups = {"config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}
    config = {"quant_method": "compressed-tensors", "ignore": ["lm_head", *gates], **groups}
    model = load(tmp_path, case("Qwen3-235B-A22B") | {"quantization_config": config})
    assert (model.weight_dtype, model.unquantised) == (dtype, ("router", "embedding", "head"))


def test_a_part_left_out_in_places_is_noted(tmp_path: Path) -> None:
    config = FP8 | {"modules_to_not_convert": ["model.layers.0.mlp.gate"]}
    model = load(tmp_path, case("Qwen3-235B-A22B") | {"quantization_config": config})
    assert any("1% of the router" in note for note in model.notes)


def test_every_catalogue_model_names_its_source() -> None:
    for name in list_models():
        assert "confidence" in load_model(name).source


# --- layers of several kinds -----------------------------------------------------------------------------------------


def test_the_native_config_has_the_numbers_of_the_published_one() -> None:
    native, published = (load_model(CONFIGS / name) for name in
                         ("deepseek-native-config_671B.json", "DeepSeek-V3.config.json"))  # fmt: skip
    told = ("name", "source", "notes", "mtp_layers", "other_dtype")
    one, other = ({k: v for k, v in model.to_dict().items() if k not in told} for model in (native, published))
    assert one == other


def test_a_pattern_says_how_many_layers(tmp_path: Path) -> None:
    config = case("Nemotron-H-56B-Base-8K")
    stated = load(tmp_path, config)
    del config["num_hidden_layers"]
    assert load(tmp_path, config).total_params == stated.total_params
    # Mamba-2 by hand: heads of 64, 8 groups of B and C; 118 layers are 54 M, 10 *, 54 -.
    inner, mixed = 256 * 64, 256 * 64 + 2 * 8 * 256
    ssm = 8192 * (inner + mixed + 256) + 5 * mixed + 3 * 256 + inner * 8192
    gqa = 2 * 8192 * 8192 + 2 * 8192 * 8 * 128
    assert stated.total_params == 54 * ssm + 10 * gqa + 54 * 2 * 8192 * 32768 + 2 * 131072 * 8192
    assert stated.kv_bytes(4096) == 10 * 2 * 8 * 128 * 4096 * 2
    assert stated.state_bytes == 54 * (inner * 256 + 3 * mixed) * 4
    wrong = faults(tmp_path, config | {"num_hidden_layers": 117, "hybrid_override_pattern": "M?" * 58 + "M"})
    assert "?" in wrong["hybrid_override_pattern"]


def test_without_layers_or_pattern_every_key_looked_for_is_named(tmp_path: Path) -> None:
    said = faults(tmp_path, {"model_type": "nemotron_h"})
    assert "num_layers, hybrid_override_pattern, layers_block_type" in said["num_hidden_layers"]


def test_an_indexer_reads_all_and_the_attention_what_it_selects() -> None:
    model = load_model(CONFIGS / "GLM-5.2.config.json")
    own, shared = model.mixers[0], model.mixers[3]
    assert own.params - shared.params == 2048 * 32 * 128 + 6144 * 128 + 6144 * 32
    assert (own.kv_elements, shared.kv_elements) == (576 + 128, 576)
    assert own.kv_read(99_999, 100_000) == 2048 * 576 + 100_000 * 128
    assert own.flop(99_999, 100_000) == 2048 * 2 * 64 * 1088 + 100_000 * 2 * 32 * 128


def test_compressed_attention_keeps_a_window_and_one_entry_of_many(tmp_path: Path) -> None:
    sizes = {"num_hidden_layers": 3, "hidden_size": 4096, "vocab_size": 129280, "num_attention_heads": 64}
    attention = {"head_dim": 512, "q_lora_rank": 1024, "o_groups": 8, "o_lora_rank": 1024, "sliding_window": 128}
    attention |= {"index_n_heads": 64, "index_head_dim": 128, "index_topk": 512, "compress_ratios": [0, 4, 128, 0]}
    experts = {"n_routed_experts": 256, "num_experts_per_tok": 6, "moe_intermediate_size": 2048, "n_shared_experts": 1}
    model = load(tmp_path, {"model_type": "deepseek_v4", **sizes, **attention, **experts})
    window, sparse, heavy = model.mixers
    context = 1_000_000
    assert window.kv_kept(context) == 128 * 512
    assert sparse.kv_kept(context) == 128 * 512 + context / 4 * (512 + 128)
    assert heavy.kv_kept(context) == 128 * 512 + context / 128 * 512
    assert sparse.kv_read(context - 1, context) == 128 * 512 + 512 * 512 + context / 4 * 128
    found = faults(tmp_path, {"model_type": "deepseek_v4", **sizes, **attention, **experts, "compress_ratios": [0, 5]})
    assert found.keys() == {"compress_ratios"}


def test_llama_4_attends_in_chunks_but_every_fourth_layer() -> None:
    model = load_model(CONFIGS / "llama-4-scout-17b-16e-instruct-fp8-dynamic.config.json")
    assert windows(model) == (8192, 8192, 8192, None) * 12
    assert model.kv_bytes(100_000) == (36 * 8192 + 12 * 100_000) * 2 * 8 * 128 * 2


def test_a_list_of_moe_layers(tmp_path: Path) -> None:
    mask = [0] * 10 + [1, 0] * 25 + [1]
    model = load(tmp_path, case("DeepSeek-V3") | {"moe_layer_freq": mask})
    assert model.moe_layer_mask == tuple(map(bool, mask))
    assert faults(tmp_path, case("DeepSeek-V3") | {"moe_layer_freq": [1, 2]}).keys() == {"moe_layer_freq"}


@pytest.mark.parametrize("count", [None, 0])
def test_no_experts_stated_is_a_dense_model(tmp_path: Path, count: int | None) -> None:
    assert not load(tmp_path, case("DeepSeek-V3") | {"n_routed_experts": count}).is_moe


def test_linear_layers_keep_a_state_and_no_cache(tmp_path: Path) -> None:
    config = {"model_type": "minimax_m1", "num_hidden_layers": 8, "hidden_size": 6144, "num_attention_heads": 64,
              "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 200064, "intermediate_size": 9216,
              "num_local_experts": 32, "num_experts_per_tok": 2, "attn_type_list": [0] * 7 + [1]}  # fmt: skip
    model = load(tmp_path, config)
    assert model.kv_bytes(10**6) == 10**6 * 2 * 8 * 128 * 2
    assert model.state_bytes == 7 * 64 * 128 * 128 * 4
    assert model.attention == "linear + gqa"
    growth = model.flops_per_token(2001) - model.flops_per_token(1001)
    assert growth == 1000 * 4 * 64 * 128  # of the one attention layer


# --- what a user states ----------------------------------------------------------------------------------------------


def test_an_unknown_family_is_read_as_assumed(tmp_path: Path) -> None:
    config = case("Mixtral-8x22B-v0.1") | {"model_type": "my_moe", "d_ff": 16384}
    config.pop("intermediate_size")
    said = faults(tmp_path, config)["model_type"]
    assert "assume model_type=FAMILY, and KEY=@THEIRS" in said
    model = load_model(tmp_path / "config.json", assume={"model_type": "mixtral", "intermediate_size": "@d_ff"})
    assert model.total_params == load_model("mixtral-8x22b").total_params
    assert model.notes[:2] == ('assumed: model_type = "mixtral", in the place of "my_moe"',
                               "assumed: intermediate_size = 16384")  # fmt: skip


def test_assumptions_that_lead_nowhere_are_said(tmp_path: Path) -> None:
    load(tmp_path, case("Qwen3-32B"))
    with pytest.raises(InputError) as error:
        load_model(tmp_path / "config.json", assume={"a": "@nothing", "hidden_size.x": 1})
    assert [fault.place for fault in error.value.faults] == ["assume a", "assume hidden_size.x"]


def test_layers_that_differ_in_experts_are_refused(tmp_path: Path) -> None:
    config = case("Mixtral-8x22B-v0.1") | {"num_experts_per_tok": [2, 4]}
    assert "differs from layer to layer" in faults(tmp_path, config)["num_experts_per_tok"]


@pytest.mark.parametrize("assume", [["x"], {3: 4}, 0, "", []])
def test_assumptions_are_keys_and_values(assume: Any) -> None:
    with pytest.raises(InputError, match="must map keys to values"):
        load_model("mixtral-8x7b", assume)
