"""Checks for the chapter "Confidence under misspecification".

Algebraic identities are verified as polynomial identities, inequalities between rationals by exact
enumeration, probabilities of finite games by going through every path. High-probability statements
with continuous noise are Monte Carlo with a binomial test, in regimes where one term of the radius
decides at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from flint import acb, arb, ctx, fmpq, fmpq_mat
from scipy.stats import binomtest

from banditlib import reference, theory
from book.claims.checks.exact import dot, gens
from book.claims.formula import ATTAINED, Found, formula

Vector = Sequence[Any]


def _designs(
    d: int = 2, n: int = 2, entries: tuple[int, ...] = (-1, 0, 2)
) -> Iterator[list[tuple[int, ...]]]:
    """Every sequence of `n` vectors in dimension `d` with entries in `entries`."""
    vectors = list(product(entries, repeat=d))
    for rows in product(vectors, repeat=n):
        yield list(rows)


def _gram(rows: Sequence[Vector], lam: fmpq, d: int = 2) -> fmpq_mat:
    """λI + Σ x xᵀ, exactly."""
    return fmpq_mat(
        d, d, [lam * (i == j) + sum(x[i] * x[j] for x in rows) for i in range(d) for j in range(d)]
    )


def _column(v: Vector) -> fmpq_mat:
    return fmpq_mat(len(v), 1, [fmpq(x) if isinstance(x, int) else x for x in v])


def _form(x: Vector, V: fmpq_mat, y: Vector) -> fmpq:
    """xᵀ V y, exactly."""
    return (_column(x).transpose() * V * _column(y))[0, 0]


# --- the three parts of the error ----------------------------------------------------------------


@formula()
def three_parts(lam: Any, theta: Any, noise: Any, misspecified: Any) -> Any:
    """One coordinate of U(θ_k − θ*)."""
    return -lam * theta + noise + misspecified


def expansion(size: str = "ci") -> Found:
    """U(θ_k − θ*) = −λθ* + Σ x ε + Σ x η, as a polynomial identity for two points in the plane."""
    lam, p, q, a1, a2, b1, b2, e1, e2, h1, h2 = gens("lam p q a1 a2 b1 b2 e1 e2 h1 h2")
    theta, points, eps, eta = (p, q), ((a1, a2), (b1, b2)), (e1, e2), (h1, h2)
    rewards = [dot(x, theta) + h + e for x, h, e in zip(points, eta, eps, strict=True)]
    for i in range(2):
        b_i = sum(x[i] * r for x, r in zip(points, rewards, strict=True))  # (U θ_k)_i
        U_theta = lam * theta[i] + sum(x[i] * dot(x, theta) for x in points)
        noise = sum(x[i] * e for x, e in zip(points, eps, strict=True))
        wrong = sum(x[i] * h for x, h in zip(points, eta, strict=True))
        assert b_i - U_theta == three_parts(lam, theta[i], noise, wrong)
    return ATTAINED


@formula("upper")
def q1_squared(lam: Any, B2: Any, width2: Any) -> Any:
    """The square of λ^(−1/2) B ‖x‖."""
    return B2 / lam * width2


def eq_q1(size: str = "ci") -> Found:
    """(xᵀU⁻¹θ)² ≤ λ⁻¹ ‖θ‖² xᵀU⁻¹x, exactly, over a finite family that has the equality case."""
    tight = False
    for lam in (fmpq(1, 9), fmpq(1), fmpq(4)):
        for rows in [[], *_designs(n=1), *(_designs(n=2) if size == "full" else [])]:
            V = _gram(rows, lam).inv()
            for x, theta in product([(1, 0), (1, 1), (2, -1)], repeat=2):
                left = _form(x, V, theta) ** 2
                right = q1_squared(lam, fmpq(dot(theta, theta)), _form(x, V, x))
                assert left <= right, f"lam={lam}, x={x}, theta={theta}, points={rows}"
                tight |= left == right
    assert tight, "equality is attained without data"
    return ATTAINED


# --- misspecification ----------------------------------------------------------------------------


@formula("upper")
def lemma8_bound(n: Any, zeta2: Any) -> Any:
    return n * zeta2


def _ratio(a: fmpq, b: fmpq) -> float:
    q = a / b
    return float(int(q.p)) / float(int(q.q))


def lm_lemma8(size: str = "ci") -> Found:
    """‖Σ a b‖²_{U⁻¹} ≤ nζ²: the gap is a ridge minimum, a sum of squares (symbolic)."""
    lam, a1, a2, b1, b2, c1, c2, u, v, w = gens("lam a1 a2 b1 b2 c1 c2 u v w")
    A, b = ((a1, a2), (b1, b2), (c1, c2)), (u, v, w)
    U11, U22 = (lam + sum(a[i] ** 2 for a in A) for i in range(2))
    U12 = sum(a[0] * a[1] for a in A)
    s = [sum(a[i] * t for a, t in zip(A, b, strict=True)) for i in range(2)]
    D = U11 * U22 - U12**2
    z = (U22 * s[0] - U12 * s[1], U11 * s[1] - U12 * s[0])  # D U⁻¹ s
    gap = D * (D * dot(b, b) - dot(s, z))
    squares = sum((D * t - dot(a, z)) ** 2 for a, t in zip(A, b, strict=True)) + lam * dot(z, z)
    assert gap == squares
    worst = 0.0
    for lam_, zeta2 in ((fmpq(1, 100), fmpq(1)), (fmpq(7), fmpq(9)), (fmpq(1, 1000), fmpq(1, 4))):
        for rows in _designs(n=3 if size == "full" else 2):
            V = _gram(rows, lam_).inv()
            for signs in product((-1, 1), repeat=len(rows)):
                sums = [sum(a[i] * t for a, t in zip(rows, signs, strict=True)) for i in range(2)]
                left, right = zeta2 * _form(sums, V, sums), lemma8_bound(len(rows), zeta2)
                assert left <= right
                worst = max(worst, _ratio(left, right))
    return Found({"lemma8_bound": 1 / worst}, "a long arm repeated, λ small")


@formula("upper")
def c4_squared(n: Any, zeta2: Any, width2: Any) -> Any:
    """The square of ζ√|C| ‖x‖."""
    return n * zeta2 * width2


def lm_c4(size: str = "ci") -> Found:
    """(xᵀU⁻¹Σxη)² ≤ ζ²|C| ‖x‖²: Cauchy-Schwarz symbolically, then exact enumeration."""
    p, q, r, x1, x2, y1, y2 = gens("p q r x1 x2 y1 y2")  # V = [[p, q], [q, r]]

    def form(x: Vector, y: Vector) -> Any:
        return p * x[0] * y[0] + q * (x[0] * y[1] + x[1] * y[0]) + r * x[1] * y[1]

    x, y = (x1, x2), (y1, y2)
    assert form(x, x) * form(y, y) - form(x, y) ** 2 == (p * r - q * q) * (x1 * y2 - x2 * y1) ** 2
    worst, zeta2 = 0.0, fmpq(1, 50) ** 2
    for lam in (fmpq(1, 1000), fmpq(1)):
        for rows in _designs(n=3 if size == "full" else 2):
            V = _gram(rows, lam).inv()
            for signs in product((-1, 1), repeat=len(rows)):
                s = [sum(a[i] * t for a, t in zip(rows, signs, strict=True)) for i in (0, 1)]
                for point in ((1, 0), (1, 1), (2, -1)):
                    left = zeta2 * _form(point, V, s) ** 2
                    right = c4_squared(len(rows), zeta2, _form(point, V, point))
                    assert left <= right
                    worst = max(worst, _ratio(left, right))
    return Found({"c4_squared": 1 / worst}, "a long arm repeated, λ small")


@formula("upper")
def det_bound(lam: Any, n: Any, L2: Any, d: int) -> Any:
    return (lam + n * L2 / d) ** d


def lm_dt(size: str = "ci") -> Found:
    """det U ≤ (λ + nL²/d)^d: symbolic for d = 2 and 3, exact enumeration besides."""
    a, b, e = gens("a b e")  # U = [[a, b], [b, e]]
    assert ((a + e) / 2) ** 2 - (a * e - b**2) == ((a - e) / 2) ** 2 + b**2
    x, y, z = gens("x y z")  # eigenvalues x³, y³, z³: their mean against their product
    squares = (x - y) ** 2 + (y - z) ** 2 + (z - x) ** 2
    assert x**3 + y**3 + z**3 - 3 * x * y * z == (x + y + z) * squares / 2
    equal = set()
    for d, n in ((2, 2), (2, 3 if size == "full" else 1), (3, 2 if size == "full" else 1), (3, 3)):
        designs = _designs(d, n) if d**n < 20 else [[(2, 0, 0), (0, 2, 0), (0, 0, 2)]]
        for rows in designs:
            for lam in (fmpq(1, 9), fmpq(2)):
                L2 = max(dot(row, row) for row in rows)
                bound = det_bound(lam, n, fmpq(L2), d)
                assert _gram(rows, lam, d).det() <= bound
                if L2 and _gram(rows, lam, d).det() == bound:
                    equal.add(d)
    assert equal == {2, 3}, "equality is attained by orthogonal points of equal length"
    return ATTAINED


# --- noise: the method of mixtures ---------------------------------------------------------------


def _fair_game(shares: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Final and largest fortune on all 2ⁿ paths; a node bets the share that its number names."""
    fortune = best = np.ones(1)
    for t in range(n):
        bet = fortune * shares[: 2**t]
        fortune = np.stack([fortune + bet, fortune - bet], axis=1).ravel()
        best = np.maximum(np.repeat(best, 2), fortune)
    return fortune, best


