"""Policies as files name them: the class by its name, parameters as JSON can hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditlib import policies
from banditlib.policies import Policy, SupLinUCB

BUILT_IN: dict[str, type[Policy]] = {
    name: kind
    for name, kind in vars(policies).items()
    if isinstance(kind, type) and issubclass(kind, Policy) and kind is not Policy
}
"""Every class of policy that the package has."""

MOST_LEVELS = 64
"""Levels at which a function β(l) is written down."""


def plain_params(policy: Policy) -> dict[str, Any]:
    """Parameters as JSON can hold them: numbers by value, a function of the level by its values."""
    params = dict(policy.params)
    if isinstance(policy, SupLinUCB) and callable(policy.beta):
        params["beta"] = _values(policy)
    return {name: _plain(value) for name, value in params.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    known = (bool, int, float, str, list, tuple, type(None))
    return value if isinstance(value, known) else repr(value)


def _values(policy: SupLinUCB) -> list[float]:
    """β(1), β(2), ... up to the level from which the function has no value."""
    values: list[float] = []
    for level in range(1, MOST_LEVELS + 1):
        try:
            values.append(float(policy.radius(level)))
        except Exception as error:  # the function is the user's, and may stop as it likes
            if not values:
                raise ValueError(f"beta: has no value at level 1 ({error})") from error
            break
    return values
