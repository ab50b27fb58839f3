r"""Linear Thompson sampling (Agrawal and Goyal, 2013; Abeille and Lazaric, 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from banditlib.backend import Array, namespace_of
from banditlib.checks import real
from banditlib.policies.base import Policy
from banditlib.view import View, column, first_best

FLAT = 1e-12
"""Eigenvalues of a covariance below this share of the largest count as 0: rounding, not spread."""


@dataclass(frozen=True)
class LinearTS(Policy):
    r"""Plays the best arm of a parameter drawn from :math:`N(\theta_k, v^2U_k^{-1})`, and learns
    every round.

    The scores of the arms are then jointly normal with mean :math:`X\theta_k` and covariance
    :math:`v^2C`, :math:`C=XU_k^{-1}X^\top`; they are drawn as :math:`X\theta_k + v\,C^{1/2}z` with
    one standard normal for each arm. The symmetric root makes the sample a continuous function of
    C, the same on every machine.

    Parameters
    ----------
    scale : the spread v, >= 0; the regret bound of Agrawal and Goyal takes
        :math:`R\sqrt{9d\log(k/\delta)}`, practice about 1
    lam : regulariser λ, > 0
    """

    scale: float
    lam: float

    per_lane: ClassVar[tuple[str, ...]] = ("scale", "lam")
    needs: ClassVar[frozenset[str]] = frozenset({"cov", "draws"})

    def __post_init__(self) -> None:
        real("scale", self.scale, low=0.0)
        real("lam", self.lam, low=0.0, strict=True)

    def choose(self, k: Any, view: View, draws: Any = None) -> tuple[Array, Array]:
        """The arm of highest sampled score; every round is learnt."""
        xp = namespace_of(view.mean)
        value, vector = xp.linalg.eigh(view.cov)
        floor = FLAT * value[..., -1][..., None]
        root = xp.where(value > floor, xp.sqrt(xp.abs(value)), 0.0)
        along = xp.matmul(xp.matrix_transpose(vector), draws[..., None])[..., 0]
        spread = xp.matmul(vector, (root * along)[..., None])[..., 0]
        arm = first_best(view.mean + column(self.scale) * spread)
        return arm, xp.ones_like(arm)
