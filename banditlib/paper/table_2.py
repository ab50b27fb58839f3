"""Table 2: how many cats and dogs lie within ζ of the linear model, by each rule.

A cell holds, for one set of features, the counts that each rule keeps, residuals in fine bins, and
a few floats rounded to six digits.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from banditlib.paper import asirra
from banditlib.paper.experiments import (
    Experiment,
    Family,
    NotAvailable,
    Rendered,
    cell_config,
    lacks,
    register,
)
from banditlib.paper.results import Arrays, Cell, Config

ZETAS = (0.5, 0.1, 0.05, 0.01)
EDGES = np.round(np.arange(-1.5, 1.5005, 0.01), 2)


def _rounded(*values: float) -> np.ndarray:
    return np.array([float(f"{value:.6g}") for value in values])


def measure(features: asirra.Features) -> Arrays:
    """The arrays of one cell."""
    theta = asirra.fit(features)
    good, bad = asirra.residuals(features, theta)
    kept, true_zeta = [], []
    for row in asirra.table_2(features, ZETAS):
        kept.append([row[rule] for rule in asirra.RULES])
        true_zeta.append([row[f"{rule} true zeta"] for rule in asirra.RULES])
    wrong = int((good <= -0.5).sum() + (bad >= 0.5).sum())
    return {
        "kept": np.array(kept, dtype=np.int64),  # (1 + len(ZETAS), rules, classes)
        "true_zeta": _rounded(*np.ravel(true_zeta)).reshape(-1, len(asirra.RULES)),
        "good_residuals": np.histogram(good, EDGES)[0],
        "bad_residuals": np.histogram(bad, EDGES)[0],
        "theta_norm": _rounded(float(np.linalg.norm(theta))),
        "spread": _rounded(float(good.std()), float(bad.std())),
        "misclassified": np.array([wrong]),
        "top_eigenvalues": _rounded(*np.linalg.eigvalsh(_gram(features))[::-1][:64]),
    }


def _gram(features: asirra.Features) -> np.ndarray:
    x = np.concatenate([features.good, features.bad])
    return x.T @ x / len(x)


def _run(configs: Sequence[Config], backend: str) -> list[Arrays]:
    return [measure(_features(config)) for config in configs]


def _features(config: Config) -> asirra.Features:
    try:
        return asirra.known(config["data"], config["digest"])
    except asirra.FeaturesError as error:
        raise NotAvailable(f"{error}.") from None


def _cells(scale: str) -> list[Config]:
    return [
        cell_config("table-2", data=data, digest=asirra.digest(data), zetas=list(ZETAS))
        for data in asirra.DIGESTS
        if scale == "full" or data == "digits"
    ]


FAMILY = Family(
    name="table-2",
    run=_run,
    seconds=lambda config: 3.0,
    label=lambda config: str(config["data"]),
    unavailable=lacks(_features),
)


def rows(cells: Sequence[Any]) -> list[list[object]]:
    """Table 2 as rows: the paper's counts, then each rule's on each set of features."""
    by_data = {cell.config["data"]: cell.arrays for cell in cells}
    out: list[list[object]] = []
    for i, zeta in enumerate((float("inf"), *ZETAS)):
        row: list[object] = [zeta, *asirra.PAPER_TABLE_2[zeta]]
        for arrays in by_data.values():
            row += [int(n) for n in arrays["kept"][i].ravel()]
        out.append(row)
    return out


def _render(cells: Sequence[Cell], scale: str) -> Rendered:
    names = [
        f"{cell.config['data']} {rule} {kind}"
        for cell in cells
        for rule in asirra.RULES
        for kind in ("good", "bad")
    ]
    head = ["zeta", "paper cats", "paper dogs", *names]
    body = rows(cells)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([head, *body])
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(v) for v in row) + " |" for row in body]
    return {".csv": buffer.getvalue().encode(), ".md": ("\n".join(lines) + "\n").encode()}


register(
    Experiment(
        name="table-2",
        title="Table 2: data kept after filtering by ζ",
        family=FAMILY,
        cells=_cells,
        render=_render,
        needs="Asirra features at full scale (banditlib data asirra); digits at smoke scale",
        seconds={"smoke": 1, "full": 10},
    )
)
