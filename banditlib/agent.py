"""Live agents: the same policies, one decision at a time, on changing decision sets."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from banditlib.policies import DSOFUL, LSW, UCB, Policy, RobustLinear, SupLinUCB
from banditlib.problems import generator, integer, one_backend, real, real_array
from banditlib.ridge import Ridge, View

FORMAT = 1
"""Version of the files that ``Agent.save`` writes."""

BUILT_IN = {kind.__name__: kind for kind in (DSOFUL, SupLinUCB, LSW, RobustLinear, UCB)}
MOST_LEVELS = 64


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
    seed : for policies that draw random numbers

    Attributes
    ----------
    round : decisions taken so far
    info : what the last decision rested on, None before the first
    """

    def __init__(self, policy: Policy, dim: int, arms: Any = None, seed: int | None = None) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"policy: expected a policy, got {policy!r}")
        self.policy, self.dim = policy, integer("dim", dim, 1)
        self.arms = None if arms is None else real_array("arms", arms, 2)
        if self.arms is not None and self.arms.shape[1] != dim:
            raise ValueError(f"arms: expected {dim} columns, got {self.arms.shape[1]}")
        if policy.fixed_arms and self.arms is None:
            name = type(policy).__name__
            raise ValueError(f"arms: {name} needs fixed arms; give them as start(dim, arms=X)")
        self.round, self._waiting = 0, False
        self.info: Info | None = None
        self._ridge = Ridge(dim, policy.regulariser, 1)
        self._flag = False
        self._plan = policy.plan(self.arms) if self.arms is not None else np.zeros(0, np.int64)
        self._points: dict[bytes, int] = {}  # points learnt from: row in the two arrays below
        self._counts, self._totals = np.zeros(0), np.zeros(0)
        if self.arms is not None:
            self._counts, self._totals = np.zeros(len(self.arms)), np.zeros(len(self.arms))
        self._x = np.zeros(dim)
        if "draws" not in policy.needs:
            self._draws = None
        else:
            fresh = np.random.default_rng()
            self._draws = fresh if seed is None else generator(seed, "policy")

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
        if k - 1 < len(self._plan):
            arm, level = int(self._plan[k - 1]), 1
            view = self._view(X)
        else:
            if k - 1 == len(self._plan) > 0 and self.arms is not None:
                self._flag = self.policy.judge(self.arms, self._counts, self._totals)
            view = self._view(X)
            draws = () if self._draws is None else (self._draws.standard_normal(len(X)),)
            choose: Any = self.policy.choose
            chosen, at = choose(k, view, *draws)
            arm, level = int(chosen), int(at)
        self.round, self._waiting = k, True
        self._x = np.array(X[arm])
        self.info = Info(k, arm, self._width(view, arm, level or levels), level, level > 0)
        return arm

    def learn(self, reward: float) -> None:
        """The reward of the round just played; a round that was not selected teaches nothing."""
        if not self._waiting or self.info is None:
            raise RuntimeError("learn: no decision waits for a reward; call choose(contexts) first")
        r = real("reward", reward)
        self._waiting = False
        if not self.info.selected:
            return
        if self.policy.ridge:
            self._ridge.learn(self._x, r, self.info.level)
        row = self.info.arm if self.arms is not None else self._row()
        if row is not None:
            self._counts[row] += 1.0
            self._totals[row] += r

    def skip(self) -> None:
        """Go on without the reward of the round just played: nothing is learnt from it."""
        if not self._waiting:
            raise RuntimeError("skip: no decision waits for a reward")
        self._waiting = False

    # ---- inside

    def _decision_set(self, contexts: Any) -> np.ndarray:
        if contexts is None:
            if self.arms is None:
                raise ValueError("contexts: expected an array (M, d); this agent has no fixed arms")
            return self.arms
        one_backend(contexts=contexts)
        if isinstance(contexts, Sequence) and len(contexts) == 0:
            raise ValueError("contexts: the decision set is empty")
        X = real_array("contexts", contexts, 2)
        if X.shape[1] != self.dim:
            raise ValueError(f"contexts: expected {self.dim} columns, got {X.shape[1]}")
        if self.arms is not None and not np.array_equal(X, self.arms):
            raise ValueError("contexts: this agent was started with fixed arms; they cannot change")
        return X

    def _view(self, X: np.ndarray) -> View:
        """View on the decision set; with covariances and counts, on the points learnt from too.

        Those extra points get mean -∞, so that none of them is chosen.
        """
        needs, flag = self.policy.needs, np.asarray(self._flag)
        counts = totals = cov = None
        shown = len(X)
        if {"cov", "counts"} <= needs and self.arms is None:
            history = np.array([np.frombuffer(key) for key in self._points]).reshape(-1, self.dim)
            X = np.concatenate([X, history])
            counts = np.concatenate([np.zeros(shown), self._counts])
            totals = np.concatenate([np.zeros(shown), self._totals])
        elif "counts" in needs:
            counts, totals = self._counts.copy(), self._totals.copy()
        mean = var = None
        if self.policy.ridge:
            mean, var = self._ridge.at(X, len(self._ridge.b) > 1)
            mean[..., shown:] = -np.inf
        if "cov" in needs:
            cov = X @ self._ridge.inverse[0] @ X.T
        return View(mean, var, self.dim, counts, totals, cov, flag)

    def _row(self) -> int | None:
        """Where plays of the current point are counted, None if nobody asks."""
        if not {"cov", "counts"} <= self.policy.needs:
            return None
        row = self._points.setdefault(self._x.tobytes(), len(self._points))
        if row == len(self._counts):
            self._counts, self._totals = np.append(self._counts, 0.0), np.append(self._totals, 0.0)
        return row

    def _width(self, view: View, arm: int, level: int) -> float:
        if view.var is None:
            return math.nan
        var = view.var if view.var.ndim == 1 else view.var[level - 1]
        return math.sqrt(max(float(var[arm]), 0.0))

    # ---- on disk

    def save(self, file: str | Path | IO[bytes]) -> None:
        """Write the agent to a file (npz, no pickle); :func:`load` continues it bit for bit."""
        header = {
            "format": FORMAT,
            "policy": type(self.policy).__name__,
            "params": _plain_params(self.policy),
            "dim": self.dim,
            "round": self.round,
            "waiting": self._waiting,
            "flag": self._flag,
            "info": None if self.info is None else list(self.info),
            "draws": None if self._draws is None else self._draws.bit_generator.state,
        }
        arrays = {f"ridge_{name}": getattr(self._ridge, name) for name in Ridge.FIELDS}
        arrays |= {"counts": self._counts, "totals": self._totals, "x": self._x}
        arrays["points"] = np.array([np.frombuffer(key) for key in self._points]).reshape(
            -1, self.dim
        )
        if self.arms is not None:
            arrays["arms"] = self.arms
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        if isinstance(file, (str, Path)):
            part = Path(f"{file}.part")
            with part.open("wb") as stream:
                np.savez(stream, **arrays)
            os.replace(part, file)
        else:
            np.savez(file, **arrays)


