"""Fixed arms, many lanes at once: the loop that all runs on fixed arms go through.

A lane is one (problem, policy, trial). Lanes of one kind of policy on problems of one shape form a
batch and advance together, one vectorised round at a time. Rounds are played in chunks; between two
chunks the host counts plays, stops lanes that only repeat themselves, and refreshes regressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from banditlib.backend import Array, device_array, free_memory, pick, to_numpy
from banditlib.engines.arm_posterior import PENDING, ArmPosterior
from banditlib.engines.noise import Draws, Noise
from banditlib.engines.phases import simulate_phases
from banditlib.engines.tally import Settings, Tally
from banditlib.inverses import LONGEST
from banditlib.policies.base import Policy, alike, refuse_shape, stack, with_lanes
from banditlib.problems import FixedArms
from banditlib.view import View

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


def simulate_arms(
    problems: list[FixedArms], policies: tuple[Policy, ...], settings: Settings
) -> list[Tally]:
    """All policies on problems of one shape: cut into batches, run each, sort the results in."""
    first = problems[0]
    levels = [policy.levels(first.dim, settings.rounds) for policy in policies]
    axes = (len(policies), first.arms, max(levels))
    tallies = [Tally.empty(*axes, settings) for _ in problems]
    simulate_phases(problems, policies, settings, tallies)
    for members, pairs in batches(problems, policies, levels, settings):
        # Not bound to a name: a batch is gone before the next one is built.
        Batch([problems[m] for m in members], policies, pairs, settings).run(
            [tallies[m] for m in members]
        )
    return tallies


def batches(
    problems: list[FixedArms], policies: tuple[Policy, ...], levels: list[int], settings: Settings
) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
    """Problems and (policy, trial) pairs that can advance together, cut to size.

    Together means: one class of policy, equal shared parameters, equal numbers of levels, and
    openings of one length.
    """
    for members in alike(policies, levels):
        policy, S = policies[members[0]], levels[members[0]]
        if policy.phased:
            continue
        pairs = [(q, t) for q in members for t in range(len(settings.trials))]
        openings: dict[int, list[int]] = {}
        for m, problem in enumerate(problems):
            openings.setdefault(len(policy.plan(problem.X)), []).append(m)
        size = lane_limit(policy, problems[0], S, free_memory(settings.xp))
        width = min(len(pairs), size)
        together = max(1, size // width)
        for group in openings.values():
            for at in range(0, len(group), together):
                for cut in range(0, len(pairs), width):
                    yield group[at : at + together], pairs[cut : cut + width]


def lane_limit(policy: Policy, problem: FixedArms, levels: int, free: int | None = None) -> int:
    """Lanes in a batch: on the host what the cache likes, on a GPU what half its memory holds."""
    size = lane_bytes(policy, problem, levels)
    if free is not None:
        return max(1, free // 2 // size)
    return max(1, min(COV_BATCH if "cov" in policy.needs else BATCH, MEMORY // size))


def lane_bytes(policy: Policy, problem: FixedArms, levels: int) -> int:
    """Bytes that one lane takes at its peak: what it keeps, what a round needs, what a chunk logs.

    A round needs some eight rows of values by arm, and copies of the regression it updates; a chunk
    holds its noise, draws, arms, levels and rewards.
    """
    N, rank = problem.arms, min(problem.arms, problem.dim)
    values = 12 * levels * N
    if "cov" in policy.needs:
        inner = 3 * N * N
    else:
        inner = levels * rank * (rank + PENDING) + 3 * rank * rank
    log = CHUNK * (6 + (N if "draws" in policy.needs else 0))
    return 8 * (values + inner + log)


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
        settings: Settings,
    ) -> None:
        self.problems, self.pairs, self.settings = problems, pairs, settings
        self.X = np.stack([problem.X for problem in problems])
        self.reward = np.stack([problem.reward for problem in problems])
        P, b, N = len(problems), len(pairs), problems[0].arms
        self.kind = policies[pairs[0][0]]
        self.levels = self.kind.levels(problems[0].dim, settings.rounds)
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
        self.noise = Noise(problems, settings)
        self.draws = Draws(problems, settings) if "draws" in self.kind.needs else None
        self.log: list[tuple[np.ndarray, ...]] = []
        self.posterior: ArmPosterior | None = None
        self._wake()

    # ---- the run

    def run(self, tallies: list[Tally]) -> None:
        """All rounds; fills the tallies of the batch's problems."""
        settings, opening = self.settings, self.plan.shape[1]
        epochs = self.kind.epochs(self.problems[0].dim, settings.rounds)
        ends = set(epochs or ())
        stops = sorted({*settings.checkpoints.tolist(), *ends, settings.rounds} | ({opening} - {0}))
        marks = {int(c): i for i, c in enumerate(settings.checkpoints)}
        k = at = 0
        while k < settings.rounds:
            while stops[at] <= k:
                at += 1
            if k == opening > 0:
                self._judge()
            stride = min(CHUNK, max(64, k)) if len(self.live) else settings.rounds
            k = self._chunk(k, min(stops[at], k + stride), tallies)
            if k in marks:
                self._note(tallies, marks[k])
            if k in ends:
                self._wake()  # whoever rested may move again
            elif ends:
                self._compact()
        self._finish(tallies)

    def _chunk(self, k: int, stop: int, tallies: list[Tally]) -> int:
        """Rounds k+1 .. stop, or fewer if a refresh is due; returns the last round played."""
        if len(self.live):
            arms, levels, *learnt = self._rounds(k, stop - k)
            stop = k + len(arms)
            self._count(k, arms, levels)
            self.log.append((arms, levels, *learnt))
            self.age += len(arms)
        n = stop - k
        self.plays[self.rest, self.last_arm[self.rest]] += n
        if self.settings.record:
            decided = (arms, levels) if len(self.live) else None
            self._record(k, n, tallies, decided)
        self.settings.bar.update(n * len(self.lane_problem))
        if len(self.live) and self.posterior is not None:
            worn = self.posterior.worn()
            if worn or self.age >= LONGEST:
                # A delicate batch stops at the round that wore it out: nothing was decided with it.
                self._refresh(measure=not (worn and self.posterior.delicate))
        if sum(len(entry[0]) for entry in self.log) >= LOG:
            self._settle()
        return stop

    def _rounds(self, k: int, n: int) -> list[np.ndarray]:
        """The loop itself: arms, levels and rewards (rounds played, live lanes), on the host, and
        for a policy that weighs them the weights of the observations.
        """
        xp, dtype, opening = self.settings.xp, self.settings.device_dtype, self.plan.shape[1]
        lane = (slice(None), self.live_problem, self.live_trial)
        noise = device_array(xp, self.noise.block(k, n)[lane], dtype)
        draws = device_array(xp, self.draws.block(k, n)[lane], dtype) if self.draws else None
        choose: Any = self.policy.choose
        played: list[tuple[Array, ...]] = []
        lanes = (len(self.live),)
        for i in range(n):
            if k + i < opening:
                arm, level = self.opening[k + i, :], self.one
            elif draws is None:
                arm, level = choose(k + i + 1, self._view())
            else:
                arm, level = choose(k + i + 1, self._view(), draws[i, ...])
            if getattr(arm, "shape", 0) != lanes or getattr(level, "shape", 0) != lanes:
                refuse_shape(self.kind, arm, level, len(self.live))
            where = arm if len(self.live_problems) == 1 else self.first_arm + arm
            reward = self.flat_reward[where] + noise[i, :]
            weight = self._weight(arm)
            self._learn(arm, level, reward, *weight)
            played.append((arm, level, reward, *weight))
            if self.posterior is not None and self.posterior.delicate and self.posterior.worn():
                break
        return [to_numpy(xp.stack(rounds)) for rounds in zip(*played, strict=True)]

    def _weight(self, arm: Array) -> tuple[Array, ...]:
        """Weights of what is about to be learnt, nothing if all rounds count whole."""
        if not self.kind.weighs or self.posterior is None:
            return ()
        xp = self.settings.xp
        return (self.policy.weight(xp.sqrt(pick(self.posterior.var, arm, xp))),)

    def _view(self) -> View:
        if self.posterior is None:
            dim = self.problems[0].dim
            return View(None, None, dim, counts=self.n, totals=self.s, flag=self.device_flag)
        return self.posterior.view(counts=self.n, totals=self.s, flag=self.device_flag)

    def _learn(self, arm: Array, level: Array, reward: Array, weight: Array = None) -> None:
        if self.posterior is not None:
            self.posterior.learn(arm, level, reward, weight)
        if self.n is not None:
            xp, dtype = self.settings.xp, self.settings.device_dtype
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
        arms, levels, rewards, *weights = (
            np.concatenate(parts) for parts in zip(*self.log, strict=True)
        )
        self.log = []
        N, S, lanes = self.plays.shape[1], self.levels, len(self.live)
        learnt = levels > 0
        slot = ((np.arange(lanes) * S + levels - 1) * N + arms)[learnt]
        size = lanes * S * N
        gained = rewards[learnt].astype(np.float64)
        if weights:
            weight = weights[0][learnt].astype(np.float64)
            gained *= weight
            plays = np.bincount(slot, weight, minlength=size)
        else:
            plays = np.bincount(slot, minlength=size)
        self.counts[self.live] += plays.reshape(-1, S, N)
        sums = np.bincount(slot, gained, minlength=size)
        self.totals[self.live] += sums.reshape(-1, S, N)

    def _record(
        self, k: int, n: int, tallies: list[Tally], decided: tuple[np.ndarray, np.ndarray] | None
    ) -> None:
        """Keep every decision of rounds k+1 .. k+n."""
        b = len(self.pairs)
        rounds = slice(k, k + n)
        for lane in self.rest:
            (q, t), tally = self.pairs[lane % b], tallies[self.lane_problem[lane]]
            if tally.arms is not None:
                tally.arms[q, t, rounds] = self.last_arm[lane]
        if decided is None:
            return
        for column, lane in enumerate(self.live):
            (q, t), tally = self.pairs[lane % b], tallies[self.lane_problem[lane]]
            for kept, values in zip((tally.arms, tally.levels), decided, strict=True):
                if kept is not None:
                    kept[q, t, rounds] = values[:, column]

    def _note(self, tallies: list[Tally], c: int) -> None:
        """Write checkpoint c."""
        b = len(self.pairs)
        q, t = np.array(self.pairs).T
        for p, tally in enumerate(tallies):
            mine = slice(p * b, (p + 1) * b)
            tally.plays[q, t, c] = self.plays[mine]
            tally.learnt[q, t, c, : self.levels] = self.learnt[mine]

    def _finish(self, tallies: list[Tally]) -> None:
        b = len(self.pairs)
        q, t = np.array(self.pairs).T
        for p, tally in enumerate(tallies):
            mine = slice(p * b, (p + 1) * b)
            tally.first_skip[q, t] = self.first_skip[mine]
            tally.final_arm[q, t] = self.last_arm[mine]
            tally.drift = max(tally.drift, self.drift)

    # ---- which lanes are computed

    def _wake(self) -> None:
        """Compute all lanes, rebuilt from what they learnt if some were not computed."""
        if self.posterior is not None and len(self.live) == len(self.lane_problem):
            return
        self._settle()
        self._place(np.arange(len(self.lane_problem)), np.arange(len(self.problems)))
        self.resting, self.age = np.zeros(len(self.live), dtype=bool), 0
        if not self.kind.ridge:
            return
        lam = np.broadcast_to(self.host_policy.regulariser, self.live.shape)
        cov = "cov" in self.kind.needs
        self.posterior = ArmPosterior(
            self.X,
            lam,
            self.settings.xp,
            self.settings.device_dtype,
            self.levels,
            cov,
            self.kind.layered,
        )
        if self.counts.any():
            self._refresh(measure=False)

    def _place(self, live: np.ndarray, problems: np.ndarray) -> None:
        """Compute these lanes on these problems: device copies of all that depends on which."""
        xp, dtype, N = self.settings.xp, self.settings.device_dtype, self.plays.shape[1]
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
        xp, dtype = self.settings.xp, self.settings.device_dtype
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
        if self.posterior is not None:
            self.posterior.take(keep, np.searchsorted(self.live_problems, busy))
        resting = self.resting[keep]
        self._place(self.live[keep], busy)
        self.resting = resting

    def _refresh(self, measure: bool = True) -> None:
        """Rebuild the regressions of the live lanes from counts."""
        assert self.posterior is not None
        self._settle()
        self.posterior.refresh(self.counts[self.live], self.totals[self.live], measure)
        self.drift = max(self.drift, self.posterior.drift)
        self.age = 0
        if self.n is not None:
            self._tell_counts()

    def _judge(self) -> None:
        """Ask the policy for its verdict on every lane after the opening."""
        self._settle()
        for lane, p in enumerate(self.lane_problem):
            verdict = self.kind.judge(self.X[p], self.counts[lane, 0], self.totals[lane, 0])
            self.flag[lane] = verdict
        self.device_flag = device_array(self.settings.xp, self.flag[self.live])
