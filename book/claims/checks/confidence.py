"""Checks for the chapter "Confidence under misspecification".

Algebraic identities are verified as polynomial identities, inequalities between rationals by exact
enumeration, probabilities of finite games by going through every path. High-probability statements
with continuous noise are Monte Carlo with a binomial test; the tests say how many runs they take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

import numpy as np
from flint import acb, arb, ctx, fmpq, fmpq_mat, fmpq_mpoly_ctx
from scipy.stats import binomtest

# --- small exact tools ---------------------------------------------------------------------------


def _gens(names: str) -> tuple:
    """Polynomial variables over the rationals."""
    return fmpq_mpoly_ctx.get(names.split(), "lex").gens()


def _dot(u, v):
    return sum(a * b for a, b in zip(u, v, strict=True))


def _designs(d: int = 2, n: int = 2, entries=(-1, 0, 2)) -> Iterator[list[tuple[int, ...]]]:
    """Every sequence of `n` vectors in dimension `d` with entries in `entries`."""
    vectors = list(product(entries, repeat=d))
    for rows in product(vectors, repeat=n):
        yield list(rows)


def _gram(rows, lam: fmpq, d: int = 2) -> fmpq_mat:
    """λI + Σ x xᵀ, exactly."""
    return fmpq_mat(
        d, d, [lam * (i == j) + sum(x[i] * x[j] for x in rows) for i in range(d) for j in range(d)]
    )


def _column(v) -> fmpq_mat:
    return fmpq_mat(len(v), 1, [fmpq(x) if isinstance(x, int) else x for x in v])


def _form(x, V: fmpq_mat, y) -> fmpq:
    """xᵀ V y, exactly."""
    return (_column(x).transpose() * V * _column(y))[0, 0]


# --- the three parts of the error ----------------------------------------------------------------


def expansion(size: str = "ci", sign: int = -1) -> None:
    """U(θ_k − θ*) = −λθ* + Σ x ε + Σ x η, as a polynomial identity for two points in the plane."""
    lam, p, q, a1, a2, b1, b2, e1, e2, h1, h2 = _gens("lam p q a1 a2 b1 b2 e1 e2 h1 h2")
    theta, points, eps, eta = (p, q), ((a1, a2), (b1, b2)), (e1, e2), (h1, h2)
    rewards = [_dot(x, theta) + h + e for x, h, e in zip(points, eta, eps, strict=True)]
    for i in range(2):
        b_i = sum(x[i] * r for x, r in zip(points, rewards, strict=True))  # (U θ_k)_i
        U_theta = lam * theta[i] + sum(x[i] * _dot(x, theta) for x in points)
        rest = sum(x[i] * (e + h) for x, e, h in zip(points, eps, eta, strict=True))
        assert b_i - U_theta == sign * lam * theta[i] + rest


def eq_q1(size: str = "ci", power: int = -1) -> None:
    """(xᵀU⁻¹θ)² ≤ λ^power ‖θ‖² xᵀU⁻¹x, exactly, over a finite family that has the equality case."""
    tight = False
    for lam in (fmpq(1, 9), fmpq(1), fmpq(4)):
        for rows in [[], *_designs(n=1), *(_designs(n=2) if size == "full" else [])]:
            V = _gram(rows, lam).inv()
            for x, theta in product([(1, 0), (1, 1), (2, -1)], repeat=2):
                left = _form(x, V, theta) ** 2
                right = lam**power * _dot(theta, theta) * _form(x, V, x)
                assert left <= right, f"lam={lam}, x={x}, theta={theta}, points={rows}"
                tight |= left == right
    assert tight, "equality is attained without data"


# --- misspecification ----------------------------------------------------------------------------


def lm_lemma8(size: str = "ci", c: fmpq | float = 1) -> None:
    """‖Σ a b‖²_{U⁻¹} ≤ c Σ b²: the gap is a ridge minimum, a sum of squares (symbolic)."""
    lam, a1, a2, b1, b2, c1, c2, u, v, w = _gens("lam a1 a2 b1 b2 c1 c2 u v w")
    A, b = ((a1, a2), (b1, b2), (c1, c2)), (u, v, w)
    U11, U22 = (lam + sum(a[i] ** 2 for a in A) for i in range(2))
    U12 = sum(a[0] * a[1] for a in A)
    s = [sum(a[i] * t for a, t in zip(A, b, strict=True)) for i in range(2)]
    D = U11 * U22 - U12**2
    z = (U22 * s[0] - U12 * s[1], U11 * s[1] - U12 * s[0])  # D U⁻¹ s
    gap = D * (D * _dot(b, b) - _dot(s, z))
    squares = sum((D * t - _dot(a, z)) ** 2 for a, t in zip(A, b, strict=True)) + lam * _dot(z, z)
    assert gap == squares
    c = fmpq(Fraction(c).numerator, Fraction(c).denominator)
    for lam_value in (fmpq(1, 100), fmpq(1), fmpq(7)):
        for rows in _designs(n=3 if size == "full" else 2, entries=(-1, 0, 2)):
            V = _gram(rows, lam_value).inv()
            for signs in product((-1, 1), repeat=len(rows)):
                s = [sum(a[i] * t for a, t in zip(rows, signs, strict=True)) for i in range(2)]
                assert _form(s, V, s) <= c * len(rows)


def lm_c4(size: str = "ci", c: fmpq | float = 1) -> None:
    """(xᵀU⁻¹Σxη)² ≤ c² ζ²|C| ‖x‖²: Cauchy-Schwarz symbolically, then exact enumeration."""
    p, q, r, x1, x2, y1, y2 = _gens("p q r x1 x2 y1 y2")  # V = [[p, q], [q, r]]
    form = lambda x, y: p * x[0] * y[0] + q * (x[0] * y[1] + x[1] * y[0]) + r * x[1] * y[1]  # noqa: E731
    x, y = (x1, x2), (y1, y2)
    assert form(x, x) * form(y, y) - form(x, y) ** 2 == (p * r - q * q) * (x1 * y2 - x2 * y1) ** 2
    c = fmpq(Fraction(c).numerator, Fraction(c).denominator)
    zeta = fmpq(1, 50)
    for lam in (fmpq(1, 1000), fmpq(1)):
        for rows in _designs(n=3 if size == "full" else 2):
            V = _gram(rows, lam).inv()
            for signs in product((-1, 1), repeat=len(rows)):
                s = [sum(a[i] * t for a, t in zip(rows, signs, strict=True)) * zeta for i in (0, 1)]
                for x in ((1, 0), (1, 1), (2, -1)):
                    bound = c**2 * zeta**2 * len(rows) * _form(x, V, x)
                    assert _form(x, V, s) ** 2 <= bound


def lm_dt(size: str = "ci", c: fmpq | float = 1) -> None:
    """det U ≤ (λ + c n L²/d)^d: symbolic for d = 2, exact enumeration for d = 2 and 3."""
    a, b, e = _gens("a b e")  # U = [[a, b], [b, e]]
    assert ((a + e) / 2) ** 2 - (a * e - b**2) == ((a - e) / 2) ** 2 + b**2
    x, y, z = _gens("x y z")  # eigenvalues x³, y³, z³: their mean against their product
    squares = (x - y) ** 2 + (y - z) ** 2 + (z - x) ** 2
    assert x**3 + y**3 + z**3 - 3 * x * y * z == (x + y + z) * squares / 2
    c = fmpq(Fraction(c).numerator, Fraction(c).denominator)
    equal = False
    for d, n in ((2, 2), (2, 3 if size == "full" else 1), (3, 2 if size == "full" else 1)):
        for lam in (fmpq(1, 9), fmpq(2)):
            for rows in _designs(d, n):
                L2 = max(_dot(row, row) for row in rows)
                bound = (lam + c * n * fmpq(L2, d)) ** d
                assert _gram(rows, lam, d).det() <= bound
                equal |= bool(L2) and _gram(rows, lam, d).det() == bound
    assert equal, "equality is attained by orthogonal points of equal length"


# --- noise: the method of mixtures ---------------------------------------------------------------


def _fair_game(shares: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Final and largest fortune on all 2ⁿ paths; a node bets the share that its number names."""
    fortune = best = np.ones(1)
    for t in range(n):
        bet = fortune * shares[: 2**t]
        fortune = np.stack([fortune + bet, fortune - bet], axis=1).ravel()
        best = np.maximum(np.repeat(best, 2), fortune)
    return fortune, best


