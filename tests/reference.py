"""Plain references: one function per algorithm, following its pseudocode line by line.

Nothing incremental, no lanes, no shortcuts: U and θ are rebuilt from all learnt rounds and solved
anew in every round. Decision sets are given round by round, ``sets[k-1]`` of shape (M, d), rewards
as ``reward(k, arm)``; each function returns the arms and levels of all rounds. The tolerance of
ties and thresholds is written out again on purpose.
"""

from __future__ import annotations

import math

import numpy as np

TAU = 1e-9


def argmax(score: np.ndarray) -> int:
    """Lowest index within τ(1 + |best|) of the best."""
    best = max(score)
    for i, value in enumerate(score):
        if value >= best - TAU * (1 + abs(best)):
            return i
    raise AssertionError("no score is a number")


class Regression:
    """λI + Σ x xᵀ and Σ r x over the rounds of one index set."""

    def __init__(self, dim: int, lam: float) -> None:
        self.lam, self.dim = lam, dim
        self.x: list[np.ndarray] = []
        self.r: list[float] = []

    def add(self, x: np.ndarray, r: float) -> None:
        self.x.append(x)
        self.r.append(r)

    def solve(self, D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and widths of the rows of D."""
        if not self.x:
            return np.zeros(len(D)), np.sqrt((D * D).sum(axis=1)) / math.sqrt(self.lam)
        H = np.array(self.x)
        U = self.lam * np.eye(self.dim) + H.T @ H
        theta = np.linalg.solve(U, H.T @ np.array(self.r))
        squares = (D * np.linalg.solve(U, D.T).T).sum(axis=1)
        return D @ theta, np.sqrt(np.maximum(squares, 0.0))


def ds_oful(sets, reward, rounds: int, Gamma: float, beta: float, lam: float):
    """Algorithm 1."""
    regression = Regression(sets[0].shape[1], lam)
    arms, levels = [], []
    for k in range(1, rounds + 1):
        D = sets[k - 1]
        mean, width = regression.solve(D)
        a = argmax(mean + beta * width)
        r = reward(k, a)
        selected = width[a] >= Gamma * (1 - TAU)
        if selected:
            regression.add(D[a], r)
        arms.append(a)
        levels.append(int(selected))
    return np.array(arms), np.array(levels)


def sup_lin_ucb(sets, reward, rounds: int, beta, lam: float, trace: list | None = None):
    """Algorithm 2; β is called with the level. ``trace`` collects (k, level, surviving arms)."""
    d = sets[0].shape[1]
    regressions: dict[int, Regression] = {}
    arms, levels = [], []
    for k in range(1, rounds + 1):
        D, alive, l = sets[k - 1], list(range(len(sets[k - 1]))), 1
        while True:
            regression = regressions.setdefault(l, Regression(d, lam))
            mean, width = regression.solve(D[alive])
            index = mean + beta(l) * width
            if trace is not None:
                trace.append((k, l, tuple(alive)))
            if max(width) >= 2.0**-l * (1 - TAU):
                a, level = alive[argmax(width)], l
                break
            if k <= 4**l * d:
                a, level = alive[argmax(index)], 0
                break
            limit = 2 * beta(l) * 2.0**-l * (1 + TAU)
            alive = [
                x for x, value in zip(alive, index, strict=True) if max(index) - value <= limit
            ]
            l += 1
        r = reward(k, a)
        if level:
            regressions[level].add(D[a], r)
        arms.append(a)
        levels.append(level)
    return np.array(arms), np.array(levels)


def lsw(sets, reward, rounds: int, beta: float, lam: float, eps: float):
    """Equation (6) of Lattimore et al., with the sum over past rounds."""
    d = sets[0].shape[1]
    regression = Regression(d, lam)
    arms = []
    for k in range(1, rounds + 1):
        D = sets[k - 1]
        mean, width = regression.solve(D)
        bonus = np.zeros(len(D))
        if regression.x:
            H = np.array(regression.x)
            U = lam * np.eye(d) + H.T @ H
            bonus = np.abs(D @ np.linalg.solve(U, H.T)).sum(axis=1)
        a = argmax(mean + beta * width + eps * bonus)
        regression.add(D[a], reward(k, a))
        arms.append(a)
    return np.array(arms), np.ones(rounds, dtype=int)


def ucb(arms_count: int, reward, rounds: int, alpha: float):
    """Each arm once, then mean + √(α log k / n)."""
    seen: list[list[float]] = [[] for _ in range(arms_count)]
    arms = []
    for k in range(1, rounds + 1):
        if any(not s for s in seen):
            a = next(i for i, s in enumerate(seen) if not s)
        else:
            a = argmax(
                np.array([sum(s) / len(s) + math.sqrt(alpha * math.log(k) / len(s)) for s in seen])
            )
        seen[a].append(reward(k, a))
        arms.append(a)
    return np.array(arms), np.ones(rounds, dtype=int)


def robust_linear(
    X, reward, rounds, beta, lam, alpha=2.0, pulls=10, delta=0.05, sigma=1.0, eps=0.0
):
    """RLB as the package reads it: opening, test, then OFUL or UCB on all data."""
    N, d = X.shape
    basis: list[int] = []
    for i in range(N):
        if np.linalg.matrix_rank(X[[*basis, i]]) > len(basis):
            basis.append(i)
    others = [i for i in range(N) if i not in basis]
    opening = (basis + others[:1]) * pulls if others else []
    regression = Regression(d, lam)
    seen: list[list[float]] = [[] for _ in range(N)]
    arms, linear = [], True
    for k in range(1, rounds + 1):
        if k == len(opening) + 1 and opening:
            w = np.linalg.lstsq(X[basis].T, X[others[0]], rcond=None)[0]
            means = [sum(s) / len(s) if s else 0.0 for s in seen]
            T = means[others[0]] - sum(wi * means[i] for wi, i in zip(w, basis, strict=True))
            spread = sigma * math.sqrt((1 + w @ w) / pulls) * math.sqrt(2 * math.log(2 / delta))
            linear = abs(T) <= eps * (1 + abs(w).sum()) + spread
        if k <= len(opening):
            a = opening[k - 1]
        elif linear:
            mean, width = regression.solve(X)
            a = argmax(mean + beta * width)
        elif any(not s for s in seen):
            a = next(i for i, s in enumerate(seen) if not s)
        else:
            a = argmax(
                np.array([sum(s) / len(s) + math.sqrt(alpha * math.log(k) / len(s)) for s in seen])
            )
        r = reward(k, a)
        regression.add(X[a], r)
        seen[a].append(r)
        arms.append(a)
    return np.array(arms), np.ones(rounds, dtype=int)


def oful_by_ellipsoid(X, reward, rounds: int, beta: float, lam: float):
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
