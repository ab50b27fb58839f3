"""Elapsed time of every row of Table 1: a plain loop, one run at a time, beside the engine.

The loops are those of :mod:`banditlib.reference`: they follow the pseudocode, invert :math:`U` anew
whenever something was learnt, and share no code with the engine.
``python -m banditlib.paper.bench.plain_loops`` times them in alternation.
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

import banditlib as bl
from banditlib import reference
from banditlib.files import write_whole
from banditlib.paper.experiments.synthetic import cells as synthetic
from banditlib.paper.provenance import record
from banditlib.paper.published import enroll
from banditlib.paper.run import one_thread

Floats = NDArray[Any]


def trajectory(policy: dict[str, Any], problem: Any, noise: Floats) -> list[int]:
    """The arms that the plain loop of `policy` plays, one for each value of `noise` (rounds,)."""

    def reward(k: int, a: int) -> float:
        return problem.reward[a] + noise[k - 1]

    rounds = len(noise)
    ready = synthetic.policy_of(policy)
    return reference.follow(ready, [problem.X] * rounds, reward, rounds)[0].tolist()


def lsw_history(X: Floats, V: Floats, history: Floats) -> Floats:
    """LSW's bonus (N,) as printed: arm by arm, a loop over every past round.

    X (N, d) are the arms, V (d, d) is U⁻¹, history (k, d) what was played so far.
    """
    out = np.zeros(len(X))
    for i, x in enumerate(X):
        Vx = V @ x
        for past in history:
            out[i] += abs(Vx @ past)
    return out


def timed_policies() -> dict[str, dict[str, Any]]:
    """One policy per row: (β, λ) = (3, 1), SupLinUCB (1, 1)."""
    rows = [row for row in synthetic.ROWS if row != "sup-theorem"]
    return {
        row: synthetic.grid(row, betas=(1.0 if row == "sup" else 3.0,), lams=(1.0,))[0]
        for row in rows
    }


def measure(repeats: int = 5, rounds: int = 10_000) -> dict[str, Any]:
    """CPU seconds of every row, plain loop and engine, rows alternating; with provenance."""
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
        "provenance": record(time.perf_counter() - begin),
    }


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return round(time.process_time() - start, 4)


def _engine_seconds(problem: Any, policy: dict[str, Any], rounds: int) -> float:
    """CPU seconds per run of the engine on 72 runs together."""
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

    with one_thread():
        text = json.dumps(measure(options.repeats), indent=1).encode()
    write_whole(options.out, text)
    enroll(options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
