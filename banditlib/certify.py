r"""Decisions on intervals: what a policy does for *every* mean and width within given bounds.

A comparison counts as decided only if the intervals are apart by ``GUARD``, a hundred times the
tolerance for ties, so a decided round is decided alike for every point of the intervals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray

GUARD = 1e-7
"""Intervals closer than this are left to an exact evaluation; the tolerance for ties is 1e-9."""


class Enclosure(NamedTuple):
    """Lower and upper ends for means and widths, each ``(rounds, levels, arms)``."""

    mean_low: Array
    mean_high: Array
    width_low: Array
    width_high: Array


class Verdict(NamedTuple):
    """Decisions on an enclosure, and what keeps them from being proved.

    ``doubt`` is 0 where they are proved, else the level to refine; ``arms`` marks the arms to
    refine there, ``score`` the rounds in which means matter and not only widths.
    """

    arm: Array
    level: Array
    doubt: Array
    arms: Array
    score: Array


def _separated(low: Array, high: Array) -> tuple[Array, Array]:
    """Index with the largest lower end, and whether it beats every other upper end by the guard."""
    best = low.argmax(-1)
    rows = np.arange(best.size)
    rest = high.copy()
    rest[rows, best] = -np.inf
    rival = rest.max(-1)
    lead = low[rows, best]
    return best, lead - rival > GUARD * (1.0 + np.abs(lead))


def certify_ds_oful(k: Array, box: Enclosure, dim: int, Gamma: float, beta: float) -> Verdict:
    r"""DS-OFUL on intervals: :math:`\arg\max\,m+\beta w` and the test :math:`w\ge\Gamma`."""
    w_low, w_high = box.width_low[:, 0], box.width_high[:, 0]
    arm, sure = _separated(box.mean_low[:, 0] + beta * w_low, box.mean_high[:, 0] + beta * w_high)
    rows = np.arange(arm.size)
    arms = np.repeat(~sure[:, None], w_low.shape[1], axis=1)
    selected = w_low[rows, arm] >= Gamma * (1.0 + GUARD)
    clear = np.ones(arm.size, bool)
    if Gamma > 0.0:
        clear = selected | (w_high[rows, arm] < Gamma * (1.0 - GUARD))
        arms[rows, arm] |= ~clear
    else:
        selected[:] = True
    doubt = np.where(sure & clear, 0, 1)
    return Verdict(arm, selected.astype(np.int64), doubt, arms, ~sure)


def certify_sup_lin_ucb(k: Array, box: Enclosure, dim: int, radius: Array) -> Verdict:
    """SupLinUCB on intervals, level by level; ``radius[l-1]`` is the level's confidence radius."""
    rounds, levels, arms = box.mean_low.shape
    arm = np.zeros(rounds, np.int64)
    level = np.zeros(rounds, np.int64)
    doubt = np.zeros(rounds, np.int64)
    left = np.arange(rounds)  # rounds not yet decided
    active = np.ones((rounds, arms), bool)
    score = np.zeros(rounds, bool)
    for i in range(levels):
        if left.size == 0:
            break
        l, t, beta = i + 1, 2.0 ** -(i + 1), radius[i]
        on = active[left]
        w_low = np.where(on, box.width_low[left, i], -np.inf)
        w_high = np.where(on, box.width_high[left, i], -np.inf)
        s_low = np.where(on, box.mean_low[left, i] + beta * box.width_low[left, i], -np.inf)
        s_high = np.where(on, box.mean_high[left, i] + beta * box.width_high[left, i], -np.inf)
        wide = w_low.max(-1) >= t * (1.0 + GUARD)
        unclear = ~wide & (w_high.max(-1) >= t * (1.0 - GUARD))
        widest, sure = _separated(w_low, w_high)
        unclear |= wide & ~sure
        arm[left[wide]] = widest[wide]
        level[left[wide]] = l
        stop = ~wide & (k[left] <= 4**l * dim)
        best, sure = _separated(s_low, s_high)
        arm[left[stop]] = best[stop]
        keep, fuzzy = _survivors(on, s_low, s_high, 2.0 * beta * t)
        go_on = ~wide & ~stop
        by_score = ~unclear & ((stop & ~sure) | (go_on & fuzzy))
        score[left[by_score]] = True
        unclear |= by_score
        doubt[left[unclear]] = l
        active[left[~unclear]] = keep[~unclear]
        left = left[go_on & ~unclear]
    doubt[left] = levels
    return Verdict(arm, level, doubt, active, score)


def _survivors(on: Array, low: Array, high: Array, t: float) -> tuple[Array, Array]:
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
