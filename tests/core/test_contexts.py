"""Changing decision sets: the plain loop's decisions, whatever the sets look like."""

from __future__ import annotations

import importlib.util
import tracemalloc
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from decided_again import decided_again

import banditlib as bl
from banditlib import reference
from banditlib.engines import contexts as engine
from banditlib.problems import Contextual, generator
from banditlib.regression import LARGE
from banditlib.view import first_best

ROUNDS = 120
POLICIES = [
    bl.OFUL(1.0, 1.0),
    bl.DSOFUL(0.3, 1.0, 1.0),
    bl.DSOFUL(0.1, 0.3, 3.0),
    bl.DSOFUL(0.2, 0.0, 1e-3),
    bl.OFUL(3.0, 100.0),
    bl.SupLinUCB(0.5, 1.0),
    bl.SupLinUCB(0.1, 0.2),
    bl.LSW(1.0, 1.0, 0.05),
    bl.LayeredDSOFUL(0.5, 1.0),
    bl.CertLinUCB(0.5, 1.0),
    bl.CertLinUCB(2.0, 1.0, -1.0, 1.0),
    bl.WeightedOFUL(0.2, 1.0, 1.0),
    bl.WeightedOFUL(0.05, 0.3, 3.0),
]


def unit(rng, *shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def awkward() -> dict[str, Contextual]:
    rng = np.random.default_rng(0)
    X, theta = unit(rng, ROUNDS, 6, 4), unit(rng, 4)
    mask = rng.random((ROUNDS, 6)) < 0.6
    mask[np.arange(ROUNDS), rng.integers(6, size=ROUNDS)] = True
    line, flat = unit(rng, ROUNDS, 5, 1), np.zeros((ROUNDS, 6, 6))
    flat[..., :4] = X
    zero = X.copy()
    zero[:, 2] = 0.0
    basis = np.tile(np.eye(4), (3, 2, 1))
    scales = 10.0 ** rng.uniform(-6, 0, (ROUNDS, 6, 1))
    cases = {
        "random": Contextual(X, X @ theta, sigma=0.3),
        "sets of different sizes": Contextual(X, X @ theta, mask=mask, sigma=0.3),
        "a cycle": Contextual(X[:7], X[:7] @ theta, sigma=0.3),
        "one arm": Contextual(X[:, :1], (X @ theta)[:, :1], sigma=0.3),
        "ties": Contextual(basis, np.zeros((3, 8)), sigma=0.3),
        "norms down to 1e-6": Contextual(X * scales, X @ theta, sigma=0.3),
        "norms of 1e-6": Contextual(X * 1e-6, X @ theta, sigma=0.3),
        "norms of 30": Contextual(X * 30.0, X @ theta, sigma=0.3),
        "one dimension": Contextual(line, line[..., 0] * 0.5, sigma=0.3),
        "rank deficient": Contextual(flat, X @ theta, sigma=0.3),
        "a zero arm": Contextual(zero, zero @ theta, sigma=0.3),
        "drawn afresh": bl.problems.unit_vectors(dim=5, arms=4, sigma=0.3),
    }
    return cases


PROBLEMS = awkward()


def played(problem, seed, trial, rounds):
    """Sets, their arms' numbers and noisy rewards of a run, for the plain loops."""
    shown = problem.contexts(seed, trial, rounds)
    noise = problem.sigma * generator(seed, "noise", problem.instance, trial).standard_normal(
        rounds
    )
    there = np.ones(shown.reward.shape, dtype=bool) if shown.mask is None else shown.mask
    number = [np.flatnonzero(row) for row in there]
    sets = [x[n] for x, n in zip(shown.X, number, strict=True)]
    return shown, number, sets, lambda k, a: shown.reward[k - 1, number[k - 1][a]] + noise[k - 1]


def check(problem, policies, rounds, trials=2, seed=3, **kw):
    run = bl.simulate(
        problem, policies, rounds=rounds, trials=trials, seed=seed, checkpoints=13,
        record=("arms", "levels"), progress=False, **kw,
    )  # fmt: skip
    at = run.checkpoints - 1
    for t in range(trials):
        shown, number, sets, reward = played(problem, seed, t, rounds)
        for q, policy in enumerate(policies):
            chosen, levels = reference.follow(policy, sets, reward, rounds)
            arms = np.array([n[a] for n, a in zip(number, chosen, strict=True)])
            np.testing.assert_array_equal(run.arms[0, q, t], arms, err_msg=repr(policy))
            np.testing.assert_array_equal(run.levels[0, q, t], levels, err_msg=repr(policy))
            regret = shown.gaps[np.arange(rounds), arms].cumsum()[at]
            np.testing.assert_array_equal(run.regret[0, q, t], regret)
            for level in range(run.learnt.shape[-1]):
                learnt = (levels == level + 1).cumsum()[at]
                np.testing.assert_array_equal(run.learnt[0, q, t, :, level], learnt)
            for c, k in enumerate(run.checkpoints):
                count = np.bincount(arms[:k], minlength=problem.arms)
                np.testing.assert_array_equal(run.plays[0, q, t, c], count)
            skips = np.flatnonzero(levels == 0)
            assert run.first_skip[0, q, t] == (skips[0] + 1 if skips.size else 0)
            assert run.final_arm[0, q, t] == arms[-1]
    return run


@pytest.mark.parametrize("name", PROBLEMS)
def test_decisions_of_the_plain_loop(name):
    check(PROBLEMS[name], POLICIES, ROUNDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "sets of different sizes", "ties", "drawn afresh"])
