"""Is a quantity what its unit says, and refused when it does not say?"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topo import InputError
from topo.units import UNITS, format_quantity, parse_quantity


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1 B", "bytes", 1.0),
        ("8 b", "bytes", 1.0),
        ("1 kB", "bytes", 1e3),
        ("1 KB", "bytes", 1e3),
        ("1 KiB", "bytes", 1024.0),
        ("1GB", "bytes", 1e9),
        ("1 GiB", "bytes", 2.0**30),
        ("189471 MiB", "bytes", 189471 * 2.0**20),
        ("2 TiB", "bytes", 2.0**41),
        ("1 PB", "bytes", 1e15),
        (".5 MB", "bytes", 5e5),
        ("5. MB", "bytes", 5e6),
        ("1e3 B", "bytes", 1e3),
        ("+1E-3 GB", "bytes", 1e6),
        ("400 Gb/s", "bandwidth", 50e9),
        ("900 GB/s", "bandwidth", 900e9),
        ("8 TB/s", "bandwidth", 8e12),
        ("1 GiB/s", "bandwidth", 2.0**30),
        ("0.5 us", "seconds", 0.5e-6),
        ("20ms", "seconds", 0.02),
        ("430 ns", "seconds", 430e-9),
        ("2 s", "seconds", 2.0),
        ("2.5 PFLOP/s", "flops", 2.5e15),
        ("989 TFLOP/s", "flops", 9.89e14),
        ("75 GFLOP", "flop", 75e9),
        ("700 W", "watts", 700.0),
        ("1.2 kW", "watts", 1200.0),
        ("15 $", "dollars", 15.0),
        ("  1 GB  ", "bytes", 1e9),
    ],
)
def test_reads(text: str, kind: str, value: float) -> None:
    assert parse_quantity(text, kind) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "kind", "rule"),
    [
        ("1000", "bytes", "needs a unit"),
        ("1e9", "bandwidth", "needs a unit"),
        ("0", "seconds", "needs a unit"),
        (1000, "bytes", "is not a size"),
        (1e9, "bytes", "is not a size"),
        (None, "bytes", "is not a size"),
        (True, "seconds", "is not a time"),
        (["1 GB"], "bytes", "is not a size"),
        (math.nan, "bytes", "is not a size"),
        ("", "bytes", "is not a size"),
        ("GB", "bytes", "is not a size"),
        ("one GB", "bytes", "is not a size"),
        ("1 GB/s", "bytes", "is a bandwidth, not a size"),
        ("1 GB", "bandwidth", "is a size, not a bandwidth"),
        ("1 s", "bandwidth", "is a time, not a bandwidth"),
        ("1 PFLOP", "flops", "is a number of operations, not a compute rate"),
        ("1 gb", "bytes", "unknown"),
        ("1 EB", "bytes", "unknown"),
        ("1 gigabyte", "bytes", "unknown"),
        ("1 Gbps", "bandwidth", "unknown"),
        ("1 S", "seconds", "unknown"),
        ("1 GB per s", "bandwidth", "unknown"),
        ("1 m", "seconds", "unknown"),
        ("1 h", "seconds", "unknown"),
        ("1,000 B", "bytes", "unknown"),
        ("1_000 B", "bytes", "unknown"),
        ("1 2 GB", "bytes", ""),
        ("1 GB 2", "bytes", "unknown"),
        ("-1 GB", "bytes", "above zero"),
        ("0 GB", "bytes", "above zero"),
        ("0 GB/s", "bandwidth", "above zero"),
        ("-1 us", "seconds", "above zero"),
        ("nan GB", "bytes", "finite"),
        ("inf GB", "bytes", "finite"),
        ("-Infinity s", "seconds", "finite"),
        ("1e999 B", "bytes", "finite"),
    ],
)
def test_refuses(text: object, kind: str, rule: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_quantity(text, kind, place="scale_up.bandwidth", file="rack.toml")
    (fault,) = caught.value.faults
    assert rule in fault.rule
    assert (fault.place, fault.file) == ("scale_up.bandwidth", "rack.toml")
    assert fault.value is text
    assert all(unit in fault.cure for unit in UNITS[kind])


def test_zero_where_allowed() -> None:
    assert parse_quantity("0 s", "seconds", zero=True) == 0.0
    with pytest.raises(InputError, match="zero or more"):
        parse_quantity("-1 s", "seconds", zero=True)
    with pytest.raises(InputError, match="finite"):
        parse_quantity("nan s", "seconds", zero=True)


def test_decimal_and_binary_are_kept_apart() -> None:
    assert parse_quantity("80 GiB", "bytes") / parse_quantity("80 GB", "bytes") == pytest.approx(1.073741824, rel=1e-15)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (50e9, "bandwidth", "50 GB/s"),
        (0.0788888889, "seconds", "78.89 ms"),
        (1.44, "seconds", "1.44 s"),
        (0.0, "seconds", "0 s"),
        (0.0, "bytes", "0 B"),
        (999.96e6, "bytes", "1 GB"),
        (430e-9, "seconds", "430 ns"),
        (1e-3, "seconds", "1 ms"),
        (2.5e15, "flops", "2.5 PFLOP/s"),
        (1200.0, "watts", "1.2 kW"),
        (3.0, "dollars", "3 $"),
        (1.25e7, "dollars", "12500000 $"),
    ],
)
def test_writes(value: float, kind: str, text: str) -> None:
    assert format_quantity(value, kind) == text


@given(st.sampled_from(sorted(UNITS)), st.floats(1e-9, 1e17))
def test_what_is_written_reads_back(kind: str, value: float) -> None:
    assert parse_quantity(format_quantity(value, kind, digits=12), kind) == pytest.approx(value, rel=1e-11)


@given(st.sampled_from([(kind, unit) for kind, table in UNITS.items() for unit in table]), st.floats(1e-6, 1e6))
def test_every_unit_scales(unit: tuple[str, str], number: float) -> None:
    kind, name = unit
    assert parse_quantity(f"{number!r} {name}", kind) == pytest.approx(number * UNITS[kind][name], rel=1e-15)


@given(st.text(max_size=12), st.sampled_from(sorted(UNITS)))
def test_any_text_is_read_or_refused(text: str, kind: str) -> None:
    try:
        value = parse_quantity(text, kind)
    except InputError:
        value = 1.0
    assert value > 0
