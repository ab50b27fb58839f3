"""Checks of the claims about the Asirra data."""

from __future__ import annotations

import numpy as np
from scipy import stats

from banditlib import theory
from banditlib.paper import asirra, table_2
from banditlib.paper.experiments import results_folder
from banditlib.paper.results import read_pack

PAPER = {z: np.array(n) for z, n in asirra.PAPER_TABLE_2.items()}
LEVELS = np.array([0.01, 0.05, 0.1, 0.5])


def tab_2(size: str = "ci", rule: str = "one-sided") -> None:
    """The printed counts have two peaks as written, and fit the one-sided rule."""
    inner = PAPER[0.01] / 0.01
    middle = (PAPER[0.1] - PAPER[0.01]) / 0.09
    outer = (PAPER[0.5] - PAPER[0.1]) / 0.4
    assert (middle < inner).all() and (middle < outer).all()
    for c in (0, 1):
        share = np.array([PAPER[z][c] for z in LEVELS]) / 12500
        # The rule decides which event has probability `share`: e ≤ ζ on one side, or |e| ≤ ζ.
        quantile = stats.norm.ppf(share if rule == "one-sided" else (1 + share) / 2)
        slope, intercept = np.polyfit(LEVELS, quantile, 1)
        assert np.corrcoef(LEVELS, quantile)[0, 1] ** 2 > 0.9995
        m, sigma = -intercept / slope, 1 / slope
        assert abs(np.sqrt(m * (1 - 2 * m) / 2) / sigma - 1) < 0.05
    stored = {p.config["data"]: p.arrays["kept"] for p in read_pack(_pack())}
    k = asirra.RULES.index(rule)
    ours = stored["tiny"][1:, k, 0] / np.array([PAPER[z][0] for z in table_2.ZETAS])
    assert (np.abs(ours - 1) < 0.05).all()


def _pack():
    return results_folder() / "table-2" / "cells.npz"


def ten_percent(size: str = "ci", share: float = 0.10) -> None:
    assert min(PAPER[0.01]) > share * 12500


def separable(size: str = "ci", zeta: float = 0.5) -> None:
    """Both classes end up on their own side of one half."""
    features = asirra.digits()
    theta = asirra.fit(features)
    good, bad = asirra.kept(features, zeta, "two-sided", theta)
    assert (features.good[good] @ theta).min() >= 0.5 >= (features.bad[bad] @ theta).max()


def gap(size: str = "ci", Delta: float = 1.0) -> None:
    """Rewards are 0 and 1, so the only positive gap is 1."""
    rewards = {0, 1}
    gaps = {max(rewards) - r for r in rewards} - {0}
    assert gaps == {Delta}


def outside_the_theorem(size: str = "ci", zeta: float = 0.01) -> None:
    assert theory.known_gap(512, 1.0, R=0).zeta_max < 1.3e-4 < zeta
