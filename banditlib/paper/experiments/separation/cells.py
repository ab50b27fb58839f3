r"""The course of lessons and tests over ζ√d/Δ, for every policy, and beside it its honest twin.

A *cell* is one policy at one ratio :math:`\zeta\sqrt d/\Delta`. Its twin has the same arms, and
lessons that pay what the linear part says, 0 instead of ζ: what a policy loses there has nothing
to do with misspecification.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from banditlib.engines import engine_number
from banditlib.paper.experiments.base import Family, Rendered, cell_config
from banditlib.paper.experiments.separation import course as lessons
from banditlib.paper.experiments.separation import figure
from banditlib.paper.render import figure_files, records_csv
from banditlib.paper.store import Arrays, Cell, Config, Packed
from banditlib.problems import generator

DIM, DELTA, SIGMA, BETA, LAM = 8, 0.2, 0.25, 1.0, 1.0  # as where the planes of the phase map cross
RATIOS = tuple(round(2.0**e, 4) for e in np.arange(-5, 2.5, 0.5))
MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
DS = tuple(f"DS-OFUL {g:g}" for g in MULTIPLES)
POLICIES = ("OFUL", *DS, "SupLinUCB", "UCB", "LSW", "Thompson", "kindest OFUL")
MARKS = (125, 250, 500, 1000, 1500, 1800, 2000)
SEED = 2026


def course_of(ratio: float, twin: bool = False) -> lessons.Course:
    """The course at a ratio; the twin's lessons pay nothing."""
    found = lessons.Course.of(DELTA, math.sqrt(DIM) / ratio, SIGMA, DIM)
    return replace(found, zeta=0.0) if twin else found


def player_of(policy: str, ratio: float, trial: int) -> lessons.Player:
    r"""The player called `policy`; "DS-OFUL g" has :math:`\Gamma=g\Delta/\sqrt d`."""
    if policy.startswith("DS-OFUL"):
        Gamma = float(policy.split()[1]) * DELTA / math.sqrt(DIM)
        return lessons.Learner(LAM, lambda k, zeta: BETA, Gamma)
    if policy == "SupLinUCB":
        return lessons.Levels(LAM, lambda level: BETA, DIM)
    if policy == "UCB":
        return lessons.Counting(2 * SIGMA**2)
    if policy == "LSW":
        return lessons.WithBonus(LAM, BETA, course_of(ratio).zeta)
    if policy == "Thompson":
        return lessons.Thompson(LAM, BETA, generator(SEED, "policy", 0, trial))
    return lessons.Learner(LAM, None if policy == "kindest OFUL" else lambda k, zeta: BETA)


def engine_of(policy: str) -> int:
    """The number of the engine whose decisions the player called `policy` takes: changing sets, and
    for UCB the two fixed arms of the tests.
    """
    if policy == "UCB":
        return engine_number("UCB", "arms")
    name = {"SupLinUCB": "SupLinUCB", "LSW": "LSW", "Thompson": "LinearTS"}.get(policy, "DSOFUL")
    return engine_number(name, "contexts")


def cell(
    policy: str, ratio: float, twin: bool, trials: int = 16, marks: Sequence[int] = MARKS
) -> Config:
    """The configuration of one policy at one ratio."""
    return cell_config(
        "separation", engine_of(policy), policy=policy, ratio=ratio, twin=twin, trials=trials,
        marks=list(marks), d=DIM, Delta=DELTA, sigma=SIGMA, beta=BETA, lam=LAM, seed=SEED,
    )  # fmt: skip


def cells(scale: str) -> list[Config]:
    """Every policy at every ratio, with and without misspecification."""
    small = scale == "smoke"
    ratios, how = (RATIOS[::7], (2, (50, 100))) if small else (RATIOS, (16, MARKS))
    return [cell(p, r, twin, *how) for p in POLICIES for r in ratios for twin in (False, True)]


