r"""SupLinUCB: levels of ridge regressions and elimination of arms (Algorithm 2 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from banditlib.backend import Array, namespace_of
from banditlib.checks import real, real_array, require
from banditlib.intervals import GUARD, Certificate, Enclosure, separated, survivors
from banditlib.policies.base import Policy
from banditlib.view import View, at_least, column, first_best, within


@dataclass(frozen=True)
class SupLinUCB(Policy):
    r"""SupLinUCB with radius β(l) at level l.

    From level l = 1 on, with :math:`D^1 = D_k`: if some arm of :math:`D^l` has width at least
    :math:`2^{-l}`, play the widest and learn it at level l; else, if :math:`k \le 4^l d`, play the
    arm of highest index :math:`x^\top\theta^l + \beta(l)\|x\|` and learn nothing; else keep the
    arms whose index is within :math:`2\beta(l)2^{-l}` of the best and go on to level l+1.

    Parameters
    ----------
    beta : a number, a sequence by level (the first entry is level 1), or a callable l → β(l)
    lam : regulariser λ, > 0
    """

    beta: float | Sequence[float] | Callable[[int], float]
    lam: float

    per_lane: ClassVar[tuple[str, ...]] = ("beta", "lam")
    certifies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real("lam", self.lam, low=0.0, strict=True)
        if isinstance(self.beta, (list, np.ndarray)):
            object.__setattr__(self, "beta", tuple(real_array("beta", self.beta, 1).tolist()))
        if isinstance(self.beta, tuple):
            require(self.beta, "beta", "at least one level")
            for value in self.beta:
                real("beta", value, low=0.0)
        elif not callable(self.beta):
            real("beta", self.beta, low=0.0)

    def radius(self, level: int) -> Any:
        """β(level), a number, or one per lane in a stack."""
        if callable(self.beta):
            value = float(self.beta(level))
            real("beta", value, low=0.0)
            return value
        if isinstance(self.beta, tuple):
            if level > len(self.beta):
                raise ValueError(f"beta: {len(self.beta)} levels given, level {level} needed")
            return self.beta[level - 1]
        if isinstance(self.beta, (int, float, np.integer, np.floating)):
            return float(self.beta)
        lanes: Any = self.beta
        return lanes[..., level - 1]

    def lane_values(self, name: str, policies: Sequence[Any], levels: int) -> np.ndarray:
        """Radii of a stack by lane and level (L, S); λ by lane (L,)."""
        if name == "lam":
            return np.array([p.lam for p in policies], dtype=float)
        return np.array([[p.radius(s + 1) for s in range(levels)] for p in policies], dtype=float)

    def levels(self, dim: int, rounds: int) -> int:
        """Smallest S >= 1 with 4^S d >= rounds: deeper levels cannot be entered."""
        level = 1
        while 4**level * dim < rounds:
            level += 1
        return level

    def epochs(self, dim: int, rounds: int) -> tuple[int, ...]:
        """The round number matters only when it passes some 4^l d."""
        return tuple(min(4 ** (s + 1) * dim, rounds) for s in range(self.levels(dim, rounds)))

    def choose(self, k: Any, view: View) -> tuple[Array, Array]:
        """Descend through the levels of the view (..., S, M)."""
        xp = namespace_of(view.mean)
        level_axis = view.mean.ndim >= 2
        width_all = xp.sqrt(view.var)
        mean_all = view.mean
        if not level_axis:
            width_all, mean_all = width_all[None, :], mean_all[None, :]
        latest = k if isinstance(k, int) else int(xp.max(k))
        last = min(self.levels(view.dim, latest), mean_all.shape[-2])
        arm = level = done = None
        alive = None
        for l in range(1, last + 1):
            width = width_all[..., l - 1, :]
            score = mean_all[..., l - 1, :] + column(self.radius(l)) * width
            if alive is not None:
                score = xp.where(alive, score, -xp.inf)
                width = xp.where(alive, width, -1.0)
            clock = k if l < last else 0  # no round goes beyond the last level
            here, at, ends = self._stop(clock, l, view.dim, score, width)
            if done is None:
                arm, level, done = here, at, ends
            else:
                arm, level = xp.where(done, arm, here), xp.where(done, level, at)
                done = done | ends
            if l < last:
                best = xp.max(score, axis=-1)
                alive = within(best[..., None] - score, column(2.0 * self.radius(l) * 2.0**-l))
        return arm, level

    def _stop(
        self, k: Any, l: int, dim: int, score: Array, width: Array
    ) -> tuple[Array, Array, Array]:
        """What level l says: the arm, the level that learns it (or 0), and whether to stop there.

        ``score`` and ``width`` (..., M) are -inf and -1 for arms that are out.
        """
        xp = namespace_of(score)
        learn = at_least(xp.max(width, axis=-1), 2.0**-l)
        early = k <= 4**l * dim
        here = first_best(width)
        if early is not False:  # a number k that is late spares the index
            here = xp.where(learn, here, first_best(score))
        return here, xp.astype(xp.asarray(learn), xp.int64) * l, learn | early

    def certify(self, k: Any, box: Enclosure, dim: int) -> Certificate:
        """The rule on intervals, level by level."""
        rounds, levels, arms = box.mean_low.shape
        arm = np.zeros(rounds, np.int64)
        level = np.zeros(rounds, np.int64)
        doubt = np.zeros(rounds, np.int64)
        left = np.arange(rounds)  # rounds not yet decided
        active = np.ones((rounds, arms), bool)
        score = np.zeros(rounds, bool)
        for i in range(levels):
            if left.size == 0:
                break
            l, t, beta = i + 1, 2.0 ** -(i + 1), self.radius(i + 1)
            on = active[left]
            w_low = np.where(on, box.width_low[left, i], -np.inf)
            w_high = np.where(on, box.width_high[left, i], -np.inf)
            s_low = np.where(on, box.mean_low[left, i] + beta * box.width_low[left, i], -np.inf)
            s_high = np.where(on, box.mean_high[left, i] + beta * box.width_high[left, i], -np.inf)
            wide = w_low.max(-1) >= t * (1.0 + GUARD)
            unclear = ~wide & (w_high.max(-1) >= t * (1.0 - GUARD))
            widest, sure = separated(w_low, w_high)
            unclear |= wide & ~sure
            arm[left[wide]] = widest[wide]
            level[left[wide]] = l
            stop = ~wide & (k[left] <= 4**l * dim)
            best, sure = separated(s_low, s_high)
            arm[left[stop]] = best[stop]
            keep, fuzzy = survivors(on, s_low, s_high, 2.0 * beta * t)
            go_on = ~wide & ~stop
            by_score = ~unclear & ((stop & ~sure) | (go_on & fuzzy))
            score[left[by_score]] = True
            unclear |= by_score
            doubt[left[unclear]] = l
            active[left[~unclear]] = keep[~unclear]
            left = left[go_on & ~unclear]
        doubt[left] = levels
        return Certificate(arm, level, doubt, active, score)
