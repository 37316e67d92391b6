"""Configs as they were published, and what is read of a changed one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serving import Model, load_model
from topo import InputError

CONFIGS = Path(__file__).parents[1] / "data" / "hf-config"
FP8: dict[str, object] = {"quant_method": "fp8"}


def case(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((CONFIGS / f"{name}.config.json").read_text())
    return content


def load(tmp_path: Path, content: object) -> Model:
    path = tmp_path / "config.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return load_model(path)


def windows(model: Model) -> tuple[int | None, ...]:
    return tuple(mixer.caches[0].window for mixer in model.mixers)


def faults(tmp_path: Path, content: object) -> dict[str, str]:
    with pytest.raises(InputError) as error:
        load(tmp_path, content)
    assert all(fault.file == str(tmp_path / "config.json") for fault in error.value.faults)
    return {fault.place: str(fault) for fault in error.value.faults}
