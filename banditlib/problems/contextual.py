r"""Decision sets that change from round to round: given as arrays, or drawn by a sampler.

Contexts are *oblivious*: the set of round k depends on k, the seed and the trial, never on what was
played. That is what lets many lanes share them. Contexts that react to the past are a loop over a
live agent: ``agent.choose(contexts)``, ``agent.learn(reward)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from banditlib.backend import to_numpy
from banditlib.checks import (
    columns,
    fits,
    flag,
    integer,
    length,
    numbers,
    one_backend,
    real,
    real_array,
    require,
)
from banditlib.linear_fit import best_linear_fit
from banditlib.problems.seeds import generator

CHUNK = 64
"""Rounds that a sampler draws at once; part of the seeds: another number gives other contexts."""

SLACK = 1e-9
"""Rounding allowed when a sampler's declared ζ and Δ are checked."""


class Rounds(NamedTuple):
    """Some consecutive rounds of a contextual problem.

    Attributes
    ----------
    X : (n, M, d) the arms on offer
    reward : (n, M) their expected rewards
    mask : (n, M) True where there is an arm, or None if every round has M
    """

    X: np.ndarray
    reward: np.ndarray
    mask: np.ndarray | None

    @property
    def gaps(self) -> np.ndarray:
        """(n, M) best expected reward of the round minus the arm's own; 0 where there is no arm."""
        if self.mask is None:
            return self.reward.max(axis=-1, keepdims=True) - self.reward
        best = np.where(self.mask, self.reward, -np.inf).max(axis=-1, keepdims=True)
        return np.where(self.mask, best - self.reward, 0.0)

    @property
    def best(self) -> np.ndarray:
        """(n,) the best arm of each round, the lowest index if several."""
        value = self.reward if self.mask is None else np.where(self.mask, self.reward, -np.inf)
        return value.argmax(axis=-1)

    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        """All arms on offer, one below the other: (n', d), and their rewards (n',)."""
        if self.mask is None:
            return self.X.reshape(-1, self.X.shape[-1]), self.reward.reshape(-1)
        return self.X[self.mask], self.reward[self.mask]

    def misspecification(self, theta: np.ndarray) -> float:
        r"""Largest :math:`|r - x^\top\theta|` over the arms on offer."""
        X, reward = self.flat()
        return float(np.abs(reward - X @ theta).max())


