"""Misspecified linear bandits on many lanes at once: DS-OFUL, SupLinUCB and their rivals."""

from types import ModuleType

from banditlib import problems
from banditlib.agent import Agent, load
from banditlib.policies import DSOFUL, LSW, OFUL, UCB, Policy, RobustLinear, SupLinUCB, grid
from banditlib.ridge import View
from banditlib.simulate import Run, simulate

__version__ = "0.1.0"

__all__ = [
    "DSOFUL", "LSW", "OFUL", "UCB", "Agent", "Policy", "RobustLinear", "Run", "SupLinUCB", "View",
    "asirra", "grid", "load", "problems", "simulate", "theory",
]  # fmt: skip


_LATER = {"asirra": "banditlib.paper.asirra", "theory": "banditlib.theory"}


def __getattr__(name: str) -> ModuleType:
    """Import ``banditlib.asirra`` and ``banditlib.theory`` on first use."""
    if name in _LATER:
        import importlib

        return importlib.import_module(_LATER[name])
    raise AttributeError(f"module 'banditlib' has no attribute {name!r}")