def load(file: str | Path | IO[bytes], policy: Policy | None = None) -> Agent:
    """Read an agent that ``save`` wrote; a policy of your own class has to be given again."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes().decode())
        kind = header["policy"]
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"file: {file} is not a saved agent ({error})") from error
    if header["format"] != FORMAT:
        raise ValueError(f"file: format {header['format']} is unknown here, expected {FORMAT}")
    if policy is None:
        if kind not in BUILT_IN:
            raise ValueError(
                f"policy: {kind} is not built in; give it, load(file, policy={kind}())"
            )
        policy = BUILT_IN[kind](**header["params"])
    elif type(policy).__name__ != kind:
        raise ValueError(f"policy: the file holds {kind}, got {type(policy).__name__}")
    agent = Agent(policy, header["dim"], arms=arrays.get("arms"), seed=0)
    for name in Ridge.FIELDS:
        setattr(agent._ridge, name, arrays[f"ridge_{name}"])
    agent._counts, agent._totals, agent._x = arrays["counts"], arrays["totals"], arrays["x"]
    agent._points = {point.tobytes(): i for i, point in enumerate(arrays["points"])}
    agent.round, agent._waiting, agent._flag = header["round"], header["waiting"], header["flag"]
    agent.info = None if header["info"] is None else Info(*header["info"])
    if agent._draws is not None:
        agent._draws.bit_generator.state = header["draws"]
    return agent


def _plain_params(policy: Policy) -> dict[str, Any]:
    """Parameters as JSON can hold them: a callable radius becomes its values by level."""
    params = dict(policy.params)
    if isinstance(policy, SupLinUCB) and callable(policy.beta):
        params["beta"] = [policy.radius(level) for level in range(1, MOST_LEVELS + 1)]
    return {
        name: value
        if isinstance(value, (int, float, str, list, tuple, type(None)))
        else repr(value)
        for name, value in params.items()
    }
