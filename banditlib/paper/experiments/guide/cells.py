r"""Every policy with its four settings on every problem of the guide.

A *cell* is one policy on one problem at one ratio :math:`\zeta\sqrt d/\Delta`, with all its
settings: the regret of the runs to tune by, and that of the runs to report.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import banditlib as bl
from banditlib.engines import engine_number
from banditlib.paper import features
from banditlib.paper.experiments.base import Family, Rendered, cell_config, lacks
from banditlib.paper.experiments.guide import claims, problems, protocol
from banditlib.paper.experiments.guide.protocol import DELTA, DIM, FEW, LAM, RANGE, RATIOS, SIGMA
from banditlib.paper.experiments.separation import course as separation
from banditlib.paper.render import records_csv
from banditlib.paper.store import Arrays, Cell, Config, Packed

UNIT = 1000
"""Regret is stored in thousandths, as integers."""

CLASSES = {
    "OFUL": "DSOFUL", "DS-OFUL": "DSOFUL", "layered DS-OFUL": "LayeredDSOFUL",
    "SupLinUCB": "SupLinUCB", "weighted OFUL": "WeightedOFUL", "Thompson": "LinearTS",
    "LSW": "LSW", "UCB": "UCB", "phased elimination": "PhasedElimination",
    "robust linear": "RobustLinear", "DS-OFUL, wrong Δ": "DSOFUL",
    "certified LinUCB": "CertLinUCB",
}  # fmt: skip
EVERYWHERE = (
    "OFUL", "DS-OFUL", "layered DS-OFUL", "SupLinUCB", "weighted OFUL", "Thompson",
    "certified LinUCB",
)  # fmt: skip
TOLD_ZETA = ("LSW",)
ON_FIXED_ARMS = ("UCB", "phased elimination", "robust linear")
KINDS = {"fixed": "arms", "lower bound": "arms", "asirra": "pool"}
BETAS = (0.1, 0.3, 1.0, 3.0)


def settings(policy: str, Delta: float, dim: int, zeta: float) -> list[bl.Policy]:
    """The settings of a policy, in the protocol's order."""
    pairs = itertools.product
    if policy == "OFUL":
        return [bl.OFUL(b, LAM) for b in BETAS]
    if policy == "DS-OFUL":
        return [bl.DSOFUL(c * Delta / math.sqrt(dim), b, LAM) for c, b in pairs((0.5, 2), (0.3, 1))]
    if policy == "DS-OFUL, wrong Δ":
        return [bl.DSOFUL(c * Delta / math.sqrt(dim), 1.0, LAM) for c in protocol.WRONG]
    if policy == "weighted OFUL":
        return [bl.WeightedOFUL(a, b, LAM) for a, b in pairs((0.05, 0.2), (0.3, 1))]
    if policy == "Thompson":
        return [bl.LinearTS(v, LAM) for v in (0.03, 0.1, 0.3, 1.0)]
    if policy == "LSW":
        return [bl.LSW(b, LAM, zeta) for b in BETAS]
    if policy == "UCB":
        return [bl.UCB(c * SIGMA**2) for c in (0.125, 0.5, 2.0, 8.0)]
    if policy == "phased elimination":
        return [bl.PhasedElimination(0.01, SIGMA / c) for c in (30, 10, 3, 1)]
    if policy == "robust linear":
        return [bl.RobustLinear(b, LAM, sigma=SIGMA) for b in BETAS]
    if policy == "certified LinUCB":
        return [bl.CertLinUCB(b, LAM, -RANGE, RANGE) for b in BETAS]
    kind = {"layered DS-OFUL": bl.LayeredDSOFUL, "SupLinUCB": bl.SupLinUCB}[policy]
    return [kind(b, LAM) for b in BETAS]


def places() -> list[tuple[str, float, int, float]]:
    """Problem, ratio, dimension and gap, in the order of the chapter; -1 stands for no ratio."""
    found = [(name, z, DIM, DELTA) for name, ratios in RATIOS.items() for z in ratios]
    found.append(("lower bound", -1.0, 16, 0.25))
    sizes = {"iris": 15, "wine": 42, "breast cancer": 62, "digits": 170, "asirra": 16}
    return found + [(name, -1.0, d, 1.0) for name, d in sizes.items()]


def policies_on(problem: str) -> list[str]:
    """Which policies play on a problem."""
    if problem in ("fixed", "lower bound"):
        return [*EVERYWHERE, *TOLD_ZETA, *ON_FIXED_ARMS]
    if problem == "fresh":
        return [*EVERYWHERE, *TOLD_ZETA]
    return [p for p in EVERYWHERE if problem not in ("separation", "digits") or p != "Thompson"]


def cell(
    policy: str, problem: str, ratio: float, dim: int, Delta: float, small: bool = False
) -> Config:
    """The configuration of one cell."""
    runs = (4, 8) if problem in FEW else (8, 16)
    config = cell_config(
        "guide", engine_of(policy, problem), policy=policy, problem=problem, ratio=ratio, dim=dim,
        Delta=Delta, rounds=60 if small else problems.rounds_of(problem, ratio),
        runs=[1, 2] if small else list(runs), small=small,
        seeds=[protocol.TUNE_SEED, protocol.REPORT_SEED],
    )  # fmt: skip
    if problem == "asirra":
        config["digest"] = features.digest(problems.ASIRRA)
    return config


def cells(scale: str) -> list[Config]:
    """All cells, the quick ones first."""
    small = scale == "smoke"
    where = [p for p in places() if p[0] != "asirra"]
    if small:
        where = [p for p in where if p[1] in (-1.0, 0.0, 1.0) and p[0] != "digits"]
    found = [cell(q, *p, small) for p in where for q in policies_on(p[0])]
    wrong = [p for p in where if p[0] in RATIOS and p[1] == 1.0]
    found += [cell("DS-OFUL, wrong Δ", *p, small) for p in wrong]
    return sorted(found, key=_seconds)


