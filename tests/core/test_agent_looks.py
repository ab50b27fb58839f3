"""What a live agent shows of itself, and what it and the simulator refuse of a policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import banditlib as bl

rng = np.random.default_rng(0)


def taught(policy: bl.Policy, rounds: int = 50) -> tuple[bl.Agent, np.ndarray, np.ndarray]:
    """An agent after some rounds, with what it learnt from."""
    agent, X, r = policy.start(3), [], []
    for _ in range(rounds):
        contexts = rng.standard_normal((4, 3))
        arm = agent.choose(contexts)
        reward = float(rng.standard_normal())
        if agent.info.selected:
            X.append(contexts[arm])
            r.append(reward)
        agent.learn(reward)
    return agent, np.array(X), np.array(r)


def test_theta_means_and_widths_are_the_ridge_regression():
    agent, X, r = taught(bl.DSOFUL(0.3, 1.0, 2.0))
    U = 2.0 * np.eye(3) + X.T @ X
    theta = np.linalg.solve(U, X.T @ r)
    np.testing.assert_allclose(agent.theta, theta)
    points = rng.standard_normal((6, 3))
    np.testing.assert_allclose(agent.means(points), points @ theta)
    widths = np.sqrt(np.sum(points * np.linalg.solve(U, points.T).T, axis=1))
    np.testing.assert_allclose(agent.widths(points), widths)
    chosen = agent.choose(points)
    assert agent.info.width == pytest.approx(widths[chosen])
    agent.theta[:] = 9.0  # a copy
    np.testing.assert_allclose(agent.theta, theta)


def test_levels_have_rows_of_their_own():
    agent, _, _ = taught(bl.SupLinUCB(0.5, 1.0), rounds=80)
    levels = bl.SupLinUCB(0.5, 1.0).levels(3, 80)
    assert levels > 1 and agent.theta.shape == (levels, 3)
    assert agent.means(np.eye(3)).shape == agent.widths(np.eye(3)).shape == (levels, 3)


def test_looking_changes_nothing():
    seen, blind = bl.OFUL(1, 1).start(3), bl.OFUL(1, 1).start(3)
    for _ in range(30):
        contexts, reward = rng.standard_normal((4, 3)), float(rng.standard_normal())
        seen.theta, seen.means(contexts), seen.widths(contexts)
        assert seen.choose(contexts) == blind.choose(contexts)
        seen.learn(reward), blind.learn(reward)


def test_repr_and_fixed_arms():
    agent = bl.OFUL(1, 1).start(2, arms=np.eye(2))
    assert repr(agent) == "Agent(OFUL(beta=1, lam=1), dim=2, 0 rounds)"
    agent.choose()
    assert repr(agent).endswith("1 round, waits for a reward)")
    assert agent.means().tolist() == [0.0, 0.0] and agent.widths().tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="theta: UCB keeps no regression"):
        _ = bl.UCB().start(2, arms=np.eye(2)).theta
    with pytest.raises(ValueError, match="contexts"):
        bl.OFUL(1, 1).start(2).means(np.eye(3))


@dataclass(frozen=True)
class Returns(bl.Policy):
    """Whatever it is told."""

    arm: object
    level: object

    def choose(self, k, view):
        return self.arm, self.level


def test_a_live_agent_takes_python_numbers():
    agent = Returns(1, 1).start(2)
    assert agent.choose(np.eye(2)) == 1
    agent.learn(1.0)
    assert Returns(np.array(1), np.int64(0)).start(2).choose(np.eye(2)) == 1


@pytest.mark.parametrize(
    ("arm", "level"), [(2, 1), (-1, 1), (0, -1), (0.0, 1), (None, 1), (np.array([0, 1]), 1)]
)
def test_a_live_agent_refuses_what_is_no_decision(arm, level):
    agent = Returns(arm, level).start(2)
    with pytest.raises((TypeError, ValueError), match=r"^Returns\.choose: expected an arm"):
        agent.choose(np.eye(2))
    assert agent.round == 0


@pytest.mark.parametrize(
    ("arm", "level"), [(0, 1), (np.int64(0), 1), ((0, 0), (1, 1)), (0.0, None)]
)
def test_the_simulator_refuses_what_is_not_one_entry_per_lane(arm, level):
    problem = bl.problems.FixedArms(np.eye(2), [1.0, 0.0])
    with pytest.raises(TypeError, match=r"^Returns\.choose: expected .* each of 2 lanes"):
        bl.simulate(problem, Returns(arm, level), rounds=3, trials=2, progress=False)
