"""The command `rackbound place --load`: experts placed for what an engine recorded, beside how they are now."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from placement import PLAN_FORMATS, BalanceCurve, Improvement, improve, read_rules, write_plan
from placement import ExpertLoads as Loads
from rackbound._graphs import fabric_of
from rackbound._options import workload_of
from rackbound._output import dumped, emit_json, envelope, note, require_folder, say, show_table, whole_folder
from rackbound._place_curve import balances_of, curve_of, show_curve
from rackbound._recorded import plan_of, recorded
from rackbound._reports import assumed
from serving import Model, load_model
from topo import Fabric, Fault, InputError, suggest, together
from topo.units import format_quantity

__all__ = ["place_load"]

_USUAL = {"replicas": 0, "sharing": "equal", "balance": 1.01, "format": "plan"}
#: What `rackbound place` takes without a comparison alone, and what to give instead.
_OTHERS = {"time_limit": "Leave it out."}
#: Rows of --explain.
_LAYERS, _EXPERTS = 5, 8


def place_load(
    design: str, name: str, context: int, batches: tuple[int | None, int | None], domains: Any,
    overrides: dict[str, Any], asked: dict[str, Any], as_json: bool, assume: dict[str, Any],
) -> None:  # fmt: skip
    """Place for recorded loads, write what is asked for and report."""
    asked = asked | {key: usual for key, usual in _USUAL.items() if asked[key] is None}
    workload, model, fabric, *_ = together(
        partial(workload_of, context, *batches),
        partial(load_model, name, assume),
        partial(fabric_of, design, domains, 1, overrides),
        partial(_require_known, asked),
        lambda: require_folder(asked["out"]) if asked["out"] is not None else None,
    )
    loads, current = _loads(asked["load"], model), None
    objective, enough, balances, rules = together(
        partial(_objective, asked["objective"]),
        lambda: _numbers(asked["enough"], "--enough"),
        lambda: _balances(asked["curve"], fabric, asked["ep"]),
        lambda: None if asked["rules"] is None else read_rules(asked["rules"], model=model),
    )
    if asked["current"] is not None:
        current = plan_of(asked["current"], asked["ep"] or fabric.n_ranks, model)
    found = improve(
        fabric, model, workload, loads, ep=asked["ep"], replicas=asked["replicas"], slots=asked["slots"],
        sharing=asked["sharing"], balance=asked["balance"], objective=objective, enough=enough, rules=rules,
        current=current, profile=asked["profile"],
    )  # fmt: skip
    said = [*found.after.step.assumptions, *found.notes]
    if asked["save"] is not None:
        said += write_plan(found.after.plan, asked["save"], asked["format"], model=model)
        note(f"wrote {asked['save']} ({asked['format']})")
    inputs = {
        "design": design,
        "model": name,
        "assume": assume,
        "context": context,
        "batch": batches[0],
        "batch_per_gpu": workload.batch_per_gpu,
        "domains": len(fabric.domain_sizes),
    } | {key: value for key, value in asked.items() if key not in _OTHERS}
    curve = None if balances is None else curve_of(found, loads, balances, asked["replicas"])
    results = found.to_dict() | {"curve": None if curve is None else curve.to_dict()}
    whole = envelope("place-load/1", inputs | {"settings": overrides}, said, results)
    if asked["out"] is not None:
        _draw(asked["out"], found, curve, whole, fabric)
    if as_json:
        emit_json(whole)
        return
    _report(design, model, fabric, loads, found, said, asked["explain"], curve)


def _require_known(asked: dict[str, Any]) -> None:
    """Refuse what could only be said after the work."""
    faults = [Fault(f"--{key.replace('_', '-')}", asked[key], "is for plans without a comparison", _OTHERS[key])
              for key in _OTHERS if asked[key] is not None]  # fmt: skip
    if asked["pp"] not in (None, 1):
        faults.append(Fault("--pp", asked["pp"], "is for plans without a comparison", "Leave it out."))
    if asked["format"] != "plan" and asked["save"] is None:
        faults.append(Fault("--format", asked["format"], "needs a file to write", "Give --save."))
    if asked["format"] not in PLAN_FORMATS:
        faults.append(Fault("--format", asked["format"], "is not known", suggest(asked["format"], PLAN_FORMATS)))
    if asked["save"] is not None and not Path(asked["save"]).absolute().parent.is_dir():
        faults.append(Fault("--save", asked["save"], "lies in no folder", "Make the folder first."))
    if faults:
        raise InputError(*faults)


def _objective(text: str | None) -> str | tuple[str, ...] | dict[str, float] | None:
    """Return the objectives of --objective: names in turn, or weights."""
    if text is None:
        return None
    return _numbers(text, "--objective") if "=" in text else tuple(part.strip() for part in text.split(","))


def _balances(text: str | None, fabric: Fabric, ep: int | None) -> tuple[float, ...] | None:
    """Return the balances of --curve; there is none within one domain."""
    found, ranks = balances_of(text), min(ep or fabric.n_ranks, fabric.n_ranks)
    if found is not None and len(np.unique(fabric.rank_domain[fabric.group(ranks)])) < 2:
        raise InputError(Fault("--curve", text, "needs GPUs in several domains", "Give --domains 2, or leave it out."))
    return found


def _numbers(text: str | None, place: str) -> dict[str, float] | None:
    """Return names and their numbers, as heaviest_gpu=1.02,crossing=0.2."""
    if text is None:
        return None
    parts = [part.partition("=") for part in text.split(",")]
    try:
        found = {name.strip(): float(value) for name, _, value in parts}
    except ValueError:
        raise InputError(Fault(place, text, "must be names with numbers", "Write heaviest_gpu=1.02.")) from None
    if len(found) < len(parts):
        raise InputError(Fault(place, text, "gives a name twice", "Give each once."))
    return found


def _loads(path: str | None, model: Model) -> Loads:
    if (found := recorded(path, model)) is not None:
        return found
    uniform = np.ones((max(1, model.n_moe_layers), max(1, model.n_experts)))
    return Loads(uniform, None, None, None, "uniform", ("uniform expert load: no --load",))


# --- report ----------------------------------------------------------------------------------------------------------


def _report(
    design: str, model: Model, fabric: Fabric, loads: Loads, found: Improvement, said: list[str], explain: bool,
    curve: BalanceCurve | None,
) -> None:  # fmt: skip
    ep, count = found.after.plan.ep, found.after.plan.slot_expert.shape[1]
    say(f"{model.name} on {design} x {len(fabric.domain_sizes)}, {count} slots a layer on {ep} GPUs: {found.status}")
    if found.balance is not None:
        say(f"  fewest bytes between domains with the heaviest GPU within {found.balance:g} of the mean")
    say(f"  {loads!r}\n")
    rows = [(name, text(found.before), text(found.after), _change(value(found.before), value(found.after)))
            for name, value, text in _ROWS]  # fmt: skip
    show_table("One step, all layers", ("", "before", "after", "change"), rows)
    if found.after.step.fits:
        say(f"  a GPU has memory for {found.room:,} more experts of every layer")
    else:
        held = found.after.step.experts_per_gpu
        fewer = f"; {-found.room:,} experts of every layer fewer on a GPU would do" if -found.room < held else ""
        say(f"  does not fit: {found.after.step.reason}{fewer}")
    if explain:
        _explain(found)
    if curve is not None:
        say()
        show_curve(curve)
    assumed(said)


def _bytes(x: float) -> str:
    return format_quantity(x, "bytes")


def _seconds(x: float) -> str:
    return format_quantity(x, "seconds")


#: What is compared: name, value, and how it reads.
_ROWS: tuple[tuple[str, Any, Any], ...] = (
    ("heaviest GPU over the mean, average layer", lambda c: c.heaviest, lambda c: f"{c.heaviest:.4f}"),
    ("the same, worst layer", lambda c: c.worst, lambda c: f"{c.worst:.4f}"),
    ("bytes between domains", lambda c: c.crossing_bytes, lambda c: _bytes(c.crossing_bytes)),
    (
        "busiest link, dispatch and combine",
        lambda c: c.hot_seconds,
        lambda c: f"{_seconds(c.hot_seconds)} {c.hot_link}",
    ),
    ("dispatch and combine", lambda c: c.wire_seconds, lambda c: _seconds(c.wire_seconds)),
    ("step, one operation after the other", lambda c: c.step_seconds, lambda c: _seconds(c.step_seconds)),
    ("memory per GPU", lambda c: c.step.memory_per_gpu, lambda c: _bytes(c.step.memory_per_gpu)),
)


def _change(before: float, after: float) -> str:
    return "" if before == 0 else f"{100 * (after / before - 1):+.3g} %"


def _explain(found: Improvement) -> None:
    """Say which layers are heaviest, which experts have copies, what goes between domains and what moves."""
    before, after = found.before, found.after
    heavy = after.gpu_load.max(axis=1)
    both = np.concatenate([before.gpu_load, after.gpu_load, after.plan.slot_expert, after.plan.slot_rank], axis=1)
    first, alike = np.unique(both, axis=0, return_index=True, return_counts=True)[1:]
    many = dict(zip(first.tolist(), alike.tolist(), strict=True))
    worst = first[np.lexsort((first, -heavy[first]))][:_LAYERS]
    show_table(
        "Heaviest layers", ("MoE layer", "before", "after", "GPU", "its experts", "crosses before", "crosses after"),
        [(_layers(i, many[i]), f"{before.gpu_load[i].max():.4f}", f"{heavy[i]:.4f}",
          str(gpu := int(after.gpu_load[i].argmax())),
          " ".join(map(str, after.plan.slot_expert[i][after.plan.slot_rank[i] == gpu])),
          f"{100 * before.crossing[i]:.3g} %", f"{100 * after.crossing[i]:.3g} %") for i in worst],
    )  # fmt: skip
    copies = after.plan.logcnt
    spread = [(int(i), int(e)) for i, e in np.argwhere(copies > 1) if int(i) in many]
    spread.sort(key=lambda at: (-copies[at], at))
    if spread:
        show_table("Experts with most copies", ("MoE layer", "expert", "copies", "GPUs"),
                   [(_layers(i, many[i]), str(e), str(copies[i, e]),
                     " ".join(map(str, after.plan.slot_rank[i][after.plan.slot_expert[i] == e])))
                    for i, e in spread[:_EXPERTS]])  # fmt: skip
    moves = found.migration
    time = "" if moves.seconds is None else f": {_seconds(moves.seconds)} over idle wires"
    say(f"  to get there GPUs load {moves.copies:,} copies of experts, {_bytes(moves.n_bytes)} in all, "
        f"{_bytes(moves.across_bytes)} from other domains{time}")  # fmt: skip


def _layers(first: int, alike: int) -> str:
    """Return a layer's number, and how many are like it."""
    return str(first) if alike == 1 else f"{first} and {alike - 1} alike"


def _draw(out: str, found: Improvement, curve: BalanceCurve | None, whole: dict[str, Any], fabric: Fabric) -> None:
    import figures

    worst = int(np.argmax(found.before.crossing if found.before.crossing.any() else found.before.gpu_load.max(axis=1)))
    longest = max(found.before.traffic.seconds, found.after.traffic.seconds)
    with whole_folder(out) as folder:
        figures.save(figures.draw_placement(found.after, layer=worst), folder / "placement")
        for name, one in (("before", found.before), ("after", found.after)):
            same = replace(one.traffic, seconds=longest)  # so that a colour is as many bytes in both
            figures.save(figures.draw_topology(fabric, same), folder / f"traffic-{name}")
        if curve is not None:
            figures.save(figures.draw_balance(curve), folder / "curve")
        (folder / "place.json").write_text(dumped(whole), encoding="utf-8")
    note(f"wrote place.json and {6 if curve is None else 8} figures into {out}")
