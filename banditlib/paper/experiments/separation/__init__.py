"""Lessons and tests: the contextual problem on which data selection decides."""

from banditlib.paper.experiments.separation import cells

TITLE = "Lessons and tests: mistakes over ζ√d/Δ"
EXPERIMENTS = [
    cells.FAMILY.experiment("separation", TITLE, cells.cells, cells.render, smoke=2, full=120)
]
