"""Do MSCCL algorithm files become the right phases, and are wrong ones refused with file and line?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import collectives
from collectives import laws
from topo import InputError

from .shapes import star


def step(
    s: int, kind: str, src: tuple[str, int], dst: tuple[str, int], count: int = 1, dep: tuple[int, int] = (-1, -1)
) -> str:
    return (
        f'<step s="{s}" type="{kind}" srcbuf="{src[0]}" srcoff="{src[1]}" dstbuf="{dst[0]}" dstoff="{dst[1]}" '
        f'cnt="{count}" depid="{dep[0]}" deps="{dep[1]}" hasdep="0"/>'
    )


def tb(number: int, send: int, recv: int, *steps: str, channel: int = 0) -> str:
    return f'<tb id="{number}" send="{send}" recv="{recv}" chan="{channel}">\n' + "\n".join(steps) + "\n</tb>"


def algo(coll: str, chunks: int, *gpus: list[str], in_place: int = 1) -> str:
    head = f'<algo name="test" proto="Simple" nchannels="1" nchunksperloop="{chunks}" ngpus="{len(gpus)}" '
    rows = "\n".join(f'<gpu id="{i}">\n' + "\n".join(tbs) + "\n</gpu>" for i, tbs in enumerate(gpus))
    return f'{head}coll="{coll}" inplace="{in_place}">\n{rows}\n</algo>\n'


def ring(p: int) -> str:
    """All-reduce in place as NCCL's ring: s, rrs ..., rrcs, rcs ..., r on every GPU."""
    gpus = []
    for g in range(p):
        kinds = ["s", *["rrs"] * (p - 2), "rrcs", *["rcs"] * (p - 2), "r"]
        steps = [step(k, kind, ("i", (g - k) % p), ("i", (g - k) % p)) for k, kind in enumerate(kinds)]
        gpus.append([tb(0, (g + 1) % p, (g - 1) % p, *steps)])
    return algo("allreduce", p, *gpus)


def all_pairs(p: int) -> str:
    """All-reduce in two shots over scratch: send parts to their owners, add, send sums to all."""
    gpus = []
    for g in range(p):
        others = [j for j in range(p) if j != g]
        blocks = []
        for t, j in enumerate(others):
            share = step(0, "s", ("i", j), ("s", g)), step(1, "r", ("i", g), ("s", j))
            after = (0, 2 * (p - 1) - 1)
            total = step(2, "s", ("i", g), ("i", g), dep=after), step(3, "r", ("i", j), ("i", j))
            blocks.append(tb(t + 1, j, j, *share, *total))
        waits = [step(t, "nop", ("i", -1), ("o", -1), 0, (t + 1, 1)) for t in range(p - 1)]
        adds = [step(p - 1 + t, "re", ("s", j), ("i", g)) for t, j in enumerate(others)]
        gpus.append([tb(0, -1, -1, *waits, *adds), *blocks])
    return algo("allreduce", p, *gpus)


def exchange(coll: str, p: int, in_place: int = 0) -> str:
    """All-gather or all-to-all directly; the own chunk is copied."""
    gpus = []
    for g in range(p):
        sent = {"allgather": lambda j: 0, "alltoall": lambda j: j}[coll]
        own = step(0, "cpy", ("i", sent(g)), ("o", g)) if not in_place else step(0, "nop", ("i", -1), ("o", -1), 0)
        blocks = [tb(0, -1, -1, own)]
        for t, j in enumerate(j for j in range(p) if j != g):
            blocks.append(tb(t + 1, j, j, step(0, "s", ("i", sent(j)), ("o", g)), step(1, "r", ("i", 0), ("o", j))))
        gpus.append(blocks)
    return algo(coll, p, *gpus, in_place=in_place)


def halving(in_place: int) -> str:
    """Reduce-scatter between two GPUs."""
    gpus = []
    for g in range(2):
        place = step(1, "rrc", ("i", g), ("o", 0))
        gpus.append([tb(0, 1 - g, 1 - g, step(0, "s", ("i", 1 - g), ("i", 1 - g)), place)])
    return algo("reducescatter", 2, *gpus, in_place=in_place)


def read(folder: Path, text: str) -> collectives.Algorithm:
    path = folder / "algorithm.xml"
    path.write_text(text)
    return collectives.read_algorithm(path)


@pytest.mark.parametrize("p", [2, 3, 8])
def test_ring_is_the_ring(tmp_path: Path, p: int) -> None:
    found = read(tmp_path, ring(p))
    assert repr(found) == f"Algorithm(test: all_reduce, {p} ranks, {p} chunks, {2 * (p - 1)} phases)"
    graph = star(p, 2e9, 1e-6)
    cost = collectives.cost(graph, "all_reduce", 1e6, algorithm=found)
    own = collectives.cost(graph, "all_reduce", 1e6, algorithm="ring")
    assert (cost.algorithm, cost.seconds) == ("test", pytest.approx(own.seconds, rel=1e-12))
    np.testing.assert_allclose(cost.loads, own.loads, rtol=1e-12)


