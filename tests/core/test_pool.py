"""Pools of two classes are as they always were; pools of more play by the same rules."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditlib as bl
from banditlib.engines.direct import Player
from banditlib.engines.pools.pool_regression import PoolRegression, growth, means
from banditlib.problems import Pool, generator

rng = np.random.default_rng(1)
CLASSES = [rng.normal(m, 1.0, (n, 4)) / 2 for m, n in ((0.4, 30), (0.0, 25), (-0.4, 40))]


def three(sigma: float = 0.0, **more) -> Pool:
    return Pool(CLASSES[0], CLASSES[1:], sigma=sigma, **more)


def test_two_classes_draw_the_same_rounds_as_ever():
    pool = Pool(CLASSES[0], CLASSES[1], instance=3)
    which, order = generator(7, "contexts", 3, 2), generator(7, "order", 3, 2)
    pairs = (which.random((50, 2)) * [30, 25]).astype(np.int64) + [0, 30]
    swap = order.random(50) < 0.5
    pairs[swap] = pairs[swap, ::-1]
    np.testing.assert_array_equal(pool.contexts(7, 2, 50), pairs)
    assert pool.gaps.tolist() == [0.0, 1.0] and pool.gap == 1.0
    np.testing.assert_array_equal(pool.reward, np.repeat([1.0, 0.0], [30, 25]))
    np.testing.assert_array_equal(pool.bad, CLASSES[1])


def test_each_class_is_shown_once_a_round_in_every_order():
    pool = three()
    shown = pool.kind[pool.contexts(0, 0, 6000)]
    np.testing.assert_array_equal(np.sort(shown, axis=1), np.tile([0, 1, 2], (6000, 1)))
    _, count = np.unique(shown, axis=0, return_counts=True)
    assert len(count) == 6 and count.min() > 850
    blocks = pool.stream(0, 0, 100)
    np.testing.assert_array_equal(
        np.concatenate([next(blocks), next(blocks)]), pool.contexts(0, 0, 200)
    )


@pytest.mark.parametrize("sigma", [0.0, 0.3])
@pytest.mark.parametrize(
    "policy", [bl.OFUL(0.5, 1.0), bl.DSOFUL(0.2, 0.5, 1.0), bl.SupLinUCB(0.5, 1.0)], ids=repr
)
def test_proved_decisions_equal_a_live_agent(policy, sigma):
    pool, K = three(sigma), 600
    run = bl.simulate(pool, policy, K, trials=1, record=("arms", "levels"), progress=False)
    noise = sigma * generator(0, "noise").standard_normal(K)
    shown, player = pool.contexts(0, 0, K), Player(policy, pool.dim, generator(0, "policy"))
    steps = [
        player.step(pool.points[which], pool.reward[which] + extra)
        for which, extra in zip(shown, noise, strict=True)
    ]
    arms, levels = np.array(steps).T
    np.testing.assert_array_equal(run.arms[0, 0, 0], arms)
    np.testing.assert_array_equal(run.levels[0, 0, 0], levels)
    kinds = pool.kind[shown[np.arange(K), arms]]
    np.testing.assert_array_equal(run.plays[0, 0, 0, -1], np.bincount(kinds, minlength=3))
    assert run.final_arm[0, 0, 0] == kinds[-1]
    assert run.regret[0, 0, 0, -1] == pytest.approx((kinds > 0).sum())


def test_classes_may_pay_what_one_likes():
    pool = three(pays=[0.2, 1.0, 0.7])
    np.testing.assert_allclose(pool.gaps, [0.8, 0.0, 0.3])
    assert pool.gap == pytest.approx(0.3)
    run = bl.simulate(pool, bl.OFUL(0.5, 1.0), 200, trials=2, progress=False)
    np.testing.assert_allclose(run.regret[..., -1], run.plays[..., -1, :] @ pool.gaps)
    assert Pool(np.eye(2), np.eye(2), pays=[1, 1]).gap == math.inf


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("bad", lambda: Pool(np.eye(3), [np.eye(3), np.eye(2)])),
        ("bad", lambda: Pool(np.eye(3), [])),
        ("bad", lambda: Pool(np.eye(1), [np.eye(1)] * 255)),
        ("pays", lambda: Pool(np.eye(3), [np.eye(3), np.eye(3)], pays=[1, 0])),
    ],
)
def test_the_argument_at_fault_is_named(name, call):
    with pytest.raises((TypeError, ValueError), match=rf"^{name}\b"):
        call()


def states(lam: float = 0.5) -> tuple[np.ndarray, list[PoolRegression]]:
    """Forty points in six dimensions, and three regressions that have learnt some of them."""
    points = np.random.default_rng(5).normal(size=(40, 6))
    norms = np.linalg.norm(points, axis=1)
    found = [PoolRegression(points, norms, lam) for _ in range(3)]
    for i, state in enumerate(found):
        X = points[: 4 * i]
        if i:
            state.grow(X.T @ X, X.sum(axis=0), 1.0, len(X), None)
    return points, found


def test_few_rows_are_learnt_as_many_are():
    points, (_, one, _) = states()
    _, (_, other, _) = states()
    X = points[20:25]
    one.grow(X.T @ X, X.sum(axis=0), 1.0, len(X), X)
    other.grow(X.T @ X, X.sum(axis=0), 1.0, len(X), None)
    assert one.folded == 5 and other.folded == 0  # one by Woodbury's identity, the other afresh
    np.testing.assert_allclose(one.inverse, other.inverse, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(one.theta, other.theta, rtol=1e-11)
    np.testing.assert_array_equal(one.U, other.U)


def test_the_growth_by_few_rows_is_the_least_there_is():
    points, (_, state, _) = states()
    X = points[20:23]
    A = X.T @ X
    rho = growth(state, A, X)
    assert np.linalg.eigvalsh(rho * state.U - A)[0] >= 0
    assert np.linalg.eigvalsh(0.999 * rho * state.U - A)[0] < 0
    assert rho <= growth(state, A, None) <= 2.0 * rho


def test_means_of_levels_come_from_tables_and_from_one_product():
    points, found = states()
    which = np.array([3, 17, 30])
    truth = np.stack([points[which] @ state.theta for state in found])
    found[1].table(len(points))
    for _ in range(2):  # at the second time all have tables
        np.testing.assert_allclose(means(found, which), truth, atol=1e-14)
    assert all(state.table(1) is not None for state in found)
