"""Live agents: the same policies, one decision at a time, on changing decision sets."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np

from banditlib.checks import (
    fits,
    in_scale,
    integer,
    one_backend,
    points_in_scale,
    real,
    real_array,
)
from banditlib.policies.base import Policy, one_decision
from banditlib.problems import generator
from banditlib.regression import Ridge
from banditlib.view import View

Method = TypeVar("Method", bound=Callable[..., Any])


def _alone(method: Method) -> Method:
    """Let one thread at a time into the methods of one agent, so that none sees half a round."""

    @functools.wraps(method)
    def locked(self: Agent, *args: Any, **more: Any) -> Any:
        with self._lock:
            return method(self, *args, **more)

    return cast(Method, locked)


class Info(NamedTuple):
    """What the last decision rested on.

    Attributes
    ----------
    round : number of the round, from 1 on
    arm : index of the chosen row
    width : its width at the level that decided (NaN for a policy without widths)
    level : level that learns from the round, 0 for none
    selected : whether the round is learnt
    """

    round: int
    arm: int
    width: float
    level: int
    selected: bool


class Agent:
    """A policy at work: ``arm = agent.choose(contexts)``, then ``agent.learn(reward)``, round
    after round.

    Parameters
    ----------
    policy : the policy
    dim : dimension d of the contexts
    arms : (N, d) fixed arms, for policies that need them (``choose()`` then takes no contexts)
    seed : for policies that draw random numbers: an integer, or the generator itself

    Attributes
    ----------
    round : decisions taken so far
    info : what the last decision rested on, None before the first
    """

    write_file: ClassVar[Callable[[Agent, Any], None]]  # set by ``agent_file``, which stands above

    def __init__(
        self,
        policy: Policy,
        dim: int,
        arms: Any = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"policy: expected a policy, got {policy!r}")
        self.policy, self.dim = policy, integer("dim", dim, 1)
        fits("dim", 24.0 * dim**2, "one regression")
        self.arms = None if arms is None else real_array("arms", arms, 2)
        if self.arms is not None and self.arms.shape[1] != dim:
            raise ValueError(f"arms: expected {dim} columns, got {self.arms.shape[1]}")
        if self.arms is not None and policy.ridge:
            in_scale("arms", self.arms, policy.regulariser)
        if policy.fixed_arms and self.arms is None:
            name = type(policy).__name__
            raise ValueError(f"arms: {name} needs fixed arms; give them as start(dim, arms=X)")
        self._lock = threading.RLock()
        self.round, self._waiting = 0, False
        self.info: Info | None = None
        self._ridge = Ridge(dim, policy.regulariser, 1)
        self._flag = False
        self._plan = policy.plan(self.arms) if self.arms is not None else np.zeros(0, np.int64)
        plans: Any = policy
        self._phase = plans.first_phase(self.arms) if policy.phased else None
        self._points: dict[bytes, int] = {}  # points learnt from: row in the two arrays below
        self._history = np.zeros((0, dim))  # those points, with room for more
        self._counts, self._totals = np.zeros(0), np.zeros(0)
        if self.arms is not None:
            self._counts, self._totals = np.zeros(len(self.arms)), np.zeros(len(self.arms))
        self._x = np.zeros(dim)
        self._draws: np.random.Generator | None = None
        if not (seed is None or isinstance(seed, np.random.Generator)):
            integer("seed", seed, 0, None)
        if "draws" in policy.needs:
            if seed is None or isinstance(seed, np.random.Generator):
                self._draws = np.random.default_rng(seed)
            else:
                self._draws = generator(seed, "policy")

    @_alone
    def choose(self, contexts: Any = None) -> int:
        """Index of the row of ``contexts`` (M, d) to play; M may differ from round to round."""
        if self._waiting:
            raise RuntimeError(
                f"choose: round {self.round} still waits for its reward; call learn(reward), or "
                "skip() to go on without it"
            )
        X = self._decision_set(contexts)
        k = self.round + 1
        levels = self.policy.levels(self.dim, k)
        self._ridge.grow(levels)
        planned = self._planned(k)
        if planned is not None:
            arm, level = planned, 1
            view = self._view(X)
        else:
            if k - 1 == len(self._plan) > 0 and self.arms is not None:
                self._flag = self.policy.judge(self.arms, self._counts, self._totals)
            view = self._view(X)
            draws = () if self._draws is None else (self._draws.standard_normal(len(X)),)
            choose: Any = self.policy.choose
            chosen, at = choose(k, view, *draws)
            arm, level = one_decision(self.policy, chosen, at, len(X))
        self.round, self._waiting = k, True
        self._x = np.array(X[arm])
        self.info = Info(k, arm, self._width(view, arm, level or levels), level, level > 0)
        return arm

    @_alone
    def learn(self, reward: float) -> None:
        """The reward of the round just played; a round that was not selected teaches nothing."""
        if not self._waiting or self.info is None:
            raise RuntimeError("learn: no decision waits for a reward; call choose(contexts) first")
        r = real("reward", reward)
        self._waiting = False
        if not self.info.selected:
            return
        if self.policy.ridge:
            x, paid = self._x, r
            if self.policy.weighs:  # weight w is the observation √w r of the arm √w x
                half = math.sqrt(self.policy.weight(np.asarray(self.info.width)))
                x, paid = half * x, half * r
            self._ridge.learn(self.info.level - 1, x, paid)
        row = self.info.arm if self.arms is not None else self._row()
        if row is not None:
            self._counts[row] += 1.0
            self._totals[row] += r

    @_alone
    def skip(self) -> None:
        """Go on without the reward of the round just played: nothing is learnt from it."""
        if not self._waiting:
            raise RuntimeError("skip: no decision waits for a reward")
        self._waiting = False

    @_alone
    def retract(self) -> None:
        """Take the last decision back, as if the round had not been: its number is used again."""
        if not self._waiting:
            raise RuntimeError("retract: no decision waits for a reward")
        self.round, self._waiting, self.info = self.round - 1, False, None

    def __repr__(self) -> str:
        rounds = f"{self.round:,} round{'s' * (self.round != 1)}"
        waiting = ", waits for a reward" if self._waiting else ""
        return f"Agent({self.policy!r}, dim={self.dim}, {rounds}{waiting})"

    # ---- what it believes

    @property
    def theta(self) -> np.ndarray:
        """Estimate of θ: (d,), or (S, d) for a policy with S levels."""
        self._regression("theta")
        return self._ridge.theta.copy() if self.policy.layered else self._ridge.theta[0].copy()

    def means(self, contexts: Any = None) -> np.ndarray:
        r"""Means :math:`x^\top\theta` of the rows of contexts (M, d): (M,) or, by level, (S, M)."""
        self._regression("means")
        return self._posterior(self._decision_set(contexts))[0]

    def widths(self, contexts: Any = None) -> np.ndarray:
        r"""Widths :math:`\|x\|_{U^{-1}}` of the rows of contexts (M, d): (M,), by level (S, M)."""
        self._regression("widths")
        return np.sqrt(np.maximum(self._posterior(self._decision_set(contexts))[1], 0.0))

    def _regression(self, asked: str) -> None:
        if not self.policy.ridge:
            raise TypeError(f"{asked}: {type(self.policy).__name__} keeps no regression")

    def __getstate__(self) -> dict[str, Any]:
        """For copies: all but the lock, which every agent has for itself."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()

    @property
    def drift(self) -> float:
        """Largest error of the kept inverse that a rebuild found."""
        return self._ridge.drift

    # ---- inside

    def _decision_set(self, contexts: Any) -> np.ndarray:
        if contexts is None:
            if self.arms is None:
                raise ValueError("contexts: expected an array (M, d); this agent has no fixed arms")
            return self.arms
        if isinstance(contexts, Sequence) and len(contexts) == 0:
            raise ValueError("contexts: the decision set is empty")
        if self.policy.ridge:
            X = points_in_scale("contexts", contexts, self._ridge.lam[0])
        else:
            one_backend(contexts=contexts)
            X = real_array("contexts", contexts, 2)
        if X.shape[1] != self.dim:
            raise ValueError(f"contexts: expected {self.dim} columns, got {X.shape[1]}")
        if self.arms is not None and not np.array_equal(X, self.arms):
            raise ValueError("contexts: this agent was started with fixed arms; they cannot change")
        return X

    def _posterior(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and squared widths of X (M, d): (M,) or, for a policy with levels, (S, M)."""
        mean, var = self._ridge.at(X)
        return (mean, var) if self.policy.layered else (mean[0], var[0])

    def _planned(self, k: int) -> int | None:
        """The arm that the opening or the current phase has for round k; None if there is none."""
        if self._phase is None:
            return int(self._plan[k - 1]) if k - 1 < len(self._plan) else None
        policy: Any = self.policy
        if self._counts.sum() == self._phase.plays.sum():  # a phase counts for itself alone
            self._phase = policy.next_phase(self.arms, self._phase, self._totals)
            self._counts, self._totals = np.zeros((2, len(self._counts)))
        return int(self._phase.arm(int(self._counts.sum())))

    def _view(self, X: np.ndarray) -> View:
        """View on the decision set; on changing sets, a policy that asks for counts and covariances
        gets those with the points learnt from.
        """
        needs, flag = self.policy.needs, np.asarray(self._flag)
        mean = var = counts = totals = cov = None
        if self.policy.ridge:
            mean, var = self._posterior(X)
        if "counts" in needs:
            counts, totals = self._counts.copy(), self._totals.copy()
        if "cov" in needs:
            learnt = self.arms is None and "counts" in needs
            other = self._history[: len(self._points)] if learnt else X
            cov = X @ self._ridge.inverse[0] @ other.T
        return View(mean, var, self.dim, counts, totals, cov, flag)

    def _row(self) -> int | None:
        """Where plays of the current point are counted, None if nobody asks."""
        if not {"cov", "counts"} <= self.policy.needs:
            return None
        row = self._points.setdefault(self._x.tobytes(), len(self._points))
        if row == len(self._counts):
            self._counts, self._totals = np.append(self._counts, 0.0), np.append(self._totals, 0.0)
            if row == len(self._history):
                self._history = np.concatenate([self._history, np.zeros((row + 8, self.dim))])
            self._history[row] = self._x
        return row

    def _width(self, view: View, arm: int, level: int) -> float:
        if view.var is None:
            return math.nan
        var = view.var if view.var.ndim == 1 else view.var[level - 1]
        return math.sqrt(max(float(var[arm]), 0.0))

    # ---- on disk

    @_alone
    def save(self, file: str | Path | IO[bytes]) -> None:
        """Write the agent to a file (npz, no pickle); :func:`banditlib.load` continues it bit for
        bit. A file that was there is replaced whole, or not at all.
        """
        type(self).write_file(self, file)


Policy.agent_class = Agent
