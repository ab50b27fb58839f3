r"""The same arms in every round, and the paper's synthetic instance of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from banditlib.checks import fits, integer, length, one_backend, real, real_array, require
from banditlib.linear_fit import best_linear_fit
from banditlib.problems.seeds import generator


@dataclass(frozen=True, eq=False)
class FixedArms:
    r"""The same arms in every round: rewards :math:`r(x_a) + \sigma\,\varepsilon` with standard
    normal ε.

    Parameters
    ----------
    X : (N, d) arms
    reward : (N,) expected rewards r(x_a)
    sigma : deviation of the noise
    theta : (d,) the linear part θ*, if there is a known one
    instance : number that names this instance in the seeds of its runs
    label : how results call it
    """

    X: np.ndarray = field(repr=False)
    reward: np.ndarray = field(repr=False)
    sigma: float = 1.0
    theta: np.ndarray | None = field(default=None, repr=False)
    instance: int = 0
    label: str = "fixed arms"
    gaps: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        one_backend(X=self.X, reward=self.reward, theta=self.theta)
        X, reward = real_array("X", self.X, 2), real_array("reward", self.reward, 1)
        length("reward", reward, len(X), "one per row of X")
        theta = None if self.theta is None else real_array("theta", self.theta, 1)
        if theta is not None:
            length("theta", theta, X.shape[1], "one per column of X")
        real("sigma", self.sigma, 0.0)
        integer("instance", self.instance, 0)
        values = {"X": X, "reward": reward, "theta": theta, "gaps": reward.max() - reward}
        for name, value in values.items():
            if value is not None:
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def arms(self) -> int:
        """Number N of arms."""
        return len(self.X)

    @property
    def dim(self) -> int:
        """Dimension d."""
        return self.X.shape[1]

    @property
    def best(self) -> int:
        """Optimal arm (the lowest index if several)."""
        return int(np.argmax(self.reward))

    @property
    def gap(self) -> float:
        """Minimal positive gap Δ, infinite if all arms are optimal."""
        positive = self.gaps[self.gaps > 0]
        return float(positive.min()) if positive.size else math.inf

    @property
    def zeta(self) -> float:
        r"""Misspecification :math:`\max_a |r(x_a) - x_a^\top\theta|`, θ* or else the best θ."""
        if self.theta is not None:
            return float(np.abs(self.reward - self.X @ self.theta).max())
        return self.best_linear_fit()[1]

    def best_linear_fit(self) -> tuple[np.ndarray, float]:
        r"""θ that minimises :math:`\max_a |r(x_a) - x_a^\top\theta|`, and the minimum.

        A linear programme, solved by SciPy.
        """
        return best_linear_fit(self.X, self.reward)


def synthetic(
    seed: int = 0,
    dim: int = 16,
    arms: int = 100,
    zeta: float = 0.02,
    gap: tuple[float, float] | None = (0.175, 0.185),
    misspecification: str = "two-point",
    sigma: float = 1.0,
    instance: int = 0,
    attempts: int = 100_000,
) -> FixedArms:
    r"""The paper's synthetic instance: unit vectors and unit θ*, :math:`r_a = x_a^\top\theta^* +
    \eta_a`.

    Draws θ*, arms and η anew until the minimal gap lies in ``gap`` (None takes the first draw).

    Parameters
    ----------
    zeta : misspecification ζ >= 0
    misspecification : "two-point" for η uniform on {-ζ, ζ}, "interval" for η uniform on [-ζ, ζ]
    gap : (low, high) that Δ must lie in
    instance : number of the instance; other numbers give other draws from the same seed
    attempts : give up after this many draws
    """
    integer("dim", dim, 1), integer("arms", arms, 1), integer("attempts", attempts, 1)
    fits("dim, arms", 16.0 * dim * arms, "the arms")
    real("zeta", zeta, 0.0), real("sigma", sigma, 0.0)
    named = isinstance(misspecification, str) and misspecification in ("two-point", "interval")
    require(named, "misspecification", "'two-point' or 'interval'", misspecification)
    if gap is not None:
        parts = np.atleast_1d(np.asarray(gap, dtype=object))
        pair = isinstance(gap, (tuple, list, np.ndarray)) and len(parts) == 2
        require(pair, "gap", "a pair (low, high) or None", gap, TypeError)
        ordered = real("gap", gap[0], 0.0) <= real("gap", gap[1], 0.0)
        require(ordered, "gap", "low <= high", gap)
        if arms == 1 or gap[0] > 2 * (1 + zeta):
            raise ValueError(
                f"gap: no instance of {arms} arms has a gap in {gap}; rewards lie within 1 + zeta "
                f"= {1 + zeta:g} of 0"
            )
    rng = generator(seed, "instance", instance)
    for _ in range(attempts):
        theta, X = rng.standard_normal(dim), rng.standard_normal((arms, dim))
        theta /= np.linalg.norm(theta)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        u = rng.random(arms)
        eta = zeta * (
            np.where(u < 0.5, -1.0, 1.0) if misspecification == "two-point" else 2 * u - 1
        )
        r = X @ theta + eta
        positive = (r.max() - r)[r < r.max()]
        if gap is None or (positive.size and gap[0] <= positive.min() <= gap[1]):
            label = f"synthetic d={dim} N={arms} zeta={zeta:g} #{instance}"
            return FixedArms(X, r, sigma=sigma, theta=theta, instance=instance, label=label)
    raise ValueError(
        f"gap: no instance with gap in {gap} among {attempts} draws; attempts=... tries longer"
    )
