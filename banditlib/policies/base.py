"""What every policy is: parameters, and one pure function ``choose``."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, fields
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from banditlib.backend import Array
from banditlib.ridge import View

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from banditlib.agent import Agent


@dataclass(frozen=True)
class Policy:
    """Base of all policies: a frozen dataclass whose fields are its parameters.

    A subclass defines ``choose(k, view) -> (arm, level)``: k is the round number from 1 on (an
    int, or an array that broadcasts over the view's leading axes), level 0 plays without learning,
    level l >= 1 learns at level l. ``choose`` must be pure, must not touch its arguments, and must
    broadcast over leading axes; parameters named in ``per_lane`` may then be arrays with one value
    per lane.

    Class attributes
    ----------------
    per_lane : names of the fields that may differ from lane to lane
    needs : which extras the view must carry, among "counts" (with totals), "cov" and "draws"
    ridge : False for a policy that reads no means and widths
    fixed_arms : True for a policy that makes sense on fixed arms only
    """

    per_lane: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset()
    ridge: ClassVar[bool] = True
    fixed_arms: ClassVar[bool] = False

    def choose(self, k: Any, view: View) -> tuple[Array, Array]:
        """Arm and level for round k; see the class."""
        raise NotImplementedError(f"{type(self).__name__} does not define choose(k, view)")

    def levels(self, dim: int, rounds: int) -> int:
        """How many regressions the policy keeps over ``rounds`` rounds."""
        return 1

    def epochs(self, dim: int, rounds: int) -> tuple[int, ...] | None:
        """Last rounds of the stretches in which ``choose`` does not depend on k; None if it always
        may.

        Inside a stretch, on fixed arms, a round that learns nothing repeats itself for ever.
        """
        return None

    def plan(self, points: np.ndarray) -> np.ndarray:
        """Arms to play in the opening, before ``choose`` is asked: indices into points (N, d)."""
        return np.zeros(0, dtype=np.int64)

    def judge(self, points: np.ndarray, counts: np.ndarray, totals: np.ndarray) -> bool:
        """Verdict after the opening, from plays and reward sums (N,); it becomes ``view.flag``."""
        return False

    def lane_values(self, name: str, policies: Sequence[Any], levels: int) -> np.ndarray:
        """One parameter of many policies of this kind, as an array (lanes,)."""
        return np.array([getattr(policy, name) for policy in policies], dtype=float)

    @property
    def regulariser(self) -> float:
        """λ of the ridge regression."""
        return getattr(self, "lam", 1.0)

    @property
    def params(self) -> dict[str, Any]:
        """Fields by name, as they label results."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def start(self, dim: int, arms: Any = None, seed: int | None = None) -> Agent:
        """A live agent that takes one decision at a time; see :class:`banditlib.agent.Agent`."""
        from banditlib.agent import Agent

        return Agent(self, dim, arms=arms, seed=seed)


def number(
    name: str, value: Any, low: float = -math.inf, strict: bool = False, integer: bool = False
) -> None:
    """Check one parameter: a finite real (or integer) number, at least (or above) ``low``."""
    kinds = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    what = "an integer" if integer else "a number"
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise TypeError(f"{name}: expected {what}, got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{name}: expected a finite number, got {value!r}")
    if value < low or (strict and value == low):
        raise ValueError(
            f"{name}: expected {what} {'>' if strict else '>='} {low:g}, got {value!r}"
        )


def grid(policy: Callable[..., Policy], **values: Sequence[Any]) -> list[Policy]:
    """All combinations of parameters as a list of policies, the last name varying fastest.

    >>> [p.beta for p in grid(DSOFUL, Gamma=[0.0], beta=[1, 3], lam=[1])]   # doctest: +SKIP
    [1, 3]
    """
    if not callable(policy):
        raise TypeError(f"policy: expected a policy class, got {policy!r}")
    axes = [v if isinstance(v, (list, tuple, range, np.ndarray)) else [v] for v in values.values()]
    for name, axis in zip(values, axes, strict=True):
        if len(axis) == 0:
            raise ValueError(f"{name}: expected at least one value")
    axes = [[x.item() if isinstance(x, np.generic) else x for x in axis] for axis in axes]
    return [policy(**dict(zip(values, combo, strict=True))) for combo in product(*axes)]


def stack(policies: Sequence[Policy], levels: int = 1) -> Policy:
    """One policy whose per-lane parameters are arrays (lanes,): one ``choose`` serves them all."""
    first = policies[0]
    for other in policies:
        if type(other) is not type(first) or shared(other) != shared(first):
            raise ValueError("policies: only policies of one kind can share a stack")
    values = {name: first.lane_values(name, policies, levels) for name in first.per_lane}
    return with_lanes(first, values)


def with_lanes(policy: Policy, values: dict[str, Array]) -> Policy:
    """A copy with arrays for parameters; they were checked one by one before."""
    lanes = copy.copy(policy)
    for name, value in values.items():
        object.__setattr__(lanes, name, value)
    return lanes


def shared(policy: Policy) -> tuple[Any, ...]:
    """The parameters that must agree inside a stack."""
    return tuple((n, v) for n, v in policy.params.items() if n not in policy.per_lane)
