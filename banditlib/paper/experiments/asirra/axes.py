"""What would it take to reach the axes of Figures 1b and 2? One hypothesis a row, four panels.

The rule: every hypothesis is first run once in every panel (the *screen*), a million rounds, with
OFUL and, where it has a threshold, DS-OFUL at Γ = 0.05. It comes *near* a panel if the larger of
the two regrets is within a factor of three of where the panel's axis ends (`verdict.ORDER`, the
factor of the sentences about the figures), and it *fits* if it is within a factor of 1.5
(`verdict.FACTOR`, that of Table 1). SupLinUCB is judged alone, by its own axis.
A hypothesis that fits some panel is run eight times there (`EIGHT_TIMES`), and the mean of the
eight is judged in the same way.

The hypotheses of `FIRST` were fixed with the rule, when single runs of most of what fits in it had
been seen. Three lines were taken off before they were run, to save hours; two are in `SECOND`, one
is in `FOURTH`. Those of `SECOND` were added when the first screen had been seen, and before any
stored run of theirs: what the first had left out; combinations of what came near; two readings that
the first screen suggests. One is a radius that grows with ζ, two free numbers for four panels. The
other is that the figures show the *sum* over the paper's eight runs and not the mean: then a regret
is compared with an eighth of the axis, and by interpolation a radius of 6 should fit all four
panels of OFUL. It is run eight times in all panels, and judged by the sum over the eight.

Those of `THIRD`, again before any run of theirs: vectors that keep their lengths (`lengths`), at
the ends of the paper's grid and at the two radii that had fitted something. Those of `FOURTH` came
last, before their runs but for the last one: the line that was taken off; noise with what had
come near as a sum; and SupLinUCB at the one point of the paper's own grid, on standard input with
the filter as written, whose stored runs fit all four of its panels as sums.

`CONFIRMED` names what fits all panels as a sum; `confirming` repeats it on runs 8 to 15 and once on
other features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlib import theory
from banditlib.paper import verdict
from banditlib.paper.experiments.asirra import lengths, single
from banditlib.paper.experiments.asirra.cells import FAMILY, ROUNDS, RUNS, WEAK, cell, checkpoints
from banditlib.paper.experiments.asirra.figure import AXES
from banditlib.paper.experiments.base import Rendered
from banditlib.paper.render import csv_text, markdown
from banditlib.paper.store import Cell, Config, Packed, key

PANELS = (0.01, 0.05, 0.1, 0.5)
#: A ζ that every vector is within: no filter.
EVERYTHING = 10.0
#: Runs that were not looked at when what they confirm was proposed.
FRESH_RUNS = range(RUNS, 2 * RUNS)


@dataclass(frozen=True)
class Hypothesis:
    """What may have been different, and how it is played in the panel of ζ."""

    name: str
    policies: tuple[Config, ...]
    data: str = WEAK[0]
    rule: str = WEAK[1]
    sigma: float = 0.0
    axis: int = 0
    filtered: bool = True
    family: str = FAMILY.name
    lengths: str | None = None

    def cells(self, zeta: float, trials: Sequence[int], rounds: int, data: str) -> list[Config]:
        keep = zeta if self.filtered else EVERYTHING
        rest = (rounds, data, self.rule, self.sigma)
        more: Config = {"family": self.family}
        if self.lengths is not None:
            more |= lengths.config(data, self.lengths)
        return [
            {**cell(keep, _filled(policy, zeta), trial, *rest), **more}
            for trial in trials
            for policy in self.policies
        ]


def _filled(policy: Config, zeta: float) -> Config:
    """The policy with the panel's ζ where it asks for it, by name or as a function of it."""
    return {k: v(zeta) if callable(v) else zeta if v == "zeta" else v for k, v in policy.items()}


def _pair(beta: float | Callable[[float], float], lam: float = 1.0) -> tuple[Config, ...]:
    return tuple({"name": "DSOFUL", "Gamma": g, "beta": beta, "lam": lam} for g in (0.0, 0.05))


def _sup(beta: float | list[float], lam: float = 1.0) -> tuple[Config, ...]:
    return ({"name": "SupLinUCB", "beta": beta, "lam": lam},)


def _theorem() -> list[float]:
    """β(l) of the theorem on SupLinUCB as printed, with R = 1, for six levels."""
    beta = theory.SupBeta(512, R=1.0, repaired=False)
    return [round(float(beta(l)), 6) for l in range(1, 7)]


