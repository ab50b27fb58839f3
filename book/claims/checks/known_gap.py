"""Checks for the chapter "Constant regret, known gap".

Scalar inequalities are shown for all arguments (polynomial identities, ball arithmetic, concavity);
the counterexamples are evaluated in ball arithmetic or exactly. The lemma on one round is the only
one that is also tried on drawn configurations.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
from flint import arb, fmpq_mpoly_ctx

from banditlib import theory
from claims.checks.finite_selections import (
    _arb,
    _ratio,
    finite_sharp,
    lm_11,
    lm_finite,
    lm_xlogx,
    positive,
)

# Parameters at the edges of what is admissible; log(LB) and log(1/δ) reach far beyond floats.
EDGES = [
    theory.Known(d, Delta, R, log_L=log_L, log_inv_delta=x, repaired=repaired)
    for d in (1, 2, 16, 10**6)
    for Delta in (1.0, 0.18, 1e-9)
    for R in (0.0, 1e-3, 1.0, 1e6)
    for log_L in (0.0, 5.0, 3200.0, 1e9)
    for x in (1e-9, 4.6, 1e6, 1e18, 1e30)
    for repaired in (False, True)
]


def eq_main1(size: str = "ci", lost: int = 0) -> None:
    """The sum over C and the sum over its complement are the whole sum: every C ⊆ {1,…,6}."""
    regret = [3, 0, 7, 1, 0, 5]
    for n in range(7):
        for C in combinations(range(6), n):
            rest = [k for k in range(6) if k not in C][lost:]
            assert sum(regret[k] for k in C) + sum(regret[k] for k in rest) == sum(regret)


# --- one round -----------------------------------------------------------------------------------


def _tight_ratio(w: float, beta: float = 3.0, s: float = 0.1, zeta: float = 0.02) -> float:
    """Regret over ζ and β‖x_k‖ terms when the optimal arm is w e₂ and ties (see the chapter)."""
    index = s * 2.0 + beta * s
    theta_k = np.array([2.0, index / w - beta])
    theta = theta_k - np.array([beta, 0.0])
    return w * theta[1] - s * theta[0] + 2 * zeta


def lm_mis(size: str = "ci", c: float = 2.0) -> None:
    """r*_k − r(x_k) ≤ 2ζ + cβ‖x_k‖ on drawn configurations, and on the extremal one."""
    assert _tight_ratio(1e-9) <= 2 * 0.02 + c * 3.0 * 0.1
    rng = np.random.default_rng(20)
    for _ in range(200 if size == "ci" else 20000):
        d, arms = int(rng.integers(1, 5)), int(rng.integers(2, 7))
        root = rng.normal(size=(d, d)) + 0.1 * np.eye(d)
        U_inv = np.linalg.inv(root @ root.T + 0.1 * np.eye(d))
        X = rng.normal(size=(arms, d))
        width = np.sqrt(np.einsum("ai,ij,aj->a", X, U_inv, X))
        beta, zeta, theta = 10 ** rng.uniform(-1, 1), rng.uniform(0, 0.3), rng.normal(size=d)
        step = rng.normal(size=d)  # θ_k − θ* on the boundary of the confidence ellipsoid
        step *= beta / math.sqrt(step @ np.linalg.solve(U_inv, step))
        reward = X @ theta + rng.choice([-zeta, zeta], size=arms)
        k = int(np.argmax(X @ (theta + step) + beta * width))
        assert reward.max() - reward[k] <= 2 * zeta + c * beta * width[k] + 1e-9


def eq_step1(size: str = "ci", c: int = 4) -> None:
    """2βΓ, times √d ι₁/Δ, is 1 + √d(R√(2ι₃) + 4√ι₂): an identity in √d, √ι₂, √(2ι₃), R."""
    t, p, q, R = fmpq_mpoly_ctx.get(["t", "p", "q", "R"], "lex").gens()
    beta = 1 + 4 * t * p + R * t * q
    assert beta == 1 + t * (R * q + c * p)


def eq_rev1(size: str = "ci", c: int = 2) -> None:
    """With 2ζ ≤ Δ/(√d ι₁) the constant 1 becomes 2; then lm:aux1 pushes the sum below Δ."""
    t, p, q, R = fmpq_mpoly_ctx.get(["t", "p", "q", "R"], "lex").gens()
    beta = 1 + 4 * t * p + R * t * q
    assert 1 + beta == c + t * (4 * p + R * q)
    # divided by √d ≥ 1 this is at most 2 + 4√ι₂ + R√(2ι₃), which lm:aux1 bounds
    lm_aux1(size)


# --- the constant ι₁ -----------------------------------------------------------------------------


def text_aux1_calc(size: str = "ci", c1: float = 6.0, c2: float = 3.0) -> None:
    """2 + 4√u ≤ 6u and 2 log(1 + (16/9)u e^{2u}) ≤ 9u² for all u ≥ log 3."""
    assert arb("1.09") < arb(3).log()
    a, b = _arb(c1), _arb(c2)
    assert positive(lambda u: a * u - 4 * u.sqrt() - 2, 1.09, 8.0)
    assert a * 8 - 4 * arb(8).sqrt() - 2 > 0 and a > 2 / arb(8).sqrt()  # increasing beyond 8
    assert positive(lambda u: b**2 * u**2 - 2 * (1 + 16 * u / 9 * (2 * u).exp()).log(), 1.09, 8.0)
    assert b**2 * 8 > arb(68) / 9  # beyond 8: the left side is at most 2(2u + 16u/9) = 68u/9


def lm_aux1(size: str = "ci", scale: float = 1.0) -> None:
    """ι₁ > 2 + 4√ι₂ + R√(2ι₃), with room 0.503, for the printed and the repaired ι₁.

    The proof: aux1-calc, the identities 4(6+3R) = 24+12R and 2·6(6+3R) = 72+36R, lm:xlogx with
    2a ≥ 72, and a tangent at 2aM, M = 72e. The edge cases are evaluated besides.
    """
    text_aux1_calc(size)
    lm_xlogx(size)
    (R,) = fmpq_mpoly_ctx.get(["R"], "lex").gens()
    assert 4 * (6 + 3 * R) == 24 + 12 * R and 2 * 6 * (6 + 3 * R) == 72 + 36 * R
    M = 72 * arb(1).exp()
    assert arb("0.5") + 1 / (2 * M) < arb("0.503")
    # the smaller constant of the sharper lemma keeps Γ ≤ 1 and ι₂ > 1
    assert 12 * (72 / arb(1).exp()).log() > 1
    for c in EDGES:
        rhs = c.iota1 / c.aux1_slack
        assert rhs < scale * c.iota1 and rhs <= 0.503 * c.iota1 * (1 + 1e-12)


def text_gamma_range(size: str = "ci", c: float = 24.0) -> None:
    """2√d ι₁/Δ is a product of factors each smallest at d = Δ = L = B = 1, R = 0."""
    top = theory.known_gap(1, 1.0, R=0.0)
    assert math.isclose(top.Gamma, 1 / (2 * c * math.log(72)), rel_tol=1e-12)
    assert all(e.Gamma <= top.Gamma * (1 + 1e-12) for e in EDGES)


# --- kept rounds ---------------------------------------------------------------------------------


def counter_lm_he() -> dict[str, float]:
    """One arm of length 1 in one dimension, B = 2, so that λ = 1/4."""
    import math

    L, B, d = 1.0, 2.0, 1
    lam = B**-2
    bonuses = L**2 / lam  # the only arm, seen before anything is learnt
    printed = 2 * d * math.log(1 + 1 * L**2 / lam)
    assert bonuses > printed
    return {"sum of bonuses": bonuses, "printed bound": printed}


def lm_he(size: str = "ci", B: float = 2.0, c: float = 2.0) -> None:
    """False: q = B² > 2 log(1+q). Repaired: with the cap, or with the factor T/log(1+T)."""
    q = _arb(B) ** 2
    assert q > 2 * (1 + q).log()
    low, high = arb("2.51286"), arb("2.51287")
    assert low < 2 * (1 + low).log() and high > 2 * (1 + high).log()
    # q ≤ 2 log(1+q) up to the root: 2 log(1+q) − q is concave and vanishes at 0
    lm_11(size, c)
    # the uncapped form, exactly on orthonormal arms and on one repeated arm (λ = 1/T)
    near = 1 + arb("1e-12")  # orthonormal arms attain equality
    for T in (Fraction(1), Fraction(9), Fraction(10**8)):
        factor = _ratio(T) / (1 + _ratio(T)).log()
        for d in (1, 2, 8):
            assert d * _ratio(T) <= factor * d * (1 + _ratio(T)).log() * near
        total, U = Fraction(0), 1 / T
        for n in range(1, 40):
            total, U = total + 1 / U, U + 1
            assert _ratio(total) <= factor * (1 + n * _ratio(T)).log() * near


def _third_line(B: float) -> float:
    """2dΛ₀ for d = Δ = L = 1, R = 0."""
    known = theory.known_gap(1, 1.0, R=0.0, B=B)
    return 2 * math.log1p(16 / known.Gamma**2 * known.iota2)


def counter_eq_step_finalb() -> dict[str, float]:
    """d = Δ = L = 1, R = 0, B = 100: the first arm alone exceeds what the third line allows."""
    import math

    B = 100.0
    iota1 = 24 * math.log(72 * B)
    Gamma = 1 / (2 * iota1)
    iota2 = math.log(3 * B / Gamma)
    allowed = 2 * math.log(1 + 16 / Gamma**2 * iota2)
    first = 1 / B**-2  # squared width of an arm of length 1 when λ = B⁻²
    assert first > allowed
    return {"sum of squared widths": first, "third line allows": allowed}


def eq_step_finalb(size: str = "ci", B: float = 100.0) -> None:
    """Line 3 fails without the cap (B = 100) and with it (B = 10¹²); lines 4 and 5 hold."""
    assert _third_line(B) < B**2
    U, doublings = Fraction(1, 10**24), 0
    while U <= 1:  # an arm of squared length U ≤ 1 has width exactly 1 and doubles U
        U, doublings = 2 * U, doublings + 1
    assert doublings == 80 > _third_line(1e12)
    # line 4: 8/Γ·√(dι₂)·√(2d) = 16 √(2d³ι₂) ι₁/Δ and 32ζd/Γ² ≤ 32d/Γ = 64√d³ι₁/Δ, with t = √d
    t, i = fmpq_mpoly_ctx.get(["t", "i"], "lex").gens()
    inverse_Gamma_times_D = 2 * t * i
    assert 8 * inverse_Gamma_times_D * t * t == 16 * t**3 * i
    assert 32 * t**2 * inverse_Gamma_times_D == 64 * t**3 * i
    # line 5: 4√ι₂ ≤ β√(2Λ) because β ≥ 4√(dι₂) and Λ ≥ log(1 + 16·(48 log 72)²·log(144 log 72))
    inverse = 48 * arb(72).log()
    smallest = (1 + 16 * inverse**2 * (3 * inverse).log()).log()
    assert (2 * smallest).sqrt() > arb("5.5")
    # the same holds with Λ₁ of the repair, which contains L²B² ≥ 1 in place of d
    assert all(
        4 * math.sqrt(e.iota2) < e.beta * math.sqrt(2 * (e.iota3 - e.log_inv_delta))
        for e in EDGES
        if e.log_inv_delta < 1e10
    )


def text_l193(size: str = "ci", gap: bool = True) -> None:
    """A regret ρ that is 0 or in [Δ, 1] satisfies ρ ≤ ρ²/Δ; then R1 follows by the potential."""
    rho, D = fmpq_mpoly_ctx.get(["rho", "D"], "lex").gens()
    assert rho * rho - rho * D == rho * (rho - D)  # ≥ 0 for ρ = 0 and for ρ ≥ Δ
    Delta = Fraction(1, 5)
    regrets = [Fraction(0), Delta, Fraction(1)] if gap else [Delta / 2]
    assert all(r <= r * r / Delta for r in regrets)
    lm_finite(size)
    lm_11(size)


# --- the theorem ---------------------------------------------------------------------------------


def aux_printed_range(size: str = "ci", t_max: float = 3200.0) -> None:
    """R1' is at most the printed bound whenever log(LB) ≤ t_max: the chapter's constants."""

    def h(t: arb) -> arb:
        g = (48 * (arb(72).log() + t)).log()
        return 95 * arb(16).log() + 189 * g + 95 * (arb(3).log() + t + g).log() - arb(3).log() - t

    assert h(arb(0)) > 0 and h(_arb(t_max)) > 0  # h is concave
    u_min = (144 * arb(72).log()).log()
    beta_min = 1 + 4 * u_min.sqrt()
    assert beta_min > arb("11.13") and 1 + 1 / (8 * (beta_min + 1) ** 2) < arb("1.0009")
    factor = 4 * arb("1.0009") * arb("12.13") / arb("11.13") * arb("0.503")
    assert factor < arb("2.2")
    assert arb("2.35") / 9 + (-2 * u_min).exp() / u_min < arb("0.2612")
    assert arb("2.612") < arb(1).exp()
    assert (32 * arb(2).sqrt() / (arb("2.2") * arb("2.1"))) ** 2 > 95
    for e in EDGES:
        if e.log_L <= t_max and not e.repaired:
            assert e.bound_sharp <= e.bound_printed


def _e1_phase_two(d: int, Delta: float, L: float) -> tuple[float, theory.Known]:
    """Play the adversary's second phase against the index rule; return the regret and constants."""
    c = theory.known_gap(d, Delta, R=0.0, L=L)
    m = math.ceil(1 / c.Gamma**2)
    first = Delta * m * L**2 / (1 + m * L**2) + c.beta * Delta * L / math.sqrt(1 + m * L**2)
    u, U, rounds = Delta * (1 + Delta / 2), 1.0, 0
    while (s := math.sqrt(U) * u / c.beta) <= L:
        assert c.beta * s / math.sqrt(U) > first and s / math.sqrt(U) >= c.Gamma
        U, rounds = U + s**2, rounds + 1
    return (d - 1) * rounds * Delta, c


