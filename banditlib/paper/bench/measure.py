"""Two ways of doing the same work, timed in alternation: ratios of neighbouring slices."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Work = Callable[[], float]
"""Does one slice of work and returns how many units of it were done."""

clock = time.process_time
"""Seconds are seconds of the processor: on one thread of a free machine the same as by the wall."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    key : letter of the row
    title : what is measured
    unit : of what the rates count, per second
    target : least ratio asked for
    measure : ``measure(seconds) -> dict`` with at least ratio, p10, p90 (see :func:`alternate`)
    """

    key: str
    title: str
    unit: str
    target: float
    measure: Callable[[float], dict[str, Any]]


def rate(work: Work) -> float:
    """Units per second of one slice."""
    start = clock()
    units = work()
    return units / (clock() - start)


def alternate(contender: Work, baseline: Work, seconds: float, least: int = 5) -> dict[str, Any]:
    """Alternate slices for about ``seconds``: rates, and the ratio of neighbours."""
    contender(), baseline()  # warm up
    pairs: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    while len(pairs) < least or time.perf_counter() < end:
        pairs.append((rate(contender), rate(baseline)))
    fast, slow = np.array(pairs).T
    return summary(fast / slow) | {
        "contender": float(np.median(fast)),
        "baseline": float(np.median(slow)),
        "slices": len(pairs),
    }


def summary(ratios: np.ndarray) -> dict[str, Any]:
    """Median, 10th and 90th percentile."""
    p10, ratio, p90 = np.percentile(ratios, [10, 50, 90])
    return {"ratio": float(ratio), "p10": float(p10), "p90": float(p90)}
