"""Does `rackbound lecture` say of every claim what the law, the graph or a hand number says?

Claims by number: R. Pope on the Dwarkesh podcast, 2026-04-29. Hand numbers are of DeepSeek-V3 (671.0 B weights of one
byte, 70,272 bytes of KV cache a token) on GB200 NVL72 (8 TB/s, 5 PFLOP/s at FP8, 900 and 50 GB/s).
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

import rackbound
import serving
import topo
from rackbound._claims import Told, judged
from rackbound._lecture import CLAIMS, NO_ROW

from .command import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lecture.md"


@pytest.fixture(scope="module")
def found() -> rackbound.Lecture:
    return rackbound.lecture()


@pytest.fixture(scope="module")
def told(found: rackbound.Lecture) -> dict[int, list[Told]]:
    rows: dict[int, list[Told]] = {}
    for one in found.told:
        rows.setdefault(one.number, []).append(one)
    return rows


def test_every_claim_has_a_row_or_a_reason() -> None:
    rows = {claim.number for claim in CLAIMS}
    assert rows | set(NO_ROW) == set(range(1, 86))
    assert rows & set(NO_ROW) == set()
    assert [claim.number for claim in CLAIMS] == sorted(claim.number for claim in CLAIMS)


MET = 671_025_397_760 - 58 * 248 * 44_040_192 - 129_280 * 7168  # all but 248 experts of 58 layers and the embedding


@pytest.mark.parametrize(
    ("number", "row", "ours", "tolerance"),
    [
        (2, 0, 69.6 / 73.3, 1e-3),  # GFLOP a token at 4,096: 2 x 128 x (576 + 512) x 4,096 x 61 is 69.6
        (5, 0, 671.025e9 / 8e12 / (4096 * 70_272 / 8e12), 2e-3),  # weights over one sequence's cache, + 1
        (9, 0, 1 + 2 * MET / 5e15 / (4096 * 70_272 / 8e12), 1e-6),
        (14, 0, 2048 + 1e5 * 128 / 1152, 1e-9),
        (16, 0, 312.5, 1e-12),
        (17, 0, 295.22 / 153.02, 1e-4),
        (18, 0, 312.5 * 671.025 / (MET / 1e9), 1e-6),
        (23, 0, 2 * 198_674_743_296 / 8e12, 1e-9),
        (24, 0, 198_674_743_296 / 8e12, 1e-9),
        (25, 0, 288 / 22e3, 1e-9),
        (29, 0, 1.3 / 0.37, 1e-12), (67, 0, 0.34 / 0.28, 1e-12),
        (34, 0, 2.0, 0.05),  # BF16 back against FP8 out, latencies aside
        (39, 0, 18.0, 1e-12),
        (40, 0, 0.5e9 / 50e9 / (71 / 72 * 1e9 / 900e9), 1e-3),  # half of a GB by NIC, 71/72 of it by NVLink
        (44, 0, 72 * 198_674_743_296, 1e-12),
        (54, 0, 3 / 35, 1e-12),
        (62, 0, 114 * 7168 * 2 / 50e9 + 2 * 0.8e-6, 1e-9),
        (64, 1, 8 / 3.35, 1e-9),
        (71, 0, 75, 1e-12),
        (72, 0, 2 * MET / 5e15 * 8e12 / 70_272, 1e-9),
        (73, 0, 1600, 1e-12),
        (81, 0, 2 * MET / 5e15 / (70_272 / 64e9), 0.02),
        (83, 0, 70_272 / 198_674_743_296 * 2 / 3600 * 300 * 1e6, 1e-9),
        (84, 0, 4.0, 1e-12), (84, 1, 3.84e12 / 7e9, 1e-12), (84, 2, 24e12 / 285e6, 1e-12),
    ],
)  # fmt: skip
def test_ours_by_hand(told: dict[int, list[Told]], number: int, row: int, ours: float, tolerance: float) -> None:
    assert told[number][row].ours == pytest.approx(ours, rel=tolerance)


def test_pipelining_is_neutral_but_for_its_hops(told: dict[int, list[Told]]) -> None:
    latency, rate, weights = told[55]
    hop = told[62][0].ours
    assert hop is not None
    work, model = serving.Workload(context=4096, batch_per_gpu=114), serving.load_model("deepseek-v3")
    one = serving.step(topo.load("gb200-nvl72"), model, work).serial
    assert latency.ours == pytest.approx(1 + 3 * hop / one, rel=1e-9)
    assert rate.ours == pytest.approx(1, abs=0.05)
    assert weights.ours == pytest.approx(0.25, abs=0.05)
    assert told[59][0].ours == pytest.approx(4 * 16 / 61, rel=1e-9)  # the longest of four stages has 16 of 61 layers


def test_one_rack_bounds(told: dict[int, list[Told]]) -> None:
    # oracle with latencies zero: 2,808 experts within one, 1,008 over two; latencies cost two racks a little more
    assert told[36][0].ours == pytest.approx(2808 / 1008, rel=0.05)
    assert told[36][0].verdict == "true"


def test_what_is_loose_is_said_to_be(told: dict[int, list[Told]]) -> None:
    """Where the lecture is loose on real parts: attention arithmetic, drain times and 64 passes, 8 times."""
    verdicts = {number: [one.verdict for one in rows] for number, rows in told.items()}
    assert verdicts[2] == ["false"]
    assert verdicts[79] == ["false"]
    assert verdicts[24] == ["loose"]
    assert verdicts[27] == ["loose", "false"]
    assert verdicts[39] == ["loose"]
    assert verdicts[38] == verdicts[44] == verdicts[20] == ["true"]
    assert "64 a second is 15.6 ms" in told[27][0].why
    assert "h100-pcie-2" in told[24][0].why


def test_the_condition_of_claim_36_is_told() -> None:
    more = rackbound.lecture(claims=[36], overrides={"scale_out.bandwidth": "800 Gb/s"}).told[0]
    assert more.verdict == "loose"
    assert more.ours is not None
    assert 1 / 3 < more.ours < 1


@pytest.mark.parametrize(
    ("low", "high", "ours", "verdict"),
    [(8, 8, 9, "true"), (8, 8, 18, "loose"), (8, 8, 30, "false"), (8, 8, 2.6, "false"), (8, 8, 0, "false"),
     (0, 0.1, 0.09, "true"), (0, 0.1, 0.11, "loose"), (0, 0.1, 0.4, "false"), (1, math.inf, math.inf, "true"),
     (1, math.inf, 0.99, "loose"), (1, math.inf, 0.3, "false"), (3, 5, 5.1, "loose"), (3, 5, 3, "true")],
)  # fmt: skip
def test_verdicts(low: float, high: float, ours: float, verdict: str) -> None:
    assert judged(low, high, ours) == verdict


# --- what is missing is said ---


def test_a_dense_model_and_a_design_without_scale_out() -> None:
    found = rackbound.lecture("tpu-v6e", "llama-3.1-70b", claims=[4, 18, 26, 39, 59, 79])
    said = {one.number: (one.verdict, one.why) for one in found.told}
    assert said[4] == ("not told", "it is said of deepseek-v3")
    assert said[18] == ("not told", "llama-3.1-70b has no experts")
    assert said[39] == ("not told", "tpu-v6e states no scale-out")
    assert said[59] == ("not told", "llama-3.1-70b has no experts")
    assert said[26] == ("loose", said[26][1])  # 30 ms over 34.36 GB / 1.64 TB/s is 1.43
    # Llama-3.1-70B: 2 x 69.5 B FLOP of weights (head counted, embedding not) against 4 x 64 x 128 x 80 a position
    ours = next(one.ours for one in found.told if one.number == 79)
    assert ours == pytest.approx(2 * 69.5e9 / (4 * 64 * 128 * 80), rel=2e-3)
    assert repr(found) == "Lecture(0 true, 1 loose, 1 false, 4 not told: llama-3.1-70b on tpu-v6e)"


def test_a_model_with_windows_crosses_where_its_cache_does() -> None:
    model = serving.load_model("gpt-oss-120b")  # every other layer sees 128 tokens
    told = rackbound.lecture("hgx-h100-8", model, claims=[72]).told[0]
    chip = topo.load_design("hgx-h100-8").chip
    rate, met = serving.matmul_rate(chip.flops, model.weight_dtype)[0], model.active_params - model.embedding_params
    assert told.ours is not None
    assert told.ours > 128
    assert model.kv_bytes(told.ours) / chip.hbm_bandwidth == pytest.approx(2 * met / rate, rel=1e-9)


def test_a_model_too_large_for_one_domain() -> None:
    found = rackbound.lecture("hgx-h100-8", claims=[10])
    assert found.told[0].verdict == "not told"
    assert found.told[0].why == "deepseek-v3's weights leave no room for a cache on one domain"


def test_a_chip_that_states_no_rate_is_told_what_can_be() -> None:
    rubin = rackbound.lecture("vr-nvl576", claims=[16, 23])
    assert [one.verdict for one in rubin.told] == ["not told", "loose"]
    assert rubin.told[1].ours == pytest.approx(2 * 1020 / 32e3)  # twice 1,020 GB at 32 TB/s
    assert "needs a rate for fp8" in rubin.told[0].why
    assert any("needs a rate" in line for line in rubin.assumptions)


def test_a_graph_file_is_no_design(tmp_path: Path) -> None:
    topo.write(topo.build("ring", n=4), tmp_path / "ring.json")
    assert (
        "is a graph, and claims ask for what a design states" in run("lecture", "--design", tmp_path / "ring.json").err
    )


def test_curves_of_what_there_is(tmp_path: Path) -> None:
    asked = ("--design", "mi300x-8", "--model", "llama-3.1-70b", "--claim", "39", "--out", tmp_path / "out")
    done = run("lecture", *asked)
    assert (done.code, done.err) == (
        0, f"wrote lecture.json and 4 figures into {tmp_path / 'out'}; not drawn: lecture-latency, lecture-cost, "
        "lecture-kv-wall, lecture-pipeline, lecture-rack-ratio, lecture-passes\n",
    )  # fmt: skip
    drawn = {path.stem for path in (tmp_path / "out").glob("*.png")}
    assert drawn == {"lecture-crossing", "lecture-tiers"}
    assert json.loads((tmp_path / "out" / "lecture.json").read_text())["schema"] == "lecture/1"


def test_an_unknown_number_and_one_without_a_row() -> None:
    failed = run("lecture", "--claim", "86", "--claim", "31")
    assert failed.code == 2
    assert "claim = 86: has no row: the claims are 1 to 85" in failed.err
    assert "claim = 31: has no row: a description" in failed.err


def test_bad_input_is_told_at_once() -> None:
    failed = run("lecture", "--design", "no-such", "--model", "none", "--context", "0")
    assert failed.code == 2
    assert len(failed.err.splitlines()) >= 3


def test_in_words() -> None:
    said = run("lecture", "--claim", "23", "--claim", "44").out
    assert said.startswith("The lecture's claims on gb200-nvl72 with deepseek-v3, 114 sequences per GPU, context 4096")
    line = next(line for line in said.splitlines() if line.split()[:1] == ["23"])
    assert line.split()[-5:] == ["40", "ms", "49.7", "ms", "loose"]
    assert "1 true, 1 loose" in said


# --- docs/lecture.md says the same ---


def test_every_row_is_on_the_page(found: rackbound.Lecture) -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [f"| {one.number} | {one.statement} | {one.lecture_text} | {one.our_text} | {one.verdict} |"
            for one in found.told]  # fmt: skip
    rows += [f"| {number} | {why} |" for number, why in NO_ROW.items()]
    assert [row for row in rows if row not in lines] == []
    assert len([line for line in lines if re.match(r"\| \d", line)]) == len(rows)


def test_every_law_and_link_of_the_page_exists() -> None:
    text = PAGE.read_text(encoding="utf-8")
    named = re.findall(r"`laws\.(\w+)`", text)
    assert len(named) > 10
    assert [name for name in named if name not in serving.laws.__all__] == []
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    assert targets
    assert [target for target in targets if not (PAGE.parent / target).exists()] == []
