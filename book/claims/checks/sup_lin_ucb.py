"""Checks of the chapter on SupLinUCB: the algorithm, where its rounds stop, what its levels are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from math import ceil, log, sqrt

import numpy as np

from banditlib.policies import SupLinUCB

TAU = 1e-9


def first_best(score: np.ndarray) -> int:
    """Lowest index within the tolerance of the best."""
    best = score.max()
    return int(np.argmax(score >= best - TAU * (1 + abs(best))))


class Reference:
    """Algorithm 2, transcribed: every inverse is computed afresh, nothing is remembered but data.

    After `play(k, D)` the survivors of each level that the round met are in `seen`.
    `threshold` and `margin` scale the two constants of the pseudocode, for mutants.
    """

    def __init__(
        self, d: int, beta: Callable[[int], float], lam: float = 1.0,
        threshold: float = 1.0, margin: float = 2.0,
    ) -> None:  # fmt: skip
        self.d, self.beta, self.threshold, self.margin = d, beta, threshold, margin
        self.U: dict[int, np.ndarray] = defaultdict(lambda: lam * np.eye(d))
        self.b: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(d))
        self.seen: list[np.ndarray] = []

    def view(self, l: int, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Widths and optimistic rewards of the arms X at level l."""
        V = np.linalg.inv(self.U[l])
        width = np.sqrt(np.einsum("ij,jk,ik->i", X, V, X))
        return width, X @ (V @ self.b[l]) + self.beta(l) * width

    def play(self, k: int, D: np.ndarray) -> tuple[int, int, bool]:
        """Arm, level, and whether the level learns from round k."""
        alive, l, self.seen = np.arange(len(D)), 1, []
        while True:
            self.seen.append(alive)
            width, index = self.view(l, D[alive])
            if width.max() >= self.threshold * 2.0**-l * (1 - TAU):
                return int(alive[first_best(width)]), l, True
            if k <= 4**l * self.d:
                return int(alive[first_best(index)]), l, False
            near = index.max() - index <= self.margin * self.beta(l) * 2.0**-l * (1 + TAU)
            alive, l = alive[near], l + 1

    def learn(self, l: int, x: np.ndarray, reward: float) -> None:
        """Add one observation to level l."""
        self.U[l] = self.U[l] + np.outer(x, x)
        self.b[l] = self.b[l] + reward * x

    def round(
        self, k: int, D: np.ndarray, reward: Callable[[np.ndarray], float]
    ) -> tuple[int, int, bool]:
        """Play round k and learn from it if the algorithm says so."""
        arm, l, learnt = self.play(k, D)
        if learnt:
            self.learn(l, D[arm], reward(D[arm]))
        return arm, l, learnt


def contexts(rng: np.random.Generator, K: int, N: int = 5, d: int = 2) -> np.ndarray:
    """K decision sets of N arms in the unit ball; half of the rounds have short arms only."""
    X = rng.standard_normal((K, N, d))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    short = np.where(rng.random(K) < 0.5, 0.1, 1.0)
    return X * rng.random((K, N, 1)) ** (1 / d) * short[:, None, None]


def hand_trace() -> list[tuple[int, int, bool, int]]:
    """Arms 4/5 and 1/5 on the line, worked by hand: (arm, level, learnt, arms alive) per round."""
    blocks = [(3, 1, True, 2), (1, 1, False, 2), (15, 2, True, 2), (63, 3, True, 1)]
    blocks += [(255, 4, True, 1)]
    return [(0, l, learnt, alive) for n, l, learnt, alive in blocks for _ in range(n)]


def _trace(**mutated: float) -> list[tuple[int, int, bool, int]]:
    run, D, out = Reference(1, lambda l: 1.0, **mutated), np.array([[0.8], [0.2]]), []
    for k in range(1, 338):
        arm, l, learnt = run.round(k, D, lambda x: float(x[0]))
        out.append((arm, l, learnt, len(run.seen[-1])))
    return out


def alg_suplin(size: str = "ci", threshold: float = 1.0) -> None:
    """The transcription follows the hand trace, and the package follows the transcription."""
    assert _trace(threshold=threshold) == hand_trace()
    rng, theta = np.random.default_rng(0), np.array([0.8, 0.6])
    run, agent = Reference(2, lambda l: 1.0 + 0.1 * l), SupLinUCB(lambda l: 1.0 + 0.1 * l, 1.0)
    live = agent.start(2)
    for k, D in enumerate(contexts(rng, 500 if size == "ci" else 5000), 1):
        reward = float(0.1 * rng.standard_normal())
        arm, l, learnt = run.round(k, D, lambda x, noise=reward: float(x @ theta) + noise)
        assert (live.choose(D), live.info.level) == (arm, l if learnt else 0)
        live.learn(float(D[arm] @ theta) + reward)


