"""On what was a row measured? A design of as many domains as it had, or a graph file as it is."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectives._features import own_bandwidth
from topo import Fabric, Fault, InputError, Routes, is_graph_file, load, load_design, route

__all__ = ["System", "system_of"]


@dataclass(frozen=True)
class System:
    """What a prediction needs to know of a machine.

    Attributes
    ----------
    name : str
        Catalogue name, alias, design file or graph file.
    chip : str
        Name of the chip; empty where a graph names none.
    bandwidth : float
        Scale-up bandwidth of a GPU, per direction [bytes/s].
    nic : float, optional
        A GPU's share of NICs, per direction; None where there are none [bytes/s].
    domain_size : int
        GPUs of a domain, the largest of a graph.
    whole : Fabric, optional
        Of a graph file, which has the domains that it has.
    """

    name: str
    chip: str
    bandwidth: float
    nic: float | None
    domain_size: int
    whole: Fabric | None = None

    def domains_of(self, n_ranks: int) -> int:
        """Return the fewest domains that hold so many ranks."""
        if self.whole is None:
            return -(-n_ranks // self.domain_size)
        return len(np.unique(self.whole.rank_domain[self._group(n_ranks)]))

    def routes(self, domains: int) -> Routes:
        """Return the routes of a design of so many domains, or of the whole graph."""
        return route(load(self.name, domains=domains) if self.whole is None else self.whole)

    def ranks(self, fabric: Fabric, n_ranks: int, domains: int) -> NDArray[np.intp]:
        """Return rank numbers: as many of every domain where they divide, else as `Fabric.group` takes them."""
        if domains > len(fabric.domain_sizes):
            rule = f"domains had ranks, and the graph has {len(fabric.domain_sizes)}"
            raise InputError(Fault("scaleup_domains", domains, rule, "Give the graph that was measured.", self.name))
        domain = fabric.rank_domain
        taken = np.unique(domain)[:domains]
        share, left = divmod(n_ranks, domains)
        rows = [np.flatnonzero(domain == each)[:share] for each in taken]
        if left or min(map(len, rows)) < share:
            return self._group(n_ranks) if self.whole is not None else fabric.group(n_ranks)
        return np.concatenate(rows)

    def _group(self, n_ranks: int) -> NDArray[np.intp]:
        assert self.whole is not None
        if n_ranks > self.whole.n_ranks:
            rule = f"ranks took part, and the graph has {self.whole.n_ranks}"
            raise InputError(Fault("n_gpus", n_ranks, rule, "Give the graph that was measured.", self.name))
        return self.whole.group(n_ranks)


def system_of(name: str | os.PathLike[str]) -> System:
    """Return the system of a catalogue name, an alias, a design file or a graph file.

    Raises
    ------
    InputError
        None of these.

    Examples
    --------
    >>> system_of("HGX H100-8").domains_of(16)
    2
    """
    file = os.fspath(name)
    if not is_graph_file(file):
        design = load_design(file)
        nic = design.scale_out.per_gpu if design.scale_out else None
        return System(file, design.chip.name, design.scale_up.bandwidth, nic, design.design.domain_size)
    fabric = Fabric.from_graph(load(file))
    everyone = fabric.rank_numbers(None)
    up, out = (own_bandwidth(fabric, everyone, kind) for kind in ("scale-up", "scale-out"))
    return System(file, fabric.chip[fabric.ranks[0]], up, out or None, int(fabric.domain_sizes.max()), fabric)
