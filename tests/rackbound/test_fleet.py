"""`rackbound size` and `rackbound handover` print what `serving` works out, and refuse what cannot be."""

from __future__ import annotations

import pytest

from rackbound import serving, topo

from .command import run

MIXTRAL = ("--model", "mixtral-8x7b")


def test_size_prints_the_fleet_of_the_library() -> None:
    found = run("size", "hgx-h100-8", *MIXTRAL, "--requests", "3000", "--prompt", "1000", "--answer", "300",
                "--tpot", "30ms", "--cache-hit", "0.6", "--rent", "3", "--json").answer["results"]  # fmt: skip
    traffic = serving.Traffic(3000, prompt=1000, answer=300, ttft=2.0, tpot=0.03, cache_hit=0.6)
    graph, model = topo.load("hgx-h100-8", 2), serving.load_model("mixtral-8x7b")
    fleet = serving.size(graph, model, traffic, dollars_per_gpu_hour=3.0)
    assert found["racks"] == fleet.racks
    assert found["dollars_per_hour"] == 3 * 8 * fleet.racks
    assert found["dollars_per_million"] == pytest.approx(fleet.dollars_per_million)


def test_an_engine_sizes_and_hands_over() -> None:
    words = ("size", "hgx-h100-8", *MIXTRAL, "--requests", "3000", "--prompt", "1000", "--answer", "300", "--json")
    found = run(*words, "--engine", "vllm-hopper").answer
    traffic = serving.Traffic(3000, prompt=1000, answer=300, ttft=2.0, tpot=0.05)
    graph, model = topo.load("hgx-h100-8", 2), serving.load_model("mixtral-8x7b")
    fleet = serving.size(graph, model, traffic, profile="vllm-hopper")
    assert (found["results"]["racks"], found["inputs"]["engine"]) == (fleet.racks, "vllm-hopper")
    assert found["results"]["racks"] > run(*words).answer["results"]["racks"]
    passed = run("handover", "hgx-h100-8", *MIXTRAL, "--engine", "vllm-hopper", "--json").answer["results"]
    work = serving.Workload("prefill", context=4096, batch=64)
    one = serving.step(graph, model, work, layout=serving.Layout(8), profile="vllm-hopper")
    assert passed["pass_seconds"] == pytest.approx(one.times["engine"])
    assert run("size", "hgx-h100-8", *MIXTRAL, "--requests", "1", "--engine", "vllm").code == 2


def test_size_says_racks_dollars_pools_and_losses() -> None:
    out = run("size", "gb200-nvl72", "--model", "deepseek-v3", "--requests", "20000", "--ep", "64").out
    lines = out.splitlines()
    assert lines[0] == "deepseek-v3 on gb200-nvl72: 20,000 requests/s, 2,000 tokens in and 500 out on average"
    assert "spare: " in lines[1]
    assert "$/h at 2 $ per GPU and hour; $ per million tokens: prefill " in lines[2]
    for word in ("Pools", "prefill", "decode", "Between them: ", "When a part is lost", "tray", "switch", "rack"):
        assert word in out


def test_a_promise_that_cannot_be_kept_is_an_answer() -> None:
    found = run("size", "hgx-h100-8", *MIXTRAL, "--requests", "5", "--tpot", "1us")
    assert found.code == 0
    assert "cannot be served as promised: decode: " in found.out


def test_more_domains_are_taken_where_a_unit_needs_them() -> None:
    """32 GPUs are four boxes of eight; two units stand side by side."""
    words = ("size", "hgx-h200-8", "--model", "deepseek-v3", "--requests", "50", "--ep", "16,32", "--json")
    assert run(*words).answer["inputs"]["domains"] == 8


def test_lengths_are_read_as_tokens_weights_or_quantiles() -> None:
    def shares(text: str) -> list[list[float]]:
        words = ("size", "hgx-h100-8", *MIXTRAL, "--requests", "5", "--prompt", text, "--json")
        found: list[list[float]] = run(*words).answer["inputs"]["prompt"]
        return found

    assert shares("4000:1, 500:3") == [[500, 0.75], [4000, 0.25]]
    assert shares("1000..8000") == [list(row) for row in serving.log_normal_lengths(1000, 8000)]


