"""Linear Thompson sampling: by hand, against the plain loop, and in distribution."""

from __future__ import annotations

import numpy as np
import pytest

import banditlib as bl
from banditlib import reference
from banditlib.problems import generator

KW = dict(record=("arms", "levels"), progress=False)


def test_two_rounds_by_hand():
    """Orthonormal arms and λ = 4: scores are mean + v z/2; after r = 2 on arm 1, mean 2/5."""
    policy = bl.LinearTS(scale=2.0, lam=4.0)
    view = bl.View(np.zeros(2), np.full(2, 0.25), 2, cov=np.eye(2) / 4)
    assert policy.choose(1, view, np.array([0.5, 0.7]))[0] == 1
    # second round: means (0, 0.4), variances (1/4, 1/5): scores v z (1/2, √(1/5)) + mean
    view = bl.View(np.array([0.0, 0.4]), np.array([0.25, 0.2]), 2, cov=np.diag([0.25, 0.2]))
    # arm 0: 2 · 0.5 · z; arm 1: 0.4 + 0
    assert policy.choose(2, view, np.array([0.39, 0.0]))[0] == 1
    arm, level = policy.choose(2, view, np.array([0.41, 0.0]))
    assert (arm, level) == (0, 1)


def test_scores_have_the_posterior_covariance():
    rng = np.random.default_rng(0)
    A, n = rng.normal(size=(6, 3)), 40_000
    view = bl.View(np.zeros((n, 6)), None, 3, cov=np.broadcast_to(A @ A.T, (n, 6, 6)))
    arm, _ = bl.LinearTS(1.0, 1.0).choose(1, view, rng.standard_normal((n, 6)))
    direct = (rng.standard_normal((n, 3)) @ A.T).argmax(axis=1)
    shares = [np.bincount(a, minlength=6) / n for a in (arm, direct)]
    assert np.abs(shares[0] - shares[1]).max() < 0.012


@pytest.mark.parametrize(("dim", "arms"), [(2, 2), (3, 7), (5, 4)])
def test_fixed_arms_equal_the_plain_loop(dim, arms):
    problem = bl.problems.synthetic(seed=1, dim=dim, arms=arms, gap=None)
    policies = [bl.LinearTS(0.5, 1.0), bl.LinearTS(2.0, 3.0)]
    run = bl.simulate(problem, policies, rounds=300, trials=2, seed=4, **KW)
    for q, policy in enumerate(policies):
        for trial in range(2):
            noise = generator(4, "noise", 0, trial).standard_normal(300)
            wanted, _ = reference.linear_ts(
                [problem.X] * 300,
                lambda k, a, noise=noise: problem.reward[a] + noise[k - 1],
                300,
                policy.scale,
                policy.lam,
                generator(4, "policy", 0, trial).standard_normal,
            )
            np.testing.assert_array_equal(run.arms[0, q, trial], wanted)


def test_changing_sets_equal_the_plain_loop():
    problem = bl.problems.unit_vectors(dim=4, arms=5, zeta=0.1)
    run = bl.simulate(problem, bl.LinearTS(1.0, 1.0), rounds=200, trials=1, **KW)
    X, reward, _ = problem.contexts(0, 0, 200)
    noise = generator(0, "noise").standard_normal(200)
    wanted, _ = reference.linear_ts(
        list(X),
        lambda k, a: reward[k - 1, a] + noise[k - 1],
        200,
        1.0,
        1.0,
        generator(0, "policy").standard_normal,
    )
    np.testing.assert_array_equal(run.arms[0, 0, 0], wanted)


def test_no_spread_is_greedy():
    problem = bl.problems.synthetic(seed=3, dim=3, arms=6, gap=None)
    run = bl.simulate(problem, [bl.LinearTS(0.0, 1.0)], rounds=100, trials=3, **KW)
    greedy = bl.simulate(problem, [bl.OFUL(0.0, 1.0)], rounds=100, trials=3, **KW)
    np.testing.assert_array_equal(run.arms, greedy.arms)


def test_it_learns():
    problem = bl.problems.FixedArms(np.eye(3), [0.9, 0.5, 0.1], sigma=0.3)
    run = bl.simulate(problem, bl.LinearTS(0.3, 1.0), rounds=1000, trials=8, progress=False)
    assert run.regret[..., -1].mean() < 25


@pytest.mark.parametrize(("name", "args"), [("scale", (-1, 1)), ("lam", (1, 0))])
def test_the_argument_at_fault_is_named(name, args):
    with pytest.raises(ValueError, match=rf"^{name}:"):
        bl.LinearTS(*args)
