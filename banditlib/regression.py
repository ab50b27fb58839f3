r"""One ridge regression on contexts that change from round to round.

With :math:`U = \lambda I + \sum_i x_i x_i^\top` and :math:`\theta = U^{-1}\sum_i r_i x_i`, a point
x has the mean :math:`x^\top\theta` and the squared width :math:`x^\top U^{-1} x`. One more
observation changes :math:`U^{-1}` by Sherman and Morrison's identity; it is computed afresh from U
before rounding errors add up.

Live agents learn one observation at a time (``learn``), runs of many lanes a block of them
(``learn_block``); what is kept, when it is computed afresh and how far it had drifted is the same.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from banditlib.backend import NUMPY, Array, device_array, namespace_of, to_numpy
from banditlib.inverses import DELICATE, LONGEST, spd_inverse

WAITING = 64
"""Observations that may wait to be added to U."""

LARGE = 64
"""From this dimension on matrices are worked on one by one on the host."""


class Ridge:
    """Regressions, one a row: the levels of one agent, or those of many lanes, lane by lane.

    Parameters
    ----------
    dim : dimension d
    lam : regulariser λ, one number or (rows,)
    rows : number of regressions
    xp, dtype : where the arrays live, and their type; live agents use numpy
    """

    FIELDS = ("U", "inverse", "b", "theta", "learnt", "since", "grown")

    def __init__(
        self, dim: int, lam: Any, rows: int = 1, xp: ModuleType = NUMPY, dtype: Any = np.float64
    ) -> None:
        self.dim = dim
        self.lam = np.broadcast_to(np.asarray(lam, dtype=np.float64), (rows,))
        scale = self.lam[:, None, None]
        self.U = device_array(xp, scale * np.eye(dim), dtype)
        self.inverse = device_array(xp, np.eye(dim) / scale, dtype)
        self.b = device_array(xp, np.zeros((rows, dim)), dtype)
        self.theta = self.b + 0.0
        self.learnt = np.zeros(rows, dtype=np.int64)  # observations by row
        self.since = np.zeros(rows, dtype=np.int64)  # of which since the last rebuild
        self.grown = np.zeros(rows)  # log det growth since the last rebuild
        self.waiting: dict[tuple[int, ...], list[tuple[Array, Array]]] = {}  # not yet in U and b
        self.drift = 0.0

    def grow(self, rows: int) -> None:
        """Add empty rows up to the number asked for."""
        new = rows - len(self.lam)
        if new <= 0:
            return
        self.absorb()
        empty = Ridge(self.dim, self.lam[-1], new, namespace_of(self.U), self.U.dtype)
        for name in ("lam", *self.FIELDS):
            both = [getattr(self, name), getattr(empty, name)]
            setattr(self, name, namespace_of(both[0]).concat(both, axis=0))

    def at(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and squared widths (rows, M) of the points X (M, d); for arrays of numpy."""
        var = np.vecdot(X @ self.inverse, X)
        if var.min() < 0.0:
            for row in np.flatnonzero(np.any(var < 0, axis=-1)).tolist():
                self.rebuild(slice(row, row + 1))
                var[row] = np.maximum(np.vecdot(X @ self.inverse[row], X), 0.0)
        if np.count_nonzero(self.learnt) < len(self.learnt):  # first widths are exactly ‖x‖/√λ
            fresh = self.learnt == 0
            var[fresh] = np.vecdot(X, X) / self.lam[fresh, None]
        return self.theta @ X.T, var

    def learn(self, row: int, x: np.ndarray, reward: float) -> None:
        """One observation, for arrays of numpy."""
        inverse, theta = self.inverse[row], self.theta[row]
        u = inverse @ x
        g = float(x @ u)
        theta += u * ((reward - float(x @ theta)) / (1.0 + g))
        inverse -= u[:, None] * (u / (1.0 + g))
        self.learnt[row] += 1
        self.since[row] += 1
        self.grown[row] += max(g, 0.0)
        self._wait((row, row + 1, 1), x[None, None, :], np.array([[reward]]))
        # With directions far apart in width, U⁻¹x is a small difference of large numbers; no
        # entry of U⁻¹ is above 1/λ.
        long = float(x @ x)
        strained = long > 0.5 * DELICATE * self.lam[row] and (
            float(inverse.diagonal().max()) * long > DELICATE
        )
        worn = self.since[row] >= LONGEST or self.grown[row] > self.most
        if strained or worn or not g >= 0.0:
            self.rebuild(slice(row, row + 1))

    def learn_block(
        self, rows: slice, W: Array, s: Array, X: Array, reward: Array, g: Array, n: np.ndarray
    ) -> None:
        r"""Several observations of each of ``rows``: all of a block's, in the order played.

        With :math:`u = U^{-1}x` at the time of the observation and :math:`g = x^\top u`, W holds
        :math:`u/\sqrt{1+g}` and s the surprise :math:`(r - x^\top\theta)/\sqrt{1+g}`. W, X are
        (rows, m, d), s, reward, g (rows, m), all 0 where nothing was learnt; n (rows,) counts.
        """
        xp = namespace_of(self.U)
        self.theta[rows, :] += xp.matmul(s[:, None, :], W)[:, 0, :]
        add_squares(self.inverse[rows, :, :], W, -1.0)
        self.learnt[rows] += n
        self.since[rows] += n
        self.grown[rows] += to_numpy(xp.sum(g, axis=-1))
        self._wait((rows.start, rows.stop, rows.step), X, reward)

    def worn(self) -> bool:
        """Whether some row has learnt much since its inverse was computed."""
        return bool((self.since >= LONGEST).any() or (self.grown > self.most).any())

    @property
    def most(self) -> float:
        """Most growth of log det between two rebuilds; spread over many directions it harms none
        of them.
        """
        return max(DELICATE, 2.0 * self.dim)

    def _wait(self, place: tuple[int, ...], X: Array, reward: Array) -> None:
        """Let observations of some rows wait to be added to U and b."""
        parts = self.waiting.setdefault(place, [])
        parts.append((X, reward))
        if len(parts) >= WAITING or len(parts) * X.shape[1] >= WAITING:
            self.absorb()

    def absorb(self) -> None:
        """Add the observations that wait to U and b."""
        xp = namespace_of(self.U)
        for place, parts in self.waiting.items():
            rows = slice(*place)
            X = xp.concat([X for X, _ in parts], axis=1)
            reward = xp.concat([reward for _, reward in parts], axis=1)
            add_squares(self.U[rows, :, :], X, 1.0)
            self.b[rows, :] += xp.matmul(reward[:, None, :], X)[:, 0, :]
        self.waiting = {}

    def rebuild(self, rows: slice) -> None:
        """Invert U of these rows afresh; records how far the kept inverses had drifted."""
        self.absorb()
        if large(self.U):
            for row in range(len(self.lam))[rows]:
                self._renew(slice(row, row + 1), spd_inverse(self.U[row])[None])
        else:
            xp = namespace_of(self.U)
            inverse = xp.linalg.inv(self.U[rows, :, :])
            self._renew(rows, 0.5 * (inverse + xp.matrix_transpose(inverse)))
        self.since[rows], self.grown[rows] = 0, 0.0

    def _renew(self, rows: slice, inverse: Array) -> None:
        """Put fresh inverses (rows, d, d) in place of those kept."""
        xp = namespace_of(self.U)
        error = xp.max(xp.abs(inverse - self.inverse[rows, :, :]), axis=(1, 2))
        error = error / xp.max(xp.abs(inverse), axis=(1, 2))
        self.drift = max(self.drift, float(xp.max(error)))
        self.inverse[rows, :, :] = inverse
        self.theta[rows, :] = xp.matmul(inverse, self.b[rows, :, None])[:, :, 0]


def large(matrices: Array) -> bool:
    """Whether matrices (rows, d, d) are best taken one by one on the host, each in the cache."""
    return (
        type(matrices) is np.ndarray and matrices.dtype == np.float64 and matrices.shape[2] >= LARGE
    )


def add_squares(target: Array, X: Array, sign: float) -> None:
    """Add ± XᵀX to symmetric matrices (rows, d, d), in place; X is (rows, n, d)."""
    if large(target):
        from scipy.linalg import blas

        for matrix, x in zip(target, X, strict=True):
            blas.dgemm(sign, x.T, x.T, 1.0, matrix.T, trans_b=1, overwrite_c=1)
    else:
        xp = namespace_of(target)
        target += sign * xp.matmul(xp.matrix_transpose(X), X)
