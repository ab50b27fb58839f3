r"""Instances: fixed arms, pools of pairs, the lower-bound family; with exact gap, misspecification
and optimal arm.

Seeds: every stream of random numbers has the key ``SeedSequence(root, spawn_key=(stream, instance,
trial))``, so that a run depends neither on what shares its batch nor on how many workers there
are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from banditlib.backend import to_numpy

STREAMS = {"instance": 0, "contexts": 1, "order": 2, "noise": 3, "policy": 4}
"""First entry of a spawn key by what is drawn."""


def generator(root: int, stream: str, instance: int = 0, trial: int = 0) -> np.random.Generator:
    """The generator of one stream, seeded by its key (stream, instance, trial)."""
    key = (STREAMS[stream], integer("instance", instance, 0), integer("trial", trial, 0))
    return np.random.default_rng(np.random.SeedSequence(integer("seed", root, 0), spawn_key=key))


def integer(name: str, value: Any, low: int) -> int:
    """Check an integer argument with a lower bound."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}: expected an integer, got {value!r}")
    if value < low:
        raise ValueError(f"{name}: expected an integer >= {low}, got {value!r}")
    return int(value)


def real(name: str, value: Any, low: float = -math.inf, strict: bool = False) -> float:
    """Check a finite real argument with a lower bound."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise TypeError(f"{name}: expected a number, got {value!r}")
    if not math.isfinite(value) or value < low or (strict and value == low):
        raise ValueError(
            f"{name}: expected a finite number {'>' if strict else '>='} {low:g}, got {value!r}"
        )
    return float(value)


def real_array(name: str, value: Any, ndim: int) -> np.ndarray:
    """Check an array argument: real, finite, ``ndim`` axes, none empty. Returns float64, host."""
    try:
        host = to_numpy(value)
        if np.iscomplexobj(host):
            raise TypeError("complex numbers are not real")
        host = np.array(host, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: expected a real array with {ndim} axes ({error})") from error
    if host.ndim != ndim:
        raise ValueError(f"{name}: expected an array with {ndim} axes, got shape {host.shape}")
    if 0 in host.shape:
        raise ValueError(f"{name}: expected a non-empty array, got shape {host.shape}")
    if not np.isfinite(host).all():
        raise ValueError(f"{name}: contains NaN or infinity")
    return host


def one_backend(**arrays: Any) -> None:
    """Refuse arrays of different libraries in one call."""
    found = {name: a for name, a in arrays.items() if a is not None and is_array_api_obj(a)}
    try:
        array_namespace(*found.values()) if found else None
    except TypeError as error:
        kinds = ", ".join(
            f"{name} is {type(a).__module__.split('.')[0]}" for name, a in found.items()
        )
        raise TypeError(
            f"{' and '.join(found)}: arrays of different libraries ({kinds})"
        ) from error


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
        if len(X) != len(reward):
            raise ValueError(
                f"reward: expected {len(X)} values, one per row of X, got {len(reward)}"
            )
        theta = None if self.theta is None else real_array("theta", self.theta, 1)
        if theta is not None and len(theta) != X.shape[1]:
            raise ValueError(
                f"theta: expected {X.shape[1]} values, one per column of X, got {len(theta)}"
            )
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
        try:
            from scipy.optimize import linprog
        except ImportError as error:
            raise ImportError(
                "best_linear_fit needs SciPy, or give theta: pip install scipy"
            ) from error
        one = np.ones((self.arms, 1))
        A = np.block([[self.X, -one], [-self.X, -one]])
        cost = np.append(np.zeros(self.dim), 1.0)
        bounds = [(None, None)] * self.dim + [(0, None)]
        found = linprog(cost, A, np.append(self.reward, -self.reward), bounds=bounds)
        return found.x[:-1], float(found.x[-1])


@dataclass(frozen=True, eq=False)
class Pool:
    """Each round shows one vector of each kind, in random order: reward 1 for the good one, 0 for
    the bad.

    Parameters
    ----------
    good, bad : (G, d), (H, d) vectors; each round draws one of each, uniformly, independently of
        all else
    sigma : deviation of the noise (0: rewards are exact)
    instance : number that names this instance in the seeds of its runs
    label : how results call it
    """

    good: np.ndarray = field(repr=False)
    bad: np.ndarray = field(repr=False)
    sigma: float = 0.0
    instance: int = 0
    label: str = "pool"
    points: np.ndarray = field(init=False, repr=False)
    gaps: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        one_backend(good=self.good, bad=self.bad)
        good, bad = real_array("good", self.good, 2), real_array("bad", self.bad, 2)
        if good.shape[1] != bad.shape[1]:
            raise ValueError(f"bad: expected {good.shape[1]} columns like good, got {bad.shape[1]}")
        real("sigma", self.sigma, 0.0)
        integer("instance", self.instance, 0)
        points, gaps = np.concatenate([good, bad]), np.array([0.0, 1.0])
        for name, value in {"good": good, "bad": bad, "points": points, "gaps": gaps}.items():
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def dim(self) -> int:
        """Dimension d."""
        return self.points.shape[1]

    @property
    def gap(self) -> float:
        """Minimal gap Δ = 1."""
        return 1.0

    @property
    def reward(self) -> np.ndarray:
        """Expected reward of every row of ``points``: 1 for good, 0 for bad."""
        return np.repeat([1.0, 0.0], [len(self.good), len(self.bad)])

    def contexts(self, seed: int, trial: int = 0, rounds: int = 1) -> np.ndarray:
        """What a run saw: (rounds, 2) indices into ``points``, in the order shown."""
        integer("rounds", rounds, 1)
        return next(self.stream(seed, trial, rounds))

    def stream(self, seed: int, trial: int, block: int) -> Iterator[np.ndarray]:
        """Endless blocks (block, 2) of ``contexts``; drawing in pieces gives the same rounds."""
        which = generator(seed, "contexts", self.instance, trial)
        order = generator(seed, "order", self.instance, trial)
        sizes, first = np.array([len(self.good), len(self.bad)]), np.array([0, len(self.good)])
        while True:
            pairs = (which.random((block, 2)) * sizes).astype(np.int64) + first
            swap = order.random(block) < 0.5
            pairs[swap] = pairs[swap, ::-1]
            yield pairs


def synthetic(
    seed: int = 0,
    dim: int = 16,
    arms: int = 100,
    zeta: float = 0.02,
    gap: tuple[float, float] | None = (0.175, 0.185),
    misspecification: str = "two-point",
    sigma: float = 1.0,
    instance: int = 0,
    attempts: int = 1_000_000,
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
    real("zeta", zeta, 0.0), real("sigma", sigma, 0.0)
    if not isinstance(misspecification, str) or misspecification not in ("two-point", "interval"):
        raise ValueError(
            f"misspecification: expected 'two-point' or 'interval', got {misspecification!r}"
        )
    if gap is not None:
        if not isinstance(gap, (tuple, list, np.ndarray)) or len(gap) != 2:
            raise TypeError(f"gap: expected a pair (low, high) or None, got {gap!r}")
        if not real("gap", gap[0], 0.0) <= real("gap", gap[1], 0.0):
            raise ValueError(f"gap: expected low <= high, got {gap!r}")
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
    raise ValueError(f"gap: no instance with gap in {gap} among {attempts} draws")


def nearly_orthogonal(
    dim: int, arms: int, eps: float | None = None, seed: int = 0, attempts: int = 1000
) -> np.ndarray:
    r"""Unit vectors (arms, dim) with :math:`|\langle x, y\rangle| \le \varepsilon` for all pairs.

    Gaussian directions, drawn anew until the bound holds; ε defaults to :math:`\sqrt{8\log
    N/(d-1)}`, where by a union bound a draw succeeds with high probability.
    """
    integer("dim", dim, 2), integer("arms", arms, 2), integer("attempts", attempts, 1)
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
    if Delta > 0.5:
        raise ValueError(
            f"Delta: expected at most 1/2 so that rewards stay in [0, 1], got {Delta!r}"
        )
    X = nearly_orthogonal(dim, arms, eps, seed) if X is None else real_array("X", X, 2)
    reward = np.zeros(len(X))
    for name, arm, value in (("i", i, Delta), ("j", j, 2 * Delta)):
        if arm is None and name == "j":
            continue
        if integer(name, arm, 0) >= len(X):
            raise ValueError(f"{name}: expected an arm below {len(X)}, got {arm!r}")
        if name == "j" and arm == i:
            raise ValueError(f"i, j: expected two different arms, got {i!r} for both")
        reward[arm] = value
    theta = X.T @ reward
    return FixedArms(X, reward, theta=theta, label=f"lower bound ({i}, {j})")


def lower_bound_family(X: Any, Delta: float = 0.25) -> list[FixedArms]:
    """All N² members of the family on given arms: first the singles θ_i, then the pairs θ_(i,j)."""
    X = real_array("X", X, 2)
    singles = [lower_bound(Delta=Delta, i=i, j=None, X=X) for i in range(len(X))]
    pairs = [(i, j) for i in range(len(X)) for j in range(len(X)) if i != j]
    return singles + [lower_bound(Delta=Delta, i=i, j=j, X=X) for i, j in pairs]
