r"""Decisions on intervals: what a policy does for *every* mean and width within given bounds.

An engine that wants to prove decisions asks the policy's ``certify``, which stands beside its
``choose``.

A comparison counts as decided only if the intervals are apart by ``GUARD``, a hundred times the
tolerance for ties, so a decided round is decided alike for every point of the intervals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from banditlib.view import TAU

Array = np.ndarray

GUARD = 100 * TAU
"""Intervals closer than this are left to an exact evaluation; a hundred times the tolerance."""


class Enclosure(NamedTuple):
    """Lower and upper ends for means and widths, each ``(rounds, levels, arms)``."""

    mean_low: Array
    mean_high: Array
    width_low: Array
    width_high: Array


class Certificate(NamedTuple):
    """Decisions on an enclosure, and what keeps them from being proved.

    ``doubt`` is 0 where they are proved, else the level to refine; ``unclear`` marks the arms to
    refine there, ``score`` the rounds in which means matter and not only widths.
    """

    arm: Array
    level: Array
    doubt: Array
    unclear: Array
    score: Array


def separated(low: Array, high: Array) -> tuple[Array, Array]:
    """Index with the largest lower end, and whether it beats every other upper end by the guard."""
    best = low.argmax(-1)
    rows = np.arange(best.size)
    rest = high.copy()
    rest[rows, best] = -np.inf
    rival = rest.max(-1)
    lead = low[rows, best]
    return best, lead - rival > GUARD * (1.0 + np.abs(lead))


def survivors(on: Array, low: Array, high: Array, t: float) -> tuple[Array, Array]:
    """Arms within ``t`` of the best score, and whether that is unclear for some arm."""
    keep = on.copy()
    fuzzy = np.zeros(len(on), bool)
    for j in range(on.shape[1]):
        others = [i for i in range(on.shape[1]) if i != j]
        if not others:
            continue
        lead_high = high[:, others].max(-1)
        lead_low = low[:, others].max(-1)
        with np.errstate(invalid="ignore"):
            stays = ~(lead_high - low[:, j] > t - GUARD)
            goes = lead_low - high[:, j] > t + GUARD
        keep[:, j] &= ~goes
        fuzzy |= on[:, j] & ~stays & ~goes
    return keep, fuzzy
