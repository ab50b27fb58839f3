r"""LSW: OFUL with a bonus for misspecification, after Lattimore, Szepesvári and Weisz (2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from banditlib.backend import Array, namespace_of
from banditlib.checks import real
from banditlib.policies.base import Policy
from banditlib.view import View, column, first_best


@dataclass(frozen=True)
class LSW(Policy):
    r"""The index :math:`x^\top\theta_k + \beta\|x\|_{U_k^{-1}} + \varepsilon\sum_{s<k}|x^\top
    U_k^{-1}x_s|`.

    The sum runs over past rounds. Grouped by point it is :math:`\sum_a n_a\,|x^\top U_k^{-1}x_a|`
    with the number :math:`n_a` of plays of each point, which needs the points' covariance and no
    history.

    Parameters
    ----------
    beta : confidence radius, >= 0
    lam : regulariser λ, > 0
    eps : misspecification level ε, >= 0 (the paper's ζ)
    """

    beta: float
    lam: float
    eps: float

    per_lane: ClassVar[tuple[str, ...]] = ("beta", "lam", "eps")
    needs: ClassVar[frozenset[str]] = frozenset({"counts", "cov"})

    def __post_init__(self) -> None:
        real("beta", self.beta, low=0.0)
        real("lam", self.lam, low=0.0, strict=True)
        real("eps", self.eps, low=0.0)

    def choose(self, k: Any, view: View) -> tuple[Array, Array]:
        """The arm of highest index; every round is learnt."""
        xp = namespace_of(view.mean)
        score = xp.sqrt(view.var)
        score *= column(self.beta)
        score += view.mean
        score += column(self.eps) * xp.matmul(xp.abs(view.cov), view.counts[..., None])[..., 0]
        arm = first_best(score)
        return arm, xp.ones_like(arm)
