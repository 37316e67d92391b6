"""Is every matrix of `nvidia-smi topo -m` read right, however it was pasted, or refused?"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest

from topo import InputError

from .seen import HOST, domains, graph_of, host, kinds, links, per_gpu, text_of, way

LEGEND = "\n\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n  NV#  = Connection traversing # NVLinks\n"


def matrix(names: list[str], cell: Callable[[str, str], str], numa: dict[str, str] | None = None) -> str:
    """Write a matrix as the tool does: tabs, blanks around X, affinities of GPUs."""
    sides = "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID" if numa else ""
    rows = [f"\t{chr(9).join(names)}{sides}"]
    for a in names:
        cells = [" X " if a == b else cell(*sorted((a, b))) for b in names]
        rows.append("\t".join([a, *cells]) + (f"\t0-15\t{numa[a]}\t\tN/A" if numa and a in numa else ""))
    return "\n".join(rows) + "\n"


def gpus(n: int) -> list[str]:
    return [f"GPU{i}" for i in range(n)]


def all_to_all(n: int, cell: str) -> str:
    return matrix(gpus(n), lambda a, b: cell, dict.fromkeys(gpus(n), "0"))


# --- the files of the field ------------------------------------------------------------------------------------------


def test_a01_dgx1_hybrid_cube_mesh() -> None:
    _, graph = host("topo-m/dgx1-v100-mlx5-columns.txt")
    assert kinds(graph) == {"gpu": 8, "nic": 4, "cpu": 2, "switch": 4}
    assert per_gpu(graph) == {6}
    lanes = list(links(graph).values())
    assert (len(lanes), lanes.count(1), lanes.count(2), sum(lanes)) == (16, 8, 8, 24)
    assert way(graph, "GPU0", "mlx5_0") == ["switch"]
    assert way(graph, "GPU0", "mlx5_1") == ["switch", "cpu", "switch"]  # the columns stand 0, 2, 1, 3
    assert way(graph, "GPU0", "mlx5_2") == ["switch", "cpu", "cpu", "switch"]
    assert graph.edges["GPU0", "GPU3"]["bandwidth"] == 50e9  # two NVLinks of V100


def test_a04_full_mesh_of_four() -> None:
    _, graph = host("topo-m/c4140-v100-trailing-tabs.txt")
    assert kinds(graph) == {"gpu": 4, "nic": 1, "cpu": 1}
    assert per_gpu(graph) == {6}
    assert sum(links(graph).values()) == 12
    assert way(graph, "GPU0", "mlx5_0") == ["cpu"]


def test_a06_bridge_pairs() -> None:
    _, graph = host("topo-m/nvlink-bridge-pairs-4gpu.txt")
    assert links(graph) == {frozenset(("GPU0", "GPU1")): 4, frozenset(("GPU2", "GPU3")): 4}
    assert domains(graph) == [["GPU0", "GPU1"], ["GPU2", "GPU3"]]
    assert way(graph, "GPU3", "NIC0") == ["switch"]
    assert way(graph, "GPU2", "NIC0") == ["switch", "switch"]
    assert way(graph, "GPU0", "NIC0") == ["cpu", "cpu", "switch", "switch"]
    assert graph.nodes["NIC0"]["nic"] == "mlx5_0"


def test_a08_single_gpu() -> None:
    reading, graph = host("topo-m/single-gpu-two-nics.txt")
    assert kinds(graph) == {"gpu": 1, "nic": 2, "cpu": 1, "switch": 1}
    assert way(graph, "NIC0", "NIC1") == ["switch"]
    assert way(graph, "GPU0", "NIC1") == ["cpu", "switch"]
    assert not any("no scale-up" in note for note in reading.notes)  # one GPU has no peer


def test_a09_eight_numa_nodes() -> None:
    _, graph = host("topo-m/pcie8-all-sys-nps4.txt")
    assert kinds(graph) == {"gpu": 8, "cpu": 8}
    assert links(graph) == {}
    assert graph.has_edge("GPU0", "CPU3")  # NUMA numbers are not in GPU order
    assert graph.has_edge("GPU4", "CPU7")
    assert [graph.nodes[gpu]["rank"] for gpu in gpus(8)] == list(range(8))


def test_a11_two_islands_are_two_domains() -> None:
    _, graph = host("topo-m/h200-two-nvl4-islands.txt")
    assert kinds(graph) == {"gpu": 8, "cpu": 2, "nvswitch": 2}
    assert domains(graph) == [gpus(8)[:4], gpus(8)[4:]]
    assert per_gpu(graph) == {18}


def test_a15_cut_in_the_nics() -> None:
    reading, graph = host("topo-m/b200-shared-nic-pairs-cut.txt")
    assert kinds(graph) == {"gpu": 8, "nic": 8, "cpu": 2, "nvswitch": 1, "switch": 4}
    assert per_gpu(graph) == {18}
    for gpu, nic in ((0, 0), (1, 1), (0, 1), (2, 3), (7, 6)):
        assert way(graph, f"GPU{gpu}", f"NIC{nic}") == ["switch"]
    assert way(graph, "GPU0", "NIC2") == ["switch", "cpu", "switch"]
    assert any("NIC7" in note and "cut" in note for note in reading.notes)


@pytest.mark.parametrize(
    ("name", "lanes", "rate"), [("a100-hand-trimmed", 12, 300e9), ("h100-8gpu-no-nic", 18, 450e9)]
)  # a17, a18
def test_switched_boards(name: str, lanes: int, rate: float) -> None:
    reading, graph = host(f"topo-m/{name}.txt")
    assert kinds(graph) == {"gpu": 8, "cpu": 2, "nvswitch": 1}
    assert links(graph) == {frozenset((gpu, "NVSwitch0")): lanes for gpu in gpus(8)}
    assert graph.edges["GPU5", "NVSwitch0"]["bandwidth"] == rate
    assert any("assumed" in note and "25 GB/s per link" in note for note in reading.notes)
    assert graph.has_edge("GPU3", "CPU0")
    assert graph.has_edge("GPU4", "CPU1")


# --- what is a switch ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "cell", "switched"),
    [(16, "NV6", True), (8, "NV8", True), (4, "NV18", True), (4, "NV12", True), (4, "NV4", False), (4, "NV6", False),
     (4, "NV2", False), (2, "NV12", False), (2, "NV18", False), (3, "NV36", True), (8, "NV2", False)],
)  # fmt: skip
def test_more_links_than_a_gpu_has_are_a_switch(n: int, cell: str, switched: bool, tmp_path: Path) -> None:
    graph = graph_of(text_of(tmp_path, all_to_all(n, cell)))
    count = int(cell[2:])
    assert kinds(graph).get("nvswitch", 0) == switched
    assert per_gpu(graph) == {count if switched else count * (n - 1)}
    assert len(domains(graph)) == 1


def test_a_product_named_in_the_text_decides(tmp_path: Path) -> None:
    text = all_to_all(3, "NV6")  # 12 links: possible for an A100, not for a V100
    assert kinds(graph_of(text_of(tmp_path, text))).get("nvswitch", 0) == 0
    assert kinds(graph_of(text_of(tmp_path, f"GPU 0: Tesla V100-SXM3-32GB\n{text}")))["nvswitch"] == 1
    blackwell = graph_of(text_of(tmp_path, f"GPU models: NVIDIA B200\n{all_to_all(8, 'NV18')}"))
    assert blackwell.edges["GPU0", "NVSwitch0"]["bandwidth"] == 900e9
    old_table = graph_of(text_of(tmp_path, f"|   0  A100-SXM4-40GB      On   |\n{all_to_all(2, 'NV4')}"))
    assert old_table.edges["GPU0", "CPU0"]["bandwidth"] == pytest.approx(31.5e9, rel=1e-3)  # PCIe 4.0
    gaming = graph_of(text_of(tmp_path, f"GPU 0: NVIDIA GeForce RTX 3090\n{all_to_all(2, 'NV4')}"))
    assert gaming.edges["GPU0", "GPU1"]["bandwidth"] == 56.25e9
    two = f"NVIDIA B200 or NVIDIA H100\n{all_to_all(8, 'NV18')}"
    assert graph_of(text_of(tmp_path, two)).edges["GPU0", "NVSwitch0"]["bandwidth"] == 450e9


def test_a_gpu_with_fewer_links_and_one_without(tmp_path: Path) -> None:
    lanes = dict.fromkeys(gpus(8), 18) | {"GPU3": 16, "GPU6": 0}
    cell = lambda a, b: f"NV{n}" if (n := min(lanes[a], lanes[b])) else "NODE"  # noqa: E731
    reading = text_of(tmp_path, matrix(gpus(8), cell, dict.fromkeys(gpus(8), "0")))
    graph = graph_of(reading)
    assert {len(part) for part in domains(graph)} == {7, 1}
    assert links(graph) == {frozenset((g, "NVSwitch0")): n for g, n in lanes.items() if n}
    assert "GPU6 has no scale-up link: reached over PCIe" in reading.notes


def test_links_no_gpu_can_have_are_refused(tmp_path: Path) -> None:
    cell = lambda a, b: "NV12" if (a, b) != ("GPU0", "GPU1") else "NV8"  # noqa: E731
    with pytest.raises(InputError, match="more than 18, and the pairs are not those of one switch"):
        text_of(tmp_path, matrix(gpus(4), cell))
    with pytest.raises(InputError, match="not those of one switch"):
        text_of(tmp_path, matrix(gpus(4), lambda a, b: "SYS" if (a, b) == ("GPU0", "GPU1") else "NV12"))


# --- dirt ------------------------------------------------------------------------------------------------------------


def parts(graph: nx.Graph[str]) -> object:
    """Return nodes and edges whatever their order, PCIe switches by what hangs on them."""
    label = {
        node: "+".join(sorted(n for n in graph[node] if graph.nodes[n]["kind"] != "cpu")) if data["kind"] == "switch"
        else node for node, data in graph.nodes(data=True)
    }  # fmt: skip
    edges = {
        (frozenset((label[a], label[b])), d["kind"], d["lanes"], d["bandwidth"]) for a, b, d in graph.edges(data=True)
    }
    return {label[node] for node in graph}, edges


def _wrapped(text: str) -> str:
    """Break the rows after their fifth cell, as a narrow terminal copied with line ends."""
    return re.sub(r"^(GPU\d(?:\s+\S+){5})\s", r"\1\n", text, flags=re.MULTILINE)


SAME: dict[str, Callable[[str], str]] = {
    "colours": lambda t: "\x1b[4m" + t.replace("\n", "\x1b[0m\n", 1).replace("NV1", "\x1b[1mNV1"),
    "one blank": lambda t: re.sub(r"[ \t]+", " ", t),
    "trailing tabs": lambda t: t.replace("\n", "\t\t\n"),
    "carriage returns": lambda t: t.replace("\n", "\r\n"),
    "quoted": lambda t: "".join(f"> {line}" for line in t.splitlines(keepends=True)),
    "prefixed": lambda t: "".join(f"[1,0]<stdout>:{line}" for line in t.splitlines(keepends=True)),
    "bars": lambda t: "".join("|" + re.sub(r"\t+", " | ", line) for line in t.splitlines(keepends=True)),
    "prompt": lambda t: f"root@node1:~# nvidia-smi topo -m\n{t}root@node1:~# exit\n",
    "twice": lambda t: t + "\n" + t,
    "lines twice": lambda t: "".join(2 * line for line in t.splitlines(keepends=True)),
    "rows turned": lambda t: re.sub(r"(?m)(?:^GPU\d.*\n)+", lambda m: "\n".join([*m[0].split("\n")[-2::-1], ""]), t),
    "cut last row": lambda t: t.split("\n\nLegend")[0].rstrip("\n").rpartition("\n")[0] + "\n",
    "cut in a cell": lambda t: re.sub(r"^(GPU5(?:\s+\S+){3}).*$", r"\1 N", t, flags=re.MULTILINE),
    "cut in a number": lambda t: re.sub(r"^(GPU5(?:\s+\S+){3}).*$", r"\1 NV1", t, flags=re.MULTILINE),
    "no row": lambda t: re.sub(r"^GPU2.*\n", "", t, flags=re.MULTILINE),
    "glued header": lambda t: re.sub(r"(?<=\d)[ \t]+(?=GPU\d|NIC\d|mlx|CPU)|(?<=Affinity)[ \t]+", "", t, count=12),
    "glued cells": lambda t: re.sub(r"(NV\d+|SYS|NODE|PIX|PHB|PXB)[ \t]+(?=NV|SYS|NODE|PIX|PHB|PXB)", r"\1", t),
    "wrapped": _wrapped,
    "old words": lambda t: t.replace("SYS", "SOC"),
    "shouted": lambda t: t.replace("CPU Affinity", "CPU AFFINITY"),
}  # fmt: skip
FILES = ("dgx1-v100-mlx5-columns", "h200-two-nvl4-islands", "h100-8gpu-no-nic", "a100-hand-trimmed")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("dirt", SAME)
def test_dirt_changes_nothing(dirt: str, name: str, tmp_path: Path) -> None:
    text = (HOST / "topo-m" / f"{name}.txt").read_text()
    dirty = SAME[dirt](text)
    if dirt not in ("old words", "shouted", "wrapped", "cut last row") or "SYS" in text:
        assert dirty != text
    if dirt.startswith(("cut", "no row")):  # the CPU of a row that is gone is not known; what it is wired to is
        found = graph_of(reading := text_of(tmp_path, dirty))
        assert links(found) == links(host(f"topo-m/{name}.txt")[1])
        assert dirty == text or "NUMA" not in text or any("cut" in n for n in reading.notes)
    else:
        assert parts(graph_of(text_of(tmp_path, dirty))) == parts(host(f"topo-m/{name}.txt")[1])


def test_columns_in_another_order_with_their_cells(tmp_path: Path) -> None:
    names = ["NIC0", "GPU1", "GPU0", "NIC1", "GPU2"]
    cell = lambda a, b: "NV4" if a + b in ("GPU0GPU1",) else "PIX" if a + b == "GPU1NIC0" else "SYS"  # noqa: E731
    graph = graph_of(text_of(tmp_path, matrix(names, cell)))
    assert links(graph) == {frozenset(("GPU0", "GPU1")): 4}
    assert way(graph, "GPU1", "NIC0") == ["switch"]
    assert graph.nodes["GPU1"]["rank"] == 1


def test_cells_glued_to_what_follows(tmp_path: Path) -> None:
    text = "GPU0GPU1CPU AffinityNUMA Affinity\nGPU0X NV120-15 0\nGPU1NV12X 0-15 0\n"
    graph = graph_of(text_of(tmp_path, text))
    assert links(graph) == {frozenset(("GPU0", "GPU1")): 12}


@pytest.mark.parametrize("style", ["mlx5_bond_0", "rocep23s0", "rdmap16s27", "bnxt_re0", "hfi1_0", "irdma0", "mlx4_0"])
def test_nic_names(style: str, tmp_path: Path) -> None:
    names = [*gpus(2), style]
    graph = graph_of(text_of(tmp_path, matrix(names, lambda a, b: "NODE", {"GPU0": "0", "GPU1": "0"})))
    assert kinds(graph) == {"gpu": 2, "nic": 1, "cpu": 1}
    assert style in graph


def test_grace_tray(tmp_path: Path) -> None:
    names = [*gpus(4), "NIC0", "NIC1"]
    near = {"GPU0": 0, "GPU1": 0, "NIC0": 0, "GPU2": 1, "GPU3": 1, "NIC1": 1}
    cell = lambda a, b: "NV18" if a[0] + b[0] == "GG" else "NODE" if near[a] == near[b] else "SYS"  # noqa: E731
    text = matrix(names, cell, {g: str(near[g]) for g in gpus(4)}) + LEGEND + "\nNIC Legend:\n\n  NIC0: roceP1\n"
    for old, new in (("GPU0\t", "0-71"), ("GPU1\t", "0-71"), ("GPU2\t", "72-143"), ("GPU3\t", "72-143")):
        text = re.sub(rf"^({old}.*)0-15", rf"\g<1>{new}", text, flags=re.MULTILINE)
    reading = text_of(tmp_path, text)
    graph = graph_of(reading)
    assert graph.edges["GPU3", "NVSwitch0"]["bandwidth"] == 900e9
    assert any("taken as a tray of GB200" in note for note in reading.notes)
    assert kinds(graph) == {"gpu": 4, "nic": 2, "cpu": 2, "nvswitch": 1}
    assert per_gpu(graph) == {18}
    assert way(graph, "GPU2", "NIC1") == ["cpu"]


def test_a_blackwell_board_is_not_taken_for_a_tray(tmp_path: Path) -> None:
    assert graph_of(text_of(tmp_path, all_to_all(4, "NV18"))).edges["GPU0", "NVSwitch0"]["bandwidth"] == 450e9


def test_lines_twice_and_huge_matrices(tmp_path: Path) -> None:
    doubled = "".join(2 * line for line in all_to_all(2, "NV4").splitlines(keepends=True))
    assert any("twice, the same" in note for note in text_of(tmp_path, doubled).notes)
    head = "\t".join(gpus(600))
    with pytest.raises(InputError, match="has more than 512 columns"):
        text_of(tmp_path, f"{head}\nGPU0\tX\tNV4\n")


def test_the_plain_matrix_beside_the_linked_one(tmp_path: Path) -> None:
    text = all_to_all(8, "NV18")
    reading = text_of(tmp_path, f"{text}\n$ nvidia-smi topo -mp\n{text.replace('NV18', 'NODE')}")
    assert per_gpu(graph_of(reading)) == {18}
    assert any("topo -mp" in note for note in reading.notes)
    alone = text_of(tmp_path, f"$ nvidia-smi topo -mp\n{text.replace('NV18', 'NODE')}")
    assert "`topo -mp` leaves NVLinks out: give the output of `topo -m`" in alone.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (all_to_all(2, "NV4") + all_to_all(4, "NV4"), "another host than line 1. Give one file per host"),
        (all_to_all(2, "NV4").replace("GPU1\tNV4", "GPU1\tNV2"), "line 2, cell GPU0 - GPU1 = 'NV4': contradicts 'NV2'"),
        (all_to_all(2, "NV4").replace("\tGPU0\tGPU1", "\tGPU1\tGPU0"), "rows and columns do not fit"),
        ("\n".join(all_to_all(4, "NV4").split("\n")[:3]), "is cut: it does not say how GPU2 - GPU3 are joined"),
        (all_to_all(4, "NV4").partition("\n")[2], "no header line"),
        (all_to_all(4, "NV4").replace("\tGPU3\tCPU", "\tCPU"), "has no column"),
        (all_to_all(3, "NV4").replace("GPU1\tNV4", "GPU1\tNV4\tNV4"), "rows and columns do not fit|stands in row"),
        (all_to_all(3, "NV4").replace("GPU1\tNV4\t X ", "GPU1\tNV4\t???"), "is no cell of row GPU1"),
        (all_to_all(3, "NV4") + "GPU2\tNV4\tNV2\t X \n", "the row stands there twice"),
        (matrix(["NIC0", "NIC1"], lambda a, b: "PIX"), "has no GPU"),
    ],
)
def test_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        text_of(tmp_path, text)


def test_the_peer_to_peer_matrix_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"peer-to-peer matrix .* Give the output of `nvidia-smi topo -m`"):
        text_of(tmp_path, " \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n\nLegend:\n")


def _mutated(text: str, rng: random.Random) -> str:
    """Return the text with one to three accidents."""
    for _ in range(rng.randint(1, 3)):
        lines = text.split("\n")
        at, cut = rng.randrange(len(lines)), rng.randrange(len(text) or 1)
        tokens = lines[at].split("\t")
        match rng.randrange(8):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, rng.choice(lines))
            case 2:
                rng.shuffle(tokens)
                lines[at] = "\t".join(tokens)
            case 3:
                del tokens[rng.randrange(len(tokens))]
                lines[at] = "\t".join(tokens)
            case 4:
                tokens[rng.randrange(len(tokens))] = rng.choice(["NV1", "NV18", "SYS", "X", "GPU2", "", "7", "N/A"])
                lines[at] = "\t".join(tokens)
            case 5:
                lines = text[:cut].split("\n")
            case 6:
                lines = (text[:cut] + text[cut + rng.randint(1, 9) :]).split("\n")
            case _:
                other = rng.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
        text = "\n".join(lines)
    return text


@pytest.mark.parametrize("name", ["dgx1-v100-mlx5-columns", "h200-two-nvl4-islands", "c4140-v100-trailing-tabs"])
def test_accidents_are_refused_or_harmless(name: str, tmp_path: Path) -> None:
    good = (HOST / "topo-m" / f"{name}.txt").read_text().split("\nLegend")[0]
    right = links(host(f"topo-m/{name}.txt")[1])
    rng, read_well = random.Random(name), 0
    for _ in range(250):
        text = _mutated(good, rng)
        try:
            found = links(graph_of(text_of(tmp_path, text)))
        except InputError:
            continue
        assert found == right, text
        read_well += 1
    assert read_well > 20


def test_every_pair_of_rows_may_be_cut_but_not_both(tmp_path: Path) -> None:
    good = (HOST / "topo-m" / "dgx1-v100-mlx5-columns.txt").read_text().split("\nLegend")[0]
    right = links(host("topo-m/dgx1-v100-mlx5-columns.txt")[1])
    for a, b in combinations(range(8), 2):
        one = "\n".join(line for line in good.split("\n") if not line.startswith(f"GPU{a}"))
        assert links(graph_of(text_of(tmp_path, one))) == right
        two = "\n".join(line for line in one.split("\n") if not line.startswith(f"GPU{b}"))
        with pytest.raises(InputError, match=f"how GPU{a} - GPU{b} are joined"):
            text_of(tmp_path, two)
