"""Ridge regression on a pool, one level at a time: the state that blocks and stretches share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from banditlib.inverses import DELICATE, spd_inverse

Array = np.ndarray

RENEW = 4096
"""Rounds folded into an inverse before it is computed afresh."""


class PoolRegression:
    r"""One regression: :math:`U`, :math:`U^{-1}`, :math:`b=\sum r_ix_i` and :math:`\theta=U^{-1}b`.

    ``wide`` and ``narrow`` (P,) enclose the width of every pool point in the present state. Widths
    only shrink, so ``wide`` stays valid whatever is learnt; ``narrow`` is divided by
    :math:`\sqrt{1+\rho}` when :math:`U` grows to at most :math:`(1+\rho)U`.

    Parameters
    ----------
    points : (P, d) the pool
    norms : (P,) their norms; the first widths are exactly :math:`\|x\|/\sqrt\lambda`
    lam : regulariser λ
    """

    def __init__(self, points: Array, norms: Array, lam: float) -> None:
        d = points.shape[1]
        self.points = points
        self.U, self.inverse = lam * np.eye(d), np.eye(d) / lam
        self.b, self.theta = np.zeros(d), np.zeros(d)
        self.wide = norms / np.sqrt(lam)
        self.narrow = self.wide.copy()
        self.longest = float(norms.max()) ** 2
        self.learnt = 0
        self.waiting: list[Array] = []  # rows learnt in blocks and not yet added to U
        self.folded = 0  # rounds folded into the inverse since it was last computed afresh
        self.drift = 0.0  # largest error that a renewal found
        self._table: Array | None = None  # means of the whole pool
        self._asked = False  # whether means were asked for since something was learnt

    def fold(self, X: Array, r: Array, W: Array, s: Array) -> None:
        r"""Learn rows X (n, d) with rewards r by Woodbury's identity.

        ``W`` is :math:`R^{-1}XU^{-1}` and ``s`` is :math:`R^{-1}(r-X\theta)` for
        :math:`RR^\top=I+XU^{-1}X^\top`.
        """
        self.waiting.append(X)
        self.b += r @ X
        self.theta = self.theta + s @ W
        self.learnt += len(X)
        self.narrow[:] = 0.0
        self._lower(W)

    def _lower(self, W: Array) -> None:
        """Take WᵀW from the inverse, and compute it afresh where that was done often."""
        self._table, self._asked = None, False
        downdate(self.inverse, W)
        self.folded += len(W)
        strained = self.inverse.diagonal().max() * self.longest > DELICATE
        if self.folded >= RENEW or strained:
            old = self.inverse
            self.renew()
            error = np.abs(old - self.inverse).max() / np.abs(self.inverse).max()
            self.drift = max(self.drift, float(error))

    def grow(
        self,
        A: Array,
        gain: Array,
        rho: float,
        count: int,
        few: Array | None,
        inverse: Array | None = None,
    ) -> None:
        r"""Learn ``count`` rounds at once: A the sum of x xᵀ, at most ρU, and gain that of r x.

        ``inverse`` is that of U + A, if it is known already; ``few`` are rows X with
        :math:`A=X^\top X`, if they are few.
        """
        self.narrow /= np.sqrt(1.0 + rho)
        self.U += A
        self.b += gain
        self.learnt += count
        if few is None or inverse is not None:
            self.renew(inverse)
            return
        V = few @ self.inverse
        self._lower(forward(np.linalg.cholesky(np.eye(len(few)) + V @ few.T), V))
        self.theta = self.inverse @ self.b

    def renew(self, inverse: Array | None = None) -> None:
        """Compute inverse and estimate afresh from U and b."""
        self.absorb()
        self.inverse = spd_inverse(self.U) if inverse is None else inverse
        self.theta = self.inverse @ self.b
        self.folded = 0
        self._table, self._asked = None, False

    def absorb(self) -> None:
        """Add the rows that wait to U."""
        if self.waiting:
            X = np.concatenate(self.waiting)
            self.U += X.T @ X
            self.waiting = []

    def table(self, some: int) -> Array | None:
        """Means of the whole pool, once a level is at rest or many are asked for, else None."""
        if self._table is None:
            if not self._asked and some < len(self.points) // 3:
                self._asked = True
                return None
            self._table = self.points @ self.theta
        return self._table

    def measure(self, which: Array) -> None:
        """Exact widths of the pool points ``which`` in the present state."""
        self.wide[which] = self.narrow[which] = widths(self.points, which, self.inverse)


def means(states: Sequence[PoolRegression], which: Array) -> Array:
    """Means of the pool points ``which`` in each state (states, n); levels at rest answer from a
    table, the others share one product.
    """
    found = np.empty((len(states), which.size))
    tables = [state.table(which.size) for state in states]
    moved = [i for i, table in enumerate(tables) if table is None]
    if moved:
        thetas = np.stack([states[i].theta for i in moved])
        found[moved] = thetas @ states[0].points[which].T
    for i, table in enumerate(tables):
        if table is not None:
            table.take(which, out=found[i])
    return found


def widths(points: Array, which: Array, inverse: Array) -> Array:
    """Widths of the points ``which`` under an inverse of U."""
    found = np.empty(which.size)
    for part in np.array_split(np.arange(which.size), max(1, which.size // 4096)):
        x = points[which[part]]
        var = np.einsum("nd,nd->n", x @ inverse, x)
        found[part] = np.sqrt(np.maximum(var, 0.0))
    return found


def growth(state: PoolRegression, A: Array, few: Array | None, last: float | None = None) -> float:
    r"""A number with :math:`A\preceq\rho U`: guessed by power iteration, proved by Cholesky.

    Of ``few`` rows X with :math:`A=X^\top X` it is the largest eigenvalue of
    :math:`XU^{-1}X^\top`.
    """
    if few is not None:
        largest = np.linalg.eigvalsh(few @ state.inverse @ few.T)[-1]
        return float(largest) * (1.0 + 1e-9) + 1e-12
    if last is None:
        v, size = np.ones(len(A)), 0.0
        for _ in range(8):
            w = state.inverse @ (A @ v)
            size = float(np.linalg.norm(w))
            v = w / max(size, 1e-300)
        last = 1.1 * size + 1e-12
    while not is_positive(last * state.U - A):
        last *= 1.2
    return last


def is_positive(A: Array) -> bool:
    """Whether a symmetric matrix is positive definite, by Cholesky."""
    from scipy.linalg import lapack

    return lapack.dpotrf(A.T, lower=1, clean=0)[1] == 0


def forward(root: Array, right: Array) -> Array:
    """Solve ``root @ x = right`` for a lower triangular root."""
    from scipy.linalg import lapack

    if root.size == 0:
        return right
    return lapack.dtrtrs(root.T, right, lower=0, trans=1)[0]


def downdate(inverse: Array, W: Array) -> None:
    """Subtract WᵀW from a symmetric matrix, in place."""
    from scipy.linalg import blas

    W = np.ascontiguousarray(W)
    blas.dgemm(-1.0, W.T, W.T, beta=1.0, c=inverse.T, trans_b=1, overwrite_c=1)
