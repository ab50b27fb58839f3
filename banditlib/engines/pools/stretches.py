r"""Certified stretches: the decisions of many rounds proved from the state at their start.

Let 0 be the state at the start of a stretch and k the state before one of its rounds, if the rounds
before went as a guess says: :math:`U_k=U_0+\sum_{i<k}x_ix_i^\top`, :math:`w_k(x)=\|x\|_{U_k^{-1}}`,
:math:`e_i=r_i-x_i^\top\theta_0`, :math:`g_k=\sum_{i<k}x_ie_i`, and :math:`\rho` a number with
:math:`\sum_ix_ix_i^\top\preceq\rho U_0` over the whole stretch.

*First enclosure.* :math:`U_0\preceq U_k\preceq(1+\rho)U_0` gives
:math:`w_0/\sqrt{1+\rho}\le w_k\le w_0`. From :math:`U_k(\theta_k-\theta_0)=g_k` and Cauchy-Schwarz,
:math:`|x^\top(\theta_k-\theta_0)|\le w_k(x)\|g_k\|_{U_k^{-1}}\le w_0(x)\|g_k\|_{U_0^{-1}}`.

*Nearby.* :math:`D=U_0^{-1}-U_k^{-1}` is positive semidefinite, so
:math:`|x^\top Dg|^2\le x^\top Dx\;g^\top Dg`, each factor at most :math:`\rho/(1+\rho)` times
the square of the norm in :math:`U_0^{-1}`: the mean is :math:`x^\top(\theta_0+U_0^{-1}g_k)` up to
:math:`\frac{\rho}{1+\rho}w_0(x)\|g_k\|_{U_0^{-1}}`.

*Series.* Closer bounds come from :mod:`banditlib.engines.pools.moments`.

*Both ends.* Widths only shrink, so :math:`w_k` lies between the widths in the states before and
after the stretch; those after it cost one inverse. They are much closer to each other than
:math:`\rho` says, which is the growth in the worst direction.

*Another guess.* Learning :math:`x_1,x_2,\dots` more takes :math:`w^2(x)` to no less than
:math:`w^2(x)-\sum(x^\top U^{-1}x_i)^2\ge w^2(x)(1-\sum w^2(x_i))`; learning less is the converse.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from banditlib.engines.pools.game import Game
from banditlib.engines.pools.guessed_update import GuessedUpdate
from banditlib.engines.pools.moments import LAST, counted_before, series
from banditlib.engines.pools.pool_regression import (
    PoolRegression,
    growth,
    means,
    widths,
)
from banditlib.intervals import Certificate, Enclosure
from banditlib.inverses import spd_inverse

Array = np.ndarray

EXACT = 1e-12
"""An enclosure narrower than this is a value."""
STALE = 1e-3
"""Widths after a stretch that another guess may have shrunk by more are measured again."""
FEW = 128
"""Rounds learnt in a stretch up to which a product of their own is cheaper than one of (d, d)."""
SHRINKING = 0.7
"""Power of the number of learnt rounds with which squared widths are guessed to fall."""
MOMENTS = {False: (1, 4, 16, LAST), True: (2, 6, 16, LAST)}
"""How many moments of the series are tried, one after the other, for widths and for scores."""


class Stretch:
    """The next rounds of a lane, their enclosures and what is known of their decisions.

    Parameters
    ----------
    game : contexts, rewards and policy
    states : the levels that these rounds can consult
    start, size : rounds played before, and how many to look at
    """

    def __init__(self, game: Game, states: list[PoolRegression], start: int, size: int) -> None:
        self.game, self.states, self.start, self.size = game, states, start, size
        self.points, self.dim = game.points, game.dim
        self.k = np.arange(start + 1, start + size + 1)
        shown = game.contexts[start : start + size].T
        self.M = len(shown)
        for state in states:
            state.absorb()
        self.here, place = distinct(shown.ravel(), len(self.points))
        self.local = place.reshape(shown.shape)  # (M, b)
        self.mean = means(states, self.here)  # (S, points here)
        self.updates: list[GuessedUpdate | None] = [None] * len(states)
        self.cost = dict.fromkeys(("pass", "certified", "doubtful", "refined", "measured"), 0)
        self.cost["exact"] = self.cost["ended"] = 0
        self.work = 0.0  # milliseconds spent on doubtful rounds, estimated from sizes

    def settle(self, passes: int = 8) -> tuple[Array, Array, bool]:
        """Arms and levels of the rounds that are proved, and whether those are all of them."""
        arm, level = self._guess()
        known = 0  # rounds before this one are settled
        for _ in range(passes):
            self.cost["pass"] += 1
            self.updates = [
                self._guessed_update(i, arm, level == i + 1) for i in range(len(self.states))
            ]
            if any(update is not None and update.rho > 4.0 for update in self.updates):
                break
            new_arm, new_level, limit = self._evaluate(known)
            here = slice(known, limit)
            wrong = np.flatnonzero((new_arm[here] != arm[here]) | (new_level[here] != level[here]))
            if wrong.size == 0:
                return arm[:limit], level[:limit], limit == self.size
            first = known + int(wrong[0])
            arm[first:], level[first:] = new_arm[first:], new_level[first:]
            known = first + 1
        return arm[:known], level[:known], False

    def commit(self, arm: Array, level: Array, whole: bool) -> None:
        """Learn settled rounds: one product a level, and the inverse afresh."""
        for i, state in enumerate(self.states):
            at = np.flatnonzero(level == i + 1)
            if at.size == 0:
                continue
            update = self.updates[i]
            if whole and update is not None:
                gain = update.g[-1] + update.A @ state.theta  # residuals, and what was expected
                few = self._weighted(update) if at.size <= FEW else None
                state.grow(update.A, gain, update.rho, at.size, few, update.end)
                state.narrow[self.here] = np.maximum(state.narrow[self.here], update.least)
                state.wide[self.here[update.exact]] = update.least[update.exact]
            else:
                point = self.here[self.local[arm[at], at]]
                which, slot = np.unique(point, return_inverse=True)
                rows = self.points[which]
                gain = np.bincount(slot, self.game.rewards(self.start + at, point)) @ rows
                rows = rows * np.sqrt(np.bincount(slot))[:, None]
                A = rows.T @ rows
                few = rows if at.size <= FEW else None
                state.grow(A, gain, growth(state, A, few), at.size, few)

    # -- guess -------------------------------------------------------------------------------

    def _measure(self, todo: Array, seen: Certificate) -> Array:
        """Exact first widths where they are in doubt and only enclosed; True for those rounds."""
        found = np.zeros(todo.size, bool)
        for i, state in enumerate(self.states):
            rows = np.flatnonzero(seen.doubt == i + 1)
            arm, row = np.nonzero(seen.unclear[:, rows])
            row = rows[row]
            point = self.here[self.local[arm, todo[row]]]
            stale = state.narrow[point] < state.wide[point]
            if stale.any():
                which = distinct(point[stale], len(self.points))[0]
                state.measure(which)
                found[row[stale]] = True
                self.cost["measured"] += which.size
        return found

    def _guess(self) -> tuple[Array, Array]:
        """Decisions with means at the start and widths, measured where they matter, that shrink.

        A guess may be anything; one that foresees the shrinking is wrong less often.
        """
        todo, level = np.arange(self.size), np.zeros(self.size, np.int64)
        while todo.size:
            seen = self.game.certify(self.k[todo], self._box(todo))
            level[todo] = seen.level
            todo = todo[self._measure(todo, seen)]
        width = [0.5 * (s.wide[self.here] + s.narrow[self.here]) for s in self.states]
        var = np.stack(width)[:, self.local] ** 2
        for i, state in enumerate(self.states):
            learnt = np.cumsum(level == i + 1)
            if learnt[-1]:
                var[i] *= (1.0 + learnt / (1.0 + state.learnt)) ** -SHRINKING
        return self.game.choose(self.k, self.mean[:, self.local], var)

    # -- updates -----------------------------------------------------------------------------

    def _guessed_update(self, i: int, arm: Array, learns: Array) -> GuessedUpdate | None:
        """Collect what level i learns under the guess, and bound how far it can move."""
        at, last, state = np.flatnonzero(learns), self.updates[i], self.states[i]
        if at.size == 0:
            return None
        played = np.full(self.size, -1)
        played[at] = self.local[arm[at], at]
        if last is not None and np.array_equal(played, last.played):
            return last
        residual = np.zeros(self.size)
        expected = self.mean[i][played[at]]
        residual[at] = self.game.rewards(self.start + at, self.here[played[at]]) - expected
        if last is None:
            update = GuessedUpdate(played, residual, (self.dim, self.M, self.here.size))
            weighted = self._weighted(update)
            update.A = weighted.T @ weighted
            update.sums = self._sums(update, at, played[at], residual[at])
        else:
            update = GuessedUpdate.changed(last, played, residual)
            other = np.flatnonzero(played != last.played)
            self._widen(state, update, last, other)
            self._amend(update, last, other)
        few = self._weighted(update) if at.size <= FEW else None
        update.rho = growth(state, update.A, few, None if last is None else last.rho)
        self._bound(state, update)
        return update

    def _rows(self, update: GuessedUpdate) -> tuple[Array, Array, Array]:
        """Positions that learn, each one's place among distinct points, and those."""
        if update.rows is None:
            at = np.flatnonzero(update.played >= 0)
            which, slot = distinct(update.played[at], len(self.here))
            update.rows = (at, slot, self.points[self.here[which]])
        return update.rows

    def _weighted(self, update: GuessedUpdate) -> Array:
        """Distinct points that are learnt, times the root of how often: X with XᵀX = A."""
        _, slot, rows = self._rows(update)
        return rows * np.sqrt(np.bincount(slot))[:, None]

    def _sums(self, update: GuessedUpdate, at: Array, played: Array, weight: Array) -> Array:
        """Sums by group (groups, d) of points ``played`` at positions ``at`` with weights."""
        from scipy.sparse import csr_array

        shape = (len(update.edge) - 1, len(self.points))
        return csr_array((weight, (update.groups_of(at), self.here[played])), shape) @ self.points

    def _amend(self, update: GuessedUpdate, last: GuessedUpdate, at: Array) -> None:
        """Put what is learnt now at positions ``at`` in place of what ``last`` learnt there."""
        played = np.concatenate([last.played[at], update.played[at]])
        residual = np.concatenate([-last.residual[at], update.residual[at]])
        learns, sign = played >= 0, np.repeat([-1.0, 1.0], at.size)
        played, rows = played[learns], self.points[self.here[played[learns]]]
        update.A = last.A + (rows * sign[learns][:, None]).T @ rows
        more = self._sums(update, np.tile(at, 2)[learns], played, residual[learns])
        update.sums = last.sums + more

    def _widen(
        self, state: PoolRegression, update: GuessedUpdate, last: GuessedUpdate, other: Array
    ) -> None:
        """Carry refined widths over to a guess that differs at positions ``other``."""
        change = np.zeros((2, self.size))
        for row, played in enumerate((update.played[other], last.played[other])):
            change[row, other] = np.where(played < 0, 0.0, state.wide[self.here[played]] ** 2)
        more, less = np.cumsum(change, axis=1) - change
        update.low = last.low * np.sqrt(np.maximum(1.0 - more, 0.0))
        with np.errstate(over="ignore"):  # an infinite bound is a bound
            update.high = last.high / np.sqrt(np.maximum(1.0 - less, 1e-300))
        gone = float(change[0].sum())
        update.least = last.least * np.sqrt(max(1.0 - gone, 0.0))
        update.ended = last.ended & (gone < STALE)

    def _bound(self, state: PoolRegression, update: GuessedUpdate) -> None:
        """How far the estimate can move: norms at edges, bridged by the triangle inequality."""
        g = np.vstack([np.zeros(self.dim), np.cumsum(update.sums, axis=0)])
        move = g @ state.inverse
        norm = np.sqrt(np.maximum(np.einsum("nd,nd->n", g, move), 0.0))
        wide = state.wide[self.here[np.maximum(update.played, 0)]]
        walk = np.concatenate([[0.0], np.cumsum(np.abs(update.residual) * wide)])
        edge, group = update.edge, update.groups_of(np.arange(self.size))
        ahead, behind = walk[:-1] - walk[edge[group]], walk[edge[group + 1]] - walk[:-1]
        far = np.minimum(norm[group] + ahead, norm[group + 1] + behind)
        back = behind < ahead
        update.g, update.theta = g, state.theta + move
        update.far = far * (1.0 + 1e-9) + 1e-12
        update.group, update.step = group + back, np.where(back, behind, ahead)

    # -- evaluation ----------------------------------------------------------------------------

    def _evaluate(self, known: int) -> tuple[Array, Array, int]:
        """Decisions from round ``known`` on under the guess, and the first that stays open."""
        arm, level = np.zeros(self.size, np.int64), np.zeros(self.size, np.int64)
        todo = np.arange(known, self.size)
        box = self._box(todo)
        seen = self.game.certify(self.k[todo], box)
        arm[todo], level[todo] = seen.arm, seen.level
        hard = np.flatnonzero(seen.doubt)
        self.cost["certified"] += todo.size - hard.size
        self.cost["doubtful"] += hard.size
        box = picked(box, hard)
        for sharper in (self._nearby, self._at_start, self._at_end):  # from cheap to dear
            seen, todo = picked(seen, hard), todo[hard]
            sharper(todo, seen, box)
            seen = self.game.certify(self.k[todo], box)
            arm[todo], level[todo] = seen.arm, seen.level
            hard = np.flatnonzero(seen.doubt)
            box = picked(box, hard)
        seen, todo = picked(seen, hard), todo[hard]
        self.cost["refined"] += todo.size
        order, limit = np.zeros((len(self.states), todo.size), np.int64), self.size
        while True:
            arm[todo], level[todo] = seen.arm, seen.level
            again = np.flatnonzero(seen.doubt)
            last = order[seen.doubt[again] - 1, again] >= LAST
            if last.any():
                stuck = again[last]
                limit = min(limit, self._exactly(todo[stuck], picked(box, stuck), arm, level))
                again = again[~last]
            if again.size == 0:
                return arm, level, limit
            todo, order, box, seen = (
                todo[again],
                order[:, again],
                picked(box, again),
                picked(seen, again),
            )
            for i in range(len(self.states)):
                for score in (False, True):
                    self._sharpen(i, score, todo, seen, order, box)
            seen = self.game.certify(self.k[todo], box)

    def _sharpen(
        self, i: int, score: bool, todo: Array, seen: Certificate, order: Array, box: Enclosure
    ) -> None:
        """More moments for rounds that level i keeps in doubt, by their scores or by widths."""
        rows = np.flatnonzero((seen.doubt == i + 1) & (seen.score == score))
        if rows.size == 0:
            return
        done = LAST if self.updates[i] is None else int(order[i, rows].max())
        order[i, rows] = next((n for n in MOMENTS[score] if n > done), LAST)
        self._refine(i, int(order[i, rows[0]]), todo, rows, seen.unclear, box, score)

    def _exactly(self, todo: Array, box: Enclosure, arm: Array, level: Array) -> int:
        """Leave to the policy itself what intervals cannot tell apart: ties, thresholds met.

        Returns the first round that stays open even so.
        """
        everything = np.ones((self.M, todo.size), bool)
        for i in range(len(self.states)):
            self._refine(i, LAST, todo, np.arange(todo.size), everything, box, True)
        self.cost["exact"] += todo.size
        mean = 0.5 * (box.mean_low + box.mean_high)
        width = 0.5 * (box.width_low + box.width_high)
        arm[todo], level[todo] = self.game.choose(self.k[todo], mean, width * width)
        loose = np.maximum(box.mean_high - box.mean_low, box.width_high - box.width_low)
        still = todo[loose.max(axis=(0, 1)) > EXACT]
        return int(still.min()) if still.size else self.size

    def _box(self, todo: Array) -> Enclosure:
        """First enclosures of rounds ``todo``, sharpened by what was refined before."""
        box = Enclosure(*np.empty((4, len(self.states), self.M, todo.size)))
        point = self.local[:, todo]
        for i, (state, update) in enumerate(zip(self.states, self.updates, strict=True)):
            m, wide = self.mean[i].take(point), state.wide[self.here].take(point)
            narrow, slack = state.narrow[self.here].take(point), 0.0
            if update is not None:
                slack = wide * update.far[todo]
                narrow = np.maximum(narrow / np.sqrt(1.0 + update.rho), update.low[:, todo])
                np.maximum(narrow, update.least.take(point), out=narrow)
                wide = np.minimum(wide, update.high[:, todo])
            np.subtract(m, slack, out=box.mean_low[i])
            np.add(m, slack, out=box.mean_high[i])
            box.width_low[i], box.width_high[i] = narrow, wide
        return box

    def _nearby(self, todo: Array, seen: Certificate, box: Enclosure) -> None:
        """Means from the nearest estimate of first order, one inner product each."""
        for i, (state, update) in enumerate(zip(self.states, self.updates, strict=True)):
            rows = np.flatnonzero((seen.doubt == i + 1) & seen.score)
            if update is None or rows.size == 0:
                continue
            r = todo[rows]
            which = self.here[self.local[:, r]]
            m = np.einsum("mrd,rd->mr", self.points[which], update.theta[update.group[r]])
            self.work += r.size * 4e-3
            error = update.far[r] * update.rho / (1.0 + update.rho) + update.step[r]
            slack = state.wide[which] * error + 1e-12
            box.mean_low[i][:, rows] = np.maximum(box.mean_low[i][:, rows], m - slack)
            box.mean_high[i][:, rows] = np.minimum(box.mean_high[i][:, rows], m + slack)

    def _at_start(self, todo: Array, seen: Certificate, box: Enclosure) -> None:
        """Exact widths before the stretch."""
        if self._measure(todo, seen).any():
            self._tighten(todo, box)

    def _at_end(self, todo: Array, seen: Certificate, box: Enclosure) -> None:
        """Exact widths after the stretch; too few points do not earn an inverse."""
        for i, (state, update) in enumerate(zip(self.states, self.updates, strict=True)):
            rows = np.flatnonzero(seen.doubt == i + 1)
            if update is None or rows.size == 0:
                continue
            point = self.local[:, todo[rows]][seen.unclear[:, rows]]
            which = distinct(point[~update.ended[point]], len(self.here))[0]
            if which.size < self.dim // 8:
                continue
            if update.end is None:
                update.end = spd_inverse(state.U + update.A)
            update.least[which] = widths(self.points, self.here[which], update.end)
            update.ended[which] = update.exact[which] = True
            self.cost["ended"] += which.size
        self._tighten(todo, box)

    def _tighten(self, todo: Array, box: Enclosure) -> None:
        """Cut enclosures to what is known by now without a series."""
        new = self._box(todo)
        for low, known in ((box.mean_low, new.mean_low), (box.width_low, new.width_low)):
            np.maximum(low, known, out=low)
        for high, known in ((box.mean_high, new.mean_high), (box.width_high, new.width_high)):
            np.minimum(high, known, out=high)

    def _refine(
        self,
        i: int,
        moments: int,
        todo: Array,
        rows: Array,
        arms: Array,
        box: Enclosure,
        means: bool,
    ) -> None:
        """Enclosures by the series, for ``arms`` (M, todo) of ``todo[rows]``; of means if asked."""
        update = self.updates[i]
        if update is None:  # nothing moves here: the values are exact already
            return
        at, slot, known = self._rows(update)
        chunk = max(8, int(2e6) // len(known))
        for some in np.split(rows, np.arange(chunk, rows.size, chunk)):
            which, arm = np.nonzero(arms[:, some].T)
            r, cell = todo[some][which], (i, arm, some[which])
            point = self.local[arm, r]
            C = counted_before(at, slot, None, len(known), todo[some])[which]
            E = None
            if means:
                E = counted_before(at, slot, update.residual, len(known), todo[some])[which]
            x = self.points[self.here[point]]
            found = series(self.states[i].inverse, update.rho, moments, known, C, E, x)
            self.work += found.products * len(x) * self.dim * 4e-8
            if means:
                m, slack = self.mean[i][point] + found.move, update.far[r] * found.error
                box.mean_low[cell] = np.maximum(box.mean_low[cell], m - slack)
                box.mean_high[cell] = np.minimum(box.mean_high[cell], m + slack)
            box.width_low[cell] = np.maximum(box.width_low[cell], found.low)
            box.width_high[cell] = np.minimum(box.width_high[cell], found.high)
            update.low[arm, r], update.high[arm, r] = box.width_low[cell], box.width_high[cell]


def picked(parts: Any, at: Array) -> Any:
    """An enclosure or a certificate of some rounds only."""
    return type(parts)(*(part[..., at] for part in parts))


def distinct(index: Array, size: int) -> tuple[Array, Array]:
    """Sorted distinct values of integers below ``size``, and each one's place among them."""
    mark = np.zeros(size, bool)
    mark[index] = True
    return np.flatnonzero(mark), (np.cumsum(mark) - 1)[index]
