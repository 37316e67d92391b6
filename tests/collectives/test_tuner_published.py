"""Does `explain` pick as NCCL's published tuning model does? The formula once more, with its numbers written down here.

time = latency + bytes / bandwidth; numbers of NVIDIA/nccl src/graph/tuning.cc at 5067397: microseconds, GB/s.
"""

from __future__ import annotations

from itertools import product
from math import floor, log2

import pytest

import topo
from collectives import explain
from collectives._explain import Explanation

PROTOCOLS = ("ll", "ll128", "simple")
BASE = {"tree": (6.8, 14, 8.4), "ring": (6.6, 14, 8.4)}
NVLINK = {"tree": (0.6, 1.25, 4.0), "ring": (0.6, 1.9, 3.4)}
NET = {"tree": (5, 8.5, 14), "ring": (2.7, 4, 14)}
#: GB/s of a link, links, and the efficiency of NVLS.
LINKS = {"hgx-a100-8": (20.0, 12, 0.0), "hgx-h100-8": (20.6, 18, 0.85), "hgx-b200-8": (40.1, 18, 0.74),
         "gb200-nvl72": (40.1, 18, 0.74)}  # fmt: skip
#: Choices whose bandwidth the published numbers give exactly; of the others they are the most it can be.
EXACT = {"ring/simple", "ring/ll128", "nvls/simple"}
SIZES = [2**k for k in range(3, 35)]


def published(design: str, kind: str, n: int) -> dict[str, tuple[float, float]]:
    """Return latency [us] and bandwidth [GB/s, size over time] of every choice in one domain."""
    each, links, eased = LINKS[design]
    wire, steps = each * links, (2 if kind == "all_reduce" else 1) * (n - 1)
    rings = zip(PROTOCOLS, BASE["ring"], NVLINK["ring"], (0.5, 0.92, 1.0), strict=True)
    found = {f"ring/{name}": (base + steps * hop, wire * part * n / steps) for name, base, hop, part in rings}
    if kind == "all_reduce":
        trees = zip(PROTOCOLS, BASE["tree"], NVLINK["tree"], (1 / 3.8, 7 / 9, 1.0), strict=True)
        for name, base, hop, part in trees:
            found[f"tree/{name}"] = base + 2 * (n - 1) * hop, 0.92 * wire * part * 0.5
        if eased and n > 2:
            found["nvls/simple"] = 25.0, eased * wire * 2 * (n - 1) / (n + 1) * n / steps
    return found


def seconds(choice: tuple[float, float], size: float) -> float:
    return choice[0] * 1e-6 + size / (choice[1] * 1e9)


def named(found: Explanation) -> dict[str, tuple[float, float]]:
    return {f"{one.algorithm}/{one.protocol}": (one.latency * 1e6, one.bandwidth / 1e9) for one in found.choices}


CASES = [
    case
    for case in product(LINKS, ("all_reduce", "all_gather", "reduce_scatter"), (2, 4, 8, 36, 72))
    if case[2] <= 8 or case[0] == "gb200-nvl72"
]


@pytest.mark.parametrize(("design", "kind", "n"), CASES)
def test_latency_and_bandwidth_of_every_choice(design: str, kind: str, n: int) -> None:
    expected, found = published(design, kind, n), named(explain(topo.load(design), kind, 2**34, ranks=n))
    assert set(found) == set(expected)
    for name, (latency, bandwidth) in expected.items():
        assert found[name][0] == pytest.approx(latency), name
        if name in EXACT | {"tree/simple", "tree/ll128"}:  # trees of 16 GiB: past their corrections
            assert found[name][1] == pytest.approx(bandwidth), name
        else:  # LL has a limit of its own
            assert found[name][1] <= bandwidth * (1 + 1e-5), name


def test_what_is_picked_at_every_size() -> None:
    """Where an exact choice beats what all others can be at most, it is picked; elsewhere one that could beat it is."""
    certain, picked = 0, set()
    for design, kind, n in CASES:
        graph, told = topo.Fabric.from_graph(topo.load(design)), published(design, kind, n)
        for size in SIZES[::3]:
            times = {name: seconds(choice, size) for name, choice in told.items()}
            pick = explain(graph, kind, size, ranks=n).pick
            name = f"{pick.algorithm}/{pick.protocol}"
            best = min(EXACT & set(times), key=lambda one: times[one])
            assert times[name] <= times[best] * (1 + 1e-12), (design, kind, n, size)
            if min(times, key=lambda one: times[one]) == best:
                assert name == best, (design, kind, n, size)
                certain += 1
            picked.add(name)
    assert certain > 100
    assert picked == {"ring/ll", "ring/ll128", "ring/simple", "nvls/simple"}  # in one domain trees gain nothing


