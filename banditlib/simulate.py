"""Rounds × lanes: a lane is one (problem, policy, trial); one vectorised round advances them all.

Decisions are the result: a run stores integers (plays by arm, learnt rounds by level, at checkpoints) and computes regret
from them on the host. Randomness comes from the host too, keyed by instance and trial (see ``problems``), so a lane
takes the same decisions whatever shares its batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np

from banditlib.backend import DTYPES, Array, device_array, namespace, to_numpy
from banditlib.policies.base import Policy, shared, stack
from banditlib.problems import FixedArms, Pool, generator, integer, one_backend, real_array
from banditlib.ridge import LONGEST, Arms, Ridge, View

ENGINE = 1
"""Version of the engine: raised when decisions may change, and only then."""

CHUNK = 256
"""Most rounds between two looks at the host: stops, checkpoints and refreshes happen there."""

BATCH = 256
"""Lanes advanced together: enough to hide the cost of a call, few enough to stay in the cache."""

MEMORY = 1 << 28
"""Most bytes a batch's regressions may take."""


@dataclass
class Piece:
    """What the engines return for one problem: integers, with axes (policies, trials, ...).

    Attributes
    ----------
    plays : (Q, T, C, N) plays by arm up to each checkpoint; for a pool N = 2: right and wrong choices
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
        keep = [
            np.zeros((Q, T, rounds), np.int32) if n in record else None for n in ("arms", "levels")
        ]
        plays, learnt = np.zeros((Q, T, C, N), np.int64), np.zeros((Q, T, C, S), np.int64)
        return cls(plays, learnt, np.zeros((Q, T), np.int64), np.zeros((Q, T), np.int64), *keep)


@dataclass(frozen=True)
class Run:
    """Result of :func:`simulate`. Axes are (problems, policies, trials, checkpoints, ...), in the order given.

    Attributes
    ----------
    problems, policies : as given
    rounds : K
    trials : trial numbers, which key the seeds
    checkpoints : (C,) rounds at which the arrays below are taken; the last is K
    plays : (P, Q, T, C, N) plays by arm (a pool has N = 2: right and wrong choices)
    learnt : (P, Q, T, C, S) learnt rounds by level
    first_skip : (P, Q, T) first round that learnt nothing, 0 if none
    final_arm : (P, Q, T) arm of the last round (a pool: 0 right, 1 wrong)
    arms, levels : (P, Q, T, K) every decision, with ``record=("arms", "levels")``; else None
    wall_time : seconds, all lanes together
    drift : largest error of an incremental value that a refresh found
    """

    problems: tuple[Any, ...]
    policies: tuple[Policy, ...]
    rounds: int
    trials: tuple[int, ...]
    seed: int
    checkpoints: np.ndarray
    plays: np.ndarray = field(repr=False)
    learnt: np.ndarray = field(repr=False)
    first_skip: np.ndarray = field(repr=False)
    final_arm: np.ndarray = field(repr=False)
    arms: np.ndarray | None = field(repr=False)
    levels: np.ndarray | None = field(repr=False)
    wall_time: float
    drift: float
    backend: str
    dtype: str

    @property
    def regret(self) -> np.ndarray:
        """(P, Q, T, C) cumulative regret: Σ_a plays × gap, arm by arm in order of index, on the host."""
        N = self.plays.shape[-1]
        total = np.zeros(self.plays.shape[:-1])
        for a in range(N):
            gap = np.array([p.gaps[a] if a < len(p.gaps) else 0.0 for p in self.problems])
            total += self.plays[..., a] * gap[:, None, None, None]
        return total

    @property
    def selections(self) -> np.ndarray:
        """(P, Q, T, C) number |C_k| of learnt rounds, all levels together."""
        return self.learnt.sum(axis=-1)

    def locked(self, last: int = 1000) -> np.ndarray:
        """(P, Q, T) whether the last rounds all went to one arm that is not optimal.

        "Last" starts at the latest checkpoint at or before round K - ``last`` (at 0 if there is none).
        """
        integer("last", last, 1)
        before = np.flatnonzero(self.checkpoints <= self.rounds - last)
        recent = self.plays[..., -1, :] - (self.plays[..., before[-1], :] if before.size else 0)
        wrong = np.zeros((len(self.problems), self.plays.shape[-1]), dtype=bool)
        for p, problem in enumerate(self.problems):
            wrong[p, : len(problem.gaps)] = problem.gaps > 0
        span = recent.sum(axis=-1)
        return ((recent == span[..., None]) & wrong[:, None, None, :]).any(axis=-1)


def simulate(
    problems: Any,
    policies: Any,
    rounds: int = 10_000,
    trials: int | Sequence[int] = 8,
    seed: int = 0,
    noise: Any = None,
    checkpoints: int | Sequence[int] = 200,
    record: Sequence[str] = (),
    backend: str = "numpy",
    dtype: str = "float64",
    progress: bool = True,
) -> Run:
    """Run every policy on every problem.

    Parameters
    ----------
    problems, policies : lists; one of either may stand for a list of one
    rounds : K
    trials : number of trials, or their numbers (``range(8, 16)`` continues a run of 8)
    seed : root of all seeds; the noise of (instance, trial) is the same for every policy
    noise : (trials, rounds) noise to add to expected rewards, the same for every problem and policy; None draws it
        with the problem's sigma
    checkpoints : how many, evenly spaced, or the rounds themselves; the last round is always one
    record : what to keep of every round, among "arms" and "levels"
    backend : "numpy", "cupy", "torch" or "array_api_strict"
    dtype : "float64", or "float32", which is too coarse for thresholds near a tie
    progress : show a bar if the run takes more than two seconds and tqdm is installed
    """
    start = time.perf_counter()
    problems, policies = (
        _listed("problems", problems, (FixedArms, Pool)),
        _listed("policies", policies, Policy),
    )
    job = _Job(
        rounds=integer("rounds", rounds, 1),
        trials=_trial_numbers(trials),
        seed=integer("seed", seed, 0),
        noise=noise,
        checkpoints=_checkpoints(checkpoints, rounds),
        record=_record(record),
        xp=namespace(backend),
        dtype=_dtype(dtype),
    )
    if noise is not None:
        one_backend(noise=noise)
        job.noise = real_array("noise", noise, 2)
        if job.noise.shape != (len(job.trials), job.rounds):
            wanted = (len(job.trials), job.rounds)
            raise ValueError(
                f"noise: expected shape (trials, rounds) = {wanted}, got {job.noise.shape}"
            )
    for problem in problems:
        for policy in policies:
            if policy.fixed_arms and isinstance(problem, Pool):
                raise ValueError(
                    f"policies: {type(policy).__name__} needs fixed arms; {problem.label} has none"
                )
    job.bar = _bar(progress, len(problems) * len(policies) * len(job.trials) * job.rounds)
    pieces = _pieces(problems, policies, job)
    job.bar.close()
    return _assemble(problems, policies, job, pieces, backend, dtype, time.perf_counter() - start)


# ---------------------------------------------------------------------------------------------- arguments


@dataclass
class _Job:
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
        return getattr(self.xp, self.dtype)


def _listed(name: str, value: Any, kinds: Any) -> tuple[Any, ...]:
    items = (
        (value,)
        if isinstance(value, kinds)
        else tuple(value)
        if isinstance(value, Sequence)
        else None
    )
    if items is None or not all(isinstance(item, kinds) for item in items):
        raise TypeError(f"{name}: expected one or a list of {name}, got {value!r}")
    if not items:
        raise ValueError(f"{name}: expected at least one")
    return items


def _trial_numbers(trials: Any) -> tuple[int, ...]:
    if isinstance(trials, (Sequence, np.ndarray)) and not isinstance(trials, str):
        numbers = tuple(integer("trials", t, 0) for t in trials)
        if not numbers or len(set(numbers)) < len(numbers):
            raise ValueError(f"trials: expected distinct trial numbers, got {trials!r}")
        return numbers
    return tuple(range(integer("trials", trials, 1)))


def _checkpoints(checkpoints: Any, rounds: int) -> np.ndarray:
    if isinstance(checkpoints, (Sequence, np.ndarray)) and not isinstance(checkpoints, str):
        marks = np.array(
            [integer("checkpoints", c, 1) for c in checkpoints] + [rounds], dtype=np.int64
        )
        if marks.max() > rounds:
            raise ValueError(f"checkpoints: expected rounds up to {rounds}, got {marks.max()}")
        return np.unique(marks)
    count = min(integer("checkpoints", checkpoints, 1), rounds)
    return np.unique(np.arange(1, count + 1, dtype=np.int64) * rounds // count)


def _record(record: Any) -> tuple[str, ...]:
    names = (record,) if isinstance(record, str) else tuple(record)
    for name in names:
        if name not in ("arms", "levels"):
            raise ValueError(f"record: expected names among 'arms' and 'levels', got {name!r}")
    return names


def _dtype(dtype: str) -> str:
    if dtype not in DTYPES:
        raise ValueError(f"dtype: expected one of {DTYPES}, got {dtype!r}")
    return dtype


class _Silent:
    """A progress bar that shows nothing."""

    def update(self, n: int) -> None: ...

    def close(self) -> None: ...


def _bar(progress: bool, total: int) -> Any:
    if not progress:
        return _Silent()
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Silent()
    return tqdm(total=total, delay=2, unit="round", unit_scale=True, leave=False)


# ---------------------------------------------------------------------------------------------- dispatch


def _pieces(problems: tuple[Any, ...], policies: tuple[Policy, ...], job: _Job) -> list[Piece]:
    """One piece per problem. Fixed arms of one shape share batches; each pool runs by itself."""
    pieces: list[Piece | None] = [None] * len(problems)
    shapes: dict[tuple[int, int], list[int]] = {}
    for p, problem in enumerate(problems):
        if isinstance(problem, Pool):
            pieces[p] = _pool_engine(problem, policies, job)
        else:
            shapes.setdefault((problem.arms, problem.dim), []).append(p)
    for members in shapes.values():
        found = _fixed_engine([problems[p] for p in members], policies, job)
        for p, piece in zip(members, found, strict=True):
            pieces[p] = piece
    return pieces


def _assemble(problems, policies, job, pieces, backend, dtype, seconds) -> Run:
    """Stack the pieces, padding arms and levels that a problem lacks with zeros."""
    N, S = (max(getattr(piece, name).shape[-1] for piece in pieces) for name in ("plays", "learnt"))

    def padded(a: np.ndarray, size: int) -> np.ndarray:
        return np.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, size - a.shape[-1])])

    def recorded(name: str) -> np.ndarray | None:
        return np.stack([getattr(piece, name) for piece in pieces]) if name in job.record else None

    return Run(
        problems=problems, policies=policies, rounds=job.rounds, trials=job.trials, seed=job.seed,
        checkpoints=job.checkpoints,
        plays=np.stack([padded(piece.plays, N) for piece in pieces]),
        learnt=np.stack([padded(piece.learnt, S) for piece in pieces]),
        first_skip=np.stack([piece.first_skip for piece in pieces]),
        final_arm=np.stack([piece.last_arm for piece in pieces]),
        arms=recorded("arms"), levels=recorded("levels"),
        wall_time=seconds, drift=max(piece.drift for piece in pieces), backend=backend, dtype=dtype,
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------- fixed arms


def _fixed_engine(
    problems: list[FixedArms], policies: tuple[Policy, ...], job: _Job
) -> list[Piece]:
    """All policies on problems of one shape: split into batches of like lanes, run each, sort the results in."""
    first, T = problems[0], len(job.trials)
    levels = [policy.levels(first.dim, job.rounds) for policy in policies]
    shape = (
        len(policies),
        T,
        len(job.checkpoints),
        first.arms,
        max(levels),
        job.rounds,
        job.record,
    )
    pieces = [Piece.empty(*shape) for _ in problems]
    for members, lanes in _batches(problems, policies, levels, job):
        _Batch([problems[m] for m in members], policies, lanes, job).run(
            [pieces[m] for m in members]
        )
    return pieces


def _batches(problems, policies, levels, job) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
    """Groups of problems × (policy, trial) pairs that can advance together, cut to size."""
    kinds: dict[Any, list[int]] = {}
    for q, policy in enumerate(policies):
        kinds.setdefault((type(policy), shared(policy), levels[q]), []).append(q)
    for (_, _, S), members in kinds.items():
        policy = policies[members[0]]
        pairs = [(q, t) for q in members for t in range(len(job.trials))]
        plans: dict[int, list[int]] = {}
        for m, problem in enumerate(problems):
            plans.setdefault(len(policy.plan(problem.X)), []).append(m)
        size = _lane_limit(policy, problems[0], S)
        for group in plans.values():
            width = min(len(pairs), size)
            together = max(1, size // width)
            for at in range(0, len(group), together):
                for cut in range(0, len(pairs), width):
                    yield group[at : at + together], pairs[cut : cut + width]


def _lane_limit(policy: Policy, problem: FixedArms, levels: int) -> int:
    """Lanes in a batch: BATCH, fewer if their regressions would not fit."""
    inner = problem.arms**2 if "cov" in policy.needs else levels * problem.dim**2
    lane = 8 * (inner + 6 * levels * problem.arms)
    cached = 16 if "cov" in policy.needs else BATCH
    return max(1, min(cached, MEMORY // lane))


class _Batch:
    """Lanes of one kind of policy on problems of one shape, advanced together.

    Lanes are numbered problem by problem: lane = problem × b + (policy, trial). ``live`` lists those still computed,
    the same number for each problem; the others repeat the arm of their last round until the epoch ends.
    """

    def __init__(self, problems, policies, pairs, job: _Job) -> None:
        self.problems, self.pairs, self.job = problems, pairs, job
        self.all_X = np.stack([problem.X for problem in problems])
        self.reward = np.stack([problem.reward for problem in problems])
        P, b, N = len(problems), len(pairs), problems[0].arms
        self.kind = policies[pairs[0][0]]
        self.levels = self.kind.levels(problems[0].dim, job.rounds)
        self.host_policy = stack([policies[q] for _ in range(P) for q, _ in pairs], self.levels)
        self.plan = np.stack([self.kind.plan(problem.X) for problem in problems])  # (P, opening)
        self.lane_problem = np.repeat(np.arange(P), b)
        self.lane_trial = np.tile([t for _, t in pairs], P)
        self.counts = np.zeros((P * b, self.levels, N))  # learnt rounds and their reward sums
        self.totals = np.zeros((P * b, self.levels, N))
        self.plays = np.zeros((P * b, N), dtype=np.int64)
        self.last_arm = np.zeros(P * b, dtype=np.int64)
        self.first_skip = np.zeros(P * b, dtype=np.int64)
        self.flag = np.zeros(P * b, dtype=bool)
        self.drift = 0.0
        self.noise = _Noise(problems, job)
        self.draws = _Draws(problems, job) if "draws" in self.kind.needs else None

    # ---- the run

    def run(self, pieces: list[Piece]) -> None:
        """All rounds; fills the pieces of the batch's problems."""
        job = self.job
        epochs = self.kind.epochs(self.problems[0].dim, job.rounds)
        ends = sorted(set(epochs or ()) | {job.rounds})
        opening = self.plan.shape[1]
        stops = sorted({*job.checkpoints.tolist(), *ends, min(max(opening, 1), job.rounds)})
        self._wake()
        k = 0
        while k < job.rounds:
            if k == opening and opening:
                self._judge()
            stop = next(s for s in stops if s > k)
            k = self._chunk(k, min(stop, k + self._stride(k)), pieces)
            if k in ends and k < job.rounds and len(self.live) < len(self.lane_problem):
                self._wake()
            elif epochs is not None and k < job.rounds:
                self._compact()
            if k in job.checkpoints:
                self._note(pieces, int(np.searchsorted(job.checkpoints, k)))
        self._finish(pieces)

    def _stride(self, k: int) -> int:
        """Rounds until the next look: short at first, when widths shrink fastest."""
        return min(CHUNK, max(64, k)) if len(self.live) else self.job.rounds

    def _chunk(self, k: int, stop: int, pieces: list[Piece]) -> int:
        """Rounds k+1 .. stop (or fewer if a refresh is due); returns the last round played."""
        n = stop - k
        noise = self.noise.block(k, n)  # (n, P, T)
        if len(self.live) == 0:
            self._book(k, n, pieces, None, None, noise)
            return stop
        arms, levels = self._rounds(k, noise)
        done = len(arms)
        self._book(k, done, pieces, arms, levels, noise[:done])
        self.age += done
        if self.arms is not None and (self.age >= LONGEST or self.arms.worn()):
            self._refresh(
                measure=not self.arms.delicate
            )  # a delicate lane decided nothing with what is thrown away
        return k + done

    def _rounds(self, k: int, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loop itself: arms and levels (rounds played, live lanes), on the host."""
        xp, opening = self.job.xp, self.plan.shape[1]
        eps = device_array(xp, noise[:, self.live_problem, self.live_trial], self.job.device_dtype)
        draws = None
        if self.draws is not None:
            z = self.draws.block(k, len(noise))[:, self.live_problem, self.live_trial]
            draws = device_array(xp, z, self.job.device_dtype)
        arms: list[Array] = []
        levels: list[Array] = []
        for i in range(len(noise)):
            if k + i < opening:
                arm, level = self.opening[k + i, :], self.one
            else:
                extra = () if draws is None else (draws[i, ...],)
                arm, level = self.policy.choose(k + i + 1, self._view(), *extra)
            reward = xp.take(self.flat_reward, self.first_arm + arm, axis=0)
            reward += eps[i, :]
            self._learn(arm, level, reward)
            arms.append(arm)
            levels.append(level)
            if self.arms is not None and self.arms.delicate and self.arms.worn():
                break
        return to_numpy(xp.stack(arms)), to_numpy(xp.stack(levels))

    def _view(self) -> View:
        extra = {} if self.n is None else {"counts": self.n, "totals": self.s}
        if self.arms is None:
            return View(None, None, self.problems[0].dim, flag=self.device_flag, **extra)
        return self.arms.view(flag=self.device_flag, **extra)

    def _learn(self, arm: Array, level: Array, reward: Array) -> None:
        if self.arms is not None:
            self.arms.learn(arm, level, reward)
        if self.n is not None:
            on = self.job.xp.astype(level > 0, self.job.device_dtype)[:, None]
            hit = self.job.xp.astype(self.arm_numbers == arm[:, None], self.job.device_dtype) * on
            self.n += hit
            hit *= reward[:, None]
            self.s += hit

    # ---- bookkeeping on the host

    def _book(self, k, n, pieces, arms, levels, noise) -> None:
        """Count n rounds: live lanes from what they did, the others by their last arm."""
        lanes, N = len(self.lane_problem), self.plays.shape[1]
        asleep = np.ones(lanes, dtype=bool)
        asleep[self.live] = False
        rest = np.flatnonzero(asleep)
        self.plays[rest, self.last_arm[rest]] += n
        if arms is not None:
            self._count(k, arms, levels, noise, N)
        if self.job.record:
            self._record(k, n, pieces, rest, arms, levels)
        self.job.bar.update(n * lanes)

    def _count(self, k, arms, levels, noise, N) -> None:
        S, live = self.levels, self.live
        where = np.arange(len(live)) * N + arms
        self.plays[live] += np.bincount(where.ravel(), minlength=len(live) * N).reshape(-1, N)
        reward = self.reward[self.live_problem, arms] + noise[:, self.live_problem, self.live_trial]
        learnt = levels > 0
        slot = ((np.arange(len(live)) * S + levels - 1) * N + arms)[learnt]
        size = len(live) * S * N
        self.counts[live] += np.bincount(slot, minlength=size).reshape(-1, S, N)
        self.totals[live] += np.bincount(slot, reward[learnt], minlength=size).reshape(-1, S, N)
        skipped = ~learnt.all(axis=0) & (self.first_skip[live] == 0)
        self.first_skip[live[skipped]] = k + 1 + np.argmin(learnt[:, skipped], axis=0)
        self.last_arm[live] = arms[-1]
        self.resting = ~learnt[-1]

    def _record(self, k, n, pieces, rest, arms, levels) -> None:
        b = len(self.pairs)
        for lanes, a, at in ((rest, self.last_arm[rest], 0), (self.live, arms, levels)):
            for column, lane in enumerate(lanes):
                piece, (q, t) = pieces[self.lane_problem[lane]], self.pairs[lane % b]
                if piece.arms is not None:
                    piece.arms[q, t, k : k + n] = a[column] if a.ndim == 1 else a[:, column]
                if piece.levels is not None:
                    piece.levels[q, t, k : k + n] = at if np.ndim(at) == 0 else at[:, column]

    def _note(self, pieces, c: int) -> None:
        """Write checkpoint c."""
        b = len(self.pairs)
        learnt = self.counts.sum(axis=-1).astype(np.int64)
        q, t = np.array(self.pairs).T
        for p, piece in enumerate(pieces):
            mine = slice(p * b, (p + 1) * b)
            piece.plays[q, t, c] = self.plays[mine]
            piece.learnt[q, t, c, : self.levels] = learnt[mine]

    def _finish(self, pieces) -> None:
        b = len(self.pairs)
        q, t = np.array(self.pairs).T
        if self.arms is not None and len(self.live):
            self.drift = max(self.drift, self.arms.drift)
        for p, piece in enumerate(pieces):
            mine = slice(p * b, (p + 1) * b)
            piece.first_skip[q, t] = self.first_skip[mine]
            piece.last_arm[q, t] = self.last_arm[mine]
            piece.drift = max(piece.drift, self.drift)

    # ---- which lanes are computed

    def _wake(self) -> None:
        """Compute all lanes, rebuilt from what they learnt."""
        self.live = np.arange(len(self.lane_problem))
        self.live_X = np.arange(len(self.problems))
        self._place()
        if not self.kind.ridge:
            self.arms = None
            return
        lam = np.broadcast_to(self.host_policy.regulariser, self.live.shape)
        cov = "cov" in self.kind.needs
        self.arms = Arms(self.all_X, lam, self.job.xp, self.job.device_dtype, self.levels, cov)
        if self.counts.any():
            self._refresh(measure=False)

    def _place(self) -> None:
        """Device copies of what depends on the live lanes."""
        xp, job, N = self.job.xp, self.job, self.plays.shape[1]
        live = self.live
        self.age = 0
        self.resting = np.zeros(len(live), dtype=bool)
        self.live_problem, self.live_trial = self.lane_problem[live], self.lane_trial[live]
        params = {n: getattr(self.host_policy, n)[live] for n in self.kind.per_lane}
        self.policy = replace(
            self.host_policy,
            **{n: device_array(xp, v, job.device_dtype) for n, v in params.items()},
        )
        position = np.searchsorted(self.live_X, self.live_problem)
        self.first_arm = device_array(xp, position * N)
        self.flat_reward = device_array(xp, self.reward[self.live_X].reshape(-1), job.device_dtype)
        self.device_flag = device_array(xp, self.flag[live])
        self.opening = device_array(xp, self.plan[self.live_problem].T)
        self.one = device_array(xp, np.ones(len(live), dtype=np.int64))
        self.n = self.s = None
        if "counts" in self.kind.needs:
            self.arm_numbers = device_array(xp, np.arange(N))[None, :]
            self.n = device_array(xp, self.counts[live, 0], job.device_dtype)
            self.s = device_array(xp, self.totals[live, 0], job.device_dtype)

    def _compact(self) -> None:
        """Stop computing lanes that only repeat themselves, once a quarter of the batch does."""
        if not len(self.live) or not self.resting.any():
            return
        active = self.live[~self.resting]
        busy = [p for p in self.live_X if (self.lane_problem[active] == p).any()]
        per = max((int((self.lane_problem[active] == p).sum()) for p in busy), default=0)
        if per * len(busy) > 0.75 * len(self.live):
            return
        if not busy:
            self.drift = max(self.drift, self.arms.drift) if self.arms is not None else self.drift
            self.live = active
            return
        order = np.argsort(self.resting, kind="stable")  # working lanes first, then padding
        keep = []
        for p in busy:
            keep.extend(np.sort(order[self.live_problem[order] == p][:per]))
        keep = np.array(keep)
        resting, age = self.resting[keep], self.age
        if self.arms is not None:
            self.arms.take(keep, np.searchsorted(self.live_X, busy))
        self.live, self.live_X = self.live[keep], np.array(busy)
        self._place()
        self.resting, self.age = resting, age

    def _refresh(self, measure: bool = True) -> None:
        """Rebuild the regressions of the live lanes from counts."""
        if not measure:
            self.arms.mean = self.arms.mean[:0, :]
        self.arms.refresh(self.counts[self.live], self.totals[self.live])
        self.drift = max(self.drift, self.arms.drift)
        self.age = 0
        if self.n is not None:
            xp, dtype = self.job.xp, self.job.device_dtype
            self.n = device_array(xp, self.counts[self.live, 0], dtype)
            self.s = device_array(xp, self.totals[self.live, 0], dtype)

    def _judge(self) -> None:
        """Ask the policy for its verdict on every lane after the opening."""
        for lane in range(len(self.flag)):
            X = self.problems[self.lane_problem[lane]].X
            self.flag[lane] = self.kind.judge(X, self.counts[lane, 0], self.totals[lane, 0])
        self.device_flag = device_array(self.job.xp, self.flag[self.live])


class _Noise:
    """Noise of every (problem, trial), drawn on the host in blocks of rounds; the pieces equal one long draw."""

    stream = "noise"

    def __init__(self, problems: Sequence[Any], job: _Job) -> None:
        self.given = None if self.stream == "policy" else job.noise
        self.sigma = np.array([problem.sigma for problem in problems])
        self.shape = (len(problems), len(job.trials))
        keys: dict[int, int] = {}
        self.column = [keys.setdefault(problem.instance, len(keys)) for problem in problems]
        self.generators = [
            [generator(job.seed, self.stream, i, t) for t in job.trials] for i in keys
        ]
        self.arms = getattr(problems[0], "arms", 2)
        self.held, self.first = (
            self._draw(0),
            0,
        )  # rounds drawn and not yet behind us; number of the first

    def block(self, k: int, n: int) -> np.ndarray:
        """Rounds k+1 .. k+n, (n, P, T); k never goes back."""
        if self.given is not None:
            return np.broadcast_to(self.given[:, k : k + n].T[:, None, :], (n, *self.shape))
        self.held, self.first = self.held[k - self.first :], k
        if n > len(self.held):
            self.held = np.concatenate([self.held, self._draw(n - len(self.held))])
        return self.held[:n]

    def _draw(self, n: int) -> np.ndarray:
        if not self.sigma.any():
            return np.zeros((n, *self.shape))
        drawn = np.array(
            [[g.standard_normal(n) for g in row] for row in self.generators]
        )  # (I, T, n)
        return np.transpose(drawn, (2, 0, 1))[:, self.column, :] * self.sigma[:, None]


class _Draws(_Noise):
    """Standard normal draws for policies that ask for them: one per arm and round, (n, P, T, N)."""

    stream = "policy"

    def _draw(self, n: int) -> np.ndarray:
        drawn = np.array(
            [[g.standard_normal((n, self.arms)) for g in row] for row in self.generators]
        )
        return np.transpose(drawn, (2, 0, 1, 3))[:, self.column]


# ---------------------------------------------------------------------------------------------- pools


def _pool_engine(problem: Pool, policies: tuple[Policy, ...], job: _Job) -> Piece:
    """The seam for pools: ``blocks.simulate_pool`` where it applies, else the direct method.

    ``simulate_pool(problem, policies, rounds, trials, seed, noise, checkpoints, record, xp, dtype, bar)`` returns a
    :class:`Piece`, or None to decline; ``noise`` is None or an array (trials, rounds).
    """
    try:
        from banditlib.blocks import simulate_pool
    except ImportError:
        simulate_pool = None
    if simulate_pool is not None:
        piece = simulate_pool(
            problem, policies, rounds=job.rounds, trials=job.trials, seed=job.seed, noise=job.noise,
            checkpoints=job.checkpoints, record=job.record, xp=job.xp, dtype=job.dtype, bar=job.bar,
        )  # fmt: skip
        if piece is not None:
            return piece
    return pool_direct(problem, policies, job)


def pool_direct(problem: Pool, policies: tuple[Policy, ...], job: _Job) -> Piece:
    """Pools by the direct method: one lane after another, one round after another, on the host."""
    levels = [policy.levels(problem.dim, job.rounds) for policy in policies]
    shape = (
        len(policies),
        len(job.trials),
        len(job.checkpoints),
        2,
        max(levels),
        job.rounds,
        job.record,
    )
    piece = Piece.empty(*shape)
    for t, trial in enumerate(job.trials):
        shown = problem.contexts(job.seed, trial, job.rounds)
        noise = pool_noise(problem, job, t)
        for q, policy in enumerate(policies):
            _pool_lane(problem, policy, levels[q], shown, noise, job, piece, q, t)
            job.bar.update(job.rounds)
    return piece


def pool_noise(problem: Pool, job: _Job, t: int) -> np.ndarray | None:
    """Noise (rounds,) of the t-th trial, None if there is none."""
    if job.noise is not None:
        return job.noise[t]
    if problem.sigma == 0:
        return None
    return problem.sigma * generator(
        job.seed, "noise", problem.instance, job.trials[t]
    ).standard_normal(job.rounds)


def _pool_lane(problem, policy, levels, shown, noise, job, piece, q, t) -> None:
    lane = _Lane(policy, problem, levels, job, t)
    tally = np.zeros(2 + levels, dtype=np.int64)  # right, wrong, learnt by level
    reward = problem.reward
    marks = {int(c): i for i, c in enumerate(job.checkpoints)}
    for k in range(1, job.rounds + 1):
        pair = shown[k - 1]
        position, level = lane.choose(k, pair)
        point = pair[position]
        wrong = int(reward[point] < 1.0)
        lane.learn(point, reward[point] + (0.0 if noise is None else noise[k - 1]), level)
        tally[wrong] += 1
        if level:
            tally[1 + level] += 1
        elif not piece.first_skip[q, t]:
            piece.first_skip[q, t] = k
        if piece.arms is not None:
            piece.arms[q, t, k - 1] = position
        if piece.levels is not None:
            piece.levels[q, t, k - 1] = level
        if k in marks:
            piece.plays[q, t, marks[k]] = tally[:2]
            piece.learnt[q, t, marks[k], :levels] = tally[2:]
    piece.last_arm[q, t] = wrong
    piece.drift = max(piece.drift, lane.ridge.drift)


class _Lane:
    """One lane on a pool: a ridge on changing contexts, and plays by point for policies that need them."""

    def __init__(self, policy: Policy, problem: Pool, levels: int, job: _Job, t: int) -> None:
        self.policy, self.problem, self.levels = policy, problem, levels
        self.ridge = Ridge(problem.dim, policy.regulariser, levels)
        self.played: dict[int, int] = {}
        self.plain = not policy.needs
        self.draws = None
        if "draws" in policy.needs:
            self.draws = generator(job.seed, "policy", problem.instance, job.trials[t])

    def choose(self, k: int, pair: np.ndarray) -> tuple[int, int]:
        points = self.problem.points
        if self.plain:
            mean, var = self.ridge.at(points[pair], self.levels > 1)
            arm, level = self.policy.choose(k, View(mean, var, self.problem.dim))
        else:
            seen = np.fromiter(self.played, dtype=np.int64, count=len(self.played))
            counts = np.array([0.0, 0.0, *self.played.values()])
            view = pooled_view(self.ridge, points[pair], points[seen], counts)
            draws = () if self.draws is None else (self.draws.standard_normal(2),)
            arm, level = self.policy.choose(k, view, *draws)
        return int(arm), int(level)

    def learn(self, point: int, reward: float, level: int) -> None:
        if level:
            self.ridge.learn(self.problem.points[point], reward, level)
            if not self.plain:
                self.played[point] = self.played.get(point, 0) + 1


def pooled_view(ridge: Ridge, shown: np.ndarray, history: np.ndarray, counts: np.ndarray) -> View:
    """View on the points shown and the points learnt from; the latter have mean -∞, so that none is chosen."""
    X = np.concatenate([shown, history])
    mean, var = ridge.at(X, False)
    mean = np.concatenate([mean[: len(shown)], np.full(len(history), -np.inf)])
    cov = X @ ridge.inverse[0] @ X.T
    return View(mean, var, ridge.dim, counts=counts, totals=None, cov=cov)
