"""Pools by blocks and certified stretches: the decisions of the direct method, with less work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from decided_again import decided_again

import banditlib as bl
from banditlib.backend import NUMPY
from banditlib.engines import pools
from banditlib.engines.pools import pool_regression
from banditlib.engines.pools.blocks import Lane
from banditlib.engines.pools.moments import LAST
from banditlib.engines.pools.pool_regression import PoolRegression
from banditlib.engines.pools.stretches import Stretch
from banditlib.engines.tally import Settings
from banditlib.intervals import Certificate, Enclosure
from banditlib.problems import Pool
from banditlib.view import View, first_best

GRID = [(beta, lam) for beta in (0.1, 0.3, 1.0) for lam in (1.0, 3.0, 10.0)]


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def clusters(seed: int, dim: int, good: int, bad: int, sigma: float = 0.0) -> Pool:
    """Two clouds of unit vectors around different centres."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(2, dim))
    g = unit(centres[0] + rng.normal(size=(good, dim)))
    b = unit(centres[1] + rng.normal(size=(bad, dim)))
    return Pool(g, b, sigma=sigma)


def both(monkeypatch, pool, policies, rounds=1100, trials=1, seed=0, noise=None):
    """The same call through the engine and through the direct method."""
    keep = dict(rounds=rounds, trials=trials, seed=seed, noise=noise, progress=False)
    keep["record"] = ("arms", "levels")
    fast = bl.simulate(pool, policies, **keep)
    with monkeypatch.context() as patch:
        patch.setattr(pools, "proves", lambda *_: False)
        direct = bl.simulate(pool, policies, **keep)
    for name in ("arms", "levels", "plays", "learnt", "first_skip", "final_arm"):
        assert np.array_equal(getattr(fast, name), getattr(direct, name)), name
    return fast


@pytest.mark.parametrize("seed", range(6))
def test_random_pools(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    dim, good, bad = rng.integers(1, 9), rng.integers(1, 25), rng.integers(1, 25)
    pool = clusters(seed, int(dim), int(good), int(bad), sigma=0.3 * (seed % 2))
    policies = [bl.OFUL(1.0, 1.0), bl.DSOFUL(0.05, 0.3, 3.0), bl.DSOFUL(0.2, 1.0, 1.0)]
    policies += [bl.DSOFUL(5.0, 1.0, 1.0), bl.SupLinUCB(0.1, 1.0), bl.SupLinUCB(1.0, 3.0)]
    both(monkeypatch, pool, policies, seed=seed)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_ties_in_score_and_at_thresholds(monkeypatch, dim):
    # orthonormal and duplicate vectors: width² = 1/(λ+n) meets Γ² and 4^-l exactly
    pool = Pool(np.eye(dim), np.concatenate([np.eye(dim), np.eye(dim)]))
    policies = [bl.OFUL(1.0, 1.0), bl.DSOFUL(0.125, 1.0, 1.0), bl.DSOFUL(0.25, 0.0, 3.0)]
    policies += [bl.SupLinUCB(1.0, 1.0), bl.SupLinUCB(0.0, 4.0), bl.SupLinUCB([2.0] * 9, 1.0)]
    both(monkeypatch, pool, policies)


def test_the_whole_grid(monkeypatch):
    pool = clusters(3, 6, 30, 40)
    policies = [bl.DSOFUL(g, b, m) for g in (0.0, 0.05, 0.1) for b, m in GRID]
    both(monkeypatch, pool, policies + [bl.SupLinUCB(b, m) for b, m in GRID], rounds=400)


def test_extreme_regularisers(monkeypatch):
    pool = clusters(4, 5, 12, 9)
    policies = [
        kind(lam)
        for lam in (1e-6, 1e6)
        for kind in (
            lambda m: bl.OFUL(1.0, m),
            lambda m: bl.DSOFUL(0.1, 1.0, m),
            lambda m: bl.SupLinUCB(1.0, m),
        )
    ]
    both(monkeypatch, pool, policies, rounds=900)


def test_noise_given_number_by_number(monkeypatch):
    noise = np.random.default_rng(5).normal(size=(2, 800))
    both(
        monkeypatch,
        clusters(5, 4, 8, 8),
        [bl.OFUL(1.0, 1.0), bl.SupLinUCB(0.3, 1.0)],
        rounds=800,
        trials=2,
        noise=noise,
    )


def test_radius_by_level(monkeypatch):
    pool = clusters(6, 3, 20, 20)
    both(monkeypatch, pool, bl.SupLinUCB(lambda level: 0.2 * level, 1.0))


def test_many_dimensions(monkeypatch):
    pool = clusters(7, 512, 300, 300)
    policies = [bl.OFUL(0.3, 1.0), bl.DSOFUL(0.3, 1.0, 1.0), bl.SupLinUCB(0.1, 1.0)]
    both(monkeypatch, pool, policies, rounds=800)


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", [bl.OFUL(0.5, 1.0), bl.DSOFUL(0.02, 1.0, 1.0), bl.SupLinUCB(0.3, 1.0)]
)
def test_many_rounds(monkeypatch, policy):
    """The direct method for fifty thousand rounds; then every decision of a million."""
    pool, K = clusters(8, 3, 40, 40), 1_000_000
    both(monkeypatch, pool, policy, rounds=50_000)
    run = bl.simulate(
        pool, policy, rounds=K, trials=1, record=("arms", "levels"), checkpoints=[K], progress=False
    )
    arms, levels = run.arms[0, 0, 0], run.levels[0, 0, 0]
    shown = pool.contexts(0, 0, K)
    played = shown[np.arange(K), arms]
    decided_again(policy, lambda part: pool.points[shown[part]], pool.reward[played], arms, levels)
    wrong = pool.reward[played] < 1.0
    assert run.plays[0, 0, 0, -1].tolist() == [K - wrong.sum(), wrong.sum()]
    found = run.learnt[0, 0, 0, -1]
    assert np.array_equal(found, np.bincount(levels, minlength=len(found) + 1)[1:])
    skipped = np.flatnonzero(levels == 0)
    assert run.first_skip[0, 0, 0] == (skipped[0] + 1 if skipped.size else 0)
    assert run.final_arm[0, 0, 0] == wrong[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", [bl.OFUL(1.0, 1.0), bl.DSOFUL(0.2, 1.0, 1.0), bl.SupLinUCB(0.3, 3.0)]
)
def test_many_dimensions_longer(monkeypatch, policy):
    both(monkeypatch, clusters(9, 512, 700, 900), policy, rounds=12_000)


