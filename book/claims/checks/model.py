"""Checks of the claims in the paper's abstract, introduction and preliminaries."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from banditlib import theory

DIMENSIONS = (2, 4, 16, 64, 256, 1024)
GAPS = (1.0, 0.5, 0.18, 0.03, 1e-3, 1e-5)


def _grid() -> Iterator[tuple[int, float, float, float]]:
    """Dimension, gap, noise and confidence over which orders of growth are compared."""
    return itertools.product(DIMENSIONS, GAPS, (0.0, 0.3, 1.0), (0.3, 0.01, 1e-6))


def abs_1(size: str = "ci", power: float = 2.0) -> None:
    r"""The repaired bound is at most :math:`c\,d^2\Delta^{-1}\iota_3^2` with c depending on R only.

    As :math:`\iota_2\le\iota_3` and :math:`\iota_3\ge1`,
    :math:`\beta+1\le(2+4+R\sqrt2)\sqrt{d\iota_3}`.
    """
    for d, Delta, R, delta in _grid():
        known = theory.known_gap(d, Delta, R, delta=delta, repaired=True)
        order = d**power / Delta * known.iota3**2
        assert known.bound_gap <= 8 * (6 + R * math.sqrt(2)) ** 2 * order
        assert math.isclose(known.zeta_max * 2 * known.iota1, Delta / math.sqrt(d))


def abs_2(size: str = "ci", power: float = 2.0) -> None:
    r"""The repaired bound is at most :math:`1018(1+R\sqrt2)^2d^2\Delta^{-1}\iota_1\iota_2`."""
    for d, Delta, R, delta in _grid():
        unknown = theory.unknown_gap(d, Delta, R, delta=delta, repaired=True)
        order = d**power / Delta * unknown.iota1 * unknown.iota2
        assert unknown.bound_repaired <= 1018 * (1 + R * math.sqrt(2)) ** 2 * order


def abs_3(size: str = "ci", c: float = 6.0) -> None:
    r"""Lower over upper threshold is :math:`6\iota_1\sqrt{8\log|D|\,d/(d-1)}`: logarithmic."""
    for d, Delta in itertools.product(DIMENSIONS, GAPS):
        for arms in (5, 100, 10**6):
            known = theory.known_gap(d, Delta)
            ratio = theory.lower_zeta(d, Delta, arms) / known.zeta_max
            expected = c * known.iota1 * math.sqrt(8 * math.log(arms) * d / (d - 1))
            assert math.isclose(ratio, expected, rel_tol=1e-12)
    ratio = theory.lower_zeta(16, 0.18, 100) / theory.known_gap(16, 0.18).zeta_max
    assert round(ratio) == 12767


def intro_3(size: str = "ci", power: int = 2) -> None:
    """The two admissible levels differ, by no more than a power of the logarithms in them."""
    paper = theory.known_gap(16, 0.18).zeta_max, theory.unknown_gap(16, 0.18).zeta_max
    assert [f"{level:.2e}" for level in paper] == ["6.63e-05", "8.48e-05"]
    for d, Delta, R, delta in _grid():
        known = theory.known_gap(d, Delta, R, delta=delta)
        unknown = theory.unknown_gap(d, Delta, R, delta=delta)
        logs = known.iota1 * unknown.iota1
        assert logs**-power <= unknown.zeta_max / known.zeta_max <= logs**power


def notation(size: str = "ci", symbol: str = "K") -> None:
    """No bound that is called constant takes the number of rounds as an argument."""
    for bound in (theory.known_gap, theory.unknown_gap):
        assert symbol not in inspect.signature(bound).parameters


def rel_2(size: str = "ci", power: float = 0.5) -> None:
    r"""With C = Kζ the misspecification terms have the ratio :math:`dK\zeta/(\sqrt dK\zeta)`."""
    for root in range(1, 40):
        d, K, zeta = root**2, Fraction(10**6), Fraction(1, 50)
        corruption, best = d * (K * zeta), root * K * zeta
        assert corruption / best == root
        assert math.isclose(corruption / best, d**power)


def model(size: str = "ci", far: int | float = 10) -> None:
    """Far along θ the linear part leaves [-ζ, 1 + ζ]; on offered arms the model is not empty."""
    zeta = Fraction(1, 10)
    theta = (Fraction(1, 2), Fraction(0))
    linear = Fraction(far) * theta[0]
    assert linear > 1 + zeta
    for a, b in itertools.product(range(-6, 7), repeat=2):
        if (a, b) != (0, 0):
            norm2 = Fraction(a * a + b * b, 36)
            t = (1 + zeta) / norm2 + 1  # x = t θ has linear part t ‖θ‖²
            assert t * norm2 > 1 + zeta
    arms = [(Fraction(3, 5), Fraction(4, 5)), (Fraction(1), Fraction(0))]
    rewards = [x[0] * theta[0] + eta for x, eta in zip(arms, (zeta, -zeta), strict=True)]
    assert all(0 <= r <= 1 for r in rewards)


def counter_model() -> dict[str, float]:
    """One parameter and one arm for which no reward in [0, 1] is within ζ of the linear part."""
    theta, x, zeta = (0.5, 0.0), (10.0, 0.0), 0.1
    linear = x[0] * theta[0] + x[1] * theta[1]
    nearest = min(max(linear, 0.0), 1.0)
    assert abs(nearest - linear) > zeta
    return {"linear part": linear, "nearest reward": nearest, "error": abs(nearest - linear)}


def _sup_lin_ucb(
    rng: np.random.Generator, d: int, K: int, beta: float
) -> tuple[np.ndarray, list[int]]:
    """A plain SupLinUCB on fresh random arms; returns the arms played and their levels (0: end)."""
    levels = 40
    U, b = np.tile(np.eye(d), (levels, 1, 1)), np.zeros((levels, d))
    theta, played, filed = rng.standard_normal(d) / math.sqrt(d), [], []
    for k in range(1, K + 1):
        D = rng.standard_normal((6, d))
        D /= np.linalg.norm(D, axis=1, keepdims=True)
        level = 1
        while True:
            width = np.sqrt(np.einsum("ai,ij,aj->a", D, np.linalg.inv(U[level]), D))
            score = D @ np.linalg.solve(U[level], b[level]) + beta * width
            if width.max() >= 2.0**-level:
                x, chosen = D[np.argmax(width)], level
                break
            if k <= 4**level * d:
                x, chosen = D[np.argmax(score)], 0
                break
            D = D[score.max() - score <= 2 * beta * 2.0**-level]
            level += 1
        reward = x @ theta + 0.02 * rng.choice([-1, 1]) + rng.standard_normal()
        if chosen:
            U[chosen] += np.outer(x, x)
            b[chosen] += reward * x
        played.append(x)
        filed.append(chosen)
    return np.array(played), filed


def _replay(X: np.ndarray, threshold: float) -> list[int]:
    """File each round at the first level that its own width or its number says, from arms alone."""
    d, filed = X.shape[1], []
    U = np.tile(np.eye(d), (40, 1, 1))
    for k, x in enumerate(X, start=1):
        level = 1
        while True:
            if math.sqrt(x @ np.linalg.solve(U[level], x)) >= threshold * 2.0**-level:
                U[level] += np.outer(x, x)
                filed.append(level)
                break
            if k <= 4**level * d:
                filed.append(0)
                break
            level += 1
    return filed


def noise(size: str = "ci", threshold: float = 1.0) -> None:
    """Signs are 1-sub-Gaussian, term by term; SupLinUCB's levels follow from the arms alone."""
    for n in range(60):  # cosh t = Σ t²ⁿ/(2n)!, exp(t²/2) = Σ t²ⁿ/(2ⁿ n!)
        assert Fraction(1, math.factorial(2 * n)) <= Fraction(1, 2**n * math.factorial(n))
    for seed in range(2 if size == "ci" else 8):
        rng = np.random.default_rng(seed)
        X, filed = _sup_lin_ucb(rng, d=3, K=400 if size == "ci" else 1500, beta=0.4)
        assert len(set(filed)) >= 3
        assert _replay(X, threshold) == filed


