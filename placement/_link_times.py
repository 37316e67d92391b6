"""How long is every link busy with the tokens a domain sends to a GPU's experts, there and back?"""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from collectives import Outer, cost
from placement._rules import Gpus
from serving import Model, Workload, dtype_bytes
from topo import Fabric, Fault, InputError, Routes, route

__all__ = ["LinkTimes", "link_times"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class LinkTimes:
    """Time of every directed link per part of a layer's tokens, by where they come from and where their expert is.

    Attributes
    ----------
    labels : tuple of str
        The links that carry any of it, "from -> to".
    indptr : (domains * gpus + 1,) int
        What domain d sends to GPU g is row d * gpus + g: `link` and `seconds` from `indptr[row]` on.
    link, seconds : (entries,) int and float
        Rows of `labels`, and how long each is busy if all the layer's copies of tokens went that way:
        dispatch and combine, bytes over bandwidth [s].
    domain : (gpus,) int
        Domain of every GPU, from 0.
    """

    labels: tuple[str, ...]
    indptr: Ints
    link: Ints
    seconds: Floats
    domain: Ints

    def __repr__(self) -> str:
        gpus, domains = len(self.domain), int(self.domain.max()) + 1
        return f"LinkTimes({len(self.labels)} links, {domains} domains to {gpus} GPUs)"

    @property
    def gpus(self) -> int:
        """GPUs of the group."""
        return len(self.domain)

    def of(self, flow: Floats) -> Floats:
        """Return the time of every link, (..., links), of parts of all tokens, (..., domains, gpus)."""
        from scipy.sparse import csr_array

        flow = np.asarray(flow, dtype=np.float64)
        table = csr_array((self.seconds, self.link, self.indptr), shape=(len(self.indptr) - 1, len(self.labels)))
        rows = flow.reshape(-1, len(self.indptr) - 1)
        return np.asarray(rows @ table).reshape(*flow.shape[:-2], len(self.labels))

    def require(self, gpus: Gpus) -> None:
        """Refuse times of another group of GPUs."""
        if not np.array_equal(np.unique(gpus.domain, return_inverse=True)[1], self.domain):
            rule = f"are of {self.gpus} GPUs in {int(self.domain.max()) + 1} domains, not of these"
            raise InputError(Fault("links", repr(self), rule, "Make them of the same GPUs: link_times(..., ep=)."))


def link_times(
    graph: nx.Graph[str] | Fabric,
    model: Model,
    workload: Workload,
    *,
    ep: int | None = None,
    routing: str | Routes = "ecmp",
) -> LinkTimes:
    """Return how busy tokens make the links, for `place_by` to look at the busiest.

    Tokens of a domain come from its GPUs alike; a copy for each expert (direct).

    Parameters
    ----------
    graph : networkx.Graph or Fabric
        The topology.
    model, workload : records
        Its experts per token and their width; tokens and types of a step.
    ep : int, optional
        GPUs the experts are spread over; by default all.
    routing : str or Routes, optional
        As `collectives.cost`.

    Raises
    ------
    InputError
        A model without experts, or what `cost` refuses.

    Examples
    --------
    >>> import topo, serving
    >>> boxes, model = topo.load("hgx-h100-8", 2), serving.load_model("mixtral-8x7b")
    >>> found = link_times(boxes, model, serving.Workload(batch_per_gpu=64))
    >>> flow = [
    ...     [1 / 32] * 16
    ... ] * 2  # all alike: of 128 copies a GPU 64 cross, 4096 bytes there and 8192 back
    >>> round(float(found.of(flow).max()) * 1e6, 3)  # at 50 GB/s
    15.729
    """
    if not model.is_moe:
        raise InputError(Fault("model", model.name, "has no experts", "Give one that has."))
    routes = route(graph, routing)
    fabric = routes.fabric
    ranks = fabric.group(fabric.n_ranks if ep is None else ep)
    domain = np.unique(fabric.rank_domain[ranks], return_inverse=True)[1]
    copies = float(workload.batch_of(len(ranks)).sum()) * model.top_k * model.expert_hidden_size
    there, back = (copies * dtype_bytes(name) for name in (workload.dispatch_dtype, workload.combine_dtype))
    rows = []
    for d in range(int(domain.max()) + 1):
        senders = (domain == d) / (domain == d).sum()
        for gpu in np.eye(len(ranks)):
            both = Outer(senders, gpu * there), Outer(gpu * back, senders)
            rows.append(
                sum(cost(fabric, "all_to_all_v", one, ranks=ranks, routing=routes).loads for one in both)
                / fabric.bandwidth
            )
    table = np.array(rows)
    used = np.flatnonzero(table.any(axis=0))
    table = table[:, used]
    row, link = np.nonzero(table)
    return LinkTimes(
        tuple(fabric.link_label(int(i)) for i in used), np.searchsorted(row, np.arange(len(table) + 1)),
        link.astype(np.int64), table[row, link], domain.astype(np.int64),
    )  # fmt: skip