def test_longer_runs(name):
    run = check(PROBLEMS[name], POLICIES[:7], 3000)
    assert run.drift < 1e-11


@pytest.mark.slow
def test_a_million_rounds():
    """Rounding does not add up: every decision of a long run follows from those before it."""
    problem, rounds = bl.problems.unit_vectors(dim=2, arms=3, sigma=0.3), 1_000_000
    policy, kept = bl.OFUL(1.0, 1.0), ("arms", "levels")
    run = bl.simulate(problem, policy, rounds, 1, seed=3, record=kept, progress=False)
    arms, levels = run.arms[0, 0, 0], run.levels[0, 0, 0]
    shown = problem.contexts(3, 0, rounds)
    noise = 0.3 * generator(3, "noise", problem.instance, 0).standard_normal(rounds)
    reward = shown.reward[np.arange(rounds), arms] + noise
    decided_again(policy, lambda part: shown.X[part], reward, arms, levels)
    assert run.drift < 1e-11


@pytest.mark.slow
def test_many_dimensions():
    rng = np.random.default_rng(5)
    X = unit(rng, 400, 12, 40)
    check(Contextual(X, X @ unit(rng, 40), sigma=0.2), POLICIES[:7], 400)


def test_many_dimensions_and_many_lanes():
    """Large matrices are worked on one by one, widths of many lanes on shared contexts together."""
    rng = np.random.default_rng(6)
    X, rounds = 2.0 * unit(rng, 130, 3, 70), 130  # so long that inverses are computed afresh
    policies = bl.grid(bl.DSOFUL, Gamma=[0.0, 0.7], beta=[0.1, 0.5, 1, 2, 3, 4], lam=[1])
    assert 2 * len(policies) >= engine.SHARING and X.shape[-1] >= LARGE
    run = check(Contextual(X, X @ unit(rng, 70), sigma=0.2), policies, rounds)
    assert 0 < run.drift < 1e-13


LOOKING = bl.grid(
    bl.DSOFUL, Gamma=[0.0, 0.6], beta=[0.0, 0.1, 0.5, 1, 2, 4], lam=[0.5, 2]
)  # so many that lanes of one trial look in single precision first


