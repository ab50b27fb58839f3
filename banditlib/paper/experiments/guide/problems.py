"""The problems of the guide, each for tuning and for reporting."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

import banditlib as bl
from banditlib.paper import features
from banditlib.paper.experiments.base import NotAvailable
from banditlib.paper.experiments.guide.protocol import ARMS, DELTA, DIM, ROUNDS, SIGMA, TESTS
from banditlib.paper.experiments.separation.course import Course
from banditlib.paper.store import Config
from banditlib.problems import generator

TABLES = ("iris", "wine", "breast cancer", "digits")
COMPONENTS = 15
ASIRRA = "standard"


class Setting(NamedTuple):
    """What one cell plays on.

    Attributes
    ----------
    problems : one or several instances
    trials : runs on each
    rounds : K
    zeta : misspecification, NaN where nobody knows
    """

    problems: list[Any]
    trials: int
    rounds: int
    zeta: float


def setting(config: Config, report: bool) -> Setting:
    """The problem of a cell, for tuning or for reporting."""
    name, ratio, small = config["problem"], config["ratio"], config["small"]
    rounds, runs = config["rounds"], config["runs"][int(report)]
    zeta = ratio * DELTA / math.sqrt(DIM)
    if name == "fixed":
        first, count = (0, runs // 2) if report else (1000, runs // 2)
        made = [_fixed(zeta, first + i) for i in range(max(1, count))]
        return Setting(made, 1 if small else 2, rounds, zeta)
    if name == "fresh":
        return Setting([_fresh(zeta, 0 if report else 1)], runs, rounds, zeta)
    if name == "separation":
        found = course(ratio)
        return Setting([_lessons(found)], runs, rounds, found.zeta)
    if name == "lower bound":
        made = _lower_bound(config["dim"], 0 if report else 1, max(1, runs // 2))
        return Setting(made, 1 if small else 2, rounds, made[0].zeta)
    problem = asirra(config["digest"]) if name == "asirra" else table(name)
    return Setting([problem], runs, rounds, math.nan)


def _fixed(zeta: float, instance: int) -> bl.problems.FixedArms:
    return bl.problems.synthetic(
        seed=2026, dim=DIM, arms=20, zeta=zeta, gap=(0.19, 0.21), sigma=SIGMA, instance=instance
    )


def corner(X: np.ndarray) -> np.ndarray:
    """The sign of x₁x₂: a fixed function that no linear one follows."""
    return np.where(X[..., 0] * X[..., 1] >= 0, 1.0, -1.0)


def _fresh(zeta: float, instance: int) -> bl.problems.Sampled:
    return bl.problems.unit_vectors(
        dim=DIM, arms=5, zeta=zeta, misspecification=corner, gap=DELTA, sigma=SIGMA, seed=2026,
        instance=instance,
    )  # fmt: skip


def course(ratio: float) -> Course:
    """The lessons and tests at a ratio; at 0 those of ratio 1, paid honestly."""
    found = Course.of(DELTA, math.sqrt(DIM) / (ratio or 1.0), SIGMA, DIM)
    return found if ratio else Course(DELTA, 0.0, found.length, found.lessons, SIGMA, DIM)


def _lessons(found: Course) -> bl.problems.Contextual:
    unit = np.eye(DIM)
    return bl.problems.cycle(
        [found.length * unit[:1], unit[[1, 0]]], [[found.zeta], [DELTA, 0.0]],
        repeats=[found.lessons, 1], theta=DELTA * unit[1], sigma=SIGMA, label="separation",
    )  # fmt: skip


def _lower_bound(dim: int, seed: int, members: int) -> list[bl.problems.FixedArms]:
    X = bl.problems.nearly_orthogonal(dim, ARMS, seed=2026)
    rng = generator(2026, "instance", seed)
    made = []
    for m in range(members):
        i, j = rng.permutation(ARMS)[:2].tolist()
        one = bl.problems.lower_bound(Delta=0.25, i=i, j=j, X=X)
        made.append(
            bl.problems.FixedArms(
                X, one.reward, sigma=SIGMA, theta=one.theta, instance=1000 * seed + m
            )
        )
    return made


@functools.lru_cache
def table(name: str) -> bl.problems.Sampled:
    """A table of scikit-learn as a bandit."""
    from sklearn import datasets

    loaders = {
        "iris": datasets.load_iris, "wine": datasets.load_wine,
        "breast cancer": datasets.load_breast_cancer, "digits": datasets.load_digits,
    }  # fmt: skip
    data = loaders[name]()
    x = np.asarray(data.data, dtype=np.float64)
    if name == "digits":
        x = components(x, 16)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return bl.problems.classification(x, data.target, intercept=True, label=name)


def components(x: np.ndarray, count: int) -> np.ndarray:
    """The first principal components, each with its largest entry positive."""
    centred = x - x.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :count]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(count)]
    return centred @ (axes * np.sign(largest))


@functools.lru_cache
def asirra(digest: str) -> bl.problems.Pool:
    """All cats and dogs on a few components; `NotAvailable` where there are no features."""
    try:
        found = features.known(ASIRRA, digest)
    except features.FeaturesError as error:
        raise NotAvailable(f"{error}.") from None
    x = components(np.concatenate([found.good, found.bad]), COMPONENTS)
    x = np.column_stack([x / x.std(axis=0), np.ones(len(x))])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return bl.problems.Pool(x[: len(found.good)], x[len(found.good) :], label="asirra")


def rounds_of(name: str, ratio: float) -> int:
    """How long a problem is played."""
    if name == "separation":
        return TESTS * course(ratio).cycle
    return ROUNDS["table" if name in TABLES else name]
