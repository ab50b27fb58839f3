"""The Asirra task as data: a million rounds, one cell per (ζ, policy, run).

The curves of each figure are those that the paper draws; every policy is run on the whole (β, λ)
grid. The same curves are run on weaker features and another filter, those closest to the paper's
Table 2, on the same grid.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

import banditlib as bl
from banditlib.engines import engine_number
from banditlib.paper import features
from banditlib.paper.experiments import base
from banditlib.paper.experiments.asirra.policies import LOOPS, GrowingOFUL
from banditlib.paper.experiments.base import Family, NotAvailable
from banditlib.paper.store import Arrays, Config

SEED = 0
ROUNDS, RUNS = 1_000_000, 8
BETAS, LAMS = (0.1, 0.3, 1.0), (1.0, 3.0, 10.0)
#: Thresholds drawn, by figure and ζ; every panel has SupLinUCB too.
PANELS: dict[str, dict[float, tuple[float, ...]]] = {
    "figure-1b": {0.01: (0.0, 0.01, 0.05)},
    "figure-4": {0.5: (0.0, 0.05, 0.1), 0.1: (0.0, 0.05, 0.1), 0.05: (0.0, 0.05, 0.1)},
}
#: Features and filter closest to the paper's Table 2.
WEAK = ("tiny", "one-sided")
#: (β, λ) of least regret on the standard features, of all curves but one that nearly ties.
PICK = (0.1, 1.0)


def checkpoints(rounds: int) -> list[int]:
    """Sixty rounds, dense at the beginning, the last one `rounds`."""
    marks = np.unique(np.rint(np.geomspace(10, rounds, 40)).astype(int))
    even = np.arange(1, 21) * rounds // 20
    return [int(k) for k in np.union1d(marks, even)]


def policies(gammas: Sequence[float]) -> list[Config]:
    """The curves of one panel on the whole grid."""
    out: list[Config] = []
    for beta in BETAS:
        for lam in LAMS:
            out += [{"name": "DSOFUL", "Gamma": g, "beta": beta, "lam": lam} for g in gammas]
            out.append({"name": "SupLinUCB", "beta": beta, "lam": lam})
    return out


def cell(
    zeta: float,
    policy: Config,
    trial: int,
    rounds: int = ROUNDS,
    data: str = "standard",
    rule: str = "two-sided",
    sigma: float = 0.0,
) -> Config:
    """The configuration of one run; `sigma` is the reward noise (the paper has none)."""
    return base.cell_config(
        "asirra",
        engine=engine_number(policy["name"], "pool"),
        data=data,
        digest=features.digest(data),
        rule=rule,
        zeta=zeta,
        sigma=sigma,
        policy=policy,
        trials=[trial, trial + 1],
        rounds=rounds,
        checkpoints=checkpoints(rounds),
        seed=SEED,
    )


def weak_cells(scale: str) -> list[Config]:
    """The curves of all panels on the whole grid, on the features and the filter of WEAK.

    The grid point PICK comes first; at the smoke scale there is no other.
    """
    small = scale == "smoke"
    data, rule = ("digits", WEAK[1]) if small else WEAK
    found = [
        cell(zeta, policy, trial, 3000 if small else ROUNDS, data, rule)
        for trial in range(2 if small else RUNS)
        for panels in PANELS.values()
        for zeta, gammas in panels.items()
        for policy in policies(gammas)
    ]
    found.sort(key=lambda c: (c["policy"]["beta"], c["policy"]["lam"]) != PICK)
    return found[: len(found) // 9] if small else found


def panel_cells(name: str, scale: str) -> list[Config]:
    """Cells of one figure: first one run of every policy, then the other runs."""
    if scale == "smoke":
        return [
            cell(zeta, policy, trial, rounds=3000, data="digits")
            for zeta, gammas in PANELS[name].items()
            for policy in policies(gammas)
            if (policy["beta"], policy["lam"]) == (0.3, 1.0)
            for trial in range(2)
        ]
    return [
        cell(zeta, policy, trial)
        for trial in range(RUNS)
        for zeta, gammas in PANELS[name].items()
        for policy in policies(gammas)
    ]


# --- computing ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def pool(data: str, digest: str, rule: str, zeta: float, sigma: float) -> bl.problems.Pool:
    """The pool of a cell; `NotAvailable` where its features are not at hand."""
    try:
        found = features.pool(features.known(data, digest), zeta, rule)
    except features.FeaturesError as error:
        raise NotAvailable(f"{error}.") from None
    return bl.problems.Pool(found.good, found.bad, sigma=sigma, label=f"{data} {rule} {zeta:g}")


def pool_of(config: Config) -> bl.problems.Pool:
    return pool(*(config[k] for k in ("data", "digest", "rule", "zeta", "sigma")))


def policy_of(policy: Config) -> bl.Policy:
    parameters = {k: v for k, v in policy.items() if k != "name"}
    if policy["name"] == "GrowingOFUL":
        return GrowingOFUL(**parameters)
    return getattr(bl, policy["name"])(**parameters)


def run(configs: Sequence[Config], backend: str) -> list[Arrays]:
    """Compute cells one by one: right and wrong choices and learnt rounds at checkpoints."""
    return [_one(config, backend) for config in configs]


def _one(config: Config, backend: str) -> Arrays:
    problem = pool_of(config)
    if config["policy"]["name"] in LOOPS:
        return _by_loop(problem, config)
    result = bl.simulate(
        problem,
        policy_of(config["policy"]),
        rounds=config["rounds"],
        trials=range(*config["trials"]),
        seed=config["seed"],
        checkpoints=config["checkpoints"],
        backend=backend,
        progress=False,
    )
    return {
        "wrong": result.plays[0, 0, :, :, 1].astype(np.int32),  # = regret, since Δ = 1
        "learnt": result.learnt[0, 0].astype(np.int32),
        "first_skip": result.first_skip[0, 0].astype(np.int32),
    }


def _by_loop(problem: bl.problems.Pool, config: Config) -> Arrays:
    parameters = {k: v for k, v in config["policy"].items() if k != "name"}
    loop = LOOPS[config["policy"]["name"]]
    run = functools.partial(loop, problem, rounds=config["rounds"], seed=config["seed"])
    wrong = [run(trial=trial, **parameters) for trial in range(*config["trials"])]
    marks = np.array(config["checkpoints"])
    return {"wrong": np.cumsum(wrong, axis=1)[:, marks - 1].astype(np.int32)}


def seconds(config: Config) -> float:
    """Cost of a cell, roughly; the engine's shortcuts make it vary widely."""
    return 60.0 * config["rounds"] / ROUNDS


def label(config: Config) -> str:
    policy = ", ".join(f"{k}={v}" for k, v in config["policy"].items() if k != "name")
    where = f"ζ={config['zeta']:g} run {config['trials'][0]}"
    return f"{config['data']} {where}: {config['policy']['name']}({policy})"


FAMILY = Family(
    "asirra",
    run=run,
    seconds=seconds,
    part=lambda config: f"{config['data']}-{config['rule']}-{config['zeta']:g}",
    label=label,
    unavailable=base.lacks(pool_of),
    engine=lambda config: engine_number(config["policy"]["name"], "pool"),
    kinds=("pools",),
    also=(features.__name__, GrowingOFUL.__module__),
)
