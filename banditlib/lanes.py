"""Fixed arms, many lanes at once: the loop that all runs on fixed arms go through.

A lane is one (problem, policy, trial). Lanes of one kind of policy on problems of one shape form a
batch and advance together, one vectorised round at a time. Rounds are played in chunks; between two
chunks the host counts plays, stops lanes that only repeat themselves, and refreshes regressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from banditlib.backend import Array, device_array, free_memory, to_numpy
from banditlib.policies.base import Policy, shared, stack, with_lanes
from banditlib.problems import FixedArms, generator
from banditlib.ridge import LONGEST, Arms, View

CHUNK = 256
"""Most rounds between two looks at the host."""

BATCH = 512
"""Lanes advanced together: enough to hide the cost of a call, few enough to stay in the cache."""

COV_BATCH = 16
"""The same for policies that keep covariances, whose lanes are larger."""

MEMORY = 1 << 28
"""Most bytes that the regressions of a batch may take."""

LOG = 1024
"""Most rounds whose observations wait to be counted."""


@dataclass
class Job:
    """What all lanes of a call share."""

    rounds: int
    trials: tuple[int, ...]
    seed: int
    noise: np.ndarray | None
    checkpoints: np.ndarray
    record: tuple[str, ...]
    xp: ModuleType
    dtype: str
    bar: Any = None

    @property
    def device_dtype(self) -> Any:
        """The dtype as the array library names it."""
        return getattr(self.xp, self.dtype)


@dataclass
class Piece:
    """What the engines return for one problem: integers, with axes (policies, trials, ...).

    Attributes
    ----------
    plays : (Q, T, C, N) plays by arm up to each checkpoint; a pool has N = 2: right and wrong
    learnt : (Q, T, C, S) rounds learnt by level up to each checkpoint
    first_skip : (Q, T) first round that learnt nothing, 0 if there was none
    last_arm : (Q, T) arm of the last round (for a pool: 0 right, 1 wrong)
    arms, levels : (Q, T, K) every decision, if recorded (for a pool: position shown, 0 or 1)
    drift : largest error that a refresh found
    """

    plays: np.ndarray
    learnt: np.ndarray
    first_skip: np.ndarray
    last_arm: np.ndarray
    arms: np.ndarray | None = None
    levels: np.ndarray | None = None
    drift: float = 0.0

    @classmethod
    def empty(
        cls, Q: int, T: int, C: int, N: int, S: int, rounds: int, record: Sequence[str]
    ) -> Piece:
        """Zeros of the right shapes."""
        return cls(
            plays=np.zeros((Q, T, C, N), np.int32),
            learnt=np.zeros((Q, T, C, S), np.int32),
            first_skip=np.zeros((Q, T), np.int64),
            last_arm=np.zeros((Q, T), np.int64),
            arms=np.zeros((Q, T, rounds), np.int32) if "arms" in record else None,
            levels=np.zeros((Q, T, rounds), np.int32) if "levels" in record else None,
        )


def simulate_arms(problems: list[FixedArms], policies: tuple[Policy, ...], job: Job) -> list[Piece]:
    """All policies on problems of one shape: cut into batches, run each, sort the results in."""
    first = problems[0]
    levels = [policy.levels(first.dim, job.rounds) for policy in policies]
    axes = (len(policies), len(job.trials), len(job.checkpoints), first.arms, max(levels))
    pieces = [Piece.empty(*axes, job.rounds, job.record) for _ in problems]
    for members, pairs in batches(problems, policies, levels, job):
        batch = Batch([problems[m] for m in members], policies, pairs, job)
        batch.run([pieces[m] for m in members])
    return pieces


def batches(
    problems: list[FixedArms], policies: tuple[Policy, ...], levels: list[int], job: Job
) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
    """Problems and (policy, trial) pairs that can advance together, cut to size.

    Together means: one class of policy, equal shared parameters, equal numbers of levels, and
    openings of one length.
    """
    kinds: dict[Any, list[int]] = {}
    for q, policy in enumerate(policies):
        kinds.setdefault((type(policy), shared(policy), levels[q]), []).append(q)
    for (_, _, S), members in kinds.items():
        policy = policies[members[0]]
        pairs = [(q, t) for q in members for t in range(len(job.trials))]
        openings: dict[int, list[int]] = {}
        for m, problem in enumerate(problems):
            openings.setdefault(len(policy.plan(problem.X)), []).append(m)
        size = lane_limit(policy, problems[0], S, free_memory(job.xp))
        width = min(len(pairs), size)
        together = max(1, size // width)
        for group in openings.values():
            for at in range(0, len(group), together):
                for cut in range(0, len(pairs), width):
                    yield group[at : at + together], pairs[cut : cut + width]


def lane_limit(policy: Policy, problem: FixedArms, levels: int, free: int | None = None) -> int:
    """Lanes in a batch: on the host what the cache likes, on a GPU what half its memory holds."""
    cov = "cov" in policy.needs
    inner = problem.arms**2 if cov else levels * problem.dim**2
    bytes_per_lane = 16 * (inner + 4 * levels * problem.arms)
    if free is not None:
        return max(1, free // 2 // bytes_per_lane)
    return max(1, min(COV_BATCH if cov else BATCH, MEMORY // bytes_per_lane))


class Batch:
    """Lanes of one kind of policy on problems of one shape.

    Lanes are numbered problem by problem: lane = problem × b + (policy, trial). ``live`` lists
    those that are computed, the same number for each problem; the others are known to repeat the
    arm of their last round until the epoch ends.
    """

    def __init__(
        self,
        problems: list[FixedArms],
        policies: tuple[Policy, ...],
        pairs: list[tuple[int, int]],
        job: Job,
    ) -> None:
        self.problems, self.pairs, self.job = problems, pairs, job
        self.X = np.stack([problem.X for problem in problems])
        self.reward = np.stack([problem.reward for problem in problems])
        P, b, N = len(problems), len(pairs), problems[0].arms
        self.kind = policies[pairs[0][0]]
        self.levels = self.kind.levels(problems[0].dim, job.rounds)
        self.host_policy = stack([policies[q] for _ in range(P) for q, _ in pairs], self.levels)
        self.plan = np.stack([self.kind.plan(problem.X) for problem in problems])  # (P, opening)
        self.lane_problem = np.repeat(np.arange(P), b)
        self.lane_trial = np.tile([t for _, t in pairs], P)
        self.counts = np.zeros((P * b, self.levels, N))  # what was learnt, and its rewards
        self.totals = np.zeros((P * b, self.levels, N))
        self.learnt = np.zeros((P * b, self.levels), dtype=np.int64)
        self.plays = np.zeros((P * b, N), dtype=np.int64)
        self.last_arm = np.zeros(P * b, dtype=np.int64)
        self.first_skip = np.zeros(P * b, dtype=np.int64)
        self.flag = np.zeros(P * b, dtype=bool)
        self.drift = 0.0
        self.noise = Noise(problems, job)
        self.draws = Draws(problems, job) if "draws" in self.kind.needs else None
        self.log: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.arms: Arms | None = None
        self._wake()

    # ---- the run

    def run(self, pieces: list[Piece]) -> None:
        """All rounds; fills the pieces of the batch's problems."""
        job, opening = self.job, self.plan.shape[1]
        epochs = self.kind.epochs(self.problems[0].dim, job.rounds)
        ends = set(epochs or ())
        stops = sorted({*job.checkpoints.tolist(), *ends, job.rounds} | ({opening} - {0}))
        marks = {int(c): i for i, c in enumerate(job.checkpoints)}
        k = at = 0
        while k < job.rounds:
            while stops[at] <= k:
                at += 1
            if k == opening > 0:
                self._judge()
            stride = min(CHUNK, max(64, k)) if len(self.live) else job.rounds
            k = self._chunk(k, min(stops[at], k + stride), pieces)
            if k in marks:
                self._note(pieces, marks[k])
            if k in ends:
                self._wake()  # whoever rested may move again
            elif ends:
                self._compact()
        self._finish(pieces)

    def _chunk(self, k: int, stop: int, pieces: list[Piece]) -> int:
        """Rounds k+1 .. stop, or fewer if a refresh is due; returns the last round played."""
        if len(self.live):
            arms, levels, rewards = self._rounds(k, stop - k)
            stop = k + len(arms)
            self._count(k, arms, levels)
            self.log.append((arms, levels, rewards))
            self.age += len(arms)
        n = stop - k
        self.plays[self.rest, self.last_arm[self.rest]] += n
        if self.job.record:
            decided = (arms, levels) if len(self.live) else None
            self._record(k, n, pieces, decided)
        self.job.bar.update(n * len(self.lane_problem))
        if len(self.live) and self.arms is not None:
            worn = self.arms.worn()
            if worn or self.age >= LONGEST:
                # A delicate batch stops at the round that wore it out: nothing was decided with it.
                self._refresh(measure=not (worn and self.arms.delicate))
        if sum(len(entry[0]) for entry in self.log) >= LOG:
            self._settle()
        return stop

    def _rounds(self, k: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The loop itself: arms, levels and rewards (rounds played, live lanes), on the host."""
        xp, dtype, opening = self.job.xp, self.job.device_dtype, self.plan.shape[1]
        lane = (slice(None), self.live_problem, self.live_trial)
        noise = device_array(xp, self.noise.block(k, n)[lane], dtype)
        draws = device_array(xp, self.draws.block(k, n)[lane], dtype) if self.draws else None
        choose: Any = self.policy.choose
        arms: list[Array] = []
        levels: list[Array] = []
        rewards: list[Array] = []
        for i in range(n):
            if k + i < opening:
                arm, level = self.opening[k + i, :], self.one
            elif draws is None:
                arm, level = choose(k + i + 1, self._view())
            else:
                arm, level = choose(k + i + 1, self._view(), draws[i, ...])
            where = arm if len(self.live_problems) == 1 else self.first_arm + arm
            reward = self.flat_reward[where] + noise[i, :]
            self._learn(arm, level, reward)
            arms.append(arm)
            levels.append(level)
            rewards.append(reward)
            if self.arms is not None and self.arms.delicate and self.arms.worn():
                break
        return to_numpy(xp.stack(arms)), to_numpy(xp.stack(levels)), to_numpy(xp.stack(rewards))

    def _view(self) -> View:
        if self.arms is None:
            dim = self.problems[0].dim
            return View(None, None, dim, counts=self.n, totals=self.s, flag=self.device_flag)
        return self.arms.view(counts=self.n, totals=self.s, flag=self.device_flag)

    def _learn(self, arm: Array, level: Array, reward: Array) -> None:
        if self.arms is not None:
            self.arms.learn(arm, level, reward)
        if self.n is not None:
            xp, dtype = self.job.xp, self.job.device_dtype
            hit = xp.astype((self.arm_numbers == arm[:, None]) & (level[:, None] > 0), dtype)
            self.n += hit
            hit *= reward[:, None]
            self.s += hit

    # ---- counting, on the host

    def _count(self, k: int, arms: np.ndarray, levels: np.ndarray) -> None:
        """Plays, levels and first skips of the live lanes; arms and levels are (n, live)."""
        N, S, live, lanes = self.plays.shape[1], self.levels, self.live, len(self.live)
        where = np.arange(lanes) * N + arms
        self.plays[live] += np.bincount(where.ravel(), minlength=lanes * N).reshape(-1, N)
        learnt = levels > 0
        if learnt.all() and S == 1:
            self.learnt[live, 0] += len(arms)
        else:
            slot = (np.arange(lanes) * S + levels - 1)[learnt]
            self.learnt[live] += np.bincount(slot, minlength=lanes * S).reshape(-1, S)
            new = ~learnt.all(axis=0) & (self.first_skip[live] == 0)
            self.first_skip[live[new]] = k + 1 + np.argmin(learnt[:, new], axis=0)
        self.last_arm[live] = arms[-1]
        self.resting = ~learnt[-1]

    def _settle(self) -> None:
        """Add the logged observations to counts and totals."""
        if not self.log:
            return
        arms, levels, rewards = (np.concatenate(parts) for parts in zip(*self.log, strict=True))
        self.log = []
        N, S, lanes = self.plays.shape[1], self.levels, len(self.live)
        learnt = levels > 0
        slot = ((np.arange(lanes) * S + levels - 1) * N + arms)[learnt]
        size = lanes * S * N
        self.counts[self.live] += np.bincount(slot, minlength=size).reshape(-1, S, N)
        sums = np.bincount(slot, rewards[learnt].astype(np.float64), minlength=size)
        self.totals[self.live] += sums.reshape(-1, S, N)

    def _record(
        self, k: int, n: int, pieces: list[Piece], decided: tuple[np.ndarray, np.ndarray] | None
    ) -> None:
        """Keep every decision of rounds k+1 .. k+n."""
        b = len(self.pairs)
        rounds = slice(k, k + n)
        for lane in self.rest:
            (q, t), piece = self.pairs[lane % b], pieces[self.lane_problem[lane]]
            if piece.arms is not None:
                piece.arms[q, t, rounds] = self.last_arm[lane]
        if decided is None:
            return
        for column, lane in enumerate(self.live):
            (q, t), piece = self.pairs[lane % b], pieces[self.lane_problem[lane]]
            for kept, values in zip((piece.arms, piece.levels), decided, strict=True):
                if kept is not None:
                    kept[q, t, rounds] = values[:, column]

    def _note(self, pieces: list[Piece], c: int) -> None:
        """Write checkpoint c."""
        b = len(self.pairs)
        q, t = np.array(self.pairs).T
        for p, piece in enumerate(pieces):
            mine = slice(p * b, (p + 1) * b)
            piece.plays[q, t, c] = self.plays[mine]
            piece.learnt[q, t, c, : self.levels] = self.learnt[mine]

    def _finish(self, pieces: list[Piece]) -> None:
        b = len(self.pairs)
        q, t = np.array(self.pairs).T
        for p, piece in enumerate(pieces):
            mine = slice(p * b, (p + 1) * b)
            piece.first_skip[q, t] = self.first_skip[mine]
            piece.last_arm[q, t] = self.last_arm[mine]
            piece.drift = max(piece.drift, self.drift)

    # ---- which lanes are computed

    def _wake(self) -> None:
        """Compute all lanes, rebuilt from what they learnt if some were not computed."""
        if self.arms is not None and len(self.live) == len(self.lane_problem):
            return
        self._settle()
        self._place(np.arange(len(self.lane_problem)), np.arange(len(self.problems)))
        self.resting, self.age = np.zeros(len(self.live), dtype=bool), 0
        if not self.kind.ridge:
            return
        lam = np.broadcast_to(self.host_policy.regulariser, self.live.shape)
        cov = "cov" in self.kind.needs
        self.arms = Arms(self.X, lam, self.job.xp, self.job.device_dtype, self.levels, cov)
        if self.counts.any():
            self._refresh(measure=False)

    def _place(self, live: np.ndarray, problems: np.ndarray) -> None:
        """Compute these lanes on these problems: device copies of all that depends on which."""
        xp, dtype, N = self.job.xp, self.job.device_dtype, self.plays.shape[1]
        self.live, self.live_problems = live, problems
        self.rest = np.setdiff1d(np.arange(len(self.lane_problem)), live)
        self.live_problem, self.live_trial = self.lane_problem[live], self.lane_trial[live]
        params = {name: getattr(self.host_policy, name)[live] for name in self.kind.per_lane}
        device = {name: device_array(xp, value, dtype) for name, value in params.items()}
        self.policy = with_lanes(self.host_policy, device)
        self.first_arm = device_array(xp, np.searchsorted(problems, self.live_problem) * N)
        self.flat_reward = device_array(xp, self.reward[problems].reshape(-1), dtype)
        self.device_flag = device_array(xp, self.flag[live])
        self.opening = device_array(xp, self.plan[self.live_problem].T)
        self.one = device_array(xp, np.ones(len(live), dtype=np.int64))
        self.n = self.s = None
        if "counts" in self.kind.needs:
            self.arm_numbers = device_array(xp, np.arange(N))[None, :]
            self._tell_counts()

    def _tell_counts(self) -> None:
        """Plays and reward sums for policies that read them."""
        xp, dtype = self.job.xp, self.job.device_dtype
        self.n = device_array(xp, self.counts[self.live, 0], dtype)
        self.s = device_array(xp, self.totals[self.live, 0], dtype)

    def _compact(self) -> None:
        """Stop computing lanes that only repeat themselves, once a tenth of the batch does."""
        if not len(self.live) or not self.resting.any():
            return
        working = np.bincount(self.live_problem[~self.resting], minlength=len(self.problems))
        per = int(working.max())
        busy = np.flatnonzero(working)
        if per * len(busy) > 0.9 * len(self.live):
            return
        self._settle()
        if per == 0:
            self._place(self.live[:0], busy)
            return
        order = np.argsort(self.resting, kind="stable")  # working lanes first, then padding
        keep = np.concatenate([np.sort(order[self.live_problem[order] == p][:per]) for p in busy])
        if self.arms is not None:
            self.arms.take(keep, np.searchsorted(self.live_problems, busy))
        resting = self.resting[keep]
        self._place(self.live[keep], busy)
        self.resting = resting

    def _refresh(self, measure: bool = True) -> None:
        """Rebuild the regressions of the live lanes from counts."""
        assert self.arms is not None
        self._settle()
        self.arms.refresh(self.counts[self.live], self.totals[self.live], measure)
        self.drift = max(self.drift, self.arms.drift)
        self.age = 0
        if self.n is not None:
            self._tell_counts()

    def _judge(self) -> None:
        """Ask the policy for its verdict on every lane after the opening."""
        self._settle()
        for lane, p in enumerate(self.lane_problem):
            verdict = self.kind.judge(self.X[p], self.counts[lane, 0], self.totals[lane, 0])
            self.flag[lane] = verdict
        self.device_flag = device_array(self.job.xp, self.flag[self.live])


class Noise:
    """Noise of every (problem, trial), drawn on the host in blocks; pieces equal one long draw."""

    stream = "noise"

    def __init__(self, problems: Sequence[Any], job: Job) -> None:
        self.given = None if self.stream == "policy" else job.noise
        self.sigma = np.array([problem.sigma for problem in problems])
        self.shape = (len(problems), len(job.trials))
        self.arms = problems[0].arms
        keys: dict[int, int] = {}
        self.column = [keys.setdefault(problem.instance, len(keys)) for problem in problems]
        self.generators = [
            [generator(job.seed, self.stream, i, t) for t in job.trials] for i in keys
        ]
        self.held, self.first = self._draw(0), 0  # rounds drawn and not behind us; the first one

    def block(self, k: int, n: int) -> np.ndarray:
        """Rounds k+1 .. k+n, (n, P, T); k never goes back."""
        if self.given is not None:
            return np.broadcast_to(self.given[:, k : k + n].T[:, None, :], (n, *self.shape))
        while self.first + len(self.held) < k:  # rounds that nobody needed
            self.first, self.held = (
                self.first + len(self.held),
                self._draw(min(k - self.first - len(self.held), 1 << 14)),
            )
        self.held, self.first = self.held[k - self.first :], k
        if n > len(self.held):
            self.held = np.concatenate([self.held, self._draw(n - len(self.held))])
        return self.held[:n]

    def _draw(self, n: int) -> np.ndarray:
        if not self.sigma.any():
            return np.zeros((n, *self.shape))
        drawn = np.array([[g.standard_normal(n) for g in row] for row in self.generators])
        return np.transpose(drawn, (2, 0, 1))[:, self.column, :] * self.sigma[:, None]


class Draws(Noise):
    """Standard normals for policies that ask: one per arm and round, (n, P, T, N)."""

    stream = "policy"

    def _draw(self, n: int) -> np.ndarray:
        size = (n, self.arms)
        drawn = np.array([[g.standard_normal(size) for g in row] for row in self.generators])
        return np.transpose(drawn, (2, 0, 1, 3))[:, self.column]
