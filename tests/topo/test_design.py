"""Is everything wrong in a design file said at once, with file, key, value, rule and cure?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import topo
from topo import InputError

GOOD = """
[design]
name = "my-rack"
domain_size = 4
[chip]
name = "X1"
hbm_bytes = "80 GiB"
hbm_bandwidth = "3 TB/s"
flops = { bf16 = "1 PFLOP/s" }
[scale_up]
shape = "switched"
bandwidth = "900 GB/s"
latency = "0.5 us"
[scale_out]
shape = "rail_optimised"
bandwidth = "400 Gb/s"
radix = 64
oversubscription = 1.0
latency = "1 us"
"""


@pytest.fixture
def design(tmp_path: Path):
    """Write a design file, with some of its text replaced, and return its path."""

    def write(*changes: tuple[str, str], text: str = GOOD) -> Path:
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        path = tmp_path / "rack.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def faults_of(*arguments: object, **words: object) -> tuple[topo.Fault, ...]:
    with pytest.raises(InputError) as caught:
        topo.load(*arguments, **words)
    faults = caught.value.faults
    assert faults
    for fault in faults:
        assert fault.place
        assert fault.rule
        assert fault.cure.endswith(".")
    assert len({fault.place for fault in faults}) == len(faults), "one fault said twice"
    return faults


# --- what is right ---------------------------------------------------------------------------------------------------


def test_reads_a_file(design) -> None:
    record = topo.load_design(design())
    assert (record.design.name, record.design.domain_size) == ("my-rack", 4)
    assert (record.chip.hbm_bytes, record.chip.flops) == (80 * 2**30, {"bf16": 1e15})
    assert (record.scale_up.bandwidth, record.scale_up.planes) == (900e9, 1)
    assert record.scale_out.bandwidth == 50e9
    assert record.assumptions == ()
    graph = topo.load(design(), 2)
    assert graph.graph["chips"] == {"X1": {"hbm_bytes": 80 * 2**30, "hbm_bandwidth": 3e12, "flops": {"bf16": 1e15}}}
    assert (graph.graph["schema"], graph.graph["name"], graph.graph["assumptions"]) == (1, "my-rack", [])


def test_takes_a_path_as_text_or_object(design, monkeypatch: pytest.MonkeyPatch) -> None:
    path = design()
    monkeypatch.chdir(path.parent)
    for name in (path, str(path), "rack.toml", os.path.join(".", "rack.toml")):
        assert topo.load_design(name).design.name == "my-rack"
    (path.parent / "rack").write_text(GOOD)  # no ending: a file all the same
    assert topo.load_design("rack").design.name == "my-rack"


def test_a_catalogue_name_wins_over_a_file_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gb200-nvl72").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    assert topo.load_design("gb200-nvl72").design.name == "gb200-nvl72"
    assert topo.load_design("./gb200-nvl72").design.name == "my-rack"


def test_latency_may_be_zero(design) -> None:
    assert topo.load_design(design(('"0.5 us"', '"0 s"'))).scale_up.latency == 0.0


# --- defaults --------------------------------------------------------------------------------------------------------


def test_defaults_are_reported(design) -> None:
    bare = [
        ('latency = "0.5 us"\n', ""),
        ('latency = "1 us"\n', ""),
        ("radix = 64\n", ""),
        ("oversubscription = 1.0\n", ""),
    ]
    graph = topo.load(design(*bare, ('shape = "rail_optimised"\n', "")), 2)
    said = graph.graph["assumptions"]
    for start in (
        "scale_up.latency = 0.5 us per link: assumed",
        "scale_out.latency = 0.8 us per link: assumed",
        "scale_out.radix = 64: the default",
        "scale_out.oversubscription = 1.0: the default",
        "scale_out.shape = rail_optimised: the default",
    ):
        assert sum(line.startswith(start) for line in said) == 1, start
    assert len(said) == 5
    assert {data["latency"] for _, _, data in graph.edges(data=True)} == {0.5e-6, 0.8e-6}


def test_sources_marked_assumed_are_reported(design) -> None:
    text = GOOD + '[sources]\n"scale_up.latency" = "assumed: a guess"\n"chip.hbm_bytes" = "data sheet"\n'
    assert topo.load(design(text=text)).graph["assumptions"] == ["scale_up.latency = 0.5 us: assumed: a guess"]


# --- overrides -------------------------------------------------------------------------------------------------------


def test_overrides_change_the_graph_and_are_reported(design) -> None:
    overrides = {"scale_out.bandwidth": "800 Gb/s", "design.domain_size": 8, "chip.flops.fp8": "2 PFLOP/s"}
    graph = topo.load(design(), 2, overrides)
    assert sum(kind == "gpu" for _, kind in graph.nodes(data="kind")) == 16
    assert graph.edges["d0/gpu0", "leaf0"]["bandwidth"] == 100e9
    assert graph.graph["chips"]["X1"]["flops"] == {"bf16": 1e15, "fp8": 2e15}
    assert "scale_out.bandwidth = 800 Gb/s: overridden" in graph.graph["assumptions"]
    assert topo.load(design(), 2).edges["d0/gpu0", "leaf0"]["bandwidth"] == 50e9


def test_an_announced_design_says_so_first(design) -> None:
    text = GOOD.replace('name = "my-rack"', 'name = "my-rack"\nstatus = "announced"')
    text += '[sources]\n"chip.flops" = "assumed: a guess"\n"chip.flops.bf16" = "assumed: another"\n'
    path = design(text=text)
    announced = "announced only: figures from announcements, not from a shipping part"
    assert topo.load(path, 2).graph["assumptions"] == [
        announced, "chip.flops = bf16 1 PFLOP/s: assumed: a guess", "chip.flops.bf16 = 1 PFLOP/s: assumed: another",
    ]  # fmt: skip
    assert topo.load(path, overrides={"scale_up.latency": "1 us"}).graph["assumptions"][0] == announced
    assert announced not in topo.load(path, overrides={"design.status": "shipping"}).graph["assumptions"]


def test_a_status_is_shipping_or_announced(design) -> None:
    (fault,) = faults_of(design(('name = "my-rack"', 'name = "my-rack"\nstatus = "rumoured"')))
    assert (fault.place, fault.value) == ("design.status", "rumoured")
    assert "'shipping' or 'announced'" in fault.rule


def test_an_overridden_value_is_no_longer_assumed() -> None:
    plain, changed = topo.load("gb200-nvl72"), topo.load("gb200-nvl72", overrides={"scale_up.latency": "0 s"})
    assert any(line.startswith("scale_up.latency = 0.43 us: assumed") for line in plain.graph["assumptions"])
    assert [line for line in changed.graph["assumptions"] if "scale_up.latency" in line] == [
        "scale_up.latency = 0 s: overridden"
    ]


def test_an_override_of_a_shape_leaves_out_what_was_for_the_old_one(design) -> None:
    path = design(('"0.5 us"', '"0.5 us"\nplanes = 4\nlanes = [5, 4, 4, 5]\nreduces = true'))
    asked = {"scale_up.shape": "full_mesh", "scale_out.shape": "dragonfly", "scale_out.a": 4, "scale_out.p": 4,
             "scale_out.h": 2, "scale_out.radix": 16}  # fmt: skip
    graph = topo.load(path, 2, asked)
    assert topo.check(graph) == []
    assert [line.partition(":")[0] for line in graph.graph["assumptions"] if "left out" in line] == [
        "scale_up.planes = 4", "scale_up.lanes = [5, 4, 4, 5]", "scale_up.reduces = True",
        "scale_out.oversubscription = 1.0",
    ]  # fmt: skip
    assert topo.load(path, 2, {"scale_out.shape": "rail_only"}).nodes["rail0/leaf0"]["radix"] == 64


def test_sources_of_what_is_left_out_are_not_printed() -> None:
    said = topo.load("hgx-h100-8", 1, {"scale_up.shape": "full_mesh"}).graph["assumptions"]
    assert [line for line in said if line.startswith("scale_up.lanes")] == [
        "scale_up.lanes = [5, 4, 4, 5]: left out, it is for the design's own shape"
    ]


def test_bad_overrides_are_all_named() -> None:
    overrides = {"scale_out.radx": 128, "scale_out.bandwidth": "800 GB", "chip.flops.int8": "1 PFLOP/s", "radix": 3}
    faults = {fault.place: fault for fault in faults_of("gb200-nvl72", overrides=overrides)}
    assert set(faults) == {
        "override scale_out.radx",
        "override radix",
        "scale_out.bandwidth",
        "chip.flops.int8",
    }
    assert "Did you mean 'scale_out.radix'" in faults["override scale_out.radx"].cure
    assert faults["override scale_out.radx"].value == 128
    assert faults["scale_out.bandwidth"].rule == "is a size, not a bandwidth"


def test_an_override_can_add_the_fabric(design) -> None:
    text = GOOD[: GOOD.index("[scale_out]")]
    assert topo.load(design(text=text), 2, {"scale_out.bandwidth": "400 Gb/s"}).has_node("leaf0")


def test_an_override_of_a_table_that_is_no_table(design) -> None:
    text = "scale_up = 3\n" + GOOD[: GOOD.index("[scale_up]")]
    assert any(
        f.place.startswith("scale_up") for f in faults_of(design(text=text), overrides={"scale_up.latency": "0 s"})
    )


def test_arguments_are_left_as_they_were() -> None:
    overrides = {"scale_out.radix": 128}
    topo.load("gb200-nvl72", 2, overrides)
    assert overrides == {"scale_out.radix": 128}


# --- every fault -----------------------------------------------------------------------------------------------------

BAD = [
    (('name = "my-rack"\n', ""), "design.name", None, "is missing"),
    (('name = "my-rack"', 'name = ""'), "design.name", "", "at least 1 character"),
    (('name = "my-rack"', "name = 5"), "design.name", 5, "string"),
    (("domain_size = 4", "domain_size = 0"), "design.domain_size", 0, "greater than or equal to 1"),
    (("domain_size = 4", "domain_size = 4.0"), "design.domain_size", 4.0, "integer"),
    (("domain_size = 4", "domain_size = true"), "design.domain_size", True, "integer"),
    (("domain_size = 4", 'domain_size = "4"'), "design.domain_size", "4", "integer"),
    (("domain_size = 4", "domain_size = 4\ngpus_per_host = 6"), "design.gpus_per_host", 6, "multiple of domain_size 4"),
    (("domain_size = 4", 'domain_size = 4\naliases = "one"'), "design.aliases", "one", "tuple"),
    (("domain_size = 4", "domain_sise = 4\ndomain_size = 4"), "design.domain_sise", 4, "is not a key"),
    (('"80 GiB"', '"80"'), "chip.hbm_bytes", "80", "needs a unit"),
    (('"80 GiB"', "80"), "chip.hbm_bytes", 80, "is not a size"),
    (('"3 TB/s"', '"-3 TB/s"'), "chip.hbm_bandwidth", "-3 TB/s", "above zero"),
    (('"3 TB/s"', '"3 TB"'), "chip.hbm_bandwidth", "3 TB", "is a size, not a bandwidth"),
    (('{ bf16 = "1 PFLOP/s" }', "{}"), "chip.flops", {}, "at least one dense rate"),
    (('{ bf16 = "1 PFLOP/s" }', '{ bf16 = "1 PFLOP" }'), "chip.flops.bf16", "1 PFLOP", "not a compute rate"),
    (('{ bf16 = "1 PFLOP/s" }', '{ bf61 = "1 PFLOP/s" }'), "chip.flops.bf61", "1 PFLOP/s", "is not a dtype"),
    (('shape = "switched"', 'shape = "swiched"'), "scale_up.shape", "swiched", "is not a known shape"),
    (('"900 GB/s"', '"nan GB/s"'), "scale_up.bandwidth", "nan GB/s", "finite"),
    (('"0.5 us"', '"-1 us"'), "scale_up.latency", "-1 us", "zero or more"),
    (('"0.5 us"', '"0.5 us"\nreduces = "yes"'), "scale_up.reduces", "yes", "boolean"),
    (('"0.5 us"', '"0.5 us"\nplanes = 0'), "scale_up.planes", 0, "greater than or equal to 1"),
    (('"0.5 us"', '"0.5 us"\nplanes = 4\nlanes = 18'), "scale_up.lanes", 18, "does not divide over 4 planes"),
    (('"0.5 us"', '"0.5 us"\nplanes = 4\nlanes = [5, 4]'), "scale_up.lanes", [5, 4], "one number per plane"),
    (('"0.5 us"', '"0.5 us"\nlanes = "many"'), "scale_up.lanes", "many", "a whole number"),
    (('"0.5 us"', '"0.5 us"\nlanes = [4, 0]'), "scale_up.lanes", [4, 0], "a whole number"),
    (('shape = "rail_optimised"', 'shape = "rail"'), "scale_out.shape", "rail", "is not a known fabric"),
    (('"400 Gb/s"', '"0 Gb/s"'), "scale_out.bandwidth", "0 Gb/s", "above zero"),
    (("radix = 64", "radix = 1"), "scale_out.radix", 1, "greater than or equal to 2"),
    (("radix = 64", "radix = 64.5"), "scale_out.radix", 64.5, "integer"),
    (('"0.5 us"', '"0.5 us"\nplanes = 1000000000'), "scale_up.planes", 10**9, "less than or equal to 1024"),
    (("radix = 64", "radix = 64\nplanes = 1000000000"), "scale_out.planes", 10**9, "less than or equal to 1024"),
    (("radix = 64", "radix = 64\nnics_per_gpu = 1000000000"), "scale_out.nics_per_gpu", 10**9, "equal to 1024"),
    (("radix = 64", "radix = 64\nports_per_nic = 1000000000"), "scale_out.ports_per_nic", 10**9, "equal to 1024"),
    (("oversubscription = 1.0", "oversubscription = 0"), "scale_out.oversubscription", 0, "finite number above zero"),
    (("oversubscription = 1.0", "oversubscription = -2.0"), "scale_out.oversubscription", -2.0, "above zero"),
    (("oversubscription = 1.0", "oversubscription = true"), "scale_out.oversubscription", True, "number"),
    (("oversubscription = 1.0", 'oversubscription = "2"'), "scale_out.oversubscription", "2", "number"),
    (("oversubscription = 1.0", "oversubscription = inf"), "scale_out.oversubscription", float("inf"), "finite"),
    (("[scale_out]", "[scale_up.extra]"), "scale_up.extra", None, "is not a key"),
    (("[scale_out]", "[scaleout]"), "scaleout", None, "is not a key"),
    (("\n[design]", "\nassumptions = []\n[design]"), "assumptions", [], "is not a key"),
]


@pytest.mark.parametrize(
    ("change", "place", "value", "rule"), BAD, ids=[f"{place}={value}" for _, place, value, _ in BAD]
)
def test_fault(design, change: tuple[str, str], place: str, value: object, rule: str) -> None:
    path = design(change)
    faults = faults_of(path, 2)
    assert [fault.place for fault in faults] == [place]
    assert faults[0].file == str(path)
    assert rule in faults[0].rule
    assert value is None or faults[0].value == value


@pytest.mark.parametrize(("change", "place"), [(change, place) for change, place, _, _ in BAD if place != "scaleout"])
def test_fault_is_found_beside_others(design, change: tuple[str, str], place: str) -> None:
    """Faults do not hide each other: every fault of a file is in the first answer."""
    other = ('name = "X1"', 'name = "X1"\npower = "700"')
    assert {place, "chip.power"} <= {fault.place for fault in faults_of(design(change, other), 2)}


def test_names_known_keys_near_the_wrong_one(design) -> None:
    (fault,) = faults_of(design(("domain_size = 4", "domain_size = 4\ngpu_per_host = 4")))
    assert "Did you mean 'design.gpus_per_host'" in fault.cure
    assert "design.domain_size" in fault.cure


def test_an_empty_file_names_every_table(design) -> None:
    assert {fault.place for fault in faults_of(design(text=""))} == {"design", "chip", "scale_up"}


def test_more_end_ports_than_a_graph_holds(design) -> None:
    path = design(("radix = 64", "radix = 64\nnics_per_gpu = 1024\nports_per_nic = 1024"))
    (fault,) = faults_of(path, 2)
    assert (fault.place, fault.value) == ("scale_out.nics_per_gpu x ports_per_nic", "1024 x 1024")


def test_a_table_that_is_no_table(design) -> None:
    text = "chip = 5\n" + GOOD[: GOOD.index("[chip]")] + GOOD[GOOD.index("[scale_up]") :]
    (fault,) = faults_of(design(text=text))
    assert (fault.place, fault.value) == ("chip", 5)


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["[design", "a = ", "[design]\nname = 'x'\nname = 'y'", "\x00", "{}"], ids=repr)
def test_toml_syntax(design, text: str) -> None:
    path = design(text=text)
    (fault,) = faults_of(path)
    assert (fault.file, fault.rule) == (str(path), "is not valid TOML")
    assert "line" in str(fault.value) or "at end of document" in str(fault.value)


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 5000 + "]" * 5000], ids=["digits", "depth"])
def test_toml_that_python_gives_up_on(design, value: str) -> None:
    (fault,) = faults_of(design(("domain_size = 4", f"domain_size = {value}")))
    assert fault.rule == "is not valid TOML"


def test_missing_file(tmp_path: Path) -> None:
    for name in (tmp_path / "none.toml", str(tmp_path / "none.toml"), "none.toml"):
        (fault,) = faults_of(name)
        assert "No such file" in fault.rule
        assert "none.toml" in str(fault)


def test_directory(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path)
    assert fault.rule == "cannot be read: Is a directory"


def test_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "rack.toml"
    path.write_bytes(bytes(range(128, 256)))
    (fault,) = faults_of(path)
    assert fault.rule == "is not a text file"


@pytest.mark.parametrize(
    "name", ["a\x00b", "a\x00b.toml", "x" * 5000, "x" * 5000 + ".toml", ""], ids=lambda name: repr(name[:8])
)
def test_names_no_file_can_have(name: str) -> None:
    faults_of(name)


@pytest.mark.skipif(os.name == "nt" or getattr(os, "geteuid", lambda: 1)() == 0, reason="needs a file it may not read")
def test_unreadable_file(design) -> None:
    path = design()
    path.chmod(0)
    (fault,) = faults_of(path)
    assert "ermission denied" in fault.rule


@pytest.mark.parametrize(
    ("name", "near"), [("gb200-nvl7", "gb200-nvl72"), ("H100", "hgx-h100-8"), ("mi300x", "mi300x-8")]
)
def test_unknown_design_suggests_the_nearest(name: str, near: str) -> None:
    (fault,) = faults_of(name)
    assert fault.place == "design"
    assert f"Did you mean '{near}'" in fault.cure
    assert all(known in fault.cure for known in topo.list_designs())


# --- domains ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domains", [0, -1, True, False, 1.5, 2.0, "2", None, float("nan")], ids=repr)
def test_domains_must_be_whole(domains: object) -> None:
    (fault,) = faults_of("hgx-h100-8", domains)
    assert (fault.place, fault.rule) == ("domains", "must be a whole number, one or more, or a list of GPUs in each")


def test_domains_need_a_fabric(design) -> None:
    path = design(text=GOOD[: GOOD.index("[scale_out]")])
    assert topo.load(path).number_of_nodes() == 5
    (fault,) = faults_of(path, 2)
    assert (fault.place, fault.file) == ("scale_out", str(path))
    assert "states no NIC rate, so 2 domains cannot be joined" in fault.rule
