"""What a run says: a summary, paired differences, a plot, a long table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from banditlib.checks import below, integer, require
from banditlib.estimates import Estimate, over_clusters, over_values
from banditlib.policies.base import Policy
from banditlib.tables import Table, dataframe

MEAN = "Mean regret with a 95% interval"

Run = Any  # banditlib.run.Run, which imports this module


def summary(run: Run, pooled: bool = False, last: int = 1000) -> Table:
    """One row for each problem and policy, or with ``pooled`` one for each policy."""
    last = min(integer("last", last, 1), run.rounds)
    locked = run.locked(last)
    names = legend(run.policies)
    rows: list[tuple[Any, ...]] = []
    groups = [None] if pooled else list(range(len(run.problems)))
    for p in groups:
        for q, name in enumerate(names):
            at = (slice(None) if p is None else p, q)
            regret = run.regret[(*at, Ellipsis, -1)]
            found = _pooled(run, regret) if p is None else over_values(regret, "trials")
            rows.append(
                (
                    "all" if p is None else run.problems[p].label,
                    name,
                    found.mean,
                    found.low,
                    found.high,
                    float(np.median(regret)),
                    float(np.mean(locked[at])),
                    float(np.mean(run.selections[(*at, Ellipsis, -1)])),
                )
            )
    head = ("problem", "policy", "regret", "low", "high", "median", "locked", "selections")
    note = (
        f"{MEAN} ({found.over}) and median after {run.rounds:,} rounds; share of runs locked on a "
        f"suboptimal arm for the last {last:,} rounds; mean number of learnt rounds."
    )
    return Table(head, tuple(rows), note)


def _pooled(run: Run, values: np.ndarray) -> Estimate:
    """Mean of values (P, T), with an interval clustered by instance if there are several."""
    instance = np.array([problem.instance for problem in run.problems])
    if len(np.unique(instance)) == 1:
        return over_values(values.mean(axis=0), "trials")
    flat = np.repeat(instance, values.shape[1])
    return over_clusters(values.reshape(-1), flat, "instances")


@dataclass(frozen=True)
class Comparison:
    """Regret of one policy minus that of another, paired on the same contexts and noise.

    Attributes
    ----------
    first, second : the policies
    round : the round at which regret was taken
    difference : mean of first - second, with its interval
    differences : (P, T) first - second, for each problem and trial
    first_better, second_better : share of the pairs in which that policy lost less
    """

    first: Policy
    second: Policy
    round: int
    difference: Estimate
    differences: np.ndarray
    first_better: float
    second_better: float

    def __repr__(self) -> str:
        d, ties = self.difference, 1.0 - self.first_better - self.second_better
        return (
            f"regret of {self.first!r} minus regret of {self.second!r} after {self.round:,} "
            f"rounds: {d} (95% interval, {d.over}); lower in {self.first_better:.0%}, equal in "
            f"{ties:.0%}, higher in {self.second_better:.0%} of {self.differences.size} pairs"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"


def compare(run: Run, a: Any, b: Any, at: int | None = None) -> Comparison:
    """Paired differences of policy a and policy b, given as numbers or as policies of the run."""
    first, second = _which(run, "a", a), _which(run, "b", b)
    column = len(run.checkpoints) - 1
    if at is not None:
        found = np.flatnonzero(run.checkpoints == integer("at", at, 1))
        require(found.size, "at", "one of the run's checkpoints", at)
        column = int(found[0])
    difference = run.regret[:, first, :, column] - run.regret[:, second, :, column]
    return Comparison(
        run.policies[first],
        run.policies[second],
        int(run.checkpoints[column]),
        _pooled(run, difference),
        difference,
        float(np.mean(difference < 0)),
        float(np.mean(difference > 0)),
    )


def _which(run: Run, name: str, policy: Any) -> int:
    if isinstance(policy, Policy):
        if policy not in run.policies:
            raise ValueError(f"{name}: {policy!r} is not among the run's policies")
        return run.policies.index(policy)
    return below(name, policy, len(run.policies), "a policy number")


def plot(run: Run, problem: int = 0, ax: Any = None, band: tuple[float, float] = (0.1, 0.9)) -> Any:
    """Mean regret by round with a band between two quantiles of the trials; returns the axes."""
    number = below("problem", problem, len(run.problems))
    quantiles = len(band) == 2 and 0 <= band[0] <= band[1] <= 1
    require(quantiles, "band", "two quantiles (low, high) in [0, 1]", band)
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("plot: needs matplotlib (pip install matplotlib)") from error
        ax = plt.subplots()[1]
    k = np.concatenate([[0], run.checkpoints])
    for q, name in enumerate(legend(run.policies)):
        regret = np.pad(run.regret[number, q], ((0, 0), (1, 0)))
        (line,) = ax.plot(k, regret.mean(axis=0), label=name)
        low, high = np.quantile(regret, band, axis=0)
        ax.fill_between(k, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    trials = len(run.trials)
    shares = f"{100 * band[0]:g}% to {100 * band[1]:g}%"
    ax.set(xlabel="round", ylabel="regret", title=run.problems[number].label)
    ax.legend(title=f"mean of {trials} trials, band {shares}" if trials > 1 else None)
    return ax


def legend(policies: Sequence[Policy]) -> list[str]:
    """A short name for each policy: its kind, and those parameters in which its kind varies."""
    kinds = [repr(policy).partition("(")[0] for policy in policies]
    names = []
    for policy, kind in zip(policies, kinds, strict=True):
        params = [p.params for p, other in zip(policies, kinds, strict=True) if other == kind]
        varying = [
            f"{name}={_short(value)}"
            for name, value in policy.params.items()
            if any(not _same(value, other.get(name)) for other in params)
        ]
        names.append(" ".join([kind, *varying]))
    return names


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except ValueError:
        return a is b


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def long_table(run: Run) -> Any:
    """A DataFrame with one row for each problem, policy, trial and checkpoint."""
    P, Q, T, C = run.regret.shape
    index = np.indices((P, Q, T, C)).reshape(4, -1)
    names = legend(run.policies)
    columns: dict[str, Any] = {
        "problem": np.array([p.label for p in run.problems], dtype=object)[index[0]],
        "instance": np.array([p.instance for p in run.problems])[index[0]],
        "policy": np.array(names, dtype=object)[index[1]],
        "trial": np.array(run.trials)[index[2]],
        "round": run.checkpoints[index[3]],
        "regret": run.regret.reshape(-1),
        "selections": run.selections.reshape(-1),
    }
    every = sorted({name for policy in run.policies for name in policy.params})
    for name in every:
        if name not in columns:
            values = [_number(policy.params.get(name, math.nan)) for policy in run.policies]
            columns[name] = np.array(values, dtype=object)[index[1]]
    return dataframe(columns).infer_objects()


def _number(value: Any) -> Any:
    return value if isinstance(value, (int, float, str)) else repr(value)
