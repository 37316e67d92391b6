"""How does one add and multiply in GF(q)? Finite fields of prime power order, exact, as small tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = ["Field", "field", "prime_power"]

Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Field:
    """GF(p^n), elements 0 .. q-1: the digits of an element to base p are the coefficients of its polynomial.

    Attributes
    ----------
    p, n : int
        Characteristic and degree.
    powers : (q - 1,) int
        Powers 0, 1, ... of a primitive element.
    add, multiply : (q, q) int
        Tables of sum and product.
    """

    p: int
    n: int
    powers: Ints
    add: Ints
    multiply: Ints


def prime_power(q: int) -> tuple[int, int] | None:
    """Return p and n with q = p^n, p prime; None where there are none.

    Examples
    --------
    >>> prime_power(27), prime_power(28)
    ((3, 3), None)
    """
    if q < 2:
        return None
    p = next((d for d in range(2, int(q**0.5) + 1) if q % d == 0), q)
    n, rest = 0, q
    while rest % p == 0:
        n, rest = n + 1, rest // p
    return (p, n) if rest == 1 else None


@cache
def field(q: int) -> Field:
    """Return GF(q), q a prime power.

    Examples
    --------
    >>> nine = field(9)
    >>> sorted(int(x) for x in nine.powers)
    [1, 2, 3, 4, 5, 6, 7, 8]
    """
    found = prime_power(q)
    assert found is not None, f"{q} is no prime power"
    p, n = found
    powers = np.array(_powers(p, n), dtype=np.intp)
    digits = np.arange(q)[:, None] // p ** np.arange(n) % p
    add = ((digits[:, None] + digits) % p) @ p ** np.arange(n)
    log = np.zeros(q, dtype=np.intp)
    log[powers] = np.arange(q - 1)
    multiply = powers[(log[:, None] + log) % (q - 1)]
    multiply[0, :] = multiply[:, 0] = 0
    return Field(p, n, powers, add, multiply)


def _powers(p: int, n: int) -> list[int]:
    """Powers of x modulo the first monic polynomial of degree n over GF(p) that makes x primitive."""
    one = (1, *(0,) * (n - 1))
    for low in product(range(p), repeat=n):
        element, powers = one, [1]
        for _ in range(p**n - 1):
            top = element[-1]  # x^n is minus the lower coefficients
            element = tuple((c - top * f) % p for c, f in zip((0, *element[:-1]), low, strict=True))
            if element == one:
                break
            powers.append(sum(c * p**i for i, c in enumerate(element)))
        if element == one and len(powers) == p**n - 1:
            return powers
    raise AssertionError("every finite field has a primitive element")
