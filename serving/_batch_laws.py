"""What does a batch do to the latency and the cost of a token? The roofline of R. Pope's lecture, one law per function.

References are to his blackboard lecture on the Dwarkesh podcast, 2026-04-29, by time.
"""

from __future__ import annotations

import math

from serving._elementwise import Number, larger

__all__ = [
    "dollars_per_token",
    "drain_seconds",
    "fast_mode_batches",
    "fast_mode_kv_share",
    "fast_mode_price",
    "knee_batch",
    "lecture_seconds",
    "machine_balance",
    "scaling_book_seconds",
    "train_wait",
]


def lecture_seconds(flop: Number, flops: float, weight_bytes: float, kv_bytes: Number, bandwidth: float) -> Number:
    """Return a step as the lecture has it: compute and memory overlap, wires and attention arithmetic are free.

    Parameters
    ----------
    flop, flops : float
        Weights' arithmetic [FLOP] and rate [FLOP/s].
    weight_bytes, kv_bytes, bandwidth : float
        All weights, all caches [bytes] and HBM bandwidth [bytes/s].

    Returns
    -------
    float
        max(flop / flops, (weight_bytes + kv_bytes) / bandwidth) [s].

    References
    ----------
    R. Pope on the Dwarkesh podcast, 2026-04-29, from 3:12.

    Examples
    --------
    >>> lecture_seconds(4e12, 1e15, 8e9, 8e9, 8e12)
    0.004
    """
    seconds: Number = larger(flop / flops, (weight_bytes + kv_bytes) / bandwidth)
    return seconds


def scaling_book_seconds(flop: Number, flops: float, weight_bytes: float, kv_bytes: Number, bandwidth: float) -> Number:
    """Return a step as the scaling book has it: caches are read on their own, weights beside their arithmetic.

    Parameters
    ----------
    flop, flops, weight_bytes, kv_bytes, bandwidth
        As `lecture_seconds`.

    Returns
    -------
    float
        kv_bytes / bandwidth + max(flop / flops, weight_bytes / bandwidth) [s].

    References
    ----------
    Austin et al., "How to Scale Your Model", 2025, chapter on inference (jax-ml/scaling-book).

    Examples
    --------
    >>> scaling_book_seconds(4e12, 1e15, 8e9, 8e9, 8e12)
    0.005
    """
    weights: Number = larger(flop / flops, weight_bytes / bandwidth)
    return kv_bytes / bandwidth + weights


def machine_balance(flops: float, bandwidth: float, bytes_per_weight: float) -> float:
    """Return how often a weight must be used so that multiplying it takes as long as reading it.

    Parameters
    ----------
    flops : float
        Rate at the weights' type, a multiply and an add counted as two [FLOP/s].
    bandwidth : float
        Of the HBM [bytes/s].
    bytes_per_weight : float
        0.5 for FP4, 1 for FP8 [bytes].

    Returns
    -------
    float
        (flops / 2) x bytes_per_weight / bandwidth [uses per reading].

    References
    ----------
    Lecture, 18:00: FP4 multiplies/s x half a byte, about 300 on most GPUs.

    Examples
    --------
    >>> machine_balance(10e15, 8e12, 0.5)
    312.5
    """
    return flops / 2 * bytes_per_weight / bandwidth


def knee_batch(
    weight_bytes: float, active_params: float, flops: float, bandwidth: float, kv_bytes: float = 0.0
) -> float:  # fmt: skip
    """Return the batch at which compute takes as long as memory.

    Parameters
    ----------
    weight_bytes : float
        All weights [bytes].
    active_params : float
        Weights a token meets.
    flops, bandwidth : float
        Of all GPUs that share the weights, or of one: only the ratio counts [FLOP/s], [bytes/s].
    kv_bytes : float, optional
        KV cache of one sequence [bytes].

    Returns
    -------
    float
        (weight_bytes / W) / (2 Na / F - kv_bytes / W) [sequences]; infinite where a sequence's cache
        takes as long to read as its token to compute.

    References
    ----------
    Lecture, 18:00 (without the cache: balance x total / active) and 19:52 (with it).

    Examples
    --------
    >>> knee_batch(256e9, 32e9, 600e12, 1e12)
    2400.0
    """
    per_sequence = 2 * active_params / flops - kv_bytes / bandwidth
    return weight_bytes / bandwidth / per_sequence if per_sequence > 0 else math.inf


