"""Checks for the chapter on data selection: short arms, lessons and tests, commitment."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np

import banditlib as bl
from banditlib import reference, theory
from banditlib.paper.experiments.separation import course as sep
from book.claims.formula import ATTAINED, Found, formula

HALF = Fraction(1, 2)


@formula("upper")
def believed_cap(Gamma: Fraction, lam: Fraction) -> Fraction:
    """The square of what is believed of the unit arm at most, ζ = 1."""
    return Fraction(4, 27) * (1 + Gamma**2) / (lam * Gamma**2)


def aux_short(size: str = "ci") -> Found:
    """The prediction for e₁ squared, in fractions, for every length and every number of plays:
    at most 4(1+Γ²)/(27λΓ²), and nearly that at a = √(3λ) Γ.
    """
    top = 0.0
    for Gamma, lam in product(
        (Fraction(1, 2), Fraction(1, 10), Fraction(1, 100)), (Fraction(1), Fraction(4))
    ):
        cap = believed_cap(Gamma, lam)
        for i in range(1, 60):
            a = Gamma * Fraction(i, 12)
            n = int((a**2 / Gamma**2 - lam) / a**2) + 1 if a**2 >= Gamma**2 * lam else 0
            assert a**2 < Gamma**2 * (lam + n * a**2)  # nothing more is learnt
            believed = n * a / (lam + n * a**2)
            assert believed**2 <= cap
            top = max(top, float(believed**2 / cap))
    return Found({"believed_cap": 1 / top}, "a = √(3λ) Γ, Γ = 1/100")


def fewest_mistakes(tests: int, lam: Fraction, pull: Fraction, weight: Fraction) -> list[int]:
    """The fewest mistakes in 1, …, `tests` tests over all radii, which decide wherever the wrong
    arm is not ahead in prediction and in width. Exact.
    """
    states, out = {0}, []
    for t in range(1, tests + 1):
        after = set()
        for q in states:
            U1, U2, m = lam + weight * t + q, lam + (t - 1 - q), t - 1 - q
            wrong_must_win = U1 <= U2 and pull * t * U2 > m * U1
            after |= {q + 1} if wrong_must_win else {q, q + 1}
        states = after
        out.append(min(states))
    return out


@formula("lower")
def oful_mistakes(T: int) -> Fraction:
    """Mistakes that OFUL makes in T tests at least."""
    return Fraction(T, 4) - HALF


def sep_oful(size: str = "ci") -> Found:
    """Whatever the radii: at least T/4 − 1/2 mistakes in T tests, without noise."""
    for j in (1, 3, 14, 200):
        c = sep.Course.of(0.5, j)
        assert abs(c.lessons * c.length**2 - 0.5) < 1e-12
        assert abs(c.lessons * c.length * c.zeta - 2 * 0.5) < 1e-12
    tests, ratios = (120 if size == "ci" else 400), []
    for lam in (Fraction(1, 10), Fraction(1), Fraction(7)):
        for T, mistakes in enumerate(fewest_mistakes(tests, lam, Fraction(2), HALF), 1):
            if T > 2:  # before, the bound is no more than zero
                assert mistakes >= oful_mistakes(T)
            if T > 60:
                ratios.append(float(mistakes / oful_mistakes(T)))
    return Found({"oful_mistakes": min(ratios)}, "the radii that err least, λ = 7")


@formula("upper")
def ds_mistakes(beta: float, Delta: float) -> float:
    """Mistakes of DS-OFUL, however many tests there are."""
    return 4 * beta**2 / Delta**2


def sep_ds(size: str = "ci") -> Found:
    """With the theorem's constants: the condition holds, no lesson is wide enough, and there are
    at most 4β²/Δ² mistakes; run without noise to the last of them.
    """
    grid = product((2, 3, 16), (1.0, 0.3, 0.01), (0.0, 0.5, 2.0), (0.5, 0.01))
    for d, Delta, R, delta in grid:
        known = theory.known_gap(d, Delta, R=R, delta=delta)
        c = sep.Course.of(Delta, math.ceil(1 / known.Gamma), R, d)
        assert c.zeta <= known.Gamma and c.length < known.Gamma
        assert 2 * known.beta * known.Gamma < Delta
    ratios = []
    for Delta in (1.0, 0.5):
        known = theory.known_gap(2, Delta, R=0)
        c = sep.Course.of(Delta, math.ceil(1 / known.Gamma))
        player = sep.Learner(1.0, lambda k, zeta, b=known.beta: b, known.Gamma)
        wrong = sep.play(c, player, 120_000 if Delta == 1 else 15_000)
        assert wrong.sum() <= ds_mistakes(known.beta, Delta)
        assert Delta < 1 or not wrong[100_000:].any()
        ratios.append(float(wrong.sum()) / ds_mistakes(known.beta, Delta))
    return Found({"ds_mistakes": 1 / max(ratios)}, "without noise, to the last mistake")


@formula()
def lsw_sums(j: int, t: int, q: int, m: int) -> tuple[int, int]:
    """LSW's sums Σ|⟨x, x_s⟩| for e₁ and for e₂ before test t, after q mistakes and m right ones."""
    return 2 * j * t + q, m


