"""Decisions per second: ours, and those of other libraries that are installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import banditlib as bl
from banditlib.paper.bench.measure import Work, alternate, rate


class Player(NamedTuple):
    """A policy, ``decide()`` for one decision and what is learnt from it, decisions per slice."""

    policy: str
    decide: Callable[[], object]
    slice: int

    def work(self) -> float:
        """One slice of decisions."""
        for _ in range(self.slice):
            self.decide()
        return float(self.slice)


def ours() -> list[dict[str, Any]]:
    """Decisions per second of our own: many lanes together, and a live agent."""
    agent = live_agent()
    measured = {"OFUL, 360 lanes": _lanes, agent.policy: agent.work}
    return [{"policy": name, "rate": _usual_rate(work)} for name, work in measured.items()]


def _usual_rate(work: Work) -> float:
    """The median of nine slices, after one to warm up."""
    work()
    return float(np.median([rate(work) for _ in range(9)]))


def _lanes() -> float:
    problem = bl.problems.synthetic(seed=0)
    bl.simulate(problem, bl.OFUL(1, 1), rounds=300, trials=360, checkpoints=4, progress=False)
    return 360.0 * 300


def live_agent() -> Player:
    """OFUL, one decision at a time, on the paper's 100 arms in 16 dimensions."""
    problem, agent = bl.problems.synthetic(seed=0), bl.OFUL(1, 1).start(16)
    rng = np.random.default_rng(0)

    def decide() -> None:
        a = agent.choose(problem.X)
        agent.learn(problem.reward[a] + rng.normal())

    return Player("OFUL, live agent", decide, 500)


def libraries(seconds: float) -> list[dict[str, Any]]:
    """Decisions per second of OFUL-like policies elsewhere, each measured for so long in turns with
    our live agent; absent ones say so.
    """
    rows, agent = [], live_agent()
    for name, build in LIBRARIES.items():
        if importlib.util.find_spec(name) is None:
            rows.append({"library": name, "installed": False})
            continue
        try:
            found = build()
            speed = alternate(agent.work, found.work, seconds)
            speed["rate"] = speed.pop("baseline")
            rows.append({"library": name, "installed": True, "policy": found.policy, **speed})
        except Exception as error:  # a library's own trouble is a row, not a crash
            rows.append({"library": name, "installed": True, "error": f"{error}"[:200]})
    return rows


def _coba() -> Player:
    coba = importlib.import_module("coba")
    problem = bl.problems.synthetic(seed=0)
    learner = coba.LinUCBLearner(alpha=1, features=["a"])
    actions = [tuple(float(v) for v in x) for x in problem.X]

    def decide() -> None:
        action, score = learner.predict(None, actions)[:2]
        learner.learn(None, action, float(problem.reward[actions.index(action)]), score)

    return Player("LinUCBLearner", decide, 5)


def _mabwiser() -> Player:
    mabwiser = importlib.import_module("mabwiser.mab")
    problem, rng = bl.problems.synthetic(seed=0), np.random.default_rng(0)
    mab = mabwiser.MAB(
        list(range(problem.arms)), mabwiser.LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0)
    )
    context = rng.standard_normal((1, problem.dim))
    first = rng.integers(problem.arms, size=200)
    contexts = rng.standard_normal((200, problem.dim))
    mab.fit(decisions=first, rewards=problem.reward[first], contexts=contexts)

    def decide() -> None:
        a = mab.predict(context)
        mab.partial_fit([a], [float(problem.reward[a])], context)

    return Player("LinUCB, one regression per arm (disjoint)", decide, 20)


def _river() -> Player:
    bandit = importlib.import_module("river.bandit")
    problem = bl.problems.synthetic(seed=0)
    policy = bandit.LinUCBDisjoint(alpha=1.0, seed=0)
    context = {i: 1.0 / 4 for i in range(problem.dim)}
    numbers = list(range(problem.arms))

    def decide() -> None:
        a = policy.pull(numbers, context=context)
        policy.update(a, context, float(problem.reward[a]))

    return Player("LinUCBDisjoint, one regression per arm", decide, 3)


def _vowpalwabbit() -> Player:
    vowpalwabbit = importlib.import_module("vowpalwabbit")
    problem = bl.problems.synthetic(seed=0)
    workspace = vowpalwabbit.Workspace("--cb_explore_adf --squarecb --quiet")
    lines = ["| " + " ".join(f"f{i}:{v:.6f}" for i, v in enumerate(x)) for x in problem.X]

    def decide() -> None:
        chances = workspace.predict(lines)
        a = int(np.argmax(chances))
        told = f"0:{-problem.reward[a]:.6f}:{chances[a]:.6f} {lines[a]}"
        workspace.learn([told if i == a else line for i, line in enumerate(lines)])

    return Player("SquareCB on action features (a gradient step, not a ridge)", decide, 50)


def contextualbandits() -> Player:
    """Its linear regression with upper confidence bounds, on the paper's arms."""
    linreg = importlib.import_module("contextualbandits.linreg")
    problem, rng = bl.problems.synthetic(seed=0), np.random.default_rng(0)
    model = linreg.LinearRegression(lambda_=1.0, fit_intercept=False, method="sm", calc_inv=True)
    model.fit(problem.X, problem.reward)

    def decide() -> None:
        score = model.predict_ucb(problem.X, alpha=1.0)
        a = int(np.argmax(score))
        model.partial_fit(problem.X[a : a + 1], problem.reward[a : a + 1] + rng.normal())

    return Player("linreg.LinearRegression, predict_ucb and partial_fit", decide, 200)


LIBRARIES: dict[str, Callable[[], Player]] = {
    "coba": _coba,
    "contextualbandits": contextualbandits,
    "river": _river,
    "mabwiser": _mabwiser,
    "vowpalwabbit": _vowpalwabbit,
}
