"""What chapters need to show figures and numbers: one style, one `figure`, one `glue`.

A figure is drawn once with matplotlib in a marker ink. Its SVG goes into the page with the
marker replaced by ``currentColor``, so the same drawing reads on light and on dark paper; a PNG
travels along for readers of plain notebooks.
"""

from __future__ import annotations

import copy
import csv
import hashlib
import html
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from numpy.typing import NDArray

INK = "#010203"

#: What Jupyter shows, by type, and beside it the numbers behind as CSV.
Forms = tuple[dict[str, Any], dict[str, str]]

# Mid-tones: each has a contrast of at least 3:1 on white and on the dark theme's background.
COLORS = {
    "oful": "#c8641e",
    "ds": "#2b7bba",
    "sup": "#2b8f5a",
    "lsw": "#8a63c9",
    "rlb": "#9a7a1c",
    "ucb": "#c2507f",
    "bound": "#767c85",
    "paper": "#cf4658",
    "ours": "#2b7bba",
    "bad": "#cf4658",
    "good": "#2b8f5a",
    "muted": "#7f868f",
}

STYLE: dict[str, Any] = {
    "figure.figsize": (6.4, 3.6),
    "figure.dpi": 110,
    "figure.facecolor": "none",
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "axes.prop_cycle": plt.cycler(
        color=[COLORS[k] for k in ("ds", "oful", "sup", "lsw", "ucb", "rlb", "bound")]
    ),
    "grid.color": INK,
    "grid.alpha": 0.13,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "lines.linewidth": 1.7,
    "patch.edgecolor": INK,
    "hatch.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "font.size": 10,
    "font.family": ["DejaVu Sans"],
    "mathtext.fontset": "dejavusans",
    "path.simplify_threshold": 0.4,
    "svg.fonttype": "path",
    "svg.hashsalt": "banditlib",
}


def use_style() -> None:
    """Apply the project's matplotlib style (importing this module does it once)."""
    mpl.rcParams.update(STYLE)


use_style()


def _steps(path: str) -> str:
    """A path of straight lines in the shortest steps: relative, and along an axis by one number."""
    if re.search(r"[^MLz\d.\s-]", path):
        return path
    out: list[str] = []
    start = here = step = (0, 0)
    for command, values in re.findall(r"([MLz])([^MLz]*)", path):
        if command == "z":
            out.append("z")
            here = start
            continue
        x, y = (round(10 * float(v)) for v in values.split())
        dx, dy = x - here[0], y - here[1]
        if command == "M":
            out.append(f"M{x / 10:g} {y / 10:g}")
            start = (x, y)
        elif out[-1][0] == "h" and dy == 0 and dx * step[0] > 0:
            dx += step[0]
            out[-1] = f"h{dx / 10:g}"
        elif dy == 0:
            out.append(f"h{dx / 10:g}")
        elif dx == 0:
            out.append(f"v{dy / 10:g}")
        else:
            out.append(f"l{dx / 10:g} {dy / 10:g}")
        here, step = (x, y), (dx, dy)
    return re.sub(r"(?<!\d)0\.", ".", "".join(out)).replace(" -", "-")


def _shorter(attribute: re.Match[str]) -> str:
    """Coordinates to a tenth of a point, which no screen resolves, and no needless blanks."""
    name, values = attribute[1], attribute[2]
    values = re.sub(r"-?\d*\.\d{2,}", lambda number: f"{float(number[0]):.1f}", values)
    values = re.sub(r"\.0\b", "", values)
    if name == "d":
        values = re.sub(r"\s*([A-Za-z])\s*", r"\1", _steps(values)).replace(" -", "-")
    return f' {name}="{values.strip()}"'