# -- the pieces ----------------------------------------------------------------------------------


def lane(policy, pool=None, rounds=600, seed=0, noise=None):
    pool = clusters(1, 6, 15, 15) if pool is None else pool
    return Lane(pool, pool.contexts(seed, 0, rounds), policy, noise=noise)


@pytest.mark.parametrize(
    "policy", [bl.OFUL(1.0, 1.0), bl.DSOFUL(0.1, 1.0, 1.0), bl.SupLinUCB(0.3, 1.0)]
)
def test_lengths_do_not_matter(policy):
    wanted = lane(policy).run()
    for opening, block in ((1, 1), (64, 7), (600, 64), (200, 200)):
        found = lane(policy).run(opening=opening, block=block)
        assert np.array_equal(found.arms, wanted.arms)
        assert np.array_equal(found.levels, wanted.levels)


def test_stretches_do_most_of_the_work():
    cost = lane(bl.OFUL(0.3, 1.0), rounds=20_000).run(opening=256).cost
    assert cost["gram"] <= 2000 and cost["exact"] <= 2000
    assert cost["stretch"] < 200


def test_no_stretch_can_learn_when_Gamma_is_large():
    play = lane(bl.DSOFUL(9.0, 1.0, 1.0), rounds=5000)
    assert not play.run(opening=64).levels.any()
    assert play.states[0].learnt == 0


@dataclass(frozen=True)
class Greedy(bl.Policy):
    """A policy of one's own: no bonus, every round learnt."""

    lam: float

    def choose(self, k, view):
        arm = first_best(view.mean)
        return arm, np.ones_like(arm)


def test_a_policy_of_ones_own_runs_in_gram_blocks(monkeypatch):
    both(monkeypatch, clusters(2, 7, 20, 20), [Greedy(1.0), bl.OFUL(1.0, 1.0)])


def test_other_policies_are_left_to_the_direct_method():
    def proved(policy, dtype="float64"):
        return pools.proves(policy, Settings(5, (0,), 0, None, np.array([5]), (), NUMPY, dtype))

    assert proved(bl.OFUL(1.0, 1.0))
    assert not proved(bl.LSW(1.0, 1.0, 0.1)) and not proved(bl.OFUL(1.0, 1.0), "float32")


def exact_values(play, arm, upto, learns=None):
    """Means and widths (arms shown) before each round of a stretch, by solving."""
    state, means, widths = play.states[0], [], []
    U, b = state.U.copy(), state.b.copy()
    for j in range(upto):
        x = play.game.points[play.game.contexts[play.k + j]]
        means.append(x @ np.linalg.solve(U, b))
        widths.append(np.sqrt(np.einsum("md,dm->m", x, np.linalg.solve(U, x.T))))
        if learns is not None and not learns[j]:
            continue
        played = play.game.contexts[play.k + j, arm[j]]
        U += np.outer(play.game.points[played], play.game.points[played])
        b += play.game.reward[played] * play.game.points[played]
    return np.array(means), np.array(widths)


