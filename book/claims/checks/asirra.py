"""Checks of the claims about the runs on Asirra, from the stored results."""

from __future__ import annotations

import functools
import math

import numpy as np

from banditlib.paper import sweep
from banditlib.paper.made import stored


@functools.cache
def _cells() -> tuple:
    return (*stored("figure-1b"), *stored("figure-4"))


def _curves(zeta: float) -> dict[str, np.ndarray]:
    """Runs (runs, checkpoints) of each curve at its best grid point."""
    out = {}
    for row, grid in sweep.curves(_cells(), zeta).items():
        out[row] = min(grid.values(), key=lambda runs: runs[:, -1].mean())
    return out


def _late(zeta: float) -> dict[str, float]:
    """Regret of OFUL and DS-OFUL in the second half of the rounds, by curve."""
    marks = np.array(_cells()[0].config["checkpoints"])
    half = int(np.argmin(np.abs(marks - marks[-1] / 2)))
    return {
        row: float((runs[:, -1] - runs[:, half]).mean())
        for row, runs in _curves(zeta).items()
        if row.startswith("Γ")
    }


def _final(zeta: float, row: str) -> float:
    return float(_curves(zeta)[row][:, -1].mean())


def figure_1b(size: str = "ci", most: float = 35) -> None:
    """OFUL and DS-OFUL stay a hundredfold below the axis of the paper's figure."""
    values = [runs[:, -1].mean() for row, runs in _curves(0.01).items() if row.startswith("Γ")]
    assert len(values) == 3 and max(values) <= most


def figure_4(size: str = "ci", factor: float = 1.0) -> None:
    totals = [max(_final(z, f"Γ = {g}") for g in (0, 0.05, 0.1)) for z in (0.5, 0.1, 0.05)]
    assert factor * totals[0] > totals[1] * 3 and totals[1] >= totals[2]


def figure_4a(size: str = "ci", zeta: float = 0.5) -> None:
    assert all(late > 0 for late in _late(zeta).values())


def figure_4b(size: str = "ci", zeta: float = 0.1) -> None:
    assert all(late <= 2 for late in _late(zeta).values())


def figure_4c(size: str = "ci", zeta: float = 0.05) -> None:
    assert all(late <= 2 for late in _late(zeta).values())


def eventually(size: str = "ci", data: str = "tiny") -> None:
    """A tie on standard features; on the weaker ones selection is ahead, and more so with time."""
    ours = sweep.curves(_cells(), 0.01)
    total = [min(r[:, -1].mean() for r in ours[f"Γ = {g}"].values()) for g in (0, 0.05)]
    assert max(total) <= 3
    runs = {}
    for cell in (*sweep.explored(), *_cells()):
        c, p = cell.config, cell.config["policy"]
        point = (p.get("Gamma"), p["beta"], p["lam"], c["zeta"], c["sigma"])
        if c["data"] == data and point[1:] == (0.3, 1.0, 0.01, 0.0) and point[0] in (0, 0.05):
            runs[point[0]] = cell.arrays["wrong"][0]
    assert runs[0][-1] > 1.5 * runs[0.05][-1]


def sup(size: str = "ci", factor: float = 3.0) -> None:
    curves = _curves(0.01)
    runs = curves["SupLinUCB"]
    marks = np.array(_cells()[0].config["checkpoints"])
    half = int(np.argmin(np.abs(marks - marks[-1] / 2)))
    assert runs[:, -1].mean() >= factor * curves["Γ = 0"][:, -1].mean()
    assert (runs[:, -1] - runs[:, half]).mean() <= 0.1 * runs[:, -1].mean()


def constant(size: str = "ci", zetas: tuple[float, ...] = (0.01, 0.05, 0.1)) -> None:
    for zeta in zetas:
        assert all(late <= 2 for late in _late(zeta).values())


def half(size: str = "ci", ratio: float = 3.0) -> None:
    best = min(_final(0.5, f"Γ = {g}") for g in (0, 0.05, 0.1))
    assert best > ratio * max(_final(0.1, f"Γ = {g}") for g in (0, 0.05, 0.1))


def threshold(size: str = "ci", d: int = 512) -> None:
    """0.05 and 0.1 are above Δ/√d, and still go well."""
    assert 1 / math.sqrt(d) < 0.05


def counter_threshold() -> dict[str, float]:
    """Two levels of ζ that the paper reports as harmless, against Δ/√d."""
    from math import sqrt

    Delta, d = 1.0, 512
    assert Delta / sqrt(d) < 0.05 and Delta / sqrt(d) < 0.1
    return {"zeta": 0.05, "Delta / sqrt(d)": Delta / sqrt(d)}
