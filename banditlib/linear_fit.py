r"""The best linear fit in the sup norm: how far a table of rewards is from any linear function."""

from __future__ import annotations

from typing import Any

import numpy as np

SLACK = 1e-10
"""A row counts as fitted when its error exceeds the optimum by no more than this share."""

TIGHT = 1e-7
"""A row counts as tight when its error falls short of the optimum by no more than this share: as
exactly as the solver of the programme satisfies a row."""


def best_linear_fit(X: np.ndarray, reward: np.ndarray) -> tuple[np.ndarray, float]:
    r"""θ that minimises :math:`\max_i |r_i - x_i^\top\theta|` over the rows of X (n, d), and the
    minimum. Several θ may attain it; which of them is returned is then left to the solver.

    At most d + 1 rows decide, so the linear programme is solved on a few of them, and the worst
    of the others join until none of them is worse than the optimum.
    """
    A, b, size, height = _scaled(X, reward)
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


def is_unique(X: np.ndarray, reward: np.ndarray, theta: np.ndarray) -> bool:
    r"""Whether ``theta``, a best linear fit, is the only one, up to rounding.

    Let :math:`e_i` be its errors and :math:`s_i` their signs. A small step v leads to another best
    fit exactly if no tight row gets worse, :math:`s_ix_i^\top v \ge 0`. So the fit is unique if
    that forces :math:`s_ix_i^\top v = 0` on all tight rows, which a linear programme decides, and
    if the tight rows span the space, so that then v = 0.
    """
    A, b, size, height = _scaled(X, reward)
    error = b - A @ (theta * size / height)
    largest = np.abs(error).max()
    tight = np.abs(error) >= largest - TIGHT * (1.0 + largest)
    if np.linalg.matrix_rank(A[tight]) < A.shape[1]:
        return False
    if largest <= TIGHT:  # every row is fitted exactly, and may not move either way
        return True
    towards = np.sign(error[tight])[:, None] * A[tight]
    sides, room = np.concatenate([-towards, towards]), np.repeat([0.0, 1.0], len(towards))
    return _solved(-towards.sum(axis=0), sides, room, [(None, None)] * A.shape[1])[1] > -TIGHT


def _scaled(X: np.ndarray, reward: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Columns and rewards in units of their largest entries, and these units."""
    size = np.abs(X).max(axis=0)
    size[size == 0] = 1.0
    height = float(np.abs(reward).max()) or 1.0
    return X / size, reward / height, size, height


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """Where the ``count`` largest values stand."""
    if count >= len(values):
        return np.arange(len(values))
    return np.argpartition(values, -count)[-count:]


def _programme(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    r"""The programme :math:`\min t` subject to :math:`-t \le b - A\theta \le t`: θ and t."""
    one = np.ones((len(A), 1))
    sides = np.block([[A, -one], [-A, -one]])
    cost = np.append(np.zeros(A.shape[1]), 1.0)
    bounds = [(None, None)] * A.shape[1] + [(0, None)]
    found = _solved(cost, sides, np.append(b, -b), bounds)[0]
    return found[:-1], float(found[-1])


def _solved(
    cost: np.ndarray, sides: np.ndarray, room: np.ndarray, bounds: list[Any]
) -> tuple[np.ndarray, float]:
    """Where the cost is least subject to ``sides @ x <= room``, and how low it is there."""
    from scipy.optimize import linprog

    found = linprog(cost, sides, room, bounds=bounds, method="highs")
    if found.status != 0:
        raise RuntimeError(f"best linear fit: the linear programme stopped ({found.message})")
    return found.x, float(found.fun)
