"""Controls of the synthetic experiment: paired differences, other readings, long runs, theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from banditlib import theory
from banditlib.paper.experiments.synthetic import cells as synthetic
from banditlib.paper.experiments.synthetic import figure as figure_1a
from banditlib.paper.experiments.synthetic import table as table_1
from banditlib.paper.experiments.synthetic.table import NAMES, PAPER, Point, Reading
from banditlib.paper.render import COLORS, pretty, signed, with_interval
from banditlib.paper.store import Cell, Packed

POINT: Point = (3.0, 1.0)
#: Where each row is taken when nothing is searched for.
POINTS: dict[str, Point] = {"sup": (1.0, 1.0), "sup-theorem": ("theorem", 1.0)}


def gain(reading: Reading, row: str, point: Point = POINT) -> NDArray[np.float64]:
    """Mean difference of a row to OFUL on common noise, one value per replicate."""
    return (reading[row][point].regret - reading["ds 0"][point].regret).mean(axis=1)


def paired_rows(reading: Reading) -> list[list[str]]:
    """Every threshold against OFUL on common noise."""
    out = []
    for row in synthetic.DS_ROWS[1:]:
        diff, runs = gain(reading, row), reading[row][POINT]
        free = (runs.regret - reading["ds 0"][POINT].regret)[~runs.locked]
        out.append(
            [
                NAMES[row],
                with_interval(diff),
                signed(float(np.median(diff))),
                f"{(diff < 0).sum()} of {len(diff)}",
                f"{100 * runs.locked.mean():.1f}%",
                signed(free.mean()),
            ]
        )
    return out


def paired_figure(reading: Reading) -> Figure:
    """Difference to OFUL, one dot per replicate, by threshold."""
    fig, ax = plt.subplots(figsize=(6.4, 3.4))
    rng = np.random.default_rng(0)
    for i, row in enumerate(synthetic.DS_ROWS[1:]):
        diff = gain(reading, row)
        x = i + rng.uniform(-0.22, 0.22, len(diff))
        ax.plot(x, diff, ".", color=COLORS["ds"], alpha=0.6, ms=5)
        ax.hlines(np.median(diff), i - 0.3, i + 0.3, color=COLORS["oful"], lw=2)
    ax.axhline(0, color=COLORS["muted"], lw=1)
    ax.set_yscale("symlog", linthresh=100)
    ax.set_xticks(range(5), [f"Γ = {row[3:]}" for row in synthetic.DS_ROWS[1:]])
    ax.set(ylabel="regret minus OFUL's")
    return fig


def reading_rows(
    readings: Mapping[str, Reading], names: Sequence[str], search: bool = False
) -> list[list[str]]:
    """Mean regret and share of locked runs of every row under several readings.

    Without a search every row stands at its fixed point; with one, each replicate of eight runs
    takes the (β, λ) that is best for the row there.
    """
    if search:
        tables = [table_1.choose(table_1.complete(readings[name])) for name in names]
    else:
        tables = [table_1.fixed(readings[name], POINTS, POINT) for name in names]

    def entry(chosen: Mapping[str, table_1.Chosen], row: str) -> str:
        if row not in chosen:
            return "–"
        runs = chosen[row].runs
        return f"{runs.regret.mean():.0f} ({100 * runs.locked.mean():.0f}%)"

    return [
        [NAMES[row], f"{PAPER[row][0]:.0f}" if row in PAPER else "–"]
        + [entry(chosen, row) for chosen in tables]
        for row in NAMES
        if row in tables[0]
    ]


def relative_rows(readings: Mapping[str, Reading], names: Mapping[str, str]) -> list[list[str]]:
    """Difference to OFUL in percent of OFUL's regret."""
    out = []
    for name, title in names.items():
        base = readings[name]["ds 0"][POINT].regret.mean()
        diffs = [gain(readings[name], row) for row in ("ds 0.02", "ds 0.05")]
        out.append([title, *(with_interval(d, "+.0f", 100 / base) + " %" for d in diffs)])
    return out


