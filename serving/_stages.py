"""What does every stage of a layout do in one step, and how long does each operation take?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collectives import Cost, MoE, Outer, Profile, cost, load_profile
from serving._chip import chip_numbers
from serving._dtypes import dtype_bytes
from serving._layout import Groups, Layout
from serving._model import Model
from serving._operations import (
    Local,
    Part,
    expert_part,
    experts_hit,
    kv_bytes,
    merged,
    resident_bytes,
    sum_parts,
    times,
)
from serving._plan import PlacementPlan
from serving._workload import Slice, Workload
from serving.laws import matmul_flop, two_batch_seconds
from topo import Routes

__all__ = ["ExpertLayer", "ProfileLike", "Software", "Stages"]

Floats = NDArray[np.float64]
Reals = NDArray[np.floating[Any]]
#: What `collectives.load_profile` takes.
ProfileLike = str | os.PathLike[str] | Profile


class Software(NamedTuple):
    """Profiles of what runs dispatch and combine, and of what runs the other collectives."""

    experts: Profile
    others: Profile

    @classmethod
    def load(cls, profile: ProfileLike, expert_profile: ProfileLike | None) -> Software:
        """Return the two; a profile of expert layers alone leaves the other collectives ideal."""
        first = load_profile(profile)
        second = first if expert_profile is None else load_profile(expert_profile)
        return cls(second, load_profile("ideal") if first.law == "expert" else first)

    @property
    def name(self) -> str:
        """Both names, once where they are the same."""
        return " and ".join(dict.fromkeys((self.experts.name, self.others.name)))


@dataclass(frozen=True, eq=False)
class ExpertLayer:
    """One layer's dispatch, experts and combine: costs of the wires, work of the GPUs, and where it is heaviest."""

    dispatch: Cost
    combine: Cost
    tokens: Floats
    held: Floats
    hit: Floats
    half_hit: Floats


