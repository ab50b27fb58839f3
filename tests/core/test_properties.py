"""Properties that hold whatever the numbers are."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import banditlib as bl
from banditlib.backend import NUMPY
from banditlib.engines.arm_posterior import ArmPosterior

ROUNDS = 90
seeds = st.integers(0, 2**32 - 1)
dims = st.integers(1, 5)
counts = st.integers(2, 12)


def policies(rng: np.random.Generator, fixed: bool = True) -> list[bl.Policy]:
    beta, lam = float(rng.uniform(0.2, 3)), float(rng.uniform(0.3, 4))
    chosen = [
        bl.OFUL(beta, lam),
        bl.DSOFUL(float(rng.uniform(0.05, 0.8)), beta, lam),
        bl.SupLinUCB(beta, lam),
        bl.LSW(beta, lam, float(rng.uniform(0, 0.2))),
    ]
    return chosen


def arms_of_distinct_norms(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    X = rng.standard_normal((n, d))
    norms = np.linspace(0.3, 1.0, n)[rng.permutation(n)]
    return X / np.linalg.norm(X, axis=1, keepdims=True) * norms[:, None]


def decide(problems: list[tuple], noise: np.ndarray, which: list[bl.Policy]) -> bl.Run:
    """Runs on problems (X, reward) of one shape, which share their batches."""
    return bl.simulate(
        [bl.problems.FixedArms(X, reward) for X, reward in problems], which, rounds=ROUNDS,
        trials=1, noise=noise, record=("arms", "levels"), progress=False,
    )  # fmt: skip


@given(seeds, dims, counts)
@settings(max_examples=12, deadline=None)
def test_permuting_arms_of_distinct_norms_permutes_decisions(seed, d, n):
    rng = np.random.default_rng(seed)
    X, noise = arms_of_distinct_norms(rng, n, d), rng.standard_normal((1, ROUNDS))
    r, order, which = X @ rng.standard_normal(d), rng.permutation(n), policies(rng)
    run = decide([(X, r), (X[order], r[order])], noise, which)
    np.testing.assert_array_equal(run.arms[0], order[run.arms[1]])
    np.testing.assert_array_equal(run.levels[0], run.levels[1])


@given(seeds, dims, counts)
@settings(max_examples=12, deadline=None)
def test_rotating_all_vectors_changes_nothing(seed, d, n):
    rng = np.random.default_rng(seed)
    X, noise = rng.standard_normal((n, d)), rng.standard_normal((1, ROUNDS))
    X /= np.linalg.norm(X, axis=1, keepdims=True)  # unit vectors: the first round is one large tie
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    r, which = X @ rng.standard_normal(d), policies(rng)
    run = decide([(X, r), (X @ Q, r)], noise, which)
    np.testing.assert_array_equal(run.arms[0], run.arms[1])
    np.testing.assert_array_equal(run.levels[0], run.levels[1])


@given(seeds, dims, counts, st.floats(-4, 4))
@settings(max_examples=30, deadline=None)
def test_widths_never_grow_beyond_rounding(seed, d, n, log_lam):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((1, n, d))
    posterior = ArmPosterior(X, np.array([10.0**log_lam]), NUMPY, np.float64)
    counted = np.zeros((1, 1, n))
    for _ in range(60):
        before = posterior.var.copy()
        a = rng.integers(n, size=1)
        posterior.learn(a, np.ones(1, dtype=np.int64), rng.standard_normal(1))
        counted[0, 0, a] += 1
        if posterior.worn():
            posterior.refresh(counted, np.zeros_like(counted), measure=False)
        assert (posterior.var <= before * (1 + 1e-9)).all()
        assert (posterior.var >= 0).all()


@given(seeds, dims, counts, st.floats(0.05, 1.0))
@settings(max_examples=30, deadline=None)
def test_selections_stay_within_the_lemma(seed, d, n, Gamma):
    """|C_k| <= 16 d Γ⁻² log(3LB/Γ) with λ = B⁻² and ‖x‖ <= L; here B = L = 1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    problem = bl.problems.FixedArms(X, rng.standard_normal(n))
    run = bl.simulate(
        problem, bl.DSOFUL(Gamma, 1.0, 1.0), rounds=2000, trials=1, seed=seed, progress=False
    )
    assert run.selections.max() <= 16 * d * Gamma**-2 * math.log(3 / Gamma)


@given(seeds, st.integers(1, 4), st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_levels_are_entered_in_order_and_end_as_prescribed(seed, d, n):
    """A level l above 1 is learnt only after k > 4^(l-1) d."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 0.6
    assume(np.abs(X).max() > 1e-3)
    reward, noise = X @ rng.standard_normal(d), rng.standard_normal((1, ROUNDS))
    run = decide([(X, reward)], noise, [bl.SupLinUCB(1, 1)])
    k, level = np.arange(1, ROUNDS + 1), run.levels[0, 0, 0]
    deep = level > 1
    assert (k[deep] > 4.0 ** (level[deep] - 1) * d).all()


@given(seeds, st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_agents_and_simulator_agree_on_pools(seed, d):
    rng = np.random.default_rng(seed)
    pool = bl.problems.Pool(rng.standard_normal((5, d)), rng.standard_normal((4, d)), sigma=0.3)
    which = policies(rng)
    run = bl.simulate(
        pool, which, rounds=60, trials=1, seed=3, record=("arms", "levels"), progress=False
    )
    shown = pool.contexts(3, 0, 60)
    noise = 0.3 * bl.problems.generator(3, "noise").standard_normal(60)
    for q, policy in enumerate(which):
        agent = policy.start(d)
        for k in range(60):
            assert agent.choose(pool.points[shown[k]]) == run.arms[0, q, 0, k]
            agent.learn(pool.reward[shown[k, agent.info.arm]] + noise[k])
