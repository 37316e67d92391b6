"""Does the curve of balance show what the record holds?"""

from __future__ import annotations

import numpy as np

from figures import draw_balance
from placement import BalanceCurve


def curve() -> BalanceCurve:
    """Return two layers at three balances; at the tightest one layer is heavier than asked, and is proven to be."""
    crossing = np.array([[0.5, 0.3], [0.4, 0.2], [0.2, 0.2]])
    bound = np.array([[np.inf, 0.3], [0.35, 0.2], [0.2, 0.1]])
    return BalanceCurve(
        np.array([1.01, 1.1, 1.3]), crossing, bound, np.array([[1.05, 1.01], [1.1, 1.08], [1.3, 1.2]]), ()
    )


def test_points_are_means_and_hollow_where_too_heavy() -> None:
    ax = draw_balance(curve())
    lines = {str(line.get_label()): np.asarray(line.get_xydata()) for line in ax.lines}
    assert np.allclose(lines["placed"], [[1.03, 0.4], [1.09, 0.3], [1.25, 0.2]])
    assert np.allclose(lines["placed, some layers heavier than asked"], [[1.03, 0.4]])
    assert np.allclose(lines["no placement is below"], [[1.1, 0.275], [1.3, 0.15]])


def test_the_title_is_the_answer() -> None:
    assert draw_balance(curve(), heading="mine").get_title(loc="left").replace("\n", " ") == (
        "mine: 40.0 % cross with the heaviest GPU at 1.03 times the mean, 20.0 % at 1.25"
    )
