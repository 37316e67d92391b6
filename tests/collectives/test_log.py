"""Is every log read as what was run: sizes, units, places, kind, ranks, and what must be said of it?"""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path

import pytest

from collectives import KINDS, Log, read_log
from topo import InputError

LOGS = Path(__file__).parent.parent / "data" / "logs"
#: File -> kind, ranks, rows, largest busbw out of place [GB/s], as SOURCES-logs.md says.
READ = {
    "a100-2node-allreduce-cx6": ("all_reduce", 16, 6, 93.25), "aws-p5-1node-tagged": ("all_reduce", 8, 32, 483.05),
    "aws-p5-srun-tagged": ("all_reduce", 16, 61, 487.09), "gcp-a3-high": ("all_gather", 16, 10, 70.90),
    "gcp-a3-ultra": ("all_gather", 16, 24, 328.85), "oci-a100-1node-allreduce-v2.17": ("all_reduce", 8, 1, 233.00),
    "oci-a100-2node-allreduce-v2.16": ("all_reduce", 16, 1, 222.88),
    "v100-8node-allreduce-old": ("all_reduce", 64, 2, 4.33),
}  # fmt: skip
HEAD = """# size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""


def log_of(text: str, folder: Path, name: str = "log.txt", **words: object) -> Log:
    (folder / name).write_text(text)
    return read_log(folder / name, **words)  # type: ignore[arg-type]


def row(
    n_bytes: int, us: float, factor: float, redop: str = "sum", share: int = 1, wrong: str = "0", root: int = -1
) -> str:
    """A row as nccl-tests prints it, out of place, and in place 1 % slower."""
    sides = [
        f"{time:8.1f} {n_bytes / time / 1e3:7.2f} {n_bytes / time / 1e3 * factor:7.2f} {end:>6}"
        for time, end in ((us, "0" if wrong == "N/A" else wrong), (us * 1.01, wrong))
    ]
    return f"{n_bytes:12d} {n_bytes // 4 // share:12d} float {redop:>7} {root:7d} {' '.join(sides)}\n"


@pytest.mark.parametrize("name", READ)
def test_logs_of_the_field(name: str) -> None:
    log = read_log(LOGS / f"{name}.txt")
    busbw = max(row.out_of_place.busbw or 0 for row in log.rows if row.out_of_place)
    assert (log.kind, log.n_ranks, len(log.rows), busbw / 1e9) == READ[name]
    assert log.missing == ()
    assert not any(row.failed for row in log.rows)


@pytest.mark.parametrize("name", READ)
def test_every_number_is_in_its_place(name: str) -> None:
    """Size, time, algbw, busbw, kind and ranks hold together in every row, both places."""
    for sweep in read_log(LOGS / f"{name}.txt").sweeps:
        for line in sweep.rows:
            assert len(line.timings) == 2
            for one in line.timings:
                rate = line.n_bytes / one.seconds
                assert one.algbw == pytest.approx(rate, rel=2e-3, abs=6e6)
                factor = KINDS[sweep.kind or ""].busbw(sweep.n_ranks or 0)
                assert one.busbw == pytest.approx(rate * factor, rel=2e-3, abs=6e6)


def test_what_the_field_leaves_open_is_said() -> None:
    notes = {name: " ".join(read_log(LOGS / f"{name}.txt").notes) for name in READ}
    assert "line 3: rows left out" in notes["a100-2node-allreduce-cx6"]
    assert "fits all_gather or all_to_all" in notes["gcp-a3-high"]
    # By hand: 4.325 GB/s at least over 268435456 B / 122165 us is 2 (n - 1) / n of 63.1 ranks, 4.335 at most over
    # 122131 us of 72.2.
    assert "64 to 72 ranks: the only power of two" in notes["v100-8node-allreduce-old"]
    assert read_log(LOGS / "oci-a100-2node-allreduce-v2.16.txt").sweeps[0].hosts == (8, 8)
    sweeps = read_log(LOGS / "aws-p5-srun-tagged.txt").sweeps
    assert [len(sweep.rows) for sweep in sweeps] == [29, 32]


# --- wrappers and versions -------------------------------------------------------------------------------------------

TABLE = HEAD + "".join(row(2**k, 20 + 2**k / 4e5, 1.75) for k in range(10, 31, 2))


@pytest.mark.parametrize(
    "prefix",
    ["[1,0]<stdout>:", "[prterun-n1-77@1,0]<stdout>: ", "0: ", "00: ", "node001: ", "[pod/host-1/test] ", "    ",
     "2025-05-01T10:00:00.123Z ", "test_1  | ", "> ", "`", "\x1b[32m"],
)  # fmt: skip
def test_launchers_write_before_a_line(prefix: str, tmp_path: Path) -> None:
    plain = log_of(TABLE, tmp_path)
    found = log_of("".join(prefix + line + "\n" for line in TABLE.splitlines()), tmp_path)
    assert (found.kind, found.n_ranks) == ("all_reduce", 8)
    assert found.rows == plain.rows


def test_noise_between_rows(tmp_path: Path) -> None:
    lines = TABLE.splitlines(keepends=True)
    noise = "n1:166:207 [0] NCCL INFO Channel 00/16 : 0 1 2 3 4 5 6 7\n"
    mixed = "".join(line + noise * random.Random(0).randrange(3) for line in lines)
    assert [line.n_bytes for line in log_of(mixed, tmp_path).rows] == [2**k for k in range(10, 31, 2)]


def test_the_header_may_be_missing_or_repeated(tmp_path: Path) -> None:
    body = TABLE.removeprefix(HEAD)
    bare = log_of(body, tmp_path)
    assert (bare.kind, bare.n_ranks, len(bare.sweeps)) == ("all_reduce", 8, 1)
    assert "times are in us, told by size / algbw: the file does not say" in bare.notes
    lines = body.splitlines(keepends=True)
    paged = log_of(HEAD + "".join(lines[:5]) + HEAD + "".join(lines[5:]), tmp_path)
    assert len(paged.sweeps) == 1
    assert len(paged.rows) == 11
    assert len(log_of(TABLE + TABLE, tmp_path).sweeps) == 2


def test_several_collectives_in_one_file(tmp_path: Path) -> None:
    gather = "".join(row(2**k, 15 + 2**k / 4e5, 7 / 8, "none", 8) for k in range(12, 31, 3))
    starts = "# Collective test starting: all_reduce_perf\n", "# Avg bus bandwidth : 1\n+ ./alltoall_perf -b 4K\n"
    text = starts[0] + TABLE + starts[1] + gather
    log = log_of(text, tmp_path)
    assert [(sweep.kind, sweep.n_ranks) for sweep in log.sweeps] == [("all_reduce", 8), ("all_to_all", 8)]
    assert log.kind is None
    assert log.n_ranks == 8


@pytest.mark.parametrize(
    ("kind", "redop", "share", "root", "in_place"),
    [("all_gather", "none", 6, -1, "0"), ("reduce_scatter", "sum", 6, -1, "0"), ("all_to_all", "none", 6, -1, "N/A"),
     ("all_reduce", "sum", 1, -1, "0")],
)  # fmt: skip
def test_the_columns_tell_the_kind(kind: str, redop: str, share: int, root: int, in_place: str, tmp_path: Path) -> None:
    text = HEAD + row(6 * 2**26, 3000, KINDS[kind].busbw(6), redop, share, in_place, root)
    log = log_of(text, tmp_path)
    assert (log.kind, log.n_ranks) == (kind, 6)


def test_what_stays_open_is_asked_for(tmp_path: Path) -> None:
    text = HEAD + row(2**26, 3000, 1.0, "none", 1, "0", 0)
    log = log_of(text, tmp_path)
    assert (log.kind, log.n_ranks) == ("broadcast", None)
    assert "Give n_ranks= (--ranks)" in str(log.missing[0])
    assert log_of(text, tmp_path, n_ranks=12).n_ranks == 12
    # 1000 ranks: two decimals cannot tell them from many others
    many = log_of(HEAD + row(2**20, 3000, KINDS["all_reduce"].busbw(1000)), tmp_path)
    assert many.n_ranks is None
    assert "busbw / algbw allows" in str(many.missing[0])


def test_ranks_by_the_log_of_nccl(tmp_path: Path) -> None:
    """Its communicators say how many, where neither devices nor busbw do."""
    text = "n1:7:7 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 24 cudaDev 0 - Init START\n"
    log = log_of(text + HEAD + row(2**26, 3000, 1.0, "none", 1, "0", 0), tmp_path)
    assert (log.kind, log.n_ranks) == ("broadcast", 24)
    wrong = log_of(text + TABLE, tmp_path)
    assert wrong.n_ranks == 8
    assert "says 24 ranks, busbw / algbw 8: the latter holds" in " ".join(wrong.notes)


def test_given_and_read_must_agree(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"n_ranks = 16: does not fit the table of line 3, which says 8"):
        log_of(TABLE, tmp_path, n_ranks=16)
    with pytest.raises(
        InputError, match=r"kind = 'all_gather': does not fit the table of line 3, which says all_reduce"
    ):
        log_of(TABLE, tmp_path, kind="all_gather")


def test_ranks_by_rows_together(tmp_path: Path) -> None:
    """72 ranks: no row alone tells them, all together do."""
    rows = [row(2**k, 90 + 2**k / 3e5, KINDS["all_reduce"].busbw(72)) for k in range(20, 34)]
    assert log_of(HEAD + rows[0], tmp_path).n_ranks != 72
    assert log_of(HEAD + "".join(rows), tmp_path).n_ranks == 72


def test_a_failed_check_hides_under_ok(tmp_path: Path) -> None:
    old = HEAD.replace("#wrong", " error").replace("   root ", "")
    good, bad = "2e-06", "1e+00"
    line = "   268435456      67108864     float     sum   122131    2.20    4.33  {0}   122165    2.20    4.33  {0}\n"
    log = log_of(old + line.format(good) + line.format(bad) + "# Out of bounds values : 0 OK\n", tmp_path)
    assert [one.failed for one in log.rows] == [False, True]
    assert "line 4: the check failed" in " ".join(log.notes)
    bare = log_of(line.format(good) + line.format(bad), tmp_path)  # no header: a fraction is no count
    assert [one.failed for one in bare.rows] == [False, True]
    counted = log_of(HEAD + row(2**26, 3000, 1.75, wrong="4e+06"), tmp_path)
    assert counted.rows[0].failed
    assert counted.rows[0].out_of_place.errors == 4e6
    starred = log_of(old + line.format("3e-06*"), tmp_path)
    assert starred.rows[0].failed
    unchecked = log_of(TABLE.replace("      0", "    N/A"), tmp_path)
    assert {one.errors for line in unchecked.rows for one in line.timings} == {None}


def test_rows_without_bytes_and_cut_rows(tmp_path: Path) -> None:
    zero = (
        "           0             0     float    none      -1     0.12    0.00    0.00      0     0.11  0.00  0.00  0\n"
    )
    text = HEAD + zero + row(2**26, 3000, 7 / 8, "none", 8) + row(2**27, 5000, 7 / 8, "none", 8)[:-10]
    log = log_of(text, tmp_path)
    assert [one.n_bytes for one in log.rows] == [2**26, 2**27]
    assert log.rows[1].in_place is None
    assert log.rows[1].seconds == pytest.approx(5e-3)
    assert "line 3: size 0" in " ".join(log.notes)
    assert "line 5: cut off" in " ".join(log.notes)


def test_processes_that_each_ran_alone(tmp_path: Path) -> None:
    """A build without MPI: everyone prints a table, and busbw is 0."""
    line = row(2**30, 700, 0.0)
    log = log_of("".join(f"[1,{rank}]<stdout>:{line}" for rank in range(3)), tmp_path)
    assert [sweep.n_ranks for sweep in log.sweeps] == [1, 1, 1]
    assert "3 processes printed a table each" in " ".join(log.notes)


def test_the_first_version_in_milliseconds(tmp_path: Path) -> None:
    text = """#   Device  0 ->  0 [0x0a] X
