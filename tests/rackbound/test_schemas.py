"""Does everything `--json` prints keep to the schema of its name, and is each schema strict?"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rackbound import topo

from .command import DATA, MY_RACK, SCHEMAS, run

NAMES = sorted(path.name for path in SCHEMAS.glob("*.json"))
ROOF = SCHEMAS.parent


def schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SCHEMAS / f"{name.replace('/', '-')}.json").read_text(encoding="utf-8"))
    return loaded


def complaints(answer: dict[str, Any]) -> list[str]:
    """Return what is wrong with an answer by the schema it names."""
    found = Draft202012Validator(schema(answer["schema"])).iter_errors(answer)
    return [f"{error.json_path}: {error.message[:200]}" for error in found]


# --- every answer ----------------------------------------------------------------------------------------------------

#: Every design, of a pod of tori a small slice.
DESIGNS = [f"{name}-2x2x1" if name in ("tpu-v4", "tpu-v5p", "tpu-v7") else name for name in topo.list_designs()]
HGX, MIXTRAL = "hgx-h100-8", ("--model", "mixtral-8x7b")
COMMANDS: dict[str, list[tuple[str, ...]]] = {
    "cost/1": [
        ("cost", HGX, "all_to_all", "--bytes", "1GB"),
        ("cost", HGX, "all_to_all", "--bytes", "1GB", "--ranks", "1"),
        ("cost", "gb200-nvl72", "all_to_all", "--bytes", "144GB", "--domains", "2", "--set", "scale_out.radix=128"),
        ("cost", "mi300x-8", "send", "--bytes", "1 MiB", "--domains", "2"),
        ("cost", HGX, "all_to_all", "--bytes", "1GB", "--domains", "2", "--nodes", "host1"),
        ("cost", HGX, "all_to_all", "--bytes", "1GB", "--domains", "4", "--nodes", "host[0,3]", "--suggest"),
        ("cost", HGX, "all_reduce", "--bytes", "1GB", "--algorithm", "best", "--domains", "2", "--pipelined"),
        ("cost", HGX, "broadcast", "--bytes", "1GB", "--algorithm", "binomial", "--phased"),
        ("cost", HGX, "all_reduce", "--bytes", "1GB", "--profile", "nccl-hopper", "--sensitivity"),
        ("cost", HGX, "barrier"), ("cost", HGX, "all_to_all", "--bytes", "0B"),
        ("cost", HGX, "all_to_all", "--domains", "2", "--expect", "nccl-tests", "--sensitivity"),
        ("cost", HGX, "all_reduce", "--domains", "2", "--bytes", "1 MiB", "--explain"),
        ("cost", HGX, "moe_dispatch", "--domains", "2", "--tokens", "1.5", "--hidden", "64", "--top-k", "2",
         "--experts", "16", "--copies", "per_domain", "--limit", "1"),
        ("cost", HGX, "all_to_all", "--bytes", "1GB", "--domains", "2", "--routing", "hash", "--queue-pairs", "2"),
    ],
    "step/1": [
        ("step", HGX, *MIXTRAL), ("step", HGX, "--model", "llama-3.1-70b", "--batch", "8"),
        ("step", "gb200-nvl72", "--model", "deepseek-v3", "--ep", "72", "--pp", "2", "--domains", "2"),
        ("step", HGX, "--model", "deepseek-v3"),
        ("step", "gb200-nvl72", "--model", "deepseek-v3", "--ep", "128"),
        ("step", HGX, *MIXTRAL, "--ep", "4", "--tp", "2", "--redundant", "2", "--time", "two_batch"),
        ("step", HGX, *MIXTRAL, "--profile", "nccl-hopper", "--expert-profile", "deepep-normal"),
        ("step", HGX, *MIXTRAL, "--ep", "8", "--tp", "8", "--batch", "16", "--engine", "vllm-hopper"),
        ("step", HGX, *MIXTRAL, "--phase", "prefill", "--ep", "8", "--cp", "2", "--cached", "1024"),
        ("step", HGX, "--model", "glm-4.5", "--phase", "chunked", "--chunk", "512", "--draft", "2", "--acceptance",
         "0.8", "--drafter", "free", "--assume", "num_hidden_layers=46", "--copies", "per_gpu"),
    ],
    "sweep/1": [("sweep", str(DATA / "study-small.toml"))],
    "bound/1": [
        ("bound", HGX, *MIXTRAL), ("bound", HGX, *MIXTRAL, "--domains", "1", "--overlap", "full"),
        ("bound", HGX, "--model", "llama-3.1-70b"), ("bound", HGX, *MIXTRAL, "--budget", "1us"),
        ("bound", HGX, *MIXTRAL, "--set", "scale_out.latency='1 ms'"),
        ("bound", HGX, *MIXTRAL, "--assume", "num_hidden_layers=16"),
    ],
    "bound-failures/1": [
        ("bound", HGX, *MIXTRAL, "--failures"), ("bound", HGX, "--model", "llama-3.1-70b", "--failures"),
        ("bound", "hgx-h200-8", "--model", "deepseek-v3", "--failures", "--domains", "1"),
    ],
    "place/1": [
        ("place", HGX, *MIXTRAL), ("place", HGX, "--model", "llama-3.1-70b", "--batch", "8"),
        ("place", HGX, "--model", "deepseek-v3"), ("place", HGX, *MIXTRAL, "--ep", "4", "--pp", "2"),
        ("place", HGX, *MIXTRAL, "--time-limit", "10 s", "--assume", "num_hidden_layers=16"),
    ],
    "place-load/1": [
        ("place", HGX, *MIXTRAL, "--replicas", "8"), ("place", HGX, *MIXTRAL, "--ep", "4", "--explain"),
        ("place", HGX, *MIXTRAL, "--domains", "2", "--replicas", "8", "--balance", "1.3"),
        ("place", HGX, *MIXTRAL, "--domains", "2", "--replicas", "8", "--balance", "1.3", "--curve", "1.01,1.3",
         "--slots", "3"),
        ("place", HGX, *MIXTRAL, "--domains", "2", "--replicas", "8", "--objective", "busiest_link,heaviest_gpu",
         "--enough", "busiest_link=1"),
    ],
    "design-list/1": [("design", "list")],
    "design-show/1": [
        *(("design", "show", name) for name in DESIGNS),
        ("design", "show", HGX, "--domains", "9", "--set", "scale_out.oversubscription=2"),
        ("design", "show", HGX, "--set", "scale_out.switch_price='20000 $'", "--set", "chip.price='30000 $'"),
    ],
    "design-compare/1": [("design", "compare", "hgx-h100-8", "mi300x-8"), ("design", "compare", "gb200-nvl72")],
    "design-check/1": [("design", "check", name) for name in DESIGNS],
    "model-list/1": [("model", "list")],
    "model-show/1": [
        ("model", "show", "deepseek-v3"), ("model", "show", "gpt-oss-120b"), ("model", "show", "llama-3.1-405b"),
        ("model", "show", str(DATA / "hf-config" / "Qwen3-235B-A22B.config.json")),
        ("model", "show", str(DATA / "hf-config" / "Nemotron-H-56B-Base-8K.config.json"), "--layers"),
        ("model", "show", "mixtral-8x7b", "--assume", "num_hidden_layers=16", "--assume", "hidden_size=@hidden_size"),
    ],
    "doctor/1": [("doctor",)],
    "read/1": [
        ("read", str(DATA / "readers-host" / "topo-m" / "b200-shared-nic-pairs-cut.txt")),
        ("read", *(str(path) for path in sorted((DATA / "readers-host").rglob("*o*.xml")))),
    ],
    "join/1": [
        ("join", str(DATA / "readers-fabric" / "slurm-tree-tc3.conf"), "--hosts", "all",
         str(DATA / "readers-host" / "topo-m" / "c4140-v100-trailing-tabs.txt")),
        ("join", str(DATA / "readers-fabric" / "ibnetdiscover-sim-ft2_32.txt"),
         str(DATA / "readers-fabric" / "opensm" / "ft2_32_dor.lfts.dump")),
    ],
    "calibrate/1": [
        ("calibrate", str(DATA / "logs" / "aws-p5-1node-tagged.txt"), "--design", HGX),
        ("calibrate", *(str(DATA / "logs" / f"{name}.txt") for name in ("gcp-a3-ultra", "aws-p5-1node-tagged")),
         "--design", HGX, "--domains", "3", "--set", "scale_up.bandwidth='400 GB/s'"),
    ],
    "lecture/1": [
        ("lecture", "--claim", "20", "--claim", "84"),
        ("lecture", "--design", HGX, *MIXTRAL, "--claim", "1", "--claim", "10", "--claim", "55"),
        ("lecture", "--claim", "39", "--claim", "72", "--design", "tpu-v6e", "--model", "llama-3.1-70b",
         "--batch", "64", "--set", "chip.hbm_bandwidth=2 TB/s"),
    ],
    "failures/1": [
        ("failures", HGX, "--domains", "1", "--doubles", "3"), ("failures", "mi300x-8", "--ranks", "2", "--seed", "1"),
        ("failures", HGX, "all_reduce", "--algorithm", "ring", "--routing", "even", "--domains", "1"),
        ("failures", HGX, "--domains", "1", "--profile", "nccl-hopper"),
        ("failures", HGX, "send", "--bytes", "1 MiB", "--set", "design.domain_size=4"),
        ("failures", "mi300x-8", "moe_combine", "--tokens", "9", "--hidden", "7", "--top-k", "2",
         "--experts", "16", "--limit", "2", "--groups", "4"),
    ],
    "size/1": [
        ("size", HGX, *MIXTRAL, "--requests", "500", "--tp", "1,2", "--prompt", "500:3,4000:1"),
        ("size", HGX, *MIXTRAL, "--requests", "5", "--tpot", "1us"),
        ("size", "gb200-nvl72", "--model", "deepseek-v3", "--requests", "2e4", "--prompt", "2000..9000", "--ep", "64"),
    ],
    "handover/1": [
        ("handover", HGX, *MIXTRAL), ("handover", HGX, *MIXTRAL, "--decode", "ep=4,tp=2", "--cached", "4000"),
    ],
    "simulate/1": [
        ("simulate", HGX, "all_to_all", "--bytes", "1GB", "--domains", "2"), ("simulate", HGX, "barrier"),
        ("simulate", HGX, "all_reduce", "--bytes", "1 MiB", "--profile", "nccl-hopper"),
        ("simulate", HGX, "all_reduce", "--bytes", "1GB", "--algorithm", "best", "--no-barriers"),
        ("simulate", "mi300x-8", "send", "--bytes", "1 MiB", "--routing", "hash", "--queue-pairs", "2", "--seed", "3"),
        ("simulate", HGX, "all_to_all", "--bytes", "0B", "--ranks", "4"),
        ("simulate", HGX, "moe_dispatch", "--tokens", "9", "--hidden", "7", "--top-k", "2", "--experts", "16"),
    ],
    "validate/1": [
        ("validate", str(DATA / "measured-few.csv")),
        ("validate", str(DATA / "logs" / "aws-p5-1node-tagged.txt"), "--design", HGX, "--profile", "nccl-model-h100"),
    ],
}  # fmt: skip


def _short(arguments: tuple[str, ...]) -> str:
    return " ".join(Path(word).name for word in arguments)


@pytest.mark.parametrize(
    ("name", "arguments"), [(name, row) for name, rows in COMMANDS.items() for row in rows],
    ids=lambda value: _short(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_every_answer_keeps_to_its_schema(name: str, arguments: tuple[str, ...]) -> None:
    found = run(*arguments, "--json")
    assert (found.code, found.err) == (0, "")
    answer = found.answer
    assert list(answer) == ["rackbound", "schema", "inputs", "assumptions", "results"]
    assert answer["schema"] == name
    assert complaints(answer) == []


def test_a_design_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "my-rack.toml"
    path.write_text(MY_RACK)
    for row in (("design", "show"), ("design", "check")):
        assert complaints(run(*row, path, "--json").answer) == []
    path.write_text(MY_RACK[: MY_RACK.index("[scale_out]")])
    alone = run("design", "show", path, "--json").answer
    assert complaints(alone) == []
    assert alone["results"]["measures"]["gpus"] == 4
    assert alone["inputs"]["domains"] == 1  # without a fabric one domain is all there is, and said so


def test_a_graph_file(tmp_path: Path) -> None:
    path = tmp_path / "torus.json"
    topo.write(topo.build("torus", dims=(5, 5)), path)
    assert complaints(run("design", "show", path, "--json").answer) == []
    assert complaints(run("design", "compare", path, "--json").answer) == []


def test_loads_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "loads.json"
    path.write_text(json.dumps([8, 4, 2, 1, 1, 1, 1, 1]))
    answer = run("place", HGX, *MIXTRAL, "--ep", "4", "--pp", "1", "--batch", "8", "--loads", path, "--json").answer
    assert complaints(answer) == []
    assert answer["results"]["status"] == "optimal"
    assert answer["results"]["objective"] == pytest.approx(9 / (19 / 4))  # 8 + 1 on a GPU of two slots, mean 19 / 4


def test_an_infinite_number_is_a_word() -> None:
    answer = run("bound", HGX, "--model", "deepseek-v3", "--set", "scale_out.latency='1 ms'", "--json").answer
    assert answer["results"]["scale_out_needed"] == "Infinity"
    assert complaints(answer) == []


# --- the schemas -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_each_schema_is_one(name: str) -> None:
    loaded = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    assert loaded["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(loaded)
    assert loaded["properties"]["schema"]["const"].replace("/", "-") + ".json" == name


def _objects(node: Any, path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema of an object with named properties."""
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield path, node
        for key, value in node.items():
            yield from _objects(value, f"{path}.{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _objects(value, f"{path}[{i}]")


@pytest.mark.parametrize("name", NAMES)
def test_each_schema_is_strict(name: str) -> None:
    """No key may be missing and none be added, save in maps, whose values have a schema of their own."""
    loose = []
    for path, node in _objects(json.loads((SCHEMAS / name).read_text(encoding="utf-8"))):
        closed = node.get("additionalProperties") is False or node.get("maxProperties") == 0
        mapped = isinstance(node.get("additionalProperties"), dict) and "properties" not in node
        whole = "patternProperties" in node or sorted(node.get("required", [])) == sorted(node.get("properties", {}))
        if not (mapped or (closed and whole)):
            loose.append(path)
    assert loose == []


@pytest.mark.parametrize("name", NAMES)
def test_every_definition_is_used(name: str) -> None:
    text = (SCHEMAS / name).read_text(encoding="utf-8")
    defined = set(json.loads(text).get("$defs", {}))
    assert set(re.findall(r'"#/\$defs/(\w+)"', text)) == defined


def test_a_definition_is_the_same_in_every_schema() -> None:
    seen: dict[str, Any] = {}
    for name in NAMES:
        for key, value in json.loads((SCHEMAS / name).read_text(encoding="utf-8")).get("$defs", {}).items():
            assert seen.setdefault(key, value) == value, f"{key} in {name}"


def test_every_schema_name_has_a_file_and_every_file_a_command() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(ROOF.glob("*.py")))
    emitted = set(re.findall(r'envelope\(\s*"([a-z-]+/\d+)"', text))
    assert {f"{name.replace('/', '-')}.json" for name in emitted} == set(NAMES)
    assert set(COMMANDS) | {"evaluate/1"} == emitted


