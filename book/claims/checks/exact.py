"""Exact tools of the checks: polynomials, rationals, and balls that enclose a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from flint import arb, fmpq_mpoly_ctx


def gens(names: str) -> Any:
    """Polynomial variables over the rationals."""
    return fmpq_mpoly_ctx.get(names.split(), "lex").gens()


def dot(u: Iterable[Any], v: Iterable[Any]) -> Any:
    return sum(a * b for a, b in zip(u, v, strict=True))


def positive(f: Callable[[arb], arb], lo: float, hi: float, finest: float = 2.0**-20) -> bool:
    """Whether ball arithmetic shows f > 0 on all of [lo, hi], halving until every ball is clear."""
    todo = [(lo, hi)]
    while todo:
        a, b = todo.pop()
        if not f(arb(a).union(arb(b))) > 0:
            if b - a < finest:
                return False
            todo += [(a, (a + b) / 2), ((a + b) / 2, b)]
    return True


def ball(x: float | Fraction) -> arb:
    """The decimal number that a float prints as, or a fraction, enclosed."""
    if isinstance(x, Fraction):
        return arb(x.numerator) / arb(x.denominator)
    return arb(repr(float(x)))


def log(x: Any) -> Any:
    """The logarithm of a number or of a ball."""
    return x.log() if isinstance(x, arb) else math.log(x)


def sqrt(x: Any) -> Any:
    return x.sqrt() if isinstance(x, arb) else math.sqrt(x)


def exp(x: Any) -> Any:
    return x.exp() if isinstance(x, arb) else math.exp(x)


def hardest(ratios: Sequence[float]) -> float:
    """Slack of a bound from what was attained in its units: 1 over the largest."""
    return 1 / max(ratios)
