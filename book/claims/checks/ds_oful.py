"""Checks for the chapter "DS-OFUL": ridge regression, one more observation, the algorithm."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from flint import fmpq, fmpq_mat, fmpq_mpoly_ctx

TAU = 1e-9


def _gens(names: str) -> tuple:
    """Polynomial variables over the rationals."""
    return fmpq_mpoly_ctx.get(names.split(), "lex").gens()


def _dot(u, v):
    return sum(a * b for a, b in zip(u, v, strict=True))


# --- the regression ------------------------------------------------------------------------------


def ridge(size: str = "ci", lam_factor: int = 1) -> None:
    """Σ(r−xᵀθ)² + λ‖θ‖² = ‖θ−θ_k‖²_U + ‖r‖² − bᵀU⁻¹b, as polynomials (three points, d = 2)."""
    lam, p, q, a1, a2, b1, b2, c1, c2, u, v, w = _gens("lam p q a1 a2 b1 b2 c1 c2 u v w")
    points, rewards, theta = ((a1, a2), (b1, b2), (c1, c2)), (u, v, w), (p, q)
    U11, U22 = (lam_factor * lam + sum(x[i] ** 2 for x in points) for i in range(2))
    U12 = sum(x[0] * x[1] for x in points)
    b = [sum(x[i] * r for x, r in zip(points, rewards, strict=True)) for i in range(2)]
    D = U11 * U22 - U12**2
    z = (U22 * b[0] - U12 * b[1], U11 * b[1] - U12 * b[0])  # D θ_k, θ_k = U⁻¹b
    off = (D * p - z[0], D * q - z[1])  # D (θ − θ_k)
    square = U11 * off[0] ** 2 + 2 * U12 * off[0] * off[1] + U22 * off[1] ** 2
    loss = sum((r - _dot(x, theta)) ** 2 for x, r in zip(points, rewards, strict=True))
    loss += lam * _dot(theta, theta)
    assert D**2 * loss == square + D * (D * _dot(rewards, rewards) - _dot(b, z))


def aux_sherman_morrison(size: str = "ci", sign: int = 1) -> None:
    """(U+xxᵀ)((1+g)V − Vx xᵀV) = (1+g)I and det(U+xxᵀ) = (1+g)det U, V = U⁻¹, as polynomials."""
    p, q, r, x1, x2 = _gens("p q r x1 x2")  # U = [[p, q], [q, r]]
    D = p * r - q * q
    adj = ((r, -q), (-q, p))  # D V
    h = (r * x1 - q * x2, p * x2 - q * x1)  # D V x
    G = x1 * h[0] + x2 * h[1]  # D g
    new = ((p + x1 * x1, q + x1 * x2), (q + x1 * x2, r + x2 * x2))
    # D² times the claimed product: (U + xxᵀ)((D + G) adj − sign h hᵀ) = D (D + G) I
    for i, j in product(range(2), repeat=2):
        entry = sum(new[i][m] * ((D + G) * adj[m][j] - sign * h[m] * h[j]) for m in range(2))
        assert entry == (D * (D + G) if i == j else 0 * D)
    assert new[0][0] * new[1][1] - new[0][1] * new[1][0] == D + G


def aux_widths_shrink(size: str = "ci", sign: int = -1) -> None:
    """zᵀU'⁻¹z = zᵀU⁻¹z − (zᵀU⁻¹x)²/(1 + xᵀU⁻¹x) ≤ zᵀU⁻¹z, exactly, over a finite family."""
    entries = (-1, 0, 1, 2)
    vectors = [fmpq_mat(2, 1, list(v)) for v in product(entries, repeat=2)]
    for lam in (fmpq(1, 3), fmpq(2)):
        for first, x in product(vectors, repeat=2):
            U = fmpq_mat(2, 2, [lam, 0, 0, lam]) + first * first.transpose()
            V, W = U.inv(), (U + x * x.transpose()).inv()
            g = (x.transpose() * V * x)[0, 0]
            for z in vectors[:: 1 if size == "full" else 3]:
                old = (z.transpose() * V * z)[0, 0]
                new = (z.transpose() * W * z)[0, 0]
                assert new == old + sign * (z.transpose() * V * x)[0, 0] ** 2 / (1 + g)
                assert new <= old


# --- the algorithm -------------------------------------------------------------------------------


def _ds_oful(
    arms: Callable[[int], np.ndarray],
    reward: Callable[[int, int], float],
    K: int,
    Gamma: float,
    beta: float,
    lam: float,
) -> dict[str, np.ndarray]:
    """Algorithm 1, solving from scratch in every round; arm, width and kept per round."""
    d = arms(1).shape[1]
    points, rewards = np.empty((0, d)), np.empty(0)
    arm, width, kept = np.empty(K, int), np.empty(K), np.empty(K, bool)
    for k in range(1, K + 1):
        U = lam * np.eye(d) + points.T @ points
        theta = np.linalg.solve(U, points.T @ rewards)
        X = arms(k)
        widths = np.sqrt(np.sum(X * np.linalg.solve(U, X.T).T, axis=1))
        score = X @ theta + beta * widths
        best = score.max()
        a = int(np.argmax(score >= best - TAU * (1 + abs(best))))
        r = reward(k, a)
        keep = widths[a] >= Gamma * (1 - TAU)
        if keep:
            points, rewards = np.vstack([points, X[a]]), np.append(rewards, r)
        arm[k - 1], width[k - 1], kept[k - 1] = a, widths[a], keep
    return {"arm": arm, "width": width, "kept": kept}


