"""Is every output of `rocm-smi --showtopo` read right, or refused?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from topo import InputError

from .seen import HOST, domains, graph_of, host, kinds, links, per_gpu, text_of, way


def table(title: str, n: int, cell: Callable[[int, int], object]) -> str:
    """Write one table as the tool does."""
    head = "       " + "".join(f"{f'GPU{i}':<13}" for i in range(n))
    rows = [f"{f'GPU{i}':<7}" + "".join(f"{0 if i == j else cell(i, j)!s:<13}" for j in range(n)) for i in range(n)]
    return "\n".join([f"{f' {title} between two GPUs ':=^88}", head, *rows, "", ""])


def showtopo(n: int, weight: Callable[[int, int], int], numa: Callable[[int], int]) -> str:
    """Write the tables of n GPUs; pairs that weigh 15 a hop are XGMI, others PCIe."""
    xgmi = lambda i, j: weight(i, j) % 15 == 0  # noqa: E731
    nodes = "".join(f"GPU[{i}]\t\t: (Topology) Numa Node: {numa(i)}\n" for i in range(n))
    return (
        table("Weight", n, weight)
        + table("Hops", n, lambda i, j: 1 if xgmi(i, j) else 2 if numa(i) == numa(j) else 3)
        + table("Link Type", n, lambda i, j: "XGMI" if xgmi(i, j) else "PCIE")
        + f"{' Numa Nodes ':=^88}\n{nodes}{' End of ROCm SMI Log ':=^88}\n"
    )


MI300X = showtopo(8, lambda i, j: 15, lambda i: i // 4)


def test_a20_full_mesh_of_four() -> None:
    _, graph = host("topo-m/rocm-4gpu-trailing-spaces.txt")
    assert kinds(graph) == {"gpu": 4, "cpu": 4}
    assert per_gpu(graph) == {3}
    assert len(links(graph)) == 6
    assert way(graph, "GPU0", "GPU3") == ["cpu", "cpu"]


def test_a22_one_gpu() -> None:
    _, graph = host("topo-m/rocm-1gpu.txt")
    assert kinds(graph) == {"gpu": 1, "cpu": 1}
    assert links(graph) == {}


def test_eight_in_a_mesh(tmp_path: Path) -> None:
    reading = text_of(tmp_path, MI300X)
    graph = graph_of(reading)
    assert kinds(graph) == {"gpu": 8, "cpu": 2}
    assert (len(links(graph)), per_gpu(graph)) == (28, {7})
    assert {graph.edges[tuple(pair)]["bandwidth"] for pair in links(graph)} == {64e9}
    assert any("assumed (as MI300X)" in note for note in reading.notes)
    named = graph_of(text_of(tmp_path, f"GPU 0: AMD Instinct MI355X\n{MI300X}"))
    assert named.edges["GPU0", "GPU1"]["bandwidth"] == 76.8e9


def test_two_hives_and_pcie_between(tmp_path: Path) -> None:
    graph = graph_of(text_of(tmp_path, showtopo(8, lambda i, j: 15 if i // 4 == j // 4 else 72, lambda i: i // 4)))
    assert domains(graph) == [[f"GPU{i}" for i in range(4)], [f"GPU{i}" for i in range(4, 8)]]
    assert way(graph, "GPU0", "GPU7") == ["cpu", "cpu"]


def test_a_pair_two_hops_away_has_no_link(tmp_path: Path) -> None:
    ring = lambda i, j: 15 if (i - j) % 4 in (1, 3) else 30  # noqa: E731
    reading = text_of(tmp_path, showtopo(4, ring, lambda i: 0))
    graph = graph_of(reading)
    assert per_gpu(graph) == {2}
    assert graph.nodes["GPU0"]["forwards"] is True
    assert any(note.startswith("2 XGMI pairs weigh more than one hop") for note in reading.notes)


def test_pcie_alone(tmp_path: Path) -> None:
    graph = graph_of(text_of(tmp_path, showtopo(4, lambda i, j: 40, lambda i: 1)))
    assert (kinds(graph), links(graph)) == ({"gpu": 4, "cpu": 1}, {})
    hops_only = showtopo(4, lambda i, j: 40 if i // 2 == j // 2 else 72, lambda i: i // 2).partition("= Numa Nodes")[0]
    assert way(graph_of(text_of(tmp_path, hops_only)), "GPU0", "GPU3") == ["cpu", "cpu"]
    assert way(graph_of(text_of(tmp_path, hops_only)), "GPU0", "GPU1") == ["cpu"]


def test_a_cut_row_is_filled_and_a_contradiction_refused(tmp_path: Path) -> None:
    lines = MI300X.split("\n")
    last = max(i for i, line in enumerate(lines) if line.startswith("GPU6 "))
    reading = text_of(tmp_path, "\n".join([*lines[:last], *lines[last + 1 :]]))
    assert per_gpu(graph_of(reading)) == {7}
    assert any("GPU6" in note and "cut" in note for note in reading.notes)
    lines[last] = lines[last].replace("XGMI", "PCIE", 1)
    with pytest.raises(InputError, match=r"contradicts '(PCIE|XGMI)'"):
        text_of(tmp_path, "\n".join(lines))
    with pytest.raises(InputError, match="does not say how GPU6 - GPU7 are joined"):
        text_of(tmp_path, "\n".join(lines[:last]))


def test_without_link_types_or_twice(tmp_path: Path) -> None:
    text = (HOST / "topo-m" / "rocm-4gpu-trailing-spaces.txt").read_text()
    with pytest.raises(InputError, match="Link Type between two GPUs = None: is not in the file"):
        text_of(tmp_path, text[: text.index("= Link Type")])
    assert per_gpu(graph_of(text_of(tmp_path, text + text))) == {3}
    with pytest.raises(InputError, match=r"another .* table than line .* one file per host"):
        text_of(tmp_path, text + MI300X)
