"""Checks for the chapter "DS-OFUL": ridge regression, one more observation, the algorithm."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from banditlib import reference, theory
from book.claims.checks.exact import dot, gens, hardest
from book.claims.formula import ATTAINED, Found, about, formula

# --- the regression ------------------------------------------------------------------------------


@formula()
def solved(U11: Any, U12: Any, U22: Any, b: Any) -> tuple[Any, Any]:
    """det(U) θ_k for θ_k = U⁻¹b."""
    return U22 * b[0] - U12 * b[1], U11 * b[1] - U12 * b[0]


def ridge(size: str = "ci") -> Found:
    """Σ(r−xᵀθ)² + λ‖θ‖² = ‖θ−θ_k‖²_U + ‖r‖² − bᵀU⁻¹b, as polynomials (three points, d = 2)."""
    lam, p, q, a1, a2, b1, b2, c1, c2, u, v, w = gens("lam p q a1 a2 b1 b2 c1 c2 u v w")
    points, rewards, theta = ((a1, a2), (b1, b2), (c1, c2)), (u, v, w), (p, q)
    U11, U22 = (lam + sum(x[i] ** 2 for x in points) for i in range(2))
    U12 = sum(x[0] * x[1] for x in points)
    b = [sum(x[i] * r for x, r in zip(points, rewards, strict=True)) for i in range(2)]
    D = U11 * U22 - U12**2
    z = solved(U11, U12, U22, b)
    off = (D * p - z[0], D * q - z[1])  # D (θ − θ_k)
    square = U11 * off[0] ** 2 + 2 * U12 * off[0] * off[1] + U22 * off[1] ** 2
    loss = sum((r - dot(x, theta)) ** 2 for x, r in zip(points, rewards, strict=True))
    loss += lam * dot(theta, theta)
    assert D**2 * loss == square + D * (D * dot(rewards, rewards) - dot(b, z))
    return ATTAINED


@formula()
def updated(D: Any, G: Any, adj: Any, hh: Any) -> Any:
    """One entry of det(U)(1+g)det(U) (U + xxᵀ)⁻¹; D = det U, G = Dg, hh an entry of D²(Vx)(Vx)ᵀ."""
    return (D + G) * adj - hh


@formula()
def grown_det(D: Any, G: Any) -> Any:
    """det(U + xxᵀ) = (1 + g) det U."""
    return D + G


def aux_sherman_morrison(size: str = "ci") -> Found:
    """(U+xxᵀ)((1+g)V − Vx xᵀV) = (1+g)I and det(U+xxᵀ) = (1+g)det U, V = U⁻¹, as polynomials."""
    p, q, r, x1, x2 = gens("p q r x1 x2")  # U = [[p, q], [q, r]]
    D = p * r - q * q
    adj = ((r, -q), (-q, p))  # D V
    h = (r * x1 - q * x2, p * x2 - q * x1)  # D V x
    G = x1 * h[0] + x2 * h[1]  # D g
    new = ((p + x1 * x1, q + x1 * x2), (q + x1 * x2, r + x2 * x2))
    for i, j in product(range(2), repeat=2):
        entry = sum(new[i][m] * updated(D, G, adj[m][j], h[m] * h[j]) for m in range(2))
        assert entry == (D * (D + G) if i == j else 0 * D)
    assert new[0][0] * new[1][1] - new[0][1] * new[1][0] == grown_det(D, G)
    return ATTAINED


@formula()
def shrunk(old: fmpq, cross: fmpq, g: fmpq) -> fmpq:
    """zᵀU'⁻¹z from zᵀU⁻¹z, zᵀU⁻¹x and xᵀU⁻¹x."""
    return old - cross**2 / (1 + g)


def aux_widths_shrink(size: str = "ci") -> Found:
    """zᵀU'⁻¹z = zᵀU⁻¹z − (zᵀU⁻¹x)²/(1 + xᵀU⁻¹x) ≤ zᵀU⁻¹z, exactly, over a finite family."""
    vectors = [fmpq_mat(2, 1, list(v)) for v in product((-1, 0, 2), repeat=2)]
    for lam in (fmpq(1, 3), fmpq(2)):
        for first, x in product(vectors, repeat=2):
            U = fmpq_mat(2, 2, [lam, 0, 0, lam]) + first * first.transpose()
            V, W = U.inv(), (U + x * x.transpose()).inv()
            g = (x.transpose() * V * x)[0, 0]
            for z in vectors[:: 1 if size == "full" else 2]:
                old = (z.transpose() * V * z)[0, 0]
                new = (z.transpose() * W * z)[0, 0]
                assert new == shrunk(old, (z.transpose() * V * x)[0, 0], g) <= old
    return ATTAINED


# --- the algorithm -------------------------------------------------------------------------------


@formula(tool=True)
def index(mean: np.ndarray, beta: float, width: np.ndarray) -> np.ndarray:
    """The optimistic reward."""
    return mean + beta * width


@formula(tool=True)
def keeps(width: float, Gamma: float) -> bool:
    """Whether the round is learnt from."""
    return width >= Gamma


def _ds_oful(
    arms: Callable[[int], np.ndarray],
    reward: Callable[[int, int], float],
    K: int,
    Gamma: float,
    beta: float,
    lam: float,
) -> dict[str, np.ndarray]:
    """Algorithm 1 in terms of the rules above; arm, width and kept per round."""
    ridge = reference.Regression(arms(1).shape[1], lam)
    arm, width, kept = np.empty(K, int), np.empty(K), np.empty(K, bool)
    for k in range(1, K + 1):
        X = arms(k)
        mean, widths = ridge.solve(X)
        a = reference.argmax(index(mean, beta, widths))
        keep = keeps(widths[a], Gamma)
        if keep:
            ridge.add(X[a], reward(k, a))
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


