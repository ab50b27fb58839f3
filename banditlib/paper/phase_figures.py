"""Figures of the phase map: regret, growth and locked runs over ζ√d/Δ and d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure


def draw_map(rows: Sequence[dict[str, Any]]) -> Figure:
    """A first figure; replaced below."""
    figure, axes = plt.subplots()
    axes.plot([r["ratio"] for r in rows], [r["locked"] for r in rows], "o")
    return figure
