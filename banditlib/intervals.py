r"""Decisions on intervals: what a policy does for *every* mean and width within given bounds.

An engine that wants to prove decisions asks the policy's ``certify``, which stands beside its
``choose``.

A comparison counts as decided only if the intervals are apart by ``GUARD``, a hundred times the
tolerance for ties, so a decided round is decided alike for every point of the intervals.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np

from banditlib.view import TAU

Array = np.ndarray

GUARD = 100 * TAU
"""Intervals closer than this are left to an exact evaluation; a hundred times the tolerance."""


class Enclosure(NamedTuple):
    """Lower and upper ends for means and widths, each ``(levels, arms, rounds)``.

    Rounds come last: there are thousands of them and few arms, so that what is done to each arm is
    done to whole rows.
    """

    mean_low: Array
    mean_high: Array
    width_low: Array
    width_high: Array


class Certificate(NamedTuple):
    """Decisions on an enclosure, and what keeps them from being proved.

    ``doubt`` is 0 where they are proved, else the level to refine; ``unclear`` (arms, rounds) marks
    the arms to refine there, ``score`` the rounds in which means matter and not only widths.
    """

    arm: Array
    level: Array
    doubt: Array
    unclear: Array
    score: Array


def separated(low: Array, high: Array) -> tuple[Array, Array]:
    """Arm with the largest lower end, and whether it beats every other upper end by the guard.

    ``low`` and ``high`` are (arms, rounds).
    """
    best = np.zeros(low.shape[1], np.int64)
    lead, top, rival = low[0], high[0], np.full(low.shape[1], -np.inf)
    for j in range(1, len(low)):
        better = low[j] > lead
        rival = np.maximum(rival, np.where(better, top, high[j]))
        lead, top = np.maximum(lead, low[j]), np.where(better, high[j], top)
        best[better] = j
    return best, lead - rival > GUARD * (1.0 + np.abs(lead))


def survivors(on: Array, low: Array, high: Array, t: float) -> tuple[Array, Array]:
    """Arms within ``t`` of the best score, and whether that is unclear for some arm.

    All are (arms, rounds); ``low`` and ``high`` are -inf for arms that are not ``on``.
    """
    keep = on.copy()
    fuzzy = np.zeros(on.shape[1], bool)
    if len(on) == 1:
        return keep, fuzzy
    for j in range(len(on)):
        others = [i for i in range(len(on)) if i != j]
        lead_low, lead_high = (reduce(np.maximum, (end[i] for i in others)) for end in (low, high))
        with np.errstate(invalid="ignore"):
            stays = ~(lead_high - low[j] > t - GUARD)
            goes = lead_low - high[j] > t + GUARD
        keep[j] &= ~goes
        fuzzy |= on[j] & ~stays & ~goes
    return keep, fuzzy