def svg(fig: Figure) -> str:
    """Return `fig` as an SVG string whose ink is ``currentColor`` and whose ids are its own."""
    buffer = io.StringIO()
    fig.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    text = text.replace("<svg", '<svg stroke-linejoin="round" stroke-linecap="butt"', 1)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).replace(INK, "currentColor")
    text = re.sub(r' (d|x|y)="([^"]*)"', _shorter, text)
    prefix = "f" + hashlib.sha256(text.encode()).hexdigest()[:8] + "-"
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', text)
    names = {old: f"{prefix}{i:x}" for i, old in enumerate(dict.fromkeys(used))}

    def rename(match: re.Match[str]) -> str:
        return f' id="{names[match[1]]}"' if match[1] in names else ""

    text = re.sub(r'\s+id="([^"]+)"', rename, text)
    text = re.sub(r'(href="#|url\(#)([^")]+)', lambda m: m[1] + names[m[2]], text)
    text = re.sub(r"(style=\"[^\"]*\")", lambda m: re.sub(r"([:;]) ", r"\1", m[1]), text)
    text = re.sub(r"\n\s*", "\n", text).strip()
    while (flat := re.sub(r"<g>\n(<(?:path|use)[^>]*/>)\n</g>", r"\1", text)) != text:
        text = flat  # groups of one
    return text


def curves_csv(curves: Iterable[tuple[str, NDArray[Any], NDArray[Any]]]) -> bytes:
    """The numbers behind curves: for each name, rounds (marks,) and runs (runs, marks), a line
    per round with mean, standard error, median and the 10% and 90% quantiles over the runs.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["curve", "round", "runs", "mean", "standard error", "10%", "median", "90%"])
    for name, rounds, runs in curves:
        error = runs.std(axis=0, ddof=1) / len(runs) ** 0.5 if len(runs) > 1 else None
        low, middle, high = np.quantile(runs, [0.1, 0.5, 0.9], axis=0)
        for i, k in enumerate(rounds):
            values = [runs[:, i].mean(), "" if error is None else error[i]]
            values += [low[i], middle[i], high[i]]
            shown = [v if isinstance(v, str) else f"{v:.6g}" for v in values]
            writer.writerow([name, int(k), len(runs), *shown])
    return text.getvalue().encode()


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
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["panel", "series", "x", "y", "value"])
    for number, ax in enumerate(fig.axes, 1):
        titles = (ax.get_title(loc=side) for side in ("left", "center", "right"))
        panel = next(filter(None, titles), str(number))
        for place, (name, points) in enumerate(_series(ax), 1):
            series = " ".join(name.split()) if not name.startswith("_") else f"{place}"
            if points.shape[1] == 2 and len(points) > most:
                points = points[np.linspace(0, len(points) - 1, most).round().astype(int)]
            for point in points:
                shown = [f"{v:.6g}" for v in point]
                writer.writerow([panel, series, *shown, *[""] * (3 - len(shown))])
    return text.getvalue()


class Drawing:
    """A finished figure: inline SVG for pages, PNG for everything else, and its points."""

    def __init__(self, fig: Figure, alt: str) -> None:
        self.alt = alt
        self.svg = svg(fig)
        self.csv = plotted(fig)
        buffer = io.BytesIO()
        fig.savefig(buffer, format="png", dpi=144, facecolor="white")
        self.png = buffer.getvalue()

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


_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def pretty(value: object, spec: str = "") -> str:
    """Format `value` for prose: a true minus sign, and 1.2 × 10⁹ instead of 1.2e+09."""
    text = format(value, spec)
    match = re.fullmatch(r"(-?[\d.]+)[eE]([+-]?\d+)", text)
    if match:
        text = f"{match[1]} × 10{str(int(match[2])).translate(_SUPERSCRIPT)}"
    return re.sub(r"^-(?=[\d.])", "−", text)


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
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.head, *self.rows])
        forms = {"text/html": self._html(), "text/markdown": self._markdown()}
        return forms | {"text/plain": self._markdown()}, {"csv": text.getvalue()}

    def _html(self) -> str:
        def line(cells: Sequence[str], tag: str, scope: str) -> str:
            first = f'<{"th" if scope == "row" else tag} scope="{scope}">{html.escape(cells[0])}'
            first += "</th>"
            mark = f' scope="{scope}"' if tag == "th" else ""
            rest = "".join(f"<{tag}{mark}>{html.escape(c)}</{tag}>" for c in cells[1:])
            return f"<tr>{first}{rest}</tr>"

        body = "".join(line(row, "td", "row") for row in self.rows)
        return (
            '<div class="bl-table" tabindex="0" role="region" aria-label="Table">'
            f'<table class="table"><thead>{line(self.head, "th", "col")}</thead>'
            f"<tbody>{body}</tbody></table></div>"
        )

    def _markdown(self) -> str:
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Show `rows` (already formatted) under `head`; the first cell of a row names it."""
    return Table(head, rows)
