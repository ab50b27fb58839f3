"""Which algorithm should I use? Every policy on every kind of problem, by one protocol."""

from banditlib.paper.experiments.base import Experiment
from banditlib.paper.experiments.guide import cells

EXPERIMENTS = [
    Experiment(
        name="guide",
        title="Which algorithm: all policies on all problems",
        family=cells.FAMILY,
        cells=cells.cells,
        render=cells.render,
        seconds={"smoke": 20, "full": 600},
    ),
    Experiment(
        name="guide-asirra",
        title="Which algorithm: cats and dogs",
        family=cells.FAMILY,
        cells=cells.asirra_cells,
        render=cells.render,
        needs="Asirra features",
        seconds={"smoke": 10, "full": 60},
    ),
]
