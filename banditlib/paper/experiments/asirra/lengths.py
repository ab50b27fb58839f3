r"""Vectors that keep their lengths: what if the code behind the figures did not normalise?

The paper says that it scales every vector to length one, and the stored features hold unit vectors.
Here their lengths come back. Those of 240 pictures were measured with the network and the input of
the features *tiny* (``lengths.csv``; a test measures them again). The direction of a vector tells
most of its length, so a ridge regression of the logarithm on the direction gives the lengths of
the other pictures, each times a factor drawn from the errors that the regression makes on pictures
left out of it. A features file that was made from the whole archive with ``banditlib data asirra``
has the lengths of all pictures; with ``$BANDITLIB_ASIRRA_OWN`` these are used as they are.

:math:`\theta^*` is fitted to the longer vectors, and the filter goes by that fit.

A common length s alone changes little: :math:`\lambda I+s^2\sum xx^\top` is
:math:`s^2(\lambda/s^2 I+\sum xx^\top)`, so means and widths of sx are those of x at
:math:`\lambda/s^2`.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import banditlib as bl
from banditlib.npz import DamagedFileError, read_npz
from banditlib.paper import features
from banditlib.paper.experiments import base
from banditlib.paper.experiments.asirra import cells
from banditlib.paper.experiments.base import Family, NotAvailable
from banditlib.paper.features import Features, FeaturesError
from banditlib.paper.store import Arrays, Config
from banditlib.problems.seeds import generator

TABLE = Path(__file__).with_suffix(".csv")
MEASURED = "tiny"
PENALTY = 0.1
"""Of the ridge regression: the power of ten with the least error on pictures left out."""
EACH, COMMON = "each its own", "one for all"
"""Every vector has its own length, or all have the mean of these lengths."""

Both = tuple[NDArray[np.float64], NDArray[np.float64]]
"""One number for every cat and one for every dog."""


def config(data: str, how: str) -> Config:
    """What a cell's configuration says of lengths: the reading, and where they come from."""
    return {"lengths": how, "measured": _source(data)}


def _source(data: str) -> str:
    """ "own" where the lengths of all vectors are known, else the digest of the table."""
    known = data == "digits" or (os.environ.get(features.OWN) and _own(data) is not None)
    return "own" if known else hashlib.sha256(TABLE.read_bytes()).hexdigest()[:16]


def _own(data: str) -> Both | None:
    """Lengths of all vectors: of the digits, or of a features file that holds them."""
    if data == "digits":
        from sklearn.datasets import load_digits

        found = load_digits()
        norms, odd = np.linalg.norm(found.data, axis=1), found.target % 2 == 1
        return norms[odd], norms[~odd]
    path = features.find(data)
    if path is None:
        return None
    try:
        arrays = read_npz(path)
        good, bad = (np.asarray(arrays[n], float) for n in ("cat_norms", "dog_norms"))
    except (OSError, DamagedFileError, KeyError):
        return None
    return good, bad


def _checked(data: str, vectors: Features) -> Both:
    """The lengths of all vectors as their file has them, if they can be lengths."""
    own = _own(data)
    if own is None:
        raise FeaturesError(f"the {data} features found here do not say how long they are")
    for name, lengths, ids in zip(
        ("cat", "dog"), own, (vectors.good_ids, vectors.bad_ids), strict=True
    ):
        if lengths.shape != ids.shape or not (np.isfinite(lengths) & (lengths > 0)).all():
            raise FeaturesError(
                f"{name}_norms of the {data} features must be {len(ids)} positive numbers"
            )
    return own


