"""Every public function names the argument at fault, whatever is thrown at it."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from cases import ARGUMENTS
from hypothesis import given, settings
from hypothesis import strategies as st

import banditlib as bl
from banditlib import checks


def test_a_refusal_is_one_sentence():
    checks.require(True, "beta", "a number", "x")
    with pytest.raises(ValueError, match=r"^beta: expected a number, got 'x'$"):
        checks.require(False, "beta", "a number", "x")
    with pytest.raises(TypeError, match=r"^beta: expected a number$"):
        checks.refuse("beta", "a number", kind=TypeError)
    with pytest.raises(ValueError, match=r"^at: expected an arm below 3, got 3$"):
        checks.below("at", 3, 3, "an arm")


PROBLEM = bl.problems.synthetic(seed=0, dim=3, arms=5, gap=None)
POOL = bl.problems.Pool(np.eye(3), -np.eye(3))
X = np.eye(3)

CASES = [
    ("lam", lambda: bl.OFUL(1, 0)),
    ("lam", lambda: bl.OFUL(1, -1)),
    ("lam", lambda: bl.SupLinUCB(1, 0.0)),
    ("lam", lambda: bl.LSW(1, math.nan, 0.1)),
    ("beta", lambda: bl.OFUL(-1, 1)),
    ("beta", lambda: bl.OFUL("1", 1)),
    ("beta", lambda: bl.DSOFUL(0, math.inf, 1)),
    ("beta", lambda: bl.SupLinUCB([], 1)),
    ("beta", lambda: bl.SupLinUCB([1, -2], 1)),
    ("beta", lambda: bl.simulate(PROBLEM, bl.SupLinUCB([1.0], 1), rounds=100, trials=1)),
    ("beta", lambda: bl.simulate(PROBLEM, bl.SupLinUCB(lambda s: -1.0, 1), rounds=9, trials=1)),
    ("Gamma", lambda: bl.DSOFUL(-0.1, 1, 1)),
    ("Gamma", lambda: bl.DSOFUL(True, 1, 1)),
    ("eps", lambda: bl.LSW(1, 1, -1)),
    ("alpha", lambda: bl.UCB(-1)),
    ("pulls", lambda: bl.RobustLinear(1, 1, pulls=0)),
    ("pulls", lambda: bl.RobustLinear(1, 1, pulls=2.5)),
    ("delta", lambda: bl.RobustLinear(1, 1, delta=1.0)),
    ("policy", lambda: bl.grid(3, beta=[1])),
    ("beta", lambda: bl.grid(bl.OFUL, beta=[], lam=[1])),
    ("X", lambda: bl.problems.FixedArms(np.ones(3), np.ones(3))),
    ("X", lambda: bl.problems.FixedArms(np.ones((0, 3)), np.ones(0))),
    ("X", lambda: bl.problems.FixedArms([["a"]], [1])),
    ("X", lambda: bl.problems.FixedArms(np.array([[math.nan]]), [1.0])),
    ("X", lambda: bl.problems.FixedArms(np.array([[1j]]), [1.0])),
    ("reward", lambda: bl.problems.FixedArms(X, np.ones(4))),
    ("reward", lambda: bl.problems.FixedArms(X, [1, 2, math.inf])),
    ("theta", lambda: bl.problems.FixedArms(X, np.ones(3), theta=np.ones(2))),
    ("sigma", lambda: bl.problems.FixedArms(X, np.ones(3), sigma=-1)),
    ("instance", lambda: bl.problems.FixedArms(X, np.ones(3), instance=-1)),
    ("bad", lambda: bl.problems.Pool(np.eye(3), np.eye(2))),
    ("good", lambda: bl.problems.Pool(np.zeros((0, 2)), np.eye(2))),
    ("rounds", lambda: POOL.contexts(0, 0, 0)),
    ("trial", lambda: POOL.contexts(0, -1, 5)),
    ("seed", lambda: POOL.contexts(-1, 0, 5)),
    ("dim", lambda: bl.problems.synthetic(dim=0)),
    ("arms", lambda: bl.problems.synthetic(arms=1.5)),
    ("zeta", lambda: bl.problems.synthetic(zeta=-1)),
    ("gap", lambda: bl.problems.synthetic(gap=(0.3, 0.1))),
    ("gap", lambda: bl.problems.synthetic(gap=0.1)),
    ("gap", lambda: bl.problems.synthetic(gap=(5, 6), attempts=3)),
    ("misspecification", lambda: bl.problems.synthetic(misspecification="both")),
    ("Delta", lambda: bl.problems.lower_bound(Delta=0.8)),
    ("Delta", lambda: bl.problems.lower_bound(Delta=0)),
    ("j", lambda: bl.problems.lower_bound(i=1, j=1)),
    ("i", lambda: bl.problems.lower_bound(i=99)),
    ("eps", lambda: bl.problems.nearly_orthogonal(2, 30, eps=0.01, attempts=2)),
    ("problems", lambda: bl.simulate([], bl.OFUL(1, 1))),
    ("problems", lambda: bl.simulate(3, bl.OFUL(1, 1))),
    ("policies", lambda: bl.simulate(PROBLEM, [])),
    ("policies", lambda: bl.simulate(PROBLEM, bl.OFUL)),
    ("policies", lambda: bl.simulate(POOL, bl.UCB())),
    ("rounds", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=10.0)),
    ("rounds", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=0)),
    ("trials", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=5, trials=0)),
    ("trials", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=5, trials=[1, 1])),
    ("trials", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=5, trials="8")),
    ("seed", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=5, seed=-3)),
    ("seed", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=5, seed=None)),
    ("noise", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=5, noise=np.ones((1, 5)))),
    ("noise", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=1, trials=1, noise=[[math.nan]])),
    ("checkpoints", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=5, checkpoints=0)),
    ("checkpoints", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=5, checkpoints=[9])),
    ("record", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=5, record=("all",))),
    ("dtype", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=5, dtype="float16")),
    ("dim", lambda: bl.OFUL(1, 1).start(0)),
    ("arms", lambda: bl.OFUL(1, 1).start(3, arms=np.eye(2))),
    ("arms", lambda: bl.UCB().start(3)),
    ("last", lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=5, progress=False).locked(0)),
]


@pytest.mark.parametrize(
    ("name", "call"), CASES, ids=[f"{n}-{i}" for i, (n, _) in enumerate(CASES)]
)
def test_the_argument_at_fault_is_named(name, call):
    with pytest.raises((ValueError, TypeError), match=rf"(^|\W){re.escape(name)}\b"):
        call()


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(allow_nan=True, allow_infinity=True, width=32),
    st.text(max_size=3),
    st.lists(st.floats(allow_nan=True, width=32), max_size=3),
    st.just(np.zeros((2, 2))),
    st.just(np.array([])),
    st.just(1j),
    st.just(object()),
    st.just({}),
)

TARGETS = {
    **{name: (getattr(bl, name), good) for name, good in ARGUMENTS.items()},
    "FixedArms": (
        bl.problems.FixedArms,
        {"X": X, "reward": np.ones(3), "sigma": 1.0, "theta": None, "instance": 0},
    ),
    "Pool": (bl.problems.Pool, {"good": X, "bad": X, "sigma": 0.0, "instance": 0}),
    "synthetic": (
        bl.problems.synthetic,
        {
            "seed": 0, "dim": 2, "arms": 3, "zeta": 0.1, "gap": None, "sigma": 1.0, "instance": 0,
            "misspecification": "two-point", "attempts": 3,
        },
    ),
    "lower_bound": (
        bl.problems.lower_bound,
        {"dim": 9, "arms": 4, "Delta": 0.2, "i": 0, "j": 1, "eps": None, "seed": 0},
    ),
    "simulate": (
        bl.simulate,
        {
            "problems": PROBLEM, "policies": bl.OFUL(1, 1), "rounds": 3, "trials": 1, "seed": 0,
            "noise": None, "checkpoints": 2, "record": (), "backend": "numpy", "dtype": "float64",
        },
    ),
    "start": (bl.OFUL(1, 1).start, {"dim": 3, "arms": None}),
    "choose": (lambda contexts: bl.OFUL(1, 1).start(3).choose(contexts), {"contexts": X}),
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_junk_is_accepted_or_named(target, data):
    """Junk in one argument either is a legal value or raises an error that names the argument."""
    function, arguments = TARGETS[target]
    name = data.draw(st.sampled_from(sorted(arguments)))
    value = data.draw(junk)
    try:
        function(**{**arguments, name: value})
    except (ValueError, TypeError) as error:
        assert re.search(rf"(^|\W){re.escape(name)}\b", str(error)), (name, value, error)


def test_the_two_arms_that_pay_must_differ():
    with pytest.raises(ValueError, match="i, j: expected two different arms, got 1 for both"):
        bl.problems.lower_bound(9, 4, 0.2, i=1)


@given(st.one_of(junk, st.floats(allow_nan=True)))
@settings(max_examples=60, deadline=None)
def test_rewards(value):
    agent = bl.OFUL(1, 1).start(3)
    agent.choose(X)
    try:
        agent.learn(value)
    except (ValueError, TypeError) as error:
        assert "reward" in str(error)
        agent.learn(0.5)  # the round still waits for a proper one
    else:
        assert math.isfinite(value)
    agent.choose(X)
    assert math.isfinite(agent.info.width)


def test_long_runs_count_in_64_bits():
    rounds = 3 * 10**9
    problem = bl.problems.FixedArms(np.eye(2), [1.0, 0.0], sigma=0.0)
    run = bl.simulate(
        problem, bl.DSOFUL(0.5, 1, 1), rounds, trials=1, checkpoints=1, progress=False
    )
    assert run.plays.sum() == rounds and run.plays.min() >= 0


@pytest.mark.parametrize(
    "call",
    [
        lambda X: bl.simulate(bl.problems.FixedArms(X, np.ones(3)), bl.OFUL(1, 1), rounds=3),
        lambda X: bl.simulate(bl.problems.Pool(X, X), bl.OFUL(1, 1), rounds=3),
        lambda X: bl.OFUL(1, 1).start(3).choose(X),
        lambda X: bl.UCB().start(3, arms=X) and bl.OFUL(1, 1).start(3, arms=X),
    ],
)
def test_lengths_that_would_ruin_the_arithmetic_are_refused(call):
    with pytest.raises(ValueError, match=r"expected squared norms up to 2\^20 lam"):
        call(3e3 * np.eye(3))
    call(1e3 * np.eye(3))


def test_sizes_that_cannot_fit_are_refused_before_they_are_allocated():
    for call in (
        lambda: bl.problems.synthetic(dim=10**7, arms=10**7),
        lambda: bl.OFUL(1, 1).start(10**8),
        lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=10**15, record="arms"),
        lambda: bl.simulate(PROBLEM, bl.OFUL(1, 1), rounds=5, trials=10**14),
    ):
        with pytest.raises(ValueError, match=r"would take \S+ bytes"):
            call()


def test_a_gap_that_no_instance_has_is_said_at_once():
    with pytest.raises(ValueError, match="gap: no instance of 100 arms"):
        bl.problems.synthetic(gap=(3, 4))
    with pytest.raises(ValueError, match="gap: no instance of 1 arms"):
        bl.problems.synthetic(arms=1)


@pytest.mark.parametrize(
    ("problems", "policies", "said"),
    [
        (3, bl.OFUL(1, 1), "expected one or a list of FixedArms, Pool or Contextual, got 3"),
        (bl.problems.Pool, bl.OFUL(1, 1), "got Pool itself: call it"),
        (np.eye(2), bl.OFUL(1, 1), r"or Contextual, got ndarray of shape \(2, 2\)$"),
        (PROBLEM, "OFUL", "policies: expected one or a list of Policy, got 'OFUL'"),
        (PROBLEM, [bl.OFUL], "policies: expected one or a list of Policy, got OFUL itself"),
    ],
)
def test_simulate_says_what_it_accepts(problems, policies, said):
    with pytest.raises(TypeError, match=said):
        bl.simulate(problems, policies, rounds=2)


@pytest.mark.parametrize("name", bl._ELSEWHERE)
def test_names_of_other_libraries_say_what_is_here(name):
    with pytest.raises(AttributeError, match=rf"{name}'; here it is \w+") as caught:
        getattr(bl, name)
    first = re.search(r"here it is (\w+)", str(caught.value))[1]
    assert first in bl.__all__ or (first == "policy" and callable(bl.Policy.start))
