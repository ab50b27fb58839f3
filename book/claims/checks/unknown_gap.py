"""Checks of the chapter "Constant regret, unknown gap" (SupLinUCB's lemmas and theorem)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from banditlib import theory
from book.claims.checks.confidence import _coverage
from book.claims.checks.exact import hardest
from book.claims.checks.model import is_square_over_gap
from book.claims.checks.sup_lin_ucb import Reference, contexts
from book.claims.formula import ATTAINED, Found, about, formula

# --- two arms at one level: everything the proofs use about them -------------------------------

Form = np.ndarray
"""Coefficients of β2⁻ˡ, ζ and M2⁻ˡ, with M = 4ζ2ˡ√(dι₁(l)); all three quantities are >= 0."""


def form(beta: int, zeta: int, M: int) -> Form:
    return np.array([beta, zeta, M])


def corners() -> Iterator[tuple[Form, Form, Form, Form, Form]]:
    """Extreme points of (width, error) of two arms y and x, and of their misspecification.

    A width lies in [0, 2⁻ˡ] and an error in ±(β+M) times the width, so each pair fills a triangle
    with the three corners below. Every quantity of the proofs is linear in these, hence largest
    at a corner. Yields (w_y β, e_y, w_x β, e_x, η_y − η_x) as forms.
    """
    triangle = [
        (form(0, 0, 0), form(0, 0, 0)),
        (form(1, 0, 0), form(1, 0, 1)),
        (form(1, 0, 0), form(-1, 0, -1)),
    ]
    for (wy, ey), (wx, ex), hy, hx in product(triangle, triangle, (-1, 1), (-1, 1)):
        yield wy, ey, wx, ex, form(0, hy - hx, 0)


def gaps(s: int) -> list[Form]:
    """r(y) − r(x) at every corner, when the index of y exceeds that of x by s β2⁻ˡ.

    r(y) − r(x) = [index(y) − index(x)] − (e_y + βw_y) + (e_x + βw_x) + η_y − η_x.
    """
    return [form(s, 0, 0) - ey - wy + ex + wx + eta for wy, ey, wx, ex, eta in corners()]


def _is_maximum(target: Form, s: int) -> None:
    """The form `target` bounds every corner, coefficient by coefficient, and is attained."""
    values = gaps(s)
    assert all((value <= target).all() for value in values)
    assert any((value == target).all() for value in values)


# --- lm:set, lm:concent, col:beta-sup -----------------------------------------------------------


def fill_one_level(l: int, LB: float) -> int:
    """Selections at level l (d = 1, λ = 1) by an adversary who feeds it arms at its threshold.

    An opening of arms of full length LB fills the levels below, 4, 16, ... times. Then every arm
    is just as long as level l needs to find it wide, until that would be longer than LB.
    """
    run, k = Reference(1, lambda l: 1.0), 0
    for k in range(1, (4**l - 4) // 3 + 1):
        _, m, learnt = run.round(k, np.array([[LB]]), lambda x: 0.0)
        assert learnt and m < l
    count = 0
    while (x := 2.0**-l * math.sqrt(run.U[l][0, 0]) * (1 + 1e-12)) <= LB * (1 - 1e-6):
        k, count = k + 1, count + 1
        assert run.round(k, np.array([[x]]), lambda x: 0.0) == (0, l, True)
    return count


def lm_set(size: str = "ci") -> Found:
    """|C^l| ≤ 16d4^lι₁(l): an adversary who feeds one level comes within a factor 7.5."""
    ratios = []
    cases = [(1, 1.0), (1, 1e3), (1, 1e9), (2, 1e3), (3, 1.0), (3, 1e3), (4, 1.0)]
    for l, LB in cases:
        count = fill_one_level(l, LB)
        for d, L, B in ((1, LB, 1.0), (3, LB**0.5, LB**0.5)):
            bound = float(theory.unknown_gap(d, 0.5, L=L, B=B).selections(l))
            assert d * count <= bound
            ratios.append(d * count / bound)
    return Found({"Unknown.selections": hardest(ratios)}, "one level fed arms at its threshold")


def lm_concent(size: str = "ci") -> Found:
    """One level's ellipsoid: the regimes of lm:decompose, and a noise-free run of the algorithm.

    In the run all errors have one sign, so that at level l the radius 1 + ζ√n is nearly met.
    """
    slack = _coverage(theory.radius, "theory.radius")
    zeta, worst = 0.3, 0.0
    run = Reference(1, lambda l: 1.0)
    for k in range(1, 341):
        _, l, learnt = run.round(k, np.array([[1.0]]), lambda x: zeta - 1.0)  # θ* = −1
        if learnt:
            n = int(run.U[l][0, 0] - 1)
            error = abs(run.b[l][0] / run.U[l][0, 0] + 1) * math.sqrt(run.U[l][0, 0])
            bound = float(theory.radius(n, 1, 0.0, zeta=zeta))
            assert error <= bound * (1 + 1e-12)
            worst = max(worst, error / bound)
    assert worst > 0.7
    return Found(
        slack, "no noise: one arm, errors of one sign",
        "as for lm:decompose: each term of the radius dropped in turn is noticed",
    )  # fmt: skip


@formula("lower")
def printed_radius(d: int, l: int, L: float, delta: float) -> float:
    """β(l) with the printed ι₂(l), R = B = 1: on the instance the error is larger."""
    iota1 = math.log(3 * L * 2**l)
    iota2 = math.log((d * 2**l + 16 * L**2 * 8**l * iota1) / (d * delta))
    return 1 + math.sqrt(2 * d * iota2)


def stopped_walks(d: int, L: float, rng: np.random.Generator) -> float:
    """‖θ^1 − θ*‖ for θ* = 0 when each axis is offered arms of width exactly ½ until it looks bad.

    Each arm multiplies an axis' entry of U by 5/4; arms may be as long as L. An axis is left alone
    as soon as its squared error, in units of its width, exceeds what further rounds would bring on
    average. Later decision sets thus depend on past noise, which the paper allows.
    """
    U, S, on = np.ones(d), np.zeros(d), np.ones(d, dtype=bool)
    steps = math.floor(math.log(4 * L**2) / math.log(1.25)) + 1
    for left in range(steps - 1, -1, -1):
        x = np.sqrt(U) / 2
        S += np.where(on, x * rng.standard_normal(d), 0.0)
        U *= np.where(on, 1.25, 1.0)
        on &= 1.1 + 0.09 * left > S**2 / U
    return float(np.sqrt(np.sum(S**2 / U)))


def counter_col_beta_sup() -> dict[str, float]:
    """Level 1, one arm a round along the axes, θ* = 0, R = B = 1: each axis until it looks bad."""
    import math

    import numpy as np

    d, L, delta, rng = 200_000, 5.0, 0.9, np.random.default_rng(0)
    U, S, on = np.ones(d), np.zeros(d), np.ones(d, dtype=bool)
    for left in range(20, -1, -1):  # an arm of width 1/2 has length sqrt(U)/2, at most 5
        S += np.where(on, np.sqrt(U) / 2 * rng.standard_normal(d), 0.0)
        U *= np.where(on, 1.25, 1.0)
        on &= 1.1 + 0.09 * left > S**2 / U
    error = float(np.sqrt(np.sum(S**2 / U)))
    iota1 = math.log(3 * L * 2)
    iota2 = math.log((d * 2 + 16 * L**2 * 8 * iota1) / (d * delta))
    printed = 1 + math.sqrt(2 * d * iota2)
    assert error > printed
    return {"error in units of the width": error, "printed radius": printed}


@about("SupBeta.iota1", "SupBeta.iota2", "SupBeta.__call__")
def col_beta_sup(size: str = "ci") -> Found:
    """The printed radius is too small for d = 200,000, L = 5, δ = 0.9; the repaired one is enough.

    Repaired means what the substitution gives: lm:set put into lm:concent at δ/2^l, exactly.
    """
    rng, ratios = np.random.default_rng(40), []
    printed = printed_radius(200_000, 1, 5.0, 0.9)
    for _ in range(4 if size == "ci" else 20):
        error = stopped_walks(200_000, 5.0, rng)
        assert error > printed
        ratios.append(error / printed)
    assert error < float(theory.SupBeta(200_000, L=5.0, delta=0.9, repaired=True)(1))
    for d, l, L, delta in product((1, 10, 512), (1, 3, 9), (1.0, 2.0, 10.0), (0.5, 0.01)):
        unknown = theory.unknown_gap(d, 0.5, L=L, delta=delta)
        n = float(unknown.selections(l))
        needed = theory.radius(n, d, 1.0, L, 1.0, delta / 2**l, 0.0)
        more = theory.radius(n, d, 1.0, L, 1.0, delta / 2**l, 0.3) - needed
        summand = 4 * 0.3 * 2**l * math.sqrt(d * math.log(3 * L * 2**l))
        assert math.isclose(more, summand, rel_tol=1e-9)
        B = L**0.5
        repaired = theory.SupBeta(d, 1.0, L / B, B, delta, repaired=True)(l)
        assert math.isclose(needed, repaired, rel_tol=1e-12)
        kept = theory.SupBeta(d, 1.0, L, 1.0, delta, repaired=False)(l)
        assert math.isclose(kept, printed_radius(d, l, L, delta), rel_tol=1e-12)
    slack = {"printed_radius": min(ratios), "theory.radius": 1.0, "selections": 1.0}
    return Found(slack, "axes left alone once they look bad, 4 runs of 4")


@formula()
def share(l: int) -> Fraction:
    """The part of δ that level l gets."""
    return Fraction(1, 2**l)


def text_delta_split(size: str = "ci") -> Found:
    """The failure probabilities δ/2^l of the levels add up to δ."""
    partial = [sum(share(l) for l in range(1, n + 1)) for n in (1, 5, 50, 200)]
    assert all(1 - p == share(n) for n, p in zip((1, 5, 50, 200), partial, strict=True))
    assert partial[-1] < 1 and 1 - partial[-1] < Fraction(1, 10**50)
    return ATTAINED


# --- what survives elimination -----------------------------------------------------------------


@formula("upper")
def two_arms(s: int) -> Form:
    """Bound on r(y) − r(x) when the index of y exceeds that of x by s β2⁻ˡ."""
    return form(s, 0, 0) + 2 * form(1, 1, 1)


def aux_two_arms(size: str = "ci") -> Found:
    """r(y) − r(x) ≤ [index(y) − index(x)] + 2β2⁻ˡ + 2W(l), for any index difference, attained."""
    for s in range(-3, 4):
        _is_maximum(two_arms(s), s=s)
    return ATTAINED


@formula("upper")
def near_optimal(l: int, W: float) -> float:
    """What the best arm left at level l may cost."""
    return 2 * (l - 1) * W


def lm_optimal(size: str = "ci") -> Found:
    """If x eliminates y at level l, then r(y) − r(x) ≤ 2W(l); l − 1 eliminations add up.

    W grows with l, but hardly when LB is large: then 2(l−1)W(l) is the sum itself.
    """
    _is_maximum(form(0, 2, 2), s=-2)
    ratios = []
    for L in (1.0, 10.0, 1e250):
        unknown = theory.unknown_gap(4, 0.5, L=L)
        for l in range(1, 30):
            lost = sum(2 * float(unknown.W(j, 0.01)) for j in range(1, l))
            bound = near_optimal(l, float(unknown.W(l, 0.01)))
            assert lost <= bound * (1 + 1e-12)
            ratios += [lost / bound] if l > 1 else []
            W = 0.01 * (1 + 4 * math.sqrt(4 * (math.log(3 * L) + l * math.log(2))))
            assert math.isclose(float(unknown.W(l, 0.01)), W, rel_tol=1e-12)
    return Found({"near_optimal": hardest(ratios)}, "LB large")


@formula("upper")
def index_above(e: Form, w: Form) -> Form:
    """ζ + e + βw."""
    return form(0, 1, 0) + e + w


def eq_d4_1(size: str = "ci") -> Found:
    """index(x) − r(x) = e_x + β w_x − η_x ≤ ζ + e_x + β w_x, with equality at η = −ζ."""
    for _, _, wx, ex, _ in corners():
        for eta in (-1, 0, 1):
            left = ex + wx - form(0, eta, 0)
            assert (left <= index_above(ex, wx)).all()
            assert (left == index_above(ex, wx)).all() == (eta == -1)
    return ATTAINED


@formula("upper")
def index_below(e: Form, w: Form) -> Form:
    """ζ − e − βw."""
    return form(0, 1, 0) - e - w


def eq_d4_2(size: str = "ci") -> Found:
    """r(y) − index(y) = η_y − e_y − β w_y ≤ ζ − e_y − β w_y, with equality at η = ζ."""
    for wy, ey, *_ in corners():
        for eta in (-1, 0, 1):
            left = form(0, eta, 0) - ey - wy
            assert (left <= index_below(ey, wy)).all()
            assert (left == index_below(ey, wy)).all() == (eta == 1)
    return ATTAINED


@formula()
def printed_first(wy: Form, ey: Form, wx: Form, ex: Form) -> Form:
    """First line of the display: x eliminates y."""
    return form(-2, 2, 0) + ex - ey - wx + wy


def text_l728(size: str = "ci") -> Found:
    """The display in the proof of lm:optimal: line 1 has both bonuses' signs wrong, line 3 holds.

    With the signs exchanged the first line holds at every corner, with equality at some.
    """
    fails, right, met = 0, 0, 0
    for value, (wy, ey, wx, ex, _) in zip(gaps(-2), corners(), strict=True):
        printed = printed_first(wy, ey, wx, ex)
        mended = printed + 2 * wx - 2 * wy
        fails += not (value <= printed).all()
        right += bool((value <= mended).all())
        met += bool((value == mended).all())
    assert (fails, right, met) == (8, 36, 9)
    _is_maximum(form(0, 2, 2), s=-2)
    assert not all((value <= form(0, 2, 1)).all() for value in gaps(-2))  # the printed line 2
    return ATTAINED


def counter_text_l728() -> dict[str, float]:
    """Two arms, one of which eliminates the other; the printed first line is too small."""
    import numpy as np

    theta = np.array([0.1, 0.99])
    V = np.diag([1 / 1601, 1.0])  # level 2 has seen the arm (10, 0), reward 1, 16 times
    estimate = V @ np.array([160.0, 0.0])
    x, y, threshold = np.array([5.5, -0.2]), np.array([0.2, 0.0]), 1 / 4  # beta = 1
    width = [float(np.sqrt(a @ V @ a)) for a in (x, y)]
    index = [float(a @ estimate) + w for a, w in zip((x, y), width, strict=True)]
    assert max(width) < threshold and index[0] - index[1] > 2 * threshold  # x eliminates y
    left = float((y - x) @ theta)
    printed = -2 * threshold + float((x - y) @ (estimate - theta)) - width[0] + width[1]
    assert left > printed
    return {"r(y) - r(x)": left, "printed upper bound": printed}


def needle_threshold(d: int, Delta: float, s: float = 0.98) -> float:
    """From this ζ on the regression on the axes cannot see the needle: Δ/(1+s√d)."""
    return Delta / (1 + s * math.sqrt(d))


def _optimal_stays(d: int, Delta: float, zeta: float, rounds: int) -> bool:
    """Whether every D^l of every round contains the best arm, on the needle instance."""
    X, r = needle(d, Delta, zeta)
    value = {x.tobytes(): float(reward) for x, reward in zip(X, r, strict=True)}
    run, best = Reference(d, lambda l: 1.0), int(np.argmax(r))
    for k in range(1, rounds):
        run.round(k, X, lambda x: value[x.tobytes()])
        if not all(best in alive for alive in run.seen):
            return False
    return True


def text_l283(size: str = "ci") -> Found:
    """Below the admissible ζ every D^l contains an optimal arm; far above it one is thrown out.

    The needle instance loses its best arm at three times Δ/(1+√d): the condition of the theorem is
    470 times smaller.
    """
    Delta, d = 0.25, 4
    zeta_max = theory.unknown_gap(d, Delta, R=0.0).zeta_max
    assert _optimal_stays(d, Delta, 0.999 * zeta_max, 400)
    breaks = 3 * needle_threshold(d, Delta)
    assert not _optimal_stays(d, Delta, breaks, 1200)
    return Found({"Unknown.zeta_max": breaks / zeta_max}, "the needle instance, d = 4, Δ = ¼")


def needle(d: int, Delta: float, zeta: float, s: float = 0.98) -> tuple[np.ndarray, np.ndarray]:
    """Arms e_1..e_d and x* = s(1,..,1)/√d with gap Δ, whose best linear fit on the e_i hides x*.

    Up to ζ = Δ/(1+s√d): r(e_i) = t − ζ, r(x*) = s√d t + ζ. Above: x* is turned round,
    r(e_i) = ζ − t, r(x*) = s√d t + ζ with t = Δ/(1+s√d). All rewards are >= 0.
    """
    a = s * math.sqrt(d)
    turned = zeta > Delta / (1 + a)
    t = Delta / (1 + a) if turned else (Delta - 2 * zeta) / (a - 1)
    X = np.vstack([np.eye(d), np.full((1, d), (-s if turned else s) / math.sqrt(d))])
    return X, np.append(np.full(d, zeta - t if turned else t - zeta), a * t + zeta)


def sharp_family(
    m: int, l: int = 2, L: float = 100.0
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Opening rounds, a last decision set and θ*, such that D^{l+1} keeps a gap near 4·2⁻ˡ (β = 1).

    d = m + 1, ‖θ*‖ = 1. The opening teaches level l each of m directions 4^l times, the last one
    never. Both arms of the last round are as wide as the threshold allows, and their errors, along
    the unseen direction, have opposite signs; their indices differ by what elimination forgives.
    """
    d, t = m + 1, math.sqrt(1 - m / L**2)
    theta = np.append(np.full(m, 1 / L), t)
    limit = 2.0**-l * (1 - 1e-6)
    u = 1 + 4**l * L**2
    g = L**2 / (m * u)  # squared width per squared reward, in the seen directions
    s1 = (g * t + math.sqrt(g**2 * t**2 - (1 + g * t**2) * (g - limit**2))) / (1 + g * t**2)
    y1 = 1 - t * s1  # so that the first arm has reward 1
    y2 = y1 - 2 * limit * u / (4**l * L**2)
    s2 = math.sqrt(limit**2 - g * y2**2)
    D = np.array([[y1 * L / m] * m + [s1], [y2 * L / m] * m + [-s2]])
    opening = [L * np.eye(d)[[k % m]] for k in range(2 * 4**l * d)]
    return opening, D, theta


