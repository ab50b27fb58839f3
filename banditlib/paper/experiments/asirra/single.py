"""OFUL in single precision, with sums in one order on every processor.

An inverse that is updated a million times in 32 bits and never made anew keeps all that was ever
rounded. A library adds up products in an order that depends on the processor, so the plain
program, `policies.single`, sooner or later takes other decisions on another machine. Here the
terms of every sum are added one after the other, which all processors round alike.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from banditlib.checks import real
from banditlib.paper import features
from banditlib.paper.experiments import base
from banditlib.paper.experiments.asirra import cells
from banditlib.paper.experiments.base import Family
from banditlib.paper.store import Arrays, Config
from banditlib.problems import Pool

Single = NDArray[np.float32]


def in_order(
    problem: Pool, beta: float, lam: float, rounds: int, seed: int, trial: int
) -> NDArray[np.int64]:
    """Mistakes (rounds,) of OFUL in single precision, its inverse updated and never made anew."""
    real("beta", beta, low=0.0)
    real("lam", lam, low=0.0, strict=True)
    points, pays = problem.points.astype(np.float32), problem.reward.astype(np.float32)
    radius, one = np.float32(beta), np.float32(1.0)
    inverse = np.eye(problem.dim, dtype=np.float32) / np.float32(lam)
    b = np.zeros(problem.dim, np.float32)
    contexts = problem.contexts(seed, trial, rounds)
    terms = np.empty((contexts.shape[1], *inverse.shape), np.float32)
    wrong = np.zeros(rounds, np.int64)
    for k, pair in enumerate(contexts):
        x, paid = points[pair], pays[pair]
        moved = product(x, inverse, terms)
        width = np.sqrt(np.maximum(dots(moved, x), np.float32(0.0)))
        arm = int(np.argmax(dots(moved, b) + radius * width))
        wrong[k] = paid.max() > paid[arm]
        step = moved[arm]
        np.multiply.outer(step / (one + width[arm] ** 2), step, out=terms[0])
        inverse -= terms[0]
        b += paid[arm] * x[arm]
    return wrong


def product(x: Single, A: Single, terms: Single) -> Single:
    """x @ A, the rows of A added from the first to the last; ``terms`` has room for all."""
    return np.multiply(x[:, :, None], A, out=terms).sum(axis=1)


def dots(rows: Single, others: Single) -> Single:
    """Inner product of each row, its terms added from the first to the last."""
    return np.cumsum(rows * others, axis=1)[:, -1]


def run(configs: Sequence[Config], backend: str) -> list[Arrays]:
    """Compute cells one by one: wrong choices at checkpoints."""
    return [_one(config) for config in configs]


def _one(config: Config) -> Arrays:
    parameters = {k: v for k, v in config["policy"].items() if k != "name"}
    play = functools.partial(in_order, cells.pool_of(config), **parameters)
    trials = range(*config["trials"])
    wrong = [play(rounds=config["rounds"], seed=config["seed"], trial=t) for t in trials]
    marks = np.array(config["checkpoints"])
    return {"wrong": np.cumsum(wrong, axis=1)[:, marks - 1].astype(np.int32)}


FAMILY = Family(
    "asirra-single",
    run=run,
    seconds=lambda config: 500.0 * config["rounds"] / cells.ROUNDS,
    label=cells.label,
    unavailable=base.lacks(cells.pool_of),
    kinds=(),
    also=(features.__name__, cells.__name__, Pool.__module__),
)
