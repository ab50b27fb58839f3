"""The constants of the three theorems, against values worked out by hand and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditlib import theory

PAPER = {"d": 16, "Delta": 0.18, "R": 1.0, "L": 1.0, "B": 1.0, "delta": 0.01}


def test_known_gap_in_the_papers_setting():
    c = theory.known_gap(**PAPER)
    assert c.iota1 == pytest.approx(339.4, abs=0.05)
    assert c.Gamma == c.zeta_max == pytest.approx(6.63e-5, rel=1e-3)
    assert c.beta == pytest.approx(83.85, abs=0.005)
    assert c.selections == pytest.approx(6.2e11, rel=0.01)
    assert c.bound_printed == pytest.approx(7.8e9, rel=0.01)
    assert c.bound_gap == pytest.approx(1.25e8, rel=0.01)
    assert c.bound_sharp < c.bound_gap < c.bound_cauchy_schwarz
    assert c.selections == pytest.approx(theory.selections(16, c.Gamma))
    assert c.selections_sharp == pytest.approx(theory.selections_sharp(16, c.Gamma, simple=True))


def test_known_gap_iota1_written_out():
    d, Delta, R, L, B, delta = 3, 0.4, 0.7, 2.0, 5.0, 0.1
    tail = math.sqrt(8 * R**2 * math.log(1 / delta))
    for repaired, c in ((False, 18), (True, 12)):
        want = (24 + c * R) * math.log((72 + 3 * c * R) * L * B * math.sqrt(d) / Delta) + tail
        got = theory.known_gap(d, Delta, R, L, B, delta, repaired)
        assert got.iota1 == pytest.approx(want, rel=1e-13)
        assert got.lam == pytest.approx(1 / 25)
        assert got.iota3 == pytest.approx(
            math.log((1 + 16 * (L * B / got.Gamma) ** 2 * got.iota2) / delta), rel=1e-13
        )


@pytest.mark.parametrize("repaired", [False, True])
def test_skipped_rounds_are_below_the_gap(repaired):
    for d in (1, 2, 16, 512):
        for Delta in (1.0, 0.18, 1e-3):
            for R in (0.0, 1.0, 10.0):
                c = theory.known_gap(d, Delta, R, L=3.0, B=2.0, repaired=repaired)
                assert c.aux1_slack > 1
                assert theory.skip_regret(c.Gamma, c.beta, c.zeta_max) < Delta
                assert c.Gamma <= 1 / (48 * math.log(72))


def test_known_gap_takes_logarithms_of_huge_arguments():
    c = theory.Known(2, 0.1, 1.0, log_L=2e6, log_inv_delta=1e18)
    assert c.bound_printed == pytest.approx(8.71e25, rel=1e-3)
    assert math.isfinite(c.bound_sharp)


def test_unknown_gap_in_the_papers_setting():
    printed = theory.unknown_gap(**PAPER)
    repaired = theory.unknown_gap(**PAPER, repaired=True)
    assert printed.l_Delta == repaired.l_Delta == 11
    assert printed.beta == pytest.approx(31.8, abs=0.05)
    assert repaired.beta == pytest.approx(33.2, abs=0.05)
    assert printed.zeta_max == pytest.approx(8.48e-5, rel=1e-3)
    assert printed.bound_printed == pytest.approx(2.0e9, rel=0.01)
    assert repaired.bound_repaired == pytest.approx(8.7e8, rel=0.01)
    assert repaired.bound_later / repaired.bound_printed == pytest.approx(2**14 / 2560)
    assert 4 * repaired.beta * 2.0**-11 < 0.09


def test_natural_log_gives_a_level_too_low():
    c = theory.unknown_gap(**PAPER, base=math.e)
    assert c.l_Delta == 8
    assert 4 * c.beta * 2.0**-8 == pytest.approx(0.441, abs=5e-4)


def test_sup_beta_missing_factor_d():
    printed = theory.SupBeta(10, L=2.0, delta=0.05, repaired=False)
    repaired = theory.SupBeta(10, L=2.0, delta=0.05)
    assert repaired.iota2(3) == pytest.approx(14.75, abs=0.005)
    assert printed.iota2(3) == pytest.approx(12.44, abs=0.01)
    one = theory.SupBeta(1, L=2.0, delta=0.05, repaired=False)
    assert one(3) == pytest.approx(theory.SupBeta(1, L=2.0, delta=0.05)(3))
    levels = np.arange(1, 30)
    assert np.all(np.diff(repaired(levels)) > 0)
    assert repaired(levels)[4] == pytest.approx(float(repaired(5)))


def test_level_is_minimal():
    for d in (1, 16, 512):
        for Delta in (1.0, 0.18, 1e-4):
            beta = theory.SupBeta(d)
            l_Delta = theory.level(beta, Delta)
            assert 2.0**l_Delta > 8 * beta(l_Delta) / Delta
            assert 2.0 ** (l_Delta - 1) <= 8 * beta(l_Delta - 1) / Delta
            assert l_Delta >= 4


def test_selections_are_ordered_and_the_root_is_one():
    for d in (1, 5):
        for Gamma in (1.0, 0.5, 0.1, 1e-4):
            for L in (1.0, 50.0):
                root = theory.selections_root(d, Gamma, L)
                gap = root * math.log1p(Gamma**2) - d * math.log1p(root * L**2 / d)
                assert abs(gap) <= 1e-9 * root * Gamma**2
                sharp = theory.selections_sharp(d, Gamma, L)
                assert root <= sharp
                assert sharp <= theory.selections_sharp(d, Gamma, L, simple=True) * (1 + 1e-12)
                assert sharp < theory.selections(d, Gamma, L)


def test_radius_tight_is_tighter():
    n = np.array([0, 1, 100, 10**8])
    printed = theory.radius(n, 16, zeta=0.02)
    tight = theory.radius_tight(n, 16, zeta=0.02)
    assert np.all(tight <= printed)
    assert printed[0] == pytest.approx(1 + math.sqrt(32 * math.log(100)))


def test_tightest_form_of_the_papers_setting():
    Gamma = theory.largest_Gamma_tight(**PAPER)
    zeta, at = theory.zeta_max_tight(**PAPER)
    assert Gamma == pytest.approx(0.0057, abs=1e-4)
    assert zeta == pytest.approx(0.0046, abs=1e-4)
    assert at < Gamma
    assert math.isnan(theory.largest_Gamma_tight(**PAPER, zeta=0.02))


def test_lower_bound_constants():
    assert theory.lower_eps(16, 100) == pytest.approx(1.567, abs=1e-3)
    window = theory.lower_zeta(16, 0.18, 100) / theory.known_gap(**PAPER).zeta_max
    assert window == pytest.approx(12767, rel=1e-4)
    for arms in range(5, 60):
        for K in range(1, arms // 3 + 1):
            assert theory.lower_first_repaired(K, 0.3, arms) >= theory.lower_first_printed(K, 0.3)
    assert theory.lower_first_repaired(1, 0.5, 4) == pytest.approx(0.5 * 15 / 16)
    args = {"Delta": 0.2, "arms": 50, "C": 2.0, "alpha": 0.5}
    assert theory.lower_second_repaired(1e6, **args) < theory.lower_second_printed(1e6, **args)
    assert theory.lower_second_repaired(10, **args) == 0.0
    assert theory.lower_first_limit(0.1, 100) == pytest.approx(100 * 0.9602**2 / 0.05)


@pytest.mark.parametrize(
    ("name", "value"),
    [("d", 0), ("d", 2.5), ("Delta", 0.0), ("Delta", 1.5), ("R", -1.0), ("L", 0.5), ("B", 0.9),
     ("delta", 1.0), ("delta", 0.0)],
)  # fmt: skip
def test_errors_name_the_argument(name, value):
    for build in (theory.known_gap, theory.unknown_gap):
        with pytest.raises(ValueError, match=rf"^{name} must be"):
            build(**(PAPER | {name: value}))


def test_errors_of_the_plain_functions():
    with pytest.raises(ValueError, match=r"^Gamma must be"):
        theory.selections(3, 1.5)
    with pytest.raises(ValueError, match=r"^base must be"):
        theory.unknown_gap(**PAPER, base=10)
    with pytest.raises(ValueError, match=r"^Delta must be <= 1/2"):
        theory.lower_first_repaired(3, 0.8, 10)
    with pytest.raises(ValueError, match=r"^d must be >= 2"):
        theory.lower_eps(1, 10)