def many(kind: str, rounds: int) -> Contextual:
    """Problems in so many dimensions that first looks pay."""
    rng = np.random.default_rng(8)
    X = unit(rng, rounds, 5, LARGE)
    if kind == "drawn afresh":
        return bl.problems.unit_vectors(dim=LARGE, arms=5, sigma=0.3)
    mask = None
    if kind == "sets of different sizes":
        mask = rng.random((rounds, 5)) < 0.6
        mask[:, 2] = True
    elif kind == "repeated vectors":
        X[:, 4], X[::2, 3] = X[:, 1], X[::2, 0]
    elif kind == "nearly equal":  # to single precision, but not to double
        X[:, 1:] = X[:, :1] * (1.0 + 1e-8 * np.arange(1, 5))[:, None]
    elif kind == "long and short":
        X *= 10.0 ** rng.uniform(-6, 1, (rounds, 5, 1))
    return Contextual(X, X @ unit(rng, LARGE), mask=mask, sigma=0.3)


@pytest.mark.parametrize(
    "kind",
    [
        "random", "drawn afresh", "sets of different sizes", "repeated vectors", "nearly equal",
        "long and short",
    ],
)  # fmt: skip
def test_first_looks_decide_nothing(kind, monkeypatch):
    """Widths in single precision, here as wrong as their bound allows, and the plain loop."""
    rounds, look, slacks, rng = 70, engine.first_look, [], np.random.default_rng(9)

    def worst(X, inverse, size):
        var, slack = look(X, inverse, size)
        exact = engine.quadratic(X, inverse, np)
        assert (np.abs(var - exact) <= slack).all()
        slacks.append(slack.max())
        return exact + slack * rng.choice([-1.0, 1.0], slack.shape), slack

    monkeypatch.setattr(engine, "first_look", worst)
    monkeypatch.setattr(engine, "MISSES", np.inf)
    check(many(kind, rounds), LOOKING, rounds, trials=1)
    assert slacks and max(slacks) > 1e-6


@pytest.mark.parametrize("kind, gives_up", [("random", False), ("repeated vectors", True)])
def test_where_first_looks_do_not_pay_they_end(kind, gives_up, monkeypatch):
    looks, look = [], engine.first_look
    monkeypatch.setattr(engine, "first_look", lambda *a: looks.append(1) or look(*a))
    check(many(kind, 70), LOOKING, 70, trials=1)
    assert len(looks) == 1 if gives_up else len(looks) > 3


def test_a_first_look_that_is_too_sure_is_noticed(monkeypatch):
    """Without its bound on the error a first look does change decisions, so the bound is tested."""
    look, rng = engine.first_look, np.random.default_rng(9)

    def careless(X, inverse, size):
        var, slack = look(X, inverse, size)
        return var + 300 * slack * rng.choice([-1.0, 1.0], slack.shape), 0.0 * slack

    monkeypatch.setattr(engine, "first_look", careless)
    with pytest.raises(AssertionError):
        check(many("random", 70), LOOKING, 70, trials=1)


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("kind", ["sets of different sizes", "drawn afresh"])
def test_guesses_decide_nothing(kind, wrong, monkeypatch):
    """Of large inverses, U⁻¹x of arms that lanes will probably play is computed ahead."""
    rng, rounds = np.random.default_rng(7), 50
    X = unit(rng, rounds, 6, LARGE)
    mask = rng.random((rounds, 6)) < 0.5
    mask[:, 4] = True
    problem = Contextual(X, X @ unit(rng, LARGE), mask=mask, sigma=0.3)
    if kind == "drawn afresh":
        problem = bl.problems.unit_vectors(dim=LARGE, arms=6, sigma=0.3)
    choose, foreseen, hits = bl.DSOFUL.choose, engine.Block._foreseen, []
    guess, guessing = engine.Block._guess, []

    def astray(self, draws):
        guessing.append(True)
        guess(self, draws)
        guessing.pop()

    def misled(self, k, view):
        arm, level = choose(self, k, view)
        return (np.zeros_like(arm) if guessing else arm), level

    def followed(self, i, x, arm):
        hits.extend(self.slot[self.lane, arm + i * self.M] >= 0)
        u = foreseen(self, i, x, arm)
        exact = np.vecdot(self.batch.state.inverse, x[:, None, :])
        np.testing.assert_allclose(u, exact, rtol=0, atol=1e-14)
        return u

    if wrong:
        monkeypatch.setattr(bl.DSOFUL, "choose", misled)
        monkeypatch.setattr(engine.Block, "_guess", astray)
    monkeypatch.setattr(engine.Block, "_foreseen", followed)
    check(problem, [bl.OFUL(0.3, 1.0), bl.DSOFUL(0.7, 1.0, 1.0)], rounds)
    assert len(hits) == 4 * rounds
    assert 0.0 < np.mean(hits) < 0.5 if wrong else 0.7 < np.mean(hits) < 1.0