def test_channels_share_a_ring(tmp_path: Path) -> None:
    """As msccl-tools writes it: four copies of a ring of eight, the chunks of each dealt over two channels."""
    p, copies = 8, 4
    kinds = ["s", *["rrs"] * (p - 2), "rrcs", *["rcs"] * (p - 2), "r"]
    gpus = []
    for g in range(p):
        blocks = []
        for copy in range(copies):
            for parity in range(2):
                turns = [(kind, (g - t) % p) for t, kind in enumerate(kinds) if (g - t) % 2 == parity]
                at = [("i", chunk * copies + copy) for _, chunk in turns]
                steps = [
                    step(s, kind, place, place) for s, ((kind, _), place) in enumerate(zip(turns, at, strict=True))
                ]
                number = 2 * copy + parity
                blocks.append(tb(number, (g + 1) % p, (g - 1) % p, *steps, channel=number))
        gpus.append(blocks)
    found = read(tmp_path, algo("allreduce", p * copies, *gpus))
    assert (found.n_chunks, len(found.phases)) == (32, 14)
    seconds = collectives.cost(star(p, 2e9, 1e-6), "all_reduce", 1e6, algorithm=found).seconds
    assert seconds == pytest.approx(laws.alpha_beta_seconds("all_reduce", "ring", p, 1e6, 2e9, 2e-6), rel=1e-12)


@pytest.mark.parametrize("p", [2, 4, 5])
def test_all_pairs_are_two_phases(tmp_path: Path, p: int) -> None:
    found = read(tmp_path, all_pairs(p))
    assert len(found.phases) == 2
    seconds = collectives.cost(star(p, 2e9, 1e-6), "all_reduce", 1e6, algorithm=found).seconds
    assert seconds == pytest.approx(laws.alpha_beta_seconds("all_reduce", "direct", p, 1e6, 2e9, 2e-6), rel=1e-12)


@pytest.mark.parametrize(("coll", "kind", "in_place"), [
    ("allgather", "all_gather", 0), ("allgather", "all_gather", 1), ("alltoall", "all_to_all", 0),
])  # fmt: skip
def test_exchanges(tmp_path: Path, coll: str, kind: str, in_place: int) -> None:
    found = read(tmp_path, exchange(coll, 4, in_place))
    assert (found.kind, len(found.phases)) == (kind, 1)
    law = laws.alpha_beta_seconds(kind, "direct", 4, 1e6, 1e9)
    assert collectives.cost(star(4), kind, 1e6, algorithm=found).seconds == pytest.approx(law, rel=1e-12)


@pytest.mark.parametrize("in_place", [0, 1])
def test_reduce_scatter(tmp_path: Path, in_place: int) -> None:
    assert len(read(tmp_path, halving(in_place)).phases) == 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('type="rrs"', 'type="rsr"', r"line 5, type = 'rsr': is no step type"),
        ('coll="allreduce"', 'coll="allreduc"', r"line 1, coll = 'allreduc': is no collective this reads"),
        ('type="rrcs"', 'type="rcs"', r"does not end as the sum of all GPUs' chunk"),
        ('<step s="4" type="r"', '<step s="4" type="nop"', "sends more than is received"),
        ('cnt="1"', 'cnt="2"', r"line 4, step = 'test': reads i\[3\], where nothing is"),
        ('depid="-1"', 'depid="0"', "line 4, deps = '-1': must be a whole number from 0"),
        ('type="s"', 'type="r"', "line 4, step = 'test': waits for something that never comes"),
        ('srcoff="0"', 'srcoff="x"', r"line 4, srcoff = 'x': must be a whole number from 0"),
        ('srcbuf="i"', 'srcbuf="q"', r"line 4, srcbuf = 'q': must be i, o or s"),
        ('send="1"', 'send="-1"', r"line 4, type = 's': needs the tb's send peer"),
        ('send="1"', 'send="7"', r"line 3, send = 7: is no other GPU of 3"),
        ('ngpus="3"', 'ngpus="4"', r"line 1, ngpus = 4: does not fit the gpus' ids"),
        ('nchunksperloop="3"', 'nchunksperloop="0"', r"line 1, nchunksperloop = '0': must be a whole number from 1"),
        ('<step s="2"', '<step s="3"', "line 6, s = '3': is step 2 of its tb"),
        ('<gpu id="1"', '<gpu id="0"', r"line 1, ngpus = 3: does not fit the gpus' ids \[0, 2\]"),
        ('<gpu id="1"', '<gpu id="0"', "line 12, id = 0: is that of another tb of gpu 0"),
        ("<algo ", "<algorithm ", "not well-formed"),
    ],
    ids=lambda value: value[:24],
)  # fmt: skip
def test_wrong_files(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = ring(3)
    assert old in text
    changed = text.replace(old, new, -1 if new in ('type="r"', 'type="rcs"') else 1)
    if old == 'srcoff="0"':
        changed = text.replace(old, new, 1)
    if old == 'cnt="1"':
        changed = text.replace(
            'srcoff="0" dstbuf="i" dstoff="0" cnt="1"', 'srcoff="2" dstbuf="i" dstoff="2" cnt="2"', 1
        )
    with pytest.raises(InputError, match=says) as caught:
        read(tmp_path, changed)
    assert caught.value.faults[0].file == str(tmp_path / "algorithm.xml")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        collectives.read_algorithm(tmp_path / "none.xml")


def test_for_other_ranks_or_kinds(tmp_path: Path) -> None:
    found = read(tmp_path, ring(4))
    for kind, n in (("all_reduce", 5), ("all_gather", 4)):
        with pytest.raises(InputError, match="it is for all_reduce over 4 ranks"):
            collectives.cost(star(n), kind, 1e6, algorithm=found)
