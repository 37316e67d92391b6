"""What does DeepSeek's EPLB answer? Its algorithm again, in float32 as there, as an oracle.

Rewritten after https://github.com/deepseek-ai/EPLB (eplb.py, MIT licence, (c) 2025 DeepSeek). Nothing of the project
is used here. Where equal loads leave the order open, the first index goes first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


def packed(weight: Floats, packs: int) -> tuple[Ints, Ints]:
    """Pack and place within it of every item: heaviest first onto the lightest pack that is not full."""
    layers, n = weight.shape
    assert n % packs == 0
    room = n // packs
    if room == 1:
        return np.tile(np.arange(n), (layers, 1)), np.zeros((layers, n), dtype=np.int64)
    pack, place = np.zeros((layers, n), dtype=np.int64), np.zeros((layers, n), dtype=np.int64)
    for layer in range(layers):
        load, held = np.zeros(packs, dtype=np.float32), np.zeros(packs, dtype=np.int64)
        for item in np.argsort(-weight[layer], kind="stable"):
            to = int(np.argmin(np.where(held < room, load, np.inf)))
            pack[layer, item], place[layer, item] = to, held[to]
            load[to] += weight[layer, item]
            held[to] += 1
    return pack, place


def replicated(weight: Floats, slots: int) -> tuple[Ints, Ints]:
    """Expert of every copy, and copies of every expert: one more, again and again, where a copy is heaviest."""
    layers, n = weight.shape
    rows, counts = np.arange(layers), np.ones((layers, n), dtype=np.int64)
    expert = np.tile(np.arange(slots), (layers, 1))
    for slot in range(n, slots):
        expert[:, slot] = np.argmax(weight / counts.astype(np.float32), axis=1)
        counts[rows, expert[:, slot]] += 1
    return expert, counts


def rebalance(weight: object, replicas: int, groups: int, nodes: int, gpus: int) -> tuple[Ints, Ints]:
    """Expert of every slot, GPU after GPU, and copies of every expert: (layers, replicas), (layers, experts)."""
    load = np.asarray(weight, dtype=np.float32)
    if groups % nodes:
        groups, nodes = 1, 1
    layers, n = load.shape
    assert n % groups == 0
    assert gpus % nodes == 0
    assert replicas % gpus == 0
    pack, place = packed(load.reshape(layers, groups, -1).sum(-1), nodes)
    order = np.argsort(pack * groups + place, axis=1)  # groups, node after node
    members = (order[:, :, None] * (n // groups) + np.arange(n // groups)).reshape(layers * nodes, -1)
    inside = np.take_along_axis(load, members.reshape(layers, -1), 1).reshape(layers * nodes, -1)
    copy, counts = replicated(inside, replicas // nodes)
    share = np.take_along_axis(inside / counts.astype(np.float32), copy, 1)
    gpu, place = packed(share, gpus // nodes)
    slot = np.argsort(gpu * replicas + place, axis=1)
    expert = np.take_along_axis(members, np.take_along_axis(copy, slot, 1), 1).reshape(layers, replicas)
    return expert, np.stack([np.bincount(row, minlength=n) for row in expert])


def heaviest(weight: object, expert: Ints, gpus: int) -> NDArray[np.float64]:
    """Heaviest GPU over the mean of every layer; copies share equally."""
    load = np.asarray(weight, dtype=np.float64)
    counts = np.stack([np.bincount(row, minlength=load.shape[1]) for row in expert])
    held = np.take_along_axis(load / counts, expert, 1).reshape(len(load), gpus, -1).sum(-1)
    return np.asarray(held.max(axis=1) / held.mean(axis=1))
