"""What must a placement keep to: slots and speeds of GPUs, experts pinned, forbidden, kept together, kept apart?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topo import Fault, InputError

__all__ = ["SHARINGS", "Allowed", "Gpus", "Rules", "allowed", "home_choices", "may_of", "seated"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


#: How copies of an expert share its tokens.
SHARINGS = ("equal", "weighted")


@dataclass(frozen=True, eq=False)
class Gpus:
    """GPUs that experts go to; they may be unequal.

    Parameters
    ----------
    slots : (gpus,) int
        Experts each has memory for; 0 for one that is missing.
    speed : (gpus,) float, optional
        Relative speeds: a GPU counts as heavy as load / speed. Equal by default.
    domain, host : (gpus,) int, optional
        Scale-up domain and host of each. One domain, and a host of its own, by default.

    Examples
    --------
    >>> Gpus([4, 4, 2], speed=[1, 1, 0.5]).domain.tolist()
    [0, 0, 0]
    """

    slots: Any
    speed: Any = None
    domain: Any = None
    host: Any = None

    def __post_init__(self) -> None:
        """Refuse what cannot be, all at once, and fill in what is not given."""
        slots = _array("slots", self.slots, None)
        n = len(slots)
        speed = _array("speed", np.ones(n) if self.speed is None else self.speed, n)
        domain = _array("domain", np.zeros(n) if self.domain is None else self.domain, n)
        host = _array("host", np.arange(n) if self.host is None else self.host, n)
        faults = []
        if n == 0 or (slots < 0).any() or (slots % 1 != 0).any() or not slots.any():
            faults.append(
                Fault("gpus.slots", "array", "must be whole numbers, zero or more, not all zero", "Correct it.")
            )
        if not (speed > 0).all():
            faults.append(Fault("gpus.speed", "array", "must be above zero", "Give a missing GPU no slots."))
        if faults:
            raise InputError(*faults)
        for name, value in (("slots", slots), ("domain", domain), ("host", host)):
            object.__setattr__(self, name, value.astype(np.int64))
        object.__setattr__(self, "speed", speed)


def _array(name: str, value: ArrayLike, n: int | None) -> Floats:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full((0, 0), np.nan)
    if array.ndim != 1 or (n is not None and len(array) != n) or not np.isfinite(array).all():
        rule = "must be a row of finite numbers" + ("" if n is None else f", one for each of the {n} GPUs")
        raise InputError(Fault(f"gpus.{name}", "array", rule, "Correct it."))
    return array


@dataclass(frozen=True)
class Rules:
    """What a placement must keep to; the same in all layers.

    Parameters
    ----------
    pin : mapping of expert to GPU, or GPUs, optional
        A copy of the expert stays there, or on each of them: a slot that is fixed.
    forbid : mapping of expert to GPUs, optional
        No copy of it on those.
    together : sequence of groups of experts, optional
        All copies of a group's experts in one domain: a model's groups under node-limited
        routing, or experts that are often chosen together.
    apart : {"gpu", "host", "domain"}, optional
        Any one of them may be lost and a copy of every expert is left. By default one copy
        of an expert is enough.

    Examples
    --------
    >>> Rules(pin={0: 3}, together=[[0, 1], [2, 3]]).apart is None
    True
    """

    pin: Mapping[int, int | Sequence[int]] = field(default_factory=dict)
    forbid: Mapping[int, Sequence[int]] = field(default_factory=dict)
    together: Sequence[Sequence[int]] = ()
    apart: str | None = None

    @property
    def pins(self) -> tuple[tuple[int, int], ...]:
        """Every expert that is pinned with a GPU it is pinned to."""
        return tuple((e, g) for e, where in self.pin.items() for g in _listed(where))

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the rules that ask anything."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name))

    def require(self, n: int, gpus: Gpus) -> None:
        """Refuse experts and GPUs that are not there, all at once."""
        m = len(gpus.slots)
        faults = []
        experts = {
            "pin": [*self.pin],
            "forbid": [*self.forbid],
            "together": [e for group in self.together for e in group],
        }
        there = {"pin": [g for _, g in self.pins], "forbid": [g for row in self.forbid.values() for g in _listed(row)]}
        for name, limit, what in [*((k, n, v) for k, v in experts.items()), *((k, m, v) for k, v in there.items())]:
            wrong = [
                x for x in what if isinstance(x, bool) or not isinstance(x, int | np.integer) or not 0 <= x < limit
            ]
            if wrong:
                faults.append(Fault(f"rules.{name}", wrong[0], f"is not one of 0 to {limit - 1}", "Count from 0."))
        if not faults and len(set(self.pins)) < len(self.pins):
            faults.append(Fault("rules.pin", "GPUs", "name a GPU twice for one expert", "Name each once."))
        if len(set(experts["together"])) < len(experts["together"]):
            faults.append(Fault("rules.together", "groups", "have an expert in common", "Join those groups."))
        if self.apart not in (None, "gpu", "host", "domain"):
            faults.append(Fault("rules.apart", self.apart, "is not known", 'Say "gpu", "host" or "domain".'))
        if faults:
            raise InputError(*faults)


def _listed(where: Any) -> list[Any]:
    """Return GPUs that are given as one or as several."""
    return list(where) if isinstance(where, Sequence | np.ndarray) and not isinstance(where, str) else [where]


@dataclass(frozen=True)
class Allowed:
    """What the rules leave: pieces of experts and the GPUs each may be on.

    An expert whose copies must survive a loss is two pieces of half its load, on GPUs that
    are not lost together.
    """

    expert: Ints  # (pieces,) the expert of each piece
    part: Floats  # (pieces,) its part of the expert's load
    may: Bools  # (pieces, gpus)
    pinned: Ints  # (pieces,) the GPU it is pinned to, or -1


def allowed(load: Floats, gpus: Gpus, rules: Rules, copies: int) -> Allowed | str:
    """Return what the rules leave of one layer, or the rule that leaves nothing, in words."""
    found = _pieces(load, gpus, rules, copies)
    if not isinstance(found, str) and _assigned(found, gpus.slots) is not None:
        return found
    for name in rules.given:
        without_it: dict[str, Any] = {name: getattr(Rules(), name)}
        less = replace(rules, **without_it)
        without = _pieces(load, gpus, less, copies)
        if not isinstance(without, str) and _assigned(without, gpus.slots) is not None:
            return f"no placement keeps to rules.{name}" + (f": {found}" if isinstance(found, str) else "")
    return "no placement keeps to " + " and ".join(f"rules.{name}" for name in rules.given)


def may_of(gpus: Gpus, rules: Rules, n: int) -> Bools:
    """Return which expert may be on which GPU by slots and `forbid` alone, (experts, gpus)."""
    may = np.tile(gpus.slots > 0, (n, 1))
    for e, where in rules.forbid.items():
        may[e, _listed(where)] = False
    return may


def home_choices(rules: Rules, gpus: Gpus, n: int, most: int) -> list[Rules]:
    """Return rules for every choice of domains for the groups kept together, none if there are more than `most`."""
    domains, groups = np.unique(gpus.domain), rules.together
    if not groups or len(domains) ** len(groups) > most:
        return []
    found = []
    for choice in product(domains, repeat=len(groups)):
        may = may_of(gpus, rules, n)
        for group, d in zip(groups, choice, strict=True):
            may[list(group)] &= gpus.domain == d
        forbid = {e: np.flatnonzero(~row).tolist() for e, row in enumerate(may) if not row.all()}
        found.append(replace(rules, forbid=forbid))
    return found


def _pieces(load: Floats, gpus: Gpus, rules: Rules, copies: int) -> Allowed | str:
    n, m = len(load), len(gpus.slots)
    may = may_of(gpus, rules, n)
    room = {int(d): int(gpus.slots[gpus.domain == d].sum()) for d in np.unique(gpus.domain)}
    pace = {d: float(gpus.speed[(gpus.domain == d) & (gpus.slots > 0)].sum()) for d in room}
    weight = dict.fromkeys(room, 0.0)
    for group in sorted((list(g) for g in rules.together), key=lambda g: -float(load[g].sum())):
        homes = [d for d in room if room[d] >= len(group) and may[np.ix_(group, gpus.domain == d)].any(axis=1).all()]
        homes = [d for d in homes if all(gpus.domain[g] == d for e, g in rules.pins if e in group)]
        if not homes:
            return f"no domain has room for the group of experts {group[0]}, ..."
        home = min(homes, key=lambda d: (weight[d] + float(load[group].sum())) / max(pace[d], 1e-300))
        room[home] -= len(group)
        weight[home] += float(load[group].sum())
        may[group] &= gpus.domain == home
    pinned = np.full(n, -1)
    for e, g in rules.pins:
        pinned[e] = g
        if not may[e, g]:
            return f"expert {e} may not be where it is pinned"
    if rules.apart:
        if copies < 2 * n:
            return f"{copies} copies are fewer than two of each of the {n} experts"
        zone = np.arange(m) if rules.apart == "gpu" else getattr(gpus, rules.apart)
        half = _halves(zone, gpus.slots)
        both = np.concatenate([may & half, may & ~half])
        second = np.array([g >= 0 and not half[g] for g in pinned])
        pins = np.concatenate([np.where(second, -1, pinned), np.where(second, pinned, -1)])
        return Allowed(np.tile(np.arange(n), 2), np.full(2 * n, 0.5), both, pins)
    return Allowed(np.arange(n), np.ones(n), may, pinned)


def _halves(zone: Ints, slots: Ints) -> Bools:
    """Split hosts or domains in two of about as many slots: the largest first, to where there are fewer."""
    size = {int(z): int(slots[zone == z].sum()) for z in np.unique(zone)}
    half = np.zeros(len(zone), dtype=bool)
    held = [0, 0]
    for z in sorted(size, key=lambda z: (-size[z], z)):
        side = int(held[1] < held[0])
        held[side] += size[z]
        half[zone == z] = side == 0
    return half


def _assigned(a: Allowed, slots: Ints) -> Ints | None:
    """Return a GPU for a copy of every piece, no GPU with two of one expert; None if there is none."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    n, m = a.may.shape
    free = slots - np.bincount(a.pinned[a.pinned >= 0], minlength=m)
    if (free < 0).any():
        return None
    open_pieces = np.flatnonzero(a.pinned < 0)
    piece, gpu = np.nonzero(a.may[open_pieces])
    piece = open_pieces[piece]
    tail = np.concatenate([np.zeros(len(open_pieces)), piece + 1, np.arange(m) + n + 1])
    head = np.concatenate([open_pieces + 1, gpu + n + 1, np.full(m, n + m + 1)])
    capacity = np.concatenate([np.ones(len(open_pieces) + len(piece)), free]).astype(np.int32)
    graph = csr_array((capacity, (tail.astype(int), head.astype(int))), shape=(n + m + 2, n + m + 2))
    flow = maximum_flow(graph, 0, n + m + 1)
    if flow.flow_value < len(open_pieces):
        return None
    found = a.pinned.copy()
    sent = flow.flow.tocoo()
    used = (sent.data > 0) & (sent.row >= 1) & (sent.row <= n) & (sent.col > n) & (sent.col <= n + m)
    found[sent.row[used] - 1] = sent.col[used] - n - 1
    return found


