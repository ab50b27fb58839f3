r"""A classification table turned into a bandit: an arm for each class, reward 1 for the right one.

The standard conversion. Each round draws a row of the table; arm a stands for class a and has the
row's features in a block of its own, :math:`x_a = e_a \otimes x`, so that one θ holds a linear
model for every class. Reward 1 for the row's class, 0 for the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from banditlib.checks import flag, real_array, require
from banditlib.problems.contextual import Sampled


@dataclass(frozen=True, eq=False)
class Table:
    """The sampler behind :func:`classification`: rows drawn uniformly, with replacement.

    Attributes
    ----------
    features : (n, p) one row per example
    label : (n,) number of its class
    classes : the classes' names, in the order of the arms
    """

    features: np.ndarray
    label: np.ndarray
    classes: tuple[Any, ...]

    def __call__(self, rng: np.random.Generator, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Arms (n, A, A p) and rewards (n, A) of rounds k."""
        rows = rng.integers(len(self.label), size=len(k))
        x, A = self.features[rows], len(self.classes)
        X = np.zeros((len(k), A, A, x.shape[1]))
        arm = np.arange(A)
        X[:, arm, arm] = x[:, None, :]
        reward = (self.label[rows, None] == arm).astype(np.float64)
        return X.reshape(len(k), A, -1), reward


def classification(
    features: Any,
    labels: Any,
    unit: bool = True,
    intercept: bool = False,
    sigma: float = 0.0,
    shared: bool = False,
    instance: int = 0,
    label: str = "classification",
) -> Sampled:
    """A bandit whose arms are the classes of a table.

    Parameters
    ----------
    features : (n, p) numbers, an array or a DataFrame
    labels : (n,) classes: numbers or strings, an array, a list or a column of a DataFrame; or the
        name of the column of ``features`` that holds them
    unit : scale every row to norm 1 (rows of zeros stay)
    intercept : add a feature that is always 1, before rows are scaled
    sigma : deviation of noise on the rewards
    shared : show every trial the same rows
    instance, label : as in :class:`banditlib.problems.Contextual`

    The arms are ``problem.sampler.classes``, in order; the dimension is (number of classes) × p.
    """
    if isinstance(labels, str):
        features, labels = _split(features, labels)
    x = real_array("features", features, 2)
    names = np.asarray(labels)
    if isinstance(labels, np.ma.MaskedArray) or names.dtype.kind not in "biufUSO":
        raise TypeError(f"labels: expected numbers or strings, got {names.dtype}")
    flag("unit", unit), flag("intercept", intercept)
    alike = names.shape == (len(x),)
    require(alike, "labels", f"{len(x)} values, one per row of features", names.shape)
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise ValueError("labels: contains NaN or infinity")
    try:
        classes, number = np.unique(names, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"labels: expected values of one kind ({error})") from error
    require(len(classes) >= 2, "labels", "at least two classes", classes.tolist())
    if intercept:
        x = np.column_stack([x, np.ones(len(x))])
    if unit:
        norm = np.linalg.norm(x, axis=1, keepdims=True)
        x = x / np.where(norm > 0, norm, 1.0)
    table = Table(x, number, tuple(classes.tolist()))
    dim = len(classes) * x.shape[1]
    return Sampled(table, dim, len(classes), None, None, 1.0, sigma, shared, instance, label)


def _split(table: Any, column: str) -> tuple[Any, Any]:
    """A DataFrame without one of its columns, and that column."""
    if not hasattr(table, "columns"):
        raise TypeError(
            f"labels: {column!r} can name a column only where features is a DataFrame, "
            f"got {type(table).__name__}"
        )
    if column not in table.columns:
        raise ValueError(
            f"labels: expected one of the columns {', '.join(map(str, table.columns))}, "
            f"got {column!r}"
        )
    return table.drop(columns=column), table[column]


def digits(sigma: float = 0.0, shared: bool = False) -> Sampled:
    """Scikit-learn's 1,797 handwritten digits as a bandit: ten arms, d = 640."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("digits: needs scikit-learn (pip install scikit-learn)") from error
    data = load_digits()
    return classification(data.data, data.target, sigma=sigma, shared=shared, label="digits")
