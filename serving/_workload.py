"""What is asked of the model in one step?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serving._dtypes import dtype_bytes
from serving._elementwise import Number
from serving.laws import expected_accepted
from topo import Fault, InputError, suggest

__all__ = ["Slice", "Workload", "whole"]

Ints = NDArray[np.intp]

PHASES = ("decode", "prefill", "chunked")
DRAFTERS = ("mtp", "free")
COPIES = ("direct", "per_gpu", "per_domain")
EXPERT_ROUTINGS = ("free",)
EXPERT_READS = ("distinct", "all")
#: Larger counts of sequences or tokens are a slip of the pen.
LARGEST = 10**12


@dataclass(frozen=True)
class Workload:
    """What one step has to do.

    Parameters
    ----------
    phase : {"decode", "prefill", "chunked"}
        decode: one new token per sequence. prefill: whole prompts. chunked: decode, and with it a
        piece of a prompt on every attention replica.
    context : int
        Tokens in every sequence's KV cache, the new ones among them.
    batch : int, optional
        Sequences over all GPUs of a stage (constant total batch).
    batch_per_gpu : int, optional
        Sequences on every GPU (constant per GPU). One of the two is given.
    cached : int, optional
        Of a prompt's `context` tokens those whose KV cache is there already (prefill).
    chunk : int, optional
        Tokens of the piece of a prompt (chunked).
    prompt : int, optional
        Tokens of the whole prompt the piece is of; by default `context` (chunked). The piece in its middle is
        counted, which costs as much as the mean over all pieces.
    draft : int, optional
        Tokens guessed per sequence, checked in the same pass (speculative decoding).
    acceptance : float, optional
        Chance that a guessed token is right when all before it are; must be given with `draft`.
    drafter : {"mtp", "free"}, optional
        Guesses come from the model's multi-token-prediction layer, one pass per token, or cost nothing.
    kv_dtype, dispatch_dtype, combine_dtype : str, optional
        Of KV cache and attention arithmetic, and of the two all-to-alls.
    copies : {"direct", "per_gpu", "per_domain"}, optional
        One copy of a token for each of its experts, for each different GPU they are on, or
        for each different domain, handed on inside; results come back alike.
    expert_routing : {"free"}, optional
        Free: a model's group limit is not used.
    expert_read : {"distinct", "all"}, optional
        Which expert weights a step reads: those of the expected distinct experts hit,
        or all of them as in the lecture.
    attention_arithmetic : bool, optional
        Whether attention arithmetic takes time (the lecture leaves it out).
    router : bool, optional
        Whether the router's weights take time.
    hbm_reserve : float, optional
        Part of HBM kept free.

    Examples
    --------
    >>> Workload(context=4096, batch_per_gpu=114).kv_dtype
    'bf16'
    """

    phase: str = "decode"
    context: int = 4096
    batch: int | None = None
    batch_per_gpu: int | None = None
    cached: int = 0
    chunk: int | None = None
    prompt: int | None = None
    draft: int = 0
    acceptance: float | None = None
    drafter: str = "mtp"
    kv_dtype: str = "bf16"
    dispatch_dtype: str = "fp8"
    combine_dtype: str = "bf16"
    copies: str = "direct"
    expert_routing: str = "free"
    expert_read: str = "distinct"
    attention_arithmetic: bool = True
    router: bool = False
    hbm_reserve: float = 0.10

    def __post_init__(self) -> None:
        """Refuse what cannot be, all at once."""
        faults = [
            Fault(name, getattr(self, name), "is not known", suggest(str(getattr(self, name)), known))
            for name, known in (
                ("phase", PHASES), ("copies", COPIES),
                ("expert_routing", EXPERT_ROUTINGS), ("expert_read", EXPERT_READS), ("drafter", DRAFTERS),
            )
            if getattr(self, name) not in known
        ]  # fmt: skip
        for name in ("kv_dtype", "dispatch_dtype", "combine_dtype"):
            try:
                dtype_bytes(getattr(self, name), name)
            except InputError as error:
                faults += error.faults
        if (self.batch is None) == (self.batch_per_gpu is None):
            given = "both" if self.batch is not None else "neither"
            faults.append(Fault("batch, batch_per_gpu", given, "exactly one of the two is needed", "Give one."))
        for name in ("context", "batch", "batch_per_gpu"):
            faults += whole(name, getattr(self, name), ... if name == "context" else None)
        faults += whole("cached", self.cached, least=0) + whole("draft", self.draft, least=0)
        faults += [fault for name in ("chunk", "prompt") for fault in whole(name, getattr(self, name), None)]
        for name in ("attention_arithmetic", "router"):
            if not isinstance(getattr(self, name), bool):
                faults.append(Fault(name, getattr(self, name), "must be True or False", "Correct it."))
        reserve = self.hbm_reserve
        if isinstance(reserve, bool) or not isinstance(reserve, int | float) or not 0 <= reserve < 1:
            faults.append(
                Fault("hbm_reserve", self.hbm_reserve, "must lie in 0 .. 1, 1 excluded", "Give a part, as 0.1.")
            )
        if faults or (faults := self._at_odds()):
            raise InputError(*faults)

    def _at_odds(self) -> list[Fault]:
        """Return what goes with another phase, or is missing in this one."""
        faults = []
        for name, phase, neutral in (("cached", "prefill", 0), ("chunk", "chunked", None), ("prompt", "chunked", None)):
            if getattr(self, name) != neutral and self.phase != phase:
                faults.append(Fault(name, getattr(self, name), f"goes with phase {phase} only", "Leave it out."))
        if self.phase == "prefill" and self.cached >= self.context:
            faults.append(Fault("cached", self.cached, f"leaves nothing of {self.context} tokens", "Take fewer."))
        if self.phase == "chunked" and self.chunk is None:
            faults.append(Fault("chunk", None, "is needed in phase chunked", "Give tokens, as 2048."))
        if self.chunk and self.chunk > self.prompt_tokens:
            faults.append(Fault("chunk", self.chunk, f"is more than the prompt, {self.prompt_tokens}", "Take fewer."))
        if self.draft and self.phase == "prefill":
            faults.append(Fault("draft", self.draft, "guesses tokens of a decode", "Leave it out."))
        rate = self.acceptance
        if (self.draft > 0) != (rate is not None):
            rule = "goes with draft" if rate is not None else "is needed with draft: it is never assumed"
            faults.append(Fault("acceptance", rate, rule, "Give a chance, as 0.85, and draft, or neither."))
        elif rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1):
            faults.append(Fault("acceptance", rate, "must lie in 0 .. 1", "Give a chance, as 0.85."))
        return faults

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt a piece is of."""
        return self.prompt or self.context

    @property
    def emitted(self) -> float:
        """Tokens a sequence gains in a step of decode, on average."""
        return expected_accepted(self.draft, self.acceptance or 0.0)

    def slices(self, sequences: Number, context: Number | None = None) -> tuple[Slice[Number], ...]:
        """Return the work of an attention replica with so many sequences, of another context if given.

        Examples
        --------
        >>> Workload(context=4096, batch=1).slices(8)
        (Slice(sequences=8, before=4095, after=4096, logits=1),)
        """
        each: Any = self.context if context is None else context
        if self.phase == "prefill":
            return (Slice(sequences, 0 * each + self.cached, each, 1),)
        decode = Slice(sequences, each - 1, each + self.draft, 1 + self.draft)
        if self.chunk is None:
            return (decode,)
        prompt, half = self.prompt or each, self.chunk / 2
        return (decode, Slice(0 * each + 1, prompt / 2 - half, prompt / 2 + half, self.chunk / prompt))

    def batch_of(self, ranks: int) -> Ints:
        """Return the sequences on each GPU of a group: equal up to one, (ranks,) int."""
        if self.batch_per_gpu is not None:
            return np.full(ranks, self.batch_per_gpu, dtype=np.intp)
        assert self.batch is not None
        share, extra = divmod(self.batch, ranks)
        return np.where(np.arange(ranks) < extra, share + 1, share).astype(np.intp)

    @property
    def batch_policy(self) -> str:
        """Which of the two is constant when a width varies, in words."""
        if self.batch_per_gpu is not None:
            return f"{self.batch_per_gpu} sequences per GPU"
        return f"{self.batch:,} sequences over the group"


class Slice(NamedTuple, Generic[Number]):
    """Like sequences of one step on one attention replica; floats, or arrays of points side by side.

    `sequences` of them each grow from `before` to `after` tokens; the last `logits` of the new ones pass the head.
    """

    sequences: Number
    before: Number
    after: Number
    logits: Number | float

    @property
    def tokens(self) -> Number:
        """New tokens of all of them."""
        return self.sequences * (self.after - self.before)


def whole(name: str, value: Any, default: Any = ..., *, least: int = 1) -> list[Fault]:
    """Return what is wrong with a whole number; a `default` may stand in its place."""
    if value is default:
        return []
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        return [Fault(name, value, f"must be a whole number, {'one' if least else 'zero'} or more", "Correct it.")]
    if value > LARGEST:
        return [Fault(name, value, f"is more than {LARGEST:,}", "Give what one deployment has.")]
    return []