@formula("upper")
def ville(level: float) -> float:
    """Probability that the fortune ever reaches `level`."""
    return 1 / level


def aux_ville(size: str = "ci") -> Found:
    """P(sup M ≥ 1/δ) ≤ δ by going through all paths; double or nothing attains equality."""
    n = 14 if size == "full" else 11
    games = [np.ones(2**n)]  # double or nothing: 2^m is reached with probability 2^-m exactly
    games += [np.random.default_rng(seed).uniform(-1, 1, size=2**n) for seed in range(3)]
    for shares in games:
        fortune, best = _fair_game(shares, n)
        assert abs(fortune.mean() - 1) < 1e-12
        for level in (2.0, 4.0, 5.0, 8.0, 50.0):
            assert (best >= level).mean() <= ville(level)
    assert (_fair_game(games[0], n)[1] >= 8).mean() == ville(8.0)
    return ATTAINED


@formula()
def mixture(lam: arb, U: arb, s: arb) -> arb:
    """The mixture in one dimension."""
    return (lam / U) ** arb("0.5") * (s * s / (2 * U)).exp()


def aux_mixture(size: str = "ci") -> Found:
    """∫ exp(μᵀs − ½μᵀVμ) dN(0, λ⁻¹I) = (λ^d/det U)^½ exp(½‖s‖²_{U⁻¹}); square completed exactly."""
    p, q, r, m1, m2, s1, s2 = gens("p q r m1 m2 s1 s2")  # U = [[p, q], [q, r]]
    D = p * r - q * q

    def form(u: Vector, v: Vector) -> Any:
        return p * u[0] * v[0] + q * (u[0] * v[1] + u[1] * v[0]) + r * u[1] * v[1]

    z = (r * s1 - q * s2, p * s2 - q * s1)  # D U⁻¹ s
    shifted = (D * m1 - z[0], D * m2 - z[1])  # D (μ − U⁻¹ s)
    left = D**2 * (2 * (m1 * s1 + m2 * s2) - form((m1, m2), (m1, m2)))
    assert left == D * dot((s1, s2), z) - form(shifted, shifted)
    ctx.prec = 120
    try:
        for lam, V, s in ((1, 3, 2), (4, 0, 1), (1, 50, -9)):
            U = lam + V
            density = lambda t, _, s=s, U=U, lam=lam: (  # noqa: E731
                (t * s - t * t * U / 2).exp() * (acb(lam) / (2 * acb.pi())).sqrt()
            )
            integral = acb.integral(density, -60, 60).real
            closed = mixture(arb(lam), arb(U), arb(s))
            assert abs(integral - closed) < arb("1e-25") * integral
    finally:
        ctx.prec = 53
    return ATTAINED


