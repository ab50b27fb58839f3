"""Levels of ζ between the panels: does regret set in at a threshold, or little by little?

The paper draws ζ = 0.01, 0.05, 0.1 and 0.5, and explains why it fails at 0.5 by a threshold. These
runs fill the hole between 0.1 and 0.5, at the grid point PICK, on both kinds of features, four
times each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from banditlib.paper.experiments.asirra.cells import PICK, ROUNDS, WEAK, cell
from banditlib.paper.experiments.asirra.figure import curve_name, row_of
from banditlib.paper.experiments.base import Rendered
from banditlib.paper.render import csv_text, markdown
from banditlib.paper.store import Cell, Config, Packed

LEVELS = (0.2, 0.3, 0.4)
GAMMAS = (0.0, 0.05, 0.1)
RUNS = 4
INPUTS = (("standard", "two-sided"), WEAK)


def cells(scale: str) -> list[Config]:
    """OFUL and DS-OFUL at PICK, first one run of every curve."""
    small = scale == "smoke"
    return [
        cell(zeta, policy, trial, 3000 if small else ROUNDS, "digits" if small else data, rule)
        for trial in range(2 if small else RUNS)
        for data, rule in (INPUTS[:1] if small else INPUTS)
        for zeta in LEVELS
        for policy in _policies()
    ]


def _policies() -> Iterator[Config]:
    for Gamma in GAMMAS:
        yield {"name": "DSOFUL", "Gamma": Gamma, "beta": PICK[0], "lam": PICK[1]}


def mistakes(
    found: Sequence[Cell | Packed], zetas: Sequence[float] = LEVELS
) -> dict[tuple[str, float, str], NDArray[np.float64]]:
    """Mistakes (runs, 2) by features, ζ and curve at PICK: all of them, and in the second half."""
    out: dict[tuple[str, float, str], list[list[float]]] = {}
    for c in sorted(found, key=lambda c: c.config["trials"]):
        policy = c.config["policy"]
        if c.config["zeta"] not in zetas or (policy["beta"], policy["lam"]) != PICK:
            continue
        half = c.config["checkpoints"].index(c.config["rounds"] // 2)
        wrong = c.arrays["wrong"][0].astype(float)
        where = (c.config["data"], c.config["zeta"], row_of(policy))
        out.setdefault(where, []).append([wrong[-1], wrong[-1] - wrong[half]])
    return {where: np.array(runs) for where, runs in out.items()}


def render(found: Sequence[Cell | Packed], scale: str) -> Rendered:
    """Mean mistakes, and those of the second half, a row for each curve."""
    head = ["features", "ζ", "curve", "mistakes", "in the second half", "runs"]
    rows = [
        [data, zeta, curve_name(row), *np.round(runs.mean(axis=0), 3).tolist(), len(runs)]
        for (data, zeta, row), runs in mistakes(found).items()
    ]
    return {".csv": csv_text(head, rows).encode(), ".md": markdown(head, rows).encode()}
