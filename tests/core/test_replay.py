"""Offline evaluation: by hand, against the truth, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import banditlib as bl
from banditlib.replay import Log, replay
from banditlib.view import first_best

TWO = np.tile(np.eye(2), (4, 1, 1))


@dataclass(frozen=True)
class Always(bl.Policy):
    """Plays one arm and learns every round."""

    arm: int

    def choose(self, k, view):
        return np.int64(self.arm), np.int64(1)


@dataclass(frozen=True)
class Greedy(bl.Policy):
    """Plays the arm of highest estimate."""

    lam: float = 1.0

    def choose(self, k, view):
        arm = first_best(view.mean)
        return arm, np.ones_like(arm)


def test_four_rounds_by_hand():
    log = Log(TWO, arm=[0, 1, 0, 1], reward=[1.0, 5.0, 3.0, 7.0])
    found = replay(log, [Always(0), Always(1)])
    first, second = found.results
    assert (first.matched, second.matched) == (2, 2)
    assert first.replay.mean == 2.0 and second.replay.mean == 6.0
    # uniform over two arms: p = 1/2, so the weights are 2 where they agree
    assert first.ips.mean == (2 * 1 + 2 * 3) / 4 and second.ips.mean == (2 * 5 + 2 * 7) / 4
    assert first.snips.mean == 2.0 and second.snips.mean == 6.0
    half = 12.7062047  # t with one degree of freedom; rewards 1 and 3 have deviation √2
    assert first.replay.high == pytest.approx(2 + half)
    assert first.replay.over == "Student t over 2 rounds"
    assert found.logged.mean == 4.0


def test_propensities_weigh_rounds_by_hand():
    log = Log(TWO, [0, 0, 1, 0], [1.0, 2.0, 3.0, 4.0], propensity=[0.5, 0.25, 0.5, 1.0])
    found = replay(log, Always(0))[0]
    assert found.ips.mean == (1 / 0.5 + 2 / 0.25 + 4 / 1.0) / 4
    assert found.snips.mean == (1 / 0.5 + 2 / 0.25 + 4) / (2 + 4 + 1)
    assert 1 <= found.matched <= 3  # p = 1/4 is always kept, the others sometimes


def test_rounds_that_do_not_match_have_never_happened():
    """Learning from the kept rounds alone gives the same choices as an agent fed with them."""
    rng = np.random.default_rng(1)
    contexts = rng.standard_normal((200, 3, 2))
    arm = rng.integers(3, size=200)
    reward = np.einsum("kd,d->k", contexts[np.arange(200), arm], [1.0, -0.5])
    for policy in (Greedy(), bl.OFUL(0.5, 1.0), bl.SupLinUCB(1.0, 1.0), bl.LSW(1.0, 1.0, 0.1)):
        agent, kept = policy.start(2), []
        for k in range(200):
            if agent.choose(contexts[k]) == arm[k]:
                agent.learn(reward[k])
                kept.append(reward[k])
            else:
                agent.retract()
        found = replay(Log(contexts, arm, reward), policy)[0]
        assert found.matched == len(kept) == agent.round
        assert found.replay.mean == pytest.approx(np.mean(kept))


def test_fixed_arms_serve_policies_that_need_them():
    rng = np.random.default_rng(2)
    arm = rng.integers(3, size=600)
    log = Log(np.eye(3), arm, np.array([0.2, 0.9, 0.1])[arm] + 0.1 * rng.standard_normal(600))
    found = replay(log, [bl.UCB(0.5), bl.RobustLinear(1, 1, pulls=2, sigma=0.1)])
    assert found[0].replay.mean > 0.75 and found[0].matched > 150
    with pytest.raises(ValueError, match="policies: UCB needs fixed arms"):
        replay(Log(TWO, [0, 0, 0, 0], np.ones(4)), bl.UCB())


@pytest.mark.parametrize("uniform", [True, False])
def test_the_intervals_cover_the_truth(uniform):
    """A fixed rule on drawn contexts: its value is known; 95% intervals hit it about that often."""
    rng = np.random.default_rng(7)
    K, hits, logs = 120, np.zeros(3), 120
    truth = 0.0
    for _ in range(logs):
        X = rng.standard_normal((K, 2, 1))
        p = np.full(K, 0.5) if uniform else np.where(X[:, 0, 0] > 0, 0.8, 0.3)  # of arm 0
        arm = (rng.random(K) >= p).astype(int)
        pays = X[np.arange(K), arm, 0] + rng.standard_normal(K)
        propensity = None if uniform else np.where(arm == 0, p, 1 - p)
        found = replay(Log(X, arm, pays, propensity), Always(0))[0]
        hits += [e.low <= truth <= e.high for e in (found.replay, found.ips, found.snips)]
    assert (hits / logs > 0.90).all() and (hits / logs < 0.99).all()


def test_a_learner_is_worth_what_a_run_of_it_earns():
    """Replay on uniform rounds estimates the first ``matched`` rounds of a real run."""
    theta, K = np.array([1.0, -1.0]), 300
    rng = np.random.default_rng(3)
    errors = []
    for trial in range(20):
        X = rng.standard_normal((K, 3, 2))
        arm = rng.integers(3, size=K)
        noise = 0.1 * rng.standard_normal(K)
        log = Log(X, arm, X[np.arange(K), arm] @ theta + noise)
        found = replay(log, bl.OFUL(0.5, 1.0), seed=trial)[0]
        agent, earned = bl.OFUL(0.5, 1.0).start(2), []
        for _ in range(found.matched):
            contexts = rng.standard_normal((3, 2))
            pay = contexts[agent.choose(contexts)] @ theta
            agent.learn(pay + 0.1 * rng.standard_normal())
            earned.append(pay)
        errors.append(found.replay.mean - np.mean(earned))
    assert abs(np.mean(errors)) < 4 * np.std(errors) / math.sqrt(20)
    assert np.std(errors) < 0.2


def test_masks_and_tables_say_the_same():
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    rng = np.random.default_rng(4)
    rows = []
    for k in ("b", "a", "c"):
        for i in range(2 + (k == "a")):
            x, y = rng.standard_normal(2)
            rows.append((k, i == 1, 0.5 + x, 0.4, x, y))
    table = pandas.DataFrame(rows, columns=["round", "played", "reward", "propensity", "x", "y"])
    log = Log.from_dataframe(table)
    assert log.contexts.shape == (3, 3, 2) and log.mask is not None
    assert log.mask.sum(axis=1).tolist() == [2, 3, 2] and log.arm.tolist() == [1, 1, 1]
    np.testing.assert_allclose(log.reward, [r[2] for r in rows if r[1]])
    np.testing.assert_allclose(log.contexts[1], [r[4:] for r in rows if r[0] == "a"])
    arrays = dict(contexts=log.contexts, arm=log.arm, reward=log.reward, mask=log.mask)
    assert replay(table, bl.OFUL(1, 1))[0].rounds == 3
    same = replay({**arrays, "propensity": log.propensity}, bl.OFUL(1, 1))
    assert same[0] == replay(table, bl.OFUL(1, 1))[0]
    frame = same.to_dataframe()
    assert list(frame["matched"]) == [same[0].matched]
    shuffled = Log.from_dataframe(table.sample(frac=1, random_state=0))
    assert sorted(shuffled.reward) == sorted(log.reward)


def test_uniform_propensities_count_the_arms_on_offer():
    mask = [[True, False], [True, True]]
    log = Log(TWO[:2], [0, 1], [1.0, 2.0], mask=mask)
    assert log.probability.tolist() == [1.0, 0.5]


def test_it_prints_and_shows():
    found = replay(Log(TWO, [0, 1, 0, 1], np.ones(4)), [bl.OFUL(1, 1)])
    assert "matched" in repr(found) and "95%" in repr(found) and len(found) == 1
    assert found._repr_html_().startswith("<table>")
    none = replay(Log(TWO, [0, 0, 0, 0], np.ones(4)), Always(1))[0]
    assert none.matched == 0 and math.isnan(none.replay.mean) and math.isnan(none.snips.mean)


GOOD = dict(contexts=TWO, arm=[0, 1, 0, 1], reward=np.ones(4))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("log", lambda: replay(3, bl.OFUL(1, 1))),
        ("log", lambda: replay({"contexts": TWO}, bl.OFUL(1, 1))),
        ("policies", lambda: replay(GOOD, [])),
        ("policies", lambda: replay(GOOD, bl.OFUL)),
        ("seed", lambda: replay(GOOD, bl.OFUL(1, 1), seed=-1)),
        ("contexts", lambda: Log(TWO[:2], [0], [1.0])),
        ("contexts", lambda: Log(np.ones(3), [0], [1.0])),
        ("arm", lambda: Log(**{**GOOD, "arm": [0, 1, 0]})),
        ("arm", lambda: Log(**{**GOOD, "arm": [0, 1, 0, 2]})),
        ("arm", lambda: Log(**{**GOOD, "arm": [0.0, 1, 0, 1]})),
        ("arm", lambda: Log(**GOOD, mask=[[True, False]] * 4)),
        ("mask", lambda: Log(np.eye(2), [0], [1.0], mask=[[True, True]])),
        ("reward", lambda: Log(**{**GOOD, "reward": [1, math.nan, 1, 1]})),
        ("propensity", lambda: Log(**GOOD, propensity=[0.5, 0.5, 0.5, 0.0])),
        ("propensity", lambda: Log(**GOOD, propensity=[0.5])),
    ],
)
def test_the_argument_at_fault_is_named(name, call):
    with pytest.raises((TypeError, ValueError), match=rf"^{name}\b"):
        call()
