"""What chapters use to show figures and numbers: `figure`, `table`, `glue`.

The SVG of a figure goes into the page; a PNG travels along for readers of plain notebooks, and the
points it shows as CSV.
"""

from __future__ import annotations

import copy
import html
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from banditlib.paper.render import (
    COLORS,
    INK,
    csv_text,
    markdown,
    png,
    pretty,
    svg,
    use_style,
)

__all__ = [
    "COLORS", "INK", "Drawing", "Table", "figure", "glue", "plotted", "pretty", "svg", "table",
    "use_style",
]  # fmt: skip

#: What Jupyter shows, by type, and beside it the numbers behind as CSV.
Forms = tuple[dict[str, Any], dict[str, str]]


def _filled(values: Any) -> NDArray[np.float64]:
    """An array without a mask: NaN where nothing is shown."""
    return np.asarray(np.ma.filled(np.ma.asarray(values, float), np.nan))


def _series(ax: Axes) -> Iterator[tuple[str, NDArray[Any]]]:
    """What `ax` shows, each with its name: points (n, 2), or values with their places (n, 3)."""
    for line in ax.lines:
        yield str(line.get_label()), np.asarray(line.get_xydata())
    for item in ax.collections:
        name = str(item.get_label())
        if isinstance(item, QuadMesh):
            corners = np.asarray(item.get_coordinates())
            middles = (corners[1:, 1:] + corners[:-1, :-1]).reshape(-1, 2) / 2
            values = _filled(item.get_array())
            if values.size == len(middles):
                yield name, np.column_stack([middles, values.ravel()])
        elif isinstance(item, PathCollection):
            yield name, _filled(item.get_offsets())
        else:
            for path in item.get_paths():
                yield name, np.asarray(path.vertices)
    for box in ax.containers:
        if isinstance(box, BarContainer):
            bars = [(b.get_x() + b.get_width() / 2, b.get_height()) for b in box.patches]
            yield str(box.get_label()), np.array(bars)
    for patch in ax.patches:
        if isinstance(patch, Rectangle) and not str(patch.get_label()).startswith("_"):
            left, middle = patch.get_x(), patch.get_y() + patch.get_height() / 2
            ends = [(left, middle), (left + patch.get_width(), middle)]
            yield str(patch.get_label()), np.array(ends)
    for image in ax.images:
        values = _filled(image.get_array())
        if values.ndim == 2:
            left, right, bottom, top = image.get_extent()
            x = left + (np.arange(values.shape[1]) + 0.5) * (right - left) / values.shape[1]
            y = bottom + (np.arange(values.shape[0]) + 0.5) * (top - bottom) / values.shape[0]
            y = y if image.origin == "lower" else y[::-1]
            grid = np.stack([*np.meshgrid(x, y), values], axis=-1)
            yield str(image.get_label()), grid.reshape(-1, 3)


def plotted(fig: Figure, most: int = 1000) -> str:
    """The points that `fig` shows, as CSV: panel, series, place and, on maps, value.

    Of a longer line `most` points are kept, evenly spread and with both ends.
    """
    rows = []
    for number, ax in enumerate(fig.axes, 1):
        titles = (ax.get_title(loc=side) for side in ("left", "center", "right"))
        panel = next(filter(None, titles), str(number))
        for place, (name, points) in enumerate(_series(ax), 1):
            series = " ".join(name.split()) if not name.startswith("_") else f"{place}"
            if points.shape[1] == 2 and len(points) > most:
                points = points[np.linspace(0, len(points) - 1, most).round().astype(int)]
            for point in points:
                shown = [f"{v:.6g}" for v in point]
                rows.append([panel, series, *shown, *[""] * (3 - len(shown))])
    return csv_text(["panel", "series", "x", "y", "value"], rows)


class Drawing:
    """A finished figure: inline SVG for pages, PNG for everything else, and its points."""

    def __init__(self, fig: Figure, alt: str) -> None:
        self.alt = alt
        self.svg = svg(fig)
        self.csv = plotted(fig)
        self.png = png(fig, dpi=144)

        label = html.escape(alt, quote=True)
        drawing = self.svg.replace("<svg", '<svg aria-hidden="true" focusable="false"', 1)
        self.html = f'<div class="bl-figure" role="img" aria-label="{label}">{drawing}</div>'

    def inside(self, start: str, end: str) -> Drawing:
        """The same drawing between two pieces of HTML."""
        other = copy.copy(self)
        other.html = start + self.html + end
        return other

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Forms:
        forms = {
            "text/html": self.html,
            "image/png": self.png,
            "text/plain": f"[figure: {self.alt}]",
        }
        return forms, {"csv": self.csv}


