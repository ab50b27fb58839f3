r"""What is claimed for each policy that the guide adds, on a problem of the claim's own kind.

A *cell* is one policy on one problem at one level (budget C, misspecification ε, dimension d or
share of the admissible ζ), with one number of arms: the regret of all runs at several rounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import banditlib as bl
from banditlib import theory
from banditlib.engines import engine_number
from banditlib.paper.experiments.base import Rendered, cell_config
from banditlib.paper.render import records_csv
from banditlib.paper.store import Arrays, Cell, Config, Packed
from banditlib.problems import generator

UNIT = 1000
"""Regret is stored in thousandths, as integers."""

SEED, RUNS, LAM = 2027, 8, 1.0
KINDS = {"corruption": "contexts", "many arms": "arms", "needle": "arms", "sampling": "contexts",
         "levels": "contexts"}  # fmt: skip
"""The problems, and what kind each is."""

ROUNDS = {"corruption": 4000, "many arms": 1 << 15, "needle": 1 << 15, "sampling": 2000,
          "levels": 1 << 13}  # fmt: skip
BUDGETS = (0, 5, 10, 20, 40)
ARMS, MIDDLE = (16, 256, 4096), 64
ERRORS = (0.0, 0.05, 0.1, 0.2)
DIMS = (2, 4, 8)
SHARES = (0.0, 0.5, 1.0)

CLASSES = {
    "weighted OFUL": "WeightedOFUL", "weighted OFUL, not told C": "WeightedOFUL",
    "OFUL": "DSOFUL", "OFUL, told C": "DSOFUL", "OFUL, β = 4σ": "DSOFUL",
    "phased elimination": "PhasedElimination", "UCB": "UCB", "Thompson": "LinearTS",
    "Thompson, v = σ": "LinearTS",
    "layered DS-OFUL": "LayeredDSOFUL", "SupLinUCB": "SupLinUCB", "certified LinUCB": "CertLinUCB",
}  # fmt: skip

TEXT = """\
**Corruption** (weighted OFUL; He, Zhou, Zhang and Gu). 8 unit vectors in d = 4, gap between 0.19
and 0.21, σ = 0.1, a new instance in each run. Whenever the best arm is played, an adversary takes 1
from its reward, until it has spent C = 0, 5, 10, 20, 40; regret is counted in true rewards. 4,000
rounds. OFUL: β = 1 + 4σ, which is at least √λ‖θ*‖ plus what the noise asks for; told C: β + C.
Weighted OFUL, told C: α = β/C, but at most 1, and 2β for the radius, which is β + αC; not told: the
same with √K in the place of C. Beside them, at C = 0, OFUL with β = 4σ.

**Many arms** (phased elimination; Lattimore, Szepesvári and Weisz). k unit vectors in d = 8,
rewards linear up to errors of ±ε at random, σ = 0.25, no gap asked for; four instances, two runs on
each. n = 32,768 rounds, δ = 1/(kn). At ε = 0: k = 16, 256, 4,096, with UCB (α = σ²/2) as a rival.
At k = 64: ε = 0, 0.05, 0.1, 0.2, with OFUL (β = 4σ) as a rival.

