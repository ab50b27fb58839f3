"""The plots of the synthetic experiment, one function per figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from banditlib.paper.experiments.base import Rendered
from banditlib.paper.experiments.synthetic import cells as synthetic
from banditlib.paper.experiments.synthetic import table as table_1
from banditlib.paper.experiments.synthetic.table import NAMES, Point
from banditlib.paper.render import COLORS, curves_csv, figure_files
from banditlib.paper.store import Cell, Packed

Curves = dict[str, dict[Point, NDArray[np.float64]]]  # row → (β, λ) → (replicates, 8, marks)

#: Colour and line of every row; thresholds share a colour and differ in their line.
LINES: dict[str, tuple[str, Any]] = {
    "ds 0": ("oful", "-"),
    "ds 0.02": ("ds", "-"),
    "ds 0.05": ("ds", (0, (6, 1.5))),
    "ds 0.08": ("ds", (0, (3, 1.5))),
    "ds 0.13": ("ds", (0, (3, 1.5, 1, 1.5))),
    "ds 0.18": ("ds", (0, (1, 1.5))),
    "lsw": ("lsw", "-"),
    "rlb": ("rlb", "-"),
    "sup": ("sup", "-"),
}
SHORT = {**NAMES, "rlb": "RLB", "sup": "SupLinUCB"}


def curves(cells: Iterable[Cell | Packed], reading: str) -> tuple[NDArray[np.int64], Curves]:
    """Rounds (starting with 0) and cumulative regret of every run under a reading with curves."""
    found: dict[str, dict[Point, list[tuple[list[int], NDArray[np.float64]]]]] = {}
    marks: list[int] = []
    for cell in cells:
        config = cell.config
        if synthetic.reading_of(config) != reading or not synthetic.keeps_curve(config):
            continue
        steps = synthetic.thinned(cell)["curve"]
        runs = np.cumsum(steps, axis=-1).reshape(-1, steps.shape[-1]) * synthetic.UNIT
        point = (config["policy"]["beta"], config["policy"]["lam"])
        row = found.setdefault(table_1.row_of(config["policy"]), {})
        row.setdefault(point, []).append((config["instances"] + config["trials"], runs))
        marks = synthetic.curve_marks(config)
    out: Curves = {}
    for row_name, grid in found.items():
        for point, parts in grid.items():
            ordered = np.stack([runs for _, runs in sorted(parts, key=lambda part: part[0])])
            zero = np.zeros((*ordered.shape[:2], 1))
            out.setdefault(row_name, {})[point] = np.concatenate([zero, ordered], axis=2)
    return np.array([0, *marks]), out


def best(found: Curves, replicates: int) -> dict[str, NDArray[np.float64]]:
    """For each row the curves at the (β, λ) of least mean final regret, (runs, marks)."""
    out = {}
    for row, grid in found.items():
        full = {p: c for p, c in grid.items() if len(c) >= replicates}
        point = min(full, key=lambda p: full[p][:replicates, :, -1].mean())
        out[row] = full[point][:replicates].reshape(-1, full[point].shape[-1])
    return out


def figure_1a(marks: NDArray[np.int64], rows: Mapping[str, NDArray[np.float64]]) -> Figure:
    """Figure 1a as the paper drew it: mean cumulative regret of eight runs against the round."""
    fig, ax = plt.subplots(figsize=(6.4, 4.0))
    for row in (r for r in LINES if r in rows):
        color, line = LINES[row]
        ax.plot(marks, rows[row].mean(axis=0), color=COLORS[color], ls=line, label=SHORT[row])
    ax.set(xlabel="round", ylabel="cumulative regret", xlim=(0, marks[-1]), ylim=(0, None))
    ax.legend(ncols=2, fontsize=8, loc="upper left")
    return fig


def figure_1a_all_runs(
    marks: NDArray[np.int64],
    rows: Mapping[str, NDArray[np.float64]],
    locked: Mapping[str, NDArray[np.bool_]],
) -> Figure:
    """One panel per row: the middle 80% of runs, median, mean (dashed), locked runs in red."""
    shown = [row for row in LINES if row in rows]
    fig, axes = plt.subplots(3, 3, figsize=(6.8, 6.2), sharex=True, sharey=True)
    for ax, row in zip(axes.flat, shown, strict=False):
        _panel(ax, marks, rows[row], locked[row], COLORS[LINES[row][0]], SHORT[row])
    for ax in axes.flat[len(shown) :]:
        ax.set_visible(False)
    axes[0, 0].set(yscale="log", ylim=(20, 12_000), xlim=(0, marks[-1]))
    axes[0, 0].set_xticks([0, marks[-1] // 2, marks[-1]])
    fig.supxlabel("round", fontsize=10)
    fig.supylabel("cumulative regret", fontsize=10)
    return fig


def _panel(
    ax: Axes,
    marks: NDArray[np.int64],
    runs: NDArray[np.float64],
    locked: NDArray[np.bool_],
    color: str,
    name: str,
) -> None:
    x, y = marks[1:], runs[:, 1:]
    for run in y[locked]:
        ax.plot(x, run, color=COLORS["bad"], lw=0.6, alpha=0.55)
    low, high = np.quantile(y, [0.1, 0.9], axis=0)
    ax.fill_between(x, low, high, color=color, alpha=0.3, lw=0)
    ax.plot(x, y.mean(axis=0), color=color, lw=1.1, ls=(0, (4, 2)))
    ax.plot(x, np.median(y, axis=0), color=color, lw=2)
    share = f"{100 * locked.mean():.0f}% locked" if locked.any() else "none locked"
    ax.set_title(f"{name}\n{share}", fontsize=8.5)
    ax.tick_params(labelsize=8)


def locked_runs(
    cells: Sequence[Cell | Packed], reading: str, replicates: int
) -> dict[str, NDArray[np.bool_]]:
    """Which of the runs that `best` picks ended locked on a wrong arm."""
    found = table_1.readings(cells)[reading]
    out = {}
    for row, grid in found.items():
        full = {p: r for p, r in grid.items() if len(r.regret) >= replicates}
        point = min(full, key=lambda p: full[p].regret[:replicates].mean())
        out[row] = full[point].locked[:replicates].ravel()
    return out


def replicates_of(found: Curves) -> int:
    """How many replicates every row has in full."""
    return min(max(len(c) for c in grid.values()) for grid in found.values())


def render(cells: Sequence[Cell], scale: str) -> Rendered:
    """Figure 1a, as drawn (first eight runs) and in our form (all runs)."""
    reading = "smoke" if scale == "smoke" else "instance 0"
    marks, found = curves(cells, reading)
    everything = replicates_of(found)
    few, all_runs = best(found, 1), best(found, everything)
    drawn = figure_1a(marks, few)
    redrawn = figure_1a_all_runs(marks, all_runs, locked_runs(cells, reading, everything))
    numbers = {
        f"{suffix}.csv": curves_csv((SHORT[row], marks, rows[row]) for row in LINES if row in rows)
        for suffix, rows in (("", few), ("-all-runs", all_runs))
    }
    return {**numbers, **figure_files(drawn), **figure_files(redrawn, "-all-runs")}
