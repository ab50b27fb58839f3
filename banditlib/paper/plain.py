"""Every row of Table 1 as a plain loop, one run at a time: to be timed, and to check the engine.

Each loop follows the pseudocode: it inverts :math:`U` anew whenever something was learnt, scores
all arms in every
round, and shares no code with the engine.  ``python -m banditlib.paper.plain`` times them in
alternation.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]
TAU = 1e-9


def first_best(score: Floats) -> int:
    """Lowest index within the tolerance of the best."""
    best = score.max()
    return int(np.argmax(score >= best - TAU * (1 + abs(best))))


class Regression:
    """U, its inverse and θ of one set of learnt rounds, on arms X (N, d)."""

    V: Floats
    theta: Floats

    def __init__(self, X: Floats, lam: float) -> None:
        self.X, self.U, self.b = X, lam * np.eye(X.shape[1]), np.zeros(X.shape[1])
        self.V, self.theta = np.eye(X.shape[1]) / lam, self.b

    def learn(self, a: int, r: float) -> None:
        x = self.X[a]
        self.U += np.outer(x, x)
        self.b = self.b + r * x
        self.V = np.linalg.inv(self.U)
        self.theta = self.V @ self.b

    def mean(self) -> Floats:
        return self.X @ self.theta

    def width(self) -> Floats:
        return np.sqrt(np.sum((self.X @ self.V) * self.X, axis=1))


def ds_oful(
    X: Floats, r: Floats, noise: Floats, Gamma: float, beta: float, lam: float
) -> list[int]:
    """Algorithm 1; Γ = 0 is OFUL."""
    fit, arms = Regression(X, lam), []
    for eps in noise:
        width = fit.width()
        a = first_best(fit.mean() + beta * width)
        if width[a] >= Gamma * (1 - TAU):
            fit.learn(a, r[a] + eps)
        arms.append(a)
    return arms


def lsw(X: Floats, r: Floats, noise: Floats, beta: float, lam: float, eps: float) -> list[int]:
    """Equation (6) of Lattimore et al.; the sum over past rounds, grouped by arm."""
    fit, plays, arms = Regression(X, lam), np.zeros(len(X)), []
    for e in noise:
        bonus = np.abs(X @ fit.V @ X.T) @ plays
        a = first_best(fit.mean() + beta * fit.width() + eps * bonus)
        fit.learn(a, r[a] + e)
        plays[a] += 1
        arms.append(a)
    return arms


def lsw_history(X: Floats, V: Floats, history: Floats) -> Floats:
    """The same bonus as printed: arm by arm, a loop over every past round."""
    out = np.zeros(len(X))
    for i, x in enumerate(X):
        Vx = V @ x
        for past in history:
            out[i] += abs(Vx @ past)
    return out


def rlb(
    X: Floats, r: Floats, noise: Floats, beta: float, lam: float,
    pulls: int, alpha: float, delta: float, sigma: float, eps: float,
) -> list[int]:  # fmt: skip
    """A linearity test on the first d + 1 arms, then OFUL or UCB (our reading)."""
    N, d = X.shape
    fit, plays, sums, arms = Regression(X, lam), np.zeros(N), np.zeros(N), []
    ucb = False
    for k, e in enumerate(noise, 1):
        if k <= pulls * (d + 1):
            a = (k - 1) % (d + 1)
        elif ucb:
            with np.errstate(divide="ignore", invalid="ignore"):
                index = sums / plays + np.sqrt(alpha * np.log(k) / plays)
            a = int(np.argmax(plays == 0)) if (plays == 0).any() else first_best(index)
        else:
            a = first_best(fit.mean() + beta * fit.width())
        fit.learn(a, r[a] + e)
        plays[a] += 1
        sums[a] += r[a] + e
        arms.append(a)
        if k == pulls * (d + 1):
            w = np.linalg.solve(X[:d].T, X[d])
            gap = abs(sums[d] - w @ sums[:d]) / pulls
            room = sigma * np.sqrt(2 * np.log(2 / delta) * (1 + w @ w) / pulls)
            ucb = gap > eps * (1 + np.abs(w).sum()) + room
    return arms


def sup_lin_ucb(X: Floats, r: Floats, noise: Floats, beta: float, lam: float) -> list[int]:
    """Algorithm 2 with a constant β."""
    d = X.shape[1]
    fits: dict[int, Regression] = {}
    arms = []
    for k, e in enumerate(noise, 1):
        alive, level = np.arange(len(X)), 1
        while True:
            fit = fits.setdefault(level, Regression(X, lam))
            width = fit.width()[alive]
            index = fit.mean()[alive] + beta * width
            if width.max() >= 2.0**-level * (1 - TAU):
                a = int(alive[first_best(width)])
                fit.learn(a, r[a] + e)
                break
            if k <= 4**level * d:
                a = int(alive[first_best(index)])
                break
            alive = alive[index.max() - index <= 2 * beta * 2.0**-level * (1 + TAU)]
            level += 1
        arms.append(a)
    return arms


LOOPS: dict[str, Callable[..., list[int]]] = {
    "DSOFUL": ds_oful,
    "LSW": lsw,
    "RobustLinear": rlb,
    "SupLinUCB": sup_lin_ucb,
}


def trajectory(policy: dict[str, Any], problem: Any, noise: Floats) -> list[int]:
    """The arms that the plain loop of `policy` plays."""
    given = {k: v for k, v in policy.items() if k != "name"}
    return LOOPS[policy["name"]](problem.X, problem.reward, noise, **given)


# --- timing -------------------------------------------------------------------------------------


def timed_policies() -> dict[str, dict[str, Any]]:
    """One policy per row: (β, λ) = (3, 1), SupLinUCB (1, 1)."""
    from banditlib.paper import synthetic

    rows = [row for row in synthetic.ROWS if row != "sup-theorem"]
    return {
        row: synthetic.grid(row, betas=(1.0 if row == "sup" else 3.0,), lams=(1.0,))[0]
        for row in rows
    }


def measure(repeats: int = 5, rounds: int = 10_000) -> dict[str, Any]:
    """CPU seconds of every row, plain loop and engine, rows alternating; with provenance."""
    import banditlib as bl
    from banditlib.paper import results, synthetic

    problem = synthetic.problem_of(synthetic.PROBLEMS["gap"], 0)
    policies = timed_policies()
    loop: dict[str, list[float]] = {row: [] for row in policies}
    engine: dict[str, list[float]] = {row: [] for row in policies}
    begin = time.perf_counter()
    for trial in range(repeats):
        noise = bl.problems.generator(synthetic.SEED, "noise", 0, trial).standard_normal(rounds)
        for row, policy in policies.items():
            loop[row].append(_seconds(partial(trajectory, policy, problem, noise)))
            engine[row].append(_engine_seconds(problem, policy, rounds))
    return {
        "rounds": rounds,
        "loop": loop,
        "engine": engine,
        "engine lanes": 72,
        "provenance": results.provenance(time.perf_counter() - begin),
    }


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return round(time.process_time() - start, 4)


def _engine_seconds(problem: Any, policy: dict[str, Any], rounds: int) -> float:
    """CPU seconds per run of the engine on 72 runs together."""
    import banditlib as bl
    from banditlib.paper import synthetic

    lanes = 72 if policy["name"] != "LSW" else 8
    ready = synthetic.policy_of(policy)
    taken = _seconds(
        lambda: bl.simulate(problem, ready, rounds, lanes, checkpoints=10, progress=False)
    )
    return round(taken / lanes, 5)


def main(argv: list[str] | None = None) -> int:
    """Time every row and write the result."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True, help="file to write, .json")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(argv)
    from banditlib.paper import results
    from banditlib.paper.run import one_thread

    with one_thread():
        text = json.dumps(measure(options.repeats), indent=1).encode()
    results.write_whole(options.out, lambda file: file.write(text))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
