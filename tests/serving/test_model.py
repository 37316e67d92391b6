"""Does a model count what its publisher's config says, part by part?"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from serving import Model, list_models, load_model
from topo import InputError

DATA = Path(__file__).parents[1] / "data"
EXPECTED: dict[str, Any] = json.loads((DATA / "models-expected.json").read_text())["models"]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_counts_equal_the_independent_ones(name: str) -> None:
    model, expected = load_model(name), EXPECTED[name]
    assert round(model.total_params / 1e9, 3) == expected["computed_total_B"]
    assert round(model.active_params / 1e9, 3) == expected["computed_active_B"]
    parts = expected["computed_breakdown_B"]
    assert model.params_in("attention", range(model.layers)) / 1e9 == pytest.approx(parts["attention"], abs=5.1e-4)
    assert model.n_moe_layers * model.n_experts * model.expert_params / 1e9 == pytest.approx(
        parts["routed_experts"], abs=5.1e-4
    )
    assert model.n_moe_layers * model.shared_params / 1e9 == pytest.approx(parts["shared_experts"], abs=5.1e-4)
    assert (model.embedding_params + model.head_params) / 1e9 == pytest.approx(parts["embeddings"], abs=5.1e-4)
    assert sum(model.dense_params) / 1e9 == pytest.approx(parts["dense_ffn"], abs=5.1e-4)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_counts_are_near_the_published_ones(name: str) -> None:
    published = EXPECTED[name]["published_total_B"]
    # Kimi-K2's published total is "1T".
    tolerance = 0.03 if name == "kimi-k2" else 0.01
    assert load_model(name).total_params / 1e9 == pytest.approx(published, rel=tolerance)


@pytest.mark.parametrize("name", list_models())
def test_norms_are_what_the_totals_leave_out_and_are_small(name: str) -> None:
    model = load_model(name)
    assert 0 < model.norm_params < 1e-4 * model.total_params


# arXiv 2505.09343, table 1: KV cache per token at bf16.
@pytest.mark.parametrize(("name", "n_bytes"), [("deepseek-v3", 70_272), ("llama-3.1-405b", 516_096)])
def test_kv_bytes_per_token_are_the_published_ones(name: str, n_bytes: int) -> None:
    assert load_model(name).kv_bytes_per_token == n_bytes


def test_deepseek_v3_by_hand() -> None:
    model = load_model("deepseek-v3")
    assert model.moe_layer_mask == (False,) * 3 + (True,) * 58
    assert model.expert_params == 3 * 7168 * 2048
    assert model.expert_bytes == 44_040_192
    # 256 experts of one layer, GB; oracle: 11.3.
    assert 256 * model.expert_bytes / 1e9 == pytest.approx(11.3, abs=0.03)
    assert model.mixers[0].caches[0].flops_per_position == 2 * 128 * (576 + 512)
    assert model.router_params == 7168 * 256
    assert (model.weight_dtype, model.other_dtype, model.unquantised) == ("fp8", "bf16", ())
    assert model.total_weight_bytes == model.total_params
    assert (model.n_group, model.topk_group) == (8, 4)
    assert any("multi-token-prediction" in note for note in model.notes)


def test_gpt_oss_by_hand() -> None:
    model = load_model("gpt-oss-120b")
    assert model.expert_params == 3 * 2880 * 2880 + 2 * 2880 + 2880
    assert model.mixers[0].params == 2 * 2880 * 4096 + 2 * 2880 * 512 + 4096 + 2 * 512 + 2880
    assert tuple(mixer.caches[0].window for mixer in model.mixers) == (128, None) * 18
    assert model.mixers[0].caches[0].flops_per_position == 4 * 64 * 64
    assert model.unquantised == ("attention", "router", "embedding", "head")
    assert model.expert_bytes == model.expert_params * 17 / 32
    assert model.bytes_of("head") == 2 * 201088 * 2880


def test_weight_bytes_are_the_sum_of_the_parts() -> None:
    for name in list_models():
        model = load_model(name)
        layers = sum(model.layer_weight_bytes(layer, model.n_experts) for layer in range(model.layers))
        assert model.total_weight_bytes == layers + model.bytes_of("embedding") + model.bytes_of("head")


def test_layer_bytes_scale_with_the_experts_held_on_moe_layers_only() -> None:
    model = load_model("deepseek-v3")
    assert model.layer_weight_bytes(3, 8) - model.layer_weight_bytes(3, 4) == 4 * model.expert_bytes
    assert model.layer_weight_bytes(2, 8) == model.layer_weight_bytes(2, 0)


def test_kv_bytes_stop_growing_at_the_window() -> None:
    model = load_model("gpt-oss-120b")
    per_layer = 2 * 8 * 64 * 2
    assert model.kv_bytes(100) == 100 * 36 * per_layer
    assert model.kv_bytes(4096) == (18 * 4096 + 18 * 128) * per_layer
    assert model.kv_bytes(0) == 0


def test_kv_bytes_scale_with_context_and_type() -> None:
    model = load_model("deepseek-v3")
    assert model.kv_bytes(8192) == 2 * model.kv_bytes(4096)
    assert model.kv_bytes(4096, "fp8") == model.kv_bytes(4096) / 2
    assert model.kv_bytes(1) == model.kv_bytes_per_token


def test_active_is_total_when_every_expert_is_taken() -> None:
    model = load_model("mixtral-8x7b")
    assert dataclasses.replace(model, top_k=model.n_experts).active_params == model.total_params
    dense = load_model("llama-3.1-70b")
    assert dense.active_params == dense.total_params
    assert not dense.is_moe
    assert dense.n_experts == 0


def test_an_alias_has_the_same_numbers() -> None:
    base, alias = load_model("deepseek-v3"), load_model("deepseek-r1")
    assert alias == dataclasses.replace(base, name="deepseek-r1", notes=alias.notes)
    assert load_model("DeepSeek-V3") == base


def test_repr_puts_the_answer_first() -> None:
    shown = repr(load_model("deepseek-v3"))
    said = "671.0 B parameters, 37.6 B active, 58 of 61 layers with 256 experts top-8, fp8"
    assert shown == f"Model(deepseek-v3: {said})"


@pytest.mark.parametrize("name", list_models())
def test_to_dict_is_json_with_the_totals(name: str) -> None:
    model = load_model(name)
    record = json.loads(json.dumps(model.to_dict(), allow_nan=False))
    assert record["total_params"] == model.total_params
    assert set(record) >= {field.name for field in dataclasses.fields(Model)} - {"mixers"}
    assert len(record["layer_table"]) == model.layers


def test_a_wrong_part_layer_or_type_is_said() -> None:
    model = load_model("deepseek-v3")
    with pytest.raises(InputError, match="Did you mean 'router'"):
        model.bytes_of("routers")
    with pytest.raises(InputError, match="0 to 60"):
        model.layer_weight_bytes(61, 1)
    with pytest.raises(InputError, match="kv_dtype = 'fp9'"):
        model.kv_bytes(1, "fp9")


@pytest.mark.parametrize("context", [-1, float("nan"), float("inf"), "x", None, {}])
def test_a_context_that_is_no_number_of_positions_is_refused(context: Any) -> None:
    model = load_model("deepseek-v3")
    for verb in (model.kv_bytes, model.flops_per_token):
        with pytest.raises(InputError, match="must be positions"):
            verb(context)
    assert model.kv_bytes(0) == 0
    with pytest.raises(InputError, match="from 1 on"):
        model.flops_per_token(0)
