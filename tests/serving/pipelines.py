"""Training pipelines played through operation by operation, to hold the closed forms against."""

from __future__ import annotations

from dataclasses import dataclass, field

Key = tuple[str, int, int]  # kind, virtual stage, micro-batch


@dataclass
class Pipeline:
    """Stages of `chunks` pieces each; piece c of stage s is number c * stages + s of the model."""

    stages: int
    micro_batches: int
    chunks: int = 1
    times: dict[str, float] = field(default_factory=lambda: {"F": 1.0, "B": 2.0})

    def needs(self, key: Key) -> list[Key]:
        """Return what must be done before an operation may start."""
        kind, piece, i = key
        last = self.stages * self.chunks - 1
        if kind == "F":
            return [("F", piece - 1, i)] if piece else []
        if kind == "W":
            return [("B", piece, i)]
        return [("F", piece, i)] + ([("B", piece + 1, i)] if piece < last else [])

    def run(self, orders: list[list[Key]]) -> float:
        """Play operations of each stage in order; return the longest idle time between its first and its last."""
        done: dict[Key, float] = {}
        at, free, first = [0] * self.stages, [0.0] * self.stages, [-1.0] * self.stages
        while any(at[s] < len(orders[s]) for s in range(self.stages)):
            moved = False
            for s, order in enumerate(orders):
                while at[s] < len(order) and all(need in done for need in self.needs(order[at[s]])):
                    key = order[at[s]]
                    start = max([free[s], *(done[need] for need in self.needs(key))])
                    first[s] = start if first[s] < 0 else first[s]
                    free[s] = done[key] = start + self.times[key[0]]
                    at[s], moved = at[s] + 1, True
            assert moved, "the order waits for itself"
        busy = [sum(self.times[key[0]] for key in order) for order in orders]
        return max(free[s] - first[s] - busy[s] for s in range(self.stages))


def gpipe(p: int, m: int) -> list[list[Key]]:
    return [[("F", s, i) for i in range(m)] + [("B", s, i) for i in range(m)] for s in range(p)]


def one_f_one_b(p: int, m: int) -> list[list[Key]]:
    return [woven([("F", s, i) for i in range(m)], [("B", s, i) for i in range(m)], p - s - 1) for s in range(p)]


def interleaved(p: int, m: int, v: int) -> list[list[Key]]:
    """Return Megatron-LM's order: pieces change every `p` micro-batches."""

    def order(kind: str, s: int) -> list[Key]:
        rows = []
        for k in range(m * v):
            piece, i = k // p % v, k // (p * v) * p + k % p
            rows.append((kind, (piece if kind == "F" else v - 1 - piece) * p + s, i))
        return rows

    return [woven(order("F", s), order("B", s), 2 * (p - s - 1) + (v - 1) * p) for s in range(p)]


def woven(forward: list[Key], backward: list[Key], ahead: int) -> list[Key]:
    """Return `ahead` forward passes, then one forward and one backward in turn, then what is left."""
    ahead = min(ahead, len(forward))
    found = forward[:ahead]
    for f, b in zip(forward[ahead:], backward, strict=False):
        found += [f, b]
    return found + backward[len(forward) - ahead :]


def zero_bubble(p: int, m: int, ahead: int, times: dict[str, float]) -> float:
    """Play backward first, forward next, weights when nothing else can start; return the longest idle time.

    Stage s runs at most `ahead` x (p - s - 1) + 1 micro-batches ahead of their way back.
    """
    line = Pipeline(p, m, 1, times)
    done: dict[Key, float] = {}
    left = [{kind: list(range(m)) for kind in "BFW"} for _ in range(p)]
    free, first = [0.0] * p, [-1.0] * p

    def ready(s: int, kind: str) -> float:
        if not left[s][kind]:
            return float("inf")
        key = (kind, s, left[s][kind][0])
        held = len(left[s]["B"]) - len(left[s]["F"])
        if kind == "F" and held > ahead * (p - s - 1):
            return float("inf")
        return max([free[s], *(done.get(need, float("inf")) for need in line.needs(key))])

    while any(left[s]["W"] for s in range(p)):
        starts = [(ready(s, kind), "BFW".index(kind), s, kind) for s in range(p) for kind in "BFW"]
        start, _, s, kind = min(starts)
        key = (kind, s, left[s][kind].pop(0))
        first[s] = start if first[s] < 0 else first[s]
        free[s] = done[key] = start + times[kind]
    return max(free[s] - first[s] - m * sum(times.values()) for s in range(p))
