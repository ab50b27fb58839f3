"""The paper's synthetic experiment: Table 1 and Figure 1a."""

from banditlib.paper.experiments.synthetic import cells, figure, table

_listed = cells.FAMILY.experiment
TABLE, FIGURE = "Regret and time of every algorithm, synthetic", "Regret curves, synthetic"
EXPERIMENTS = [
    _listed("table-1", TABLE, cells.cells, table.render, smoke=5, paper=60, full=1500),
    _listed("figure-1a", FIGURE, cells.figure_cells, figure.render, smoke=5, paper=20, full=300),
]
