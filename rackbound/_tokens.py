"""What does a collective send that a command is asked for: bytes, or the tokens of an expert layer?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from topo import Fault, InputError, together
from topo.units import parse_quantity

__all__ = ["MOE_KINDS", "algorithm_of", "size_of"]

#: Kinds whose bytes are those of an expert layer's tokens.
MOE_KINDS = ("moe_dispatch", "moe_combine")
_NEEDED = ("tokens", "hidden", "top_k", "experts")

Tokens = Annotated[float | None, typer.Option(help="moe_: tokens of every rank.")]
Hidden = Annotated[int | None, typer.Option(help="moe_: elements of a token.")]
TopK = Annotated[int | None, typer.Option(help="moe_: experts a token goes to.")]
Experts = Annotated[int | None, typer.Option(help="moe_: routed experts of the layer.")]
Copies = Annotated[str | None, typer.Option(help="moe_: direct, per_gpu or per_domain; the algorithm of these kinds.")]
Loads = Annotated[str | None, typer.Option(help="moe_: JSON file of expert loads, one list or one a rank.")]
Limit = Annotated[int | None, typer.Option(help="moe_: domains, or --groups, a token's experts lie in.")]
Groups = Annotated[int | None, typer.Option(help="moe_: equal groups of experts that --limit counts.")]
DispatchDtype = Annotated[str, typer.Option(help="moe_dispatch: of a token.")]
CombineDtype = Annotated[str, typer.Option(help="moe_combine: of a result.")]


def size_of(kind: str, n_bytes: str | None, asked: dict[str, Any], default: float | None) -> Any:
    """Return the bytes, or the tokens, of a kind; a barrier needs none."""
    if kind not in MOE_KINDS:
        given = [
            f"--{name.replace('_', '-')}" for name in (*_NEEDED, "loads", "limit", "groups") if asked[name] is not None
        ]
        if given:
            raise InputError(
                Fault(", ".join(given), "given", f"{kind} has no tokens", f"Only {', '.join(MOE_KINDS)} do.")
            )
        if n_bytes is not None:
            return parse_quantity(n_bytes, "bytes", place="--bytes", zero=True)
        if default is None and kind != "barrier":
            raise InputError(Fault("--bytes", None, f"{kind} needs a size", "Write --bytes 1GB."))
        return default if kind != "barrier" else None
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
    from rackbound._recorded import recorded
    from serving import dtype_bytes

    dispatch, combine, load = together(
        lambda: dtype_bytes(asked["dispatch_dtype"], "--dispatch-dtype"),
        lambda: dtype_bytes(asked["combine_dtype"], "--combine-dtype"),
        lambda: recorded(asked["loads"]),
    )
    given = {name: asked[name] for name in (*_NEEDED, "limit", "groups")}
    return MoE(**given, dispatch_bytes=dispatch, combine_bytes=combine, expert_load=None if load is None else load.load)


def algorithm_of(kind: str, algorithm: str | None, copies: str | None) -> Any:
    """Return the algorithm, which a file may hold, and --copies names for an expert layer."""
    from collectives import read_algorithm

    if copies is None:
        return read_algorithm(algorithm) if algorithm and algorithm.endswith(".xml") else algorithm
    if kind not in MOE_KINDS or algorithm is not None:
        rule = "is the algorithm of moe_dispatch and moe_combine, given once"
        raise InputError(Fault("--copies", copies, rule, "Leave one of --copies and --algorithm out."))
    return copies