Design = Callable[[int, np.ndarray, np.ndarray], np.ndarray]


def _excess(design: Design, noise: np.ndarray, d: int, lam: float) -> tuple[np.ndarray, np.ndarray]:
    """‖S_t‖²_{U_t⁻¹} and ½ log det(U_t)/λ^d along every path; `noise` is (T, runs)."""
    T, runs = noise.shape
    V = np.broadcast_to(np.eye(d) / lam, (runs, d, d)).copy()
    S, half_log_det = np.zeros((runs, d)), np.zeros(runs)
    norms, dets = np.empty((T, runs)), np.empty((T, runs))
    for t in range(T):
        phi = design(t, V, S)
        g = np.einsum("rij,rj->ri", V, phi)
        q = np.einsum("ri,ri->r", g, phi)
        V -= g[:, :, None] * g[:, None, :] / (1 + q)[:, None, None]
        half_log_det += 0.5 * np.log1p(q)
        S += phi * noise[t][:, None]
        norms[t], dets[t] = np.einsum("ri,rij,rj->r", S, V, S), half_log_det
    return norms, dets


def _along(t: int, V: np.ndarray, S: np.ndarray) -> np.ndarray:
    """An adversary: always measure along the current estimate, where the error is largest."""
    theta = np.einsum("rij,rj->ri", V, S)
    size = np.linalg.norm(theta, axis=1, keepdims=True)
    first = np.eye(S.shape[1])[0]
    return np.where(size > 0, theta / np.where(size > 0, size, 1.0), first)


