r"""Fresh unit vectors in every round: the paper's setting with decision sets that change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditlib.checks import fits, integer, real, real_array, require
from banditlib.problems.contextual import CHUNK, Sampled
from banditlib.problems.seeds import generator

NAMED = ("two-point", "interval")


@dataclass(frozen=True, eq=False)
class UnitVectors:
    """The sampler behind :func:`unit_vectors`: directions drawn uniformly, round by round."""

    theta: np.ndarray
    arms: int
    zeta: float
    misspecification: str | Callable[[np.ndarray], Any]
    gap: float
    attempts: int

    def __call__(self, rng: np.random.Generator, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sets (n, M, d) with rewards (n, M); rounds with too small a gap are drawn anew."""
        X, reward = self._draw(rng, len(k))
        if self.arms == 1 or self.gap == 0:
            return X, reward
        for _ in range(self.attempts):
            top = np.partition(reward, -2, axis=1)[:, -2:]
            again = np.flatnonzero(top[:, 1] - top[:, 0] < self.gap)
            if again.size == 0:
                return X, reward
            X[again], reward[again] = self._draw(rng, len(again))
        raise ValueError(
            f"gap: no set of {self.arms} arms with gap {self.gap:g} in {self.attempts} draws"
        )

    def _draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.standard_normal((n, self.arms, len(self.theta)))
        X /= np.linalg.norm(X, axis=-1, keepdims=True)
        return X, X @ self.theta + self.zeta * self._shape(rng, X)

    def _shape(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        """The misspecification in units of ζ, within [-1, 1]."""
        if self.misspecification == "two-point":
            return np.where(rng.random(X.shape[:2]) < 0.5, -1.0, 1.0)
        if self.misspecification == "interval":
            return 2.0 * rng.random(X.shape[:2]) - 1.0
        given: Callable[[np.ndarray], Any] = self.misspecification  # type: ignore[assignment]
        values = np.asarray(given(X), dtype=np.float64)
        name, shape = "misspecification", X.shape[:2]
        require(values.shape == shape, name, f"values {shape} for X {X.shape}", values.shape)
        within = (np.abs(values) <= 1.0 + 1e-9).all()
        require(within, name, "values within [-1, 1]; zeta scales them")
        return values


def unit_vectors(
    dim: int = 16,
    arms: int = 10,
    zeta: float = 0.0,
    misspecification: Any = "two-point",
    gap: float = 0.0,
    theta: Any = None,
    sigma: float = 1.0,
    seed: int = 0,
    instance: int = 0,
    shared: bool = False,
    attempts: int = 10_000,
) -> Sampled:
    r"""Unit vectors drawn afresh in each round, :math:`r(x) = x^\top\theta^* + \zeta f(x)`.

    Parameters
    ----------
    dim, arms : d and the number M of arms in each round
    zeta : misspecification ζ >= 0
    misspecification : "two-point" for f uniform on {-1, 1}, "interval" for f uniform on [-1, 1],
        both drawn anew for each arm; or a function of X (n, M, d) with values (n, M) in [-1, 1]
    gap : a round in which an arm lies less than this below the best is drawn anew; 0 for any gap
    theta : (d,) the linear part θ*; by default a unit vector drawn from ``seed`` and ``instance``
    sigma : deviation of the noise
    seed, instance : which θ* to draw; ``instance`` also names the problem in the seeds of its runs
    shared : show every trial the same contexts
    attempts : give up a round after this many draws
    """
    dim, arms = integer("dim", dim, 1), integer("arms", arms, 1)
    fits("dim, arms", 16.0 * CHUNK * dim * arms, f"the contexts of {CHUNK} rounds")
    zeta, gap = real("zeta", zeta, 0.0), real("gap", gap, 0.0)
    named = isinstance(misspecification, str) and misspecification in NAMED
    expected = "'two-point', 'interval' or a function"
    require(named or callable(misspecification), "misspecification", expected, misspecification)
    if theta is None:
        theta = generator(seed, "instance", instance).standard_normal(dim)
        theta /= np.linalg.norm(theta)
    theta = real_array("theta", theta, 1)
    draw = UnitVectors(theta, arms, zeta, misspecification, gap, integer("attempts", attempts, 1))
    return Sampled(
        draw, dim, arms, theta, zeta, gap or None, sigma, shared, instance,
        f"unit vectors d={dim} M={arms} zeta={zeta:g} #{instance}",
    )  # fmt: skip
