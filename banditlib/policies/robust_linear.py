r"""RLB: test for linearity, then OFUL or UCB, after Ghosh, Chowdhury and Gopalan (2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from banditlib.backend import Array, namespace_of
from banditlib.checks import integer, probability, real
from banditlib.policies.base import Policy
from banditlib.policies.ucb import ucb_index
from banditlib.view import View, column, first_best


@dataclass(frozen=True)
class RobustLinear(Policy):
    r"""Robust linear bandit, in the reading chosen here.

    *Opening.* The first arms by index that form a basis of the arms' span (r of them) and the next
    arm, :math:`x_\circ = \sum_i w_i x_i`, are played ``pulls`` times each, in turn. (Ten rounds in
    all could test nothing in sixteen dimensions: any ten arms in general position are fitted
    exactly. So "ten rounds" is read as ten pulls of each of the d + 1 arms that a test needs.)

    *Test.* On a linear bandit :math:`T = \bar r_\circ - \sum_i w_i\bar r_i` has mean 0 and
    deviation :math:`\sigma\sqrt{(1 + \|w\|^2)/p}`. The bandit passes as linear if :math:`|T| \le
    \varepsilon(1 + \|w\|_1) + \sigma\sqrt{2\log(2/\delta)(1 + \|w\|^2)/p}`.

    *Play.* OFUL if it passed, else UCB; both use all data, the opening's included.

    Parameters
    ----------
    beta, lam : radius and regulariser of OFUL
    alpha : constant of UCB
    pulls : plays p of each arm of the opening
    delta : level of the test, in (0, 1)
    sigma : deviation of the noise the test assumes
    eps : misspecification ε the test forgives
    """

    beta: float
    lam: float
    alpha: float = 2.0
    pulls: int = 10
    delta: float = 0.05
    sigma: float = 1.0
    eps: float = 0.0

    per_lane: ClassVar[tuple[str, ...]] = ("beta", "lam", "alpha")
    needs: ClassVar[frozenset[str]] = frozenset({"counts"})
    fixed_arms: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real("beta", self.beta, low=0.0)
        real("lam", self.lam, low=0.0, strict=True)
        real("alpha", self.alpha, low=0.0)
        integer("pulls", self.pulls, 1)
        probability("delta", self.delta)
        real("sigma", self.sigma, low=0.0)
        real("eps", self.eps, low=0.0)

    def plan(self, points: np.ndarray) -> np.ndarray:
        """Basis arms and the arm to test, ``pulls`` times; nothing if no arm is left to test."""
        basis, tested = basis_and_next(points)
        return np.tile(np.append(basis, tested), self.pulls) if tested >= 0 else basis[:0]

    def judge(self, points: np.ndarray, counts: np.ndarray, totals: np.ndarray) -> bool:
        """Whether the bandit failed the test (then UCB plays)."""
        basis, tested = basis_and_next(points)
        if tested < 0:
            return False
        w = np.linalg.lstsq(points[basis].T, points[tested], rcond=None)[0]
        T = totals[tested] / counts[tested] - w @ (totals[basis] / counts[basis])
        spread = self.sigma * math.sqrt((1.0 + w @ w) / self.pulls)
        limit = self.eps * (1.0 + np.abs(w).sum()) + spread * math.sqrt(
            2 * math.log(2 / self.delta)
        )
        return bool(abs(T) > limit)

    def choose(self, k: Any, view: View) -> tuple[Array, Array]:
        """OFUL's arm, or UCB's where the flag is up; every round is learnt."""
        xp = namespace_of(view.mean)
        linear = first_best(view.mean + column(self.beta) * xp.sqrt(view.var))
        arm = xp.where(view.flag, first_best(ucb_index(k, view, self.alpha)), linear)
        return arm, xp.ones_like(arm)


def basis_and_next(points: np.ndarray) -> tuple[np.ndarray, int]:
    """First arms by index that form a basis of the span, and the first other arm (-1 if none)."""
    basis: list[int] = []
    rank = np.linalg.matrix_rank(points)
    for i in range(len(points)):
        if len(basis) < rank and np.linalg.matrix_rank(points[[*basis, i]]) == len(basis) + 1:
            basis.append(i)
    others = [i for i in range(len(points)) if i not in basis]
    return np.array(basis, dtype=np.int64), (others[0] if others else -1)
