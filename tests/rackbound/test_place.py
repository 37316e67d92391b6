"""Does `rackbound place --load` compare, explain, save what engines load, and refuse before it works?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from placement import read_plan
from serving import load_model

from .command import run

MODEL = ("--model", "mixtral-8x7b")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "counts.json"
    path.write_text(json.dumps({"rank": 0, "logical_count": np.tile([8, 4, 2, 1, 1, 1, 1, 1], (3, 32, 1)).tolist()}))
    return path


def test_before_and_after(recording: Path) -> None:
    said = run("place", "hgx-h100-8", "--domains", "2", *MODEL, "--load", recording, "--replicas", "8", "--balance",
               "1.3", "--explain")  # fmt: skip
    assert (said.code, said.err) == (0, "")
    words = " ".join(said.out.split())
    parts = (
        "before after change", "bytes between domains", "busiest link", "step, one operation after the other",
        "Heaviest layers", "Experts with most copies", "copies of experts", "load alike from all GPUs",
    )  # fmt: skip
    for part in parts:
        assert part in words
    # Expert 0 alone on a GPU of 16 has 8 of 19 tokens.
    assert f"{8 / 19 * 16:.4f}" in words


def test_a_file_that_an_engine_loads(recording: Path, tmp_path: Path) -> None:
    saved = tmp_path / "map.yaml"
    done = run("place", "hgx-h100-8", *MODEL, "--load", recording, "--replicas", "8", "--save", saved, "--format",
               "tensorrt-llm")  # fmt: skip
    assert (done.code, done.err.split()) == (0, ["wrote", str(saved), "(tensorrt-llm)"])
    plan = read_plan(saved, gpus=8, model=load_model("mixtral-8x7b"))
    assert plan.slot_expert.shape == (32, 16)
    again = run("place", "hgx-h100-8", *MODEL, "--load", recording, "--replicas", "8", "--current", saved, "--json")
    assert again.answer["results"]["migration"]["copies"] == 0


def test_the_plan_and_the_recording_in_a_step(recording: Path, tmp_path: Path) -> None:
    """A saved plan and an engine's map of it: the same step, and what it saves is the difference of the two steps."""
    saved, yaml = tmp_path / "plan.json", tmp_path / "map.yaml"
    words = ("place", "hgx-h100-8", *MODEL, "--load", recording, "--replicas", "8")
    assert run(*words, "--save", saved).code == run(*words, "--save", yaml, "--format", "tensorrt-llm").code == 0
    step = ("step", "hgx-h100-8", *MODEL, "--loads", recording)
    plain, planned, mapped = (run(*step, *more, "--json").answer["results"]
                              for more in ((), ("--plan", saved), ("--plan", yaml)))  # fmt: skip
    gained = planned["imbalance"]["gained"]
    assert gained == pytest.approx(plain["serial"] - planned["serial"])
    assert gained > 0
    assert mapped["serial"] == pytest.approx(planned["serial"])
    assert plain["imbalance"]["load"] == pytest.approx(8 / 19 * 8)  # expert 0 alone on one of eight GPUs
    words_said = " ".join(run(*step, "--plan", saved).out.split())
    assert "the plan saves" in words_said
    assert "from one domain" not in words_said  # the plan is for one width
    assert run(*step, "--plan", saved, "--ep", "4").code == 2


def test_figures_and_json(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("place", "hgx-h100-8", "--domains", "2", *MODEL, "--load", recording, "--replicas", "8", "--balance",
               "1.3", "--out", out).code == 0  # fmt: skip
    assert sorted(path.name for path in out.iterdir()) == [
        "place.json", "placement.png", "placement.svg", "traffic-after.png", "traffic-after.svg", "traffic-before.png",
        "traffic-before.svg",
    ]  # fmt: skip
    assert json.loads((out / "place.json").read_text())["schema"] == "place-load/1"


def test_the_curve_beside_the_placement(recording: Path, tmp_path: Path) -> None:
    """Fewer cross the heavier a GPU may be; each point above its bound, printed, drawn and in the JSON."""
    words = (
        "place",
        "hgx-h100-8",
        "--domains",
        "2",
        *MODEL,
        "--load",
        recording,
        "--replicas",
        "8",
        "--balance",
        "1.3",
    )
    done = run(*words, "--curve", "2,1.3", "--out", tmp_path / "out")
    assert done.code == 0
    assert "What balance costs" in done.out
    assert {"curve.png", "curve.svg"} <= {path.name for path in (tmp_path / "out").iterdir()}
    curve = json.loads((tmp_path / "out" / "place.json").read_text())["results"]["curve"]
    crossing, bound = (np.array(curve[name])[:, 0] for name in ("crossing", "bound"))
    assert curve["balance"] == [1.3, 2.0]
    assert crossing[1] <= crossing[0]
    assert (bound <= crossing + 1e-9).all()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--domains", "2", "--curve", "1.1,much"), "must be numbers, one or more each"),
        (("--domains", "2", "--curve", "0.9"), "must be numbers, one or more each"),
        (("--curve", "1.1"), "needs GPUs in several domains"),
        (("--domains", "2", "--ep", "8", "--curve", "1.1"), "needs GPUs in several domains"),
        (("--slots", "1"), "must be a whole number, 2 or more, for 16 copies on 8 GPUs"),
    ],
)
def test_curves_and_slots_that_cannot_be(words: tuple[str, ...], says: str, recording: Path) -> None:
    done = run("place", "hgx-h100-8", *MODEL, "--load", recording, "--replicas", "8", *words)
    assert (done.code, done.out) == (2, "")
    assert says in " ".join(done.err.split())


