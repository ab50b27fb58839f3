"""Checks for the chapter "Finitely many selections".

Scalar inequalities are shown for all arguments by ball arithmetic on a compact range and a lower
bound on the tail; identities are polynomial identities; the adversary is played in exact integers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb

from banditlib import theory
from book.claims.checks.exact import ball, exp, gens, hardest, log, positive
from book.claims.formula import ATTAINED, Found, formula, together

# --- the elliptical potential --------------------------------------------------------------------


@formula("upper")
def log_cap(q: Any) -> Any:
    """What min{1, q} is compared with."""
    return 2 * log(1 + q)


def capped_sum(points: list[Fraction], axes: list[int], lam: Fraction, d: int) -> Fraction:
    """Σ min{1, ‖φ‖²} along coordinate axes, exactly; `points` are the squared lengths."""
    U, total = [lam] * d, Fraction(0)
    for square, i in zip(points, axes, strict=True):
        total += min(Fraction(1), square / U[i])
        U[i] += square
    return total


def lm_11(size: str = "ci") -> Found:
    """min{1,q} ≤ 2 log(1+q) for all q ≥ 0, and det(U + φφᵀ) = det U (1 + φᵀU⁻¹φ).

    With the determinant–trace inequality (its own row) these two are the whole proof. The bound
    is tried on exact sequences along axes; q = 1 is where it is closest.
    """
    # On [0, 1]: 2 log(1+q) − q is concave and vanishes at 0, so its sign at 1 decides; beyond 1
    # the left side is constant and the right side increases.
    assert abs(log_cap(arb(0))) < 1e-30 and log_cap(arb(1)) > 1
    assert positive(lambda q: log_cap(q) - q, 0.01, 1.0)
    a, b, e, x, y = gens("a b e x y")
    grown = (a + x * x) * (e + y * y) - (b + x * y) * (b + x * y)
    assert grown == a * e - b * b + (e * x * x - 2 * b * x * y + a * y * y)
    return potential_tried()


def potential_tried() -> Found:
    """The printed right-hand side against exact sequences, L and λ far from 1 included."""
    ratios = []
    for d, L, lam in product((1, 2, 5), (1, 3), (Fraction(1), Fraction(9), Fraction(1, 100))):
        for n in (*range(1, 8), 40):
            axes = [k % d for k in range(n)]
            total = capped_sum([Fraction(L * L)] * n, axes, lam, d)
            bound = float(theory.potential_bound(n, d, float(L), float(lam)))
            assert float(total) <= bound
            ratios.append(float(total) / bound)
    slack = hardest(ratios)
    where = "orthogonal arms of squared width 1: 2 log 2 ≈ 1.39"
    return Found({"potential_bound": slack, "log_cap": slack}, where)


def eq_upperbounds(size: str = "ci") -> Found:
    """The potential lemma with the kept rounds as its sequence: frugal and greedy ones, exactly."""
    ratios = []
    for d, Gamma2, LB2 in product((1, 3), (Fraction(1), Fraction(1, 9)), (1, 16, 10**4)):
        lengths = kept_squares(Gamma2, Fraction(LB2))
        points = [s for s in lengths for _ in range(d)]
        axes = [i for _ in lengths for i in range(d)]
        total = capped_sum(points, axes, Fraction(1), d)
        bound = float(theory.potential_bound(len(points), d, math.sqrt(LB2)))
        assert float(total) <= bound
        ratios.append(float(total) / bound)
    greedy = potential_tried()
    assert greedy.shown is not None
    return Found({"potential_bound": min(hardest(ratios), greedy.shown)}, "arms of squared width 1")


def eq_lowerbounds(size: str = "ci") -> Found:
    """Σ min{1, q} ≥ nΓ² for kept rounds (q ≥ Γ²); equal for the frugal ones, false for Γ > 1."""
    for Gamma2, LB2 in product((Fraction(1), Fraction(1, 4), Fraction(1, 25)), (1, 7, 1000)):
        lengths = kept_squares(Gamma2, Fraction(LB2))
        total = capped_sum(lengths, [0] * len(lengths), Fraction(1), 1)
        assert total == kept_sum(len(lengths), Gamma2)  # every width is Γ exactly
        longer = [min(2 * s, Fraction(LB2)) for s in lengths]
        assert capped_sum(longer[:1], [0], Fraction(1), 1) >= kept_sum(1, Gamma2)
    square = Fraction(9)  # Γ = 3 > 1, one arm of squared width 9: the capped sum is 1
    assert capped_sum([square], [0], Fraction(1), 1) < kept_sum(1, square)
    return ATTAINED


@formula("lower")
def kept_sum(n: int, Gamma2: Fraction) -> Fraction:
    """The least Σ min{1, ‖x‖²} of n kept rounds."""
    return n * Gamma2


# --- from the two bounds to a count --------------------------------------------------------------


@formula("upper")
def xlogx_from(a: Any, b: Any) -> Any:
    """From here on x ≥ a log x + b."""
    return 4 * a * log(2 * a) + 2 * b


def _root(a: float, b: float) -> float:
    """Largest x with x ≤ a log x + b, or 0 if there is none."""
    x = 4 * a * math.log(2 * a) + 2 * b + 3 * a
    for _ in range(200):
        x = a * math.log(x) + b if x > 0 and a * math.log(x) + b > 0 else 0.0
    return x


def lm_xlogx(size: str = "ci") -> Found:
    """x = 4a log 2a + 2b gives x > a log x + b, for all a ≥ 1 and b ≥ 0.

    In x the difference increases once x > a, in b it increases because x ≥ 2a. So b = 0 decides,
    where with u = log 2a only (x/a) − log x > 0 is left; intervals up to u = 8, a tangent beyond.
    """

    def room(u: arb) -> arb:
        a = exp(u) / 2
        x = xlogx_from(a, arb(0))
        return x / a - log(x)

    assert positive(room, 0.69, 8.0, 2.0**-24)
    for a in (arb(1), arb(3), arb(10**6)):
        assert xlogx_from(a, arb(0)) > 2 * a
        assert (xlogx_from(a, arb(5)) - xlogx_from(a, arb(0)) - 10).contains(0)
    # beyond u = 8: x/a = 4u and log x = log(a) + log(4u) ≤ u + log(32) + (u − 8)/8
    for u in (8, 20, 400):
        a = exp(arb(u)) / 2
        x = xlogx_from(a, arb(0))
        assert x / a - log(a) > log(arb(32)) + (u - 8) / arb(8) and x / a >= 4 * u - 1e-9
    ratios = [
        _root(a, b) / float(xlogx_from(a, b))
        for a, b in product((1.0, 1.5, math.e, 5.0, 40.0, 1e6), (0.0, 0.1, 1.0, 30.0, 1e9))
    ]
    return Found({"xlogx_from": hardest(ratios)}, "the largest root, over a grid of a and b")


@formula("upper")
def log1p_from(a: Any) -> Any:
    """From here on x ≥ log(1 + ax)."""
    return 4 * log(2 * a) + 1 / a


def _log1p_root(a: float) -> float:
    """Largest x with x ≤ log(1 + ax)."""
    x = 4 * math.log(2 * a) + 3
    for _ in range(300):
        x = math.log1p(a * x)
    return x


def col_xlogx(size: str = "ci") -> Found:
    """x = 4 log 2a + 1/a gives x > log(1 + ax); beyond it x − log(1+ax) increases, as x > 1."""

    def room(u: arb) -> arb:
        a = exp(u) / 2
        x = log1p_from(a)
        return x - log(1 + a * x)

    assert positive(room, 0.6931, 8.0, 2.0**-24)
    assert log1p_from(arb(1)) > 1
    # tail: x ≤ 4u + 1 and log(1+ax) ≤ u + log(4u + 2) ≤ u + log(34) + (u − 8)/8
    for u in (8, 30, 500):
        x = log1p_from(exp(arb(u)) / 2)
        assert x > u + log(arb(34)) + (u - 8) / arb(8) and x <= 4 * u + 1
    ratios = [_log1p_root(a) / float(log1p_from(a)) for a in (1.0, 1.2, 2.0, 9.0, 1e3, 1e9, 1e60)]
    return Found({"log1p_from": hardest(ratios)}, "the largest root, over a grid of a")


@formula()
def reorganised(Gamma2: Any, L2: Any, lam: Any, n: Any, d: Any) -> tuple[Any, Any]:
    """(2L²/(Γ²λ))·(Γ²n/(2d)) as numerator and denominator."""
    return 2 * L2 * Gamma2 * n, Gamma2 * lam * 2 * d


def eq_thres(size: str = "ci") -> Found:
    """The argument of the logarithm, (2L²/(Γ²λ))·z with z = Γ²n/(2d), is nL²/(dλ)."""
    L, G, lam, n, d = gens("L G lam n d")
    numerator, denominator = reorganised(G**2, L**2, lam, n, d)
    assert numerator * (d * lam) == (n * L**2) * denominator
    return ATTAINED


@formula()
def both_forms(y: Any) -> tuple[Any, Any]:
    """4 log(4y²) + 1 and 8 log(2e^{1/8}y), y = LB/Γ."""
    return 4 * log(4 * y * y) + 1, 8 * log(2 * exp(1 / arb(8)) * y)


@formula("upper")
def rounded(y: Any) -> Any:
    return 8 * log(3 * y)


def text_l521(size: str = "ci") -> Found:
    """4 log(4y²) + 1 = 8 log(2e^{1/8} y) < 8 log(3y); closest at y = 1 (Γ = LB = 1)."""
    ratios = []
    for y in (arb(1), arb("1.7"), arb(40), arb(10) ** 30):
        left, right = both_forms(y)
        assert abs(left - right) < 1e-9 and left < rounded(y)
        ratios.append(float(left) / float(rounded(y)))
    return Found(
        {"rounded": hardest(ratios[:1])}, "y = 1; for large y the two are equal to leading order"
    )


# --- the count -----------------------------------------------------------------------------------


def kept_squares(Gamma2: Fraction, LB2: Fraction) -> list[Fraction]:
    """Squared lengths (times B²) of the frugal adversary's arms: width exactly Γ, while allowed."""
    weight, out = Fraction(1), []
    while Gamma2 * weight <= LB2:
        out.append(Gamma2 * weight)
        weight *= 1 + Gamma2
    return out


