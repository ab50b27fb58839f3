r"""Weighted OFUL against corrupted rewards (He, Zhou, Zhang and Gu, 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from banditlib.backend import Array, namespace_of
from banditlib.checks import real
from banditlib.policies.base import Policy
from banditlib.view import View, column, first_best


@dataclass(frozen=True)
class WeightedOFUL(Policy):
    r"""OFUL that trusts an observation the less the wider its arm.

    Plays :math:`x_k = \arg\max_x\; x^\top\theta_k + \beta\|x\|_{U_k^{-1}}` and learns every round
    with the weight :math:`w_k = \min(1, \alpha/\|x_k\|_{U_k^{-1}})`: :math:`U_{k+1} = U_k +
    w_kx_kx_k^\top` and :math:`\theta` from :math:`\sum w_kr_kx_k`. As :math:`w_k\|x_k\| \le
    \alpha`, rewards that are wrong by C in total move a prediction by at most :math:`\alpha C`
    times its width. Selection does the reverse: DS-OFUL drops narrow rounds, and keeps wide ones
    whole.

    Parameters
    ----------
    alpha : largest influence α of one observation, > 0; a large one gives OFUL
    beta : confidence radius, >= 0; in theory OFUL's own plus αC
    lam : regulariser λ, > 0
    """

    alpha: float
    beta: float
    lam: float

    per_lane: ClassVar[tuple[str, ...]] = ("alpha", "beta", "lam")
    weighs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real("alpha", self.alpha, low=0.0, strict=True)
        real("beta", self.beta, low=0.0)
        real("lam", self.lam, low=0.0, strict=True)

    def choose(self, k: Any, view: View) -> tuple[Array, Array]:
        """Optimistic arm; every round is learnt."""
        xp = namespace_of(view.mean)
        arm = first_best(view.mean + column(self.beta) * xp.sqrt(view.var))
        return arm, xp.ones_like(arm)

    def weight(self, width: Array) -> Array:
        r"""The weight :math:`\min(1, \alpha/\text{width})`."""
        xp = namespace_of(width)
        return self.alpha / xp.maximum(width, xp.zeros_like(width) + self.alpha)