class Contextual:
    r"""A set of arms in every round: rewards :math:`r_k(x) + \sigma\,\varepsilon` with standard
    normal ε.

    The sets come in the order given, and when the last one was shown they start again from the
    first: nothing is copied, however long the run. Regret is measured against the best arm of each
    round.

    Parameters
    ----------
    X : (C, M, d) arms
    reward : (C, M) expected rewards
    mask : (C, M) True where there is an arm, for sets of different sizes; what ``X`` and ``reward``
        hold elsewhere does not matter
    theta : (d,) the linear part θ*, if there is a known one
    sigma : deviation of the noise
    order : the set shown in each round of a cycle, as numbers below C; by default 0, 1, .., C - 1
    instance : number that names this problem in the seeds of its runs
    label : how results call it
    """

    X: np.ndarray
    reward: np.ndarray
    mask: np.ndarray | None
    order: np.ndarray | None
    theta: np.ndarray | None
    shared = True
    """Whether every trial sees the same contexts."""
    sampled: ClassVar[type[Sampled]]
    """``Contextual.sampled(sampler, dim, arms, ...)``: rounds that a function draws."""

    def __init__(
        self,
        X: Any,
        reward: Any,
        mask: Any = None,
        theta: Any = None,
        sigma: float = 1.0,
        order: Any = None,
        instance: int = 0,
        label: str = "contexts",
    ) -> None:
        one_backend(X=X, reward=reward, mask=mask, theta=theta)
        host = numbers("X", X)
        require(host.ndim == 3, "X", f"an array (sets, arms, d), got shape {host.shape}")
        present = None if mask is None else _mask("mask", mask, host.shape[:2])
        self.X = _offered("X", host, host.shape, present)
        self.reward = _offered("reward", reward, host.shape[:2], present)
        self.mask = None if present is None or present.all() else present
        self.order = None if order is None else _order(order, len(self.X))
        self._describe(self.X.shape[1:], theta, sigma, instance, label)
        for array in (self.X, self.reward, self.mask, self.order):
            if array is not None:
                array.setflags(write=False)

    def _describe(
        self, shape: Sequence[int], theta: Any, sigma: float, instance: int, label: str
    ) -> None:
        """What arrays and samplers have in common."""
        self.arms, self.dim = shape
        self.theta = None if theta is None else real_array("theta", theta, 1)
        if self.theta is not None:
            self.theta.setflags(write=False)
            length("theta", self.theta, self.dim, "one per column of X")
        self.sigma, self.instance = real("sigma", sigma, 0.0), integer("instance", instance, 0)
        require(isinstance(label, str), "label", "a string", label, TypeError)
        self.label = label

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.label!r}, {len(self.X)} sets of {self._up_to()} arms, "
            f"d={self.dim}, sigma={self.sigma:g})"
        )

    def _up_to(self) -> str:
        return f"{self.arms}" if self.mask is None else f"up to {self.arms}"

    # ---- rounds

    def block(self, seed: int, trial: int, k: int, n: int) -> Rounds:
        """Rounds k+1 .. k+n: arms (n, M, d), expected rewards (n, M), mask (n, M) or None."""
        period = len(self.X) if self.order is None else len(self.order)
        first = k % period
        cut: Any = slice(first, first + n)
        if first + n > period:
            cut = np.arange(k, k + n) % period
        rows = cut if self.order is None else self.order[cut]
        mask = None if self.mask is None else self.mask[rows]
        return Rounds(self.X[rows], self.reward[rows], mask)

    def contexts(self, seed: int, trial: int = 0, rounds: int = 1) -> Rounds:
        """What a run saw: its first ``rounds`` rounds, (rounds, M, d), (rounds, M), mask."""
        integer("seed", seed, 0, None), integer("trial", trial, 0), integer("rounds", rounds, 1)
        fits("rounds", 8.0 * rounds * self.arms * (self.dim + 1), "their contexts")
        return self.block(seed, trial, 0, rounds)

    # ---- what is known about it

    @property
    def _all(self) -> Rounds:
        return Rounds(self.X, self.reward, self.mask)

    @property
    def gaps(self) -> np.ndarray:
        """(C, M) best expected reward of the set minus the arm's own; 0 where there is no arm."""
        return self._all.gaps

    @property
    def best(self) -> np.ndarray:
        """(C,) optimal arm of each set (the lowest index if several)."""
        return self._all.best

    @property
    def gap(self) -> float:
        """Minimal positive gap Δ over all sets, infinite if all arms are optimal."""
        return smallest_gap(self.gaps)

    @property
    def zeta(self) -> float:
        r"""Misspecification :math:`\max |r_k(x) - x^\top\theta|`, for θ* or else for the best θ."""
        if self.theta is not None:
            return self._all.misspecification(self.theta)
        return self.best_linear_fit()[1]

    def best_linear_fit(self) -> tuple[np.ndarray, float]:
        r"""θ that minimises :math:`\max |r_k(x) - x^\top\theta|`, and the minimum."""
        return best_linear_fit(*self._all.flat())


