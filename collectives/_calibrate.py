"""Which constants does this machine have? A profile fitted to the logs of its collectives."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations, product
from pathlib import Path

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from collectives._calibration import Calibration, Curve, Untold
from collectives._constants import CONSTANTS
from collectives._features import bulk_features, scaled
from collectives._fitting import Fit, Law, fit, sensitivity
from collectives._log import read_log
from collectives._log_records import Log, LogRow, Sweep
from collectives._log_rows import library_on
from collectives._lower_bound import lower_bound
from collectives._matching import profile_for
from collectives._predict import LAWS, Features, stacked
from collectives._profile import Profile, load_profile
from topo import Fabric, Fault, InputError

__all__ = ["calibrate"]

Floats = NDArray[np.float64]
#: Logs say where one machine stands, not how it differs from others: this factor stays.
_NOT_FITTED = ("latency.environment",)
#: Laws of collectives that send bytes.
_OF_BYTES = ("collective", "nccl-model")
#: Sizes asked which of them a constant shows at: 8 B to 16 GiB.
_PROBES = tuple(2**k for k in range(3, 35))
_MOST_RANKS = 512
_PROBED = ("all_reduce", "all_gather", "all_to_all")
#: A constant shows at a size if doubling it changes the time there by a tenth.
_SHOWS = 0.1
#: From fewer collectives and numbers of ranks nothing is left out to tell the band.
_LEAST_TEAMS = 3
#: Runs of the same that differ by more at the median are not of one machine.
_ALIKE = 1.3
#: Size a bound is proven at [bytes].
_UNIT = 1e9


@dataclass(frozen=True, eq=False)
class _Run:
    """One sweep on the graph: its rows that count, and what its wires need at one byte."""

    log: Log
    sweep: Sweep
    rows: tuple[LogRow, ...]
    per_byte: Features

    def features(self, sizes: Iterable[float]) -> Features:
        return stacked([scaled(self.per_byte, size) for size in sizes])


@dataclass(frozen=True, eq=False)
class _Probe:
    """A collective that could have been run, at every size of `_PROBES`."""

    kind: str
    n_ranks: int
    features: Features


def calibrate(
    logs: str | os.PathLike[str] | Log | Sequence[str | os.PathLike[str] | Log],
    graph: nx.Graph[str] | Fabric,
    *,
    profile: str | os.PathLike[str] | Profile | None = None,
    name: str = "calibrated",
    fitted: date | None = None,
) -> Calibration:
    """Return a profile fitted to logs, with standard errors, and what the logs do not tell.

    Parameters
    ----------
    logs : path, Log or sequence of them
        As `read_log` reads or returns.
    graph : networkx.Graph or Fabric
        The machine they were run on, with at least as many ranks.
    profile : str, path or Profile, optional
        Where the fit starts; constants that the logs do not tell stay there. By default
        that of the chip.
    name : str, optional
        Of the new profile.
    fitted : date, optional
        Today by default.

    Returns
    -------
    Calibration
        The fit is least squares of log(predicted / measured), so that small sizes count as
        much as large ones; beyond 10 % a row counts by its distance, not its square. A row
        whose check failed is left out.

    Raises
    ------
    InputError
        A log that leaves open which collective or how many ranks, more ranks than the graph
        has, no row of a collective that the profile's law predicts.
    """
    listed = [logs] if isinstance(logs, str | os.PathLike | Log) else list(logs)
    read = [one if isinstance(one, Log) else read_log(one) for one in listed]
    fabric = Fabric.from_graph(graph)
    start, chosen = _of_chip(fabric) if profile is None else (load_profile(profile), [])
    _require(start, read, fabric)
    runs, notes = _runs(read, fabric)
    found, law, probes = _fitted(start, runs), _law_of(start, runs), _probes(fabric)
    band, whose = _band(start, runs, found)
    made = replace(
        start, name=name, version=1, source=_source(start, runs), fitted=fitted or date.today(), band=band,
        chips=tuple(sorted(set(fabric.chip) - {""})), bandwidth=float(runs[0].per_byte.bandwidth[0]),
        constants=found.constants, errors=found.errors, environments={},
    )  # fmt: skip
    return Calibration(
        made, start.name, tuple(_curves(runs, start, found.constants)),
        tuple(_untold(start, law, probes, constant) for constant in found.untold),
        tuple(dict.fromkeys([*notes, *chosen, *_at_odds(runs), *_impossible(runs, fabric), whose])),
    )  # fmt: skip


def _require(start: Profile, logs: Sequence[Log], fabric: Fabric) -> None:
    """Refuse a profile of another law, logs that leave something open, and ranks the graph does not have."""
    if start.law not in _OF_BYTES:
        rule = f"has the law {start.law}, which does not predict what logs are of"
        raise InputError(Fault("profile", start.name, rule, f"Take a profile of the law {' or '.join(_OF_BYTES)}."))
    faults = [fault for log in logs for fault in (*log.missing, *_too_many(log, fabric))]
    if faults:
        raise InputError(*faults)


def _of_chip(fabric: Fabric) -> tuple[Profile, list[str]]:
    """Return the profile that ships for collectives of bytes on a fabric's chip, and what is not as fitted."""
    chip = fabric.chip[0]
    bandwidth = float(bulk_features(fabric, "all_gather", 1.0, fabric.rank_numbers(2)).bandwidth[0])
    profile, note = profile_for(library_on(chip), "collective", chip, bandwidth)
    return profile, [f"the fit starts from {profile.name}, by the chip {chip}", *([note] if note else [])]


