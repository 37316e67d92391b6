"""What does one layer keep of every token, and what does a new token do with it?

The part of a layer that mixes tokens: attention in any of its forms, a recurrence, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from serving._elementwise import Number, larger, smaller
from serving.laws import visible_positions

__all__ = ["NOTHING", "Cache", "Mixer"]


@dataclass(frozen=True)
class Cache:
    """What tokens leave behind in a layer, to be read by every later one.

    Parameters
    ----------
    elements : int
        Elements of one kept position.
    flops_per_position : int
        Arithmetic of a new token per position it reads [FLOP].
    heads : int, optional
        Heads the elements divide into over tensor-parallel ranks; 1 does not divide (a latent).
    window : int, optional
        Positions a token reaches back, itself included; all by default.
    stride : int, optional
        Tokens that share one kept position.
    selected : int, optional
        Kept positions a token reads at most; all by default.
    expanded : (int, int), optional
        Another way of computing the same: arithmetic per position read, and to prepare every position
        that was there before [FLOP]. The cheaper way counts.
    """

    elements: int
    flops_per_position: int
    heads: int = 1
    window: int | None = None
    stride: int = 1
    selected: int | None = None
    expanded: tuple[int, int] | None = None

    def kept(self, context: Number) -> Number:
        """Return the positions kept of a context."""
        kept: Number = context if self.window is None else smaller(context, self.window)
        return kept / self.stride

    def read(self, before: Number, after: Number) -> Number:
        """Return the positions read by the tokens from `before` (excluded) to `after`, all together."""
        reach = [n for n in (self.window, self.selected and self.selected * self.stride) if n is not None]
        return visible_positions(before, after, min(reach, default=None)) / self.stride

    def flop(self, before: Number, after: Number) -> Number:
        """Return the arithmetic of the tokens from `before` (excluded) to `after` [FLOP]."""
        read = self.read(before, after)
        if self.expanded is None:
            return self.flops_per_position * read
        expanded = self.expanded[0] * read + self.expanded[1] * self.kept(before)
        least: Number = smaller(self.flops_per_position * read, expanded)
        return least

    def touched(self, before: Number, after: Number) -> Number:
        """Return the different positions of one sequence that these tokens read or write, each once."""
        first = 0.0 if self.window is None else larger(0.0, before + 1 - self.window)
        moved: Number = smaller(self.read(before, after), (after - first) / self.stride)
        return moved


@dataclass(frozen=True)
class Mixer:
    """The token-mixing part of one layer.

    Parameters
    ----------
    kind : str
        "gqa", "mla", "sparse mla", "compressed", "linear", "ssm", "convolution" or "none".
    params, norm_params : int
        Weights a token is multiplied with, and parameters of norms.
    caches : tuple of Cache, optional
        What grows with the context.
    state_elements : int, optional
        What is kept of a sequence whatever its length, at 4 bytes each.
    flops_per_token : int, optional
        Arithmetic on the state per token [FLOP].
    heads : int, optional
        Heads that tensor-parallel ranks share out; 0 where there are none.
    """

    kind: str
    params: int = 0
    norm_params: int = 0
    caches: tuple[Cache, ...] = ()
    state_elements: int = 0
    flops_per_token: int = 0
    heads: int = 0

    def within(self, window: int | None) -> Mixer:
        """Return the same with a window on everything it keeps."""
        if window is None:
            return self
        return replace(self, caches=tuple(replace(cache, window=window) for cache in self.caches))

    def times(self, count: int) -> Mixer:
        """Return `count` of them one after the other in one layer."""
        return replace(
            self, params=self.params * count, norm_params=self.norm_params * count, caches=self.caches * count,
            state_elements=self.state_elements * count, flops_per_token=self.flops_per_token * count,
        )  # fmt: skip

    @property
    def kv_elements(self) -> float:
        """Elements a token adds while it is within every window."""
        return sum(cache.elements / cache.stride for cache in self.caches)

    def kv_kept(self, context: Number, tp: int = 1) -> Number:
        """Return the cached elements of one sequence on one of `tp` GPUs; heads divide, a latent does not."""
        kept = (cache.elements * cache.kept(context) / min(tp, cache.heads) for cache in self.caches)
        return sum(kept, 0.0 * context)

    def kv_read(self, before: Number, after: Number, tp: int = 1) -> Number:
        """Return the elements one of `tp` GPUs moves for the tokens from `before` (excluded) to `after`.

        Kernels read a position once for all new tokens of a sequence.
        """
        moved = (cache.elements * cache.touched(before, after) / min(tp, cache.heads) for cache in self.caches)
        return sum(moved, 0.0 * after)

    def flop(self, before: Number, after: Number) -> Number:
        """Return the arithmetic on cache and state of the tokens from `before` (excluded) to `after` [FLOP]."""
        return sum((cache.flop(before, after) for cache in self.caches), self.flops_per_token * (after - before))


#: A layer that mixes no tokens.
NOTHING = Mixer("none")
