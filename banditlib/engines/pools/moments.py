r"""Widths and means inside a stretch by a series, from both sides.

With the words of :mod:`banditlib.engines.pools.stretches`, :math:`z=U_0^{-1/2}x`,
:math:`U_k=U_0^{1/2}(I+B)U_0^{1/2}` and the moments :math:`m_j=z^\top B^jz`,
:math:`(I+B)^{-1}-\sum_{j<J}(-B)^j=(-B)^J(I+B)^{-1}`. So :math:`w_k^2` differs from
:math:`\sum_{j<J}(-1)^jm_j` by :math:`(-1)^Jz^\top B^J(I+B)^{-1}z`. The product is at least
:math:`m_J/(1+\rho)`, at most :math:`m_J-m_{J+1}/(1+\rho)`, and by Cauchy-Schwarz at least
:math:`m_J^2/(m_J+m_{J+1})`, which knows the growth in the direction of x. The mean is
:math:`x^\top\theta_0+\sum_{j\le J}(-1)^j(B^jz)^\top U_0^{-1/2}g_k` up to
:math:`\|B^{J+1}z\|\|g_k\|_{U_0^{-1}}`, where :math:`\|B^{J+1}z\|^2=m_{2J+2}\le\rho^2m_{2J}`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray

LAST = 48
"""Number of moments after which nothing more is to be gained."""
ROUNDING = 1e-13
"""Error of a sum of moments in proportion to their sizes; they grow without bound if ρ > 1."""


class Bounds(NamedTuple):
    r"""What the series says about some points, each in a round of its own.

    Attributes
    ----------
    move : (n,) by how much their means moved, up to ``error`` times :math:`\|g_k\|_{U_0^{-1}}`
    low, high : (n,) ends of their widths
    products : how many rows were multiplied with the n points, as a measure of the time
    """

    move: Array
    low: Array
    high: Array
    error: Array
    products: float


def series(
    inverse: Array, rho: float, moments: int, rows: Array, C: Array, E: Array | None, x: Array
) -> Bounds:
    """Bounds for the points x (n, d) by so many moments.

    Before the round of point i, row p was learnt ``C[i, p]`` times with residuals that add up to
    ``E[i, p]``; without ``E`` the means are left alone. There are few points and many rows: a
    product with as many rows as there are points is the faster way round.
    """
    n, v = len(x), x
    q = v @ inverse
    even = total = high = size = np.einsum("nd,nd->n", v, q)
    move, low = np.zeros((2, n))
    products = float(len(inverse))
    for step in range(0, moments, 2):
        H = q @ rows.T
        products += 1.5 * len(rows)
        if E is not None:
            move += (-1) ** (step // 2) * np.einsum("np,np->n", E, H)
        CH = C * H
        odd = np.einsum("np,np->n", CH, H)
        size = size + odd
        low = np.maximum(low, total - even + share(even, odd) - ROUNDING * size)
        high = np.minimum(high, total - odd / (1.0 + rho) + ROUNDING * size)
        error = rho * np.sqrt(even)
        if step + 1 == moments or even.max(initial=0.0) <= 1e-30:
            break
        v = CH @ rows
        q = v @ inverse
        products += len(rows) + len(inverse)
        even = np.maximum(np.einsum("nd,nd->n", q, v), 0.0)
        size = size + even
        high = np.minimum(high, total - share(odd, even) + ROUNDING * size)
        total = total - odd + even
        low = np.maximum(low, total - even + even / (1.0 + rho) - ROUNDING * size)
        error = np.minimum(error, np.sqrt(even))
    high = np.sqrt(np.maximum(high, 0.0))
    low = np.minimum(np.sqrt(low), high)
    return Bounds(move, low, high, error, products)


def counted_before(at: Array, slot: Array, weight: Array | None, n: int, rounds: Array) -> Array:
    """How often each of n points was learnt before each of ``rounds``, or sums of its weights:
    (rounds, n).
    """
    D = rounds.size
    late = np.searchsorted(rounds, at, side="right")
    use = late < D
    each = np.ones(at.size) if weight is None else weight[at]
    found = np.bincount(late[use] * n + slot[use], each[use], minlength=n * D)
    found = found.astype(float, copy=False).reshape(D, n)
    return np.cumsum(found, axis=0, out=found)


def share(a: Array, b: Array) -> Array:
    """a²/(a + b) of numbers that are not negative, 0 where both vanish."""
    return a * (a / np.maximum(a + b, 1e-300))
