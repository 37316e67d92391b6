"""What does a person read? One report per verb."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from collectives import Bracket, Cost, Explanation, HashTimes, Sensitivity
from placement import ExpertLayerBound, Solution
from rackbound._brackets import bracket_report, brackets_report, hash_report
from rackbound._expect import Expectation
from rackbound._output import say, show_table
from rackbound._sentences import bandwidth_flip
from serving import Model, Step, Workload
from topo import Fabric
from topo.units import format_quantity

__all__ = [
    "assumed", "bound_report", "cost_report", "expect_report", "explain_report", "nodes_report", "place_report",
    "step_report",
]  # fmt: skip


def assumed(lines: Iterable[str]) -> None:
    """Print everything that was filled in, each once."""
    unique = list(dict.fromkeys(lines))
    if unique:
        say("\nAssumed:")
    for line in unique:
        say(f"  - {line}")


def expect_report(design: str, domains: int, cost: Cost, expected: Expectation) -> None:
    """Print what nccl-tests should show, why, and what less would mean."""
    say(f"{expected.program} over {cost.n_ranks} ranks of {design} x {domains}: "
        f"busbw {format_quantity(expected.busbw, 'bandwidth')} at large sizes with {cost.algorithm}")  # fmt: skip
    for line in expected.derivation:
        say(f"  {line}")
    say("If it shows less:")
    for line in expected.lower:
        say(f"  - {line}")
    say()


def explain_report(found: Explanation) -> None:
    """Print what NCCL picks by its tuning model, from which size on, and why."""
    pick, size = found.pick, format_quantity(found.n_bytes, "bytes")
    say(f"NCCL picks {pick.algorithm}/{pick.protocol} for {found.kind} of {size} over {found.n_ranks} ranks in "
        f"{found.n_domains} domain{'s' if found.n_domains > 1 else ''}: {format_quantity(pick.seconds, 'seconds')} by "
        f"{found.profile}")  # fmt: skip
    for line in found.why:
        say(f"  {line}")
    say("  from size on: " + ", ".join(f"{format_quantity(one.n_bytes, 'bytes')} {one.algorithm}/{one.protocol}"
                                       for one in found.switches))  # fmt: skip
    show_table("Choices", ("algorithm/protocol", "latency", "bandwidth", "time"),
               [(f"{one.algorithm}/{one.protocol}", format_quantity(one.latency, "seconds"),
                 format_quantity(one.bandwidth, "bandwidth"), format_quantity(one.seconds, "seconds"))
                for one in found.choices])  # fmt: skip
    for line in found.assumptions:
        say(f"  - {line}")
    say()


def cost_report(
    design: str, domains: int, cost: Cost, sensitivity: Sensitivity | None, held: Bracket, hashed: HashTimes | None
) -> None:
    """Print time, bound and load of a collective, its bracket, and what faster links would save."""
    time, size = format_quantity(cost.seconds, "seconds"), format_quantity(cost.n_bytes, "bytes")
    say(f"{cost.kind} of {size} over {cost.n_ranks} ranks of {design} x {domains}: {time}")
    binds = f"bound by {cost.bottleneck_kind} {cost.bottleneck}: {format_quantity(cost.bandwidth_seconds, 'seconds')}"
    binds += f" transfer + {format_quantity(cost.latency_seconds, 'seconds')} latency"
    say(f"  {binds if cost.seconds else 'nothing is sent: 0 s'}")
    say(f"  algbw {format_quantity(cost.algbw, 'bandwidth')}, busbw {format_quantity(cost.busbw, 'bandwidth')}")
    say(f"  remote share {cost.remote_share:.4g} of all bytes, {cost.remote_share_of_sent:.4g} without own chunks")
    phases = "overlapping" if cost.pipelined else "one after the other"
    software = "wires only, no software"
    if cost.band is not None:
        low, high = (format_quantity(seconds, "seconds", 3) for seconds in cost.band)
        software = f"nine in ten measurements from {low} to {high}"
    say(f"  routing {cost.routing}, algorithm {cost.algorithm} (phases {phases}), profile {cost.profile}: {software}\n")
    if cost.tried:
        order = sorted(cost.tried.items(), key=lambda row: row[1])
        show_table("Algorithms tried", ("algorithm", "time", "against the best"),
                   ((name, format_quantity(s, "seconds"), f"{s / cost.seconds:.4g}" if cost.seconds else "1")
                    for name, s in order))  # fmt: skip
    show_table(
        "Links by class", ("class", "bytes", "utilisation", "busiest link", "its transfer time"),
        ((kind, format_quantity(load.n_bytes, "bytes"), f"{100 * load.utilisation:.3g} %", load.busiest,
          format_quantity(load.busiest_seconds, "seconds")) for kind, load in cost.classes.items()),
    )  # fmt: skip
    for kind, saved in sensitivity.saved.items() if sensitivity else ():
        say(f"  1 % more {kind} bandwidth saves {format_quantity(saved / 100, 'seconds')}"
            f" ({saved / cost.seconds if cost.seconds else 0.0:.3g} % of the time)")  # fmt: skip
    if hashed:
        hash_report(hashed)
    bracket_report(held)
    assumed(cost.assumptions)


def nodes_report(nodes: str, rival: dict[str, Any] | None) -> None:
    """Print the nodes taking part, and what better ones would gain."""
    say(f"\n  nodes {nodes}")
    if rival is None:
        return
    more = rival["slower"]
    rate = f"{100 * abs(more):.3g} % {'slower' if more > 0 else 'faster'} than" if abs(more) >= 5e-4 else "as fast as"
    say(f"  under {_leaves(rival['leaves_given'])}: {rate} the same number under {_leaves(rival['leaves'])}")
    say(f"  suggested {rival['nodes']}: {format_quantity(rival['seconds'], 'seconds')}, bound by {rival['bottleneck']}")


def _leaves(n: int) -> str:
    return f"{n} leaf switch{'es' * (n != 1)}"


def step_report(
    design: str, domains: int, model: Model, workload: Workload, step: Step, held: Mapping[str, Bracket],
    racks: list[dict[str, Any]] | None,
) -> None:  # fmt: skip
    """Print parts, memory and rate of a step, its collectives' brackets, and one rack against two."""
    low, mid, high = (format_quantity(step.times[name], "seconds") for name in ("lower", "two_batch", "serial"))
    more = repr(step.layout).partition(f"pp={step.layout.pp}")[2].removesuffix(")")
    layout = f"EP {step.layout.ep}, PP {step.layout.pp}{more}"
    phase = "" if workload.phase == "decode" else f", {workload.phase}"
    per = "a prompt's way" if workload.phase == "prefill" else "one token"
    say(f"{model.name} on {design} x {domains}, {layout}{phase}, {workload.batch_policy}, context {workload.context}:")
    say(f"  {per} through all layers takes {low} (all overlapped), {mid} (two batches in turn), {high} (one after the"
        " other)")  # fmt: skip
    say(f"  by rule of thumb {format_quantity(step.times['lecture'], 'seconds')} (the lecture's max), "
        f"{format_quantity(step.times['scaling_book'], 'seconds')} (the scaling book's sum)")  # fmt: skip
    user = f", {step.tokens_per_user:,.4g} per sequence" if step.tokens_per_user else ""
    if step.band is not None:
        low, mid, high = (format_quantity(s, "seconds") for s in (step.band[0], step.times["engine"], step.band[1]))
        say(f"  with the engine it takes {mid}: nine in ten measurements lie in {low} .. {high}")
    say(f"  bound by {step.binding}; {step.tokens_per_second:,.0f} tokens/s{user} at {step.time}")
    fits = f"fits, as would {step.most_sequences:,} sequences per GPU" if step.fits else f"does not fit: {step.reason}"
    need, usable = format_quantity(step.memory_per_gpu, "bytes"), format_quantity(step.memory_usable, "bytes")
    say(f"  memory {need} per GPU of {usable} usable: {fits}")
    if step.imbalance is not None:
        uneven = step.imbalance
        say(f"  up to {step.experts_per_gpu} experts of a layer per GPU, {uneven.experts_hit:.4g} of them hit; "
            f"remote share {step.remote_share:.4g}")  # fmt: skip
        say(f"  heaviest GPU {uneven.heaviest_gpu}, {uneven.load:.4g} times the mean; all-to-all waits for "
            f"{uneven.hot_link or 'no link'}")  # fmt: skip
        if uneven.gained is not None:
            saved = format_quantity(abs(uneven.gained), "seconds", 3)
            say(f"  the plan {'saves' if uneven.gained >= 0 else 'costs'} {saved} against experts in order, one "
                "operation after the other")  # fmt: skip
    for line in _racks(racks):
        say(f"  {line}")
    say()
    show_table(
        "Operations, all layers", ("operation", "time", "waits for", "compute", "memory", "network"),
        ((part.name, format_quantity(part.seconds, "seconds"), part.resource,
          *(format_quantity(s, "seconds") for s in (part.compute_seconds, part.memory_seconds, part.network_seconds)))
         for part in step.parts),
    )  # fmt: skip
    brackets_report(held)
    assumed(step.assumptions)


