"""LayeredDSOFUL: by hand, against the plain loop, and what tells it from SupLinUCB."""

from __future__ import annotations

import numpy as np
import pytest
from plain_loop import check_against_plain_loop

import banditlib as bl
from banditlib import theory

KW = dict(record=("arms", "levels"), progress=False)


def test_thirteen_rounds_by_hand():
    """e₁ pays 1, e₂ nothing; λ = 1, β = 0.1, and a width after n plays is 1/√(1+n)."""
    problem = bl.problems.FixedArms(np.eye(2), [1.0, 0.0], sigma=0.0)
    run = bl.simulate(problem, bl.LayeredDSOFUL(0.1, 1.0), rounds=13, trials=1, **KW)
    # 1-4: e₁ is best and wide. 5-8: it is narrow, and k <= 4 d. 9-12: k is beyond that, so the
    # wide e₂ is looked at. 13: both are narrow, e₂ is behind by 0.8 > 2 β/2 and goes: level 2.
    assert run.arms[0, 0, 0].tolist() == [0] * 8 + [1] * 4 + [0]
    assert run.levels[0, 0, 0].tolist() == [1] * 4 + [0] * 4 + [1] * 4 + [2]
    other = bl.simulate(problem, bl.SupLinUCB(0.1, 1.0), rounds=8, trials=1, **KW)
    assert other.arms[0, 0, 0].tolist() == [0, 1] * 4


def test_while_the_clock_allows_level_1_it_is_ds_oful():
    problem = bl.problems.unit_vectors(dim=6, arms=5, zeta=0.1)
    policies = [bl.LayeredDSOFUL(0.7, 1.0), bl.DSOFUL(0.5, 0.7, 1.0)]
    run = bl.simulate(problem, policies, rounds=24, trials=4, **KW)
    np.testing.assert_array_equal(run.arms[0, 0], run.arms[0, 1])
    np.testing.assert_array_equal(run.levels[0, 0], run.levels[0, 1])


@pytest.mark.parametrize("beta", [0.2, 1.5, theory.SupBeta(4, R=0.3)])
def test_decisions_equal_the_plain_loop(beta):
    check_against_plain_loop(bl.LayeredDSOFUL(beta, 1.3))


def test_no_level_learns_a_narrow_round():
    """Every learnt round had a width of at least 2⁻ˡ, so a level learns finitely many."""
    agent = bl.LayeredDSOFUL(0.5, 1.0).start(3)
    rng, learnt = np.random.default_rng(0), np.zeros(8, int)
    for _ in range(600):
        agent.choose(rng.uniform(-0.5, 0.5, (4, 3)))
        if agent.info.selected:
            assert agent.info.width >= 2.0**-agent.info.level * (1 - 1e-8)
            learnt[agent.info.level] += 1
        agent.learn(rng.standard_normal())
    for level in range(1, 8):
        assert learnt[level] <= theory.selections_root(3, 2.0**-level)


@pytest.mark.parametrize(("name", "args"), [("beta", (-1, 1)), ("lam", (1, 0)), ("beta", ([], 1))])
def test_the_argument_at_fault_is_named(name, args):
    with pytest.raises(ValueError, match=rf"^{name}:"):
        bl.LayeredDSOFUL(*args)
