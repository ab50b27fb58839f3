r"""DS-OFUL: OFUL that learns only from rounds whose width reaches Γ (Algorithm 1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from banditlib.backend import Array, namespace_of, pick
from banditlib.policies.base import Policy, number
from banditlib.ridge import View, at_least, column, first_best


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

    def __post_init__(self) -> None:
        number("Gamma", self.Gamma, low=0.0)
        number("beta", self.beta, low=0.0)
        number("lam", self.lam, low=0.0, strict=True)

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


def OFUL(beta: float, lam: float) -> DSOFUL:
    """OFUL: :class:`DSOFUL` with Γ = 0."""
    return DSOFUL(Gamma=0.0, beta=beta, lam=lam)
