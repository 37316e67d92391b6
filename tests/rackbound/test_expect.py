"""Do questions from the field get their right answers, and does `--expect` say why?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import collectives
import topo
from rackbound._expect import nccl_tests

from .command import run

ASKED = ("--expect", "nccl-tests")
LAYER = ("--tokens", "1", "--hidden", "1", "--top-k", "1", "--experts", "2")
DRY = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}


def expected(*arguments: object) -> float:
    """Return the busbw `--expect nccl-tests` states [GB/s]."""
    found: float = run("cost", *arguments, *ASKED, "--json").answer["results"]["expected"]["busbw"] / 1e9
    return found


# NVIDIA/nccl-tests#130: b N/(N-1) (NG-1)/(NG), b = 50 GB/s
@pytest.mark.parametrize(("nodes", "busbw"), [(2, 93.75), (4, 64.58), (8, 56.25), (64, 50.69)])
def test_alltoall_of_nodes(nodes: int, busbw: float) -> None:
    assert expected("hgx-h100-8", "all_to_all", "--domains", nodes) == pytest.approx(busbw, abs=5e-3)


def test_the_answer_in_words() -> None:
    said = run("cost", "hgx-h100-8", "all_to_all", "--domains", "2", *ASKED).out
    assert said.startswith("alltoall_perf over 16 ranks of hgx-h100-8 x 2: busbw 93.75 GB/s at large sizes")
    assert "of 50 GB/s, carries 0.5 of the size: algbw 50 GB/s / 0.5 = 100 GB/s" in said
    assert "the same by hand: b N/(N-1) x (NG-1)/(NG), N = 2 domains of G = 8 GPUs, b = 50 GB/s of NIC a GPU" in said
    assert "46.88 GB/s: half of the 8 NICs of a domain" in said
    assert "11.72 GB/s: one NIC carries all" in said
    assert "under 31.25 GB/s: a fault" in said


# NVIDIA/nccl#866: t = M (N-1)/N / NIC where the network binds
@pytest.mark.parametrize("nodes", [2, 3, 8])
def test_time_of_an_alltoall(nodes: int) -> None:
    graph = topo.load("hgx-h100-8", nodes, overrides=DRY)
    seconds = collectives.cost(graph, "all_to_all", 1e9).seconds
    assert seconds == pytest.approx(1e9 * (nodes - 1) / nodes / 50e9, rel=1e-12)


def test_line_rate_of_eight_h100() -> None:
    """NVIDIA/nccl-tests#212: 450 is the line, algbw 257 of a ring; NVLS may have up to 14/9 of it."""
    assert expected("hgx-h100-8", "all_reduce") == pytest.approx(450)
    found = run("cost", "hgx-h100-8", "all_reduce", *ASKED)
    assert "algbw 450 GB/s / 1.75 = 257.1 GB/s" in found.out
    assert "425 GB/s: one of the 18 lanes of a link is down" in found.out
    assert "protocols of rings" in found.out
    assert expected("hgx-h100-8", "all_reduce", "--algorithm", "nvls") == pytest.approx(700)


def test_only_nics_of_used_gpus_carry_rings() -> None:
    """NVIDIA/nccl#1168: four nodes of 8 NICs of 25 GB/s: 200 with all GPUs, half with four of a node."""
    graph = topo.Fabric.from_graph(topo.load("hgx-a100-8", 4, overrides=DRY))
    some = [8 * node + slot for node in range(4) for slot in range(4)]
    for ranks, busbw in ((None, 200e9), (some, 100e9)):
        cost = collectives.cost(graph, "all_reduce", 1e9, ranks=ranks)
        assert nccl_tests(graph, cost, ranks).busbw == pytest.approx(busbw, rel=1e-9)
    assert "50 GB/s: half of the 4 NICs of a domain carry it" in "\n".join(nccl_tests(graph, cost, some).lower)


# NVIDIA/nccl#412: 12 nodes of 8 A800, one NIC of 200 Gb/s each
def test_one_nic_for_eight_gpus() -> None:
    shared = ("--set", "scale_out.gpus_per_nic=8")
    assert expected("hgx-a100-8", "all_reduce", "--domains", "12", *shared) == pytest.approx(25)


