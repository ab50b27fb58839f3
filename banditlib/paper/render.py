"""The one way a table or figure becomes a file: CSV, Markdown, SVG, PNG, numbers and intervals.

A figure is drawn once with matplotlib in a marker ink. In its SVG the marker is replaced by
``currentColor``, so the same drawing reads on light and on dark paper; its PNG has white paper.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from banditlib.paper.verdict import mean_interval

INK = "#010203"

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


#: The book's text face, where its package (extra `book`) is installed: letters and formulas alike.
SERIF: dict[str, Any] = {
    "font.family": ["Source Serif Pro", "DejaVu Serif", "DejaVu Sans"],
    "mathtext.fontset": "custom",
    "mathtext.rm": "Source Serif Pro",
    "mathtext.it": "Source Serif Pro:italic",
    "mathtext.bf": "Source Serif Pro:semibold",
    "mathtext.cal": "Source Serif Pro:italic",
    "mathtext.fallback": "stix",
}


def _has_serif() -> bool:
    """Make the book's text face known to matplotlib; say whether it is there."""
    from importlib.util import find_spec
    from pathlib import Path

    from matplotlib import font_manager

    found = find_spec("font_source_serif_pro")
    if found is None or found.origin is None:
        return False
    for name in ("Regular", "It", "Semibold"):
        file = Path(found.origin).parent / "files" / f"SourceSerifPro-{name}.ttf"
        font_manager.fontManager.addfont(file)
    return True


def use_style() -> None:
    """Apply the project's matplotlib style (importing this module does it once)."""
    mpl.rcParams.update(STYLE | SERIF if _has_serif() else STYLE)


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


def png(fig: Figure, dpi: int = 160) -> bytes:
    """`fig` as a PNG on white paper."""
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=dpi, facecolor="white")
    return buffer.getvalue()


_NAMES_ONLY = ContextVar("_NAMES_ONLY", default=False)


@contextmanager
def names_only() -> Iterator[None]:
    """Within it files of figures are empty: for who asks which there are, not what is in them."""
    before = _NAMES_ONLY.set(True)
    try:
        yield
    finally:
        _NAMES_ONLY.reset(before)


def figure_files(fig: Figure, suffix: str = "") -> dict[str, bytes]:
    """The files of a figure by suffix, SVG and PNG; the figure is closed."""
    drawn = not _NAMES_ONLY.get()
    files = {
        f"{suffix}.svg": svg(fig).encode() if drawn else b"",
        f"{suffix}.png": png(fig) if drawn else b"",
    }
    plt.close(fig)
    return files


def mark_stand_in(fig: Figure, note: str) -> None:
    """Say above the panels, in red, that a figure was not made from the real data."""
    fig.suptitle(note, color=COLORS["bad"], fontsize=9)


# --- tables -----------------------------------------------------------------------------------


def csv_text(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV: `head`, then one line per row; None is an empty field."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue()


def records_csv(records: Sequence[Mapping[str, object]]) -> bytes:
    """Flat records of equal fields as CSV; numbers with a point to six decimals."""
    rows = [[round(v, 6) if isinstance(v, float) else v for v in r.values()] for r in records]
    return csv_text(list(records[0]), rows).encode()


def markdown(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown; None is an empty field."""
    lines = [head, ["---"] * len(head), *rows]
    shown = (["" if value is None else str(value) for value in line] for line in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in shown)


def curves_csv(curves: Iterable[tuple[str, NDArray[Any], NDArray[Any]]]) -> bytes:
    """The numbers behind curves: for each name, rounds (marks,) and runs (runs, marks), a line
    per round with mean, standard error, median and the 10% and 90% quantiles over the runs.
    """
    rows = []
    for name, rounds, runs in curves:
        error = runs.std(axis=0, ddof=1) / len(runs) ** 0.5 if len(runs) > 1 else None
        low, middle, high = np.quantile(runs, [0.1, 0.5, 0.9], axis=0)
        for i, k in enumerate(rounds):
            shown = [f"{v[i]:.6g}" for v in (low, middle, high)]
            spread = "" if error is None else f"{error[i]:.6g}"
            rows.append([name, int(k), len(runs), f"{runs[:, i].mean():.6g}", spread, *shown])
    head = ["curve", "round", "runs", "mean", "standard error", "10%", "median", "90%"]
    return csv_text(head, rows).encode()


# --- numbers ----------------------------------------------------------------------------------

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def pretty(value: object, spec: str = "") -> str:
    """Format `value` for prose: a true minus sign, and 1.2 × 10⁹ instead of 1.2e+09."""
    text = format(value, spec)
    match = re.fullmatch(r"(-?[\d.]+)[eE]([+-]?\d+)", text)
    if match:
        text = f"{match[1]} × 10{str(int(match[2])).translate(_SUPERSCRIPT)}"
    return re.sub(r"^-(?=[\d.])", "−", text)


def number(value: float) -> str:
    """About three digits: two decimals below 10, one below 1,000, none above."""
    return pretty(value, f".{2 if abs(value) < 10 else 1 if abs(value) < 1000 else 0}f")


def signed(value: float, spec: str = "+.0f") -> str:
    """A number with its sign, minus as a minus."""
    return format(value, spec).replace("-", "−")


def p_value(value: float) -> str:
    """A p-value, with more digits where it is small."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def with_interval(values: NDArray[np.float64], spec: str = "+.0f", scale: float = 1.0) -> str:
    """Mean and 95% interval, such as ``−98 [−114, −83]``."""
    low, high = (scale * v for v in mean_interval(values))
    return f"{signed(scale * values.mean(), spec)} [{signed(low, spec)}, {signed(high, spec)}]"
