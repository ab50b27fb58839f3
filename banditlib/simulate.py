"""Rounds × lanes: a lane is one (problem, policy, trial); one vectorised round advances them all.

Decisions are the result: a run stores integers (plays by arm, learnt rounds by level, at
checkpoints) and computes regret from them on the host. Randomness comes from the host too, keyed
by instance and trial (see ``problems``), so a lane takes the same decisions whatever shares its
batch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from banditlib import checks
from banditlib.backend import namespace
from banditlib.engines import ENGINE_NUMBERS, engine_number
from banditlib.engines.arms import simulate_arms
from banditlib.engines.contexts import simulate_contexts
from banditlib.engines.pools import simulate_pool
from banditlib.engines.tally import Settings, Tally, joined
from banditlib.policies.base import Policy
from banditlib.problems import Contextual, FixedArms, Pool
from banditlib.progress import progress_bar
from banditlib.run import Run

__all__ = ["ENGINE_NUMBERS", "Run", "engine_number", "simulate"]


def simulate(
    problems: Any,
    policies: Any,
    rounds: int = 10_000,
    trials: int | Sequence[int] = 8,
    seed: int = 0,
    noise: Any = None,
    checkpoints: int | Sequence[int] = 200,
    record: Sequence[str] = (),
    backend: str = "numpy",
    dtype: str = "float64",
    progress: bool = True,
) -> Run:
    """Run every policy on every problem.

    Parameters
    ----------
    problems, policies : lists; one of either may stand for a list of one
    rounds : K
    trials : number of trials, or their numbers (``range(8, 16)`` continues a run of 8)
    seed : root of all seeds; the noise of (instance, trial) is the same for every policy
    noise : (trials, rounds) noise to add to expected rewards, the same for every problem and
        policy; None draws it with the problem's sigma
    checkpoints : how many, evenly spaced, or the rounds themselves; the last round is always one
    record : what to keep of every round, among "arms" and "levels"
    backend : "numpy", "cupy", "torch" or "array_api_strict"
    dtype : "float64", or "float32", which is too coarse for thresholds near a tie
    progress : in a terminal, show a bar if the run takes more than two seconds and tqdm is there
    """
    start = time.perf_counter()
    problems = checks.listed("problems", problems, (FixedArms, Pool, Contextual))
    policies = checks.listed("policies", policies, (Policy,))
    rounds, numbers = checks.integer("rounds", rounds, 1), checks.trial_numbers(trials)
    settings = Settings(
        rounds=rounds,
        trials=numbers,
        seed=checks.integer("seed", seed, 0, None),
        noise=checks.noise_array(noise, (len(numbers), rounds)),
        checkpoints=checks.checkpoint_rounds(checkpoints, rounds),
        record=checks.recorded(record),
        xp=namespace(backend),
        dtype=checks.dtype_name(dtype),
    )
    checks.playable(policies, [p for p in problems if not isinstance(p, FixedArms)])
    least = min((p.regulariser for p in policies if p.ridge), default=None)
    for problem in problems:
        points = getattr(problem, "points" if isinstance(problem, Pool) else "X", None)
        if least is not None and points is not None:  # a sampler has no list of points
            checks.in_scale("problems", points, least)
    settings.bar = progress_bar(progress, len(problems) * len(policies) * len(numbers) * rounds)
    tallies = _tallies(problems, policies, settings)
    settings.bar.close()
    found = {name: joined([getattr(tally, name) for tally in tallies]) for name in Tally.ARRAYS}
    return Run(
        problems=problems,
        policies=policies,
        rounds=rounds,
        trials=numbers,
        seed=settings.seed,
        checkpoints=settings.checkpoints,
        **found,
        wall_time=time.perf_counter() - start,
        drift=max(tally.drift for tally in tallies),
        backend=backend,
        dtype=dtype,
        summed=_summed(tallies),
    )


def _tallies(
    problems: tuple[Any, ...], policies: tuple[Policy, ...], settings: Settings
) -> list[Tally]:
    """One tally per problem. Fixed arms of one shape share batches; others run by themselves."""
    tallies: dict[int, Tally] = {}
    shapes: dict[tuple[int, int], list[int]] = {}
    for p, problem in enumerate(problems):
        if isinstance(problem, Pool):
            tallies[p] = simulate_pool(problem, policies, settings)
        elif isinstance(problem, Contextual):
            tallies[p] = simulate_contexts(problem, policies, settings)
        else:
            shapes.setdefault((problem.arms, problem.dim), []).append(p)
    for members in shapes.values():
        found = simulate_arms([problems[p] for p in members], policies, settings)
        tallies.update(zip(members, found, strict=True))
    return [tallies[p] for p in range(len(problems))]


def _summed(tallies: list[Tally]) -> np.ndarray | None:
    """Regret by problem (P, Q, T, C) where it was summed round by round, NaN elsewhere."""
    if all(tally.regret is None for tally in tallies):
        return None
    blank = np.full(tallies[0].plays.shape[:-1], np.nan)
    return np.stack([blank if tally.regret is None else tally.regret for tally in tallies])