class Stages:
    """One step being worked out: groups, chip and plan, and the operations of every stage over them."""

    def __init__(
        self, routes: Routes, model: Model, workload: Workload, layout: Layout, plan: PlacementPlan,
        shares: Floats, software: Software,
    ) -> None:  # fmt: skip
        self.routes, self.model, self.workload, self.layout = routes, model, workload, layout
        self.plan, self.shares, self.software = plan, shares, software
        self.groups = Groups(routes.fabric, layout)
        self.chip = chip_numbers(routes.fabric, self.groups.all)
        self.local = Local(model, workload, self.chip, layout.tp, layout.cp)
        each = layout.tp * layout.cp
        per_gpu = workload.batch_per_gpu
        self.sequences = workload.batch_of(layout.replicas) * (each if per_gpu is not None else 1)
        self.slices = workload.slices(float(self.sequences.max()))
        self.layers = [[int(i) for i in np.flatnonzero(plan.layer_stage == s)] for s in range(layout.pp)]
        self.moe_number = np.cumsum(model.moe_layer_mask) - 1
        #: Operation -> the longest of its collectives, and what `cost` took.
        self.slowest: dict[str, tuple[Cost, dict[str, Any]]] = {}

    @cached_property
    def tokens(self) -> Floats:
        """New tokens of every GPU of a stage: a replica's are shared out among its GPUs."""
        of = {int(n): sum(one.tokens for one in self.workload.slices(float(n))) for n in np.unique(self.sequences)}
        each = self.layout.tp * self.layout.cp
        return np.repeat([of[int(n)] / each for n in self.sequences], each).astype(np.float64)

    # --- operations --------------------------------------------------------------------------------------------------

    @cached_property
    def parts(self) -> list[list[Part[float]]]:
        """Operations of each stage, in order."""
        return [self._stage(s) for s in range(self.layout.pp)]

    def _stage(self, s: int) -> list[Part[float]]:
        head = s == self.layout.pp - 1
        found = self.local.parts(self.slices, self.layers[s], head=head)
        found += [*self._tensor(s), *self._context(s)]
        kinds = self.kinds[s]
        if kinds:
            one = [self._expert_parts(layer) for _, layer in kinds]
            counts = [len(which) for which, _ in kinds]
            found += [sum_parts([times(parts[i], n) for parts, n in zip(one, counts, strict=True)]) for i in range(3)]
        return found + (self._drafting(s) if head and self.workload.draft else [])

    @cached_property
    def slot_share(self) -> Floats:
        """Return the part of its expert's tokens that every slot gets."""
        return self.plan.shares

    @cached_property
    def kinds(self) -> list[list[tuple[list[int], ExpertLayer]]]:
        """Each stage's MoE layers, those placed and loaded alike together and worked out once."""
        return [self._kinds(s) for s in range(self.layout.pp)]

    def _kinds(self, s: int) -> list[tuple[list[int], ExpertLayer]]:
        alike: dict[bytes, list[int]] = {}
        for i in self.layers[s]:
            if self.model.moe_layer_mask[i]:
                layer = int(self.moe_number[i])
                plan = self.plan
                rows = (plan.slot_rank[layer], plan.slot_expert[layer], self.slot_share[layer], self.shares[layer])
                alike.setdefault(b"".join(row.tobytes() for row in rows), []).append(i)
        return [(which, self._expert_layer(s, which[0])) for which in alike.values()]

    def _expert_parts(self, layer: ExpertLayer) -> list[Part[float]]:
        experts = expert_part(self.model, self.workload, self.chip, layer.tokens, layer.held, layer.hit)
        return [_wires("dispatch", layer.dispatch), experts, _wires("combine", layer.combine)]

    def _expert_layer(self, s: int, i: int, tokens: Floats | None = None) -> ExpertLayer:
        """Work out one MoE layer; every `ep` neighbours of the stage are a group that holds all experts."""
        work, model, ep = self.workload, self.model, self.layout.ep
        expert, rank = (rows[self.moe_number[i]] for rows in (self.plan.slot_expert, self.plan.slot_rank))
        share = self.shares[self.moe_number[i]][expert] * self.slot_share[self.moe_number[i]]
        per_rank = np.bincount(rank, weights=share, minlength=ep)
        sent = (self.tokens if tokens is None else tokens).reshape(-1, ep)
        copies, width = sent * model.top_k, float(model.expert_hidden_size)
        out, back = (dtype_bytes(name) * width for name in (work.dispatch_dtype, work.combine_dtype))
        of_group = sent.sum(axis=1)
        hits = [
            np.concatenate([experts_hit(expert, rank, share, model.top_k, float(n) * part, ep) for n in of_group])
            for part in (1.0, 0.5)
        ]
        if work.copies == "direct" and self.software.experts.law != "expert":
            wires = (
                self._all_to_all(s, copies, per_rank * out, False),
                self._all_to_all(s, copies, per_rank * back, True),
            )
        else:
            wires = self._merged_copies(s, i, sent)
        return ExpertLayer(
            dispatch=wires[0],
            combine=wires[1],
            tokens=(copies.sum(axis=1)[:, None] * per_rank).ravel(),
            held=np.tile(np.bincount(rank, minlength=ep).astype(float), len(sent)),
            hit=hits[0],
            half_hit=hits[1],
        )

    def _all_to_all(self, s: int, copies: Floats, each: Reals, back: bool) -> Cost:
        traffic: Outer | Reals
        if len(copies) == 1:
            traffic = Outer(each, copies[0]) if back else Outer(copies[0], each)
        else:
            traffic = np.zeros((copies.size, copies.size))
            for g, row in enumerate(copies):
                at = slice(g * len(each), (g + 1) * len(each))
                traffic[at, at] = np.outer(each, row) if back else np.outer(row, each)
        return self._cost("combine" if back else "dispatch", "all_to_all_v", traffic, ranks=self.groups.stages[s])

    def _merged_copies(self, s: int, i: int, sent: Floats) -> tuple[Cost, Cost]:
        """Return dispatch and combine with a copy for each different GPU or domain, of the slowest group."""
        work, model, row = self.workload, self.model, self.moe_number[i]
        placement = (self.plan.slot_expert[row], self.plan.slot_rank[row])
        out, back = (dtype_bytes(name) for name in (work.dispatch_dtype, work.combine_dtype))
        # A library copies as it does, unless another way is asked for.
        algorithm = None if work.copies == "direct" else work.copies
        found = []
        for tokens, ranks in zip(sent, self.groups.stages[s].reshape(len(sent), -1), strict=True):
            moe = MoE(tokens, model.expert_hidden_size, model.top_k, model.n_experts, out, back, placement,
                      self.shares[row])  # fmt: skip
            found.append([self._cost(name, f"moe_{name}", moe, ranks=ranks, algorithm=algorithm)
                          for name in ("dispatch", "combine")])  # fmt: skip
        there, again = (max(costs, key=lambda one: one.seconds) for costs in zip(*found, strict=True))
        return there, again

    def _cost(self, name: str, kind: str, size: Any, **words: Any) -> Cost:
        """Cost a collective of an operation, and remember the slowest."""
        profile = self.software.experts if name in ("dispatch", "combine") else self.software.others
        found = cost(self.routes.fabric, kind, size, routing=self.routes, profile=profile, **words)
        if name not in self.slowest or found.seconds > self.slowest[name][0].seconds:
            self.slowest[name] = found, {"kind_or_schedule": kind, "n_bytes": size} | words
        return found

    def _tensor(self, s: int) -> list[Part[float]]:
        """Return the sums over GPUs that share a replica's weights: after each mixer and each feed-forward."""
        if self.layout.tp == 1 or not self.layers[s]:
            return []
        size = self._replica_tokens() / self.layout.cp * self._activation()
        slowest = self._slowest(_SUMS, "all_reduce", size, self.groups.tensor(s))
        return [times(_wires(_SUMS, slowest), sum(map(self._sums, self.layers[s])))]

    def _sums(self, i: int) -> int:
        feeds = self.model.moe_layer_mask[i] or self.model.dense_params[i] > 0
        return (self.model.mixers[i].kind != "none") + feeds

    def _context(self, s: int) -> list[Part[float]]:
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
        found = [times(_wires(_GATHERS, self._slowest(_GATHERS, "all_gather", each * kept, groups)), count)
                 for kept, count in sizes.items() if kept]  # fmt: skip
        return [sum_parts(found)] if found else []

    def _slowest(self, name: str, kind: str, size: float, groups: Sequence[Any]) -> Cost:
        found = [self._cost(name, kind, size, ranks=group, algorithm="best") for group in groups]
        return max(found, key=lambda one: one.seconds)

    def _replica_tokens(self) -> float:
        return sum(one.tokens for one in self.slices)

    def _activation(self) -> float:
        return self.model.hidden_size * dtype_bytes(self.workload.combine_dtype)

    def _drafting(self, s: int) -> list[Part[float]]:
        """One pass of the multi-token-prediction layer per guess: a layer like the last, a projection, the head."""
        if self.workload.drafter == "free":
            return []
        last, count = self.model.layers - 1, float(self.sequences.max())
        one = (Slice(count, self.workload.context - 1, self.workload.context, 1),)
        found = self.local.parts(one, [last], head=True)
        if self.model.moe_layer_mask[last]:
            each = self.layout.tp * self.layout.cp
            tokens = np.repeat(self.sequences / each, each)
            found += self._expert_parts(self._expert_layer(s, last, tokens))
        join = matmul_flop(count, 2.0 * self.model.hidden_size**2) / self.chip.rate(self.model.dtype_of("dense"))
        summed = sum_parts([Part("drafting", join, join), *(replace(part, name="drafting") for part in found)])
        return [times(summed, self.workload.draft)]

    @cached_property
    def sends(self) -> Part[float] | None:
        """Activations from stage to stage, at the combine dtype, one hop after the other."""
        if self.layout.pp == 1:
            return None
        size = float(self.tokens.max()) * self._activation()
        found = [
            self._cost("pipeline sends", "send", size, stages=pair).seconds for pair in pairwise(self.groups.stages)
        ]
        return Part("pipeline sends", sum(found), network_seconds=sum(found))

    @cached_property
    def all_parts(self) -> list[Part[float]]:
        """Operations of all stages, those of one name together."""
        return merged([*self.parts, [self.sends] if self.sends else []])

    # --- two half batches --------------------------------------------------------------------------------------------

    def two_batch(self) -> float:
        """Return a token's way through all stages when two half batches take turns on GPU and wires [s].

        A half batch's wires take what is latency and half of what is transfer.
        """
        half = tuple(one._replace(sequences=one.sequences / 2) for one in self.slices)
        found = self.sends.seconds if self.sends else 0.0
        for s, layers in enumerate(self.layers):
            moe, wires = self.kinds[s], {part.name: part.seconds for part in self.parts[s]}
            done = {i for which, _ in moe for i in which}
            found += sum(self._turns(half, which, layer) for which, layer in moe)
            found += 2 * sum(self._alone(half, [i]) for i in layers if i not in done)
            found += 2 * self.local.parts(half, [], head=s == self.layout.pp - 1)[2].seconds
            found += sum(wires.get(name, 0.0) for name in _NOT_OVERLAPPED)
        return found

    def _alone(self, half: Sequence[Slice[float]], layers: list[int]) -> float:
        return sum(part.seconds for part in self.local.parts(half, layers))

    def _turns(self, half: Sequence[Slice[float]], which: list[int], layer: ExpertLayer) -> float:
        out, back = (one.seconds - one.bandwidth_seconds / 2 for one in (layer.dispatch, layer.combine))
        experts = expert_part(self.model, self.workload, self.chip, layer.tokens / 2, layer.held, layer.half_hit)
        own = [self._alone(half, [i]) for i in which]
        # The first layer has no combine of another to run beside, and the last combine nothing to hide behind.
        return sum(two_batch_seconds(each, out, experts.seconds, back) for each in own) + min(own[0], back)

    # --- memory ------------------------------------------------------------------------------------------------------

    def memory(self) -> tuple[float, float, float]:
        """Return weights and KV cache of the fullest GPU of the fullest stage, and the latter per sequence [bytes].

        With pp stages as many micro-batches are in flight, so a stage holds 1/pp of the layers
        of pp times the sequences: KV per GPU does not depend on pp.
        """
        layout, work = self.layout, self.workload
        found = []
        for s, layers in enumerate(self.layers):
            each = kv_bytes(self.model, work, layers, layout.tp) * layout.in_flight / layout.cp
            kv = each * int(self.sequences.max())
            if work.chunk is not None:
                prompt = replace(work, context=work.prompt_tokens)
                kv += kv_bytes(self.model, prompt, layers, layout.tp) * layout.in_flight
            found.append((self._weights(s, layers), kv, each))
        return max(found, key=lambda row: row[0] + row[1])

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


#: Sums over the ranks that share weights, and keys and values gathered by those that share a prompt.
_SUMS, _GATHERS = "tensor-parallel all-reduce", "context-parallel all-gather"
#: What two half batches do not hide.
_NOT_OVERLAPPED = (_SUMS, _GATHERS, "drafting")


def _wires(name: str, found: Cost) -> Part[float]:
    return Part(name, found.seconds, network_seconds=found.seconds)
