"""What a policy may read: the ridge posterior on the points it can play, and the tolerance τ.

Ties and thresholds share one tolerance, ``TAU``, here and nowhere else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from banditlib.backend import Array, first_true, namespace_of, pick

TAU = 1e-9
"""One tolerance: scores tie within TAU (1 + |best|), thresholds within a factor 1 ± TAU."""


class View(NamedTuple):
    """Ridge posterior on M points; leading axes are lanes or future rounds.

    Attributes
    ----------
    mean, var : (..., M), or (..., S, M) for policies with S levels
        :math:`x^\\top\\theta` and the squared width :math:`x^\\top U^{-1}x`. None for policies
        without a ridge.
    dim : int
        Dimension d of the points.
    counts, totals : (..., M)
        Plays and reward sums by point, only if the policy asks for them.
    cov : (..., M, M)
        Covariances :math:`x^\\top U^{-1}x'`, only if the policy asks for them. On changing
        decision sets a policy that asks for counts too gets ``counts``, ``totals`` (H,) and
        ``cov`` (M, H) of the H different points that were learnt.
    flag : (...)
        What the policy's ``judge`` answered after its opening.
    """

    mean: Array
    var: Array
    dim: int
    counts: Array = None
    totals: Array = None
    cov: Array = None
    flag: Array = None


def first_best(score: Array) -> Array:
    """Lowest index whose score is at least best - TAU (1 + |best|), along the last axis."""
    if type(score) is np.ndarray and score.ndim == 1:  # one live decision: as few calls as can be
        best = score[score.argmax()]
        return (score >= best - TAU * (1.0 + abs(best))).argmax()
    xp = namespace_of(score)
    best = pick(score, xp.argmax(score, axis=-1), xp)
    floor = best - TAU * (1.0 + xp.abs(best))
    return first_true(score >= floor[..., None], xp)


def at_least(width: Array, threshold: Any) -> Array:
    """The test ``width >= threshold``, with TAU: width >= threshold (1 - TAU)."""
    return width >= threshold * (1.0 - TAU)


def within(distance: Array, limit: Any) -> Array:
    """The test ``distance <= limit``, with TAU: distance <= limit (1 + TAU)."""
    return distance <= limit * (1.0 + TAU)


def column(parameter: Any) -> Any:
    """A policy's parameter, a number or one per lane (...), made to broadcast against (..., M)."""
    return parameter if isinstance(parameter, (int, float)) else parameter[..., None]
