"""Ways to play cats against dogs that the paper does not name, for the question of its axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditlib.backend import Array, namespace_of
from banditlib.checks import real
from banditlib.intervals import Certificate, Enclosure, separated
from banditlib.inverses import spd_inverse
from banditlib.policies.base import Policy
from banditlib.problems import Pool
from banditlib.view import View, column, first_best


@dataclass(frozen=True)
class GrowingOFUL(Policy):
    r"""OFUL with the radius that the paper's lemma on errors asks for when rewards have no noise.

    Every round is learnt, so :math:`|\mathcal C_{k-1}| = k-1` and the radius in round k is
    :math:`1+\zeta\sqrt{k-1}`.
    """

    zeta: float
    lam: float

    certifies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        real("zeta", self.zeta, low=0.0)
        real("lam", self.lam, low=0.0, strict=True)

    def _radius(self, k: Any) -> Any:
        return 1.0 + self.zeta * np.sqrt(np.asarray(k) - 1.0)

    def choose(self, k: Any, view: View) -> tuple[Array, Array]:
        """Optimistic arm, always learnt."""
        xp = namespace_of(view.mean)
        arm = first_best(view.mean + column(self._radius(k)) * xp.sqrt(view.var))
        return arm, xp.ones_like(arm)

    def certify(self, k: Any, box: Enclosure, dim: int) -> Certificate:
        """The same on intervals."""
        radius = self._radius(k)
        low = box.mean_low[0] + radius * box.width_low[0]
        arm, sure = separated(low, box.mean_high[0] + radius * box.width_high[0])
        unclear = np.tile(~sure, (len(low), 1))
        return Certificate(arm, np.ones_like(arm), np.where(sure, 0, 1), unclear, ~sure)


def delayed(
    problem: Pool, every: int, beta: float, lam: float, rounds: int, seed: int, trial: int
) -> NDArray[np.int64]:
    """Mistakes (rounds,) of OFUL that learns only after every so many rounds, all at once."""
    real("every", every, low=1.0)
    points, pays = problem.points, problem.reward
    U, b = lam * np.eye(problem.dim), np.zeros(problem.dim)
    wrong = np.zeros(rounds, np.int64)
    blocks = problem.stream(seed, trial, every)
    for start in range(0, rounds, every):
        shown = next(blocks)[: rounds - start]
        X = points[shown]
        inverse = spd_inverse(U)
        rows = X.reshape(-1, problem.dim)
        width = np.sqrt(np.einsum("nd,nd->n", rows @ inverse, rows)).reshape(shown.shape)
        arm = np.asarray(first_best(X @ (inverse @ b) + beta * width))
        at = np.arange(len(shown))
        played, paid = X[at, arm], pays[shown[at, arm]]
        wrong[start : start + len(shown)] = pays[shown].max(axis=1) > paid
        U += played.T @ played
        b += paid @ played
    return wrong


def single(
    problem: Pool, beta: float, lam: float, rounds: int, seed: int, trial: int
) -> NDArray[np.int64]:
    """Mistakes (rounds,) of OFUL in single precision, its inverse updated and never made anew."""
    points, pays = problem.points.astype(np.float32), problem.reward.astype(np.float32)
    radius = np.float32(beta)
    inverse = np.eye(problem.dim, dtype=np.float32) / np.float32(lam)
    b = np.zeros(problem.dim, np.float32)
    wrong = np.zeros(rounds, np.int64)
    for k, pair in enumerate(problem.contexts(seed, trial, rounds)):
        x, paid = points[pair], pays[pair]
        moved = x @ inverse
        width = np.sqrt(np.maximum((moved * x).sum(axis=1), np.float32(0.0)))
        arm = int(np.argmax(moved @ b + radius * width))
        wrong[k] = paid.max() > paid[arm]
        step = moved[arm]
        inverse -= np.outer(step / (np.float32(1.0) + width[arm] ** 2), step)
        b += paid[arm] * x[arm]
    return wrong


Loop = Callable[..., NDArray[np.int64]]
LOOPS: dict[str, Loop] = {"DelayedOFUL": delayed, "SingleOFUL": single}
"""Players that are no policies of an engine, by the name in a cell's configuration."""
