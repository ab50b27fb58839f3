"""Fixed arms, policies that plan: a whole phase is played at once, lane after lane, on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditlib.engines.noise import trial_noise
from banditlib.engines.tally import Settings, Tally
from banditlib.policies.base import Policy
from banditlib.problems import FixedArms


def simulate_phases(
    problems: list[FixedArms],
    policies: tuple[Policy, ...],
    settings: Settings,
    tallies: list[Tally],
) -> None:
    """Enter the lanes of the policies that plan into the tallies."""
    for problem, tally in zip(problems, tallies, strict=True):
        for q, policy in enumerate(policies):
            if policy.phased:
                for t in range(len(settings.trials)):
                    arms = lane(problem, policy, trial_noise(problem, settings, t), settings.rounds)
                    _enter(tally, (q, t), arms, settings.checkpoints)
                    settings.bar.update(settings.rounds)


def lane(problem: FixedArms, policy: Any, noise: np.ndarray | None, rounds: int) -> np.ndarray:
    """The arms (rounds,) of one lane."""
    arms, done = np.zeros(rounds, dtype=np.int64), 0
    phase = policy.first_phase(problem.X)
    while True:
        # Counts have 64 bits also where an index has 32, as in a browser.
        planned = np.repeat(np.arange(problem.arms), phase.plays.astype(np.intp))
        if done + len(planned) >= rounds:
            arms[done:] = planned[: rounds - done]
            return arms
        now = slice(done, done + len(planned))
        arms[now] = planned
        reward = problem.reward[planned] + (0.0 if noise is None else noise[now])
        totals = np.bincount(planned, reward, minlength=problem.arms)
        phase = policy.next_phase(problem.X, phase, totals)
        done = now.stop


def _enter(tally: Tally, at: tuple[int, int], arms: np.ndarray, checkpoints: np.ndarray) -> None:
    """Count one lane's plays; every round is learnt."""
    before, plays = 0, np.zeros(tally.plays.shape[-1], dtype=np.int64)
    for c, k in enumerate(checkpoints):
        plays += np.bincount(arms[before:k], minlength=len(plays))
        tally.plays[*at, c] = plays
        before = k
    tally.learnt[*at, :, 0] = checkpoints
    tally.final_arm[at] = arms[-1]
    if tally.arms is not None:
        tally.arms[at] = arms
    if tally.levels is not None:
        tally.levels[at] = 1
