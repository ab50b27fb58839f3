"""Checks of the chapter on SupLinUCB: the algorithm, where its rounds stop, what its levels are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from math import ceil, log2, sqrt
from typing import Any

import numpy as np

from banditlib.policies import SupLinUCB
from banditlib.reference import argmax
from book.claims.formula import ATTAINED, Found, about, formula


@formula(tool=True)
def wide(width: float, l: int) -> bool:
    """Whether a level finds an arm wide enough to learn from it."""
    return width >= 2.0**-l


@formula(tool=True)
def ends(k: int, l: int, d: int) -> bool:
    """Whether round k stops at level l without learning."""
    return k <= 4**l * d


@formula(tool=True)
def survives(behind: np.ndarray, beta: float, l: int, margin: float) -> np.ndarray:
    """Which arms stay: those whose index is behind the best by no more than margin·β(l)2⁻ˡ."""
    return behind <= margin * beta * 2.0**-l


class Reference:
    """Algorithm 2, transcribed: every inverse is computed afresh, nothing is remembered but data.

    After `play(k, D)` the survivors of each level that the round met are in `seen`. The paper's
    elimination has the margin 2, the dissertation's 3.
    """

    def __init__(
        self, d: int, beta: Callable[[int], float], lam: float = 1.0, margin: float = 2.0
    ) -> None:
        self.d, self.beta, self.margin = d, beta, margin
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
            if wide(width.max(), l):
                return int(alive[argmax(width)]), l, True
            if ends(k, l, self.d):
                return int(alive[argmax(index)]), l, False
            near = survives(index.max() - index, self.beta(l), l, self.margin)
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


def _trace() -> list[tuple[int, int, bool, int]]:
    run, D, out = Reference(1, lambda l: 1.0), np.array([[0.8], [0.2]]), []
    for k in range(1, 338):
        arm, l, learnt = run.round(k, D, lambda x: float(x[0]))
        out.append((arm, l, learnt, len(run.seen[-1])))
    return out


def _axis_trace() -> list[tuple[int, bool]]:
    """One unit arm on the line: level l finds widths 1, 1/√2, … down to exactly 2⁻ˡ."""
    run = Reference(1, lambda l: 1.0)
    return [run.round(k, np.array([[1.0]]), lambda x: 1.0)[1:] for k in range(1, 90)]


@about("wide", "ends", "survives")
def alg_suplin(size: str = "ci") -> Found:
    """The transcription follows the hand trace, and the package follows the transcription.

    The hand trace covers widths of exactly 2⁻ˡ, rounds of exactly 4ˡd, and an elimination.
    """
    assert _trace() == hand_trace()
    behind = np.array([0.0, 0.5, 0.5000001])  # exactly 2β2⁻ˡ stays, more goes
    assert survives(behind, 1.0, 2, 2.0).tolist() == [True, True, False]
    assert _axis_trace() == [(1, True)] * 4 + [(2, True)] * 16 + [(3, True)] * 64 + [(4, True)] * 5
    short = Reference(1, lambda l: 1.0)  # never wide: round 4 ends at level 1, round 5 at level 2
    assert [short.play(k, np.array([[1e-9]]))[1:] for k in (4, 5, 16, 17)] == [
        (1, False), (2, False), (2, False), (3, False)
    ]  # fmt: skip
    rng, theta = np.random.default_rng(0), np.array([0.8, 0.6])
    run, agent = Reference(2, lambda l: 1.0 + 0.1 * l), SupLinUCB(lambda l: 1.0 + 0.1 * l, 1.0)
    live: Any = agent.start(2)
    for k, D in enumerate(contexts(rng, 400 if size == "ci" else 5000), 1):
        reward = float(0.1 * rng.standard_normal())
        arm, l, learnt = run.round(k, D, lambda x, noise=reward: float(x @ theta) + noise)
        assert (live.choose(D), live.info.level) == (arm, l if learnt else 0)
        live.learn(float(D[arm] @ theta) + reward)
    return ATTAINED


@about("survives")
def eq_arm_elimination(size: str = "ci") -> Found:
    """Arms behind by 2β2⁻ˡ stay, arms behind by more go; the best index always survives."""
    for l, beta in ((1, 1.0), (3, 2.5)):
        limit = 2 * beta * 2.0**-l
        behind = np.array([0.0, 0.5 * limit, limit, 1.001 * limit, 3 * limit])
        assert survives(behind, beta, l, 2.0).tolist() == [True, True, True, False, False]
    assert _trace() == hand_trace()
    rng = np.random.default_rng(1)
    run, theta = Reference(2, lambda l: 1.0), np.array([0.8, 0.6])
    for k, D in enumerate(contexts(rng, 300 if size == "ci" else 4000), 1):
        run.play(k, D)
        for l, (here, above) in enumerate(zip(run.seen, run.seen[1:], strict=False), 1):
            best = here[argmax(run.view(l, D[here])[1])]
            assert best in above and set(above) <= set(here)
        run.round(k, D, lambda x: float(x @ theta) + 0.1 * rng.standard_normal())
    return ATTAINED


@formula()
def last_level(k: int, d: int) -> int:
    """The level at which round k stops at the latest."""
    return max(1, ceil(log2(k / d) / 2))


def text_l206(size: str = "ci") -> Found:
    """No round passes level ⌈log₄(k/d)⌉, and a round that does not learn stops exactly there."""
    for d in (1, 2, 3, 16):
        for k in (*range(1, 80), 255, 256, 257, 1024, 1025, 10_000):
            # With widths that are never large, the level of a round is the last level itself.
            run = Reference(d, lambda l: 1.0, lam=1e30)
            _, l, learnt = run.play(k, np.eye(d)[:1])
            assert not learnt and l == last_level(k, d)
    assert last_level(10_000, 16) == 5
    rng, theta = np.random.default_rng(2), np.array([0.8, 0.6])
    run = Reference(2, lambda l: 1.0)
    ended: dict[int, int] = defaultdict(int)
    for k, D in enumerate(contexts(rng, 600), 1):
        _, l, learnt = run.round(k, D, lambda x: float(x @ theta))
        assert l <= last_level(k, 2) and (learnt or l == last_level(k, 2))
        ended[l] += not learnt
    assert all(n <= (8 if l == 1 else 6 * 4 ** (l - 1)) for l, n in ended.items())
    return ATTAINED


def counter_text_l206() -> dict[str, float]:
    """The level at which a round stops, against the logarithm that the text names."""
    from math import log, log2

    d, k = 16, 10_000
    level = 1
    while not k <= 4**level * d:  # the pseudocode's condition for stopping
        level += 1
    assert level < log(k) < log2(k)
    return {"level reached": level, "log k": log(k), "log2 k": log2(k)}


def _replayed(X: list[np.ndarray], d: int) -> list[tuple[int, bool]]:
    """Level and learning of every round, rebuilt from the arms played and nothing else."""
    U: dict[int, np.ndarray] = defaultdict(lambda: np.eye(d))
    out = []
    for k, x in enumerate(X, 1):
        l = 1
        while True:
            learnt = bool(wide(sqrt(x @ np.linalg.solve(U[l], x)), l))
            if learnt or ends(k, l, d):
                break
            l += 1
        if learnt:
            U[l] = U[l] + np.outer(x, x)
        out.append((l, learnt))
    return out


@about("wide", "ends")
def aux_level_status(size: str = "ci") -> Found:
    """Levels and selections of a noisy run, rebuilt from the history of arms alone.

    The package's SupLinUCB plays; the rebuilding never sees a reward.
    """
    rng, theta = np.random.default_rng(3), np.array([0.6, -0.3, 0.2])
    live: Any = SupLinUCB(lambda l: 1.0, 1.0).start(3)
    arms, levels = [], []
    for D in contexts(rng, 500 if size == "ci" else 8000, d=3):
        arm = live.choose(D)
        levels.append(live.info.level)
        arms.append(D[arm])
        live.learn(float(D[arm] @ theta) + rng.standard_normal())
    assert [l if learnt else 0 for l, learnt in _replayed(arms, 3)] == levels
    axis = [np.array([1.0]) for _ in range(90)]
    expected = [(1, True)] * 4 + [(2, True)] * 16 + [(3, True)] * 64 + [(4, True)] * 6
    assert _replayed(axis, 1) == expected
    ended = _replayed([np.array([1e-9])] * 5, 1)
    assert ended == [(1, False)] * 4 + [(2, False)]
    return ATTAINED


@formula()
def ds_keeps(width: float, l: int) -> bool:
    """DS-OFUL's rule at the threshold Γ = 2⁻ˡ."""
    return width >= 2.0**-l


