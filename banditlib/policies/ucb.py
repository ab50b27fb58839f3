r"""UCB for arms without features (Auer, Cesa-Bianchi and Fischer, 2002): one mean per arm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from banditlib.backend import Array, namespace_of
from banditlib.checks import real
from banditlib.policies.base import Policy
from banditlib.view import View, column, first_best

UNPLAYED = 1e300
"""Stands for an infinite index: finite, so that the tie rule stays a comparison of numbers."""


def ucb_index(k: Any, view: View, alpha: Any) -> Array:
    r"""Index :math:`\bar r_a + \sqrt{\alpha\log k / n_a}` of every arm, unplayed arms first."""
    xp = namespace_of(view.counts)
    log_k = (
        math.log(k) if isinstance(k, int) else xp.log(xp.astype(k, view.counts.dtype))[..., None]
    )
    n = xp.where(view.counts > 0, view.counts, 1.0)
    index = view.totals / n + xp.sqrt(column(alpha) * log_k / n)
    return xp.where(view.counts > 0, index, UNPLAYED)


@dataclass(frozen=True)
class UCB(Policy):
    r"""Each arm once, then the arm of highest :math:`\bar r_a + \sqrt{\alpha\log k / n_a}`.

    With rewards whose noise is 1-sub-Gaussian, α = 2 is the usual choice.

    Parameters
    ----------
    alpha : exploration constant, >= 0
    """

    alpha: float = 2.0

    per_lane: ClassVar[tuple[str, ...]] = ("alpha",)
    needs: ClassVar[frozenset[str]] = frozenset({"counts"})
    ridge: ClassVar[bool] = False
    fixed_arms: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real("alpha", self.alpha, low=0.0)

    def choose(self, k: Any, view: View) -> tuple[Array, Array]:
        """The arm of highest index; every round is learnt."""
        xp = namespace_of(view.counts)
        arm = first_best(ucb_index(k, view, self.alpha))
        return arm, xp.ones_like(arm)