def aux_ville(size: str = "ci", level: float = 1.0) -> None:
    """P(sup M ≥ 1/δ) ≤ level·δ by going through all paths; double or nothing attains equality."""
    n = 14 if size == "full" else 11
    games = [np.ones(2**n)]  # double or nothing: 2^m is reached with probability 2^-m exactly
    games += [np.random.default_rng(seed).uniform(-1, 1, size=2**n) for seed in range(3)]
    for shares in games:
        fortune, best = _fair_game(shares, n)
        assert abs(fortune.mean() - 1) < 1e-12
        for delta in (0.5, 0.25, 0.2, 0.125, 0.02):
            assert (best >= 1 / delta).mean() <= level * delta
    assert (_fair_game(games[0], n)[1] >= 8).mean() == 1 / 8


def aux_mixture(size: str = "ci", half: str = "0.5") -> None:
    """∫ exp(μᵀs − ½μᵀVμ) dN(0, λ⁻¹I) = (λ^d/det U)^½ exp(½‖s‖²_{U⁻¹}); square completed exactly."""
    p, q, r, m1, m2, s1, s2 = _gens("p q r m1 m2 s1 s2")  # U = [[p, q], [q, r]]
    D = p * r - q * q
    form = lambda u, v: p * u[0] * v[0] + q * (u[0] * v[1] + u[1] * v[0]) + r * u[1] * v[1]  # noqa: E731
    z = (r * s1 - q * s2, p * s2 - q * s1)  # D U⁻¹ s
    shifted = (D * m1 - z[0], D * m2 - z[1])  # D (μ − U⁻¹ s)
    left = D**2 * (2 * (m1 * s1 + m2 * s2) - form((m1, m2), (m1, m2)))
    assert left == D * _dot((s1, s2), z) - form(shifted, shifted)
    ctx.prec = 120
    try:
        for lam, V, s in ((1, 3, 2), (4, 0, 1), (1, 50, -9)):
            U = lam + V
            density = lambda t, _, s=s, U=U, lam=lam: (  # noqa: E731
                (t * s - t * t * U / 2).exp() * (acb(lam) / (2 * acb.pi())).sqrt()
            )
            integral = acb.integral(density, -60, 60).real
            closed = (arb(lam) / U) ** arb(half) * (arb(s * s) / (2 * U)).exp()
            assert abs(integral - closed) < arb("1e-25") * closed
    finally:
        ctx.prec = 53


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