def survivors(m: int, l: int = 2, margin: float = 2.0) -> tuple[bool, float, np.ndarray]:
    """Whether the sharp family's bad arm is in D^{l+1}, its gap, and the rewards."""
    opening, D, theta = sharp_family(m, l)
    run = Reference(m + 1, lambda l: 1.0, margin=margin)
    for k, arms in enumerate(opening, 1):
        run.round(k, arms, lambda x: float(x @ theta))
    run.play(len(opening) + 1, D)
    kept = len(run.seen) > l and 1 in run.seen[l]
    return kept, float((D[0] - D[1]) @ theta), D @ theta


@formula("upper")
def repaired_gap(beta: float, l: int) -> float:
    """Largest gap in D^l without misspecification, l ≥ 2; β is β(l−1)."""
    return 8 * beta * 2.0**-l


@formula("lower")
def printed_gap(beta: float, l: int) -> float:
    """The printed bound on gaps in D^l, which the runs exceed."""
    return 4 * beta * 2.0**-l


def lm_decision_set(size: str = "ci") -> Found:
    """x ∈ D^l has gap ≤ 8β(l−1)2⁻ˡ + ...: proved by enumeration, and nearly attained.

    The printed 4 is refuted by runs of the algorithm itself.
    """
    _is_maximum(form(4, 2, 2), s=2)  # x ∈ D^{l+1}: 4β2⁻ˡ + 2W(l), and 4β(l)2⁻ˡ is 8β(l)2^{−(l+1)}
    cases = [(2, 2), (8, 2), (4, 3)] + ([] if size == "ci" else [(32, 2), (8, 4)])
    ratios, beyond = [], []
    for m, l in cases:
        kept, gap, rewards = survivors(m, l)
        assert kept and rewards.min() >= 0 and rewards.max() <= 1 + 1e-12
        assert gap <= repaired_gap(1.0, l + 1) and gap > printed_gap(1.0, l + 1)
        ratios.append(gap / repaired_gap(1.0, l + 1))
        beyond.append(gap / printed_gap(1.0, l + 1))
    numbers = counter_lm_decision_set()
    assert numbers["its gap"] > numbers["printed bound, 4 beta / 8"] == printed_gap(1.0, 3)
    slack = {"printed_gap": max(beyond), "repaired_gap": hardest(ratios)}
    return Found(slack, "the sharp family, d = 9")