FIRST = (
    *(Hypothesis(f"radius {r:g}", _pair(r)) for r in (0.1, 1.0, 3.0, 7.0, 10.0, 14.0, 22.6, 30.0)),
    Hypothesis("radius 1 + ζ√k", ({"name": "GrowingOFUL", "zeta": "zeta", "lam": 1.0},)),
    Hypothesis("λ = 0.01 with radius 1", _pair(1.0, 0.01)),
    Hypothesis("noise N(0, 1), radius 1", _pair(1.0), sigma=1.0),
    Hypothesis(
        "learns every 5,000 rounds",
        ({"name": "DelayedOFUL", "every": 5000, "beta": 0.1, "lam": 1.0},),
    ),
    Hypothesis("radius 14, standard features", _pair(14.0), data="standard"),
    Hypothesis("SupLinUCB, radius 0.1", _sup(0.1), axis=1),
    Hypothesis("SupLinUCB, radius 1", _sup(1.0), axis=1),
    Hypothesis("SupLinUCB, radius 3", _sup(3.0), axis=1),
)
SECOND = (
    Hypothesis("radius 6", _pair(6.0)),
    Hypothesis("radius 12 + 160ζ", _pair(lambda zeta: round(12.0 + 160.0 * zeta, 6))),
    Hypothesis("radius 14, λ = 10", _pair(14.0, 10.0)),
    Hypothesis("radius 14, noise N(0, 1)", _pair(14.0), sigma=1.0),
    Hypothesis("radius 14, tiny input of 48 pixels", _pair(14.0), data="tiny-48"),
    Hypothesis("radius 14, channels reversed", _pair(14.0), data="tiny-bgr"),
    Hypothesis("no filter, radius 1", _pair(1.0), filtered=False),
    Hypothesis("no filter, radius 22.6", _pair(22.6), filtered=False),
    Hypothesis(
        "single precision",
        ({"name": "SingleOFUL", "beta": 0.1, "lam": 1.0},),
        family=single.FAMILY.name,
    ),
    Hypothesis(
        "learns every 1,000 rounds",
        ({"name": "DelayedOFUL", "every": 1000, "beta": 0.1, "lam": 1.0},),
    ),
    Hypothesis("SupLinUCB, radius 1, λ = 10", _sup(1.0, 10.0), axis=1),
    Hypothesis("SupLinUCB, the theorem's β(l) with R = 1", _sup(_theorem()), axis=1),
)
THIRD = tuple(
    Hypothesis(name, policies, axis=axis, family=lengths.FAMILY.name, lengths=how)
    for name, policies, axis, how in (
        ("not normalised, radius 0.1", _pair(0.1), 0, lengths.EACH),
        ("not normalised, radius 1", _pair(1.0), 0, lengths.EACH),
        ("not normalised, radius 6", _pair(6.0), 0, lengths.EACH),
        ("not normalised, radius 14", _pair(14.0), 0, lengths.EACH),
        ("one length for all, radius 1", _pair(1.0), 0, lengths.COMMON),
        ("SupLinUCB, not normalised, radius 0.1", _sup(0.1), 1, lengths.EACH),
        ("SupLinUCB, not normalised, radius 1", _sup(1.0), 1, lengths.EACH),
    )
)
AS_WRITTEN = "SupLinUCB, radius 1, λ = 10, filter as written, standard"
FOURTH = (
    Hypothesis("radius 14, filter as written", _pair(14.0), rule="two-sided"),
    Hypothesis("noise N(0, 1), radius 1, λ = 10", _pair(1.0, 10.0), sigma=1.0),
    Hypothesis("noise N(0, 1), radius 2", _pair(2.0), sigma=1.0),
    Hypothesis("noise N(0, 1), radius 3", _pair(3.0), sigma=1.0),
    Hypothesis(AS_WRITTEN, _sup(1.0, 10.0), data="standard", rule="two-sided", axis=1),
)
HYPOTHESES = FIRST + SECOND + THIRD + FOURTH

