"""Checks of the claims in the paper's abstract, introduction and preliminaries."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from banditlib import theory
from book.claims.formula import ATTAINED, Found, formula

# --- orders: what a bound does when one symbol goes to its limit ---------------------------------


def slope(value: Callable[[float], float], far: float) -> float:
    """Power of t that `value` grows with between far and far³, logarithms aside."""
    return (math.log(value(far**3)) - math.log(value(far))) / (2 * math.log(far))


FAR_d, FAR_Delta = 1e4, 1e15
"""So far out that the logarithms change a measured power by less than a third."""


def is_square_over_gap(bound: Callable[[int, float], float]) -> None:
    """Whether a bound (d, Δ) is of order d²/Δ, logarithms aside."""
    in_d = slope(lambda t: bound(int(t), 0.18), FAR_d)
    in_Delta = -slope(lambda t: bound(16, 1 / t), FAR_Delta)
    assert abs(in_d - 2) < 0.35 and abs(in_Delta + 1) < 0.35


@formula()
def known_powers() -> tuple[float, float]:
    """Powers of d and of Δ in the bound for DS-OFUL."""
    return 2, -1


def abs_1(size: str = "ci") -> Found:
    r"""The bound grows like d²/Δ and like nothing else, up to logarithms, in R1 as in the print.

    Measured as powers of d between 10⁴ and 10¹², of 1/Δ between 10¹⁵ and 10⁴⁵. K is no argument.
    """
    d_power, Delta_power = known_powers()
    for name in ("bound_gap", "bound_sharp", "bound_cauchy_schwarz", "bound_printed"):
        in_d = slope(lambda t, n=name: getattr(theory.Known(int(t), 0.18), n), FAR_d)
        in_Delta = -slope(lambda t, n=name: getattr(theory.Known(16, 1 / t), n), FAR_Delta)
        assert abs(in_d - d_power) < 0.35 and abs(in_Delta - Delta_power) < 0.35, name
    assert set(theory.Known.__dataclass_fields__) == {
        "d", "Delta", "R", "log_L", "log_B", "log_inv_delta", "repaired"
    }  # fmt: skip
    return Found(1.0, "d from 10⁴ to 10¹², 1/Δ from 10¹⁵ to 10⁴⁵")


@formula()
def unknown_powers() -> tuple[float, float]:
    """Powers of d and of Δ in the bound for SupLinUCB."""
    return 2, -1


def abs_2(size: str = "ci") -> Found:
    r"""The same for SupLinUCB, whose parameters do not contain Δ."""
    d_power, Delta_power = unknown_powers()
    in_d = slope(lambda t: theory.unknown_gap(int(t), 0.18, repaired=True).bound_repaired, FAR_d)
    in_Delta = -slope(
        lambda t: theory.unknown_gap(16, 1 / t, repaired=True).bound_repaired, FAR_Delta
    )
    assert abs(in_d - d_power) < 0.35 and abs(in_Delta - Delta_power) < 0.35
    assert "Delta" not in theory.SupBeta.__dataclass_fields__
    return Found(1.0, "d from 10⁴ to 10¹², 1/Δ from 10¹⁵ to 10⁴⁵")


@formula()
def window(iota1: float, arms: int, d: int) -> float:
    """Lower threshold over upper threshold."""
    return 6 * iota1 * math.sqrt(8 * math.log(arms) * d / (d - 1))


def abs_3(size: str = "ci") -> Found:
    r"""The two thresholds of the theorems have the ratio 6ι₁√(8 log|D|·d/(d−1)): logarithmic."""
    for d, Delta, arms in itertools.product((2, 16, 1024), (1.0, 0.18, 1e-5), (5, 100, 10**6)):
        known = theory.known_gap(d, Delta)
        ratio = theory.lower_zeta(d, Delta, arms) / known.zeta_max
        assert math.isclose(ratio, window(known.iota1, arms, d), rel_tol=1e-12)
        assert math.isclose(known.zeta_max * 2 * known.iota1, Delta / math.sqrt(d), rel_tol=1e-12)
    repaired = theory.lower_zeta(16, 0.18, 100, repaired=True)
    assert math.isclose(repaired, 6 * 0.18 * math.sqrt(math.log(100) / 16), rel_tol=1e-12)
    assert round(theory.lower_zeta(16, 0.18, 100) / theory.known_gap(16, 0.18).zeta_max) == 12767
    return Found({"lower_zeta": 1.0, "lower_eps": 1.0, "zeta_max": 1.0}, "an identity")


@formula()
def level_powers() -> tuple[float, float]:
    """Powers of d and of Δ in the admissible misspecification, of both theorems."""
    return -0.5, 1


def intro_3(size: str = "ci") -> Found:
    """Both conditions are Δ/√d up to logarithms, and they are not the same: 6.63e-5 and 8.48e-5."""
    d_power, Delta_power = level_powers()
    in_d = slope(lambda t: theory.Known(int(t), 0.18).zeta_max, FAR_d)
    in_Delta = -slope(lambda t: theory.Known(16, 1 / t).zeta_max, FAR_Delta)
    assert abs(in_d - d_power) < 0.1 and abs(in_Delta - Delta_power) < 0.1
    in_d = slope(lambda t: theory.unknown_gap(int(t), 0.18).zeta_max, FAR_d)
    in_Delta = -slope(lambda t: theory.unknown_gap(16, 1 / t).zeta_max, FAR_Delta)
    assert abs(in_d - d_power) < 0.25 and abs(in_Delta - Delta_power) < 0.25
    paper = theory.known_gap(16, 0.18).zeta_max, theory.unknown_gap(16, 0.18).zeta_max
    assert [f"{level:.2e}" for level in paper] == ["6.63e-05", "8.48e-05"]
    return Found({"zeta_max": 1.0}, "d from 10⁴ to 10¹², 1/Δ from 10¹⁵ to 10⁴⁵")


@formula()
def off_by(d: int) -> float:
    """Factor between the misspecification terms of the two bounds."""
    return d**0.5


def rel_2(size: str = "ci") -> Found:
    r"""With C = Kζ the misspecification terms have the ratio :math:`dK\zeta/(\sqrt dK\zeta)`."""
    for root in range(1, 40):
        d, K, zeta = root**2, Fraction(10**6), Fraction(1, 50)
        corruption, best = d * (K * zeta), root * K * zeta
        assert math.isclose(corruption / best, off_by(d), rel_tol=1e-12)
    return ATTAINED


# --- the model -----------------------------------------------------------------------------------


def counter_model() -> dict[str, float]:
    """One parameter and one arm for which no reward in [0, 1] is within ζ of the linear part."""
    theta, x, zeta = (0.5, 0.0), (10.0, 0.0), 0.1
    linear = x[0] * theta[0] + x[1] * theta[1]
    nearest = min(max(linear, 0.0), 1.0)
    assert abs(nearest - linear) > zeta
    return {"linear part": linear, "nearest reward": nearest, "error": abs(nearest - linear)}


@formula("upper")
def too_far(zeta: Fraction, norm2: Fraction) -> Fraction:
    """From this t on the arm tθ has a linear part that no reward in [0, 1] meets within ζ."""
    return (1 + zeta) / norm2


def aux_vacuous(size: str = "ci") -> Found:
    """For θ ≠ 0 every arm tθ with t > (1+ζ)/‖θ‖² is too far from [0, 1]; at equality it is not."""
    levels = (Fraction(0), Fraction(1, 10), Fraction(3))
    for a, b, zeta in itertools.product(range(-6, 7), range(-6, 7), levels):
        norm2 = Fraction(a * a + b * b, 100)
        if norm2 > 0:
            t = too_far(zeta, norm2)
            assert t * norm2 - 1 <= zeta < (t + Fraction(1, 10**9)) * norm2 - 1
    return ATTAINED


@formula()
def regret_range(N: int, Delta: int, scale: int) -> tuple[int, int]:
    """Least and largest regret of N sub-optimal plays; rewards are integers up to `scale`."""
    return N * Delta, scale * N


def aux_gap(size: str = "ci") -> Found:
    """Every table of rewards in {0, 1/3, 2/3, 1} for two rounds of three arms, every play.

    Both ends of the range are met by some play of some table.
    """
    scale, met = 3, [0, 0]
    for rewards in itertools.product(range(scale + 1), repeat=6):
        gaps = [[max(row) - r for r in row] for row in (rewards[:3], rewards[3:])]
        positive = [gap for row in gaps for gap in row if gap > 0]
        if not positive:
            continue
        Delta = min(positive)
        assert 0 < Delta <= scale
        for plays in itertools.product(range(3), repeat=2):
            cost = [row[arm] for row, arm in zip(gaps, plays, strict=True)]
            N = sum(c > 0 for c in cost)
            least, most = regret_range(N, Delta, scale)
            assert all(c == 0 or c >= Delta for c in cost) and least <= sum(cost) <= most
            met[0] += N > 0 and sum(cost) == least
            met[1] += N > 0 and sum(cost) == most
    assert met[0] and met[1]
    return ATTAINED


@formula("upper")
def margin(zeta: float) -> float:
    """A gap above this is seen by the linear part alone."""
    return 2 * zeta


def aux_margin(size: str = "ci") -> Found:
    """If 2ζ < Δ the linear favourite is optimal; two almost equal arms show that 2 is needed."""
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
        assert gaps[first] == 0 or margin(zeta) >= gaps[gaps > 0].min()
    ratios = []
    for step in (1e-3, 1e-6, 1e-9):  # the linear favourite loses, at a gap just below 2ζ
        zeta = 0.2
        r = np.array([0.5 - zeta, 0.5 - step + zeta])
        assert r[1] > r[0] and r[1] - r[0] <= margin(zeta)
        ratios.append((r[1] - r[0]) / margin(zeta))
    return Found({"margin": 1 / max(ratios)}, "two arms whose linear parts are almost equal")