def _racks(racks: list[dict[str, Any]] | None) -> Iterable[str]:
    """Yield what changes from one domain to two."""
    if racks is None:
        return
    one, two = racks
    times = ", ".join(
        f"{format_quantity(one[name], 'seconds')} to {format_quantity(two[name], 'seconds')} {word} "
        f"({two[name] / one[name]:.3g} times)"
        for name, word in (("lower", "overlapped"), ("serial", "one after the other"))
    )
    yield f"from one domain (EP {one['ep']}) to two (EP {two['ep']}): {times}"
    rates = [row["tokens_per_second_per_gpu"] for row in racks]
    yield (f"  tokens/s per GPU {rates[0]:,.0f} to {rates[1]:,.0f}; remote share 0 to {two['remote_share']:.4g}; "
           f"then bound by {two['binding']}, its wires by {two['binding_link']}")  # fmt: skip


def bound_report(
    fabric: Fabric, model: Model, workload: Workload, bound: ExpertLayerBound, held: Mapping[str, Bracket]
) -> None:
    """Print the bound, where it lies and where it flips."""
    budget = format_quantity(bound.step_budget, "seconds")
    asked = f"{workload.batch_policy}, context {workload.context}, budget {budget}, overlap {bound.overlap}"
    say(f"{model.name} on {fabric.name} x {len(fabric.domain_sizes)}, {asked}:")
    if bound.status != "bounded":
        say(f"  {bound.status}: {bound.binding}")
    else:
        say(f"  at most {bound.n_experts:,} experts ({format_quantity(bound.n_bytes, 'bytes')} a layer): "
            f"{bound.experts_per_gpu} on each of {bound.width} GPUs")  # fmt: skip
        say(f"  bound by {bound.binding}")
        say(f"  best within one domain: {_best(bound.one_domain)}; over several: {_best(bound.beyond)}")
    if bound.scale_out_needed is not None and bound.scale_out is not None:
        say(f"  {bandwidth_flip(bound)}")
    brackets_report(held, f"Collectives of one layer over {bound.width} GPUs")
    assumed(bound.assumptions)


