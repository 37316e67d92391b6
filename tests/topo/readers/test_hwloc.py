"""Is hwloc's XML read right: CPUs, PCIe with its speeds, NVLink by its bandwidths?"""

from __future__ import annotations

from pathlib import Path

import pytest

from topo import InputError

from .seen import domains, graph_of, kinds, links, per_gpu, text_of, way


def gpu(n: int, model: str = "Tesla V100-SXM3-32GB") -> str:
    """Write a GPU behind a bridge of its own."""
    return (
        f'<object type="Bridge" gp_index="{500 + n}" bridge_type="1-1" depth="2" pci_busid="0000:2{n}:00.0" '
        'pci_type="0604 [10b5:9781] [10b5:9781] b0" pci_link_speed="15.753846">'
        f'<object type="PCIDev" gp_index="{600 + n}" pci_busid="0000:3{n}:00.0" '
        'pci_type="0302 [10de:1db8] [10de:131d] a1" pci_link_speed="15.753846">'
        f'<object type="OSDev" gp_index="{800 + n}" name="nvml{n}" osdev_type="1">'
        f'<info name="GPUModel" value="{model}"/></object></object></object>\n'
    )


NIC = (
    '<object type="PCIDev" gp_index="700" pci_busid="0000:40:00.0" pci_type="0207 [15b3:1017] [15b3:0007] 00" '
    'pci_link_speed="15.753846"><object type="OSDev" gp_index="701" name="ib0" osdev_type="2"/>'
    '<object type="OSDev" gp_index="702" name="mlx5_0" osdev_type="3"/></object>\n'
)
VGA = '<object type="PCIDev" pci_busid="0000:50:00.0" pci_type="0300 [1a03:2000] [1a03:2000] 41"/>'
CHIPS = "".join(
    f'<object type="PCIDev" gp_index="{900 + i}" subtype="NVSwitch" pci_type="0680 [10de:1ac2] [0:0] a1"/>'
    for i in range(2)
)


def package(n: int, io: str) -> str:
    """Write a CPU with a host bridge and a PCIe switch below."""
    return (
        f'<object type="Package" os_index="{n}" gp_index="{n}"><object type="NUMANode" os_index="{n}"/>'
        f'<object type="Core" os_index="{n}"/>'
        f'<object type="Bridge" gp_index="{100 + n}" bridge_type="0-1" depth="0">'
        f'<object type="Bridge" gp_index="{110 + n}" bridge_type="1-1" pci_busid="0000:1{n}:00.0" '
        f'pci_type="0604 [10b5:9781]" pci_link_speed="15.753846">{io}</object></object></object>\n'
    )


def machine(inside: str, after: str = "") -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">\n'
        f'<object type="Machine" os_index="0"><info name="HostName" value="node7"/>\n{inside}'
        f"</object>\n{after}</topology>\n"
    )


def bandwidths(names: list[str], rows: list[list[int]]) -> str:
    """Write a matrix over lines, as hwloc does."""
    values = "".join(f"<u64values>{' '.join(map(str, row))} </u64values>\n" for row in rows)
    return (
        f'<distances2hetero nbobjs="{len(names)}" kind="25" name="NVLinkBandwidth"><indexes>{" ".join(names[:1])} '
        f"</indexes><indexes>{' '.join(names[1:])} </indexes>\n{values}</distances2hetero>\n"
    )


TWO = package(0, gpu(0) + gpu(1) + NIC) + package(1, gpu(2) + gpu(3) + VGA)


def test_places_and_speeds(tmp_path: Path) -> None:
    reading = text_of(tmp_path, machine(TWO))
    graph = graph_of(reading)
    assert reading.kind == "hwloc-xml"
    assert kinds(graph) == {"gpu": 4, "nic": 1, "cpu": 2, "switch": 2}  # bridges with one device are part of its link
    assert way(graph, "GPU0", "mlx5_0") == ["switch"]
    assert way(graph, "GPU0", "GPU2") == ["switch", "cpu", "cpu", "switch"]
    assert graph.edges["GPU0", "0000:10:00.0"]["bandwidth"] == pytest.approx(15.753846e9)
    assert {data["host"] for _, data in graph.nodes(data=True)} == {"node7"}
    assert graph.nodes["GPU3"]["rank"] == 3
    assert any(note.startswith("no NVLink or XGMI bandwidths") for note in reading.notes)


def test_links_to_switch_chips(tmp_path: Path) -> None:
    names = [*(f"OSDev:{800 + i}" for i in range(4)), "PCIDev:900", "PCIDev:901"]
    rows = [[0, 0, 0, 0, 75000, 75000]] * 4 + [[75000] * 4 + [0, 0]] * 2
    graph = graph_of(text_of(tmp_path, machine(TWO + package(2, CHIPS), bandwidths(names, rows))))
    assert kinds(graph) == {"gpu": 4, "nic": 1, "cpu": 3, "switch": 2, "nvswitch": 1}
    assert per_gpu(graph) == {6}
    assert graph.edges["GPU0", "NVSwitch0"]["bandwidth"] == 150e9


def test_direct_links_and_links_to_cpus(tmp_path: Path) -> None:
    names = [*(f"OSDev:{800 + i}" for i in range(4)), "Package:0", "Package:1"]
    text = "9 4 0 0 4 0  4 9 0 0 4 0  0 0 9 4 0 4  0 0 4 9 0 4  4 4 0 0 9 0  0 0 4 4 0 9"
    rows = [[10000 * int(digit) for digit in row.split()] for row in text.split("  ")]
    text = machine(TWO.replace("Tesla V100-SXM3-32GB", "Tesla P100-SXM2-16GB"), bandwidths(names, rows))
    graph = graph_of(text_of(tmp_path, text))
    assert links(graph) == {frozenset(("GPU0", "GPU1")): 2, frozenset(("GPU2", "GPU3")): 2}
    assert domains(graph) == [["GPU0", "GPU1"], ["GPU2", "GPU3"]]
    assert graph.edges["GPU0", "CPU0"]["bandwidth"] == 40e9
    assert graph.edges["GPU0", "GPU1"]["bandwidth"] == 40e9
    rows[0][1] = 20000
    with pytest.raises(InputError, match="other bandwidths from GPU0 to GPU1 than back"):
        text_of(tmp_path, machine(TWO, bandwidths(names, rows)))
    with pytest.raises(InputError, match="must hold 6 x 6 whole numbers"):
        text_of(tmp_path, machine(TWO, bandwidths(names, rows[:-1])))


def test_io_on_the_machine_and_slow_links(tmp_path: Path) -> None:
    text = machine(package(0, "") + package(1, "") + gpu(0)).replace('"15.753846"', '"0.000000"')
    reading = text_of(tmp_path, text)
    graph = graph_of(reading)
    assert kinds(graph) == {"gpu": 1, "cpu": 2}
    assert "I/O that the file hangs on no CPU: on the first one here" in reading.notes
    assert any("links without a speed" in note for note in reading.notes)


def test_without_gpus_or_cut(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no GPU. Write it with I/O devices: lstopo --whole-io --of xml"):
        text_of(tmp_path, machine(package(0, NIC)))
    text = machine(TWO)
    reading = text_of(tmp_path, text[: text.index(gpu(3))])
    assert kinds(graph_of(reading))["gpu"] == 3
    assert any("cut off at line" in note for note in reading.notes)