def _counter_arm(margin: float) -> tuple[bool, float]:
    """The counterexample's second arm: is it in D^3 of round 33, and its gap."""
    theta = np.array([0.1, 0.99])
    run = Reference(2, lambda l: 1.0, margin=margin)
    for k in range(1, 33):
        run.round(k, np.array([[10.0, 0.0]]), lambda x: float(x @ theta))
    D = np.array([[7.85, 0.0], [2.4, -0.24]])
    run.play(33, D)
    return len(run.seen) > 2 and 1 in run.seen[2], float((D[0] - D[1]) @ theta)


@formula("lower")
def dissertation_gap(beta: float, l: int) -> float:
    """The dissertation's bound on gaps in D^l, which a run of its own algorithm exceeds."""
    return 6 * beta * 2.0**-l


def later_six_beta(size: str = "ci") -> Found:
    """The dissertation's 6β(l)2⁻ˡ, under its own elimination rule 3β(l)2⁻ˡ.

    The same 33 rounds keep the same arm in D^3, with gap 0.7826 above 0.75. What the wider rule
    allows in D^{l+1} is 5β(l)2⁻ˡ + 2W(l), by the same enumeration.
    """
    kept, gap = _counter_arm(margin=3.0)
    assert kept and gap > dissertation_gap(1.0, 3)
    _is_maximum(form(5, 2, 2), s=3)
    ratios = [gap / dissertation_gap(1.0, 3)]
    for m, l in ((2, 2), (8, 2)):
        kept, gap, _ = survivors(m, l, margin=3.0)
        assert kept and gap > dissertation_gap(1.0, l + 1)
        ratios.append(gap / dissertation_gap(1.0, l + 1))
    return Found({"dissertation_gap": max(ratios)}, "the sharp family, d = 9")


