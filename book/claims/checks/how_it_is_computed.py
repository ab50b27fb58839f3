"""Checks of the lemmas behind the engine's shortcuts.

Each identity is tried on random states; each bound also in one dimension, where it is attained.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import banditlib as bl
from book.claims.checks.ds_oful import for_ever
from book.claims.formula import ATTAINED, Found, formula

State = tuple[np.random.Generator, np.ndarray, np.ndarray, np.ndarray]


def _state(seed: int, d: int = 5, points: int = 7, lessons: int = 6, size: float = 0.4) -> State:
    """A positive definite U, points X, and further lessons A; on the line from seed 1000 on."""
    rng = np.random.default_rng(seed)
    d = 1 if seed >= 1000 else d
    before = rng.normal(size=(9, d))
    U = 0.7 * np.eye(d) + before.T @ before
    return rng, U, rng.normal(size=(points, d)), size * rng.normal(size=(lessons, d))


def _seeds(size: str) -> list[int]:
    n = 20 if size == "ci" else 300
    return [*range(n), *range(1000, 1000 + n // 4)]


def _squares(U: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Squared widths of the rows of X."""
    return np.einsum("ij,ij->i", X, np.linalg.solve(U, X.T).T)


@formula()
def next_covariance(G: np.ndarray, g: np.ndarray, v: float) -> np.ndarray:
    """All covariances after one reward at a point of squared width v; g is its column."""
    return G - np.outer(g, g) / (1 + v)


@formula()
def next_mean(m: np.ndarray, g: np.ndarray, v: float, surprise: float) -> np.ndarray:
    return m + surprise / (1 + v) * g


def conditioning(size: str = "ci") -> Found:
    """Means and covariances after one more reward, against solving again."""
    for seed in _seeds(size):
        rng, U, X, _ = _state(seed)
        b, r = rng.normal(size=len(U)), rng.normal()
        x = X[0]
        G, m = X @ np.linalg.solve(U, X.T), X @ np.linalg.solve(U, b)
        g, v = G[:, 0], float(G[0, 0])
        V = U + np.outer(x, x)
        assert np.allclose(next_covariance(G, g, v), X @ np.linalg.solve(V, X.T))
        assert np.allclose(next_mean(m, g, v, float(r - m[0])), X @ np.linalg.solve(V, b + r * x))
    return ATTAINED


def stop(size: str = "ci") -> Found:
    """After its first skip DS-OFUL plays one arm and learns nothing; OFUL does neither."""
    problem = bl.problems.synthetic(seed=1)
    run: Any = bl.simulate(
        problem, [bl.DSOFUL(0.3, 1, 1), bl.OFUL(1, 1)], rounds=400, trials=3,
        record=("arms", "levels"), progress=False,
    )  # fmt: skip
    for trial in range(3):
        first = int(run.first_skip[0, 0, trial])
        kept, arms = run.levels[0, 0, trial] > 0, run.arms[0, 0, trial]
        assert 0 < first <= 400 and for_ever(kept, arms, first - 1)
        assert not for_ever(run.levels[0, 1, trial] > 0, run.arms[0, 1, trial], first - 1)
        assert not for_ever(kept & False, run.arms[0, 1, trial], 0)  # nothing learnt, many arms
    return ATTAINED