def test_all_that_is_wrong_is_said_at_once(recording: Path, tmp_path: Path) -> None:
    done = run("place", "hgx-h100-9", *MODEL, "--load", recording, "--pp", "2", "--save", tmp_path / "no" / "file",
               "--format", "trtllm")  # fmt: skip
    assert done.code == 2
    for part in ("hgx-h100-8", "--pp = 2", "--save", "--format = 'trtllm'"):
        assert part in done.err
    other = run("place", "hgx-h100-8", *MODEL, "--loads", recording, "--format", "ascend", "--time-limit", "1s")
    for part in ("--time-limit", "is for plans without a comparison", "needs a file to write"):
        assert part in other.err
    assert "balance = 1.0" in run("place", "hgx-h100-8", *MODEL, "--load", recording, "--balance", "1").err
    none = run("place", "hgx-h100-8", *MODEL, "--load", tmp_path / "none.json")
    assert (none.code, none.out) == (2, "")
    assert "is not there" in none.err


def test_loads_are_the_same_option(recording: Path) -> None:
    one, two = (run("place", "hgx-h100-8", *MODEL, name, recording, "--json").answer for name in ("--load", "--loads"))
    assert one == two
    assert one["schema"] == "place-load/1"


def test_objectives_in_turn_by_weight_and_enough(recording: Path) -> None:
    words = ("place", "hgx-h100-8", "--domains", "2", *MODEL, "--load", recording, "--replicas", "8", "--json")
    plain = run(*words, "--balance", "3.5").answer["results"]["after"]
    link = run(*words, "--objective", "busiest_link").answer["results"]
    assert link["after"]["hot_seconds"] <= plain["hot_seconds"] * (1 + 1e-9)
    assert link["status"].startswith("feasible: busiest_link ")
    still = run(*words, "--objective", "heaviest_gpu,moved", "--enough", "heaviest_gpu=100").answer["results"]
    assert still["migration"]["copies"] == 32 * 8  # the spare copies alone
    both = run(*words, "--objective", "heaviest_gpu=1,crossing=1").answer["results"]["after"]
    summed = [one["heaviest"] + sum(one["crossing"]) / 32 for one in (both, link["after"])]
    assert summed[0] <= summed[1] + 1e-9


def test_rules_from_a_file(recording: Path, tmp_path: Path) -> None:
    """Copies in both boxes, one expert pinned: kept to in every layer of the plan that is saved."""
    rules, saved = tmp_path / "rules.toml", tmp_path / "plan.json"
    rules.write_text('apart = "domain"\n[pin]\n3 = 9\n[forbid]\n0 = [0, 8]\n')
    words = ("place", "hgx-h100-8", "--domains", "2", *MODEL, "--load", recording, "--rules", rules)
    done = run(*words, "--replicas", "8", "--save", saved)
    assert done.code == 0
    plan = read_plan(saved)
    for expert, rank in zip(plan.slot_expert, plan.slot_rank, strict=True):
        assert all(set((rank[expert == e] // 8).tolist()) == {0, 1} for e in range(8))
        assert 9 in rank[expert == 3]
        assert not {0, 8} & set(rank[expert == 0].tolist())
    few = run(*words)
    assert (few.code, few.out) == (2, "")
    assert "rules.apart needs two copies of each of the 8 experts, and 8 are fewer" in " ".join(few.err.split())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("apart = 'rack'", "apart = 'rack': is not known"), ("pin = [3]", "pin = [3]: must be a table"),
        ("[pin]\n0 = ['a']", "expert = GPU, or [GPU, GPU]"), ("[pin]\n0 = [1, 1]", "a GPU twice"),
        ("[forbid]\n0 = 3", "must be a table of expert = [GPU, GPU]"), ("together = [0, 1]", "list of lists"),
        ("pins = 3", "pins = 'given': is no rule"), ("together = 'groups'", "has no groups of its own"),
        ("apart =", "is no TOML or JSON"), ("[pin]\n99 = 0", "is not one of 0 to 7"),
    ],
)  # fmt: skip
def test_bad_rules_are_refused(text: str, says: str, recording: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(text)
    done = run("place", "hgx-h100-8", *MODEL, "--load", recording, "--replicas", "8", "--rules", rules)
    assert (done.code, done.out) == (2, "")
    assert says in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--objective", "fastest"), "objective = 'fastest': is not known"),
        (("--objective", "crossing,crossing"), "must name one or more, each once"),
        (("--objective", "crossing=much"), "must be names with numbers"),
        (("--enough", "crossing"), "must be names with numbers"),
        (("--enough", "crossing=1,crossing=2"), "gives a name twice"),
        (("--enough", "speed=2"), "enough = 'speed': is not known"),
    ],
)
def test_bad_objectives_are_refused(words: tuple[str, ...], says: str, recording: Path) -> None:
    done = run("place", "hgx-h100-8", *MODEL, "--load", recording, *words)
    assert (done.code, done.out) == (2, "")
    assert says in " ".join(done.err.split())