def counter_lm_decision_set() -> dict[str, float]:
    """SupLinUCB itself keeps an arm that the lemma excludes: as printed, which eliminates arms
    behind by more than 2β(l)2⁻ˡ, and in the dissertation, 3β(l)2⁻ˡ. No noise, no misspecification.
    """
    import numpy as np

    theta = np.array([0.1, 0.99])  # B = 1, L = 10, R = zeta = 0, so lambda = 1 and beta(l) = 1
    lesson, D = np.array([[10.0, 0.0]]), np.array([[7.85, 0.0], [2.4, -0.24]])
    for margin in (2, 3):
        U, b = [np.eye(2) for _ in range(6)], [np.zeros(2) for _ in range(6)]
        for k in range(1, 34):  # 32 rounds with a single arm, then the two arms of D
            X = lesson if k < 33 else D
            alive, l, seen = np.arange(len(X)), 1, []
            while True:
                V, Y = np.linalg.inv(U[l]), X[alive]
                width = np.sqrt(np.einsum("ij,jk,ik->i", Y, V, Y))
                index = Y @ V @ b[l] + width
                seen.append(alive.tolist())
                if width.max() >= 2.0**-l:  # level l learns from its widest arm
                    x = Y[width.argmax()]
                    U[l], b[l] = U[l] + np.outer(x, x), b[l] + (x @ theta) * x
                    break
                if k <= 4**l * 2:  # the round ends
                    break
                alive, l = alive[index.max() - index <= margin * 2.0**-l], l + 1
        assert seen[2] == [0, 1]  # both arms are in D^3 of round 33
    gap = float((D[0] - D[1]) @ theta)
    return {"its gap": gap, "printed bound, 4 beta / 8": 0.5, "dissertation, 6 beta / 8": 0.75}


