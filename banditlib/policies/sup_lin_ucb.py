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
        levels, arms, rounds = box.mean_low.shape
        arm, level, doubt = np.zeros((3, rounds), np.int64)
        found = Certificate(arm, level, doubt, np.ones((arms, rounds), bool), doubt > 0)
        left = np.arange(rounds)  # rounds not yet decided
        for l in range(1, levels + 1):
            if left.size == 0:
                break
            left = self._by_width(l, box, found, left)
            left = self._by_score(l, box, found, left, k[left] <= 4**l * dim)
        doubt[left] = levels
        return found

    def _by_width(self, l: int, box: Enclosure, found: Certificate, left: Array) -> Array:
        """Enter the rounds among ``left`` in which an arm is, or may be, wide; return the others.

        Until a round is decided, ``found.unclear`` marks its arms that reached level l.
        """
        on, t = of(found.unclear, left), 2.0**-l
        may = on & (of(box.width_high[l - 1], left) >= t * (1.0 - GUARD))
        some = may.any(axis=0)
        here, on = left[some], on[:, some]
        if here.size == 0:
            return left
        low = np.where(on, box.width_low[l - 1].take(here, axis=1), -np.inf)
        high = np.where(on, box.width_high[l - 1].take(here, axis=1), -np.inf)
        found.arm[here], sure = separated(low, high)
        wide = low.max(axis=0) >= t * (1.0 + GUARD)
        found.level[here[wide]] = l
        found.doubt[here[~(wide & sure)]] = l
        found.unclear[:, here] = may[:, some]
        return left[~some]

    def _by_score(
        self, l: int, box: Enclosure, found: Certificate, left: Array, stop: Array
    ) -> Array:
        """Play the best index where rounds ``stop``; else drop arms, and return what goes on."""
        on, beta = of(found.unclear, left), self.radius(l)
        low = of(box.mean_low[l - 1], left) + beta * of(box.width_low[l - 1], left)
        high = of(box.mean_high[l - 1], left) + beta * of(box.width_high[l - 1], left)
        low[~on] = high[~on] = -np.inf
        if stop.any():
            here, go = left[stop], ~stop
            found.arm[here], sure = separated(low[:, stop], high[:, stop])
            found.doubt[here[~sure]], found.score[here[~sure]] = l, True
            left, on, low, high = left[go], on[:, go], low[:, go], high[:, go]
        keep, fuzzy = survivors(on, low, high, 2.0 * beta * 2.0**-l)
        if not fuzzy.any():
            found.unclear[:, left] = keep
            return left
        found.doubt[left[fuzzy]], found.score[left[fuzzy]] = l, True
        found.unclear[:, left[~fuzzy]] = keep[:, ~fuzzy]
        return left[~fuzzy]


def of(values: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    """The columns of some rounds, given in order; no copy if they are all."""
    return values if rounds.size == values.shape[1] else values.take(rounds, axis=1)
