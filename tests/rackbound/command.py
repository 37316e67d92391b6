"""Run the command line in this process: what it returns, prints and complains."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from rackbound._cli import main

SCHEMAS = Path(__file__).resolve().parents[2] / "rackbound" / "schemas"
DATA = Path(__file__).resolve().parents[1] / "data"


class Run(NamedTuple):
    """Exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        """Standard output as JSON; NaN and Infinity are no JSON."""
        found: dict[str, Any] = json.loads(self.out, parse_constant=refuse)
        return found


def refuse(word: str) -> None:
    """Stand in for the numbers Python's reader would let through."""
    raise AssertionError(f"{word} is no JSON")


def run(*arguments: object) -> Run:
    """Run `rackbound` with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["rackbound", *map(str, arguments)]),
        mock.patch.dict(os.environ, COLUMNS="118"),  # as in a pipe; workers that run tests say 80
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code = main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    return Run(code, out.getvalue(), err.getvalue())


#: A design of one's own: four GPUs with a NIC each.
MY_RACK = """
[design]
name = "my-rack"
domain_size = 4

[chip]
name = "X1"
hbm_bytes = "192 GB"
hbm_bandwidth = "4 TB/s"
flops = { bf16 = "1 PFLOP/s", fp8 = "2 PFLOP/s" }

[scale_up]
shape = "switched"
bandwidth = "450 GB/s"
latency = "0.5 us"

[scale_out]
bandwidth = "400 Gb/s"
latency = "1 us"

[sources]
"chip.hbm_bandwidth" = "made up for this test"
"""
