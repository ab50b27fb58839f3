"""Checks for the chapter "The interplay, as a map": the window, the amplification, the
stored map.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
from flint import fmpq, fmpq_mat

from banditlib import theory


def abs_3(size: str = "ci", factor: float = 6.0) -> None:
    """Lower threshold over upper threshold is 6ι₁√(8 log|D|)√(d/(d−1)), above 1 on the
    whole grid.
    """
    grid = product((2, 4, 16, 512), (0.01, 0.18, 0.5), (2, 100, 10**6), (0.0, 0.25, 1.0))
    for d, Delta, arms, R in grid:
        c = theory.known_gap(d, Delta, R=R)
        window = theory.lower_zeta(d, Delta, arms) / c.zeta_max
        formula = factor * c.iota1 * math.sqrt(8 * math.log(arms) * d / (d - 1))
        assert abs(window / formula - 1) < 1e-12
        assert window > 1
        narrow = theory.lower_zeta(d, Delta, arms, repaired=True)
        assert narrow > theory.known_gap(d, Delta, R=R, repaired=True).zeta_max
    c = theory.known_gap(16, 0.18)
    assert 12_700 < theory.lower_zeta(16, 0.18, 100) / c.zeta_max < 12_800


def rem_l315(size: str = "ci", order: float = 0.5) -> None:
    """Both thresholds scale like Δ/√d up to logarithms: 4096 times d moves each by 64
    within a factor 3.
    """
    for Delta in (0.05, 0.4):
        small, large = 4, 4 * 4096
        uppers = [theory.known_gap(d, Delta).zeta_max for d in (small, large)]
        lowers = [theory.lower_zeta(d, Delta, 1000, repaired=True) for d in (small, large)]
        for near, far in (uppers, lowers):
            assert 1 / 3 < near / far / 4096**order < 3
    assert theory.lower_eps(16, 100) > 1  # there the construction is void


def aux_amplify(size: str = "ci", power: int = 1) -> None:
    """All 2^N sign vectors, exactly: mean 0, variance xᵀG⁻¹x, largest error ‖h‖₁ ≤ √N‖h‖₂."""
    for N, d in ((5, 2), (7, 3)) if size == "ci" else ((5, 2), (7, 3), (10, 4)):
        X = fmpq_mat(N, d, [(3 * i * i + 2 * i) % 7 - 3 for i in range(N * d)])
        x = fmpq_mat(d, 1, [i % 3 + 1 for i in range(d)])
        G = X.transpose() * X
        h = [v for row in (X * G.inv() * x).tolist() for v in row]
        leverage = (x.transpose() * G.inv() * x)[0, 0]
        errors = [sum(a * b for a, b in zip(h, s, strict=True)) for s in product((-1, 1), repeat=N)]
        assert sum(errors) == 0
        assert sum(e * e for e in errors) == 2**N * leverage**power
        assert max(errors) == sum(abs(v) for v in h)
        assert leverage <= max(errors) ** 2 <= N * leverage
        assert sum((X * G.inv() * X.transpose())[i, i] for i in range(N)) == fmpq(d)


def _rows() -> list[dict]:
    from banditlib.paper.made import stored
    from banditlib.paper.phase_figures import both_kinds
    from banditlib.paper.phase_map import rows

    return both_kinds(rows(stored("phase-map")))


def concl(size: str = "ci", power: float = 0.5) -> None:
    """From the stored map: OFUL's turn under adversarial signs keeps ζ(1+(2d/π)^½) constant."""
    from banditlib.paper.phase_figures import crossing
    from banditlib.paper.phase_map import DELTA

    rows = _rows()
    fixed = {"policy": "OFUL", "kind": "adversarial", "Delta": DELTA}
    dims = sorted({r["d"] for r in rows if all(r[k] == v for k, v in fixed.items())})
    assert len(dims) >= 4 and max(dims) >= 4 * min(dims)
    turn = np.array([crossing(rows, d=d, **fixed) for d in dims])
    assert ((turn > 1.5) & (turn < 4.5)).all(), turn
    margin = turn / np.sqrt(dims) * (1 + (2 * np.array(dims) / math.pi) ** power)
    assert margin.max() / margin.min() < 1.4, margin
    calm = [r for r in rows if r["policy"] == "OFUL" and r["ratio"] <= 0.5]
    assert max(r["locked"] for r in calm) < 0.05


def counter_text_l67() -> dict[str, float]:
    """Three arms on a line, gap 0.1, misspecification above 0.34: UCB's regret is sublinear."""
    import numpy as np

    import banditlib as bl

    problem = bl.problems.FixedArms(np.array([[1.0], [0.99], [0.98]]), np.array([0.8, 0.7, 0.1]))
    rounds = (20_000, 40_000)
    run = bl.simulate(problem, bl.UCB(2), rounds[1], 8, checkpoints=rounds, progress=False)
    first, both = run.regret.mean(axis=(0, 1, 2))
    return {
        "gap": problem.gap, "misspecification": problem.zeta,
        "regret of the first half": float(first), "of the second half": float(both - first),
    }  # fmt: skip


def text_l67(size: str = "ci", share: float = 0.5) -> None:
    """Gap below ζ, and yet UCB's second half of rounds costs less than half of its first."""
    got = counter_text_l67()
    assert got["gap"] < got["misspecification"]
    assert got["of the second half"] < share * got["regret of the first half"]
    assert Fraction(1, 10) < Fraction(35, 100)
