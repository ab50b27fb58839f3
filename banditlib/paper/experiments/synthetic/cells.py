"""The paper's synthetic experiment (Table 1, Figure 1a) as data: which lanes, seeds and
checkpoints.

A cell is one policy on a block of instances × trials; the same instance and trial have the same
noise for every policy, so that differences between rows are paired.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import banditlib as bl
from banditlib.engines import engine_number
from banditlib.paper.experiments.base import Family, cell_config
from banditlib.paper.store import Arrays, Cell, Config, Packed, key

SEED = 0
DIM, ARMS, ZETA, ROUNDS, DELTA = 16, 100, 0.02, 10_000, 0.01
GAP = (0.175, 0.185)
GAMMAS = (0.0, 0.02, 0.05, 0.08, 0.13, 0.18)
BETAS = (1.0, 3.0, 10.0)
LAMS = (1.0, 3.0, 10.0)
RLB = {"pulls": 10, "alpha": 2.0, "delta": 0.05, "sigma": 1.0, "eps": 0.0}  # our reading of it
UNIT = 1e-4  # stored regrets are whole multiples of this
LAST = 1000

#: The open points of the description, as keyword arguments of `problems.synthetic`.
PROBLEMS: dict[str, dict[str, Any]] = {
    "gap": {"zeta": ZETA, "gap": list(GAP), "misspecification": "two-point"},
    "any gap": {"zeta": ZETA, "gap": None, "misspecification": "two-point"},
    "interval": {"zeta": ZETA, "gap": list(GAP), "misspecification": "interval"},
    "no misspecification": {"zeta": 0.0, "gap": list(GAP), "misspecification": "two-point"},
}

Block = tuple[tuple[int, int], tuple[int, int]]  # instances [low, high), trials [low, high)


# --- policies -------------------------------------------------------------------------------------


def ds_oful(Gamma: float, beta: float, lam: float) -> Config:
    return {"name": "DSOFUL", "Gamma": Gamma, "beta": beta, "lam": lam}


def grid(row: str, betas: Sequence[float] = BETAS, lams: Sequence[float] = LAMS) -> list[Config]:
    """The (β, λ) grid of one row of the table, as policy configurations.

    Rows are ``"ds 0.05"`` (Γ; ``"ds 0"`` is OFUL), ``"lsw"``, ``"rlb"``, ``"sup"`` (constant β) and
    ``"sup-theorem"``
    (the theorem's β(l), so only λ varies).
    """
    if row == "sup-theorem":
        return [{"name": "SupLinUCB", "beta": "theorem", "lam": lam} for lam in lams]
    pairs = [(beta, lam) for beta in betas for lam in lams]
    if row.startswith("ds "):
        return [ds_oful(float(row[3:]), beta, lam) for beta, lam in pairs]
    extra: dict[str, Any] = {"lsw": {"eps": ZETA}, "rlb": RLB, "sup": {}}[row]
    name = {"lsw": "LSW", "rlb": "RobustLinear", "sup": "SupLinUCB"}[row]
    return [{"name": name, "beta": beta, "lam": lam, **extra} for beta, lam in pairs]


DS_ROWS = tuple(f"ds {Gamma:g}" for Gamma in GAMMAS)
ROWS = (*DS_ROWS, "lsw", "rlb", "sup", "sup-theorem")


def policy_of(policy: Config) -> bl.Policy:
    """The policy that a configuration names."""
    given = {k: v for k, v in policy.items() if k != "name"}
    if given.get("beta") == "theorem":
        given["beta"] = bl.theory.SupBeta(d=DIM, R=1.0, L=1.0, B=1.0, delta=DELTA)
    return getattr(bl, policy["name"])(**given)


@functools.lru_cache(maxsize=512)
def _problem(
    zeta: float, gap: tuple[float, float] | None, misspecification: str, number: int
) -> Any:
    return bl.problems.synthetic(SEED, DIM, ARMS, zeta, gap, misspecification, instance=number)


def problem_of(problem: Config, number: int) -> Any:
    """Instance `number` of one kind of problem (the same every time)."""
    gap = None if problem["gap"] is None else (problem["gap"][0], problem["gap"][1])
    return _problem(problem["zeta"], gap, problem["misspecification"], number)


# --- cells ----------------------------------------------------------------------------------------


def cell(
    kind: str,
    policy: Config,
    block: Block,
    rounds: int = ROUNDS,
    checkpoints: Sequence[int] | None = None,
) -> Config:
    """The configuration of one policy on one block."""
    instances, trials = block
    return cell_config(
        "synthetic",
        engine=engine_number(policy["name"], "arms"),
        problem={"dim": DIM, "arms": ARMS, **PROBLEMS[kind]},
        policy=policy,
        instances=list(instances),
        trials=list(trials),
        rounds=rounds,
        checkpoints=list(checkpoints or range(200, rounds + 1, 200)),
        seed=SEED,
    )


def blocks(kind: str, rows: Sequence[str], where: Sequence[Block], **rest: Any) -> list[Config]:
    """All grid points of some rows on some blocks."""
    return [
        cell(kind, policy, block, **rest) for block in where for row in rows for policy in grid(row)
    ]


def one_instance(trials: int) -> list[Block]:
    """Eight trials at a time on instance 0."""
    return [((0, 1), (t, t + 8)) for t in range(0, trials, 8)]


def instance_by_instance(low: int, high: int) -> list[Block]:
    """Eight trials on each instance."""
    return [((i, i + 1), (0, 8)) for i in range(low, high)]


def eight_instances(instances: int) -> list[Block]:
    """One trial on each of eight instances at a time."""
    return [((i, i + 8), (0, 1)) for i in range(0, instances, 8)]


LONG_ROUNDS = 200_000
LONG_MARKS = (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 150_000, 199_000, 200_000)
LONG_POLICIES = {
    "ds 0": ds_oful(0.0, 3.0, 1.0),
    "ds 0.02": ds_oful(0.02, 3.0, 1.0),
    "ds 0.05": ds_oful(0.05, 3.0, 1.0),
    "ds 0.08": ds_oful(0.08, 3.0, 1.0),
    "sup": {"name": "SupLinUCB", "beta": 1.0, "lam": 1.0},
    "lsw": {"name": "LSW", "beta": 3.0, "lam": 1.0, "eps": ZETA},
}


def long_cells() -> list[Config]:
    """The long runs: 32 instances of gap 0.18, two trials each (LSW: 16 instances, one trial)."""
    out = []
    for i in range(0, 32, 4):
        for row, policy in LONG_POLICIES.items():
            block = ((i, i + 4), (0, 1 if row == "lsw" else 2))
            if row == "lsw" and i >= 16:
                continue
            out.append(cell("gap", policy, block, rounds=LONG_ROUNDS, checkpoints=LONG_MARKS))
    return out


def smoke_cells() -> list[Config]:
    """Every row at (β, λ) = (1, 1) and (3, 1), 2,000 rounds, eight trials on instance 0."""
    policies = [p for row in ROWS for p in grid(row, betas=(1.0, 3.0), lams=(1.0,))]
    return [cell("gap", policy, ((0, 1), (0, 8)), rounds=2000) for policy in policies]


def paper_cells() -> list[Config]:
    """The paper's own size: three readings of "8 trials", and interval misspecification."""
    return [
        *blocks("gap", ROWS, one_instance(8)),
        *blocks("gap", ROWS, eight_instances(8)),
        *blocks("any gap", ROWS, eight_instances(8)),
        *blocks("interval", ROWS, eight_instances(8)),
    ]


def full_cells() -> list[Config]:
    """The size that settles it, the most wanted first; LSW, the most expensive row, last."""
    wanted = blocks("gap", ROWS, one_instance(200))
    wanted += blocks("gap", ROWS, instance_by_instance(1, 64))
    for kind in ("no misspecification", "any gap", "interval"):
        wanted += blocks(kind, ROWS, eight_instances(200))
    wanted += long_cells()
    wanted.sort(key=lambda c: c["policy"]["name"] == "LSW")
    wanted = paper_cells() + wanted
    return list({key(config): config for config in wanted}.values())


def cells(scale: str) -> list[Config]:
    """The cells of Table 1 and Figure 1a at each scale."""
    return {"smoke": smoke_cells, "paper": paper_cells, "full": full_cells}[scale]()


# --- computing ------------------------------------------------------------------------------------


def run(configs: Sequence[Config], backend: str) -> list[Arrays]:
    """Compute cells that share problem and rounds: their policies on their instances and trials."""
    first = configs[0]
    policies = _unique(config["policy"] for config in configs)
    instances = _unique(i for config in configs for i in range(*config["instances"]))
    trials = _unique(t for config in configs for t in range(*config["trials"]))
    result = bl.simulate(
        [problem_of(first["problem"], i) for i in instances],
        [policy_of(policy) for policy in policies],
        rounds=first["rounds"],
        trials=trials,
        seed=first["seed"],
        checkpoints=first["checkpoints"],
        backend=backend,
        progress=False,
    )
    return [
        _arrays(
            result,
            policies.index(config["policy"]),
            [instances.index(i) for i in range(*config["instances"])],
            [trials.index(t) for t in range(*config["trials"])],
        )
        for config in configs
    ]


def _unique(items: Iterable[Any]) -> list[Any]:
    out: list[Any] = []
    for item in items:
        if item not in out:
            out.append(item)
    return out


def _arrays(result: bl.Run, q: int, instances: list[int], trials: list[int]) -> Arrays:
    """Integers of one policy: plays between checkpoints (I, T, C, N), learnt rounds, stops."""
    levels = result.policies[q].levels(DIM, result.rounds)

    def block(array: NDArray[Any]) -> NDArray[Any]:
        return array[instances][:, q][:, trials]

    return {
        "plays": np.diff(block(result.plays), axis=2, prepend=0).astype(np.int32),
        "learnt": block(result.learnt)[..., :levels].astype(np.int32),
        "first_skip": block(result.first_skip).astype(np.int32),
        "final_arm": block(result.final_arm).astype(np.int16),
    }


LANES = 256


def batches(configs: list[Config]) -> list[list[Config]]:
    """Groups of cells that are computed together: full products of policies and blocks, up to
    256 lanes.

    LSW keeps a covariance of all arms per lane and gains nothing from company, so its groups
    stay small.
    """
    blocks_: dict[str, list[Config]] = {}
    for config in configs:
        alike = {k: v for k, v in config.items() if k != "policy"}
        blocks_.setdefault(config["policy"]["name"] + key(alike), []).append(config)
    groups: dict[str, list[list[Config]]] = {}
    for members in blocks_.values():
        groups.setdefault(_company(members), []).append(members)
    out = []
    for alike_blocks in groups.values():
        lanes = LANES if alike_blocks[0][0]["rounds"] <= ROUNDS else LANES // 4
        size = max(1, lanes // (8 * len(alike_blocks[0])))
        for i in range(0, len(alike_blocks), size):
            out.append([config for members in alike_blocks[i : i + size] for config in members])
    order = {key(config): place for place, config in enumerate(configs)}
    return sorted(out, key=lambda batch: order[key(batch[0])])


def _company(members: list[Config]) -> str:
    """Blocks of equal text go into one call: alike in all but instances, or all but trials."""
    first = members[0]
    if first["policy"]["name"] == "LSW":
        return key(first)
    free = "trials" if first["instances"] == [0, 1] else "instances"
    rest = {k: v for k, v in first.items() if k not in ("policy", free)}
    return key({**rest, "policies": [config["policy"] for config in members]})


def seconds(config: Config) -> float:
    """CPU time of a cell, roughly, measured on one core of the machine named in data/README.md."""
    policy, rounds = config["policy"], config["rounds"]
    lanes = np.prod([high - low for low, high in (config["instances"], config["trials"])])
    name = policy["name"]
    each = {"DSOFUL": 2e-6, "LSW": 21e-6, "RobustLinear": 3.4e-6, "SupLinUCB": 6.6e-6}[name]
    if policy.get("Gamma", 0) > 0:  # ends with the first skip
        rounds = min(rounds, 2.0 / policy["Gamma"] ** 2)
    return float(each * lanes * rounds)


# --- what the book keeps --------------------------------------------------------------------------


def regret(arrays: Arrays, config: Config) -> NDArray[np.float64]:
    """Cumulative regret (I, T, C) from plays, arm by arm in order of index."""
    plays = np.cumsum(arrays["plays"], axis=2, dtype=np.int64)
    total = np.zeros(plays.shape[:-1])
    gaps = np.array([problem_of(config["problem"], i).gaps for i in range(*config["instances"])])
    for arm in range(plays.shape[-1]):
        total += plays[..., arm] * gaps[:, arm][:, None, None]
    return total


def locked(arrays: Arrays, config: Config) -> NDArray[np.bool_]:
    """Whether the last 1,000 rounds all went to one arm that is not the best, (I, T)."""
    recent = _since(arrays["plays"], config)
    best = [problem_of(config["problem"], i).best for i in range(*config["instances"])]
    wrong = recent.copy()
    for row, arm in enumerate(best):
        wrong[row, :, arm] = 0
    return wrong.max(axis=-1) == recent.sum(axis=-1)


def _since(plays: NDArray[Any], config: Config) -> NDArray[Any]:
    marks = np.array(config["checkpoints"])
    return plays[:, :, marks > config["rounds"] - LAST].sum(axis=2)


def thin(cell: Cell) -> Arrays:
    """What the book keeps of a cell: regrets in units of 1e-4, where it ended, what it learnt.

    ``rank`` is the place of the last arm among all arms by expected reward, 0 for the best.  On
    one instance the curve is kept too, as increments between the rounds of `curve_marks`.
    """
    arrays, config = cell.arrays, cell.config
    curve = regret(arrays, config)
    marks = np.array(config["checkpoints"])
    before = curve[:, :, marks == config["rounds"] - LAST][:, :, 0]
    out: Arrays = {
        "regret": _units(curve[:, :, -1]),
        "last": _units(curve[:, :, -1] - before),
        "rank": _ranks(arrays, config),
        "locked": locked(arrays, config).astype(np.int8),
        "first_skip": arrays["first_skip"],
        "learnt": arrays["learnt"][:, :, -1, :],
    }
    if keeps_curve(config):
        kept = np.isin(marks, curve_marks(config))
        out["curve"] = np.diff(_units(curve[:, :, kept]), axis=2, prepend=0)
    return out


def curve_marks(config: Config) -> list[int]:
    """Rounds at which the stored curve is taken."""
    marks: list[int] = config["checkpoints"]
    return marks


def keeps_curve(config: Config) -> bool:
    """Whether the stored form of a cell has its curve: runs on instance 0, and the long ones."""
    return config["instances"] == [0, 1] or config["rounds"] > ROUNDS


def _units(values: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(values / UNIT).astype(np.int64)


def _ranks(arrays: Arrays, config: Config) -> NDArray[np.int16]:
    rows = []
    for row, i in enumerate(range(*config["instances"])):
        gaps = problem_of(config["problem"], i).gaps
        rows.append([(gaps < gaps[arm]).sum() for arm in arrays["final_arm"][row]])
    return np.array(rows, dtype=np.int16)


def thinned(cell: Cell | Packed) -> Arrays:
    """The stored form of a cell, whether it comes whole or thinned."""
    return cell.arrays if isinstance(cell, Packed) else thin(cell)


def reading_of(config: Config) -> str:
    """Which part of the experiment a cell belongs to, as the book names it."""
    if config["rounds"] > ROUNDS:
        return "long"
    if config["rounds"] < ROUNDS:
        return "smoke"
    kind = next(k for k, v in PROBLEMS.items() if all(config["problem"][n] == v[n] for n in v))
    if kind != "gap":
        return kind
    if config["instances"][1] - config["instances"][0] == 8:
        return "eight instances"
    return "instance 0" if config["instances"][0] == 0 else "instances"


def part(config: Config) -> str:
    """File of stored results: one per reading."""
    return reading_of(config).replace(" ", "-")


def figure_cells(scale: str) -> list[Config]:
    """The cells of Figure 1a: those of Table 1 on instance 0."""
    return [c for c in cells(scale) if reading_of(c) in ("instance 0", "smoke")]


def label(config: Config) -> str:
    policy = ", ".join(f"{k}={v}" for k, v in config["policy"].items() if k != "name")
    return f"{reading_of(config)}: {config['policy']['name']}({policy})"


FAMILY = Family(
    "synthetic",
    run=run,
    batches=batches,
    seconds=seconds,
    thin=thin,
    part=part,
    label=label,
    engine=lambda config: engine_number(config["policy"]["name"], "arms"),
    stratum=lambda config: f"{config['policy']['name']} {config['policy']['beta'] == 'theorem'}",
    kinds=("arms",),
)
