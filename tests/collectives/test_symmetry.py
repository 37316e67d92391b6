"""Are nodes told apart that no symmetry exchanges?"""

from __future__ import annotations

import numpy as np

from collectives._symmetry import refine


def test_refinement_tells_a_path_from_its_middle() -> None:
    tail, head = np.array([0, 1, 2, 3]), np.array([1, 2, 3, 4])
    undirected = np.concatenate([tail, head]), np.concatenate([head, tail])
    colour = refine(np.zeros(5, dtype=np.intp), *undirected, np.zeros(8, dtype=np.intp))
    assert [colour[0] == colour[4], colour[1] == colour[3], len(set(colour.tolist()))] == [True, True, 3]