# NVIDIA/nccl-tests#78: 64 V100, one NIC of 100 Gb/s a node
def test_one_slow_nic_for_eight_gpus() -> None:
    shared = ("--domains", "8", "--set", "scale_out.gpus_per_nic=8", "--set", "scale_out.bandwidth=100 Gb/s")
    assert expected("hgx-a100-8", "all_reduce", *shared) == pytest.approx(12.5)
    assert expected("hgx-a100-8", "all_to_all", *shared) == pytest.approx(12.5 / 8 * 8 / 7 * 63 / 64)  # 1.76
    said = run("cost", "hgx-a100-8", "all_to_all", *shared, *ASKED).out
    assert "busbw 1.758 GB/s" in said
    assert "b = 1.562 GB/s of NIC a GPU" in said


def test_alltoall_is_slower_than_the_rest() -> None:
    """NVIDIA/nccl-tests#59: two nodes, 8 x 200G: 200 for the others, 46.9 for alltoall."""
    two = ("--domains", "2")
    for kind in ("all_reduce", "all_gather", "reduce_scatter"):
        assert expected("hgx-a100-8", kind, *two) == pytest.approx(200)
    assert expected("hgx-a100-8", "all_to_all", *two) == pytest.approx(46.875)


def test_half_the_nics_halve_a_dispatch() -> None:
    """deepseek-ai/DeepEP#60: two nodes of 8 H100, 4 NICs instead of 8: half of the README's rate, not a tenth."""
    layer = collectives.MoE(tokens=4096, hidden=7168, top_k=8, experts=256)
    rates = [
        collectives.cost(
            topo.load("hgx-h100-8", 2, overrides=DRY | {"scale_out.gpus_per_nic": shared}), "moe_dispatch", layer
        ).seconds
        for shared in (1, 2)
    ]
    assert rates[1] == pytest.approx(2 * rates[0], rel=1e-9)


def test_nvlink_of_an_h800() -> None:
    """deepseek-ai/DeepSeek-V3#28: 400 is both directions; 200 a way, 160 measured, 3.2 times InfiniBand's 50."""
    assert expected("hgx-h800-8", "all_to_all") == pytest.approx(200)
    graph = topo.Fabric.from_graph(topo.load("hgx-h800-8", 2))
    out = graph.bandwidth[graph.link_kind == topo.EDGE_KINDS.index("scale-out")].min()
    assert out == 50e9
    assert 160e9 / out == pytest.approx(3.2)


def test_the_nics_of_the_domain_that_binds() -> None:
    """Eight GPUs and three: the three NICs carry 3 x 8 of 11 parts each way, and one of them fewer two thirds."""
    said = run("cost", "hgx-h100-8", "all_to_all", "--domains", "8,3", *ASKED).out
    assert "busbw 62.5 GB/s" in said  # 50 / (8/11) x 10/11
    assert "41.67 GB/s: 2 of the 3 NICs of a domain carry it (here d1/gpu0's)" in said
    assert "20.83 GB/s: one NIC carries all" in said
    assert "under 20.83 GB/s: a fault, not the wires" in said


def test_shared_nics_are_those_of_the_host() -> None:
    said = run("cost", "hgx-a100-8", "all_to_all", "--domains", "8,4", "--set", "scale_out.gpus_per_nic=2", *ASKED)
    assert "half of the 2 NICs of a domain carry it (here d1/gpu0's)" in said.out


def test_fewer_nics_slow_only_what_crosses() -> None:
    """Hierarchical on 2 x 8: 10 ms across and 7/8 n / 450 GB/s inside; half the NICs 20, one of them 80 ms across."""
    said = run("cost", "hgx-h100-8", "all_to_all", "--domains", "2", "--algorithm", "hierarchical", *ASKED).out
    for across, what in ((20e-3, "half of the 8 NICs"), (80e-3, "one NIC carries all")):
        seconds = across + 7 / 8 * 1e9 / 450e9
        assert f"{1 / seconds * 15 / 16:.4g} GB/s: {what}" in said
    assert f"{1 / (10e-3 + 7 / 8 / 450 * 18 / 17) * 15 / 16:.4g} GB/s: one of the 18 lanes" in said


