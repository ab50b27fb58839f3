"""Cats against dogs: Figures 1b and 2, on weaker features too, and what reaches their axes."""

import functools

from banditlib.paper.experiments.asirra import axes, between, cells, figure, lengths, single

_needy = functools.partial(cells.FAMILY.experiment, needs="Asirra features")
_panel = functools.partial(_needy, render=figure.render)
FIGURE_1B = functools.partial(cells.panel_cells, "figure-1b")
FIGURE_2 = functools.partial(cells.panel_cells, "figure-4")
BETWEEN = "Between the panels: mistakes over ζ"
AXES = "What reaches the axes of Figures 1b and 2"
EXPERIMENTS = [
    _panel("figure-1b", "Figure 1b: Asirra, ζ = 0.01", FIGURE_1B, smoke=15, full=620),
    _panel("figure-4", "Figure 2: Asirra, ζ = 0.5, 0.1, 0.05", FIGURE_2, smoke=30, full=4500),
    _panel(
        "asirra-weak", "Figures 1b and 2 on weaker features", cells.weak_cells, smoke=45, full=7300
    ),
    _needy("asirra-between", BETWEEN, between.cells, between.render, smoke=5, full=1800),
    _needy("asirra-axes", AXES, axes.cells, axes.render, smoke=5, full=8000),
    *(
        family.experiment(
            family.name,
            title,
            functools.partial(axes.cells, family=family.name),
            axes.render,
            needs="Asirra features",
            smoke=5,
            full=seconds,
        )
        for family, title, seconds in (
            (single.FAMILY, "The same in single precision", 1500),
            (lengths.FAMILY, "The same with vectors that keep their lengths", 900),
        )
    ),
]