def test_schemas_ship_with_the_package() -> None:
    shipped = resources.files("rackbound") / "schemas"
    assert sorted(entry.name for entry in shipped.iterdir() if entry.name.endswith(".json")) == NAMES


# --- a schema can fail -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bound() -> dict[str, Any]:
    return run("bound", HGX, *MIXTRAL, "--json").answer


def test_a_missing_or_added_key_is_found(bound: dict[str, Any]) -> None:
    for part in ("", "inputs", "results"):
        for key in bound[part] if part else bound:
            if key != "schema":
                broken = copy.deepcopy(bound)
                del (broken[part] if part else broken)[key]
                assert complaints(broken), f"{part} without {key}"
        more = copy.deepcopy(bound)
        (more[part] if part else more)["more"] = 1
        assert complaints(more), f"{part} with one more"


@pytest.mark.parametrize(
    ("key", "value"),
    [("width", -1), ("width", 8.5), ("n_bytes", "1 GB"), ("n_bytes", None), ("status", "fits"), ("one_domain", [1]),
     ("one_domain", [1, 2, 3]), ("scale_out_needed", "infinite"), ("scale_out_needed", -1.0), ("step_budget", 0),
     ("one_domain_bounds", "yes"), ("overlap", "some"), ("curve", None)],
)  # fmt: skip
def test_a_wrong_value_is_found(key: str, value: object, bound: dict[str, Any]) -> None:
    broken = copy.deepcopy(bound)
    broken["results"][key] = value
    assert complaints(broken)


def test_both_batches_are_found(bound: dict[str, Any]) -> None:
    broken = copy.deepcopy(bound)
    broken["inputs"]["batch"] = 8
    assert complaints(broken)
