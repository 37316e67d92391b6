"""Are the tables those of a field?"""

from __future__ import annotations

import numpy as np
import pytest

from topo._galois import field, prime_power

POWERS = [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32, 37, 49, 64, 81]


@pytest.mark.parametrize("q", POWERS)
def test_axioms(q: int) -> None:
    gf = field(q)
    everything = np.arange(q)
    for table in (gf.add, gf.multiply):
        assert (table == table.T).all()
        left, right = table[table], table[:, table]  # (a b) c and a (b c)
        assert (left == right).all()
    assert (gf.add[0] == everything).all()
    assert (gf.multiply[1] == everything).all()
    assert (np.sort(gf.add, axis=1) == everything).all(), "every element has a negative"
    assert (np.sort(gf.multiply[1:], axis=1) == everything).all(), "and all but zero an inverse"
    a, b, c = np.ix_(everything, everything, everything)
    assert (gf.multiply[a, gf.add[b, c]] == gf.add[gf.multiply[a, b], gf.multiply[a, c]]).all()
    assert gf.p**gf.n == q
    assert sum(1 for _ in gf.powers) == len(set(gf.powers.tolist())) == q - 1


def test_prime_fields_are_the_integers_modulo_p() -> None:
    seven = field(7)
    i, j = np.ix_(range(7), range(7))
    assert (seven.add == (i + j) % 7).all()
    assert (seven.multiply == i * j % 7).all()


def test_prime_powers_up_to_30() -> None:
    found = [q for q in range(-2, 31) if prime_power(q)]
    assert found == [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29]
    assert [prime_power(q) for q in (8, 9, 25, 27)] == [(2, 3), (3, 2), (5, 2), (3, 3)]
