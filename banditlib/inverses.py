"""Inverses of U: how long one may be kept and updated, and how it is computed afresh."""

from __future__ import annotations

import numpy as np

LONGEST = 2048
"""Refresh at the latest after this many rounds."""

DELICATE = 64.0
"""While a squared width is above this, the shrink rule is checked after every round."""


def spd_inverse(U: np.ndarray) -> np.ndarray:
    """Inverse of a symmetric positive definite matrix (d, d), in half the time of a general one."""
    from scipy.linalg import lapack

    factor, info = lapack.dpotrf(U.T, lower=1, clean=0)  # U.T is U, in the order LAPACK reads
    if info:
        raise np.linalg.LinAlgError("U is not positive definite")
    whole = lapack.dpotri(factor, lower=1, overwrite_c=1)[0].T  # right on and above the diagonal
    mirror(whole)
    return whole


def mirror(A: np.ndarray) -> None:
    """Copy what is above the diagonal of a square matrix below it, by blocks that fit a cache."""
    d, step = len(A), 64
    for i in range(0, d, step):
        here = slice(i, i + step)
        block = np.triu(A[here, here])
        A[here, here] = block + np.triu(block, 1).T
        A[i + step :, here] = A[here, i + step :].T
