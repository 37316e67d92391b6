"""What does every stage of a layout do, and how long does each operation take?

The formulas are the same for one step and for points of a sweep side by side; where tokens
come from and who costs the wires is left to `OneStep` and `Points`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from collectives import MoE, Outer
from serving._dtypes import dtype_bytes
from serving._elementwise import Number, smaller
from serving._operations import (
    NUMBERS,
    Local,
    Part,
    expert_parts,
    experts_hit,
    kv_bytes_at,
    merged,
    resident_bytes,
    sum_parts,
    times,
)
from serving._task import Collective, ExpertLayer, Task, Wire
from serving._workload import Slice
from serving.laws import matmul_flop, two_batch_seconds

__all__ = ["Stages"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Reals = NDArray[np.floating[Any]]


class Stages(ABC, Generic[Number]):
    """A layout being worked out: the operations of every stage over its groups.

    `slices` are the work of the fullest replica, `context` the tokens in its caches, `sequences`
    those of all replicas; `batches` are the rows of what depends on who has how many tokens.
    """

    def __init__(self, task: Task, slices: tuple[Slice[Number], ...], context: Number, sequences: Number) -> None:
        self.model, self.workload, self.layout, self.plan, self.shares, self.groups, self.chip, self.software = task
        self.slices: tuple[Slice[Number], ...] = slices
        self.context: Number = context
        self.all_sequences: Number = sequences
        self.local = Local(self.model, self.workload, self.chip, self.layout.tp, self.layout.cp)
        self.layers = [[int(i) for i in np.flatnonzero(self.plan.layer_stage == s)] for s in range(self.layout.pp)]
        self.moe_number = np.cumsum(self.model.moe_layer_mask) - 1

    @abstractmethod
    def _tokens(self, guessing: bool) -> Floats:
        """Return new tokens of every GPU of a stage, (batches, GPUs); one per sequence when guessing."""

    @abstractmethod
    def _of_batches(self, values: Floats) -> Number:
        """Return (batches,) values as numbers of the answer."""

    @abstractmethod
    def _exchange(self, name: str, s: int, i: int, sent: Floats) -> Wire[Number]:
        """Return the time of a layer's dispatch or combine of (batches, groups, ep) tokens."""

    @abstractmethod
    def _slowest(self, name: str, asked: Collective, groups: Sequence[Ints]) -> Wire[Number]:
        """Return the time of the group whose best algorithm takes longest."""

    @abstractmethod
    def _send(self, size: Number, out: Ints, into: Ints) -> Wire[Number]:
        """Return the time of activations from one stage to the next."""

    @cached_property
    def all_tokens(self) -> Number:
        """New tokens of a stage: a replica's grow evenly with its sequences."""
        mean = self.workload.slices(self.all_sequences / self.layout.replicas, self.context)
        return self.layout.replicas * _sum([one.tokens for one in mean])

    # --- operations --------------------------------------------------------------------------------------------------

    @cached_property
    def parts(self) -> list[list[Part[Number]]]:
        """Operations of each stage, in order."""
        return [self._stage(s) for s in range(self.layout.pp)]

    def _stage(self, s: int) -> list[Part[Number]]:
        head = s == self.layout.pp - 1
        found = self.local.parts(self.slices, self.layers[s], head=head) + self._tensor(s) + self._context(s)
        kinds = self.kinds[s]
        if kinds:
            one = [_expert_parts(layer) for _, layer in kinds]
            counts = [len(which) for which, _ in kinds]
            found += [sum_parts([times(parts[i], n) for parts, n in zip(one, counts, strict=True)]) for i in range(3)]
        return found + (self._drafting(s) if head and self.workload.draft else [])

    @cached_property
    def slot_share(self) -> Floats:
        """Return the part of its expert's tokens that every slot gets."""
        return self.plan.shares

    @cached_property
    def kinds(self) -> list[list[tuple[list[int], ExpertLayer[Number]]]]:
        """Each stage's MoE layers, those placed and loaded alike together and worked out once."""
        return [self._kinds(s) for s in range(self.layout.pp)]

    def _kinds(self, s: int) -> list[tuple[list[int], ExpertLayer[Number]]]:
        alike: dict[bytes, list[int]] = {}
        for i in self.layers[s]:
            if self.model.moe_layer_mask[i]:
                layer = int(self.moe_number[i])
                plan = self.plan
                rows = (plan.slot_rank[layer], plan.slot_expert[layer], self.slot_share[layer], self.shares[layer])
                alike.setdefault(b"".join(row.tobytes() for row in rows), []).append(i)
        return [(which, self._expert_layer(s, which[0])) for which in alike.values()]

    def _expert_layer(self, s: int, i: int, guessing: bool = False) -> ExpertLayer[Number]:
        """Work out one MoE layer; every `ep` neighbours of the stage are a group that holds all experts."""
        ep, top_k = self.layout.ep, self.model.top_k
        expert, rank, share = self._slots(i)
        sent = self._tokens(guessing)
        sent = sent.reshape(len(sent), -1, ep)
        of_group = sent.sum(axis=2)
        tokens = (of_group[..., None] * (top_k * np.bincount(rank, weights=share, minlength=ep))).reshape(len(sent), -1)
        held = np.tile(np.bincount(rank, minlength=ep).astype(float), sent.shape[1])
        hit, half = (
            experts_hit(expert, rank, share, top_k, of_group * part, ep).reshape(tokens.shape) for part in (1.0, 0.5)
        )
        return ExpertLayer(
            dispatch=self._exchange("dispatch", s, i, sent), combine=self._exchange("combine", s, i, sent),
            experts=self._experts(tokens, held, hit), half_experts=self._experts(tokens / 2, held, half),
            tokens=tokens, hit=hit,
        )  # fmt: skip

    def _slots(self, i: int) -> tuple[Ints, Ints, Floats]:
        """Return expert, GPU and part of the copies of every slot of a layer."""
        expert, rank = (rows[self.moe_number[i]] for rows in (self.plan.slot_expert, self.plan.slot_rank))
        return expert, rank, self.shares[self.moe_number[i]][expert] * self.slot_share[self.moe_number[i]]

    def _experts(self, tokens: Floats, held: Floats, hit: Floats) -> Part[Number]:
        found = expert_parts(self.model, self.workload, self.chip, tokens, held, hit)
        return Part(found.name, *(self._of_batches(getattr(found, name)) for name in NUMBERS))

    def _exchanges(self, name: str, s: int, i: int, sent: Floats) -> Iterator[Collective]:
        """Yield what a layer's dispatch or combine of (groups, ep) tokens asks of the wires; the slowest counts."""
        work, model, ranks = self.workload, self.model, self.groups.stages[s]
        expert, rank, share = self._slots(i)
        out, back = (dtype_bytes(dtype) for dtype in (work.dispatch_dtype, work.combine_dtype))
        if work.copies == "direct" and not self.software.copies_its_own_way:
            size = (out if name == "dispatch" else back) * float(model.expert_hidden_size)
            each = np.bincount(rank, weights=share, minlength=self.layout.ep) * size
            traffic = _all_to_all(sent * model.top_k, each, name == "combine")
            yield Collective("all_to_all_v", traffic, {"ranks": ranks})
            return
        # A library copies as it does, unless another way is asked for.
        algorithm, layer = None if work.copies == "direct" else work.copies, self.moe_number[i]
        for tokens, group in zip(sent, ranks.reshape(len(sent), -1), strict=True):
            moe = MoE(tokens, model.expert_hidden_size, model.top_k, model.n_experts, out, back, (expert, rank),
                      self.shares[layer], slot_share=self.slot_share[layer])  # fmt: skip
            yield Collective(f"moe_{name}", moe, {"ranks": group, "algorithm": algorithm})

    def _tensor(self, s: int) -> list[Part[Number]]:
        """Return the sums over GPUs that share a replica's weights: after each mixer and each feed-forward."""
        if self.layout.tp == 1 or not self.layers[s]:
            return []
        size = self._replica_tokens() / self.layout.cp * self._activation()
        slowest = self._slowest(_SUMS, _best("all_reduce", size), self.groups.tensor(s))
        return [times(_wires(_SUMS, slowest), sum(map(self._sums, self.layers[s])))]

    def _sums(self, i: int) -> int:
        feeds = self.model.moe_layer_mask[i] or self.model.dense_params[i] > 0
        return (self.model.mixers[i].kind != "none") + feeds

    def _context(self, s: int) -> list[Part[Number]]:
        """Keys and values of a prompt's new tokens, gathered by the GPUs that share it, layer by layer."""
        if self.layout.cp == 1:
            return []
        each = dtype_bytes(self.workload.kv_dtype) * self._replica_tokens()
        sizes: dict[float, int] = {}
        for i in self.layers[s]:
            caches = self.model.mixers[i].caches
            kept = sum(cache.elements / cache.stride / min(self.layout.tp, cache.heads) for cache in caches)
            sizes[kept] = sizes.get(kept, 0) + 1
        groups = self.groups.context(s)
        found = [times(_wires(_GATHERS, self._slowest(_GATHERS, _best("all_gather", each * kept), groups)), count)
                 for kept, count in sizes.items() if kept]  # fmt: skip
        return [sum_parts(found)] if found else []

    def _replica_tokens(self) -> Number:
        return _sum([one.tokens for one in self.slices])

    def _activation(self) -> float:
        return self.model.hidden_size * dtype_bytes(self.workload.combine_dtype)

    def _drafting(self, s: int) -> list[Part[Number]]:
        """One pass of the multi-token-prediction layer per guess: a layer like the last, a projection, the head."""
        if self.workload.drafter == "free":
            return []
        last, count = self.model.layers - 1, self.slices[0].sequences
        one: tuple[Slice[Number], ...] = (Slice(count, self.context - 1, self.context, 1),)
        found: list[Part[Number]] = self.local.parts(one, [last], head=True)
        if self.model.moe_layer_mask[last]:
            found += _expert_parts(self._expert_layer(s, last, guessing=True))
        rate = self.chip.rate(self.model.dtype_of("dense"))
        join: Number = matmul_flop(count, 2.0 * self.model.hidden_size**2) / rate
        found.append(Part("drafting", join, join))
        summed = sum_parts([replace(part, name="drafting") for part in found])
        return [times(summed, self.workload.draft)]

    @cached_property
    def sends(self) -> Part[Number] | None:
        """Activations from stage to stage, at the combine dtype, one hop after the other."""
        if self.layout.pp == 1:
            return None
        size = self._replica_tokens() / (self.layout.tp * self.layout.cp) * self._activation()
        return sum_parts([_wires(_SENDS, self._send(size, *pair)) for pair in pairwise(self.groups.stages)])

    @cached_property
    def all_parts(self) -> list[Part[Number]]:
        """Operations of all stages, those of one name together."""
        return merged(self.parts + ([[self.sends]] if self.sends else []))

    # --- two half batches --------------------------------------------------------------------------------------------

    def two_batch(self) -> Number:
        """Return a token's way through all stages when two half batches take turns on GPU and wires [s].

        A half batch's wires take what is latency and half of what is transfer.
        """
        found: Number = self.sends.seconds if self.sends else 0.0 * self.context
        half = tuple(one._replace(sequences=one.sequences / 2) for one in self.slices)
        for s, layers in enumerate(self.layers):
            moe, wires = self.kinds[s], {part.name: part.seconds for part in self.parts[s]}
            done = {i for which, _ in moe for i in which}
            found = found + sum(self._turns(half, which, layer) for which, layer in moe)
            found = found + 2 * sum(self._alone(half, [i]) for i in layers if i not in done)
            found = found + 2 * self.local.parts(half, [], head=s == self.layout.pp - 1)[2].seconds
            found = found + sum(wires.get(name, 0.0) for name in _NOT_OVERLAPPED)
        return found

    def _alone(self, half: Sequence[Slice[Number]], layers: list[int]) -> Number:
        return _sum([part.seconds for part in self.local.parts(half, layers)])

    def _turns(self, half: Sequence[Slice[Number]], which: list[int], layer: ExpertLayer[Number]) -> Number:
        out, back = (one.seconds - one.bandwidth_seconds / 2 for one in (layer.dispatch, layer.combine))
        # The first layer has no combine of another to run beside, and the last combine nothing to hide behind.
        found: Number = smaller(self._alone(half, which[:1]), back)
        alike = Counter((self.model.mixers[i], self.model.dense_params[i]) for i in which)
        first = {(self.model.mixers[i], self.model.dense_params[i]): i for i in which}
        for kind, count in alike.items():
            own = self._alone(half, [first[kind]])
            found = found + count * two_batch_seconds(own, out, layer.half_experts.seconds, back)
        return found

    # --- memory ------------------------------------------------------------------------------------------------------

    def memory(self) -> list[tuple[float, Number, Number]]:
        """Return weights and KV cache of each stage's fullest GPU, and the latter per sequence [bytes].

        With pp stages as many micro-batches are in flight, so a stage holds 1/pp of the layers
        of pp times the sequences: KV per GPU does not depend on pp.
        """
        layout, work, found = self.layout, self.workload, list[tuple[float, Number, Number]]()
        for s, layers in enumerate(self.layers):
            each = kv_bytes_at(self.context, self.model, work.kv_dtype, layers, layout.tp) * layout.in_flight
            kv = each / layout.cp * self.slices[0].sequences
            if work.chunk is not None:
                prompt = 0.0 * self.context + work.prompt if work.prompt else self.context
                kv = kv + kv_bytes_at(prompt, self.model, work.kv_dtype, layers, layout.tp) * layout.in_flight
            found.append((self._weights(s, layers), kv, each / layout.cp))
        return found

    def _weights(self, s: int, layers: list[int]) -> float:
        model, tp, last = self.model, self.layout.tp, s == self.layout.pp - 1
        fixed = resident_bytes(model, layers, first=s == 0, last=last, tp=tp)
        rows = [int(self.moe_number[i]) for i in layers if model.moe_layer_mask[i]]
        if last and self.workload.draft and self.workload.drafter == "mtp":
            final = model.layers - 1
            fixed += (model.layer_weight_bytes(final, 0) + 2 * model.hidden_size**2) / tp
            rows += [int(self.moe_number[final])] * model.moe_layer_mask[final]
        held = self.experts_per_rank[rows].sum(axis=0).max(initial=0) if rows else 0
        return fixed + float(held) * model.expert_bytes

    @cached_property
    def experts_per_rank(self) -> NDArray[np.intp]:
        """Expert slots of every GPU of a group in every MoE layer."""
        if not self.model.is_moe:
            return np.zeros((0, self.layout.ep), dtype=np.intp)
        return np.stack([np.bincount(row, minlength=self.layout.ep) for row in self.plan.slot_rank])