def run(configs: Sequence[Config], backend: str) -> list[Arrays]:
    """Mistakes up to each mark, (trials, marks), and learnt rounds, (trials,)."""
    out: list[Arrays] = []
    for c in configs:
        course = course_of(c["ratio"], c["twin"])
        mistakes = np.zeros((c["trials"], len(c["marks"])), np.int32)
        kept = np.zeros(c["trials"], np.int64)
        for trial in range(c["trials"]):
            player = player_of(c["policy"], c["ratio"], trial)
            rng = generator(c["seed"], "noise", 0, trial)
            wrong = lessons.play(course, player, c["marks"][-1], rng)
            mistakes[trial] = wrong.cumsum()[np.array(c["marks"]) - 1]
            kept[trial] = player.kept
        out.append({"mistakes": mistakes, "kept": kept})
    return out


def rows(found: Sequence[Cell | Packed]) -> list[dict[str, Any]]:
    """One row for each cell: regret with its standard error, growth, and its twin's regret."""
    twins = {(c.config["policy"], c.config["ratio"]): _final(c) for c in found if c.config["twin"]}
    return [_row(c, twins) for c in found if not c.config["twin"]]


def _final(found: Cell | Packed) -> np.ndarray:
    return np.asarray(found.config["Delta"] * found.arrays["mistakes"][:, -1])


def _row(found: Cell | Packed, twins: dict[Any, np.ndarray]) -> dict[str, Any]:
    c, regret = found.config, _final(found)
    course = course_of(c["ratio"])
    half = c["marks"].index(c["marks"][-1] // 2)
    before = c["Delta"] * found.arrays["mistakes"][:, half].mean()
    return {
        "policy": c["policy"], "d": c["d"], "Delta": c["Delta"], "ratio": c["ratio"],
        "zeta": course.zeta, "length": course.length, "lessons": course.lessons,
        "tests": c["marks"][-1], "rounds": c["marks"][-1] * course.cycle, "runs": c["trials"],
        "regret": float(regret.mean()),
        "error": float(regret.std(ddof=1) / math.sqrt(len(regret))),
        "second_half": float(regret.mean() - before),
        "twin": float(twins[c["policy"], c["ratio"]].mean()),
    }  # fmt: skip


def explorer(found: Sequence[Packed], limits: dict[int, tuple[float, float]]) -> dict[str, Any]:
    """What the interactive figure reads, in the form of the phase map's: by cell the mean curve
    over tests and its 95% half-width in tenths, growth in %.
    """
    cells_ = {}
    for c in found:
        if c.config["twin"] or c.config["policy"] == "kindest OFUL":
            continue
        regret = c.config["Delta"] * c.arrays["mistakes"]
        mean = regret.mean(axis=0)
        error = 1.96 * regret.std(axis=0, ddof=1) / math.sqrt(len(regret))
        half = mean[c.config["marks"].index(c.config["marks"][-1] // 2)]
        growth = math.log2(mean[-1] / half) if half > 0 else 0.0
        name = "|".join(
            [c.config["policy"], f"{DIM}", f"{DELTA:g}", f"{c.config['ratio']:g}", "lessons"]
        )
        cells_[name] = [
            [round(10 * v) for v in mean], [round(10 * v) for v in error],
            round(100 * growth), None, None, None,
        ]  # fmt: skip
    return {
        "ratios": RATIOS, "dims": [DIM], "deltas": [DELTA], "multiples": MULTIPLES, "d": DIM,
        "Delta": DELTA, "marks": MARKS, "rounds": MARKS[-1], "thresholds": limits, "cells": cells_,
        "kinds": [["lessons", "lessons that pay too much"]], "unit": "test",
        "series": ["OFUL", "DS-OFUL", "SupLinUCB", "UCB", "LSW", "Thompson"],
    }  # fmt: skip


def render(done: Sequence[Cell], scale: str) -> Rendered:
    """The rows as CSV, and the mistakes at one ratio as SVG and PNG."""
    ratio = min({c.config["ratio"] for c in done}, key=lambda r: abs(r - figure.RATIO))
    return {".csv": records_csv(rows(done)), **figure_files(figure.draw(done, ratio))}


FAMILY = Family(
    name="separation",
    run=run,
    seconds=lambda c: 0.3,
    label=lambda c: f"{c['policy']} ratio={c['ratio']}{' twin' if c['twin'] else ''}",
    engine=lambda c: engine_of(c["policy"]),
    kinds=("contexts", "agents"),
    also=(lessons.__name__,),
)
