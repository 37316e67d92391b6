"""How many bytes is one number of a type, and at which of a chip's rates is it multiplied?"""

from __future__ import annotations

from collections.abc import Mapping

from topo import Fault, InputError, suggest
from topo.units import format_quantity

__all__ = ["CONFIG_DTYPES", "DTYPE_BYTES", "MATMUL_RATE", "dtype_bytes", "matmul_rate"]

#: dtype -> bytes per element. nvfp4: 16-value blocks with one fp8 scale, (16 x 4 + 8) / 16 bits;
#: mxfp4: 32-value blocks with an 8-bit scale, (32 x 4 + 8) / 32 bits.
DTYPE_BYTES: dict[str, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "fp4": 0.5,
    "nvfp4": 0.5625,
    "mxfp4": 0.53125,
    "int4": 0.5,
}

#: dtype -> key of a chip's matmul rates. int4 weights are dequantised and multiplied at 16 bits
#: (AWQ, GPTQ and NF4 kernels), so they gain bytes and no FLOP/s.
MATMUL_RATE: dict[str, str] = {
    "fp32": "bf16",
    "bf16": "bf16",
    "fp16": "bf16",
    "fp8": "fp8",
    "int8": "fp8",
    "fp4": "fp4",
    "nvfp4": "fp4",
    "mxfp4": "fp4",
    "int4": "bf16",
}

#: spelling in a config.json -> dtype.
CONFIG_DTYPES: dict[str, str] = {
    "float32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "fp32": "fp32",
    "bf16": "bf16",
    "fp16": "fp16",
    "fp8": "fp8",
    "fp4": "fp4",
}

_NARROW_TO_WIDE = ("fp4", "fp8", "bf16")


def _known(dtype: str, place: str) -> str:
    if not isinstance(dtype, str) or dtype not in DTYPE_BYTES:
        rule = "is not a type whose size is known"
        raise InputError(Fault(place, dtype, rule, suggest(str(dtype), DTYPE_BYTES)))
    return dtype


def dtype_bytes(dtype: str, place: str = "dtype") -> float:
    """Return the size of one element of a type.

    Parameters
    ----------
    dtype : str
        A key of `DTYPE_BYTES`.
    place : str
        What to call the argument in an error.

    Returns
    -------
    float
        Bytes per element, block scales included [bytes].

    Raises
    ------
    InputError
        The type is unknown.

    Examples
    --------
    >>> dtype_bytes("fp8"), dtype_bytes("mxfp4")
    (1.0, 0.53125)
    """
    return DTYPE_BYTES[_known(dtype, place)]


def matmul_rate(flops: Mapping[str, float], dtype: str, place: str = "flops") -> tuple[float, str]:
    """Return the rate at which a chip multiplies a type, and the key the rate stands under.

    A chip without the type's own rate uses its next wider one (fp4, then fp8, then bf16).

    Parameters
    ----------
    flops : mapping of str to float
        Dense matmul rates of one chip by key "bf16", "fp8", "fp4" [FLOP/s].
    dtype : str
        A key of `MATMUL_RATE`.
    place : str, optional
        What to call the rates in an error.

    Returns
    -------
    rate : float
        The rate [FLOP/s].
    key : str
        The key used; other than ``MATMUL_RATE[dtype]`` when the chip fell back.

    Raises
    ------
    InputError
        The type is unknown, or the chip states neither its rate nor a wider one.

    Examples
    --------
    >>> matmul_rate({"bf16": 1.0e15, "fp8": 2.0e15}, "nvfp4")
    (2000000000000000.0, 'fp8')
    """
    first = _NARROW_TO_WIDE.index(MATMUL_RATE[_known(dtype, "dtype")])
    for key in _NARROW_TO_WIDE[first:]:
        if key in flops:
            return flops[key], key
    stated = {key: format_quantity(rate, "flops") for key, rate in flops.items()}
    wider = _NARROW_TO_WIDE[first:]
    which = f"one of {', '.join(wider)}" if len(wider) > 1 else f"the {wider[0]} rate"
    rule = f"needs a rate for {dtype}, {which}: a narrower one does not stand in"
    cure = "State the chip's dense rate, as chip.flops.bf16 in the design file or with --set chip.flops.bf16=RATE."
    raise InputError(Fault(place, stated, rule, cure))