@dataclasses.dataclass(frozen=True)
class Regression:
    """The logarithm of a length from a direction: mean, slopes, and errors on what is left out."""

    center: NDArray[np.float64]
    mean: float
    slope: NDArray[np.float64]
    errors: NDArray[np.float64]
    explained: float

    def __call__(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.mean + (directions - self.center) @ self.slope


def regress(
    directions: NDArray[np.float64], lengths: NDArray[np.float64], penalty: float = PENALTY
) -> Regression:
    """Ridge regression of log lengths (n,) on directions (n, d), with its leave-one-out errors.

    ``explained`` is the share of the variance that it explains on pictures left out.
    """
    y = np.log(lengths)
    center, mean = directions.mean(axis=0), float(y.mean())
    X = directions - center
    K = X @ X.T
    inverse = np.linalg.inv(K + penalty * np.eye(len(y)))
    hat = K @ inverse + 1.0 / len(y)
    errors = (y - mean - K @ inverse @ (y - mean)) / (1.0 - np.diagonal(hat))
    explained = 1.0 - float(errors @ errors / ((y - mean) @ (y - mean)))
    return Regression(center, mean, X.T @ inverse @ (y - mean), errors, explained)


def table() -> dict[str, dict[int, float]]:
    """The measured lengths by class ("cat", "dog") and picture."""
    found: dict[str, dict[int, float]] = {"cat": {}, "dog": {}}
    with TABLE.open(encoding="utf8", newline="") as lines:
        for row in csv.DictReader(lines):
            found[row["class"]][int(row["id"])] = float(row["length"])
    return found


def predicted(data: str, vectors: Features) -> tuple[Both, float]:
    """Lengths of all vectors, measured or predicted, and the share that direction explains.

    Logarithms are rounded to six digits, so that they are the same on every machine.
    """
    if data != MEASURED:
        raise FeaturesError(f"{TABLE.name} has lengths of the {MEASURED} features, not of {data}")
    places, lengths = [], []
    ids = (vectors.good_ids, vectors.bad_ids)
    for offset, known, here in zip((0, len(ids[0])), table().values(), ids, strict=True):
        place = {int(i): offset + n for n, i in enumerate(here)}
        if missing := [i for i in known if i not in place]:
            raise FeaturesError(f"picture {missing[0]} of {TABLE.name} is not among the features")
        places += [place[i] for i in known]
        lengths += list(known.values())
    directions = np.concatenate([vectors.good, vectors.bad])
    at, measured = np.array(places), np.array(lengths)
    found = regress(directions[at], measured)
    rng = generator(cells.SEED, "instance")
    logs = found(directions) + rng.choice(found.errors, size=len(directions))
    logs[at] = np.log(measured)
    good, bad = np.split(np.exp(np.round(logs, 6)), [len(ids[0])])
    return (good, bad), found.explained


@functools.lru_cache(maxsize=8)
def pool(
    data: str, digest: str, lengths: str, measured: str, rule: str, zeta: float, sigma: float
) -> tuple[bl.problems.Pool, float]:
    """The pool of a cell, and the share of the lengths' variance that direction explains."""
    try:
        vectors = features.known(data, digest)
        if measured == "own":
            (good, bad), explained = _checked(data, vectors), 1.0
        else:
            (good, bad), explained = predicted(data, vectors)
        if lengths == COMMON:
            mean = round(float(np.concatenate([good, bad]).mean()), 3)
            good, bad = np.full_like(good, mean), np.full_like(bad, mean)
        longer = dataclasses.replace(
            vectors, good=vectors.good * good[:, None], bad=vectors.bad * bad[:, None]
        )
        found = features.pool(longer, zeta, rule)
    except FeaturesError as error:
        raise NotAvailable(f"{error}.") from None
    label = f"{data} {rule} {zeta:g}, lengths {lengths}"
    return bl.problems.Pool(found.good, found.bad, sigma=sigma, label=label), explained


def pool_of(config: Config) -> tuple[bl.problems.Pool, float]:
    names = ("data", "digest", "lengths", "measured", "rule", "zeta", "sigma")
    return pool(*(config[name] for name in names))


def run(configs: Sequence[Config], backend: str) -> list[Arrays]:
    """Compute cells one by one: wrong choices at checkpoints; how many cats and dogs the filter
    keeps; the share of the lengths' variance that direction explains, in units of 1e-4.
    """
    return [_one(config, backend) for config in configs]


def _one(config: Config, backend: str) -> Arrays:
    problem, explained = pool_of(config)
    found = bl.simulate(
        problem,
        cells.policy_of(config["policy"]),
        rounds=config["rounds"],
        trials=range(*config["trials"]),
        seed=config["seed"],
        checkpoints=config["checkpoints"],
        backend=backend,
        progress=False,
    )
    return {
        "wrong": found.plays[0, 0, :, :, 1].astype(np.int32),
        "kept": np.bincount(problem.kind).astype(np.int32),
        "explained": np.array([round(1e4 * explained)], np.int32),
    }


FAMILY = Family(
    "asirra-lengths",
    run=run,
    seconds=cells.seconds,
    label=lambda config: f"{cells.label(config)}, lengths {config['lengths']}",
    unavailable=base.lacks(pool_of),
    engine=cells.FAMILY.engine,
    kinds=("pools",),
    also=(features.__name__, cells.__name__),
)
