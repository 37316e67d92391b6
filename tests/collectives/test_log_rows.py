"""Does a log become the rows that predictions are held against?"""

from __future__ import annotations

from pathlib import Path

import pytest

from collectives import validate
from collectives._log_rows import library_on, log_rows
from topo import InputError

LOGS = Path(__file__).parent.parent / "data" / "logs"


def test_rows_of_a_log() -> None:
    rows, skipped, notes = log_rows(LOGS / "v100-8node-allreduce-old.txt", "hgx-a100-8")
    assert [(row.id, row.kind, row.ranks, row.domains, row.n_bytes, row.library) for row in rows] == [
        ("line 5", "all_reduce", 64, 8, 268435456.0, "nccl"), ("line 6", "all_reduce", 64, 8, 536870912.0, "nccl"),
    ]  # fmt: skip
    assert rows[0].seconds == pytest.approx(0.122131)
    assert (skipped, len(notes)) == ([], 1)
    assert library_on("MI355X") == "rccl"


def test_what_does_not_count_is_skipped(tmp_path: Path) -> None:
    head = "# size count type redop root time algbw busbw #wrong\n# (B) (elements) (us) (GB/s) (GB/s)\n"
    bad = " 1073741824 268435456 float sum -1 4253.0 252.47 441.81 7\n"
    good = " 2147483648 536870912 float sum -1 8463.7 253.73 444.02 0\n"
    (tmp_path / "log.txt").write_text(head + bad + good)
    rows, skipped, _ = log_rows(tmp_path / "log.txt", "hgx-h100-8")
    assert ([row.id for row in rows], [(one.id, one.reason) for one in skipped]) == (
        ["line 4"], [("line 3", "its check failed")],
    )  # fmt: skip


def test_a_fault_of_the_machine_is_an_anomaly() -> None:
    """NVIDIA/nccl-tests#78: one NIC of 100 Gb/s a node bounds it at 12.5 GB/s of busbw, 4.3 is a third of it."""
    found = validate(LOGS / "v100-8node-allreduce-old.txt", design="hgx-a100-8")
    assert len(found.anomalies) == 2


def test_a_log_without_design_is_refused() -> None:
    with pytest.raises(InputError, match="does not say what it was run on"):
        log_rows(LOGS / "gcp-a3-high.txt", None)
    with pytest.raises(InputError, match="16: ranks took part, and 1 domains have 8"):
        log_rows(LOGS / "gcp-a3-high.txt", "hgx-h100-8", domains=1)
