r"""Pools in many dimensions: the same decisions with far fewer updates.

In a pool problem the contexts do not depend on what was played, so a stretch of rounds can be
looked at as a whole. Everything here rests on one remark.

**A guess that confirms itself is right.** Let :math:`h=(h_1,\dots,h_b)` be a guess of the decisions
(arm and level) of the next b rounds and :math:`F(h)_k` the decision that the policy takes in
round k if the rounds before it went as h says; it depends on :math:`h_1,\dots,h_{k-1}` only. If
:math:`F(h)_i=h_i` for all :math:`i<k`, then by induction :math:`h_1,\dots,h_{k-1}` are the true
decisions and :math:`F(h)_k` is the next one. So :math:`h=F(h)` makes the whole stretch exact, and
replacing h by :math:`F(h)` makes at least one more round exact each time.

There are two ways of working out :math:`F(h)` for all rounds at once: *Gram blocks*
(:meth:`Lane.gram_block`), for any policy that reads means and widths; and *certified stretches*
(:mod:`banditlib.engines.pools.stretches`), for policies with a rule on intervals, which prove most
decisions from the state at the start and work out the doubtful ones. A stretch in which nothing can
be learnt is a look-up in tables: that is how rounds below Γ and finished levels are passed over.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from banditlib.engines.pools.game import Game
from banditlib.engines.pools.pool_regression import PoolRegression, forward
from banditlib.engines.pools.stretches import Stretch
from banditlib.engines.pools.trace import Trace
from banditlib.policies.base import Policy
from banditlib.problems import Pool

Array = np.ndarray


class Lane:
    r"""One policy on one sequence of contexts from a pool.

    Parameters
    ----------
    problem : the pool: its points and their expected rewards
    contexts : (K, M) the arms of each round, as indices into the points, in the order shown
    policy : a policy that reads nothing but means and widths
    noise : (K,) added to the reward of the arm played in each round
    norms : (P,) of the points, if they are known already
    """

    def __init__(
        self,
        problem: Pool,
        contexts: Array,
        policy: Policy,
        *,
        noise: Array | None = None,
        norms: Array | None = None,
    ) -> None:
        points = problem.points
        self.game = Game(points, problem.reward, contexts, policy, noise)
        self.norms = np.sqrt(np.einsum("nd,nd->n", points, points)) if norms is None else norms
        self.rounds, self.M = contexts.shape
        self.states: list[PoolRegression] = []
        self.arms, self.levels = np.zeros((2, self.rounds), np.uint8)
        self.k = 0  # rounds played
        self.cost: dict[str, int] = {"gram": 0, "gram_pass": 0, "stretch": 0}

    def run(
        self, opening: int = 1024, block: int = 96, report: Callable[[Lane], None] | None = None
    ) -> Trace:
        """Play all rounds: Gram blocks while everything moves, then stretches that grow.

        If doubtful rounds cost c b² and the rest of a stretch of b rounds a fixed f, the time per
        round f/b + c b is least where both parts are equal. Both are estimated from sizes, not
        by a clock, so that a run is the same every time.
        """
        size, patience = 128, opening
        fixed = 20.0 * (self.game.dim / 512) ** 3 + 2.0  # of a stretch, in milliseconds
        if not self.game.policy.certifies:
            patience = self.rounds  # no rule on intervals: Gram blocks to the end
        while self.k < self.rounds:
            if patience > 0:
                self.gram_block(block)
                patience -= block
                continue
            asked = min(size, self.rounds - self.k)
            stretch = self.stretch(asked)
            done = self.k - int(stretch.k[0]) + 1
            if done < asked // 2:
                size, patience = max(64, size // 2), 256 if done < 64 else 0
            else:
                moved = max(1, sum(update is not None for update in stretch.updates))
                doubts = stretch.work + 0.1 * fixed * (stretch.cost["pass"] - 1)
                size = int(size * np.clip(np.sqrt(fixed * moved / (doubts + 1e-9)), 0.6, 1.6))
                size = min(max(size, 64), 1 << 17)
            if report is not None:
                report(self)
        drift = max((state.drift for state in self.states), default=0.0)
        return Trace(self.arms, self.levels, drift, dict(self.cost))

    def gram_block(self, size: int) -> None:
        r"""Play the next ``size`` rounds exactly, inside the block's own covariance.

        With the block's arms as rows of X, :math:`V=XU^{-1}` and :math:`G=VX^\top`, learning
        :math:`a_1,a_2,\dots` conditions a Gaussian with mean :math:`m=X\theta` and covariance G on
        values with unit noise. For :math:`I+G_{aa}=RR^\top`, :math:`T=R^{-1}G_{a\cdot}` and
        :math:`s=R^{-1}(r-m)_a`, the state after j updates has variances
        :math:`G_{pp}-\sum_{i\le j}T_{ip}^2` and means :math:`m_p+\sum_{i\le j}T_{ip}s_i`, because
        leading blocks of R are factors of leading blocks. At the end :math:`U^{-1}` loses
        :math:`W^\top W`, :math:`W=R^{-1}V_a`.
        """
        size = min(size, self.rounds - self.k)
        states, M = self._states(self.k + size), self.M
        k = np.arange(self.k + 1, self.k + size + 1)
        which = self.game.contexts[self.k : self.k + size].ravel()
        X = self.game.points[which]
        V = [X @ state.inverse for state in states]
        prior_mean = np.stack([X @ state.theta for state in states])
        prior_var = np.stack([_first(s, X, v, which) for s, v in zip(states, V, strict=True)])
        reward = self.game.rewards(np.repeat(k - 1, M), which)
        arm, level = self._by_round(k, prior_mean, prior_var)
        known = 1  # the first decision needs no guess
        while True:
            mean, var, updates = prior_mean.copy(), prior_var.copy(), []
            for i in range(len(states)):
                at = np.flatnonzero(level == i + 1)
                a = at * M + arm[at]
                updates.append((a, *_condition(X, V[i], prior_mean[i], reward, a)))
                before = np.repeat(np.searchsorted(at, np.arange(size)), M)
                _advance(mean[i], var[i], before, *updates[-1][2:])
            if known == size:
                break
            self.cost["gram_pass"] += 1
            new_arm, new_level = self._by_round(k, mean, var)
            wrong = np.flatnonzero((new_arm != arm) | (new_level != level))
            arm, level = new_arm, new_level
            if wrong.size == 0:
                break
            known = int(wrong[0]) + 1
        for state, v, (a, root, _, s) in zip(states, V, updates, strict=True):
            if a.size:
                state.fold(X[a], reward[a], forward(root, v[a]), s)
        self._enter(arm, level)
        self.cost["gram"] += size

    def stretch(self, size: int) -> Stretch:
        """Prove as many of the next ``size`` rounds as possible and play those."""
        stretch = Stretch(self.game, self._states(self.k + size), self.k, size)
        arm, level, whole = stretch.settle()
        stretch.commit(arm, level, whole)
        self._enter(arm, level)
        self.cost["stretch"] += 1
        for name, count in stretch.cost.items():
            self.cost[name] = self.cost.get(name, 0) + count
        return stretch

    def _states(self, k: int) -> list[PoolRegression]:
        """The levels that rounds up to k can consult."""
        policy, points = self.game.policy, self.game.points
        top = policy.levels(self.game.dim, k)
        while len(self.states) < top:
            self.states.append(PoolRegression(points, self.norms, float(policy.regulariser)))
        return self.states[:top]

    def _enter(self, arm: Array, level: Array) -> None:
        end = self.k + len(arm)
        self.arms[self.k : end], self.levels[self.k : end] = arm, level
        self.k = end

    def _by_round(self, k: Array, mean: Array, var: Array) -> tuple[Array, Array]:
        """The policy on values (levels, rounds × arms)."""
        mean, var = (values.reshape(len(mean), k.size, self.M) for values in (mean, var))
        return self.game.choose(k, mean.transpose(0, 2, 1), var.transpose(0, 2, 1))


def _first(state: PoolRegression, X: Array, V: Array, which: Array) -> Array:
    """Squared widths at the start of a block; exactly the first ones if nothing is learnt."""
    if state.learnt == 0:
        return state.wide[which] ** 2
    return np.einsum("nd,nd->n", X, V)


def _condition(
    X: Array, V: Array, mean: Array, reward: Array, a: Array
) -> tuple[Array, Array, Array]:
    """R, T and s of :meth:`Lane.gram_block` for the updates a."""
    G = X[a] @ V.T
    root = np.linalg.cholesky(np.eye(a.size) + G[:, a])
    both = forward(root, np.column_stack([G, reward[a] - mean[a]]))
    return root, both[:, :-1], both[:, -1]


def _advance(mean: Array, var: Array, before: Array, T: Array, s: Array) -> None:
    """Move each point's mean and variance to the state after ``before`` updates, in place."""
    some = np.flatnonzero(before)
    last = before[some] - 1
    if some.size:
        var[some] -= np.cumsum(T * T, axis=0)[last, some]
        mean[some] += np.cumsum(T * s[:, None], axis=0)[last, some]
