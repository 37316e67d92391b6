"""Which constants does NCCL's tuning model have? One row each: unit and meaning."""

from __future__ import annotations

from typing import Literal

__all__ = ["PROTOCOLS", "TUNER"]

Row = tuple[Literal["seconds", "bandwidth", "ratio"], str]

#: Low latency (a flag beside every 4 bytes), 120 of every 128 bytes data, plain.
PROTOCOLS = ("ll", "ll128", "simple")
_TREE_AND_RING = [(algorithm, protocol) for algorithm in ("tree", "ring") for protocol in PROTOCOLS]


def _latencies(where: str, meaning: str) -> dict[str, Row]:
    return {
        f"{where}.{algorithm}_{protocol}": ("seconds", f"{algorithm}, {protocol}: {meaning}")
        for algorithm, protocol in _TREE_AND_RING
    }


#: Dotted name -> row.
TUNER: dict[str, Row] = {
    **_latencies("base", "start of the collective"),
    **_latencies("nvlink", "a hop inside the domain"),
    "nvlink.nvls_simple": ("seconds", "NVLS: the whole collective inside the domain"),
    **_latencies("net", "a hop between domains"),
    "net.nvls_simple": ("seconds", "NVLS tree: a level between domains"),
    "net.nic": ("seconds", "what the NIC's plugin states, added to a hop between domains, twice for simple"),
    "net.overhead": ("seconds", "least of a ring's hop across domains, three times for simple"),
    "net.plateau": ("ratio", "factor on the latency of ring/simple all-reduce across domains"),
    "efficiency.link": ("ratio", "rate NCCL counts on over the rate of the data sheet, inside a domain"),
    "efficiency.ring_ll": ("ratio", "ring/ll of ring/simple"),
    "efficiency.ring_ll128": ("ratio", "ring/ll128 of ring/simple"),
    "efficiency.tree": ("ratio", "tree of ring/simple"),
    "efficiency.tree_ll": ("ratio", "tree/ll of tree/simple"),
    "efficiency.tree_ll128": ("ratio", "tree/ll128 of tree/simple, one domain"),
    "efficiency.tree_ll128_net": ("ratio", "tree/ll128 of tree/simple, across domains"),
    "efficiency.nvls": ("ratio", "NVLS of what reducing switches allow; 0 where the chip has none"),
    "most.ll_one": ("bandwidth", "most that ll carries, one domain"),
    "most.ll_two": ("bandwidth", "most that ll carries, two domains"),
    "most.ll_more": ("bandwidth", "most that ll carries, three domains and more"),
}