def frugal_count(Gamma2: Fraction, LB2: Fraction) -> int:
    """Kept rounds of the frugal adversary on one axis, exactly (Γ² and L²B² rational)."""
    return len(kept_squares(Gamma2, LB2))


GRID = [
    (Gamma2, log2_LB)
    for Gamma2 in (Fraction(1), Fraction(1, 4), Fraction(1, 16))
    for log2_LB in (0, 1, 10, 100)
]


def lm_finite(size: str = "ci") -> Found:
    """z ≤ log(1+az) with a = 2L²B²/Γ² forces z ≤ 8 log(3LB/Γ): the corollary and 2e^{1/8} < 3.

    The frugal adversary is then played against the printed count, in one dimension and in three.
    """
    parts = [col_xlogx(size), text_l521(size), eq_thres(size)]
    ratios = []
    for Gamma2, log2_LB in GRID:
        Gamma, LB = math.sqrt(Gamma2), 2.0**log2_LB
        count = frugal_count(Gamma2, Fraction(4) ** log2_LB)
        for d, L, B in ((1, LB, 1.0), (3, 1.0, LB)):
            bound = float(theory.selections(d, Gamma, L, B))
            assert d * count <= bound
            ratios.append(d * count / bound)
        # the printed count really exceeds the largest z that the two bounds allow
        z = _log1p_root(2 * LB**2 / float(Gamma2))
        assert 2 * z / float(Gamma2) <= float(theory.selections(1, Gamma, LB))
        ratios.append(2 * z / float(Gamma2) / float(theory.selections(1, Gamma, LB)))
    own = Found({"selections": hardest(ratios)}, "the root of the two bounds combined")
    return together(own, *parts)


