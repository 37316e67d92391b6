"""Is the time that faster links save the slope of the time?"""

from __future__ import annotations

import networkx as nx
import pytest

import collectives
import topo
from topo import Fabric, InputError

from .shapes import racks


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-8, abs=0.0)


def test_only_what_binds_saves() -> None:
    """2 x 2 ranks of 9 and 1 GB/s: 2 MB of 4 MB over the NIC."""
    found = collectives.sensitivity(racks(2, 2, latency=1e-6), "all_to_all", 4e6)
    assert found.saved == {"scale-up": 0.0, "scale-out": close(2e6 / 1e9)}
    assert found.cost.seconds == found.to_dict()["seconds"]


def test_phases_share_the_time() -> None:
    """Hierarchical all-gather over 2 x 4: 4 MB out, then 24 MB inside, one after the other."""
    found = collectives.sensitivity(racks(4, 4), "all_gather", 32e6, algorithm="hierarchical")
    assert found.saved == {"scale-out": close(4e6 / 1e9), "scale-up": close(24e6 / 9e9)}
    assert sum(found.saved.values()) == close(found.cost.bandwidth_seconds)


def test_at_a_tie_neither_kind_saves_alone() -> None:
    """2 x 2 ranks: 1 MB stays inside, 2 MB leave; at half the NIC's rate scale-up binds alike."""
    tie = racks(2, 2, up=1e9, out=2e9)
    assert collectives.sensitivity(tie, "all_to_all", 4e6).saved == {"scale-up": 0.0, "scale-out": 0.0}
    faster = collectives.sensitivity(topo.scale(tie, kind="scale-out", bandwidth=1.001), "all_to_all", 4e6)
    assert faster.saved == {"scale-up": close(1e6 / 1e9), "scale-out": 0.0}


def test_the_best_may_change() -> None:
    graph = racks(4, 4, rails=True)
    found = collectives.sensitivity(graph, "all_to_all", 8e6, algorithm="best", routing="even")
    assert found.cost.algorithm == "rail_pipelined"
    assert found.saved["scale-out"] == close(found.cost.bandwidth_seconds)


def test_takes_a_schedule_and_a_fabric() -> None:
    graph = racks(2, 2)
    plan = collectives.schedule("all_to_all", graph, 4e6)
    assert collectives.sensitivity(Fabric.from_graph(graph), plan).saved["scale-out"] == close(2e6 / 1e9)


def test_routes_are_of_their_bandwidths() -> None:
    graph: nx.Graph = racks(2, 2)
    with pytest.raises(InputError, match="these bandwidths only"):
        collectives.sensitivity(graph, "all_to_all", 4e6, routing=topo.route(graph))


def test_nothing_sent_saves_nothing() -> None:
    assert collectives.sensitivity(racks(2, 2), "all_to_all", 0).saved == {"scale-up": 0.0, "scale-out": 0.0}
