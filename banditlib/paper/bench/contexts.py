"""Rows (g) to (i) of the bench: changing decision sets, and a live agent.

Engine and loop see the same contexts, drawn before the clock runs.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import banditlib as bl
from banditlib import reference
from banditlib.paper.bench import libraries
from banditlib.paper.bench.measure import Row, alternate


def drawn(dim: int, arms: int, rounds: int) -> bl.problems.Contextual:
    """Unit vectors, new ones in every round, as arrays."""
    seen = bl.problems.unit_vectors(dim=dim, arms=arms).contexts(0, 0, rounds)
    return bl.problems.Contextual(seen.X, seen.reward)


def many_lanes(
    seconds: float, dim: int, arms: int, betas: int, trials: int, rounds: int
) -> dict[str, Any]:
    """OFUL on changing sets, ``betas`` × ``trials`` lanes, against one lane of the plain loop."""
    problem, rng = drawn(dim, arms, rounds), np.random.default_rng(0)
    policies = bl.grid(bl.OFUL, beta=[1 + i / 2 for i in range(betas)], lam=[1])

    def contender() -> float:
        bl.simulate(problem, policies, rounds, trials, checkpoints=10, progress=False)
        return float(betas * trials * rounds)

    def baseline() -> float:
        plain_lane(problem, rng.standard_normal(rounds), beta=3.0)
        return float(rounds)

    note = "unit vectors; the loop keeps U⁻¹ by Sherman and Morrison, one lane"
    return alternate(contender, baseline, seconds) | {"note": note}


def plain_lane(problem: bl.problems.Contextual, noise: np.ndarray, beta: float) -> np.ndarray:
    """The arms (rounds,) that the plain loop plays on every set once; noise is (rounds,)."""

    def reward(k: int, a: int) -> float:
        return float(problem.reward[k - 1, a] + noise[k - 1])

    return reference.sherman_morrison(list(problem.X), reward, len(noise), 0.0, beta, 1.0)[0]


def live_agent(seconds: float) -> dict[str, Any]:
    """One decision at a time, against ``contextualbandits``' linear regression."""
    ours, theirs = libraries.live_agent(), libraries.contextualbandits()
    note = f"{ours.policy}, against {theirs.policy} of contextualbandits"
    return alternate(ours.work, theirs.work, seconds) | {"note": note}


ROWS = [
    Row(
        "g",
        "changing sets, d=16, M=10, 360 lanes of OFUL",
        "lane-rounds",
        10.0,
        partial(many_lanes, dim=16, arms=10, betas=15, trials=24, rounds=500),
    ),
    Row(
        "h",
        "changing sets, d=128, M=20, 64 lanes of OFUL",
        "lane-rounds",
        4.0,
        partial(many_lanes, dim=128, arms=20, betas=8, trials=8, rounds=500),
    ),
    Row("i", "a live agent, d=16, N=100, against contextualbandits", "decisions", 1.0, live_agent),
]