def asirra_cells(scale: str) -> list[Config]:
    """The cells that need the features of cats and dogs."""
    place = next(p for p in places() if p[0] == "asirra")
    return [cell(q, *place, scale == "smoke") for q in policies_on("asirra")]


def _seconds(config: Config) -> float:
    """Rough processor time of a cell."""
    if is_claim(config):
        return 4.0
    one_by_one = config["policy"] in ("Thompson", "LSW") and config["problem"] != "fixed"
    if config["problem"] == "digits" or one_by_one:
        return 20.0
    return 25.0 if config["policy"] == "Thompson" else 2.0


def engine_of(policy: str, problem: str) -> int:
    """The number of the engine that plays a policy on a problem."""
    known, kinds = CLASSES | claims.CLASSES, KINDS | claims.KINDS
    return engine_number(known[policy], kinds.get(problem, "contexts"))


def marks(rounds: int) -> list[int]:
    """Where regret is looked at: an eighth, a quarter, a half, three quarters, the end."""
    return [*(max(1, rounds // p) for p in (8, 4, 2)), rounds * 3 // 4, rounds]


def run(configs: Sequence[Config], backend: str) -> list[Arrays]:
    """Regret in thousandths: ``tune`` (settings, runs), ``report`` (settings, runs, marks); of a
    claim ``regret`` (runs, marks).
    """
    return [(claims.run_one if is_claim(c) else _one)(c, backend) for c in configs]


def is_claim(config: Config) -> bool:
    """Whether a cell belongs to the claims of single policies and not to the comparison of all."""
    return config["problem"] in claims.KINDS


def _one(config: Config, backend: str) -> Arrays:
    out: Arrays = {}
    for report, name in ((False, "tune"), (True, "report")):
        place = problems.setting(config, report)
        which = settings(config["policy"], config["Delta"], config["dim"], place.zeta)
        result = bl.simulate(
            place.problems, which, rounds=place.rounds, trials=place.trials,
            seed=config["seeds"][int(report)], checkpoints=marks(place.rounds), backend=backend,
            progress=False,
        )  # fmt: skip
        regret = np.moveaxis(result.regret, 1, 0).reshape(len(which), -1, result.regret.shape[-1])
        whole = np.rint(UNIT * regret).astype(np.int64)
        out[name] = whole if report else whole[..., -1]
    return out


# --- judging --------------------------------------------------------------------------------------


def chosen(found: Cell | Packed) -> int:
    """The setting of least mean regret on the runs to tune by, the first if several."""
    return int(found.arrays["tune"].mean(axis=1).argmin())


def reported(found: Cell | Packed, which: int | None = None) -> np.ndarray:
    """Regret (runs, marks) of the reported runs, of the chosen setting unless said."""
    return np.asarray(found.arrays["report"][chosen(found) if which is None else which] / UNIT)


def lost(found: Cell | Packed, which: int | None = None) -> float:
    """Share of the reported runs that lose Δ/2 or more on average over the last quarter."""
    config, regret = found.config, reported(found, which)
    rounds = config["rounds"]
    if config["problem"] == "separation":
        rounds //= problems.course(config["ratio"]).cycle
    late = regret[:, -1] - regret[:, -2]
    return float((late >= config["Delta"] / 2 * (rounds - rounds * 3 // 4)).mean())


def apart(one: Cell | Packed, other: Cell | Packed) -> bool:
    """Whether the paired differences of two policies' regret are beyond two standard errors."""
    difference = reported(one)[:, -1] - reported(other)[:, -1]
    error = difference.std(ddof=1) / math.sqrt(len(difference))
    return bool(abs(difference.mean()) > 2 * error)


def rows(found: Sequence[Cell | Packed]) -> list[dict[str, Any]]:
    """One row for each cell; for a wrong Δ one for each threshold."""
    return [row for c in found for row in _rows(c)]


def _rows(found: Cell | Packed) -> list[dict[str, Any]]:
    c = found.config
    zeta = c["ratio"] * DELTA / math.sqrt(DIM)
    if c["ratio"] < 0:  # only LSW is told ζ, and only where it is known
        zeta = problems.setting(c, report=True).zeta if c["problem"] == "lower bound" else math.nan
    names = settings(c["policy"], c["Delta"], c["dim"], zeta)
    every = range(len(names)) if c["policy"] == "DS-OFUL, wrong Δ" else [chosen(found)]
    out = []
    for s in every:
        regret = reported(found, s)[:, -1]
        out.append({
            "problem": c["problem"], "ratio": None if c["ratio"] < 0 else c["ratio"],
            "policy": c["policy"], "setting": repr(names[s]), "rounds": c["rounds"],
            "runs": len(regret), "regret": float(regret.mean()),
            "error": float(regret.std(ddof=1) / math.sqrt(len(regret))), "lost": lost(found, s),
        })  # fmt: skip
    return out


def render(done: Sequence[Cell], scale: str) -> Rendered:
    """The rows as CSV."""
    return {".csv": records_csv(rows(done))}


def _need(config: Config) -> None:
    if config["problem"] == "asirra":
        problems.asirra(config["digest"])


FAMILY = Family(
    name="guide",
    run=run,
    seconds=_seconds,
    part=lambda c: c["problem"].replace(" ", "-"),
    label=lambda c: f"{c['policy']} on {c['problem']} {c['ratio']:g}",
    unavailable=lacks(_need),
    engine=lambda c: engine_of(c["policy"], c["problem"]),
    also=tuple(m.__name__ for m in (features, claims, problems, protocol, separation)),
)
