"""Rounds × lanes: a lane is one (problem, policy, trial); one vectorised round advances them all.

Decisions are the result: a run stores integers (plays by arm, learnt rounds by level, at
checkpoints) and computes regret from them on the host. Randomness comes from the host too, keyed
by instance and trial (see ``problems``), so a lane takes the same decisions whatever shares its
batch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from banditlib.backend import DTYPES, namespace
from banditlib.lanes import Job, Piece, simulate_arms
from banditlib.policies.base import Policy
from banditlib.problems import FixedArms, Pool, generator, integer, one_backend, real_array
from banditlib.ridge import Ridge, View

ENGINE = 1
"""Version of the engine: raised when decisions may change, and only then."""


@dataclass(frozen=True)
class Run:
    """Result of :func:`simulate`. Axes are (problems, policies, trials, checkpoints, ...), in the
    order given.

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

    @cached_property
    def regret(self) -> np.ndarray:
        """(P, Q, T, C) cumulative regret Σ_a plays × gap, summed on the host in order of arms."""
        total = np.empty(self.plays.shape[:-1])
        for p, problem in enumerate(self.problems):
            for q in range(len(self.policies)):
                terms = self.plays[p, q, ..., : len(problem.gaps)] * problem.gaps
                total[p, q] = np.add.accumulate(terms, axis=-1)[..., -1]
        return total

    @property
    def selections(self) -> np.ndarray:
        """(P, Q, T, C) number |C_k| of learnt rounds, all levels together."""
        return self.learnt.sum(axis=-1)

    def locked(self, last: int = 1000) -> np.ndarray:
        """(P, Q, T) whether the last rounds all went to one arm that is not optimal.

        "Last" starts at the latest checkpoint at or before round K - ``last`` (at 0 if there is
        none).
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
    noise : (trials, rounds) noise to add to expected rewards, the same for every problem and
        policy; None draws it
        with the problem's sigma
    checkpoints : how many, evenly spaced, or the rounds themselves; the last round is always one
    record : what to keep of every round, among "arms" and "levels"
    backend : "numpy", "cupy", "torch" or "array_api_strict"
    dtype : "float64", or "float32", which is too coarse for thresholds near a tie
    progress : in a terminal, show a bar if the run takes more than two seconds and tqdm is there
    """
    start = time.perf_counter()
    problems, policies = (
        _listed("problems", problems, (FixedArms, Pool)),
        _listed("policies", policies, Policy),
    )
    job = Job(
        rounds=integer("rounds", rounds, 1),
        trials=_trial_numbers(trials),
        seed=integer("seed", seed, 0),
        noise=noise,
        checkpoints=_checkpoints(checkpoints, integer("rounds", rounds, 1)),
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

    def joined(name: str) -> np.ndarray:
        return _joined([getattr(piece, name) for piece in pieces])

    return Run(
        problems=problems,
        policies=policies,
        rounds=job.rounds,
        trials=job.trials,
        seed=job.seed,
        checkpoints=job.checkpoints,
        plays=joined("plays"),
        learnt=joined("learnt"),
        first_skip=joined("first_skip"),
        final_arm=joined("last_arm"),
        arms=joined("arms") if "arms" in job.record else None,
        levels=joined("levels") if "levels" in job.record else None,
        wall_time=time.perf_counter() - start,
        drift=max(piece.drift for piece in pieces),
        backend=backend,
        dtype=dtype,
    )


# ---- arguments


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
    if not isinstance(record, (str, list, tuple, set)):
        raise TypeError(f"record: expected names among 'arms' and 'levels', got {record!r}")
    names = (record,) if isinstance(record, str) else tuple(record)
    for name in names:
        if name not in ("arms", "levels"):
            raise ValueError(f"record: expected names among 'arms' and 'levels', got {name!r}")
    return names


def _dtype(dtype: str) -> str:
    if not isinstance(dtype, str) or dtype not in DTYPES:
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
        from tqdm import tqdm
    except ImportError:
        return _Silent()
    # disable=None: only where someone watches, in a terminal
    return tqdm(total=total, delay=2, unit="round", unit_scale=True, leave=False, disable=None)


# ---- dispatch


def _pieces(problems: tuple[Any, ...], policies: tuple[Policy, ...], job: Job) -> list[Piece]:
    """One piece per problem. Fixed arms of one shape share batches; each pool runs by itself."""
    pieces: dict[int, Piece] = {}
    shapes: dict[tuple[int, int], list[int]] = {}
    for p, problem in enumerate(problems):
        if isinstance(problem, Pool):
            pieces[p] = _pool_engine(problem, policies, job)
        else:
            shapes.setdefault((problem.arms, problem.dim), []).append(p)
    for members in shapes.values():
        found = simulate_arms([problems[p] for p in members], policies, job)
        pieces.update(zip(members, found, strict=True))
    return [pieces[p] for p in range(len(problems))]


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    """Stack, padding the last axis with zeros to one length; a single array is not copied."""
    if len(arrays) == 1:
        return arrays[0][None]
    size = max(a.shape[-1] for a in arrays)
    joined = np.zeros((len(arrays), *arrays[0].shape[:-1], size), arrays[0].dtype)
    for p, a in enumerate(arrays):
        joined[p, ..., : a.shape[-1]] = a
    return joined


# ---- pools


def _pool_engine(problem: Pool, policies: tuple[Policy, ...], job: Job) -> Piece:
    """The seam for pools: ``blocks.simulate_pool`` where it applies, else the direct method.

    ``simulate_pool(problem, policies, rounds, trials, seed, noise, checkpoints, record, xp, dtype,
    bar)`` returns a :class:`Piece`, or None to decline; ``noise`` is None or an array (trials,
    rounds).
    """
    from banditlib.blocks import simulate_pool

    piece = simulate_pool(
        problem,
        policies,
        rounds=job.rounds,
        trials=job.trials,
        seed=job.seed,
        noise=job.noise,
        checkpoints=job.checkpoints,
        record=job.record,
        xp=job.xp,
        dtype=job.dtype,
        bar=job.bar,
    )
    if piece is not None:
        return piece
    if len(policies) == 1:
        return pool_direct(problem, policies, job)
    return _side_by_side([_pool_engine(problem, (policy,), job) for policy in policies])


def _side_by_side(pieces: list[Piece]) -> Piece:
    """Pieces of one problem with one policy each, as one piece."""

    def joined(name: str) -> Any:
        arrays = [getattr(piece, name) for piece in pieces]
        if arrays[0] is None:
            return None
        return _joined([a[0] for a in arrays])

    names = ("plays", "learnt", "first_skip", "last_arm", "arms", "levels")
    drift = max(piece.drift for piece in pieces)
    return Piece(**{name: joined(name) for name in names}, drift=drift)


def pool_direct(problem: Pool, policies: tuple[Policy, ...], job: Job) -> Piece:
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


def pool_noise(problem: Pool, job: Job, t: int) -> np.ndarray | None:
    """Noise (rounds,) of the t-th trial, None if there is none."""
    if job.noise is not None:
        return job.noise[t]
    if problem.sigma == 0:
        return None
    return problem.sigma * generator(
        job.seed, "noise", problem.instance, job.trials[t]
    ).standard_normal(job.rounds)


def _pool_lane(
    problem: Pool,
    policy: Policy,
    levels: int,
    shown: np.ndarray,
    noise: np.ndarray | None,
    job: Job,
    piece: Piece,
    q: int,
    t: int,
) -> None:
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
    """One lane on a pool: a ridge on changing contexts, and plays by point if asked for."""

    def __init__(self, policy: Policy, problem: Pool, levels: int, job: Job, t: int) -> None:
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
            choose: Any = self.policy.choose
            arm, level = choose(k, view, *draws)
        return int(arm), int(level)

    def learn(self, point: int, reward: float, level: int) -> None:
        if level:
            self.ridge.learn(self.problem.points[point], reward, level)
            if "counts" in self.policy.needs:
                self.played[point] = self.played.get(point, 0) + 1


def pooled_view(ridge: Ridge, shown: np.ndarray, history: np.ndarray, counts: np.ndarray) -> View:
    """View on the points shown and those learnt from, which get mean -∞ and are never chosen."""
    X = np.concatenate([shown, history])
    mean, var = ridge.at(X, False)
    mean = np.concatenate([mean[: len(shown)], np.full(len(history), -np.inf)])
    cov = X @ ridge.inverse[0] @ X.T
    return View(mean, var, ridge.dim, counts=counts, totals=None, cov=cov)
