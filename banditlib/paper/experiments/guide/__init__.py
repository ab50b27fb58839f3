"""Which algorithm should I use? Every policy on every kind of problem, by one protocol."""

from banditlib.paper.experiments.guide import cells

_listed, _draw = cells.FAMILY.experiment, cells.render
ALL, PETS = "Which algorithm: all policies on all problems", "Which algorithm: cats and dogs"
NEEDS = "Asirra features"
EXPERIMENTS = [
    _listed("guide", ALL, cells.cells, _draw, smoke=20, full=600),
    _listed("guide-asirra", PETS, cells.asirra_cells, _draw, NEEDS, smoke=10, full=60),
]
