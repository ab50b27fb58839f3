"""Runs of one policy on the three kinds of problems, compared with its plain loop."""

from __future__ import annotations

import numpy as np

import banditlib as bl
from banditlib import reference
from banditlib.problems import generator

SEED, TRIALS = 3, 2


def check_against_plain_loop(policy: bl.Policy, rounds: int = 400, zeta: float = 0.02) -> None:
    """Arms and levels on fixed arms (wrong by ``zeta``), on fresh ones and on a pool."""
    rng = np.random.default_rng(0)
    fixed = bl.problems.synthetic(seed=1, dim=4, arms=9, gap=None, zeta=zeta)
    fresh = bl.problems.unit_vectors(dim=4, arms=5, sigma=0.3, zeta=0.1)
    pool = bl.problems.Pool(rng.normal(0.2, 0.4, (9, 4)), rng.normal(-0.2, 0.4, (9, 4)), sigma=0.2)
    for problem in (fixed, fresh, pool):
        run = bl.simulate(
            problem,
            policy,
            rounds=rounds,
            trials=TRIALS,
            seed=SEED,
            record=("arms", "levels"),
            progress=False,
        )
        assert run.drift < 1e-9
        for trial in range(TRIALS):
            sets, pays = _shown(problem, trial, rounds)
            noise = problem.sigma * generator(SEED, "noise", 0, trial).standard_normal(rounds)
            arms, levels = reference.follow(
                policy, sets, lambda k, a, r=pays, e=noise: r[k - 1, a] + e[k - 1], rounds
            )
            np.testing.assert_array_equal(run.arms[0, 0, trial], arms)
            np.testing.assert_array_equal(run.levels[0, 0, trial], levels)


def _shown(problem, trial: int, rounds: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The decision sets of a trial, and what their arms pay (rounds, M)."""
    if isinstance(problem, bl.problems.FixedArms):
        return [problem.X] * rounds, np.tile(problem.reward, (rounds, 1))
    if isinstance(problem, bl.problems.Pool):
        shown = problem.contexts(SEED, trial, rounds)
        return list(problem.points[shown]), problem.reward[shown]
    sets, reward, _ = problem.contexts(SEED, trial, rounds)
    return list(sets), reward
