"""How long a context can a model afford? Where memory crosses compute, and where the KV cache is a wall.

References are to R. Pope's lecture on the Dwarkesh podcast, 2026-04-29, by time.
"""

from __future__ import annotations

import math

__all__ = [
    "break_even_seconds",
    "crossing_context",
    "hold_dollars",
    "kv_bytes_at_crossing",
    "kv_bytes_per_token",
    "kv_wall_context",
    "sparse_positions",
    "utilisation",
]


def kv_bytes_per_token(head_size: int, kv_heads: int, layers: int, bytes_per_element: float) -> float:
    """Return the KV cache a token leaves in layers that keep their own.

    Parameters
    ----------
    head_size, kv_heads, layers : int
        Size of a head, heads with keys and values of their own, layers with a cache of their own.
    bytes_per_element : float
        [bytes].

    Returns
    -------
    float
        2 x head_size x kv_heads x layers x bytes_per_element [bytes].

    References
    ----------
    Lecture, 1:40:00: heads of 128, 8 of them, one global layer, one byte: 2,048.

    Examples
    --------
    >>> kv_bytes_per_token(128, 8, 1, 1.0)
    2048.0
    """
    return 2 * head_size * kv_heads * layers * bytes_per_element


def crossing_context(
    active_params: float, flops: float, kv_bytes: float, bandwidth: float,
    weight_bytes: float = 0.0, batch: float = math.inf,
) -> float:  # fmt: skip
    """Return the context at which reading memory takes as long as the weights' arithmetic.

    Parameters
    ----------
    active_params : float
        Weights a token meets.
    flops : float
        Rate [FLOP/s].
    kv_bytes : float
        KV cache of a token [bytes].
    bandwidth : float
        Of the HBM [bytes/s].
    weight_bytes, batch : float, optional
        All weights [bytes] and the sequences that share their reading; by default weights are free.

    Returns
    -------
    float
        (2 Na / F - weights / (B W)) W / k [tokens]; zero or below: memory is slower at any context.

    References
    ----------
    Lecture, 11:25 (balanced at every large batch) and 1:35:47 (weights negligible).

    Examples
    --------
    >>> round(crossing_context(100e9, 600e12, 2000.0, 1e12))
    166667
    """
    compute = 2 * active_params / flops
    return (compute - weight_bytes / (batch * bandwidth)) * bandwidth / kv_bytes


def kv_bytes_at_crossing(context: float, active_params: float, flops: float, bandwidth: float) -> float:
    """Return the KV bytes per token that a price step at some context gives away: `crossing_context` read backwards.

    Parameters
    ----------
    context : float
        Where the price steps up [tokens].
    active_params, flops, bandwidth
        As `crossing_context`; weights are free.

    Returns
    -------
    float
        2 Na W / (F L) [bytes].

    References
    ----------
    Lecture, 1:35:47: 100 B active, 200 K, a balance of 300: 1,667 bytes with one-byte weights.

    Examples
    --------
    >>> round(kv_bytes_at_crossing(200e3, 100e9, 600e12, 1e12))
    1667
    """
    return 2 * active_params * bandwidth / (flops * context)


def utilisation(context: float, crossing: float) -> float:
    """Return the part of its compute rate that decode reaches at a large batch.

    Parameters
    ----------
    context, crossing : float
        Context, and that at which memory takes as long as compute [tokens].

    Returns
    -------
    float
        min(1, crossing / context).

    References
    ----------
    Lecture, 11:25: balanced at 100 K, so about 50 % at 200 K.

    Examples
    --------
    >>> utilisation(200e3, 100e3)
    0.5
    """
    return min(1.0, crossing / context)


def kv_wall_context(budget_bytes: float, sequences: float, kv_bytes: float) -> float:
    """Return the longest context that so many bytes of cache allow.

    Parameters
    ----------
    budget_bytes : float
        What is left for the cache: HBM less weights, or bandwidth x time less weights [bytes].
    sequences : float
        That share it.
    kv_bytes : float
        KV cache of a token [bytes].

    Returns
    -------
    float
        budget / (sequences x kv_bytes) [tokens]. Read within the drain time, the wall of bandwidth is the
        wall of capacity.

    References
    ----------
    Lecture, 1:54:00 (the wall) and 24:10 (a pass longer than the drain time reads twice).

    Examples
    --------
    >>> kv_wall_context(160e9, 100, 80e3)
    20000.0
    """
    return budget_bytes / (sequences * kv_bytes)


def sparse_positions(context: float, selected: float, index_share: float) -> float:
    """Return how many positions' worth of cache sparse attention reads.

    Parameters
    ----------
    context : float
        Positions there are [tokens].
    selected : float
        Positions attended to at most.
    index_share : float
        Bytes the indexer reads of every position, over bytes of a position.

    Returns
    -------
    float
        min(context, selected) + index_share x context: it grows in proportion, on a lower slope.

    References
    ----------
    DeepSeek-V3.2, arXiv 2512.02556: 2,048 selected, one index key of 128 per position. The lecture (12:25)
    takes the square root of the context.

    Examples
    --------
    >>> sparse_positions(1e5, 2048, 1 / 9) // 1
    13159.0
    """
    return min(context, selected) + index_share * context


def hold_dollars(kv_bytes: float, capacity: float, dollars_per_second: float, seconds: float) -> float:
    """Return what it costs to hold a token's cache in a memory.

    Parameters
    ----------
    kv_bytes, capacity : float
        Of a token, and of the memory [bytes].
    dollars_per_second : float
        Of the whole memory; of HBM that of the GPU [$/s].
    seconds : float
        How long [s].

    Returns
    -------
    float
        kv_bytes / capacity x dollars_per_second x seconds [$].

    References
    ----------
    Lecture, 1:50:19.

    Examples
    --------
    >>> hold_dollars(80e3, 160e9, 2 / 3600, 3600) * 1e6
    1.0
    """
    return kv_bytes / capacity * dollars_per_second * seconds


def break_even_seconds(quick: tuple[float, float], cheap: tuple[float, float]) -> float:
    """Return how long a cache must be held before the memory that is cheap to hold in is the cheaper one.

    Parameters
    ----------
    quick, cheap : (float, float)
        Cost of fetching once [$] and of holding [$/s], in the one that fetches cheaply and the one that holds
        cheaply. Computing anew is the cheapest to hold in: (cost of computing, 0).

    Returns
    -------
    float
        (fetch' - fetch) / (hold - hold') [s].

    References
    ----------
    Lecture, 1:50:19: fetching gets cheaper as holding gets dearer.

    Examples
    --------
    >>> break_even_seconds((0.0, 2.0), (30.0, 0.5))
    20.0
    """
    return (cheap[0] - quick[0]) / (quick[1] - cheap[1])
