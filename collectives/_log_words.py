"""Which words do nccl-tests, rccl-tests and nccom-test use, and what do they mean? Tables only."""

from __future__ import annotations

import re

__all__ = ["DTYPES", "PROGRAMS", "RATES", "TIMES", "allowed_error", "kind_named"]

#: Collective -> program of nccl-tests.
PROGRAMS = {
    "all_to_all": "alltoall_perf", "all_gather": "all_gather_perf", "reduce_scatter": "reduce_scatter_perf",
    "all_reduce": "all_reduce_perf", "broadcast": "broadcast_perf", "reduce": "reduce_perf",
    "gather": "gather_perf", "scatter": "scatter_perf", "sendrecv": "sendrecv_perf",
}  # fmt: skip

#: Other names of kinds, without separators: nccom-test's short forms, and collectives of another name.
_SHORT = {"allr": "all_reduce", "allg": "all_gather", "redsct": "reduce_scatter", "bcast": "broadcast",
          "permute": "sendrecv"}  # fmt: skip

#: Type as printed -> bytes of an element.
DTYPES = {
    "int8": 1, "uint8": 1, "char": 1, "int16": 2, "uint16": 2, "int32": 4, "int": 4, "uint32": 4, "int64": 8,
    "uint64": 8, "half": 2, "float16": 2, "fp16": 2, "float": 4, "float32": 4, "fp32": 4, "double": 8, "float64": 8,
    "fp64": 8, "bfloat16": 2, "bf16": 2, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "float8_e4m3": 1,
    "float8_e5m2": 1, "float8e4m3": 1, "float8e5m2": 1,
}  # fmt: skip

#: Unit of a time -> seconds.
TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "ns": 1e-9}
#: Unit of a rate, as the file means it -> bytes/s. nccom-test writes GB/s and means GiB/s.
RATES = {"GB/s": 1e9, "GiB/s": 2.0**30}


def kind_named(name: str) -> str | None:
    """Return the kind a word stands for, however it is spelt.

    Examples
    --------
    >>> (
    ...     kind_named("AllReduce"),
    ...     kind_named("alltoall_perf"),
    ...     kind_named("redsct"),
    ...     kind_named("bisection_perf"),
    ... )
    ('all_reduce', 'all_to_all', 'reduce_scatter', None)
    """
    plain = re.sub(r"[^a-z]", "", name.lower().removesuffix("_perf").removesuffix("_perf_mpi"))
    return _SHORT.get(plain) or next((kind for kind in PROGRAMS if kind.replace("_", "") == plain), None)


def allowed_error(dtype: str) -> float:
    """Return the largest deviation that old versions, with a column "error" or "res", let pass.

    References
    ----------
    NVIDIA/nccl-tests before 2.12, src/common.cu, deltaMaxValue: half 1e-2, float 1e-5, double 1e-12, integers 0.
    """
    if not re.match(r"float|fp|f8|bf|half|double", dtype):
        return 0.0
    return {8: 1e-12, 4: 1e-5}.get(DTYPES.get(dtype, 4), 1e-2)