def sep_lsw(size: str = "ci") -> Found:
    """Wherever e₁ is no better known than e₂, LSW's extra bonus is larger for e₁; all states.

    The sums are also taken over the rounds of a course, one by one.
    """
    tests = 60 if size == "ci" else 200
    for j, lam, t in product((1, 2, 14), (Fraction(1, 3), Fraction(5)), range(1, tests)):
        for q in range(t):
            m = t - 1 - q
            U1, U2 = lam + HALF * t + q, lam + m
            first, second = lsw_sums(j, t, q, m)
            if U1 <= U2:
                assert first * U2 > second * U1
    for j in (1, 3, 14):
        c = sep.Course.of(0.5, j)
        for t, q in ((1, 0), (5, 2), (9, 8)):
            lessons = float(c.lessons * t * c.length)
            assert math.isclose(lessons + q, lsw_sums(j, t, q, t - 1 - q)[0], rel_tol=1e-12)
            assert lsw_sums(j, t, q, t - 1 - q)[1] == t - 1 - q
    return ATTAINED


def text_degenerates(size: str = "ci") -> Found:
    """One learner on one course, with noise: learning from everything it errs in a quarter of the
    tests, with a threshold above the lessons' length at most 4β²/Δ² times; Thompson sampling errs
    with the first.
    """
    tests, Delta, radius = (4000 if size == "ci" else 40_000), 0.5, 3.0
    c = sep.Course.of(Delta, 14, sigma=0.1)

    def wrong(player: sep.Learner) -> np.ndarray:
        return sep.play(c, player, tests, np.random.default_rng(3))

    everything = wrong(sep.Learner(1.0, lambda k, zeta: radius, 0.0))
    selected = wrong(sep.Learner(1.0, lambda k, zeta: radius, 2 * c.length))
    sampled = wrong(sep.Thompson(1.0, radius, np.random.default_rng(4)))
    kindest = wrong(sep.Learner(1.0, None, 0.0))
    for all_data in (everything, sampled, kindest):
        assert all_data.sum() >= oful_mistakes(tests)
    assert selected.sum() <= ds_mistakes(radius, Delta) and not selected[tests // 2 :].any()
    slack = {
        "oful_mistakes": float(kindest.sum() / oful_mistakes(tests)),
        "ds_mistakes": ds_mistakes(radius, Delta) / float(selected.sum()),
    }
    return Found(slack, "the radius that errs least; one threshold, twice the lessons' length")


@formula("lower")
def thompson_mistakes(T: int, delta: float) -> float:
    """Mistakes of linear Thompson sampling with probability 1 − δ."""
    return (T - 2) / 4 - math.sqrt(T / 2 * math.log(T / delta))


def sep_thompson(size: str = "ci") -> Found:
    """The distribution of the number of mistakes when each is made with probability ½ where it
    must be at least that, and 0 elsewhere: below the bound with probability at most δ.
    """
    ratios = []
    for T, delta in ((400, 0.05), (1200, 0.5)):
        chance = np.zeros(T + 1)
        chance[0] = 1.0
        q = np.arange(T + 1)
        for t in range(1, T + 1):
            moved = chance * np.where(0.5 * t + q <= t - 1 - q, 0.5, 0.0)
            chance = chance - moved
            chance[1:] += moved[:-1]
        bound = thompson_mistakes(T, delta)
        assert bound > 0 and chance[q < bound].sum() <= delta
        certain = float(q[np.cumsum(chance) <= delta].max())
        ratios.append(certain / bound)
    return Found({"thompson_mistakes": min(ratios)}, "T = 1200, δ = ½: the exact distribution")


@formula("upper")
def sup_mistakes(level: int, d: int, j: int) -> float:
    """Mistakes of SupLinUCB, however many tests there are."""
    return 4**level * (4 / 3 + d / (8 * j * j))


@formula()
def first_safe(Delta: float) -> int:
    """The first level with 4·2⁻ˡ < Δ, for β = 1."""
    return math.floor(math.log2(4 / Delta)) + 1


def sep_sup(size: str = "ci") -> Found:
    """SupLinUCB without noise, β = 1: few mistakes, none late, and no lesson at a coarse level."""
    ratios = []
    for Delta, j, d in ((0.5, 14, 2), (0.3, 30, 5), (1.0, 6, 3)):
        level = first_safe(Delta)
        assert 4 * 2.0**-level < Delta <= 4 * 2.0 ** -(level - 1)
        c = sep.Course.of(Delta, j, dim=d)
        assert c.length < 2.0**-level
        player = sep.Levels(1.0, lambda l: 1.0, d)
        wrong = sep.play(c, player, 8 * 4**level)
        assert wrong.sum() <= sup_mistakes(level, d, j)
        ratios.append(float(wrong.sum()) / sup_mistakes(level, d, j))
        assert not wrong[4 * 4**level :].any()
        assert all(float(e1.U).is_integer() for e1, _ in player.levels[:level])  # whole: tests only
    return Found({"sup_mistakes": 1 / max(ratios)}, "without noise")


@formula()
def misleading(x: np.ndarray, y: np.ndarray, best: np.ndarray) -> float:
    """The reward, over M, that keeps the best arm away: ⟨x, y − x*⟩."""
    return float(x @ (y - best))


def sep_expected(size: str = "ci") -> Found:
    """With rewards M⟨x, y − x*⟩ the best arm x* is never played between round 1 and the first
    skip, so it is not the arm of the first skip: on arms of every shape, among them orthogonal
    differences and multiples of one vector.
    """
    shapes = [
        [[1, 0], [0, 1]], [[1, 0], [1, 1]], [[1, 1], [1, 0]], [[2, 0], [1, 0]], [[1, 0], [2, 0]],
        [[3, 0, 0], [0, 1, 0], [0, -1, 0]], [[0, 1, 0], [3, 0, 0], [0, -1, 0]],
        [[1, 2, 0], [2, 1, 0], [0, 1, 2], [0.5, 0, 0]], [[1.0], [0.5], [-1.0]],
    ]  # fmt: skip
    for arms, lam, share in product(shapes, (0.5, 2.0), (1.0, 0.4, 0.15)):
        X = np.array(arms, dtype=float)
        Gamma = share * np.linalg.norm(X, axis=1).max() / math.sqrt(lam)
        _never_the_first(X, Gamma, 1.5, lam)
    return ATTAINED


def _never_the_first(X: np.ndarray, Gamma: float, beta: float, lam: float) -> None:
    """Arm 0 is the best; M is large."""
    ridge = reference.Regression(X.shape[1], lam)
    y: np.ndarray | None = None
    for k in range(100_000):
        mean, width = ridge.solve(X)
        a = reference.argmax(mean + beta * width)
        if y is None:
            y = X[a] if a else X[1]
        assert k == 0 or a != 0
        if width[a] < Gamma * (1 - 1e-9):
            assert k > 0
            return
        ridge.add(X[a], 1e4 * misleading(X[a], y, X[0]))
    raise AssertionError("no skip")


@formula("upper")
def oful_regret(K: float, d: int, beta: float, Delta: float, LB: float = 1.0) -> float:
    """OFUL's own bound with its last radius and λ = B⁻²."""
    return 8 * d * beta**2 / Delta * math.log1p(K * LB**2 / d)


@formula()
def oful_powers() -> int:
    """The power of log K in OFUL's own bound."""
    return 2


def aux_oful_log(size: str = "ci") -> Found:
    """All that the proof allows is spent: orthonormal arms in turn, each round losing 2β times its
    width until that falls below Δ. OFUL itself, without noise, stays below too; and the bound
    grows like log² K.
    """
    ratios = []
    radii = ((1.0, 0.1), (1.0, 0.5), (1.0, 1.0), (1.5, 0.5), (4.0, 0.5), (40.0, 1.0))
    for d, (beta, Delta) in product((1, 3, 8), radii):
        total = 0.0
        for k in range(int(d * (2 * beta / Delta) ** 2) + 1):
            lost = 2 * beta / math.sqrt(1 + k // d)
            total += lost if lost >= Delta else 0.0
            bound = oful_regret(k + 1, d, beta, Delta)
            assert total <= bound
            ratios.append(total / bound)
    for Delta, d in product((0.2, 0.5), (2, 5)):
        reward = np.r_[0.5 + Delta / 2, np.full(d - 1, 0.5 - Delta / 2)] / math.sqrt(d)
        run = bl.simulate(  # the best arm comes last, so that ties are lost
            bl.problems.FixedArms(np.eye(d)[::-1], reward[::-1], sigma=0),
            bl.OFUL(beta=1, lam=1), rounds=400, trials=1, checkpoints=400, progress=False,
        )  # fmt: skip
        gap = Delta / math.sqrt(d)
        for K, lost in zip(run.checkpoints, run.regret[0, 0, 0], strict=True):
            assert lost <= oful_regret(int(K), d, 1.0, gap)
    for d, j in product((1, 3), (10, 200)):  # arms of width 1, each doubling U on its axis
        n = d * (2 * j + 1)
        assert n <= oful_regret(n, d, 0.5, 1.0, 2.0**j)
        scaled = oful_regret(n * 4.0**j, d, 0.5, 1.0)  # L²B² stands beside K
        assert math.isclose(oful_regret(n, d, 0.5, 1.0, 2.0**j), scaled, rel_tol=1e-12)
    for K, d in product((10**40, 10**80, 10**150), (1, 8)):  # K² has twice the digits
        grows = [
            oful_regret(k, d, 1 + math.sqrt(d * math.log1p(k / d) + 2 * math.log(100)), 0.2)
            for k in (K, K**2)
        ]
        assert abs(grows[1] / grows[0] / 2 ** oful_powers() - 1) < 0.15
    return Found({"oful_regret": 1 / max(ratios)}, "orthonormal arms in turn")
