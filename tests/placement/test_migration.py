"""Does a migration move what it must and no more, and as long as its bytes take?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import topo
from placement import Gpus, migrate, place
from serving import PlacementPlan
from topo import InputError

from .expert_loads import loads

STAGE = np.zeros(1, dtype=np.intp)


def plan(rows: list[list[int]]) -> PlacementPlan:
    """Experts of every GPU, one layer."""
    expert = np.array([[e for row in rows for e in row]])
    rank = np.array([[g for g, row in enumerate(rows) for _ in row]])
    return PlacementPlan(expert, rank, STAGE, len(rows), 1)


def test_one_copy_by_hand() -> None:
    """GPU 1 gets a copy of expert 0 for one of 3: 44 MB, from the GPU that has it."""
    found = migrate(plan([[0, 1], [2, 3]]), plan([[0, 1], [2, 0]]), 44e6)
    assert (found.copies, found.n_bytes, found.across_bytes) == (1, 44e6, 0.0)
    assert found.traffic.tolist() == [[0.0, 44e6], [0.0, 0.0]]


def test_names_change_within_a_domain_only() -> None:
    before, after = plan([[0], [1], [2], [3]]), plan([[2], [3], [1], [0]])
    assert migrate(before, after, 1.0).copies == 0
    two = migrate(before, after, 1.0, gpus=Gpus([1] * 4, domain=[0, 0, 1, 1]))
    assert (two.copies, two.across_bytes) == (4, 4.0)


def test_a_copy_comes_from_its_own_domain() -> None:
    gpus = Gpus([2] * 4, domain=[0, 0, 1, 1])
    found = migrate(plan([[0, 1], [2, 3], [0, 4], [5, 6]]), plan([[0, 1], [2, 3], [0, 4], [5, 0]]), 1.0, gpus=gpus)
    assert found.traffic[2, 3] == 1.0
    assert found.across_bytes == 0.0


def test_the_new_plan_is_as_good_and_what_moves_fills_the_gap() -> None:
    first, second = (loads(16, "lognormal0.7", layers=2, seed=s) for s in (1, 2))
    old, new = place(first, 4, replicas=4, work=20).plan, place(second, 4, replicas=4, work=20).plan
    assert old is not None
    assert new is not None
    found = migrate(old, new, 2.0)
    assert np.sort(found.plan.gpu_load(second)).tolist() == np.sort(new.gpu_load(second)).tolist()
    here = {(m, e, g) for m in range(2) for e, g in zip(old.slot_expert[m], old.slot_rank[m], strict=True)}
    there = {(m, e, g) for m in range(2) for e, g in zip(new.slot_expert[m], found.plan.slot_rank[m], strict=True)}
    assert found.copies == len(there - here)
    assert found.n_bytes == 2.0 * found.copies


def test_seconds_are_bytes_over_the_link() -> None:
    """Eight GPUs in a ring of names, each sends 45 GB over 450 GB/s: a tenth of a second and some latency."""
    rack = topo.load("hgx-h100-8")
    before, after = plan([[g] for g in range(8)]), plan([[g, (g + 1) % 8] for g in range(8)])
    found = migrate(before, after, 45e9, graph=rack)
    assert found.copies == 8
    assert found.seconds == pytest.approx(0.1, rel=1e-3)
    assert migrate(before, before, 1.0, graph=rack).seconds == 0.0


def test_other_machines_and_experts_are_refused() -> None:
    with pytest.raises(InputError, match="GPUs and layers"):
        migrate(plan([[0], [1]]), plan([[0, 1]]), 1.0)
    with pytest.raises(InputError, match="several stages"):
        migrate(plan([[0], [1]]), replace(plan([[0], [1]]), pp=2), 1.0)
    with pytest.raises(InputError, match="no GPU holds"):
        migrate(plan([[0], [1]]), plan([[0], [2]]), 1.0)
    with pytest.raises(InputError, match="expert_bytes"):
        migrate(plan([[0]]), plan([[0]]), 0.0)