def test_handover_says_when_sending_is_the_longer() -> None:
    """The last cached token less and the pass takes longer; checked with the library's step and handover."""
    words = ("handover", "hgx-h100-8", *MIXTRAL, "--batch", "8", "--set", "scale_out.bandwidth='100 Gb/s'", "--json")
    found = run(*words).answer["results"]
    limit = found["dominates_from"]
    assert 0 < limit < 4096
    for cached, longer in ((limit - 1, False), (limit, True)):
        told = run(*words, "--cached", cached).answer["results"]
        assert told["dominates"] is longer
        assert (told["send_seconds"] > told["pass_seconds"]) is longer
        assert told["dominates_from"] == limit
    assert f"sending is from {limit:,} cached tokens on" in run(*words[:-1]).out


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--requests", "nan"), "requests_per_second = nan: must be a finite number above zero"),
        (("--requests", "5", "--prompt", "long"), "--prompt = 'long': is no length in tokens"),
        (("--requests", "5", "--prompt", "9000..100"), "the median no more than the 95th percentile"),
        (("--requests", "5", "--prompt", "5:0"), "prompt = [(5, 0.0)]: must be whole tokens"),
        (("--requests", "5", "--ttft", "2"), "--ttft = '2'"),
        (("--requests", "5", "--ep", "0"), "--ep = '0': must be whole numbers above zero"),
        (("--requests", "5", "--tp", "2,x"), "--tp = '2,x': must be whole numbers above zero"),
        (("--requests", "5", "--rent", "-1"), "dollars_per_gpu_hour = -1.0: must be"),
        (("--requests", "5", "--spare-racks", "-1"), "spare_racks = -1: must be"),
    ],
)
def test_bad_traffic_is_refused_in_one_message(words: tuple[str, ...], fault: str) -> None:
    found = run("size", "hgx-h100-8", *MIXTRAL, *words)
    assert (found.code, found.out) == (2, "")
    assert fault in " ".join(found.err.split())


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--prefill", "ep=8,tp=x"), "--prefill = 'ep=8,tp=x': must state ep, tp, pp, cp, dp as whole numbers"),
        (("--decode", "vp=8"), "--decode = 'vp=8': must state"),
        (("--prefill", "ep=8,ep=4"), "states one of them twice"),
        (("--domains", "1"), "needs 8 + 8 GPUs side by side and the graph has 8"),
        (("--cached", "4096"), "cached"),
        (("--batch", "0"), "batch = 0"),
    ],
)
def test_bad_pools_are_refused_in_one_message(words: tuple[str, ...], fault: str) -> None:
    found = run("handover", "hgx-h100-8", *MIXTRAL, *words)
    assert (found.code, found.out) == (2, "")
    assert fault in " ".join(found.err.split())


def test_guesses_make_a_token_quicker() -> None:
    words = ("size", "gb200-nvl72", "--model", "deepseek-v3", "--requests", "2000", "--ep", "64", "--json")
    found = run(*words, "--draft", "1", "--acceptance", "0.85").answer
    traffic, work = serving.Traffic(2000, prompt=2000, answer=500), serving.Workload(batch=1, draft=1, acceptance=0.85)
    fleet = serving.size(
        topo.load("gb200-nvl72", 2), serving.load_model("deepseek-v3"), traffic, ep=[64], workload=work
    )
    assert found["results"]["tpot"] == pytest.approx(fleet.tpot)
    assert found["inputs"]["acceptance"] == 0.85
    assert "1.85 tokens per pass: 1 guessed, each right with chance 0.85" in found["assumptions"]
    assert "acceptance" in run(*words, "--draft", "1").err
    assert "no multi-token-prediction layer" in run("size", "hgx-h100-8", *MIXTRAL, "--requests", "1", "--draft", "1",
                                                    "--acceptance", "0.85").err  # fmt: skip
