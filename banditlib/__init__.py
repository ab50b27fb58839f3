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
    "grid", "load", "problems", "simulate", "theory",
]  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    """Import ``banditlib.theory`` on first use."""
    if name == "theory":
        import importlib

        return importlib.import_module("banditlib.theory")
    raise AttributeError(f"module 'banditlib' has no attribute {name!r}")