@formula()
def printed_second() -> Form:
    """Second line of the display."""
    return form(4, 2, 1)


def text_l754(size: str = "ci") -> Found:
    """The display in the proof of lm:decision-set: line 2 lacks a term, line 3 is right."""
    short = np.array([value - printed_second() for value in gaps(2)]).max(axis=0)
    assert (short == form(0, 0, 1)).all()  # one 4ζ√(dι₁) is missing, and nothing else
    _is_maximum(form(4, 2, 2), s=2)
    return ATTAINED


@formula("upper")
def ended() -> Form:
    """What a round that ends loses to the best arm left."""
    return form(2, 2, 2)


def aux_end_rounds(size: str = "ci") -> Found:
    """A round that ends at level l loses at most 2β2⁻ˡ + 2W(l) to the best survivor, attained; with
    what the best survivor itself may lose, 2(l − 1)W(l), that is 2l W(l).
    """
    _is_maximum(ended(), s=0)
    lm_optimal(size)
    for l in range(1, 40):
        assert (ended()[1:] + near_optimal(l, 1.0) == 2 * l).all()
    return ATTAINED


@formula("upper")
def last_bad_level(Delta: float) -> int:
    """l_Δ for β = 1: no sub-optimal arm is left beyond it."""
    l = 1
    while not l > math.log2(8 / Delta):
        l += 1
    return l


def _none_left_beyond() -> None:
    """Rounds late enough to climb past l_Δ find the bad arm gone from every level beyond it."""
    opening, D, theta = sharp_family(8)
    run, reached = Reference(9, lambda l: 1.0), 0
    top = last_bad_level(float((D[0] - D[1]) @ theta))
    for k, arms in enumerate(opening, 1):
        run.round(k, arms, lambda x: float(x @ theta))
    for k in range(4**top * 9 + 1, 4**top * 9 + 601):
        run.round(k, D, lambda x: float(x @ theta))
        assert all(1 not in alive for alive in run.seen[top:])
        reached += len(run.seen) > top
    assert reached


def text_l290(size: str = "ci") -> Found:
    """A sub-optimal arm can stay up to level l_Δ − 1, and none stays beyond l_Δ.

    The sharp family keeps a gap Δ a little below 4·2⁻ˡ in D^{l+1}; there l_Δ = l + 2. Half of the
    room in l_Δ is for misspecification: with it the last level is met.
    """
    for m, l in ((8, 2), (4, 3)):
        kept, Delta, _ = survivors(m, l)
        assert kept and l + 1 <= last_bad_level(Delta) == theory.level(
            theory.SupBeta(m + 1, 0.0), Delta
        )
        # beyond: 4β2⁻ˡ + 2lW(l) < Δ at l = l_Δ, where 2lW(l) < Δ/2
        top = last_bad_level(Delta)
        assert 4 * 2.0**-top + Delta / 2 < Delta
        assert not 4 * 2.0 ** -(top - 1) + Delta / 2 < Delta
    _none_left_beyond()
    slack = {"last_bad_level": 1.0, "theory.level": 1.0}
    return Found(slack, "4β2⁻ˡ + Δ/2 at l = l_Δ − 1 is Δ or more")


# --- the theorem ---------------------------------------------------------------------------------


@formula()
def both_parts(learnt: float, ended_: float) -> float:
    """The regret as the sum over learnt and over ended rounds."""
    return learnt + ended_


def text_l295(size: str = "ci") -> Found:
    """Regret is that of learnt rounds plus that of rounds that end; the latter can be all."""
    rng, theta = np.random.default_rng(7), np.array([0.8, 0.6])
    run, total, parts = Reference(2, lambda l: 1.0), 0.0, {True: 0.0, False: 0.0}
    for k, D in enumerate(contexts(rng, 400 if size == "ci" else 3000), 1):
        arm, _, learnt = run.round(k, D, lambda x: float(x @ theta))
        regret = float(np.max(D @ theta) - D[arm] @ theta)
        total += regret
        parts[learnt] += regret
    assert parts[False] > 0 and parts[True] > 0
    assert math.isclose(total, both_parts(parts[True], parts[False]))
    assert abs(counter_text_l295()["regret"] - 15.36) < 1e-9
    assert both_parts(0.0, 15.36) == 15.36
    return ATTAINED


def counter_text_l295() -> dict[str, float]:
    """128 rounds of SupLinUCB with regret in every one, and no level ever learns from any."""
    import numpy as np

    theta = np.array([1.0, 0.0])  # d = 2, lambda = beta = 1
    D, regret, learnt = np.array([[0.0, 0.124], [0.12, 0.0]]), 0.0, 0
    width = np.linalg.norm(D, axis=1)  # every level is empty, so U = I at all of them
    for k in range(1, 129):
        l = 1
        while width.max() < 2.0**-l and k > 8 * 4 ** (l - 1):
            assert np.ptp(width) <= 2 * 2.0**-l  # nothing is eliminated: the indices are the widths
            l += 1
        learnt += width.max() >= 2.0**-l
        regret += float(np.max(D @ theta) - D[width.argmax()] @ theta)
    assert learnt == 0
    return {"regret": regret, "sum over all levels' learnt rounds": 0.0, "rounds": 128}


@formula("upper")
def level_by_gap(d: int, beta: float, iota1: float, Delta: float) -> float:
    """Regret of the learnt rounds of one level, by the gap: at most this."""
    return 1024 * d * beta**2 * iota1 / Delta


def text_per_level(size: str = "ci") -> Found:
    """A regret that is 0 or at least Δ is at most its square over Δ; a level's count does the rest.

    Count times largest squared regret, 16d4^lι₁·(8β2⁻ˡ)²/Δ, is the same at every level, and is
    attained when all rounds of the level cost that much.
    """
    for d, Delta, beta in product((1, 16, 512), (0.5, 0.01), (1.0, 31.8)):
        for l in range(2, 12):
            count = 16 * d * 4**l * math.log(3 * 2**l)
            largest = 8 * beta * 2.0**-l
            bound = level_by_gap(d, beta, math.log(3 * 2**l), Delta)
            assert math.isclose(count * largest**2 / Delta, bound, rel_tol=1e-12)
    return ATTAINED