def aux_e1(size: str = "ci", c: float = 2.0) -> None:
    """The adversary is obeyed in every round and inflicts at least the stated regret."""
    for d, Delta, L in ((2, 1.0, 10.0), (4, 0.5, 10.0), (3, 0.3, 1000.0)):
        regret, known = _e1_phase_two(d, Delta, L)
        u, b = Delta * (1 + Delta / 2), known.beta
        assert known.beta * known.Gamma < Delta / 2
        assert regret >= (d - 1) * c * b**2 * math.log(L * b / u) / (Delta * (1 + Delta / 2) ** 2)
        assert regret <= known.bound_sharp


def counter_thm_main(log_L: int = 2_000_000) -> dict[str, float]:
    """d = 2, Δ = 0.1, R = 1, B = 1, log L = 2·10⁶, log(1/δ) = 10¹⁸, in ball arithmetic.

    ζ = 0, no noise, θ* = e₁/L. First {L e₁} alone until its width is below Γ; then, round after
    round, {ΔL e₁, s e₂} with s = √(U₂₂)·u/β, u = Δ(1 + Δ/2), as long as s ≤ L. The second arm has
    the larger index, costs Δ and multiplies U₂₂ by 1 + u²/β².
    """
    from flint import arb

    d, Delta, R, t, log_inv_delta = arb(2), arb("0.1"), arb(1), arb(log_L), arb(10**18)
    iota1 = (24 + 18 * R) * (((72 + 54 * R) * d.sqrt() / Delta).log() + t)
    iota1 += R * (8 * log_inv_delta).sqrt()
    Gamma = Delta / (2 * d.sqrt() * iota1)
    iota2 = arb(3).log() + t - Gamma.log()
    x = (16 * iota2 / Gamma**2).log() + 2 * t
    iota3 = x + (-x).exp().log1p() + log_inv_delta
    beta = 1 + 4 * (d * iota2).sqrt() + R * (2 * d * iota3).sqrt()
    log = (1 + 16 * d * iota2 / Gamma**2).log()
    printed = 32 * beta * (2 * d**3 * iota2 * log).sqrt() * iota1 / Delta
    u = Delta * (1 + Delta / 2)
    regret = Delta * 2 * (t + (beta / u).log()) * beta**2 / u**2
    assert beta * Gamma < Delta / 2  # so the second arm is played, and kept
    assert regret > printed
    return {"regret at least": float(regret), "printed bound": float(printed)}


