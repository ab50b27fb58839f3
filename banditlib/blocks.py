r"""Pools in many dimensions: the same decisions with far fewer updates.

In a pool problem the contexts do not depend on what was played, so a stretch of rounds can be
looked at as a whole.  Everything here rests on one remark.

**Fixed points.**  Write :math:`h=(h_1,\dots,h_b)` for a guess of the decisions (arm and level) of the
next ``b`` rounds and :math:`F(h)_k` for the decision that the policy takes in round :math:`k` when the
rounds before it went as :math:`h` says.  :math:`F(h)_k` depends on :math:`h_1,\dots,h_{k-1}` only.  If
:math:`F(h)_i=h_i` for all :math:`i<k`, then by induction :math:`h_1,\dots,h_{k-1}` are the policy's true
decisions and :math:`F(h)_k` is the next one.  Hence :math:`h=F(h)` makes the whole stretch exact, and
replacing :math:`h` by :math:`F(h)` makes at least one more round exact each time.

There are two ways of working out :math:`F(h)` for all rounds at once.

*Gram blocks* (:meth:`Lane.gram_block`), for any policy: condition the Gaussian with covariance
:math:`G=XU^{-1}X^\top` on the guessed plays by one Cholesky factorisation.

*Certified stretches* (:meth:`Lane.stretch`), for DS-OFUL and SupLinUCB: enclose every mean and width
in an interval computed from the state at the start of the stretch, and let interval arithmetic
decide.  Rounds it cannot decide are enclosed more tightly, by a series whose partial sums bound the
value from both sides, until they are decided.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from banditlib.lanes import Piece
from banditlib.policies import DSOFUL, Policy, SupLinUCB
from banditlib.problems import Pool, generator
from banditlib.ridge import View

try:  # half the time of numpy's general inverse; the package works without it
    from scipy.linalg import blas as _blas
    from scipy.linalg import lapack as _lapack
except ImportError:  # pragma: no cover - exercised by a test that hides scipy
    _blas = _lapack = None

Array = np.ndarray

GUARD = 1e-7  # intervals closer than this are left to the exact evaluation; TAU is 1e-9
EXACT = 1e-12  # an enclosure narrower than this is a value


def spd_inverse(U: Array) -> Array:
    """Inverse of a symmetric positive definite matrix ``(d, d)``."""
    if _lapack is None:
        inverse = np.linalg.inv(U)
        return (inverse + inverse.T) / 2
    factor, info = _lapack.dpotrf(U.T, lower=1)  # U.T is U, in the order LAPACK reads
    if info:
        raise np.linalg.LinAlgError("U is not positive definite")
    half, _ = _lapack.dpotri(factor, lower=1, overwrite_c=1)
    whole = half + half.T
    whole.flat[:: len(whole) + 1] *= 0.5
    return whole


def is_positive(A: Array) -> bool:
    """Whether a symmetric matrix is positive definite, by Cholesky."""
    if _lapack is not None:
        return _lapack.dpotrf(A.T, lower=1, clean=0)[1] == 0
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return False
    return True


class Level:
    r"""Ridge regression of one level on a pool: :math:`U,\;U^{-1},\;b=\sum r_i x_i,\;\theta=U^{-1}b`.

    ``wide`` and ``narrow`` enclose the width of every pool point in the present state.  Widths only
    shrink, so ``wide`` stays valid whatever is learnt; ``narrow`` is divided by
    :math:`\sqrt{1+\rho}` when :math:`U` grows to at most :math:`(1+\rho)U`.
    """

    def __init__(self, points: Array, norms: Array, lam: float) -> None:
        d = points.shape[1]
        self.points = points
        self.U = lam * np.eye(d)
        self.inverse = np.eye(d) / lam
        self.b = np.zeros(d)
        self.theta = np.zeros(d)
        self.wide = norms / np.sqrt(lam)
        self.narrow = self.wide.copy()
        self.learned = 0
        self.waiting: list[Array] = []  # rows learnt in blocks and not yet added to U
        self.folded = 0  # rounds folded into the inverse since it was last recomputed
        self.drift = 0.0  # largest error that a renewal found

    def renew(self, same: bool) -> None:
        """Recompute inverse and estimate from U and b; note the drift if the state is the ``same``."""
        self.absorb()
        old, self.inverse = self.inverse, spd_inverse(self.U)
        if same:
            error = np.abs(old - self.inverse).max() / np.abs(self.inverse).max()
            self.drift = max(self.drift, float(error))
        self.theta = self.inverse @ self.b
        self.folded = 0

    def absorb(self) -> None:
        """Add the rows that wait to U."""
        if self.waiting:
            X = np.concatenate(self.waiting)
            self.U += X.T @ X
            self.waiting = []

    def measure(self, which: Array) -> None:
        """Exact widths of the pool points ``which`` in the present state."""
        for part in np.array_split(which, max(1, which.size // 4096)):
            x = self.points[part]
            var = np.einsum("nd,nd->n", x @ self.inverse, x)
            self.wide[part] = self.narrow[part] = np.sqrt(np.maximum(var, 0.0))


class Enclosure(NamedTuple):
    """Lower and upper ends for means and widths, each ``(rounds, levels, arms)``."""

    mean_low: Array
    mean_high: Array
    width_low: Array
    width_high: Array


class Verdict(NamedTuple):
    """Decisions on an enclosure, and what keeps them from being proved.

    ``doubt`` is 0 where they are proved, else the level to refine; ``arms`` marks the arms to refine
    there, ``score`` the rounds in which means matter and not only widths.
    """

    arm: Array
    level: Array
    doubt: Array
    arms: Array
    score: Array


def _separated(low: Array, high: Array) -> tuple[Array, Array]:
    """Index with the largest lower end, and whether it beats every other upper end by the guard."""
    best = low.argmax(-1)
    rows = np.arange(best.size)
    rest = high.copy()
    rest[rows, best] = -np.inf
    rival = rest.max(-1)
    lead = low[rows, best]
    return best, lead - rival > GUARD * (1.0 + np.abs(lead))


def certify_ds_oful(k: Array, box: Enclosure, dim: int, Gamma: float, beta: float) -> Verdict:
    r"""DS-OFUL on intervals: :math:`\arg\max\,m+\beta w` and the test :math:`w\ge\Gamma`."""
    w_low, w_high = box.width_low[:, 0], box.width_high[:, 0]
    arm, sure = _separated(box.mean_low[:, 0] + beta * w_low, box.mean_high[:, 0] + beta * w_high)
    rows = np.arange(arm.size)
    arms = np.repeat(~sure[:, None], w_low.shape[1], axis=1)
    selected = w_low[rows, arm] >= Gamma * (1.0 + GUARD)
    clear = np.ones(arm.size, bool)
    if Gamma > 0.0:
        clear = selected | (w_high[rows, arm] < Gamma * (1.0 - GUARD))
        arms[rows, arm] |= ~clear
    else:
        selected[:] = True
    doubt = np.where(sure & clear, 0, 1)
    return Verdict(arm, selected.astype(np.int64), doubt, arms, ~sure)


def certify_sup_lin_ucb(k: Array, box: Enclosure, dim: int, radius: Array) -> Verdict:
    """SupLinUCB on intervals, level by level; ``radius[l-1]`` is the level's confidence radius."""
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
        l, t, beta = i + 1, 2.0 ** -(i + 1), radius[i]
        on = active[left]
        w_low = np.where(on, box.width_low[left, i], -np.inf)
        w_high = np.where(on, box.width_high[left, i], -np.inf)
        s_low = np.where(on, box.mean_low[left, i] + beta * box.width_low[left, i], -np.inf)
        s_high = np.where(on, box.mean_high[left, i] + beta * box.width_high[left, i], -np.inf)
        wide = w_low.max(-1) >= t * (1.0 + GUARD)
        unclear = ~wide & (w_high.max(-1) >= t * (1.0 - GUARD))
        widest, sure = _separated(w_low, w_high)
        unclear |= wide & ~sure
        arm[left[wide]] = widest[wide]
        level[left[wide]] = l
        stop = ~wide & (k[left] <= 4**l * dim)
        best, sure = _separated(s_low, s_high)
        arm[left[stop]] = best[stop]
        keep, fuzzy = _survivors(on, s_low, s_high, 2.0 * beta * t)
        go_on = ~wide & ~stop
        by_score = ~unclear & ((stop & ~sure) | (go_on & fuzzy))
        score[left[by_score]] = True
        unclear |= by_score
        doubt[left[unclear]] = l
        active[left[~unclear]] = keep[~unclear]
        left = left[go_on & ~unclear]
    doubt[left] = levels
    return Verdict(arm, level, doubt, active, score)


