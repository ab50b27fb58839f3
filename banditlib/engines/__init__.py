"""How runs are computed on fixed arms, pools and changing sets: as the plain loops decide."""

ENGINE_NUMBERS = {("SupLinUCB", "arms"): 2}
"""Raised when the decisions of a policy on a kind of problem may change, and only then.

SupLinUCB on fixed arms is at 2: before, lanes at rest slept through the end of an epoch.
"""


def engine_number(policy: str, kind: str) -> int:
    """Number of the engine that plays ``policy`` (a class name) on "arms", "pool" or "contexts"."""
    return ENGINE_NUMBERS.get((policy, kind), 1)
