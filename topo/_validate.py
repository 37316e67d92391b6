"""What does a design file say? Its tables validated once, all faults at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from topo._design import ANNOUNCED, DEFAULTS, FLOPS_KEYS, Chip, Design, Overview, ScaleOut, ScaleUp, Slices
from topo._errors import Fault, InputError, suggest
from topo._joins import FABRICS
from topo._shapes import SHAPES, resolved, shape_faults

__all__ = ["design_from_mapping", "slices_of"]

_TABLES: dict[str, type] = {
    "design": Overview, "chip": Chip, "scale_up": ScaleUp, "scale_out": ScaleOut, "slices": Slices,
}  # fmt: skip
_NEEDED = ("design", "chip", "scale_up")
#: Tables with a `shape`, what its kinds are called, and their rows.
_SHAPED: dict[str, tuple[str, Mapping[str, Any]]] = {"scale_up": ("shape", SHAPES), "scale_out": ("fabric", FABRICS)}
#: Keys that mean the same for every shape which takes them.
_SAME_ON_ALL = {"radix", "oversubscription"}
#: Keys whose defaults change numbers: filled in only with a line in `assumptions`.
_REPORTED = ("scale_out.shape", "scale_out.radix", "scale_out.oversubscription")

#: An adapter is dear to make.
_adapter = cache(TypeAdapter)


def design_from_mapping(
    data: Mapping[str, Any], *, overrides: Mapping[str, Any] | None = None, file: str | None = None
) -> Design:
    """Return the validated design of a parsed TOML file.

    Parameters
    ----------
    data : mapping
        Tables design, chip, scale_up, and if wanted scale_out, slices, sources.
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
    left_out = _leave_out(data, raw, overrides or {})
    assumptions = _fill_defaults(raw, overrides or {}) + left_out
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
        table, strange = _sorted_keys(name, raw[name], file)
        faults += strange
        try:
            found[name] = _adapter(record).validate_python(table)
        except ValidationError as error:
            faults += [_fault(name, detail, file) for detail in error.errors()]
    faults += _rules(raw, found, file)
    if not faults:
        found["scale_up"] = resolved(found["scale_up"], found["design"].domain_size)
        return Design(**found, assumptions=tuple(assumptions))
    raise InputError(*faults)


def slices_of(data: Mapping[str, Any]) -> Slices:
    """Return the table [slices] of a parsed TOML file.

    Raises
    ------
    InputError
        It has none.
    """
    if "slices" not in data:
        rule = "has no [slices]: it is no pod of which parts can be named"
        raise InputError(Fault("design", data["design"]["name"], rule, "Name the design alone."))
    slices: Slices = _adapter(Slices).validate_python(data["slices"])
    return slices


def known_keys() -> list[str]:
    """Return the dotted keys a design file may hold, `sources` aside."""
    own = [f"{table}.{name}" for table in _TABLES for name in _fields(table)]
    special = [f"{t}.{key}" for t, (_, rows) in _SHAPED.items() for row in rows.values() for key in row.keys]
    return list(dict.fromkeys(own + special))


def _fields(table: str) -> list[str]:
    return [f.name for f in fields(_TABLES[table]) if f.name != "parameters"]


def _shape_of(name: str, table: Mapping[str, Any]) -> Any:
    """Return the row of the shape that a table names; None where it names none that is known."""
    usual = next((f.default for f in fields(_TABLES[name]) if f.name == "shape"), None)
    shape = table.get("shape", usual)
    return _SHAPED[name][1].get(shape) if isinstance(shape, str) else None


def _sorted_keys(name: str, table: Any, file: str | None) -> tuple[Any, list[Fault]]:
    """Return a table with the keys that only its shape takes set apart, and those that it does not take."""
    if name not in _SHAPED or not isinstance(table, Mapping):
        return table, []
    row = _shape_of(name, table)
    special = {key for each in _SHAPED[name][1].values() for key in each.keys}
    own, parameters, faults = dict[str, Any](), dict[str, Any](), list[Fault]()
    for key, value in table.items():
        if row is not None and key in special and key not in row.keys:
            shape = table.get("shape", "rail_optimised")
            taken = f"It takes {', '.join(row.keys)}." if row.keys else "Leave it out."
            faults.append(Fault(f"{name}.{key}", value, f"is no key of {shape}", taken, file))
        elif key in special and (row is None or row.bare):
            parameters[key] = value
        elif key == "parameters":
            known = [k for k in known_keys() if k.startswith(f"{name}.")]
            faults.append(Fault(f"{name}.{key}", value, "is not a key of a design file", suggest(key, known), file))
        else:
            own[key] = value
    return own | {"parameters": parameters}, faults


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


