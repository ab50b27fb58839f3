"""Levels of ζ between the panels: does regret set in at a threshold, or little by little?

The paper draws ζ = 0.01, 0.05, 0.1 and 0.5, and explains why it fails at 0.5 by a threshold. Runs
at LEVELS fill the hole between 0.1 and 0.5, four of each curve, at the grid point PICK, on both
kinds of features. Beside them stand the runs of the panels at that point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from banditlib.paper import features, plots, verdict
from banditlib.paper.experiments.asirra.cells import PANELS, PICK, ROUNDS, WEAK, cell
from banditlib.paper.experiments.asirra.cells import RUNS as PANEL_RUNS
from banditlib.paper.experiments.asirra.figure import STYLES, curve_name, curves, stand_in
from banditlib.paper.experiments.base import Rendered
from banditlib.paper.render import csv_text, figure_files, mark_stand_in, markdown
from banditlib.paper.store import Cell, Config, Packed

Mistakes = dict[tuple[str, float, str], NDArray[np.int64]]
"""By features, ζ and curve: for each run all mistakes, and those of the second half."""

LEVELS = (0.2, 0.3, 0.4)
RUNS = 4
DRAWN = {zeta: gammas for panels in PANELS.values() for zeta, gammas in panels.items()}
ZETAS = sorted([*LEVELS, *DRAWN])
GAMMAS = (0.0, 0.05, 0.1)
INPUTS = (("standard", "two-sided"), WEAK)


def cells(scale: str) -> list[Config]:
    """OFUL and DS-OFUL at PICK, first one run of every curve; at the smoke scale at LEVELS only."""
    small = scale == "smoke"
    return [
        cell(zeta, policy, trial, 3000 if small else ROUNDS, "digits" if small else data, rule)
        for trial in range(2 if small else PANEL_RUNS)
        for data, rule in (INPUTS[:1] if small else INPUTS)
        for zeta in (LEVELS if small else ZETAS)
        if zeta in DRAWN or trial < RUNS
        for policy in _policies(zeta)
    ]


def _policies(zeta: float) -> Iterator[Config]:
    for Gamma in GAMMAS:
        if Gamma in DRAWN.get(zeta, GAMMAS):
            yield {"name": "DSOFUL", "Gamma": Gamma, "beta": PICK[0], "lam": PICK[1]}


def mistakes(found: Sequence[Cell | Packed]) -> Mistakes:
    """Mistakes (runs, 2) of every curve, runs in order."""
    out: Mistakes = {}
    for data, zeta in sorted({(c.config["data"], c.config["zeta"]) for c in found}):
        here = [c for c in found if c.config["data"] == data]
        half = here[0].config["checkpoints"].index(here[0].config["rounds"] // 2)
        for row, grid in sorted(curves(here, zeta).items()):
            total = grid[PICK][:, -1]
            out[data, zeta, row] = np.stack([total, total - grid[PICK][:, half]], axis=1)
    return out


def is_constant(runs: NDArray[np.int64]) -> bool:
    """Whether regret is constant, by the rule for curves."""
    return verdict.constant(runs[:, 0], runs[:, 1]).verdict == "reproduced"


def draw(found: Mistakes) -> Figure:
    """Mistakes of the second half over ζ, a panel for each kind of features.

    Hollow points are constant regret, full ones are not shown to be.
    """
    kinds = list(dict.fromkeys(data for data, _, _ in found))
    fig, axes = plots.panels(
        len(kinds),
        size=(7.4, 3.6) if len(kinds) > 1 else (5.0, 3.6),
        sharey=True,
        xlabel="ζ",
        ylabel="mistakes in the second half",
    )
    for ax, data in zip(np.atleast_1d(axes), kinds, strict=True):
        for row in dict.fromkeys(row for _, _, row in found):
            here = {z: runs for (d, z, r), runs in found.items() if (d, r) == (data, row)}
            late = [runs[:, 1].mean() for runs in here.values()]
            role, style = STYLES[row]
            plots.line(ax, list(here), late, role, curve_name(row), style)
            for zeta, runs in here.items():
                inside = "none" if is_constant(runs) else None
                plots.line(ax, zeta, runs[:, 1].mean(), role, style="o", ms=5, mfc=inside)
        ax.set_yscale("symlog", linthresh=1)
        ax.set(title=f"{data} features", ylim=(-0.3, 2e4))
    plots.one_legend(fig)
    return fig


def render(found: Sequence[Cell | Packed], scale: str) -> Rendered:
    """Mean mistakes, and those of the second half, a row for each curve; and the figure."""
    by_curve = mistakes(found)
    head = ["features", "ζ", "curve", "mistakes", "in the second half", "constant", "runs"]
    rows = [
        [data, zeta, curve_name(row), *np.round(runs.mean(axis=0), 3).tolist()]
        + ["yes" if is_constant(runs) else "no", len(runs)]
        for (data, zeta, row), runs in by_curve.items()
    ]
    fig = draw(by_curve)
    if stand_in(found):
        mark_stand_in(fig, features.STAND_IN)
    tables = {".csv": csv_text(head, rows).encode(), ".md": markdown(head, rows).encode()}
    return {**tables, **figure_files(fig)}
