"""Checks for the guide: layered DS-OFUL, weights against corruption, phases of a design."""

from __future__ import annotations

import math
from dataclasses import fields
from itertools import product

import numpy as np

import banditlib as bl
from banditlib import reference, theory
from banditlib.design import g_optimal
from book.claims.checks.model import is_square_over_gap
from book.claims.formula import Found, formula

Costs = tuple[int, int]
"""Coefficients of B(l) 2⁻ˡ and of ζ."""


@formula()
def rest_cost(l: int) -> Costs:
    """What a round that rests at level l costs at most."""
    return 2, 2 * l


@formula()
def survivor_gap(l: int) -> Costs:
    """The largest gap among the arms that go on from level l."""
    return 4, 2 * l


def worst(behind: int, narrow: bool) -> Costs:
    """Largest r(y) - r(x) if y's index is at most `behind` B 2⁻ˡ above that of x, who is narrow.

    In units of B 2⁻ˡ: a width, an error of either sign up to the width, misspecification ±ζ; all
    corners. If y is not narrow too, its width may be anything.
    """
    found = []
    widths = (0, 1) if narrow else (0, 1, 7)
    for wy, wx, sy, sx, hy, hx in product(widths, (0, 1), (-1, 1), (-1, 1), (-1, 1), (-1, 1)):
        found.append((behind - sy * wy - wy + sx * wx + wx, hy - hx))
    return max(c for c, _ in found), max(z for _, z in found)


def aux_layered_costs(size: str = "ci") -> Found:
    """By induction over the levels, with all corners of widths, errors and misspecification."""
    fall = worst(-2, narrow=True)  # a nearly optimal arm that is eliminated
    assert fall == (0, 2)
    for l in range(1, 40):
        before = fall[1] * (l - 1)
        rest, kept = worst(0, narrow=False), worst(2, narrow=True)
        assert rest_cost(l) == (rest[0], rest[1] + before)
        assert survivor_gap(l) == (kept[0], kept[1] + before)
    for d, Delta, zeta, R in product((1, 8), (0.1, 1.0), (0.0, 1e-4), (0.0, 0.5)):
        c = theory.layered(d, Delta, zeta, R)
        for l in range(1, 12):
            B = 2 * float(c.radius(l)) * 2.0**-l
            b, z = rest_cost(l)
            assert math.isclose(c.rest(l), b * B + z * zeta)
            b, z = survivor_gap(l)
            assert math.isclose(c.survivor(l), b * B + z * zeta)
            bias = 4 * 2.0**l * math.sqrt(d * math.log(3 * 2.0**l))  # 2ˡ m(l)/ζ, L = B = 1
            assert math.isclose(c.zeta_max(l) * bias, float(c.radius(l)))
    return Found({"rest_cost": 1.0, "survivor_gap": 1.0}, "corners attain both")


def aux_layered(size: str = "ci") -> Found:
    """The bound is the sum of counts times costs, and runs in which all errors stay within the
    radius keep to it, level by level. It is of order d²/Δ, and the policy has no field for Δ or ζ.
    """
    for d, Delta, zeta in product((1, 3, 16), (0.1, 0.7), (0.0, 1e-5)):
        c = theory.layered(d, Delta, zeta)
        B = [2 * float(c.radius(l)) * 2.0**-l for l in range(1, 40)]
        gaps = [4 * b + 2 * l * zeta for l, b in enumerate(B, 1)]
        assert c.l_Delta is not None
        assert c.l_Delta == 1 + next(i for i, gap in enumerate(gaps) if gap < Delta)
        count = theory.unknown_gap(d, Delta, repaired=True).selections
        costs = [1.0, *(min(1.0, gap) for gap in gaps)]
        learnt = sum(float(count(l, 2.35)) * costs[l - 1] for l in range(1, c.l_Delta + 1))
        ends = [4 * d, *(4**l * d - 4 ** (l - 1) * d for l in range(2, c.l_Delta))]
        rests = sum(
            n * min(1.0, 2 * B[l - 1] + 2 * l * zeta)
            for l, n in enumerate(ends[: c.l_Delta - 1], 1)
        )
        assert math.isclose(c.bound, learnt + rests)
        paid = [b / (8 * math.sqrt(d * math.log(3 * 2.0**l))) for l, b in enumerate(B, 1)]
        last = min(paid[: c.l_Delta])
        assert math.isfinite(theory.layered(d, Delta, 0.99 * last).bound)
        assert theory.layered(d, Delta, 1.01 * last).bound == math.inf
    is_square_over_gap(lambda d, Delta: theory.layered(d, Delta).bound)
    assert {field.name for field in fields(bl.LayeredDSOFUL)} == {"beta", "lam"}
    top = max(_run(seed, 600 if size == "ci" else 6000) for seed in range(2))
    return Found({"bound": 1 / top}, "grid of rewards, R = 0.05")


