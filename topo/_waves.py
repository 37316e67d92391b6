"""What does the slowest wave of a graph prove of its bisection?

A cut between nodes A and the others B is at least w m(A) m(B) / m, where m counts ranks on
nodes and w is the second eigenvalue of L x = w M x, L the Laplacian in bandwidths and M
the ranks on every node. Ranks that hang on switches stand on them; each rank that stands
with the other half costs its own link, so with A holding a of n ranks

    cut >= min over a of w a (n - a) / n + link max(0, |a - n/2|).
"""

from __future__ import annotations

import numpy as np

from topo._cuts import Part, hung_ranks

__all__ = ["proven_by_waves"]

#: Nodes up to which eigenvalues are worked out.
_MOST = 1500


def proven_by_waves(part: Part) -> float:
    """Return a bandwidth that every half of the ranks has to the other [bytes/s].

    0 where links differ both ways, where a switch has no rank, or where there are too many.

    References
    ----------
    .. [1] W. E. Donath, A. J. Hoffman, "Lower Bounds for the Partitioning of Graphs", IBM
       Journal of Research and Development 17 (1973).
    """
    ranks, link = hung_ranks(part)
    kept = np.arange(part.n if link else 0, part.size)
    if not part.symmetric or len(kept) > _MOST or len(kept) < 2 or not ranks[kept].all():
        return 0.0
    wide = part.both[kept][:, kept].toarray() / 2
    root = np.sqrt(ranks[kept])
    slowest = np.linalg.eigvalsh((np.diag(wide.sum(axis=1)) - wide) / np.outer(root, root))[1]
    near = np.arange(part.n + 1) if link else np.array([part.n // 2])
    over = np.maximum(0, np.abs(2 * near - part.n) - part.n % 2) / 2
    return max(0.0, float((slowest * (1 - 1e-9) * near * (part.n - near) / part.n + link * over).min()))
