"""Checks for the chapter "Finitely many selections".

Scalar inequalities are shown for all arguments by ball arithmetic on a compact range and a lower
bound on the tail; identities are polynomial identities; the adversary is played in exact integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb, fmpq_mpoly_ctx


def positive(f: Callable[[arb], arb], lo: float, hi: float, finest: float = 2.0**-20) -> bool:
    """Whether ball arithmetic shows f > 0 on all of [lo, hi], halving until every ball is clear."""
    todo = [(lo, hi)]
    while todo:
        a, b = todo.pop()
        if not f(arb(a).union(arb(b))) > 0:
            if b - a < finest:
                return False
            todo += [(a, (a + b) / 2), ((a + b) / 2, b)]
    return True


def _arb(x: float) -> arb:
    """The decimal number that `x` prints as, enclosed."""
    return arb(repr(float(x)))


def lm_11(size: str = "ci", c: float = 2.0) -> None:
    """min{1,q} ≤ c log(1+q) for all q ≥ 0, and det(U + φφᵀ) = det U (1 + φᵀU⁻¹φ).

    With the determinant–trace inequality (its own row) these two are the whole proof.
    """
    c_ball = _arb(c)
    # On [0, 1]: c log(1+q) − q is concave and vanishes at 0, so its sign at 1 decides; beyond 1
    # the left side is constant and the right side increases.
    assert c_ball * arb(2).log() - 1 > 0
    a, b, e, x, y = fmpq_mpoly_ctx.get(["a", "b", "e", "x", "y"], "lex").gens()
    det = a * e - b * b
    grown = (a + x * x) * (e + y * y) - (b + x * y) * (b + x * y)
    assert grown == det + (
        e * x * x - 2 * b * x * y + a * y * y
    )  # det U · (1 + φᵀ adj(U) φ / det U)
    # exact sequences that repeat one axis, against the right-hand side
    for lam in (Fraction(1), Fraction(1, 100), Fraction(1, 10**6)):
        total, U = Fraction(0), lam
        for n in range(1, 60):
            total += min(Fraction(1), 1 / U)
            U += 1
            bound = c_ball * (1 + arb(n) / _ratio(lam)).log()
            assert _ratio(total) <= bound


def _ratio(q: Fraction) -> arb:
    return arb(q.numerator) / arb(q.denominator)


def lm_xlogx(size: str = "ci", c: float = 4.0) -> None:
    """x = c a log 2a + 2b gives x > a log x + b.

    With u = log 2a and b = 0 this reads (c−1)u − log(cu/2) > 0 for u ≥ log 2.
    The derivative in b, 1 − 2a/x, is positive because x ≥ 4a log 2 > 2a; in x, 1 − a/x, likewise.
    """
    _tangent()
    k = _arb(c)
    assert positive(lambda u: (k - 1) * u - (k * u / 2).log(), 0.69, 8.0)
    assert k * arb(2).log() > 2
    # tail: log(cu/2) = log(8c/2) + log(u/8) ≤ log(4c) + u/8 − 1
    assert k - 1 - arb("0.125") > 0
    assert (k - 1 - arb("0.125")) * 8 > (4 * k).log() - 1


def _tangent() -> None:
    """The tangent behind both forms: t − 1 − log t > 0 for t ≠ 1, here away from the contact point.

    Near t = 1 the derivative 1 − 1/t has the sign of t − 1, and keeps it everywhere.
    """
    assert positive(lambda t: t - 1 - t.log(), 1.01, 8.0)
    assert positive(lambda t: t - 1 - t.log(), 0.01, 0.99)


def col_xlogx(size: str = "ci", c: float = 4.0) -> None:
    """x = c log 2a + 1/a gives x > log(1+ax); with u = log 2a one variable is left.

    ax = c u e^u/2 + 1, so the claim is (c−1)u + 2e^{−u} − log(2e^{−u} + cu/2) > 0 for u ≥ log 2.
    Beyond the threshold x − log(1+ax) increases, because x > 1 > 1 − 1/a there.
    """
    k = _arb(c)
    assert positive(
        lambda u: (k - 1) * u + 2 * (-u).exp() - (2 * (-u).exp() + k * u / 2).log(), 0.69, 8.0
    )
    assert k * arb(2).log() > 1
    # tail u ≥ 8: log(2e^{−u} + cu/2) ≤ log(1 + cu/2) ≤ log(1 + 4c) + (u − 8)/8
    assert (k - 1) * 8 > (1 + 4 * k).log() and k - 1 > arb("0.125")


def eq_lowerbounds(size: str = "ci", cap: float = 1.0) -> None:
    """min{1, q} ≥ min{1, Γ²} for q ≥ Γ² by monotonicity, and min{1, Γ²} = Γ² for all Γ ≤ `cap`.

    The second holds for every Γ in (0, cap] if and only if it holds at the largest, Γ = cap.
    """
    largest = Fraction(cap) ** 2
    assert min(Fraction(1), largest) == largest


def eq_upperbounds(size: str = "ci", c: float = 2.0) -> None:
    """The potential lemma with the kept rounds as its sequence."""
    lm_11(size, c)


def eq_thres(size: str = "ci", c: int = 2) -> None:
    """(c L²/(Γ²λ)) · (Γ²n/(2d)) = nL²/(dλ), cleared of denominators, as a polynomial identity."""
    L, G, lam, n, d = fmpq_mpoly_ctx.get(["L", "G", "lam", "n", "d"], "lex").gens()
    left_num, left_den = c * L**2 * G**2 * n, G**2 * lam * 2 * d
    right_num, right_den = n * L**2, d * lam
    assert left_num * right_den == right_num * left_den


def text_l521(size: str = "ci", c: float = 3.0) -> None:
    """4 log(4y²) + 1 = 8 log(2e^{1/8} y) and 2e^{1/8} < 3; y = LB/Γ cancels on both sides."""
    # 4 log 4 + 8 log y + 1 = 8 (log 2 + 1/8 + log y): the constants agree exactly
    assert (4 * arb(4).log() + 1 - 8 * (arb(2).log() + arb("0.125"))).contains(0)
    assert 2 * arb("0.125").exp() < _arb(c)


def frugal_count(Gamma2: Fraction, LB2: Fraction) -> int:
    """Kept rounds of the frugal adversary on one axis, exactly (Γ² and L²B² rational)."""
    weight, kept = Fraction(1), 0  # U in units of B⁻²
    while Gamma2 * weight <= LB2:
        weight *= 1 + Gamma2
        kept += 1
    return kept


def lm_finite(size: str = "ci", c: float = 16.0) -> None:
    """The printed bound and the sharper one for all arguments; the adversary stays below `c`.

    Printed: z ≤ log(1+az) with a ≥ 2 forces z ≤ 8 log(3LB/Γ): the corollary and 2e^{1/8} < 3.
    """
    col_xlogx(size)
    text_l521(size)
    finite_sharp(size)
    for Gamma2 in (Fraction(1), Fraction(1, 4), Fraction(1, 16)):
        for log2_LB in (0, 1, 10, 100):
            count = frugal_count(Gamma2, Fraction(4) ** log2_LB)
            log_term = arb(3).log() + log2_LB * arb(2).log() - _ratio(Gamma2).log() / 2
            assert count <= _arb(c) / _ratio(Gamma2) * log_term


def finite_sharp(size: str = "ci", kappa: float = 2.13, kappa_half: float = 2.097) -> None:
    """F(v) = e^{(κ/2−1)v} − e^{−v} − κc₀v/18 > 0: intervals up to the tail, a tangent beyond."""
    for value, c0, lowest, lo, tail in (
        (kappa, 1 / arb(2).log(), arb(9).log(), 2.19, 4.0),
        (kappa_half, arb("0.25") / arb("1.25").log(), arb(36).log(), 3.58, 6.0),
    ):
        k = _arb(value)
        assert arb(lo) < lowest
        assert positive(
            lambda v, k=k, c0=c0: ((k / 2 - 1) * v).exp() - (-v).exp() - k * c0 * v / 18, lo, tail
        )
        slope = arb(1).exp() * (k / 2 - 1) - k * c0 / 18  # e^{μv} ≥ eμv
        assert slope > 0 and slope * tail > arb(-tail).exp()
    assert _arb(kappa) / arb(2).log() < arb("3.08")
    assert _arb(kappa_half) * arb("0.25") / arb("1.25").log() < arb("2.35")


def aux_frugal(size: str = "ci", extra: int = 0) -> None:
    """The count equals ⌊log(L²B²/Γ²)/log(1+Γ²)⌋ + 1, and one more arm would be too long (exact)."""
    for Gamma2 in (Fraction(1), Fraction(1, 3), Fraction(1, 100)):
        for LB2 in (Fraction(1), Fraction(7), Fraction(10**6), Fraction(10**30)):
            n = frugal_count(Gamma2, LB2) + extra
            assert Gamma2 * (1 + Gamma2) ** (n - 1) <= LB2 < Gamma2 * (1 + Gamma2) ** n
            formula = math.log(LB2 / Gamma2) / math.log(1 + Gamma2)
            assert abs(n - (math.floor(formula + 1e-9) + 1)) == 0