class Sampled(Contextual):
    """Decision sets that a function draws, a few rounds at a time: the horizon may be huge.

    ``sampler(rng, k)`` gets a ``numpy.random.Generator`` and the numbers k (n,) of the rounds to
    draw, and returns X (n, M, d), reward (n, M) and, for sets of different sizes, a mask (n, M).
    The generator is keyed by (seed, trial, chunk), so a round does not depend on how a run is cut
    into pieces, and a short run sees the beginning of a long one.

    Parameters
    ----------
    sampler : the function
    dim, arms : d and the largest M
    theta : (d,) the linear part θ*, if there is a known one
    zeta : the misspecification against ``theta`` that the sampler keeps to; checked on the rounds
        played
    gap : a positive gap that no suboptimal arm falls below; checked on the rounds played
    sigma : deviation of the noise
    shared : show every trial the same contexts (lanes then share their products, which is faster)
    instance : number that names this problem in the seeds of its runs
    label : how results call it
    """

    def __init__(
        self,
        sampler: Callable[..., Any],
        dim: int,
        arms: int,
        theta: Any = None,
        zeta: float | None = None,
        gap: float | None = None,
        sigma: float = 1.0,
        shared: bool = False,
        instance: int = 0,
        label: str = "sampled contexts",
    ) -> None:
        require(callable(sampler), "sampler", "a function sampler(rng, k)", sampler, TypeError)
        self.sampler = sampler
        self._describe(
            (integer("arms", arms, 1), integer("dim", dim, 1)), theta, sigma, instance, label
        )
        fits("dim, arms", 8.0 * CHUNK * self.arms * self.dim, f"the contexts of {CHUNK} rounds")
        self._zeta = None if zeta is None else real("zeta", zeta, 0.0)
        self._gap = None if gap is None else real("gap", gap, 0.0)
        measured = self._zeta is None or self.theta is not None
        require(measured, "theta", "with zeta, which is measured against it")
        self.shared = flag("shared", shared)

    def __repr__(self) -> str:
        return f"Sampled({self.label!r}, {self.arms} arms, d={self.dim}, sigma={self.sigma:g})"

    def block(self, seed: int, trial: int, k: int, n: int) -> Rounds:
        """Rounds k+1 .. k+n: arms (n, M, d), expected rewards (n, M), mask (n, M) or None."""
        first, last = k // CHUNK, (k + n - 1) // CHUNK
        chunks = [self._chunk(seed, trial, number) for number in range(first, last + 1)]
        cut = slice(k - first * CHUNK, k - first * CHUNK + n)
        X = _joined([chunk.X for chunk in chunks])[cut]
        reward = _joined([chunk.reward for chunk in chunks])[cut]
        if all(chunk.mask is None for chunk in chunks):
            return Rounds(X, reward, None)
        full = np.ones((CHUNK, self.arms), dtype=bool)
        masks = [full if chunk.mask is None else chunk.mask for chunk in chunks]
        return Rounds(X, reward, _joined(masks)[cut])

    def _chunk(self, seed: int, trial: int, number: int) -> Rounds:
        """Draw one chunk, and check what the sampler returned."""
        rng = generator(seed, "contexts", self.instance, 0 if self.shared else trial, number)
        k = np.arange(number * CHUNK + 1, (number + 1) * CHUNK + 1)
        drawn = self.sampler(rng, k)
        expected = f"(X, reward) or (X, reward, mask), got {type(drawn).__name__}"
        right = isinstance(drawn, tuple) and len(drawn) in (2, 3)
        require(right, "sampler", expected, kind=TypeError)
        shape = (CHUNK, self.arms, self.dim)
        given = drawn[2] if len(drawn) == 3 else None
        mask = None if given is None else _mask("sampler's mask", given, shape[:2])
        X = _offered("sampler's X", drawn[0], shape, mask)
        rounds = Rounds(X, _offered("sampler's reward", drawn[1], shape[:2], mask), mask)
        self._keep_word(rounds, k)
        return rounds

    def _keep_word(self, rounds: Rounds, k: np.ndarray) -> None:
        """Refuse rounds that break the declared ζ or Δ."""
        where = f"in rounds {k[0]} to {k[-1]}"
        if self._zeta is not None and self.theta is not None:
            found = rounds.misspecification(self.theta)
            if found > self._zeta + SLACK * (1.0 + self._zeta):
                raise ValueError(f"sampler: declared zeta={self._zeta:g}, but {found:g} {where}")
        if self._gap is not None:
            gap = smallest_gap(rounds.gaps)
            if gap < self._gap * (1.0 - SLACK):
                raise ValueError(f"sampler: declared gap={self._gap:g}, but {gap:g} {where}")

    @property
    def zeta(self) -> float:
        """The declared misspecification, NaN if none was declared."""
        return math.nan if self._zeta is None else self._zeta

    @property
    def gap(self) -> float:
        """The declared gap, NaN if none was declared."""
        return math.nan if self._gap is None else self._gap

    @property
    def _all(self) -> Rounds:
        raise AttributeError(
            "a sampled problem has no list of sets; contexts(seed, trial, rounds) draws some"
        )

    def best_linear_fit(self) -> tuple[np.ndarray, float]:
        """Not for samplers: draw some rounds with ``contexts`` and give them to ``bl.diagnose``."""
        raise ValueError(
            "best_linear_fit: a sampler has no finite list of arms; "
            "bl.diagnose(*problem.contexts(seed, trial, rounds)) fits some rounds"
        )