def text_uniform_pac(size: str = "ci") -> Found:
    """One run, all accuracies: for every g the rounds of width ≥ g stay below the count for g.

    Arms of width exactly g, for one g after the other down to Γ, as many as fit into length L: each
    g is counted with all that came before it. The longest arms make the first g the hardest.
    """
    ratios = []
    for start, log2_LB in product((1.0, 0.25, 0.04, 0.0025), (0, 3, 40)):
        widths, weight, LB2 = [], 1.0, 4.0**log2_LB
        grid = [start / 2.0**j for j in range(6)]  # squared widths, the last one is Γ²
        for g2 in grid:
            while g2 * weight <= LB2 * (1 + 1e-12):
                widths.append(g2)
                weight *= 1 + g2
        for g2 in grid:
            counted = sum(q >= g2 * (1 - 1e-12) for q in widths)
            for d, L, B in ((1, 2.0**log2_LB, 1.0), (3, 1.0, 2.0**log2_LB)):  # alike on each axis
                bound = float(theory.selections(d, math.sqrt(g2), L, B))
                assert d * counted <= bound
                ratios.append(d * counted / bound)
    return Found({"selections": hardest(ratios)}, "arms of width exactly g, Γ = 1, LB = 2⁴⁰")


@formula("upper")
def kappa(half: bool) -> arb:
    """κ of the sharp count, for Γ ≤ 1 and for Γ ≤ ½."""
    return ball(2.097) if half else ball(2.13)


