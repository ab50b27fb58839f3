"""Every fast path decides as the plain references do, on random and on awkward problems."""

from __future__ import annotations

import numpy as np
import pytest

import banditlib as bl
from banditlib import reference

ROUNDS = 200


def unit(rng, n, d):
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def awkward() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(7)
    basis = np.eye(5)
    problems = {
        "random": unit(rng, 30, 5),
        "orthonormal": basis,
        "orthonormal and negatives": np.concatenate([basis, -basis]),
        "duplicates": np.repeat(unit(rng, 6, 4), 3, axis=0),
        "one arm": unit(rng, 1, 4),
        "fewer arms than dimensions": unit(rng, 3, 8),
        "one dimension": np.array([[1.0], [0.5], [-1.0], [0.25]]),
        "different norms": unit(rng, 12, 3) * np.linspace(0.05, 1.0, 12)[:, None],
        "rank deficient": np.concatenate([unit(rng, 10, 3), np.zeros((10, 2))], axis=1),
        "a zero arm": np.concatenate([unit(rng, 5, 3), np.zeros((1, 3))]),
    }
    return {name: (X, X @ rng.standard_normal(X.shape[1]) * 0.5) for name, X in problems.items()}


PROBLEMS = awkward()
DS = [
    dict(Gamma=G, beta=beta, lam=lam)
    for G in (0.0, 0.2, 0.5, 10.0)
    for beta in (0.0, 1.0, 3.0)
    for lam in (1e-6, 1.0, 1e6)
]


def rewards(problem, noise):
    return lambda k, a: problem.reward[a] + noise[k - 1]


def check(problem, policies, run, noise, follow):
    sets = [problem.X] * run.rounds
    for q, policy in enumerate(policies):
        for t in range(len(noise)):
            arms, levels = follow(policy, sets, rewards(problem, noise[t]))
            np.testing.assert_array_equal(run.arms[0, q, t], arms, err_msg=repr(policy))
            np.testing.assert_array_equal(run.levels[0, q, t], levels, err_msg=repr(policy))


def simulate(problem, policies, noise, **kw):
    return bl.simulate(
        problem, policies, rounds=noise.shape[1], trials=len(noise), noise=noise,
        record=("arms", "levels"), progress=False, **kw,
    )  # fmt: skip


def agree(name, seed, policies, follow):
    """Play the named problem and compare every decision with the loop that ``follow`` runs."""
    problem = bl.problems.FixedArms(*PROBLEMS[name])
    noise = np.random.default_rng(seed).standard_normal((1, ROUNDS)) * 0.3
    run = simulate(problem, policies, noise)
    check(problem, policies, run, noise, follow)
    return run


@pytest.mark.parametrize("name", PROBLEMS)
def test_ds_oful(name):
    def follow(p, sets, r):
        return reference.ds_oful(sets, r, ROUNDS, p.Gamma, p.beta, p.lam)

    run = agree(name, 1, [bl.DSOFUL(**params) for params in DS], follow)
    assert run.drift < 1e-11


@pytest.mark.parametrize("name", PROBLEMS)
def test_sup_lin_ucb(name):
    policies = [
        bl.SupLinUCB(beta, lam)
        for beta in (0.1, 1.0, (2.0, 1.0, 0.5, 0.5, 0.5, 0.5))
        for lam in (0.25, 1.0, 1e3)
    ]
    agree(
        name,
        2,
        policies,
        lambda p, sets, r: reference.sup_lin_ucb(sets, r, ROUNDS, p.radius, p.lam),
    )


@pytest.mark.parametrize("name", PROBLEMS)
def test_lsw(name):
    policies = [
        bl.LSW(beta, lam, eps)
        for beta, lam, eps in ((1.0, 1.0, 0.02), (3.0, 10.0, 0.5), (0.0, 0.1, 0.1))
    ]
    agree(
        name, 3, policies, lambda p, sets, r: reference.lsw(sets, r, ROUNDS, p.beta, p.lam, p.eps)
    )


@pytest.mark.parametrize("name", PROBLEMS)
def test_layered_weighted_and_phased(name):
    policies = [
        *bl.grid(bl.LayeredDSOFUL, beta=[0.1, 1.0], lam=[0.25, 1.0, 1e3]),
        *bl.grid(bl.CertLinUCB, beta=[0.1, 1.0, 3.0], lam=[0.25, 1.0, 1e3]),
        *bl.grid(bl.WeightedOFUL, alpha=[0.01, 0.3], beta=[0.1, 1.0], lam=[0.25, 1.0, 1e3]),
        *bl.grid(bl.PhasedElimination, delta=[0.1], sigma=[0.0, 0.1, 1.0]),
    ]
    agree(name, 3, policies, lambda p, sets, r: reference.follow(p, sets, r, ROUNDS))