# --- long runs ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Long:
    """Long runs of one row: regret (runs, marks) and which runs ended locked."""

    marks: NDArray[np.int64]
    regret: NDArray[np.float64]
    locked: NDArray[np.bool_]

    def at(self, rounds: int) -> NDArray[np.float64]:
        return self.regret[:, list(self.marks).index(rounds)]

    @property
    def flat(self) -> float:
        """Share of runs without any regret in the second half."""
        return float(np.mean(self.regret[:, -1] == self.at(int(self.marks[-1]) // 2)))


def long_runs(cells: Sequence[Cell | Packed]) -> dict[str, Long]:
    """The long runs by row, in the table's order."""
    chosen = [c for c in cells if synthetic.reading_of(c.config) == "long"]
    marks, found = figure_1a.curves(chosen, "long")
    locks: dict[str, list[NDArray[Any]]] = {}
    for cell in sorted(chosen, key=lambda c: c.config["instances"] + c.config["trials"]):
        kept = synthetic.thinned(cell)["locked"].ravel().astype(bool)
        locks.setdefault(table_1.row_of(cell.config["policy"]), []).append(kept)
    out = {}
    for row in (r for r in NAMES if r in found):
        curves = next(iter(found[row].values()))
        out[row] = Long(marks, curves.reshape(-1, len(marks)), np.concatenate(locks[row]))
    return out


def long_rows(long: Mapping[str, Long]) -> list[list[str]]:
    return [
        [
            NAMES[row],
            f"{runs.at(10_000).mean():.0f}",
            f"{runs.regret[:, -1].mean():.0f}",
            f"{np.median(runs.regret[:, -1]):.0f}",
            f"{100 * runs.flat:.0f}%",
            f"{100 * runs.locked.mean():.1f}%",
        ]
        for row, runs in long.items()
    ]


def long_figure(long: Mapping[str, Long]) -> Figure:
    """Median (solid) and mean (dotted) regret against the round, both axes logarithmic."""
    fig, ax = plt.subplots(figsize=(6.4, 3.8))
    for row, runs in long.items():
        color, line = figure_1a.LINES[row]
        x, y = runs.marks[1:], runs.regret[:, 1:]
        ax.plot(x, np.median(y, axis=0), ls=line, color=COLORS[color], label=figure_1a.SHORT[row])
        ax.plot(x, y.mean(axis=0), lw=1, ls=(0, (1, 2)), color=COLORS[color])
    ax.set(xscale="log", yscale="log", xlabel="round", ylabel="regret", ylim=(100, None))
    ax.legend(fontsize=8, ncols=2, loc="upper left")
    return fig


# --- theory ---------------------------------------------------------------------------------------


def theory_rows(d: int = 16, Delta: float = 0.18) -> list[list[str]]:
    """Constants of both theorems, printed and repaired, at the experiment's values."""
    a, b = (theory.known_gap(d, Delta, repaired=r) for r in (False, True))
    s, t = (theory.unknown_gap(d, Delta, repaired=r) for r in (False, True))

    def e(x: Any) -> str:
        return pretty(float(x), ".2e")

    return [
        ["Γ", e(a.Gamma), e(b.Gamma), "–", "–"],
        ["largest ζ", e(a.zeta_max), e(b.zeta_max), e(s.zeta_max), e(t.zeta_max)],
        ["β (at level l_Δ)", *(f"{x.beta:.1f}" for x in (a, b, s, t))],
        ["ι₁", *(f"{x.iota1:.1f}" for x in (a, b, s, t))],
        ["l_Δ", "–", "–", str(s.l_Delta), str(t.l_Delta)],
        [
            "bound on learnt rounds",
            e(a.selections),
            e(b.selections_sharp),
            e(s.selections(s.l_Delta)),
            e(t.selections(t.l_Delta, 2.35)),
        ],
        [
            "bound on regret",
            e(a.bound_printed),
            e(b.bound_sharp),
            e(s.bound_printed),
            e(t.bound_repaired),
        ],
    ]