@pytest.mark.parametrize("wrong", [False, True])
def test_guesses_after_a_first_look_decide_nothing(wrong, monkeypatch):
    """There lanes guess where several arms are nearly best, here also where they are worst."""
    nearly_best, foreseen, hits = engine.Block._nearly_best, engine.Block._foreseen, []

    def worst(self):
        scores = self._scores(slice(None), self.var[:, 0])
        return np.argsort(scores, axis=-1)[:, : nearly_best(self).shape[1]]

    def followed(self, i, x, arm):
        if self.slack is not None:
            hits.extend(self.slot[self.lane, arm + i * self.M] >= 0)
        return foreseen(self, i, x, arm)

    if wrong:
        monkeypatch.setattr(engine.Block, "_nearly_best", worst)
    monkeypatch.setattr(engine.Block, "_foreseen", followed)
    check(many("sets of different sizes", 70), LOOKING, 70, trials=1)
    assert np.mean(hits) < 0.5 if wrong else np.mean(hits) > 0.8


def test_other_policies_guess_too():
    """Policies that draw, and those that weigh, on large inverses."""
    problem = bl.problems.unit_vectors(dim=LARGE, arms=6, sigma=0.3)
    check(problem, [bl.WeightedOFUL(0.2, 1.0, 1.0)], 40)
    kw = dict(rounds=40, trials=2, record=("arms",), progress=False)
    run = bl.simulate(problem, Thompson(1.0), **kw)
    for t in range(2):
        draws, (_, _, sets, reward) = generator(0, "policy", 0, t), played(problem, 0, t, 40)
        agent = Thompson(1.0).start(LARGE, seed=draws)
        for k in range(1, 41):
            assert agent.choose(sets[k - 1]) == run.arms[0, 0, t, k - 1]
            agent.learn(reward(k, agent.info.arm))


def test_the_only_arm_left_is_not_struck():
    mean, var = np.array([[0.5, -np.inf], [0.5, 0.25]]), np.array([[1.0, 0.0], [1.0, 2.0]])
    engine.strike(mean, var, np.array([0, 0]))
    np.testing.assert_array_equal(mean, [[0.5, -np.inf], [-np.inf, 0.25]])
    np.testing.assert_array_equal(var, [[1.0, 0.0], [0.0, 2.0]])


@pytest.mark.parametrize("d", [1, 3, 4, 5, 16, 17])
def test_quadratic_forms_by_shared_products(d):
    rng = np.random.default_rng(d)
    X, A = rng.standard_normal((30, d)), rng.standard_normal((5, d, 2 * d))
    inverse = A @ np.matrix_transpose(A)
    found = np.full((5, 30), np.nan)
    engine._shared_products(X, inverse, found)
    np.testing.assert_allclose(found, np.einsum("ni,rij,nj->rn", X, inverse, X), rtol=1e-13)


@pytest.mark.parametrize("name", ["sets of different sizes", "drawn afresh"])
def test_a_lane_alone_and_in_batches_of_any_size(name, monkeypatch):
    kw = dict(rounds=100, seed=2, record=("arms", "levels"), progress=False)
    together = bl.simulate(PROBLEMS[name], POLICIES, trials=3, **kw)
    for q in (0, 5):
        alone = bl.simulate(PROBLEMS[name], POLICIES[q], trials=[1], **kw)
        np.testing.assert_array_equal(together.arms[0, q, 1], alone.arms[0, 0, 0])
        np.testing.assert_array_equal(together.regret[0, q, 1], alone.regret[0, 0, 0][..., :])
    monkeypatch.setattr(engine, "BATCH", 2)
    monkeypatch.setattr(engine, "block_length", lambda problem: 3)
    cut = bl.simulate(PROBLEMS[name], POLICIES, trials=3, **kw)
    np.testing.assert_array_equal(together.arms, cut.arms)
    np.testing.assert_array_equal(together.regret, cut.regret)


