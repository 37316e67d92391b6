"""Which options do commands share, and how are their texts read?"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from rackbound._defaults import BATCH_PER_GPU
from topo import RULES, Fault, Hash, InputError, Tables, read
from topo.units import parse_quantity

__all__ = [
    "Algorithm", "Assume", "Batch", "BatchPerGpu", "Budget", "Context", "Domains", "Engine", "Free", "Json",
    "ModelName", "Nodes", "OneDomain", "Overlap", "Pipelined", "Profile", "QueuePairs", "Routing", "Settings",
    "Suggest", "assumptions_of", "budget_seconds", "engine_of", "overrides_of", "routing_of", "workload_of",
]  # fmt: skip

ModelName = Annotated[str, typer.Option("--model", help="Catalogue name or a Hugging Face config.json.")]
BatchPerGpu = Annotated[int | None, typer.Option(help="Sequences on every GPU, whatever the width.  [default: 114]")]
Batch = Annotated[int | None, typer.Option(help="Sequences over the whole group instead: constant total batch.")]
Context = Annotated[int, typer.Option(help="Tokens in every sequence's KV cache.")]
Budget = Annotated[str, typer.Option(help="Time for one token through all layers, with its unit.")]


def _domains(text: str) -> int | list[int]:
    """Read a number of domains, or the GPUs of each: 2, or 72,36."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.removeprefix("-").isdigit() for part in parts):
        raise typer.BadParameter(f"{text!r} is neither a number of domains nor the GPUs of each, as 72,36.")
    numbers = [int(part) for part in parts]
    return numbers if len(numbers) > 1 else numbers[0]


_DOMAINS = "Scale-up domains (racks) joined by the scale-out fabric, or the GPUs of each, as 72,36.  [default: {}]"
Domains = Annotated[
    Any, typer.Option(parser=_domains, metavar="N|N,N,...", help=_DOMAINS.format("2; 1 without a NIC rate"))
]
OneDomain = Annotated[Any, typer.Option("--domains", parser=_domains, metavar="N|N,N,...", help=_DOMAINS.format(1))]
Nodes = Annotated[
    str | None,
    typer.Option(help="Nodes taking part as Slurm lists them, n[001-016]; with --suggest also how many."),
]
Suggest = Annotated[
    bool,
    typer.Option("--suggest", help="Choose as many nodes that lie closest together, and compare --nodes with them."),
]
Free = Annotated[str | None, typer.Option(help="Nodes that --suggest may choose, as Slurm lists them.  [default: all]")]
Overlap = Annotated[str, typer.Option(help="none: one operation after the other; full: all overlap.")]
Algorithm = Annotated[
    str | None,
    typer.Option(help="Algorithm, an MSCCL .xml file, or best: the fastest that applies.  [default: the kind's own]"),
]
Pipelined = Annotated[
    bool | None,
    typer.Option("--pipelined/--phased", help="Phases overlap, or wait for each other.  [default: as the algorithm]"),
]
Routing = Annotated[
    str,
    typer.Option(
        help="Rule: ecmp, even, paths, single, dor, dragonfly, valiant, hash (seed 0); or a file of forwarding tables."
    ),
]
QueuePairs = Annotated[int | None, typer.Option(help="hash: flows that share the bytes of a pair.  [default: 1]")]
Profile = Annotated[
    str, typer.Option("--profile", help="Software: ideal (the wires alone), nccl-hopper, ..., or a TOML file.")
]
Engine = Annotated[
    str | None, typer.Option("--engine", help="A serving engine, as vllm-blackwell, or a TOML file.  [default: ideal]")
]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, SI units.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the design, as scale_out.bandwidth='800 Gb/s'."),
]
Assume = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Read a config as if it said so, as model_type=mixtral; KEY=@OTHER takes what stands under another key.",
    ),
]


def assumptions_of(assume: list[str] | None) -> dict[str, Any]:
    """Return --assume texts as key -> value; a value is read as JSON, else as a string."""
    found: dict[str, Any] = {}
    for text in assume or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or key.strip() in found:
            rule = "sets a key a second time" if equals and key.strip() else "must read KEY=VALUE"
            raise InputError(Fault("--assume", text, rule, "Write model_type=mixtral, each key once."))
        try:
            found[key.strip()] = json.loads(value)
        except ValueError:
            found[key.strip()] = value.strip()
    return found


def engine_of(engine: str | None) -> Any:
    """Return the profile of --engine, ideal where none is named."""
    from serving import load_engine

    return "ideal" if engine is None else load_engine(engine)


def overrides_of(settings: list[str] | None) -> dict[str, Any]:
    """Return --set texts as dotted key -> value; a value is read as TOML, else as a string."""
    found: dict[str, Any] = {}
    for text in settings or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InputError(Fault("--set", text, "must read KEY=VALUE", "Write scale_out.radix=128."))
        if key.strip() in found:
            raise InputError(Fault("--set", text, "sets a key a second time", "Give every key once."))
        try:
            found[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[key.strip()] = value.strip()
    return found


def routing_of(text: str, queue_pairs: int | None = None, seed: int | None = None) -> str | Hash | Tables:
    """Return the rule of --routing, --queue-pairs and --seed, or the forwarding tables of the file it names."""
    if text == "hash":
        return Hash(0 if seed is None else seed, 1 if queue_pairs is None else queue_pairs)
    for option, value in (("--queue-pairs", queue_pairs), ("--seed", seed)):
        if value is not None:
            raise InputError(Fault(option, value, "is for --routing hash", "Leave it out, or take that rule."))
    if text in RULES or not Path(text).is_file():
        return text
    found = read(text)
    if found.routing is None:
        rule = f"is a file of {found.kind}, which has no forwarding tables"
        raise InputError(Fault("--routing", text, rule, "Give a dump of the tables, or name a rule."))
    return found.routing


def budget_seconds(text: str) -> float:
    """Return --budget in seconds."""
    return parse_quantity(text, "seconds", place="--budget")


def workload_of(context: int, batch: int | None, batch_per_gpu: int | None) -> Any:
    """Return the workload of --context, --batch and --batch-per-gpu."""
    from serving import Workload

    if batch is None and batch_per_gpu is None:
        batch_per_gpu = BATCH_PER_GPU
    return Workload(context=context, batch=batch, batch_per_gpu=batch_per_gpu)