def lm_thm1(size: str = "ci", c: float = 2.0) -> None:
    """The self-normalised bound: every sign path of a game, then Monte Carlo with normal noise."""
    n = 16 if size == "full" else 12
    signs = 1.0 - 2.0 * ((np.arange(2**n)[None, :] >> np.arange(n)[:, None]) & 1)
    for design in (_along, _widest):
        norms, dets = _excess(design, signs, 2, 0.5)
        for delta in (0.3, 0.1, 0.03):
            share = (norms > c * (dets + np.log(1 / delta)) + 1e-9).any(axis=0).mean()
            assert share <= delta, f"{design.__name__}: {share} of all paths for delta={delta}"
    runs = 20_000 if size == "full" else 3000
    rng = np.random.default_rng(20)
    for design in (_along, _widest):
        norms, dets = _excess(design, rng.normal(size=(200, runs)), 2, 1.0)
        misses = int((norms > c * (dets + np.log(10))).any(axis=0).sum())
        test = binomtest(misses, runs, 0.1, alternative="greater")
        assert test.pvalue > 0.001, f"{design.__name__}: {misses} misses in {runs} runs"


# --- selection and the algorithm's own matrix ----------------------------------------------------


def _run(noise: np.ndarray, Gamma: float, lam: float = 1.0, beta: float = 1.5, peek: bool = False):
    """DS-OFUL on changing contexts in the plane, `noise` (K,). Returns x_t, y_t, U_k, θ_k."""
    K = len(noise)
    contexts = np.random.default_rng(7).normal(size=(K, 5, 2))
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True)
    theta_star = np.array([0.8, 0.6])
    U, b = lam * np.eye(2), np.zeros(2)
    xs, ys, Us, thetas = [], [], [], []
    for k in range(K):
        V = np.linalg.inv(U)
        theta, X = V @ b, contexts[k]
        width = np.sqrt(np.einsum("md,de,me->m", X, V, X))
        a = int(np.argmax(X @ theta + beta * width))
        x, r = X[a], X[a] @ theta_star + noise[k]
        keep = width[a] >= Gamma and (not peek or noise[k] > 0)
        xs.append(x), ys.append(x * keep), Us.append(U.copy()), thetas.append(theta)
        if keep:
            U, b = U + np.outer(x, x), b + r * x
    return np.array(xs), np.array(ys), np.array(Us), np.array(thetas)


