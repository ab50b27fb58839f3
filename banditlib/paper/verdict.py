"""The rule that turns numbers into a verdict, written before the runs that it judges.

Every printed number of a table is treated in the same way.  Our runs are cut into *replicates*:
each replicate repeats the paper's whole procedure once (one instance, eight trials, the choice of
(β, λ) included) and yields one value for the cell.  If the paper's procedure is ours, its printed
value :math:`p` is one more replicate, so that with the mean :math:`m` and the standard deviation
:math:`s` (``ddof=1``) of our :math:`n` replicates

.. math:: t = \\frac{p - m}{s\\sqrt{1 + 1/n}}

follows, nearly, Student's distribution with :math:`n-1` degrees of freedom.  :math:`|t|` is the
difference in combined standard errors, and the p-values are corrected over the whole table by
Holm's method.  The word for a cell is the first that applies:

``cannot be tested``
    there is nothing to compare (a value that depends on an unknown machine, fewer than two
    replicates).
``reproduced``
    the corrected p-value is at least :data:`ALPHA`, *and* the two values lie within a factor
    :data:`FACTOR` of each other or within the cell's floor (:data:`FLOOR` times the regret of
    playing the second-best arm throughout).
``reproduced in kind``
    the cell stands on the same side of the table's reference row as it does in the paper, and the
    95% interval of our paired difference to that row does not contain zero; for the reference
    row itself: within a factor :data:`ORDER`.
``not reproduced``
    otherwise.

The factor does most of the work: with eight runs in a replicate the spread is so wide that few
p-values are small. Student's distribution is a rough guide where a column is mostly zeros and a few
locked runs, so each cell also has two p-values that assume nothing. One is by rank: where the
printed value stands among our replicates. The other judges each replicate by all the others, as if
it were the printed value, and asks how many have a t as large. They are shown and decide nothing.

Values without a spread in the paper, measured on another machine (elapsed time, given as a ratio
to the reference row), have no p-value; the rest of the rule is the same.

A *sentence* about curves, where the paper prints no number, is judged on paired runs:
``reproduced`` if the 95% interval over runs lies wholly where the sentence says, ``not reproduced``
otherwise, ``cannot be tested`` with fewer than two runs. See :func:`smaller`, :func:`constant`,
:func:`growing` and :func:`magnitude`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditlib.estimates import over_values

ALPHA = 0.05
FACTOR = 1.5
ORDER = 3.0
FLOOR = 0.01
LATE = 0.1
"""Regret counts as constant if at most this share of it arises in the second half of the rounds,"""
FEW = 2.0
"""or at most this many units of it do."""

Word = Literal["reproduced", "reproduced in kind", "not reproduced", "cannot be tested"]
WORDS: tuple[Word, ...] = (
    "reproduced",
    "reproduced in kind",
    "not reproduced",
    "cannot be tested",
)


@dataclass(frozen=True)
class Printed:
    """One printed number and our replicates of it.

    Parameters
    ----------
    name
        Row and column.
    paper
        The printed value.
    replicates
        Our values, shape (n,).
    reference
        ``(paper's value, our replicates)`` of the table's reference row, in the same order of
        replicates so that differences are paired; ``None`` for the reference row itself.
    floor
        Differences up to this size count as agreement.
    timed
        A ratio of elapsed times: no p-value.
    at_least
        The paper prints a lower bound ("≥"): larger values agree with it.
    testable
        False where nothing can be compared.
    """

    name: str
    paper: float
    replicates: NDArray[np.float64]
    reference: tuple[float, NDArray[np.float64]] | None = None
    floor: float = 0.0
    timed: bool = False
    at_least: bool = False
    testable: bool = True


@dataclass(frozen=True)
class Judged:
    """What the rule says of one printed number; ``interval`` is the 95% interval of our mean."""

    name: str
    paper: float
    ours: float
    interval: tuple[float, float]
    difference: float
    p: float
    p_holm: float
    p_rank: float
    p_left_out: float
    verdict: Word


def judge(numbers: Sequence[Printed]) -> list[Judged]:
    """Judge a whole table: one :class:`Judged` per number, p-values corrected over all of them."""
    scores = [_score(printed) for printed in numbers]
    corrected = holm([p for _, p in scores])
    return [
        Judged(
            name=printed.name,
            paper=printed.paper,
            ours=float(np.mean(printed.replicates)) if len(printed.replicates) else math.nan,
            interval=mean_interval(printed.replicates),
            difference=t,
            p=p,
            p_holm=float(p_holm),
            p_rank=math.nan if math.isnan(p) else rank_p(printed.paper, printed.replicates),
            p_left_out=math.nan if math.isnan(p) else left_out_p(t, printed.replicates),
            verdict=_word(printed, float(p_holm)),
        )
        for printed, (t, p), p_holm in zip(numbers, scores, corrected, strict=True)
    ]


@dataclass(frozen=True)
class Sentence:
    """What the rule says of one sentence: the quantity looked at, its 95% interval, the word."""

    value: float
    interval: tuple[float, float]
    verdict: Word


def smaller(a: ArrayLike, b: ArrayLike) -> Sentence:
    """ "The regret a is smaller than b": differences a − b over the same runs, shape (n,)."""
    difference = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    return _sentence(difference, lambda low, high: high < 0)


def constant(total: ArrayLike, late: ArrayLike) -> Sentence:
    """ "The regret is constant": ``late`` is the part of ``total`` in the second half, (n,)."""
    allowed = max(FEW, LATE * float(np.mean(np.asarray(total, dtype=float))))
    return _sentence(np.asarray(late, dtype=float), lambda low, high: high <= allowed)


def growing(total: ArrayLike, late: ArrayLike) -> Sentence:
    """ "The regret keeps growing": more of it in the second half than :func:`constant` allows."""
    allowed = max(FEW, LATE * float(np.mean(np.asarray(total, dtype=float))))
    return _sentence(np.asarray(late, dtype=float), lambda low, high: low > allowed)


def magnitude(runs: ArrayLike, axis: float) -> Sentence:
    """ "About so much": the whole interval within a factor :data:`ORDER` of an axis's end."""
    return _sentence(
        np.asarray(runs, dtype=float),
        lambda low, high: _within(low, axis, ORDER) and _within(high, axis, ORDER),
    )


def _sentence(values: NDArray[np.float64], holds: Callable[[float, float], bool]) -> Sentence:
    low, high = mean_interval(values)
    if math.isnan(low):
        return Sentence(float(np.mean(values)), (low, high), "cannot be tested")
    word: Word = "reproduced" if holds(low, high) else "not reproduced"
    return Sentence(float(np.mean(values)), (low, high), word)


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down correction; NaN entries are left out of the count and stay NaN."""
    p = np.asarray(p, dtype=float)
    out = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (len(order) - rank) * p[index]))
        out[index] = running
    return out


def rank_p(value: float, replicates: ArrayLike) -> float:
    """Exact two-sided p-value that ``value`` is one more draw like ``replicates``, by its rank."""
    replicates = np.asarray(replicates, dtype=float)
    below, above = np.count_nonzero(replicates <= value), np.count_nonzero(replicates >= value)
    return min(1.0, 2 * (1 + int(min(below, above))) / (len(replicates) + 1))


def left_out(values: ArrayLike) -> NDArray[np.float64]:
    """t of each replicate against all the others, along the first axis: shape as given."""
    values = np.asarray(values, dtype=float)
    n = len(values)
    mean = (values.sum(axis=0) - values) / (n - 1)
    squares = (values**2).sum(axis=0) - values**2
    variance = np.maximum(squares - (n - 1) * mean**2, 0.0) / (n - 2)
    gap, spread = values - mean, np.sqrt(variance * (1 + 1 / (n - 1)))
    small = spread <= 1e-9 * (np.abs(values).max(initial=0.0) + 1e-300)  # all others are equal
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(small, np.copysign(np.inf, gap), gap / spread)
    return np.where(small & (np.abs(gap) <= 1e-9 * np.abs(values)), 0.0, t)


def left_out_p(t: float, replicates: ArrayLike) -> float:
    """Share of replicates, the printed value counted in, whose t against the others is no smaller
    in size than its ``t``.
    """
    if len(np.asarray(replicates)) < 3:  # the others have no spread
        return math.nan
    ours = np.abs(left_out(replicates))
    return (1 + int(np.count_nonzero(ours >= abs(t)))) / (len(ours) + 1)


def mean_interval(values: ArrayLike) -> tuple[float, float]:
    """Student's 95% interval of the mean of ``values`` (n,); NaN with fewer than two."""
    found = over_values(np.asarray(values, dtype=float), "values")
    return found.low, found.high


def _score(printed: Printed) -> tuple[float, float]:
    """Difference in combined standard errors and its p-value (NaN where there is none)."""
    n = len(printed.replicates)
    if not printed.testable or printed.timed or n < 2:
        return math.nan, math.nan
    gap = printed.paper - float(np.mean(printed.replicates))
    spread = float(np.std(printed.replicates, ddof=1)) * math.sqrt(1 + 1 / n)
    if spread == 0:
        return (0.0, 1.0) if gap == 0 else (math.copysign(math.inf, gap), 0.0)
    return gap / spread, 2 * _t_tail(abs(gap / spread), n - 1)


def _word(printed: Printed, p_holm: float) -> Word:
    if not printed.testable or len(printed.replicates) < 2:
        return "cannot be tested"
    ours = float(np.mean(printed.replicates))
    credible = printed.timed or p_holm >= ALPHA
    if credible and _close(printed, ours):
        return "reproduced"
    return "reproduced in kind" if _in_kind(printed, ours) else "not reproduced"


def _close(printed: Printed, ours: float) -> bool:
    if printed.at_least:
        return ours >= printed.paper
    return abs(ours - printed.paper) <= printed.floor or _within(ours, printed.paper, FACTOR)


def _within(a: float, b: float, factor: float) -> bool:
    return a > 0 and b > 0 and max(a / b, b / a) <= factor


def _in_kind(printed: Printed, ours: float) -> bool:
    if printed.reference is None:
        return abs(ours - printed.paper) <= printed.floor or _within(ours, printed.paper, ORDER)
    paper_reference, our_reference = printed.reference
    side = np.sign(printed.paper - paper_reference)
    low, high = mean_interval(np.asarray(printed.replicates) - np.asarray(our_reference))
    return bool(low > 0 if side > 0 else high < 0 if side < 0 else low <= 0 <= high)


def _t_tail(t: float, df: int) -> float:
    """P(T > t) for Student's t: what is behind scipy.stats.t, without its long import."""
    from scipy.special import stdtr

    return float(stdtr(df, -t))