def seated(load: Floats, a: Allowed, gpus: Gpus, copies: int) -> tuple[Ints, Ints, Bools]:
    """Return a first placement of the pieces: (gpus, most slots), empty where no spare copy may be; counts; pinned."""
    n, most = len(a.expert), int(gpus.slots.max())
    expert, held = np.full((len(gpus.slots), most), n), np.arange(most) >= gpus.slots[:, None]
    count, used, weight = (
        np.zeros(n, dtype=np.int64),
        np.zeros(len(gpus.slots), dtype=np.int64),
        np.zeros(len(gpus.slots)),
    )
    base = _assigned(a, gpus.slots)
    assert base is not None  # `allowed` has seen one
    may = a.may.copy()

    def sit(piece: int, gpu: int) -> None:
        expert[gpu, used[gpu]] = piece
        held[gpu, used[gpu]] |= a.pinned[piece] == gpu
        used[gpu] += 1
        weight[gpu] += load[piece]
        count[piece] += 1
        may[a.expert == a.expert[piece], gpu] = False

    for piece in np.argsort(-load, kind="stable"):
        sit(int(piece), int(base[piece]))
    for _ in range(copies - n):
        open_to = may & (used < gpus.slots)
        able = open_to.any(axis=1)
        if not able.any():
            break
        piece = int(np.where(able, load / count, -1.0).argmax())
        sit(piece, int(np.where(open_to[piece], weight / gpus.speed, np.inf).argmin()))
    return expert, count, held
