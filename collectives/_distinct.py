"""Which ranks and domains does a token of k different experts reach? Exact probabilities.

A token takes a set of k experts with a chance in proportion to the product of their odds
(fixed-size conditional Poisson), the odds such that an expert is taken k x share times.
Under a group limit it takes M of the groups and k experts in them together, any such pair in
proportion to the same product. Uniform loads and equal groups: any M groups, then any k of
their experts. Chances are ratios of elementary symmetric sums, all terms positive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topo import Fault, InputError

__all__ = ["TokenLaw", "free_groups", "token_law"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: Rounds of the fit of the odds; a round halves the error.
_ROUNDS = 400
_CLOSE, _ENOUGH = 1e-13, 1e-9
#: How often an expert may not be taken and still counts as always taken.
_CERTAIN = 1e-12


@dataclass(frozen=True, eq=False)
class TokenLaw:
    """How tokens choose experts; one row per kind of token.

    Attributes
    ----------
    odds : (rows, experts) float
        Of each expert.
    certain : (rows, experts) bool
        Experts that every token takes.
    group : (experts,) int
        Group of every expert, from 0.
    limit : int
        Groups a token's experts lie in at most; all of them: no limit.
    top_k : int
        Different experts of a token.
    """

    odds: Floats
    certain: NDArray[np.bool_]
    group: Ints
    limit: int
    top_k: int

    def hit(self, away: Floats) -> Floats:
        """Return the chance that at least one of a token's copies goes to each place, (rows, places).

        Parameters
        ----------
        away : (places, experts) float
            Part of an expert's copies that goes elsewhere: 0 where the place alone holds it.
        """
        return np.stack([1 - self._missed(row, away) for row in range(len(self.odds))])

    def _missed(self, row: int, away: Floats) -> Floats:
        place = _table(self.group)
        stay, go = _padded(place, (~self.certain[row]).astype(float), 1.0), _padded(place, self.odds[row], 0.0)
        is_open = np.logical_and.reduce(stay > 0, axis=-1)
        total = _whole(_inside(stay, go, self.top_k), is_open, self.limit)
        kept: Floats = _whole(_inside(stay, go * _padded(place, away, 0.0), self.top_k), is_open, self.limit) / total
        return kept

    def inclusion(self) -> Floats:
        """Return the chance that a token takes each expert, (rows, experts)."""
        return self.chances()[0]

    def chances(self) -> tuple[Floats, Floats]:
        """Return the chances that a token takes each expert and that it does not, each exact where it is small."""
        place, k = _table(self.group), self.top_k
        stay, go = _padded(place, (~self.certain).astype(float), 1.0), _padded(place, self.odds, 0.0)
        groups, width = place.shape
        inside, is_open = _inside(stay, go, k), np.logical_and.reduce(stay > 0, axis=-1)
        alone = np.eye(width, dtype=bool)
        without = _inside(
            np.where(alone, 1.0, stay[..., None, :]), np.where(alone, 0.0, go[..., None, :]), k
        )  # (rows, groups, width, k + 1)
        one, own = np.eye(k + 1)[0], np.eye(groups, dtype=bool)
        others = np.where(own[..., None], one, inside[:, None])
        spare = groups - self.limit
        left_out = _combined(others, is_open[:, None] & ~own, spare)
        rest, total = left_out[..., -1, :], _whole(inside, is_open, self.limit)[:, None, None]
        taken = go * (without[..., :k] * rest[..., None, k - 1 :: -1]).sum(axis=-1) / total
        shut = is_open * left_out[..., -2, -1] if spare else np.zeros(is_open.shape)
        not_taken = (stay * (without * rest[..., None, ::-1]).sum(axis=-1) + shut[..., None]) / total
        order = np.argsort(place[place >= 0])
        return taken[:, place >= 0][:, order], not_taken[:, place >= 0][:, order]


def free_groups(n_experts: int) -> Ints:
    """Return groups that limit nothing: blocks as long as there are many, which is quickest."""
    block: Ints = np.arange(n_experts) // math.isqrt(n_experts)
    return block


def token_law(shares: Floats, top_k: int, group: Ints, limit: int) -> TokenLaw:
    """Fit the odds, so that a token takes every expert top_k x share times.

    Parameters
    ----------
    shares : (rows, experts) float
        No more than 1 / top_k each, as from `inclusion_shares`; rows sum to one.
    top_k : int
        Different experts of a token.
    group : (experts,) int
        Group of every expert, from 0.
    limit : int
        Groups a token's experts lie in at most.

    Raises
    ------
    InputError
        No choice within so few groups has these shares.

    References
    ----------
    S. X. Chen, A. P. Dempster, J. S. Liu, "Weighted finite population sampling to maximize
    entropy", Biometrika 81, 1994. The fit here corrects log odds by half their error.

    Examples
    --------
    >>> law = token_law(np.full((1, 256), 1 / 256), 8, free_groups(256), 16)
    >>> gpus = np.arange(256) // 4 == np.arange(64)[:, None]
    >>> round(float(law.hit(1.0 - gpus).sum()), 4)
    7.6758
    """
    wanted, unwanted = _wanted(shares * top_k, top_k)
    certain, never = unwanted <= 0, wanted <= 0
    fixed = certain | never
    aim = np.divide(wanted, unwanted, out=np.ones_like(wanted), where=~fixed)
    law = TokenLaw(np.where(never, 0.0, aim), certain, group, limit, top_k)
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN: no set of top_k experts is within the groups
        (found, left), part = law.chances(), 0.5
        error = _error(found, wanted)
        for _ in range(_ROUNDS):
            if not error > _CLOSE:
                break
            ratio = np.where(fixed, 1.0, aim * left / found)
            trial = replace(law, odds=law.odds * ratio**part)
            inclusion, exclusion = trial.chances()
            if (trial_error := _error(inclusion, wanted)) < error:
                law, found, left, error = trial, inclusion, exclusion, trial_error
            else:  # experts of one group go together: smaller steps
                part /= 2
    if not error <= _ENOUGH:
        rule = f"cannot be had with {top_k} experts of at most {limit} groups"
        raise InputError(
            Fault("expert_load", np.round(wanted / top_k, 6), rule, "Allow more groups, or correct the load.")
        )
    return law


def _wanted(wanted: Floats, top_k: int) -> tuple[Floats, Floats]:
    """Return how often each expert is to be taken and not to be, 0 where never or always.

    The rare times that much loaded experts are not taken are those that the others are: a
    difference to one would lose their digits.
    """
    unwanted = np.where(wanted >= 1 - _CERTAIN, 0.0, 1 - wanted)
    full = ((unwanted == 0).sum(axis=1) == top_k)[:, None]
    wanted = np.where(unwanted == 0, 1.0, np.where(full, 0.0, wanted))
    much = (wanted > 0.5) & (unwanted > 0)
    others = (wanted > 0.5).sum(axis=1) - top_k + np.where(wanted > 0.5, 0.0, wanted).sum(axis=1)
    sums = np.where(much, unwanted, 0.0).sum(axis=1)
    scale = np.divide(others, sums, out=np.ones_like(sums), where=sums > 0)[:, None]
    return wanted, np.where(much, unwanted * scale, unwanted)


def _error(found: Floats, wanted: Floats) -> float:
    """Return the largest relative error; NaN where no choice is possible."""
    return float(np.abs(np.divide(found, wanted, out=np.ones_like(found), where=wanted > 0) - 1).max())


def _table(group: Ints) -> Ints:
    """Return the experts of every group, (groups, width); -1 fills."""
    order = np.argsort(group, kind="stable")
    size = np.bincount(group)
    place = np.full((len(size), int(size.max())), -1, dtype=np.intp)
    first = np.cumsum(size) - size
    place[group[order], np.arange(len(group)) - first[group[order]]] = order
    return place


def _padded(place: Ints, values: Floats, filler: float) -> Floats:
    return np.where(place >= 0, values[..., place], filler)


def _inside(stay: Floats, go: Floats, k: int) -> Floats:
    """Return the product of (stay + go x) over the last axis, as coefficients up to x^k."""
    found = np.zeros((*np.broadcast_shapes(stay.shape, go.shape)[:-1], k + 1))
    found[..., 0] = 1.0
    for i in range(stay.shape[-1]):
        more = found[..., :-1] * go[..., i, None]
        found *= stay[..., i, None]
        found[..., 1:] += more
    return found


def _combined(inside: Floats, is_open: NDArray[np.bool_], spare: int) -> Floats:
    """Multiply groups of which `spare` are left out, (..., spare + 1, k + 1): by groups left out and experts taken."""
    length = inside.shape[-1]
    found = np.zeros((*inside.shape[:-2], spare + 1, length))
    found[..., 0, 0] = 1.0
    for g in range(inside.shape[-2]):
        into = np.zeros_like(found)
        for j in range(length):
            into[..., j:] += inside[..., g, j, None, None] * found[..., : length - j]
        into[..., 1:, :] += is_open[..., g, None, None] * found[..., :-1, :]
        found = into
    return found


def _whole(inside: Floats, is_open: NDArray[np.bool_], limit: int) -> Floats:
    """Return the sum over all choices of `limit` groups and k experts in them."""
    found: Floats = _combined(inside, is_open, inside.shape[-2] - limit)[..., -1, -1]
    return found
