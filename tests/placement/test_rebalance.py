"""Does the drop-in keep EPLB's call and layout, and is no layer heavier than EPLB's?"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import placement
from topo import InputError

from .eplb import heaviest, rebalance
from .expert_loads import CASES, HIER, KINDS, loads

#: The example of EPLB's README, and the placement it prints there.
README = [[90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86], [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27]]
PLACED = [[5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1], [7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1]]


def check(weight: Any, replicas: int, groups: int, nodes: int, gpus: int) -> tuple[NDArray[np.int64], float]:
    """Refuse an answer that is not in EPLB's layout or heavier; return slots and the largest ratio to EPLB's."""
    phy2log, log2phy, logcnt = placement.rebalance_experts(weight, replicas, groups, nodes, gpus)
    layers, n = np.shape(weight)
    assert phy2log.shape == (layers, replicas)
    assert log2phy.shape == (layers, n, logcnt.max())
    assert {array.dtype for array in (phy2log, log2phy, logcnt)} == {np.dtype(np.int64)}
    for row, table, count in zip(phy2log, log2phy, logcnt, strict=True):
        assert np.bincount(row, minlength=n).tolist() == count.tolist()
        for i in range(n):
            assert table[i, : count[i]].tolist() == np.flatnonzero(row == i).tolist()
            assert (table[i, count[i] :] == -1).all()
    ratio = heaviest(weight, phy2log, gpus) / heaviest(
        weight, rebalance(weight, replicas, groups, nodes, gpus)[0], gpus
    )
    return phy2log, float(ratio.max())


def test_the_oracle_is_eplb() -> None:
    expert, _ = rebalance(README, 16, 4, 2, 8)
    assert expert.tolist() == PLACED
    assert heaviest(README, expert, 8) == pytest.approx([1.2081, 1.2422], abs=5e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", [(e, r, g, 1, 1) for e, r, g in CASES if (e + r) % g == 0] + HIER)
def test_no_layer_is_heavier_than_eplbs(case: tuple[int, int, int, int, int], kind: str) -> None:
    experts, spare, gpus, groups, nodes = case
    phy2log, ratio = check(loads(experts, kind, layers=5), experts + spare, groups, nodes, gpus)
    assert ratio <= 1 + 1e-12
    if nodes > 1:
        node = phy2log.reshape(5, nodes, -1) // (experts // groups)
        assert [[len(np.unique(part)) for part in row] for row in node] == [[groups // nodes] * nodes] * 5


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=14), st.integers(1, 5), st.integers(1, 4), st.integers(0, 1))
def test_no_small_layer_is_heavier_than_eplbs(load: list[int], gpus: int, slots: int, bump: int) -> None:
    slots = max(slots, -(-len(load) // gpus))
    assert check([[x + bump + (not any(load)) for x in load]], slots * gpus, 1, 1, gpus)[1] <= 1 + 1e-12


def test_sizes_that_do_not_divide() -> None:
    """416 slots on 72 GPUs: 56 GPUs of 6 and 16 of 5."""
    weight = loads(384, "lognormal0.7", layers=3)
    phy2log, _, logcnt = placement.rebalance_experts(weight, 416, 1, 1, 72)
    held = np.take_along_axis(weight / logcnt, phy2log, 1)
    assert held[:, :336].reshape(3, 56, 6).sum(axis=-1).max() * 72 < 1.05
    assert held[:, 336:].reshape(3, 16, 5).sum(axis=-1).max() * 72 < 1.05
    on_nodes = placement.rebalance_experts(loads(320, "zipf1", layers=2), 400, 10, 5, 72)[0]
    node = np.repeat(np.arange(5), [90, 90, 80, 70, 70])  # 40 GPUs of 6 slots, then 5; two nodes of 15 GPUs, then 14
    assert all(len(np.unique(node[on_nodes[0] // 32 == group])) == 1 for group in range(10))


def test_no_load_at_all_is_uniform() -> None:
    blank, ones = (placement.rebalance_experts(np.full((1, 6), x), 8, 1, 1, 4) for x in (0.0, 1.0))
    assert all((a == b).all() for a, b in zip(blank, ones, strict=True))


def test_the_argument_is_left_alone() -> None:
    weight = loads(16, "zipf1", layers=2)
    before = weight.copy()
    placement.rebalance_experts(weight, 20, 1, 1, 4)
    assert (weight == before).all()


@pytest.mark.parametrize(
    ("weight", "sizes", "said"),
    [
        ([[1.0, float("nan")]], (4, 1, 1, 2), r"weight\[0, 1\].*finite"),
        ([[1.0, -2.0]], (4, 1, 1, 2), r"weight\[0, 1\].*zero or more"),
        ([1.0, 2.0], (4, 1, 1, 2), "shape"),
        ([[1.0], [1.0, 2.0]], (4, 1, 1, 2), "array of numbers"),
        ([[1.0, 2.0, 3.0]], (2, 1, 1, 2), "fewer slots than the 3 experts"),
        ([[1.0, 2.0]], (4, 1, 1, 0), "num_gpus.*whole number"),
        ([[1.0, 2.0]], (4.0, 1, 1, 2), "num_replicas.*whole number"),
        ([[1.0, 2.0, 3.0]], (4, 2, 2, 2), "does not divide"),
        ([[1.0, 2.0]], (4, 2, 2, 1), "fewer than the 2 nodes"),
        ([[1.0] * 8], (8, 2, 2, 3), "leaves a node"),
    ],
)
def test_bad_input_is_refused(weight: Any, sizes: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        placement.rebalance_experts(weight, *sizes)


class Tensor:
    """The part of torch.Tensor that is asked for."""

    def __init__(self, array: Any, device: str = "cpu") -> None:
        self.array, self.device = np.asarray(array), device

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return Tensor(self.array)

    def double(self) -> Tensor:
        return Tensor(self.array.astype(np.float64))

    def numpy(self) -> Any:
        assert self.device == "cpu"
        return self.array

    def to(self, device: str) -> Tensor:
        return Tensor(self.array, device)


Tensor.__module__ = "torch"


def test_tensors_come_back_on_their_device(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = ModuleType("torch")
    torch.from_numpy = Tensor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    answer = placement.rebalance_experts(Tensor(README, "cuda:1"), 16, 4, 2, 8)
    assert [(type(each), each.device) for each in answer] == [(Tensor, "cuda:1")] * 3
    plain = placement.rebalance_experts(README, 16, 4, 2, 8)
    assert all((a.array == b).all() for a, b in zip(answer, plain, strict=True))
