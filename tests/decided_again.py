"""Every decision of a long run once more, many rounds at a time: what a plain loop does slowly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import banditlib as bl
from banditlib.view import View

PIECE = 20_000


def decided_again(
    policy: bl.Policy,
    shown: Callable[[slice], np.ndarray],
    reward: np.ndarray,
    arms: np.ndarray,
    levels: np.ndarray,
) -> None:
    """Decide from the posterior that the decisions before each round leave, and compare.

    U and b before each round are running sums, solved afresh; if all decisions agree, the run is
    the policy's own, round after round by induction.

    Parameters
    ----------
    shown : the vectors (n, M, d) of a slice of rounds
    reward : (K,) what the played arm paid
    arms, levels : (K,) the run
    """
    d = shown(slice(0, 1)).shape[-1]
    depth = policy.levels(d, len(arms))
    U, b = np.tile(policy.lam * np.eye(d), (depth, 1, 1)), np.zeros((depth, d))
    for start in range(0, len(arms), PIECE):
        part = slice(start, min(start + PIECE, len(arms)))
        X, k = shown(part), np.arange(part.start, part.stop) + 1
        x = X[np.arange(len(k)), arms[part]]
        learns = (levels[part, None] == np.arange(1, depth + 1)).astype(float)
        more = learns[:, :, None, None] * (x[:, None, :, None] * x[:, None, None, :])
        told = learns[:, :, None] * (reward[part, None] * x)[:, None, :]
        U_k, b_k = np.cumsum(more, axis=0), np.cumsum(told, axis=0)
        inverse = np.linalg.inv(U + U_k - more)
        theta = (inverse @ (b + b_k - told)[..., None])[..., 0]
        mean = theta @ np.swapaxes(X, 1, 2)
        var = np.sum((X[:, None] @ inverse) * X[:, None], axis=-1)
        view = View(mean, var, d) if depth > 1 else View(mean[:, 0], var[:, 0], d)
        arm, level = policy.choose(k, view)
        np.testing.assert_array_equal(arm, arms[part])
        np.testing.assert_array_equal(level, levels[part])
        U, b = U + U_k[-1], b + b_k[-1]
