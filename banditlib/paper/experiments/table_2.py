"""Table 2: how many cats and dogs lie within ζ of the linear model, by each rule.

A cell holds, for one set of features, the counts that each rule keeps, residuals in fine bins, and
a few floats rounded to six digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from banditlib.paper import features as pictures
from banditlib.paper.experiments.base import Family, NotAvailable, Rendered, cell_config, lacks
from banditlib.paper.render import csv_text, markdown
from banditlib.paper.store import Arrays, Cell, Config

ZETAS = (0.5, 0.1, 0.05, 0.01)
EDGES = np.round(np.arange(-1.5, 1.5005, 0.01), 2)


def _rounded(*values: float) -> np.ndarray:
    """Six digits; what is below 1e-12 is rounding noise, which differs between processors."""
    return np.array([float(f"{value:.6g}") if abs(value) > 1e-12 else 0.0 for value in values])


def _histogram(residuals: np.ndarray) -> np.ndarray:
    """Counts between EDGES, the same on every processor for a residual that sits on an edge."""
    return np.histogram(np.round(residuals, 9), EDGES)[0]


def measure(features: pictures.Features) -> Arrays:
    """The arrays of one cell."""
    theta = pictures.fit(features)
    good, bad = pictures.residuals(features, theta)
    kept, true_zeta = [], []
    for row in pictures.table_2(features, ZETAS):
        kept.append([row[rule] for rule in pictures.RULES])
        true_zeta.append([row[f"{rule} true zeta"] for rule in pictures.RULES])
    wrong = int((good <= -0.5).sum() + (bad >= 0.5).sum())
    return {
        "kept": np.array(kept, dtype=np.int64),  # (1 + len(ZETAS), rules, classes)
        "true_zeta": _rounded(*np.ravel(true_zeta)).reshape(-1, len(pictures.RULES)),
        "good_residuals": _histogram(good),
        "bad_residuals": _histogram(bad),
        "theta_norm": _rounded(float(np.linalg.norm(theta))),
        "spread": _rounded(float(good.std()), float(bad.std())),
        "misclassified": np.array([wrong]),
        "top_eigenvalues": _rounded(*np.linalg.eigvalsh(_gram(features))[::-1][:64]),
    }


def _gram(features: pictures.Features) -> np.ndarray:
    x = np.concatenate([features.good, features.bad])
    return x.T @ x / len(x)


def _run(configs: Sequence[Config], backend: str) -> list[Arrays]:
    return [measure(_features(config)) for config in configs]


def _features(config: Config) -> pictures.Features:
    try:
        return pictures.known(config["data"], config["digest"])
    except pictures.FeaturesError as error:
        raise NotAvailable(f"{error}.") from None


def _engine(data: str) -> int:
    """The digits are at 2: their first cell held rounding noise."""
    return 2 if data == "digits" else 1


def _cells(scale: str) -> list[Config]:
    return [
        cell_config(
            "table-2",
            engine=_engine(data),
            data=data,
            digest=pictures.digest(data),
            zetas=list(ZETAS),
        )
        for data in pictures.DIGESTS
        if scale == "full" or data == "digits"
    ]


FAMILY = Family(
    name="table-2",
    run=_run,
    seconds=lambda config: 3.0,
    label=lambda config: str(config["data"]),
    stratum=lambda config: str(config["data"]),
    unavailable=lacks(_features),
    engine=lambda config: _engine(config["data"]),
    kinds=(),
    also=(pictures.__name__,),
)


def rows(cells: Sequence[Any]) -> list[list[object]]:
    """Table 2 as rows: the paper's counts, then each rule's on each set of features."""
    by_data = {cell.config["data"]: cell.arrays for cell in cells}
    out: list[list[object]] = []
    for i, zeta in enumerate((float("inf"), *ZETAS)):
        row: list[object] = [zeta, *pictures.PAPER_TABLE_2[zeta]]
        for arrays in by_data.values():
            row += [int(n) for n in arrays["kept"][i].ravel()]
        out.append(row)
    return out


def render(cells: Sequence[Cell], scale: str) -> Rendered:
    """Table 2 as CSV and Markdown."""
    names = [
        f"{cell.config['data']} {rule} {kind}"
        for cell in cells
        for rule in pictures.RULES
        for kind in ("good", "bad")
    ]
    head, body = ["zeta", "paper cats", "paper dogs", *names], rows(cells)
    note = ""
    if all(cell.config["data"] == "digits" for cell in cells):
        note = f"\nOurs are {pictures.STAND_IN}.\n"
    text = f"{markdown(head, body)}\n{note}"
    return {".csv": csv_text(head, body).encode(), ".md": text.encode()}


TITLE = "Table 2: data kept after filtering by ζ"
EXPERIMENTS = [
    FAMILY.experiment("table-2", TITLE, _cells, render, needs="Asirra features", smoke=1, full=10)
]
