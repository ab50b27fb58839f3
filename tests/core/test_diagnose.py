"""The best linear fit, by hand and against the whole linear programme; what diagnose concludes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import banditlib as bl
from banditlib.diagnose import diagnose
from banditlib.linear_fit import best_linear_fit, is_unique


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


def spread_of_best_fits(X, r, zeta):
    """How far the best fits reach along one direction, by the whole programme, twice."""
    c = np.random.default_rng(9).standard_normal(X.shape[1])
    ends = []
    for sign in (1.0, -1.0):
        found = linprog(
            sign * c, np.concatenate([X, -X]), np.append(r + zeta, zeta - r) + 1e-10,
            bounds=[(None, None)] * X.shape[1],
        )  # fmt: skip
        ends.append(-math.inf if found.status == 3 else sign * found.fun)
    return ends[1] - ends[0] if math.isfinite(ends[0]) else math.inf


def blocks(x, arms):
    """Every arm with a block of features of its own."""
    return np.einsum("ab,kp->kabp", np.eye(arms), x).reshape(len(x) * arms, -1)


def test_a_fit_is_unique_exactly_where_the_best_fits_do_not_spread():
    rng = np.random.default_rng(8)
    seen = set()
    for case in range(24):
        n, d = int(rng.integers(2, 30)), int(rng.integers(1, 5))
        X = rng.standard_normal((n, d))
        if case % 3 == 1:
            X = blocks(X, 3)
        if case % 3 == 2:
            X[:, -1] = X[:, 0]  # one direction less
        r = rng.standard_normal(len(X))
        theta, zeta = best_linear_fit(X, r)
        assert is_unique(X, r, theta) == (spread_of_best_fits(X, r, zeta) < 1e-5)
        seen.add((case % 3, is_unique(X, r, theta)))
    assert {(0, True), (1, False), (2, False)} <= seen


def test_uniqueness_by_hand():
    # e₁ pays 0 and 1, so θ₁ = 1/2 and ζ = 1/2; e₂ pays 0, so θ₂ may be anything from -1/2 to 1/2
    X, r = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0.0, 1.0, 0.0])
    for second in (-0.5, 0.0, 0.5):  # in the middle of the best fits and at both ends
        assert not is_unique(X, r, np.array([0.5, second]))
    # with e₂ paying 0 and 1 as well there is only (1/2, 1/2)
    both = np.concatenate([X, [[0.0, 1.0]]])
    assert is_unique(both, np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.5, 0.5]))
    # what is fitted exactly is unique if and only if the rows span
    assert is_unique(np.eye(2), np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    assert not is_unique(np.ones((3, 2)), np.ones(3), np.array([1.0, 0.0]))
    assert not is_unique(np.zeros((2, 1)), np.ones(2), np.zeros(1))


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_uniqueness_does_not_depend_on_units(scale):
    rng = np.random.default_rng(3)
    x, r = rng.standard_normal((20, 3)), rng.standard_normal(60)
    for X, unique in ((rng.standard_normal((60, 3)), True), (blocks(x, 3), False)):
        for A, b in ((scale * X, r), (X, scale * r)):
            assert is_unique(A, b, best_linear_fit(A, b)[0]) == unique


def test_the_diagnosis_says_when_the_fit_is_one_of_many():
    rng = np.random.default_rng(4)
    x, paid = rng.standard_normal((50, 3)), rng.standard_normal((50, 4))
    found = diagnose(blocks(x, 4).reshape(50, 4, 12), paid)
    assert not found.unique and "θ is one of many, ζ is that of all" in repr(found)
    assert found.zeta == pytest.approx(max(best_linear_fit(x, r)[1] for r in paid.T))
    assert diagnose(x, paid[:, 0]).unique and "unique" in diagnose(x, paid[:, 0])._repr_html_()


def test_what_fit_and_chance_lose_by_hand():
    # three sets of e₁, e₂; θ = (2/3, 1/3) by least squares, so it always plays e₁
    X = np.tile(np.eye(2), (3, 1, 1))
    found = diagnose(X, [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert found.fit_loses == pytest.approx(1 / 3) and found.random_loses == pytest.approx(1 / 2)
    assert found.usual_gap == 1.0
    gaps = diagnose(np.tile(np.eye(2), (11, 1, 1)), [[k, 0.0] for k in range(11)]).usual_gap
    assert gaps == pytest.approx(1.9)  # of 1, ..., 10; the set without a gap does not count
    masked = diagnose(
        X, [[1.0, 0.0], [1.0, 9.0], [0.0, 1.0]], [[True] * 2, [True, False], [True] * 2]
    )
    assert masked.random_loses == pytest.approx(1 / 3)
    assert diagnose(np.eye(2), [1.0, 1.0]).usual_gap == math.inf


def test_many_sets_are_judged_by_what_the_fit_loses():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 4, 3))
    bent = X @ np.array([1.0, -0.5, 0.3]) + 0.1 * np.sin(9 * X[..., 0])
    kind = diagnose(X, bent)
    assert kind.zeta > kind.zeta_hard and kind.fit_loses < 0.2 * kind.random_loses
    assert "has learnt loses about as much" in kind.sentence
    blind = diagnose(X, rng.standard_normal((200, 4)))
    assert blind.fit_loses > 0.5 * blind.random_loses and "better features" in blind.sentence


def test_the_narrowest_direction_by_hand():
    X = np.array([[1.0, 0.0], [0.0, 0.2], [0.0, 0.4]])
    # along e2: the mean of 0.04 and 0.16; along e1: 1
    assert diagnose(X, [1.0, 0.5, 0.3]).narrowest == pytest.approx(math.sqrt(0.1))
    assert diagnose(np.eye(3), [1.0, 0.5, 0.3]).narrowest == pytest.approx(1.0)
    assert diagnose(np.zeros((2, 2)), [1.0, 0.5]).narrowest == 1.0
    assert diagnose(1e-9 * X, [1.0, 0.5, 0.3]).narrowest == pytest.approx(math.sqrt(0.1))
    assert diagnose(np.pad(X, [(0, 0), (0, 2)]), [1, 0.5, 0.3]).narrowest == pytest.approx(0.1**0.5)
