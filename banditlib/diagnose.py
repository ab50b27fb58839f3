"""Is a linear model good enough? How far rewards are from linear, and what the theorems say."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from banditlib import theory
from banditlib.checks import numbers, probability, real, real_array
from banditlib.linear_fit import best_linear_fit, is_unique
from banditlib.problems.contextual import Contextual, Rounds, smallest_gap
from banditlib.tables import shown
from banditlib.view import first_best

CHANCE = 0.5
"""A fit that loses this share of what a random choice loses is close to chance."""


@dataclass(frozen=True)
class Diagnosis:
    r"""How far rewards are from linear, and what the theorems say about it.

    ζ, Δ and what the least-squares fit loses are well defined. θ need not be: if every arm has
    features of its own, only the arms that are hardest to fit decide about ζ, and the parameters of
    the others may vary. Then ``unique`` is False, ``theta`` is one of the best fits, and ``ranked``
    and ``zeta_covered`` are those of that one.

    Attributes
    ----------
    arms : number of arms looked at, all sets together
    dim : dimension d
    theta : (d,) the best linear fit in the sup norm, one of them if there are many
    zeta : misspecification ζ, the largest error of that fit
    gap : minimal positive gap Δ, infinite if every arm is optimal
    ratio : :math:`\zeta\sqrt d/\Delta`
    zeta_covered : largest ζ for which the repaired theorem on DS-OFUL promises constant regret
    zeta_hard : ζ from which the lower bound's family exists for this d, Δ and number of arms
    ranked : share of the sets whose best arm is also the best by ``theta``
    sentence : what follows
    unique : whether ``theta`` is the only best fit, up to rounding
    fit_loses : what the arm that the least-squares fit puts first loses, mean over the sets
    random_loses : what an arm chosen at random loses, mean over the sets
    usual_gap : a gap that nine sets in ten reach (of each set the smallest positive gap is taken)
    narrowest : how long contexts are along the direction that only short ones show, in proportion
        to the direction that long ones show; 1 if all have the same length
    """

    arms: int
    dim: int
    theta: np.ndarray = field(repr=False)
    zeta: float
    gap: float
    ratio: float
    zeta_covered: float
    zeta_hard: float
    ranked: float
    sentence: str
    unique: bool
    fit_loses: float
    random_loses: float
    usual_gap: float
    narrowest: float

    def __repr__(self) -> str:
        rows = "\n".join(f"  {name:<24}{value}" for name, value in self._rows())
        return f"Diagnosis of {self.arms} arms in {self.dim} dimensions\n{rows}\n  {self.sentence}"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in self._rows()
        )
        return f"<table>{rows}</table><p>{escape(self.sentence)}</p>"

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("misspecification ζ", f"{self.zeta:.4g}"),
            ("minimal gap Δ", f"{self.gap:.4g}"),
            ("ζ√d/Δ", shown(self.ratio)),
            ("theorem covers ζ up to", f"{self.zeta_covered:.2g}"),
            ("lower bound from ζ", f"{self.zeta_hard:.2g}"),
            ("best arm ranked first", f"{self.ranked:.1%} of sets"),
            ("best linear fit", "unique" if self.unique else "θ is one of many, ζ is that of all"),
            ("least squares loses", f"{self.fit_loses:.4g} a round"),
            ("a random choice loses", f"{self.random_loses:.4g} a round"),
            ("gap, nine sets in ten", f"{self.usual_gap:.4g}"),
            ("narrowest direction", f"{self.narrowest:.2g} of the widest"),
        ]


def diagnose(
    X: Any, rewards: Any, mask: Any = None, R: float = 1.0, delta: float = 0.01
) -> Diagnosis:
    r"""Is the linear model good enough? Best linear fit, ζ, Δ, ζ√d/Δ and what the theorems say.

    Parameters
    ----------
    X : (N, d) arms, or (K, M, d) the decision sets of K rounds
    rewards : (N,) or (K, M) their expected rewards (as known, or as estimated from many plays)
    mask : (K, M) True where there is an arm, for sets of different sizes
    R : size of the noise (it is R-sub-Gaussian), for the theorem
    delta : probability with which the theorem may fail

    Returns
    -------
    a :class:`Diagnosis`, which prints as a table. Its fields: ``zeta``, ``gap`` and ``ratio``
    (ζ√d/Δ); ``theta``, the best fit, and ``unique``, whether it is the only one; ``ranked``, the
    share of sets whose best arm it puts first; ``zeta_covered`` and ``zeta_hard``, up to which ζ a
    guarantee holds and from which on the lower bound does; ``fit_loses`` and ``random_loses``, what
    the least-squares fit and a random choice lose per round; ``usual_gap``, a gap that nine sets in
    ten reach; ``narrowest``, whether some direction is shown by short contexts only;
    ``sentence``, what follows.
    """
    R, delta = real("R", R, 0.0), probability("delta", delta)
    rounds = _sets(X, rewards, mask)
    points, reward = rounds.flat()
    theta, zeta = best_linear_fit(points, reward)
    gap, d = smallest_gap(rounds.gaps), points.shape[1]
    ranked = float(np.mean(_lost(rounds, theta) == 0))
    covered = hard = math.inf
    if math.isfinite(gap):
        covered = _covered(points, reward, theta, gap, R, delta)
        distinct = len(np.unique(points, axis=0))
        eps = min(1.0, theory.lower_eps(d, max(2, distinct), repaired=True))
        hard = 3 * gap * eps / (1 + eps)
    ratio = zeta * math.sqrt(d) / gap
    squares = np.linalg.lstsq(points, reward, rcond=None)[0]
    by_fit = float(_lost(rounds, squares).mean())
    at_random = float(rounds.gaps.mean(axis=1, where=_there(rounds)).mean())
    sentence = _what_follows(zeta, gap, ratio, covered, hard, delta, float(np.abs(reward).max()))
    if len(rounds.reward) > 1 and zeta > covered and at_random > 0:
        sentence = _of_many_sets(len(rounds.reward), ratio, by_fit / at_random)
    return Diagnosis(
        len(points), d, theta, zeta, gap, ratio, covered, hard, ranked, sentence,
        is_unique(points, reward, theta), by_fit, at_random, _usual_gap(rounds), _narrowest(points),
    )  # fmt: skip


def _there(rounds: Rounds) -> np.ndarray:
    """Where there is an arm, (n, M)."""
    return np.ones(rounds.reward.shape, dtype=bool) if rounds.mask is None else rounds.mask


def _lost(rounds: Rounds, theta: np.ndarray) -> np.ndarray:
    """What each round loses if the arm is played that ``theta`` puts first, (n,)."""
    score = np.where(_there(rounds), rounds.X @ theta, -np.inf)
    return rounds.gaps[np.arange(len(score)), first_best(score)]


def _usual_gap(rounds: Rounds) -> float:
    """A gap that nine sets in ten reach, infinite if every arm of every set is optimal."""
    smallest = np.where(rounds.gaps > 0, rounds.gaps, math.inf).min(axis=1)
    finite = smallest[np.isfinite(smallest)]
    return float(np.quantile(finite, 0.1)) if finite.size else math.inf


def _narrowest(points: np.ndarray) -> float:
    r"""Least over greatest typical length of the points along a direction.

    Along u the typical squared length is the mean of :math:`\|x\|^2` with weights
    :math:`\cos^2(x,u)`: the quotient of :math:`\sum(u^\top x)^2` and
    :math:`\sum(u^\top x)^2/\|x\|^2`.
    """
    length = np.linalg.norm(points, axis=1)
    points, length = points[length > 0], length[length > 0]
    if not len(points):
        return 1.0
    _, size, directions = np.linalg.svd(points / length[:, None], full_matrices=False)
    seen = size > 1e-9 * size[0]
    white = (points / length.max()) @ (directions[seen].T / size[seen])
    squares = np.linalg.eigvalsh(white.T @ white)
    return float(np.sqrt(max(squares[0], 0.0) / squares[-1]))


def _sets(X: Any, rewards: Any, mask: Any) -> Rounds:
    """Fixed arms as one set, decision sets as they are; checked like problems."""
    X = numbers("X", X)
    if np.ndim(X) == 2 and mask is None:
        points, reward = real_array("X", X, 2), real_array("rewards", rewards, 1)
        if len(points) != len(reward):
            raise ValueError(f"rewards: expected {len(points)} values, got {len(reward)}")
        return Rounds(points[None], reward[None], None)
    if mask is not None and np.ndim(X) == 2:
        raise ValueError("mask: expected None, as arms (N, d) are one set")
    if np.ndim(X) != 3:
        raise ValueError(
            f"X: expected arms (N, d) or decision sets (K, M, d), got shape {np.shape(X)}"
        )
    problem = Contextual(X, rewards, mask)
    return Rounds(problem.X, problem.reward, problem.mask)


def _covered(
    points: np.ndarray, reward: np.ndarray, theta: np.ndarray, gap: float, R: float, delta: float
) -> float:
    """Largest ζ of the repaired theorem on DS-OFUL, rewards scaled into an interval of length 1."""
    scale = max(1.0, float(np.ptp(reward)))
    L = max(1.0, float(np.linalg.norm(points, axis=1).max()))
    B = max(1.0, float(np.linalg.norm(theta)) / scale)
    found = theory.known_gap(
        d=points.shape[1], Delta=gap / scale, R=R / scale, L=L, B=B, delta=delta, repaired=True
    )
    return found.zeta_max * scale


def _what_follows(
    zeta: float, gap: float, ratio: float, covered: float, hard: float, delta: float, size: float
) -> str:
    if math.isinf(gap):
        return "Every arm of every set is optimal: no policy can lose anything."
    if zeta <= 1e-9 * (1.0 + size):
        return (
            "The rewards are linear in the features, so every guarantee for linear bandits holds."
        )
    if zeta <= covered:
        return (
            f"ζ is within what the theorem on DS-OFUL covers: with its Γ and β the regret stays "
            f"below a constant with probability at least {1 - delta:g}, however long it runs."
        )
    if zeta >= hard:
        return (
            f"ζ√d/Δ = {shown(ratio, 2)} is in the range of the lower bound: there are problems "
            "with these d, ζ and Δ on which no policy does better than by trying the arms one by "
            "one. Look for better features or, if the arms are fixed, use UCB, which needs none."
        )
    return (
        f"ζ√d/Δ = {shown(ratio, 2)} lies between the theorems: too much for the guarantee (it "
        f"needs ζ ≤ {covered:.2g}; its constants are not tight), too little for the lower bound. "
        "Nothing is proved; simulate, and let DS-OFUL compete with OFUL."
    )


def _of_many_sets(sets: int, ratio: float, share: float) -> str:
    """What follows beyond the guarantee, where one close call among many sets decides about Δ."""
    start = (
        f"ζ√d/Δ = {shown(ratio, 2)} is beyond the guarantee, but the closest call among {sets} "
        f"sets decides about it. Least squares loses {share:.0%} of what a random choice loses: "
    )
    if share >= CHANCE:
        return start + "do not expect much more of a linear policy; look for better features."
    return start + "a linear policy that has learnt loses about as much. Simulate to compare some."
