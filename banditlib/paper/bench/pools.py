"""Rows (d) to (f) and (j) of the bench: pools in 512 dimensions, against a direct loop.

The pool is the Asirra one at ζ = 0.01 where the features are at hand, else a synthetic stand-in of
unit vectors in two clusters; the result says which.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import banditlib as bl
from banditlib.engines.pools.blocks import Lane
from banditlib.paper import features
from banditlib.paper.bench.measure import Row, Work, alternate, clock, rate, summary
from banditlib.reference import argmax
from banditlib.view import TAU

ROUNDS = 1_000_000


def two_clusters(seed: int = 0, dim: int = 512, each: int = 1000) -> bl.problems.Pool:
    """Unit vectors around two centres with spreads that decay as in learnt features."""
    rng = np.random.default_rng(seed)
    centre, turn = rng.standard_normal((2, dim)) / np.sqrt(dim)
    spread = 1.0 / np.sqrt(np.arange(1, dim + 1))
    spread *= 0.6 / np.linalg.norm(spread)
    kinds = []
    for side in (1.0, -1.0):
        x = centre + 0.3 * side * turn + spread * rng.standard_normal((each, dim))
        kinds.append(x / np.linalg.norm(x, axis=1, keepdims=True))
    return bl.problems.Pool(kinds[0], kinds[1], label="two clusters")


def pool() -> bl.problems.Pool:
    """Asirra at ζ = 0.01 if its features are found, else :func:`two_clusters`."""
    try:
        found = features.pool(features.load("standard"), 0.01)
    except features.FeaturesError:
        return two_clusters()
    return bl.problems.Pool(found.good, found.bad, label="Asirra, ζ = 0.01")


class Direct:
    """The baseline: DS-OFUL with U⁻¹ by Sherman-Morrison, one round after another, one lane."""

    def __init__(self, problem: bl.problems.Pool, policy: bl.DSOFUL, shown: np.ndarray) -> None:
        self.points, self.reward, self.shown = problem.points, problem.reward, shown
        self.policy, self.k = policy, 0
        self.inverse = np.eye(problem.dim) / policy.lam
        self.theta = np.zeros(problem.dim)

    def play(self, rounds: int) -> np.ndarray:
        """Arms shown first (0) or second (1) that are played in the next rounds."""
        beta, least = self.policy.beta, self.policy.Gamma * (1 - TAU)
        arms = np.zeros(rounds, np.int64)
        for i in range(rounds):
            pair = self.shown[self.k % len(self.shown)]
            X = self.points[pair]
            V = X @ self.inverse
            width, mean = np.sqrt((V * X).sum(axis=1)), X @ self.theta
            a = argmax(mean + beta * width)
            if width[a] >= least:
                v = V[a] / (1 + width[a] ** 2)
                self.theta += v * (self.reward[pair[a]] - mean[a])
                self.inverse -= np.outer(v, V[a])
            arms[i] = a
            self.k += 1
        return arms


class DirectLevels:
    """The baseline for SupLinUCB: U⁻¹ of each level by Sherman-Morrison, from where a lane is."""

    def __init__(self, policy: bl.SupLinUCB, lane: Lane) -> None:
        self.policy, self.game, self.k = policy, lane.game, lane.k
        self.inverse = [state.inverse.copy() for state in lane.states]
        self.theta = [state.theta.copy() for state in lane.states]

    def play(self, rounds: int) -> np.ndarray:
        """Arms shown first (0) or second (1) that are played in the next rounds."""
        arms = np.zeros(rounds, np.int64)
        for i in range(rounds):
            pair = self.game.contexts[self.k % len(self.game.contexts)]
            arms[i] = self._step(self.game.points[pair], self.game.reward[pair])
            self.k += 1
        return arms

    def _step(self, X: np.ndarray, reward: np.ndarray) -> int:
        policy, alive, l = self.policy, np.arange(len(X)), 1
        while True:
            if l > len(self.inverse):
                self.inverse.append(np.eye(X.shape[1]) / policy.lam)
                self.theta.append(np.zeros(X.shape[1]))
            V = X[alive] @ self.inverse[l - 1]
            width, mean = np.sqrt((V * X[alive]).sum(axis=1)), X[alive] @ self.theta[l - 1]
            if width.max() >= 2.0**-l * (1 - TAU):
                a = argmax(width)
                v = V[a] / (1 + width[a] ** 2)
                self.theta[l - 1] += v * (reward[alive[a]] - mean[a])
                self.inverse[l - 1] -= np.outer(v, V[a])
                return int(alive[a])
            index = mean + policy.radius(l) * width
            if self.k + 1 <= 4**l * X.shape[1]:
                return int(alive[argmax(index)])
            alive = alive[index.max() - index <= 2 * policy.radius(l) * 2.0**-l * (1 + TAU)]
            l += 1


def gram_blocks(seconds: float) -> dict[str, Any]:
    """(d) OFUL, every round learnt, Gram blocks only."""
    problem, policy = pool(), bl.OFUL(1.0, 1.0)
    shown = problem.contexts(0, 0, 400_000)
    lane = Lane(problem, shown, policy)
    direct = Direct(problem, policy, shown)

    def contender() -> float:
        for _ in range(8):
            lane.gram_block(96)
        return 8.0 * 96

    def baseline() -> float:
        direct.play(150)
        return 150.0

    return alternate(contender, baseline, seconds) | {"note": f"{problem.label}; blocks of 96"}


def whole_run(policy: bl.DSOFUL, seconds: float, rounds: int = ROUNDS) -> dict[str, Any]:
    """A run of a million rounds; the direct loop is timed in slices between its stretches.

    The loop's time for the whole run is the number of learning and of idle rounds times the slice's
    cost of each; that makes one ratio per slice.
    """
    problem = pool()
    shown = problem.contexts(0, 0, rounds)
    learning = Direct(problem, bl.OFUL(policy.beta, policy.lam), shown)
    idle = Direct(problem, bl.DSOFUL(9.0, policy.beta, policy.lam), shown)
    learning.play(20), idle.play(20)

    def costs(lane: Lane) -> list[float]:
        return [1.0 / rate(_slice(loop, 100)) for loop in (learning, idle)]

    mine, learnt, found = _timed(problem, shown, policy, seconds, costs)
    return _extrapolated(problem, mine, learnt, found @ [learnt, rounds - learnt], rounds)


def whole_run_by_levels(
    policy: bl.SupLinUCB, seconds: float, rounds: int = ROUNDS
) -> dict[str, Any]:
    """The same for SupLinUCB: each slice of the direct loop plays on from where the run is.

    A slice stands for the whole run, which makes one ratio of each; they are spread over the run
    evenly, for the loop's cost grows with the levels that a round goes through.
    """
    problem = pool()
    shown = problem.contexts(0, 0, rounds)

    def costs(lane: Lane) -> list[float]:
        return [1.0 / rate(_slice(DirectLevels(policy, lane), 50))]

    mine, learnt, found = _timed(problem, shown, policy, seconds, costs)
    return _extrapolated(problem, mine, learnt, found[:, 0] * rounds, rounds)


def _timed(
    problem: bl.problems.Pool,
    shown: np.ndarray,
    policy: bl.Policy,
    seconds: float,
    costs: Callable[[Lane], list[float]],
) -> tuple[float, int, np.ndarray]:
    """Seconds of a run without its pauses, rounds learnt, and ``costs`` at each pause."""
    found: list[list[float]] = []
    end, spent, repeats = time.perf_counter() + seconds, 0.0, 0
    while repeats == 0 or time.perf_counter() + 1.2 * spent / repeats < end:
        lane = Lane(problem, shown, policy)
        pause, start = 0.0, clock()
        nxt = 0

        def between(lane: Lane) -> None:
            nonlocal pause, nxt
            if lane.k < nxt:
                return
            nxt = lane.k + len(shown) // 20
            began = clock()
            found.append(costs(lane))
            pause += clock() - began

        trace = lane.run(report=between)
        spent += clock() - start - pause
        repeats += 1
    return spent / repeats, int((trace.levels > 0).sum()), np.array(found)


def _extrapolated(
    problem: bl.problems.Pool, mine: float, learnt: int, whole: np.ndarray, rounds: int
) -> dict[str, Any]:
    """The row: a run took ``mine``, each slice says that the loop would take ``whole``."""
    return summary(whole / mine) | {
        "contender": rounds / mine,
        "baseline": rounds / float(np.median(whole)),
        "seconds": mine,
        "direct_seconds_extrapolated": float(np.median(whole)),
        "learnt": learnt,
        "slices": len(whole),
        "note": f"{problem.label}; direct loop timed in {len(whole)} slices, extrapolated",
    }


def _slice(loop: Direct | DirectLevels, rounds: int) -> Work:
    def work() -> float:
        loop.play(rounds)
        return float(rounds)

    return work


def skip_ahead(seconds: float) -> dict[str, Any]:
    """(e) DS-OFUL with Γ = 0.05, a million rounds."""
    return whole_run(bl.DSOFUL(0.05, 1.0, 1.0), seconds)


def certified(seconds: float) -> dict[str, Any]:
    """(f) OFUL, a million rounds, every one learnt."""
    return whole_run(bl.DSOFUL(0.0, 1.0, 1.0), seconds)


def levels(seconds: float) -> dict[str, Any]:
    """(j) SupLinUCB, a million rounds."""
    return whole_run_by_levels(bl.SupLinUCB(0.3, 1.0), seconds)


ROWS = [
    Row("d", "d=512, two arms, Gram blocks, every round learnt", "rounds", 4.0, gram_blocks),
    Row("e", "d=512, Γ=0.05, 10⁶ rounds, skip-ahead", "rounds", 12.0, skip_ahead),
    Row("f", "d=512, OFUL, 10⁶ rounds, certified decisions", "rounds", 40.0, certified),
    Row("j", "d=512, SupLinUCB, 10⁶ rounds, certified decisions", "rounds", 40.0, levels),
]
