"""The command `rackbound cost`: one collective on a design, what nccl-tests should show, and what faster links save."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rackbound._brackets import spread
from rackbound._expect import nccl_tests
from rackbound._graphs import compared, graph_of, part_with, ranks_on
from rackbound._options import (
    Algorithm,
    Free,
    Json,
    Nodes,
    OneDomain,
    Pipelined,
    Profile,
    QueuePairs,
    Routing,
    Settings,
    Suggest,
    overrides_of,
    routing_of,
)
from rackbound._output import emit_json, envelope
from rackbound._tokens import (
    MOE_KINDS,
    CombineDtype,
    Copies,
    DispatchDtype,
    Experts,
    Groups,
    Hidden,
    Limit,
    Loads,
    Tokens,
    TopK,
    algorithm_of,
    size_of,
)
from topo import Fabric, Fault, InputError, nodelist, together

__all__ = ["cost"]

#: Size taken for --expect, which asks for large ones.
_LARGE = 1e9


def cost(
    design: Annotated[str, typer.Argument(help="Catalogue name or design file.")],
    kind: Annotated[
        str, typer.Argument(help="Collective, as all_to_all, all_reduce, broadcast, send, moe_dispatch, moe_combine.")
    ],
    n_bytes: Annotated[
        str | None,
        typer.Option(
            "--bytes", help="nccl-tests' size: the larger of a rank's buffers, with unit; a barrier needs none."
        ),
    ] = None,
    domains: OneDomain = None,
    ranks: Annotated[int | None, typer.Option(help="Ranks taking part.  [default: all]")] = None,
    nodes: Nodes = None,
    suggest: Suggest = False,
    free: Free = None,
    algorithm: Algorithm = None,
    pipelined: Pipelined = None,
    routing: Routing = "ecmp",
    queue_pairs: QueuePairs = None,
    profile: Profile = "ideal",
    tokens: Tokens = None,
    hidden: Hidden = None,
    top_k: TopK = None,
    experts: Experts = None,
    copies: Copies = None,
    loads: Loads = None,
    limit: Limit = None,
    groups: Groups = None,
    dispatch_dtype: DispatchDtype = "fp8",
    combine_dtype: CombineDtype = "bf16",
    expect: Annotated[str | None, typer.Option(help="nccl-tests: say which busbw it should show, and why.")] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Say which algorithm and protocol NCCL picks by its tuning model, and why."),
    ] = False,
    sensitivity: Annotated[bool, typer.Option("--sensitivity", help="Say what faster links would save.")] = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Cost a collective on a design, hop by hop."""
    from collectives import bracket
    from collectives import cost as costed
    from collectives import explain as explained
    from collectives import sensitivity as sensed

    asked = {"tokens": tokens, "hidden": hidden, "top_k": top_k, "experts": experts, "loads": loads, "limit": limit,
             "groups": groups, "dispatch_dtype": dispatch_dtype, "combine_dtype": combine_dtype}  # fmt: skip
    size, graph, chosen, rule, _ = together(
        lambda: size_of(kind, n_bytes, asked, _LARGE if expect is not None else None),
        lambda: graph_of(design, domains, 1, overrides_of(settings)),
        lambda: algorithm_of(kind, algorithm, copies),
        lambda: routing_of(routing, queue_pairs),
        lambda: _require_known(expect),
    )
    team, taken, better = ranks_on(graph, ranks, nodes, suggest, free)
    fabric = Fabric.from_graph(part_with(graph, team))
    words: dict[str, Any] = {"algorithm": chosen, "pipelined": pipelined, "routing": rule, "profile": profile}
    found = sensed(fabric, kind, size, ranks=team, **words) if sensitivity else None
    result = found.cost if found else costed(fabric, kind, size, ranks=team, **words)
    played: dict[str, Any] = {"ranks": team, "algorithm": result.algorithm if chosen == "best" else chosen}
    held = bracket(fabric, kind, size, pipelined=pipelined, routing=rule, **played)
    held, hashed = spread(held, rule, fabric, kind, size, **played)
    rival = None
    if taken is not None and better is not None:
        near = nodelist(graph, better)
        rival = compared(
            graph, (taken, result), (better, costed(part_with(graph, near), kind, size, ranks=near, **words))
        )
    expected = nccl_tests(fabric, result, team) if expect else None
    picked = explained(fabric, kind, result.n_bytes, ranks=team) if explain else None
    if as_json:
        inputs = {
            "design": design, "kind": kind, "bytes": size if isinstance(size, float) else None,
            "domains": len(fabric.domain_sizes), "ranks": ranks, "nodes": taken, "suggest": suggest, "free": free,
            "algorithm": algorithm or copies, "pipelined": pipelined, "routing": routing, "profile": profile,
            "queue_pairs": queue_pairs, "moe": asked if kind in MOE_KINDS else None, "expect": expect,
            "explain": explain, "settings": overrides_of(settings),
        }  # fmt: skip
        results = result.to_dict() | {
            "bracket": held.to_dict(),
            "hash": hashed.to_dict() if hashed else None,
            "suggested": rival,
            "sensitivity": found.to_dict() if found else None,
            "expected": expected.to_dict() if expected else None,
            "explained": picked.to_dict() if picked else None,
        }
        emit_json(envelope("cost/1", inputs, result.assumptions, results))
        return
    from rackbound._reports import cost_report, expect_report, explain_report, nodes_report

    if expected:
        expect_report(design, len(fabric.domain_sizes), result, expected)
    if picked:
        explain_report(picked)
    cost_report(design, len(fabric.domain_sizes), result, found, held, hashed)
    if taken is not None:
        nodes_report(taken, rival)


def _require_known(expect: str | None) -> None:
    if expect not in (None, "nccl-tests"):
        raise InputError(Fault("--expect", expect, "is not known", "Known: nccl-tests."))
