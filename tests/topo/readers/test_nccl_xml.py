"""Is every topology file of NCCL and RCCL read right, or refused?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import topo
from topo import InputError

from .seen import HOST, domains, graph_of, host, kinds, links, per_gpu, text_of, way


def board(lanes: tuple[int, ...] = (2, 2), gpus: int = 4, sm: int = 80, device: str = "0x20b2") -> str:
    """Write a host of one switch, GPUs on NVSwitch chips with so many lanes to each, and one NIC."""
    nvlinks = "".join(f'<nvlink target="0000:c{i}:00.0" count="{n}" tclass="0x068000"/>' for i, n in enumerate(lanes))
    return (
        '<system version="1">\n<cpu numaid="0" arch="x86_64" vendor="GenuineIntel">\n'
        '<pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">\n'
        + "".join(
            f'<pci busid="0000:0{i + 2}:00.0" class="0x030200" vendor="0x10de" device="{device}" '
            f'link_speed="16.0 GT/s PCIe" link_width="16">\n'
            f'<gpu dev="{i}" sm="{sm}" rank="{i}">{nvlinks}</gpu>\n</pci>\n'
            for i in range(gpus)
        )
        + '<pci busid="0000:0c:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">\n<nic>'
        '<net name="mlx5_0" dev="0" speed="200000" port="1" guid="0xa262550003a1420c"/></nic>\n</pci>\n'
        "</pci>\n</cpu>\n</system>\n"
    )


# --- the files of the field ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("azure-ndv4-topo", {"cpu": 4, "gpu": 8, "nic": 8, "switch": 4}),  # b01
        ("azure-ndv2-topo", {"cpu": 2, "gpu": 8, "nic": 1}),  # b03
        ("aws-p4d-24xl-topo", {"cpu": 2, "gpu": 8, "nic": 4, "switch": 4}),  # b06
        ("aws-p4de-24xl-topo", {"cpu": 2, "gpu": 8, "nic": 4, "switch": 4}),  # b07
    ],
)
def test_templates_of_clouds(name: str, counts: dict[str, int]) -> None:
    reading, graph = host(f"nccl-xml/{name}.xml")
    assert kinds(graph) == counts
    assert links(graph) == {}
    assert any("no gpu, net or nvlink elements" in note for note in reading.notes)


def test_b06_two_gpus_share_a_nic_on_pcie_3() -> None:
    _, graph = host("nccl-xml/aws-p4d-24xl-topo.xml")
    assert way(graph, "0000:10:1c.0", "0000:10:1b.0") == ["switch"]
    assert way(graph, "0000:10:1d.0", "0000:10:1b.0") == ["switch"]
    assert way(graph, "0000:10:1c.0", "0000:20:1b.0") == ["switch", "cpu", "switch"]
    speed = graph.edges["0000:10:1c.0", "ffff:ff:01.0"]["bandwidth"]
    assert speed == pytest.approx(8e9 / 8 * 128 / 130 * 16)


def test_b01_ranks_follow_bus_ids() -> None:
    _, graph = host("nccl-xml/azure-ndv4-topo.xml")
    ranks = {data["rank"]: node for node, data in graph.nodes(data=True) if data["kind"] == "gpu"}
    assert [ranks[0], ranks[2], ranks[4], ranks[7]] == [f"{n}:00:00.0" for n in ("0001", "0003", "000b", "000e")]


def test_b09_mesh_of_eight() -> None:
    _, graph = host("nccl-xml/rccl-topo_8p_940.xml")
    assert kinds(graph) == {"cpu": 2, "gpu": 8, "nic": 8, "switch": 24}
    assert (2 * sum(links(graph).values()), per_gpu(graph)) == (56, {7})
    assert {graph.nodes[f"mlx5_{i}"]["bandwidth"] for i in range(8)} == {50e9}  # 400,000 Mb/s
    assert graph.edges["GPU0", "GPU7"]["bandwidth"] == 64e9  # gfx942
    assert way(graph, "GPU0", "mlx5_0") == ["switch", "switch", "switch"]


def test_b12_mesh_of_four() -> None:
    _, graph = host("nccl-xml/rccl-topo_4p3l.xml")
    assert (len(links(graph)), per_gpu(graph)) == (6, {3})
    nets = {node: data["bandwidth"] for node, data in graph.nodes(data=True) if data["kind"] == "nic"}
    assert nets == {"enp96s0f0": 1.25e9, "veth608058c": 1.25e9}
    assert graph.edges["enp96s0f0", "0000:5e:00.0"]["bandwidth"] == 0.25e9  # 2.5 GT/s, one lane


def test_b14_two_hives() -> None:
    _, graph = host("nccl-xml/rccl-topo_collnet_n4.xml")
    assert domains(graph) == [[f"GPU{i}" for i in range(4)], [f"GPU{i}" for i in range(4, 8)]]
    assert 2 * len(links(graph)) == 24
    assert [data["bandwidth"] for _, data in graph.nodes(data=True) if data["kind"] == "nic"] == 4 * [25e9]


def test_b17_fragment() -> None:
    reading, graph = host("nccl-xml/dgx1-v100-nvlink-p2p-fragment.xml")
    own = {min(pair - {"GPU0"}): n for pair, n in links(graph).items() if "GPU0" in pair}
    assert own == {"GPU1": 1, "0000:0a:00.0": 1, "0000:0b:00.0": 2, "0000:85:00.0": 2}  # 6 links
    assert any("cut off at line 15" in note for note in reading.notes)
    assert graph.edges["GPU0", "0000:0b:00.0"]["bandwidth"] == 50e9


# --- what links lead to ----------------------------------------------------------------------------------------------


def test_links_to_switch_chips_are_one_domain(tmp_path: Path) -> None:
    graph = graph_of(text_of(tmp_path, board((2,) * 6)))
    assert kinds(graph) == {"cpu": 1, "switch": 1, "gpu": 4, "nic": 1, "nvswitch": 1}
    assert links(graph) == {frozenset((f"GPU{i}", "NVSwitch0")): 12 for i in range(4)}
    assert graph.edges["GPU0", "NVSwitch0"]["bandwidth"] == 300e9
    assert graph.nodes["mlx5_0"]["guid"] == "0xa262550003a1420c"
    hopper = graph_of(text_of(tmp_path, board((5, 5, 4, 4), sm=90, device="0x2330")))
    assert hopper.edges["GPU3", "NVSwitch0"]["bandwidth"] == 450e9


def test_a_rack_wide_domain_of_two_trays(tmp_path: Path) -> None:
    text = board((18,), gpus=2, sm=100, device="0x2941").replace("0000:c0:00.0", "fffffff:ff:ff.0")
    text = text.replace("</gpu>", '<c2c bw="44712" count="5"/></gpu>').replace("<cpu ", '<cpu host_hash="0xa" ')
    cpu = text[text.index("<cpu") : text.index("</system>")]
    second = cpu.replace("0xa", "0xb", 1).replace('rank="0"', 'rank="2"').replace('rank="1"', 'rank="3"')
    graph = graph_of(text_of(tmp_path, text.replace("</system>", f"{second}</system>")))
    assert kinds(graph) == {"cpu": 2, "switch": 2, "gpu": 4, "nic": 2, "nvswitch": 1}
    assert domains(graph) == [["0xa/GPU0", "0xa/GPU1", "0xb/GPU0", "0xb/GPU1"]]
    assert graph.edges["0xb/GPU1", "NVSwitch0"]["bandwidth"] == 900e9
    assert graph.nodes["0xb/GPU1"]["host"] == "0xb"
    assert graph.edges["0xa/GPU0", "0xa/CPU0"]["bandwidth"] == 5 * 44.712e9


def test_one_gpu_off_the_switch_is_seen(tmp_path: Path) -> None:
    text = board((12,))
    last = text.rindex("<nvlink")
    reading = text_of(tmp_path, text[:last] + text[text.index("</gpu>", last) :])
    assert [len(part) for part in domains(graph_of(reading))] == [3, 1]
    assert "GPU3 has no scale-up link: reached over PCIe" in reading.notes


def test_unequal_lanes_are_said(tmp_path: Path) -> None:
    text = board((12,))
    reading = text_of(tmp_path, text[: (at := text.rindex('"12"'))] + '"11"' + text[at + 4 :])
    assert any("GPU3 11" in note for note in reading.notes)


def test_pcie_without_a_speed_and_other_devices(tmp_path: Path) -> None:
    text = board().replace('link_speed="16.0 GT/s PCIe"', 'link_speed="Unknown speed"', 1)
    text = text.replace("</cpu>", '<pci busid="0000:ee:00.0" class="0x010802" link_speed="8 GT/s"/>\n</cpu>')
    reading = text_of(tmp_path, text.replace('link_width="16"', 'link_width="0"'))  # as NCCL: 0 is 16
    graph = graph_of(reading)
    assert graph.edges["GPU0", "0000:01:00.0"]["bandwidth"] == pytest.approx(31.5e9, rel=1e-3)
    assert any("without a speed" in note and "0000:01:00.0 (1)" in note for note in reading.notes)
    assert any("1 of class 0x010802" in note for note in reading.notes)
    odd = text_of(tmp_path, board().replace("<nic>", "<nice>").replace("</nic>", "</nice>"))
    assert "elements left aside, not known to be NCCL's: nice" in odd.notes


def test_every_link_to_every_peer_is_a_switch(tmp_path: Path) -> None:
    text = board(())
    for i in range(4):
        links_of = "".join(
            f'<nvlink target="0000:0{j + 2}:00.0" count="12" tclass="0x030200"/>' for j in range(4) if i != j
        )
        text = text.replace(f'rank="{i}">', f'rank="{i}">{links_of}')
    graph = graph_of(text_of(tmp_path, text))
    assert (kinds(graph)["nvswitch"], per_gpu(graph)) == (1, {12})
    direct = graph_of(text_of(tmp_path, text.replace('count="12"', 'count="4"')))
    assert ("nvswitch" in kinds(direct), per_gpu(direct)) == (False, {12})


# --- dirt ------------------------------------------------------------------------------------------------------------


def test_text_around_and_twice(tmp_path: Path) -> None:
    plain = graph_of(text_of(tmp_path, board()))
    for text in (
        f"```xml\n{board()}```\nand so on <b>",
        board() + board(),
        board().replace("\n", "\r\n"),
        '<?xml version="1.0" encoding="utf-16"?>\n' + board(),
        "<!-- p4d -->\n" + board(),
        board().replace("\n", ""),
    ):
        assert sorted(graph_of(text_of(tmp_path, text)).edges) == sorted(plain.edges)  # fmt: skip
    with pytest.raises(InputError, match="line 22 = '<system>': is another <system> than the first"):
        text_of(tmp_path, board() + board((3, 3)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('count="1"', 'count="x"'), "must be a whole number"),
        (('target="0000:20:00.0" count="1"', 'target="0000:20:00.0" count="2"'), "2: links from GPU0 to GPU1, but 1"),
        (('target="0000:20:00.0"', 'target="0000:99:00.0"'), "is the target of a link, but no other GPU"),
        (('busid="0000:20:00.0"', 'busid="0000:1d:00.0"'), "other GPU|stands there twice"),
        (("</gpu>", "</cpu>"), "not well-formed"),
        (('busid="0000:20:00.0"', 'busid="0000:2g:00.0"'), "'0000:2g:00.0': must be a PCI address as 0000:07:00.0"),
        (('class="0x038000"', 'class="GPU"'), "line 9, <pci> class = 'GPU': must be a PCI class as 0x030200"),
        (('dev="1"', 'ddv="1"'), "<gpu> dev = '': must be a whole number"),
        (('dev="1"', 'dev="0"'), "stands there twice"),
        (('<system version="2">', '<!DOCTYPE s [<!ENTITY a "b">]>\n<system version="2">&a;'), "entities"),
    ],
)
def test_refused(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    text = (HOST / "nccl-xml" / "rccl-topo_4p3l.xml").read_text()
    assert change[0] in text
    with pytest.raises(InputError, match=message):
        text_of(tmp_path, text.replace(*change, 1))


def test_no_gpu_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no GPU"):
        text_of(
            tmp_path, '<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0" class="0x020000"/></cpu></system>'
        )
    with pytest.raises(InputError, match="more than 200 deep"):
        text_of(tmp_path, '<system><cpu numaid="0">' + 300 * '<pci busid="0000:01:00.0" class="0x060400">')


@pytest.mark.parametrize("name", ["rccl-topo_4p3l.xml", "aws-p4d-24xl-topo.xml", "rccl-topo_collnet_n4.xml"])
def test_cut_at_every_line_says_so_and_adds_nothing(name: str, tmp_path: Path) -> None:
    text = (HOST / "nccl-xml" / name).read_text()
    whole = links(graph_of(text_of(tmp_path, text)))
    busid = {data["pci"]: node for node, data in host(f"nccl-xml/{name}")[1].nodes(data=True) if data.get("pci")}
    lines = text.rstrip("\n").split("\n")
    read = 0
    for n in range(1, len(lines)):
        try:
            reading = text_of(tmp_path, "\n".join(lines[:n]))
        except InputError:
            continue
        assert any(re.search(r"cut off at line \d+", note) for note in reading.notes)
        found = links(graph_of(reading))
        named = {frozenset(busid.get(node, node) for node in pair): lanes for pair, lanes in found.items()}
        assert named.items() <= whole.items()
        read += 1
    assert read > 10


PORTS = """<system version="1">
<cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
<pci busid="0000:61:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16"><nic>
<net name="mlx5_4" dev="0" speed="200000" port="1" guid="0x1"/>
<net name="mlx5_5" dev="1" speed="100000" port="2" guid="0x2"/>
</nic></pci>
<pci busid="0000:07:00.0" class="0x030200" vendor="0x10de" device="0x20b0" link_speed="16.0 GT/s PCIe" link_width="16">
<gpu dev="0" sm="80" rank="0"/></pci>
<nic><net name="eth0" dev="2" speed="10000"/></nic>
</cpu></system>
"""


def test_ports_of_one_adapter_share_its_slot(tmp_path: Path) -> None:
    """PCIe 4 x16 carries 31.5 GB/s: a port of 200 Gb/s (25 GB/s) is not held back by it; two at once are."""
    path = tmp_path / "topo.xml"
    path.write_text(PORTS)
    reading = topo.read(path)
    assert reading.graph is not None
    edges = reading.graph.edges
    slot = 16 * 16e9 / 8 * 128 / 130
    for a, b in (("CPU0", "0000:61:00.0"), ("0000:61:00.0", "mlx5_4"), ("0000:61:00.0", "mlx5_5")):
        assert edges[a, b]["bandwidth"] == pytest.approx(slot)
    assert any("without a speed" in note and "eth0" in note for note in reading.notes)
    assert not any("mlx5" in note for note in reading.notes)