def _too_many(log: Log, fabric: Fabric) -> Iterator[Fault]:
    for sweep in log.sweeps:
        if sweep.n_ranks is not None and not 2 <= sweep.n_ranks <= fabric.n_ranks:
            rule, cure = f"ranks took part, and the graph has {fabric.n_ranks}", "Give it more domains (--domains)."
            if sweep.n_ranks < 2:
                rule, cure = "rank took part: nothing was sent", "Build nccl-tests with MPI=1, or take more GPUs (-g)."
            yield Fault(f"line {sweep.rows[0].line}", sweep.n_ranks, rule, cure, log.file)


def _runs(logs: Sequence[Log], fabric: Fabric) -> tuple[list[_Run], list[str]]:
    """Return the sweeps that a law predicts, and notes of all that was left out."""
    runs, notes = [], [f"{log.file}: {note}" for log in logs for note in log.notes]
    known: dict[tuple[str, int], Features] = {}
    for log in logs:
        for sweep in log.sweeps:
            assert sweep.kind is not None
            assert sweep.n_ranks is not None
            rows = tuple(row for row in sweep.rows if not row.failed)
            key = sweep.kind, sweep.n_ranks
            try:
                if key not in known:
                    known[key] = bulk_features(fabric, sweep.kind, 1.0, fabric.rank_numbers(sweep.n_ranks))
            except InputError as error:
                notes.append(f"{log.file}: {sweep.kind} over {sweep.n_ranks} ranks is left out: {error}")
                continue
            if rows:
                runs.append(_Run(log, sweep, rows, known[key]))
    if not runs:
        raise InputError(
            Fault("logs", [log.file for log in logs], "have no row to fit", "; ".join(notes) or "Add logs.")
        )
    return runs, notes


def _at_odds(runs: Sequence[_Run]) -> Iterator[str]:
    """Say which runs of the same collective and ranks are not of the same machine."""
    for first, second in combinations(runs, 2):
        if (first.sweep.kind, first.sweep.n_ranks) == (second.sweep.kind, second.sweep.n_ranks):
            times = [{row.n_bytes: row.seconds for row in run.rows} for run in (first, second)]
            ratios = [abs(np.log(times[0][size] / times[1][size])) for size in times[0].keys() & times[1].keys()]
            if ratios and (factor := float(np.exp(np.median(ratios)))) > _ALIKE:
                what = f"{first.sweep.kind} over {first.sweep.n_ranks} ranks"
                yield (
                    f"two runs of {what} ({_place(first)}; {_place(second)}) are {factor:.2g} times apart at the same "
                    "sizes: no constants fit both; give one of them"
                )


def _impossible(runs: Sequence[_Run], fabric: Fabric) -> Iterator[str]:
    """Say which runs are faster than anything on this graph."""
    for run in runs:
        # A bound is a latency, and bytes over a cut: proven at one size it holds at every size.
        bound = lower_bound(fabric, run.sweep.kind, _UNIT, ranks=run.sweep.n_ranks, scope="any")  # type: ignore[arg-type]
        least = [bound.latency_seconds + bound.bandwidth_seconds * row.n_bytes / _UNIT for row in run.rows]
        faster = sum(row.seconds < seconds for row, seconds in zip(run.rows, least, strict=True))
        if faster:
            yield (
                f"{_place(run)}: {faster} rows of {run.sweep.kind} over {run.sweep.n_ranks} ranks are faster than any "
                "algorithm is on this graph: it is not of the machine they were run on"
            )


