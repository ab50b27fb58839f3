"""Cases worked out with pencil and paper."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditlib as bl
from banditlib import reference
from banditlib.engines.arm_posterior import ArmPosterior
from banditlib.regression import Ridge
from banditlib.view import TAU, View, at_least, first_best, within

QUIET = dict(trials=1, record=("arms", "levels"), progress=False)


def run(X, reward, policy, rounds, noise=None):
    problem = bl.problems.FixedArms(np.array(X, dtype=float), np.array(reward, dtype=float))
    noise = np.zeros((1, rounds)) if noise is None else np.array([noise], dtype=float)
    out = bl.simulate(problem, policy, rounds=rounds, noise=noise, **QUIET)
    return out.arms[0, 0, 0].tolist(), out.levels[0, 0, 0].tolist()


def test_index_of_oful():
    """Two orthonormal arms, λ=1, first reward 1: mean (1/2, 0), width (1/√2, 1).

    β=1: 1/2 + 0.707 > 1, arm 0 again. β=3: 1/2 + 2.121 < 3, arm 1.
    """
    assert run(np.eye(2), [1, 0], bl.OFUL(1, 1), 2)[0] == [0, 0]
    assert run(np.eye(2), [1, 0], bl.OFUL(3, 1), 2)[0] == [0, 1]
    view = View(np.array([0.5, 0.0]), np.array([0.5, 1.0]), 2)
    assert bl.OFUL(1, 1).choose(2, view) == (0, 1)
    assert bl.OFUL(3, 1).choose(2, view) == (1, 1)


def test_one_observation():
    """d=2, λ=2, x=(1, 1), r=3: U=[[3, 1], [1, 3]], θ=(3/4, 3/4), width² of e₁ is 3/8."""
    ridge = Ridge(2, 2.0)
    ridge.learn(0, np.array([1.0, 1.0]), 3.0)
    mean, var = ridge.at(np.array([[1.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(mean, [[1.5, 0.75]], rtol=1e-14)
    np.testing.assert_allclose(var, [[0.5, 0.375]], rtol=1e-14)
    from banditlib.backend import NUMPY

    arms = ArmPosterior(np.array([[[1.0, 1.0], [1.0, 0.0]]]), np.array([2.0]), NUMPY, np.float64)
    arms.learn(np.array([0]), np.array([1]), np.array([3.0]))
    np.testing.assert_allclose(arms.mean, [[1.5, 0.75]], rtol=1e-14)
    np.testing.assert_allclose(arms.var, [[0.5, 0.375]], rtol=1e-14)


def test_threshold_met_exactly():
    """One arm of norm 1, λ=1: width² = 1/(1+n). With Γ=1/2 it is learnt at n = 0, 1, 2, 3."""
    arms, levels = run([[1.0]], [1.0], bl.DSOFUL(0.5, 1, 1), 8)
    assert arms == [0] * 8 and levels == [1, 1, 1, 1, 0, 0, 0, 0]


def test_levels_of_sup_lin_ucb():
    """One arm of norm 1/2, d=1, λ=1: width² = 1/(4+n) reaches 4^-l while n <= 4^l - 4.

    Level 1 learns once (n=0, an exact tie), rounds 2 to 4 end (k <= 4), then level 2 learns 13
    times, level 3 61 times; by then k > 4^l d, so no round ends again, and level 4 takes over.
    """
    _, levels = run([[0.5]], [0.0], bl.SupLinUCB(1.0, 1.0), 90)
    assert levels == [1, 0, 0, 0] + [2] * 13 + [3] * 61 + [4] * 12


@pytest.mark.parametrize(("beta", "kept"), [(0.1, (1,)), (0.2, (0, 1))])
def test_elimination_of_sup_lin_ucb(beta, kept):
    """Arms -1/2 and 1/2 in one dimension, θ*=1, no noise.

    Round 1: equal widths 1/2, the lower index (the bad arm) is learnt at level 1 and gives θ=1/5,
    so the indices differ by 1/5. Rounds 2 to 4 end on arm 1. Round 5 keeps what is within 2β/2 = β
    of the best: β=0.1 eliminates arm 0, β=0.2 keeps it by an exact tie. Level 2 then learns its
    widest arm, the lower index if both are left.
    """
    arms, levels = run([[-0.5], [0.5]], [-0.5, 0.5], bl.SupLinUCB(beta, 1.0), 5)
    assert levels == [1, 0, 0, 0, 2]
    assert arms == [0, 1, 1, 1, kept[0]]
    trace: list = []
    X, r = np.array([[-0.5], [0.5]]), np.array([-0.5, 0.5])
    reference.sup_lin_ucb([X] * 5, lambda k, a: r[a], 5, lambda level: beta, 1.0, trace)
    assert trace[-2:] == [(5, 1, (0, 1)), (5, 2, kept)]


def test_stop_at_four_to_the_level_times_d():
    """Short arms in two dimensions are never wide: all rounds end, at level 1 while k <= 8."""
    X = 0.1 * np.eye(2)
    _, levels = run(X, [0.1, 0.0], bl.SupLinUCB(1.0, 1.0), 40)
    assert levels[:32] == [0] * 32  # width 0.1 < 1/4: levels 1 (k <= 8) and 2 (k <= 32) only end
    assert levels[32] == 0  # 0.1 < 1/8 as well: level 3 ends
    policy = bl.SupLinUCB(1.0, 1.0)
    assert [policy.levels(2, k) for k in (1, 8, 9, 32, 33, 128, 129)] == [1, 1, 2, 2, 3, 3, 4]
    assert policy.levels(16, 10_000) == 5


def test_lsw_bonus():
    """Two orthonormal arms and their sum; after arm 0 once (λ=1, r=0): |xᵀU⁻¹x₀| = 1/2, 0, 1/2.

    Widths² are 1/2, 1, 3/2, so with β=0 the bonus alone decides: arm 0 and 2 tie, the lower index
    wins.
    """
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert run(X, [0, 0, 0], bl.LSW(0.0, 1.0, 1.0), 2)[0] == [0, 0]
    # With β=1 the sum's arm has the largest index at once: √2, then 0.5 ε + √(3/2)...
    assert run(X, [0, 0, 0], bl.LSW(1.0, 1.0, 1.0), 1)[0] == [2]


def test_ucb_index():
    """Three arms once each with rewards 1, 0, 0; then index 1 + √(2 log 4) beats √(2 log 4)."""
    assert run(np.eye(3), [1, 0, 0], bl.UCB(2.0), 5)[0][:4] == [0, 1, 2, 0]


def test_robust_linear_opens_with_a_basis_and_one_more():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    policy = bl.RobustLinear(1.0, 1.0, pulls=2)
    assert policy.plan(X).tolist() == [0, 2, 1, 0, 2, 1]
    totals, counts = np.array([2.0, 4.0, 0.0, 0.0]), np.array([2.0, 2.0, 2.0, 0.0])
    assert not policy.judge(X, counts, totals)  # x₁ = 2x₀ and its mean is twice as large: linear
    limit = math.sqrt(2 * math.log(2 / 0.05)) * math.sqrt((1 + 4) / 2)
    assert policy.judge(X, counts, totals + [0, 2 * limit * 1.001, 0, 0])
    assert not policy.judge(X, counts, totals + [0, 2 * limit * 0.999, 0, 0])
    assert policy.plan(np.eye(3)).tolist() == []  # nothing to test: no opening


def test_tolerances():
    scores = np.array([1.0 - 1.9 * TAU, 1.0, 1.0 + 1e-16])
    assert first_best(scores) == 0
    assert first_best(np.array([1.0 - 2.1 * TAU, 1.0])) == 1
    assert at_least(0.5 * (1 - 0.5 * TAU), 0.5) and not at_least(0.5 * (1 - 2 * TAU), 0.5)
    assert within(0.5 * (1 + 0.5 * TAU), 0.5) and not within(0.5 * (1 + 2 * TAU), 0.5)


def test_first_widths_are_exact():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9, 4))
    agent = bl.OFUL(1.0, 3.0).start(4)
    arm = agent.choose(X)
    assert agent.info.width == math.sqrt((X[arm] * X[arm]).sum() / 3.0)


def test_synthetic_instances():
    problem = bl.problems.synthetic(seed=0)
    assert problem.X.shape == (100, 16) and 0.175 <= problem.gap <= 0.185
    np.testing.assert_allclose(np.linalg.norm(problem.X, axis=1), 1.0)
    assert np.linalg.norm(problem.theta) == pytest.approx(1.0)
    np.testing.assert_allclose(np.abs(problem.reward - problem.X @ problem.theta), 0.02)
    interval = bl.problems.synthetic(seed=0, misspecification="interval", gap=None)
    assert 0.015 < interval.zeta <= 0.02
    again = bl.problems.synthetic(seed=0)
    np.testing.assert_array_equal(problem.X, again.X)
    other = bl.problems.synthetic(seed=0, instance=1)
    assert not np.array_equal(problem.X, other.X)


def test_best_linear_fit():
    """Rewards 0, 0, 3·c on x = 1, 2, 3 … : the least ζ equalises the largest residuals."""
    problem = bl.problems.FixedArms(np.array([[1.0], [1.0]]), np.array([0.0, 1.0]))
    theta, zeta = problem.best_linear_fit()
    assert zeta == pytest.approx(0.5) and theta[0] == pytest.approx(0.5)
    assert problem.zeta == pytest.approx(0.5)


def test_lower_bound_family():
    X = bl.problems.nearly_orthogonal(dim=40, arms=6, seed=1)
    family = bl.problems.lower_bound_family(X, Delta=0.25)
    assert len(family) == 36
    eps = np.abs(X @ X.T - np.eye(6)).max()
    for problem in family:
        assert problem.gap == 0.25
        assert problem.zeta <= 3 * 0.25 * eps + 1e-12
    assert bl.problems.lower_bound(dim=40, arms=6, i=2, j=None).reward.tolist()[2] == 0.25