def argmax(size: str = "ci", closed: bool = True) -> None:
    """A closed interval of arms has a best one; an open one has none, however close one looks."""
    theta, end = Fraction(1), Fraction(1)
    candidates = [end - Fraction(1, 2**n) for n in range(1, 200)]
    best = end if closed else candidates[-1]
    better = [(best + end) / 2, *candidates]  # every arm of the interval short of its end
    assert all(x * theta <= best * theta for x in better)


def aux_vacuous(size: str = "ci", reach: int | float = math.inf) -> None:
    """For θ ≠ 0 the arm tθ, t = (1+ζ)/‖θ‖² + 1, has a linear part that no reward in [0,1] meets.

    With arms tθ of bounded `reach`, t ≤ reach, the conclusion is false: small θ are possible.
    """
    levels = (Fraction(0), Fraction(1, 10), Fraction(3))
    for a, b, zeta in itertools.product(range(-6, 7), range(-6, 7), levels):
        norm2 = Fraction(a * a + b * b, 100)
        if norm2 > 0:
            t = min((1 + zeta) / norm2 + 1, reach)
            assert t * norm2 - 1 > zeta  # the nearest reward is 1, and it is too far away


def aux_gap(size: str = "ci", factor: float = 1.0) -> None:
    """Every table of rewards in {0, 1/3, 2/3, 1} for two rounds of three arms, every play."""
    scale, bound = 3, Fraction(factor)
    for rewards in itertools.product(range(scale + 1), repeat=6):
        rounds = (rewards[:3], rewards[3:])
        gaps = [[max(row) - r for r in row] for row in rounds]
        positive = [gap for row in gaps for gap in row if gap > 0]
        if not positive:
            continue
        Delta = min(positive)
        assert 0 < Delta <= scale
        for plays in itertools.product(range(3), repeat=2):
            cost = [row[arm] for row, arm in zip(gaps, plays, strict=True)]
            N = sum(c > 0 for c in cost)
            assert all(c == 0 or c >= Delta for c in cost)
            assert bound * N * Delta <= sum(cost) <= scale * N