def _best(pair: tuple[int, int]) -> str:
    return f"{pair[0]:,} experts at width {pair[1]}" if pair[0] else "none"


def place_report(design: str, domains: int, model: Model, solution: Solution, held: Mapping[str, Bracket]) -> None:
    """Print status, objective and proof of a placement."""
    layout = solution.layout
    say(f"{model.name} on {design} x {domains}, EP {layout.ep}, PP {layout.pp}: {solution.status}")
    if solution.plan is not None:
        _plan_report(solution)
    brackets_report(held)
    assumed(solution.step.assumptions)


def _plan_report(solution: Solution) -> None:
    """Print how good a plan is, its stages and its step."""
    layout, plan = solution.layout, solution.plan
    if plan is None or solution.objective is None or solution.bound is None or solution.gap is None:
        return
    say(f"  heaviest GPU {solution.objective:.4f} times the mean; no placement is below {solution.bound:.4f} "
        f"(gap {100 * solution.gap:.3g} %)")  # fmt: skip
    say(f"  what binds: {solution.binding}")
    exact = solution.methods.count("milp")
    if solution.methods:
        say(f"  {exact} layers by the exact solver, {len(solution.methods) - exact} by the greedy and its bound")
    stages = [int((plan.layer_stage == s).sum()) for s in range(layout.pp)]
    slowest = format_quantity(solution.slowest_stage, "seconds")
    say(f"  layers per stage {stages}, slowest stage {slowest} without the wires (exact)")
    low, high = (format_quantity(s, "seconds") for s in (solution.step.lower, solution.step.serial))
    gained = solution.step.imbalance.gained if solution.step.imbalance else None
    saves = f", {format_quantity(gained, 'seconds', 3)} less than with experts in order" if gained else ""
    say(f"  step with this plan: {low} to {high}{saves}")
