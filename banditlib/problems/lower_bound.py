r"""The family behind the lower bound: nearly orthogonal arms, of which one or two pay."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from banditlib.checks import below, fits, integer, real, real_array, require
from banditlib.problems.fixed_arms import FixedArms
from banditlib.problems.seeds import generator


def nearly_orthogonal(
    dim: int, arms: int, eps: float | None = None, seed: int = 0, attempts: int = 1000
) -> np.ndarray:
    r"""Unit vectors (arms, dim) with :math:`|\langle x, y\rangle| \le \varepsilon` for all pairs.

    Gaussian directions, drawn anew until the bound holds; ε defaults to :math:`\sqrt{8\log
    N/(d-1)}`, where by a union bound a draw succeeds with high probability.
    """
    integer("dim", dim, 2), integer("arms", arms, 2), integer("attempts", attempts, 1)
    fits("dim, arms", 16.0 * dim * arms + 24.0 * arms**2, "the arms and their products")
    limit = math.sqrt(8 * math.log(arms) / (dim - 1)) if eps is None else real("eps", eps, 0.0)
    rng = generator(seed, "instance", 0, 1)
    for _ in range(attempts):
        X = rng.standard_normal((arms, dim))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        if np.abs(X @ X.T - np.eye(arms)).max() <= limit:
            return X
    raise ValueError(
        f"eps: no {arms} unit vectors in {dim} dimensions within {limit:g} in {attempts} draws"
    )


def lower_bound(
    dim: int = 16,
    arms: int = 20,
    Delta: float = 0.25,
    i: int = 0,
    j: int | None = 1,
    eps: float | None = None,
    seed: int = 0,
    X: Any = None,
) -> FixedArms:
    r"""One member of the family of the lower-bound theorem.

    Arms are nearly orthogonal unit vectors. :math:`\theta_{(i,j)} = \Delta x_i + 2\Delta x_j` pays
    2Δ at arm j, Δ at arm i and 0 elsewhere; with ``j=None``, :math:`\theta_i = \Delta x_i` pays Δ
    at arm i only. Noise is standard normal.

    Parameters
    ----------
    Delta : minimal gap Δ, in (0, 1/2] so that rewards stay in [0, 1]
    i, j : arms that pay; j None for the members with one
    eps, seed : for :func:`nearly_orthogonal`
    X : (N, d) arms to use instead of drawing them
    """
    Delta = real("Delta", Delta, 0.0, strict=True)
    require(Delta <= 0.5, "Delta", "at most 1/2 so that rewards stay in [0, 1]", Delta)
    X = nearly_orthogonal(dim, arms, eps, seed) if X is None else real_array("X", X, 2)
    reward = np.zeros(len(X))
    for name, arm, value in (("i", i, Delta), ("j", j, 2 * Delta)):
        if arm is None and name == "j":
            continue
        arm = below(name, arm, len(X), "an arm")
        require(name == "i" or arm != i, "i, j", f"two different arms, got {i!r} for both")
        reward[arm] = value
    theta = X.T @ reward
    return FixedArms(X, reward, theta=theta, label=f"lower bound ({i}, {j})")


def lower_bound_family(X: Any, Delta: float = 0.25) -> list[FixedArms]:
    """All N² members of the family on given arms: first the singles θ_i, then the pairs θ_(i,j)."""
    X = real_array("X", X, 2)
    fits("X", 8.0 * len(X) ** 2 * X.size, f"all {len(X) ** 2} members")
    singles = [lower_bound(Delta=Delta, i=i, j=None, X=X) for i in range(len(X))]
    pairs = [(i, j) for i in range(len(X)) for j in range(len(X)) if i != j]
    return singles + [lower_bound(Delta=Delta, i=i, j=j, X=X) for i, j in pairs]