**Needle** (the same paper's lower bound). 256 nearly orthogonal unit vectors in d = 64, of which
one, another in each run, pays 1/2 and the rest nothing; σ = 0.25. Phased elimination and UCB as
above.

**Sampling** (linear Thompson sampling; Agrawal and Goyal). 10 fresh unit vectors in each round,
d = 2, 4, 8, σ = 0.1, 2,000 rounds, with v = σ√(9d log(K/δ)), δ = 0.1, as in their theorem, and with
v = σ.

**Levels** (layered DS-OFUL; our theorem). 512 sets of 5 vectors in d = 2, which come round and
round and pay 0.1 + ζ or 0.6 - ζ each; σ = R = 0.05, 8,192 rounds; ζ is 0, 1/2 and 1 times the most
that the theorem admits at Δ = 1/2, δ = 0.05. Layered DS-OFUL with its theorem's radius 2β(l),
SupLinUCB with β(l), and certified LinUCB with β(l) for its γ (its theorem's γ would explore for
millions of rounds); OFUL with its own radius for so many rounds.

Everywhere λ = 1, and eight runs where nothing else is said.

**Seen before.** All but the last problem was run once by an earlier form of this protocol, and of
the last one two cells, with twice as many rounds; their results were seen. There OFUL under
corruption had β = 4σ, and so did the others, up to what C asks for; as that is less than √λ‖θ*‖,
which is 1, it lost runs where nothing was corrupted, and one could not tell what did the harm. And
there were 64 and 1,024 arms in the place of 4,096, and UCB was ahead of phased elimination
throughout.
"""
"""The protocol of these runs in words, fixed before them; the chapter quotes it."""


def cell(policy: str, problem: str, level: float, arms: int, small: bool = False) -> Config:
    """The configuration of one cell."""
    rounds = 64 if small else ROUNDS[problem]
    return cell_config(
        "guide", engine_number(CLASSES[policy], KINDS[problem]), policy=policy, problem=problem,
        ratio=level, arms=arms, rounds=rounds, runs=2 if small else RUNS, seed=SEED,
    )  # fmt: skip


def cells(scale: str) -> list[Config]:
    """All cells, problem by problem."""
    told = ("weighted OFUL", "weighted OFUL, not told C", "OFUL", "OFUL, told C")
    found = [(p, "corruption", float(C), 8) for C in BUDGETS for p in told]
    found += [("OFUL, β = 4σ", "corruption", 0.0, 8)]
    found += [(p, "many arms", 0.0, k) for k in ARMS for p in ("phased elimination", "UCB")]
    planned = ("phased elimination", "OFUL")
    found += [(p, "many arms", e, MIDDLE) for e in ERRORS for p in planned]
    found += [(p, "needle", 0.5, 256) for p in ("phased elimination", "UCB")]
    found += [(p, "sampling", float(d), 10) for d in DIMS for p in ("Thompson", "Thompson, v = σ")]
    levels = ("layered DS-OFUL", "SupLinUCB", "certified LinUCB", "OFUL")
    found += [(p, "levels", share, 5) for share in SHARES for p in levels]
    return [cell(*place, small=scale == "smoke") for place in found]


def marks(rounds: int) -> list[int]:
    """Where regret is looked at: a sixteenth, an eighth, a quarter, a half, the end."""
    return [rounds // 16, rounds // 8, rounds // 4, rounds // 2, rounds]


def run_one(config: Config, backend: str) -> Arrays:
    """Regret in thousandths (runs, marks)."""
    regret = _PLAY[config["problem"]](config, backend)
    return {"regret": np.rint(UNIT * regret).astype(np.int64)}


def regret(found: Cell | Packed) -> np.ndarray:
    """Regret (runs, marks) of a cell."""
    return np.asarray(found.arrays["regret"] / UNIT)


def rows(found: Sequence[Cell | Packed]) -> list[dict[str, Any]]:
    """One row for each cell and mark."""
    out = []
    for c in found:
        for k, at in zip(marks(c.config["rounds"]), regret(c).T, strict=True):
            error = float(at.std(ddof=1) / math.sqrt(len(at)))
            out.append({
                "problem": c.config["problem"], "policy": c.config["policy"],
                "level": c.config["ratio"], "arms": c.config["arms"], "round": k,
                "runs": len(at), "regret": float(at.mean()), "error": error,
            })  # fmt: skip
    return out


def render(done: Sequence[Cell], scale: str) -> Rendered:
    """The rows as CSV."""
    return {".csv": records_csv(rows(done))}


# --- the problems ---------------------------------------------------------------------------------


def _simulated(problems: Any, policy: bl.Policy, config: Config, backend: str) -> np.ndarray:
    """Regret (runs, marks) of an ordinary run; the runs are shared out among the problems."""
    run = bl.simulate(
        problems, policy, rounds=config["rounds"], trials=config["runs"] // len(problems),
        seed=config["seed"], checkpoints=marks(config["rounds"]), backend=backend, progress=False,
    )  # fmt: skip
    return run.regret[:, 0].reshape(config["runs"], -1)


def against_corruption(policy: str, C: float, rounds: int, sigma: float) -> bl.Policy:
    """The contenders under corruption, as the protocol says."""
    beta = 4 * sigma if policy == "OFUL, β = 4σ" else 1 + 4 * sigma
    if policy.startswith("OFUL"):
        return bl.OFUL(beta + C if policy == "OFUL, told C" else beta, LAM)
    budget = math.sqrt(rounds) if "not told" in policy else C
    alpha = min(1.0, beta / budget) if budget else 1.0
    return bl.WeightedOFUL(alpha, beta + alpha * budget, LAM)


def corrupted(
    policy: bl.Policy, problem: bl.problems.FixedArms, C: float, noise: np.ndarray
) -> np.ndarray:
    """Arms (rounds,) that are played while an adversary spoils the best one, until C is spent."""
    agent, arms, left = policy.start(problem.dim), np.zeros(len(noise), dtype=np.int64), C
    for k, disturbance in enumerate(noise):
        arms[k] = arm = agent.choose(problem.X)
        taken = min(1.0, left) if arm == problem.best else 0.0
        left -= taken
        agent.learn(float(problem.reward[arm] + disturbance - taken))
    return arms


def _corruption(config: Config, backend: str) -> np.ndarray:
    sigma, dim, C, rounds = 0.1, 4, config["ratio"], config["rounds"]
    policy, found = against_corruption(config["policy"], C, rounds, sigma), []
    for i in range(config["runs"]):
        problem = bl.problems.synthetic(
            seed=config["seed"], dim=dim, arms=config["arms"], zeta=0.0, gap=(0.19, 0.21),
            sigma=sigma, instance=i,
        )  # fmt: skip
        draws = np.asarray(generator(config["seed"], "noise", i).standard_normal(rounds))
        lost = problem.gaps[corrupted(policy, problem, C, sigma * draws)].cumsum()
        found.append(lost[np.array(marks(rounds)) - 1])
    return np.array(found)


def _planner(config: Config, sigma: float) -> bl.Policy:
    """Phased elimination as its theorem wants it, or a rival."""
    if config["policy"] == "phased elimination":
        return bl.PhasedElimination(1 / (config["arms"] * config["rounds"]), sigma)
    return bl.UCB(sigma**2 / 2) if config["policy"] == "UCB" else bl.OFUL(4 * sigma, LAM)


def _many_arms(config: Config, backend: str) -> np.ndarray:
    sigma = 0.25
    problems = [
        bl.problems.synthetic(
            seed=config["seed"], dim=8, arms=config["arms"], zeta=config["ratio"], gap=None,
            sigma=sigma, instance=i,
        )
        for i in range(config["runs"] // 2)
    ]  # fmt: skip
    return _simulated(problems, _planner(config, sigma), config, backend)


def needles(config: Config) -> list[bl.problems.FixedArms]:
    """One arm among many pays, another one in each run."""
    X = bl.problems.nearly_orthogonal(64, config["arms"], seed=config["seed"])
    which = generator(config["seed"], "instance").permutation(config["arms"])
    found = []
    for i, arm in enumerate(which[: config["runs"]].tolist()):
        one = bl.problems.lower_bound(Delta=config["ratio"], i=arm, j=None, X=X)
        found.append(bl.problems.FixedArms(X, one.reward, sigma=0.25, theta=one.theta, instance=i))
    return found


def _needle(config: Config, backend: str) -> np.ndarray:
    return _simulated(needles(config), _planner(config, 0.25), config, backend)


def _sampling(config: Config, backend: str) -> np.ndarray:
    sigma, dim, delta = 0.1, int(config["ratio"]), 0.1
    theirs = sigma * math.sqrt(9 * dim * math.log(config["rounds"] / delta))
    policy = bl.LinearTS(theirs if config["policy"] == "Thompson" else sigma, LAM)
    problem = bl.problems.unit_vectors(dim, config["arms"], sigma=sigma, seed=config["seed"])
    return _simulated([problem], policy, config, backend)


@functools.cache
def constants(share: float) -> theory.Layered:
    """Constants of our theorem for the problem of levels, at a share of the admissible ζ."""
    limit = theory.layered(2, 0.5, 0.0, 0.05, delta=0.05)
    assert limit.l_Delta is not None
    zeta = share * limit.zeta_max(limit.l_Delta)
    return theory.layered(2, 0.5 - 2 * zeta, zeta, 0.05, delta=0.05)


def two_prices(zeta: float, sets: int, arms: int, seed: int) -> bl.problems.Contextual:
    """Sets of arms in the plane that pay 0.1 or 0.6, with an error of ζ up or down."""
    rng = generator(seed, "instance")
    dear = rng.integers(0, 2, (sets, arms))
    along = 0.1 + 0.5 * dear
    across = np.sqrt(1 - along**2) * rng.uniform(-1, 1, (sets, arms))
    error = np.where(dear == 1, -zeta, zeta)
    X = np.stack([along, across], axis=-1)
    return bl.problems.Contextual(X, along + error, theta=[1.0, 0.0], sigma=0.05)


def _levels(config: Config, backend: str) -> np.ndarray:
    found = constants(config["ratio"])

    def beta(l: int) -> float:
        return float(found.radius(l))

    policy = {
        "layered DS-OFUL": bl.LayeredDSOFUL(lambda l: 2 * beta(l), LAM),
        "SupLinUCB": bl.SupLinUCB(beta, LAM),
        "certified LinUCB": bl.CertLinUCB(beta, LAM),
        "OFUL": bl.OFUL(float(theory.radius_tight(config["rounds"], 2, 0.05, delta=0.05)), LAM),
    }[config["policy"]]
    problem = two_prices(found.zeta, 512, config["arms"], config["seed"])
    return _simulated([problem], policy, config, backend)


_PLAY: dict[str, Callable[[Config, str], np.ndarray]] = {
    "corruption": _corruption, "many arms": _many_arms, "needle": _needle, "sampling": _sampling,
    "levels": _levels,
}  # fmt: skip
