"""How does a figure become files, the same bytes every time?"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures._style import house, root_figure
from topo import Fault, InputError, suggest

__all__ = ["save"]

#: format -> metadata without dates and versions of the day.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "rackbound"},
    "svg": {"Date": None, "Creator": "rackbound"},
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": "rackbound", "Producer": None},
}


def save(
    ax_or_figure: Axes | Figure, path: str | os.PathLike[str], formats: Sequence[str] = ("png", "svg")
) -> list[Path]:
    """Write a figure, once per format, and close it.

    Parameters
    ----------
    ax_or_figure : Axes or Figure
        What a verb of this floor returned, or the figure it lies in.
    path : str or path
        Without suffix; folders that are missing are made.
    formats : sequence of {"png", "svg", "pdf"}, optional
        Files to write.

    Returns
    -------
    list of Path
        The files, in the order of `formats`. Each is complete or not there.

    Raises
    ------
    InputError
        An unknown format, or a file that cannot be written; nothing is written.

    Examples
    --------
    >>> import tempfile, topo, figures
    >>> folder = tempfile.mkdtemp()
    >>> ax = figures.draw_topology(topo.load("hgx-h100-8"))
    >>> [file.name for file in figures.save(ax, f"{folder}/topology", formats=["png"])]
    ['topology.png']
    """
    figure = ax_or_figure if isinstance(ax_or_figure, Figure) else root_figure(ax_or_figure)
    faults = [Fault("formats", name, "is not known", suggest(str(name), _METADATA))
              for name in formats if name not in _METADATA]  # fmt: skip
    if faults:
        raise InputError(*faults)
    rendered = {name: _render(figure, name) for name in formats}
    written = [_write(Path(f"{os.fspath(path)}.{name}"), data) for name, data in rendered.items()]
    _close(figure)
    return written


def _render(figure: Figure, name: str) -> bytes:
    buffer = BytesIO()
    # The user's own Axes beside ours make their tick labels only now: a power of ten is mathtext.
    with house(), matplotlib.rc_context({"text.parse_math": True}):
        figure.savefig(buffer, format=name, dpi=150, metadata=_METADATA[name], bbox_inches="tight", pad_inches=0.1)
    return buffer.getvalue()


def _write(path: Path, data: bytes) -> Path:
    part = path.with_name(f".{path.name[:60]}.{os.getpid()}.part")  # where the name just fits, so does this
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        rule = f"cannot be written: {error.strerror or error}"
        cure = "Give it a shorter name." if error.errno == errno.ENAMETOOLONG else "Name a folder you may write to."
        raise InputError(Fault("--out", str(path), rule, cure)) from None
    return path


def _close(figure: Figure) -> None:
    """Let go of a figure that pyplot holds; its own figures this floor never shows to pyplot."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)
