"""Live agents: the simulator's decisions, one at a time; saved and continued bit for bit."""

from __future__ import annotations

import io

import numpy as np
import pytest

import banditlib as bl
from banditlib import reference

RNG = np.random.default_rng(11)
X = RNG.standard_normal((15, 4))
X /= np.linalg.norm(X, axis=1, keepdims=True)
PROBLEM = bl.problems.FixedArms(X, X @ np.array([0.5, -0.2, 0.4, 0.1]))
POLICIES = [
    bl.OFUL(1.0, 1.0),
    bl.DSOFUL(0.2, 1.0, 2.0),
    bl.SupLinUCB(0.5, 1.0),
    bl.SupLinUCB(lambda level: 1.0 / level, 1.0),
    bl.LSW(1.0, 1.0, 0.05),
    bl.UCB(2.0),
    bl.RobustLinear(1.0, 1.0, pulls=4),
    bl.LayeredDSOFUL(0.5, 1.0),
    bl.CertLinUCB(0.5, 1.0),
    bl.WeightedOFUL(0.2, 1.0, 1.0),
    bl.PhasedElimination(0.1, 0.3),
]
IDS = [f"{type(p).__name__}-{i}" for i, p in enumerate(POLICIES)]


def play(agent, rounds, noise, start=0):
    arms, levels = [], []
    for k in range(start, start + rounds):
        contexts = None if agent.arms is not None else X
        a = agent.choose(contexts)
        assert agent.info.round == k + 1 and agent.info.arm == a
        agent.learn(PROBLEM.reward[a] + noise[k])
        arms.append(a)
        levels.append(agent.info.level)
    return arms, levels


CASES = [(p, fixed) for p in POLICIES for fixed in (True, False) if fixed or not p.fixed_arms]


@pytest.mark.parametrize(("policy", "fixed"), CASES)
def test_agent_takes_the_simulators_decisions(policy, fixed):
    noise = np.random.default_rng(0).standard_normal((1, 300)) * 0.3
    run = bl.simulate(
        PROBLEM,
        policy,
        rounds=300,
        trials=1,
        noise=noise,
        record=("arms", "levels"),
        progress=False,
    )
    arms, levels = play(policy.start(4, arms=X if fixed else None), 300, noise[0])
    np.testing.assert_array_equal(run.arms[0, 0, 0], arms)
    np.testing.assert_array_equal(run.levels[0, 0, 0], levels)


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
def test_saved_agents_continue_bit_for_bit(policy, tmp_path):
    noise = np.random.default_rng(1).standard_normal(200)
    arms = X if policy.fixed_arms else None
    one = policy.start(4, arms=arms)
    play(one, 90, noise)
    one.choose(arms if arms is not None else X)  # saved between a decision and its reward
    one.save(tmp_path / "agent.npz")
    two = bl.load(tmp_path / "agent.npz")
    assert repr(two.info) == repr(one.info)  # a policy without widths has NaN there
    for agent in (one, two):
        agent.learn(0.25)
    assert play(one, 100, noise, start=91) == play(two, 100, noise, start=91)
    for name in ("U", "inverse", "b", "theta"):
        np.testing.assert_array_equal(getattr(one._ridge, name), getattr(two._ridge, name))


def test_decision_sets_of_any_size():
    rng = np.random.default_rng(3)
    sets = [rng.standard_normal((rng.integers(1, 9), 5)) for _ in range(150)]
    noise = rng.standard_normal(150)
    theta = rng.standard_normal(5)

    def reward(k, a):
        return float(sets[k - 1][a] @ theta + noise[k - 1])

    cases = {
        bl.DSOFUL(0.3, 1.0, 1.0): reference.ds_oful(sets, reward, 150, 0.3, 1.0, 1.0),
        bl.SupLinUCB(1.0, 1.0): reference.sup_lin_ucb(sets, reward, 150, lambda _: 1.0, 1.0),
        bl.LSW(1.0, 1.0, 0.1): reference.lsw(sets, reward, 150, 1.0, 1.0, 0.1),
    }
    for policy, (arms, levels) in cases.items():
        agent = policy.start(5)
        for k in range(1, 151):
            assert agent.choose(sets[k - 1]) == arms[k - 1]
            assert agent.info.level == levels[k - 1]
            assert agent.info.selected == (levels[k - 1] > 0)
            agent.learn(reward(k, arms[k - 1]))


def test_info_tells_the_width():
    agent = bl.DSOFUL(0.5, 1.0, 4.0).start(3)
    agent.choose(np.eye(3) * [[1.0], [2.0], [0.5]])
    assert agent.info == (1, 1, 1.0, 1, True)  # width 2/√4
    agent.learn(1.0)
    agent.choose(np.eye(3)[:1] * 0.5)
    assert agent.info.width == pytest.approx(0.25) and not agent.info.selected


def test_misuse_is_named():
    agent = bl.OFUL(1.0, 1.0).start(4)
    with pytest.raises(RuntimeError, match="learn: no decision waits"):
        agent.learn(1.0)
    agent.choose(X)
    with pytest.raises(RuntimeError, match="still waits for its reward"):
        agent.choose(X)
    with pytest.raises(ValueError, match="reward"):
        agent.learn(float("nan"))
    agent.skip()
    with pytest.raises(RuntimeError, match="skip"):
        agent.skip()
    with pytest.raises(ValueError, match="contexts: the decision set is empty"):
        agent.choose([])
    with pytest.raises(ValueError, match="contexts: expected a non-empty"):
        agent.choose(np.zeros((0, 4)))
    with pytest.raises(ValueError, match="contexts: expected 4 columns"):
        agent.choose(np.ones((2, 3)))
    with pytest.raises(ValueError, match="contexts"):
        agent.choose()
    for policy in (bl.UCB(), bl.RobustLinear(1.0, 1.0)):
        with pytest.raises(ValueError, match="needs fixed arms"):
            policy.start(4)
    with pytest.raises(ValueError, match="cannot change"):
        bl.UCB().start(4, arms=X).choose(X + 1)


def test_foreign_files_are_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"not a file of ours")
    with pytest.raises(ValueError, match="not a saved agent"):
        bl.load(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", x=np.ones(3))
    with pytest.raises(ValueError, match="not a saved agent"):
        bl.load(tmp_path / "b.npz")
    with pytest.raises(FileNotFoundError):
        bl.load(tmp_path / "none.npz")
    stream = io.BytesIO()
    bl.OFUL(1.0, 1.0).start(2).save(stream)
    stream.seek(0)
    with pytest.raises(ValueError, match="policy: the file holds DSOFUL"):
        bl.load(stream, policy=bl.UCB())


def test_a_policy_that_asks_for_covariances_alone_sees_those_of_the_arms_on_offer() -> None:
    fresh = bl.problems.unit_vectors(dim=4, arms=5, zeta=0.05, gap=0.2)
    run = bl.simulate(fresh, bl.LinearTS(1, 1), rounds=30, trials=2, progress=False)
    assert run.regret.shape[2:] == (2, 30) and np.isfinite(run.regret).all()
