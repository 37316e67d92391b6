"""How long does an algorithm take on two levels, and on a torus? `collectives.laws` offers these."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

__all__ = [
    "hierarchical_all_gather_seconds",
    "hierarchical_all_to_all_seconds",
    "hypercube_all_to_all_seconds",
    "hyperx_all_to_all_seconds",
    "mesh_all_to_all_seconds",
    "rail_aligned_all_to_all_seconds",
    "ring_across_domains_seconds",
    "torus_all_gather_seconds",
    "torus_all_to_all_seconds",
]


def hierarchical_all_gather_seconds(
    n_domains: int, domain_size: int, n_bytes: float, scale_up: float, scale_out: float,
    up_latency: float = 0.0, out_latency: float = 0.0,
) -> float:  # fmt: skip
    """Return the time of a hierarchical all-gather, or reduce-scatter; an all-reduce takes twice as long.

    Parameters
    ----------
    n_domains, domain_size : int
        R domains of G ranks over a non-blocking fabric.
    n_bytes : float
        nccl-tests' size [bytes].
    scale_up, scale_out : float
        Per rank and direction [bytes/s].
    up_latency, out_latency : float, optional
        Of a path inside and across [s].

    Returns
    -------
    float
        (R - 1)/(R G) n / scale_out + (G - 1)/G n / scale_up + both latencies [s].

    Examples
    --------
    >>> hierarchical_all_gather_seconds(2, 8, 16e9, 450e9, 50e9)
    0.05111111111111111
    """
    across = (n_domains - 1) / (n_domains * domain_size) * n_bytes / scale_out
    return across + (domain_size - 1) / domain_size * n_bytes / scale_up + up_latency + out_latency


def rail_aligned_all_to_all_seconds(
    n_domains: int, domain_size: int, n_bytes: float, scale_up: float, scale_out: float, pipelined: bool = False
) -> float:
    """Return the time of a rail-aligned all-to-all, one rank of each domain on every rail, latencies zero.

    Parameters
    ----------
    n_domains, domain_size : int
        R domains of G ranks.
    n_bytes : float
        Bytes to each other rank [bytes].
    scale_up, scale_out : float
        Per rank and direction [bytes/s].
    pipelined : bool, optional
        Whether relaying and crossing overlap.

    Returns
    -------
    float
        (R - 1)(G - 1) m / scale_up, and then the larger of (R - 1) G m / scale_out and
        (G - 1) m / scale_up; pipelined the larger of R (G - 1) m / scale_up and
        (R - 1) G m / scale_out [s].

    References
    ----------
    SimGrid 3.32's plain fluid model: 2 x 8 ranks, 900 and 50 GB/s, 1e9 bytes: 0.16778 s, 0.16 s.

    Examples
    --------
    >>> round(rail_aligned_all_to_all_seconds(2, 8, 1e9, 900e9, 50e9), 5)
    0.16778
    """
    inside = (domain_size - 1) * n_bytes / scale_up
    across = (n_domains - 1) * domain_size * n_bytes / scale_out
    if pipelined:
        return max(n_domains * inside, across)
    return (n_domains - 1) * inside + max(across, inside)


def hierarchical_all_to_all_seconds(
    n_domains: int, domain_size: int, n_bytes: float, scale_up: float, scale_out: float
) -> float:
    """Return the time of a hierarchical all-to-all: across to the same slot, then inside; latencies zero.

    Parameters
    ----------
    n_domains, domain_size : int
        R domains of G ranks.
    n_bytes : float
        Bytes to each other rank [bytes].
    scale_up, scale_out : float
        Per rank and direction [bytes/s].

    Returns
    -------
    float
        (R - 1) G m / scale_out + R (G - 1) m / scale_up [s].

    Examples
    --------
    >>> hierarchical_all_to_all_seconds(2, 8, 1e9, 900e9, 50e9)
    0.17555555555555555
    """
    across = (n_domains - 1) * domain_size * n_bytes / scale_out
    return across + n_domains * (domain_size - 1) * n_bytes / scale_up


def ring_across_domains_seconds(
    n_domains: int, domain_size: int, n_bytes: float, scale_up: float, scale_out: float,
    up_latency: float = 0.0, out_latency: float = 0.0,
) -> float:  # fmt: skip
    """Return the time of a ring all-gather, or reduce-scatter, with a channel for every rank of a domain.

    In each of p - 1 steps a rank sends G parts of n / (p G): one across, the rest inside.

    Parameters
    ----------
    n_domains, domain_size : int
        R domains of G ranks over a non-blocking fabric, R at least 2.
    n_bytes : float
        nccl-tests' size [bytes].
    scale_up, scale_out : float
        Per rank and direction [bytes/s].
    up_latency, out_latency : float, optional
        Of a path inside and across [s].

    Returns
    -------
    float
        (p - 1) times the larger of n/(p G) / scale_out + out_latency and, for G > 1,
        (G - 1) n/(p G) / scale_up + up_latency [s]; an all-reduce takes twice as long.

    Examples
    --------
    >>> round(ring_across_domains_seconds(2, 8, 16e9, 450e9, 50e9), 9)
    0.0375
    """
    ranks = n_domains * domain_size
    part = n_bytes / (ranks * domain_size)
    inside = (domain_size - 1) * part / scale_up + up_latency if domain_size > 1 else 0.0
    return (ranks - 1) * max(part / scale_out + out_latency, inside)


def torus_all_gather_seconds(dims: Sequence[int], n_bytes: float, bandwidth: float, latency: float = 0.0) -> float:
    """Return the time of a torus all-gather, or reduce-scatter; an all-reduce takes twice as long.

    One part of the data per axis; in stage s part j goes round its (s + j)-th axis, half of
    it each way, a step after the other, so all links of a cube are busy all the time.

    Parameters
    ----------
    dims : sequence of int
        Sides; all axes wrap.
    n_bytes : float
        nccl-tests' size [bytes].
    bandwidth : float
        Of one link, per direction [bytes/s].
    latency : float, optional
        Of one link [s].

    Returns
    -------
    float
        With D equal sides k: D (k - 1) a + (p - 1)/p n / (2 D B) [s].

    Examples
    --------
    >>> round(torus_all_gather_seconds((4, 4, 4), 64e9, 50e9), 9)
    0.21
    """
    sides = [side for side in dims if side > 1]
    ranks, axes, seconds = prod(sides), len(sides), 0.0
    for stage in range(axes):
        turns = [[sides[(j + t) % axes] for t in range(stage + 1)] for j in range(axes)]
        for step in range(1, max(turn[-1] for turn in turns)):
            most = max(prod(turn[:-1]) for turn in turns if turn[-1] > step)
            seconds += latency + most * n_bytes / (2 * axes * ranks * bandwidth)
    return seconds


def torus_all_to_all_seconds(dims: Sequence[int], n_bytes: float, bandwidth: float) -> float:
    """Return the time of an all-to-all on a torus whose shortest paths share its links evenly, latencies zero.

    Parameters
    ----------
    dims : sequence of int
        Sides; all axes wrap, none is twisted.
    n_bytes : float
        Bytes to each other rank [bytes].
    bandwidth : float
        Of one link, per direction [bytes/s].

    Returns
    -------
    float
        The largest over axes of side k of N k/8 m / B, for odd k N (k^2 - 1)/(8 k) m / B:
        the N^2 pairs take k/4 hops each on the axis, over 2 N links [s].

    References
    ----------
    N. Jouppi et al., "TPU v4", ISCA 2023, arXiv 2304.01433: 4 x 4 x 8, 128 messages a link.

    Examples
    --------
    >>> torus_all_to_all_seconds((4, 4, 8), 1.0, 1.0)
    128.0
    """
    ranks = prod(dims)
    return max(ranks * (k * k - k % 2) / (8 * k) for k in dims) * n_bytes / bandwidth


def hypercube_all_to_all_seconds(dim: int, n_bytes: float, bandwidth: float) -> float:
    """Return the time of an all-to-all on a hypercube whose shortest paths share its links evenly, latencies zero.

    Parameters
    ----------
    dim : int
        Dimensions: N = 2**dim ranks.
    n_bytes : float
        Bytes to each other rank [bytes].
    bandwidth : float
        Of one link, per direction [bytes/s].

    Returns
    -------
    float
        N/2 m / B: of the N^2 pairs half cross a dimension, over its N directed links [s].

    Examples
    --------
    >>> hypercube_all_to_all_seconds(3, 1.0, 1.0)
    4.0
    """
    return float(2**dim) / 2 * n_bytes / bandwidth


def hyperx_all_to_all_seconds(dims: Sequence[int], hosts: int, n_bytes: float, bandwidth: float) -> float:
    """Return the time of an all-to-all on a HyperX whose shortest paths share its links evenly, latencies zero.

    Parameters
    ----------
    dims : sequence of int
        Sides of the grid of switches.
    hosts : int
        End points T of every switch.
    n_bytes : float
        Bytes to each other rank [bytes].
    bandwidth : float
        Of any link, per direction [bytes/s].

    Returns
    -------
    float
        The larger of (N - 1) m / B over an end point's own link, and over axes of side k of
        N T/k m / B: of the N^2 pairs (k - 1)/k cross the axis once, over its N/T (k - 1)
        directed links [s].

    References
    ----------
    J. Ahn et al., "HyperX: Topology, Routing, and Packaging of Efficient Large-Scale Networks", SC 2009.

    Examples
    --------
    >>> hyperx_all_to_all_seconds((4, 2), 4, 1.0, 1.0)
    64.0
    """
    ranks = prod(dims) * hosts
    return max(ranks - 1.0, *(ranks * hosts / k for k in dims if k > 1)) * n_bytes / bandwidth


def mesh_all_to_all_seconds(dims: Sequence[int], n_bytes: float, bandwidth: float) -> float:
    """Return the time of an all-to-all on a torus without wraps, in dimension order, latencies zero.

    Parameters
    ----------
    dims : sequence of int
        Sides; no axis wraps.
    n_bytes : float
        Bytes to each other rank [bytes].
    bandwidth : float
        Of one link, per direction [bytes/s].

    Returns
    -------
    float
        The largest over axes of side k of N/k floor(k/2) ceil(k/2) m / B: the link in the
        middle of a line carries what its lower half sends to the upper one, lower axes
        being the target's already and higher ones still the source's [s].

    References
    ----------
    W. J. Dally, B. Towles, "Principles and Practices of Interconnection Networks", 2004, section 3.3.

    Examples
    --------
    >>> mesh_all_to_all_seconds((4, 3), 1.0, 1.0)
    12.0
    """
    ranks = prod(dims)
    return max(ranks // k * (k // 2) * (k - k // 2) for k in dims) * n_bytes / bandwidth