def thm_main(size: str = "ci", log_L: int = 2_000_000) -> None:
    """The repaired bounds for all arguments, the range of the printed one, and its failure."""
    lm_aux1(size)  # skipped rounds
    finite_sharp(size)  # the number of kept rounds
    lm_11(size)  # their squared widths
    # 1/log(1+y) ≤ 1/y + ½: the derivative of log(1+y) − 2y/(2+y) is y²/((1+y)(2+y)²)
    (y,) = fmpq_mpoly_ctx.get(["y"], "lex").gens()
    assert (2 + y) ** 2 - 4 * (1 + y) == y**2
    aux_printed_range(size)
    aux_e1(size)
    counter_thm_main(log_L)
    assert all(e.bound_sharp <= e.bound_gap for e in EDGES)


# --- remarks -------------------------------------------------------------------------------------


def rem_order(size: str = "ci", share: float = 0.503) -> None:
    """β + 1 ≤ 0.503√d ι₁, so both bounds are d²/Δ times logarithms."""
    assert arb("0.5") + 1 / (144 * arb(1).exp()) < _arb(share)
    assert 32 * _arb(share) < arb("16.1") and 4 * _arb(share) ** 2 < arb("1.02")
    for e in EDGES:
        assert e.beta + 1 <= share * math.sqrt(e.d) * e.iota1 * (1 + 1e-12)


