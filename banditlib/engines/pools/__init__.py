"""Pools: one door. Decisions are proved many rounds at a time where the policy allows it, else a
live agent takes them one by one; both ways give the same.
"""

from __future__ import annotations

import numpy as np

from banditlib.backend import NUMPY
from banditlib.engines import direct
from banditlib.engines.noise import trial_noise
from banditlib.engines.pools.blocks import Lane
from banditlib.engines.pools.trace import Trace
from banditlib.engines.tally import Settings, Tally
from banditlib.policies.base import Policy
from banditlib.problems import Pool, generator


def simulate_pool(problem: Pool, policies: tuple[Policy, ...], settings: Settings) -> Tally:
    """All policies on a pool, lane after lane."""
    levels = max(policy.levels(problem.dim, settings.rounds) for policy in policies)
    tally = Tally.empty(len(policies), len(problem.gaps), levels, settings)
    norms = np.sqrt(np.einsum("nd,nd->n", problem.points, problem.points))
    for t, trial in enumerate(settings.trials):
        shown = problem.contexts(settings.seed, trial, settings.rounds)
        noise = trial_noise(problem, settings, t)
        for q, policy in enumerate(policies):
            if proves(policy, settings):
                trace = Lane(problem, shown, policy, noise=noise, norms=norms).run()
            else:
                draws = generator(settings.seed, "policy", problem.instance, trial)
                trace = _one_by_one(problem, shown, policy, noise, draws)
            _enter(tally, (q, t), trace, problem.kind[shown], settings.checkpoints)
            settings.bar.update(settings.rounds)
    return tally


def proves(policy: Policy, settings: Settings) -> bool:
    """Whether blocks and stretches apply: a policy of means and widths that learns rounds whole,
    in double precision.
    """
    exact = settings.xp is NUMPY and settings.dtype == "float64"
    return exact and policy.ridge and not policy.needs and not policy.weighs


def _one_by_one(
    problem: Pool,
    shown: np.ndarray,
    policy: Policy,
    noise: np.ndarray | None,
    draws: np.random.Generator,
) -> Trace:
    """Every round of ``shown`` (K, 2) by a live agent."""
    player = direct.Player(policy, problem.dim, draws)
    trace = Trace(*np.zeros((2, len(shown)), np.uint8))
    rewards = problem.reward[shown] + (0.0 if noise is None else noise[:, None])
    for i, pair in enumerate(shown):
        trace.arms[i], trace.levels[i] = player.step(problem.points[pair], rewards[i])
    trace.drift = player.agent.drift
    return trace


def _enter(
    tally: Tally, at: tuple[int, int], trace: Trace, kinds: np.ndarray, checkpoints: np.ndarray
) -> None:
    """Sort one lane's decisions into the tally; ``kinds`` (K, C) are the classes shown."""
    played = kinds[np.arange(len(kinds)), trace.arms]
    for c in range(tally.plays.shape[-1]):
        tally.plays[*at, :, c] = np.cumsum(played == c)[checkpoints - 1]
    for s in range(tally.learnt.shape[-1]):
        tally.learnt[*at, :, s] = np.cumsum(trace.levels == s + 1)[checkpoints - 1]
    skipped = np.flatnonzero(trace.levels == 0)
    tally.first_skip[at] = skipped[0] + 1 if skipped.size else 0
    tally.final_arm[at] = played[-1]
    if tally.arms is not None:
        tally.arms[at] = trace.arms
    if tally.levels is not None:
        tally.levels[at] = trace.levels
    tally.drift = max(tally.drift, trace.drift)
