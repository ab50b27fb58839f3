"""Misspecified linear bandits on many lanes at once: DS-OFUL, SupLinUCB and their rivals."""

from types import ModuleType

from banditlib import problems
from banditlib.agent import Agent
from banditlib.agent_file import load
from banditlib.diagnose import diagnose
from banditlib.policies import (
    DSOFUL,
    LSW,
    OFUL,
    UCB,
    CertLinUCB,
    LayeredDSOFUL,
    LinearTS,
    PhasedElimination,
    Policy,
    RobustLinear,
    SupLinUCB,
    WeightedOFUL,
    grid,
)
from banditlib.replay import Log, replay
from banditlib.run import Run
from banditlib.simulate import simulate
from banditlib.view import View

__version__ = "0.2.0.dev0"

__all__ = [
    "DSOFUL", "LSW", "OFUL", "UCB", "Agent", "CertLinUCB", "LayeredDSOFUL", "LinearTS", "Log",
    "PhasedElimination", "Policy", "RobustLinear", "Run", "SupLinUCB", "View", "WeightedOFUL",
    "diagnose", "grid", "load", "problems", "replay", "simulate", "theory",
]  # fmt: skip

_ELSEWHERE = {
    "LinUCB": "OFUL(beta, lam)", "LinUCBLearner": "OFUL(beta, lam)",
    "LinTS": "LinearTS(scale, lam)", "LinTSLearner": "LinearTS(scale, lam)",
    "ThompsonSampling": "LinearTS(scale, lam)", "LinGreedy": "OFUL(beta=0, lam)",
    "UCB1": "UCB(alpha)", "MAB": "policy.start(dim), a live agent",
    "Simulator": "simulate(problems, policies, rounds)",
    "Experiment": "simulate(problems, policies, rounds)",
    "evaluateRejectionSampling": "replay(log, policies)", "evaluateNCIS": "replay(log, policies)",
}  # fmt: skip
"""Names in other libraries, and what comes closest here."""


def __dir__() -> list[str]:
    """All public names, ``theory`` among them, which is imported on first use."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> ModuleType:
    if name == "theory":
        import banditlib.theory

        return banditlib.theory
    hint = f"; here it is {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
    raise AttributeError(f"module 'banditlib' has no attribute {name!r}{hint}")
