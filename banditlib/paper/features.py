"""Cats against dogs, from feature vectors to a pool: loading, filtering by ζ, Table 2.

How images become feature vectors is the business of :mod:`banditlib.paper.vision`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlib.checks import is_number, numbers
from banditlib.npz import DamagedFileError, read_npz
from banditlib.problems import Pool

FILES = {
    "standard": "features-224.npz",
    "tiny": "features-64.npz",
    "tiny-bgr": "features-64-bgr.npz",
    "tiny-48": "features-48.npz",
}
#: How a picture enters the network, for each of the inputs that were studied.
INPUTS = {
    "standard": "shorter side to 256, central square of 224, ImageNet's mean and spread",
    "tiny": "squashed to 64 x 64, no normalisation",
    "tiny-bgr": "as tiny, channels in the order blue, green, red",
    "tiny-48": "squashed to 48 x 48, ImageNet's mean and spread",
}
VARIABLE = "BANDITLIB_ASIRRA"
OWN = "BANDITLIB_ASIRRA_OWN"
RULES = ("two-sided", "one-sided")
ZETAS = (0.5, 0.1, 0.05, 0.01)
# Table 2 of the paper: (cats, dogs) kept at each level.
PAPER_TABLE_2 = {
    float("inf"): (12500, 12500),
    0.5: (10316, 10511),
    0.1: (3182, 3248),
    0.05: (2408, 2442),
    0.01: (1886, 1905),
}
_ROOT = Path(__file__).resolve().parents[2]


class FeaturesError(ValueError):
    """Feature vectors that are absent or unusable; the message says how to go on."""


@dataclass(frozen=True)
class Features:
    """Unit feature vectors of two classes; reward 1 for `good`, 0 for `bad`.

    Attributes
    ----------
    good, bad : (n, d) arrays, float64, rows of norm 1
    good_ids, bad_ids : (n,) integer arrays
    meta : what is known of their making
    """

    good: NDArray[np.float64]
    bad: NDArray[np.float64]
    good_ids: NDArray[np.int64]
    bad_ids: NDArray[np.int64]
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        return int(self.good.shape[1])

    def digest(self) -> str:
        """SHA-256 of both classes' vectors, rounded to float32, in the order given."""
        total = hashlib.sha256()
        for part in (self.good, self.bad):
            total.update(np.ascontiguousarray(part, dtype="<f4").tobytes())
        return total.hexdigest()


