"""What do pools of prefill and decode share, and what is under way in them?"""

from __future__ import annotations

__all__ = ["context_in_flight", "handover_seconds"]


def handover_seconds(prefill: float, send: float, layers: int) -> float:
    """Return the time until a prompt's KV cache is where it is decoded, sent layer by layer while later ones compute.

    Parameters
    ----------
    prefill : float
        Pass of the prompt through all layers [s].
    send : float
        Sending the whole cache on otherwise idle links [s].
    layers : int
        Layers that are alike: the cache of one is sent while the next computes.

    Returns
    -------
    float
        max(prefill, send) + min(prefill, send) / layers [s]: the first layer computes before anything
        is sent, or the last is sent after all has computed.

    References
    ----------
    Patel et al., Splitwise, arXiv 2311.18677, section 4.3; Zhong et al., DistServe, arXiv 2401.09670.

    Examples
    --------
    >>> handover_seconds(0.6, 0.12, 60), handover_seconds(0.12, 0.6, 60)
    (0.602, 0.602)
    """
    return max(prefill, send) + min(prefill, send) / layers


def context_in_flight(prompt: float, answer: float, answer_squared: float) -> float:
    """Return the mean context of the sequences being decoded at one moment.

    Parameters
    ----------
    prompt, answer : float
        Mean tokens of prompts and of answers, independent of each other.
    answer_squared : float
        Mean square of an answer's tokens.

    Returns
    -------
    float
        E[I] + (E[O^2] / E[O] + 1) / 2: a long answer is under way for longer.

    References
    ----------
    Renewal theory: the age of what is found under way, W. Feller, vol. II, section XI.4.

    Examples
    --------
    >>> context_in_flight(1000, 100, 100**2)  # contexts 1001 .. 1100
    1050.5
    """
    return prompt + (answer_squared / answer + 1) / 2
