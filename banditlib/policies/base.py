"""What every policy is: parameters, and one pure function ``choose``."""

from __future__ import annotations

import copy
import operator
from dataclasses import dataclass, fields
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from banditlib.backend import Array
from banditlib.checks import require
from banditlib.intervals import Certificate, Enclosure
from banditlib.view import View

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
    certifies : True for a policy that can also decide on intervals, with ``certify``
    weighs : True for a policy that learns with the ``weight`` of the arm's width
    phased : True for a policy that plans phases, with ``first_phase`` and ``next_phase``
    """

    per_lane: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[frozenset[str]] = frozenset()
    ridge: ClassVar[bool] = True
    fixed_arms: ClassVar[bool] = False
    certifies: ClassVar[bool] = False
    weighs: ClassVar[bool] = False
    phased: ClassVar[bool] = False
    agent_class: ClassVar[type[Agent]]  # set by ``banditlib.agent``, which stands above

    def choose(self, k: Any, view: View) -> tuple[Array, Array]:
        """Arm and level for round k; see the class."""
        raise NotImplementedError(f"{type(self).__name__} does not define choose(k, view)")

    def certify(self, k: Array, box: Enclosure, dim: int) -> Certificate:
        """Arm and level of rounds k (n,) for every mean and width inside the box."""
        raise NotImplementedError(f"{type(self).__name__} has no rule on intervals")

    @property
    def layered(self) -> bool:
        """Whether the view has an axis of levels: so for every policy that defines ``levels``."""
        return type(self).levels is not Policy.levels

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
        """Answer after the opening, from plays and reward sums (N,); it becomes ``view.flag``."""
        return False

    def weight(self, width: Array) -> Array:
        """Weight in the regression of an observation whose arm had this width; for ``weighs``."""
        raise NotImplementedError(f"{type(self).__name__} learns every round whole")

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
        return self.agent_class(self, dim, arms=arms, seed=seed)


def one_decision(policy: Policy, arm: Any, level: Any, count: int) -> tuple[int, int]:
    """What ``choose`` returned for one lane, as Python integers; refuse what is not a decision."""
    try:
        one, at = operator.index(arm), operator.index(level)
    except TypeError as error:
        raise TypeError(
            f"{type(policy).__name__}.choose: expected an arm and a level, two integers, got "
            f"{arm!r} and {level!r}"
        ) from error
    if not 0 <= one < count or at < 0:
        raise ValueError(
            f"{type(policy).__name__}.choose: expected an arm from 0 to {count - 1} and a level "
            f">= 0, got {one} and {at}"
        )
    return one, at


def refuse_shape(policy: Policy, arm: Any, level: Any, lanes: int) -> None:
    """Refuse what ``choose`` returned for many lanes, where it is not one entry for each."""
    got = [f"{getattr(value, 'shape', type(value).__name__)}" for value in (arm, level)]
    raise TypeError(
        f"{type(policy).__name__}.choose: expected an arm and a level for each of {lanes} lanes, "
        f"two integer arrays of shape ({lanes},), got {got[0]} and {got[1]}"
    )


def grid(policy: Callable[..., Policy], **values: Sequence[Any]) -> list[Policy]:
    """All combinations of parameters as a list of policies, the last name varying fastest.

    >>> [p.beta for p in grid(DSOFUL, Gamma=[0.0], beta=[1, 3], lam=[1])]   # doctest: +SKIP
    [1, 3]
    """
    require(callable(policy), "policy", "a policy class", policy, TypeError)
    axes = [
        v if isinstance(v, (list, tuple, range)) or (isinstance(v, np.ndarray) and v.ndim) else [v]
        for v in values.values()
    ]
    for name, axis in zip(values, axes, strict=True):
        require(len(axis), name, "at least one value")
    axes = [[x.item() if isinstance(x, np.generic) else x for x in axis] for axis in axes]
    try:
        return [policy(**dict(zip(values, combo, strict=True))) for combo in product(*axes)]
    except TypeError as error:
        if "argument" not in str(error):
            raise
        raise TypeError(f"policy: {policy!r} does not take {sorted(values)} ({error})") from None


def stack(policies: Sequence[Policy], levels: int = 1) -> Policy:
    """One policy whose per-lane parameters are arrays (lanes,): one ``choose`` serves them all."""
    first = policies[0]
    for other in policies:
        if type(other) is not type(first) or shared(other) != shared(first):
            raise ValueError("policies: only policies of one kind can share a stack")
    values = {name: first.lane_values(name, policies, levels) for name in first.per_lane}
    return with_lanes(first, values)


def alike(policies: Sequence[Policy], levels: Sequence[int]) -> list[list[int]]:
    """Which policies can share a stack: one class, equal shared parameters, as many levels."""
    kinds: dict[Any, list[int]] = {}
    for q, policy in enumerate(policies):
        kinds.setdefault((type(policy), shared(policy), levels[q]), []).append(q)
    return list(kinds.values())


def with_lanes(policy: Policy, values: dict[str, Array]) -> Policy:
    """A copy with arrays for parameters; they were checked one by one before."""
    lanes = copy.copy(policy)
    for name, value in values.items():
        object.__setattr__(lanes, name, value)
    return lanes


def shared(policy: Policy) -> tuple[Any, ...]:
    """The parameters that must agree inside a stack."""
    return tuple((n, v) for n, v in policy.params.items() if n not in policy.per_lane)
