"""The picture that stands for the book where it is linked to."""

from __future__ import annotations

from pathlib import Path

SUBTITLE = "Linear contextual bandits, derived,\nrun and refereed"
PAPER, INK, ACCENT, RULE = "#fbfaf7", "#1d2733", "#8a3324", "#1f5f8b"


def draw(target: Path, title: str) -> None:
    """Draw a card of 1200 × 630 pixels: the title, an ellipse of uncertainty, a threshold."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Ellipse

    fig = Figure(figsize=(12, 6.3), dpi=100, facecolor=PAPER)
    fig.set_layout_engine("none")
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 12), ylim=(0, 6.3))
    ax.set_axis_off()
    for scale, alpha in ((1.0, 0.95), (0.72, 0.6), (0.46, 0.4), (0.26, 0.25)):
        ring = Ellipse((9.2, 3.15), 4.4 * scale, 2.3 * scale, angle=28, fill=False)
        ring.set(edgecolor=RULE, linewidth=3, alpha=alpha)
        ax.add_patch(ring)
    ax.plot([6.9, 11.5], [2.1, 2.1], color=ACCENT, linewidth=3)
    ax.plot([9.2], [3.15], marker="o", markersize=10, color=ACCENT)
    lines = {4.6: (title.replace(" and ", "\nand "), 38), 2.5: (SUBTITLE, 19)}
    for height, (text, size) in lines.items():
        ax.text(0.8, height, text, fontsize=size, color=INK, family="serif", va="top")
    fig.savefig(target)
