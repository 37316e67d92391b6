"""What does one operation of a step take on one GPU, wires aside?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from serving._chip import ChipNumbers
from serving._dtypes import dtype_bytes
from serving._elementwise import Number, larger
from serving._model import STATE_BYTES, Model
from serving._workload import Slice, Workload
from serving.laws import expected_experts_hit, kernel_seconds, matmul_flop

__all__ = [
    "Local",
    "Part",
    "expert_part",
    "expert_parts",
    "kv_bytes",
    "kv_bytes_at",
    "local_parts",
    "merged",
    "overlapped",
    "resident_bytes",
    "sum_parts",
    "times",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: The resources of a step; each Part says how long it keeps each busy.
RESOURCES = ("compute", "memory", "network")
#: Fields of a Part that add up.
NUMBERS = ("seconds", "compute_seconds", "memory_seconds", "network_seconds", "flop", "n_bytes")


@dataclass(frozen=True)
class Part(Generic[Number]):
    """One operation of a step, all its layers together; floats, or arrays of points side by side.

    Attributes
    ----------
    name : str
        Operation.
    seconds : float
        max of compute and memory time, or the time on the wires [s].
    compute_seconds, memory_seconds, network_seconds : float
        [s].
    flop, n_bytes : float
        Work [FLOP] and HBM traffic [bytes] of the heaviest GPU.
    """

    name: str
    seconds: Number
    compute_seconds: Number | float = 0.0
    memory_seconds: Number | float = 0.0
    network_seconds: Number | float = 0.0
    flop: Number | float = 0.0
    n_bytes: Number | float = 0.0

    @property
    def resource(self) -> str:
        """What it waits for: "compute", "memory" or "network"."""
        return max(RESOURCES, key=lambda name: float(getattr(self, f"{name}_seconds")))


@dataclass(frozen=True)
class Local:
    """What a GPU does for its own sequences: model, workload, chip, and how a replica's weights and tokens are cut."""

    model: Model
    workload: Workload
    chip: ChipNumbers
    tp: int = 1
    cp: int = 1

    def parts(
        self, slices: Sequence[Slice[Number]], layers: Sequence[int], *, head: bool = False
    ) -> list[Part[Number]]:
        """Return attention projections; attention with the KV cache; dense weights, with the head if asked."""
        return [self._projections(slices, layers), self._attention(slices, layers), self._dense(slices, layers, head)]

    def _projections(self, slices: Sequence[Slice[Number]], layers: Sequence[int]) -> Part[Number]:
        model, share, tokens = self.model, self.tp, self._tokens(slices)
        flop = matmul_flop(tokens, model.params_in("attention", layers) / share)
        n_bytes = 0 * tokens + model.bytes_in("attention", layers) / share
        return _kernel("attention projections", self.chip, flop, n_bytes, model.dtype_of("attention"))

    def _attention(self, slices: Sequence[Slice[Number]], layers: Iterable[int]) -> Part[Number]:
        """Scores and values against the KV cache, and reading it; recurrent states are read and written."""
        work, mixers = self.workload, Counter(self.model.mixers[i] for i in layers)
        flop = elements = states = 0.0 * slices[0].tokens
        for count, before, after, _ in slices:
            for mixer, alike in mixers.items():
                flop = flop + alike * count * mixer.flop(before, after) / (self.tp * self.cp)
                elements = elements + alike * count * mixer.kv_read(before, after, self.tp)
                states = states + 2 * alike * count * mixer.state_elements / self.tp
        n_bytes = elements * dtype_bytes(work.kv_dtype) + states * STATE_BYTES
        return _kernel("attention and KV cache", self.chip, work.attention_arithmetic * flop, n_bytes, work.kv_dtype)

    def _dense(self, slices: Sequence[Slice[Number]], layers: Sequence[int], head: bool) -> Part[Number]:
        model, tokens = self.model, self._tokens(slices)
        # A tied head is the embedding, read once per step all the same.
        end = "head" if model.head_params else "embedding"
        weights = {part: (model.params_in(part, layers), tokens) for part in ("dense", "shared")}
        weights["router"] = (model.params_in("router", layers) * self.workload.router, tokens)
        weights[end] = (getattr(model, f"{end}_params") * head, _sum([one.sequences * one.logits for one in slices]))
        compute = flop = n_bytes = 0.0 * tokens
        for part, (params, passing) in weights.items():
            work = matmul_flop(passing, params / self.tp)
            compute = compute + work / self.chip.rate(model.dtype_of(part))
            flop = flop + work
            n_bytes = n_bytes + params / self.tp * dtype_bytes(model.dtype_of(part))
        memory = n_bytes / self.chip.hbm_bandwidth
        seconds: Number = larger(compute, memory)
        return Part("dense, shared experts and head", seconds, compute, memory, 0.0, flop, n_bytes)

    def _tokens(self, slices: Sequence[Slice[Number]]) -> Number:
        return _sum([one.tokens for one in slices]) / self.cp


def _sum(terms: Sequence[Number]) -> Number:
    return sum(terms[1:], terms[0])


def _kernel(name: str, chip: ChipNumbers, flop: Number, n_bytes: Number, dtype: str) -> Part[Number]:
    rate = chip.rate(dtype)
    seconds = kernel_seconds(flop, rate, n_bytes, chip.hbm_bandwidth)
    return Part(name, seconds, flop / rate, n_bytes / chip.hbm_bandwidth, 0.0, flop, n_bytes)


