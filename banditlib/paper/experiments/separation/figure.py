"""Mistakes on the course of lessons and tests, policy by policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from banditlib.paper import plots
from banditlib.paper.store import Cell, Packed

#: The ratio ζ√d/Δ that is drawn, and the curves: policy, name, colour, line.
RATIO = 0.125
CURVES = (
    ("LSW", "LSW", "lsw", "-"),
    ("OFUL", "OFUL", "oful", "-"),
    ("Thompson", "Thompson sampling", "rlb", "-"),
    ("kindest OFUL", "OFUL, kindest radius", "oful", "--"),
    ("SupLinUCB", "SupLinUCB", "sup", "-"),
    ("UCB", "UCB", "ucb", "-"),
    ("DS-OFUL 1", "DS-OFUL", "ds", "-"),
)


def mistakes(found: Sequence[Cell | Packed], ratio: float = RATIO) -> dict[str, np.ndarray]:
    """Mistakes so far by policy, (runs, marks), where the lessons pay too much."""
    return {
        c.config["policy"]: c.arrays["mistakes"]
        for c in found
        if c.config["ratio"] == ratio and not c.config["twin"]
    }


def draw(found: Sequence[Cell | Packed], ratio: float = RATIO) -> Figure:
    """Mean mistakes against tests with standard errors."""
    counts = mistakes(found, ratio)
    marks = next(c.config["marks"] for c in found if c.config["ratio"] == ratio)
    fig, ax = plots.panels(
        size=(7.0, 3.9), log="xy", xlabel="tests so far", ylabel="wrong answers so far"
    )
    for policy, name, role, style in CURVES:
        if policy in counts:
            plots.runs(ax, marks, counts[policy], role, name, style)
    ax.set_xlim(marks[0], marks[-1])
    ax.minorticks_off()
    doubled = [m for m in marks if marks[-1] % m == 0]
    ax.set_xticks(doubled, [f"{m:,}" for m in doubled])
    plots.name_ends(ax)
    return fig
