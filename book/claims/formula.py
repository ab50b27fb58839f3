"""What a check states, and what it found.

A check compares what happens with a formula. Formulas are plain functions: those of
`banditlib.theory`, and those beside the checks that carry the mark `@formula(...)`. The mark says
on which side of the formula the truth lies, so that a mutant can be told from a weaker statement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

Side = Literal["upper", "lower", "exact"]
"""upper: what happens is at most the formula; lower: at least; exact: a change in it is false."""

F = TypeVar("F", bound=Callable[..., Any])

FORMULAS: dict[str, Callable[..., Any]] = {}
SIDES: dict[str, Side] = {}
ALGORITHMS: set[str] = set()
TOOLS: set[str] = set()


def name_of(function: Callable[..., Any]) -> str:
    """``known_gap.third_line`` for a function of claims/checks/known_gap.py."""
    return f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"


def formula(side: Side = "exact", algorithm: bool = False, tool: bool = False) -> Callable[[F], F]:
    """Mark a function as part of a statement: it is mutated, and the check must notice.

    The calls of an `algorithm` are not recorded: whatever changes in it must be rejected. A `tool`
    is mutated only for checks that are `about` it; others use it to make their instances.
    """

    def mark(function: F) -> F:
        FORMULAS[name_of(function)] = function
        SIDES[name_of(function)] = side
        if algorithm:
            ALGORITHMS.add(name_of(function))
        if tool:
            TOOLS.add(name_of(function))
        return function

    return mark


def about(*names: str) -> Callable[[F], F]:
    """Mark a check as one about the named tools: their mutants are its mutants too."""

    def mark(check: F) -> F:
        check.about = names  # type: ignore[attr-defined]
        return check

    return mark


# The formulas of banditlib.theory that are bounds or conditions; all others are exact.
# A condition ζ ≤ ζ_max is the weaker the smaller ζ_max is: its side is "lower".
THEORY: Mapping[str, Side] = {
    "potential_bound": "upper",
    "potential_bound_he": "upper",
    "selections": "upper",
    "selections_sharp": "upper",
    "selections_root": "upper",
    "radius": "upper",
    "radius_tight": "upper",
    "Known.selections": "upper",
    "Known.selections_sharp": "upper",
    "Known.bound_cauchy_schwarz": "upper",
    "Known.bound_gap": "upper",
    "Known.bound_sharp": "upper",
    "Known.zeta_max": "lower",
    "Known.aux1_slack": "upper",
    "skip_regret": "upper",
    "Unknown.zeta_max": "lower",
    "Unknown.selections": "upper",
    "Unknown.bound": "upper",
    "Unknown.bound_printed": "upper",
    "Unknown.bound_later": "upper",
    "Unknown.bound_repaired": "upper",
    "Unknown.bound_repaired_loose": "upper",
    "Layered.survivor": "upper",
    "Layered.rest": "upper",
    "Layered.zeta_max": "lower",
    "Layered.bound": "upper",
    "lower_eps": "upper",
    "lower_zeta": "upper",
    "lower_first_printed": "lower",
    "lower_first_repaired": "lower",
    "lower_first_limit": "lower",
    "lower_second_repaired": "lower",
}


# What the paper chooses rather than claims: a theorem speaks of its Γ, β and l_Δ as given. They are
# mutated for the checks that are about them, which compare them with their formulas.
PARAMETERS = (
    "Known.log_LB",
    "Known.lam",
    "Known.iota1",
    "Known.Gamma",
    "Known.iota2",
    "Known.iota3",
    "Known.beta",
    "Known._log1p_selections",
    "Known._cauchy_schwarz",
    "Known.bound_printed",
    "SupBeta.lam",
    "SupBeta.iota1",
    "SupBeta.iota2",
    "SupBeta.__call__",
    "level",
    "Unknown.l_Delta",
    "Unknown.iota1",
    "Unknown.iota2",
    "Unknown.beta",
    "_log1p_exp",
)
TOOLS.update(f"theory.{name}" for name in PARAMETERS)


OVERFLOW = "a branch for products that overflow, which the package's own tests compare"
GENERAL: Mapping[str, str] = {
    "unseen theory._log1p_scaled: np.log(n) +*": OVERFLOW,
    "unseen theory._log1p_scaled: 2 → * (2)": OVERFLOW,
}
"""Reasons that hold for every row."""


@dataclass(frozen=True)
class Found:
    """What a check found besides that the statement held.

    `slack` says by what factor the formula could have been sharper where it was tried hardest;
    1 means attained. Without a name it is that of the row's only bound. `power` says which
    change a high-probability check would have seen.
    """

    slack: float | Mapping[str, float] | None = None
    where: str = ""
    power: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)

    def slack_of(self, name: str) -> float:
        if isinstance(self.slack, Mapping):
            return next((s for key, s in self.slack.items() if name.endswith(key)), 1.0)
        return 1.0 if self.slack is None else self.slack

    @property
    def shown(self) -> float | None:
        """The slack to print: the first one."""
        if isinstance(self.slack, Mapping):
            return next(iter(self.slack.values()), None)
        return self.slack


def together(*parts: Found, where: str = "", power: str = "") -> Found:
    """What several checks found, with the slack of each formula; the first comes first."""
    slack: dict[str, float] = {}
    for part in parts:
        for name, value in part.slack.items() if isinstance(part.slack, Mapping) else ():
            slack.setdefault(name, value)
    first = parts[0]
    return Found(slack or None, where or first.where, power or first.power)


ATTAINED = Found(slack=1.0)
"""The formula is attained: an identity, or a bound with an equality case that was tried."""