def eq_arm_elimination(size: str = "ci", margin: float = 2.0) -> None:
    """The elimination rule gives the hand trace, and the best index always survives it."""
    assert _trace(margin=margin) == hand_trace()
    rng = np.random.default_rng(1)
    run, theta = Reference(2, lambda l: 1.0, margin=margin), np.array([0.8, 0.6])
    for k, D in enumerate(contexts(rng, 400 if size == "ci" else 4000), 1):
        run.play(k, D)
        for l, (here, above) in enumerate(zip(run.seen, run.seen[1:], strict=False), 1):
            best = here[first_best(run.view(l, D[here])[1])]
            assert best in above and set(above) <= set(here)
        run.round(k, D, lambda x: float(x @ theta) + 0.1 * rng.standard_normal())


def text_l206(size: str = "ci", base: float = 4.0) -> None:
    """No round passes level ⌈log₄(k/d)⌉, and a round that does not learn stops exactly there."""
    for d in (1, 2, 3, 16):
        for k in range(1, 300 if size == "ci" else 1500):
            # With widths that are never large, the level of a round is the last level itself.
            run = Reference(d, lambda l: 1.0, lam=1e30)
            _, l, learnt = run.play(k, np.eye(d)[:1])
            assert not learnt
            assert l == max(1, ceil(log(k / d) / log(base) - 1e-12)), (d, k, l)
    assert _stop(10_000, 16) == 5
    rng, theta = np.random.default_rng(2), np.array([0.8, 0.6])
    run = Reference(2, lambda l: 1.0)
    ended: dict[int, int] = defaultdict(int)
    for k, D in enumerate(contexts(rng, 1500), 1):
        _, l, learnt = run.round(k, D, lambda x: float(x @ theta))
        assert l <= _stop(k, 2) and (learnt or l == _stop(k, 2))
        ended[l] += not learnt
    assert all(n <= (8 if l == 1 else 6 * 4 ** (l - 1)) for l, n in ended.items())
    assert sum(ended.values()) > 50


def counter_text_l206() -> dict[str, float]:
    """The level at which a round stops, against the logarithm that the text names."""
    from math import log, log2

    d, k = 16, 10_000
    level = 1
    while not k <= 4**level * d:  # the pseudocode's condition for stopping
        level += 1
    assert level < log(k) < log2(k)
    return {"level reached": level, "log k": log(k), "log2 k": log2(k)}


def _stop(k: int, d: int) -> int:
    l = 1
    while 4**l * d < k:
        l += 1
    return l


def aux_level_status(size: str = "ci", threshold: float = 1.0) -> None:
    """Levels and selections of a noisy run, rebuilt from the arms played and nothing else."""
    rng, theta = np.random.default_rng(3), np.array([0.6, -0.3, 0.2])
    run, d, U = Reference(3, lambda l: 1.0), 3, defaultdict(lambda: np.eye(3))
    for k, D in enumerate(contexts(rng, 800 if size == "ci" else 8000, d=3), 1):
        arm, level, learnt = run.round(k, D, lambda x: float(x @ theta) + rng.standard_normal())
        x, l = D[arm], 1
        while True:
            wide = sqrt(x @ np.linalg.solve(U[l], x)) >= threshold * 2.0**-l * (1 - TAU)
            if wide or k <= 4**l * d:
                break
            l += 1
        assert (l, wide) == (level, learnt)
        if wide:
            U[l] = U[l] + np.outer(x, x)


def text_l208_levels(size: str = "ci", ratio: float = 2.0) -> None:
    """With one arm a round, level l is DS-OFUL's selection (Γ = 2⁻ˡ) on what is passed up."""
    K = 600 if size == "ci" else 6000
    sets = contexts(np.random.default_rng(4), K, N=1)
    run = Reference(2, lambda l: 1.0)
    played = [run.round(k, D, lambda x: 0.0) for k, D in enumerate(sets, 1)]
    stream = list(range(1, K + 1))
    for l in range(1, 5):
        U, kept, skipped = np.eye(2), [], []
        for k in stream:
            x = sets[k - 1, 0]
            wide = sqrt(x @ np.linalg.solve(U, x)) >= ratio**-l * (1 - TAU)
            (kept if wide else skipped).append(k)
            U = U + np.outer(x, x) if wide else U
        assert kept == [k for k, (_, m, c) in enumerate(played, 1) if m == l and c]
        stream = [k for k in skipped if k > 4**l * 2]