def _widest(t: int, V: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Measure in the direction of largest width."""
    return np.linalg.eigh(V)[1][:, :, -1]


def _walks(d: int, K: int, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """‖S_k‖²_{U_k⁻¹} (runs, K) for unit arms along the axes in turn, λ = 1; log det U_k (K,)."""
    total, log_det = np.zeros((runs, K)), np.zeros(K)
    for i in range(d):
        rounds = np.arange(i, K, d)
        n = np.arange(1, len(rounds) + 1)
        S = np.cumsum(rng.standard_normal((runs, len(rounds))), axis=1)
        per, logs = S**2 / (1 + n), np.log1p(n)
        start = np.full(K, -1)
        start[rounds] = np.arange(len(rounds))
        index = np.maximum.accumulate(start)
        seen = index >= 0
        total[:, seen] += per[:, index[seen]]
        log_det[seen] += logs[index[seen]]
    return total, log_det


REGIMES = ((1, 3000, 0.5), (1, 12, 1e-3), (8, 96, 0.5))
"""(d, K, δ): many rounds and a large δ, where the determinant decides; few and a small δ, where
log(1/δ) does; many dimensions."""


def _covered(misses: np.ndarray, delta: float) -> bool:
    """Whether the share of runs that miss is compatible with δ at level 1e-4."""
    n = len(misses)
    return binomtest(int(misses.sum()), n, delta, alternative="greater").pvalue > 1e-4


def _needed(ratio: np.ndarray, delta: float) -> float:
    """Factor by which a bound could shrink before a share δ of runs misses it."""
    return 1 / float(np.quantile(ratio, 1 - delta))


@formula("upper")
def self_normalised(half_log_det: Any, log_inv_delta: float, R: float) -> Any:
    """The bound on the square of the self-normalised sum."""
    return 2 * R**2 * (half_log_det + log_inv_delta)


def lm_thm1(size: str = "ci") -> Found:
    """The self-normalised bound: every sign path of a game, then Monte Carlo with normal noise.

    Run where one term decides at a time: a walk of 3,000 steps at δ = ½ (the determinant), twelve
    steps at δ = 10⁻³ (the logarithm of 1/δ), 8 dimensions.
    """
    n = 14 if size == "full" else 11
    signs = 1.0 - 2.0 * ((np.arange(2**n)[None, :] >> np.arange(n)[:, None]) & 1)
    for design in (_along, _widest):
        norms, dets = _excess(design, signs, 2, 0.5)
        for delta in (0.3, 0.1, 0.03):
            bound = self_normalised(dets, math.log(1 / delta), 1.0)
            share = (norms > bound + 1e-9).any(axis=0).mean()
            assert share <= delta, f"{design.__name__}: {share} of all paths for delta={delta}"
    rng, slacks = np.random.default_rng(20), []
    for (d, K, delta), R in zip(REGIMES, (1.0, 3.0, 0.5), strict=True):
        runs = 30_000 if delta < 0.01 else 400
        norms, log_det = _walks(d, K, runs, rng)
        ratio = (R**2 * norms / self_normalised(log_det / 2, math.log(1 / delta), R)).max(axis=1)
        assert _covered(ratio > 1, delta), (d, K, delta)
        slacks.append(_needed(ratio, delta))
    return Found(
        {"self_normalised": min(slacks)}, "normal noise along the axes",
        "half the bound, no determinant, or no log(1/δ): rejected with near certainty",
    )  # fmt: skip


# --- selection and the algorithm's own matrix ----------------------------------------------------


@formula()
def keeps(width: float, Gamma: float) -> bool:
    """Whether a round is learnt from: decided by its width alone, before the noise is seen."""
    return width >= Gamma


@formula()
def gram(lam: float, total: np.ndarray) -> np.ndarray:
    """U_k from the sum of y yᵀ."""
    return lam * np.eye(len(total)) + total


def _run(
    noise: np.ndarray, contexts: np.ndarray, keep_if: Callable[[float], bool], lam: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """DS-OFUL on changing contexts in the plane, `noise` (K,). Returns y_t and U_k."""
    theta_star = np.array([0.8, 0.6])
    ridge = reference.Regression(2, lam)
    ys, Us = [], []
    for X, eps in zip(contexts, noise, strict=True):
        mean, width = ridge.solve(X)
        a = reference.argmax(mean + 1.5 * width)
        keep = keep_if(float(width[a]))
        ys.append(X[a] * keep)
        Us.append(ridge.U.copy())
        if keep:
            ridge.add(X[a], X[a] @ theta_star + eps)
    return np.array(ys), np.array(Us)


def _contexts(K: int) -> np.ndarray:
    contexts = np.random.default_rng(7).normal(size=(K, 5, 2))
    return contexts / np.linalg.norm(contexts, axis=2, keepdims=True)


@formula("upper")
def q2_bound(width: float, noise: float) -> float:
    """Width of x times I₁, the norm of the noise learnt."""
    return width * noise


def eq_q2(size: str = "ci") -> Found:
    """y_t = 1{‖x_t‖ ≥ Γ} x_t is decided before ε_t; one process serves every k, and bounds q₂.

    Changing ε_t and all later noise leaves y_t as it is. On the axes widths meet Γ = ½ exactly. The
    bound is attained where x is the sum of noise itself.
    """
    rng, K = np.random.default_rng(3), 60
    noise, contexts = rng.normal(size=K), _contexts(K)
    quarter = lambda width: keeps(width, 0.25)  # noqa: E731
    y, U = _run(noise, contexts, quarter)
    for k in range(K):  # the algorithm's U_k is the lemma's U_{k-1} for the process y
        assert np.allclose(U[k], np.eye(2) + y[:k].T @ y[:k], atol=1e-12)
    for t in range(0, K, 1 if size == "full" else 6):
        other = noise.copy()
        other[t:] = -noise[t:] + rng.normal(size=K - t)
        assert np.array_equal(_run(other, contexts, quarter)[0][: t + 1], y[: t + 1])
    kept = np.flatnonzero(y.any(axis=1))
    assert 5 < len(kept) < K - 5, "the run must keep some rounds and skip some"
    for k in range(kept[0] + 1, K):
        total, V = y[:k].T @ noise[:k], np.linalg.inv(U[k])
        norm = math.sqrt(total @ V @ total)
        for x in (*contexts[k], total):
            bound = q2_bound(math.sqrt(x @ V @ x), norm)
            assert abs(x @ V @ total) <= bound * (1 + 1e-12)
        assert math.isclose(abs(total @ V @ total), bound, rel_tol=1e-9)
    axis = np.broadcast_to(np.array([[1.0, 0.0]]), (12, 1, 2))
    some = _run(np.zeros(12), axis, lambda width: keeps(width, 0.5))[0].any(axis=1)
    assert np.sum(some) == 4  # widths 1, 1/√2, 1/√3, then exactly ½
    return ATTAINED


def display_l609(size: str = "ci") -> Found:
    """U_k = λI + Σ y yᵀ along a run of DS-OFUL."""
    noise = np.random.default_rng(4).normal(size=80)
    y, U = _run(noise, _contexts(80), lambda width: width > 0.25, lam=0.5)
    for k in (0, 10, 79):
        assert np.allclose(U[k], gram(0.5, y[:k].T @ y[:k]), atol=1e-12)
    return ATTAINED


@formula("upper")
def without_root(log_det: Any, log_inv_delta: Any) -> Any:
    """log(D/δ), which replaces log(√D/δ)."""
    return log_det + log_inv_delta


@formula("upper")
def with_trace(d: int, T: Any, log_inv_delta: Any) -> Any:
    """d log((1 + T)/δ), which replaces log(D/δ)."""
    return d * ((1 + T).log() + log_inv_delta)


def eq_rev3(size: str = "ci") -> Found:
    """log(√D/δ) ≤ log(D/δ) ≤ d log((1+T)/δ) for D = (1+T)^d and δ ≤ 1; equal at T = 0 and d = 1.

    The two bounds on the norm of the noise that this gives hold on runs: the first with probability
    1 − δ, and the second is above the first.
    """
    steps = 60 if size == "full" else 12
    for d, i, j in product((1, 2, 3, 16, 512), range(steps), range(steps)):
        T = arb(10) ** (arb(i) / 2 - 3) if i else arb(0)
        x = arb(j) * arb(10).log() / 2  # log(1/δ)
        log_det = d * (1 + T).log()
        near = 1e-12 * (1 + abs(log_det) + x)
        assert log_det / 2 + x <= without_root(log_det, x) + near
        assert log_det + x <= with_trace(d, T, x) + near
        if i == 0:
            assert abs(without_root(log_det, x) - x) <= near
        if d == 1:
            assert abs(with_trace(d, T, x) - log_det - x) <= near
    rng = np.random.default_rng(20)
    for (d, K, delta), R in zip(REGIMES, (1.0, 3.0, 0.5), strict=True):
        norms, logs = _walks(d, K, 30_000 if delta < 0.01 else 400, rng)  # λ = L = 1
        inverse, n = math.log(1 / delta), np.arange(1, K + 1)
        first = R * np.sqrt(2 * without_root(logs, inverse))
        assert _covered((R * np.sqrt(norms) > first).any(axis=1), delta)
        second = [R * math.sqrt(2 * float(with_trace(d, arb(int(k)) / d, inverse))) for k in n]
        assert (first <= np.array(second) * (1 + 1e-12)).all()
    return ATTAINED


# --- the lemma ------------------------------------------------------------------------------------


@formula("upper")
def bias(B: float, lam: float) -> float:
    """Error in units of the width that the regulariser alone causes."""
    return B * lam**0.5


def final_l620(size: str = "ci") -> Found:
    """The bias is Bλ^½: all of the error without data, and 1 for λ = B⁻²."""
    rng = np.random.default_rng(5)
    for B in (1.0, 2.0, 5.0):
        assert abs(bias(B, B**-2) - 1) < 1e-12, "the bias of the lemma"
    for lam, B in product((0.04, 1.0, 4.0, 100.0), (1.0, 5.0)):
        for n in (0, 1, 4, 40):
            X = rng.normal(size=(n, 3))
            theta = rng.normal(size=3)
            theta *= B / np.linalg.norm(theta)
            U = lam * np.eye(3) + X.T @ X
            error = np.linalg.solve(U, X.T @ (X @ theta)) - theta  # no noise, no misspecification
            assert np.sqrt(error @ U @ error) <= bias(B, lam) * (1 + 1e-12)
            assert n or np.isclose(np.sqrt(error @ U @ error), bias(B, lam))
    return ATTAINED


def _misspecified(n: np.ndarray, zeta: float, L: float, B: float) -> np.ndarray:
    """‖θ_k − θ*‖_{U_k} in one dimension after n rounds of one arm of length L, no noise.

    λ = B⁻², θ* = −B and every error is ζ: bias and misspecification point the same way.
    """
    U = B**-2 + n * L**2
    return (B**-2 * B + n * L * zeta) / np.sqrt(U)


def _coverage(radius: Callable[..., Any], name: str) -> dict[str, float]:
    """Try a radius in four regimes; returns how much smaller it could have been."""
    rng, slacks = np.random.default_rng(11), []
    n = np.array([0, 1, 2, 5, 100, 10**6, 10**12], dtype=float)
    for zeta, L, B in product((0.0, 0.05, 1.0), (1.0, 4.0), (1.0, 3.0)):
        error = _misspecified(n, zeta, L, B)  # no noise: nothing is left to chance
        bound = radius(n, 1, 0.0, L, B, 0.1, zeta)
        assert (error <= bound * (1 + 1e-12)).all()
        slacks.append(float((bound / error).min()))
    assert (radius(n, 2, 1.0, 3.0, 2.0) >= radius(n, 2, 1.0)).all()  # longer arms, more room
    for (d, K, delta), R in zip(REGIMES, (50.0, 40.0, 30.0), strict=True):
        runs = 30_000 if delta < 0.01 else 400
        norms, _ = _walks(d, K, runs, rng)
        error = R * np.sqrt(norms)
        ratio = (error / radius(np.arange(1, K + 1), d, R, 1.0, 1.0, delta, 0.0)).max(axis=1)
        assert _covered(ratio > 1, delta), (name, d, K, delta)
    for adversary, seed in ((False, 11), (True, 12)):
        error, count = _errors(300, 80, 0.05, 0.05, adversary, seed, R=0.1)
        bound = radius(count, 3, 0.1, 1.0, 1.0, 0.1, 0.05)
        assert _covered((error > bound).any(axis=0), 0.1)
    return {name: min(slacks)}


def _errors(
    runs: int, K: int, zeta: float, Gamma: float, adversary: bool, seed: int, R: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """‖θ_k − θ*‖_{U_k} and |C_{k−1}|, each (K, runs), for d=3, B=L=λ=1.

    Without `adversary` DS-OFUL chooses. The adversary plays the arm whose error is largest in units
    of its width, and chooses the misspecification with the sign of that error.
    """
    rng = np.random.default_rng(seed)
    d, lane = 3, np.arange(runs)
    theta_star = np.array([0.6, 0.64, 0.48])
    V = np.broadcast_to(np.eye(d), (runs, d, d)).copy()
    U, b, n = V.copy(), np.zeros((runs, d)), np.zeros(runs)
    errors, counts = np.empty((K, runs)), np.empty((K, runs))
    for k in range(K):
        X = rng.normal(size=(6, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        off = np.einsum("rij,rj->ri", V, b) - theta_star
        errors[k] = np.sqrt(np.einsum("ri,rij,rj->r", off, U, off))
        counts[k] = n
        width = np.sqrt(np.einsum("md,rde,me->rm", X, V, X))
        if adversary:
            a = np.argmax(np.abs(off @ X.T) / width, axis=1)
        else:
            a = np.argmax((off + theta_star) @ X.T + 1.5 * width, axis=1)
        x = X[a]
        lean = np.where(np.einsum("ri,ri->r", x, off) >= 0, 1.0, -1.0)
        eta = zeta * (lean if adversary else np.sign(np.sin(9 * x[:, 0])))
        r = x @ theta_star + eta + R * rng.normal(size=runs)
        keep = (width[lane, a] >= Gamma)[:, None]
        step = x * keep
        g = np.einsum("rij,rj->ri", V, step)
        V -= g[:, :, None] * g[:, None, :] / (1 + np.einsum("ri,ri->r", g, step))[:, None, None]
        U += step[:, :, None] * step[:, None, :]
        b += step * r[:, None]
        n = n + keep[:, 0]
    return errors, counts


def lm_decompose(size: str = "ci") -> Found:
    """Coverage of the printed radius: bias, misspecification, determinant and log(1/δ) in turn.

    Without noise the bound is attained; with it, walks at δ = ½ and δ = 10⁻³ and DS-OFUL's own
    choices, an adversary's too, at R = 0.1 and Γ = 0.05, where ζ√n decides.
    """
    slack = _coverage(theory.radius, "radius")
    return Found(
        slack, "no noise: one arm, errors of one sign",
        "a radius without ζ√n, without the 1, without d, or half of it is missed almost surely",
    )  # fmt: skip


def aux_radius(size: str = "ci") -> Found:
    """The same for the sharper radius, which never exceeds the printed one."""
    n = np.array([0.0, 1.0, 30.0, 1e6, 1e15])
    for d, R, LB, delta in product((1, 5, 300), (0.0, 0.3, 2.0), (1.0, 10.0), (0.5, 1e-6)):
        sharp = theory.radius_tight(n, d, R, LB, 1.0, delta, 0.1)
        assert np.all(sharp <= theory.radius(n, d, R, LB, 1.0, delta, 0.1) * (1 + 1e-12))
    slack = _coverage(theory.radius_tight, "radius_tight")
    return Found(
        {**slack, "theory.radius": math.inf}, "no noise: one arm, errors of one sign",
        "as for the printed radius",
    )  # fmt: skip


@formula()
def corollary_beta(
    Delta: float, Gamma: float, iota1: float, d: int, R: float, LB: float, delta: float
) -> float:
    """β of the corollary, 1 + 2ΔΓ⁻¹√ι₂/ι₁ + R√(2dι₃)."""
    iota2 = math.log(3 * LB / Gamma)
    iota3 = math.log((1 + 16 * LB**2 / Gamma**2 * iota2) / delta)
    return 1 + 2 * Delta / Gamma * math.sqrt(iota2) / iota1 + R * math.sqrt(2 * d * iota3)


def col_beta(size: str = "ci") -> Found:
    """β is the radius at the bound on |C| and the largest ζ, exactly; smaller ζ and n need less."""
    for d, Gamma, LB, R, delta in product(
        (1, 16, 512), (0.3, 0.03, 1e-6), (1.0, 3.0, 40.0), (0.0, 1.0, 2.0), (0.5, 1e-4)
    ):
        Delta, iota1 = 0.18, 339.4
        beta = corollary_beta(Delta, Gamma, iota1, d, R, LB, delta)
        n = float(theory.selections(d, Gamma, LB**0.5, LB**0.5))
        zeta = Delta / (2 * math.sqrt(d) * iota1)
        assert math.isclose(beta, theory.radius(n, d, R, LB, 1.0, delta, zeta), rel_tol=1e-12)
        for share, some in ((0.5, n), (1.0, 0.1 * n), (0.0, 0.0)):
            assert theory.radius(some, d, R, LB, 1.0, delta, share * zeta) <= beta * (1 + 1e-12)
    return Found({"theory.radius": 1.0, "selections": 1.0}, "the largest ζ")


@formula()
def radius_order(K: np.ndarray, zeta: float) -> np.ndarray:
    return zeta * K**0.5


@formula()
def regret_order(K: np.ndarray, zeta: float, d: int) -> np.ndarray:
    return zeta * K * np.sqrt(d * np.log(K))


def text_l179(size: str = "ci") -> Found:
    """With all data the radius is of order ζ√K and the regret bound of order ζK√(d log K).

    The radius is not merely a bound: one arm with errors of one sign attains it. The bound
    2β√(K·2d log(1+K/d)), divided by its order, settles at √8.
    """
    K = 10.0 ** np.arange(60, 300, 40)
    for zeta, d in product((0.02, 0.5), (2, 64)):
        assert np.allclose(_misspecified(K, zeta, 1.0, 1.0) / radius_order(K, zeta), 1, rtol=1e-6)
        beta = 1 + np.sqrt(d * np.log1p(K / d) + 10) + zeta * np.sqrt(K)
        bound = 2 * beta * np.sqrt(K * 2 * d * np.log1p(K / d))
        ratio = bound / regret_order(K, zeta, d)
        assert abs(ratio[-1] / math.sqrt(8) - 1) < 0.01 and np.all(np.abs(ratio - ratio[-1]) < 0.1)
    return Found(1.0, "one arm, errors of one sign")
