"""Are the sizes and rates of types those of their definitions?"""

from __future__ import annotations

import pytest

from serving import DTYPE_BYTES, MATMUL_RATE, matmul_rate
from topo import InputError


def test_block_types_carry_their_scales() -> None:
    assert DTYPE_BYTES["nvfp4"] == (16 * 4 + 8) / 16 / 8
    assert DTYPE_BYTES["mxfp4"] == (32 * 4 + 8) / 32 / 8


def test_every_type_has_a_rate() -> None:
    assert MATMUL_RATE.keys() == DTYPE_BYTES.keys()


@pytest.mark.parametrize(
    ("rates", "dtype", "expected"),
    [
        ({"bf16": 1.0, "fp8": 2.0, "fp4": 4.0}, "mxfp4", (4.0, "fp4")),
        ({"bf16": 1.0, "fp8": 2.0}, "fp4", (2.0, "fp8")),
        ({"bf16": 1.0}, "fp4", (1.0, "bf16")),
        ({"bf16": 1.0, "fp8": 2.0}, "int4", (1.0, "bf16")),
    ],
)
def test_a_missing_rate_falls_back_to_the_next_wider(
    rates: dict[str, float], dtype: str, expected: tuple[float, str]
) -> None:
    assert matmul_rate(rates, dtype) == expected


def test_no_rate_and_no_type_are_said() -> None:
    with pytest.raises(InputError, match="the bf16 rate"):
        matmul_rate({"fp8": 2.0}, "bf16")
    with pytest.raises(InputError, match="Did you mean 'bf16'"):
        matmul_rate({"bf16": 1.0}, "bf61")
