"""CertLinUCB: by hand, against the plain loop, and what its certificate does."""

from __future__ import annotations

import numpy as np
import pytest
from plain_loop import check_against_plain_loop

import banditlib as bl
from banditlib import reference

KW = dict(record=("arms", "levels"), progress=False)


def test_the_first_rounds_by_hand():
    """e₁ pays 0, e₂ pays 1; λ = 1, γ = 1, and a width after n plays is 1/√(1+n).

    1-2: L = 0, so the greedy arm of level 1, which is e₁ as nothing pays yet, learnt at level 1.
    3-8: L = 1. At level 1 the widest is played while it is at least 1/2 wide: e₂ (width 1), e₂
    again (0.707 against e₁'s 0.577), then e₁, e₂ in turn until both have 4 plays.
    9: L = 2; level 1 has all widths below 1/2 (1/√5), means 0 and 0.8, within 4/2: both stay.
    Level 2 is new, widths are 1: e₁, the first of the widest, is learnt there.
    """
    problem = bl.problems.FixedArms(np.eye(2), [0.0, 1.0], sigma=0.0)
    run = bl.simulate(problem, bl.CertLinUCB(1.0, 1.0), rounds=10, trials=1, **KW)
    # with n plays a width of at least 1/2 means n <= 3, so four plays of each arm at level 1
    assert run.arms[0, 0, 0].tolist() == [0, 0, 1, 1, 0, 1, 0, 1, 0, 1]
    assert run.levels[0, 0, 0].tolist() == [1] * 8 + [2, 2]


def test_a_level_that_contradicts_the_one_before_is_not_used():
    """Level 1 says V = 0.9, so the interval is [0, 1]; level 2 says 2, and 2 - 3/4 > 1."""
    view = bl.View(np.array([[0.9, 0.1], [0.0, 2.0]]), np.full((2, 2), 1e-6), 2)
    policy = bl.CertLinUCB(1.0, 1.0)
    assert [int(v) for v in policy.choose(8, view)] == [0, 2]  # L = 1: greedy at 1, learnt at 2
    deeper = bl.View(np.concatenate([view.mean, [[0.5, 0.5]]]), np.full((3, 2), 1e-6), 2)
    assert [int(v) for v in policy.choose(9, deeper)] == [0, 0]  # L = 2: refuted, nothing learnt
    fitting = bl.View(np.array([[0.9, 0.1], [0.0, 1.7], [0.5, 0.5]]), np.full((3, 2), 1e-6), 2)
    assert [int(v) for v in policy.choose(9, fitting)] == [1, 3]  # 1.7 - 3/4 < 1: level 2 counts
    wide = bl.CertLinUCB(1.0, 1.0, high=3.0)
    assert [int(v) for v in wide.choose(9, deeper)] == [1, 3]


def test_arms_go_when_they_are_four_steps_behind():
    """At level 2, whose step is 1/4, an arm 1.01 behind goes and one 0.99 behind stays."""
    for behind, left in ((0.99, 1), (1.01, 0)):
        mean = np.array([[0.5, 0.5], [1.0, 1.0 - behind], [0.2, 0.9]])
        wider = bl.View(mean, np.array([[1e-6, 1e-6], [1e-6, 1e-6], [0.1, 0.9]]), 2)
        policy = bl.CertLinUCB(1.0, 1.0, low=-1.0, high=2.0)
        assert [int(v) for v in policy.choose(33, wider)] == [left, 3]
        assert int(policy.choose(32, wider)[0]) == 0  # L = 2: the greedy arm of level 2


@pytest.mark.parametrize("beta", [0.2, 1.5, lambda l: 0.1 * l])
def test_decisions_equal_the_plain_loop(beta):
    check_against_plain_loop(bl.CertLinUCB(beta, 1.3), zeta=0.3)


def test_the_certificate_is_needed_only_when_the_model_is_wrong():
    """The same vector pays differently in two places: levels learn from each, and contradict."""
    X = np.eye(2)
    sets = [X[[0]]] * 12 + [X] * 400  # level 1 learns 0.1 for e₁; it then pays 3
    found = {}
    for pay in (0.1, 3.0):
        _, levels = reference.cert_lin_ucb(
            sets, lambda k, a, pay=pay: 0.1 if k <= 12 else pay * (1 - a), 412, lambda l: 1.0, 1.0
        )
        found[pay] = int((levels[12:] == 0).sum())
    assert found[0.1] == 0 and found[3.0] > 0


@pytest.mark.parametrize(
    ("name", "args"), [("beta", (-1, 1)), ("lam", (1, 0)), ("high", (1, 1, 1.0, 0.0))]
)
def test_the_argument_at_fault_is_named(name, args):
    with pytest.raises(ValueError, match=rf"^{name}:"):
        bl.CertLinUCB(*args)
