"""Which algorithm and protocol does NCCL pick, at which latency and bandwidth? Its published tuning model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from collectives._alpha_beta import nvls_all_reduce_busbw
from collectives._tuner_constants import PROTOCOLS

__all__ = ["TUNED_KINDS", "Choice", "Team", "choices"]


@dataclass(frozen=True)
class Choice:
    """One algorithm and protocol.

    Attributes
    ----------
    algorithm, protocol : str
        As NCCL_ALGO and NCCL_PROTO name them, in small letters.
    latency : float
        Of the whole collective [s].
    bandwidth : float
        Size over time without latency [bytes/s].
    seconds : float
        latency + size / bandwidth [s].
    """

    algorithm: str
    protocol: str
    latency: float
    bandwidth: float
    seconds: float


@dataclass(frozen=True)
class Team:
    """What the model sees of a topology.

    Attributes
    ----------
    n_ranks, n_domains : int
        A domain is what NCCL calls a node: a rack of NVL72 is one.
    scale_up, scale_out : float
        Of a rank, per direction; scale_out is a domain's NICs over its ranks [bytes/s].
    reduces : bool
        Whether the switches of a domain reduce (NVLS).
    """

    n_ranks: int
    n_domains: int
    scale_up: float
    scale_out: float
    reduces: bool

    @property
    def per_domain(self) -> int:
        """Ranks of a domain, rounded down as NCCL does."""
        return self.n_ranks // self.n_domains


Constants = Mapping[str, float]

#: Steps of a ring over n ranks; broadcast and reduce go round once, chunk after chunk.
TUNED_KINDS: dict[str, Callable[[int], int]] = {
    "all_reduce": lambda n: 2 * (n - 1), "all_gather": lambda n: n - 1, "reduce_scatter": lambda n: n - 1,
    "broadcast": lambda n: n, "reduce": lambda n: n,
}  # fmt: skip

#: Factor on tree's bandwidth, from 64 B doubling; above the last it is 1.
_TREE_FACTORS = {
    "ll": (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1),
    "ll128": (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1),
    "simple": (0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7,
               0.8, 0.9, 0.9),
}  # fmt: skip


def choices(constants: Constants, kind: str, n_bytes: float, team: Team) -> tuple[Choice, ...]:
    """Return every algorithm and protocol that applies, the one NCCL picks first.

    Parameters
    ----------
    constants : mapping
        Rows of `TUNER` -> SI value.
    kind : str
        A row of `TUNED_KINDS`.
    n_bytes : float
        nccl-tests' size [bytes].
    team : Team
        Two ranks at least.

    References
    ----------
    NVIDIA/nccl, src/graph/tuning.cc, search.cc (trees over two nodes) and topo.h at 5067397. Left out: limits per
    channel, and what the graph search rounds (rates of channels come in steps); CollNet, PAT, NVLS of all-gather and
    reduce-scatter (slower than LL or a ring at every size in one domain).
    """
    found = []
    for algorithm, protocol, latency, bandwidth in _rows(constants, kind, team):
        rate = bandwidth * (_tree_factor(protocol, n_bytes) if algorithm == "tree" else 1.0)
        found.append(Choice(algorithm, protocol, latency, rate, latency + n_bytes / rate))
    return tuple(sorted(found, key=lambda choice: choice.seconds))


def _tree_factor(protocol: str, n_bytes: float) -> float:
    doublings = (int(n_bytes) >> 6).bit_length() - 1
    row = _TREE_FACTORS[protocol]
    return row[doublings] if 0 <= doublings < len(row) else 1.0


def _rows(c: Constants, kind: str, team: Team) -> Iterator[tuple[str, str, float, float]]:
    """Yield algorithm, protocol, latency [s] and algorithm bandwidth [bytes/s]."""
    n, steps = team.n_ranks, TUNED_KINDS[kind](team.n_ranks)
    wire = c["efficiency.link"] * team.scale_up
    # Every ring enters and leaves a domain once: all NICs of a domain carry what one rank's links do.
    bus = wire if team.n_domains == 1 else min(wire, team.scale_out * team.per_domain)
    most = c[f"most.ll_{('one', 'two', 'more')[min(team.n_domains, 3) - 1]}"]
    ring = {"ll": min(most, c["efficiency.ring_ll"] * bus), "ll128": c["efficiency.ring_ll128"] * bus, "simple": bus}
    for protocol in PROTOCOLS:
        yield "ring", protocol, _ring_latency(c, kind, protocol, steps, team), ring[protocol] * n / steps
    if kind != "all_reduce":
        return
    across = "_net" if team.n_domains > 1 else ""
    # Between two domains of several ranks a tree sends every byte once each way, about half of a ring's: NCCL's search
    # lets its rate inside be up to twice that of the NICs.
    halved = team.n_domains == 2 and team.per_domain > 1
    tree = c["efficiency.tree"] * (min(wire, 2 * team.scale_out * team.per_domain) if halved else bus)
    trees = {
        "ll": min(most, c["efficiency.tree_ll"] * tree), "ll128": c[f"efficiency.tree_ll128{across}"] * tree,
        "simple": tree,
    }  # fmt: skip
    for protocol in PROTOCOLS:
        yield "tree", protocol, _tree_latency(c, protocol, team), trees[protocol] / 2
    if team.reduces and team.per_domain > 2 and c["efficiency.nvls"]:
        inside = c["efficiency.nvls"] * nvls_all_reduce_busbw(team.per_domain, wire)
        if team.n_domains == 1:
            yield "nvls", "simple", c["nvlink.nvls_simple"], inside * n / steps
        else:
            outside = team.scale_out * team.per_domain * (2 if team.n_domains == 2 else 1)
            yield "nvls_tree", "simple", _nvls_tree_latency(c, team), min(inside, outside) * n / steps


def _net(c: Constants, name: str, protocol: str) -> float:
    return c[f"net.{name}_{protocol}"] + c["net.nic"] * (2 if protocol == "simple" else 1)


def _ring_latency(c: Constants, kind: str, protocol: str, steps: int, team: Team) -> float:
    base, inside = c[f"base.ring_{protocol}"], c[f"nvlink.ring_{protocol}"]
    if kind in ("broadcast", "reduce"):
        return base + (inside if team.n_domains == 1 else c[f"net.ring_{protocol}"])
    crossings = (2 if kind == "all_reduce" else 1) * (team.n_domains - 1)
    if crossings:
        inside = max(inside, c["net.overhead"] * (3 if protocol == "simple" else 1))
    # With one rank a domain nothing inside hides a hop: it costs as much as a tree's.
    hop = _net(c, "tree" if team.per_domain == 1 else "ring", protocol)
    latency = base + (steps - crossings) * inside + crossings * hop
    plateau = crossings and protocol == "simple" and kind == "all_reduce"
    return latency * (c["net.plateau"] if plateau else 1.0)


def _levels(team: Team) -> int:
    return team.n_domains.bit_length() - 1


def _tree_latency(c: Constants, protocol: str, team: Team) -> float:
    hops = (team.per_domain - 1) * c[f"nvlink.tree_{protocol}"] + _levels(team) * _net(c, "tree", protocol)
    return c[f"base.tree_{protocol}"] + 2 * hops


def _nvls_tree_latency(c: Constants, team: Team) -> float:
    return c["nvlink.nvls_simple"] + 2 * _levels(team) * _net(c, "nvls", "simple")
