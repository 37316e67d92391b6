"""How long does an algorithm take to schedule and to cost as ranks grow?"""

from __future__ import annotations

import time

from rackbound import collectives, topo

CASES = (
    ("all_to_all", "direct"), ("all_to_all", "bruck"), ("all_to_all", "rail_aligned"), ("all_to_all", "pairwise"),
    ("all_gather", "pat"), ("all_reduce", "ring"), ("all_reduce", "rabenseifner"), ("all_reduce", "double_binary_tree"),
    ("all_reduce", "hierarchical"), ("broadcast", "ring"),
)  # fmt: skip


def main() -> None:
    for domains in (8, 32, 128):
        fabric = topo.Fabric.from_graph(topo.load("hgx-h100-8", domains))
        routes = topo.route(fabric)
        for kind, name in CASES:
            start = time.perf_counter()
            plan = collectives.schedule(kind, fabric, 1e9, algorithm=name)
            middle = time.perf_counter()
            found = collectives.cost(fabric, plan, routing=routes)
            end = time.perf_counter()
            print(
                f"{fabric.n_ranks} ranks, {kind} {name}: schedule {middle - start:.3f} s, cost {end - middle:.3f} s: "
                f"{found.seconds * 1e3:.4g} ms"
            )


if __name__ == "__main__":
    main()
