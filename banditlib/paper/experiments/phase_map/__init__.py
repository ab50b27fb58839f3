"""The interplay of misspecification and gap as a map."""

from banditlib.paper.experiments.phase_map import cells, figure

TITLE = "The interplay: regret over ζ√d/Δ, d and Δ"
EXPERIMENTS = [
    cells.FAMILY.experiment("phase-map", TITLE, cells.cells, figure.render, smoke=20, full=1800)
]
