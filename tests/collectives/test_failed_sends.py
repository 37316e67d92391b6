"""Do sends take other ways where a failure took theirs?"""

from __future__ import annotations

import pytest

import collectives
import topo
from collectives import failures

DRY = {"scale_up.latency": "0 s", "scale_out.latency": "0 s"}


def test_sends_take_other_rails_where_theirs_is_lost() -> None:
    boxes = topo.load("hgx-h100-8", (3, 3), DRY | {"scale_out.shape": "rail_only"})
    found = failures(boxes, "send", 1e9)
    assert found.algorithm == "direct"
    lost = [one for one in found.singles if one.parts[0][0] == "nic" and one.unreachable]
    assert lost
    assert {(one.algorithm, one.instead) for one in lost} == {("rail_aligned", True)}
    for one in lost:
        ends = one.parts[0][1].split(" - ")
        then = collectives.cost(topo.fail(boxes, links=[tuple(ends)]), "send", 1e9, algorithm="rail_aligned")
        assert one.seconds == pytest.approx(then.seconds)
        assert one.loss == pytest.approx(then.seconds - found.seconds)
    # a GPU off its switch keeps its stage; one that is gone takes the sends along
    assert all(not one.stopped for one in found.singles if one.parts[0][0] == "link")
    assert all(one.stopped for one in found.singles if one.parts[0][0] == "tray")