@pytest.mark.parametrize(
    ("backend", "rounds"), [("array_api_strict", 40), ("torch", 40), ("dpnp", 30)]
)
def test_other_array_libraries(backend, rounds):
    """Fewer rounds on dpnp, which is slow; a weekly job runs it."""
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    for name in ("sets of different sizes", "drawn afresh"):
        kw = dict(rounds=rounds, trials=2, record=("arms", "levels"), progress=False)
        here = bl.simulate(PROBLEMS[name], POLICIES, **kw)
        there = bl.simulate(PROBLEMS[name], POLICIES, backend=backend, **kw)
        np.testing.assert_array_equal(here.arms, there.arms)
        np.testing.assert_array_equal(here.levels, there.levels)


@dataclass(frozen=True)
class Thompson(bl.Policy):
    """A policy of one's own that draws random numbers."""

    lam: float
    needs: ClassVar[frozenset[str]] = frozenset({"draws"})

    def choose(self, k, view, draws):
        arm = first_best(view.mean + np.sqrt(view.var) * draws)
        return arm, np.ones_like(arm)


def test_policies_that_draw_and_given_noise():
    kw = dict(rounds=90, trials=2, record=("arms",), progress=False)
    problem = PROBLEMS["random"]
    run = bl.simulate(problem, [Thompson(1.0), bl.OFUL(1.0, 1.0)], **kw)
    noise = np.array([0.3 * generator(0, "noise", 0, t).standard_normal(90) for t in range(2)])
    again = bl.simulate(problem, [Thompson(1.0), bl.OFUL(1.0, 1.0)], noise=noise, **kw)
    np.testing.assert_array_equal(run.arms, again.arms)
    for t in range(2):
        draws, (_, _, sets, reward) = generator(0, "policy", 0, t), played(problem, 0, t, 90)
        agent = Thompson(1.0).start(4, seed=draws)
        for k in range(1, 91):
            assert agent.choose(sets[k - 1]) == run.arms[0, 0, t, k - 1]
            agent.learn(reward(k, agent.info.arm))


def test_policies_that_need_fixed_arms_are_refused():
    for policy in (bl.UCB(), bl.RobustLinear(1.0, 1.0)):
        with pytest.raises(ValueError, match=r"policies: \w+ needs fixed arms; contexts has none"):
            bl.simulate(PROBLEMS["a cycle"], policy, rounds=5)


def test_beside_fixed_arms_and_pools():
    """Problems of every kind in one call; regret of each by its own rule."""
    arms = bl.problems.synthetic(seed=1, dim=4, arms=5, gap=None)
    pool = bl.problems.Pool(np.eye(4), -np.eye(4))
    kinds = [arms, PROBLEMS["a cycle"], pool]
    run = bl.simulate(kinds, bl.OFUL(1.0, 1.0), rounds=50, trials=2, progress=False)
    for p, problem in enumerate(kinds):
        alone = bl.simulate(problem, bl.OFUL(1.0, 1.0), rounds=50, trials=2, progress=False)
        np.testing.assert_array_equal(run.regret[p], alone.regret[0])
    assert not run.locked(10)[1].any()


def test_memory_does_not_grow_with_the_rounds():
    def peak(rounds):
        tracemalloc.start()
        bl.simulate(PROBLEMS["drawn afresh"], POLICIES[:3], rounds=rounds, trials=4, progress=False)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(100)
    assert peak(800) < 1.2 * peak(200)


def test_runs_on_changing_sets_are_saved_whole(tmp_path):
    run = bl.simulate(
        [PROBLEMS["drawn afresh"], bl.problems.Pool(np.eye(5), -np.eye(5))],
        bl.OFUL(1.0, 1.0), rounds=30, trials=2, progress=False,
    )  # fmt: skip
    run.save(tmp_path / "run.npz")
    np.testing.assert_array_equal(bl.Run.load(tmp_path / "run.npz").regret, run.regret)
    assert "30 rounds" in repr(run) and run.summary() is not None