def _survivors(on: Array, low: Array, high: Array, t: float) -> tuple[Array, Array]:
    """Arms within ``t`` of the best score, and whether that is unclear for some arm."""
    keep = on.copy()
    fuzzy = np.zeros(len(on), bool)
    for j in range(on.shape[1]):
        others = [i for i in range(on.shape[1]) if i != j]
        if not others:
            continue
        lead_high = high[:, others].max(-1)
        lead_low = low[:, others].max(-1)
        with np.errstate(invalid="ignore"):
            stays = ~(lead_high - low[:, j] > t - GUARD)
            goes = lead_low - high[:, j] > t + GUARD
        keep[:, j] &= ~goes
        fuzzy |= on[:, j] & ~stays & ~goes
    return keep, fuzzy


class Lesson:
    r"""What one level learns in a stretch under the guess, and how far that can move it.

    The stretch is cut into parts, and parts into groups.  Every part has its own
    :math:`A=\sum x_ix_i^\top`, every group its :math:`\sum x_ie_i`, where :math:`e_i` is the reward
    minus the mean at the start of the stretch; a guess that changes in a few rounds changes few of
    them.

    Attributes
    ----------
    played : (b,) local index of the point learnt in each round, -1 where nothing is learnt
    residual : (b,) e, 0 where nothing is learnt
    cut, edge : positions at which parts and groups begin, and the end
    A : (parts, d, d);  sums : (groups, d)
    rho : number with :math:`\sum A\preceq\rho U_0`
    far : (b,) bound on :math:`\|g_k\|_{U_0^{-1}}` before each round, :math:`g_k=\sum_{i<k}x_ie_i`
    group, step, theta : before each round, :math:`\theta_0+U_0^{-1}g` at the nearest edge is
        ``theta[group]``, and ``step`` bounds the norm of what was learnt between
    low, high : (b, M) ends of widths that were refined
    """

    def __init__(self, played: Array, residual: Array, dim: int, arms: int) -> None:
        size = len(played)
        learns = int((played >= 0).sum())
        parts = min(8, max(1, learns // 1024))
        groups = int(np.clip(learns // (8 * parts), 1, 32))  # of each part
        self.played, self.residual = played, residual
        self.cut = np.linspace(0, size, parts + 1).astype(np.int64)
        marks = np.linspace(0, parts, parts * groups + 1)
        self.edge = np.interp(marks, np.arange(parts + 1), self.cut).astype(np.int64)
        self.groups = groups
        self.A = np.zeros((parts, dim, dim))
        self.sums = np.zeros((parts * groups, dim))
        self.rows: list[tuple[Array, Array, Array] | None] = [None] * parts
        self.rho = 0.0
        self.low, self.high = np.zeros((size, arms)), np.full((size, arms), np.inf)
        self._before: Array | None = None

    @classmethod
    def changed(cls, last: Lesson, played: Array, residual: Array) -> Lesson:
        """The same stretch under another guess, before any sums are updated."""
        new = cls.__new__(cls)
        new.__dict__.update(last.__dict__)
        new.played, new.residual, new._before = played, residual, None
        new.A, new.sums, new.rows = last.A.copy(), last.sums.copy(), list(last.rows)
        return new

    def part(self, j: int) -> slice:
        """Positions of part ``j``."""
        return slice(self.cut[j], self.cut[j + 1])

    def within(self, j: int) -> slice:
        """Groups of part ``j``."""
        return slice(j * self.groups, (j + 1) * self.groups)

    def group_of(self, at: Array) -> Array:
        """Group of each position."""
        return np.searchsorted(self.edge, at, side="right") - 1

    def before(self, j: int) -> Array:
        """Sum of A over the parts before part ``j``."""
        if self._before is None:
            self._before = np.cumsum(self.A, axis=0) - self.A
        return self._before[j]


@dataclass
class Trace:
    """Every decision of a lane, and what it cost."""

    arms: Array
    levels: Array
    cost: dict[str, float] = field(default_factory=dict)


class Lane:
    r"""One policy on one sequence of contexts from a pool.

    Parameters
    ----------
    points : (P, d)
        The pool's vectors.
    reward : (P,)
        Expected reward of each.
    contexts : (K, M) integers
        The arms of each round, as indices into ``points``, in the order shown.
    policy
        Anything with ``choose(k, view)`` and ``lam``.
    noise : (K,), optional
        Added to the reward of the arm played in each round.
    """

    def __init__(self, points: Array, reward: Array, contexts: Array, policy: Any, *,
                 noise: Array | None = None, norms: Array | None = None) -> None:
        self.points, self.reward, self.contexts = points, reward, contexts
        self.policy, self.noise = policy, noise
        self.norms = np.sqrt(np.einsum("nd,nd->n", points, points)) if norms is None else norms
        self.rounds, self.arms_per_round = contexts.shape
        self.dim = points.shape[1]
        self.layered = isinstance(policy, SupLinUCB) or policy.levels(self.dim, self.rounds) > 1
        self.states: list[Level] = []
        self.arms = np.zeros(self.rounds, np.uint8)
        self.levels = np.zeros(self.rounds, np.uint8)
        self.k = 0
        self.work = 0.0  # milliseconds spent on doubtful rounds, estimated from sizes
        self.cost = dict.fromkeys(
            ("gram", "gram_pass", "stretch", "pass", "doubtful", "refined", "exact", "measured",
             "certified"), 0)

    # -- shared -------------------------------------------------------------------------------

    def top(self, k: int) -> int:
        """Number of levels that round ``k`` (1-based) can consult."""
        return self.policy.levels(self.dim, k) if self.layered else 1

    def _states(self, k: int) -> list[Level]:
        while len(self.states) < self.top(k):
            self.states.append(Level(self.points, self.norms, float(self.policy.regulariser)))
        return self.states[: self.top(k)]

    def _choose(self, k: Array, mean: Array, var: Array) -> tuple[Array, Array]:
        """The policy on exact values ``(rounds, levels, arms)``."""
        if not self.layered:
            mean, var = mean[:, 0], var[:, 0]
        arm, level = self.policy.choose(k, View(mean, np.maximum(var, 0.0), self.dim))
        return np.array(arm), np.array(level)

    def _certify(self, k: Array, box: Enclosure) -> Verdict:
        p = self.policy
        if self.layered:
            radius = np.array([p.radius(l + 1) for l in range(box.mean_low.shape[1])])
            return certify_sup_lin_ucb(k, box, self.dim, radius)
        return certify_ds_oful(k, box, self.dim, float(p.Gamma), float(p.beta))

    def _rewards(self, at: Array, which: Array) -> Array:
        r = self.reward[which]
        return r if self.noise is None else r + self.noise[at]

    # -- Gram blocks --------------------------------------------------------------------------

    def gram_block(self, size: int) -> None:
        r"""Play the next ``size`` rounds exactly, inside the block's own covariance.

        With :math:`V=U^{-1}X^\top` and :math:`G=XV` for the block's arms :math:`X`, learning the arms
        :math:`a_1,a_2,\dots` conditions a Gaussian with mean :math:`X\theta` and covariance :math:`G`
        on noisy values at :math:`a_i` (unit noise).  For :math:`I+G_{aa}=RR^\top`,
        :math:`T=R^{-1}G_{a\cdot}`, :math:`s=R^{-1}(r-m_a)`, the state before a round that follows
        :math:`j` plays has variances :math:`G_{pp}-\sum_{i\le j}T_{ip}^2` and means
        :math:`m_p+\sum_{i\le j}T_{ip}s_i`: leading blocks of :math:`R` are factors of leading blocks.
        """
        k0, size = self.k, min(size, self.rounds - self.k)
        M, states = self.arms_per_round, self._states(self.k + size)
        which = self.contexts[k0:k0 + size].ravel()
        X = self.points[which]
        V = [X @ s.inverse for s in states]  # rows are U⁻¹x
        prior_mean = np.stack([X @ s.theta for s in states])
        prior_var = np.stack([self._prior(s, X, v, which) for s, v in zip(states, V, strict=True)])
        reward = self._rewards(np.repeat(np.arange(k0, k0 + size), M), which)
        k = np.arange(k0 + 1, k0 + size + 1)
        shape = (len(states), size, M)
        mean, var = prior_mean.reshape(shape), prior_var.reshape(shape)
        arm, level = self._choose(k, mean.transpose(1, 0, 2), var.transpose(1, 0, 2))
        known = 1  # the first decision needs no guess
        while True:
            mean, var = prior_mean.copy(), prior_var.copy()
            lessons = []
            for i in range(len(states)):
                at = np.flatnonzero(level == i + 1)
                a = at * M + arm[at]
                lessons.append(_condition(X, V[i], prior_mean[i], reward, a))
                before = np.repeat(np.searchsorted(at, np.arange(size)), M)
                _advance(mean[i], var[i], before, *lessons[-1])
            if known == size:
                break
            self.cost["gram_pass"] += 1
            new_arm, new_level = self._choose(
                k, mean.reshape(shape).transpose(1, 0, 2), var.reshape(shape).transpose(1, 0, 2))
            wrong = np.flatnonzero((new_arm != arm) | (new_level != level))
            arm, level = new_arm, new_level
            if wrong.size == 0:
                break
            known = int(wrong[0]) + 1
        for i, state in enumerate(states):
            at = np.flatnonzero(level == i + 1)
            if at.size:
                a = at * M + arm[at]
                self._fold(state, X[a], V[i][a], reward[a], *lessons[i])
        self.arms[k0:k0 + size], self.levels[k0:k0 + size] = arm, level
        self.k += size
        self.cost["gram"] += size

    @staticmethod
    def _prior(state: Level, X: Array, V: Array, which: Array) -> Array:
        """Squared widths at the start of a block; exactly those of the pool if nothing is learnt."""
        if state.learned == 0:
            return state.wide[which] ** 2
        return np.einsum("nd,nd->n", X, V)

    @staticmethod
    def _fold(state: Level, X: Array, V: Array, r: Array, root: Array, T: Array, s: Array) -> None:
        """Learn the rows of X: one product updates the inverse (Woodbury)."""
        W = _forward(root, V)
        state.waiting.append(X)
        state.b += r @ X
        state.theta = state.theta + s @ W
        _downdate(state.inverse, W)
        state.learned += len(X)
        state.folded += len(X)
        state.narrow[:] = 0.0
        if state.folded >= 1024:
            state.renew(same=True)

    # -- certified stretches ------------------------------------------------------------------

    def stretch(self, size: int) -> int:
        """Prove as many of the next ``size`` rounds as possible; returns how many were played."""
        k0, size = self.k, min(size, self.rounds - self.k)
        states = self._states(k0 + size)
        for s in states:
            s.absorb()
        here, local = _localise(self.contexts[k0:k0 + size], len(self.points))
        everywhere = len(here) > len(self.points) // 3  # then a whole product beats a gather
        mean = np.stack([(self.points @ s.theta)[here] if everywhere else self.points[here] @ s.theta
                         for s in states])
        for s in states:
            self._measure(s, here[s.narrow[here] < 0.8 * s.wide[here]])
        k = np.arange(k0 + 1, k0 + size + 1)
        guess = np.stack([(0.5 * (s.wide[here] + s.narrow[here])) ** 2 for s in states])
        arm, level = self._choose(k, mean[:, local].transpose(1, 0, 2), guess[:, local].transpose(1, 0, 2))
        known = 0  # rounds before this one are settled
        doubtful, whole = 0, False
        lessons: list[Lesson | None] = [None] * len(states)
        for attempt in range(8):
            self.cost["pass"] += 1
            lessons = [self._lesson(s, mean[i], here, local, arm, level == i + 1, lessons[i])
                       for i, s in enumerate(states)]
            if any(item is not None and item.rho > 4.0 for item in lessons):
                known = 0 if attempt == 0 else known
                break
            new_arm, new_level, limit, n = self._evaluate(
                k, known, states, lessons, mean, here, local)
            doubtful = max(doubtful, n)
            wrong = np.flatnonzero((new_arm[known:limit] != arm[known:limit])
                                   | (new_level[known:limit] != level[known:limit]))
            if wrong.size == 0:
                known, whole = limit, limit == size
                break
            first = known + int(wrong[0])
            arm[first:], level[first:] = new_arm[first:], new_level[first:]
            known = first + 1
        self.cost["stretch"] += 1
        self.cost["doubtful"] += doubtful
        if known:
            self._commit(states, lessons, here, local, arm[:known], level[:known], whole)
        self.passes, self.doubts = attempt + 1, doubtful
        self.moved = max(1, sum(item is not None for item in lessons))
        return known

    def _measure(self, state: Level, which: Array) -> None:
        if which.size:
            state.measure(which)
            self.cost["measured"] += which.size

    def _lesson(self, state: Level, mean: Array, here: Array, local: Array, arm: Array,
                learns: Array, last: Lesson | None) -> Lesson | None:
        """Collect what one level learns under the guess, and bound how far it can move."""
        at = np.flatnonzero(learns)
        if at.size == 0:
            return None
        played = np.full(len(local), -1)
        played[at] = local[at, arm[at]]
        if last is not None and np.array_equal(played, last.played):
            return last
        residual = np.zeros(len(local))
        residual[at] = self._rewards(self.k + at, here[played[at]]) - mean[played[at]]
        if last is None:
            lesson = Lesson(played, residual, self.dim, local.shape[1])
            for j in range(len(lesson.A)):
                self._collect(lesson, j, here)
                self._sum(lesson, j)
        else:
            lesson = Lesson.changed(last, played, residual)
            other = np.flatnonzero(played != last.played)
            self._widen(state, lesson, last, here, other)
            for j in np.unique(np.searchsorted(lesson.cut, other, side="right") - 1):
                lesson.rows[j] = None
                span = lesson.part(j)
                some = other[(other >= span.start) & (other < span.stop)]
                self._amend(lesson, j, here, last, some, -1.0)
                self._amend(lesson, j, here, lesson, some, 1.0)
        lesson.rho = _growth(state, lesson.A.sum(axis=0), None if last is None else last.rho)
        self._push(state, lesson, here)
        return lesson

    def _collect(self, lesson: Lesson, j: int, here: Array) -> tuple[Array, Array, Array]:
        """Positions that learn in part j, the place of their point among distinct ones, and those."""
        found = lesson.rows[j]
        if found is None:
            played = lesson.played[lesson.part(j)]
            at = np.flatnonzero(played >= 0)
            which, slot = _distinct(played[at], len(here))
            found = lesson.rows[j] = (at + lesson.cut[j], slot, self.points[here[which]])
        return found

    def _sum(self, lesson: Lesson, j: int) -> None:
        at, slot, rows = lesson.rows[j]
        if at.size == 0:
            return
        count = np.bincount(slot)
        weighted = rows if count.max() == 1 else rows * np.sqrt(count)[:, None]
        lesson.A[j] = weighted.T @ weighted
        group = lesson.group_of(at) - j * lesson.groups
        key = group * len(rows) + slot
        weight = np.bincount(key, lesson.residual[at], minlength=lesson.groups * len(rows))
        lesson.sums[lesson.within(j)] = weight.reshape(lesson.groups, len(rows)) @ rows

    def _amend(self, lesson: Lesson, j: int, here: Array, guess: Lesson, at: Array,
               sign: float) -> None:
        """Add to part j, or take away, what ``guess`` learns at positions ``at``."""
        at = at[guess.played[at] >= 0]
        if at.size:
            rows = self.points[here[guess.played[at]]]
            lesson.A[j] += sign * (rows.T @ rows)
            weight = np.zeros((lesson.groups, at.size))
            weight[lesson.group_of(at) - j * lesson.groups, np.arange(at.size)] = guess.residual[at]
            lesson.sums[lesson.within(j)] += sign * (weight @ rows)

    @staticmethod
    def _widen(state: Level, lesson: Lesson, last: Lesson, here: Array, other: Array) -> None:
        r"""Carry refined widths over to a guess that differs at positions ``other``.

        Learning :math:`x_1,x_2,\dots` more takes :math:`w^2` to no less than
        :math:`w^2-\sum(x^\top U^{-1}x_i)^2\ge w^2(1-\sum w(x_i)^2)`, and learning less is the converse.
        """
        change = np.zeros((2, len(lesson.played)))
        for row, played in enumerate((lesson.played[other], last.played[other])):
            change[row, other] = np.where(played < 0, 0.0, state.wide[here[played]] ** 2)
        more, less = np.cumsum(change, axis=1) - change
        lesson.low = last.low * np.sqrt(np.maximum(1.0 - more, 0.0))[:, None]
        lesson.high = last.high / np.sqrt(np.maximum(1.0 - less, 1e-300))[:, None]

    def _spend(self, n: float, m: int) -> None:
        """Note a product of n by m with m by d, in milliseconds."""
        self.work += n * m * self.dim * 4e-8

    def _push(self, state: Level, lesson: Lesson, here: Array) -> None:
        r"""Bounds on the move of the estimate.

        :math:`U_k(\theta_k-\theta_0)=g_k` and :math:`U_k\succeq U_0` give
        :math:`\|\theta_k-\theta_0\|_{U_k}\le\|g_k\|_{U_0^{-1}}`, computed at the edges of groups and
        bridged by the triangle inequality.
        """
        g = np.vstack([np.zeros(self.dim), np.cumsum(lesson.sums, axis=0)])
        move = g @ state.inverse
        norm = np.sqrt(np.maximum(np.einsum("nd,nd->n", g, move), 0.0))
        step = np.abs(lesson.residual) * state.wide[here[np.maximum(lesson.played, 0)]]
        walk = np.concatenate([[0.0], np.cumsum(step)])
        edge, group = lesson.edge, lesson.group_of(np.arange(len(step)))
        ahead, behind = walk[:-1] - walk[edge[group]], walk[edge[group + 1]] - walk[:-1]
        far = np.minimum(norm[group] + ahead, norm[group + 1] + behind)
        back = behind < ahead
        lesson.g, lesson.theta = g, state.theta + move
        lesson.far = far * (1.0 + 1e-9) + 1e-12
        lesson.group, lesson.step = group + back, np.where(back, behind, ahead)

    def _evaluate(self, k: Array, known: int, states: list[Level], lessons: list[Lesson | None],
                  mean: Array, here: Array, local: Array) -> tuple[Array, Array, int, int]:
        """F(h) on rounds ``known:``; also the first round left undecided, and how many were hard."""
        size = len(k)
        arm, level = np.zeros(size, np.int64), np.zeros(size, np.int64)
        todo = np.arange(known, size)
        box = self._box(todo, states, lessons, mean, here, local)
        seen = self._certify(k[todo], box)
        arm[todo], level[todo] = seen.arm, seen.level
        self.cost["certified"] += int((seen.doubt == 0).sum())
        hard = np.flatnonzero(seen.doubt)
        for i, state in enumerate(states):  # sharper widths at the start of the stretch
            near = here[np.unique(local[todo[seen.doubt == i + 1]])]
            self._measure(state, near[state.narrow[near] < state.wide[near]])
        todo = todo[hard]
        box = self._box(todo, states, lessons, mean, here, local)
        for i in range(len(states)):
            if lessons[i] is not None:
                rows = np.flatnonzero((seen.doubt[hard] == i + 1) & seen.score[hard])
                self._nearby(lessons[i], todo, rows, i, box, here, local)
        order = np.full((todo.size, len(states)), -1)
        seen = self._certify(k[todo], box)
        self.cost["refined"] += int((seen.doubt > 0).sum())
        while True:
            arm[todo], level[todo] = seen.arm, seen.level
            again = seen.doubt > 0
            if not again.any():
                return arm, level, size, hard.size
            todo, order = todo[again], order[again]
            box = Enclosure(*(part[again] for part in box))
            doubt, arms, by_score = seen.doubt[again], seen.arms[again], seen.score[again]
            if (order[np.arange(todo.size), doubt - 1] >= 24).any():
                break
            for i, state in enumerate(states):
                rows = np.flatnonzero(doubt == i + 1)
                if rows.size == 0:
                    continue
                if lessons[i] is None:  # nothing moves here: the values are exact already
                    order[rows, i] = 24
                    continue
                step = int(order[rows, i].max())
                first = 2 if by_score[rows].all() else 0
                step = {-1: first, 0: 2, 2: 8}.get(step, 24)
                order[rows, i] = step
                self._refine(state, lessons[i], step, todo, rows, arms, i, box, mean[i], here, local)
            seen = self._certify(k[todo], box)
        return self._settle(k, todo, states, lessons, box, order, mean, here, local, arm, level,
                            hard.size)

    def _settle(self, k: Array, todo: Array, states: list[Level], lessons: list[Lesson | None],
                box: Enclosure, order: Array, mean: Array, here: Array, local: Array,
                arm: Array, level: Array, hard: int) -> tuple[Array, Array, int, int]:
        """Leave what intervals cannot tell apart (ties, thresholds met) to the policy itself."""
        for i, state in enumerate(states):
            if lessons[i] is not None:
                rows, both = np.arange(todo.size), np.ones((todo.size, local.shape[1]), bool)
                self._refine(state, lessons[i], 24, todo, rows, both, i, box, mean[i], here, local)
        self.cost["exact"] += todo.size
        middle = 0.5 * (box.mean_low + box.mean_high)
        width = 0.5 * (box.width_low + box.width_high)
        arm[todo], level[todo] = self._choose(k[todo], middle, width * width)
        loose = np.maximum(box.mean_high - box.mean_low, box.width_high - box.width_low)
        open_ = loose.reshape(len(todo), -1).max(-1) > EXACT
        limit = int(todo[open_].min()) if open_.any() else len(k)
        return arm, level, limit, hard

    def _box(self, todo: Array, states: list[Level], lessons: list[Lesson | None], mean: Array,
             here: Array, local: Array) -> Enclosure:
        r"""First enclosure: :math:`|x\cdot(\theta_k-\theta_0)|\le w_0(x)\|\theta_k-\theta_0\|_{U_k}`
        and :math:`w_0/\sqrt{1+\rho}\le w_k\le w_0`."""
        shape = (todo.size, len(states), local.shape[1])
        out = Enclosure(*(np.empty(shape) for _ in range(4)))
        for i, state in enumerate(states):
            points = local[todo]
            m, wide, narrow = mean[i][points], state.wide[here][points], state.narrow[here][points]
            slack: Any = 0.0
            if lessons[i] is not None:
                slack = wide * lessons[i].far[todo][:, None]
                narrow = np.maximum(narrow / np.sqrt(1.0 + lessons[i].rho), lessons[i].low[todo])
                wide = np.minimum(wide, lessons[i].high[todo])
            out.mean_low[:, i], out.mean_high[:, i] = m - slack, m + slack
            out.width_low[:, i], out.width_high[:, i] = narrow, wide
        return out

    def _refine(self, state: Level, lesson: Lesson, order: int, todo: Array, rows: Array,
                arms: Array, i: int, box: Enclosure, mean: Array, here: Array,
                local: Array) -> None:
        r"""Tighter enclosures by the series :math:`(I+B)^{-1}=I-B+B^2-\dots`.

        In the coordinates :math:`z=U_0^{-1/2}x` the state before round k is
        :math:`U_0^{1/2}(I+B)U_0^{1/2}` with :math:`B=\sum z_iz_i^\top\succeq0`.  With moments
        :math:`\mu_j=z^\top B^jz`, sums :math:`\sum_{j\le J}(-1)^j\mu_j` lie above :math:`w_k^2` for even
        and below it for odd :math:`J`, because the remainder is
        :math:`(-1)^{J+1}z^\top B^{J+1}(I+B)^{-1}z`.  The mean is
        :math:`m_0+g_k\cdot\sum_{j\le J}U_0^{-1/2}(-B)^jz` up to :math:`\|g_k\|_{U_0^{-1}}\|B^{J+1}z\|`.
        """
        part = np.searchsorted(lesson.cut, todo[rows], side="right") - 1
        for j in np.unique(part):
            at, slot, known = self._collect(lesson, j, here)
            mine = rows[part == j]
            chunk = max(8, int(2e6) // max(1, len(known)))
            for start in range(0, mine.size, chunk):
                some = mine[start:start + chunk]
                which, arm = np.nonzero(arms[some])
                r = todo[some]
                C, E = _tallies(at, slot, lesson.residual, len(known), r)
                if which.size > r.size:  # more than one arm of some round
                    C, E = C[:, which], E[:, which]
                point = local[r[which], arm]
                m, low, high, slack = self._series(
                    state, lesson, j, order, known, C, E, here[point], lesson.far[r[which]])
                m = m + mean[point]
                lesson.low[r[which], arm], lesson.high[r[which], arm] = low, high
                cell = (some[which], i, arm)
                box.mean_low[cell] = np.maximum(box.mean_low[cell], m - slack)
                box.mean_high[cell] = np.minimum(box.mean_high[cell], m + slack)
                box.width_low[cell] = np.maximum(box.width_low[cell], low)
                box.width_high[cell] = np.minimum(box.width_high[cell], high)

    def _series(self, state: Level, lesson: Lesson, j: int, order: int, rows: Array, C: Array,
                E: Array, point: Array, far: Array) -> tuple[Array, Array, Array, Array]:
        """Move of the means, ends of the widths and error of the means, for columns of points."""
        X, rho = self.points[point].T, lesson.rho
        q = state.inverse @ X
        self._spend(self.dim, point.size)
        before, g = lesson.before(j), lesson.g[j * lesson.groups]
        move = np.zeros(point.size)
        even = total = np.einsum("dn,dn->n", X, q)
        low, high = np.zeros(point.size), total
        for n in range(order + 1):
            H = rows @ q
            v = before @ q
            self._spend(1.5 * len(C) + self.dim, point.size)
            move += (-1) ** n * (g @ q + np.einsum("pn,pn->n", E, H))
            CH = C * H
            odd = np.einsum("dn,dn->n", q, v) + np.einsum("pn,pn->n", CH, H)
            high = np.minimum(high, total - odd / (1.0 + rho))
            total = total - odd
            low = np.maximum(low, total)
            if n == order or even.max(initial=0.0) <= 1e-30:
                break
            v += rows.T @ CH
            q = state.inverse @ v
            self._spend(len(C) + self.dim, point.size)
            even = np.maximum(np.einsum("dn,dn->n", q, v), 0.0)
            low = np.maximum(low, total + even / (1.0 + rho))
            total = total + even
            high = np.minimum(high, total)
        low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
        slack = far * rho * np.sqrt(np.maximum(even, 0.0))
        return move, np.sqrt(np.minimum(low, high)), np.sqrt(high), slack

    def _nearby(self, lesson: Lesson, todo: Array, rows: Array, i: int, box: Enclosure,
                here: Array, local: Array) -> None:
        r"""Means from the nearest :math:`\theta_0+U_0^{-1}g`, one inner product each.

        :math:`|x\cdot(U_k^{-1}-U_0^{-1})g|\le\sqrt{w_0^2-w_k^2}\sqrt{\|g\|_{U_0^{-1}}^2-\|g\|_{U_k^{-1}}^2}`
        by Cauchy-Schwarz for the semi-definite :math:`U_0^{-1}-U_k^{-1}`, and each root is at most
        :math:`\sqrt{\rho/(1+\rho)}` times the norm before.
        """
        if rows.size == 0:
            return
        r = todo[rows]
        x = self.points[here[local[r]]]
        m = np.einsum("rmd,rd->rm", x, lesson.theta[lesson.group[r]])
        self.work += x.shape[0] * 4e-3
        error = lesson.far[r] * lesson.rho / (1.0 + lesson.rho) + lesson.step[r]
        slack = box.width_high[rows, i] * error[:, None] + 1e-12
        box.mean_low[rows, i] = np.maximum(box.mean_low[rows, i], m - slack)
        box.mean_high[rows, i] = np.minimum(box.mean_high[rows, i], m + slack)

    def _commit(self, states: list[Level], lessons: list[Lesson | None], here: Array,
                local: Array, arm: Array, level: Array, whole: bool) -> None:
        """Learn the settled rounds in one product and compute the inverse anew."""
        n = len(arm)
        for i, state in enumerate(states):
            at = np.flatnonzero(level == i + 1)
            if at.size == 0:
                continue
            lesson = lessons[i]
            if whole and lesson is not None:
                A, rho = lesson.A.sum(axis=0), lesson.rho
                gain = lesson.g[-1] + A @ state.theta  # sum of x r: residual plus what was expected
            else:
                point = here[local[at, arm[at]]]
                distinct, slot = np.unique(point, return_inverse=True)
                rows = self.points[distinct]
                gain = np.bincount(slot, self._rewards(self.k + at, point)) @ rows
                rows = rows * np.sqrt(np.bincount(slot))[:, None]
                A = rows.T @ rows
                rho = _growth(state, A)
            state.narrow /= np.sqrt(1.0 + rho)
            state.U += A
            state.b += gain
            state.learned += at.size
            state.renew(same=False)
        self.arms[self.k:self.k + n], self.levels[self.k:self.k + n] = arm, level
        self.k += n

    # -- the run ------------------------------------------------------------------------------

    def run(self, opening: int = 1024, block: int = 64, report: Any = None) -> Trace:
        """Play all rounds: Gram blocks while everything moves, then stretches that grow."""
        size, patience = 128, opening
        fixed = 30.0 * (self.dim / 512) ** 3 + 2.0  # of a stretch, in milliseconds
        if not isinstance(self.policy, (DSOFUL, SupLinUCB)):
            patience = self.rounds  # no certificate: Gram blocks to the end
        while self.k < self.rounds:
            if patience > 0:
                self.gram_block(block)
                patience -= block
                continue
            asked, self.work = min(size, self.rounds - self.k), 0.0
            done = self.stretch(size)
            if done < asked // 2:
                size = max(64, size // 2)
                patience = 256 if done < 64 else 0
            else:  # fixed / b + c b is least where both parts are equal
                doubts = self.work + 0.1 * fixed * (self.passes - 1)
                size = int(size * np.clip(np.sqrt(fixed * self.moved / (doubts + 1e-9)), 0.6, 1.6))
                size = min(max(size, 64), 1 << 17)
            if report is not None:
                report(self)
        return Trace(self.arms, self.levels, dict(self.cost))


def applies(policy: Policy) -> bool:
    """Whether a policy reads nothing but means and widths, and so can be played here."""
    return policy.ridge and not policy.needs and not policy.fixed_arms


def simulate_pool(problem: Pool, policies: tuple[Policy, ...], *, rounds: int,
                  trials: tuple[int, ...], seed: int, noise: Array | None, checkpoints: Array,
                  record: tuple[str, ...], xp: Any, dtype: str, bar: Any) -> Piece | None:
    """Play policies on a pool, lane after lane; None where this engine does not apply."""
    if "numpy" not in xp.__name__ or dtype != "float64" or not all(map(applies, policies)):
        return None
    levels = [policy.levels(problem.dim, rounds) for policy in policies]
    piece = Piece.empty(
        len(policies), len(trials), len(checkpoints), 2, max(levels), rounds, record)
    points, reward = problem.points, problem.reward
    norms = np.sqrt(np.einsum("nd,nd->n", points, points))
    for t, trial in enumerate(trials):
        shown = problem.contexts(seed, trial, rounds)
        extra = _noise(problem, seed, trial, rounds, None if noise is None else noise[t])
        for q, policy in enumerate(policies):
            lane = Lane(points, reward, shown, policy, noise=extra, norms=norms)
            _enter(piece, q, t, lane.run(), shown, reward, checkpoints)
            piece.drift = max([piece.drift, *(s.drift for s in lane.states)])
            bar.update(rounds)
    return piece


def _noise(problem: Pool, seed: int, trial: int, rounds: int, given: Array | None) -> Array | None:
    if given is not None or problem.sigma == 0:
        return given
    return problem.sigma * generator(seed, "noise", problem.instance, trial).standard_normal(rounds)


def _enter(piece: Piece, q: int, t: int, trace: Trace, shown: Array, reward: Array,
           checkpoints: Array) -> None:
    """Sort one lane's decisions into the piece."""
    played = shown[np.arange(len(shown)), trace.arms]
    wrong = np.cumsum(reward[played] < 1.0)[checkpoints - 1]
    piece.plays[q, t, :, 0], piece.plays[q, t, :, 1] = checkpoints - wrong, wrong
    for s in range(piece.learnt.shape[-1]):
        piece.learnt[q, t, :, s] = np.cumsum(trace.levels == s + 1)[checkpoints - 1]
    skipped = np.flatnonzero(trace.levels == 0)
    piece.first_skip[q, t] = skipped[0] + 1 if skipped.size else 0
    piece.last_arm[q, t] = int(reward[played[-1]] < 1.0)
    if piece.arms is not None:
        piece.arms[q, t] = trace.arms
    if piece.levels is not None:
        piece.levels[q, t] = trace.levels


def _forward(root: Array, right: Array) -> Array:
    """Solve ``root @ x = right`` for a lower triangular root."""
    if _lapack is None or root.size == 0:
        return np.linalg.solve(root, right)
    return _lapack.dtrtrs(root.T, right, lower=0, trans=1)[0]


def _downdate(inverse: Array, W: Array) -> None:
    """Subtract W^T W from a symmetric matrix in place."""
    if _blas is None:
        inverse -= W.T @ W
    else:
        W = np.ascontiguousarray(W)
        _blas.dgemm(-1.0, W.T, W.T, beta=1.0, c=inverse.T, trans_b=1, overwrite_c=1)


def _condition(X: Array, V: Array, mean: Array, reward: Array, a: Array) -> tuple[Array, ...]:
    r"""Factor R of :math:`I+G_{aa}`, :math:`T=R^{-1}G_{a\cdot}` and :math:`s=R^{-1}(r-m)_a`."""
    G = X[a] @ V.T
    root = np.linalg.cholesky(np.eye(a.size) + G[:, a])
    both = _forward(root, np.column_stack([G, reward[a] - mean[a]]))
    return root, both[:, :-1], both[:, -1]


def _advance(mean: Array, var: Array, before: Array, root: Array, T: Array, s: Array) -> None:
    """Move means and variances of each point to the state after ``before`` lessons, in place."""
    if len(T) == 0:
        return
    fill = np.arange(len(mean))
    some = before > 0
    last = before[some] - 1
    var[some] -= np.cumsum(T * T, axis=0)[last, fill[some]]
    mean[some] += np.cumsum(T * s[:, None], axis=0)[last, fill[some]]


def _distinct(index: Array, size: int) -> tuple[Array, Array]:
    """Sorted distinct values of small integers, and each one's position among them."""
    mark = np.zeros(size, bool)
    mark[index] = True
    place = np.cumsum(mark) - 1
    return np.flatnonzero(mark), place[index]


def _localise(contexts: Array, size: int) -> tuple[Array, Array]:
    here, local = _distinct(contexts.ravel(), size)
    return here, local.reshape(contexts.shape)


def _growth(state: Level, A: Array, last: float | None = None) -> float:
    """A number rho with A <= rho U: guessed by power iteration, proved by Cholesky."""
    rho = last
    if rho is None:
        v = np.ones(len(A))
        for _ in range(8):
            w = state.inverse @ (A @ v)
            size = np.linalg.norm(w)
            v = w / max(size, 1e-300)
        rho = 1.1 * size + 1e-12
    while not is_positive(rho * state.U - A):
        rho *= 1.2
    return float(rho)


def _tallies(at: Array, slot: Array, residual: Array, n: int, rounds: Array) -> tuple[Array, Array]:
    """How often each of n points was learnt before each of ``rounds``, and its residual sums."""
    D = rounds.size
    late = np.searchsorted(rounds, at, side="right")
    use = late < D
    key = slot[use] * D + late[use]
    C = np.bincount(key, minlength=n * D).reshape(n, D)
    E = np.bincount(key, residual[at[use]], minlength=n * D).reshape(n, D)
    return np.cumsum(C, axis=1, dtype=float), np.cumsum(E, axis=1)