def text_l208_levels(size: str = "ci") -> Found:
    """With one arm a round, level l is DS-OFUL's selection (Γ = 2⁻ˡ) on what is passed up.

    Random arms, and unit arms on the line, whose widths meet 2⁻ˡ exactly.
    """
    K = 500 if size == "ci" else 6000
    axis = np.ones((100, 1, 1))
    short = axis * np.where(np.arange(100) % 3, 1.0, 0.3)[:, None, None]
    tiny = np.where(np.arange(300) % 2, 1e-3, 1.0)[:, None, None] * np.ones((300, 1, 1))
    for sets in (contexts(np.random.default_rng(4), K, N=1), axis, short, tiny):
        d = sets.shape[2]
        run = Reference(d, lambda l: 1.0)
        played = [run.round(k, D, lambda x: 0.0) for k, D in enumerate(sets, 1)]
        stream = list(range(1, len(sets) + 1))
        for l in range(1, 5):
            U = np.eye(d)
            kept: list[int] = []
            skipped: list[int] = []
            for k in stream:
                x = sets[k - 1, 0]
                learns = ds_keeps(sqrt(x @ np.linalg.inv(U) @ x), l)
                (kept if learns else skipped).append(k)
                U = U + np.outer(x, x) if learns else U
            assert kept == [k for k, (_, m, c) in enumerate(played, 1) if m == l and c]
            stopped = [k for k, (_, m, c) in enumerate(played, 1) if m == l and not c]
            assert stopped == [k for k in skipped if ends(k, l, d)]
            stream = [k for k in skipped if not ends(k, l, d)]
    return ATTAINED
