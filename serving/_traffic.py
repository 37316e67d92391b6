"""Who asks how often for how much, and how long may it take?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from serving.laws import context_in_flight
from topo import Fault, InputError

__all__ = ["Traffic", "log_normal_lengths"]

#: Tokens and the part of all requests that has as many.
Lengths = Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Traffic:
    """Requests of a service and what it promises.

    Parameters
    ----------
    requests_per_second : float
        Arriving [1/s].
    prompt, answer : int or sequence of (int, float)
        Tokens; several with the weight of each, independent of each other.
    cache_hit : float, optional
        Part of a prompt's tokens whose KV cache is there already.
    ttft, tpot : float, optional
        Longest time to the first token, for prompts up to the `quantile`, and per further token [s].
    quantile : float, optional
        Part of the prompts that `ttft` holds for.
    headroom : float, optional
        Part of what the fleet can do that is kept free.

    Examples
    --------
    >>> Traffic(50, prompt=[(500, 3), (4000, 1)], answer=300).mean_prompt
    1375.0
    """

    requests_per_second: float
    prompt: int | Lengths
    answer: int | Lengths
    cache_hit: float = 0.0
    ttft: float = 2.0
    tpot: float = 0.05
    quantile: float = 0.95
    headroom: float = 0.3

    def __post_init__(self) -> None:
        """Refuse what cannot be, all at once."""
        faults = [
            Fault(name, getattr(self, name), "must be a finite number above zero", "Correct it.")
            for name in ("requests_per_second", "ttft", "tpot") if not _within(getattr(self, name), 0, math.inf)
        ]  # fmt: skip
        faults += [
            Fault(name, getattr(self, name), "must lie in 0 .. 1, 1 excluded", "Give a part, as 0.3.")
            for name in ("cache_hit", "headroom")
            if getattr(self, name) != 0 and not _within(getattr(self, name), 0, 1)
        ]
        if self.quantile != 1 and not _within(self.quantile, 0, 1):
            faults.append(Fault("quantile", self.quantile, "must lie above 0 and up to 1", "Give a part, as 0.95."))
        for name in ("prompt", "answer"):
            value = getattr(self, name)
            if not _are_lengths(value):
                rule = "must be whole tokens, or pairs of tokens and their weight, all above zero"
                faults.append(Fault(name, value, rule, "Give 1000, or [(500, 3), (4000, 1)]."))
        if faults:
            raise InputError(*faults)

    def shares(self, name: str) -> list[tuple[int, float]]:
        """Return tokens, ascending, and their parts of all, which sum to one; of `prompt` or `answer`."""
        value = getattr(self, name)
        rows = sorted([(value, 1.0)] if isinstance(value, int | np.integer) else value)
        total = sum(weight for _, weight in rows)
        return [(int(tokens), weight / total) for tokens, weight in rows]

    def mean(self, name: str, power: int = 1) -> float:
        """Return the mean of a power of the tokens of `prompt` or `answer`."""
        return float(sum(share * tokens**power for tokens, share in self.shares(name)))

    @property
    def mean_prompt(self) -> float:
        """Mean tokens of a prompt."""
        return self.mean("prompt")

    @property
    def mean_answer(self) -> float:
        """Mean tokens of an answer."""
        return self.mean("answer")

    @property
    def mean_context(self) -> int:
        """Mean tokens in the caches of the sequences being decoded at one moment."""
        return round(context_in_flight(self.mean_prompt, self.mean_answer, self.mean("answer", 2)))

    @property
    def long_prompt(self) -> int:
        """Tokens of the longest prompt that `ttft` holds for."""
        below = 0.0
        for tokens, share in self.shares("prompt"):
            below += share
            if below >= self.quantile - 1e-12:
                return tokens
        return self.shares("prompt")[-1][0]


def _within(value: Any, low: float, high: float) -> bool:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number and bool(low < value < high)


def _are_lengths(value: Any) -> bool:
    rows = [(value, 1.0)] if isinstance(value, int | np.integer) else value
    return (
        isinstance(rows, Sequence) and not isinstance(rows, str) and len(rows) > 0
        and all(isinstance(row, Sequence) and len(row) == 2 for row in rows)
        and all(_within(n, 0, 1e9) and _within(weight, 0, 1e9) and n == int(n) for n, weight in rows)
    )  # fmt: skip


def log_normal_lengths(median: float, p95: float, parts: int = 8) -> list[tuple[int, float]]:
    """Return lengths that are spread log-normally: equal parts, each at its middle quantile.

    Parameters
    ----------
    median, p95 : float
        Tokens that half, and 95 % of all, stay below.
    parts : int, optional
        How many different lengths.

    Raises
    ------
    InputError
        No such lengths: not above zero, or the quantile below the median.

    Examples
    --------
    >>> log_normal_lengths(1000, 8000, 4)
    [(234, 0.25), (668, 0.25), (1496, 0.25), (4281, 0.25)]
    """
    if not (_within(median, 0, 1e9) and _within(p95, 0, 1e9) and median <= p95):
        rule = "must be tokens above zero, the median no more than the 95th percentile"
        raise InputError(Fault("median, p95", (median, p95), rule, "Give 2000, 12000."))
    if not (_within(parts, 0, 1e6) and isinstance(parts, int)):
        raise InputError(Fault("parts", parts, "must be a whole number, at least one", "Give 8."))
    normal = NormalDist()
    sigma = math.log(p95 / median) / normal.inv_cdf(0.95)
    middles = [(i + 0.5) / parts for i in range(parts)]
    return [(max(1, round(median * math.exp(sigma * normal.inv_cdf(q)))), 1 / parts) for q in middles]
