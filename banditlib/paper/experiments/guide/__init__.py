"""Which algorithm should I use? Every policy on every kind of problem, by one protocol."""

from banditlib.paper.experiments.guide import cells, claims

_listed, _draw = cells.FAMILY.experiment, cells.render
ALL, PETS = "Which algorithm: all policies on all problems", "Which algorithm: cats and dogs"
OWN = "Which algorithm: claims for single policies"
NEEDS = "Asirra features"
EXPERIMENTS = [
    _listed("guide", ALL, cells.cells, _draw, smoke=20, full=600),
    _listed("guide-claims", OWN, claims.cells, claims.render, smoke=5, full=120),
    _listed("guide-asirra", PETS, cells.asirra_cells, _draw, NEEDS, smoke=10, full=60),
]