@formula("upper")
def error_about(beta: float, l: int) -> float:
    """Twice β(l)2⁻ˡ."""
    return 2 * beta * 2.0**-l


def text_level_error(size: str = "ci") -> Found:
    """(β(l) + 4ζ2^l√(dι₁))2⁻ˡ lies between β(l)2⁻ˡ and twice that, for l ≤ l_Δ and admissible ζ."""
    ratios = []
    for d, Delta, R, L, delta in _grid():
        c = theory.unknown_gap(d, Delta, R, L, 1.0, delta, repaired=True)
        for l in range(1, c.l_Delta + 1):
            beta, iota1 = float(c.radius(l)), math.log(3 * L) + l * math.log(2)
            error = beta * 2.0**-l + 4 * c.zeta_max * math.sqrt(d * iota1)
            assert error <= error_about(beta, l)
            ratios.append(error / error_about(beta, l))
    slack = {"error_about": hardest(ratios), "zeta_max": 2.0}
    return Found(slack, "l = l_Δ and ζ at its limit")


@formula()
def summand(rewards: np.ndarray, played: int) -> float:
    """r(x*) − r(x_k)."""
    return float(np.max(rewards) - rewards[played])


def text_l772(size: str = "ci") -> Found:
    """The summand is r(x_k*) − r(x_k) with the arm played: then sums agree with the package's."""
    import banditlib as bl

    X = np.array([[0.2, 0.9], [0.9, 0.1], [0.5, 0.5]])  # the best arm is not the first
    problem = bl.problems.FixedArms(X, X @ np.array([0.7, 0.4]))
    noise = np.random.default_rng(1).standard_normal((1, 200))
    run: Any = bl.simulate(
        problem, bl.SupLinUCB(1.0, 1.0), rounds=200, trials=1, noise=noise,
        record=("arms",), checkpoints=(200,), progress=False,
    )  # fmt: skip
    total = sum(summand(problem.reward, int(a)) for a in run.arms[0, 0, 0])
    assert total > 0 and math.isclose(total, float(run.regret.ravel()[-1]), rel_tol=1e-9)
    return ATTAINED


@formula()
def costs(gap: Fraction, Delta: Fraction) -> bool:
    """What is known of a sub-optimal arm's gap."""
    return gap >= Delta


def text_l769(size: str = "ci") -> Found:
    """A sub-optimal arm costs at least Δ: all reward tables of three arms in quarters.

    The arm that defines Δ costs exactly Δ; an optimal one costs less.
    """
    for rewards in product(range(5), repeat=3):
        gaps_ = [Fraction(max(rewards) - r, 4) for r in rewards]
        positive = [g for g in gaps_ if g > 0]
        for g in positive:
            assert costs(g, min(positive))
        assert not positive or not costs(Fraction(0), min(positive))
    return ATTAINED


def _grid() -> Iterator[tuple[int, float, float, float, float]]:
    """Settings (d, Δ, R, L, δ)."""
    gaps_, noise = (0.01, 0.18, 1.0), (0.0, 0.1, 1.0)
    yield from product((1, 2, 16, 512), gaps_, noise, (1.0, 10.0), (0.01, 0.2))


@about("theory.level", "Unknown.l_Delta")
def l_delta(size: str = "ci") -> Found:
    """l_Δ with the logarithm to base 2: then 4β2⁻ˡ < Δ/2, l_Δ ≥ 4 and 2^{l_Δ} ≤ 16β(l_Δ)/Δ.

    One level less would not do. Base e gives level 8 where 11 is needed.
    """
    for d, Delta, R, L, delta in _grid():
        for repaired in (False, True):
            beta = theory.SupBeta(d, R, L, 1.0, delta, repaired)
            l = theory.level(beta, Delta)
            assert 4 * beta(l) * 2.0**-l < Delta / 2
            assert l >= 4 and 2.0**l <= 16 * beta(l) / Delta
            assert not 4 * beta(l - 1) * 2.0 ** -(l - 1) < Delta / 2
    assert theory.level(theory.SupBeta(1, 0.0), 0.5) == 5  # 8/Δ = 16 exactly: 4 is not enough
    natural = theory.unknown_gap(16, 0.18, base=math.e)
    assert natural.l_Delta == 8 and 4 * natural.beta * 2.0**-8 > 0.4 > 0.18 / 2
    return ATTAINED


@formula("lower")
def admissible(l: int, d: int, iota1: float, Delta: float) -> float:
    """The condition 4 l ζ (1 + 4√(dι₁)) < Δ, solved for ζ."""
    return Delta / (4 * l * (1 + 4 * math.sqrt(d * iota1)))


def text_misspec_condition(size: str = "ci") -> Found:
    """The condition on ζ is 2 l_Δ W(l_Δ) < Δ/2: at its limit the two sides are equal."""
    for d, Delta, R, L, delta in _grid():
        c = theory.unknown_gap(d, Delta, R, L, 1.0, delta, repaired=True)
        zeta = admissible(c.l_Delta, d, float(c.radius.iota1(c.l_Delta)), Delta)
        W = zeta * (1 + 4 * math.sqrt(d * (math.log(3 * L) + c.l_Delta * math.log(2))))
        assert math.isclose(2 * c.l_Delta * W, Delta / 2, rel_tol=1e-12)
        assert 4 * c.beta * 2.0**-c.l_Delta + 2 * c.l_Delta * W < Delta
    return ATTAINED


@formula("upper")
def error_there(Delta: float) -> float:
    """Bound on 2β2⁻ˡ at l_Δ."""
    return Delta / 4


def text_l208(size: str = "ci") -> Found:
    """At level l_Δ the prediction error 2β2⁻ˡ lies between Δ/8 and Δ/4: it is of order Δ."""
    ratios = []
    for d, Delta, R, L, delta in _grid():
        c = theory.unknown_gap(d, Delta, R, L, 1.0, delta)
        error = 2 * c.beta * 2.0**-c.l_Delta
        assert Delta / 8 <= error < error_there(Delta)
        ratios.append(error / error_there(Delta))
    return Found({"error_there": hardest(ratios)}, "over the grid")


