"""The best linear fit, by hand and against the whole linear programme; what diagnose concludes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import banditlib as bl
from banditlib.diagnose import diagnose
from banditlib.linear_fit import best_linear_fit


def whole_programme(X, r):
    """The same minimum with all rows at once."""
    one = np.ones((len(X), 1))
    sides = np.block([[X, -one], [-X, -one]])
    bounds = [(None, None)] * X.shape[1] + [(0, None)]
    cost = np.append(np.zeros(X.shape[1]), 1.0)
    return linprog(cost, sides, np.append(r, -r), bounds=bounds).x[-1]


@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 5), (40, 3), (500, 8), (3000, 4)])
def test_the_fit_equals_the_whole_programme(n, d):
    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d))
    r = X @ rng.standard_normal(d) + rng.uniform(-0.3, 0.3, n)
    theta, zeta = best_linear_fit(X, r)
    assert zeta == pytest.approx(whole_programme(X, r), abs=1e-9)
    assert zeta == np.abs(r - X @ theta).max()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_fit_does_not_depend_on_units(scale):
    rng = np.random.default_rng(3)
    X, r = rng.standard_normal((60, 4)), rng.standard_normal(60)
    zeta = best_linear_fit(X, r)[1]
    assert best_linear_fit(scale * X, r)[1] == pytest.approx(zeta, rel=1e-9)
    assert best_linear_fit(X, scale * r)[1] == pytest.approx(scale * zeta, rel=1e-9)


def test_degenerate_tables():
    assert best_linear_fit(np.zeros((4, 2)), np.array([1.0, 2, 3, 4]))[1] == 4.0
    X = np.ones((5, 2))  # one direction only: the middle of the range
    assert best_linear_fit(X, np.array([0.0, 1, 0.2, 0.4, 0.5]))[1] == pytest.approx(0.5)


def test_three_arms_by_hand():
    # e1, e2, e1 + e2 with rewards 0.5, 0.2, 0.8: 0.1 too much, shared by three arms
    found = diagnose([[1, 0], [0, 1], [1, 1]], [0.5, 0.2, 0.8])
    assert found.zeta == pytest.approx(0.1 / 3) and found.gap == pytest.approx(0.3)
    assert found.ratio == pytest.approx(0.1 / 3 * math.sqrt(2) / 0.3)
    assert found.ranked == 1.0 and (found.arms, found.dim) == (3, 2)
    assert "between the theorems" in found.sentence


def test_what_follows_in_each_zone():
    X = np.eye(3)
    assert "guarantee for linear bandits holds" in diagnose(X, [1.0, 0.5, 0.0]).sentence
    assert "no policy can lose" in diagnose(X, [1.0, 1.0, 1.0]).sentence
    assert diagnose(X, np.ones(3)).gap == math.inf
    both = np.concatenate([X, X])  # the same vectors pay differently: no fit can tell them apart
    slightly = diagnose(both, [1.0, 0.5, 0.0, 1.0, 0.5, 1e-5], delta=0.1)
    assert slightly.zeta == pytest.approx(5e-6) and slightly.gap == pytest.approx(0.5)
    assert slightly.zeta <= slightly.zeta_covered and "stays below a constant" in slightly.sentence
    badly = diagnose(both, [1.0, 0.9, 0.0, 0.0, 0.9, 1.0])
    assert badly.zeta >= badly.zeta_hard and "UCB" in badly.sentence
    assert badly.ranked in (0.0, 1.0)


def test_decision_sets_count_each_set_by_itself():
    X = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [7.0, 7.0]]])
    mask = [[True, True], [True, False]]
    found = diagnose(X, [[0.5, 0.2], [0.8, math.nan]], mask)
    assert found.gap == pytest.approx(0.3) and found.zeta == pytest.approx(0.1 / 3)
    problem = bl.problems.Contextual(X[:1], [[0.5, 0.2]])
    assert diagnose(*problem.contexts(0, 0, 3)).zeta == pytest.approx(0, abs=1e-12)


def test_the_theorem_is_scaled_with_the_rewards():
    rng = np.random.default_rng(5)
    X, r = rng.standard_normal((30, 3)), rng.standard_normal(30)
    small, large = diagnose(X, r / 10), diagnose(X, 10 * r, R=100)
    assert large.ratio == pytest.approx(small.ratio)
    assert np.ptp(10 * r) > 1  # so that the second is scaled
    assert large.zeta_covered / large.gap == pytest.approx(
        diagnose(X, r / np.ptp(r), R=10 / np.ptp(r)).zeta_covered / (small.gap * 10 / np.ptp(r))
    )


def test_it_prints_and_shows():
    found = diagnose(np.eye(2), [1.0, 0.0])
    assert repr(found).startswith("Diagnosis of 2 arms in 2 dimensions")
    assert "ζ√d/Δ" in found._repr_html_() and "<table>" in found._repr_html_()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("X", lambda: diagnose(np.ones(3), np.ones(3))),
        ("rewards", lambda: diagnose(np.eye(3), np.ones(2))),
        ("X", lambda: diagnose([[math.nan]], [1.0])),
        ("reward", lambda: diagnose(np.ones((2, 2, 1)), np.ones((2, 3)))),
        ("delta", lambda: diagnose(np.eye(2), [1, 0], delta=1.0)),
        ("R", lambda: diagnose(np.eye(2), [1, 0], R=-1)),
    ],
)
def test_the_argument_at_fault_is_named(name, call):
    with pytest.raises((TypeError, ValueError), match=rf"^{name}\b|^{name}s?:"):
        call()


def test_names_and_values_stand_apart():
    found = diagnose(np.eye(3), [0.5, 0.2, 0.1])
    rows = repr(found).splitlines()[1:-1]
    assert rows and all(
        f"{name}  " in row for (name, _), row in zip(found._rows(), rows, strict=True)
    )
