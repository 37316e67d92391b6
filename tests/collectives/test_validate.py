"""Validation: which rows are predicted, which are skipped and why, and what is counted how."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import topo
from collectives import load_profile, validate
from collectives._matching import matched, profile_for
from collectives._measured import Measurement, read_measurements
from collectives._row_bounds import row_bounds
from collectives._validate import validate_rows
from topo import InputError

DATA = Path(__file__).resolve().parents[1] / "data"
HEAD = "id,system,collective,n_gpus,bytes,time_us,algbw_GBps,library,dtype,scaleup_domains,params"


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([HEAD, *lines]) + "\n")
    return path


def subset(tmp_path: Path, *systems: str) -> Path:
    """Return a file with some systems' rows of the table that profiles were fitted to."""
    with (DATA / "measured.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    path = tmp_path / "subset.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(row for row in rows if row["system"] in systems)
    return path


def test_rows_of_the_field_are_predicted_within_the_band(tmp_path: Path) -> None:
    found = validate(subset(tmp_path, "HGX H200-8", "HGX B300-8", "MI355X-8"))
    assert found.rows > 120
    assert found.faults == ()
    assert found.median <= 0.05
    assert found.p90 <= 0.15
    assert max(group.median for group in found.groups.values()) <= 0.08
    off = np.array([abs(one.seconds / one.measured_seconds - 1) for one in found.predictions])
    assert found.median == np.median(off)
    assert found.p90 == np.quantile(off, 0.9)
    assert found.worst == off.max()
    kinds = [found.groups[kind].rows for kind in {one.kind for one in found.predictions}]
    assert sum(kinds) == found.rows == found.groups["one domain"].rows + found.groups["several domains"].rows
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {"rows", "skipped", "median", "p90", "groups", "predictions"} <= set(document)


def test_systems_that_no_fit_has_seen_say_so_and_are_counted(tmp_path: Path) -> None:
    """Nine rows of three systems, none of them used by a fit; one node of p4d is an HGX A100 as fitted."""
    found = validate(subset(tmp_path, "AWS p4d (HGX A100-8, 4x100G EFA)", "H100 PCIe x2 NVLink bridge", "MI350X-8"))
    assert (found.rows, found.skipped, found.faults) == (9, (), ())
    assert all("was not fitted on" in one.note and one.band == (0.25, 0.4) for one in found.predictions)
    assert {one.id: abs(one.error) < 0.05 for one in found.predictions}["M0710"]
    assert found.worst < 0.5


def test_every_row_of_the_table_is_predicted_or_says_why_not() -> None:
    """What is left: sendrecv, rows without a size or tokens, expert layers without a time, sums, ratios."""
    with (DATA / "measured.csv").open(encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    measured, unread = read_measurements(DATA / "measured.csv")
    found, unmatched = matched(measured)
    left = {one.id: one.reason for one in (*unread, *unmatched)}
    assert len(found) + len(left) == len(rows)
    layers = {name for name, row in rows.items() if row["collective"] in ("ep_dispatch", "ep_combine")}
    bare = {name for name in layers if "tokens" not in rows[name]["params"]}
    rated = {name for name in layers - bare if not rows[name]["time_us"]}
    sums = {
        name for name in rows if rows[name]["collective"].startswith(("ep_dispatch_plus", "alltoall_", "bisection"))
    }
    sends = {name for name in rows if rows[name]["collective"] == "sendrecv"}
    sizeless = {name for name in rows if not rows[name]["bytes"]} - layers - sums
    assert set(left) == bare | rated | sums | sends | sizeless
    assert {left[name] for name in rated} == {"no time, and a bandwidth does not say of which bytes"}
    assert {left[name] for name in sizeless} == {"no size"}
    assert all("no profile predicts this quantity" in left[name] for name in sums | sends)


def test_the_time_is_not_looked_at(tmp_path: Path) -> None:
    lines = [f"a,HGX H100-8,all_reduce,8,1048576,{time},,nccl 2.29,half,1," for time in ("10", "1000")]
    first, second = (validate(written(tmp_path, line)).predictions[0] for line in lines)
    assert first.seconds == second.seconds
    assert first.error == pytest.approx(first.seconds / 10e-6 - 1)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x,A40 pair,all_reduce,2,256,10,,nccl,half,1,", "unknown system A40 pair"),
        ("x,HGX H100-8,bisection,8,256,10,,nccl,half,1,", "no profile predicts this quantity"),
        ("x,HGX H100-8,sendrecv,2,256,10,,nccl,half,1,", "no profile predicts this quantity"),
        ("x,HGX H100-8,all_reduce,8,256,,,nccl,half,1,", "no time"),
        ("x,HGX H100-8,all_reduce,8,,10,,nccl,half,1,", "no size"),
        ("x,HGX H100-8,all_reduce,eight,256,10,,nccl,half,1,", "a number cannot be read"),
        ("x,HGX H100-8,all_reduce,1,256,10,,nccl,half,1,", "1 ranks in 1 domains is no group"),
        ("x,HGX H100-8,ep_dispatch,8,,10,,DeepEP normal,fp8,1,tokens=4;hidden=64", "params lack topk"),
        ("x,HGX H100-8,ep_dispatch,8,,10,,DeepEP normal,fp5,1,tokens=4;hidden=64;topk=8", "is not that of a token"),
        ("x,HGX H100-8,all_reduce,16,256,10,,nccl,half,1,", "16"),
        ("x,HGX H100-8,all_reduce,8,256,inf,,nccl,half,1,", "no time"),
        ("x,HGX H100-8,all_reduce,8,inf,10,,nccl,half,1,", "no size"),
        ("x,HGX H100-8,all_reduce,8.5,256,10,,nccl,half,1,", "a number cannot be read"),
        ("x,HGX H100-8,ep_dispatch,8,,10,,DeepEP,fp8,1,tokens=4;hidden=64;topk=8;experts=many", "params lack experts"),
    ],
)
def test_what_cannot_be_predicted_is_skipped_with_its_reason(tmp_path: Path, line: str, reason: str) -> None:
    found = validate(written(tmp_path, line))
    assert (found.rows, found.median, found.groups) == (0, 0.0, {})
    assert found.skipped[0].id == "x"
    assert reason in found.skipped[0].reason