def eq_q2(size: str = "ci", peek: bool = False) -> None:
    """y_t = 1{‖x_t‖ ≥ Γ} x_t is decided before ε_t; one process serves every k."""
    rng = np.random.default_rng(3)
    K = 60
    noise = rng.normal(size=K)
    _, y, U, _ = _run(noise, 0.25, peek=peek)
    for k in range(K):  # the algorithm's U_k is the lemma's U_{k-1} for the process y
        assert np.allclose(U[k], np.eye(2) + y[:k].T @ y[:k], atol=1e-12)
    for t in range(0, K, 1 if size == "full" else 6):  # change ε_t and all later noise: y_t stays
        other = noise.copy()
        other[t:] = -noise[t:] + rng.normal(size=K - t)
        assert np.array_equal(_run(other, 0.25, peek=peek)[1][: t + 1], y[: t + 1])
    kept = np.flatnonzero(y.any(axis=1))
    assert 5 < len(kept) < K - 5, "the run must keep some rounds and skip some"


def display_l609(size: str = "ci", with_lam: bool = True) -> None:
    """U_k = λI + Σ y yᵀ; without λI the display is off by λI exactly."""
    _, y, U, _ = _run(np.random.default_rng(4).normal(size=80), 0.25, lam=0.5)
    for k in (0, 10, 79):
        assert np.allclose(U[k], 0.5 * with_lam * np.eye(2) + y[:k].T @ y[:k], atol=1e-12)


def eq_rev3(size: str = "ci", power: int = 1) -> None:
    """log(√D/δ) ≤ log(D/δ) ≤ d^power log((1+T)/δ) for D = (1+T)^d and δ ≤ 1."""
    steps = 60 if size == "full" else 20
    for d, i, j in product((1, 2, 3, 16, 512), range(steps), range(steps)):
        T = arb(10) ** (arb(i) / 4 - 3)
        delta = arb(10) ** (-arb(j) / 2)
        log_D = d * (1 + T).log()
        small, large = log_D / 2 - delta.log(), log_D - delta.log()
        bound = arb(d**power) * ((1 + T).log() - delta.log())
        if power == 1:  # the differences are ½ log D and (d−1) log(1/δ): no rounding needed
            assert large - small >= 0 and abs((bound - large) + (d - 1) * delta.log()) < 1e-9
        else:
            assert bound >= large
    assert (16 - 1) * np.log(1 / 1.5) < 0, "for delta > 1 the last step would go the wrong way"


# --- the lemma ------------------------------------------------------------------------------------


def final_l620(size: str = "ci", power: float = 0.5) -> None:
    """The bias is Bλ^½, all of the error without data, and 1 for λ = B⁻². The displayed Bλ^(−½) is
    then B²: true and too large.
    """
    rng = np.random.default_rng(5)
    for B in (1.0, 2.0, 5.0):
        lam = B**-2
        assert abs(B * lam**power - 1) < 1e-12, "the bias of the lemma"
        assert np.isclose(B * lam**-0.5, B**2), "the bias as displayed"
    for lam, B in product((0.04, 1.0, 4.0, 100.0), (1.0, 5.0)):
        for n in (0, 1, 4, 40):
            X = rng.normal(size=(n, 3))
            theta = rng.normal(size=3)
            theta *= B / np.linalg.norm(theta)
            U = lam * np.eye(3) + X.T @ X
            error = np.linalg.solve(U, X.T @ (X @ theta)) - theta  # no noise, no misspecification
            assert np.sqrt(error @ U @ error) <= B * lam**power * (1 + 1e-12)
            assert n or np.isclose(np.sqrt(error @ U @ error), B * lam**power)


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


