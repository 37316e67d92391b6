"""Does every row of the table of shapes build what it says, and refuse what does not exist, all at once?"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topo
from topo import InputError

from .wired import assert_sound, gpus, ports

small = st.integers(1, 6)


def _with(fixed: dict[str, st.SearchStrategy], **optional: st.SearchStrategy) -> st.SearchStrategy:
    common = {"bandwidth": st.sampled_from(["25 GB/s", 1e9, 7]), "latency": st.sampled_from([0, "1 us", 2.5e-7])}
    return st.fixed_dictionaries(fixed, optional=optional | common)


def _regular(n: int) -> st.SearchStrategy:
    allowed = [d for d in range(1 if n == 2 else 2, n) if n * d % 2 == 0]
    return st.fixed_dictionaries({"n": st.just(n), "degree": st.sampled_from(allowed), "hosts": small})


SHAPES: dict[str, st.SearchStrategy] = {
    "switched": _with({"n": st.integers(1, 20)}, planes=st.integers(1, 4), unfold=st.booleans()),
    "full_mesh": _with({"n": st.integers(2, 12)}, lanes=small),
    "hybrid_cube_mesh": _with({}, pcie=st.just("16 GB/s")),
    "bridge_pairs": _with({"n": st.integers(1, 8).map(lambda n: 2 * n)}, lanes=small),
    "ring": _with({"n": st.integers(1, 30)}),
    "torus": _with({"dims": st.lists(st.integers(1, 5), min_size=1, max_size=4)}, wrap=st.booleans()),
    "hypercube": _with({"dim": st.integers(1, 7)}),
    "ultraserver": st.just({}),
    "two_level": _with(
        {"nodes": small, "gpus_per_node": small, "l1": st.sampled_from([4, 8]), "planes": st.sampled_from([1, 2, 4])},
        lanes=small,
        l2=small,
    ),
    "rail_optimised": _with({"domains": small, "domain_size": small}, radix=st.integers(12, 20)),
    "rail_only": _with({"domains": st.integers(2, 40), "domain_size": small}, radix=st.integers(8, 20)),
    "leaf_spine": _with({"leaves": small, "spines": small, "hosts": small, "lanes": small}),
    "fat_tree": _with(
        {"k": st.sampled_from([2, 4, 6, 8])},
        levels=st.sampled_from([2, 3]),
        oversubscription=st.sampled_from([1, 1.5, 2.0, 3, 9]),
    ),
    "multi_plane_fat_tree": _with({"planes": small, "k": st.sampled_from([2, 4, 6])}),
    "hyperx": _with({"dims": st.lists(st.integers(1, 5), min_size=1, max_size=3)}, lanes=small, hosts=small),
    "dragonfly": _with({"a": small, "p": small, "h": st.integers(1, 3)}),
    "slim_fly": _with({"q": st.sampled_from([3, 4, 5, 7, 8, 9])}, p=st.integers(1, 3)),
    "random_regular": st.integers(2, 20).flatmap(_regular),
}

#: Every parameter wrong at once -> the places of all faults.
WRONG: dict[str, tuple[dict[str, object], set[str]]] = {
    "switched": ({"n": 0, "planes": -1, "bandwidth": "9 GB"}, {"n", "planes", "bandwidth"}),
    "full_mesh": ({"n": 2.5, "lanes": 0, "latency": -1.0}, {"n", "lanes", "latency"}),
    "hybrid_cube_mesh": ({"bandwidth": 0, "pcie": "16"}, {"bandwidth", "pcie"}),
    "bridge_pairs": ({"n": 3, "lanes": 0, "pcie": "x"}, {"n", "lanes", "pcie"}),
    "ring": ({"n": True, "bandwidth": "0 B/s"}, {"n", "bandwidth"}),
    "torus": ({"dims": [4, 0], "wrap": [True], "bandwidth": ["1 GB/s", "2"]}, {"dims[1]", "wrap", "bandwidth[1]"}),
    "hypercube": ({"dim": 0, "latency": "1 h"}, {"dim", "latency"}),
    "ultraserver": ({"bandwidth": ["1 GB/s", "1 GB/s"], "latency": None}, {"bandwidth"}),
    "two_level": ({"nodes": 0, "planes": 3, "radix": 8}, {"nodes", "planes", "radix"}),
    "rail_optimised": (
        {"domains": 0, "domain_size": 0, "radix": 1, "oversubscription": 0},
        {"domains", "domain_size", "radix", "oversubscription"},
    ),
    "rail_only": (
        {"domains": 1, "domain_size": 0, "oversubscription": "2", "scale_up_bandwidth": 0},
        {"domains", "domain_size", "oversubscription", "scale_up_bandwidth"},
    ),
    "leaf_spine": ({"leaves": 0, "spines": "2", "hosts": 0, "lanes": 0}, {"leaves", "spines", "hosts", "lanes"}),
    "fat_tree": (
        {"k": 5, "levels": 3, "oversubscription": [0.5, 0]},
        {"k", "oversubscription[0]", "oversubscription[1]"},
    ),
    "multi_plane_fat_tree": ({"planes": 0, "k": 7}, {"planes", "k"}),
    "hyperx": ({"dims": [], "hosts": 0}, {"dims", "hosts"}),
    "dragonfly": ({"a": 2, "p": 0, "h": 2, "groups": 6, "radix": 3}, {"p", "groups", "radix"}),
    "slim_fly": ({"q": 28, "p": 0, "radix": 4}, {"q", "p", "radix"}),
    "random_regular": ({"n": 5, "degree": 3, "hosts": 0, "seed": -1}, {"n, degree", "hosts", "seed"}),
}


def test_both_tables_have_every_shape() -> None:
    assert set(SHAPES) == set(WRONG) == set(topo.BUILDERS)


@pytest.mark.parametrize("name", SHAPES)
def test_any_parameters_make_a_sound_graph(name: str) -> None:
    @settings(max_examples=25, deadline=None, database=None)
    @given(parameters=SHAPES[name])
    def holds(parameters: dict[str, object]) -> None:
        assert_sound(name, topo.build(name, **parameters), parameters)

    holds()


@pytest.mark.parametrize("name", WRONG)
def test_all_faults_at_once(name: str) -> None:
    parameters, places = WRONG[name]
    with pytest.raises(InputError) as caught:
        topo.build(name, **parameters)
    faults = caught.value.faults
    assert {fault.place for fault in faults} == places
    assert all(fault.rule and fault.cure.endswith(".") for fault in faults)


@pytest.mark.parametrize("name", SHAPES)
def test_the_table_in_the_docs_has_every_parameter(name: str) -> None:
    rows = (Path(__file__).resolve().parents[2] / "docs" / "shapes.md").read_text().splitlines()
    (row,) = [row.split("|") for row in rows if row.startswith(f"| `{name}` |")]
    known = inspect.signature(topo.BUILDERS[name]).parameters.values()
    wanted = [p.name if p.default is p.empty else f"{p.name}={p.default}" for p in known]
    common = ("bandwidth=None", "latency=None")
    assert re.findall(r"`([^`]+)`", row[2]) == [text for text in wanted if text not in common]


def test_a_shape_nobody_knows() -> None:
    with pytest.raises(InputError, match="Did you mean 'slim_fly'"):
        topo.build("slimfly", q=5)


def test_parameters_nobody_knows_and_parameters_missing() -> None:
    with pytest.raises(InputError) as caught:
        topo.build("dragonfly", a=4, hosts=2, group=9)
    assert [fault.place for fault in caught.value.faults] == ["hosts", "group", "p", "h"]
    assert "Did you mean 'groups'" in caught.value.faults[1].cure


@pytest.mark.parametrize("name", SHAPES)
def test_what_was_assumed_is_said(name: str) -> None:
    said = topo.build(name, **EXAMPLES.get(name, {})).graph["assumptions"]
    assert any(line.startswith("bandwidth = ") for line in said)
    assert any(line.startswith("latency = ") for line in said)
    if name != "ultraserver":
        assert any(re.match(r"bandwidth = 50 GB/s per (lane|GPU) and direction: assumed", line) for line in said)


EXAMPLES: dict[str, dict[str, object]] = {
    "switched": {"n": 8}, "full_mesh": {"n": 8}, "bridge_pairs": {"n": 4}, "ring": {"n": 4}, "torus": {"dims": [4]},
    "hypercube": {"dim": 3}, "rail_optimised": {"domains": 2, "domain_size": 8}, "fat_tree": {"k": 4},
    "rail_only": {"domains": 2, "domain_size": 8}, "leaf_spine": {"leaves": 2, "spines": 2, "hosts": 2},
    "multi_plane_fat_tree": {"planes": 2, "k": 4}, "hyperx": {"dims": [2, 2]}, "dragonfly": {"a": 2, "p": 1, "h": 1},
    "slim_fly": {"q": 5}, "random_regular": {"n": 6, "degree": 3},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("ring", {"n": 10**9}),
        ("torus", {"dims": [10**300, 10**300]}),
        ("hypercube", {"dim": 10**6}),
        ("hyperx", {"dims": [10**5, 10**5]}),
        ("fat_tree", {"k": 10**200}),
        ("dragonfly", {"a": 1000, "p": 1000, "h": 1000}),
        ("slim_fly", {"q": 10**9 + 7}),
        ("random_regular", {"n": 10**5, "degree": 10**4}),
        ("full_mesh", {"n": 10**6}),
        ("rail_only", {"domains": 10**5, "domain_size": 10**5}),
    ],
)
def test_too_large_for_python_objects_is_refused_at_once(name: str, parameters: dict[str, object]) -> None:
    with pytest.raises(InputError, match="a graph of Python objects holds"):
        topo.build(name, **parameters)


@pytest.mark.parametrize(
    ("name", "parameters", "used"),
    [
        ("leaf_spine", {"leaves": 4, "spines": 2, "hosts": 8, "lanes": 4}, 16),
        ("hyperx", {"dims": [4, 4], "lanes": [2, 1], "hosts": 3}, 12),
        ("dragonfly", {"a": 8, "p": 4, "h": 4}, 15),
        ("slim_fly", {"q": 5}, 11),
        ("random_regular", {"n": 10, "degree": 4, "hosts": 3}, 7),
        ("two_level", {}, 48),
    ],
)
def test_ports_are_counted_against_the_radix(name: str, parameters: dict[str, object], used: int) -> None:
    graph = topo.build(name, **parameters, radix=used)
    assert max(ports(graph, node) for node in graph if node not in set(gpus(graph))) == used
    with pytest.raises(InputError, match=f"needs {used} ports") as caught:
        topo.build(name, **parameters, radix=used - 1)
    assert {fault.place for fault in caught.value.faults} == {"radix"}
    assert all(f"Take a radix of {used}," in fault.cure for fault in caught.value.faults)


# of every parameter that some shape needs, what is small
LEAST = {
    "n": 6, "dims": (2, 3), "dim": 2, "domains": 2, "domain_size": 2, "leaves": 2, "spines": 2, "hosts": 2, "k": 4,
    "planes": 2, "a": 2, "p": 1, "h": 1, "q": 5, "degree": 3,
}  # fmt: skip


def test_bandwidth_is_per_lane_and_latency_per_link() -> None:
    graph = topo.build("leaf_spine", leaves=2, spines=2, hosts=4, lanes=3, bandwidth="400 Gb/s", latency="2 us")
    assert graph.edges["leaf0", "spine1"] == {"kind": "scale-out", "bandwidth": 150e9, "latency": 2e-6, "lanes": 3}
    assert graph.graph["assumptions"] == []


def test_si_numbers_and_numpy_numbers_are_taken() -> None:
    graph = topo.build("ring", n=np.int64(5), bandwidth=np.float64(2e9), latency=0)
    assert {(data["bandwidth"], data["latency"]) for _, _, data in graph.edges(data=True)} == {(2e9, 0.0)}


@pytest.mark.parametrize("value", [10**400, 1e300], ids=["10**400", "1e300"])
@pytest.mark.parametrize("name", WRONG)
def test_a_number_beyond_all_machines_is_refused_or_built(name: str, value: object) -> None:
    known = inspect.signature(topo.BUILDERS[name]).parameters
    least = {p.name: LEAST[p.name] for p in known.values() if p.default is p.empty}
    for parameter in known:
        faults, graph = attempt(name, **(least | {parameter: value}))
        assert {fault.place.partition("[")[0] for fault in faults} <= set(known)
        assert graph is None or topo.check(graph) == []


def attempt(name: str, **parameters: object) -> tuple[tuple[topo.Fault, ...], nx.Graph | None]:
    try:
        return (), topo.build(name, **parameters)
    except InputError as error:
        return error.faults, None


def test_a_plane_more_than_lanes_is_said_as_a_parameter() -> None:
    with pytest.raises(InputError) as caught:
        topo.build("switched", n=8, planes=4, lanes=18)
    assert [fault.place for fault in caught.value.faults] == ["lanes"]
