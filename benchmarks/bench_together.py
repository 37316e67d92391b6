"""How many domains fewer do tokens visit when experts chosen together are in one? One thread.

Tokens are drawn: every token has a topic, every expert one of the topics (of 8 to 64 experts) and a log-normal load; an
expert of the token's topic is 2, 5 or 20 times as likely. Groups are made from half of the tokens and measured on the
other half, beside experts spread without looking at tokens.
`python benchmarks/bench_together.py [seed]`.
"""

from __future__ import annotations

import os
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402

from rackbound import placement  # noqa: E402

EXPERTS, CHOSEN, TOKENS = 256, 8, 20_000


def drawn(size: int, times: float, seed: int) -> np.ndarray:
    """Experts of every token: the highest of Gumbel noise over logarithms of likelihoods."""
    rng = np.random.default_rng([seed, size])
    load, topic = np.exp(0.7 * rng.standard_normal(EXPERTS)), rng.permutation(EXPERTS) // size
    of = rng.choice(EXPERTS // size, TOKENS, p=np.bincount(topic, weights=load) / load.sum())
    noise = rng.gumbel(size=(TOKENS, EXPERTS))
    return np.argsort(-(noise + np.log(load) + np.log(times) * (topic == of[:, None])), axis=1)[:, :CHOSEN]


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20261130
    spread = np.random.default_rng(seed).permutation(EXPERTS)
    placement.group_experts(placement.Gpus([16] * 18, domain=np.arange(18)), drawn(8, 2.0, seed))  # numba compiles once
    for domains, size, times in ((d, s, t) for d in (18, 2) for s in (8, 16, 32, 64) for t in (2.0, 5.0, 20.0)):
        choices = drawn(size, times, seed)
        gpus = placement.Gpus(np.full(domains, 288 // domains), domain=np.arange(domains))
        start = time.perf_counter()
        found = placement.group_experts(gpus, choices[::2], n_experts=EXPERTS)
        took = time.perf_counter() - start
        before, after = (placement.domain_visits(choices[1::2], where) for where in (spread % domains, found.domain))
        asked = f"{domains} domains, topics of {size}, {times:g} times as likely"
        less = f"{before:.3f} to {after:.3f} domains a token, {100 * (1 - after / before):.1f} % fewer"
        print(f"{asked}: {less} (target 4 to 29 % on 18, little on 2); {found}, {took:.1f} s")


if __name__ == "__main__":
    main()
