r"""The answer in one look: for each policy, at which ζ√d/Δ misspecification is harmless, costly or
fatal, on fixed arms and on a contextual problem.

*Harmless*: the regret is at most half as much again as without misspecification. *Fatal*: it is
more than that, and more than the regret of UCB, which ignores the features. *Costly*: between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from banditlib.paper.experiments.phase_map import cells as pm
from banditlib.paper.experiments.separation import cells as lessons
from banditlib.paper.store import Packed

HARMLESS = 1.5  # times the regret without misspecification
#: Darker than elsewhere in the book: white words stand on them.
COLOURS = {"harmless": "#1f7547", "costly": "#85600f", "fatal": "#b8344a", "neither": "#626972"}
TITLES = {"DS-OFUL 1": "DS-OFUL"}


@dataclass(frozen=True)
class Line:
    """One policy along the ratios: its regret, that without misspecification, and UCB's."""

    policy: str
    ratios: tuple[float, ...]
    regret: tuple[float, ...]
    calm: tuple[float, ...]
    ucb: tuple[float, ...]

    @property
    def words(self) -> list[str]:
        """Harmless, costly or fatal, by ratio."""
        return [verdict(r, c, u) for r, c, u in zip(self.regret, self.calm, self.ucb, strict=True)]

    def onset(self, word: str) -> float:
        """The first ratio from which on the word holds to the end; infinite if there is none."""
        found = math.inf
        for ratio, w in zip(reversed(self.ratios), reversed(self.words), strict=True):
            if w != word:
                break
            found = ratio
        return found


def verdict(regret: float, calm: float, ucb: float) -> str:
    """One word for a regret, given that without misspecification and that of UCB."""
    if regret <= HARMLESS * calm:
        return "harmless"
    return "fatal" if regret > ucb else "costly"


def fixed_lines(found: Sequence[Packed], d: int, kind: str, arms: int = pm.ARMS) -> list[Line]:
    """The lines of the shown policies on fixed arms at one dimension (Δ = 0.2)."""
    rows = [r for r in pm.rows(found, arms) if r["d"] == d and r["Delta"] == pm.DELTA]
    at = {(r["policy"], r["ratio"], r["kind"]): r["regret"] for r in rows}
    ratios = tuple(sorted({r["ratio"] for r in rows if r["kind"] == kind and r["ratio"]}))
    ucb = tuple(at["UCB", q, kind] for q in ratios)
    return [
        Line(
            policy, ratios, tuple(at[policy, q, kind] for q in ratios),
            (at[policy, 0.0, pm.KINDS[0]],) * len(ratios), ucb,
        )
        for policy in pm.SHOWN
    ]  # fmt: skip


def lesson_lines(found: Sequence[Packed]) -> list[Line]:
    """The lines of the shown policies on lessons and tests."""
    rows = {(r["policy"], r["ratio"]): r for r in lessons.rows(found)}
    ratios = tuple(sorted({q for _, q in rows}))
    ucb = tuple(rows["UCB", q]["regret"] for q in ratios)
    return [
        Line(
            policy, ratios, tuple(rows[policy, q]["regret"] for q in ratios),
            tuple(rows[policy, q]["twin"] for q in ratios), ucb,
        )
        for policy in pm.SHOWN
    ]  # fmt: skip


def _edges(ratios: Sequence[float]) -> np.ndarray:
    logs = np.log(ratios)
    middle = (logs[:-1] + logs[1:]) / 2
    return np.exp([2 * logs[0] - middle[0], *middle, 2 * logs[-1] - middle[-1]])


def _bar(ax: Axes, y: float, left: float, right: float, colour: str, text: str) -> None:
    corner, size = (left, y - 0.36), (right - left, 0.72)
    ax.add_patch(Rectangle(corner, *size, color=colour, lw=0, label=text))
    middle = math.sqrt(left * right)
    ax.text(middle, y, text, ha="center", va="center", fontsize=8, color="white")


def _panel(ax: Axes, lines: Sequence[Line], proved: Sequence[tuple[float, str, str]]) -> None:
    edges = _edges(lines[0].ratios)
    ax.set(xscale="log", xlim=(edges[0], edges[-1]), ylim=(-0.6, len(lines) + 0.6))
    for y, line in zip(range(len(lines), 0, -1), lines, strict=True):
        if line.policy == "UCB":
            _bar(ax, y, edges[0], edges[-1], COLOURS["neither"], "the yardstick")
            continue
        for word, group in groupby(enumerate(line.words), key=lambda pair: pair[1]):
            where = [i for i, _ in group]
            _bar(ax, y, edges[where[0]], edges[where[-1] + 1], COLOURS[word], word)
    left = edges[0]
    for right, colour, text in proved:
        right = min(max(right, edges[0]), edges[-1])
        if right > left:
            _bar(ax, 0, left, right, colour, text)
        left = max(left, right)
    ax.set_yticks(range(len(lines), -1, -1))
    ax.set_yticklabels([*(TITLES.get(line.policy, line.policy) for line in lines), "proved"])
    ticks = [t for t in (1 / 32, 1 / 8, 0.5, 2, 8) if edges[0] <= t <= edges[-1]]
    ax.set_xticks(ticks, [{1 / 32: "1/32", 1 / 8: "⅛", 0.5: "½"}.get(t, f"{t:g}") for t in ticks])
    ax.minorticks_off()
    ax.grid(False)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)


def draw_answer(
    panels: Sequence[tuple[str, Sequence[Line]]], upper: float, lower: Sequence[float]
) -> Figure:
    """The bars of every panel, and under them what is proved: constant regret of DS-OFUL up to the
    ratio `upper`, and by panel the ratio `lower` from which no algorithm gains by the features.
    """
    figure, axes = plt.subplots(1, len(panels), figsize=(8.6, 3.3), sharey=True)
    for ax, (title, lines), end in zip(axes, panels, lower, strict=True):
        known = (upper, COLOURS["harmless"], "harmless")
        unknown = (end, COLOURS["neither"], "unknown")
        _panel(ax, lines, [known, unknown, (math.inf, COLOURS["fatal"], "fatal to all")])
        ax.set_title(title, fontsize=9.5)
        ax.set_xlabel(r"$\zeta\sqrt{d}/\Delta$")
    marks = [Patch(color=COLOURS[word], label=word) for word in ("harmless", "costly", "fatal")]
    figure.legend(handles=marks, loc="outside lower center", ncols=3)
    figure.draw_without_rendering()
    for ax in axes:
        for bar, word in list(zip(ax.patches, ax.texts, strict=True)):
            if word.get_window_extent().width > 0.94 * bar.get_window_extent().width:
                word.remove()  # the legend has it
    return figure
