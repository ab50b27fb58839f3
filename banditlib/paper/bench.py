"""``banditlib bench``: how fast the engine is, beside plain loops, on this machine.

Contender and baseline alternate in short slices on one thread, timed in seconds of the processor.
Each row gives the median ratio of neighbouring slices with its 10th and 90th percentile.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import banditlib as bl
from banditlib.ridge import TAU

Work = Callable[[], float]
"""Does one slice of work and returns how many units of it were done."""

RESULT = "data/results/bench.json"

clock = time.process_time
"""Seconds are seconds of the processor: on one thread of a free machine the same as by the wall."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    key : letter of the row
    title : what is measured
    unit : of what the rates count, per second
    target : least ratio asked for
    measure : ``measure(seconds) -> dict`` with at least ratio, p10, p90 (see :func:`alternate`)
    """

    key: str
    title: str
    unit: str
    target: float
    measure: Callable[[float], dict[str, Any]]


def rate(work: Work) -> float:
    """Units per second of one slice."""
    start = clock()
    units = work()
    return units / (clock() - start)


def alternate(contender: Work, baseline: Work, seconds: float, least: int = 5) -> dict[str, Any]:
    """Alternate slices for about ``seconds``: rates, and the ratio of neighbours."""
    contender(), baseline()  # warm up
    pairs: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    while len(pairs) < least or time.perf_counter() < end:
        pairs.append((rate(contender), rate(baseline)))
    fast, slow = np.array(pairs).T
    return summary(fast / slow) | {
        "contender": float(np.median(fast)),
        "baseline": float(np.median(slow)),
        "slices": len(pairs),
    }


def summary(ratios: np.ndarray) -> dict[str, Any]:
    """Median, 10th and 90th percentile."""
    p10, ratio, p90 = np.percentile(ratios, [10, 50, 90])
    return {"ratio": float(ratio), "p10": float(p10), "p90": float(p90)}


# ---- plain loops


def plain_oful(
    X: np.ndarray, r: np.ndarray, noise: np.ndarray, Gamma: float, beta: float, lam: float
) -> list[int]:
    """The baseline: Sherman-Morrison for U⁻¹, means and widths of all arms from it, one lane."""
    d = X.shape[1]
    V, b = np.eye(d) / lam, np.zeros(d)
    theta = b
    arms = []
    for eps in noise:
        width = np.sqrt(((X @ V) * X).sum(axis=1))
        score = X @ theta + beta * width
        best = score.max()
        a = int((score >= best - TAU * (1 + abs(best))).argmax())
        arms.append(a)
        if width[a] >= Gamma * (1 - TAU):
            u = V @ X[a]
            V -= np.outer(u, u) / (1 + X[a] @ u)
            b = b + (r[a] + eps) * X[a]
            theta = V @ b
    return arms


def tight_oful(
    X: np.ndarray, r: np.ndarray, noise: np.ndarray, Gamma: float, beta: float, lam: float
) -> list[int]:
    """A one-lane loop with the engine's own recursion: means and widths of arms are kept."""
    V, mean, var = np.eye(X.shape[1]) / lam, np.zeros(len(X)), (X * X).sum(axis=1) / lam
    arms = []
    for eps in noise:
        score = mean + beta * np.sqrt(var)
        best = score.max()
        a = int((score >= best - TAU * (1 + abs(best))).argmax())
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
    """One decision of LSW with the sum over all past rounds, vectorised."""
    width = np.sqrt(((X @ V) * X).sum(axis=1))
    bonus = np.abs(X @ V @ history.T).sum(axis=1)
    score = X @ theta + beta * width + eps * bonus
    best = score.max()
    return int((score >= best - TAU * (1 + abs(best))).argmax())


# ---- rows


def many_lanes(seconds: float) -> dict[str, Any]:
    """(a) 360 lanes of OFUL, no early stops."""
    problem = bl.problems.synthetic(seed=0)
    policies = bl.grid(bl.OFUL, beta=[1, 2, 3, 5, 10], lam=[1, 3, 10])
    rounds, rng = 500, np.random.default_rng(0)

    def contender() -> float:
        bl.simulate(problem, policies, rounds=rounds, trials=24, checkpoints=10, progress=False)
        return 360.0 * rounds

    def plain(loop: Callable[..., list[int]]) -> Work:
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