def _instance(seed: int, d: int, N: int, K: int, zeta: float) -> tuple[np.ndarray, ...]:
    """Fixed unit arms (N, d), expected rewards (N,) and noise (K,)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    theta = rng.normal(size=d)
    mean = X @ (theta / np.linalg.norm(theta)) + zeta * rng.choice([-1.0, 1.0], size=N)
    return X, mean, rng.normal(size=K)


def alg_main(size: str = "ci", Gamma_factor: float = 1.0) -> None:
    """Solve-every-round and `banditlib` agree on every arm and every kept round."""
    from banditlib import DSOFUL, problems, simulate

    K, Gammas = (3000, (0.0, 0.05, 0.13, 0.3)) if size == "full" else (400, (0.0, 0.13, 0.3))
    X, mean, noise = _instance(1, 8, 40, K, 0.02)
    axes = np.vstack([np.eye(3), -np.eye(3)])  # ties in scores, and in widths at 1/(λ + n) = Γ²
    for arms, values in ((X, mean), (axes, axes[:, 0] / 2)):
        problem = problems.FixedArms(arms, values)
        policies = [DSOFUL(Gamma_factor * G, 1.5, 1.0) for G in (*Gammas, 0.5, 0.1)]
        run = simulate(
            problem, policies, rounds=K, trials=1, noise=noise[None, :],
            record=("arms", "levels"), progress=False,
        )  # fmt: skip
        for q, G in enumerate((*Gammas, 0.5, 0.1)):
            reward = lambda k, a, v=values: v[a] + noise[k - 1]  # noqa: E731
            ours = _ds_oful(lambda k, a=arms: a, reward, K, G, 1.5, 1.0)
            assert np.array_equal(ours["arm"], run.arms[0, q, 0])
            assert np.array_equal(ours["kept"], run.levels[0, q, 0] == 1)
    rng = np.random.default_rng(2)
    shift = np.array([0.5, 0, 0, 0])
    good, bad = rng.normal(size=(2, 30, 4)) / 3
    pool = problems.Pool(good=good + shift, bad=bad - shift)
    policies = [DSOFUL(Gamma_factor * G, 0.5, 1.0) for G in Gammas]
    run = simulate(
        pool, policies, rounds=K, trials=1, seed=3, noise=noise[None, :],
        record=("arms", "levels"), progress=False,
    )  # fmt: skip
    pairs = pool.contexts(seed=3, trial=0, rounds=K)
    for q, G in enumerate(Gammas):
        reward = lambda k, a: pool.reward[pairs[k - 1, a]] + noise[k - 1]  # noqa: E731
        ours = _ds_oful(lambda k: pool.points[pairs[k - 1]], reward, K, G, 0.5, 1.0)
        assert np.array_equal(ours["arm"], run.arms[0, q, 0])
        assert np.array_equal(ours["kept"], run.levels[0, q, 0] == 1)


def aux_first_skip(size: str = "ci", fixed: bool = True) -> None:
    """After the first skip on fixed arms the same arm is played and skipped for ever."""
    K = 3000 if size == "full" else 600
    locked = 0
    for seed, Gamma in product(range(6), (0.2, 0.35)):
        X, mean, noise = _instance(seed, 3, 8, K, 0.05)
        other = np.random.default_rng(seed).normal(size=(K, *X.shape))
        arms = (lambda k, X=X: X) if fixed else (lambda k, o=other: o[k - 1])
        reward = lambda k, a, m=mean, e=noise: m[a] + e[k - 1]  # noqa: E731
        run = _ds_oful(arms, reward, K, Gamma, 1.0, 1.0)
        skipped = np.flatnonzero(~run["kept"])
        assert len(skipped), "the run must be long enough to skip"
        first = skipped[0]
        assert not run["kept"][first:].any()
        assert (run["arm"][first:] == run["arm"][first]).all()
        assert (run["width"][first:] == run["width"][first]).all()
        locked += mean[run["arm"][-1]] < mean.max()
    assert locked > 0, "some of these runs commit to a wrong arm"


def text_l163(size: str = "ci", c: float = 16.0) -> None:
    """|C_K| is of order dΓ⁻²: below c dΓ⁻² log(3LB/Γ), above d(Γ⁻² − λ) for orthonormal arms."""
    for d, Gamma in product((2, 5), (0.5, 0.2, 0.1) if size == "full" else (0.5, 0.25)):
        K = int(2 * d / Gamma**2) + 10
        axes = np.eye(d)
        arms = lambda k, e=axes, d=d: e[[k % d]]  # one arm per round, the axes in turn  # noqa: E731
        kept = _ds_oful(arms, lambda k, a: 0.0, K, Gamma, 1.0, 1.0)["kept"].sum()
        assert kept == d * (int(np.floor(Gamma**-2 - 1.0 + 1e-6)) + 1)
        rng = np.random.default_rng(d)
        draws = rng.normal(size=(K, 6, d))
        draws /= np.linalg.norm(draws, axis=2, keepdims=True)
        busy = _ds_oful(lambda k, a=draws: a[k - 1], lambda k, a: 0.0, K, Gamma, 1.0, 1.0)
        for count in (kept, busy["kept"].sum()):
            assert count <= c * d / Gamma**2 * np.log(3 / Gamma)


def skip_condition(size: str = "ci", zeta: float = 0.02, Delta: float = 0.18) -> None:
    """Which Γ of Table 1 satisfy 2ζ + 2βΓ < Δ, for the three β of the grid."""
    table = (0.02, 0.05, 0.08, 0.13, 0.18)
    harmless = {beta: [G for G in table if 2 * zeta + 2 * beta * G < Delta] for beta in (1, 3, 10)}
    assert harmless == {1: [0.02, 0.05], 3: [0.02], 10: []}