#: Pairs of hypothesis and ζ that are run eight times: what fits in the screen.
EIGHT_TIMES = (
    ("radius 14", 0.01),
    *(("radius 6", zeta) for zeta in PANELS),
    ("radius 22.6", 0.05),
    ("radius 22.6", 0.1),
    ("SupLinUCB, radius 3", 0.05),
    ("SupLinUCB, radius 3", 0.1),
    ("learns every 5,000 rounds", 0.01),
    ("radius 14, standard features", 0.01),
    *(("radius 12 + 160ζ", zeta) for zeta in PANELS),
    ("radius 14, noise N(0, 1)", 0.01),
    ("radius 14, tiny input of 48 pixels", 0.01),
    ("radius 14, channels reversed", 0.01),
    ("no filter, radius 22.6", 0.5),
    ("not normalised, radius 14", 0.05),
    ("not normalised, radius 14", 0.1),
    ("noise N(0, 1), radius 1", 0.05),
    ("noise N(0, 1), radius 1", 0.1),
    *(("noise N(0, 1), radius 3", zeta) for zeta in PANELS),
)

#: What fits all panels as a sum, and the features on which it is tried once more.
CONFIRMED = {"radius 6": ("tiny-48", "tiny-bgr"), AS_WRITTEN: ("tiny", "tiny-48", "tiny-bgr")}


def cells(scale: str, family: str = FAMILY.name) -> list[Config]:
    """The screen, then the further runs, as far as they are cells of a family."""
    ours = [h for h in HYPOTHESES if h.family == family]
    if scale == "smoke":
        short = ("radius 0.1", "radius 14", "single precision", "not normalised, radius 1")
        some = [h for h in ours if h.name in short]
        return [c for h in some for c in h.cells(0.5, [0], 3000, "digits")]
    found = [c for h in ours for z in PANELS for c in h.cells(z, [0], ROUNDS, h.data)]
    more = [
        c
        for h in ours
        for z in PANELS
        if (h.name, z) in EIGHT_TIMES
        for c in h.cells(z, range(1, RUNS), ROUNDS, h.data)
    ]
    more += confirming() if family == FAMILY.name else []
    return list({key(c): c for c in found + more}.values())


def confirming() -> list[Config]:
    """The first curve of what fits all panels as a sum, on fresh runs and on other features."""
    return [config for cells in _confirming().values() for config in cells]


def _confirming() -> dict[tuple[str, str, float], list[Config]]:
    """By hypothesis, features and ζ."""
    out: dict[tuple[str, str, float], list[Config]] = {}
    for h in HYPOTHESES:
        if h.name in CONFIRMED:
            first = replace(h, policies=h.policies[:1])
            for data in (h.data, *CONFIRMED[h.name]):
                runs = FRESH_RUNS if data == h.data else range(1)
                for zeta in PANELS:
                    out[h.name, data, zeta] = first.cells(zeta, runs, ROUNDS, data)
    return out


def confirmed(found: Sequence[Cell | Packed]) -> dict[tuple[str, str, float], Outcome]:
    """What `confirming` gave, by hypothesis, features and ζ."""
    by = {c.key: c.arrays["wrong"][0] for c in found}
    axis = {h.name: h.axis for h in HYPOTHESES}
    return {
        where: _outcome([[by[key(c)]] for c in configs], AXES[where[2]][axis[where[0]]])
        for where, configs in _confirming().items()
    }


@dataclass(frozen=True)
class Outcome:
    """Regret (curves, runs) of a hypothesis in a panel, and in the second half of the rounds."""

    total: NDArray[np.float64]
    late: NDArray[np.float64]
    axis: float

    @property
    def highest(self) -> float:
        """Mean regret of the curve that ends highest."""
        return float(self.total.mean(axis=1).max())

    @property
    def word(self) -> str:
        """*fits*, *near* or nothing, by the rule at the top of this file."""
        return _word(self.highest, self.axis)

    @property
    def word_of_sum(self) -> str:
        """The same if the figures show the sum over eight runs."""
        return _word(RUNS * self.highest, self.axis)


def _word(regret: float, axis: float) -> str:
    factor = max(regret / axis, axis / max(regret, 1e-9))
    return "fits" if factor <= verdict.FACTOR else "near" if factor <= verdict.ORDER else ""


def outcomes(
    found: Sequence[Cell | Packed], trials: Sequence[int] = range(RUNS)
) -> dict[tuple[str, float], Outcome]:
    """By hypothesis and ζ, as far as it was run; `trials` leaves out other runs."""
    by = {c.key: c.arrays["wrong"][0] for c in found}
    out: dict[tuple[str, float], Outcome] = {}
    for h in HYPOTHESES:
        for zeta in PANELS:
            wanted = [
                [key(config) for config in h.cells(zeta, [trial], ROUNDS, h.data)]
                for trial in trials
            ]
            runs = [[by[k] for k in keys] for keys in wanted if all(k in by for k in keys)]
            if runs:
                out[h.name, zeta] = _outcome(runs, AXES[zeta][h.axis])
    return out


