"""Figures 1b and 2: their curves, what the paper says of them, and how they are drawn.

A figure shows for each curve the grid point (β, λ) of least mean regret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from banditlib.paper import features, plots, verdict
from banditlib.paper.experiments.asirra.cells import PICK
from banditlib.paper.experiments.base import Rendered
from banditlib.paper.render import curves_csv, figure_files, mark_stand_in
from banditlib.paper.store import Cell, Config, Packed
from banditlib.paper.verdict import Sentence


def row_of(policy: Config) -> str:
    return "SupLinUCB" if policy["name"] == "SupLinUCB" else f"Γ = {policy['Gamma']:g}"


def curve_name(row: str) -> str:
    return "OFUL" if row == "Γ = 0" else row


def curves(cells: Sequence[Cell | Packed], zeta: float) -> dict[str, dict[Any, NDArray[np.int64]]]:
    """Regret (runs, checkpoints) by curve and (β, λ), runs in order."""
    out: dict[str, dict[Any, list[NDArray[np.int64]]]] = {}
    for found in sorted(cells, key=lambda c: c.config["trials"]):
        config = found.config
        if config["zeta"] != zeta:
            continue
        point = (config["policy"]["beta"], config["policy"]["lam"])
        out.setdefault(row_of(config["policy"]), {}).setdefault(point, []).append(
            found.arrays["wrong"]
        )
    return {r: {p: np.concatenate(c) for p, c in grid.items()} for r, grid in out.items()}


def best(grid: dict[Any, NDArray[np.int64]]) -> tuple[Any, NDArray[np.int64]]:
    """The point of least mean final regret, among those with most runs, and its runs."""
    most = max(len(runs) for runs in grid.values())
    point = min((p for p in grid if len(grid[p]) == most), key=lambda p: grid[p][:, -1].mean())
    return point, grid[point]


def final(grid: dict[Any, NDArray[np.int64]], runs: slice = slice(None)) -> dict[Any, float]:
    """Mean regret after all rounds at each grid point."""
    return {point: float(found[runs, -1].mean()) for point, found in grid.items()}


def searched(
    panels: dict[float, dict[str, dict[Any, NDArray[np.int64]]]],
) -> tuple[list[list[str]], dict[tuple[float, str], float], dict[tuple[float, str], float]]:
    """What the grid search is worth: rows of a table, by ζ and curve how much more the point PICK
    costs than the best one, and how many times the regret of the best the worst has.
    """
    rows, excess, spread = [], {}, {}
    for zeta, curves_here in panels.items():
        for row, grid in sorted(curves_here.items()):
            mean, early, fresh = final(grid), final(grid, slice(4)), final(grid, slice(4, 8))
            low, high = min(mean, key=mean.__getitem__), max(mean, key=mean.__getitem__)
            excess[zeta, row], spread[zeta, row] = mean[PICK] - mean[low], mean[high] / mean[low]
            told = [
                f"{values[point]:,.1f} ({point[0]:g}, {point[1]:g})"
                for values, point in (
                    (mean, low), (fresh, min(early, key=early.__getitem__)), (mean, high)
                )
            ]  # fmt: skip
            rows.append([f"{zeta:g}", curve_name(row), *told[:2], f"{mean[PICK]:,.1f}", told[2]])
    return rows, excess, spread


#: Where the axes of the paper's figures end, by ζ: OFUL and DS-OFUL, SupLinUCB.
PAPER_AXES = ("OFUL and DS-OFUL", "SupLinUCB")
AXES = {0.01: (3500, 35_000), 0.5: (175_000, 80_000), 0.1: (12_000, 35_000), 0.05: (7000, 35_000)}


def sentences(
    cells: Sequence[Cell | Packed], point: tuple[float, float] | None = None
) -> dict[str, list[tuple[str, Sentence]]]:
    """What the paper says of its figures, judged on our runs: by claim, what was looked at.

    Every curve is taken at the grid point (β, λ) = `point`, or each at its `best` one; differences
    are between equal run numbers, which saw the same pairs.
    """
    marks = np.array(cells[0].config["checkpoints"])
    half = int(np.argmin(np.abs(marks - marks[-1] / 2)))
    total: dict[float, dict[str, NDArray[np.int64]]] = {}
    late: dict[float, dict[str, NDArray[np.int64]]] = {}
    for zeta in AXES:
        chosen = {
            row: best(grid)[1] if point is None else grid[point]
            for row, grid in sorted(curves(cells, zeta).items())
        }
        total[zeta] = {row: runs[:, -1] for row, runs in chosen.items()}
        late[zeta] = {row: runs[:, -1] - runs[:, half] for row, runs in chosen.items()}
    rows = {z: [row for row in total[z] if row.startswith("Γ")] for z in AXES}

    def below(a: str, b: str) -> Sentence:
        n = min(len(total[0.01][a]), len(total[0.01][b]))
        return verdict.smaller(total[0.01][a][:n], total[0.01][b][:n])

    return {
        "eventually": [("ζ = 0.01, Γ = 0.05 minus OFUL", below("Γ = 0.05", "Γ = 0"))],
        "sup": [
            ("ζ = 0.01, OFUL minus SupLinUCB", below("Γ = 0", "SupLinUCB")),
            (
                "ζ = 0.01, SupLinUCB, second half",
                verdict.constant(total[0.01]["SupLinUCB"], late[0.01]["SupLinUCB"]),
            ),
        ],
        "constant": [
            (
                f"ζ = {z:g}, {curve_name(row)}, second half",
                verdict.constant(total[z][row], late[z][row]),
            )
            for z in (0.01, 0.05, 0.1)
            for row in ("SupLinUCB", *rows[z])
        ],
        "half": [
            (
                f"ζ = 0.5, {curve_name(row)}, second half",
                verdict.growing(total[0.5][row], late[0.5][row]),
            )
            for row in rows[0.5]
        ],
        "magnitude": [
            (f"ζ = {z:g}, {which}", verdict.magnitude(total[z][row], axis))
            for z, axes in AXES.items()
            for which, row, axis in (
                ("highest of OFUL and DS-OFUL", _highest(total[z], rows[z]), axes[0]),
                ("SupLinUCB", "SupLinUCB", axes[1]),
            )
        ],
    }


def _highest(total: dict[str, NDArray[np.int64]], rows: Sequence[str]) -> str:
    return max(rows, key=lambda row: total[row].mean())


#: Colour and line of each curve, the same in every figure.
STYLES = {
    "Γ = 0": ("oful", "-"),
    "SupLinUCB": ("sup", "-"),
    "Γ = 0.01": ("ds", ":"),
    "Γ = 0.05": ("ds", "-"),
    "Γ = 0.1": ("ds", "--"),
}


def together(chosen: dict[str, NDArray[np.int64]]) -> list[list[str]]:
    """Curves that are equal in every run and at every mark stand in one list."""
    groups: list[list[str]] = []
    for row in sorted(chosen):
        same = (g for g in groups if np.array_equal(chosen[g[0]], chosen[row]))
        found = next(same, None)
        if found is None:
            groups.append([row])
        else:
            found.append(row)
    return groups


def draw(cells: Sequence[Cell | Packed], zetas: Sequence[float]) -> Figure:
    """Mean mistakes with standard errors, both axes logarithmic, and where the paper's axes end.

    Curves that coincide in every run are drawn as one line of alternating colours.
    """
    rows, across, size = {1: (1, 1, (6.4, 3.8)), 3: (1, 3, (7.8, 3.7)), 4: (2, 2, (7.6, 6.6))}[
        len(zetas)
    ]
    fig, axes = plots.panels(across, rows, size, "xy", ylabel="mistakes so far")
    for ax, zeta in zip(np.atleast_1d(axes).flat, zetas, strict=True):
        marks = next(np.array(c.config["checkpoints"]) for c in cells if c.config["zeta"] == zeta)
        chosen = {row: best(grid)[1] for row, grid in curves(cells, zeta).items()}
        for group in together(chosen):
            _draw_together(ax, marks, chosen[group[0]], group)
        ax.set(title=f"ζ = {zeta:g}", ylim=(0.03, 6e5), xlim=(marks[0], marks[-1]))
        ax.minorticks_off()
        for end, role, who in zip(AXES[zeta], ("oful", "sup"), PAPER_AXES, strict=True):
            name = f"end of the paper's axis for {who}" if len(zetas) == 1 else ""
            plots.level(ax, end, role, name, ":")
    for ax in np.atleast_2d(axes)[-1]:
        ax.set_xlabel("round")
    for ax in np.atleast_1d(axes).flat[1:] if len(zetas) < 4 else axes[:, 1]:
        ax.tick_params(labelleft=False)
    if len(zetas) == 1:
        plots.name_ends(axes)
    else:
        plots.one_legend(fig)
    return fig


def _draw_together(
    ax: Axes, marks: NDArray[np.int64], runs: NDArray[np.int64], group: Sequence[str]
) -> None:
    """One line for curves that coincide: dashes in the colour of each, and a word that says so."""
    if len(group) == 1:
        role, style = STYLES[group[0]]
        plots.runs(ax, marks, runs, role, curve_name(group[0]), style)
        return
    mean, roles = runs.mean(axis=0), list(dict.fromkeys(STYLES[row][0] for row in group))
    for i, role in enumerate(roles):
        plots.line(ax, marks, mean, role, style=(7 * i, (7, 7 * (len(roles) - 1))))
    names = [curve_name(row) for row in group]
    text = f"{', '.join(names[:-1])} and {names[-1]}:\none curve, equal in every run"
    place: dict[str, Any] = {"ha": "right", "va": "bottom", "transform": ax.transAxes}
    ax.text(0.99, 0.01, text, fontsize=plots.LABEL, **place)


def _numbers(cells: Sequence[Cell], zeta: float) -> list[tuple[str, NDArray[Any], NDArray[Any]]]:
    marks = next(np.array(c.config["checkpoints"]) for c in cells if c.config["zeta"] == zeta)
    found = sorted(curves(cells, zeta).items())
    where = "digits, " if stand_in(cells) else ""
    return [
        (f"{where}ζ = {zeta:g}, {curve_name(row)}", marks, best(grid)[1]) for row, grid in found
    ]


def stand_in(cells: Sequence[Cell | Packed]) -> bool:
    """Whether scikit-learn's digits stand in for the cats and dogs."""
    return any(c.config["data"] == "digits" for c in cells)


def render(cells: Sequence[Cell], scale: str) -> Rendered:
    """A figure as SVG and PNG, and the numbers behind its curves as CSV."""
    zetas = list(dict.fromkeys(c.config["zeta"] for c in cells))
    fig = draw(cells, zetas)
    if stand_in(cells):
        mark_stand_in(fig, features.STAND_IN)
    numbers = curves_csv(curve for zeta in zetas for curve in _numbers(cells, zeta))
    return {".csv": numbers, **figure_files(fig)}