@pytest.mark.parametrize(("design", "size"), [("hgx-a100-8", 2**24), ("hgx-h100-8", 2**25), ("hgx-b200-8", 2**26)])
def test_from_which_size_on_a_plain_ring_is_picked(design: str, size: int) -> None:
    """By hand, all-gather over 8: 27.3 + s / (0.92 b) = 32.2 + s / b us: s = 4.9 us x 11.5 b, b = 8/7 of the wire.

    A100 240 GB/s: 15.5 MB; H100 370.8: 23.9 MB; B200 721.8: 46.5 MB. The next powers of two pick Simple first.
    """
    for kind in ("all_gather", "reduce_scatter"):
        switches = explain(topo.load(design), kind, 1e6).switches
        assert [(one.n_bytes) for one in switches if one.protocol == "simple"] == [size]
        assert [one.protocol for one in switches] == ["ll", "ll128", "simple"]


def test_nvls_takes_over_where_its_line_crosses() -> None:
    """By hand, H100 all-reduce over 8: NVLS 25 us and 280.2 GB/s; what was picked before is slower from there on."""
    found = explain(topo.load("hgx-h100-8"), "all_reduce", 2**30)
    first = next(one.n_bytes for one in found.switches if one.algorithm == "nvls")
    ring = (15.0, min(141.0, 185.4) * 8 / 14)
    assert seconds((25.0, 280.2), first) < seconds(ring, first)
    told = published("hgx-h100-8", "all_reduce", 8)
    assert seconds(told["nvls/simple"], first) < min(
        seconds(told[name], first) for name in ("ring/ll128", "ring/simple")
    )
    assert found.switches[-1].n_bytes == first


@pytest.mark.parametrize("domains", [2, 3, 4])
@pytest.mark.parametrize("design", ["hgx-a100-8", "hgx-h100-8", "hgx-b200-8"])
def test_latencies_across_domains(design: str, domains: int) -> None:
    """Inside, a ring's hop is at least NCCL's overhead of a network step: 1 us, three times that for Simple.

    Ring Simple over several nodes: 1.4 times, the plateau. Tree: 2 ((n/N - 1) hops + floor(lg N) net hops).
    """
    n = 8 * domains
    steps, crossings = 2 * (n - 1), 2 * (domains - 1)
    found = named(explain(topo.load(design, domains), "all_reduce", 2**30))
    for i, (name, least, plateau) in enumerate(zip(PROTOCOLS, (1.0, 1.0, 3.0), (1.0, 1.0, 1.4), strict=True)):
        inside = max(NVLINK["ring"][i], least)
        ring = BASE["ring"][i] + (steps - crossings) * inside + crossings * NET["ring"][i]
        assert found[f"ring/{name}"][0] == pytest.approx(plateau * ring)
        tree = BASE["tree"][i] + 2 * (7 * NVLINK["tree"][i] + floor(log2(domains)) * NET["tree"][i])
        assert found[f"tree/{name}"][0] == pytest.approx(tree)


def test_two_nodes_with_few_nics_take_trees() -> None:
    """NVIDIA/nccl issue 812, nccl-tests 196: over two nodes bytes of a tree cross once each way.

    p4d: 50 GB/s a node. Ring: 50 x 16 / 30 = 26.7 GB/s; tree: 0.92 / 2 of twice 50 = 46.
    """
    two, three = (explain(topo.load("aws-p4d-8", domains), "all_reduce", 2**34, profile="nccl-model-a100")
                  for domains in (2, 3))  # fmt: skip
    assert (two.pick.algorithm, two.pick.bandwidth) == ("tree", pytest.approx(46e9))
    assert named(two)["ring/simple"][1] == pytest.approx(50 * 16 / 30)
    assert (three.pick.algorithm, three.pick.bandwidth) == ("ring", pytest.approx(50e9 * 24 / 46))
    # one GPU a node: up and down through one NIC, as a ring
    alone = topo.load("hgx-h100-8", 2, {"design.domain_size": 1})
    assert named(explain(alone, "all_reduce", 2**34, ranks=2, profile="nccl-model-h100"))["tree/simple"][1] < 50
