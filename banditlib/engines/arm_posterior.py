r"""The ridge posterior on fixed arms for many lanes: one more observation is one product.

A *view* holds for M points x the mean :math:`x^\top\theta` and the squared width :math:`x^\top
U^{-1} x`. One more observation r of point a is conditioning of a Gaussian: with :math:`g = X
U^{-1} x_a`,

.. math:: m \mathrel{+}= g\,(r - m_a)/(1 + g_a), \qquad \mathrm{var} \mathrel{-}= g^2/(1 + g_a).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from banditlib.backend import Array, device_array, put, row_starts, to_numpy
from banditlib.inverses import DELICATE
from banditlib.view import View

SHRINK = 512.0
"""Refresh once some squared width is this many times smaller than at the last refresh."""

PENDING = 8
"""Rank-one updates of an inverse that wait to be folded in by one product."""


class ArmPosterior:
    """The posterior on fixed arms for many lanes (and levels): inverse, means, squared widths.

    Rows are lanes times levels, lane by lane. Lanes are ordered problem by problem, the same
    number each, so that one batched product ``(P, b, d) @ (P, d, N)`` serves them all.

    Parameters
    ----------
    X : (P, N, d) arms of each problem, host
    lam : (L,) regulariser of each lane
    levels : number S of regressions a lane keeps
    cov : keep the points' covariance (N, N) instead of the inverse (d, d)
    layered : give views an axis of levels
    """

    def __init__(
        self,
        X: np.ndarray,
        lam: np.ndarray,
        xp: ModuleType,
        dtype: Any,
        levels: int = 1,
        cov: bool = False,
        layered: bool = False,
    ) -> None:
        self.xp, self.dtype, self.levels, self.dim = xp, dtype, levels, X.shape[-1]
        self.keep_cov, self.layered = cov, layered
        self.host_X, self.lam = subspace(X), np.asarray(lam, dtype=np.float64)
        self._points()
        lanes, N = self.lam.size, X.shape[1]
        self.norms = np.sum(X * X, axis=-1)  # (P, N): first widths are exactly ‖x‖/√λ
        var = np.repeat(self.norms, lanes // len(X), axis=0) / self.lam[:, None]
        mean, inverse = np.zeros((lanes * levels, N)), self._first_inverse(X)
        self._fill(mean, np.repeat(var, levels, axis=0), inverse)
        self.drift = 0.0

    @property
    def _waits(self) -> bool:
        """Whether ``inner`` is (d, d) with PENDING rows W below it: U⁻¹ = inverse - WᵀW."""
        return self.levels == 1 and not self.keep_cov

    def _points(self) -> None:
        P, N, d = self.host_X.shape
        self.Xt = device_array(self.xp, np.swapaxes(self.host_X, 1, 2), self.dtype)
        self.flat_X = device_array(self.xp, self.host_X.reshape(P * N, d), self.dtype)

    def _first_inverse(self, X: np.ndarray) -> np.ndarray:
        per = self.lam.size // len(X)
        if self.keep_cov:
            gram = self.host_X @ np.swapaxes(self.host_X, 1, 2)
            return np.repeat(gram, per, axis=0) / self.lam[:, None, None]
        inverse = np.eye(self.host_X.shape[-1]) / self.lam[:, None, None]
        return np.repeat(inverse, self.levels, axis=0)

    def _fill(self, mean: np.ndarray, var: np.ndarray, inner: np.ndarray) -> None:
        """Put host arrays in place: rows (R, N), (R, N), (R, d, d) or (R, N, N)."""
        self.mean, self.var = (device_array(self.xp, a, self.dtype) for a in (mean, var))
        if self._waits:
            room = np.zeros((len(inner), PENDING, inner.shape[-1]))
            inner = np.concatenate([inner, room], axis=1)
        self.inner, self.filled = device_array(self.xp, inner, self.dtype), 0
        self.anchor = self.var + 0.0  # squared widths at the last refresh
        self.delicate = bool(var.max(initial=0.0) > DELICATE)
        self.strained = False
        self._offsets()

    def _offsets(self) -> None:
        """For gathers: first arm of each lane's problem, first row of each lane."""
        lanes, P, N = self.lam.size, self.Xt.shape[0], self.mean.shape[-1]
        self.first_arm = device_array(self.xp, np.repeat(np.arange(P) * N, lanes // P))
        self.first_row = device_array(self.xp, np.arange(lanes) * self.levels)

    def view(self, **extra: Any) -> View:
        """The view of all lanes, (L, N) or, for a layered policy, (L, S, N)."""
        mean, var = self.mean, self.var
        if self.layered:
            shape = (self.lam.size, self.levels, mean.shape[-1])
            mean, var = self.xp.reshape(mean, shape), self.xp.reshape(var, shape)
        return View(mean, var, self.dim, cov=self.inner if self.keep_cov else None, **extra)

    def learn(self, arm: Array, level: Array, reward: Array, weight: Array = None) -> None:
        """One observation per lane: arm (L,), level (L,) with 0 for none, reward (L,), and its
        weight (L,) in the regression, for a policy with one level; None if all count whole.
        """
        xp = self.xp
        on = xp.astype(level > 0, self.dtype)
        if self.delicate:
            self._strain(level)
        if self.levels == 1:
            u = self._condition(self.mean, self.var, self.inner, arm, reward, on, weight)
            if self._waits:
                self._queue(u)
            else:
                self.inner -= u[:, :, None] * u[:, None, :]
            return
        row = self.first_row + xp.maximum(level, xp.ones_like(level)) - 1
        mean, var, inner = (xp.take(a, row, axis=0) for a in (self.mean, self.var, self.inner))
        u = self._condition(mean, var, inner, arm, reward, on)
        inner -= u[:, :, None] * u[:, None, :]
        self.mean = put(self.mean, row, mean, xp)
        self.var = put(self.var, row, var, xp)
        self.inner = put(self.inner, row, inner, xp)

    def _strain(self, level: Array) -> None:
        """Note if a regression learns while some arm is wide: then U⁻¹x_a is a small difference of
        large numbers.
        """
        xp = self.xp
        row = self.first_row + xp.maximum(level, xp.ones_like(level)) - 1
        wide = xp.take(xp.max(self.var, axis=-1), row, axis=0) > DELICATE
        self.strained = self.strained or bool(xp.any(wide & (level > 0)))

    def _condition(
        self,
        mean: Array,
        var: Array,
        inner: Array,
        arm: Array,
        reward: Array,
        on: Array,
        weight: Array = None,
    ) -> Array:
        """Update mean and var in place; returns U⁻¹x_a/√(1+g_a), or its covariances (L, N)."""
        xp = self.xp
        rows = row_starts(xp, arm.shape[0], mean.shape[-1]) + arm
        if weight is None:
            root = 1.0 / xp.sqrt(1.0 + xp.reshape(var, (-1,))[rows])
        else:
            root = xp.sqrt(weight / (1.0 + weight * xp.reshape(var, (-1,))[rows]))
        surprise = (reward - xp.reshape(mean, (-1,))[rows]) * root
        root *= on
        if self.keep_cov:
            u = xp.take(xp.reshape(inner, (-1, inner.shape[-1])), rows, axis=0)
            u *= root[:, None]
            g = u + 0.0
        else:
            where = arm if self.Xt.shape[0] == 1 else self.first_arm + arm
            u = self._times_inverse(inner, xp.take(self.flat_X, where, axis=0))
            u *= root[:, None]
            g = self._on_arms(u)
        var -= g * g
        g *= surprise[:, None]
        mean += g
        return u

    def _times_inverse(self, inner: Array, x: Array) -> Array:
        """U⁻¹x of every lane (L, d), waiting updates included."""
        xp, d = self.xp, x.shape[-1]
        z = xp.matmul(inner, x[:, :, None])[:, :, 0]
        if not self._waits:
            return z
        return z[:, :d] - xp.matmul(z[:, None, d:], inner[:, d:, :])[:, 0, :]

    def _on_arms(self, u: Array) -> Array:
        """x·u for all arms, (L, N): one product per problem."""
        P = self.Xt.shape[0]
        if P == 1:
            return self.xp.matmul(u, self.Xt[0, :, :])
        g = self.xp.matmul(self.xp.reshape(u, (P, -1, u.shape[-1])), self.Xt)
        return self.xp.reshape(g, (u.shape[0], -1))

    def _queue(self, u: Array) -> None:
        """Let the update u uᵀ wait; fold PENDING of them into the inverse at once."""
        d = u.shape[-1]
        self.inner[:, d + self.filled, :] = u
        self.filled += 1
        if self.filled == PENDING:
            W = self.inner[:, d:, :]
            self.inner[:, :d, :] -= self.xp.matmul(self.xp.matrix_transpose(W), W)
            self.inner[:, d:, :] = 0.0
            self.filled = 0

    def worn(self) -> bool:
        """Whether a squared width shrank by SHRINK, turned negative or is not a number, or a
        regression learnt while it was strained.
        """
        if self.strained:
            return True
        shrunk = self.anchor > SHRINK * self.var
        return bool(self.xp.any(shrunk | (self.var < 0.0) | (self.var != self.var)))

    def refresh(self, counts: np.ndarray, totals: np.ndarray, measure: bool = True) -> None:
        """Rebuild from what was learnt, counts and totals (L, S, N) on the host; note the drift."""
        mean, var, inverse = self._solve(counts, totals)
        if measure:
            self._measure(mean, var)
        if self.keep_cov:
            X = np.repeat(self.host_X, self.lam.size // len(self.host_X), axis=0)
            inverse = X @ inverse @ np.swapaxes(X, 1, 2)
        self._fill(mean, var, inverse)

    def _measure(self, mean: np.ndarray, var: np.ndarray) -> None:
        """Largest error against rebuilt values: relative in var, over 1 + |m| in mean."""
        old_mean, old_var = to_numpy(self.mean), to_numpy(self.var)
        error = np.abs(old_mean - mean) / (1.0 + np.abs(mean))
        self.drift = max(self.drift, float(error.max(initial=0.0)))
        positive = var > 0
        error = np.abs(old_var - var)[positive] / var[positive]
        self.drift = max(self.drift, float(error.max(initial=0.0)))

    def _solve(
        self, counts: np.ndarray, totals: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means, squared widths (R, N) and inverses (R, d, d) from counts and totals.

        U = RᵀR comes from a QR factorisation of the rows √n x and √λ I, and the means get one step
        of refinement: forming U or b first would cost digits in directions that are rarely played.
        """
        P, N, d = self.host_X.shape
        X = self.host_X[:, None]  # (P, 1, N, d)
        n, t = counts.reshape(P, -1, N, 1), totals.reshape(P, -1, N, 1)
        lam = np.repeat(self.lam, self.levels).reshape(P, -1, 1, 1)
        rows = np.concatenate([np.sqrt(n) * X, np.sqrt(lam) * np.eye(d)], axis=-2)
        root = np.linalg.inv(np.linalg.qr(rows, mode="r"))
        W, Xt = X @ root, np.swapaxes(X, -1, -2)
        inverse = root @ np.swapaxes(root, -1, -2)
        theta = inverse @ (Xt @ t)
        theta = theta + inverse @ (Xt @ (t - n * (X @ theta)) - lam * theta)
        mean, var = (X @ theta)[..., 0], np.sum(W * W, axis=-1)
        n, lam = n[..., 0], lam[..., 0, 0]
        fresh = n.sum(axis=-1) == 0  # untouched rows keep their exact first widths
        first = self.norms[:, None] / lam[..., None]
        var = np.where(fresh[..., None], first, var)
        return mean.reshape(-1, N), var.reshape(-1, N), inverse.reshape(-1, d, d)

    def take(self, lanes: np.ndarray, problems: np.ndarray) -> None:
        """Keep these lanes (sorted problem by problem, the same number each) and these problems."""
        rows = (lanes[:, None] * self.levels + np.arange(self.levels)).reshape(-1)
        index = device_array(self.xp, rows)
        self.mean, self.var, self.inner, self.anchor = (
            self.xp.take(a, index, axis=0) for a in (self.mean, self.var, self.inner, self.anchor)
        )
        self.host_X, self.lam = self.host_X[problems], self.lam[lanes]
        self.norms = self.norms[problems]
        self._points()
        self._offsets()


def subspace(X: np.ndarray) -> np.ndarray:
    """Coordinates of the arms (P, N, d) in their span when that is smaller than d; else X itself.

    Means, widths and covariances of points depend on inner products only, so nothing changes, and
    directions that no arm can reach no longer spoil the condition of U.
    """
    d = X.shape[-1]
    rank = max(1, int(np.linalg.matrix_rank(X).max(initial=1)))
    if rank == d:
        return np.ascontiguousarray(X)
    _, _, basis = np.linalg.svd(X, full_matrices=False)
    return np.ascontiguousarray(X @ np.swapaxes(basis[:, :rank, :], 1, 2))
