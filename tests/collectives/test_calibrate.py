"""Does calibration find the constants that made the logs, and say which they do not tell?"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

import topo
from collectives import CONSTANTS, KINDS, Profile, calibrate, load_profile, read_log, validate, write_profile
from collectives._features import bulk_features, scaled
from collectives._predict import LAWS, stacked
from topo import Fabric, InputError

LOGS = Path(__file__).parent.parent / "data" / "logs"
FABRIC = Fabric.from_graph(topo.load("hgx-h100-8", 2))
START = load_profile("nccl-hopper")
SIZES = [2**k for k in range(6, 35)]


def log_of(
    profile: Profile, kind: str, n_ranks: int, path: Path, noise: float = 0.01, sizes: list[int] = SIZES,
    seed: int = 0, outliers: float = 0.0,
) -> Path:  # fmt: skip
    """A log as nccl-tests prints it, of times that a profile predicts, noise and outliers added."""
    row = bulk_features(FABRIC, kind, 1.0, FABRIC.rank_numbers(n_ranks))
    times = LAWS[profile.law](profile.constants, stacked([scaled(row, size) for size in sizes]))
    rng = np.random.default_rng(len(kind) + n_ranks + 1000 * seed)
    times = times * np.exp(noise * rng.standard_normal(len(sizes)))
    times = times * np.where(rng.random(len(sizes)) < outliers, 3.0, 1.0)
    share, redop = (1, "sum") if kind == "all_reduce" else (n_ranks, "none")
    lines = [f"# Collective test starting: {kind}_perf", "# size count type redop root time algbw busbw #wrong",
             "# (B) (elements) (us) (GB/s) (GB/s)"]  # fmt: skip
    for size, seconds in zip(sizes, times, strict=True):
        rate = size / seconds / 1e9
        busbw = rate * KINDS[kind].busbw(n_ranks)
        lines.append(f"{size} {size // 4 // share} float {redop} -1 {seconds * 1e6:.3f} {rate:.4f} {busbw:.4f} 0")
    path.write_text("\n".join(lines))
    return path


def shifted(seed: int) -> Profile:
    """A machine whose constants are a quarter off those of the start, at random."""
    shifts = np.exp(0.25 * np.random.default_rng(seed).standard_normal(len(START.constants)))
    rows = CONSTANTS[START.law]
    constants = {
        name: min(max(value * shift, rows[name].least), rows[name].most)
        for (name, value), shift in zip(START.constants.items(), shifts, strict=True)
    }
    return replace(START, constants=constants | {"latency.environment": START.constants["latency.environment"]})


@pytest.mark.parametrize("seed", range(2))
def test_the_machine_that_made_the_logs(seed: int, tmp_path: Path) -> None:
    machine = shifted(seed)
    runs = [("all_reduce", 8), ("all_gather", 8), ("all_reduce", 16), ("all_gather", 4)]
    logs = [log_of(machine, kind, n, tmp_path / f"{kind}{n}.txt") for kind, n in runs]
    found = calibrate(logs, FABRIC, profile=START, name="mine")
    assert found.n_rows == len(SIZES) * len(runs)
    assert found.median < 0.012
    assert found.start_median > 2 * found.median
    assert len(found.profile.errors) >= 4
    for name, error in found.profile.errors.items():
        off = abs(np.log(found.profile.constants[name] / machine.constants[name]))
        assert off < 4 * error, name
    # nothing here sends all to all
    assert {name for name in START.constants if name.startswith("exchange.")} <= {one.name for one in found.untold}
    assert any("runs of all_to_all" in line for line in found.warnings)
    assert found.profile.constants["exchange.base"] == pytest.approx(START.constants["exchange.base"], rel=1e-3)


@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_standard_errors_are_what_they_say(noise: float, tmp_path: Path) -> None:
    """Some two thirds of the constants lie within one, nineteen in twenty within two; outliers change neither."""
    off = []
    for seed in range(4):
        machine = shifted(seed)
        runs = [("all_reduce", 8), ("all_gather", 8), ("all_reduce", 16), ("all_gather", 4)]
        logs = [log_of(machine, *run, tmp_path / f"{seed}{run[0]}{run[1]}.txt", noise, seed=seed, outliers=0.03)
                for run in runs]  # fmt: skip
        found = calibrate(logs, FABRIC, profile=START).profile
        off += [abs(np.log(found.constants[name] / machine.constants[name])) / error
                for name, error in found.errors.items()]  # fmt: skip
    assert len(off) >= 4 * 8
    assert 0.55 < np.mean(np.array(off) < 1) < 0.9
    assert np.mean(np.array(off) < 2) > 0.9
    assert max(off) < 5


def test_the_profile_that_is_written_predicts_the_logs(tmp_path: Path) -> None:
    log = log_of(shifted(0), "all_reduce", 8, tmp_path / "log.txt")
    found = calibrate(log, FABRIC, profile=START, name="mine", fitted=date(2026, 12, 1))
    write_profile(found.profile, tmp_path / "mine.toml")
    read = load_profile(tmp_path / "mine.toml")
    assert (read.name, read.law, read.fitted, read.errors.keys()) == (
        "mine", "collective", date(2026, 12, 1), found.profile.errors.keys(),
    )  # fmt: skip
    assert read.source == f"29 rows of log.txt; from nccl-hopper, version {START.version}"
    row = bulk_features(FABRIC, "all_reduce", 1.0, FABRIC.rank_numbers(8))
    again = LAWS[read.law](read.constants, stacked([scaled(row, size) for size in SIZES]))
    assert again == pytest.approx(found.curves[0].fitted, rel=1e-4)


def test_the_band_is_of_runs_left_out(tmp_path: Path) -> None:
    """By hand: fit to all runs but one, predict that one; one run alone says nothing of others."""
    machine = shifted(2)
    runs = [("all_reduce", 8), ("all_gather", 8), ("all_gather", 4)]
    logs = {run: log_of(machine, *run, tmp_path / f"{run[0]}{run[1]}.txt") for run in runs}
    off = []
    for left in runs:
        fitted = calibrate([logs[run] for run in runs if run != left], FABRIC, profile=START).profile
        row = bulk_features(FABRIC, left[0], 1.0, FABRIC.rank_numbers(left[1]))
        predicted = LAWS[fitted.law](fitted.constants, stacked([scaled(row, size) for size in SIZES]))
        measured = np.array([one.seconds for one in read_log(logs[left]).rows])
        off.append(np.abs(predicted / measured - 1))
    found = calibrate(list(logs.values()), FABRIC, profile=START).profile
    assert found.band == pytest.approx((np.median(off), np.quantile(off, 0.9)))
    alone = calibrate(logs[runs[0]], FABRIC, profile=START)
    assert alone.profile.band == START.band
    assert any("the band is that of nccl-hopper" in note for note in alone.notes)


def test_sizes_that_are_not_there_are_named(tmp_path: Path) -> None:
    """Large sizes alone: no latency is told; small ones alone: no efficiency."""
    machine = shifted(1)
    large = calibrate(log_of(machine, "all_reduce", 8, tmp_path / "large.txt", sizes=SIZES[-6:]), FABRIC, profile=START)
    assert not [name for name in large.profile.errors if name.startswith("latency.")]
    small = calibrate(log_of(machine, "all_reduce", 8, tmp_path / "small.txt", sizes=SIZES[:8]), FABRIC, profile=START)
    assert not [name for name in small.profile.errors if name.endswith("efficiency")]
    assert large.median < 0.02
    assert small.median < 0.02


def test_failed_checks_do_not_count(tmp_path: Path) -> None:
    text = log_of(shifted(0), "all_reduce", 8, tmp_path / "log.txt").read_text().splitlines()
    bad = text[10].split()
    bad[5], bad[6], bad[7], bad[8] = f"{float(bad[5]) * 50:.3f}", "0.0001", "0.0002", "12"
    (tmp_path / "bad.txt").write_text("\n".join([*text[:10], " ".join(bad), *text[11:]]))
    (tmp_path / "without.txt").write_text("\n".join([*text[:10], *text[11:]]))
    one, other = (calibrate(tmp_path / name, FABRIC, profile=START) for name in ("bad.txt", "without.txt"))
    assert one.profile.constants == other.profile.constants
    assert any("line 11: the check failed" in note for note in one.notes)


def test_runs_of_two_machines_are_said_to_be() -> None:
    """The log of two sweeps: 161 us and 69 us at the same small sizes."""
    found = calibrate(LOGS / "aws-p5-srun-tagged.txt", FABRIC, profile=START)
    assert any("line 3; aws-p5-srun-tagged.txt, line 34) are 2.4 times apart" in note for note in found.notes)


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="64: ranks took part, and the graph has 16"):
        calibrate(LOGS / "v100-8node-allreduce-old.txt", FABRIC, profile=START)
    alone = "1073741824 268435456 float sum -1 700.00 1533.92 0.00 0 700.00 1533.92 0.00 0\n"
    (tmp_path / "alone.txt").write_text(f"[1,0]<stdout>: {alone}[1,1]<stdout>: {alone}")
    with pytest.raises(InputError, match="1: rank took part: nothing was sent"):
        calibrate(tmp_path / "alone.txt", FABRIC, profile=START)
    row = "1048576 262144 float none 0 100.0 10.49 10.49 0"
    (tmp_path / "open.txt").write_text(f"# size count type redop root time algbw busbw #wrong\n# (us) (GB/s)\n{row}\n")
    with pytest.raises(InputError, match=r"Give n_ranks= \(--ranks\)"):
        calibrate(tmp_path / "open.txt", FABRIC, profile=START)
    with pytest.raises(InputError, match="has the law ideal, which does not predict"):
        calibrate(LOGS / "aws-p5-1node-tagged.txt", FABRIC, profile="ideal")


def test_logs_are_read_or_given() -> None:
    path = LOGS / "aws-p5-1node-tagged.txt"
    by_path, by_log = (calibrate(log, FABRIC, profile=START) for log in (str(path), read_log(path)))
    assert by_path.profile.constants == by_log.profile.constants
    assert by_path.curves[0].n_ranks == 8
    assert repr(by_path).startswith("Calibration(calibrated: ")


def test_a_log_of_a_faster_machine_makes_no_wire_faster_and_is_said(tmp_path: Path) -> None:
    found = calibrate(LOGS / "aws-p5-1node-tagged.txt", topo.load("hgx-a100-8"))  # H100s, with in-switch reduction
    assert all(value <= 1 for name, value in found.profile.constants.items() if name.endswith("efficiency"))
    (said,) = [note for note in found.notes if "faster than any algorithm" in note]
    assert said.startswith("aws-p5-1node-tagged.txt, line 4: 9 rows of all_reduce over 8 ranks")
    write_profile(found.profile, tmp_path / "wrong.toml")
    held = validate(LOGS / "aws-p5-1node-tagged.txt", design="hgx-a100-8", profile=tmp_path / "wrong.toml")
    assert held.faults == ()
    assert not [note for note in calibrate(LOGS / "gcp-a3-ultra.txt", FABRIC).notes if "faster than any" in note]
