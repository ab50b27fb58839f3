"""Checks of the lemmas behind the engine's shortcuts."""

from __future__ import annotations

import numpy as np

import banditlib as bl


def _state(seed: int, d: int = 5, points: int = 7, lessons: int = 6):
    """A positive definite U, points X, and further lessons A, with some dependence among them."""
    rng = np.random.default_rng(seed)
    before = rng.normal(size=(9, d))
    U = 0.7 * np.eye(d) + before.T @ before
    X = rng.normal(size=(points, d))
    A = 0.4 * rng.normal(size=(lessons, d))
    return rng, U, X, A


def _runs(size: str) -> range:
    return range(30 if size == "ci" else 300)


def conditioning(size: str = "ci", one: float = 1.0) -> None:
    for seed in _runs(size):
        rng, U, X, _ = _state(seed)
        b, r = rng.normal(size=len(U)), rng.normal()
        x = X[0]
        G, m = X @ np.linalg.solve(U, X.T), X @ np.linalg.solve(U, b)
        g = G[:, 0]
        V = U + np.outer(x, x)
        assert np.allclose(G - np.outer(g, g) / (one + g[0]), X @ np.linalg.solve(V, X.T))
        assert np.allclose(m + (r - m[0]) / (one + g[0]) * g, X @ np.linalg.solve(V, b + r * x))


def stop(size: str = "ci", Gamma: float = 0.3) -> None:
    """After its first skip DS-OFUL plays one arm; OFUL (the mutant) goes on."""
    problem = bl.problems.synthetic(seed=1)
    run = bl.simulate(
        problem, bl.DSOFUL(Gamma, 1, 1), rounds=400, trials=3, record=("arms",), progress=False
    )
    for trial in range(3):
        first = int(run.first_skip[0, 0, trial])
        assert 0 < first <= 400
        assert len(set(run.arms[0, 0, trial, first - 1 :].tolist())) == 1


def lsw_counts(size: str = "ci", power: int = 1) -> None:
    for seed in _runs(size):
        rng, U, X, _ = _state(seed)
        played = rng.integers(0, len(X), 40)
        C = np.abs(X @ np.linalg.solve(U, X.T))
        counts = np.bincount(played, minlength=len(X)) ** power
        assert np.allclose(C[:, played].sum(axis=1), C @ counts)


def shrink(size: str = "ci", one: float = 1.0) -> None:
    for seed in _runs(size):
        _, U, X, _ = _state(seed)
        v = np.einsum("ij,ij->i", X, np.linalg.solve(U, X.T).T)
        V = U + np.outer(X[0], X[0])
        new = np.einsum("ij,ij->i", X, np.linalg.solve(V, X.T).T)
        assert (new >= v / (one + v[0]) * (1 - 1e-12)).all()


def guess(size: str = "ci", look_ahead: bool = False) -> None:
    """A sequential rule solved by repeated guessing needs at most one pass for each round."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=60)

    def decide(history: np.ndarray, k: int) -> int:
        seen = history if look_ahead else history[:k]
        return int(np.sin(3 * seen.sum() + noise[k]) > 0)

    true = np.zeros(60, dtype=int)
    for k in range(60):
        true[k] = decide(true, k)
    h = np.ones(60, dtype=int)
    for _ in range(60):
        h = np.array([decide(h, k) for k in range(60)])
    assert np.array_equal(h, true)


def gram(size: str = "ci", one: float = 1.0) -> None:
    for seed in _runs(size):
        rng, U, X, A = _state(seed)
        b, r = rng.normal(size=len(U)), rng.normal(size=len(A))
        P = np.concatenate([A, X])
        G, m = P @ np.linalg.solve(U, P.T), P @ np.linalg.solve(U, b)
        n = len(A)
        R = np.linalg.cholesky(one * np.eye(n) + G[:n, :n])
        T, s = np.linalg.solve(R, G[:n]), np.linalg.solve(R, r - m[:n])
        for j in range(n + 1):
            V = U + A[:j].T @ A[:j]
            var = np.einsum("ij,ij->i", P, np.linalg.solve(V, P.T).T)
            assert np.allclose(np.diag(G) - (T[:j] ** 2).sum(axis=0), var)
            mean = P @ np.linalg.solve(V, b + A[:j].T @ r[:j])
            assert np.allclose(m + T[:j].T @ s[:j], mean)


def _stretch(seed: int):
    rng, U, X, A = _state(seed)
    e = rng.normal(size=len(A))
    V = U + A.T @ A
    half = np.linalg.cholesky(np.linalg.inv(U))
    rho = float(np.linalg.eigvalsh(half.T @ (A.T @ A) @ half).max())
    g = A.T @ e
    norm_g = float(np.sqrt(g @ np.linalg.solve(U, g)))
    w0 = np.sqrt(np.einsum("ij,ij->i", X, np.linalg.solve(U, X.T).T))
    w = np.sqrt(np.einsum("ij,ij->i", X, np.linalg.solve(V, X.T).T))
    return U, V, X, A, half, rho, g, norm_g, w0, w


def move(size: str = "ci", slack: float = 1.0) -> None:
    for seed in _runs(size):
        U, V, X, _, _, rho, g, norm_g, w0, w = _stretch(seed)
        moved = X @ np.linalg.solve(V, g)
        first = X @ np.linalg.solve(U, g)
        tiny = 1 + 1e-9
        assert (w0 / np.sqrt(1 + slack * rho) <= w * tiny).all() and (w <= w0 * tiny).all()
        assert (np.abs(moved) <= w0 * norm_g * tiny).all()
        assert (np.abs(moved - first) <= slack * rho / (1 + rho) * w0 * norm_g * tiny).all()


def series(size: str = "ci", sign: int = -1) -> None:
    for seed in _runs(size):
        _, _, X, A, half, rho, g, norm_g, _, w = _stretch(seed)
        B = half.T @ (A.T @ A) @ half
        z = half.T @ X.T
        y, total, mean = z, np.zeros(len(X)), np.zeros(len(X))
        exact = X @ half @ np.linalg.solve(np.eye(len(B)) + B, half.T @ g)
        for J in range(5):
            total = total + sign**J * np.einsum("ij,ij->j", z, y)
            mean = mean + sign**J * (y.T @ half.T @ g)
            bound = rho * np.linalg.norm(y, axis=0) * norm_g
            assert (np.abs(exact - mean) <= bound * (1 + 1e-9) + 1e-12).all()
            y = B @ y
            left = np.einsum("ij,ij->j", z, y)
            error = (w**2 - total) * (-1) ** (J + 1)
            assert (error <= left * (1 + 1e-9) + 1e-12).all()
            assert (error >= left / (1 + rho) * (1 - 1e-9) - 1e-12).all()


def widen(size: str = "ci", factor: float = 1.0) -> None:
    for seed in _runs(size):
        U, _, _, A, _, _, _, _, w0, w = _stretch(seed)
        total = float(np.einsum("ij,ij->", A, np.linalg.solve(U, A.T).T))
        assert (w0**2 * (1 - factor * total) <= w**2 * (1 + 1e-9)).all()
        assert (w <= w0 * (1 + 1e-12)).all()
