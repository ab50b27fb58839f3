"""Weighted OFUL: by hand, against the plain loop, and against corrupted rewards."""

from __future__ import annotations

import math

import numpy as np
import pytest
from plain_loop import check_against_plain_loop

import banditlib as bl

KW = dict(record=("arms", "levels"), progress=False)


def test_two_observations_by_hand():
    """x = 2, λ = 1, α = 1/2: width 2, weight 1/4, U = 1 + 4/4 = 2, b = 2/4; then width √2."""
    agent = bl.WeightedOFUL(0.5, 1.0, 1.0).start(1)
    agent.choose([[2.0]])
    agent.learn(1.0)
    assert agent.theta[0] == pytest.approx(0.25)
    assert agent.widths([[2.0]])[0] == pytest.approx(math.sqrt(2))
    agent.choose([[2.0]])
    agent.learn(3.0)  # weight 0.5/√2: U = 2 + 4 w, b = 0.5 + 6 w
    w = 0.5 / math.sqrt(2)
    assert agent.theta[0] == pytest.approx((0.5 + 6 * w) / (2 + 4 * w))


def test_the_weight_is_one_up_to_alpha():
    weight = bl.WeightedOFUL(0.3, 1.0, 1.0).weight(np.array([0.0, 0.1, 0.3, 0.6, 3.0]))
    np.testing.assert_allclose(weight, [1, 1, 1, 0.5, 0.1])


def test_a_large_alpha_is_oful():
    problems = [
        bl.problems.synthetic(seed=1, dim=4, arms=9, gap=None),
        bl.problems.unit_vectors(dim=4, arms=5, zeta=0.1),
    ]
    run = bl.simulate(problems, [bl.WeightedOFUL(9, 1, 1), bl.OFUL(1, 1)], rounds=400, **KW)
    np.testing.assert_array_equal(run.arms[:, 0], run.arms[:, 1])


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5])
def test_decisions_equal_the_plain_loop(alpha):
    check_against_plain_loop(bl.WeightedOFUL(alpha, 1.0, 1.3))


def test_no_observation_moves_a_prediction_by_more_than_alpha_widths():
    """Change one reward by 1: no prediction moves by more than α times its width."""
    rng, alpha = np.random.default_rng(1), 0.2
    X = rng.uniform(-1, 1, (60, 3, 4))
    for changed in range(0, 60, 7):
        agents = [bl.WeightedOFUL(alpha, 1.0, 1.0).start(4) for _ in range(2)]
        for k in range(60):
            arms = X[k][:1]  # one arm, so that both agents play the same
            for agent in agents:
                agent.choose(arms)
                agent.learn(float(k == changed and agent is agents[1]))
        points = rng.uniform(-1, 1, (200, 4))
        moved = np.abs(agents[0].means(points) - agents[1].means(points))
        assert (moved <= alpha * agents[0].widths(points) * (1 + 1e-9)).all()


@pytest.mark.parametrize(
    ("name", "args"), [("alpha", (0, 1, 1)), ("beta", (1, -1, 1)), ("lam", (1, 1, 0))]
)
def test_the_argument_at_fault_is_named(name, args):
    with pytest.raises(ValueError, match=rf"^{name}:"):
        bl.WeightedOFUL(*args)