def test_a_ring_says_what_nvls_would_show() -> None:
    said = run("cost", "hgx-h100-8", "all_reduce", *ASKED).out
    assert said.startswith("all_reduce_perf over 8 ranks of hgx-h100-8 x 1: busbw 450 GB/s at large sizes with ring")
    assert "the wires' bound of ring" in said
    assert "NVLS, where NCCL takes it, up to 700 GB/s" in said  # 14/9 of the line
    assert "NVLS, where" not in run("cost", "hgx-a100-8", "all_reduce", *ASKED).out
    assert "NVLS, where" not in run("cost", "hgx-h100-8", "all_gather", *ASKED).out  # there the ring has more


# --- the option ------------------------------------------------------------------------------------------------------


def test_a_fabric_that_is_blocked_shows_less() -> None:
    """2:1 oversubscribed leaves bind: the law of NICs does not hold, and is not claimed."""
    blocked = ("--domains", "8", "--set", "scale_out.oversubscription=2", "--set", "scale_out.radix=12")
    said = run("cost", "hgx-h100-8", "all_to_all", *blocked, *ASKED).out
    assert expected("hgx-h100-8", "all_to_all", *blocked) < 56.25
    assert "the same by hand" not in said
    assert "half of the" not in said  # the NICs do not bind


def test_sensitivity_in_words_and_json() -> None:
    asked = ("cost", "hgx-h100-8", "all_to_all", "--bytes", "1GB", "--domains", "2", "--sensitivity")
    said = run(*asked).out
    assert "1 % more scale-up bandwidth saves 0 s (0 % of the time)" in said
    assert "1 % more scale-out bandwidth saves 100 us (1 % of the time)" in said
    saved = run(*asked, "--json").answer["results"]["sensitivity"]["saved"]
    assert saved == {"scale-up": 0.0, "scale-out": pytest.approx(0.01, rel=1e-8)}


def test_an_expert_layer(tmp_path: Path) -> None:
    loads = tmp_path / "loads.json"
    loads.write_text(str([1] * 255 + [2]))
    layer = ("--tokens", "128", "--hidden", "7168", "--top-k", "8", "--experts", "256", "--domains", "2")
    said = run("cost", "gb200-nvl72", "moe_dispatch", *layer, "--copies", "per_domain", "--loads", loads).out
    assert "algorithm per_domain" in said
    assert re.search(r"a token goes to 7\.9\d+ different GPUs, 7\.8\d+ of them not its own, in 1\.993", said)
    direct = run("cost", "gb200-nvl72", "moe_combine", *layer, "--limit", "4", "--groups", "8", "--json").answer
    assert direct["inputs"]["moe"]["groups"] == 8
    assert direct["results"]["n_bytes"] == 128 * 8 * 7168 * 2


def test_zero_bytes() -> None:
    results = run("cost", "hgx-h100-8", "all_to_all", "--bytes", "0B", "--json").answer["results"]
    assert (results["seconds"], results["bottleneck"]) == (0.0, "nothing is sent")


def test_loads_that_are_not_finite(tmp_path: Path) -> None:
    loads = tmp_path / "loads.json"
    loads.write_text("[1, NaN]")
    found = run("cost", "hgx-h100-8", "moe_dispatch", *LAYER, "--loads", loads)
    assert found.code == 2
    assert "loads.json: loads[0, 1] = 'nan': must be finite" in found.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("all_to_all", "--bytes", "0"), "a size needs a unit. Write 0 B."),
        (("moe_dispatch", "--bytes", "1GB", *LAYER), "--bytes = '1GB': moe_dispatch sends tokens, not bytes. Leave"),
        (("moe_dispatch",), "Write for example --tokens 128 --hidden 7168"),
        (("all_to_all", "--expect", "perftest"), "--expect = 'perftest'"),
        (("barrier", *ASKED), "no program for barrier"),
        (("all_to_all", "--ranks", "1", *ASKED), "nothing goes over a wire"),
        (("all_to_all", "--bytes", "1GB", "--tokens", "3"), "all_to_all has no tokens"),
        (("all_to_all", "--bytes", "1GB", "--copies", "per_gpu"), "--copies = 'per_gpu'"),
        (("moe_dispatch", "--bytes", "1GB"), "sends tokens, not bytes"),
        (("moe_dispatch", "--tokens", "1"), "--hidden, --top-k, --experts"),
        (("all_to_all",), "needs a size"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_options(arguments: tuple[str, ...], why: str) -> None:
    found = run("cost", "hgx-h100-8", *arguments)
    assert found.code == 2
    assert why in found.err