def all_rows() -> list[Row]:
    """Rows of fixed arms, then those of pools."""
    from banditlib.paper import bench_pool

    return [*ROWS, *bench_pool.ROWS]


# ---- how cost grows


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


# ---- other libraries


def libraries() -> list[dict[str, Any]]:
    """Decisions per second of OFUL-like policies elsewhere; absent ones say so."""
    rows = []
    for name, measure in LIBRARIES.items():
        if importlib.util.find_spec(name) is None:
            rows.append({"library": name, "installed": False})
            continue
        try:
            policy, per_second = measure()
            rows.append({"library": name, "installed": True, "policy": policy, "rate": per_second})
        except Exception as error:  # a library's own trouble is a row, not a crash
            rows.append({"library": name, "installed": True, "error": f"{error}"[:200]})
    return rows


def _ours() -> tuple[str, float]:
    problem = bl.problems.synthetic(seed=0)

    def work() -> float:
        bl.simulate(problem, bl.OFUL(1, 1), rounds=300, trials=360, checkpoints=4, progress=False)
        return 360.0 * 300

    work()
    return "OFUL, 360 lanes", rate(work)


def _our_agent() -> tuple[str, float]:
    problem, agent = bl.problems.synthetic(seed=0), bl.OFUL(1, 1).start(16)

    def work() -> float:
        for _ in range(500):
            a = agent.choose(problem.X)
            agent.learn(float(problem.reward[a]))
        return 500.0

    return "OFUL, live agent", rate(work)


def _coba() -> tuple[str, float]:
    coba = importlib.import_module("coba")

    problem = bl.problems.synthetic(seed=0)
    learner = coba.LinUCBLearner(alpha=1, features=["a"])
    actions = [tuple(float(v) for v in x) for x in problem.X]

    def work() -> float:
        for _ in range(5):
            action, score = learner.predict(None, actions)[:2]
            learner.learn(None, action, float(problem.reward[actions.index(action)]), score)
        return 5.0

    work()
    return "LinUCBLearner", rate(work)


def _mabwiser() -> tuple[str, float]:
    mabwiser = importlib.import_module("mabwiser.mab")

    problem, rng = bl.problems.synthetic(seed=0), np.random.default_rng(0)
    arms = list(range(problem.arms))
    mab = mabwiser.MAB(arms, mabwiser.LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0))
    context = rng.standard_normal((1, problem.dim))
    first = rng.integers(problem.arms, size=200)
    contexts = rng.standard_normal((200, problem.dim))
    mab.fit(decisions=first, rewards=problem.reward[first], contexts=contexts)

    def work() -> float:
        for _ in range(20):
            a = mab.predict(context)
            mab.partial_fit([a], [float(problem.reward[a])], context)
        return 20.0

    return "LinUCB, one regression per arm (disjoint)", rate(work)


def _river() -> tuple[str, float]:
    bandit = importlib.import_module("river.bandit")

    problem = bl.problems.synthetic(seed=0)
    policy = bandit.LinUCBDisjoint(alpha=1.0, seed=0)
    context = {i: 1.0 / 4 for i in range(problem.dim)}
    arms = list(range(problem.arms))

    def work() -> float:
        for _ in range(3):
            a = policy.pull(arms, context=context)
            policy.update(a, context, float(problem.reward[a]))
        return 3.0

    work()
    return "LinUCBDisjoint, one regression per arm", rate(work)


def _vowpalwabbit() -> tuple[str, float]:
    vowpalwabbit = importlib.import_module("vowpalwabbit")

    problem = bl.problems.synthetic(seed=0)
    workspace = vowpalwabbit.Workspace("--cb_explore_adf --squarecb --quiet")
    lines = ["| " + " ".join(f"f{i}:{v:.6f}" for i, v in enumerate(x)) for x in problem.X]

    def work() -> float:
        for _ in range(50):
            chances = workspace.predict(lines)
            a = int(np.argmax(chances))
            seen = [f"0:{-problem.reward[a]:.6f}:{chances[a]:.6f} {line}" if i == a else line
                    for i, line in enumerate(lines)]  # fmt: skip
            workspace.learn(seen)
        return 50.0

    work()
    return "SquareCB on action features (a gradient step, not a ridge)", rate(work)


