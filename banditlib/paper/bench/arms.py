"""Rows (a) to (c) of the bench: fixed arms, against loops of one lane."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import banditlib as bl
from banditlib import reference
from banditlib.paper.bench.measure import Row, Work, alternate, clock, summary
from banditlib.view import TAU

# ---- plain loops


def plain_oful(
    X: np.ndarray, r: np.ndarray, noise: np.ndarray, Gamma: float, beta: float, lam: float
) -> np.ndarray:
    """The baseline: Sherman-Morrison for U⁻¹, means and widths of all arms from it, one lane.

    X (N, d) are the arms, r (N,) their expected rewards, noise (rounds,); returns arms (rounds,).
    """

    def reward(k: int, a: int) -> float:
        return r[a] + noise[k - 1]

    rounds = len(noise)
    return reference.sherman_morrison([X] * rounds, reward, rounds, Gamma, beta, lam)[0]


def tight_oful(
    X: np.ndarray, r: np.ndarray, noise: np.ndarray, Gamma: float, beta: float, lam: float
) -> list[int]:
    """A one-lane loop with the engine's own recursion: means and widths of arms are kept.

    The arguments are those of :func:`plain_oful`.
    """
    V, mean, var = np.eye(X.shape[1]) / lam, np.zeros(len(X)), (X * X).sum(axis=1) / lam
    arms = []
    for eps in noise:
        score = mean + beta * np.sqrt(var)
        a = reference.argmax(score)
        arms.append(a)
        if np.sqrt(var[a]) >= Gamma * (1 - TAU):
            u = V @ X[a]
            g = X @ u
            v = 1 + g[a]
            mean += g * ((r[a] + eps - mean[a]) / v)
            var -= g * g / v
            V -= np.outer(u, u / v)
    return arms


def lsw_by_history(
    X: np.ndarray, V: np.ndarray, theta: np.ndarray, history: np.ndarray, beta: float, eps: float
) -> int:
    """One decision of LSW with the sum over all past rounds, vectorised.

    X (N, d) are the arms, V (d, d) is U⁻¹, theta (d,), history (k, d) what was played so far.
    """
    width = np.sqrt(((X @ V) * X).sum(axis=1))
    bonus = np.abs(X @ V @ history.T).sum(axis=1)
    return reference.argmax(X @ theta + beta * width + eps * bonus)


# ---- rows


def many_lanes(seconds: float) -> dict[str, Any]:
    """(a) 360 lanes of OFUL, no early stops."""
    problem = bl.problems.synthetic(seed=0)
    policies = bl.grid(bl.OFUL, beta=[1, 2, 3, 5, 10], lam=[1, 3, 10])
    rounds, rng = 500, np.random.default_rng(0)

    def contender() -> float:
        bl.simulate(problem, policies, rounds=rounds, trials=24, checkpoints=10, progress=False)
        return 360.0 * rounds

    def plain(loop: Callable[..., object]) -> Work:
        def work() -> float:
            loop(problem.X, problem.reward, rng.standard_normal(2000), 0.0, 3.0, 1.0)
            return 2000.0

        return work

    result = alternate(contender, plain(plain_oful), seconds * 0.6)
    tight = alternate(contender, plain(tight_oful), seconds * 0.4)
    return result | {"tight": {name: tight[name] for name in ("ratio", "p10", "p90", "baseline")}}


def exact_stops(seconds: float) -> dict[str, Any]:
    """(b) the paper's grid, 360 lanes of 10,000 rounds, stopping where nothing can change."""
    problem = bl.problems.synthetic(seed=0)
    policies = bl.grid(
        bl.DSOFUL, Gamma=[0, 0.02, 0.05, 0.08, 0.13], beta=[1, 3, 10], lam=[1, 3, 10]
    )
    rounds, rng = 10_000, np.random.default_rng(1)
    per_policy: list[list[float]] = [[] for _ in policies]
    engine: list[float] = []
    end = time.perf_counter() + seconds
    at = 0
    while time.perf_counter() < end or at < len(policies):
        if at % 9 == 0:
            start = clock()
            bl.simulate(problem, policies, rounds=rounds, trials=8, progress=False)
            engine.append(clock() - start)
        p: Any = policies[at % len(policies)]
        noise = rng.standard_normal(rounds)
        start = clock()
        plain_oful(problem.X, problem.reward, noise, p.Gamma, p.beta, p.lam)
        per_policy[at % len(policies)].append(clock() - start)
        at += 1
    base = 8 * sum(float(np.median(times)) for times in per_policy)
    return summary(base / np.array(engine)) | {
        "contender": len(policies) * 8 * rounds / float(np.median(engine)),
        "baseline": len(policies) * 8 * rounds / base,
        "seconds": float(np.median(engine)),
        "slices": len(engine),
        "note": "baseline: one lane of each policy measured, times 8 trials",
    }


def lsw_by_counts(seconds: float) -> dict[str, Any]:
    """(c) LSW, 10,000 rounds: counts against the sum over history, in decisions per second."""
    problem = bl.problems.synthetic(seed=0)
    X, rounds, rng = problem.X, 10_000, np.random.default_rng(2)
    H = X[rng.integers(len(X), size=rounds)]
    lengths = np.arange(500, rounds, 1000)  # the middle of each tenth of the run
    models = {}
    for k in lengths:
        V = np.linalg.inv(np.eye(16) + H[:k].T @ H[:k])
        models[int(k)] = (V, V @ H[:k].T @ rng.standard_normal(k))

    def contender() -> float:
        bl.simulate(problem, bl.LSW(3, 1, 0.02), rounds=rounds, trials=8, progress=False)
        return 8.0 * rounds

    def baseline() -> float:
        for k, (V, theta) in models.items():
            for _ in range(3):
                lsw_by_history(X, V, theta, H[:k], 3.0, 0.02)
        return 3.0 * len(models)

    found = alternate(contender, baseline, seconds, least=4)
    start = clock()
    V = models[500][0]
    terms = 0
    while clock() - start < 0.5:  # the printed formula, term by term
        for past in H[:100]:
            abs(X[0] @ V @ past)
            terms += 1
    per_term = (clock() - start) / terms
    printed = per_term * len(X) * rounds * (rounds - 1) / 2
    return found | {
        "seconds": rounds / found["contender"],
        "history_seconds": rounds / found["baseline"],
        "printed_seconds_extrapolated": printed,
        "note": "a lane's 10,000 rounds; baseline sampled at ten lengths of history",
    }


ROWS = [
    Row("a", "d=16, N=100, 360 lanes of OFUL, no early stops", "lane-rounds", 10.0, many_lanes),
    Row(
        "b",
        "paper's grid: 45 policies × 8 trials × 10,000 rounds",
        "lane-rounds",
        25.0,
        exact_stops,
    ),
    Row("c", "LSW by counts, 10,000 rounds", "lane-rounds", 15.0, lsw_by_counts),
]