def stretch_at(play, start, size):
    """The `size` rounds after `start`, with a first guess."""
    stretch = Stretch(play.game, play._states(start + size), start, size)
    stretch._guess()
    return stretch


def oful_stretch(seed, after, size):
    """A lane of OFUL after some rounds, and the next ``size`` rounds as a stretch."""
    play = lane(bl.OFUL(1.0, 1.0), clusters(seed, 8, 40, 40), rounds=after + 200, seed=seed)
    play.gram_block(after)
    return play, stretch_at(play, after, size)


def in_doubt(size):
    """Rounds of which neither means nor widths are clear."""
    one, every = np.ones(size, np.int64), np.ones((2, size), bool)
    return Certificate(0 * one, one, one, every, every[0])


def holds(low, value, high, eps=1e-10):
    return (value + eps >= low[0].T).all() and (value - eps <= high[0].T).all()


@pytest.mark.parametrize("seed", range(4))
def test_enclosures_hold_and_tighten(seed):
    """Every interval contains the value it stands for, at each order of the series."""
    rng, size = np.random.default_rng(seed), 20
    play, stretch = oful_stretch(seed, 300, size)
    arm = rng.integers(0, 2, size)  # any guess will do
    stretch.updates = [stretch._guessed_update(0, arm, np.ones(size, bool))]
    m, w = exact_values(play, arm, size)
    todo, both_arms = np.arange(size), np.ones((2, size), bool)
    box, last = stretch._box(todo), np.inf
    for moments in (None, "near", 1, 2, 3, 4, 7, 16):
        if moments == "near":
            stretch._nearby(todo, in_doubt(size), box)
        elif moments is not None:
            stretch._refine(0, moments, todo, todo, both_arms, box, True)
        assert holds(box.mean_low, m, box.mean_high) and holds(box.width_low, w, box.width_high)
        now = (box.mean_high - box.mean_low).sum() + (box.width_high - box.width_low).sum()
        assert now < last
        last = now
    assert last < 1e-2


@pytest.mark.parametrize("seed", range(4))
def test_enclosures_hold_when_the_guess_changes(seed):
    """Sums amended and widths carried over to another guess are those of that guess."""
    rng, size = np.random.default_rng(seed), 60
    play, stretch = oful_stretch(seed, 400, size)
    todo, both_arms = np.arange(size), np.ones((2, size), bool)
    arm, learns = rng.integers(0, 2, size), rng.random(size) < 0.8
    for _ in range(3):
        stretch.updates = [stretch._guessed_update(0, arm, learns)]
        box = stretch._box(todo)
        m, w = exact_values(play, arm, size, learns)
        assert holds(box.mean_low, m, box.mean_high) and holds(box.width_low, w, box.width_high)
        stretch._at_end(todo, in_doubt(size), box)
        assert holds(box.mean_low, m, box.mean_high) and holds(box.width_low, w, box.width_high)
        assert stretch.updates[0].exact.any()
        stretch._refine(0, 4, todo, todo, both_arms, box, True)
        assert holds(box.mean_low, m, box.mean_high)
        flip = rng.random(size) < 0.1
        arm, learns = np.where(flip, 1 - arm, arm), learns ^ (rng.random(size) < 0.05)


def test_growth_is_a_bound():
    rng = np.random.default_rng(0)
    for n in (1, 5, 60):
        X = rng.normal(size=(n, 9))
        state = PoolRegression(X, np.linalg.norm(X, axis=1), 0.7)
        A = X.T @ X
        true = np.linalg.eigvalsh(A).max() / 0.7
        assert true <= pool_regression.growth(state, A, None) <= 1.7 * true
        assert true <= pool_regression.growth(state, A, X) <= (1 + 1e-8) * true