def lm_decompose(size: str = "ci", scale: float = 1.0) -> None:
    """Coverage of the printed and of the sharper radius, own choices and an adversary's."""
    runs, K = (4000, 400) if size == "full" else (600, 150)
    d, delta, zeta = 3, 0.1, 0.05
    for adversary, seed in ((False, 11), (True, 12)):
        errors, n = _errors(runs, K, zeta, 0.12, adversary, seed)
        printed = 1 + np.sqrt(2 * d * np.log((d + n) / (d * delta))) + zeta * np.sqrt(n)
        sharp = 1 + np.sqrt(d * np.log(1 + n / d) + 2 * np.log(1 / delta)) + zeta * np.sqrt(n)
        assert (sharp <= printed).all()
        for radius in (printed, sharp):
            misses = int((errors > scale * radius).any(axis=0).sum())
            test = binomtest(misses, runs, delta, alternative="greater")
            assert test.pvalue > 0.001, f"{misses} misses in {runs} runs"


def col_beta(size: str = "ci", factor: int = 2) -> None:
    """β with the bound on |C| inserted: equal at the largest ζ, larger below (ball arithmetic)."""
    steps = 6 if size == "full" else 3
    for d, i, LB, R, delta in product(
        (1, 16, 512), range(1, steps + 1), (1, 3, 40), (0, 1, 2), (arb("0.5"), arb("1e-4"))
    ):
        Gamma, Delta, iota1 = arb(10) ** (-i) / 3, arb("0.18"), arb("339.4")
        iota2 = (3 * LB / Gamma).log()
        iota3 = ((1 + 16 * LB**2 * iota2 / Gamma**2) / delta).log()
        beta = 1 + factor * Delta / Gamma * iota2.sqrt() / iota1 + R * (2 * d * iota3).sqrt()
        n = 16 * d * iota2 / Gamma**2  # the bound on |C|
        iota = ((d + n * LB**2) / (d * delta)).log()
        for share in (1, arb("0.5"), 0):
            zeta = share * Delta / (2 * arb(d).sqrt() * iota1)
            radius = 1 + R * (2 * d * iota).sqrt() + zeta * n.sqrt()
            slack = beta - radius
            expected = (1 - share) * 2 * Delta / Gamma * iota2.sqrt() / iota1
            assert abs(slack - expected) < arb("1e-6") * beta
            assert share == 1 or slack > 0


def text_l179(size: str = "ci", growth: float = 0.5) -> None:
    """With all data the radius is of order ζ√K and the regret bound of order ζK√(d log K)."""
    zeta, lam, d = 0.02, 1.0, 16
    # the radius is not merely an upper bound: d = 1, x = 1, θ* = 0, η = ζ, no noise
    K = 10.0 ** np.arange(4, 17, 2)
    error = zeta * K / (K + lam) * np.sqrt(K + lam)
    assert np.allclose(error / (zeta * K**growth), 1, rtol=1e-3)
    # bound = 2β√(K · 2d log(1 + K/d)); divided by its claimed order it settles at √8
    beta = 1 + np.sqrt(d * np.log(1 + K / d) + 2 * np.log(100)) + zeta * np.sqrt(K)
    bound = 2 * beta * np.sqrt(K * 2 * d * np.log(1 + K / d))
    ratio = bound / (zeta * K ** (0.5 + growth) * np.sqrt(d * np.log(1 + K / d)))
    assert (np.diff(ratio) < 0).all() and abs(ratio[-1] - np.sqrt(8)) < 1e-3
    assert np.diff(bound / K)[-1] > 0, "superlinear in the end"
