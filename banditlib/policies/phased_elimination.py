r"""Phased elimination with an optimal design (Lattimore, Szepesvári and Weisz, 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from banditlib.backend import Array
from banditlib.checks import probability, real
from banditlib.design import g_optimal
from banditlib.policies.base import Policy
from banditlib.view import TAU, View, within


class Phase(NamedTuple):
    """One phase of a policy that plans ahead.

    Attributes
    ----------
    number : from 1 on
    active : (N,) the arms still in play
    plays : (N,) how often each arm is played in this phase, in the order of their numbers
    """

    number: int
    active: np.ndarray
    plays: np.ndarray

    def arm(self, done: int) -> int:
        """The arm to play after ``done`` plays of this phase."""
        return int(np.searchsorted(np.cumsum(self.plays), done, side="right"))


@dataclass(frozen=True)
class PhasedElimination(Policy):
    r"""Phases of planned plays, after each of which the arms that are clearly behind go.

    A phase of length m finds a design ρ on the active arms with :math:`\|a\|^2_{G(\rho)^{-1}} \le
    2d`, plays each arm :math:`\lceil m\rho(a)\rceil` times, fits least squares :math:`\hat\theta`
    to this phase alone, and keeps the arms with :math:`\max_b\langle\hat\theta, b - a\rangle \le
    4\sigma\sqrt{(d/m)\log(1/\delta)}`. The next phase is twice as long; the first has :math:`m =
    \lceil 4d\log\log d\rceil + 16`.

    Each arm's estimate errs by more than half that limit with probability at most :math:`2\delta`,
    because its squared width is at most :math:`2d/m`. Misspecification ζ adds at most
    :math:`\zeta(1+\sqrt{2d(1+s/m)})` with s the number of arms in the design; the policy is not
    told ζ.

    Parameters
    ----------
    delta : failure probability δ of one estimate, in (0, 1)
    sigma : deviation σ of the noise, >= 0
    """

    delta: float
    sigma: float = 1.0

    ridge: ClassVar[bool] = False
    fixed_arms: ClassVar[bool] = True
    phased: ClassVar[bool] = True

    def __post_init__(self) -> None:
        probability("delta", self.delta)
        real("sigma", self.sigma, low=0.0)

    def choose(self, k: Any, view: View) -> tuple[Array, Array]:
        """Not asked round by round: the plays of a phase are planned."""
        raise NotImplementedError(
            "PhasedElimination plans whole phases; use simulate, or start(dim, arms=X)"
        )

    def first_phase(self, points: np.ndarray) -> Phase:
        """The phase that plays among all arms (N, d)."""
        return self._phase(1, points, np.ones(len(points), dtype=bool))

    def next_phase(self, points: np.ndarray, phase: Phase, totals: np.ndarray) -> Phase:
        """The phase after one whose plays earned ``totals`` (N,)."""
        limit = (
            4.0
            * self.sigma
            * math.sqrt(
                _rank(points) / self.length(points, phase.number) * math.log(1.0 / self.delta)
            )
        )
        A, n = points[phase.active], phase.plays[phase.active]
        root = np.sqrt(n.astype(float))
        mean = np.divide(totals[phase.active], root, out=np.zeros(len(n)), where=n > 0)
        estimate = A @ np.linalg.lstsq(root[:, None] * A, mean, rcond=None)[0]
        behind = estimate.max() - estimate
        active = phase.active.copy()
        active[phase.active] = within(behind, limit) | (behind <= TAU * (1 + abs(estimate.max())))
        return self._phase(phase.number + 1, points, active)

    def length(self, points: np.ndarray, number: int) -> int:
        """m of a phase: 4 d log log d + 16 rounded up in the first, then doubled."""
        d = _rank(points)
        opening = math.ceil(4 * d * math.log(math.log(d))) if d >= 3 else 0
        return (opening + 16) * 2 ** (number - 1)

    def _phase(self, number: int, points: np.ndarray, active: np.ndarray) -> Phase:
        shares = self.length(points, number) * g_optimal(points[active])[0]
        plays = np.zeros(len(points), dtype=np.int64)
        plays[active] = np.ceil(shares - TAU * (1.0 + shares))
        return Phase(number, active, plays)


def _rank(points: np.ndarray) -> int:
    return max(1, int(np.linalg.matrix_rank(points)))