def _contextualbandits() -> tuple[str, float]:
    linreg = importlib.import_module("contextualbandits.linreg")

    problem, rng = bl.problems.synthetic(seed=0), np.random.default_rng(0)
    model = linreg.LinearRegression(lambda_=1.0, fit_intercept=False, method="sm", calc_inv=True)
    model.fit(problem.X, problem.reward)

    def work() -> float:
        for _ in range(200):
            score = model.predict_ucb(problem.X, alpha=1.0)
            a = int(np.argmax(score))
            model.partial_fit(problem.X[a : a + 1], problem.reward[a : a + 1] + rng.normal())
        return 200.0

    work()
    return "linreg.LinearRegression, predict_ucb and partial_fit", rate(work)


LIBRARIES: dict[str, Callable[[], tuple[str, float]]] = {
    "coba": _coba,
    "contextualbandits": _contextualbandits,
    "river": _river,
    "mabwiser": _mabwiser,
    "vowpalwabbit": _vowpalwabbit,
}


# ---- command


def machine() -> dict[str, Any]:
    """What this was measured on."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "threads": os.environ.get("OPENBLAS_NUM_THREADS", "library default"),
        "blas": f"{blas.get('name')} {blas.get('version')}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table, optionally write it as JSON."""
    parser = argparse.ArgumentParser(prog="banditlib bench", description=__doc__)
    parser.add_argument("--rows", default="", help="letters of the rows to measure (all)")
    parser.add_argument("--seconds", type=float, default=40.0, help="time per row")
    parser.add_argument("--no-scaling", action="store_true", help="leave out how cost grows")
    parser.add_argument("--no-libraries", action="store_true", help="leave out other libraries")
    parser.add_argument(
        "--out",
        type=Path,
        help=f"write JSON here, keeping rows not measured now (the book reads {RESULT})",
    )
    options = parser.parse_args(argv)
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        return _with_one_thread(sys.argv[1:] if argv is None else list(argv))
    found: dict[str, Any] = {"machine": machine(), "rows": {}}
    for row in all_rows():
        if options.rows and row.key not in options.rows:
            continue
        result = row.measure(options.seconds)
        found["rows"][row.key] = {
            "title": row.title,
            "unit": row.unit,
            "target": row.target,
        } | result
        print(
            f"({row.key}) {row.title:58s} {result['ratio']:6.1f}× "
            f"[{result['p10']:.1f}, {result['p90']:.1f}]  asked {row.target:g}×",
            flush=True,
        )
    if not options.no_libraries:
        found["ours"] = [
            dict(zip(("policy", "rate"), f(), strict=True)) for f in (_ours, _our_agent)
        ]
        found["libraries"] = libraries()
        for entry in [*found["ours"], *found["libraries"]]:
            print(
                "   ",
                *(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in entry.items()),
            )
    if not options.no_scaling:
        found["scaling"] = scaling()
    if options.out:
        write(options.out, found)
        print(f"written to {options.out}")
    return 0


def write(path: Path, found: dict[str, Any]) -> None:
    """Write what was measured; what the file held and was not measured again stays."""
    old = json.loads(path.read_text()) if path.exists() else {"rows": {}}
    rows = {**old["rows"], **found["rows"]}
    merged = {**old, **found, "rows": {key: rows[key] for key in sorted(rows)}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(merged, indent=1) + "\n")


def _with_one_thread(words: list[str]) -> int:
    """Start again with one BLAS thread: the number is read when numpy is imported."""
    import subprocess

    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    command = [
        sys.executable,
        "-c",
        "from banditlib.paper.bench import main; raise SystemExit(main())",
    ]
    return subprocess.call([*command, *words], env={**os.environ, **dict.fromkeys(names, "1")})


if __name__ == "__main__":
    raise SystemExit(main())