def _outcome(runs: Sequence[Sequence[NDArray[np.int64]]], axis: float) -> Outcome:
    """From mistakes at the checkpoints, by run and curve."""
    mistakes = np.array(runs, dtype=float).transpose(1, 0, 2)
    half = checkpoints(ROUNDS).index(ROUNDS // 2)
    total = mistakes[..., -1]
    return Outcome(total, total - mistakes[..., half], axis)


# --- how the book tells it ------------------------------------------------------------------------

Reached = dict[tuple[str, float], Outcome]
KINDS = {h.name: "noisy" if h.sigma else "SupLinUCB" if h.axis else "OFUL" for h in HYPOTHESES}
"""Runs of one kind differ about alike: those with noisy rewards, of SupLinUCB, of OFUL."""
SIGNS = {"fits": "✓", "near": "near", "": ""}


def spreads(reached: Reached) -> dict[str, float]:
    """By kind, the largest range of eight runs over their mean, of the curve that is judged."""
    out = dict.fromkeys(KINDS.values(), 0.0)
    for (name, _), outcome in reached.items():
        if outcome.total.shape[1] == RUNS:
            runs = outcome.total[outcome.total.mean(axis=1).argmax()]
            out[KINDS[name]] = max(out[KINDS[name]], float(np.ptp(runs) / runs.mean()))
    return out


def told(name: str, outcome: Outcome, spread: dict[str, float], as_sum: bool = False) -> str:
    """Regret, a star if it is of several runs, and a sign; a question mark where one run decides a
    word that another run, as different as runs are, would change.
    """
    several, times = outcome.total.shape[1] > 1, RUNS if as_sum else 1
    moves = [1 + sign * spread[KINDS[name]] for sign in (-1, 0, 1)]
    words = [_word(times * outcome.highest * move, outcome.axis) for move in moves]
    doubt = "" if several or len(set(words)) == 1 else "?"
    star = "*" if several else ""
    return f"{times * outcome.highest:,.0f}{star} {SIGNS[words[1]]}{doubt}".strip()


def rows(
    hypotheses: Sequence[Hypothesis], reached: Reached, as_sum: bool = False
) -> list[list[str]]:
    """Where the axes end, and a row for every hypothesis, panel by panel."""
    spread, who = spreads(reached), ("OFUL, DS-OFUL", "SupLinUCB")
    ends = [
        [f"the axis ends at, {w}", *(f"{AXES[z][i]:,}" for z in PANELS)] for i, w in enumerate(who)
    ]
    return ends + [
        [h.name, *(told(h.name, reached[h.name, z], spread, as_sum) for z in PANELS)]
        for h in hypotheses
    ]


def fitting(reached: Reached, name: str) -> int:
    """In how many panels a hypothesis fits as a sum."""
    return [reached[name, z].word_of_sum for z in PANELS].count("fits")


def at_grid_points(curves: dict[float, dict[str, Any]]) -> dict[tuple[float, float], list[Outcome]]:
    """SupLinUCB's outcomes in the panels, by grid point."""
    runs = {z: curves[z]["SupLinUCB"] for z in PANELS}
    return {
        point: [_outcome([[r] for r in runs[z][point]], AXES[z][1]) for z in PANELS]
        for point in runs[PANELS[0]]
    }


def render(found: Sequence[Cell], scale: str) -> Rendered:
    """Regret of every hypothesis in every panel, beside where the axes end."""
    if scale == "smoke":
        rows = [[c.config["policy"]["beta"], int(c.arrays["wrong"][0, -1])] for c in found]
        head = ["radius (digits, 3,000 rounds)", "regret"]
    else:
        done = outcomes(found)
        head = ["hypothesis", *(f"ζ = {z:g}" for z in PANELS)]
        rows = [
            [h.name, *(_told(done.get((h.name, z))) for z in PANELS)]
            for h in HYPOTHESES
            if any((h.name, z) in done for z in PANELS)
        ]
    return {".csv": csv_text(head, rows).encode(), ".md": markdown(head, rows).encode()}


def _told(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    return f"{outcome.highest:,.0f} {outcome.word}".strip()