#   Device  1 ->  1 [0x09] X
#   Device  2 ->  2 [0x06] X
#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res
    10000000      10000000    char     sum    1.628   6.14   8.19    0e+00    1.932   5.18   6.90    0e+00
"""
    log = log_of(text, tmp_path)
    assert (log.kind, log.n_ranks) == ("all_reduce", 3)
    assert log.rows[0].seconds == pytest.approx(1.628e-3)


def test_times_of_each_iteration_and_clocks(tmp_path: Path) -> None:
    eight = "  {0:.1f}  {1:.2f}  {2:.2f}  0  1.0  9.0  9.0  1.20"
    sides = eight.format(7098.6, 75.63, 70.90) + eight.format(7054.3, 76.11, 71.35)
    names = "time algbw busbw #wrong i_min i_max i_p99 i_cv%"
    text = f"#  size  count  type  redop  root {names} {names} timestamp\n"
    text += f" 536870912  8388608  float  sum  -1 {sides}  2025-09-01 12:00:00\n"
    log = log_of(text, tmp_path)
    assert (log.kind, log.n_ranks) == ("reduce_scatter", 16)
    assert [one.seconds for one in log.rows[0].timings] == pytest.approx([7098.6e-6, 7054.3e-6])


def test_a_table_in_markdown(tmp_path: Path) -> None:
    text = "| size (B) | count | type | redop | root | time (us) | algbw | busbw | #wrong |\n|---|---|---|---|\n"
    log = log_of(text + "| 1073741824 | 268435456 | float | sum | -1 | 4607.6 | 233.04 | 436.95 | 0 |\n", tmp_path)
    assert (log.kind, log.n_ranks, log.rows[0].in_place) == ("all_reduce", 16, None)


# --- other files -----------------------------------------------------------------------------------------------------


def test_json_of_nccl_tests(tmp_path: Path) -> None:
    """Only the first device of every process is listed: two of four GPUs each."""
    side = {"time": 80.0, "alg_bw": 13.1072, "bus_bw": 13.1072 * 7 / 8, "nwrong": 0.0}
    content = {
        "version": 2, "args": ["./build/all_gather_perf"], "config": {"nthreads": 1, "ngpus": 4},
        "devices": [{"rank": 0, "hostname": "a"}, {"rank": 4, "hostname": "b"}],
        "results": [{"size": 2**20, "count": 2**15, "type": "float", "redop": "none", "root": "    -1",
                     "out_of_place": side, "in_place": side | {"nwrong": None}}],
    }  # fmt: skip
    log = log_of(json.dumps(content), tmp_path, "log.json")
    assert (log.kind, log.n_ranks, log.sweeps[0].hosts) == ("all_gather", 8, (4, 4))
    assert log.rows[0].seconds == pytest.approx(80e-6)
    with pytest.raises(InputError, match="is no JSON"):
        log_of(json.dumps(content)[:-20], tmp_path, "cut.json")


@pytest.mark.parametrize("form", ["csv", "json"])
def test_files_of_rccl_tests(form: str, tmp_path: Path) -> None:
    """A row a place; ranks are processes of two GPUs each."""
    names = ["numCycle", "name", "nodes", "ranks", "ranksPerNode", "gpusPerRank"]
    names += ["size", "type", "redop", "inPlace", "time", "algBw", "busBw", "wrong"]
    rates = [(us, 2**26 / us / 1e3) for us in (400.0, 410.0)]
    rows = [
        [0, "AllReduce", 2, 8, 4, 2, 2**26, "float", "sum", place, us, rate, rate * 1.875, "0"]
        for place, (us, rate) in enumerate(rates)
    ]
    text = json.dumps([dict(zip(names, one, strict=True)) for one in rows])
    if form == "csv":
        text = "\n".join(",".join(map(str, one)) for one in ([name.lower() for name in names], *rows))
    log = log_of(text, tmp_path, f"log.{form}")
    assert (log.kind, log.n_ranks, len(log.rows)) == ("all_reduce", 16, 1)
    assert [one.seconds for one in log.rows[0].timings] == pytest.approx([400e-6, 410e-6])


def test_nccom_of_trainium(tmp_path: Path) -> None:
    """Its older versions call GiB/s GB/s."""
    head = "    size(B)    count(elems)    type    time(us)    algbw(GB/s)    busbw(GB/s)\n"
    command = "nccom-test -r 32 --minbytes 1kb --datatype fp32 allg\n"
    gib = f"  536870912  134217728  fp32  20000  {2**29 / 20e-3 / 2**30:.2f}  {2**29 / 20e-3 / 2**30 * 31 / 32:.2f}\n"
    log = log_of(f"{command}{head}{gib} 33554432  Failure running neuron-bench - log file x.log\n", tmp_path)
    assert (log.format, log.kind, log.n_ranks) == ("nccom-test", "all_gather", 32)
    assert log.rows[0].timings[0].algbw == pytest.approx(2**29 / 20e-3, rel=1e-3)
    assert "line 4: no numbers" in " ".join(log.notes)
    assert "GiB/s" in " ".join(log.notes)
    stats = head.replace("time(us)", "time:avg(us)    time:p50(us)")
    new = f" 536870912 134217728 fp32 20000.5 19999 {2**29 / 20e-3 / 1e9:.2f} {2**29 / 20e-3 / 1e9 * 31 / 32:.2f}\n"
    found = log_of(stats + new, tmp_path, "trn-all_gather.txt")
    assert found.kind == "all_gather"
    assert found.rows[0].seconds == pytest.approx(20000.5e-6)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("hello\n", "is no log of nccl-tests"),
        ("system,bytes,time_us,algbw,busbw\nX,8,1,1,1\n", "is for rackbound validate"),
        (HEAD, "has no row with a size"),
        ("", "is empty"),
        ("#  size count type redop root time algbw busbw #wrong\n 4096 1024 float sum -1 12 9999.00 9999.00 0\n",
         "the unit of its times is not stated"),
    ],
)  # fmt: skip
def test_no_log(text: str, rule: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rule):
        log_of(text, tmp_path)
    with pytest.raises(InputError, match="is not a known kind"):
        log_of(TABLE, tmp_path, kind="all_reduse")


def timings(log: Log) -> list[tuple[int, set[tuple[float, float | None, float | None]]]]:
    """Return size, and time and rates of both places, of every row."""
    return [(line.n_bytes, {(one.seconds, one.algbw, one.busbw) for one in line.timings}) for line in log.rows]


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize(
    ("old", "new"),
    [("\n", "\r\n"), ("\n", "\r"), ("\n", "\x1b[0m\n\x1b[1;31m"), (" float", "\x1b[2m float\x1b[0m"),
     ("  ", "\t"), ("", "")],
    ids=["crlf", "cr", "colours of lines", "colours within", "tabs", "utf-16"],
)  # fmt: skip
def test_how_a_file_was_carried_changes_nothing(name: str, old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    text = (LOGS / f"{name}.txt").read_text()
    path.write_bytes(text.replace(old, new).encode() if old else text.encode("utf-16"))
    found, plain = read_log(path), read_log(LOGS / f"{name}.txt")
    assert (found.kind, found.n_ranks, timings(found)) == (plain.kind, plain.n_ranks, timings(plain))


@pytest.mark.parametrize("name", READ)
def test_a_file_cut_short_tells_no_number_that_was_not_there(name: str, tmp_path: Path) -> None:
    """Cut anywhere in its last 500 characters: whole rows, then at most one with one place of two; or refused."""
    text = (LOGS / f"{name}.txt").read_text()
    whole = timings(read_log(LOGS / f"{name}.txt"))
    for cut in range(max(len(text) - 500, 0), len(text)):
        with suppress(InputError):
            *rows, last = timings(log_of(text[:cut], tmp_path))
            assert rows == whole[: len(rows)]
            assert last[0] == whole[len(rows)][0]
            assert last[1] <= whole[len(rows)][1], text[:cut].splitlines()[-1]


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    """Whatever is cut out, doubled or swapped: never anything but a Log or an InputError."""
    seed = random.Random(7)
    texts = [(LOGS / f"{name}.txt").read_text() for name in READ]
    texts.append('{"results": [{"size": 8, "count": 2, "out_of_place": {"time": 3.5, "alg_bw": 1}}], "config": {}}')
    texts.append('[{"name": "AllReduce", "ranks": 8, "size": 64, "time": 2.5, "algBw": 1.0, "busBw": 2.0}]')
    texts.append("size,type,time,algbw,busbw\n8,float,2.5,0.1,0.2\n")
    for _ in range(150):
        text = list(seed.choice(texts)[:3000])
        for _ in range(seed.randrange(1, 30)):
            place = seed.randrange(len(text))
            text[place] = seed.choice(["", text[place] * 2, "-", " ", "9", "N/A", "\n", "e", ",", '"'])
        with suppress(InputError):
            assert log_of("".join(text), tmp_path).rows