def test_kinds_by_the_files_names_and_time_from_bandwidth(tmp_path: Path) -> None:
    found = validate(
        written(
            tmp_path,
            "a,gb200-nvl72,alltoall,8,8000000000,,800,nccl,half,1,",
            ",HGX H100/H200-8,ep_combine,8,,72.4,,DeepEP low-latency,bf16,1,tokens=128;hidden=7168;topk=8;experts=256",
        )
    )
    assert [one.kind for one in found.predictions] == ["all_to_all", "moe_combine"]
    assert found.predictions[0].measured_seconds == 0.01
    assert found.predictions[1].id == "line 3"
    assert found.predictions[1].n_bytes == 128 * 8 * 7168 * 2


def test_expert_rows_do_not_read_bytes(tmp_path: Path) -> None:
    line = "a,GB200 NVL72,ep_dispatch,8,{},20,,TensorRT-LLM NVLinkOneSided,nvfp4,1,tokens=64;hidden=7168;topk=8"
    first, second = (validate(written(tmp_path, line.format(n))).predictions[0].seconds for n in ("", "9e9"))
    assert first == second


def test_anomalies_are_listed_with_their_bound(tmp_path: Path) -> None:
    found = validate(
        written(
            tmp_path,
            "slow,GB300 NVL72,alltoall,128,8589934592,180191,,nccl,float32,2,",
            "fast,HGX H100-8,all_reduce,8,1000000000,1000,,nccl,half,1,",
            "fine,HGX H100-8,all_reduce,8,1000000000,3800,,nccl,half,1,",
        )
    )
    slow, fast = found.anomalies
    # Half of what 64 ranks of a rack send leaves it, over the rack's 72 NICs of 100 GB/s.
    assert found.predictions[0].bound_seconds == pytest.approx(8589934592 / 2 * 64 / 72 / 100e9, rel=1e-4)
    assert "4.7 times the bound" in slow
    assert slow.startswith("slow: GB300 NVL72")
    assert "below the bound 2.22" in fast
    assert found.faults == ()


def test_the_bound_of_an_expert_layer_by_hand() -> None:
    row = Measurement("a", "HGX H100-8", "moe_dispatch", "DeepEP normal", "bf16", 16, 2, 0.0, 1e-3,
                      {"tokens": "4096", "hidden": "7168", "topk": "8", "experts": "256"})  # fmt: skip
    found, _ = matched([row])
    # A token goes to the other of two nodes but with chance C(128, 8) / C(256, 8).
    missed = np.prod([(128 - i) / (256 - i) for i in range(8)])
    in_a_domain = 2 * 0.5e-6  # the least latency of any pair
    assert row_bounds(found)[0] == pytest.approx(in_a_domain + (1 - missed) * 4096 * 7168 * 2 / 50e9, rel=1e-9)


