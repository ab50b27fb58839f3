"""What one level learns in a stretch if the rounds go as a guess says."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


class GuessedUpdate:
    r"""What one level learns in a stretch under the guess, and how far that can move it.

    Attributes
    ----------
    played : (b,) local index of the point learnt in each round, -1 where nothing is learnt
    residual : (b,) e, 0 where nothing is learnt
    A : (d, d) the sum of x xᵀ over the stretch;  rho : number with :math:`A\preceq\rho U_0`
    edge : positions that cut the stretch into groups, the first and the last included
    sums, g : (groups, d) sum of e x in each group, and (groups + 1, d) their running sum
    far : (b,) bound on :math:`\|g_k\|_{U_0^{-1}}` before each round
    theta, group, step : before each round, ``theta[group]`` is :math:`\theta_0+U_0^{-1}g` at the
        nearest edge, and ``step`` bounds the norm of what was learnt in between
    low, high : (M, b) ends of widths that were refined
    end : inverse after the stretch, if it was asked for
    least : (n,) lower ends of the widths of the n points here after the stretch
    ended, exact : (n,) whether ``least`` was measured, and whether under this very guess
    rows : positions that learn, each one's place among distinct points, and those (see ``_rows``)
    """

    def __init__(self, played: Array, residual: Array, shape: tuple[int, int, int]) -> None:
        dim, arms, points = shape
        size, learns = len(played), int((played >= 0).sum())
        groups = int(np.clip(learns // 32, 1, 256))
        self.played, self.residual = played, residual
        self.edge = np.linspace(0, size, groups + 1).astype(np.int64)
        self.A, self.sums = np.zeros((dim, dim)), np.zeros((groups, dim))
        self.rho = 0.0
        self.g = self.theta = self.sums
        self.far = self.step = residual
        self.group = played
        self.low, self.high = np.zeros((arms, size)), np.full((arms, size), np.inf)
        self.end: Array | None = None
        self.least = np.zeros(points)
        self.ended, self.exact = np.zeros((2, points), bool)
        self.rows: tuple[Array, Array, Array] | None = None

    @classmethod
    def changed(cls, last: GuessedUpdate, played: Array, residual: Array) -> GuessedUpdate:
        """The same stretch under another guess, before any sums are updated."""
        new = cls.__new__(cls)
        new.__dict__.update(last.__dict__)
        new.played, new.residual, new.rows, new.end = played, residual, None, None
        new.exact = np.zeros_like(last.exact)
        return new

    def groups_of(self, at: Array) -> Array:
        """Group of each position."""
        return np.searchsorted(self.edge, at, side="right") - 1
