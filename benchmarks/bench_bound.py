"""How long does the expert-layer bound over every width take as the fabric grows?"""

from __future__ import annotations

import time

from rackbound import placement, serving, topo

CASES = (("gb200-nvl72", 2), ("gb200-nvl72", 8), ("hgx-h100-8", 32), ("hgx-h100-8", 128))


def main() -> None:
    model, work = serving.load_model("deepseek-v3"), serving.Workload(batch_per_gpu=114)
    for design, domains in CASES:
        fabric = topo.Fabric.from_graph(topo.load(design, domains))
        start = time.perf_counter()
        steps = placement.width_steps(fabric, model, work)
        middle = time.perf_counter()
        bound = placement.expert_layer_bound(fabric, model, work, step_budget=20e-3, steps=steps)
        end = time.perf_counter()
        print(
            f"{design} x {domains}: {fabric.n_ranks} widths in {middle - start:.2f} s, "
            f"bound and scale-out needed in {end - middle:.2f} s: {bound.n_experts:,} experts"
        )


if __name__ == "__main__":
    main()