def rem_expected(size: str = "ci", power: float = 1.0) -> None:
    """With δ = 1/K the bound over (log K)^power · log log K stays bounded, and ζ_max shrinks."""
    logs = [10.0**j for j in range(1, 31)]
    known = [theory.Known(16, 0.18, 1.0, log_inv_delta=x) for x in logs]
    ratio = [k.bound_sharp / (x**power * math.log(x)) for k, x in zip(known, logs, strict=True)]
    assert all(a > b for a, b in pairwise(ratio))
    zetas = [k.zeta_max for k in known]
    assert all(a > b for a, b in pairwise(zetas))
    per_log = [k.bound_sharp / x for k, x in zip(known, logs, strict=True)]
    assert per_log[-1] > per_log[-8]  # the log log is really there


def text_l491(size: str = "ci", zeta_factor: float = 1.0) -> None:
    """Skipped rounds cost nothing at ζ = Γ, on an instance whose errors all point the same way."""
    for d, Delta in ((5, 0.2), (10, 0.3)):
        c = theory.known_gap(d, Delta, R=0.0)
        zeta = zeta_factor * c.Gamma
        a = np.append(np.full(d - 1, 1 / math.sqrt(d - 1)), 0.0)
        theta = np.append(a[:-1] * 0.7, 0.7 - Delta)
        arms = np.array([a, np.eye(d)[-1]])
        reward = arms @ theta + zeta
        m = math.ceil(1 / c.Gamma**2)
        theta_k = m / (1 + m) * (theta + zeta * np.append(-np.ones(d - 1), 1.0))
        width = np.linalg.norm(arms, axis=1) / math.sqrt(1 + m)
        assert np.all(width < c.Gamma)  # skipped
        assert reward[int(np.argmax(arms @ theta_k + c.beta * width))] == reward.max()
