"""What is wired to what, and which wires are busy?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import networkx as nx
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, Polygon, Rectangle
from matplotlib.ticker import PercentFormatter

from collectives import Cost
from figures._layout import lay_out
from figures._page import Layout
from figures._scene import Scene, scene
from figures._spots import Cell, Spot
from figures._style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    LOAD,
    ORANGE,
    PALE,
    PURPLE,
    VERMILION,
    house,
    measured,
    root_figure,
    title,
)
from figures._wires import Wire, run
from figures._words import counted
from topo import Fabric

__all__ = ["draw_topology"]

#: Node kind -> fill, edge and name; a switch is told apart by where it stands.
_NODES = {
    "gpu": (GREEN, INK, "GPU"), "host": (GREEN, INK, "host"), "scale-up": ("#CFE3F1", BLUE, "scale-up switch"),
    "switch": ("#F9DFCF", VERMILION, "scale-out switch"), "pcie": ("#F3DDE9", PURPLE, "PCIe switch"),
    "nic": (ORANGE, INK, "NIC"), "cpu": (GREY, INK, "CPU"),
    "other": ("white", INK, "other"),
}  # fmt: skip
_LINKS = {"scale-up": BLUE, "scale-out": VERMILION, "pcie": PURPLE, "other": GREY}
_TWIST = ORANGE  # of a wrap that comes back shifted
_TITLE_SIZE, _KEY_ROW = 12.0, 13.0
_HALO = {"boxstyle": "square,pad=0.15", "facecolor": PALE, "edgecolor": "none"}


def draw_topology(graph: nx.Graph[str] | Fabric, cost: Cost | None = None, ax: Axes | None = None) -> Axes:
    """Draw a topology as what it is: domains in boxes, a fabric above in rows, pods and planes, or as a network.

    Chips with `coordinates` stand in their grid, wraps as loops (two axes) or hooks (more); other
    GPUs that are joined directly on a circle, in pairs or as a cube mesh, a server with PCIe as a
    tree. Switches that are joined to each other stand in their grid, their `group` or on a circle.
    What is no lattice or group by its attributes is told by how it is wired.

    Parameters
    ----------
    graph : networkx.Graph, networkx.DiGraph or Fabric
        From `topo.load` or built by hand; whatever attributes it lacks are inferred. What
        is too much to be read is drawn in blocks of equal size, marked "×12", or as "… 12 more",
        with the links of what it stands for.
    cost : Cost, optional
        What `collectives.cost` returns for this graph; links are then coloured by the
        utilisation of their busier direction, a bundle by its busiest link.
    ax : Axes, optional
        Where to draw; text and lines shrink with it. By default a new figure of a size at
        which text has 7 to 12 points.

    Returns
    -------
    Axes
        The one passed in, or the new one.

    Raises
    ------
    InputError
        What is no graph, or a cost of another graph.

    Examples
    --------
    >>> import topo, collectives
    >>> graph = topo.load("gb200-nvl72", domains=2)
    >>> ax = draw_topology(graph, collectives.cost(graph, "all_to_all", 1e9))
    >>> ax.get_title(loc="left")
    'gb200-nvl72 x 2: 144 GPUs, all-to-all bound by scale-out'
    """
    seen = scene(graph, None if cost is None else cost.loads, 0.0 if cost is None else cost.seconds)
    layout = lay_out(seen, foot=20.0 if cost is None else 58.0)
    keys = _keys(seen, layout, cost is not None)
    layout.below = _KEY_ROW * ((len(keys) - 1) // max(1, _columns(keys, layout.width - 28.0)))
    with house():
        ax = ax or _fitting(layout)
        zoom = _set_up(ax, layout)
        _draw_frames(ax, layout, zoom)
        _draw_wires(ax, run(seen, layout), zoom)
        _draw_nodes(ax, seen, layout, zoom)
        for t in layout.texts:
            ax.text(
                t.x, t.y, t.text, fontsize=t.size * zoom, ha=t.ha, va=t.va, rotation=t.rotation, color=INK, zorder=6,
                bbox=_HALO if t.halo else None,
            )  # fmt: skip
        _draw_keys(ax, layout, keys, cost, zoom)
        title(
            ax,
            _heading(seen, cost),
            (layout.width - 20.0) * zoom,
            _TITLE_SIZE * min(1.0, max(zoom, 0.75)),
            x=14.0 / layout.width,
        )
    return ax


def _fitting(layout: Layout) -> Axes:
    """Return Axes in a figure in which a unit is a point, with room for two lines of title."""
    above, height = 44.0, layout.height + layout.below
    figure = Figure(figsize=(layout.width / 72, (height + above) / 72))
    return figure.add_axes((0.0, 0.0, 1.0, height / (height + above)))


def _set_up(ax: Axes, layout: Layout) -> float:
    """Frame the Axes; return the points that a unit of the layout has in it."""
    ax.set(xlim=(0, layout.width), ylim=(-layout.below, layout.height), aspect="equal")
    ax.set_axis_off()
    extent, dpi = ax.get_window_extent(), root_figure(ax).dpi
    return float(min(extent.width / layout.width, extent.height / (layout.height + layout.below)) * 72 / dpi)


def _draw_frames(ax: Axes, layout: Layout, zoom: float) -> None:
    for frame in layout.frames:
        s = frame.spot
        edge = {"edgecolor": GREY, "linestyle": (0, (3, 2))} if frame.elided else {"edgecolor": INK, "linestyle": "-"}
        if frame.faint:
            edge["edgecolor"] = "#C9CED3"
        ax.add_patch(FancyBboxPatch(
            (s.x - s.w / 2, s.y - s.h / 2), s.w, s.h, boxstyle="round,pad=0,rounding_size=3", linewidth=0.9 * zoom,
            facecolor="white" if frame.elided else PALE, zorder=4 if frame.elided else 0, gid="frame", **edge,
        ))  # fmt: skip
    for sheet in layout.sheets:
        ax.add_patch(
            Polygon(sheet, facecolor="#E2E7EB", edgecolor="#AEB6BD", linewidth=0.6 * zoom, zorder=1, alpha=0.8)
        )
    for s in layout.trays:
        ax.add_patch(_rectangle(s, facecolor="white", edgecolor="#C9CED3", linewidth=0.5 * zoom, zorder=1))


def _rectangle(s: Spot, **looks: object) -> Rectangle:
    return Rectangle((s.x - s.w / 2, s.y - s.h / 2), s.w, s.h, **looks)  # type: ignore[arg-type]


def _draw_wires(ax: Axes, wires: Sequence[Wire], zoom: float) -> None:
    """Draw the lines, wider for more bandwidth, the busier on top."""
    most = max((wire.bandwidth for wire in wires if not wire.elided), default=0.0)
    wires = sorted(wires, key=lambda wire: wire.utilisation or 0.0)
    thin = max(0.2, min(1.0, (40 / max(1, sum(wire.trunk for wire in wires))) ** 0.5))  # many lines: all thinner
    share = [min(1.0, wire.bandwidth / most if most else 0.0) ** 0.5 for wire in wires]
    widths = [
        zoom * min(wire.room, max(0.4, 0.5 * thin**0.5) + 2.1 * thin * s) for wire, s in zip(wires, share, strict=True)
    ]
    colours = [LOAD(min(1.0, w.utilisation)) if w.utilisation is not None else _TWIST if w.twisted else _LINKS[w.kind]
               for w in wires]  # fmt: skip
    lines = LineCollection([w.points for w in wires], colors=colours, linewidths=widths, zorder=2, capstyle="butt",
                           joinstyle="round", alpha=0.9)  # fmt: skip
    lines.set_gid("links")
    ax.add_collection(lines, autolim=False)


def _looks(seen: Scene, layout: Layout) -> dict[str, str]:
    """Return a row of `_NODES` for every node or cell that is drawn."""
    up = {node for link in seen.links if link.kind == "scale-up" for node in link.ends}
    looks = {name: cell.kind for name, cell in layout.cells.items()}
    for node in layout.spots:
        if node in seen.kinds:
            pcie = seen.kinds[node] == "switch" and layout.level[node] == 0 and node not in up
            looks[node] = "pcie" if pcie else seen.kinds[node]
            if looks[node] == "switch" and node in up:
                looks[node] = "scale-up"
    return looks


def _draw_nodes(ax: Axes, seen: Scene, layout: Layout, zoom: float) -> None:
    for node, look in _looks(seen, layout).items():
        s, (fill, edge, _) = layout.spots[node], _NODES[look]
        looks: dict[str, object] = {"facecolor": fill, "edgecolor": edge, "linewidth": 0.6 * zoom, "zorder": 4}
        text = str(seen.ranks[node]) if node in seen.ranks and s.w > 12 else ""
        if node in layout.cells:
            text = layout.cells[node].text
            _draw_depth(ax, s, layout.cells[node], looks)
        ax.add_patch(_rectangle(s, gid=seen.kinds.get(node, "cell"), **looks))
        if text:
            dark = look in ("gpu", "host", "cpu")
            ax.text(s.x, s.y, text, fontsize=(7.5 if node in seen.ranks else 7.0) * zoom, ha="center",
                    va="center_baseline", color="white" if dark else INK, zorder=6)  # fmt: skip


def _draw_depth(ax: Axes, s: Spot, cell: Cell, looks: dict[str, object]) -> None:
    """Draw the top and the right of a block, which make it a cube."""
    left, right, low, high, d = s.x - s.w / 2, s.x + s.w / 2, s.y - s.h / 2, s.y + s.h / 2, cell.depth
    for corners in (((left, high), (left + d, high + d), (right + d, high + d), (right, high)),
                    ((right, low), (right + d, low + d), (right + d, high + d), (right, high))):  # fmt: skip
        if d:
            ax.add_patch(Polygon(corners, **looks))  # type: ignore[arg-type]


def _keys(seen: Scene, layout: Layout, loaded: bool) -> list[Patch | Line2D]:
    """Return what explains colours: nodes, and links by kind where these show no load."""
    present = set(_looks(seen, layout).values())
    keys: list[Patch | Line2D] = [
        Patch(facecolor=fill, edgecolor=edge, label=label)
        for name, (fill, edge, label) in _NODES.items() if name in present
    ]  # fmt: skip
    if not loaded:
        kinds = dict.fromkeys(link.kind for link in seen.links)
        twisted = any(path.twisted for path in layout.paths.values())
        keys += [Line2D([], [], color=_LINKS[kind], label=f"{kind} link") for kind in _LINKS if kind in kinds]
        keys += [Line2D([], [], color=_TWIST, label="twisted wrap")] if twisted else []
    return keys


def _columns(keys: Sequence[Patch | Line2D], room: float) -> int:
    """Return how many keys fit beside each other."""
    widths = sorted((measured(str(key.get_label()), 7.5) + 24.0 for key in keys), reverse=True)
    total = list(accumulate(widths))
    return len(keys) if not keys or total[-1] - 9.0 <= room else max(1, sum(width <= room for width in total))


def _draw_keys(ax: Axes, layout: Layout, keys: Sequence[Patch | Line2D], cost: Cost | None, zoom: float) -> None:
    """Explain colours below the drawing."""
    for key in keys:
        key.set_linewidth((0.6 if isinstance(key, Patch) else 2.0) * zoom)
    low = -layout.below
    if keys:
        ax.legend(handles=keys, loc="lower left", bbox_to_anchor=(14.0, low + (4.0 if cost is None else 42.0)),
                  bbox_transform=ax.transData, ncols=_columns(keys, layout.width - 28.0), fontsize=7.5 * zoom,
                  borderaxespad=0.0, borderpad=0.0, handlelength=1.2, columnspacing=1.2, handletextpad=0.5)  # fmt: skip
    if cost is not None:
        _draw_scale(ax, layout, cost, zoom)


def _draw_scale(ax: Axes, layout: Layout, cost: Cost, zoom: float) -> None:
    where = (14.0, 28.0 - layout.below, min(300.0, layout.width - 60.0), 7.0)
    strip = ax.inset_axes(where, transform=ax.transData)
    bar = root_figure(ax).colorbar(ScalarMappable(Normalize(0.0, 1.0), LOAD), cax=strip, orientation="horizontal")
    bar.ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    bar.ax.tick_params(labelsize=7.5 * zoom, length=2 * zoom, pad=1.5 * zoom)
    bar.set_label(f"link utilisation during {cost.kind}", fontsize=8 * zoom, labelpad=1.0)
    bar.outline.set_linewidth(0.4 * zoom)


def _heading(seen: Scene, cost: Cost | None) -> str:
    hosts = bool(seen.ranks) and seen.kinds[next(iter(seen.ranks))] == "host"
    what = counted(seen.n_ranks, "host" if hosts else "GPU")
    name = f"{seen.name} x {seen.domains}" if seen.domains else seen.name
    head = f"{name}: {what}" if seen.name else what
    if cost is not None:
        by = "the path of one flow" if cost.bottleneck_kind == "path" else cost.bottleneck_kind
        return f"{head}, {cost.kind.replace('_', '-')} bound by {by}"
    if seen.network:
        return f"{head} on {counted(len(seen.network), 'switch')}"
    rows = [level.count for level in seen.levels]
    return f"{head} under {', '.join(rows)}" if rows else head