def _leave_out(data: Mapping[str, Any], raw: dict[str, Any], overrides: Mapping[str, Any]) -> list[str]:
    """Take out what a file states for its own shape, with its sources, where another shape is asked for; say so."""
    said = []
    for table, (_, rows) in _SHAPED.items():
        row, before = (_shape_of(table, each[table]) if _is_table(each, table) else None for each in (raw, data))
        if row is None or before in (row, None):
            continue
        unused = {key for each in rows.values() for key in each.keys} - _SAME_ON_ALL.intersection(row.keys)
        if table == "scale_up":
            unused |= {"host_block"} | (set() if row.switches else {"reduces", "multicasts"})
        for key in [key for key in raw[table] if key in unused and f"{table}.{key}" not in overrides]:
            said.append(f"{table}.{key} = {raw[table].pop(key)}: left out, it is for the design's own shape")
            if _is_table(raw, "sources"):
                raw["sources"].pop(f"{table}.{key}", None)
    return said


def _is_table(raw: Mapping[str, Any], name: str) -> bool:
    return isinstance(raw.get(name), Mapping)


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
        if isinstance(raw.get(table), dict) and name not in raw[table] and _takes(raw[table], name):
            usual = next(f.default for f in fields(_TABLES[table]) if f.name == name)
            said.append(f"{key} = {usual}: the default, the design states none")
    sources = raw.get("sources")
    for key, source in sources.items() if isinstance(sources, dict) else ():
        if isinstance(source, str) and source.startswith("assumed") and key not in overrides:
            value = _stated(raw, key)
            said.append(f"{key}{'' if value is None else f' = {value}'}: {source}")
    out = raw.get("scale_out")
    if isinstance(out, dict) and out.get("gpus_per_nic", 1) != 1 and "pcie_bandwidth" not in out:
        rate = out.get("bandwidth")
        said.append(f"scale_out.pcie_bandwidth = {rate}, the NIC's own rate: assumed, the design states none")
    said += [f"{key} = {value}: overridden" for key, value in overrides.items()]
    return said


def _takes(table: Mapping[str, Any], name: str) -> bool:
    """Whether the fabric of a [scale_out] has a default for a key."""
    row = _shape_of("scale_out", table)
    return name == "shape" or (row is not None and not row.bare and name in row.keys)


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
    for table, (what, rows) in _SHAPED.items():
        shape = raw[table].get("shape") if isinstance(raw.get(table), dict) else None
        if isinstance(shape, str) and shape and shape not in rows:
            faults.append(Fault(f"{table}.shape", shape, f"is not a known {what}", suggest(shape, rows), file))
    for key in found.get("sources", ()):
        if not any(key == known or key.startswith(f"{known}.") for known in known_keys()):
            cure = suggest(key, known_keys())
            faults.append(Fault(f"sources.{key!r}", raw["sources"][key], "is a source of no key", cure, file))
    more = [*_scale_up_rules(raw, found), *_scale_out_rules(found)]
    return faults + [replace(fault, file=file) for fault in more]


def _scale_up_rules(raw: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Fault]:
    if "scale_up" not in found:
        return
    up, stated = found["scale_up"], raw["scale_up"]
    if "bandwidth" not in stated and "link_bandwidth" not in stated:
        cure = "Add it, or link_bandwidth; docs/design-files.md lists every key."
        yield Fault("scale_up.bandwidth", None, "is missing", cure)
    if "bandwidth" in stated and "link_bandwidth" in stated:
        rule = "bandwidth states it already"
        yield Fault("scale_up.link_bandwidth", stated["link_bandwidth"], rule, "Leave one of them out.")
    if up.shape in SHAPES and not SHAPES[up.shape].switches:
        for key in ("reduces", "multicasts"):
            if getattr(up, key):
                yield Fault(f"scale_up.{key}", True, f"{up.shape} has no switches", "Leave it out.")
    yield from shape_faults(up)


def _scale_out_rules(found: Mapping[str, Any]) -> Iterator[Fault]:
    if "scale_out" not in found:
        return
    out = found["scale_out"]
    if out.nics_per_gpu > 1 and out.gpus_per_nic > 1:
        rule = "a GPU has several NICs or shares one"
        yield Fault("scale_out.gpus_per_nic", out.gpus_per_nic, rule, "Leave it out, or nics_per_gpu.")
    if out.pcie_bandwidth is not None and out.gpus_per_nic == 1:
        rule = "is for shared NICs: a NIC of one GPU is the edge to its leaf"
        yield Fault("scale_out.pcie_bandwidth", out.pcie_bandwidth, rule, "Leave it out.")
    if isinstance(out.oversubscription, tuple) and len(out.oversubscription) > 2:
        rule = "has one number for leaves and one for spines"
        yield Fault("scale_out.oversubscription", list(out.oversubscription), rule, "Give one or two.")


def _host_rule(raw: Mapping[str, Any], file: str | None) -> list[Fault]:
    table = raw.get("design")
    per_host, size = (table.get("gpus_per_host"), table.get("domain_size")) if isinstance(table, dict) else (None, None)
    if not (isinstance(per_host, int) and isinstance(size, int) and size > 0):
        return []
    if per_host <= size or per_host % size == 0:
        return []
    rule = f"must be within, or a multiple of domain_size {size}"
    return [Fault("design.gpus_per_host", per_host, rule, "Correct it or leave it out.", file)]
