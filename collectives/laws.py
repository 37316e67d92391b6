"""What do the closed forms say? One published or derived law per function, to hold the graph against."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from collectives._alpha_beta import ALPHA_BETA, alpha_beta_seconds, nvls_all_reduce_busbw
from collectives._shape_laws import (
    hierarchical_all_gather_seconds,
    hierarchical_all_to_all_seconds,
    hypercube_all_to_all_seconds,
    hyperx_all_to_all_seconds,
    mesh_all_to_all_seconds,
    rail_aligned_all_to_all_seconds,
    ring_across_domains_seconds,
    torus_all_gather_seconds,
    torus_all_to_all_seconds,
)

__all__ = [
    "ALPHA_BETA",
    "all_to_all_across_domains_seconds",
    "all_to_all_seconds",
    "alpha_beta_seconds",
    "expected_distinct_groups",
    "expert_all_to_all_seconds",
    "hierarchical_all_gather_seconds",
    "hierarchical_all_to_all_seconds",
    "hypercube_all_to_all_seconds",
    "hyperx_all_to_all_seconds",
    "mesh_all_to_all_seconds",
    "multi_node_all_to_all_busbw",
    "nvls_all_reduce_busbw",
    "rail_aligned_all_to_all_seconds",
    "ring_across_domains_seconds",
    "scale_up_to_scale_out_time",
    "torus_all_gather_seconds",
    "torus_all_to_all_seconds",
]


def all_to_all_seconds(n_ranks: int, n_bytes: float, bandwidth: float, latency: float = 0.0) -> float:
    """Return the time of an all-to-all under one ideal switch.

    Parameters
    ----------
    n_ranks : int
        Ranks.
    n_bytes : float
        Bytes to each other rank [bytes].
    bandwidth : float
        Of a rank's link, per direction [bytes/s].
    latency : float, optional
        Of one link; a message crosses two [s].

    Returns
    -------
    float
        (n - 1) m / B + 2 latency [s].

    References
    ----------
    SimGrid 3.32's plain fluid model gives the same: 72 ranks, 1e9 bytes, 900e9 bytes/s.

    Examples
    --------
    >>> round(all_to_all_seconds(72, 1e9, 900e9), 10)
    0.0788888889
    """
    return (n_ranks - 1) * n_bytes / bandwidth + 2 * latency


def all_to_all_across_domains_seconds(
    n_domains: int, domain_size: int, n_bytes: float, scale_up: float, scale_out: float
) -> float:
    """Return the time of an all-to-all over equal domains and a non-blocking fabric, latencies zero.

    Parameters
    ----------
    n_domains, domain_size : int
        R domains of G ranks.
    n_bytes : float
        Bytes to each other rank [bytes].
    scale_up, scale_out : float
        Per rank and direction [bytes/s].

    Returns
    -------
    float
        max((G - 1) m / scale_up, (R - 1) G m / scale_out) [s]: the parts overlap.

    References
    ----------
    SimGrid 3.32's plain fluid model: 2 x 72 ranks, 900 and 50 GB/s, 1e9 bytes: 1.44 s.

    Examples
    --------
    >>> all_to_all_across_domains_seconds(2, 72, 1e9, 900e9, 50e9)
    1.44
    """
    inside = (domain_size - 1) * n_bytes / scale_up
    return max(inside, (n_domains - 1) * domain_size * n_bytes / scale_out)


def expert_all_to_all_seconds(
    tokens: float, copies: float, hidden_size: int, bytes_per_element: float, bandwidth: float
) -> float:
    """Return the wire time of dispatch or combine of one layer, every copy over the wire.

    Parameters
    ----------
    tokens : float
        Tokens of one GPU.
    copies : float
        Copies of a token sent (top-k when direct).
    hidden_size : int
        Elements of a token.
    bytes_per_element : float
        1 for FP8, 2 for BF16 [bytes]; their sum for both directions one after the other.
    bandwidth : float
        Of the GPU's link, per direction [bytes/s].

    Returns
    -------
    float
        [s].

    References
    ----------
    DeepSeek-V3 hardware paper, arXiv 2505.09343, section 2.3.2: 120.96 us (7K = 7000).

    Examples
    --------
    >>> round(expert_all_to_all_seconds(32, 9, 7000, 1 + 2, 50e9) * 1e6, 2)
    120.96
    """
    return tokens * copies * hidden_size * bytes_per_element / bandwidth


def multi_node_all_to_all_busbw(nodes: int, gpus: int, nic: float) -> float:
    """Return the all-to-all busbw nccl-tests shows when the NICs bind.

    Parameters
    ----------
    nodes, gpus : int
        N nodes of G GPUs, N at least 2.
    nic : float
        Per GPU and direction [bytes/s].

    Returns
    -------
    float
        b N/(N-1) (NG-1)/(NG) [bytes/s].

    References
    ----------
    NVIDIA/nccl-tests#130.

    Examples
    --------
    >>> multi_node_all_to_all_busbw(2, 8, 50e9) / 1e9
    93.75
    """
    n = nodes * gpus
    return nic * nodes / (nodes - 1) * (n - 1) / n


def expected_distinct_groups(n_experts: int, group_sizes: Sequence[int], top_k: int) -> float:
    """Return how many groups a token's experts lie in, on average.

    Parameters
    ----------
    n_experts : int
        Routed experts, each as likely as any other.
    group_sizes : sequence of int
        Experts on every GPU (or domain); they sum to n_experts.
    top_k : int
        Different experts a token goes to.

    Returns
    -------
    float
        Sum over groups of 1 - C(E - e, k) / C(E, k), exact. The token's own group is
        among them.

    Examples
    --------
    >>> round(expected_distinct_groups(256, [4] * 64, 8), 4)
    7.6758
    """
    ways = comb(n_experts, top_k)
    return sum(1 - comb(n_experts - size, top_k) / ways for size in group_sizes)


def scale_up_to_scale_out_time(
    n_activated: float, layers_per_stage: float, slowdown: float = 8.0, passes: float = 2.0
) -> float:
    """Return t_scale_up / t_scale_out of a pipeline of racks.

    In the rack a token goes to n_activated experts' GPUs and comes back, in every layer
    of the stage; to the next rack it goes once.

    Parameters
    ----------
    n_activated : float
        Copies of a token per layer (distinct remote GPUs, strictly).
    layers_per_stage : float
        MoE layers in one rack.
    slowdown : float, optional
        Scale-up over scale-out bandwidth; the lecture says 8, GB200 NVL72 has 18.
    passes : float, optional
        Dispatch and combine; 2 at equal bytes, 1.5 with FP8 dispatch, BF16 combine and a
        BF16 send.

    Returns
    -------
    float
        passes x n_activated x layers_per_stage / slowdown.

    References
    ----------
    R. Pope on the Dwarkesh podcast, 2026, at 51:08 and 52:29.

    Examples
    --------
    >>> scale_up_to_scale_out_time(8, 1)
    2.0
    """
    return passes * n_activated * layers_per_stage / slowdown
