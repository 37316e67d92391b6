"""What does a pipeline do to memory, latency and idle time? In inference, and in training.

References are to R. Pope's lecture on the Dwarkesh podcast, 2026-04-29, by time.
"""

from __future__ import annotations

from collections.abc import Callable

from topo import Fault, InputError, suggest

__all__ = [
    "BUBBLES",
    "cost_ratio_at_minimum",
    "equal_cost_tokens",
    "over_training",
    "pipeline_bubble",
    "pipeline_bytes_per_gpu",
    "pipeline_idle_share",
    "pipeline_seconds",
]


def pipeline_bytes_per_gpu(
    weight_bytes: float, micro_batch: float, context: float, kv_bytes: float, ep: int, pp: int
) -> float:
    """Return what a GPU of a pipeline holds, as the lecture derives it.

    Parameters
    ----------
    weight_bytes : float
        All weights [bytes].
    micro_batch : float
        Sequences of one micro-batch over the `ep` GPUs of a stage; as many are in flight as there are stages.
    context, kv_bytes : float
        Tokens of a sequence, KV cache of a token [bytes].
    ep, pp : int
        GPUs of a stage, stages.

    Returns
    -------
    float
        weight_bytes / (ep pp) + micro_batch x context x kv_bytes / ep [bytes]: pp micro-batches in flight cancel
        the pp-th part of the layers.

    References
    ----------
    Lecture, 1:06:00 to 1:12:55: c = Nt / (E P) + b L k / E.

    Examples
    --------
    >>> pipeline_bytes_per_gpu(640e9, 2000, 4000, 80e3, 64, 1) / 1e9
    20.0
    >>> pipeline_bytes_per_gpu(640e9, 2000, 4000, 80e3, 64, 4) / 1e9
    12.5
    """
    return weight_bytes / (ep * pp) + micro_batch * context * kv_bytes / ep


def pipeline_seconds(seconds: float, stages: int, hop: float) -> float:
    """Return the time of a token through a pipeline.

    Parameters
    ----------
    seconds : float
        All layers in one stage [s].
    stages : int
        Stages.
    hop : float
        From a stage to the next [s].

    Returns
    -------
    float
        seconds + (stages - 1) hop [s].

    References
    ----------
    Lecture, 1:00:52 (neutral) and 1:15:12 (hops add, since decode goes token by token).

    Examples
    --------
    >>> round(pipeline_seconds(20e-3, 4, 10e-3 / 3), 6)
    0.03
    """
    return seconds + (stages - 1) * hop


def pipeline_idle_share(stages: int, micro_batches: int) -> float:
    """Return the part of its time a stage idles in inference.

    Parameters
    ----------
    stages, micro_batches : int
        Stages, and micro-batches in flight.

    Returns
    -------
    float
        1 - micro_batches / stages, zero from one micro-batch per stage on: the next pass starts at once.

    References
    ----------
    Lecture, 57:43: four racks and one batch idle three quarters of the time.

    Examples
    --------
    >>> pipeline_idle_share(4, 1), pipeline_idle_share(4, 4)
    (0.75, 0.0)
    """
    return max(0.0, 1 - micro_batches / stages)


#: Schedule of a training step -> idle time of a stage per further stage, from the time of a micro-batch in one stage
#: forward, backward to the inputs, backward to the weights, and from the pieces a stage is cut into.
BUBBLES: dict[str, Callable[[float, float, float, int], float]] = {
    "gpipe": lambda forward, inputs, weights, chunks: forward + inputs + weights,
    "1f1b": lambda forward, inputs, weights, chunks: forward + inputs + weights,
    "interleaved": lambda forward, inputs, weights, chunks: (forward + inputs + weights) / chunks,
    "zb-h1": lambda forward, inputs, weights, chunks: max(0.0, forward + inputs - weights),
    "zb-h2": lambda forward, inputs, weights, chunks: max(0.0, forward + inputs - 2 * weights),
}


def pipeline_bubble(
    stages: int, micro_batches: int, schedule: str = "1f1b", *,
    chunks: int = 1, forward: float = 1.0, inputs: float = 1.0, weights: float = 1.0,
) -> float:  # fmt: skip
    """Return the part of a training step a stage idles: all micro-batches must be back before weights change.

    Parameters
    ----------
    stages, micro_batches : int
        Stages, and micro-batches of a step, at least as many.
    schedule : str, optional
        A key of `BUBBLES`. zb-h2 holds up to twice the activations.
    chunks : int, optional
        Pieces a stage is cut into (interleaved); micro-batches must divide by the stages.
    forward, inputs, weights : float, optional
        Time of a micro-batch in a stage: forward, gradient of the inputs, gradient of the weights [s].

    Returns
    -------
    float
        idle / (idle + busy), idle = (stages - 1) x `BUBBLES`.

    Raises
    ------
    InputError
        The schedule is unknown.

    References
    ----------
    Narayanan et al., arXiv 2104.04473 (1F1B, interleaved); Qi et al., arXiv 2401.10241, table 1 (zero bubble);
    lecture, 59:00.

    Examples
    --------
    >>> (
    ...     round(pipeline_bubble(4, 9), 4),
    ...     round(pipeline_bubble(4, 9, "zb-h1"), 4),
    ...     pipeline_bubble(4, 9, "zb-h2"),
    ... )
    (0.25, 0.1, 0.0)
    """
    if schedule not in BUBBLES:
        raise InputError(Fault("schedule", schedule, "is not known", suggest(str(schedule), BUBBLES)))
    idle = (stages - 1) * BUBBLES[schedule](forward, inputs, weights, chunks)
    return idle / (idle + micro_batches * (forward + inputs + weights))


def equal_cost_tokens(pretraining_tokens: float, flop_per_weight: float, efficiency: float) -> float:
    """Return the tokens of another use of a model that cost as much as its pretraining.

    Parameters
    ----------
    pretraining_tokens : float
        At 6 FLOP per active weight.
    flop_per_weight : float
        Of the other use: 2 in inference, 2 to 6 in reinforcement learning [FLOP].
    efficiency : float
        Its part of the compute rate that pretraining reaches.

    Returns
    -------
    float
        6 x tokens x efficiency / flop_per_weight.

    References
    ----------
    Lecture, 1:21:41: decode reaches about 30 % of training's.

    Examples
    --------
    >>> round(equal_cost_tokens(150e12, 2, 1 / 3) / 1e12)
    150
    """
    return 6 * pretraining_tokens * efficiency / flop_per_weight


def cost_ratio_at_minimum(rising: float, falling: float) -> float:
    """Return the ratio of two opposing costs where their sum is least: near one, as the lecture's rule of thumb says.

    Parameters
    ----------
    rising, falling : float
        Exponents: one cost grows as x**rising, the other falls as x**-falling.

    Returns
    -------
    float
        The rising cost over the falling one: falling / rising, since there rising * A = falling * B.

    References
    ----------
    Lecture, 1:21:20: the minimum of A + B lies near A = B; exact for x and 1 / x.

    Examples
    --------
    >>> cost_ratio_at_minimum(1, 1)
    1.0
    """
    return falling / rising


def over_training(tokens: float, active_params: float) -> float:
    """Return how many times more tokens a model was trained on than is best for its training alone.

    Parameters
    ----------
    tokens, active_params : float
        Training tokens, and weights a token meets.

    Returns
    -------
    float
        tokens / (20 active_params).

    References
    ----------
    Hoffmann et al., arXiv 2203.15556 (20 tokens per parameter); lecture, 1:31:07: about 100 times.

    Examples
    --------
    >>> over_training(200e12, 100e9)
    100.0
    """
    return tokens / (20 * active_params)
