r"""DS-OFUL: OFUL that learns only from rounds whose width reaches Γ (Algorithm 1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from banditlib.backend import Array, namespace_of, pick
from banditlib.checks import real
from banditlib.intervals import GUARD, Certificate, Enclosure, separated
from banditlib.policies.base import Policy
from banditlib.view import View, at_least, column, first_best


@dataclass(frozen=True)
class DSOFUL(Policy):
    r"""Data-selection OFUL.

    Plays :math:`x_k = \arg\max_x\; x^\top\theta_k + \beta\|x\|_{U_k^{-1}}` and learns from the
    round if and only if :math:`\|x_k\|_{U_k^{-1}} \ge \Gamma`. With :math:`\Gamma = 0` every round
    is learnt: that is OFUL (Abbasi-Yadkori, Pál and Szepesvári, 2011).

    Parameters
    ----------
    Gamma : threshold on the width, >= 0
    beta : confidence radius, >= 0
    lam : regulariser λ, > 0
    """

    Gamma: float
    beta: float
    lam: float

    per_lane: ClassVar[tuple[str, ...]] = ("Gamma", "beta", "lam")
    certifies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real("Gamma", self.Gamma, low=0.0)
        real("beta", self.beta, low=0.0)
        real("lam", self.lam, low=0.0, strict=True)

    def __repr__(self) -> str:
        """OFUL's own name where every round is learnt."""
        if isinstance(self.Gamma, (int, float)) and self.Gamma == 0:
            return f"OFUL(beta={self.beta!r}, lam={self.lam!r})"
        return f"DSOFUL(Gamma={self.Gamma!r}, beta={self.beta!r}, lam={self.lam!r})"

    def epochs(self, dim: int, rounds: int) -> tuple[int, ...]:
        """One stretch: the index does not know the round number."""
        return (rounds,)

    def choose(self, k: Any, view: View) -> tuple[Array, Array]:
        """Optimistic arm; level 1 if its width reaches Γ, else 0."""
        xp = namespace_of(view.mean)
        score = xp.sqrt(view.var)
        score *= column(self.beta)
        score += view.mean
        arm = first_best(score)
        width = xp.sqrt(pick(view.var, arm, xp))
        return arm, xp.astype(xp.asarray(at_least(width, self.Gamma)), xp.int64)

    def certify(self, k: Any, box: Enclosure, dim: int) -> Certificate:
        r"""The rule on intervals: :math:`\arg\max\,m+\beta w` and the test :math:`w\ge\Gamma`."""
        Gamma, beta = self.Gamma, self.beta
        w_low, w_high = box.width_low[0], box.width_high[0]
        arm, sure = separated(box.mean_low[0] + beta * w_low, box.mean_high[0] + beta * w_high)
        unclear = np.tile(~sure, (len(w_low), 1))
        if Gamma == 0.0:
            return Certificate(arm, np.ones_like(arm), (~sure).astype(np.int64), unclear, ~sure)
        rounds = np.arange(arm.size)
        selected = w_low[arm, rounds] >= Gamma * (1.0 + GUARD)
        clear = selected | (w_high[arm, rounds] < Gamma * (1.0 - GUARD))
        unclear[arm, rounds] |= ~clear
        doubt = np.where(sure & clear, 0, 1)
        return Certificate(arm, selected.astype(np.int64), doubt, unclear, ~sure)


def OFUL(beta: float, lam: float) -> DSOFUL:
    """OFUL: :class:`DSOFUL` with Γ = 0."""
    return DSOFUL(Gamma=0.0, beta=beta, lam=lam)
