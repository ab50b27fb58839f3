r"""Certified LinUCB: levels that stop where their estimates contradict each other (Zhang, 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from banditlib.backend import Array, namespace_of
from banditlib.checks import real
from banditlib.policies.sup_lin_ucb import SupLinUCB
from banditlib.view import TAU, View, at_least, first_best, within


@dataclass(frozen=True)
class CertLinUCB(SupLinUCB):
    r"""SupLinUCB with a certificate: a level whose value contradicts those before it is not used.

    Let :math:`L_k` be the least L >= 0 with :math:`4^Ld \ge k`. From level l = 1 on, with
    :math:`D^1 = D_k` and the interval [low, high], let :math:`V` be the largest mean
    :math:`x^\top\theta^l` in :math:`D^l`.

    1. If :math:`l > L_k`: play the greedy arm of level l-1, learn it at level l.
    2. Else, if some arm of :math:`D^l` has :math:`\beta(l)` times its width at least
       :math:`2^{-l}`: play the widest, learn it at level l.
    3. Else, if :math:`[V - 3\cdot2^{-l}, V + 3\cdot2^{-l}]` misses the interval: play the greedy
       arm of level l-1, learn nothing.
    4. Else cut the interval down to what they share, keep the arms whose mean is within
       :math:`4\cdot2^{-l}` of V, and go on to level l+1.

    This is the subroutine of the dissertation's Algorithm 13 for one step (H = 1), where rounding
    the estimates, which it needs for later steps, has no purpose. At level 1 there is no level
    before: lines 1 and 3 then play the greedy arm of level 1. That is our reading; the text has
    none.

    Parameters
    ----------
    beta : γ of the dissertation, given as for :class:`SupLinUCB`; its theorem takes
        :math:`5(l+20+\lceil\log(ld)\rceil)d\sqrt{\log(16ld/\delta)}`
    lam : regulariser λ, > 0; the theorem takes 16
    low, high : between them lie all expected rewards
    """

    low: float = 0.0
    high: float = 1.0

    certifies: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not real("low", self.low) <= real("high", self.high):
            raise ValueError(f"high: expected at least low = {self.low!r}, got {self.high!r}")

    def levels(self, dim: int, rounds: int) -> int:
        """One more than L at the last round: level L + 1 learns too."""
        level = 1
        while 4 ** (level - 1) * dim < rounds:
            level += 1
        return level

    def epochs(self, dim: int, rounds: int) -> tuple[int, ...]:
        """The round number matters only when it passes some 4^l d, l >= 0."""
        return tuple(min(4**s * dim, rounds) for s in range(self.levels(dim, rounds)))

    def choose(self, k: Any, view: View) -> tuple[Array, Array]:
        """Descend through the levels of the view (..., S, M)."""
        xp = namespace_of(view.mean)
        mean_all, width_all = view.mean, xp.sqrt(view.var)
        if mean_all.ndim < 2:
            mean_all, width_all = mean_all[None, :], width_all[None, :]
        latest = k if isinstance(k, int) else int(xp.max(k))
        arm = level = greedy = None
        alive = xp.ones_like(mean_all[..., 0, :]) > 0.0
        done = xp.zeros_like(mean_all[..., 0, 0]) > 0.0
        low, high = (xp.zeros_like(mean_all[..., 0, 0]) + end for end in (self.low, self.high))
        for l in range(1, min(self.levels(view.dim, latest), mean_all.shape[-2]) + 1):
            step = 2.0**-l
            mean = xp.where(alive, mean_all[..., l - 1, :], -xp.inf)
            width = xp.where(alive, width_all[..., l - 1, :], -1.0)
            value, before = xp.max(mean, axis=-1), greedy
            greedy = first_best(mean)
            before = greedy if before is None else before
            beyond = ~done & (k <= 4 ** (l - 1) * view.dim)
            wide = ~done & ~beyond & at_least(self.radius(l) * xp.max(width, axis=-1), step)
            low, high = xp.maximum(value - 3 * step, low), xp.minimum(value + 3 * step, high)
            refuted = ~done & ~beyond & ~wide & (low - high > TAU * (1.0 + xp.abs(high)))
            here = xp.where(wide, first_best(width), before)
            at = xp.where(beyond | wide, xp.zeros_like(here) + l, xp.zeros_like(here))
            arm = here if arm is None else xp.where(done, arm, here)
            level = at if level is None else xp.where(done, level, at)
            done = done | beyond | wide | refuted
            alive = alive & within(value[..., None] - mean, 4 * step)
        return arm, level
