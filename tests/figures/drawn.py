"""What stands in a figure, measured as it is rendered."""

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def text_boxes(ax: Axes) -> dict[str, list[Bbox]]:
    """Return the extents of every visible text of the figure, by its string."""
    figure = ax.figure.figure
    canvas = FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    hidden = {
        id(text)
        for axes in figure.findobj(Axes)
        for axis in (axes.xaxis, axes.yaxis)  # type: ignore[attr-defined]
        for tick in (axis.get_major_ticks() + axis.get_minor_ticks())
        if not axes.axison or tick not in axis._update_ticks()  # type: ignore[attr-defined]
        for text in tick.findobj(Text)
    }
    found: dict[str, list[Bbox]] = {}
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if text.get_text().strip() and text.get_visible() and id(text) not in hidden:
            box = Text.get_window_extent(text, canvas.get_renderer())
            found.setdefault(text.get_text(), []).append(box)
    return found


def flaws(ax: Axes) -> list[str | tuple[str, str]]:
    """Return the texts that reach out of the figure, and the pairs that cover each other."""
    width, height = FigureCanvasAgg(ax.figure.figure).get_width_height()
    flat = [(text, box) for text, boxes in text_boxes(ax).items() for box in boxes]
    out: list[str | tuple[str, str]] = [
        text for text, box in flat if min(box.x0, box.y0) < -0.5 or box.x1 > width + 0.5 or box.y1 > height + 0.5
    ]
    flat.sort(key=lambda row: row[1].x0)
    for i, (text, box) in enumerate(flat):
        for other, beside in flat[i + 1 :]:
            if beside.x0 > box.x1:
                break
            if _cover(box, beside):
                out.append((text, other))
    return out


def cropped(ax: Axes) -> list[str]:
    """Return the texts that reach out of the figure."""
    return [flaw for flaw in flaws(ax) if isinstance(flaw, str)]


def overlapping(ax: Axes) -> list[tuple[str, str]]:
    """Return the pairs of texts that cover each other."""
    return [flaw for flaw in flaws(ax) if not isinstance(flaw, str)]


def _cover(a: Bbox, b: Bbox) -> bool:
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 0.5 and min(a.y1, b.y1) - max(a.y0, b.y0) > 0.5


def labels(ax: Axes) -> list[str]:
    """Return the texts placed in the Axes."""
    return [text.get_text() for text in ax.texts]


def shown_ticks(axis: Axis) -> list[str]:
    """Return the tick labels within the limits."""
    FigureCanvasAgg(axis.axes.figure.figure).draw()
    low, high = sorted(axis.get_view_interval())
    ticks = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
    return [label.get_text() for at, label in ticks if low <= at <= high]
