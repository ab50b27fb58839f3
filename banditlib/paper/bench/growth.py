"""How the engine's cost grows with lanes, arms, dimension and rounds."""

from __future__ import annotations

import tracemalloc
from typing import Any

import banditlib as bl
from banditlib.paper.bench.measure import clock


def cost(arms: int, dim: int, lanes: int, rounds: int) -> dict[str, float]:
    """Microseconds per lane and round, and peak memory in MB, of OFUL on random arms."""
    problem = bl.problems.synthetic(seed=0, dim=dim, arms=arms, gap=None)
    kw: dict[str, Any] = {"trials": lanes, "checkpoints": 4, "progress": False}
    bl.simulate(problem, bl.OFUL(3, 1), rounds=min(rounds, 64), **kw)
    times = []
    for _ in range(3):
        start = clock()
        bl.simulate(problem, bl.OFUL(3, 1), rounds=rounds, **kw)
        times.append(clock() - start)
    seconds = min(times)
    tracemalloc.start()
    bl.simulate(problem, bl.OFUL(3, 1), rounds=min(rounds, 1200), **kw)  # then it repeats
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"us": 1e6 * seconds / lanes / rounds, "seconds": seconds, "mb": peak / 1e6}


def scaling() -> dict[str, list[dict[str, float]]]:
    """Cost against lanes, arms, dimension and rounds, the others held at the paper's sizes."""
    base = {"arms": 100, "dim": 16, "lanes": 128, "rounds": 200}
    grids = {
        "lanes": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
        "arms": [10, 30, 100, 300, 1000],
        "dim": [2, 4, 8, 16, 32, 64, 128],
        "rounds": [100, 300, 1000, 3000, 10_000],
    }
    found = {}
    for axis, values in grids.items():
        found[axis] = [{axis: v} | cost(**{**base, axis: v}) for v in values]
    found["memory"] = [
        {"lanes": v} | cost(arms=520, dim=512, lanes=v, rounds=2) for v in (16, 1152)
    ]
    return found
