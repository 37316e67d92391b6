"""Does NCCL's tuning model give the published numbers, and pick as it is known to pick?"""

from __future__ import annotations

import pytest

from collectives import load_profile
from collectives._tuner import TUNED_KINDS, Choice, Team, choices

H100 = load_profile("nccl-model-h100").constants
BOX = Team(8, 1, 450e9, 50e9, True)


def by(found: tuple[Choice, ...]) -> dict[str, Choice]:
    return {f"{one.algorithm}/{one.protocol}": one for one in found}


def test_latencies_of_one_nvlink_node() -> None:
    """By tuning.cc at 5067397: 8 GPUs, all-reduce: ring 15.0/40.6/56.0, tree 15.2/31.5/64.4, NVLS 25 us."""
    found = by(choices(H100, "all_reduce", 1e6, BOX))
    expected = {"ring/ll": 15.0, "ring/ll128": 40.6, "ring/simple": 56.0, "tree/ll": 15.2, "tree/ll128": 31.5,
                "tree/simple": 64.4, "nvls/simple": 25.0}  # fmt: skip
    assert {name: one.latency * 1e6 for name, one in found.items()} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "ring", "tree"),
    [("all_reduce", (16.6, 31.0, 36.4), (16.8, 31.0, 36.4)), ("all_gather", (11.6, 22.5, 22.4), ()),
     ("reduce", (9.3, 18.0, 22.4), ())],
)  # fmt: skip
def test_latencies_that_nccl_printed(kind: str, ring: tuple[float, ...], tree: tuple[float, ...]) -> None:
    """A public log of NCCL 2.29.7 (NCCL_DEBUG_SUBSYS=TUNING), two nodes of one GPU; us, before the plateau's factor."""
    found = by(choices({**H100, "net.plateau": 1.0}, kind, 1e6, Team(2, 2, 450e9, 50e9, False)))
    for algorithm, latencies in (("ring", ring), ("tree", tree)):
        for protocol, latency in zip(("ll", "ll128", "simple"), latencies, strict=bool(latencies)):
            assert found[f"{algorithm}/{protocol}"].latency * 1e6 == pytest.approx(latency)


def test_bandwidths_by_hand() -> None:
    """18 links of 20.6 GB/s; ring busbw x n / steps, tree x 0.92 x 0.5, NVLS 0.85 of 2 (p - 1) / (p + 1)."""
    found = by(choices(H100, "all_reduce", 2**34, BOX))
    wire = 18 * 20.6e9
    assert found["ring/simple"].bandwidth == pytest.approx(wire * 8 / 14)
    assert found["ring/ll128"].bandwidth == pytest.approx(0.92 * wire * 8 / 14)
    assert found["ring/ll"].bandwidth == pytest.approx(141e9 * 8 / 14)  # below half of the wire
    assert found["tree/simple"].bandwidth == pytest.approx(0.92 * 0.5 * wire)
    assert found["nvls/simple"].bandwidth == pytest.approx(0.85 * wire * 14 / 9 * 8 / 14)
    assert found["ring/simple"].seconds == pytest.approx(56e-6 + 2**34 / (wire * 8 / 14))


def test_two_nodes_by_hand() -> None:
    """Ring all-reduce over 2 x 8: 30 steps, 2 of them between nodes; LL: 6.6 + 28 x 1 + 2 x 2.7 us."""
    found = by(choices(H100, "all_reduce", 1e6, Team(16, 2, 450e9, 50e9, True)))
    assert found["ring/ll"].latency == pytest.approx(40e-6)
    assert found["ring/simple"].latency == pytest.approx(1.4 * (8.4 + 28 * 3.4 + 2 * 14) * 1e-6)
    assert found["tree/ll"].latency == pytest.approx((6.8 + 2 * (7 * 0.6 + 5)) * 1e-6)
    assert found["nvls_tree/simple"].latency == pytest.approx((25 + 2 * 20.9) * 1e-6)
    # 8 NICs of 50 GB/s are more than one GPU's NVLink
    assert found["ring/simple"].bandwidth == pytest.approx(370.8e9 * 16 / 30)
    slow = by(choices(H100, "all_reduce", 1e6, Team(16, 2, 450e9, 12.5e9, True)))
    assert slow["ring/simple"].bandwidth == pytest.approx(100e9 * 16 / 30)


def test_picks() -> None:
    """Low latency for small sizes, NVLS for large ones, ring where nothing reduces."""
    assert [choices(H100, "all_reduce", size, BOX)[0].protocol for size in (8, 2**30)] == ["ll", "simple"]
    assert choices(H100, "all_reduce", 2**30, BOX)[0].algorithm == "nvls"
    a100 = load_profile("nccl-model-a100").constants
    assert choices(a100, "all_reduce", 2**30, Team(8, 1, 300e9, 25e9, False))[0].algorithm == "ring"
    assert {one.algorithm for one in choices(H100, "all_gather", 2**20, BOX)} == {"ring"}
    # NVLS needs more than two GPUs under the switch
    assert "nvls/simple" not in by(choices(H100, "all_reduce", 2**30, Team(2, 1, 450e9, 0.0, True)))


@pytest.mark.parametrize("kind", TUNED_KINDS)
@pytest.mark.parametrize("name", ["a100", "h100", "b200"])
def test_time_grows_with_size(kind: str, name: str) -> None:
    constants = load_profile(f"nccl-model-{name}").constants
    for team in (BOX, Team(32, 4, 450e9, 50e9, True), Team(3, 3, 450e9, 50e9, False)):
        for one in by(choices(constants, kind, 2.0**36, team)).values():
            assert one.seconds == pytest.approx(one.latency + 2.0**36 / one.bandwidth)
        times = [choices(constants, kind, 2.0**k, team)[0].seconds for k in range(3, 36)]
        assert times == sorted(times)
