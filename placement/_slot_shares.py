"""Which part of its expert's tokens should every copy get, once it is settled where copies are? Linear programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement._link_times import LinkTimes
from serving import PlacementPlan

__all__ = ["shared_out"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Objectives that shares change: what crosses and what moves is settled by where copies are.
_SHARED = ("heaviest_gpu", "busiest_link")


def shared_out(
    plan: PlacementPlan, asked: Floats, domain: Ints, speed: Floats, links: LinkTimes | None,
    order: Sequence[str], weight: Mapping[str, float] | None, enough: Mapping[str, float],
) -> PlacementPlan:  # fmt: skip
    """Return the plan of one layer with the shares that are best by its objectives, in turn or by their weights.

    Tokens stay in a domain that has a copy; those of other domains go to any copies.
    """
    names = [name for name in order if name in _SHARED and not (name == "busiest_link" and links is None)]
    if not names:
        return plan
    program = _Program(plan, asked, domain, speed, links if "busiest_link" in names else None)
    if weight is not None:
        flow = program.solve({name: weight[name] for name in names}, {})
    else:
        limit: dict[str, float] = {}
        for name in names:
            flow = program.solve({name: 1.0}, limit)
            if flow is None:
                return plan
            limit[name] = max(program.reached(flow, name), enough.get(name, 0.0))
    if flow is None:
        return plan
    total = asked.sum(axis=0)[plan.slot_expert[0]]
    copies = plan.logcnt[0][plan.slot_expert[0]]
    got = np.maximum(np.bincount(program.slot, flow, minlength=len(total)), 0.0)
    whole = np.bincount(plan.slot_expert[0], got)[plan.slot_expert[0]]
    return replace(plan, slot_share=np.where(whole > 0, got / np.where(whole > 0, whole, 1.0), 1 / copies)[None])


class _Program:
    """What every domain may send to every slot."""

    def __init__(
        self, plan: PlacementPlan, asked: Floats, domain: Ints, speed: Floats, links: LinkTimes | None
    ) -> None:
        from scipy.sparse import csr_array

        expert, rank = plan.slot_expert[0], plan.slot_rank[0]
        here = domain[rank] == np.arange(len(asked))[:, None]
        held = np.array([np.bincount(expert, row, minlength=asked.shape[1]) for row in here.astype(float)]) > 0
        source, self.slot = np.nonzero((here | ~held[:, expert]) & (asked[:, expert] > 0))
        self.n = len(self.slot)
        cell = source * asked.shape[1] + expert[self.slot]
        cells, row = np.unique(cell, return_inverse=True)
        ones = np.ones(self.n)
        self.all_sent = csr_array((ones, (row, np.arange(self.n))), shape=(len(cells), self.n))
        self.tokens = asked.ravel()[cells]
        gpu, pace = rank[self.slot], float(speed[np.unique(rank)].sum())
        load = csr_array((pace / speed[gpu] / asked.sum(), (gpu, np.arange(self.n))), shape=(plan.ep, self.n))
        self.tables = {"heaviest_gpu": load}
        if links is not None:
            shape = (len(links.indptr) - 1, len(links.labels))
            table = csr_array((links.seconds, links.link, links.indptr), shape=shape)
            self.tables["busiest_link"] = csr_array(table[source * plan.ep + gpu].T)

    def solve(self, weight: Mapping[str, float], limit: Mapping[str, float]) -> Floats | None:
        """Return what is sent to slots at the least weighted sum of objectives, none above its limit."""
        from scipy.optimize import linprog
        from scipy.sparse import block_array, csr_array

        tops = list(weight)
        rows, bound = [], []
        for name, table in self.tables.items():
            scale = self._scale(name)
            if name in weight:
                top = np.zeros((table.shape[0], len(tops)))
                top[:, tops.index(name)] = -1.0
                rows.append([table / scale, csr_array(top)])
                bound.append(np.zeros(table.shape[0]))
            elif name in limit:
                rows.append([table / scale, csr_array((table.shape[0], len(tops)))])
                bound.append(np.full(table.shape[0], limit[name] / scale * (1 + 1e-9)))
        cost = np.r_[np.zeros(self.n), [weight[name] * self._scale(name) for name in tops]]
        above: Any = block_array(rows)
        sent: Any = block_array([[self.all_sent, csr_array((len(self.tokens), len(tops)))]])
        found = linprog(
            cost / cost.max(), A_ub=above.tocsr(), b_ub=np.concatenate(bound), A_eq=sent.tocsr(), b_eq=self.tokens
        )
        return None if found.x is None else np.asarray(found.x[: self.n], dtype=np.float64)

    def reached(self, flow: Floats, name: str) -> float:
        """Return an objective."""
        return float((self.tables[name] @ flow).max())

    def _scale(self, name: str) -> float:
        """Return a size of an objective: programs like numbers about one."""
        return 1.0 if name == "heaviest_gpu" else float(self.tables[name].data.max(initial=1e-300))
