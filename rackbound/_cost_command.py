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
from topo import Fabric, Fault, InputError, nodelist, together
from topo.units import parse_quantity

__all__ = ["cost"]

#: Size taken for --expect, which asks for large ones.
_LARGE = 1e9
#: Kinds whose bytes are those of an expert layer's tokens.
_MOE = ("moe_dispatch", "moe_combine")
_NEEDED = ("tokens", "hidden", "top_k", "experts")


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
    tokens: Annotated[float | None, typer.Option(help="moe_: tokens of every rank.")] = None,
    hidden: Annotated[int | None, typer.Option(help="moe_: elements of a token.")] = None,
    top_k: Annotated[int | None, typer.Option(help="moe_: experts a token goes to.")] = None,
    experts: Annotated[int | None, typer.Option(help="moe_: routed experts of the layer.")] = None,
    copies: Annotated[
        str | None, typer.Option(help="moe_: direct, per_gpu or per_domain; the algorithm of these kinds.")
    ] = None,
    loads: Annotated[str | None, typer.Option(help="moe_: JSON file of expert loads, one list or one a rank.")] = None,
    limit: Annotated[int | None, typer.Option(help="moe_: domains, or --groups, a token's experts lie in.")] = None,
    groups: Annotated[int | None, typer.Option(help="moe_: equal groups of experts that --limit counts.")] = None,
    dispatch_dtype: Annotated[str, typer.Option(help="moe_dispatch: of a token.")] = "fp8",
    combine_dtype: Annotated[str, typer.Option(help="moe_combine: of a result.")] = "bf16",
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
        lambda: _size(kind, n_bytes, asked, expect),
        lambda: graph_of(design, domains, 1, overrides_of(settings)),
        lambda: _algorithm(kind, algorithm, copies),
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
            "queue_pairs": queue_pairs, "moe": asked if kind in _MOE else None, "expect": expect, "explain": explain,
            "settings": overrides_of(settings),
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


def _size(kind: str, n_bytes: str | None, asked: dict[str, Any], expect: str | None) -> Any:
    """Return the bytes, or the tokens, of a kind."""
    if kind not in _MOE:
        given = [
            f"--{name.replace('_', '-')}" for name in (*_NEEDED, "loads", "limit", "groups") if asked[name] is not None
        ]
        if given:
            raise InputError(Fault(", ".join(given), "given", f"{kind} has no tokens", f"Only {', '.join(_MOE)} do."))
        if n_bytes is not None:
            return parse_quantity(n_bytes, "bytes", place="--bytes", zero=True)
        if expect is None and kind != "barrier":
            raise InputError(Fault("--bytes", None, f"{kind} needs a size", "Write --bytes 1GB."))
        return _LARGE if expect is not None and kind != "barrier" else None
    faults = []
    if n_bytes is not None:
        faults.append(Fault("--bytes", n_bytes, f"{kind} sends tokens, not bytes", "Leave --bytes out."))
    if missing := [_option(name) for name in _NEEDED if asked[name] is None]:
        cure = "Write for example --tokens 128 --hidden 7168 --top-k 8 --experts 256."
        faults.append(Fault(", ".join(missing), None, f"{kind} needs these of its tokens", cure))
    if faults:
        raise InputError(*faults)
    return _moe(asked)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _moe(asked: dict[str, Any]) -> Any:
    from collectives import MoE
    from rackbound._reports import read_loads
    from serving import dtype_bytes

    dispatch, combine, load = together(
        lambda: dtype_bytes(asked["dispatch_dtype"], "--dispatch-dtype"),
        lambda: dtype_bytes(asked["combine_dtype"], "--combine-dtype"),
        lambda: read_loads(asked["loads"]),
    )
    given = {name: asked[name] for name in (*_NEEDED, "limit", "groups")}
    return MoE(**given, dispatch_bytes=dispatch, combine_bytes=combine, expert_load=load)


def _algorithm(kind: str, algorithm: str | None, copies: str | None) -> Any:
    """Return the algorithm, which a file may hold, and --copies names for an expert layer."""
    from collectives import read_algorithm

    if copies is None:
        return read_algorithm(algorithm) if algorithm and algorithm.endswith(".xml") else algorithm
    if kind not in _MOE or algorithm is not None:
        rule = "is the algorithm of moe_dispatch and moe_combine, given once"
        raise InputError(Fault("--copies", copies, rule, "Leave one of --copies and --algorithm out."))
    return copies


def _require_known(expect: str | None) -> None:
    if expect not in (None, "nccl-tests"):
        raise InputError(Fault("--expect", expect, "is not known", "Known: nccl-tests."))