def drain_seconds(n_bytes: float, bandwidth: float) -> float:
    """Return the time to read something once.

    Parameters
    ----------
    n_bytes : float
        All of a memory: its drain time. All weights: the latency floor of a step [bytes].
    bandwidth : float
        It is read with [bytes/s].

    Returns
    -------
    float
        n_bytes / bandwidth [s].

    References
    ----------
    Lecture, 9:45 (floor) and 22:44 (drain time: 288 GB at 20 TB/s).

    Examples
    --------
    >>> round(drain_seconds(288e9, 20e12), 6)
    0.0144
    """
    return n_bytes / bandwidth


def train_wait(period: float) -> tuple[float, float]:
    """Return how long a token takes when a pass departs every period, full or not.

    Parameters
    ----------
    period : float
        Time from one departure to the next, and of the journey [s].

    Returns
    -------
    (float, float)
        Mean 1.5 periods, worst 2 periods: up to one to depart and one to arrive [s].

    References
    ----------
    Lecture, 22:13: 20 + 20 = 40 ms.

    Examples
    --------
    >>> train_wait(0.02)
    (0.03, 0.04)
    """
    return 1.5 * period, 2 * period


def dollars_per_token(seconds: float, tokens: float, gpus: float, dollars_per_hour: float) -> float:
    """Return what a token costs when GPUs are rented.

    Parameters
    ----------
    seconds, tokens : float
        Time of a pass [s] and tokens it yields.
    gpus, dollars_per_hour : float
        GPUs busy with it and the rent of one [$/h].

    Returns
    -------
    float
        seconds x gpus x rent / tokens [$].

    References
    ----------
    Lecture, 12:39: about 2 $ per GPU-hour.

    Examples
    --------
    >>> round(dollars_per_token(0.02, 2000, 72, 2.0) * 1e6, 9)
    0.4
    """
    return seconds * gpus * dollars_per_hour / 3600 / tokens


def fast_mode_batches(price: float, speed: float) -> float:
    """Return how much smaller the batch of a fast mode is, if cost is time on the machine.

    Parameters
    ----------
    price, speed : float
        Times dearer per token, times faster.

    Returns
    -------
    float
        price x speed: cost per token is t / B, so (t' / B') / (t / B) = price with t / t' = speed.

    References
    ----------
    Lecture, opening: 6 times the price for 2.5 times the speed.

    Examples
    --------
    >>> fast_mode_batches(6, 2.5)
    15.0
    """
    return price * speed


def fast_mode_kv_share(price: float, speed: float) -> float:
    """Return how much KV cache the slow mode reads per byte of weights, if batch alone makes the fast mode.

    Parameters
    ----------
    price, speed : float
        Times dearer per token, times faster; price above 1.

    Returns
    -------
    float
        x with 1 + x = speed (1 + x / (price speed)), so x = price (speed - 1) / (price - 1).

    References
    ----------
    Derived from the lecture's memory time (weights + B x cache) / W, opening and 5:11.

    Examples
    --------
    >>> fast_mode_kv_share(6, 2.5)
    1.8
    """
    return price * (speed - 1) / (price - 1)


def fast_mode_price(kv_share: float, speed: float) -> float:
    """Return how much dearer a token gets when a smaller batch makes it faster.

    Parameters
    ----------
    kv_share : float
        KV cache read per byte of weights in the slow mode.
    speed : float
        Times faster.

    Returns
    -------
    float
        The inverse of `fast_mode_kv_share`: x / (x + 1 - speed), infinite where not even an empty
        batch is that fast.

    References
    ----------
    As `fast_mode_kv_share`.

    Examples
    --------
    >>> round(fast_mode_price(1.8, 2.5), 9)
    6.0
    """
    return kv_share / (kv_share + 1 - speed) if kv_share > speed - 1 else math.inf
