"""Phased elimination: designs, a case by hand, the plain loop, live agents."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest

import banditlib as bl
from banditlib import reference
from banditlib.design import g_optimal
from banditlib.problems import generator

KW = dict(record=("arms", "levels"), progress=False)


@pytest.mark.parametrize(("dim", "arms"), [(1, 3), (2, 2), (3, 50), (8, 40), (16, 300)])
def test_designs_are_good_and_small(dim, arms):
    X = np.random.default_rng(dim).standard_normal((arms, dim))
    rho, rank = g_optimal(X)
    width = np.einsum("nd,nd->n", X, np.linalg.solve(X.T @ (rho[:, None] * X), X.T).T)
    assert rank == dim and rho.min() >= 0 and rho.sum() == pytest.approx(1)
    assert width.max() <= 2 * dim * (1 + 1e-9)
    assert (rho > 0).sum() <= (4 * dim * math.log(math.log(dim)) if dim > 2 else 0) + 16


def test_designs_on_a_subspace_and_on_nothing():
    X = np.outer([1.0, 2.0, -2.0], [0.6, 0.8, 0.0])
    rho, rank = g_optimal(X)
    assert rank == 1 and rho.tolist() == [0, 1, 0]
    assert g_optimal(np.zeros((2, 3)))[1] == 0


def test_two_arms_by_hand():
    """e₁ and e₂ share m = 16 plays; log(1/δ) = 2, so the limit is 4σ √(2/16 · 2) = 2σ."""
    problem = bl.problems.FixedArms(np.eye(2), [1.0, 0.0], sigma=0.0)
    policies = [bl.PhasedElimination(math.exp(-2), sigma) for sigma in (0.49, 0.51)]
    run = bl.simulate(problem, policies, rounds=48, trials=1, **KW)
    assert run.arms[0, 0, 0].tolist() == [0] * 8 + [1] * 8 + [0] * 32
    assert run.arms[0, 1, 0].tolist() == [0] * 8 + [1] * 8 + [0] * 16 + [1] * 16
    assert run.learnt[0, 0, 0, -1, 0] == 48


@pytest.mark.parametrize(("dim", "arms"), [(2, 5), (4, 12), (6, 4)])
def test_decisions_equal_the_plain_loop(dim, arms):
    problem = bl.problems.synthetic(seed=1, dim=dim, arms=arms, gap=None)
    policies = [bl.PhasedElimination(0.01, 0.2), bl.PhasedElimination(0.1, 1.0), bl.OFUL(1, 1)]
    run = bl.simulate([problem] * 2, policies, rounds=2000, trials=3, seed=3, **KW)
    for q, policy in enumerate(policies[:2]):
        for trial in range(3):
            noise = generator(3, "noise", 0, trial).standard_normal(2000)
            wanted, _ = reference.follow(
                policy, [problem.X], lambda k, a, e=noise: problem.reward[a] + e[k - 1], 2000
            )
            np.testing.assert_array_equal(run.arms[1, q, trial], wanted)
            assert (run.plays[0, q, trial, -1] == np.bincount(wanted, minlength=arms)).all()


def test_a_live_agent_plays_the_same_and_continues_from_a_file():
    problem = bl.problems.synthetic(seed=1, dim=3, arms=7, gap=None)
    run = bl.simulate(problem, bl.PhasedElimination(0.05, 0.3), rounds=300, trials=1, **KW)
    noise = generator(0, "noise").standard_normal(300)
    agent = bl.PhasedElimination(0.05, 0.3).start(3, arms=problem.X)
    for k in range(300):
        if k % 37 == 0:  # through a file, and a round without its reward
            file = io.BytesIO()
            agent.save(file)
            file.seek(0)
            agent = bl.load(file)
            agent.choose()
            agent.skip()
        assert agent.choose() == run.arms[0, 0, 0, k]
        agent.learn(problem.reward[run.arms[0, 0, 0, k]] + noise[k])


def test_changing_sets_are_refused():
    with pytest.raises(ValueError, match="PhasedElimination needs fixed arms"):
        bl.simulate(bl.problems.unit_vectors(dim=3, arms=4), bl.PhasedElimination(0.1), rounds=5)
    with pytest.raises(ValueError, match="PhasedElimination needs fixed arms"):
        bl.PhasedElimination(0.1).start(3)
    with pytest.raises(NotImplementedError, match="plans whole phases"):
        bl.PhasedElimination(0.1).choose(1, bl.View(np.zeros(2), np.ones(2), 2))


@pytest.mark.parametrize(("name", "args"), [("delta", (0,)), ("delta", (1,)), ("sigma", (0.1, -1))])
def test_the_argument_at_fault_is_named(name, args):
    with pytest.raises(ValueError, match=rf"^{name}:"):
        bl.PhasedElimination(*args)


def test_a_phase_is_laid_out_where_an_index_has_32_bits(monkeypatch):
    """A browser's Python has 64-bit counts and 32-bit indices, and numpy refuses the former."""
    repeat = np.repeat

    def strict(values, counts):
        assert counts.dtype == np.intp
        return repeat(values, counts)

    monkeypatch.setattr(np, "repeat", strict)
    monkeypatch.setattr(np, "intp", np.int32)
    problem = bl.problems.synthetic(seed=0)
    bl.simulate(problem, bl.PhasedElimination(0.1, 0.5), 200, 1, progress=False)
