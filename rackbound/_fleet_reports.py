"""What is printed of a fleet, and of caches on their way?"""

from __future__ import annotations

from rackbound._output import say, show_table
from rackbound._reports import assumed
from serving import Fleet, Handover, Layout, Model, Pool, Step, Traffic, Workload
from topo.units import format_quantity

__all__ = ["handover_report", "size_report"]


def size_report(design: str, model: Model, traffic: Traffic, fleet: Fleet, rent: float) -> None:
    """Print racks, dollars, pools and losses."""
    say(f"{model.name} on {design}: {traffic.requests_per_second:,g} requests/s, {traffic.mean_prompt:,.4g} tokens in "
        f"and {traffic.mean_answer:,.4g} out on average")  # fmt: skip
    if fleet.prefill is None or fleet.decode is None or fleet.handover is None:
        say(f"  cannot be served as promised: {fleet.binding}")
        assumed(fleet.assumptions)
        return
    spares = f", {fleet.spare_racks} of them spare" if fleet.spare_racks else ""
    say(f"  {fleet.racks:,} racks{spares}: {fleet.gpus:,} GPUs; {_power(fleet)}")
    say(f"  {fleet.dollars_per_hour:,.0f} $/h at {rent:g} $ per GPU and hour; {_dollars(fleet)}")
    say(f"  promises: {fleet.binding} (a prompt of {traffic.long_prompt:,} tokens that has just missed a pass)")
    say(f"  one unit that answers, never idle, serves {_part(fleet.unit_share)} of the traffic; "
        f"{fleet.pool_ratio:.3g} GPUs read for each that answers\n")  # fmt: skip
    pools = (("prefill", fleet.prefill, "a pass"), ("decode", fleet.decode, "a token"))
    show_table(
        "Pools", ("pool", "units", "GPUs", "a unit's layout", "batch", "time", "requests/s of a unit"),
        [(name, f"{pool.units:,}", f"{pool.gpus:,}", _layout(pool.layout), _batch(name, pool),
          f"{format_quantity(pool.seconds, 'seconds')} {what}", f"{pool.rate:,.4g}") for name, pool, what in pools],
    )  # fmt: skip
    say(f"Between them: {_sent(fleet.handover)}\n")
    show_table(
        "When a part is lost", ("part", "of decode", "still served", "why"),
        [(one.part, f"{100 * one.share:.3g} %", "yes" if one.served else "no", one.note) for one in fleet.losses],
    )  # fmt: skip
    assumed(fleet.assumptions)


def handover_report(
    where: str, model: Model, work: Workload, first: Layout, second: Layout, passed: Step, found: Handover,
    limit: int | None,
) -> None:  # fmt: skip
    """Print what sending adds to a pass, and from where on it is the longer of the two."""
    fits = "" if passed.fits else f", which does not fit: {passed.reason}"
    say(f"{model.name} on {where}: {work.batch:,} prompts of {work.context:,} tokens, {work.cached:,} of them cached, "
        f"read at {_layout(first)}{fits}")  # fmt: skip
    say(f"  the pass takes {format_quantity(passed.seconds, 'seconds')}, bound by {passed.binding}")
    say(f"  to {_layout(second)}: {_sent(found)}")
    longer = "sending is the longer of the two" if found.dominates else "the pass is the longer of the two"
    say(f"  {longer}; {_limit(work, limit)}")
    assumed(passed.assumptions)


def _limit(work: Workload, limit: int | None) -> str:
    if limit is None:
        return "sending never is, however many tokens are cached"
    if limit == 0:
        return "sending is, even with nothing cached"
    return f"sending is from {limit:,} cached tokens on ({100 * limit / work.context:.3g} % of the prompt)"


def _sent(one: Handover) -> str:
    alone, more = (format_quantity(value, "seconds") for value in (one.send_seconds, one.exposed_seconds))
    caches = format_quantity(one.n_bytes, "bytes")
    return (f"{caches} of caches a pass take {alone} alone and add {more} when sent layer by layer; "
            f"{one.binding_link} is busy {100 * one.link_share:.3g} % of the time")  # fmt: skip


def _power(fleet: Fleet) -> str:
    return "no power stated" if fleet.watts is None else f"{fleet.watts / 1e3:,.0f} kW of what the design states"


def _dollars(fleet: Fleet) -> str:
    each = fleet.dollars_per_million or {}
    return "$ per million tokens: " + ", ".join(f"{name} {dollars:.3g}" for name, dollars in each.items())


def _part(share: float) -> str:
    return f"{share:,.3g} times all" if share >= 1 else f"1/{1 / share:,.4g}"


def _layout(layout: Layout) -> str:
    cuts = {"EP": layout.ep, "TP": layout.tp, "PP": layout.pp, "CP": layout.cp}
    return ", ".join(f"{name} {n}" for name, n in cuts.items() if n > 1 or name == "EP")


def _batch(name: str, pool: Pool) -> str:
    return f"{pool.batch:,} prompts" if name == "prefill" else f"{pool.batch:,} per GPU"
