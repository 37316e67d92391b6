"""What does EPLB's `rebalance_experts` answer, with better balance and for sizes that do not divide?"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement._exchanges import Seats
from placement._start import even_slots, greedy, heaviest_of, start
from serving import PlacementPlan
from topo import Fault, InputError

__all__ = ["in_order", "loads_of", "rebalance_experts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def rebalance_experts(
    weight: Any, num_replicas: int, num_groups: int, num_nodes: int, num_gpus: int
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Place experts with copies on GPUs: EPLB's call, EPLB's three arrays.

    As there, experts of a group stay on one node where num_nodes divides num_groups, and
    anywhere else groups and nodes play no part; copies of an expert share its load
    equally. No layer is heavier than EPLB's own answer, and two copies of an expert are on
    one GPU only where they cannot be apart without that.

    Parameters
    ----------
    weight : (layers, experts) array or torch tensor
        Load of every expert, in any unit. A layer without any load counts as uniform.
    num_replicas : int
        Slots of all GPUs. Where GPUs do not divide them the first GPUs have one more.
    num_groups, num_nodes, num_gpus : int
        Equal groups of neighbouring experts, nodes, and GPUs of all nodes; where nodes do
        not divide the GPUs the first nodes have one more.

    Returns
    -------
    phy2log : (layers, num_replicas) int
        Expert of every slot, GPU after GPU.
    log2phy : (layers, experts, most copies) int
        Slots of every expert, -1 beyond its copies.
    logcnt : (layers, experts) int
        Copies of every expert. All three are what weight is: arrays, or tensors on its device.

    Raises
    ------
    InputError
        Loads that are no numbers, negative or not finite; sizes that cannot be.

    References
    ----------
    .. [1] DeepSeek-AI, "Expert Parallelism Load Balancer", https://github.com/deepseek-ai/EPLB.

    Examples
    --------
    >>> phy2log, log2phy, logcnt = rebalance_experts([[90, 132, 40, 61]], 6, 1, 1, 2)
    >>> logcnt.tolist(), log2phy.shape
    ([[2, 2, 1, 1]], (1, 4, 2))
    """
    load = loads_of(weight)
    _require(load, num_replicas, num_groups, num_nodes, num_gpus)
    hierarchical = num_nodes > 1 and num_groups % num_nodes == 0
    if hierarchical:
        rows, count = _on_nodes(load, num_replicas, num_groups, num_nodes, num_gpus)
    else:
        seats = start(load, even_slots(num_replicas, num_gpus))
        rows, count = in_order(load, seats, num_replicas), seats.count
    rank = np.tile(np.repeat(np.arange(num_gpus), even_slots(num_replicas, num_gpus)), (len(load), 1))
    plan = PlacementPlan(rows, rank, np.zeros(len(load), dtype=np.intp), num_gpus, 1)
    return tuple(_like(weight, each) for each in (rows, plan.log2phy, count))


