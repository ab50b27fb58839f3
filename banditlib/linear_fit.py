r"""The best linear fit in the sup norm: how far a table of rewards is from any linear function."""

from __future__ import annotations

import numpy as np

SLACK = 1e-10
"""A row counts as fitted when its error exceeds the optimum by no more than this share."""


def best_linear_fit(X: np.ndarray, reward: np.ndarray) -> tuple[np.ndarray, float]:
    r"""θ that minimises :math:`\max_i |r_i - x_i^\top\theta|` over the rows of X (n, d), and the
    minimum.

    At most d + 1 rows decide, so the linear programme is solved on a few of them, and the worst
    of the others join until none of them is worse than the optimum.
    """
    size = np.abs(X).max(axis=0)
    size[size == 0] = 1.0
    height = float(np.abs(reward).max()) or 1.0
    A, b = X / size, reward / height
    error = np.abs(b - A @ np.linalg.lstsq(A, b, rcond=None)[0])
    many = 4 * (A.shape[1] + 1)
    rows = _largest(error, many)
    while True:
        theta, best = _programme(A[rows], b[rows])
        error = np.abs(b - A @ theta)
        error[rows] = 0.0
        worse = _largest(error, many)
        worse = worse[error[worse] > best + SLACK * (1.0 + best)]
        if worse.size == 0:
            theta = theta * (height / size)
            return theta, float(np.abs(reward - X @ theta).max())
        rows = np.append(rows, worse)


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """Where the ``count`` largest values stand."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(values, -count)[-count:]


def _programme(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    r"""The programme :math:`\min t` subject to :math:`-t \le b - A\theta \le t`: θ and t."""
    from scipy.optimize import linprog

    one = np.ones((len(A), 1))
    sides = np.block([[A, -one], [-A, -one]])
    cost = np.append(np.zeros(A.shape[1]), 1.0)
    bounds = [(None, None)] * A.shape[1] + [(0, None)]
    found = linprog(cost, sides, np.append(b, -b), bounds=bounds, method="highs")
    if found.status != 0:
        raise RuntimeError(f"best linear fit: the linear programme stopped ({found.message})")
    return found.x[:-1], float(found.x[-1])
