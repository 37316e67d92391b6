"""What proves a bound on one set of flows? The tightest named cut, prices on links, or one pair's latency."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collectives._concurrent_flow import Demand, Network, best_prices, cheapest, time_at
from collectives._cuts import Cut, level_sides, named_sides, tightest
from collectives._symmetry import members
from topo import EDGE_KINDS, Fabric, Fault, InputError

__all__ = ["Proof", "least_latency", "proof_of", "require_joined"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]
#: Two times this close are equal: one is a cut's, the other a solver's.
_SAME = 1 + 1e-9


@dataclass(frozen=True)
class Proof:
    """One set of flows' bound: its two parts [s], its kind, what binds, prices by class of links."""

    latency: float = 0.0
    transfer: float = 0.0
    kind: str = "none"
    cut: Cut = field(default_factory=Cut)
    prices: tuple[tuple[str, float], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Least time [s]."""
        return self.latency + self.transfer


def least_latency(fabric: Fabric, network: Network, ranks: Ints) -> Floats:
    """Least path latency between ranks, (n, n) [s]."""
    paths = [path[:, network.stop[ranks]] for _, path in cheapest(network, fabric.latency, ranks)]
    return np.concatenate(paths)


def require_joined(fabric: Fabric, ranks: Ints, cut: Bools) -> None:
    """Refuse pairs of ranks that no path joins."""
    if cut.any():
        a, b = (fabric.rank_labels[ranks[i]] for i in np.argwhere(cut)[0])
        rule = f"has no path for {int(cut.sum())} pairs of ranks, the first {a} to {b}"
        raise InputError(Fault("graph", fabric.name, rule, "Join them, or leave those ranks out."))


def proof_of(
    demand: Demand, late: Floats, sent: Bools, least_of: Bools | None = None, *, paths: bool = True,
    reached: float = np.inf,
) -> Proof:  # fmt: skip
    """Bound flows by named cuts, by prices, and by latency.

    A byte that crosses a cut or a priced link is on its way for at least the least latency
    of all pairs, so links have that much less time. `least_of` says which pairs count:
    relays of other algorithms may run between any ranks. `paths`: whether the time is
    also that of the latest pair; the cost of phases that overlap leaves that out. `reached`:
    the transfer time of some routes [s]: prices prove no more, so none are sought beyond it.
    """
    if not sent.any():
        return Proof()
    fabric, classes = demand.fabric, demand.classes()
    least = float(late[sent if least_of is None else least_of].min())
    cut = tightest(demand, named_sides(fabric, classes.node))
    found = Proof(least, cut.seconds, "cut", cut)
    if reached <= cut.seconds * _SAME:
        pass
    elif (price := best_prices(demand, classes)) is None:
        found = Proof(least, cut.seconds, "cut", cut, notes=("links too unlike for prices: named cuts only",))
    else:
        seconds = time_at(demand, price)
        if seconds > cut.seconds * _SAME and demand.parts[0][0].tail is fabric.source:
            level = tightest(demand, level_sides(demand, price, classes.node))
            cut = max(cut, level, key=lambda one: one.seconds)
            found = Proof(least, cut.seconds, "cut", cut)
        if seconds > cut.seconds * _SAME:
            prices = _priced(fabric, price, classes.link)
            found = Proof(least, seconds, "prices", Cut(0.0, np.inf, prices[0][0]), prices)
    most = np.where(sent, late, -1.0)
    if paths and most.max() > found.seconds:
        i, j = np.unravel_index(int(np.argmax(most)), most.shape)
        a, b = (fabric.rank_labels[demand.ranks[k]] for k in (i, j))
        return Proof(float(most.max()), 0.0, "latency", Cut(0.0, np.inf, f"{a} => {b}"), notes=found.notes)
    return found


def _priced(fabric: Fabric, price: Floats, link_class: Ints) -> tuple[tuple[str, float], ...]:
    """Name every priced class of links and its part of the whole price, the largest first."""
    first, count = members(link_class)
    share = price * fabric.bandwidth / float(price @ fabric.bandwidth)
    part = np.bincount(link_class, share).tolist()
    order = np.argsort(np.negative(part), kind="stable")
    return tuple(
        (f"{EDGE_KINDS[fabric.link_kind[first[k]]]} {fabric.link_label(int(first[k]))} ({count[k]:,} alike)", part[k])
        for k in order if part[k] > 0
    )  # fmt: skip
