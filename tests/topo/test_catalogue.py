"""Does the catalogue hold the published numbers, and say where each comes from?"""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import pytest

import topo
from topo.units import parse_quantity

TABLE = Path(__file__).resolve().parents[1] / "data" / "hardware-subset.csv"
with TABLE.open(newline="") as _file:
    ROWS = {row["id"]: row for row in csv.DictReader(_file)}
#: shape -> how the table's column starts
SHAPES = {
    "switched": ("switched", "as gb200 nvl72"), "full_mesh": "full mesh", "torus": ("3d torus", "2d torus"),
    "two_level": "two-tier", "ultraserver": "4x4 2d torus per instance", "bridge_pairs": "bridge pair",
}  # fmt: skip
#: Rows whose NIC is stated for a host, or not at all.
SHARED, NO_NIC = {"tpu-v4": 25e9, "aws-p4d-8": 12.5e9}, {"tpu-v6e", "tpu-v7", "vr-nvl576", "h100-pcie-2"}
# Not shipping when the table was written.
ANNOUNCED = {"vr-nvl72", "helios-72", "vr-nvl576"}


def test_catalogue_is_the_table() -> None:
    assert list(topo.list_designs()) == sorted(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_chip(name: str) -> None:
    row, chip = ROWS[name], topo.load_design(name).chip
    assert chip.hbm_bytes == float(row["hbm_bytes"])
    assert chip.hbm_bandwidth == pytest.approx(float(row["hbm_Bps"]), rel=1e-15)
    assert chip.power == (float(row["accel_W"]) if row["accel_W"] else None)
    published = {key: row[f"flops_{key}_dense"] for key in ("bf16", "fp8", "fp4")}
    assert chip.flops == pytest.approx({key: float(rate) for key, rate in published.items() if rate}, rel=1e-12)


@pytest.mark.parametrize("name", ROWS)
def test_scale_up(name: str) -> None:
    row, design = ROWS[name], topo.load_design(name)
    up = design.scale_up
    assert design.design.domain_size == int(row["scaleup_domain"]) == int(row["accelerators"])
    if not row["scaleup_Bps_per_dir_per_accel"]:  # announced only: a number that is marked
        assert design.sources["scale_up.bandwidth"].startswith("assumed")
    else:
        assert up.bandwidth == pytest.approx(float(row["scaleup_Bps_per_dir_per_accel"]), rel=1e-15)
    assert row["scaleup_topology"].lower().startswith(SHAPES[up.shape])
    if not row["scaleup_links_per_accel"]:  # not published: the defaults stand, and are said
        assert (up.planes, up.lanes) == (1, None)
        assert design.sources["scale_up.planes"].startswith("assumed")
        return
    links = int(row["scaleup_links_per_accel"])
    if up.shape == "full_mesh":
        assert f"{up.lanes} link" in row["scaleup_topology"]
        assert links == up.lanes * (design.design.domain_size - 1)
    elif up.shape == "switched":
        assert up.planes == int(row["switch_chips"])
        per_plane = [int(n) for n in row["links_per_accel_per_switch"].split(";")]
        assert sum(per_plane) * (up.planes // len(per_plane)) == links
        assert (sum(up.lanes) if isinstance(up.lanes, tuple) else up.lanes) == links
    graph = topo.load(name)
    gpu = next(node for node, data in graph.nodes(data=True) if data["kind"] == "gpu")
    edges = [data for _, _, data in graph.edges(gpu, data=True)]
    assert sum(data["lanes"] for data in edges) == links
    if up.shape != "ultraserver":
        each = float(row["scaleup_link_Bps_per_dir"])
        assert [data["bandwidth"] / data["lanes"] for data in edges] == pytest.approx([each] * len(edges), rel=1e-12)
    planes = sum(data.get("planes", 1) for _, data in graph.nodes(data=True) if data["kind"] == "switch")
    assert planes == int(row["switch_chips"])


@pytest.mark.parametrize("name", ROWS)
def test_scale_out(name: str) -> None:
    out = topo.load_design(name).scale_out
    rate = ROWS[name]["scaleout_nic_Gbps_per_accel"]
    assert (out is None) == (name in NO_NIC)
    if out is not None:
        assert out.bandwidth == (SHARED[name] if name in SHARED else float(rate) * 1e9 / 8)
        assert (out.shape, out.radix, out.oversubscription) == ("rail_optimised", 64, 1.0)


@pytest.mark.parametrize("name", ROWS)
def test_every_number_has_a_source(name: str) -> None:
    design = topo.load_design(name)
    numbers = {"chip.hbm_bytes", "chip.hbm_bandwidth", "chip.flops"}
    linked = name.startswith(("tpu", "trn2"))
    numbers |= {f"scale_up.{'link_' if linked else ''}bandwidth", "scale_up.latency"}
    if design.scale_out is not None:
        numbers |= {"scale_out.bandwidth", "scale_out.latency", "scale_out.radix"}
    if design.chip.power is not None:
        numbers.add("chip.power")
    if design.scale_up.shape == "switched":
        numbers |= {"scale_up.planes"} | ({"scale_up.lanes"} if design.scale_up.lanes else set())
    if design.scale_up.reduces:
        numbers.add("scale_up.reduces")
    assert numbers - set(design.sources) == set()
    assert all(source.strip() for source in design.sources.values())
    known = {
        f"{table.name}.{f.name}"
        for table in dataclasses.fields(design)
        if dataclasses.is_dataclass(getattr(design, table.name))
        for f in dataclasses.fields(getattr(design, table.name))
    }
    known |= {f"scale_up.{key}" for key in design.scale_up.parameters}
    known |= {f"chip.flops.{dtype}" for dtype in design.chip.flops}
    assert set(design.sources) - known == set(), "sources of keys that no design has"


@pytest.mark.parametrize("name", ROWS)
def test_what_nobody_published_is_printed_as_assumed(name: str) -> None:
    design = topo.load_design(name)
    assumed = {key for key, source in design.sources.items() if source.startswith("assumed")}
    said = topo.load(name, domains=1 if name in NO_NIC else 2).graph["assumptions"]
    assert assumed
    for key in assumed:
        assert any(line.startswith(key) for line in said), key


# the column unverified_fields names it -> the key that must say so
UNVERIFIED = {
    "hgx-a100-8": {"scale_up.lanes"},
    "hgx-b200-8": {"scale_up.lanes"},
    "mi300x-8": {"chip.hbm_bytes"},
    "hgx-h100-8": {"scale_up.lanes"},
    "hgx-h200-8": {"scale_up.lanes"},
    "hgx-h800-8": {"scale_up.bandwidth", "scale_up.lanes", "scale_up.planes", "chip.hbm_bytes", "chip.hbm_bandwidth",
                   "chip.flops"},
    "hgx-b300-8": {"scale_up.planes", "scale_up.lanes"},
    "vr-nvl72": {"scale_up.lanes", "scale_up.planes", "scale_out.bandwidth", "chip.power"},
    "mi355x-8": {"chip.flops.bf16", "chip.hbm_bytes"},
    "helios-72": {"scale_up.bandwidth", "scale_out.bandwidth", "scale_up.planes"},
    "vr-nvl576": {"chip.flops", "scale_up.bandwidth"},
    "tpu-v6e": {"chip.hbm_bandwidth"},
    "tpu-v7": {"chip.hbm_bandwidth", "scale_up.link_bandwidth"},
    "cloudmatrix384": {"chip.hbm_bandwidth", "scale_up.lanes"},
    "trn2-ultraserver-64": {"scale_up.link_bandwidth"},
    "gaudi3-8": {"chip.hbm_bandwidth", "chip.flops", "chip.power"},
    "mi350x-8": {"chip.flops.bf16", "chip.flops.fp8", "scale_out.bandwidth"},
    "aws-p4d-8": {"scale_up.lanes", "scale_out.gpus_per_nic"},
    "h100-pcie-2": {"chip.flops", "chip.hbm_bytes", "scale_up.lanes"},
}  # fmt: skip


def test_every_row_with_doubts_about_a_key_is_looked_at() -> None:
    """What a whole system draws is no key of a design; nor is the power of a GPU that a design leaves out."""
    doubts = {name for name, row in ROWS.items() if set(row["unverified_fields"].split("; ")) - {"", "system_W"}}
    assert doubts - {"gb200-nvl72"} == set(UNVERIFIED)


@pytest.mark.parametrize("name", UNVERIFIED)
def test_what_the_table_could_not_verify_is_assumed(name: str) -> None:
    assert ROWS[name]["unverified_fields"]
    sources = topo.load_design(name).sources
    assert all(sources[key].startswith("assumed") for key in UNVERIFIED[name])


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("domains", [1, 2])
def test_announced_parts_say_so_first(name: str, domains: int) -> None:
    if domains == 2 and name in NO_NIC:
        with pytest.raises(topo.InputError, match="states no NIC rate"):
            topo.load(name, domains)
        return
    said = topo.load(name, domains).graph["assumptions"]
    line = "announced only: figures from announcements, not from a shipping part"
    assert topo.load_design(name).design.status == ("announced" if name in ANNOUNCED else "shipping")
    assert [i for i, words in enumerate(said) if words == line] == ([0] if name in ANNOUNCED else [])


# Intel's network configuration page: 21 of 24 ports of 200 Gb/s go to 7 others, three each
def test_gaudi_pair() -> None:
    edges = topo.load("gaudi3-8").edges(data=True)
    assert {(data["bandwidth"], data["lanes"]) for _, _, data in edges} == {(75e9, 3)}


@pytest.mark.parametrize("name", ROWS)
def test_builds_and_is_faultless(name: str) -> None:
    for domains in (1,) if name in NO_NIC or int(ROWS[name]["accelerators"]) > 1000 else (1, 2, 5):
        graph = topo.load(name, domains)
        assert topo.check(graph) == []
        gpus = [data for _, data in graph.nodes(data=True) if data["kind"] == "gpu"]
        assert len(gpus) == domains * int(ROWS[name]["accelerators"])
        assert [data["rank"] for data in gpus] == list(range(len(gpus)))


# vendor data sheet: 72 x 1.8 TB/s (both ways) = 130 TB/s a rack
@pytest.mark.parametrize("name", ["gb200-nvl72", "gb300-nvl72"])
def test_rack_total(name: str) -> None:
    edges = topo.load(name).edges(data="bandwidth")
    assert 2 * sum(bandwidth for _, _, bandwidth in edges) == pytest.approx(
        parse_quantity("130 TB/s", "bandwidth"), rel=0.005
    )


# 72 GPUs, 18 NVSwitch chips (9 trays x 2), each GPU one 50 GB/s link to each chip
def test_nvl72_unfolded() -> None:
    graph = topo.load("gb200-nvl72", planes=True)
    chips = [node for node, kind in graph.nodes(data="kind") if kind == "switch"]
    assert len(chips) == 18
    assert {graph.degree(chip) for chip in chips} == {72}
    assert {(data["bandwidth"], data["lanes"]) for _, _, data in graph.edges(data=True)} == {(50e9, 1)}


@pytest.mark.parametrize(
    ("alias", "name"), [("GB200 NVL72", "gb200-nvl72"), ("hgx h100-8", "hgx-h100-8"), ("MI300X-8", "mi300x-8")]
)
def test_aliases_in_any_case(alias: str, name: str) -> None:
    assert topo.load_design(alias).design.name == name
    assert topo.load(alias).graph["name"] == name


def test_no_alias_names_two_designs() -> None:
    homes: dict[str, str] = {}
    for design in topo.list_designs():
        for name in (design, *topo.load_design(design).design.aliases):
            assert homes.setdefault(name.casefold(), design) == design
