"""Figures of the phase map: regret over ζ√d/Δ and d with the theorems' thresholds, and what
follows from it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from banditlib import theory
from banditlib.paper.experiments.base import Rendered
from banditlib.paper.experiments.phase_map.cells import ARMS, DELTA, KINDS, ROUNDS, SIGMA
from banditlib.paper.experiments.phase_map.cells import rows as summaries
from banditlib.paper.render import COLORS, figure_files, records_csv
from banditlib.paper.store import Cell

Row = dict[str, Any]
POLICIES = {
    "OFUL": "OFUL",
    "DS-OFUL 1": r"DS-OFUL, $\Gamma=\Delta/\sqrt{d}$",
    "SupLinUCB": "SupLinUCB",
    "UCB": "UCB, without features",
}
ZERO = 0.13  # where ζ = 0 is drawn on the logarithmic axis


@functools.cache
def thresholds(d: int, Delta: float, arms: int = ARMS, R: float = SIGMA) -> dict[str, float]:
    r"""Where the theorems' conditions lie on the axis :math:`\zeta\sqrt d/\Delta` (L = B =
    1, δ = 0.01).

    The theorems on upper bounds speak left of theirs, the lower bound right of its own.
    """
    scale = math.sqrt(d) / Delta
    return {
        "DS-OFUL, printed": theory.known_gap(d, Delta, R=R).zeta_max * scale,
        "DS-OFUL, repaired": theory.known_gap(d, Delta, R=R, repaired=True).zeta_max * scale,
        "DS-OFUL, tightest": theory.zeta_max_tight(d, Delta, R=R)[0] * scale,
        "SupLinUCB, printed": theory.unknown_gap(d, Delta, R=R).zeta_max * scale,
        "SupLinUCB, repaired": theory.unknown_gap(d, Delta, R=R, repaired=True).zeta_max * scale,
        "lower bound, scaled": theory.lower_zeta_scaled(d, Delta, arms) * scale,
        "lower bound, repaired": theory.lower_zeta(d, Delta, arms, repaired=True) * scale,
        "lower bound, printed": theory.lower_zeta(d, Delta, arms) * scale,
    }


def grid(
    rows: Iterable[Row], value: str, **fixed: Any
) -> tuple[list[float], list[int], NDArray[np.float64]]:
    """Ratios, dimensions and the value on them (NaN where nothing was run), for rows with
    the given fields.
    """
    rows = list(rows)
    kept = [r for r in rows if all(r[k] == v for k, v in fixed.items())]
    ratios, dims = sorted({r["ratio"] for r in kept}), sorted({r["d"] for r in rows})
    out = np.full((len(dims), len(ratios)), np.nan)
    for r in kept:
        out[dims.index(r["d"]), ratios.index(r["ratio"])] = r[value]
    return ratios, dims, out


def edges(ratios: Sequence[float]) -> NDArray[np.float64]:
    """Borders of the columns on a logarithmic axis, for positive ratios."""
    logs = np.log(ratios)
    if len(logs) == 1:
        return np.exp(logs[0] + np.array([-0.2, 0.2]))
    middle = (logs[:-1] + logs[1:]) / 2
    return np.exp(np.concatenate([[2 * logs[0] - middle[0]], middle, [2 * logs[-1] - middle[-1]]]))


def both_kinds(rows: Sequence[Row]) -> list[Row]:
    """Rows at ζ = 0 counted for either kind of misspecification."""
    return [*rows, *({**r, "kind": KINDS[1]} for r in rows if r["ratio"] == 0)]


def panel(ax: Axes, rows: Sequence[Row], value: str, policy: str, kind: str, **style: Any) -> Any:
    """One map: columns ζ√d/Δ on a logarithmic axis with ζ = 0 at its left end, rows d."""
    fixed = {"policy": policy, "kind": kind, "Delta": DELTA}
    ratios, dims, z = grid(both_kinds(rows), value, **fixed)
    y = np.arange(len(dims) + 1) - 0.5
    positive = [r for r in ratios if r > 0]
    ax.set(xscale="log", xlim=(ZERO / 1.25, 22), yticks=range(len(dims)), yticklabels=dims)
    ax.set_xticks([ZERO, 0.5, 2, 8], ["0", "½", "2", "8"])
    ax.set_ylim(-0.5, len(dims) - 0.5)
    ax.minorticks_off()
    ax.grid(False)
    if ratios and ratios[0] == 0:
        ax.pcolormesh([ZERO / 1.25, ZERO * 1.25], y, z[:, :1], **style)
    if not positive:
        return None
    mesh = ax.pcolormesh(edges(positive), y, z[:, len(ratios) - len(positive) :], **style)
    return mesh


def draw_thresholds(ax: Axes, dims: Sequence[int], which: dict[str, tuple[str, str]]) -> None:
    """Curves of the thresholds over the rows of a map; `which` gives colour and line style
    by name.
    """
    y = np.arange(len(dims))
    for name, (colour, line) in which.items():
        x = [thresholds(d, DELTA)[name] for d in dims]
        ax.plot(x, y, line, color=colour, label=name, linewidth=1.5)


LINES = {
    "lower bound, scaled": (COLORS["bad"], "-"),
    "lower bound, repaired": (COLORS["bad"], ":"),
}


def draw_map(rows: Sequence[Row]) -> Figure:
    """Final regret in units of KΔ, for four policies and two kinds of misspecification, with the
    turns and the lower bounds.
    """
    rounds = max((r["rounds"] for r in rows if "rounds" in r), default=ROUNDS)
    rows = [{**r, "scaled": max(r["regret"], 0.1) / (rounds * r["Delta"])} for r in rows]
    figure, axes = plt.subplots(2, len(POLICIES), figsize=(8.8, 4.8), sharex=True)
    style = {"norm": LogNorm(1e-3, 1.2), "cmap": "viridis"}
    mesh = None
    for line, kind in zip(axes, KINDS, strict=True):
        for ax, (policy, title) in zip(line, POLICIES.items(), strict=True):
            mesh = panel(ax, rows, "scaled", policy, kind, **style) or mesh
            _, dims, _locked = grid(
                both_kinds(rows), "locked", policy=policy, kind=kind, Delta=DELTA
            )
            if dims:
                draw_thresholds(ax, dims, LINES)
                _turns(ax, both_kinds(rows), policy, kind, dims)
            ax.set_title(f"{title}\n{kind}" if kind == KINDS[0] else kind, fontsize=9)
    for ax in axes[:, 0]:
        ax.set_ylabel("dimension $d$")
    for ax in axes[1]:
        ax.set_xlabel(r"$\zeta\sqrt{d}/\Delta$")
    assert mesh is not None, "nothing to draw"
    figure.colorbar(mesh, ax=axes, label=r"regret / $K\Delta$", shrink=0.8)
    handles, labels = axes[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def draw_fate(rows: Sequence[Row], kind: str) -> Figure:
    """Growth exponent of the regret over the last half, and share of runs locked."""
    figure, axes = plt.subplots(2, 3, figsize=(7.8, 4.4), sharex=True, layout="constrained")
    policies = list(POLICIES.items())[:3]
    values = {"exponent": "growth exponent", "locked": "share locked"}
    for line, (value, title) in zip(axes, values.items(), strict=True):
        mesh = None
        for ax, (policy, _) in zip(line, policies, strict=True):
            style = {"norm": Normalize(0, 1), "cmap": "cividis"}
            mesh = panel(ax, rows, value, policy, kind, **style) or mesh
            ax.set_xlim(0.19, 22)
            ax.set_xticks([0.25, 1, 4, 16], ["¼", "1", "4", "16"])
        assert mesh is not None, "nothing to draw"
        figure.colorbar(mesh, ax=list(line), label=title)
        line[0].set_ylabel("dimension $d$")
    for ax, (_, title) in zip(axes[0], policies, strict=True):
        ax.set_title(title, fontsize=9)
    for ax in axes[1]:
        ax.set_xlabel(r"$\zeta\sqrt{d}/\Delta$")
    return figure


def crossing(rows: Iterable[Row], level: float = 0.5, value: str = "locked", **fixed: Any) -> float:
    """The ratio ζ√d/Δ at which `value` first reaches `level`, by interpolation in log
    ratio; NaN if it never does.
    """
    kept = sorted(
        (r for r in rows if r["ratio"] > 0 and all(r[k] == v for k, v in fixed.items())),
        key=lambda r: r["ratio"],
    )
    for a, b in itertools.pairwise(kept):
        if a[value] < level <= b[value]:
            t = (level - a[value]) / (b[value] - a[value])
            return math.exp((1 - t) * math.log(a["ratio"]) + t * math.log(b["ratio"]))
    return math.nan


def _turns(ax: Axes, rows: Sequence[Row], policy: str, kind: str, dims: Sequence[int]) -> None:
    """Mark where the mean regret passes a quarter of KΔ."""
    fixed = {"policy": policy, "kind": kind, "Delta": DELTA}
    x = [crossing(rows, 0.25, "scaled", d=d, **fixed) for d in dims]
    ax.plot(
        x, range(len(dims)), "o", color="white", markeredgecolor="black", markersize=4,
        label="the turn: regret KΔ/4",
    )  # fmt: skip


def render(done: Sequence[Cell], scale: str) -> Rendered:
    """The map as CSV, and the static figure as SVG and PNG."""
    table = summaries(done)
    return {".csv": records_csv(table), **figure_files(draw_map(table))}