@about("index", "keeps")
def alg_main(size: str = "ci") -> Found:
    """Solve-every-round and `banditlib` agree on every arm and every kept round.

    Fixed arms, axes whose widths meet Γ exactly, and a pool of changing contexts.
    """
    from banditlib import DSOFUL, problems, simulate

    K, Gammas = (3000, (0.0, 0.05, 0.13, 0.3)) if size == "full" else (400, (0.0, 0.13, 0.3))
    X, mean, noise = _instance(1, 8, 40, K, 0.02)
    axes = np.vstack([np.eye(3), -np.eye(3)])  # ties in scores, and in widths at 1/(λ + n) = Γ²
    for arms, values in ((X, mean), (axes, axes[:, 0] / 2)):
        problem = problems.FixedArms(arms, values)
        policies = [DSOFUL(G, 1.5, 1.0) for G in (*Gammas, 0.5, 0.1)]
        run: Any = simulate(
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
    policies = [DSOFUL(G, 0.5, 1.0) for G in Gammas]
    pooled: Any = simulate(
        pool, policies, rounds=K, trials=1, seed=3, noise=noise[None, :],
        record=("arms", "levels"), progress=False,
    )  # fmt: skip
    pairs = pool.contexts(seed=3, trial=0, rounds=K)
    for q, G in enumerate(Gammas):
        paid = lambda k, a: pool.reward[pairs[k - 1, a]] + noise[k - 1]  # noqa: E731
        ours = _ds_oful(lambda k: pool.points[pairs[k - 1]], paid, K, G, 0.5, 1.0)
        assert np.array_equal(ours["arm"], pooled.arms[0, q, 0])
        assert np.array_equal(ours["kept"], pooled.levels[0, q, 0] == 1)
    return ATTAINED


@formula()
def for_ever(kept: np.ndarray, arm: np.ndarray, first: int) -> bool:
    """From the first skipped round on nothing is learnt and one arm is played."""
    return bool(not kept[first:].any() and (arm[first:] == arm[first]).all())


def aux_first_skip(size: str = "ci") -> Found:
    """After the first skip on fixed arms the same arm is played and skipped for ever.

    With changing arms it is not so, and a run may commit to a wrong arm.
    """
    K = 2000 if size == "full" else 400
    locked, broken = 0, 0
    for seed, Gamma in product(range(4), (0.2, 0.35)):
        X, mean, noise = _instance(seed, 3, 8, K, 0.05)
        other = np.random.default_rng(seed).normal(size=(K, *X.shape))
        reward = lambda k, a, m=mean, e=noise: m[a] + e[k - 1]  # noqa: E731
        run = _ds_oful(lambda k, X=X: X, reward, K, Gamma, 1.0, 1.0)
        skipped = np.flatnonzero(~run["kept"])
        assert len(skipped), "the run must be long enough to skip"
        assert for_ever(run["kept"], run["arm"], int(skipped[0]))
        locked += bool(mean[run["arm"][-1]] < mean.max())
        changing = _ds_oful(lambda k, o=other: o[k - 1], reward, K, Gamma, 1.0, 1.0)
        skipped = np.flatnonzero(~changing["kept"])
        first = int(skipped[0])
        broken += not for_ever(changing["kept"], changing["arm"], first)
        once = np.zeros(K, dtype=bool)  # one arm, but learnt from: not what is claimed
        assert for_ever(once, np.zeros(K), 0) and not for_ever(~once, np.zeros(K), 0)
    assert locked > 0 and broken > 0
    return ATTAINED


@formula()
def axis_count(d: int, Gamma: float, lam: float) -> int:
    """Kept rounds when the d axes are offered in turn."""
    return d * (math.floor(Gamma**-2 - lam) + 1)


def text_l163(size: str = "ci") -> Found:
    """|C_K| is of order dΓ⁻²: exactly d(⌊Γ⁻² − λ⌋ + 1) on the axes; lm:finite bounds it above."""
    for d, Gamma, lam in product((2, 5), (0.5, 0.25, 0.3), (1.0, 2.5)):
        K = int(2 * d / Gamma**2) + 10
        axes = np.eye(d)
        arms = lambda k, e=axes, d=d: e[[k % d]]  # one arm per round, the axes in turn  # noqa: E731
        kept = int(_ds_oful(arms, lambda k, a: 0.0, K, Gamma, 1.0, lam)["kept"].sum())
        assert kept == axis_count(d, Gamma, lam)
    return Found(1.0, "axes in turn")


def skip_condition(size: str = "ci") -> Found:
    """2ζ + 2βΓ bounds a skipped round, nearly attained; which Γ of Table 1 it covers, by β."""
    table = (0.02, 0.05, 0.08, 0.13, 0.18)
    harmless = {
        beta: [G for G in table if theory.skip_regret(G, beta, 0.02) < 0.18] for beta in (1, 3, 10)
    }
    assert harmless == {1: [0.02, 0.05], 3: [0.02], 10: []}
    ratios = []
    for Gamma, beta, zeta in ((0.05, 1.0, 0.02), (0.1, 3.0, 0.3), (0.3, 0.2, 0.0)):
        s, w = (
            Gamma * (1 - 1e-9),
            1e-9,
        )  # the arm played has width just below Γ, the best almost none
        theta_k = np.array([2.0, (s * 2.0 + beta * s) / w - beta])
        theta = theta_k - np.array([beta, 0.0])
        regret = float(w * theta[1] - s * theta[0] + 2 * zeta)
        assert regret <= theory.skip_regret(Gamma, beta, zeta)
        ratios.append(regret / theory.skip_regret(Gamma, beta, zeta))
    return Found({"skip_regret": hardest(ratios)}, "an optimal arm of no width that ties")