def test_a_prediction_below_the_bound_is_the_models_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Measurement("a", "HGX H100-8", "all_reduce", "nccl", "half", 8, 1, 1e9, 4e-3)
    monkeypatch.setattr("collectives._validate.predicted_seconds", lambda found: np.full(len(found), 1e-3))
    (fault,) = validate_rows([row]).faults
    assert "predicted 1 ms by nccl-hopper, no algorithm beats 2.22" in fault


def test_profiles_by_library_and_chip() -> None:
    def name(library: str, law: str, chip: str, bandwidth: float) -> str:
        return profile_for(library, law, chip, bandwidth)[0].name

    assert name("nccl 2.29.2", "collective", "GB300", 900e9) == "nccl-blackwell"
    assert name("rccl (tuned)", "collective", "MI355X", 537.6e9) == "rccl-cdna"  # "rccl" holds no "nccl"
    assert name("DeepEP v1 low-latency (first release, pure RDMA)", "expert", "H800-80GB", 2e11) == (
        "deepep-low-latency-rdma"
    )
    found, note = profile_for("nccl", "collective", "Rubin", 1.8e12)
    assert (found.name, note) == ("nccl-blackwell", "nccl-blackwell was not fitted on Rubin: 20 to 40 % off")
    assert found.band == (0.25, 0.4)
    found, note = profile_for("oneCCL", "collective", "A100-80GB", 300e9)
    assert found.name == "nccl-ampere"
    assert "no profile of library 'oneCCL'" in note


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        validate(tmp_path / "none.csv")
    (tmp_path / "short.csv").write_text("id,system\n")
    with pytest.raises(InputError, match="collective, n_gpus, bytes, time_us"):
        validate(tmp_path / "short.csv")


def test_environments_and_forced_rings_are_read_from_the_library(tmp_path: Path) -> None:
    rows, _ = read_measurements(
        written(
            tmp_path,
            "a,HGX H200-8,all_reduce,8,1024,10,,nccl 2.20.5 (Azure ND),half,1,",
            "b,HGX H200-8,all_reduce,8,4294967296,10,,nccl RING,half,1,",
        )
    )
    (azure, ring), _ = matched(rows)
    assert azure.profile.constants["latency.environment"] == load_profile("nccl-hopper").environments["2.20.5 (Azure"]
    assert np.isinf(ring.features.nvls[0])


def test_rows_as_other_programs_write_them(tmp_path: Path) -> None:
    found = validate(
        written(
            tmp_path,
            "a,HGX H100-8,all_reduce,8,1048576,10,,nccl,half,1,",
            "b,hgx-h100-8,AllReduce,8.0,1048576.0,10,,nccl,half,1.0,",
            "c,HGX H100-8,ep_dispatch,8,,10,,DeepEP normal,fp8,1,tokens=4;hidden=64;topk=8",
            "d,HGX H100-8,EP_dispatch,8,,10,,DeepEP normal,FP8,,tokens = 4; hidden = 64; topk = 8; experts=",
        )
    )
    assert [one.kind for one in found.predictions] == ["all_reduce"] * 2 + ["moe_dispatch"] * 2
    for first, second in (found.predictions[:2], found.predictions[2:]):
        assert first.seconds == second.seconds


def test_columns_that_say_nothing_may_be_missing_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("time_us,bytes,n_gpus,collective,system\n10,1048576,8,all_reduce,HGX H100-8\n")
    assert validate(path).predictions[0].note == "no profile of library '': nccl's taken"


def test_domains_left_out_are_as_few_as_hold_the_ranks(tmp_path: Path) -> None:
    line = "{0},HGX H100-8,all_reduce,{0},1048576,50,,nccl,half,{1},"
    rows = [line.format(ranks, domains) for ranks, domains in ((8, ""), (8, 1), (16, ""), (16, 2), (24, ""))]
    found = validate(written(tmp_path, *rows)).predictions
    assert [one.domains for one in found] == [1, 1, 2, 2, 3]
    assert found[0].seconds == found[1].seconds
    assert found[2].seconds == found[3].seconds


