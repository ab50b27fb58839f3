r"""Changing decision sets, many lanes at once, a block of rounds at a time.

Contexts do not depend on what was played, so those of the next b rounds are known. With their arms
as rows of X, every lane has the means :math:`X\theta` and squared widths of all arms of the block
from its state at the start. A learnt arm a then changes those of the later rounds only: with
:math:`u=U^{-1}x_a` (by the inverse at the start, less what the block has learnt so far),
:math:`w=u/\sqrt{1+x_a^\top u}` and :math:`t=Xw`,

.. math:: m \mathrel{+}= t\,(r - m_a)/\sqrt{1 + x_a^\top u}, \qquad \mathrm{var} \mathrel{-}= t^2,

one product for all lanes that see the same contexts. At the end of the block :math:`U^{-1}` loses
:math:`\sum ww^\top`: it is written once a block, and read once a round, for u. Large inverses on
the host do not stay in the cache between rounds: there lanes guess at the start of a block what
they will play, and get u of all guesses in one pass.

*First looks.* Where many lanes see the same contexts, nearly all of the time goes into squared
widths of arms that are not played. They are taken in single precision, with a bound on their error:
n terms added in any order are wrong by at most :math:`\gamma_n=nu/(1-nu)` times the sum of their
moduli, u being the unit roundoff (Higham 2002, chapter 3), and
:math:`\sum_{ij}|x_iU^{-1}_{ij}x_j|\le\|x\|^2\|U^{-1}\|_F`. The arm whose score is best at
the upper ends of all widths gets its exact width from :math:`U^{-1}x_a`. It is played if its score
is the best still; if not, the lane takes exact widths of the arms whose upper ends are above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from banditlib.backend import NUMPY, Array, device_array, free_memory, to_numpy
from banditlib.checks import in_scale
from banditlib.engines import direct
from banditlib.engines.noise import Draws, Noise
from banditlib.engines.tally import Settings, Tally
from banditlib.inverses import DELICATE
from banditlib.policies import DSOFUL
from banditlib.policies.base import Policy, alike, refuse_shape, stack, with_lanes
from banditlib.problems import Contextual, Rounds, generator
from banditlib.regression import LARGE, Ridge
from banditlib.view import TAU, View, at_least, column, first_best

BATCH = 512
"""Most lanes that advance together on the host."""

MEMORY = 1 << 27
"""Most bytes that a batch may take on the host."""

CACHE = 1 << 18
"""Bytes of products that are worked on together on the host."""

FETCH = 64
"""Rounds of contexts that are asked for at once."""

SHARING = 24
"""From so many regressions that look at the same contexts on, products of entries are shared."""

GUESSES = 2
"""Arms a round whose U⁻¹x is computed ahead. In row (h) of the bench the best of each round would
be right in 70 % of the rounds, the best two in 86 %, as many taken where they are in doubt in
90 %."""

NORMS = 8
"""Blocks for which norms of inverses are kept: inverses shrink, so that an old norm is a bound."""

ROWS = {np.float64: 4, np.float32: 8}
"""Rows of the inverses that are multiplied with shared products at a time."""

MISSES = 1 / 8
"""Lanes look in single precision as long as no larger share of their decisions stays open."""


def simulate_contexts(
    problem: Contextual, policies: tuple[Policy, ...], settings: Settings
) -> Tally:
    """All policies on one problem of changing decision sets."""
    levels = [policy.levels(problem.dim, settings.rounds) for policy in policies]
    tally = Tally.empty(len(policies), problem.arms, max(levels), settings, regret=True)
    for members in alike(policies, levels):
        policy = policies[members[0]]
        if policy.needs <= {"draws"}:
            for pairs in batches(problem, policy, members, levels[members[0]], settings):
                Batch(problem, policies, pairs, settings).run(tally)
        else:
            for q in members:
                for t in range(len(settings.trials)):
                    _one_by_one(problem, policies[q], settings, tally, (q, t))
    return tally


def batches(
    problem: Contextual, policy: Policy, members: list[int], levels: int, settings: Settings
) -> Iterator[list[tuple[int, int]]]:
    """(policy, trial) pairs that advance together: whole trials, which share their contexts."""
    size = lane_limit(policy, problem, levels, free_memory(settings.xp))
    trials = range(len(settings.trials))
    if problem.shared:
        pairs = [(q, t) for t in trials for q in members]
        for at in range(0, len(pairs), size):
            yield pairs[at : at + size]
        return
    for first in range(0, len(members), size):
        some = members[first : first + size]
        together = max(1, size // len(some))
        for at in range(0, len(trials), together):
            yield [(q, t) for t in trials[at : at + together] for q in some]


def lane_limit(policy: Policy, problem: Contextual, levels: int, free: int | None = None) -> int:
    """Lanes in a batch: on the host a fixed amount of memory, on a GPU half of what is free."""
    n = block_length(problem)
    points, d = n * problem.arms, problem.dim
    wide = 6 if free is None else 2 * d + 6  # the host multiplies few lanes at a time
    regressions = levels * (4 * d * d + points * wide)  # inverse, U and temporaries
    rounds = n * (points + 5 * d)
    if not problem.shared:  # else all lanes look at the same contexts
        rounds += points * d + FETCH * problem.arms * (d + 2)
    if free is None and guessing(policy, d):  # rows, products and two copies of the view
        rounds += 2 * GUESSES * n * d + 4 * points
    noise = FETCH * (1 + problem.arms * ("draws" in policy.needs))
    bytes_per_lane = 8 * (regressions + rounds + noise)
    if free is not None:
        return max(1, free // 2 // bytes_per_lane)
    return max(1, min(BATCH, MEMORY // bytes_per_lane))


def block_length(problem: Contextual) -> int:
    """Rounds in a block: the more dimensions, the dearer a pass over the inverse."""
    return int(np.clip(round(2.0 * problem.dim / problem.arms**0.5), 4, 16))


def guessing(policy: Policy, dim: int) -> bool:
    """Whether lanes on the host guess what they will play: so for large inverses, one a lane."""
    return dim >= LARGE and not policy.layered


def looks_first(policy: Policy, lam: np.ndarray, dim: int, together: int) -> bool:
    """Whether lanes on the host take first widths in single precision.

    Only DS-OFUL does (and OFUL, which is DS-OFUL with Γ = 0): ``Block._settle`` knows its rule. λ
    must leave squares of arms among the numbers of single precision. ``together`` is how many lanes
    see the same contexts: fewer share no products.
    """
    small = lam.min() >= 1e-12 and lam.max() <= 1e12
    return type(policy) is DSOFUL and small and dim >= LARGE and together >= SHARING


class Batch:
    """Lanes of one kind of policy on one problem.

    Lanes are numbered group by group: G groups of Q lanes, where a group sees the same contexts
    (one group if all trials do). Arrays have axes (G, Q, level, ...) or (lane, ...).
    """

    def __init__(
        self,
        problem: Contextual,
        policies: tuple[Policy, ...],
        pairs: list[tuple[int, int]],
        settings: Settings,
    ) -> None:
        self.problem, self.pairs, self.settings = problem, pairs, settings
        self.kind = policies[pairs[0][0]]
        self.S = self.kind.levels(problem.dim, settings.rounds)
        trials = list(dict.fromkeys(t for _, t in pairs))
        self.groups = [settings.trials[t] for t in (trials[:1] if problem.shared else trials)]
        self.trial_of = np.array([t for _, t in pairs])
        stacked = stack([policies[q] for q, _ in pairs], self.S)
        lam = np.broadcast_to(np.asarray(stacked.regulariser, dtype=float), (len(pairs),))
        xp, dtype = settings.xp, settings.device_dtype
        values = {name: getattr(stacked, name) for name in self.kind.per_lane}
        self.policy = with_lanes(
            stacked, {name: device_array(xp, value, dtype) for name, value in values.items()}
        )
        self.state = Ridge(problem.dim, np.repeat(lam, self.S), len(lam) * self.S, xp, dtype)
        self.source = Source(problem, settings, self.groups, lam.min())
        self.noise = Noise([problem], settings)
        self.draws = Draws([problem], settings) if "draws" in self.kind.needs else None
        L = len(pairs)
        self.plays = np.zeros((L, problem.arms), dtype=np.int64)
        self.learnt = np.zeros((L, self.S), dtype=np.int64)
        self.regret = np.zeros(L)
        self.first_skip = np.zeros(L, dtype=np.int64)
        self.where = tuple(np.array(pairs).T)  # (policy, trial) of each lane, to write the tally

    def run(self, tally: Tally) -> None:
        """All rounds; fills the lanes of the tally."""
        k, length, careful = 0, block_length(self.problem), False
        block = Block(self)
        while k < self.settings.rounds:
            n = min(1 if careful else length, self.settings.rounds - k)
            shown = self.source.block(k, n)
            block.load(k, shown)
            arms, levels = block.play()
            careful = block.careful
            block.teach(levels)
            self._count(k, arms, levels, shown, tally)
            k += len(arms)
            self.settings.bar.update(len(arms) * len(self.pairs))
        tally.first_skip[self.where] = self.first_skip
        tally.final_arm[self.where] = arms[-1]
        tally.drift = max(tally.drift, self.state.drift)

    def _count(
        self, k: int, arms: np.ndarray, levels: np.ndarray, shown: Rounds, tally: Tally
    ) -> None:
        """Enter the decisions (m, L) of rounds k+1 .. k+m."""
        m, L = arms.shape
        lane = np.arange(L)
        gaps = shown.gaps.reshape(len(self.groups), -1, self.problem.arms)[:, :m]
        lost = gaps[lane // (L // len(self.groups)), np.arange(m)[:, None], arms]
        sums = np.add.accumulate(np.concatenate([self.regret[None], lost]), axis=0)
        first, last = np.searchsorted(self.settings.checkpoints, [k + 1, k + m + 1])
        done = 0
        for c in [*range(first, last), None]:
            at = m if c is None else int(self.settings.checkpoints[c]) - k
            self._add(arms[done:at], levels[done:at])
            done = at
            if c is not None:
                tally.plays[*self.where, c] = self.plays
                tally.learnt[*self.where, c, : self.S] = self.learnt
                assert tally.regret is not None
                tally.regret[*self.where, c] = sums[at]
        self.regret = sums[-1]
        skipped = levels == 0
        new = skipped.any(axis=0) & (self.first_skip == 0)
        self.first_skip[new] = k + 1 + np.argmax(skipped[:, new], axis=0)
        for kept, values in ((tally.arms, arms), (tally.levels, levels)):
            if kept is not None:
                kept[*self.where, k : k + m] = values.T

    def _add(self, arms: np.ndarray, levels: np.ndarray) -> None:
        """Count plays by arm and learnt rounds by level."""
        for counts, slot, on in (
            (self.plays, arms, np.ones(arms.shape, dtype=bool)),
            (self.learnt, levels - 1, levels > 0),
        ):
            L, size = counts.shape
            where = (np.arange(L) * size + slot)[on]
            counts += np.bincount(where, minlength=L * size).reshape(L, size)


class Source:
    """Contexts of a batch's groups, asked for FETCH rounds at a time and handed out in blocks."""

    def __init__(
        self, problem: Contextual, settings: Settings, trials: list[int], lam: float
    ) -> None:
        self.problem, self.seed, self.trials, self.lam = problem, settings.seed, trials, lam
        self.first = -FETCH  # the round before those held
        self.held: list[Rounds] = []  # by group

    def block(self, k: int, n: int) -> Rounds:
        """Rounds k+1 .. k+n, or fewer: (G, n, M, d), (G, n, M), (G, n, M) or None."""
        if k >= self.first + FETCH:
            self.first = k - k % FETCH
            self.held = [self.problem.block(self.seed, t, self.first, FETCH) for t in self.trials]
            for held in self.held:
                in_scale("problems", held.flat()[0], self.lam)
        cut = slice(k - self.first, min(k - self.first + n, FETCH))
        X = np.stack([held.X[cut] for held in self.held])
        reward = np.stack([held.reward[cut] for held in self.held])
        if all(held.mask is None for held in self.held):
            return Rounds(X, reward, None)
        full = np.ones((FETCH, self.problem.arms), dtype=bool)
        masks = [full if held.mask is None else held.mask for held in self.held]
        return Rounds(X, reward, np.stack([mask[cut] for mask in masks]))


