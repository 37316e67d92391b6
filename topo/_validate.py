"""What does a design file say? Its tables validated once, all faults at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from topo._design import ANNOUNCED, DEFAULTS, FLOPS_KEYS, Chip, Design, Overview, ScaleOut, ScaleUp
from topo._errors import Fault, InputError, suggest
from topo._fabrics import FABRICS
from topo._shapes import SHAPES, shape_faults

__all__ = ["design_from_mapping"]

_TABLES: dict[str, type] = {"design": Overview, "chip": Chip, "scale_up": ScaleUp, "scale_out": ScaleOut}
_NEEDED = ("design", "chip", "scale_up")
#: Keys whose defaults change numbers: filled in only with a line in `assumptions`.
_REPORTED = ("scale_out.shape", "scale_out.radix", "scale_out.oversubscription")


def design_from_mapping(
    data: Mapping[str, Any], *, overrides: Mapping[str, Any] | None = None, file: str | None = None
) -> Design:
    """Return the validated design of a parsed TOML file.

    Parameters
    ----------
    data : mapping
        Tables design, chip, scale_up, scale_out (optional), sources (optional).
    overrides : mapping, optional
        Dotted key -> value, as it would stand in the file ("scale_out.radix": 128).
    file : str, optional
        For messages.

    Raises
    ------
    InputError
        Lists every unknown key, missing key, bad unit and impossible value.
    """
    raw: dict[str, Any] = {key: dict(value) if isinstance(value, Mapping) else value for key, value in data.items()}
    faults = _apply_overrides(raw, overrides or {})
    assumptions = _fill_defaults(raw, overrides or {})
    tables = [*_TABLES, "sources"]
    faults += [
        Fault(key, raw[key], "is not a key of a design file", suggest(key, tables), file)
        for key in raw if key not in tables
    ]  # fmt: skip
    found: dict[str, Any] = {}
    for name, record in (*_TABLES.items(), ("sources", dict[str, str])):
        if name not in raw:
            if name in _NEEDED:
                faults.append(Fault(name, None, "is missing", "Add it; docs/design-files.md lists every key.", file))
            continue
        try:
            found[name] = TypeAdapter(record).validate_python(raw[name])
        except ValidationError as error:
            faults += [_fault(name, detail, file) for detail in error.errors()]
    faults += _rules(raw, found, file)
    if faults:
        raise InputError(*faults)
    return Design(**found, assumptions=tuple(assumptions))


def known_keys() -> list[str]:
    """Return the dotted keys a design file may hold, `sources` aside."""
    return [f"{table}.{f.name}" for table, record in _TABLES.items() for f in fields(record)]


def _apply_overrides(raw: dict[str, Any], overrides: Mapping[str, Any]) -> list[Fault]:
    faults = []
    for key, value in overrides.items():
        table, _, name = key.partition(".")
        if not (key in known_keys() or (key.startswith("chip.flops.") and key.count(".") == 2)):
            faults.append(Fault(f"override {key}", value, "is not a key of a design file", suggest(key, known_keys())))
            continue
        target = raw.setdefault(table, {})
        if not isinstance(target, dict):
            continue  # validation says that it is no table
        if name.startswith("flops."):
            target, name = target.setdefault("flops", {}), name.removeprefix("flops.")
        target[name] = value
    return faults


def _fill_defaults(raw: dict[str, Any], overrides: Mapping[str, Any]) -> list[str]:
    """Fill in the latencies and say everything that the file leaves to a default or marks assumed."""
    said = [ANNOUNCED] if _stated(raw, "design.status") == "announced" else []
    for key, default in DEFAULTS.items():
        table, _, name = key.partition(".")
        if isinstance(raw.get(table), dict) and name not in raw[table]:
            raw[table][name] = default
            said.append(f"{key} = {default} per link: assumed, the design states none")
    for key in _REPORTED:
        table, _, name = key.partition(".")
        if isinstance(raw.get(table), dict) and name not in raw[table]:
            usual = next(f.default for f in fields(_TABLES[table]) if f.name == name)
            said.append(f"{key} = {usual}: the default, the design states none")
    sources = raw.get("sources")
    for key, source in sources.items() if isinstance(sources, dict) else ():
        if isinstance(source, str) and source.startswith("assumed") and key not in overrides:
            value = _stated(raw, key)
            said.append(f"{key}{'' if value is None else f' = {value}'}: {source}")
    said += [f"{key} = {value}: overridden" for key, value in overrides.items()]
    return said


def _stated(raw: Mapping[str, Any], key: str) -> Any:
    """Return what the file states for a dotted key, a table as one text; None where it does not."""
    value: Any = raw
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, Mapping) else value


def _fault(table: str, detail: Any, file: str | None) -> Fault:
    place = ".".join([table, *(str(part) for part in detail["loc"])])
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        first = cause.faults[0]
        return Fault(place, first.value, first.rule, first.cure, file)
    if detail["type"] == "missing":
        return Fault(place, None, "is missing", "Add it; docs/design-files.md lists every key.", file)
    if detail["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        known = [key for key in known_keys() if key.startswith(f"{table}.")]
        return Fault(place, detail["input"], "is not a key of a design file", suggest(place, known), file)
    rule = detail["msg"][0].lower() + detail["msg"][1:]
    return Fault(place, detail["input"], rule, "Correct the value.", file)


def _rules(raw: Mapping[str, Any], found: Mapping[str, Any], file: str | None) -> list[Fault]:
    """Rules that span fields, as far as the fields they need are right."""
    faults = []
    rates = raw["chip"].get("flops") if isinstance(raw.get("chip"), dict) else None
    if isinstance(rates, dict):
        known = f"Known: {', '.join(FLOPS_KEYS)}."
        if not rates:
            faults.append(Fault("chip.flops", rates, "needs at least one dense rate", known, file))
        for key in rates:
            if key not in FLOPS_KEYS:
                cure = suggest(str(key), FLOPS_KEYS)
                faults.append(Fault(f"chip.flops.{key}", rates[key], "is not a dtype with a rate", cure, file))
    faults += _host_rule(raw, file)
    for table, known_shapes, what in (("scale_up", SHAPES, "shape"), ("scale_out", FABRICS, "fabric")):
        shape = raw[table].get("shape") if isinstance(raw.get(table), dict) else None
        if isinstance(shape, str) and shape and shape not in known_shapes:
            faults.append(Fault(f"{table}.shape", shape, f"is not a known {what}", suggest(shape, known_shapes), file))
    for key in found.get("sources", ()):
        if not any(key == known or key.startswith(f"{known}.") for known in known_keys()):
            cure = suggest(key, known_keys())
            faults.append(Fault(f"sources.{key!r}", raw["sources"][key], "is a source of no key", cure, file))
    if "scale_up" in found:
        faults += [replace(fault, file=file) for fault in shape_faults(found["scale_up"])]
    return faults


def _host_rule(raw: Mapping[str, Any], file: str | None) -> list[Fault]:
    table = raw.get("design")
    per_host, size = (table.get("gpus_per_host"), table.get("domain_size")) if isinstance(table, dict) else (None, None)
    if not (isinstance(per_host, int) and isinstance(size, int) and size > 0):
        return []
    if per_host <= size or per_host % size == 0:
        return []
    rule = f"must be within, or a multiple of domain_size {size}"
    return [Fault("design.gpus_per_host", per_host, rule, "Correct it or leave it out.", file)]