def local_parts(
    model: Model, workload: Workload, chip: ChipNumbers, batch: int, layers: Sequence[int], *, head: bool = True
) -> list[Part[float]]:
    """Return what a GPU does for its own sequences in some layers, routed experts aside.

    Parameters
    ----------
    model, workload, chip : records
        What is run, how, and on what.
    batch : int
        Sequences of the GPU.
    layers : sequence of int
        Layers of its stage.
    head : bool, optional
        Whether the stage ends in the head.

    Returns
    -------
    list of Part
        Attention projections; attention arithmetic with the KV cache; dense layers with
        shared experts and head (and router, where the workload counts it).
    """
    return Local(model, workload, chip).parts(workload.slices(float(batch)), layers, head=head)


def expert_part(
    model: Model, workload: Workload, chip: ChipNumbers, tokens: Floats, held: Floats, hit: Floats
) -> Part[float]:  # fmt: skip
    """Return the routed experts of one layer on the GPU that takes longest.

    Parameters
    ----------
    tokens : (GPUs,) float
        Tokens each GPU's experts get together.
    held, hit : (GPUs,) float
        Experts it holds, and those of them that some token is expected to reach.
    """
    found = expert_parts(model, workload, chip, tokens, held, hit)
    return Part(found.name, *(float(getattr(found, name)) for name in NUMBERS))


def expert_parts(
    model: Model, workload: Workload, chip: ChipNumbers, tokens: Floats, held: Floats, hit: Floats
) -> Part[Floats]:  # fmt: skip
    """Return the same of points side by side: GPUs are the last axis, which goes away."""
    flop = matmul_flop(tokens, float(model.expert_params))
    n_bytes = (held if workload.expert_read == "all" else hit) * model.expert_bytes
    compute, memory = flop / chip.rate(model.dtype_of("expert")), n_bytes / chip.hbm_bandwidth
    columns = np.broadcast_arrays(np.maximum(compute, memory), compute, memory, 0.0, flop, n_bytes)
    longest = np.argmax(columns[0], axis=-1)[..., None]
    return Part("routed experts", *(np.take_along_axis(column, longest, -1)[..., 0] for column in columns))


def experts_hit(expert: Ints, rank: Ints, share: Floats, top_k: int, tokens: float | Floats, ranks: int) -> Floats:
    """Return the experts on every GPU that at least one of `tokens` tokens is expected to reach, (..., ranks) float.

    Parameters
    ----------
    expert, rank : (slots,) int
        Expert in every slot and the GPU of the slot.
    share : (slots,) float
        Part of the layer's copies that goes to the slot.
    top_k : int
        Different experts of a token: a slot is one of them with chance top_k x share, at
        most 1.
    """
    chance = np.minimum(1.0, share * top_k)
    found = np.zeros((*np.shape(tokens), ranks))
    # Slots with one chance are hit alike.
    for one in np.unique(chance):
        held = np.bincount(rank[chance == one], minlength=ranks).astype(np.float64)
        found += held * expected_experts_hit(1.0, float(one), np.asarray(tokens, dtype=np.float64))[..., None]
    return found


def kv_bytes(model: Model, workload: Workload, layers: Iterable[int], tp: int = 1) -> float:
    """Return the KV cache and recurrent states of one sequence in some layers, on one of `tp` GPUs [bytes]."""
    return kv_bytes_at(float(workload.context), model, workload.kv_dtype, layers, tp)


def kv_bytes_at(context: Number, model: Model, kv_dtype: str, layers: Iterable[int], tp: int = 1) -> Number:
    """Return the same at a context, or at several side by side [bytes]."""
    found = 0.0 * context
    for mixer, alike in Counter(model.mixers[i] for i in layers).items():
        kept = mixer.kv_kept(context, tp) * dtype_bytes(kv_dtype)
        found = found + alike * (kept + mixer.state_elements * STATE_BYTES / tp)
    return found


def resident_bytes(
    model: Model, layers: Iterable[int], *, first: bool = True, last: bool = True, tp: int = 1
) -> float:  # fmt: skip
    """Return the weights a GPU of a stage holds besides routed experts: embedding first, head last [bytes].

    A tied head is the embedding: held once where the stage is first and last, by both where they differ.
    """
    ends = model.bytes_of("embedding") * (first or (last and not model.head_params)) + model.bytes_of("head") * last
    return (sum(model.layer_weight_bytes(int(i), 0) for i in layers) + ends) / tp


def times(part: Part[Number], count: int) -> Part[Number]:
    """Return a part done count times."""
    return Part(
        part.name, part.seconds * count, part.compute_seconds * count, part.memory_seconds * count,
        part.network_seconds * count, part.flop * count, part.n_bytes * count,
    )  # fmt: skip


def sum_parts(parts: Sequence[Part[Number]]) -> Part[Number]:
    """Return parts of one name done one after the other."""
    return Part(parts[0].name, *(sum(getattr(part, name) for part in parts) for name in NUMBERS))


def merged(stages: list[list[Part[Number]]]) -> list[Part[Number]]:
    """Return the parts of one name summed over the stages, in the order they first come."""
    by_name: dict[str, list[Part[Number]]] = {}
    for part in (part for stage in stages for part in stage):
        by_name.setdefault(part.name, []).append(part)
    return [sum_parts(parts) for parts in by_name.values()]


def overlapped(parts: Sequence[Part[Number]]) -> Number:
    """Return the time [s] if everything overlaps: the most used of compute, memory and network."""
    totals = [sum(getattr(part, f"{name}_seconds") for part in parts) for name in RESOURCES]
    longest: Number = reduce(larger, totals)
    return longest
