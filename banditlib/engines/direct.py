"""The direct method: a live agent, one round after another."""

from __future__ import annotations

import numpy as np

from banditlib.agent import Agent
from banditlib.policies.base import Policy


class Player:
    """An agent that is shown arms with the rewards they would pay."""

    def __init__(self, policy: Policy, dim: int, draws: np.random.Generator) -> None:
        self.agent = Agent(policy, dim, seed=draws)

    def step(self, X: np.ndarray, reward: np.ndarray) -> tuple[int, int]:
        """One round on arms X (M, d) with rewards (M,): arm and level."""
        arm = self.agent.choose(X)
        self.agent.learn(float(reward[arm]))
        assert self.agent.info is not None
        return arm, self.agent.info.level