def figure(fig: Figure, alt: str) -> Drawing:
    """Close `fig` and return it ready for display.

    Parameters
    ----------
    fig
        The finished matplotlib figure.
    alt
        One or two sentences that tell a reader who cannot see it what it shows.
    """
    if not isinstance(alt, str) or len(alt) < 15:
        raise ValueError("figure: alt must be a sentence that says what the figure shows")
    drawing = Drawing(fig, alt)
    plt.close(fig)
    return drawing


class _Text:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return repr(self.text)  # quoted, because the book evaluates it: 18,000 would become a pair


def glue(name: str, value: object, spec: str = "") -> None:
    """Give the number `value`, formatted by `spec`, the name by which the prose calls it.

    In the book the prose quotes it with ``{glue:text}`name` ``. In a plain notebook, where nothing
    substitutes names, the number is printed instead.
    """
    text = pretty(value, spec)
    try:
        from myst_nb import glue as myst_glue
    except ImportError:
        print(f"{name} = {text}")
        return
    myst_glue(name, _Text(text), display=False)


class Table:
    """A small table for a page: HTML with row headers, Markdown elsewhere."""

    def __init__(self, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        for row in rows:
            if len(row) != len(head):
                raise ValueError(f"table: a row has {len(row)} cells, head has {len(head)}")
        self.head = [str(cell) for cell in head]
        self.rows = [[str(cell) for cell in row] for row in rows]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Forms:
        plain = markdown(self.head, self.rows)
        forms = {"text/html": self._html(), "text/markdown": plain, "text/plain": plain}
        return forms, {"csv": csv_text(self.head, self.rows)}

    def _html(self) -> str:
        head, *rows = _verdict_first([self.head, *self.rows])
        kinds = [_kind(column) for column in zip(*rows, strict=True)] or [""] * len(head)
        names = "".join(
            f'<th scope="col"{kind}>{html.escape(cell)}</th>'
            for cell, kind in zip(head, kinds, strict=True)
        )
        body = "".join(
            f'<tr><th scope="row">{html.escape(row[0])}</th>'
            f"{''.join(map(_cell, row[1:], kinds[1:]))}</tr>"
            for row in rows
        )
        return (
            '<div class="bl-table" tabindex="0" role="region" aria-label="Table">'
            f'<table class="table"><thead><tr>{names}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>"
        )


#: How a page shows the words of `banditlib.paper.verdict`: a sign, and a colour by its class.
SIGNS = {
    "reproduced": ("✓", "is-good"),
    "reproduced in kind": ("≈", "is-mixed"),
    "not reproduced": ("✗", "is-bad"),
    "cannot be tested": ("–", "is-open"),
}


def _verdict_first(lines: list[list[str]]) -> list[list[str]]:
    """Move the first column of verdicts next to the names of the rows: no screen is too narrow."""
    columns = list(zip(*lines, strict=True))
    where = [i for i, column in enumerate(columns) if i and set(column[1:]) <= set(SIGNS)]
    if where and len(lines) > 1:
        columns.insert(1, columns.pop(where[0]))
    return [list(line) for line in zip(*columns, strict=True)]


def _kind(column: Sequence[str]) -> str:
    """The class of a column that has words in it, which stand on the left; numbers on the right."""
    letters, digits = (sum(map(kind, "".join(column))) for kind in (str.isalpha, str.isdigit))
    return ' class="words"' if letters > 2 * digits else ""


def _cell(text: str, kind: str = "") -> str:
    """A cell of a table; a verdict has its sign and colour."""
    if text not in SIGNS:
        return f"<td{kind}>{html.escape(text)}</td>"
    sign, name = SIGNS[text]
    return f'<td class="verdict-cell {name}">{sign}\N{NO-BREAK SPACE}{text}</td>'


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Show `rows` (already formatted) under `head`; the first cell of a row names it."""
    return Table(head, rows)