@formula()
def by_plays(C: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """LSW's bonus from the number of plays of each arm; C holds |x_iᵀU⁻¹x_a|."""
    return C @ counts


def lsw_counts(size: str = "ci") -> Found:
    """The sum over past rounds against the sum over arms."""
    for seed in _seeds(size):
        rng, U, X, _ = _state(seed)
        played = rng.integers(0, len(X), 40)
        C = np.abs(X @ np.linalg.solve(U, X.T))
        counts = np.bincount(played, minlength=len(X))
        assert np.allclose(C[:, played].sum(axis=1), by_plays(C, counts))
    return ATTAINED


@formula("lower")
def least_width(v: np.ndarray, g: float) -> np.ndarray:
    """Squared widths after learning a point of squared width g are at least this."""
    return v / (1 + g)


def shrink(size: str = "ci") -> Found:
    """Every squared width after one lesson; the point learnt attains the bound."""
    for seed in _seeds(size):
        _, U, X, _ = _state(seed)
        v = _squares(U, X)
        new = _squares(U + np.outer(X[0], X[0]), X)
        bound = least_width(v, float(v[0]))
        assert (new >= bound * (1 - 1e-12)).all() and np.isclose(new[0], bound[0])
    return ATTAINED


@formula("lower")
def settled(passes: int) -> int:
    """Decisions that are right after so many passes, whatever the guess was."""
    return passes


def guess(size: str = "ci") -> Found:
    """A sequential rule solved by repeated guessing: after j passes the first j decisions stand.

    A rule that reads everything before it, and a worst guess, show that no more can be promised.
    """
    noise = np.random.default_rng(0).normal(size=60)
    rules: list[Any] = [
        lambda h, k: int(np.sin(3 * h[:k].sum() + noise[k]) > 0),
        lambda h, k: int(h[k - 1]) if k else 0,  # every decision copies the one before
    ]
    slowest = 60
    for decide in rules:
        true = np.zeros(60, dtype=int)
        for k in range(60):
            true[k] = decide(true, k)
        h = 1 - true
        for passes in range(1, 61):
            h = np.array([decide(h, k) for k in range(60)])
            wrong = np.flatnonzero(h != true)
            right = int(wrong[0]) if len(wrong) else 60
            assert right >= settled(passes)
            slowest = min(slowest, right - settled(passes) if len(wrong) else 60)
    assert slowest == 0
    return ATTAINED


@formula()
def block_variance(diagonal: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Squared widths after the lessons whose rows of T are given."""
    return diagonal - (T**2).sum(axis=0)


@formula()
def block_mean(m: np.ndarray, T: np.ndarray, s: np.ndarray) -> np.ndarray:
    return m + T.T @ s


@formula()
def block_factor(G: np.ndarray) -> np.ndarray:
    """The factor of I + G."""
    return np.linalg.cholesky(1 * np.eye(len(G)) + G)


def gram(size: str = "ci") -> Found:
    """All states of a block from one factorisation, against solving again after each lesson."""
    for seed in _seeds(size):
        rng, U, X, A = _state(seed)
        b, r = rng.normal(size=len(U)), rng.normal(size=len(A))
        P = np.concatenate([A, X])
        G, m = P @ np.linalg.solve(U, P.T), P @ np.linalg.solve(U, b)
        n = len(A)
        R = block_factor(G[:n, :n])
        T, s = np.linalg.solve(R, G[:n]), np.linalg.solve(R, r - m[:n])
        for j in range(n + 1):
            V = U + A[:j].T @ A[:j]
            assert np.allclose(block_variance(np.diag(G), T[:j]), _squares(V, P))
            mean = P @ np.linalg.solve(V, b + A[:j].T @ r[:j])
            assert np.allclose(block_mean(m, T[:j], s[:j]), mean)
    return ATTAINED


def _stretch(seed: int, size: float = 0.4) -> tuple[Any, ...]:
    rng, U, X, A = _state(seed, size=size)
    e = rng.normal(size=len(A))
    V = U + A.T @ A
    half = np.linalg.cholesky(np.linalg.inv(U))
    rho = float(np.linalg.eigvalsh(half.T @ (A.T @ A) @ half).max())
    g = A.T @ e
    norm_g = float(np.sqrt(g @ np.linalg.solve(U, g)))
    w0, w = np.sqrt(_squares(U, X)), np.sqrt(_squares(V, X))
    return U, V, X, A, half, rho, g, norm_g, w0, w


@formula("lower")
def width_after(w0: np.ndarray, rho: float) -> np.ndarray:
    return w0 / np.sqrt(1 + rho)


@formula("upper")
def mean_moves(w0: np.ndarray, norm_g: float) -> np.ndarray:
    return w0 * norm_g


@formula("upper")
def mean_turns(w0: np.ndarray, norm_g: float, rho: float) -> np.ndarray:
    """How far the move can be from its first-order part."""
    return rho / (1 + rho) * w0 * norm_g


def move(size: str = "ci") -> Found:
    """Widths and means during a stretch, on random states and on the line, where it is met."""
    slack = {"width_after": np.inf, "mean_moves": np.inf, "mean_turns": np.inf}
    for seed in [*_seeds(size), 2000, 2001]:
        small = 1e-4 if seed >= 2000 else 0.4
        U, V, X, _, _, rho, g, norm_g, w0, w = _stretch(seed, small)
        moved, first = X @ np.linalg.solve(V, g), X @ np.linalg.solve(U, g)
        tiny = 1 + 1e-9
        assert (width_after(w0, rho) <= w * tiny).all() and (w <= w0 * tiny).all()
        assert (np.abs(moved) <= mean_moves(w0, norm_g) * tiny).all()
        assert (np.abs(moved - first) <= mean_turns(w0, norm_g, rho) * tiny + 1e-15).all()
        found = {
            "width_after": (w / width_after(w0, rho)).min(),
            "mean_moves": (mean_moves(w0, norm_g) / np.abs(moved)).min(),
            "mean_turns": (mean_turns(w0, norm_g, rho) / np.abs(moved - first)).min(),
        }
        if small == 0.4:
            found.pop("mean_moves")
            slack |= {k: min(float(v), slack[k]) for k, v in found.items()}
        else:
            slack["mean_moves"] = min(float(found["mean_moves"]), slack["mean_moves"])
    return Found(slack, "one dimension; short lessons for the means")


@formula("upper")
def mean_left(rho: float, last: np.ndarray, norm_g: float) -> np.ndarray:
    """Error of the series for the means after its last term."""
    return rho * last * norm_g


@formula()
def width_left(left: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """The error of the series for squared widths lies between these."""
    return left / (1 + rho), left


@formula()
def left_along(left: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The same error is at least this, by the first two moments left out."""
    return left**2 / (left + after)


@formula()
def sign_of_term(J: int) -> int:
    return (-1) ** J


def series(size: str = "ci") -> Found:
    """Widths and means from both sides; on the line both lower ends are met, if short all."""
    nearest, least, low, lines = np.inf, np.inf, np.inf, 0
    for seed in [*_seeds(size), 2000, 2001]:
        small = 1e-2 if seed >= 2000 else 0.4
        _, _, X, A, half, rho, g, norm_g, _, w = _stretch(seed, small)
        B = half.T @ (A.T @ A) @ half
        z = half.T @ X.T
        y, total, mean = z, np.zeros(len(X)), np.zeros(len(X))
        exact = X @ half @ np.linalg.solve(np.eye(len(B)) + B, half.T @ g)
        for J in range(3):
            total = total + sign_of_term(J) * np.einsum("ij,ij->j", z, y)
            mean = mean + sign_of_term(J) * (y.T @ half.T @ g)
            bound = mean_left(rho, np.linalg.norm(y, axis=0), norm_g)
            assert (np.abs(exact - mean) <= bound * (1 + 1e-9) + 1e-15).all()
            y = B @ y
            left = np.einsum("ij,ij->j", z, y)
            error = (w**2 - total) * sign_of_term(J + 1)
            low_end, high_end = width_left(left, rho)
            assert (error <= high_end * (1 + 1e-6) + 1e-15).all()
            assert (error >= low_end * (1 - 1e-6) - 1e-15).all()
            sharper = left_along(left, np.einsum("ij,ij->j", z, B @ y))
            assert (error >= sharper * (1 - 1e-6) - 1e-15).all()
            if J == 0:
                nearest = min(nearest, float((high_end / error).min()))
                low = min(low, float((error / low_end).min()))
                if len(B) == 1 and small == 0.4:  # on the line it is an equality
                    assert np.allclose(error, sharper, rtol=1e-6, atol=0.0)
                    lines += 1
                least = min(least, float((bound / np.abs(exact - mean)).min()))
    assert nearest < 1.05 and low < 1.05 and lines > 0
    return Found({"mean_left": least}, "one dimension, short lessons")


@formula("lower")
def widths_left(w0: np.ndarray, total: float) -> np.ndarray:
    """Squared widths after lessons whose squared widths add up to `total` are at least this."""
    return w0**2 * (1 - total)


def widen(size: str = "ci") -> Found:
    """Squared widths against the sum of the lessons' squared widths; attained as they get short."""
    least = np.inf
    for seed in [*_seeds(size), *range(2000, 2008)]:
        small = 3e-2 if seed >= 2000 else 0.4
        U, _, _, A, _, _, _, _, w0, w = _stretch(seed, small)
        total = float(np.sum(_squares(U, A)))
        assert (widths_left(w0, total) <= w**2 * (1 + 1e-9)).all()
        if seed >= 2000:
            lost, allowed = w0**2 - w**2, w0**2 - widths_left(w0, total)
            least = min(least, float((allowed / lost).min()))
    assert least < 1.01  # what is lost is what may be lost
    return Found({"widths_left": 1.0}, "one dimension, short lessons")