@pytest.mark.parametrize(
    "policy", [bl.OFUL(1.0, 1.0), bl.DSOFUL(0.3, 0.5, 1.0), bl.SupLinUCB(0.4, 1.0)]
)
def test_certified_decisions_are_those_of_every_point_of_the_box(policy):
    rng = np.random.default_rng(1)
    rounds, arms = 400, 3
    depth = 3 if isinstance(policy, bl.SupLinUCB) else 1
    play = lane(policy, clusters(1, 6, 5, 5), rounds=2000)
    shape = (depth, arms, rounds)
    m, w = rng.normal(size=shape) * 0.3, rng.random(shape) * 0.6
    radius = rng.random(shape) * 0.1 * (rng.random(shape) < 0.7)
    box = Enclosure(m - radius, m + radius, np.maximum(w - radius, 0.0), w + radius)
    k = rng.integers(1, 4**3 * play.game.dim if depth > 1 else 2000, rounds)
    seen = play.game.certify(k, box)
    sure = seen.doubt == 0
    assert 0.1 < sure.mean() < 1.0
    for corner in range(40):
        u, v = rng.random((2, *shape)) if corner % 2 else rng.integers(0, 2, (2, *shape))
        mean = box.mean_low + u * (box.mean_high - box.mean_low)
        width = box.width_low + v * (box.width_high - box.width_low)
        arm, level = play.game.choose(k, mean, width**2)
        assert np.array_equal(arm[sure], seen.arm[sure])
        assert np.array_equal(level[sure], seen.level[sure])


def test_gram_conditioning_against_solving():
    play = lane(bl.OFUL(0.7, 2.0), rounds=64)
    play.gram_block(64)
    U, b = 2.0 * np.eye(play.game.dim), np.zeros(play.game.dim)
    for j in range(64):
        x = play.game.points[play.game.contexts[j]]
        width = np.sqrt(np.einsum("md,dm->m", x, np.linalg.solve(U, x.T)))
        view = View(x @ np.linalg.solve(U, b), width**2, play.game.dim)
        assert play.game.policy.choose(j + 1, view)[0] == play.arms[j]
        U += np.outer(x[play.arms[j]], x[play.arms[j]])
        b += play.game.reward[play.game.contexts[j, play.arms[j]]] * x[play.arms[j]]
    assert np.allclose(play.states[0].inverse, np.linalg.inv(U), atol=1e-12)
    assert np.allclose(play.states[0].theta, np.linalg.solve(U, b), atol=1e-12)


@pytest.mark.parametrize("policy", [bl.OFUL(1.0, 1.0), bl.DSOFUL(0.3, 1.0, 1.0)])
def test_the_baseline_of_the_bench_takes_the_same_decisions(policy):
    from banditlib.paper.bench import pools as bench_pool

    pool = bench_pool.two_clusters(dim=24, each=50)
    shown = pool.contexts(0, 0, 400)
    direct = bench_pool.Direct(pool, policy, shown).play(400)
    assert np.array_equal(direct, Lane(pool, shown, policy).run(64).arms)


def test_the_baseline_by_levels_takes_the_same_decisions():
    from banditlib.paper.bench import pools as bench_pool

    pool, policy = bench_pool.two_clusters(dim=24, each=50), bl.SupLinUCB(0.3, 1.0)
    wanted = lane(policy, pool, rounds=1200).run().arms
    begun = lane(policy, pool, rounds=1200)
    for start in (0, 300):  # from nothing, and from where a lane is
        found = bench_pool.DirectLevels(policy, begun).play(400)
        assert np.array_equal(found, wanted[start : start + 400])
        begun.gram_block(300)


@pytest.mark.parametrize("policy", [bl.DSOFUL(0.05, 3.0, 1.0), bl.SupLinUCB(0.3, 1.0)], ids=repr)
def test_widths_are_enclosed_after_every_stretch(policy):
    play = lane(policy, clusters(3, 8, 40, 40), rounds=6000)
    measured = []

    def look(play):
        for state in play.states:
            true = pool_regression.widths(state.points, np.arange(80), np.linalg.inv(state.U))
            assert (state.narrow <= true * (1 + 1e-9)).all()
            assert (state.wide >= true * (1 - 1e-9)).all()
        measured.append(play.cost.get("ended", 0))

    play.run(opening=256, report=look)
    assert measured[-1] > 0


def test_many_moments_of_a_fast_growing_level_hold():
    """With ρ > 1 the moments grow for ever; what rounding leaves of their sum is no bound."""
    for seed in range(6):
        rng, size = np.random.default_rng(seed), 12
        long = rng.normal(size=(2, 20, 4)) * np.exp(rng.normal(size=(2, 20, 1)))
        play = lane(bl.OFUL(1.0, 1.0), Pool(*long), rounds=400, seed=seed)
        play.gram_block(4)
        stretch, todo = stretch_at(play, 4, size), np.arange(size)
        arm = rng.integers(0, 2, size)
        stretch.updates = [stretch._guessed_update(0, arm, np.ones(size, bool))]
        assert stretch.updates[0].rho > 1.0
        box = stretch._box(todo)
        stretch._refine(0, LAST, todo, todo, np.ones((2, size), bool), box, True)
        m, w = exact_values(play, arm, size)
        assert holds(box.mean_low, m, box.mean_high) and holds(box.width_low, w, box.width_high)