@formula()
def chain(T: int) -> tuple[Fraction, Fraction]:
    """The two terms 64dβTι₁ and 32 d l_Δ T²ι₁W with 2l_ΔW = Δ/2, in units of dβ²ι₁/Δ, T = 16."""
    return Fraction(64 * T), Fraction(32, 4) * T**2


def num_l777(size: str = "ci") -> Found:
    """The printed chain: T ≤ 16β/Δ makes its first term 1024, not 512, and the sum 3072.

    T is 2^{l_Δ}, and 16β/Δ is attained in the limit; with the geometric sums up to l_Δ − 1 done
    exactly, Σ2^l = T − 2 and Σ4^l = (T² − 4)/3, the chain would end at 5120/3.
    """
    first, second = chain(16)
    assert first == 1024 and second == 2048 and first + second == 3072 > 2560
    beta = theory.SupBeta(1, 0.0)
    Delta = 8 / 16 * (1 + 1e-12)
    assert abs(2.0 ** theory.level(beta, Delta) / (16 / Delta) - 0.5) < 0.01  # T in (8β/Δ, 16β/Δ]
    Delta = 8 / 16 * (1 - 1e-12)
    assert abs(2.0 ** theory.level(beta, Delta) / (16 / Delta) - 1) < 0.01
    assert sum(2**j for j in range(1, 20)) == 2**20 - 2
    assert first + second / 3 == Fraction(5120, 3) < 2560
    return ATTAINED


def sums(l: int, c: Fraction) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """The four finite sums of the proof at l_Δ = l, in units of (dβι₁, dι₁M, dβ, dM)."""
    learnt_beta = c * sum(4**j * Fraction(8, 2**j) for j in range(1, l + 1))
    learnt_M = c * sum(4**j * Fraction(j - 1, l) for j in range(2, l + 1))
    count = [4 if j == 1 else 3 * 4 ** (j - 1) for j in range(1, l)]
    end_beta = sum(n * Fraction(2, 2**j) for j, n in enumerate(count, 1))
    end_M = sum(n * Fraction(j, l) for j, n in enumerate(count, 1))
    return learnt_beta, learnt_M, Fraction(end_beta), Fraction(end_M)


def worst_constant(c: Fraction) -> float:
    """Largest value of the proof's sums in units of dβ²ι₁/Δ, at T = 16β/Δ, M = Δ/2."""
    worst = 0.0
    for l in range(4, 60):
        T = 2**l
        learnt_beta, learnt_M, end_beta, end_M = sums(l, c)
        unit = Fraction(16, T)  # dβ²ι₁/Δ is dβι₁·T/16
        learnt = (learnt_beta + learnt_M * Fraction(8, T)) * unit
        ended_ = (end_beta + end_M * Fraction(8, T)) * unit
        worst = max(worst, float(learnt) + float(ended_) / math.log(3 * T))
    return worst


def _bounds(name: str) -> float:
    """The constant in front of dβ²ι₁/Δ of one of the stated bounds, at some setting."""
    c = theory.unknown_gap(3, 0.2, 0.5, 2.0, 1.5, 0.05, repaired=True)
    return float(getattr(c, name)) * 0.2 / (3 * c.beta**2 * c.iota1)


def thm_main_sup(size: str = "ci") -> Found:
    """The exact sums of the full proof stay below the stated constants, at every l_Δ up to 60.

    With the sharper count per level the worst is 1004 at finite l and 1003 in the limit, to which
    the rounds that end add less than 15; with the printed count 2560 does not suffice, 6842 does.
    A run with the theorem's parameters stops losing.
    """
    sharp, loose = worst_constant(Fraction("2.35")), worst_constant(Fraction(16))
    assert sharp <= _bounds("bound_repaired") <= _bounds("bound_printed")
    assert _bounds("bound_printed") < loose <= _bounds("bound_repaired_loose")
    lost, late, bound = _run_of_the_theorem()
    assert 0 < lost <= bound and late == 0
    slack = {
        "bound_printed": _bounds("bound_printed") / sharp,
        "bound_repaired_loose": _bounds("bound_repaired_loose") / loose,
        "bound_repaired": _bounds("bound_repaired") / sharp,
        "Unknown.bound": 1.0, "zeta_max": 100.0,
    }  # fmt: skip
    return Found(slack, "the proof's own sums, T = 16β/Δ and ζ at its limit")


def aux_r3(size: str = "ci") -> Found:
    """Our constant 1018: the exact sums reach 1003 of it, so that 1000 would be too small."""
    sharp = worst_constant(Fraction("2.35"))
    assert sharp <= _bounds("bound_repaired")
    return Found({"bound_repaired": _bounds("bound_repaired") / sharp, "Unknown.bound": 1.0},
                 "the proof's own sums")  # fmt: skip


def _run_of_the_theorem() -> tuple[float, float, float]:
    """Regret, regret of the last quarter, and bound of a run with the theorem's parameters."""
    d, Delta = 4, 0.25
    bound = theory.unknown_gap(d, Delta, R=0.0, repaired=True)
    X, r = needle(d, Delta, 0.9 * bound.zeta_max)
    value = {x.tobytes(): float(reward) for x, reward in zip(X, r, strict=True)}
    run, lost = Reference(d, lambda l: 1.0), []
    for k in range(1, 2001):
        arm, *_ = run.round(k, X, lambda x: value[x.tobytes()])
        lost.append(float(r.max() - r[arm]))
    return sum(lost), sum(lost[1500:]), bound.bound_repaired


def later_constant(size: str = "ci") -> Found:
    """2^14 is above what a full proof gives with the paper's own count per level; 2560 is not.

    Nothing else differs: the two bounds are as 2^14 to 2560 at any d, Δ and noise.
    """
    loose = worst_constant(Fraction(16))
    for d, Delta, R in ((1, 0.5, 1.0), (8, 0.2, 0.3), (64, 0.01, 2.0)):
        both = theory.unknown_gap(d, Delta, R)
        assert math.isclose(both.bound_later / both.bound_printed, 2**14 / 2560, rel_tol=1e-12)
    assert _bounds("bound_printed") < loose <= _bounds("bound_later")
    slack = {"bound_later": _bounds("bound_later") / loose, "bound_printed": math.inf}
    return Found({**slack, "Unknown.bound": 1.0}, "the proof's own sums, printed count per level")


