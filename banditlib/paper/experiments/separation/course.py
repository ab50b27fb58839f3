r"""Lessons and tests: the contextual problem that separates DS-OFUL from OFUL.

A cycle has n *lessons*, rounds that offer only the short arm :math:`a e_1` and pay ζ, and then
one *test*, which offers :math:`e_2` (pays Δ) and :math:`e_1` (pays 0). With
:math:`\theta^*=\Delta e_2` the misspecification is ζ on lessons and 0 on tests. Nothing is lost in
a lesson; a *mistake* is a test answered by :math:`e_1`, and costs Δ.

All data lie on the two axes, so the regression is two counters, and a block of equal lessons
changes it by one update: ten million rounds are some thousand tests. The tests of this module
replay short runs round by round with live agents and find the same decisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from banditlib.view import TAU

Radius = Callable[[int, float], float]
"""The radius of round k, given k and ζ."""


@dataclass(frozen=True)
class Course:
    r"""The problem: lessons of length a that pay ``pays``, n of them before each test.

    Parameters
    ----------
    Delta : gap Δ of the tests
    zeta : misspecification ζ of the lessons
    length : length a of a lesson's arm
    lessons : number n of lessons before each test
    sigma : deviation of the Gaussian noise
    dim : d; the other d − 2 directions are shown once each, before the first lesson
    """

    Delta: float
    zeta: float
    length: float
    lessons: int
    sigma: float = 0.0
    dim: int = 2

    @classmethod
    def of(cls, Delta: float, j: float, sigma: float = 0.0, dim: int = 2) -> Course:
        """The course of the theorem: ζ = Δ/j, a = 1/(4j), ⌈8j²⌉ lessons before each test."""
        return cls(Delta, Delta / j, 1 / (4 * j), math.ceil(8 * j * j - 1e-9), sigma, dim)

    @property
    def ratio(self) -> float:
        """ζ√d/Δ."""
        return self.zeta * math.sqrt(self.dim) / self.Delta

    @property
    def cycle(self) -> int:
        """Rounds of one cycle."""
        return self.lessons + 1

    def start(self) -> int:
        """Rounds before the first cycle, one for each direction that the tests leave out."""
        return self.dim - 2


def beats(score: float, other: float) -> bool:
    """Whether `score` is larger by more than the tolerance for ties."""
    return score > other + TAU * (1 + abs(score))


@dataclass
class Axis:
    """A ridge regression along one axis: U, b and the sum of |x|."""

    lam: float
    U: float = 0.0
    b: float = 0.0
    plays: float = 0.0  # Σ|x|, which is the number of plays of unit arms

    def __post_init__(self) -> None:
        self.U = self.lam

    def learn(self, x: float, total: float, times: int = 1) -> None:
        """`times` plays of the arm x whose rewards add up to `total`."""
        self.U += times * x * x
        self.b += x * total
        self.plays += times * x

    def room(self, x: float, threshold: float) -> int:
        """How many plays of x in a row have a width of at least `threshold`."""
        if threshold <= 0:
            return 2**62
        left = (x / (threshold * (1 - TAU))) ** 2 - self.U
        return math.floor(left / (x * x)) + 1 if left >= 0 else 0

    @property
    def mean(self) -> float:
        return self.b / self.U

    @property
    def width(self) -> float:
        return 1 / math.sqrt(self.U)


class Learner:
    """Two axes of one regression; OFUL with a radius of its own in every round.

    Parameters
    ----------
    lam : regulariser λ
    radius : β_k from k and ζ; None for the kindest one, which is chosen after looking at the
        answer: the right arm is played unless the wrong one wins for every β ≥ 0
    Gamma : threshold of DS-OFUL; 0 keeps everything
    """

    def __init__(self, lam: float, radius: Radius | None, Gamma: float = 0.0) -> None:
        self.e1, self.e2 = Axis(lam), Axis(lam)
        self.radius, self.Gamma, self.kept = radius, Gamma, 0

    def lessons(self, k: int, course: Course, total: Callable[[int], float]) -> None:
        """n lessons from round k on; ``total(m)`` is the sum of the rewards of the next m."""
        x = course.length
        m = min(course.lessons, self.e1.room(x, self.Gamma))
        self.e1.learn(x, total(m), m)
        self.kept += m

    def wrong(self, k: int, zeta: float) -> bool:
        """Whether the test in round k is answered by e₁."""
        e1, e2 = self.e1, self.e2
        if self.radius is None:
            return e1.mean > e2.mean and e1.width >= e2.width
        beta = self.radius(k, zeta)
        return beats(e1.mean + beta * e1.width, e2.mean + beta * e2.width)

    def learn(self, wrong: bool, reward: float) -> None:
        axis = self.e1 if wrong else self.e2
        if axis.room(1.0, self.Gamma):
            axis.learn(1.0, reward)
            self.kept += 1


class WithBonus(Learner):
    """LSW: OFUL's index plus ε times the sum of |x'U⁻¹x_s| over the past rounds."""

    def __init__(self, lam: float, beta: float, eps: float) -> None:
        super().__init__(lam, lambda k, zeta: beta)
        self.eps = eps

    def wrong(self, k: int, zeta: float) -> bool:
        assert self.radius is not None
        beta = self.radius(k, zeta)
        s1, s2 = (a.mean + beta * a.width + self.eps * a.plays / a.U for a in (self.e1, self.e2))
        return beats(s1, s2)


class Thompson(Learner):
    """Linear Thompson sampling: the index is drawn from N(mean, (v · width)²)."""

    def __init__(self, lam: float, scale: float, rng: np.random.Generator) -> None:
        super().__init__(lam, None)
        self.scale, self.rng = scale, rng

    def wrong(self, k: int, zeta: float) -> bool:
        z1, z2 = self.scale * self.rng.standard_normal(2)
        e1, e2 = self.e1, self.e2
        return bool(e1.mean + z1 * e1.width > e2.mean + z2 * e2.width)


class Levels:
    """SupLinUCB with a radius for each level."""

    def __init__(self, lam: float, beta: Callable[[int], float], dim: int) -> None:
        self.lam, self.beta, self.dim, self.kept = lam, beta, dim, 0
        self.levels: list[tuple[Axis, Axis]] = []
        self._learns: tuple[int, bool] | None = None

    def at(self, level: int) -> tuple[Axis, Axis]:
        """The regression of a level, from 1 on."""
        while len(self.levels) < level:
            self.levels.append((Axis(self.lam), Axis(self.lam)))
        return self.levels[level - 1]

    def last(self, k: int) -> int:
        """The smallest l with k ≤ 4^l d: round k goes no deeper."""
        level = 1
        while k > 4**level * self.dim:
            level += 1
        return level

    def lessons(self, k: int, course: Course, total: Callable[[int], float]) -> None:
        """Each lesson is learnt at the first level where its arm is wide enough, if any."""
        left, x = course.lessons, course.length
        while left:
            last = self.last(k)
            now = min(left, 4**last * self.dim - k + 1)  # rounds that may go as deep as `last`
            k, left = k + now, left - now
            for level in range(1, last + 1):
                e1 = self.at(level)[0]
                m = min(now, e1.room(x, 2.0**-level))
                e1.learn(x, total(m), m)
                now, self.kept = now - m, self.kept + m

    def wrong(self, k: int, zeta: float) -> bool:
        alive, last = [True, True], self.last(k)  # e1, e2
        for level in range(1, last + 1):
            axes, beta = self.at(level), self.beta(level)
            wide = [
                axis.room(1.0, 2.0**-level) > 0 and a for axis, a in zip(axes, alive, strict=True)
            ]
            if any(wide):
                e1, e2 = (a.width if s else -1.0 for a, s in zip(axes, alive, strict=True))
                self._learns = (level, beats(e1, e2))
                return self._learns[1]
            score = [
                a.mean + beta * a.width if s else -math.inf
                for a, s in zip(axes, alive, strict=True)
            ]
            if level == last:
                break
            best, reach = max(score), 2 * beta * 2.0**-level * (1 + TAU)
            alive = [s and best - v <= reach for s, v in zip(alive, score, strict=True)]
        self._learns = None
        return alive[0] and (not alive[1] or beats(score[0], score[1]))

    def learn(self, wrong: bool, reward: float) -> None:
        if self._learns is not None:
            self.at(self._learns[0])[0 if wrong else 1].learn(1.0, reward)
            self.kept += 1


@dataclass
class Counting:
    """UCB, which ignores the features: one mean for each arm of the test."""

    alpha: float
    n: list[int] = field(default_factory=lambda: [0, 0])
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0])
    kept: int = 0

    def lessons(self, k: int, course: Course, total: Callable[[int], float]) -> None:
        total(course.lessons)

    def wrong(self, k: int, zeta: float) -> bool:
        if 0 in self.n:
            return self.n[1] > 0  # e₂ first, then e₁
        bonus = self.alpha * math.log(k)
        s1, s2 = (s / n + math.sqrt(bonus / n) for s, n in zip(self.sums, self.n, strict=True))
        return beats(s1, s2)

    def learn(self, wrong: bool, reward: float) -> None:
        self.n[0 if wrong else 1] += 1
        self.sums[0 if wrong else 1] += reward


Player = Learner | Levels | Counting


def play(
    course: Course, player: Player, tests: int, rng: np.random.Generator | None = None
) -> np.ndarray:
    """Whether each of the first `tests` tests was answered by e₁, (tests,) booleans."""
    if course.sigma and rng is None:
        raise ValueError("rng: a course with noise needs a generator")
    out = np.zeros(tests, dtype=bool)

    def noise(m: int) -> float:
        """The sum of the noise of m rounds."""
        if not course.sigma or not m or rng is None:
            return 0.0
        return course.sigma * math.sqrt(m) * rng.standard_normal()

    k = course.start() + 1
    for t in range(tests):
        player.lessons(k, course, lambda m: m * course.zeta + noise(m))
        k += course.lessons
        wrong = bool(player.wrong(k, course.zeta))
        player.learn(wrong, (0.0 if wrong else course.Delta) + noise(1))
        out[t] = wrong
        k += 1
    return out
