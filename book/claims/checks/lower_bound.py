"""Checks for the chapter "A lower bound": nearly orthogonal vectors, the family Θ, both regimes."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, product

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray
from scipy.special import lambertw, ndtr

Ints = NDArray[np.int64]


def _up(x: arb) -> float:
    return float(x.upper())


def _low(x: arb) -> float:
    return float(x.lower())


def _between(lo: float, hi: float) -> arb:
    return arb(lo).union(arb(hi))


# --- nearly orthogonal vectors -------------------------------------------------------------------


def signs(n: int, d: int, eps: float) -> Ints:
    """n sign vectors of length d, each entry set so that Σ cosh(ε⟨s_i,s_j⟩)cosh(ε)^{left}
    is least.
    """
    S = np.zeros((n, d), dtype=np.int64)
    S[0] = 1
    for i in range(1, n):
        inner = np.zeros(i)
        for m in range(d):
            grow = S[:i, m] * np.sinh(eps * inner)  # d/ds of Σ cosh(ε(inner + s·S)) ∝ s·Σ S sinh
            S[i, m] = -1 if grow.sum() >= 0 else 1
            inner += S[i, m] * S[:i, m]
    return S


def coherence(S: Ints) -> Fraction:
    """Largest |⟨x_i,x_j⟩| of the unit vectors s_i/√d, exactly."""
    n, d = S.shape
    G = S @ S.T
    return Fraction(int(max(abs(int(G[i, j])) for i, j in combinations(range(n), 2))), d)


def lm_cross(size: str = "ci", c: float = 8.0) -> None:
    """d = ⌈c log n/ε²⌉: the expected number of bad pairs is below 1, and a construction
    succeeds.
    """
    cases = [(4, 0.9), (16, 0.5), (50, 0.5), (100, 0.4)]
    for n, eps in cases if size == "ci" else [*cases, (200, 0.3), (400, 0.3)]:
        d = math.ceil(c * math.log(n) / eps**2)
        assert _up(n * (n - 1) * (-arb(d) * arb(eps) ** 2 / 2).exp()) < 1, (n, eps, d)
        assert coherence(signs(n, d, eps)) <= Fraction(eps)


def lm_cross_sharp(size: str = "ci", c: float = 4.0) -> None:
    """The same with 4 in place of 8; Hoeffding's tail for sign sums is checked exactly."""
    lm_cross(size, c=c)
    for d in range(1, 40 if size == "ci" else 120):
        tail = Fraction(0)
        for t in range(d, 0, -1):  # P(|S_d| ≥ t), S_d a sum of d signs
            if (d - t) % 2 == 0:
                tail += Fraction(2 * math.comb(d, (d - t) // 2), 2**d)
                bound = 2 * (-(arb(t) ** 2) / (2 * d)).exp()
                assert arb(tail.numerator) / tail.denominator <= bound, (d, t)


# --- Bretagnolle and Huber, and the chain rule ------------------------------------------------


def _bh_log(a: arb, c: arb) -> arb:
    """log of (P(A)+Q(Aᶜ))e^{kl}, P(A)=a, Q(Aᶜ)=c."""
    return (a + c).log() + a * (a / (1 - c)).log() + (1 - a) * ((1 - a) / c).log()


def _bh_cells(target: arb, lo: float, hi: float, c0: float) -> int:
    """Subdivide {lo ≤ a ≤ hi, c0 ≤ c ≤ 1 − a} until the bound is certain; number of boxes."""
    todo = [(lo, hi, c0, 1 - lo)]
    boxes = 0
    while todo:
        a0, a1, b0, b1 = todo.pop()
        boxes += 1
        assert boxes < 200_000, "no certificate: the bound is false or too tight"
        if b0 > 1 - a0:  # there P(A)+Q(Aᶜ) ≥ 1 and nothing is claimed
            continue
        a, c = _between(a0, a1), _between(b0, min(b1, 1 - 1e-9))
        if _bh_log(a, c) > target:
            continue
        am, bm = (a0 + a1) / 2, (b0 + b1) / 2
        if a1 - a0 > b1 - b0:
            todo += [(a0, am, b0, b1), (am, a1, b0, b1)]
        else:
            todo += [(a0, a1, b0, bm), (a0, a1, bm, b1)]
    return boxes


def _bh(c: float) -> None:
    ctx.prec = 60
    target = arb(c).log()
    lo, hi, c0 = 0.06, 0.95, 0.001
    # a ≤ lo: the value is at least a^a, which falls on (0, 1/e); a ≥ hi: at least a^{1+a}.
    assert arb(lo) * arb(lo).log() > target
    assert (1 + arb(hi)) * arb(hi).log() > target
    # c ≤ c0: log(a+c) − (1−a)log(c/(1−a)) + a log a falls in c, so its value at c0 decides.
    edges = np.linspace(lo, hi, 400)
    for a0, a1 in pairwise(edges):
        a = _between(a0, a1)
        assert (a + c0).log() - (1 - a) * (c0 / (1 - a)).log() + a * a.log() > target
    _bh_cells(target, lo, hi, c0)


def lm_bh(size: str = "ci", c: float = 0.5) -> None:
    """P(A)+Q(Aᶜ) ≥ c e^{−KL}: it is enough to look at (P(A), Q(A)), and there balls decide."""
    _bh(c)


def lm_bh_sharp(size: str = "ci", c: float = 5 / 6) -> None:
    """The same with 5/6 in place of 1/2 (the best constant is 0.8359…)."""
    _bh(c)


def lm_lb_dc(size: str = "ci", horizon: str = "k") -> None:
    """Every deterministic policy on 2 or 3 Bernoulli arms: coefficients of all logarithms agree."""
    nu = (Fraction(1, 3), Fraction(1, 2), Fraction(4, 5))
    for arms, k in ((2, 3), (3, 2)) if size == "ci" else ((2, 3), (3, 2), (3, 3)):
        nodes = [h for t in range(k) for h in product((0, 1), repeat=t)]
        for choice in product(range(arms), repeat=len(nodes)):
            policy = dict(zip(nodes, choice, strict=True))
            wins, pulls = [Fraction(0)] * arms, [Fraction(0)] * arms
            short = [Fraction(0)] * arms  # pulls within the first `arms` rounds only
            for rewards in product((0, 1), repeat=k):
                played = [policy[rewards[:t]] for t in range(k)]
                terms = [nu[a] if r else 1 - nu[a] for a, r in zip(played, rewards, strict=True)]
                weight = math.prod(terms, start=Fraction(1))
                for t, (a, r) in enumerate(zip(played, rewards, strict=True)):
                    wins[a] += weight * r
                    pulls[a] += weight
                    short[a] += weight * (t < arms)
            # KL(P,P') = Σ_i wins_i log(p_i/p'_i) + (pulls_i − wins_i) log((1−p_i)/(1−p'_i))
            counted = pulls if horizon == "k" else short
            assert all(w == n * p for w, n, p in zip(wins, counted, nu[:arms], strict=True))


# --- the family Θ -----------------------------------------------------------------------------


def _rows(n: int, Delta: Fraction) -> list[tuple[tuple[int, ...], list[Fraction]]]:
    """Every member of Θ: the indices (i,) or (i, j) and the expected rewards of the n arms."""
    zero = [Fraction(0)] * n
    singles = [((i,), [*zero[:i], Delta, *zero[i + 1 :]]) for i in range(n)]
    pairs = []
    for i, j in product(range(n), repeat=2):
        if i != j:
            rewards = zero.copy()
            rewards[i], rewards[j] = Delta, 2 * Delta
            pairs.append(((i, j), rewards))
    return singles + pairs


def _linear(G: Ints, d: int, member: tuple[int, ...], Delta: Fraction) -> list[Fraction]:
    """⟨θ, x_a⟩ for every arm a."""
    row = [Fraction(int(g), d) * Delta for g in G[member[0]]]
    if len(member) == 2:
        row = [x + 2 * Delta * Fraction(int(g), d) for x, g in zip(row, G[member[1]], strict=True)]
    return row


def _family(size: str) -> tuple[Ints, Fraction]:
    n, d = (24, 60) if size == "ci" else (48, 96)
    return signs(n, d, math.sqrt(4 * math.log(n) / d)), Fraction(2, 5)


def lb_family(size: str = "ci", extra: int = 0) -> None:
    """|Θ| = |D|², all members different."""
    S, Delta = _family(size)
    members = {tuple(r) for _, r in _rows(len(S), Delta)}
    assert len(members) == len(S) ** 2 + extra


def lb_gap(size: str = "ci", c: int = 1) -> None:
    """The least positive gap of every member is exactly Δ, and rewards lie in [0, 2Δ]."""
    S, Delta = _family(size)
    for _, r in _rows(len(S), Delta):
        top = max(r)
        assert min(top - x for x in r if x < top) == c * Delta
        assert min(r) >= 0 and top <= 2 * Delta


def lb_misspec(size: str = "ci", c: int = 3) -> None:
    """|r_θ(x) − ⟨θ,x⟩| ≤ Δε, 2Δε, 3Δε (pairs) and 0, Δε (singles), every member, every arm."""
    S, Delta = _family(size)
    G, d, eps = S @ S.T, S.shape[1], coherence(S)
    worst = Fraction(0)
    for member, r in _rows(len(S), Delta):
        for a, (x, fit) in enumerate(zip(r, _linear(G, d, member, Delta), strict=True)):
            allowed = {1: (0,), 2: (2, 1)}[len(member)]
            k = allowed[member.index(a)] if a in member else (c if len(member) == 2 else 1)
            assert abs(x - fit) <= k * Delta * eps, (member, a)
            worst = max(worst, abs(x - fit))
    assert worst > 0


def counter_lb_norm() -> dict[str, float]:
    """Two unit vectors within the lemma whose θ is longer than √5 Δ."""
    import math

    import numpy as np

    d, n, Delta = 64, 2, 0.5
    eps = math.sqrt(8 * math.log(n) / (d - 1))
    x, y = np.ones(d) / 8, np.r_[np.ones(40), -np.ones(24)] / 8
    theta = Delta * x + 2 * Delta * y
    return {
        "inner product": float(x @ y), "allowed": eps,
        "norm of theta": float(np.linalg.norm(theta)), "claimed bound": math.sqrt(5) * Delta,
    }  # fmt: skip


def lb_norm(size: str = "ci", cross: int = 4) -> None:
    """‖θ_(i,j)‖² = Δ²(5+4⟨x_i,x_j⟩) ≤ 9Δ²; √5Δ fails for the counterexample and for each
    |D| > 2d.
    """
    numbers = counter_lb_norm()
    assert numbers["inner product"] <= numbers["allowed"]
    assert numbers["norm of theta"] > numbers["claimed bound"]
    S, _ = _family(size)
    d = S.shape[1]
    for s, t in combinations(S, 2):
        vector = s + 2 * t  # θ√d/Δ
        assert int(vector @ vector) == 5 * d + cross * int(s @ t) <= 9 * d
    few = signs(26, 12, 0.8)  # more than 2d vectors: some inner product is positive
    assert max(int(s @ t) for s, t in combinations(few, 2)) > 0


# --- the counting argument --------------------------------------------------------------------


def unhit(n: int, m: int) -> int:
    """Members of Θ for which m different arms all have expected reward zero, by enumeration."""
    return sum(all(r[a] == 0 for a in range(m)) for _, r in _rows(n, Fraction(1)))


def bayes(n: int, K: int) -> int:
    """n²/Δ times the least average regret over Θ of any policy that sees means without noise."""
    return bayes_row(n, K)[K]


def bayes_row(n: int, K: int) -> list[int]:
    """The same for every horizon 0, …, K."""
    found = [[0] * (K + 1) for _ in range(n + 1)]  # an arm of reward Δ is known, u arms unseen
    search = [[0] * (K + 1) for _ in range(n + 1)]  # only zeros so far, p arms unseen
    for t in range(1, K + 1):
        for u in range(1, n):
            found[u][t] = min(u + found[u][t - 1], 2 * u - 1 + found[u - 1][t - 1])
        for p in range(1, n + 1):
            new = 2 * (p - 1) ** 2 + found[p - 1][t - 1] + search[p - 1][t - 1]
            again = p * (2 * p - 1) + search[p][t - 1]
            search[p][t] = new if p == n else min(new, again)
    return search[n]


def every_policy(n: int, K: int) -> int:
    """The same by backward induction over all sets of surviving parameters, symmetry unused."""
    r = [[int(x) for x in rewards] for _, rewards in _rows(n, Fraction(1))]
    cost = [[max(row) - row[a] for a in range(n)] for row in r]
    seen = [[sum(1 << q for q in range(n * n) if r[q][a] == o) for o in range(3)] for a in range(n)]

    @cache
    def price(alive: int, a: int) -> int:
        return sum(cost[q][a] for q in range(n * n) if alive >> q & 1)

    @cache
    def value(alive: int, left: int) -> int:
        if left == 0 or alive == 0:
            return 0
        return min(
            price(alive, a) + sum(value(alive & s, left - 1) for s in seen[a]) for a in range(n)
        )

    return value((1 << n * n) - 1, K)


def lb_count(size: str = "ci", hits: int | None = None) -> None:
    """m blind pulls leave (|D|−m)² members; the first hits 2|D|−1 of them, not |D|; E τ as
    repaired.
    """
    for n in range(2, 12):
        left = [unhit(n, m) for m in range(n + 1)]
        assert left == [(n - m) ** 2 for m in range(n + 1)]
        assert left[0] - left[1] == (2 * n - 1 if hits is None else hits * n)
        tau = Fraction(sum(left[1:]), n * n)
        assert tau == Fraction((n - 1) * (2 * n - 1), 6 * n) >= Fraction(n - 1, 6)
        assert sum(range(1, n + 1)) != n * n  # the printed weights do not add up to |Θ|


def counter_lb_count() -> dict[str, int]:
    """Count the members of Θ that one pull of one arm touches, |D| = 4."""
    n, arm = 4, 0
    members = [{i: 1} for i in range(n)]
    members += [{i: 1, j: 2} for i in range(n) for j in range(n) if i != j]
    return {"members": len(members), "touched": sum(arm in m for m in members), "printed": n}


def lb_uninformative(size: str = "ci", n: int = 100, K: int = 16) -> None:
    """E min(K,τ) = Σ(1−m/|D|)² < min{K,(|D|−1)/6}: the printed claim fails at |D|=100, K=16."""
    blind = sum(Fraction((n - m) ** 2, n * n) for m in range(1, K + 1))
    assert blind < min(Fraction(K), Fraction(n - 1, 6)), float(blind)
    for size_n in range(2, 30):  # and never exceeds min(K, E τ): that is Jensen's direction
        tau = Fraction((size_n - 1) * (2 * size_n - 1), 6 * size_n)
        for k in range(1, size_n):
            less = sum(Fraction((size_n - m) ** 2, size_n**2) for m in range(1, k + 1))
            assert less <= min(k, tau)


def counter_lb_uninformative() -> dict[str, float]:
    """Zero rewards that 16 different pulls bring on average, |D| = 100."""
    n, K = 100, 16
    blind = sum((1 - m / n) ** 2 for m in range(1, K + 1))
    return {"expected blind rounds": blind, "claimed": min(K, (n - 1) / 6)}


def aux_bayes(size: str = "ci", last: int = 3) -> None:
    """The least average regret is at least KΔ exactly for K ≤ |D|−3 (programme = all
    policies to 5).
    """
    for n in range(2, 6):
        for K in range(1, n + 2):
            assert bayes(n, K) == every_policy(n, K), (n, K)
    for n in (*range(4, 61), 80, 100, 150, 200):
        for K, value in enumerate(bayes_row(n, n)[1:], 1):
            assert (value >= K * n * n) == (n - last >= K), (n, K)
    assert bayes(2, 1) < 4 and bayes(3, 1) < 9


def aux_count(size: str = "ci", share: int = 3) -> None:
    """Σ_{t≤K}(n−t)(2(n−t)−1) ≥ Kn² for K ≤ n/3, n ≥ 5, and never more than the least regret."""
    for n in range(5, 200 if size == "ci" else 1000):
        total = 0
        for K in range(1, n // share + 1):
            total += (n - K) * (2 * (n - K) - 1)
            assert total >= K * n * n, (n, K)
            if n <= 30:
                assert total <= bayes(n, K)
    # For n ≥ 6 by convexity: 25n²/18 − 5n/2 + 1 − n² = (7n² − 45n + 18)/18 = (7n − 3)(n − 6)/18.
    for n in range(6, 2000):
        assert 7 * n * n - 45 * n + 18 == (7 * n - 3) * (n - 6) >= 0


def aux_noisy(size: str = "ci", c: float = 5.0) -> None:
    """Pinsker: E Regret ≥ 2KΔ((1−1/n)² − √(cKΔ²/(4n))), with the average divergence exact."""
    for n in (4, 7, 12):
        total = Fraction(0)  # Σ over Θ of KL(zero bandit ‖ θ)/(KΔ²), T_a/K = w_a any weights
        w = [Fraction(a + 1, n * (n + 1) // 2) for a in range(n)]
        regret = Fraction(0)  # Σ over Θ of (zero bandit's plays scored under θ)/(KΔ)
        for _, r in _rows(n, Fraction(1)):
            total += sum(x * x * y for x, y in zip(r, w, strict=True)) / 2
            regret += max(r) - sum(x * y for x, y in zip(r, w, strict=True))
        assert total / n**2 <= Fraction(c) / (2 * n)
        assert regret / n**2 == 2 * (1 - Fraction(1, n)) ** 2
    for n, Delta in product((6, 20, 100, 1000), (0.5, 0.1, 0.01)):
        K = n * (1 - 4 / n + 2 / n**2) ** 2 / (5 * Delta**2)
        gain = 2 * ((1 - 1 / n) ** 2 - Delta * math.sqrt(c * K / (4 * n)))
        assert abs(gain - 1) < 1e-9
        assert n * (1 - 5 / n) ** 2 / (5 * Delta**2) <= K


# --- change of measure ------------------------------------------------------------------------


def lb_kl(size: str = "ci", c: float = 2.0) -> None:
    """KL(N(0,1), N(2Δ,1)) = 2Δ² at arm j: the log-ratio is linear, so its mean is exact."""
    for Delta in (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)):
        mu = 2 * Delta  # log dP/dP' = ((r−μ)² − r²)/2 = μ²/2 − μr, and E r = 0
        assert mu**2 / 2 == Fraction(c) * Delta**2


def counter_lb_kl() -> dict[str, float]:
    """The divergence at arm j by quadrature, Δ = 1/2."""
    import numpy as np

    Delta = 0.5
    r = np.linspace(-12, 12, 240_001)
    p = np.exp(-(r**2) / 2) / np.sqrt(2 * np.pi)
    kl = float(np.sum(p * ((r - 2 * Delta) ** 2 - r**2) / 2) * (r[1] - r[0]))
    return {"KL at arm j": kl, "printed": Delta**2 / 2, "repaired": 2 * Delta**2}


def sprt(Delta: float, k: int, up: float, down: float, nodes: int = 240) -> dict[str, float]:
    """Play arm j while −down < log-likelihood ratio < up, then commit; no sampling.

    The density of the ratio on the open interval is carried forward by Gauss–Legendre quadrature.
    """
    x, w = np.polynomial.legendre.leggauss(nodes)
    x, w = (up + down) / 2 * x + (up - down) / 2, (up + down) / 2 * w
    s, out = 2 * Delta, {}
    for name, drift in (("i", -2 * Delta**2), ("ij", 2 * Delta**2)):
        step = np.exp(-(((x[:, None] - x[None, :] - drift) / s) ** 2) / 2) / (
            s * math.sqrt(2 * math.pi)
        )
        f = np.exp(-(((x - drift) / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi))
        high, low = 1 - ndtr((up - drift) / s), ndtr((-down - drift) / s)
        to_j, to_i, time_i = float(high), float(low), float(low)
        for t in range(2, k + 1):
            high = float(w * f @ (1 - ndtr((up - x - drift) / s)))
            low = float(w * f @ ndtr((-down - x - drift) / s))
            to_j, to_i, time_i = to_j + high, to_i + low, time_i + t * low
            f = step @ (w * f)
        undecided = float(w @ f)
        out[f"P_{name}(commit to j)"] = to_j
        out[f"E_{name} T_j"] = time_i + k * (to_j + undecided)
        out[f"mass_{name}"] = to_i + to_j + undecided
    out["R_i"] = Delta * out["E_i T_j"]
    out["R_ij"] = Delta * (k - out["E_ij T_j"])
    return out


def lb_display(size: str = "ci", c: float = 0.25, kl: float = 2.0) -> None:
    """R_i + R_(i,j) ≥ cΔk e^{−kl Δ² E_i T_j} for a test that breaks the printed (½, ½)
    constants.
    """
    for Delta, k, up, down in (
        (0.5, 1000, 5.0, 3.5),
        (0.5, 10_000, 7.0, 5.5),
        (0.25, 1000, 4.0, 2.0),
    ):
        got = sprt(Delta, k, up, down)
        assert abs(got["mass_i"] - 1) < 1e-8 and abs(got["mass_ij"] - 1) < 1e-8
        total, pulls = got["R_i"] + got["R_ij"], got["E_i T_j"]
        assert total >= c * Delta * k * math.exp(-kl * Delta**2 * pulls), (Delta, k, total, pulls)
    got = sprt(0.5, 1000, 5.0, 3.5)
    printed = 0.5 * 0.5 * 1000 * math.exp(-(0.5**2) * got["E_i T_j"] / 2)
    assert got["R_i"] + got["R_ij"] < printed / 2


def counter_lb_display() -> dict[str, float]:
    """Test arm j until the likelihood ratio leaves (e^-3.5, e^5), then commit: Δ=1/2, k=1000."""
    import math

    import numpy as np

    Delta, k, runs = 0.5, 1000, 20_000
    rng = np.random.default_rng(0)
    pulls, regret = {}, 0.0
    for name, mean in (("i", 0.0), ("ij", 2 * Delta)):
        ratio, T, open_ = np.zeros(runs), np.full(runs, float(k)), np.ones(runs, dtype=bool)
        for t in range(1, 400):
            r = mean + rng.standard_normal(runs)
            ratio += np.where(open_, 2 * Delta * r - 2 * Delta**2, 0.0)
            T[open_ & (ratio <= -3.5)] = t  # from here on arm i is played
            open_ &= (ratio > -3.5) & (ratio < 5.0)
        pulls[name] = T.mean()
        regret += Delta * (T.mean() if name == "i" else k - T.mean())
    printed = Delta * k / 2 * math.exp(-(Delta**2) / 2 * pulls["i"])
    return {"R_i + R_(i,j)": regret, "printed lower bound": printed, "E_i T_j": pulls["i"]}


def eq_neq1(size: str = "ci", four: float = 4.0, kl: float = 2.0) -> None:
    """E_i T_j ≥ (log(Δk) − log 4 − log(R_i+R_(i,j)))/(2Δ²); the printed form fails for the test."""
    Delta, k = 0.5, 1000
    got = sprt(Delta, k, 5.0, 3.5)
    total, pulls = got["R_i"] + got["R_ij"], got["E_i T_j"]
    assert pulls >= (math.log(Delta * k) - math.log(four) - math.log(total)) / (kl * Delta**2)
    assert pulls < (math.log(Delta * k) - math.log(2) - math.log(total)) / (Delta**2 / 2)


def eq_neq2(size: str = "ci", eight: float = 8.0) -> None:
    """log(Δk) − log 4 − log(2Ck^α) = (1−α)log k − log(8C/Δ), on a grid, to 1e-12."""
    for Delta, C, alpha, k in product((0.05, 0.5), (0.3, 40.0), (0.0, 0.5, 0.9), (10, 10**6)):
        left = math.log(Delta * k) - math.log(4) - math.log(2 * C * k**alpha)
        right = (1 - alpha) * math.log(k) - math.log(eight * C / Delta)
        assert abs(left - right) < 1e-12 * (1 + abs(left))


def eq_neq3(size: str = "ci", other: int = 1) -> None:
    """Under θ_i every arm n ≠ i costs Δ: regret is Δ Σ_{n≠i} T_n, for every play count."""
    n, Delta = 4, Fraction(1, 3)
    for i, counts in product(range(n), product(range(4), repeat=n)):
        r = [Delta if a == i else Fraction(0) for a in range(n)]
        paid = sum(c * (max(r) - x) for c, x in zip(counts, r, strict=True))
        assert paid == other * Delta * sum(c for a, c in enumerate(counts) if a != i)


def eq_new_1(size: str = "ci", c: Fraction | float = Fraction(1, 2)) -> None:
    """T_j ≥ k/2 costs θ_i at least Δk/2, T_j < k/2 costs θ_(i,j) at least Δk/2: all counts."""
    k, Delta = 8, Fraction(1)
    single, pair = (Delta, 0, 0), (Delta, 2 * Delta, 0)  # i = 0, j = 1, one further arm
    for Ti, Tj in product(range(k + 1), repeat=2):
        if Ti + Tj <= k:
            counts = (Ti, Tj, k - Ti - Tj)
            cost = [
                sum(n * (max(r) - x) for n, x in zip(counts, r, strict=True))
                for r in (single, pair)
            ]
            assert (cost[0] if 2 * Tj >= k else cost[1]) >= c * Delta * k


def eq_new_2(size: str = "ci", c: float = 0.5) -> None:
    """P_i(A)+P_(i,j)(Aᶜ) ≥ ½exp(−E_i[T_j]·2Δ²): the quadrature of the test, A = commit to j."""
    for Delta, up, down in product((0.25, 0.5), (0.2, 2.0, 5.0), (0.2, 2.0, 5.0)):
        k = 400
        got = sprt(Delta, k, up, down, nodes=160)
        wrong = got["P_i(commit to j)"] + 1 - got["P_ij(commit to j)"]
        pulls = got["E_i T_j"]
        assert wrong >= c * math.exp(-2 * Delta**2 * pulls)
    # after one pull the data are N(0,1) or N(2Δ,1); the best event errs 2Φ(−Δ), KL is 2Δ²
    for Delta in np.linspace(0.01, 3, 300):
        assert 2 * ndtr(-Delta) >= c * math.exp(-2 * Delta**2)


def thm_lower_ii(size: str = "ci", factor: float = 0.5) -> None:
    """Σ_{j≠i} Δ·[…]/(2Δ²) = (|D|−1)/(2Δ)·[…]; the cheapest allocation that meets all
    constraints.
    """
    from scipy.optimize import linprog

    for n, Delta in ((3, 0.5), (10, 0.2)):
        # least Σ Δ c_j with c_j KL_j ≥ 1 (Graves and Lai): the constant in front of log k
        rows = -2 * Delta**2 * np.eye(n - 1)
        best = linprog(np.full(n - 1, Delta), A_ub=rows, b_ub=-np.ones(n - 1)).fun
        assert abs(best - factor * (n - 1) / Delta) < 1e-7


def aux_free(size: str = "ci", four: float = 4.0) -> None:
    """S ≥ a log(b/S) means S ≥ a W(b/a): the bound without C and α is the root, to 1e-10."""
    for n, Delta, k in product((2, 20, 500), (0.05, 0.5), (10, 10**4, 10**9)):
        a, b = (n - 1) / (2 * Delta), Delta * k / 8
        S = a * float(lambertw(Delta**2 * k / (four * (n - 1))).real)
        assert abs(S - a * math.log(b / S)) < 1e-9 * (1 + S)


def thm_lower_hyp(size: str = "ci", limit: float = 0.5) -> None:
    """Rewards lie in [0,1] for Δ ≤ ½ and not for Δ > ½; ‖θ‖ ≤ 3Δ; 4 and d do in place of 8
    and d−1.
    """
    S, _ = _family(size)
    for Delta in (Fraction(1, 10), Fraction(limit), Fraction(limit) + Fraction(1, 100)):
        inside = all(max(r) <= 1 for _, r in _rows(len(S), Delta))
        assert inside == (Delta <= Fraction(1, 2)) == (Delta <= Fraction(limit))
    n, d = S.shape
    assert coherence(S) ** 2 <= Fraction(4 * math.log(n) / d)
    lb_norm(size)


def counter_thm_lower_hyp() -> dict[str, float]:
    """Δ = 0.8 is allowed by the printed hypothesis, but the family pays 2Δ."""
    Delta = 0.8
    return {"best expected reward": 2 * Delta, "allowed by the model": 1.0}


def thm_lower_i(size: str = "ci", cost: int = 1) -> None:
    """Average regret ≥ KΔ for K ≤ |D|/3 (|D| ≥ 5) and K ≤ |D|−3 (programme); false for |D|
    = 2, 3.
    """
    aux_count(size)
    for n in range(5, 40):
        assert all(bayes(n, K) >= cost * K * n * n for K in range(1, n - 2))
    assert bayes(2, 1) == 2 < 4 and bayes(3, 1) == 8 < 9


def thm_lower(size: str = "ci", cost: int = 1) -> None:
    """All parts at once: hypothesis, first regime, second regime, the form without constants."""
    thm_lower_hyp(size)
    thm_lower_i(size, cost=cost)
    lb_display(size)
    thm_lower_ii(size)
    aux_free(size)


def rm_1(size: str = "ci", ratio: float = 40.0) -> None:
    """UCB on Θ stays within a constant of (|D|/Δ)log K: 16 Σ log K/gap + 3 Σ gap, all members."""
    n, Delta = 20, 0.5
    for K in (10**3, 10**6, 10**9):
        worst = 0.0
        for _, r in _rows(n, Fraction(1, 2)):
            gaps = np.array([float(max(r) - x) for x in r])
            gaps = gaps[gaps > 0]
            worst = max(worst, float(np.sum(16 * math.log(K) / gaps + 3 * gaps)))
        assert worst <= ratio * (n - 1) / (2 * Delta) * math.log(K)
