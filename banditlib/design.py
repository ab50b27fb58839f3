r"""Optimal designs: how often to play each arm so that no arm is predicted badly."""

from __future__ import annotations

import numpy as np

from banditlib.view import first_best

ENOUGH = 2.0
"""A design is good enough if no squared width exceeds this many times the dimension."""

MOST_STEPS = 100_000


def g_optimal(points: np.ndarray) -> tuple[np.ndarray, int]:
    r"""Shares ρ (N,) of plays with :math:`\max_a\|a\|^2_{G(\rho)^{-1}} \le 2r`, and the rank r.

    :math:`G(\rho)=\sum_a\rho(a)\,aa^\top` lives on the arms' span. By Kiefer and Wolfowitz the best
    design reaches r. Arms far apart open (each the longest outside the span of those before it),
    with equal shares; then the worst predicted arm gains, by the step that increases
    :math:`\log\det G` most, until the bound holds.
    """
    _, size, basis = np.linalg.svd(points, full_matrices=False)
    rank = int((size > size[0] * max(points.shape) * np.finfo(float).eps).sum()) if size[0] else 0
    rho = np.zeros(len(points))
    if rank == 0:
        rho[0] = 1.0
        return rho, 0
    A = points @ basis[:rank].T
    rho[_spread(A)] = 1.0 / rank
    for _ in range(MOST_STEPS):
        G = A.T @ (rho[:, None] * A)
        width = np.einsum("nd,nd->n", A, np.linalg.solve(G, A.T).T)
        worst = int(first_best(width))
        if width[worst] <= ENOUGH * rank:
            return rho, rank
        step = (width[worst] / rank - 1.0) / (width[worst] - 1.0)
        rho *= 1.0 - step
        rho[worst] += step
    raise RuntimeError(f"g_optimal: no design within {MOST_STEPS} steps")


def _spread(A: np.ndarray) -> np.ndarray:
    """Rows of A (N, r) that span, each the longest outside the span of those before it."""
    rest, rows = A.copy(), []
    for _ in range(A.shape[1]):
        row = int(first_best(np.einsum("nd,nd->n", rest, rest)))
        unit = rest[row] / np.linalg.norm(rest[row])
        rest = rest - np.outer(rest @ unit, unit)
        rows.append(row)
    return np.array(rows)
