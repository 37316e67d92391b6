"""What stands in a figure, measured as it is rendered."""

from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def text_boxes(ax: Axes) -> dict[str, list[Bbox]]:
    """Return the extents of every visible text of the figure, by its string."""
    figure = ax.figure.figure
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
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


def cropped(ax: Axes) -> list[str]:
    """Return the texts that reach out of the figure."""
    width, height = FigureCanvasAgg(ax.figure.figure).get_width_height()
    return [
        text
        for text, boxes in text_boxes(ax).items()
        for box in boxes
        if box.x0 < -0.5 or box.y0 < -0.5 or box.x1 > width + 0.5 or box.y1 > height + 0.5
    ]


def overlapping(ax: Axes) -> list[tuple[str, str]]:
    """Return the pairs of texts that cover each other."""
    flat = [(text, box) for text, boxes in text_boxes(ax).items() for box in boxes]
    return [(s, t) for (s, a), (t, b) in combinations(flat, 2) if _cover(a, b)]


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