def aux_sharp(size: str = "ci") -> Found:
    """n log(1+Γ²) ≤ d log(1 + nL²B²/d) forces n ≤ κ d log(3LB/Γ)/log(1+Γ²).

    With v = log(9L²B²/Γ²): e^{(κ/2−1)v} > e^{−v} + κc₀v/18, intervals up to the tail, a tangent
    beyond. Then the adversary, and the root of what the determinant says.
    """
    for half, c0, lowest, lo, tail in (
        (False, 1 / arb(2).log(), arb(9).log(), 2.19, 4.0),
        (True, arb("0.25") / arb("1.25").log(), arb(36).log(), 3.58, 6.0),
    ):
        k = kappa(half)
        assert arb(lo) < lowest
        assert positive(
            lambda v, k=k, c0=c0: ((k / 2 - 1) * v).exp() - (-v).exp() - k * c0 * v / 18, lo, tail
        )
        slope = arb(1).exp() * (k / 2 - 1) - k * c0 / 18  # e^{μv} ≥ eμv
        assert slope > 0 and slope * tail > arb(-tail).exp()
    ratios, simple, roots = [], [], []
    for Gamma2, log2_LB in GRID:
        Gamma, LB = math.sqrt(Gamma2), 2.0**log2_LB
        count = frugal_count(Gamma2, Fraction(4) ** log2_LB)
        L, B = LB**0.25, LB**0.75
        root = theory.selections_root(2, Gamma, L, B)
        sharp = float(theory.selections_sharp(2, Gamma, L, B))
        rough = float(theory.selections_sharp(2, Gamma, L, B, simple=True))
        assert 2 * count <= root + 1e-9 and root <= sharp <= rough
        largest = root * math.log1p(Gamma2) - 2 * float(theory._log1p_exp(
            math.log(root) + 2 * math.log(LB) - math.log(2)))  # fmt: skip
        assert abs(largest) < 1e-9 * root
        ratios.append(root / sharp)
        simple.append(root / rough)
        roots.append(2 * count / root)
    ratios.append(theory.selections_root(1, 1.0, 1.0) / float(theory.selections_sharp(1, 1.0)))
    tight = {"kappa": 1.07, "selections_sharp": hardest(ratios), "selections_root": hardest(roots)}
    return Found(tight, "κ cannot go below 2; Γ = 1, LB large")


def aux_frugal(size: str = "ci") -> Found:
    """The adversary is kept ⌊2 log(LB/Γ)/log(1+Γ²)⌋ + 1 times per axis, and nobody more often.

    In one dimension U is multiplied by at least 1 + Γ² in each kept round and an arm of length at
    most L is kept only while Γ²U ≤ L². Every other schedule of widths (tried: all words of three
    widths, exactly) is kept at most as often.
    """
    for Gamma2 in (Fraction(1), Fraction(1, 3), Fraction(1, 100)):
        for LB2 in (Fraction(1), Fraction(7), Fraction(10**6), Fraction(10**30)):
            assert frugal_count(Gamma2, LB2) == frugal_formula(Gamma2, LB2)
    for Gamma2, LB2 in ((Fraction(1, 2), Fraction(9)), (Fraction(1), Fraction(50))):
        best = 0
        for word in product((Fraction(1), Fraction(3, 2), Fraction(3)), repeat=5):
            U, kept = Fraction(1), 0
            for factor in word:
                square = factor * Gamma2 * U
                if square <= LB2:
                    U, kept = U + square, kept + 1
            while Gamma2 * U <= LB2:
                U, kept = U * (1 + Gamma2), kept + 1
            best = max(best, kept)
        assert best == frugal_formula(Gamma2, LB2)
    return ATTAINED


@formula()
def frugal_formula(Gamma2: Fraction, LB2: Fraction) -> int:
    return math.floor(math.log(LB2 / Gamma2) / math.log(1 + Gamma2)) + 1