def test_rows_of_other_tokens_have_bounds_of_their_own(tmp_path: Path) -> None:
    line = "{0},HGX H100-8,ep_dispatch,8,,100,,DeepEP low-latency,fp8,1,tokens=4096;hidden={1};topk=8;experts={2}"
    sizes = ((7168, 256), (2048, 256), (7168, 16))
    together = validate(written(tmp_path, *(line.format(*row) for row in sizes_numbered(sizes))))
    alone = [validate(written(tmp_path, line.format(*row))).predictions[0] for row in sizes_numbered(sizes)]
    assert [one.bound_seconds for one in together.predictions] == [one.bound_seconds for one in alone]
    assert len({one.bound_seconds for one in alone}) == 3
    assert together.faults == ()


def sizes_numbered(sizes: tuple[tuple[int, int], ...]) -> list[tuple[int, int, int]]:
    return [(i, *size) for i, size in enumerate(sizes)]


def test_a_profile_given_predicts_rows_of_its_law_and_says_where_it_was_not_fitted(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "a,GB200 NVL72,all_reduce,8,1048576,10,,nccl,half,1,",
        "b,HGX H100-8,all_reduce,8,1048576,10,,nccl,half,1,",
        "c,HGX H100-8,ep_dispatch,8,,10,,DeepEP normal,fp8,1,tokens=4;hidden=64;topk=8",
    )
    found = validate(path, profile="nccl-hopper")
    far, near = found.predictions
    assert far.note == "nccl-hopper was not fitted on GB200: 20 to 40 % off"
    assert (far.band, near.band, near.note) == ((0.25, 0.4), load_profile("nccl-hopper").band, "")
    assert "is for collectives of bytes, not for moe_dispatch" in found.skipped[0].reason
    with pytest.raises(InputError, match="the wires alone"):
        validate(path, profile="ideal")


def test_a_graph_file_is_as_good_as_its_design(tmp_path: Path) -> None:
    """Two nodes as a graph: rows of one and of two domains, said or not, and the log of two."""
    graph = topo.write(topo.load("hgx-h100-8", 2), tmp_path / "two.json")
    rows = [f"{i},{{0}},all_reduce,{ranks},1e6,50,,nccl,half,{domains}," for i, (ranks, domains) in
            enumerate([(8, ""), (8, 1), (8, 2), (16, ""), (16, 2), (9, "")])]  # fmt: skip
    named, drawn = (
        validate(written(tmp_path, *(row.format(system) for row in rows))).predictions
        for system in ("hgx-h100-8", graph)
    )
    assert len(drawn) == len(rows)
    for one, two in zip(named, drawn, strict=True):  # a domain in a graph of two has NICs, which a bound may use
        bound = {"bound_seconds": one.bound_seconds}
        assert replace(two, system="hgx-h100-8", **bound) == one
        assert two.bound_seconds == one.bound_seconds or (one.domains == 1 and two.bound_seconds < one.bound_seconds)
    log = DATA / "logs" / "gcp-a3-ultra.txt"
    assert validate(log, design=str(graph)).median == validate(log, design="hgx-h100-8").median


def test_graphs_that_cannot_be_what_was_measured(tmp_path: Path) -> None:
    graph = topo.write(topo.load("hgx-h100-8", 2), tmp_path / "two.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    line = "x,{},all_reduce,{},1e6,50,,nccl,half,{},"
    asked = [(graph, 24, "", "24: ranks took part, and the graph has 16"), (graph, 6, 3, "the graph has 2"),
             (broken, 8, "", "broken.json"), (tmp_path / "none.json", 8, "", "unknown system")]  # fmt: skip
    for file, ranks, domains, rule in asked:
        found = validate(written(tmp_path, line.format(file, ranks, domains)))
        assert rule in found.skipped[0].reason
    one = topo.write(topo.load("hgx-h100-8"), tmp_path / "one.json")
    with pytest.raises(InputError, match="ranks took part, and the graph has 8"):
        validate(DATA / "logs" / "gcp-a3-ultra.txt", design=str(one))


def test_a_fabric_of_hosts_has_no_domains_and_says_what_was_not_fitted(tmp_path: Path) -> None:
    """Every host a domain of its own, no chip: predicted as several domains, with the wide band."""
    hosts = topo.write(topo.build("fat_tree", k=4), tmp_path / "hosts.json")
    (one,) = validate(written(tmp_path, f"x,{hosts},all_reduce,8,1e6,50,,nccl,half,,")).predictions
    assert (one.domains, one.band) == (8, (0.25, 0.4))
    assert "not fitted on a chip without a name" in one.note