def _place(run: _Run) -> str:
    return f"{Path(run.log.file).name}, line {run.rows[0].line}"


def _law(start: Profile, features: Features) -> Law:
    return lambda constants: np.asarray(LAWS[start.law](constants, features))


def _law_of(start: Profile, runs: Sequence[_Run]) -> Law:
    return _law(start, stacked([run.features(row.n_bytes for row in run.rows) for run in runs]))


def _fitted(start: Profile, runs: Sequence[_Run]) -> Fit:
    measured = np.array([row.seconds for run in runs for row in run.rows])
    free = tuple(name for name in start.constants if name not in _NOT_FITTED)
    limits = {name: (CONSTANTS[start.law][name].least, CONSTANTS[start.law][name].most) for name in free}
    return fit(_law_of(start, runs), measured, start.constants, free, limits)


def _band(start: Profile, runs: Sequence[_Run], found: Fit) -> tuple[tuple[float, float], str]:
    """Return median and 90th percentile of the error to expect elsewhere, and whose they are."""
    teams: dict[tuple[str | None, int | None], list[_Run]] = {}
    for run in runs:
        teams.setdefault((run.sweep.kind, run.sweep.n_ranks), []).append(run)
    if len(teams) < _LEAST_TEAMS:
        inside = _quantiles(np.expm1(found.residuals))
        return (max(inside[0], start.band[0]), max(inside[1], start.band[1])), (
            f"the band is that of {start.name}, if not of the fit: fewer than {_LEAST_TEAMS} collectives and numbers "
            "of ranks do not say how far off others are"
        )
    off = []
    for left in teams.values():
        rest = _fitted(start, [run for run in runs if run not in left])
        measured = np.array([row.seconds for run in left for row in run.rows])
        off.append(_law_of(start, left)(rest.constants) / measured - 1)
    return _quantiles(np.concatenate(off)), "the band is of runs left out of the fit, a collective and ranks at a time"


def _quantiles(off: Floats) -> tuple[float, float]:
    return float(np.median(np.abs(off))), float(np.quantile(np.abs(off), 0.9))


def _source(start: Profile, runs: Sequence[_Run]) -> str:
    files = ", ".join(dict.fromkeys(Path(run.log.file).name for run in runs))
    return f"{sum(len(run.rows) for run in runs)} rows of {files}; from {start.name}, version {start.version}"


def _untold(start: Profile, law: Law, probes: Sequence[_Probe], constant: str) -> Untold:
    """Return why a constant is not told: others do the same to the rows, or they do not depend on it."""
    if not start.constants[constant]:
        return Untold(constant, together=False)
    if np.abs(sensitivity(law, start.constants, constant)).max() >= _SHOWS:
        return Untold(constant, together=True)
    if not probes:
        return Untold(constant, together=False)
    probed = _law(start, stacked([probe.features for probe in probes]))
    slopes = np.abs(sensitivity(probed, start.constants, constant))
    most = int(slopes.argmax())
    if slopes[most] < _SHOWS:
        return Untold(constant, together=False)
    probe, size = probes[most // len(_PROBES)], _PROBES[most % len(_PROBES)]
    return Untold(constant, False, probe.kind, probe.n_ranks, size)


def _probes(fabric: Fabric) -> list[_Probe]:
    """Return collectives over a domain and over all ranks, as far as they are quickly costed, at all sizes."""
    teams = dict.fromkeys(min(n, _MOST_RANKS) for n in (int(fabric.domain_sizes.max()), fabric.n_ranks))
    found = []
    for n_ranks, kind in product([n for n in teams if n > 1], _PROBED):
        with suppress(InputError):  # a graph on which that cannot be run
            row = bulk_features(fabric, kind, 1.0, fabric.rank_numbers(n_ranks))
            found.append(_Probe(kind, n_ranks, stacked([scaled(row, size) for size in _PROBES])))
    return found


def _curves(runs: Sequence[_Run], start: Profile, constants: Mapping[str, float]) -> Iterator[Curve]:
    for run in runs:
        law = _law(start, run.features(row.n_bytes for row in run.rows))
        yield Curve(
            run.log.file, str(run.sweep.kind), int(run.sweep.n_ranks or 0), int(run.per_byte.domains[0]),
            tuple(row.n_bytes for row in run.rows), tuple(row.seconds for row in run.rows),
            tuple(law(constants).tolist()), tuple(law(start.constants).tolist()),
        )  # fmt: skip