def _unit(name: str, given: Any, given_ids: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Check the vectors of one class and their ids; scale the vectors to norm 1."""
    try:
        vectors = numbers(name, given)
    except TypeError as error:
        raise FeaturesError(str(error)) from None
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise FeaturesError(f"{name} must be a non-empty (n, d) array, got shape {vectors.shape}")
    try:
        ids = np.arange(len(vectors)) if given_ids is None else np.asarray(given_ids)
    except ValueError as error:
        raise FeaturesError(f"{name}_ids must be a list of integers ({error})") from None
    if ids.dtype.kind not in "iu" or isinstance(given_ids, np.ma.MaskedArray):
        raise FeaturesError(f"{name}_ids must be integers, got {given_ids!r}")
    if ids.shape != vectors.shape[:1]:
        raise FeaturesError(f"{name} has {len(vectors)} vectors but {name}_ids has {ids.size} ids")
    if not np.isfinite(vectors).all():
        rows = ids[~np.isfinite(vectors).all(axis=1)]
        raise FeaturesError(f"{name} holds NaN or infinity, first at id {rows[0]}")
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    if (largest < 1e-6).any():
        raise FeaturesError(
            f"{name} holds a zero vector, first at id {ids[largest[:, 0] < 1e-6][0]}"
        )
    norms = np.linalg.norm(vectors, axis=1)
    if not np.isfinite(norms).all():
        raise FeaturesError(
            f"{name} holds a vector that is too long, first at id {ids[np.isinf(norms)][0]}"
        )
    return vectors / norms[:, None], ids.astype(np.int64)


def from_arrays(
    good: NDArray[Any],
    bad: NDArray[Any],
    good_ids: NDArray[Any] | None = None,
    bad_ids: NDArray[Any] | None = None,
    meta: dict[str, Any] | None = None,
) -> Features:
    """Check two classes of vectors, scale them to norm 1 and return them as `Features`."""
    first, gi = _unit("good", good, good_ids)
    second, bi = _unit("bad", bad, bad_ids)
    if not isinstance(meta, dict | None):
        raise FeaturesError(f"meta must be a dict, got {meta!r}")
    if first.shape[1] != second.shape[1]:
        raise FeaturesError(
            f"good has vectors of dimension {first.shape[1]}, bad of {second.shape[1]}"
        )
    return Features(first, second, gi, bi, dict(meta or {}))


def read(path: str | Path) -> Features:
    """Read a features file: arrays `cats`, `dogs`, `cat_ids`, `dog_ids` and JSON text `meta`."""
    path = Path(path)
    try:
        data = read_npz(path)
        missing = {"cats", "dogs", "cat_ids", "dog_ids"} - set(data)
        if missing:
            raise FeaturesError(f"{path} lacks {', '.join(sorted(missing))}")
        meta = json.loads(str(data["meta"])) if "meta" in data else {}
        if not isinstance(meta, dict):
            raise DamagedFileError("has a meta that is not a JSON object")
    except FileNotFoundError:
        raise FeaturesError(f"{path} does not exist") from None
    except FeaturesError:
        raise
    except (OSError, DamagedFileError, ValueError, RecursionError) as error:
        raise FeaturesError(
            f"{path} is not a readable features file ({error}); delete it and make it again "
            "with 'banditlib data asirra'"
        ) from None
    cats, dogs, cat_ids, dog_ids = (data[n] for n in ("cats", "dogs", "cat_ids", "dog_ids"))
    try:
        return from_arrays(cats, dogs, cat_ids, dog_ids, meta)
    except FeaturesError as error:
        raise FeaturesError(f"{path}: {error}") from None


def find(preprocess: str = "standard", path: str | Path | None = None) -> Path | None:
    """Where the features are: `path`, $BANDITLIB_ASIRRA, data/asirra here or in the clone."""
    if not isinstance(preprocess, str) or preprocess not in FILES:
        raise FeaturesError(
            f"preprocess is {preprocess!r}, expected one of {', '.join(FILES)}; "
            "a file is given as path=..."
        )
    name = FILES[preprocess]
    if path is not None:
        return Path(path) / name if Path(path).is_dir() else Path(path)
    places = [
        Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None,
        Path.cwd() / "data" / "asirra",
        _ROOT / "data" / "asirra",
        _ROOT.parent / "shared" / "data" / "asirra",
    ]
    for place in filter(None, places):
        candidate = place if place.suffix == ".npz" else place / name
        if candidate.is_file():
            return candidate
    return None


def load(preprocess: str = "standard", path: str | Path | None = None) -> Features:
    """Load Asirra features, or explain how to get them.

    Looked for in this order: the file or folder `path`; the one that ``$BANDITLIB_ASIRRA`` names;
    ``data/asirra/`` where one works, or in the clone.
    """
    found = find(preprocess, path)
    if found is None:
        raise FeaturesError(
            f"no Asirra features ({FILES[preprocess]}) were found in ${VARIABLE} or data/asirra; "
            "make them with 'banditlib data asirra' (needs the vision extra: "
            'pip install -e ".[vision]" in the clone)'
        )
    return read(found)


#: First digits of `Features.digest` of the features that the stored results were computed from.
DIGESTS = {
    "standard": "5e322050a2fe60fa",
    "tiny": "fb823d1ae0d90034",
    "tiny-bgr": "319560b2e5ffc21e",
    "tiny-48": "8a4cccc459a88942",
    "digits": "7747511926ba9fda",
}


def known(data: str, digest: str) -> Features:
    """The features `data` ("digits", or a preprocessing) if they are those with this `digest`."""
    features = digits() if data == "digits" else load(data)
    found = features.digest()[: len(digest)]
    if found != digest:
        raise FeaturesError(
            f"the {data} features found here are not those of the stored results: their digest is "
            f"{found}, expected {digest}; set {OWN}=1 to run on your own"
        )
    return features


def is_known(data: str) -> bool:
    """Whether the features `data` on this machine are those of the stored results."""
    try:
        known(data, DIGESTS[data])
    except FeaturesError:
        return False
    return True


def digest(data: str) -> str:
    """What marks the cells of the features `data`: the digest of the stored results' features, or,
    where ``$BANDITLIB_ASIRRA_OWN`` is set, that of the features on this machine.
    """
    found = find(data) if os.environ.get(OWN) and data in FILES else None
    return DIGESTS[data] if found is None else _own_digest(found)


@functools.cache
def _own_digest(path: Path) -> str:
    """Read and digest a file of features once, not for every cell."""
    return read(path).digest()[:16]


STAND_IN = "scikit-learn's digits, not cats and dogs: only to see it work"


def digits() -> Features:
    """A real data set that ships with scikit-learn: pick the odd digit of two (d = 64)."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise FeaturesError("the digits need scikit-learn: pip install scikit-learn") from None

    data = load_digits()
    odd = data.target % 2 == 1
    ids = np.arange(len(odd))
    meta = {"images": "scikit-learn digits, 8 x 8 pixels", "preprocessing": "pixels; unit norm"}
    return from_arrays(data.data[odd], data.data[~odd], ids[odd], ids[~odd], meta)


def fit(features: Features) -> NDArray[np.float64]:
    r"""θ* of least norm that minimises :math:`\sum_i (\phi_i^\top\theta - r_i)^2`, shape (d,)."""
    x = np.concatenate([features.good, features.bad])
    r = np.concatenate([np.ones(len(features.good)), np.zeros(len(features.bad))])
    return np.linalg.lstsq(x, r, rcond=None)[0]


def residuals(
    features: Features, theta: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Signed errors of the linear model, φ·θ − r, for the good and for the bad class."""
    return features.good @ theta - 1.0, features.bad @ theta


def kept(
    features: Features,
    zeta: float,
    rule: str = "two-sided",
    theta: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which vectors lie within ζ of the linear model.

    ``two-sided`` is the rule as written, |φ·θ* − r| ≤ ζ. ``one-sided`` lets a good vector
    predicted above 1 and a bad one predicted below 0 count as exact.
    """
    if not isinstance(rule, str) or rule not in RULES:
        raise FeaturesError(f"rule is {rule!r}, expected one of {', '.join(RULES)}")
    if not is_number(zeta) or (isinstance(zeta, int) and zeta > 1e300):
        raise FeaturesError(f"zeta must be a number of at least 0, got {zeta!r}")
    if not zeta >= 0:
        raise FeaturesError(f"zeta must be a number of at least 0, got {zeta!r}")
    good, bad = residuals(features, fit(features) if theta is None else theta)
    if rule == "one-sided":
        return good >= -zeta, bad <= zeta
    return np.abs(good) <= zeta, np.abs(bad) <= zeta


def pool(
    features: Features,
    zeta: float,
    rule: str = "two-sided",
    theta: NDArray[np.float64] | None = None,
) -> Pool:
    """The bandit problem of the paper's Section 7.2 on the vectors that the filter keeps."""
    good, bad = kept(features, zeta, rule, theta)
    for name, mask in (("good", good), ("bad", bad)):
        if not mask.any():
            raise FeaturesError(f"no {name} vector lies within zeta = {zeta:g}: the pool is empty")
    return Pool(features.good[good], features.bad[bad])


def table_2(features: Features, zetas: tuple[float, ...] = ZETAS) -> list[dict[str, Any]]:
    """Rows of Table 2: how many of each class each rule keeps, and the ζ they really have."""
    theta = fit(features)
    good, bad = residuals(features, theta)
    rows: list[dict[str, Any]] = []
    for zeta in (float("inf"), *zetas):
        row: dict[str, Any] = {"zeta": zeta}
        for rule in RULES:
            keep_good, keep_bad = kept(features, zeta, rule, theta)
            worst = max(
                np.abs(good[keep_good]).max(initial=0), np.abs(bad[keep_bad]).max(initial=0)
            )
            row[rule] = (int(keep_good.sum()), int(keep_bad.sum()))
            row[f"{rule} true zeta"] = float(worst)
        rows.append(row)
    return rows