class Block:
    """The next n rounds of a batch: means and squared widths of all their arms, moved as lanes
    learn.

    Attributes
    ----------
    mean, var : (L, S, n M)
    W : (L, n, d) w of each round that was learnt, else 0
    rows, s, g, reward, level : (L, n, d), (L, n) the arm played, surprise, its squared width,
        reward, level
    slack : (L, n M) bound on the error of ``var`` after a first look; or None
    ahead, slot : (L, c, d), (L, n M) U⁻¹x, by the inverse at the start, of arms that lanes will
        probably play, and where among them an arm is, or -1; or None
    """

    def __init__(self, batch: Batch) -> None:
        self.batch, self.xp = batch, batch.settings.xp
        self.dtype = batch.settings.device_dtype
        self.L, self.G, self.M = len(batch.pairs), len(batch.groups), batch.problem.arms
        self.Q, self.d = self.L // self.G, batch.problem.dim
        lane = np.arange(self.L)
        self.lane = device_array(self.xp, lane)
        self.group = device_array(self.xp, lane // self.Q)
        self.levels = device_array(self.xp, np.arange(1, batch.S + 1))
        self.guessing = self.xp is NUMPY and guessing(batch.kind, self.d)
        host = self.xp is NUMPY and self.dtype == np.float64
        self.looking = host and looks_first(batch.kind, batch.state.lam, self.d, self.Q)
        self.looks = 0  # blocks at which lanes looked in single precision first
        self.slot: np.ndarray | None = None
        self.rooms: dict[int, tuple[Array, ...]] = {}

    def load(self, k: int, shown: Rounds) -> None:
        """Look at rounds k+1 .. k+n with the state that the lanes have now."""
        xp, dtype, kind = self.xp, self.dtype, self.batch.kind
        self.k, self.n = k, shown.X.shape[1]
        self.S = min(kind.levels(self.d, k + self.n), self.batch.S) if kind.layered else 1
        self.points = self.n * self.M
        self.X = device_array(xp, shown.X.reshape(self.G, self.points, self.d), dtype)
        self.Xt = xp.matrix_transpose(self.X)
        self.expected = device_array(xp, shown.reward.reshape(-1), dtype)
        self.mask = None
        if shown.mask is not None:
            self.mask = device_array(xp, np.repeat(shown.mask, self.Q, axis=0))  # (L, n, M)
        self._room()
        self._posterior()
        self.wide = xp.max(self.var, axis=-1)  # (L, S)
        self.risky = bool(xp.max(self.wide) > DELICATE)
        self.careful = False  # whether a regression learnt that has directions far apart in width

    def _room(self) -> None:
        """Space for what the rounds leave behind, the same for every block of one size."""
        xp, L, n, d = self.xp, self.L, self.n, self.d
        if n not in self.rooms:
            shapes = ((L, n, d), (L, n, d), (L, n), (L, n), (L, n))
            arrays = (xp.zeros(shape, dtype=self.dtype) for shape in shapes)
            self.rooms[n] = (*arrays, xp.zeros((L, n), dtype=xp.int64))
        self.W, self.rows, self.s, self.g, self.reward, self.level = self.rooms[n]

    def _posterior(self) -> None:
        """Means and squared widths of all arms of the block, before any of its rounds."""
        xp, state, S = self.xp, self.batch.state, self.S
        shape = (self.G, self.Q, self.batch.S)
        inverse = xp.reshape(state.inverse, (*shape, self.d, self.d))[:, :, :S, :, :]
        theta = xp.reshape(state.theta, (*shape, self.d))[:, :, :S, :]
        fresh = (state.learnt == 0).reshape(shape)[:, :, :S]
        self.slack = None
        var: Array | None = None
        if self.looking and not fresh.any():
            if self.looks % NORMS == 0:
                self.norm = np.sqrt(np.einsum("gqsij,gqsij->gqs", inverse, inverse))
            self.looks += 1
            var, slack = first_look(self.X, inverse, self.norm)
            self.slack = slack.reshape(self.L, self.points)
        elif not fresh.all():
            var = quadratic(self.X, inverse, xp)
        if fresh.any():  # first widths are exactly ‖x‖/√λ
            norm = xp.vecdot(self.X, self.X)[:, None, None, :]
            lam = device_array(xp, state.lam.reshape(shape)[:, :, :S, None], self.dtype)
            first = norm / lam
            if var is None:
                var = first
            else:
                var = xp.where(device_array(xp, fresh[..., None]), first, var)
        self.var = xp.reshape(var, (self.L, S, self.points))
        mean = xp.matmul(theta, self.Xt[:, None, :, :])
        self.mean = xp.reshape(mean, (self.L, S, self.points))

    def play(self) -> tuple[np.ndarray, np.ndarray]:
        """Arms and levels (m, L) of the next rounds, on the host: n, or as many as are safe."""
        batch, xp = self.batch, self.xp
        lane = (slice(None), 0, batch.trial_of)
        noise = device_array(xp, batch.noise.block(self.k, self.n)[lane], self.dtype)
        draws = None
        if batch.draws is not None:
            draws = device_array(xp, batch.draws.block(self.k, self.n)[lane], self.dtype)
        self.slot, self.missed = None, 0
        if self.guessing and self.n > 1:
            self._guess(draws)
        arms, levels = [], []
        choose: Any = batch.policy.choose
        for i in range(self.n):
            x = u = None
            if self.slack is not None:
                arm, level, x, u = self._settle(i)
            else:
                extra = () if draws is None else (draws[i, ...],)
                arm, level = choose(self.k + i + 1, self._view(i), *extra)
                if getattr(arm, "shape", 0) != (self.L,) or getattr(level, "shape", 0) != (self.L,):
                    refuse_shape(batch.kind, arm, level, self.L)
            self._learn(i, arm, level, noise[i, :], x, u)
            arms.append(arm)
            levels.append(level)
            if self.careful:
                break
        if self.missed > MISSES * self.L * len(arms):
            self.looking = False
        return to_numpy(xp.stack(arms)), to_numpy(xp.stack(levels))

    def _view(self, i: int) -> View:
        """What lanes see in round i of the block; absent arms have mean -∞ and width 0."""
        xp, here = self.xp, slice(i * self.M, (i + 1) * self.M)
        mean, var = self.mean[:, :, here], self.var[:, :, here]
        var = xp.where(var > 0.0, var, 0.0)
        if self.mask is not None:
            there = self.mask[:, None, i, :]
            mean, var = xp.where(there, mean, -xp.inf), xp.where(there, var, 0.0)
        if not self.batch.kind.layered:
            mean, var = mean[:, 0, :], var[:, 0, :]
        return View(mean, var, self.d)

    def _scores(self, here: slice, var: np.ndarray) -> np.ndarray:
        """OFUL's scores (L, ...) of some points by these squared widths; absent arms have -∞."""
        policy: Any = self.batch.policy
        score = np.sqrt(np.maximum(var, 0.0))
        score *= column(policy.beta)
        score += self.mean[:, 0, here]
        if self.mask is not None:
            score[~self.mask.reshape(self.L, -1)[:, here]] = -np.inf
        return score

    def _settle(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What DS-OFUL plays and learns in round i after a first look; arms, levels, x and U⁻¹x."""
        assert self.slack is not None
        policy: Any = self.batch.policy
        here = slice(i * self.M, (i + 1) * self.M)
        mean, var = self.mean[:, 0, here], self.var[:, 0, here]
        high = self._scores(here, var + self.slack[:, here])
        arm = high.argmax(axis=-1)
        x = self._played(i, arm)
        u = self._times_inverse(i, x, arm, arm)
        own = (self.lane, arm)
        var[own] = np.vecdot(x, u)
        width = np.sqrt(np.maximum(var[own], 0.0))
        score = mean[own] + policy.beta * width
        tied = score - TAU * (1.0 + np.abs(score))  # so does `first_best` tell equal scores
        high[own] = -np.inf
        near = high >= tied[:, None]
        missed = np.flatnonzero(near.any(axis=-1))
        if missed.size:
            self.missed += missed.size
            for one in missed.tolist():
                X = self.X[self.group[one], here][near[one]]
                t = X @ self.W[one, :i].T
                exact = np.vecdot(X @ self.batch.state.inverse[one], X) - np.vecdot(t, t)
                var[one, near[one]] = exact
            found = first_best(self._scores(here, var)[missed])
            changed = missed[found != arm[missed]]
            arm[missed] = found
            width[missed] = np.sqrt(np.maximum(var[missed, found], 0.0))
            if changed.size:
                x = self._played(i, arm)
                u[changed] = self._times_inverse(i, x, arm, arm)[changed]
        return arm, at_least(width, policy.Gamma).astype(np.int64), x, u

    def _place(self, i: int, arm: Array) -> Array:
        """Places (L,) of arms of round i among the points of all groups."""
        point = arm + i * self.M
        return point if self.G == 1 else self.group * self.points + point

    def _played(self, i: int, arm: Array) -> Array:
        """x (L, d) of the arms of round i."""
        return self.xp.take(self.xp.reshape(self.X, (-1, self.d)), self._place(i, arm), axis=0)

    def _learn(
        self, i: int, arm: Array, level: Array, noise: Array, x: Array | None, u: Array | None
    ) -> None:
        """Round i: take the reward, and move what the block's later rounds will see.

        ``x`` and ``u`` are the arms (L, d) and U⁻¹x, if they are known already.
        """
        xp = self.xp
        row = self._row(level, self.S)
        at = row * self.points + arm + i * self.M
        if x is None or u is None:
            x = self._played(i, arm)
            u = self._times_inverse(i, x, arm, level)
        reward = self.expected[self._place(i, arm)] + noise
        if self.risky:
            deep = xp.reshape(self.wide, (-1,))[row] > DELICATE
            self.careful = bool(xp.any(deep & (level > 0)))
        g, mean = xp.abs(xp.reshape(self.var, (-1,))[at]), xp.reshape(self.mean, (-1,))[at]
        if self.batch.kind.weighs:  # weight w is the observation √w r of the arm √w x
            weight = self.batch.policy.weight(xp.sqrt(g))
            half = xp.sqrt(weight)
            x, u = x * half[:, None], u * half[:, None]
            reward, mean, g = reward * half, mean * half, g * weight
        root = 1.0 / xp.sqrt(1.0 + g)
        s = (reward - mean) * root
        u *= (root * xp.astype(level > 0, self.dtype))[:, None]
        self.W[:, i, :], self.rows[:, i, :], self.s[:, i] = u, x, s
        self.g[:, i], self.reward[:, i], self.level[:, i] = g, reward, level
        if i + 1 < self.n and not self.careful:
            self._move(i, level, u, s)

    def _guess(self, draws: np.ndarray | None) -> None:
        """U⁻¹x of arms that lanes will probably play in the block's rounds; one product a lane, so
        that its inverse is read once.

        A guess decides nothing: an arm that is played without having been guessed costs a product.
        """
        point = self._nearly_best() if self.looking else self._best_by_round(draws)
        x = self.X.reshape(-1, self.d)[point + (self.group * self.points)[:, None]]
        self.ahead = np.matmul(x, self.batch.state.inverse)
        self.slot = np.full((self.L, self.points), -1)
        np.put_along_axis(self.slot, point, np.arange(point.shape[1])[None], axis=-1)

    def _nearly_best(self) -> np.ndarray:
        """The points (L, c) whose scores are the nearest to the best of their round. Scores of
        later rounds have more time to move, about as a random walk does.
        """
        score = self._scores(slice(None), self.var[:, 0]).reshape(self.L, self.n, self.M)
        behind = score.max(axis=-1, keepdims=True) - score
        behind /= np.sqrt(np.arange(self.n) + 0.1)[:, None]
        c = min(GUESSES * self.n, self.points)
        return np.argpartition(behind.reshape(self.L, -1), c - 1, axis=-1)[:, :c]

    def _best_by_round(self, draws: np.ndarray | None) -> np.ndarray:
        """The points (L, c) that lanes would play by what they know now, and those they would play
        if they could not play these.
        """
        choose: Any = self.batch.policy.choose
        guessed = np.empty((self.L, self.n, GUESSES), dtype=np.int64)
        for i in range(self.n):
            view, extra = self._view(i), () if draws is None else (draws[i],)
            mean, var = np.array(view.mean), np.array(view.var)
            for c in range(GUESSES):
                arm = choose(self.k + i + 1, View(mean, var, self.d), *extra)[0]
                strike(mean, var, arm)
                guessed[:, i, c] = arm + i * self.M
        return guessed.reshape(self.L, -1)

    def _foreseen(self, i: int, x: np.ndarray, arm: np.ndarray) -> np.ndarray:
        """U⁻¹x (L, d) by the inverse at the start, of guessed arms without looking at it."""
        assert self.slot is not None
        slot = self.slot[self.lane, arm + i * self.M]
        u = self.ahead[self.lane, slot]
        for lane in np.flatnonzero(slot < 0).tolist():
            np.matmul(self.batch.state.inverse[lane], x[lane], out=u[lane])
        return u

    def _times_inverse(self, i: int, x: Array, arm: Array, level: Array) -> Array:
        """U⁻¹x (L, d) of the arms played in round i: by the inverse at the start of the block, less
        what the block has learnt.
        """
        xp, inverse = self.xp, self.batch.state.inverse
        if self.batch.S > 1:
            inverse = xp.take(inverse, self._row(level, self.batch.S), axis=0)
        if self.slot is None:
            u = xp.matmul(inverse, x[:, :, None])[:, :, 0]
        else:
            u = self._foreseen(i, x, arm)
        if i == 0:
            return u
        W = self.W[:, :i, :]
        c = xp.matmul(W, x[:, :, None])
        if self.S > 1:
            c = xp.where((self.level[:, :i] == level[:, None])[:, :, None], c, 0.0)
        u -= xp.matmul(xp.matrix_transpose(c), W)[:, 0, :]
        return u

    def _row(self, level: Array, S: int) -> Array:
        """Place of each lane's level among L × S; a lane that learns nothing has its first."""
        if S == 1:
            return self.lane
        return self.lane * S + self.xp.maximum(level, self.xp.ones_like(level)) - 1

    def _move(self, i: int, level: Array, w: Array, s: Array) -> None:
        """Move means and squared widths of the rounds after round i."""
        xp, later = self.xp, slice((i + 1) * self.M, self.points)
        t = xp.matmul(xp.reshape(w, (self.G, self.Q, self.d)), self.Xt[:, :, later])
        t = xp.reshape(t, (self.L, -1))
        if self.S == 1:
            self.mean[:, 0, later] += t * s[:, None]
            t *= t
            self.var[:, 0, later] -= t
        else:
            hit = xp.astype(self.levels[None, : self.S] == level[:, None], self.dtype)[:, :, None]
            self.mean[:, :, later] += hit * (t * s[:, None])[:, None, :]
            self.var[:, :, later] -= hit * (t * t)[:, None, :]

    def teach(self, levels: np.ndarray) -> None:
        """Let the regressions learn what was played; ``levels`` (m, L) is on the host."""
        xp, m, state, S = self.xp, len(levels), self.batch.state, self.batch.S
        level, kept = self.level[:, :m], (self.W, self.s, self.rows, self.reward, self.g)
        for l in np.unique(levels[levels > 0]).tolist():
            W, s, X, reward, g = (a[:, :m, ...] for a in kept)
            if (levels == l).all():
                X, reward = X + 0.0, reward + 0.0  # they wait, while the next block is played
            else:
                on = xp.astype(level == l, self.dtype)
                W, X = W * on[:, :, None], X * on[:, :, None]
                s, reward, g = s * on, reward * on, g * on
            n = (levels == l).sum(axis=0)
            state.learn_block(slice(l - 1, None, S), W, s, X, reward, g, n)
        if self.careful or state.worn():
            for l in np.flatnonzero(state.since.reshape(self.L, S).any(axis=0)).tolist():
                state.rebuild(slice(l, None, S))


def strike(mean: np.ndarray, var: np.ndarray, arm: np.ndarray) -> None:
    """Take one arm (...) out of means and squared widths (..., M), in place, unless it is the only
    one left.
    """
    at = arm[..., None]
    other = np.count_nonzero(mean > -np.inf, axis=-1, keepdims=True) > 1
    for values, gone in ((mean, -np.inf), (var, 0.0)):
        kept = np.take_along_axis(values, at, axis=-1)
        np.put_along_axis(values, at, np.where(other, gone, kept), axis=-1)


def quadratic(X: Array, inverse: Array, xp: ModuleType) -> Array:
    """x·U⁻¹x of all points (G, Q, S, n), from X (G, n, d) and inverses (G, Q, S, d, d)."""
    if xp is not NUMPY:
        points = X[:, None, None, :, :]
        return xp.vecdot(xp.matmul(points, inverse), points)
    G, Q, S, d = inverse.shape[:4]
    var = np.empty((G, Q, S, X.shape[1]), dtype=X.dtype)
    form = _shared_products if Q * S >= SHARING else _few_at_a_time
    for g in range(G):
        form(X[g], inverse[g].reshape(Q * S, d, d), var[g].reshape(Q * S, -1))
    return var


def first_look(
    X: np.ndarray, inverse: np.ndarray, size: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same in single precision, and a bound on what that does to each.

    ``size`` (G, Q, S) bounds the Frobenius norms of the inverses.
    """
    G, Q, S, d = inverse.shape[:4]
    var = np.empty((G, Q, S, X.shape[1]))
    for g in range(G):
        flat = inverse[g].reshape(Q * S, d, d)
        _shared_products(X[g], flat, var[g].reshape(Q * S, -1), np.float32)
    norm = np.vecdot(X, X)
    rows = ROWS[np.float32]
    terms = rows * d + -(-d // rows) + 8  # a sum of so many, each of three rounded factors
    unit = float(np.finfo(np.float32).eps) / 2
    return var, terms * unit / (1 - terms * unit) * size[..., None] * norm[:, None, None, :]


def _few_at_a_time(X: np.ndarray, inverse: np.ndarray, var: np.ndarray) -> None:
    """Quadratic forms into var (R, n) by X U⁻¹; few inverses, so that products stay cached."""
    step = max(1, CACHE // (8 * X.size))
    for r in range(0, len(inverse), step):
        some = slice(r, r + step)
        np.vecdot(X @ inverse[some], X, out=var[some])


def _shared_products(
    X: np.ndarray, inverse: np.ndarray, var: np.ndarray, dtype: Any = np.float64
) -> None:
    r"""Quadratic forms into var (R, n) as :math:`\sum_{i\le j} U^{-1}_{ij}\,x_ix_j`, twice where
    :math:`i<j`.

    The products of entries serve all regressions, and symmetry saves half of the work.
    """
    d, step = X.shape[1], ROWS[dtype]
    once = np.ascontiguousarray(X.T, dtype=dtype)
    twice = 2 * once
    room, part = np.empty((step * d, len(X)), dtype), np.empty(var.shape, dtype)
    total = np.zeros(var.shape, dtype)
    for i in range(0, d, step):
        rows = slice(i, i + step)
        twice[rows] = once[rows]  # a square on the diagonal has both halves
        corner = inverse[:, rows, i:].astype(dtype).reshape(len(var), -1)
        products = room[: corner.shape[1]]
        np.multiply(once[rows, None], twice[None, i:], out=products.reshape(-1, d - i, len(X)))
        total += np.matmul(corner, products, out=part)
    var[:] = total


def _one_by_one(
    problem: Contextual, policy: Policy, settings: Settings, tally: Tally, at: tuple[int, int]
) -> None:
    """One lane by a live agent, for policies that read more than means and widths."""
    q, t = at
    trial, K = settings.trials[t], settings.rounds
    draws = generator(settings.seed, "policy", problem.instance, trial)
    noise = Noise([problem], settings)
    player = direct.Player(policy, problem.dim, draws)
    lost, plays = 0.0, np.zeros(problem.arms, dtype=np.int64)
    learnt = np.zeros(tally.learnt.shape[-1], dtype=np.int64)
    marks = {int(c): i for i, c in enumerate(settings.checkpoints)}
    for k in range(0, K, FETCH):
        n = min(FETCH, K - k)
        shown, extra = problem.block(settings.seed, trial, k, n), noise.block(k, n)[:, 0, t]
        gaps = shown.gaps
        present = np.ones(gaps.shape, dtype=bool) if shown.mask is None else shown.mask
        for i in range(n):
            there = present[i].nonzero()[0]
            place, level = player.step(shown.X[i][there], shown.reward[i][there] + extra[i])
            arm = there[place]
            plays[arm] += 1
            lost += gaps[i, arm]
            if level:
                learnt[level - 1] += 1
            elif not tally.first_skip[at]:
                tally.first_skip[at] = k + i + 1
            for kept, value in ((tally.arms, arm), (tally.levels, level)):
                if kept is not None:
                    kept[q, t, k + i] = value
            if k + i + 1 in marks:
                c = marks[k + i + 1]
                tally.plays[q, t, c], tally.learnt[q, t, c] = plays, learnt
                assert tally.regret is not None
                tally.regret[q, t, c] = lost
    tally.final_arm[at] = arm
    tally.drift = max(tally.drift, player.agent.drift)
    settings.bar.update(K)