def loads_of(weight: Any, name: str = "weight") -> Floats:
    """Return loads (layers, experts), finite and zero or more; a layer without any counts as uniform.

    Raises
    ------
    InputError
        Everything wrong with them.
    """
    try:
        plain = weight.detach().cpu().double().numpy() if _is_tensor(weight) else weight
        load = np.array(plain, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(Fault(name, weight, "must be an array of numbers", "Correct it.")) from None
    faults = []
    if load.ndim != 2 or 0 in load.shape:
        faults.append(Fault(name, load.shape, "must have shape (layers, experts)", "Give one row per layer."))
    for bad, rule in ((~np.isfinite(load), "must be finite"), (load < 0, "must be zero or more")):
        if bad.any():
            where = f"{name}[" + ", ".join(str(int(i)) for i in np.argwhere(bad)[0]) + "]"
            faults.append(Fault(where, float(load[bad][0]), rule, f"Correct {int(bad.sum())} of {load.size} loads."))
    if faults:
        raise InputError(*faults)
    load /= load.max(axis=1, keepdims=True, where=load > 0, initial=np.finfo(float).tiny)
    load[~load.any(axis=1)] = 1.0
    return load


def _require(load: Floats, replicas: int, groups: int, nodes: int, gpus: int) -> None:
    sizes = {"num_replicas": replicas, "num_groups": groups, "num_nodes": nodes, "num_gpus": gpus}
    faults = [
        Fault(name, value, "must be a whole number, one or more", "Correct it.")
        for name, value in sizes.items()
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1
    ]
    n = load.shape[1]
    if not faults:
        if replicas < n:
            faults.append(Fault("num_replicas", replicas, f"is fewer slots than the {n} experts", f"Give {n} or more."))
        if groups % nodes == 0 and nodes > 1:
            faults += _misfits(n, replicas, groups, nodes, gpus)
    if faults:
        raise InputError(*faults)


def _misfits(n: int, replicas: int, groups: int, nodes: int, gpus: int) -> list[Fault]:
    """Say what keeps groups on nodes from being placed."""
    if n % groups:
        return [Fault("num_groups", groups, f"does not divide the {n} experts", "Give groups that do, or 1.")]
    if gpus < nodes:
        return [Fault("num_gpus", gpus, f"is fewer than the {nodes} nodes", "Give a GPU per node, or fewer nodes.")]
    least = min(int(slots.sum()) for slots in _node_slots(replicas, nodes, gpus))
    if least < n // nodes:
        rule = f"leaves a node {least} slots for its {n // nodes} experts"
        return [Fault("num_replicas", replicas, rule, "Give more slots, or numbers that divide.")]
    return []


def _node_slots(replicas: int, nodes: int, gpus: int) -> list[Ints]:
    return np.split(even_slots(replicas, gpus), np.cumsum(even_slots(gpus, nodes))[:-1])


def _on_nodes(load: Floats, replicas: int, groups: int, nodes: int, gpus: int) -> tuple[Ints, Ints]:
    """Pack groups on nodes as EPLB does and better, then experts on each node's GPUs; keep the lighter per layer."""
    size = load.shape[1] // groups
    by_group = load.reshape(len(load), groups, size).sum(axis=2)
    node_slots = _node_slots(replicas, nodes, gpus)
    of_node, even = np.array([float(slots.sum()) for slots in node_slots]), np.full(nodes, groups // nodes)
    found = []
    for packed in (greedy(by_group, even, of_node, groups), start(by_group, even, of_node)):
        member = (packed.expert[..., None] * size + np.arange(size)).reshape(len(load), nodes, -1)
        found.append(_inside(load, member, node_slots))
    better = found[1][2] < found[0][2]
    rows, count = (np.where(better[:, None], found[1][i], found[0][i]) for i in (0, 1))
    return rows, count


def _inside(load: Floats, member: Ints, node_slots: list[Ints]) -> tuple[Ints, Ints, Floats]:
    """Place the experts of every node on its GPUs; return slots in order, copies and the heaviest GPU."""
    rows, count, heavy = [], np.zeros(load.shape, dtype=np.int64), []
    for node, slots in enumerate(node_slots):
        ours = np.take_along_axis(load, member[:, node], 1)
        seats = start(ours, slots)
        heavy.append(heaviest_of(ours, seats, np.ones(len(slots))))
        rows.append(np.take_along_axis(member[:, node], in_order(ours, seats, int(slots.sum())), 1))
        np.put_along_axis(count, member[:, node], seats.count, 1)
    return np.concatenate(rows, axis=1), count, np.max(heavy, axis=0)


def in_order(load: Floats, seats: Seats, slots: int) -> Ints:
    """Return the experts of all slots, GPU after GPU, the heaviest copy first."""
    layers, gpus, most = seats.expert.shape
    n = load.shape[1]
    share = np.pad(load / seats.count, ((0, 0), (0, 1)), constant_values=-1.0)
    place = np.argsort(-share[np.arange(layers)[:, None, None], seats.expert], axis=2, kind="stable")
    expert = np.take_along_axis(seats.expert, place, 2).reshape(layers, gpus * most)
    filled: Ints = expert[expert < n].reshape(layers, slots)
    return filled


def _is_tensor(weight: Any) -> bool:
    return type(weight).__module__.partition(".")[0] == "torch"


def _like(weight: Any, answer: Ints) -> Any:
    """Return the array, or a tensor on the weight's device: torch is there if a tensor came in."""
    return sys.modules["torch"].from_numpy(answer).to(weight.device) if _is_tensor(weight) else answer