# --- remarks -------------------------------------------------------------------------------------


@formula("upper")
def beta_order(d: int, l: np.ndarray) -> np.ndarray:
    """β(l) is at most this at R = L = B = 1, δ = 0.01."""
    return 5.6 * np.sqrt(d * l)


@formula("upper")
def level_order(d: int, Delta: float) -> float:
    """l_Δ is at most this at R = L = B = 1, δ = 0.01."""
    return 8.5 + 1.15 * math.log2(d**0.5 / Delta)


def rem_l250(size: str = "ci") -> Found:
    """β(l) = O(√(dl)) and l_Δ = O(log(d/Δ)), both ways, and the bound is of order d²/Δ; neither β
    nor λ asks for Δ or ζ.
    """
    l, ratios, levels = np.arange(1, 400), [], []
    for d in (1, 16, 1024, 10**6):
        ratio = theory.SupBeta(d)(l) / beta_order(d, l)
        assert ratio.max() <= 1 and ratio.min() > 0.3
        ratios.append(float(ratio.max()))
        for Delta in (0.5, 1e-2, 1e-4, 1e-8):
            found = theory.unknown_gap(d, Delta).l_Delta
            assert found <= level_order(d, Delta) and found >= math.log2(d**0.5 / Delta)
            levels.append(found / level_order(d, Delta))
    fields = set(theory.SupBeta.__dataclass_fields__)
    assert fields == {"d", "R", "L", "B", "delta", "repaired"}

    def bound(d: int, Delta: float) -> float:  # its constant apart
        found = theory.unknown_gap(d, Delta)
        return d * found.beta**2 * found.iota1 / Delta

    is_square_over_gap(bound)
    slack = {"beta_order": hardest(ratios), "level_order": hardest(levels)}
    return Found(slack, "l = 1, d large")


@formula("upper")
def without_condition(c: float, iota1: float, beta: float, dK: float, S: int, W: float, K: int) -> (
    float
):  # fmt: skip
    """(32cι₁+6) β√(dK) + 2S W K."""
    return (32 * c * iota1 + 6) * beta * math.sqrt(dK) + 2 * S * W * K


def rem_l255(size: str = "ci") -> Found:
    """Without any condition on ζ: (32cι₁+6)β√(dK) + 2S W(S) K; the sums of the proof, exactly.

    With the radius of the theorem, β ~ √(dl), the first term is of order d√K, not √(dK).
    """
    c, ratios = Fraction("2.35"), []
    for d, j in product((1, 3, 16), range(2, 18)):
        S, K = j, 4 ** (j - 1) * d + 1  # the fewest rounds that reach level S, where 2^S is 2√(K/d)
        learnt = c * sum(Fraction(8 * 4**l, 2**l) for l in range(1, S + 1))
        ended_ = 4 + sum(Fraction(3 * 4 ** (l - 1) * 2, 2**l) for l in range(2, S + 1))
        for iota1, beta, W in ((2.0, 1.0, 0.0), (40.0, 7.0, 0.0), (2.0, 1.0, 0.3)):
            total = float(learnt) * d * iota1 * beta + float(ended_) * d * beta + 2 * S * W * K
            bound = without_condition(2.35, iota1, beta, d * K, S, W, K)
            assert total <= bound
            ratios.append(total / bound)
        zeta, n = 0.01, [4 * d, *(3 * 4 ** (l - 1) * d for l in range(2, S))]
        bias = [zeta * (1 + 4 * math.sqrt(d * math.log(3 * 2**l))) for l in range(1, S + 1)]
        n.append(K - sum(n))
        paid = sum(rounds * 2 * l * bias[l - 1] for l, rounds in enumerate(n, 1))
        most = without_condition(2.35, 1.0, 0.0, d * K, S, bias[-1], K)  # β = 0: only this term
        assert paid <= most
        assert most <= 13 * zeta * math.sqrt(d * math.log(3 * 2**S)) * K * math.log(K)
    orders = []
    for d in (64, 4096, 262_144):
        K = 10**6 * d
        beta = float(theory.SupBeta(d, repaired=True)(10))
        orders.append(beta * math.sqrt(d * K) / (d * math.sqrt(K)))
    assert max(orders) / min(orders) < 1.2
    slack = {"without_condition": hardest(ratios), "SupBeta": 1.0}
    return Found(slack, "K = 4^(S−1)d + 1")


@formula()
def remark_ratios(ds: float, sup: float, ds_beta: float, sup_beta: float) -> tuple[float, float]:
    """SupLinUCB's coefficient of dβ²/Δ over DS-OFUL's, and the bounds themselves."""
    return (sup / sup_beta**2) / (ds / ds_beta**2), sup / ds


def rm_3(size: str = "ci") -> Found:
    """At d = 16, Δ = 0.18: SupLinUCB's coefficient of dβ²/Δ is 1.79 times, its bound 0.26 times.

    Against the repaired bound of DS-OFUL its repaired bound is 7 times larger. DS-OFUL's threshold
    is level 13.9, where l_Δ is 11.
    """
    ds, sup = theory.known_gap(16, 0.18), theory.unknown_gap(16, 0.18)
    coefficient, bound = remark_ratios(ds.bound_printed, sup.bound_printed, ds.beta, sup.beta)
    assert abs(coefficient - 1.786) < 0.001 and abs(bound - 0.2569) < 0.0005
    full = theory.unknown_gap(16, 0.18, repaired=True)
    assert abs(full.bound_repaired / ds.bound_gap - 6.97) < 0.02
    assert sup.l_Delta == 11 and abs(-math.log2(ds.Gamma) - 13.88) < 0.01
    slack = {"bound_printed": 1.0, "bound_repaired": 1.0, "bound_gap": 1.0}
    return Found(slack, "the paper's own setting")
