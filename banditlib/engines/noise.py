"""Random numbers of runs, drawn on the host and keyed by instance and trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from banditlib.engines.tally import Settings
from banditlib.problems import generator


class Noise:
    """Noise of every (problem, trial), drawn on the host in blocks; pieces equal one long draw."""

    stream = "noise"

    def __init__(self, problems: Sequence[Any], settings: Settings) -> None:
        self.given = None if self.stream == "policy" else settings.noise
        self.sigma = np.array([problem.sigma for problem in problems])
        self.shape = (len(problems), len(settings.trials))
        self.arms = problems[0].arms
        keys: dict[int, int] = {}
        self.column = [keys.setdefault(problem.instance, len(keys)) for problem in problems]
        self.generators = [
            [generator(settings.seed, self.stream, i, t) for t in settings.trials] for i in keys
        ]
        self.held, self.first = self._draw(0), 0  # rounds drawn and not behind us; the first one

    def block(self, k: int, n: int) -> np.ndarray:
        """Rounds k+1 .. k+n, (n, P, T); k never goes back."""
        if self.given is not None:
            return np.broadcast_to(self.given[:, k : k + n].T[:, None, :], (n, *self.shape))
        while self.first + len(self.held) < k:  # rounds that nobody needed
            self.first, self.held = (
                self.first + len(self.held),
                self._draw(min(k - self.first - len(self.held), 1 << 14)),
            )
        self.held, self.first = self.held[k - self.first :], k
        if n > len(self.held):
            self.held = np.concatenate([self.held, self._draw(n - len(self.held))])
        return self.held[:n]

    def _draw(self, n: int) -> np.ndarray:
        if not self.sigma.any():
            return np.zeros((n, *self.shape))
        drawn = np.array([[g.standard_normal(n) for g in row] for row in self.generators])
        return np.transpose(drawn, (2, 0, 1))[:, self.column, :] * self.sigma[:, None]


class Draws(Noise):
    """Standard normals for policies that ask: one per arm and round, (n, P, T, N)."""

    stream = "policy"

    def _draw(self, n: int) -> np.ndarray:
        size = (n, self.arms)
        drawn = np.array([[g.standard_normal(size) for g in row] for row in self.generators])
        return np.transpose(drawn, (2, 0, 1, 3))[:, self.column]


def trial_noise(problem: Any, settings: Settings, t: int) -> np.ndarray | None:
    """Noise (rounds,) of the t-th trial, None if there is none."""
    if settings.noise is not None:
        return settings.noise[t]
    if problem.sigma == 0:
        return None
    return problem.sigma * generator(
        settings.seed, "noise", problem.instance, settings.trials[t]
    ).standard_normal(settings.rounds)
