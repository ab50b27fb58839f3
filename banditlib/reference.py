"""Plain loops: one function per algorithm, following its pseudocode line by line.

No lanes and no shortcuts: U and b are sums over the learnt rounds, and U is inverted afresh in
every round that follows a learnt one. Decision sets are given round by round, ``sets[k-1]`` of
shape (M, d), rewards as ``reward(k, arm)``; each function returns the arms and levels of all
rounds. Tests hold the engines against these loops, the ledger checks claims on them, the bench
measures against them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from banditlib.design import g_optimal
from banditlib.view import TAU

Array = np.ndarray
Sets = Sequence[Array]
Reward = Callable[[int, int], float]
Decisions = tuple[Array, Array]


def argmax(score: Array) -> int:
    """Lowest index within τ(1 + |best|) of the best."""
    best = score.max()
    return int((score >= best - TAU * (1 + abs(best))).argmax())


class Regression:
    """λI + Σ x xᵀ and Σ r x over the rounds of one index set."""

    def __init__(self, dim: int, lam: float) -> None:
        self.lam, self.learnt = lam, 0
        self.U, self.b = lam * np.eye(dim), np.zeros(dim)
        self.inverse: Array = np.eye(dim) / lam
        self.theta: Array = np.zeros(dim)

    def add(self, x: Array, r: float, weight: float = 1.0) -> None:
        """Learn one round."""
        self.U += weight * np.outer(x, x)
        self.b += weight * r * x
        self.learnt += 1
        self.inverse = np.linalg.inv(self.U)
        self.theta = self.inverse @ self.b

    def solve(self, D: Array) -> tuple[Array, Array]:
        """Means and widths of the rows of D."""
        if not self.learnt:
            return np.zeros(len(D)), np.sqrt((D * D).sum(axis=1)) / math.sqrt(self.lam)
        squares = ((D @ self.inverse) * D).sum(axis=1)
        return D @ self.theta, np.sqrt(np.maximum(squares, 0.0))


Pick = Callable[[Regression, Array, Array, Array], tuple[int, float]]
"""``pick(regression, D, mean, width)``: the arm to play, and the weight to learn it with."""


def by_one_regression(pick: Pick, sets: Sets, reward: Reward, rounds: int, lam: float) -> Decisions:
    """One regression for all rounds: solve, pick, learn."""
    regression = Regression(sets[0].shape[1], lam)
    arms, levels = [], []
    for k in range(1, rounds + 1):
        D = sets[k - 1]
        a, weight = pick(regression, D, *regression.solve(D))
        r = reward(k, a)
        if weight > 0:
            regression.add(D[a], r, weight)
        arms.append(a)
        levels.append(int(weight > 0))
    return np.array(arms), np.array(levels)


def optimist(beta: float, weight: Callable[[float], float]) -> Pick:
    """Pick the arm with the largest m + βw, and learn it with a weight that its width decides."""

    def pick(_: Regression, D: Array, mean: Array, width: Array) -> tuple[int, float]:
        a = argmax(mean + beta * width)
        return a, weight(width[a])

    return pick


def ds_oful(
    sets: Sets, reward: Reward, rounds: int, Gamma: float, beta: float, lam: float
) -> Decisions:
    """Algorithm 1."""
    pick = optimist(beta, lambda width: 1.0 if width >= Gamma * (1 - TAU) else 0.0)
    return by_one_regression(pick, sets, reward, rounds, lam)


class Levels(dict[int, Regression]):
    """Regressions by level, each begun when it is first asked for."""

    def __init__(self, dim: int, lam: float) -> None:
        super().__init__()
        self.dim, self.lam = dim, lam

    def __missing__(self, level: int) -> Regression:
        self[level] = Regression(self.dim, self.lam)
        return self[level]


def by_many_regressions(
    decide: Callable[[int, Array, Levels], tuple[int, int]],
    sets: Sets,
    reward: Reward,
    rounds: int,
    lam: float,
) -> Decisions:
    """``decide(k, D, regressions)`` says arm and level; level 0 learns nothing."""
    regressions = Levels(sets[0].shape[1], lam)
    arms, levels = [], []
    for k in range(1, rounds + 1):
        D = sets[k - 1]
        a, level = decide(k, D, regressions)
        r = reward(k, a)
        if level:
            regressions[level].add(D[a], r)
        arms.append(a)
        levels.append(level)
    return np.array(arms), np.array(levels)


Rule = Callable[[int, int, int, Array, Array], tuple[int, int] | None]
"""``rule(k, l, d, index, width)``: arm among those alive and level (0: none), None to go down."""


def by_levels(
    rule: Rule,
    sets: Sets,
    reward: Reward,
    rounds: int,
    beta: Callable[[int], float],
    lam: float,
    trace: list[tuple[int, int, tuple[int, ...]]] | None = None,
) -> Decisions:
    """Levels l = 1, 2, ... until the rule decides; between two, arms far behind are eliminated.

    β is called with the level. ``trace`` collects (k, level, surviving arms).
    """

    def decide(k: int, D: Array, regressions: Levels) -> tuple[int, int]:
        alive, l = np.arange(len(D)), 1
        while True:
            mean, width = regressions[l].solve(D[alive])
            index = mean + beta(l) * width
            if trace is not None:
                trace.append((k, l, tuple(alive.tolist())))
            decided = rule(k, l, regressions.dim, index, width)
            if decided is not None:
                return int(alive[decided[0]]), decided[1]
            limit = 2 * beta(l) * 2.0**-l * (1 + TAU)
            alive = alive[index.max() - index <= limit]
            l += 1

    return by_many_regressions(decide, sets, reward, rounds, lam)


def _sup_rule(k: int, l: int, d: int, index: Array, width: Array) -> tuple[int, int] | None:
    if width.max() >= 2.0**-l * (1 - TAU):
        return argmax(width), l
    if k <= 4**l * d:
        return argmax(index), 0
    return None


def _layered_rule(k: int, l: int, d: int, index: Array, width: Array) -> tuple[int, int] | None:
    best = argmax(index)
    if width[best] >= 2.0**-l * (1 - TAU):
        return best, l
    if k <= 4**l * d:
        return best, 0
    if width.max() >= 2.0**-l * (1 - TAU):
        return argmax(width), l
    return None


sup_lin_ucb = partial(by_levels, _sup_rule)
"""Algorithm 2."""

layered_ds_oful = partial(by_levels, _layered_rule)
"""DS-OFUL at the thresholds 1/2, 1/4, ...: our own rule."""


def cert_lin_ucb(
    sets: Sets,
    reward: Reward,
    rounds: int,
    beta: Callable[[int], float],
    lam: float,
    low: float = 0.0,
    high: float = 1.0,
) -> Decisions:
    """Algorithm 13 of the dissertation, for one step; β is called with the level."""

    def decide(k: int, D: Array, regressions: Levels) -> tuple[int, int]:
        alive, l, L = np.arange(len(D)), 1, 0
        while 4**L * regressions.dim < k:
            L += 1
        bottom, top, before = low, high, -1
        while True:
            mean, width = regressions[l].solve(D[alive])
            greedy, V = int(alive[argmax(mean)]), mean.max()
            if l == 1:
                before = greedy
            if l > L:
                return before, l
            if beta(l) * width.max() >= 2.0**-l * (1 - TAU):
                return int(alive[argmax(width)]), l
            bottom, top = max(V - 3 * 2.0**-l, bottom), min(V + 3 * 2.0**-l, top)
            if bottom - top > TAU * (1 + abs(top)):
                return before, 0
            alive = alive[V - mean <= 4 * 2.0**-l * (1 + TAU)]
            before, l = greedy, l + 1

    return by_many_regressions(decide, sets, reward, rounds, lam)


def weighted_oful(
    sets: Sets, reward: Reward, rounds: int, alpha: float, beta: float, lam: float
) -> Decisions:
    """OFUL with the weights min(1, α/width) of He et al."""
    pick = optimist(beta, lambda width: 1.0 if width <= alpha else alpha / width)
    return by_one_regression(pick, sets, reward, rounds, lam)


def lsw(sets: Sets, reward: Reward, rounds: int, beta: float, lam: float, eps: float) -> Decisions:
    """Equation (6) of Lattimore et al.; in the sum over past rounds equal vectors are one term."""
    plays: dict[bytes, int] = {}

    def pick(regression: Regression, D: Array, mean: Array, width: Array) -> tuple[int, float]:
        past = np.array([np.frombuffer(x) for x in plays]).reshape(-1, D.shape[1])
        bonus = np.abs(D @ regression.inverse @ past.T) @ np.array([*plays.values()], dtype=float)
        a = argmax(mean + beta * width + eps * bonus)
        x = np.ascontiguousarray(D[a], dtype=float).tobytes()
        plays[x] = plays.get(x, 0) + 1
        return a, 1.0

    return by_one_regression(pick, sets, reward, rounds, lam)


def linear_ts(
    sets: Sets, reward: Reward, rounds: int, scale: float, lam: float, draws: Callable[[int], Array]
) -> Decisions:
    """Thompson sampling; ``draws(M)`` gives the M standard normals of a round."""

    def pick(regression: Regression, D: Array, mean: Array, width: Array) -> tuple[int, float]:
        value, vector = np.linalg.eigh(D @ regression.inverse @ D.T)
        root = vector @ np.diag(np.sqrt(np.where(value > 1e-12 * value[-1], value, 0.0))) @ vector.T
        return argmax(mean + scale * root @ draws(len(D))), 1.0

    return by_one_regression(pick, sets, reward, rounds, lam)


def ucb_arm(k: int, plays: Array, sums: Array, alpha: float) -> int:
    """The first arm never played, else the one of highest mean + √(α log k / n)."""
    if (plays == 0).any():
        return int((plays == 0).argmax())
    return argmax(sums / plays + np.sqrt(alpha * math.log(k) / plays))


def ucb(N: int, reward: Reward, rounds: int, alpha: float) -> Decisions:
    """Each of N arms once, then the one of highest index."""
    plays, sums = np.zeros(N), np.zeros(N)
    arms = []
    for k in range(1, rounds + 1):
        a = ucb_arm(k, plays, sums, alpha)
        plays[a] += 1
        sums[a] += reward(k, a)
        arms.append(a)
    return np.array(arms), np.ones(rounds, dtype=int)


def robust_linear(
    X: Array,
    reward: Reward,
    rounds: int,
    beta: float,
    lam: float,
    alpha: float = 2.0,
    pulls: int = 10,
    delta: float = 0.05,
    sigma: float = 1.0,
    eps: float = 0.0,
) -> Decisions:
    """RLB as the package reads it: opening, test, then OFUL or UCB on all data."""
    N, d = X.shape
    basis: list[int] = []
    for i in range(N):
        if np.linalg.matrix_rank(X[[*basis, i]]) > len(basis):
            basis.append(i)
    others = [i for i in range(N) if i not in basis]
    opening = (basis + others[:1]) * pulls if others else []
    regression = Regression(d, lam)
    plays, sums = np.zeros(N), np.zeros(N)
    arms, linear = [], True
    for k in range(1, rounds + 1):
        if k == len(opening) + 1 and opening:
            w = np.linalg.lstsq(X[basis].T, X[others[0]], rcond=None)[0]
            means = sums / np.maximum(plays, 1)
            T = means[others[0]] - w @ means[basis]
            spread = sigma * math.sqrt((1 + w @ w) / pulls) * math.sqrt(2 * math.log(2 / delta))
            linear = abs(T) <= eps * (1 + abs(w).sum()) + spread
        if k <= len(opening):
            a = opening[k - 1]
        elif linear:
            mean, width = regression.solve(X)
            a = argmax(mean + beta * width)
        else:
            a = ucb_arm(k, plays, sums, alpha)
        r = reward(k, a)
        regression.add(X[a], r)
        plays[a] += 1
        sums[a] += r
        arms.append(a)
    return np.array(arms), np.ones(rounds, dtype=int)


def phased_elimination(
    X: Array, reward: Reward, rounds: int, delta: float, sigma: float = 1.0
) -> Decisions:
    """Phases of Lattimore et al.: design, plays, least squares, elimination, twice as long."""
    d = int(np.linalg.matrix_rank(X))
    m = (math.ceil(4 * d * math.log(math.log(d))) if d >= 3 else 0) + 16
    active = list(range(len(X)))
    arms: list[int] = []
    while len(arms) < rounds:
        share = m * g_optimal(X[active])[0]
        rows, payoffs = [], []
        for a, s in zip(active, share, strict=True):
            for _ in range(math.ceil(s - TAU * (1 + s))):
                if len(arms) == rounds:
                    return np.array(arms), np.ones(rounds, dtype=int)
                arms.append(a)
                rows.append(X[a])
                payoffs.append(reward(len(arms), a))
        theta = np.linalg.lstsq(np.array(rows), np.array(payoffs), rcond=None)[0]
        value = X[active] @ theta
        limit = 4 * sigma * math.sqrt(d / m * math.log(1 / delta)) * (1 + TAU)
        tie = TAU * (1 + abs(value.max()))
        active = [
            a for a, v in zip(active, value, strict=True) if value.max() - v <= max(limit, tie)
        ]
        m *= 2
    return np.array(arms), np.ones(rounds, dtype=int)


def oful_by_ellipsoid(X: Array, reward: Reward, rounds: int, beta: float, lam: float) -> Array:
    """OFUL written from its other definition, with no index formula and no ridge solve.

    Plays the arm whose best case over the ellipsoid {θ : ‖θ - θ̂‖_U <= β} is highest. The
    maximiser over the ellipsoid is found from the eigenvectors of U: θ = θ̂ + β U^{-1/2} v with v
    the unit vector along U^{-1/2} x. The estimate itself comes from least squares on the data
    extended by √λ I rows.
    """
    d = X.shape[1]
    rows, targets = [*(math.sqrt(lam) * np.eye(d))], [0.0] * d
    arms = []
    for k in range(1, rounds + 1):
        A, y = np.array(rows), np.array(targets)
        estimate = np.linalg.lstsq(A, y, rcond=None)[0]
        values, vectors = np.linalg.eigh(A.T @ A)
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        best_case = []
        for x in X:
            direction = root @ x
            length = np.linalg.norm(direction)
            theta = estimate + (beta * root @ (direction / length) if length > 0 else 0.0)
            best_case.append(x @ theta)
        a = argmax(np.array(best_case))
        rows.append(X[a])
        targets.append(reward(k, a))
        arms.append(a)
    return np.array(arms)


def sherman_morrison(
    sets: Sets, reward: Reward, rounds: int, Gamma: float, beta: float, lam: float
) -> Decisions:
    """DS-OFUL as one would write it for speed: U⁻¹ by Sherman and Morrison's identity."""
    d = sets[0].shape[1]
    V, b = np.eye(d) / lam, np.zeros(d)
    theta = b
    arms, levels = np.zeros((2, rounds), dtype=int)
    for k in range(1, rounds + 1):
        D = sets[k - 1]
        width = np.sqrt(((D @ V) * D).sum(axis=1))
        a = argmax(D @ theta + beta * width)
        if width[a] >= Gamma * (1 - TAU):
            x = D[a]
            u = V @ x
            V -= np.outer(u, u) / (1 + x @ u)
            b = b + reward(k, a) * x
            theta = V @ b
            levels[k - 1] = 1
        arms[k - 1] = a
    return arms, levels


def follow(policy: Any, sets: Sets, reward: Reward, rounds: int) -> Decisions:
    """The plain loop of a policy of the package, with its parameters."""
    name, params = type(policy).__name__, dict(policy.params)
    if name in ("SupLinUCB", "LayeredDSOFUL", "CertLinUCB"):
        params["beta"] = policy.radius
    if name in FIXED:
        X = sets[0]
        first: Any = len(X) if name == "UCB" else X
        return FIXED[name](first, reward, rounds, **params)
    return CHANGING[name](sets, reward, rounds, **params)


CHANGING: dict[str, Callable[..., Decisions]] = {
    "DSOFUL": ds_oful,
    "SupLinUCB": sup_lin_ucb,
    "LSW": lsw,
    "LayeredDSOFUL": layered_ds_oful,
    "CertLinUCB": cert_lin_ucb,
    "WeightedOFUL": weighted_oful,
}
FIXED: dict[str, Callable[..., Decisions]] = {
    "UCB": ucb,
    "RobustLinear": robust_linear,
    "PhasedElimination": phased_elimination,
}
