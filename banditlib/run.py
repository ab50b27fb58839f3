"""What came out of a simulation: decisions counted at checkpoints, and regret from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import IO, Any

import numpy as np

from banditlib import report, run_file
from banditlib.checks import integer
from banditlib.policies.base import Policy
from banditlib.report import Comparison
from banditlib.tables import Table


@dataclass(frozen=True, repr=False)
class Run:
    """Result of :func:`simulate`. Axes are (problems, policies, trials, checkpoints, ...), in the
    order given.

    Attributes
    ----------
    problems, policies : as given
    rounds : K
    trials : trial numbers, which key the seeds
    checkpoints : (C,) rounds at which the arrays below are taken; the last is K
    plays : (P, Q, T, C, N) plays by arm (a pool: by class)
    learnt : (P, Q, T, C, S) learnt rounds by level
    first_skip : (P, Q, T) first round that learnt nothing, 0 if none
    final_arm : (P, Q, T) arm of the last round (a pool: its class)
    summed : (P, Q, T, C) regret summed round by round, for problems whose arms change; else None
    arms, levels : (P, Q, T, K) every decision, with ``record=("arms", "levels")``; else None
    wall_time : seconds, all lanes together
    drift : largest error of an incremental value that a refresh found
    """

    problems: tuple[Any, ...]
    policies: tuple[Policy, ...]
    rounds: int
    trials: tuple[int, ...]
    seed: int
    checkpoints: np.ndarray
    plays: np.ndarray = field(repr=False)
    learnt: np.ndarray = field(repr=False)
    first_skip: np.ndarray = field(repr=False)
    final_arm: np.ndarray = field(repr=False)
    arms: np.ndarray | None = field(repr=False)
    levels: np.ndarray | None = field(repr=False)
    wall_time: float
    drift: float
    backend: str
    dtype: str
    summed: np.ndarray | None = field(default=None, repr=False)

    @cached_property
    def regret(self) -> np.ndarray:
        """(P, Q, T, C) cumulative regret: Σ_a plays × gap, summed on the host in order of arms; if
        the arms change, round by round against the best of each.
        """
        total = np.empty(self.plays.shape[:-1])
        for p, problem in enumerate(self.problems):
            if self.changing[p] and self.summed is not None:
                total[p] = self.summed[p]
                continue
            for q in range(len(self.policies)):
                terms = self.plays[p, q, ..., : len(problem.gaps)] * problem.gaps
                total[p, q] = np.add.accumulate(terms, axis=-1)[..., -1]
        return total

    @property
    def changing(self) -> tuple[bool, ...]:
        """(P,) whether a problem's arms change from round to round."""
        if self.summed is None:
            return (False,) * len(self.problems)
        return tuple(not np.isnan(regret).any() for regret in self.summed)

    @property
    def selections(self) -> np.ndarray:
        """(P, Q, T, C) number |C_k| of learnt rounds, all levels together."""
        return self.learnt.sum(axis=-1)

    def locked(self, last: int = 1000) -> np.ndarray:
        """(P, Q, T) whether the last rounds all went to one arm that is not optimal.

        "Last" starts at the latest checkpoint at or before round K - ``last`` (at 0 if there is
        none). Arms that change have no lock.
        """
        integer("last", last, 1)
        before = np.flatnonzero(self.checkpoints <= self.rounds - last)
        recent = self.plays[..., -1, :] - (self.plays[..., before[-1], :] if before.size else 0)
        wrong = np.zeros((len(self.problems), self.plays.shape[-1]), dtype=bool)
        for p, problem in enumerate(self.problems):
            if self.changing[p]:
                continue
            wrong[p, : len(problem.gaps)] = problem.gaps > 0
        span = recent.sum(axis=-1)
        return ((recent == span[..., None]) & wrong[:, None, None, :]).any(axis=-1)

    # ---- what it says

    def __repr__(self) -> str:
        P, Q, T = len(self.problems), len(self.policies), len(self.trials)
        return (
            f"Run of {_count(Q, 'policy', 'policies')} on {_count(P, 'problem', 'problems')}: "
            f"{_count(T, 'trial', 'trials')} of {self.rounds:,} rounds, "
            f"{_count(len(self.checkpoints), 'checkpoint', 'checkpoints')} "
            f"({self.backend}, {self.dtype}, {self.wall_time:.3g} s)"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.summary()._repr_html_()}"

    def summary(self, pooled: bool = False, last: int = 1000) -> Table:
        """Mean regret with its interval, median, share locked, selections: one row for each problem
        and policy.

        Parameters
        ----------
        pooled : one row for each policy over all problems, with intervals clustered by instance
        last : rounds that a run must have spent on one suboptimal arm to count as locked
        """
        return report.summary(self, pooled, last)

    def compare(self, a: Any, b: Any, at: int | None = None) -> Comparison:
        """Regret of policy ``a`` minus that of ``b``, paired by problem and trial: both met the
        same contexts and the same noise.

        The interval is clustered by instance where there are several, else over trials.

        Parameters
        ----------
        a, b : two policies of the run, or their numbers
        at : a checkpoint; by default the last round
        """
        return report.compare(self, a, b, at)

    def plot(self, problem: int = 0, ax: Any = None, band: tuple[float, float] = (0.1, 0.9)) -> Any:
        """Mean regret by round for every policy; returns the matplotlib axes.

        Parameters
        ----------
        problem : number of the problem
        ax : axes to draw on; by default new ones
        band : quantiles of the trials between which a band is shaded
        """
        return report.plot(self, problem, ax, band)

    def to_dataframe(self) -> Any:
        """Long form: one row for each problem, policy, trial and checkpoint; needs pandas."""
        return report.long_table(self)

    def save(self, file: str | Path | IO[bytes]) -> None:
        """Write the run to a file (npz, no pickle); :meth:`load` reads it."""
        run_file.save(self, file)

    @classmethod
    def load(cls, file: str | Path | IO[bytes]) -> Run:
        """Read a run that ``save`` wrote; its problems keep their label, instance and gaps."""
        return cls(**run_file.load(file))


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
