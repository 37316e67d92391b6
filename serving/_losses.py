"""What does one failed tray, switch or rack take from the pool that answers?"""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx

from serving._model import Model
from serving._pools import Pool, in_phase
from serving._software import ProfileLike
from serving._step import step
from serving._traffic import Traffic
from serving._workload import Workload
from topo import Fabric, fail

__all__ = ["Loss", "losses_of"]


@dataclass(frozen=True)
class Loss:
    """What one failed part takes from the decode pool.

    Attributes
    ----------
    part : str
        "tray", "switch" or "rack".
    share : float
        Part of the pool's tokens per second that is gone until it is repaired.
    served : bool
        Whether what is left still serves the traffic, headroom used up and no spare started.
    note : str
        Why as much.
    """

    part: str
    share: float
    served: bool
    note: str


def losses_of(
    graph: nx.Graph[str], model: Model, work: Workload, traffic: Traffic, pool: Pool, rack: int, profile: ProfileLike
) -> tuple[Loss, ...]:
    """Return the losses of a pool on racks of so many GPUs, of the fullest rack."""
    fabric, gpus = Fabric.from_graph(graph), pool.layout.gpus
    # A rack holds whole units, or an equal share of one.
    in_rack = min(pool.units, max(1, rack // gpus))
    each = min(gpus, -(-gpus // -(-gpus // rack)))
    hosts = fabric.host[fabric.ranks]
    tray = int((hosts == hosts[0]).sum()) if hosts[0] >= 0 else 1
    stopped = max(0, in_rack - (rack - tray) // each)
    idle = rack - in_rack * each
    end = f"{_units(stopped)} stop{'s' * (stopped == 1)}" if stopped else ""
    why = f"{tray} GPUs; {idle} idle in the rack" + (f": {end}" if stopped else " take their place")

    def loss(part: str, units: float, note: str) -> Loss:
        left = (pool.units - units) * pool.rate
        return Loss(part, units / pool.units, left >= traffic.requests_per_second, note)

    found = [loss("tray", stopped, why)]
    switch = next((i for i in range(len(fabric.labels)) if fabric.tier[i] == "scale-up"), None)
    if switch is not None:
        name = fabric.labels[switch] + ("0" if fabric.planes[switch] > 1 else "")
        asked = in_phase(work, "decode", context=traffic.mean_context, batch=None, batch_per_gpu=pool.batch)
        before, after = (
            step(one_graph, model, asked, layout=pool.layout, profile=profile).tokens_per_second
            for one_graph in (graph, fail(graph, switches=[name]))
        )
        slow = (
            f"{name}: {_units(in_rack)} of its rack {'are' if in_rack > 1 else 'is'} {before / after:.4g} times as slow"
        )
        found.append(loss("switch", in_rack * (1 - after / before), slow))
    found.append(loss("rack", in_rack, _units(in_rack)))
    return tuple(found)


def _units(count: int) -> str:
    return f"{count} unit{'s' * (count > 1)}"