#: Collectives of a step besides the experts', and what two half batches do not hide.
_SENDS, _SUMS, _GATHERS = "pipeline sends", "tensor-parallel all-reduce", "context-parallel all-gather"
_NOT_OVERLAPPED = (_SUMS, _GATHERS, "drafting")


def _sum(terms: Sequence[Number]) -> Number:
    return sum(terms[1:], terms[0])


def _best(kind: str, size: Number) -> Collective:
    return Collective(kind, size, {"algorithm": "best"})


def _wires(name: str, found: Wire[Number]) -> Part[Number]:
    return Part(name, found.seconds, network_seconds=found.seconds)


def _expert_parts(layer: ExpertLayer[Number]) -> list[Part[Number]]:
    return [_wires("dispatch", layer.dispatch), layer.experts, _wires("combine", layer.combine)]


def _all_to_all(copies: Floats, each: Reals, back: bool) -> Outer | Floats:
    """Return bytes from GPU to GPU for (groups, ep) copies, `each` of them to every GPU of the group."""
    if len(copies) == 1:
        return Outer(each, copies[0]) if back else Outer(copies[0], each)
    traffic = np.zeros((copies.size, copies.size))
    for g, row in enumerate(copies):
        at = slice(g * len(each), (g + 1) * len(each))
        traffic[at, at] = np.outer(each, row) if back else np.outer(row, each)
    return traffic
