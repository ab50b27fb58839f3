"""One policy on one sequence of contexts from a pool: what is shown and paid, what is decided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from banditlib.intervals import Certificate, Enclosure
from banditlib.policies.base import Policy
from banditlib.view import View

Array = np.ndarray


@dataclass(frozen=True)
class Game:
    """What blocks and stretches ask about the rounds of a lane.

    Attributes
    ----------
    points, reward : (P, d) the pool and (P,) what its points are expected to pay
    contexts : (K, M) the arms of each round, as indices into the points, in the order shown
    policy : a policy that reads nothing but means and widths
    noise : (K,) added to the reward of the arm played in each round, or None
    """

    points: Array
    reward: Array
    contexts: Array
    policy: Policy
    noise: Array | None

    @property
    def dim(self) -> int:
        """Dimension d of the points."""
        return self.points.shape[1]

    def rewards(self, at: Array, which: Array) -> Array:
        """Rewards of the points ``which``, played in rounds ``at`` (from 0)."""
        r = self.reward[which]
        return r if self.noise is None else r + self.noise[at]

    def choose(self, k: Array, mean: Array, var: Array) -> tuple[Array, Array]:
        """Decisions of rounds k (n,) on values (levels, arms, n)."""
        mean, var = mean.transpose(2, 0, 1), np.maximum(var, 0.0).transpose(2, 0, 1)
        if not self.policy.layered:
            mean, var = mean[:, 0], var[:, 0]
        arm, level = self.policy.choose(k, View(mean, var, self.dim))
        return np.array(arm), np.array(level)

    def certify(self, k: Array, box: Enclosure) -> Certificate:
        """Decisions of rounds k on enclosures."""
        return self.policy.certify(k, box, self.dim)
