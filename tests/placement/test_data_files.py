"""Are files of numbers read as they are laid out, cut ones refused, and is nothing in them run?"""

from __future__ import annotations

import json
import pickle
import struct
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from placement._data_files import data_of
from topo import InputError

COUNTS = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


def safetensors(arrays: dict[str, NDArray[Any]]) -> bytes:
    """Lay arrays out as https://github.com/huggingface/safetensors says: size, header, buffers."""
    names = {"int32": "I32", "int64": "I64", "float32": "F32"}
    header, buffers = {}, b""
    for key, array in arrays.items():
        end = len(buffers) + array.nbytes
        header[key] = {"dtype": names[str(array.dtype)], "shape": array.shape, "data_offsets": [len(buffers), end]}
        buffers += array.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + buffers


class Stored:
    """A tensor as `torch.save` pickles it: a call that rebuilds it from a storage of its own file."""

    def __init__(self, array: NDArray[Any], key: str) -> None:
        self.array, self.key = array, key

    def __reduce__(self) -> tuple[Any, ...]:
        torch = sys.modules["torch"]
        strides = tuple(step // self.array.itemsize for step in self.array.strides)
        rebuild = sys.modules["torch._utils"]._rebuild_tensor_v2
        return rebuild, (Storage(torch.IntStorage, self), 0, self.array.shape, strides, False, None)


class Storage:
    def __init__(self, kind: Any, of: Stored) -> None:
        self.pid = ("storage", kind, of.key, "cuda:0", of.array.size)


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A function that saves like torch: the names it pickles exist only while it does."""

    def save(name: str, data: Any, stored: list[Stored]) -> Path:
        with monkeypatch.context() as patched:
            modules = {key: ModuleType(key) for key in ("torch", "torch._utils")}
            modules["torch"].IntStorage = type("IntStorage", (), {"__module__": "torch"})  # type: ignore[attr-defined]
            exec("def _rebuild_tensor_v2(): ...", modules["torch._utils"].__dict__)
            for key, module in modules.items():
                patched.setitem(sys.modules, key, module)
            with zipfile.ZipFile(tmp_path / name, "w") as archive:
                with archive.open("archive/data.pkl", "w") as file:
                    pickler = pickle.Pickler(file, protocol=2)
                    pickler.persistent_id = lambda x: x.pid if isinstance(x, Storage) else None  # type: ignore[method-assign]
                    pickler.dump(data)
                for one in stored:
                    base = one.array if one.array.flags.c_contiguous else one.array.T
                    archive.writestr(f"archive/data/{one.key}", base.tobytes())
                archive.writestr("archive/version", "3\n")
        return tmp_path / name

    return save


def test_tensors_without_torch(saved: Any) -> None:
    tensors = [Stored(COUNTS, "0"), Stored(COUNTS[0].T, "1")]
    path = saved("record.pt", {"rank": 0, "logical_count": tensors[0], "turned": tensors[1]}, tensors)
    found = data_of(path)
    assert found["rank"] == 0
    np.testing.assert_array_equal(found["logical_count"], COUNTS)
    np.testing.assert_array_equal(found["turned"], COUNTS[0].T)


def test_nothing_is_run(saved: Any) -> None:
    class Harm:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (Path("harm"),)

    path = saved("harm.pt", Harm(), [])
    with pytest.raises(InputError, match="no tensor"):
        data_of(path)
    assert not Path("harm").exists()


def test_a_tensor_stays_in_its_storage(saved: Any) -> None:
    wide = Stored(np.lib.stride_tricks.as_strided(COUNTS, (10**9,), (0,)), "0")
    wide_file = Stored(COUNTS, "0")
    with pytest.raises(InputError, match="beyond its storage"):
        data_of(saved("wide.pt", wide, [wide_file]))


def test_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", COUNTS)
    np.savez(tmp_path / "b.npz", weight=COUNTS)
    (tmp_path / "c.safetensors").write_bytes(safetensors({"weight": COUNTS}))
    np.testing.assert_array_equal(data_of(tmp_path / "a.npy"), COUNTS)
    for name in ("b.npz", "c.safetensors"):
        np.testing.assert_array_equal(data_of(tmp_path / name)["weight"], COUNTS)


@pytest.mark.parametrize("name", ["a.npy", "b.npz", "c.safetensors"])
def test_cut_off(name: str, tmp_path: Path) -> None:
    test_arrays(tmp_path)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="cut off"):
        data_of(path)


def test_text(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for text, said in (
        ('{"a": [1]}', {"a": [1]}), ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ("initial_global_assignments: {3: [1]}", {"initial_global_assignments": {3: [1]}}),
        ("expert 0: 3 tokens", "expert 0: 3 tokens"), ("\ufeff[1]", [1]),
    ):  # fmt: skip
        path.write_text(text, encoding="utf-8")
        assert data_of(path) == said
    path.write_text("initial_global_assignments: &x [1]\nb: [*x, *x]")
    with pytest.raises(InputError, match="aliases"):
        data_of(path)
    path.write_bytes(b"\xff\xfe1")
    with pytest.raises(InputError, match="cut off or no such"):
        data_of(path)