def def_bandit_gap(size: str = "ci", factor: float = 1.0) -> None:
    """Gaps are at most one, rounds cost nothing or at least Δ, and the regret counts bad plays."""
    rng = np.random.default_rng(0)
    for trial in range(200 if size == "ci" else 5000):
        D = rng.integers(0, 21, size=(rng.integers(1, 9), rng.integers(1, 6)))  # rewards in 1/20
        gaps = D.max(axis=1, keepdims=True) - D
        positive = gaps[gaps > 0]
        if positive.size == 0:
            continue
        Delta = positive.min()
        plays = (
            rng.integers(0, D.shape[1], len(D))
            if trial % 3
            else np.argmin(np.where(gaps > 0, gaps, 99), axis=1)
        )
        cost = gaps[np.arange(len(D)), plays]
        N = np.count_nonzero(cost)
        assert 0 < Delta <= 20
        assert np.all((cost == 0) | (cost >= Delta))
        assert factor * N * Delta <= cost.sum() <= 20 * N


def regret(size: str = "ci", parentheses: bool = True) -> None:
    """The regret of playing an optimal arm in every round is zero; the printed sum gives more."""
    best = [Fraction(k % 3 + 1, 4) for k in range(12)]
    played = list(best)
    total = sum(b - p for b, p in zip(best, played, strict=True))
    literal = sum(best) - played[-1]
    assert (total if parentheses else literal) == 0


def aux_margin(size: str = "ci", c: float = 2.0) -> None:
    """If cζ < Δ the linear favourite is optimal; errors of size ζ break it at any c below 2."""
    rng = np.random.default_rng(1)
    for _ in range(400 if size == "ci" else 20000):
        n, d = rng.integers(2, 7), rng.integers(1, 5)
        X, theta = rng.standard_normal((n, d)), rng.standard_normal(d)
        score = X @ theta
        first, second = np.argsort(score)[::-1][:2]
        zeta = rng.uniform(0, 2) * (score[first] - score[second])
        eta = rng.uniform(-zeta, zeta, n)
        eta[first], eta[second] = -zeta, zeta  # the worst pair of errors
        r = score + eta
        gaps = r.max() - r
        Delta = gaps[gaps > 0].min()
        assert gaps[first] == 0 or c * zeta >= Delta
    # two arms whose linear parts are almost equal: the reversal happens as soon as 2ζ exceeds Δ
    for step in (1e-3, 1e-6, 1e-9):
        zeta = 0.2
        r = np.array([0.5 - zeta, 0.5 - step + zeta])
        Delta = r[1] - r[0]
        assert c * zeta >= Delta > 2 * zeta - 2 * step