def _run(seed: int, K: int) -> float:
    """Regret over its bound in one run on changing sets, with every step of the proof checked."""
    rng, d, R, zeta = np.random.default_rng(seed), 2, 0.05, 5e-4
    grid = rng.integers(0, 4, (K, 5))
    part = 0.1 + 0.25 * grid
    X = np.stack([part, np.sqrt(1 - part**2) * rng.uniform(-1, 1, (K, 5))], axis=-1)
    r = part + zeta * np.where(grid % 2 == 0, 1, -1)
    c = theory.layered(d, 0.25 - 2 * zeta, zeta, R, delta=0.1)
    assert c.l_Delta is not None
    noise = R * rng.standard_normal(K)
    arms, levels = reference.layered_ds_oful(
        list(X), lambda k, a: r[k - 1, a] + noise[k - 1], K, lambda l: 2 * float(c.radius(l)), 1.0
    )
    cost = r.max(axis=1) - r[np.arange(K), arms]
    for l in range(1, int(levels.max()) + 1):
        at = levels == l
        assert at.sum() <= 2.35 * d * 4**l * float(c.radius.iota1(l))
        if l > 1:
            assert cost[at].max(initial=0.0) <= c.survivor(l - 1)
        if l > c.l_Delta:
            assert cost[at].max(initial=0.0) == 0.0
    assert cost.sum() <= c.bound
    return float(cost.sum() / c.bound)


@formula("upper")
def influence(alpha: float, C: float) -> float:
    """How far corruption of C in total moves a prediction, in widths."""
    return alpha * C


def aux_influence(size: str = "ci") -> Found:
    """Corruption of one unit in one round, or in every round with the worst sign, on random data
    and on a single wide play.
    """
    rng, top = np.random.default_rng(0), 0.0
    data = [
        (alpha, rng.standard_normal((n, d)) * rng.choice([0.1, 1.0, 3.0], (n, 1)))
        for d, n, alpha, _ in product((1, 3), (5, 60), (0.05, 0.5), range(10))
    ]
    for alpha, X in [*data, (1e-6, np.array([[1000.0]]))]:
        U, weighted = np.eye(X.shape[1]), np.zeros_like(X)
        for i, x in enumerate(X):
            weight = min(1.0, alpha / math.sqrt(x @ np.linalg.solve(U, x)))
            U, weighted[i] = U + weight * np.outer(x, x), weight * x
        for z in (X[-1], rng.standard_normal(X.shape[1])):
            width = math.sqrt(z @ np.linalg.solve(U, z))
            moved = np.abs(weighted @ np.linalg.solve(U, z)) / width
            for far, C in ((moved.max(), 1.0), (moved.sum(), float(len(X)))):
                assert far <= influence(alpha, C) * (1 + 1e-9)
                top = max(top, float(far / influence(alpha, C)))
    return Found({"influence": 1 / top}, "one wide play")


@formula("upper")
def design_bias(d: int, s: int, m: int) -> float:
    """How far misspecification ζ = 1 moves a phase's estimate of an arm."""
    return math.sqrt(2 * d * (1 + s / m))


def aux_phases(size: str = "ci") -> Found:
    """Misspecification with the worst signs for each arm, on random arms and on few."""
    rng, top = np.random.default_rng(1), 0.0
    for d, N in ((1, 4), (2, 3), (4, 40), (8, 8), (8, 200)):
        policy, X = bl.PhasedElimination(0.1), rng.standard_normal((N, d))
        phase = policy.first_phase(X)
        m, s = policy.length(X, 1), int((g_optimal(X)[0] > 0).sum())
        V = X.T @ (phase.plays[:, None] * X)
        bias = np.abs(X @ np.linalg.solve(V, X.T)) @ phase.plays
        assert bias.max() <= design_bias(d, s, m)
        top = max(top, float(bias.max() / design_bias(d, s, m)))
    return Found({"design_bias": 1 / top}, "few arms")
