"""Does the 671 B model fit, as people asked who had the machines?"""

from __future__ import annotations

import math

import pytest

import topo
from serving import Layout, Workload, load_model, step

ONE = Workload(context=1, batch_per_gpu=1)
BF16 = {"quantization_config": None, "torch_dtype": "bfloat16"}


# InternLM/lmdeploy#2960: 671 GB over 8 GPUs are 83.9 GB each; eight H20 of 96 GB hold it, barely
@pytest.mark.parametrize(("hbm", "fits"), [("48 GB", False), ("80 GB", False), ("96 GB", True)])
def test_fp8_over_eight_gpus(hbm: str, fits: bool) -> None:
    found = step(
        topo.load("hgx-h800-8", overrides={"chip.hbm_bytes": hbm}), load_model("deepseek-v3"), ONE,
        layout=Layout(ep=8, tp=8),
    )  # fmt: skip
    assert found.memory_per_gpu == pytest.approx(83.9e9, abs=0.05e9)
    assert found.fits == fits


# deepseek-ai/DeepSeek-V3#855, #11: BF16 is 1342 GB, 17 GPUs of 80 GB at least; in whole nodes that divide it, 32
def test_bf16_over_nodes_of_eight() -> None:
    model = load_model("deepseek-v3", assume=BF16)
    assert model.total_weight_bytes == pytest.approx(1342e9, rel=1e-3)
    assert math.ceil(model.total_weight_bytes / 80e9) == 17
    nodes = topo.load("hgx-h100-8", 4, {"chip.hbm_bytes": "80 GB"})
    held = {n: step(nodes, model, ONE, layout=Layout(ep=n, tp=n)).fits for n in (8, 16, 32)}
    assert held == {8: False, 16: False, 32: True}
