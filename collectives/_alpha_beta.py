"""How long does an algorithm take under one ideal switch? Alpha-beta-gamma, one row per algorithm.

T = latencies x a + volume x n / B + reduced x n x G. `collectives.laws` offers it.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["ALPHA_BETA", "alpha_beta_seconds", "nvls_all_reduce_busbw"]

#: Ranks -> latencies, bytes over the busiest link / n, bytes a rank adds up / n.
AlphaBeta = Callable[[int], tuple[float, float, float]]


def _up(p: int) -> int:
    """Return ceil(lg p)."""
    return (p - 1).bit_length()


def _share(p: int) -> float:
    return (p - 1) / p


def _doubling(p: int) -> tuple[int, float]:
    """Return steps and volume of a recursive doubling all-gather; ranks beyond a power of two fold in."""
    k = p.bit_length() - 1
    r = p - (1 << k)
    if not r:
        return k, _share(p)
    return k + 2, (1 + sum((1 << i) + min(r, 1 << i) for i in range(k)) + p - 1) / p


def _folded(p: int, times: float) -> float:
    """Return the steps of a doubling over whole vectors: lg p, and `times` more beyond a power of two."""
    return p.bit_length() - 1 + (times if p & (p - 1) else 0)


#: (kind, algorithm) -> law under one ideal switch, latency a that of a path (two links); nvls and sharp
#: have that switch reduce and multicast. Rings and neighbour sends on a ring: a that of one link.
ALPHA_BETA: dict[tuple[str, str], AlphaBeta] = {
    ("all_to_all", "direct"): lambda p: (1, _share(p), 0),
    ("all_to_all", "pairwise"): lambda p: (p - 1, _share(p), 0),
    ("all_to_all", "bruck"): lambda p: (_up(p), sum(j.bit_count() for j in range(p)) / p, 0),
    ("all_gather", "ring"): lambda p: (p - 1, _share(p), 0),
    ("all_gather", "direct"): lambda p: (1, _share(p), 0),
    ("all_gather", "recursive_doubling"): lambda p: (*_doubling(p), 0),
    ("all_gather", "bruck"): lambda p: (_up(p), _share(p), 0),
    ("all_gather", "pat"): lambda p: (_up(p), _share(p), 0),
    ("all_gather", "nvls"): lambda p: (1, 1, 0),
    ("reduce_scatter", "ring"): lambda p: (p - 1, _share(p), _share(p)),
    ("reduce_scatter", "direct"): lambda p: (1, _share(p), _share(p)),
    ("reduce_scatter", "recursive_halving"): lambda p: (*_doubling(p), _doubling(p)[1]),
    ("reduce_scatter", "pat"): lambda p: (_up(p), _share(p), _share(p)),
    ("reduce_scatter", "nvls"): lambda p: (1, 1, 0),
    ("all_reduce", "ring"): lambda p: (2 * (p - 1), 2 * _share(p), _share(p)),
    ("all_reduce", "direct"): lambda p: (2, 2 * _share(p), _share(p)),
    ("all_reduce", "recursive_doubling"): lambda p: (_folded(p, 2), _folded(p, 2), _folded(p, 1)),
    ("all_reduce", "rabenseifner"): lambda p: (2 * _doubling(p)[0], 2 * _doubling(p)[1], _doubling(p)[1]),
    ("all_reduce", "binomial"): lambda p: (2 * _up(p), 2 * _up(p), _up(p)),
    ("all_reduce", "double_binary_tree"): lambda p: (2 * _up(p), min(2, p / 2), min(1, p / 4)),
    ("all_reduce", "pat"): lambda p: (2 * _up(p), 2 * _share(p), _share(p)),
    ("all_reduce", "nvls"): lambda p: (2, 1 + 1 / p, 0),
    ("all_reduce", "sharp"): lambda p: (1, 1, 0),
    ("broadcast", "ring"): lambda p: (p - 1, 1, 0),
    ("broadcast", "direct"): lambda p: (1, p - 1, 0),
    ("broadcast", "binomial"): lambda p: (_up(p), _up(p), 0),
    ("broadcast", "scatter_all_gather"): lambda p: (_up(p) + p - 1, 2 * _share(p), 0),
    ("broadcast", "nvls"): lambda p: (1, 1, 0),
    ("reduce", "ring"): lambda p: (p - 1, 1, 1),
    ("reduce", "direct"): lambda p: (1, p - 1, p - 1),
    ("reduce", "binomial"): lambda p: (_up(p), _up(p), _up(p)),
    ("reduce", "nvls"): lambda p: (1, 1, 0),
    ("gather", "direct"): lambda p: (1, _share(p), 0),
    ("gather", "binomial"): lambda p: (_up(p), _share(p), 0),
    ("scatter", "direct"): lambda p: (1, _share(p), 0),
    ("scatter", "binomial"): lambda p: (_up(p), _share(p), 0),
    ("sendrecv", "direct"): lambda p: (1, 1, 0),
    ("barrier", "dissemination"): lambda p: (_up(p), _share(p), 0),
    ("barrier", "direct"): lambda p: (1, _share(p), 0),
}


def alpha_beta_seconds(
    kind: str,
    algorithm: str,
    n_ranks: int,
    n_bytes: float,
    bandwidth: float,
    latency: float = 0.0,
    reduction: float = 0.0,
) -> float:
    """Return the time of an algorithm under one ideal switch.

    Parameters
    ----------
    kind, algorithm : str
        A row of ALPHA_BETA.
    n_ranks : int
        Ranks, two or more.
    n_bytes : float
        nccl-tests' size [bytes].
    bandwidth : float
        Of a rank's link, per direction [bytes/s].
    latency : float, optional
        Of a path between two ranks [s].
    reduction : float, optional
        Time to add up one byte; `cost` has none [s/byte].

    Returns
    -------
    float
        [s].

    References
    ----------
    R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication
    Operations in MPICH", 2005; P. Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for
    full bandwidth broadcast, reduction and scan", 2009; S. Jeaugey, "PAT", arXiv
    2506.20252. Whole ranks counts, direct, NVLS and SHARP: derived, docs/collectives.md.

    Examples
    --------
    >>> alpha_beta_seconds("all_reduce", "ring", 8, 8e9, 450e9)
    0.03111111111111111
    """
    latencies, volume, reduced = ALPHA_BETA[kind, algorithm](n_ranks)
    return latencies * latency + volume * n_bytes / bandwidth + reduced * n_bytes * reduction


def nvls_all_reduce_busbw(n_ranks: int, bandwidth: float) -> float:
    """Return the busbw that an all-reduce through reducing switches cannot exceed.

    Parameters
    ----------
    n_ranks : int
        p ranks under one level of switches.
    bandwidth : float
        Of a rank, per direction [bytes/s].

    Returns
    -------
    float
        2 (p - 1)/(p + 1) B [bytes/s]: every rank sends and receives n (1 + 1/p).

    Examples
    --------
    >>> round(nvls_all_reduce_busbw(8, 1.0), 3)
    1.556
    """
    return 2 * (n_ranks - 1) / (n_ranks + 1) * bandwidth
