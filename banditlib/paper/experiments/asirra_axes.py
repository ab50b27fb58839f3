"""What would it take to reach the axes of Figures 1b and 4? One hypothesis a row, four panels.

The rule, written before the runs: every hypothesis is first run once in every panel (the *screen*),
a million rounds, with OFUL and, where it has a threshold, DS-OFUL at Γ = 0.05. It comes *near* a
panel if the larger of the two regrets is within a factor of three of where the panel's axis ends
(`verdict.ORDER`, the factor of the sentences about the figures), and it *fits* if it is within a
factor of 1.5 (`verdict.FACTOR`, that of Table 1). SupLinUCB is judged alone, by its own axis.
A hypothesis that fits some panel was to be run eight times there, and the mean of the eight judged
in the same way. When the screen had been seen we kept to this for the radius that fits Figure 1b,
and left the others, to save hours, at one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditlib.paper import verdict
from banditlib.paper.experiments.asirra_runs import AXES, FAMILY, ROUNDS, RUNS, WEAK, cell
from banditlib.paper.experiments.base import Rendered
from banditlib.paper.render import csv_text, markdown
from banditlib.paper.store import Cell, Config, Packed, key

PANELS = (0.01, 0.05, 0.1, 0.5)


@dataclass(frozen=True)
class Hypothesis:
    """What may have been different, and how it is played in the panel of ζ."""

    name: str
    policies: tuple[Config, ...]
    data: str = WEAK[0]
    rule: str = WEAK[1]
    sigma: float = 0.0
    axis: int = 0

    def cells(self, zeta: float, trials: Sequence[int], rounds: int, data: str) -> list[Config]:
        return [
            cell(zeta, _filled(policy, zeta), trial, rounds, data, self.rule, self.sigma)
            for trial in trials
            for policy in self.policies
        ]


def _filled(policy: Config, zeta: float) -> Config:
    """The policy with the panel's ζ where it asks for it."""
    return {k: zeta if v == "zeta" else v for k, v in policy.items()}


def _pair(beta: float, lam: float = 1.0) -> tuple[Config, ...]:
    return tuple({"name": "DSOFUL", "Gamma": g, "beta": beta, "lam": lam} for g in (0.0, 0.05))


def _sup(beta: float) -> tuple[Config, ...]:
    return ({"name": "SupLinUCB", "beta": beta, "lam": 1.0},)


HYPOTHESES = (
    *(Hypothesis(f"radius {r:g}", _pair(r)) for r in (0.1, 1.0, 3.0, 7.0, 10.0, 14.0, 22.6, 30.0)),
    Hypothesis(
        "radius 1 + ζ√k, as in the lemma", ({"name": "GrowingOFUL", "zeta": "zeta", "lam": 1.0},)
    ),
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

#: Pairs of hypothesis and ζ that are run eight times.
EIGHT_TIMES = (("radius 14", 0.01),)


def cells(scale: str) -> list[Config]:
    """The screen, then the further runs."""
    if scale == "smoke":
        some = [h for h in HYPOTHESES if h.name in ("radius 0.1", "radius 14")]
        return [c for h in some for c in h.cells(0.5, [0], 3000, "digits")]
    found = [c for h in HYPOTHESES for z in PANELS for c in h.cells(z, [0], ROUNDS, h.data)]
    more = [
        c
        for h in HYPOTHESES
        for z in PANELS
        if (h.name, z) in EIGHT_TIMES
        for c in h.cells(z, range(1, RUNS), ROUNDS, h.data)
    ]
    return found + more


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
        factor = max(self.highest / self.axis, self.axis / max(self.highest, 1e-9))
        return "fits" if factor <= verdict.FACTOR else "near" if factor <= verdict.ORDER else ""


def outcomes(
    found: Sequence[Cell | Packed], trials: Sequence[int] = range(RUNS)
) -> dict[tuple[str, float], Outcome]:
    """By hypothesis and ζ, as far as it was run; `trials` leaves out other runs."""
    by = {c.key: c.arrays["wrong"][0] for c in found}
    half = _half(found[0].config["checkpoints"])
    out: dict[tuple[str, float], Outcome] = {}
    for h in HYPOTHESES:
        for zeta in PANELS:
            wanted = [
                [key(config) for config in h.cells(zeta, [trial], ROUNDS, h.data)]
                for trial in trials
            ]
            runs = [[by[k] for k in keys] for keys in wanted if all(k in by for k in keys)]
            if runs:
                mistakes = np.array(runs, dtype=float).transpose(1, 0, 2)
                total = mistakes[..., -1]
                late = total - mistakes[..., half]
                out[h.name, zeta] = Outcome(total, late, AXES[zeta][h.axis])
    return out


def _half(marks: Sequence[int]) -> int:
    """Where among the checkpoints half of the rounds are over."""
    return marks.index(marks[-1] // 2)


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
        ]  # fmt: skip
    return {".csv": csv_text(head, rows).encode(), ".md": markdown(head, rows).encode()}


def _told(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    return f"{outcome.highest:,.0f} {outcome.word}".strip()


EXPERIMENTS = [
    FAMILY.experiment(
        "asirra-axes",
        "What reaches the axes of Figures 1b and 4",
        cells,
        render,
        needs="Asirra features",
        smoke=5,
        full=3600,
    )
]
