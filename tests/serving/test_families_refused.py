"""Is a config that cannot be read refused, with the key and a cure?"""

from __future__ import annotations

from pathlib import Path

import pytest

from serving import load_model
from topo import InputError

from .configs import case, faults


def test_every_missing_key_is_said_at_once(tmp_path: Path) -> None:
    found = faults(tmp_path, {"model_type": "deepseek_v3"})
    wanted = {"num_hidden_layers", "hidden_size", "vocab_size", "n_routed_experts", "kv_lora_rank", "v_head_dim"}
    assert found.keys() >= wanted | {"num_experts_per_tok", "first_k_dense_replace", "num_attention_heads"}
    assert "looked for n_routed_experts, num_local_experts" in found["n_routed_experts"]


def test_nested_faults_carry_the_whole_key(tmp_path: Path) -> None:
    config = case("Qwen3-VL-235B-A22B-Instruct")
    del config["text_config"]["head_dim"]
    config["quantization_config"] = {"quant_method": "fp9"}
    found = faults(tmp_path, config)
    assert found.keys() == {"text_config.head_dim", "quantization_config.quant_method"}
    assert "Did you mean 'fp8'" in found["quantization_config.quant_method"]
    assert faults(tmp_path, {"model_type": "qwen3_vl_moe"}).keys() == {"text_config"}


@pytest.mark.parametrize("value", [None, "61", True, 61.0, -1, 0, [61], {}])
def test_a_number_that_is_none_is_said(tmp_path: Path, value: object) -> None:
    found = faults(tmp_path, case("DeepSeek-V3") | {"num_hidden_layers": value})
    assert found.keys() == {"num_hidden_layers"}
    assert "positive whole number" in found["num_hidden_layers"]


@pytest.mark.parametrize(
    ("name", "change", "place"),
    [
        ("DeepSeek-V3", {"num_experts_per_tok": 257}, "num_experts_per_tok"),
        ("DeepSeek-V3", {"first_k_dense_replace": 62}, "first_k_dense_replace"),
        ("DeepSeek-V3", {"topk_group": 9}, "topk_group"),
        ("DeepSeek-V3", {"n_group": 7}, "n_group"),
        ("DeepSeek-V3", {"num_local_experts": 255}, "num_local_experts"),
        ("DeepSeek-V3", {"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ("DeepSeek-V3", {"hidden_size": 10**400}, "hidden_size"),
        ("DeepSeek-V3", {"tie_word_embeddings": "no"}, "tie_word_embeddings"),
        ("DeepSeek-V3", {"torch_dtype": "float17"}, "torch_dtype"),
        ("DeepSeek-V3", {"quantization_config": []}, "quantization_config"),
        ("Qwen3-235B-A22B", {"num_key_value_heads": 128}, "num_key_value_heads"),
        ("Qwen3-235B-A22B", {"mlp_only_layers": [94]}, "mlp_only_layers"),
        ("Qwen3-32B", {"use_sliding_window": True, "sliding_window": 8, "layer_types": ["chunked"]}, "layer_types"),
        ("Mixtral-8x22B-v0.1", {"hidden_size": 6145}, "hidden_size"),
        ("Qwen3-32B", {"quantization_config": {"quant_method": "awq", "bits": [4]}}, "quantization_config.bits"),
        (
            "Qwen3-32B",
            {"quantization_config": {"quant_method": "compressed-tensors"}},
            "quantization_config.config_groups",
        ),
    ],
)
def test_what_is_at_odds_is_said(tmp_path: Path, name: str, change: dict[str, object], place: str) -> None:
    assert faults(tmp_path, case(name) | change).keys() == {place}


@pytest.mark.parametrize(("family", "why"), [("gemma3n_text", "share KV"), ("t5", "an encoder and a decoder")])
def test_a_family_that_is_not_modelled_is_refused(tmp_path: Path, family: str, why: str) -> None:
    said = faults(tmp_path, {"model_type": family})["model_type"]
    assert f"model_type = '{family}': is a family that is not supported" in said
    assert why in said
    assert "Supported: apertus, arctic, bailing_moe" in said


def test_an_unknown_family_lists_the_known(tmp_path: Path) -> None:
    assert "Did you mean 'mixtral'" in faults(tmp_path, {"model_type": "mixtrall"})["model_type"]


def test_a_config_without_model_type_says_what_was_looked_for(tmp_path: Path) -> None:
    said = faults(tmp_path, {"dim": 7168})["model_type"]
    assert "looked for model_type, text_config.model_type, llm_config.model_type" in said
    assert "assume model_type=FAMILY" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{\n  'a': 1}", "line 2, column 3"),
        ("", "line 1"),
        ("[1]", "one JSON object"),
        ("[" * 100_000, "too deep"),
        ("9" * 5000, "not a config"),
    ],
)
def test_what_is_not_a_config_is_said(tmp_path: Path, text: str, said: str) -> None:
    assert any(said in message for message in faults(tmp_path, text).values())


def test_names_and_paths_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither a model of the catalogue nor a file.*Did you mean 'deepseek-v3'"):
        load_model("deepseek-v33")
    for path in ("nothing/config.json", "nothing.json", tmp_path / "nothing"):
        with pytest.raises(InputError, match="there is no such file"):
            load_model(path)
    with pytest.raises(InputError, match=r"has no config\.json"):
        load_model(tmp_path)
    with pytest.raises(InputError, match="Did you mean 'deepseek-v3'"):
        load_model("deepseek-ai/DeepSeek-V3")


@pytest.mark.parametrize(
    ("family", "key", "value"),
    [
        ("bamba", "attn_layer_indices", None),
        ("bamba", "attn_layer_indices", [4]),
        ("bamba", "attn_layer_indices", {"9": 1}),
        ("mimo_v2_flash", "hybrid_layer_pattern", [0, 1]),
        ("mimo_v2_flash", "hybrid_layer_pattern", [0, 1, 2, [1]]),
        ("step3_text", "moe_layers_enum", None),
        ("step3_text", "moe_layers_enum", "1,2,4"),
        ("step3_text", "moe_layers_enum", "1;2"),
        ("step3_text", "moe_layers_enum", [[1]]),
    ],
)
def test_lists_of_layers_that_cannot_be_are_said(tmp_path: Path, family: str, key: str, value: object) -> None:
    found = faults(tmp_path, {"model_type": family, "num_hidden_layers": 4, key: value})
    assert "must be" in found[key]