@pytest.mark.parametrize("name", PROBLEMS)
def test_ucb_and_robust_linear(name):
    problem = bl.problems.FixedArms(*PROBLEMS[name])
    noise = np.random.default_rng(4).standard_normal((2, ROUNDS))
    noise[1] *= 5.0  # fails the test for linearity more often
    policies = [
        bl.UCB(2.0),
        bl.UCB(0.5),
        bl.RobustLinear(1.0, 1.0),
        bl.RobustLinear(2.0, 3.0, pulls=3, sigma=0.2),
    ]
    run = simulate(problem, policies, noise)

    def follow(p, sets, r):
        if isinstance(p, bl.UCB):
            return reference.ucb(problem.arms, r, ROUNDS, p.alpha)
        return reference.robust_linear(problem.X, r, ROUNDS, **p.params)

    check(problem, policies, run, noise, follow)


def test_paper_sized_lanes_against_references():
    """Sixteen dimensions, a hundred arms, a grid in one batch; every lane against its reference."""
    problem = bl.problems.synthetic(seed=3, gap=None)
    noise = np.random.default_rng(5).standard_normal((1, 400))
    policies = bl.grid(bl.DSOFUL, Gamma=[0.0, 0.2], beta=[1, 3], lam=[1, 10])
    run = simulate(problem, policies, noise)
    check(
        problem, policies, run, noise,
        lambda p, sets, r: reference.ds_oful(sets, r, 400, p.Gamma, p.beta, p.lam),
    )  # fmt: skip


def test_oful_against_an_independent_oful():
    problem = bl.problems.synthetic(seed=1, dim=4, arms=20, gap=None)
    noise = np.random.default_rng(6).standard_normal((1, 200))
    run = simulate(problem, bl.OFUL(beta=2.0, lam=1.5), noise)
    arms = reference.oful_by_ellipsoid(problem.X, rewards(problem, noise[0]), 200, 2.0, 1.5)
    np.testing.assert_array_equal(run.arms[0, 0, 0], arms)


@pytest.mark.parametrize("noisy", [False, True])
def test_pools(noisy):
    rng = np.random.default_rng(8)
    pool = bl.problems.Pool(unit(rng, 12, 6) + 0.3, unit(rng, 9, 6) - 0.3, sigma=0.5 * noisy)
    policies = [
        bl.OFUL(1.0, 1.0), bl.DSOFUL(0.3, 1.0, 1.0), bl.DSOFUL(0.1, 0.3, 3.0),
        bl.SupLinUCB(0.5, 1.0), bl.LSW(1.0, 1.0, 0.05),
    ]  # fmt: skip
    run = bl.simulate(
        pool, policies, rounds=250, trials=2, seed=4, record=("arms", "levels"), progress=False
    )
    reward = np.repeat([1.0, 0.0], [12, 9])
    for t in range(2):
        shown = pool.contexts(4, t, 250)
        noise = pool.sigma * bl.problems.generator(4, "noise", 0, t).standard_normal(250)
        sets = [pool.points[pair] for pair in shown]

        def observe(k, a, shown=shown, noise=noise):
            return reward[shown[k - 1, a]] + noise[k - 1]

        for q, p in enumerate(policies):
            if isinstance(p, bl.DSOFUL):
                arms, levels = reference.ds_oful(sets, observe, 250, p.Gamma, p.beta, p.lam)
            elif isinstance(p, bl.SupLinUCB):
                arms, levels = reference.sup_lin_ucb(sets, observe, 250, p.radius, p.lam)
            else:
                arms, levels = reference.lsw(sets, observe, 250, p.beta, p.lam, p.eps)
            np.testing.assert_array_equal(run.arms[0, q, t], arms, err_msg=repr(p))
            np.testing.assert_array_equal(run.levels[0, q, t], levels, err_msg=repr(p))
            wrong = (reward[shown[np.arange(250), arms]] < 1).cumsum()
            np.testing.assert_array_equal(run.regret[0, q, t], wrong[run.checkpoints - 1])