Contextual.sampled = Sampled


def smallest_gap(gaps: np.ndarray) -> float:
    """The smallest positive gap, infinite if there is none."""
    positive = gaps[gaps > 0]
    return float(positive.min()) if positive.size else math.inf


def _mask(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Check which arms are on offer: booleans, at least one in each round."""
    mask = np.array(_host(name, value))
    plain = mask.dtype == bool and not isinstance(value, np.ma.MaskedArray)
    require(plain, name, f"True and False, got {mask.dtype}", kind=TypeError)
    require(mask.shape == shape, name, f"shape {shape}, one per arm", mask.shape)
    if not mask.any(axis=-1).all():
        empty = int(np.flatnonzero(~mask.any(axis=-1))[0])
        raise ValueError(f"{name}: set {empty} offers no arm")
    return mask


def _host(name: str, value: Any) -> np.ndarray:
    """The value as an array on the host, whatever it holds."""
    try:
        return np.asarray(to_numpy(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: expected a real array ({error})") from error


def _offered(name: str, value: Any, shape: tuple[int, ...], mask: np.ndarray | None) -> np.ndarray:
    """Check an array of arms or rewards; where no arm is on offer it becomes 0."""
    host = numbers(name, value)
    require(host.shape == shape, name, f"shape {shape}", host.shape)
    if mask is not None:
        host = np.where(mask.reshape(mask.shape + (1,) * (len(shape) - 2)), host, 0.0)
    return real_array(name, host, len(shape))


def _order(value: Any, sets: int) -> np.ndarray:
    """Check the order of the sets in a cycle: integers, each set at least once."""
    order = np.array(_host("order", value))
    whole = order.ndim == 1 and np.issubdtype(order.dtype, np.integer)
    require(whole, "order", "a list of set numbers", kind=TypeError)
    every = np.array_equal(np.unique(order), np.arange(sets))
    require(every, "order", f"the set numbers 0 to {sets - 1}, each at least once")
    return order.astype(np.int64)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """One array of several, not copied if there is only one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def cycle(
    sets: Sequence[Any],
    rewards: Sequence[Any],
    repeats: Sequence[int] | None = None,
    theta: Any = None,
    sigma: float = 1.0,
    instance: int = 0,
    label: str = "cycle",
) -> Contextual:
    """Decision sets of any sizes, one after the other, for ever.

    Parameters
    ----------
    sets : arrays (M_1, d), (M_2, d), ...
    rewards : expected rewards (M_1,), (M_2,), ...
    repeats : how many rounds in a row show each set; by default one
    theta, sigma, instance, label : as in :class:`Contextual`
    """
    lists = isinstance(sets, (list, tuple)) and isinstance(rewards, (list, tuple))
    require(lists, "sets, rewards", "two lists of arrays", kind=TypeError)
    C = len(sets)
    one_each = C > 0 and len(rewards) == C
    require(one_each, "rewards", f"one array for each of {C} sets", len(rewards))
    shown = [real_array(f"sets[{i}]", X, 2) for i, X in enumerate(sets)]
    pays = [real_array(f"rewards[{i}]", r, 1) for i, r in enumerate(rewards)]
    d, M = shown[0].shape[1], max(len(X) for X in shown)
    X, reward, mask = np.zeros((C, M, d)), np.zeros((C, M)), np.zeros((C, M), dtype=bool)
    for i, (points, pay) in enumerate(zip(shown, pays, strict=True)):
        columns(f"sets[{i}]", points, d, "sets[0]")
        length(f"rewards[{i}]", pay, len(points), "one per row of the set")
        X[i, : len(points)], reward[i, : len(points)], mask[i, : len(points)] = points, pay, True
    order = None
    if repeats is not None:
        times: Any = repeats.tolist() if isinstance(repeats, np.ndarray) else repeats
        counted = isinstance(times, (list, tuple)) and len(times) == C
        require(counted, "repeats", f"{C} numbers, one for each set")
        times = [integer("repeats", n, 1) for n in times]
        fits("repeats", 16.0 * sum(times), "the order of the sets")
        order = np.repeat(np.arange(C), times)
    return Contextual(X, reward, mask, theta, sigma, order, instance, label)
