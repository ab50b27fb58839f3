"""The few ways in which figures show numbers: a line with its band, runs, intervals, a level.

Every mark is asked for by the role it plays, a key of `COLORS`: an algorithm has one colour in
the whole book.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from banditlib.paper.render import COLORS

#: Height of a letter of a label, in points, and how far apart two labels are kept.
LABEL, APART = 8.5, 11.0


def panels(
    across: int = 1,
    rows: int = 1,
    size: tuple[float, float] | None = None,
    log: str = "",
    sharex: bool | str = False,
    sharey: bool | str = False,
    width_ratios: Sequence[float] | None = None,
    **labels: Any,
) -> tuple[Figure, Any]:
    """A figure and its panels; `log` names the logarithmic axes, "x", "y" or "xy".

    What is not an argument of matplotlib's ``subplots`` goes to ``Axes.set`` of every panel, as
    ``xlabel`` does; ``ylabel`` goes to the leftmost ones only. A single panel is returned as such.
    """
    fig, axes = plt.subplots(
        rows, across, figsize=size, squeeze=False,
        sharex=sharex, sharey=sharey, width_ratios=width_ratios,
    )  # fmt: skip
    left = labels.pop("ylabel", "")
    for ax in axes.flat:
        ax.set(**{f"{axis}scale": "log" for axis in log}, **labels)
    for ax in axes[:, 0]:
        ax.set_ylabel(left)
    return fig, axes[0, 0] if across == rows == 1 else axes[0] if rows == 1 else axes


def line(
    ax: Axes,
    x: ArrayLike,
    y: ArrayLike,
    role: str,
    name: str = "",
    style: str | tuple[float, tuple[float, ...]] = "-",
    band: tuple[ArrayLike, ArrayLike] | None = None,
    **look: Any,
) -> None:
    """A line with its `band`, a lower and an upper edge; or, with a marker as `style`, points.

    `style` is what matplotlib's ``plot`` takes as its format, or dashes as (offset, lengths).
    """
    if band is not None:
        ax.fill_between(x, *band, color=COLORS[role], alpha=0.2, lw=0)
    if isinstance(style, str):
        ax.plot(x, y, style, color=COLORS[role], label=name or None, **look)
    else:
        ax.plot(x, y, ls=style, color=COLORS[role], label=name or None, **look)


def runs(
    ax: Axes, x: ArrayLike, found: NDArray[Any], role: str, name: str = "", style: str = "-"
) -> None:
    """The mean of `found` (runs, points) with its standard error as a band."""
    mean = found.mean(axis=0)
    error = found.std(axis=0, ddof=1) / len(found) ** 0.5 if len(found) > 1 else 0 * mean
    line(ax, x, mean, role, name, style, band=(mean - error, mean + error))


def level(
    ax: Axes, y: float, role: str, name: str = "", style: str = "--", lw: float = 1.2
) -> None:
    """A horizontal line across the panel, with its name above its right end."""
    ax.axhline(y, color=COLORS[role], ls=style, lw=lw)
    if name:
        place: dict[str, Any] = {
            "xycoords": ax.get_yaxis_transform(),
            "textcoords": "offset points",
        }
        ax.annotate(name, (1, y), xytext=(0, 3), ha="right", fontsize=LABEL, **place)


def intervals(
    ax: Axes,
    x: ArrayLike,
    y: ArrayLike,
    ends: tuple[ArrayLike, ArrayLike],
    role: str,
    name: str = "",
    style: str = "o",
    **look: Any,
) -> None:
    """Points, or with ``"o-"`` as `style` a line of points, each with a bar between its `ends`."""
    bars = np.abs(np.asarray(ends, float) - np.asarray(y, float))
    ax.errorbar(x, y, bars, fmt=style, color=COLORS[role], label=name or None, **look)


def spread(heights: Sequence[float], apart: float) -> NDArray[np.float64]:
    """The places nearest to `heights`, in squares, in the same order and at least `apart`."""
    order = np.argsort(heights, kind="stable")
    blocks: list[tuple[float, int]] = []  # (mean, size) of neighbours that would overlap
    for i, h in enumerate(np.asarray(heights, float)[order]):
        mean, size = h - i * apart, 1
        while blocks and blocks[-1][0] > mean:
            other, n = blocks.pop()
            mean, size = (mean * size + other * n) / (size + n), size + n
        blocks.append((mean, size))
    places = np.empty(len(order))
    means, sizes = [m for m, _ in blocks], [n for _, n in blocks]
    places[order] = np.repeat(means, sizes) + apart * np.arange(len(order))
    return places


def name_ends(ax: Axes, apart: float = APART) -> None:
    """Write the name of each line beside its right end, in its colour; no two overlap."""
    named = [item for item in ax.lines if not str(item.get_label()).startswith("_")]
    ends = [np.asarray(item.get_xydata())[-1] for item in named]
    ax.figure.draw_without_rendering()  # type: ignore[union-attr]
    points = 72 / ax.figure.dpi
    heights = [ax.transData.transform(end)[1] * points for end in ends]
    places = spread(heights, apart)
    for i, item in enumerate(named):
        ax.annotate(
            str(item.get_label()),
            ends[i],
            xytext=(4, places[i] - heights[i] - LABEL / 3),
            textcoords="offset points",
            color=item.get_color(),
            fontsize=LABEL,
            annotation_clip=False,
        )


def one_legend(fig: Figure) -> None:
    """A legend below all panels, with every curve once, in as many rows as its width needs."""
    found: dict[str, Artist] = {}
    for ax in fig.axes:
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    names = sorted(found)
    handles = [found[name] for name in names]
    for rows in range(1, len(names) + 1):
        ncols = -(-len(names) // rows)
        legend = fig.legend(handles, names, loc="outside lower center", ncols=ncols)
        fig.draw_without_rendering()
        if ncols == 1 or legend.get_window_extent().width <= fig.bbox.width:
            break
        legend.remove()
