"""Does every recording give the tokens that its engine counted? Files as their writers lay them out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placement import read_loads, read_plan
from placement._loads import logical
from serving import load_model
from topo import InputError

from .test_data_files import Stored, safetensors, saved

__all__ = ["saved"]

DATA = Path(__file__).parent.parent / "data" / "expert-load"


def written(path: Path, data: Any) -> Path:
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def test_eplb_weights_weigh_its_own_placement_as_published() -> None:
    """Published loads of the GPUs, copies sharing evenly."""
    loads = read_loads(DATA / "eplb-2layer-12expert.json")
    gpus = read_plan(DATA / "eplb-2layer-12expert.json").gpu_load(loads.load)
    assert gpus[0].tolist() == [121.5, 86.5, 125, 113, 147.5, 131.5, 156, 152]
    assert gpus[1].tolist() == [173, 179.5, 120.5, 172, 123, 152, 118.5, 117.5]
    assert (gpus.max(axis=1) / gpus.mean(axis=1)).round(4).tolist() == [1.2081, 1.2422]


def test_sglang_counts_by_step(saved: Any, tmp_path: Path) -> None:
    counts = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    tensor = Stored(counts, "0")
    path = saved("a.pt", {"rank": 0, "logical_count": tensor, "average_utilization_rate_over_window": None}, [tensor])
    same = written(tmp_path / "a.json", {"rank": 0, "logical_count": counts.tolist()})
    for loads in (read_loads(path), read_loads(same)):
        assert loads.kind == "sglang"
        assert loads.history is not None
        assert loads.history.shape == (2, 3, 4)
        assert loads.load.tolist() == counts.sum(axis=0).tolist()


def test_sglang_passes_of_all_ranks(saved: Any, tmp_path: Path) -> None:
    """Two ranks, two passes; slots 0 and 2 hold expert 0, slot 1 expert 1."""
    placed = Stored(np.array([[0, 1, 0]], dtype=np.int32), "9")
    for rank in (0, 1):
        counts = [Stored(np.array([[1, 10, 100]], dtype=np.int32) * (1 + rank + step), str(step)) for step in (0, 1)]
        records = [{"forward_pass_id": step, "rank": rank, "gatherer_key": "primary", "global_physical_count": one}
                   for step, one in enumerate(counts)]  # fmt: skip
        saved(f"r{rank}.pt", {"records": records, "last_physical_to_logical_map": placed}, [placed, *counts])
    loads = read_loads(tmp_path)
    assert loads.history is not None
    assert loads.history.tolist() == [[[303, 30]], [[505, 50]]]


def test_sglang_csv(tmp_path: Path) -> None:
    loads = read_loads(written(tmp_path / "a.csv", "layer_id,expert_id,count\n1,0,5\n1,2,7\n3,1,2\n"))
    assert loads.layers == (1, 3)
    assert loads.load.tolist() == [[5, 0, 7], [0, 2, 0]]


def test_vllm_slots_counted_for_their_experts(tmp_path: Path) -> None:
    line = {"record_type": "eplb_load_stats", "version": 1, "step": 7, "num_ranks": 2,
            "expert_load": [[10, 1, 5], [2, 8, 1]], "p2l_map": [[0, 1, 0], [1, 0, 1]]}  # fmt: skip
    meta = {"record_type": "eplb_load_meta", "version": 1, "num_ranks": 2}
    loads = read_loads(written(tmp_path / "a.jsonl", "\n".join(map(json.dumps, (meta, line, line)))))
    assert loads.kind == "vllm"
    assert loads.load.tolist() == [[30, 2], [16, 6]]
    assert loads.history is not None
    assert len(loads.history) == 2


def test_tensorrt_llm_counts_know_their_rank(tmp_path: Path) -> None:
    written(tmp_path / "meta_info.json", {"num_experts": 4, "num_experts_per_token": 2})
    for rank in range(11):
        counts = {f"{step}_{layer}": np.array([rank, layer, step, 1]) for step in (100, 101) for layer in (3, 4)}
        (tmp_path / f"rank{rank}.safetensors").write_bytes(safetensors(counts))
    (tmp_path / "rank0_raw.safetensors").write_bytes(b"not read")
    loads = read_loads(tmp_path)
    assert loads.layers == (3, 4)
    assert loads.sources is not None
    assert loads.sources[1].tolist() == [[2 * rank, 8, 201, 2] for rank in range(11)]  # rank 10 after rank 9
    assert loads.load[0].tolist() == [110, 66, 2211, 22]
    assert loads.history is None


def test_counts_and_logs(tmp_path: Path) -> None:
    nested = read_loads(written(tmp_path / "a.json", {"0": {"0": 123, "1": 256}, "1": {"1": 9}}))
    assert nested.load.tolist() == [[123, 256], [0, 9]]
    text = "run 4: PASS\nexpert load:\n  expert 0: 3 tokens (15.0%)\n  expert 1: 1 token (5.0%)\n"
    assert read_loads(written(tmp_path / "log.txt", text + text.replace("3 tok", "8 tok"))).load.tolist() == [
        [3, 1], [8, 1],
    ]  # fmt: skip


def test_tokens_by_source(tmp_path: Path) -> None:
    loads = read_loads(written(tmp_path / "a.json", {"sources": [[[1, 2, 3], [10, 20, 30]]]}))
    assert loads.sources is not None
    assert loads.sources.tolist() == [[[1, 2, 3], [10, 20, 30]]]
    assert loads.load.tolist() == [[11, 22, 33]]


def test_bare_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((5, 2, 3)))
    loads = read_loads(tmp_path / "a.npy")
    assert (loads.load == 5).all()
    assert loads.history is not None
    one = read_loads(written(tmp_path / "b.json", [1, 2, 3]))
    assert one.load.tolist() == [[1, 2, 3]]
    assert "one layer" in one.notes[0]
    assert "count as uniform" in read_loads(written(tmp_path / "c.json", [[0, 0], [1, 0]])).notes[0]
    assert json.loads(json.dumps(one.to_dict()))["load"] == [[1, 2, 3]]


def test_rows_of_a_model(tmp_path: Path) -> None:
    """DeepSeek-V3: 61 layers, the first three dense."""
    model = load_model("deepseek-v3")
    rows = np.arange(61.0)[:, None] * np.ones(256)
    np.save(tmp_path / "a.npy", rows)
    whole = read_loads(tmp_path / "a.npy").for_model(model)
    assert whole.load[:, 0].tolist() == list(range(3, 61))
    assert whole.layers == tuple(range(3, 61))
    assert "3 of 61 layers have no experts" in whole.notes[-1]
    np.save(tmp_path / "b.npy", rows[3:])
    assert read_loads(tmp_path / "b.npy").for_model(model).load[0, 0] == 3
    np.save(tmp_path / "c.npy", rows[:1])
    assert read_loads(tmp_path / "c.npy").for_model(model).load.shape == (58, 256)
    csv = "layer_id,expert_id,count\n" + "".join(f"{i},255,{i}\n" for i in range(60, 2, -1))
    assert read_loads(written(tmp_path / "d.csv", csv)).for_model(model).load[:, 255].tolist() == list(range(3, 61))
    for count, said in ((60, "60 in the file"), (62, "62 in the file")):
        np.save(tmp_path / "e.npy", np.ones((count, 256)))
        with pytest.raises(InputError, match=said):
            read_loads(tmp_path / "e.npy").for_model(model)
    with pytest.raises(InputError, match="has 256"):
        read_loads(DATA / "eplb-2layer-12expert.json").for_model(model)
    with pytest.raises(InputError, match="not in the file"):
        read_loads(written(tmp_path / "f.csv", csv.replace("17,255,17\n", ""))).for_model(model)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"weight": [[1, NaN]]}', "must be finite"), ('{"weight": [[1, -2]]}', "zero or more"),
        ('{"weight": [[1], [1, 2]]}', "row for each layer"), ('{"weight": [["a"]]}', "must be numbers"),
        ('{"weight": []}', "shape"), ('{"weight": [[[[1]]]]}', "shape"), ('{"other": 1}', "no expert loads"),
        ('{"phy2log": [[0]]}', "Use read_plan"), ("hello", "no expert loads"), ("", "no expert loads"),
        ('{"record_type": "eplb_load_stats"}', "no whole file of kind vllm"),
        ('{"record_type": "eplb_load_stats", "expert_load": [[1, 2]], "p2l_map": [[0]]}', "do not belong"),
        ("layer_id,expert_id,count\n1,2\n", "no whole file of kind sglang-csv"),
        ("expert 1: 3 tokens", "in order from 0"), ("layer_id,expert_id,count\n1,999999999,2\n", "more than any layer"),
        ('{"sources": ["a"]}', "kind sources"),
        ('{"sources": [[1]]}', "shape"), ("layer_id,expert_id,count\n", "no whole file"),
    ],
)  # fmt: skip
def test_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        read_loads(written(tmp_path / "a", text))


def test_folders_and_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither meta_info"):
        read_loads(tmp_path)
    with pytest.raises(InputError, match="is not there"):
        read_loads(tmp_path / "none")


def test_copies_of_an_expert_are_added_up() -> None:
    assert logical([[[1, 2, 4]], [[8, 16, 32]]], [[1, 0, 1]]).tolist() == [[[2, 5]], [[16, 40]]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "[true, 1, 1]"), ("b.json", '{"weight": [[1, 2], [false, 3]]}'),
        ("c.csv", "layer_id,expert_id,count\n0,0,3\n0,-1,5\n"), ("d.csv", "layer_id,expert_id,count\n-1,0,3\n"),
    ],
)  # fmt: skip
def test_truths_and_numbers_below_zero_are_refused(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError):
        read_loads(path)
