"""Figures 1b and 2 as data: the Asirra task, a million rounds, one cell per (ζ, policy, run).

The curves of each figure are those that the paper draws; every policy is run on the whole (β, λ)
grid, and a figure shows for each curve the grid point of least mean regret. The same curves are run
on weaker features and another filter, those closest to the paper's Table 2, on the same grid.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import banditlib as bl
from banditlib.engines import engine_number
from banditlib.paper import features, plots, verdict
from banditlib.paper.experiments import base
from banditlib.paper.experiments.asirra_policies import LOOPS, GrowingOFUL
from banditlib.paper.experiments.base import Family, NotAvailable, Rendered
from banditlib.paper.render import curves_csv, figure_files, mark_stand_in
from banditlib.paper.store import Arrays, Cell, Config, Packed
from banditlib.paper.verdict import Sentence

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
)


# --- drawing --------------------------------------------------------------------------------------


def row_of(policy: Config) -> str:
    return "SupLinUCB" if policy["name"] == "SupLinUCB" else f"Γ = {policy['Gamma']:g}"


def curve_name(row: str) -> str:
    return "OFUL" if row == "Γ = 0" else row


def curves(cells: Sequence[Cell | Packed], zeta: float) -> dict[str, dict[Any, NDArray[np.int64]]]:
    """Regret (runs, checkpoints) by curve and (β, λ), runs in order."""
    out: dict[str, dict[Any, list[NDArray[np.int64]]]] = {}
    for found in sorted(cells, key=lambda c: c.config["trials"]):
        config = found.config
        if config["zeta"] != zeta:
            continue
        point = (config["policy"]["beta"], config["policy"]["lam"])
        out.setdefault(row_of(config["policy"]), {}).setdefault(point, []).append(
            found.arrays["wrong"]
        )
    return {r: {p: np.concatenate(c) for p, c in grid.items()} for r, grid in out.items()}


def best(grid: dict[Any, NDArray[np.int64]]) -> tuple[Any, NDArray[np.int64]]:
    """The point of least mean final regret, among those with most runs, and its runs."""
    most = max(len(runs) for runs in grid.values())
    point = min((p for p in grid if len(grid[p]) == most), key=lambda p: grid[p][:, -1].mean())
    return point, grid[point]


#: Where the axes of the paper's figures end, by ζ: OFUL and DS-OFUL, SupLinUCB.
PAPER_AXES = ("OFUL and DS-OFUL", "SupLinUCB")
AXES = {0.01: (3500, 35_000), 0.5: (175_000, 80_000), 0.1: (12_000, 35_000), 0.05: (7000, 35_000)}


def sentences(
    cells: Sequence[Cell | Packed], point: tuple[float, float] | None = None
) -> dict[str, list[tuple[str, Sentence]]]:
    """What the paper says of its figures, judged on our runs: by claim, what was looked at.

    Every curve is taken at the grid point (β, λ) = `point`, or each at its `best` one; differences
    are between equal run numbers, which saw the same pairs.
    """
    marks = np.array(cells[0].config["checkpoints"])
    half = int(np.argmin(np.abs(marks - marks[-1] / 2)))
    total: dict[float, dict[str, NDArray[np.int64]]] = {}
    late: dict[float, dict[str, NDArray[np.int64]]] = {}
    for zeta in AXES:
        chosen = {
            row: best(grid)[1] if point is None else grid[point]
            for row, grid in sorted(curves(cells, zeta).items())
        }
        total[zeta] = {row: runs[:, -1] for row, runs in chosen.items()}
        late[zeta] = {row: runs[:, -1] - runs[:, half] for row, runs in chosen.items()}
    rows = {z: [row for row in total[z] if row.startswith("Γ")] for z in AXES}

    def below(a: str, b: str) -> Sentence:
        n = min(len(total[0.01][a]), len(total[0.01][b]))
        return verdict.smaller(total[0.01][a][:n], total[0.01][b][:n])

    return {
        "eventually": [("ζ = 0.01, Γ = 0.05 minus OFUL", below("Γ = 0.05", "Γ = 0"))],
        "sup": [
            ("ζ = 0.01, OFUL minus SupLinUCB", below("Γ = 0", "SupLinUCB")),
            (
                "ζ = 0.01, SupLinUCB, second half",
                verdict.constant(total[0.01]["SupLinUCB"], late[0.01]["SupLinUCB"]),
            ),
        ],
        "constant": [
            (
                f"ζ = {z:g}, {curve_name(row)}, second half",
                verdict.constant(total[z][row], late[z][row]),
            )
            for z in (0.01, 0.05, 0.1)
            for row in ("SupLinUCB", *rows[z])
        ],
        "half": [
            (
                f"ζ = 0.5, {curve_name(row)}, second half",
                verdict.growing(total[0.5][row], late[0.5][row]),
            )
            for row in rows[0.5]
        ],
        "magnitude": [
            (f"ζ = {z:g}, {which}", verdict.magnitude(total[z][row], axis))
            for z, axes in AXES.items()
            for which, row, axis in (
                ("highest of OFUL and DS-OFUL", _highest(total[z], rows[z]), axes[0]),
                ("SupLinUCB", "SupLinUCB", axes[1]),
            )
        ],
    }


def _highest(total: dict[str, NDArray[np.int64]], rows: Sequence[str]) -> str:
    return max(rows, key=lambda row: total[row].mean())


#: Colour and line of each curve, the same in every figure.
STYLES = {
    "Γ = 0": ("oful", "-"),
    "SupLinUCB": ("sup", "-"),
    "Γ = 0.01": ("ds", ":"),
    "Γ = 0.05": ("ds", "-"),
    "Γ = 0.1": ("ds", "--"),
}


def together(chosen: dict[str, NDArray[np.int64]]) -> list[list[str]]:
    """Curves that are equal in every run and at every mark stand in one list."""
    groups: list[list[str]] = []
    for row in sorted(chosen):
        same = (g for g in groups if np.array_equal(chosen[g[0]], chosen[row]))
        found = next(same, None)
        if found is None:
            groups.append([row])
        else:
            found.append(row)
    return groups


def draw(cells: Sequence[Cell | Packed], zetas: Sequence[float]) -> Figure:
    """Mean mistakes with standard errors, both axes logarithmic, and where the paper's axes end.

    Curves that coincide in every run are drawn as one line of alternating colours.
    """
    rows, across, size = {1: (1, 1, (6.4, 3.8)), 3: (1, 3, (7.8, 3.7)), 4: (2, 2, (7.6, 6.6))}[
        len(zetas)
    ]
    fig, axes = plots.panels(across, rows, size, "xy", ylabel="mistakes so far")
    for ax, zeta in zip(np.atleast_1d(axes).flat, zetas, strict=True):
        marks = next(np.array(c.config["checkpoints"]) for c in cells if c.config["zeta"] == zeta)
        chosen = {row: best(grid)[1] for row, grid in curves(cells, zeta).items()}
        for group in together(chosen):
            _draw_together(ax, marks, chosen[group[0]], group)
        ax.set(title=f"ζ = {zeta:g}", ylim=(0.03, 6e5), xlim=(marks[0], marks[-1]))
        for end, role, who in zip(AXES[zeta], ("oful", "sup"), PAPER_AXES, strict=True):
            name = f"end of the paper's axis for {who}" if len(zetas) == 1 else ""
            plots.level(ax, end, role, name, ":")
    for ax in np.atleast_2d(axes)[-1]:
        ax.set_xlabel("round")
    for ax in np.atleast_1d(axes).flat[1:] if len(zetas) < 4 else axes[:, 1]:
        ax.tick_params(labelleft=False)
    if len(zetas) == 1:
        plots.name_ends(axes)
    else:
        plots.one_legend(fig)
    return fig


def _draw_together(
    ax: Axes, marks: NDArray[np.int64], runs: NDArray[np.int64], group: Sequence[str]
) -> None:
    """One line for curves that coincide: dashes in the colour of each, and a word that says so."""
    if len(group) == 1:
        role, style = STYLES[group[0]]
        plots.runs(ax, marks, runs, role, curve_name(group[0]), style)
        return
    mean, roles = runs.mean(axis=0), list(dict.fromkeys(STYLES[row][0] for row in group))
    for i, role in enumerate(roles):
        plots.line(ax, marks, mean, role, style=(7 * i, (7, 7 * (len(roles) - 1))))
    names = [curve_name(row) for row in group]
    text = f"{', '.join(names[:-1])} and {names[-1]}:\none curve, equal in every run"
    place: dict[str, Any] = {"ha": "right", "va": "bottom", "transform": ax.transAxes}
    ax.text(0.99, 0.01, text, fontsize=plots.LABEL, **place)


def _numbers(cells: Sequence[Cell], zeta: float) -> list[tuple[str, NDArray[Any], NDArray[Any]]]:
    marks = next(np.array(c.config["checkpoints"]) for c in cells if c.config["zeta"] == zeta)
    found = sorted(curves(cells, zeta).items())
    where = "digits, " if _stand_in(cells) else ""
    return [
        (f"{where}ζ = {zeta:g}, {curve_name(row)}", marks, best(grid)[1]) for row, grid in found
    ]


def _stand_in(cells: Sequence[Cell]) -> bool:
    """Whether scikit-learn's digits stand in for the cats and dogs."""
    return any(c.config["data"] == "digits" for c in cells)


def render(cells: Sequence[Cell], scale: str) -> Rendered:
    """A figure as SVG and PNG, and the numbers behind its curves as CSV."""
    zetas = list(dict.fromkeys(c.config["zeta"] for c in cells))
    fig = draw(cells, zetas)
    if _stand_in(cells):
        mark_stand_in(fig, features.STAND_IN)
    numbers = curves_csv(curve for zeta in zetas for curve in _numbers(cells, zeta))
    return {".csv": numbers, **figure_files(fig)}


_needy = functools.partial(FAMILY.experiment, render=render, needs="Asirra features")
EXPERIMENTS = [
    _needy(
        "figure-1b",
        "Figure 1b: Asirra, ζ = 0.01",
        functools.partial(panel_cells, "figure-1b"),
        smoke=15,
        full=1600,
    ),
    _needy(
        "figure-4",
        "Figure 2: Asirra, ζ = 0.5, 0.1, 0.05",
        functools.partial(panel_cells, "figure-4"),
        smoke=30,
        full=8000,
    ),
    _needy("asirra-weak", "Figures 1b and 2 on weaker features", weak_cells, smoke=45, full=8300),
]
