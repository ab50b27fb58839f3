r"""Every constant and bound of the paper, as printed and as repaired, under the paper's names.

Three theorems live here. :func:`known_gap` collects the constants of the theorem on DS-OFUL
(``thm:main``), :func:`unknown_gap` those of the theorem on SupLinUCB (``thm:main-sup``), and the
``lower_*`` functions those of the lower bound (``thm:lower``). Plain functions underneath give the
lemmas that the theorems share. All of it is scalar arithmetic: nothing here looks at data.

Products such as :math:`L^2B^2\Gamma^{-2}` are formed as sums of logarithms, so that ``L``, ``B``
and :math:`1/\delta` may be as large as their logarithms allow: :class:`Known` stores
:math:`\log L`, :math:`\log B` and :math:`\log(1/\delta)` and can be built from them directly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

import numpy as np

from banditlib.checks import is_number

__all__ = [
    "Known", "Layered", "SupBeta", "Unknown", "known_gap", "largest_Gamma_tight", "layered",
    "level", "lower_eps", "lower_first_limit", "lower_first_printed", "lower_first_repaired",
    "lower_second_printed", "lower_second_repaired", "lower_zeta", "lower_zeta_scaled",
    "potential_bound", "potential_bound_he", "radius", "radius_tight", "selections",
    "selections_root", "selections_sharp", "skip_regret", "unknown_gap", "zeta_max_tight",
]  # fmt: skip

Number = float | np.ndarray  # a scalar, or an array where a curve is wanted


LARGEST = 1e50
"""No argument may be larger, d and the number of arms excepted, which end at 10¹²: up to there
nothing that is computed here leaves the range of floating-point numbers."""

SMALLEST = 1 / LARGEST
"""No argument that must be positive may be smaller."""

MOST_LEVELS = 2000
"""A search over levels ends here."""

_RULES: dict[str, tuple[Callable[[float], bool], str]] = {
    "d": (lambda v: 1 <= v <= 1e12 and v == int(v), "an integer from 1 to 10**12"),
    "arms": (lambda v: 2 <= v <= 1e12 and v == int(v), "an integer from 2 to 10**12"),
    "n": (lambda v: 0 <= v <= LARGEST**6, "a number >= 0"),
    "K": (lambda v: 1 <= v <= LARGEST, f"a number from 1 to {LARGEST:g}"),
    "Delta": (
        lambda v: SMALLEST <= v <= 1,
        f"in (0, 1], because rewards lie in [0, 1], and at least {SMALLEST:g}",
    ),
    "R": (lambda v: 0 <= v <= LARGEST, f"a number >= 0 and at most {LARGEST:g}"),
    "L": (lambda v: 1 <= v <= 1e300, "a number >= 1, as the paper assumes, and at most 1e+300"),
    "B": (lambda v: 1 <= v <= 1e300, "a number >= 1, as the paper assumes, and at most 1e+300"),
    "lam": (lambda v: 1e-300 <= v <= 1e300, "a number > 0, from 1e-300 to 1e+300"),
    "delta": (lambda v: 1e-300 <= v < 1, "in (0, 1), and at least 1e-300"),
    "zeta": (lambda v: 0 <= v <= LARGEST, f"a number >= 0 and at most {LARGEST:g}"),
    "beta": (lambda v: 0 <= v <= LARGEST**2, "a number >= 0"),
    "Gamma": (lambda v: SMALLEST**2 <= v <= 1, f"in (0, 1], and at least {SMALLEST**2:g}"),
    "C": (lambda v: SMALLEST <= v <= LARGEST, f"a number > 0, from {SMALLEST:g} to {LARGEST:g}"),
    "alpha": (lambda v: 0 <= v < 1, "in [0, 1)"),
    "base": (lambda v: v in (2, math.e), "2 or math.e"),
    "l": (lambda v: 0 <= v <= 400, "a level from 0 to 400"),
    "c": (lambda v: 0 < v <= LARGEST, f"a number > 0 and at most {LARGEST:g}"),
    "log_L": (lambda v: 0 <= v <= LARGEST, f"a number from 0 (L = 1) to {LARGEST:g}"),
    "log_B": (lambda v: 0 <= v <= LARGEST, f"a number from 0 (B = 1) to {LARGEST:g}"),
    "log_inv_delta": (lambda v: 0 < v <= LARGEST, f"a number > 0 and at most {LARGEST:g}"),
}


def _require(ok: bool, name: str, expected: str, value: object) -> None:
    """Raise a ValueError that names the argument and says what was expected."""
    if not ok:
        raise ValueError(f"{name} must be {expected}, got {value!r}")


def _check(**given: object) -> None:
    """Check arguments by the rules of their names; each is one number."""
    for name, value in given.items():
        if not is_number(value):
            raise TypeError(f"{name} must be {_RULES[name][1]}, got {value!r}")
        _obey(name, value, value)


def _check_curve(**given: object) -> None:
    """The same for arguments that may be arrays, where a curve is wanted."""
    for name, value in given.items():
        if isinstance(value, np.ma.MaskedArray) or not isinstance(value, (list, tuple, np.ndarray)):
            _check(**{name: value})
            continue
        try:
            numbers = np.asarray(value)
        except ValueError:  # rows of different lengths
            numbers = np.zeros(0, dtype=object)
        if numbers.dtype.kind not in "iuf":
            raise TypeError(f"{name} must be {_RULES[name][1]}, or an array, got {value!r}")
        for number in numbers.ravel().tolist():
            _obey(name, number, value)


def _obey(name: str, number: Any, given: object) -> None:
    holds, expected = _RULES[name]
    _require(bool(abs(number) < math.inf and holds(number)), name, expected, given)


def _check_flag(**given: object) -> None:
    """Check arguments that are True or False."""
    for name, value in given.items():
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be True or False, got {value!r}")


Function = TypeVar("Function", bound=Callable[..., Any])


def _plain(function: Function) -> Function:
    """Hand numpy's scalars on as Python's: small integer types would wrap around in products."""

    @wraps(function)
    def called(*args: Any, **more: Any) -> Any:
        plain = [a.item() if isinstance(a, np.generic) else a for a in args]
        named = {n: a.item() if isinstance(a, np.generic) else a for n, a in more.items()}
        return function(*plain, **named)

    return cast(Function, called)


def _make_plain(constants: Any) -> None:
    """The same for the fields of a frozen dataclass."""
    for name, value in vars(constants).items():
        if isinstance(value, np.generic):
            object.__setattr__(constants, name, value.item())


def _log1p_exp(x: Number) -> Number:
    """log(1 + e^x) without overflow."""
    return np.logaddexp(0.0, x)


def _log1p_scaled(n: Number, divisor: float, *scales: float) -> Number:
    r""":math:`\log(1+n\,s^2/q)` with the product s, also where the quotient is too large."""
    n = np.asarray(n, dtype=float)[()]
    with np.errstate(over="ignore", divide="ignore"):
        quotient = n * np.prod(scales, dtype=float) ** 2 / divisor
        log = np.log(n) + 2 * sum(map(math.log, scales)) - math.log(divisor)
        return np.where(np.isfinite(quotient), np.log1p(quotient), _log1p_exp(log))[()]


# --- Finitely many selections ----------------------------------------------------------------


@_plain
def potential_bound(n: Number, d: int, L: float = 1.0, lam: float = 1.0) -> Number:
    r"""Elliptical potential (``lm:11``).

    .. math:: \sum_{i\le n}\min\{1,\|\phi_i\|^2_{U_{i-1}^{-1}}\}\le 2d\log(1+nL^2/(d\lambda))
    """
    _check_curve(n=n)
    _check(d=d, lam=lam, L=L)
    return 2 * d * _log1p_scaled(n, d * lam, L)


@_plain
def potential_bound_he(n: Number, d: int, L: float = 1.0, lam: float = 1.0) -> Number:
    r"""Right-hand side printed in ``lm:he``, :math:`2d\log(1+nL^2/\lambda)`; it needs the min."""
    _check_curve(n=n)
    _check(d=d, lam=lam, L=L)
    return 2 * d * _log1p_scaled(n, lam, L)


@_plain
def selections(d: int, Gamma: Number, L: float = 1.0, B: float = 1.0) -> Number:
    r"""Bound of ``lm:finite`` on :math:`|C_k|`: :math:`16d\Gamma^{-2}\log(3LB/\Gamma)`."""
    _check_curve(Gamma=Gamma)
    _check(d=d, L=L, B=B)
    return _selections(16.0, d, Gamma, math.log(L) + math.log(B))


def _selections(c: float, d: int, Gamma: Number, log_LB: float) -> Number:
    Gamma = np.asarray(Gamma, dtype=float)[()]
    return c * d / Gamma**2 * (math.log(3) + log_LB - np.log(Gamma))


@_plain
def selections_sharp(
    d: int, Gamma: Number, L: float = 1.0, B: float = 1.0, simple: bool = False
) -> Number:
    r"""Sharper form of ``lm:finite``: :math:`\kappa\,d\log(3LB/\Gamma)/\log(1+\Gamma^2)`, κ = 2.13.

    For Γ ≤ 1/2, κ = 2.097 serves. With ``simple``: :math:`c\,d\Gamma^{-2}\log(3LB/\Gamma)`, where
    c = 2.35 for Γ ≤ 1/2 and c = 3.08 up to Γ = 1.
    """
    _check_curve(Gamma=Gamma)
    _check(d=d, L=L, B=B)
    _check_flag(simple=simple)
    Gamma = np.asarray(Gamma, dtype=float)[()]
    log_LB = math.log(L) + math.log(B)
    if simple:
        return _selections(1.0, d, Gamma, log_LB) * np.where(Gamma <= 0.5, 2.35, 3.08)[()]
    kappa = np.where(Gamma <= 0.5, 2.097, 2.13)[()]
    return kappa * d * (math.log(3) + log_LB - np.log(Gamma)) / np.log1p(Gamma**2)


@_plain
def selections_root(d: int, Gamma: float, L: float = 1.0, B: float = 1.0) -> float:
    r"""Largest real n with :math:`n\log(1+\Gamma^2)\le d\log(1+nL^2B^2/d)`.

    This is all that the determinant says: the number of selections is at most its integer part.
    Newton's method starts above the root and, the right-hand side being concave, stays above it.
    """
    _check(d=d, Gamma=Gamma, L=L, B=B)
    a = math.log1p(Gamma**2)
    log_s = 2 * (math.log(L) + math.log(B)) - math.log(d)
    n = float(selections(d, Gamma, L, B))
    for _ in range(100):
        value = n * a - d * float(_log1p_exp(math.log(n) + log_s))
        slope = a - d / (n + math.exp(-log_s))
        step = value / slope
        n -= step
        if step <= 1e-15 * n:
            break
    return n


# --- Confidence radius ------------------------------------------------------------------------


@_plain
def radius(
    n: Number, d: int, R: float = 1.0, L: float = 1.0, B: float = 1.0,
    delta: float = 0.01, zeta: float = 0.0,
) -> Number:  # fmt: skip
    r"""Radius of ``lm:decompose``: :math:`1+R\sqrt{2d\log((d+nL^2B^2)/(d\delta))}+\zeta\sqrt n`."""
    _check_curve(n=n)
    _check(d=d, R=R, L=L, B=B, delta=delta, zeta=zeta)
    n = np.asarray(n, dtype=float)[()]
    iota = _log1p_scaled(n, d, L, B) + math.log(1 / delta)
    return 1 + R * np.sqrt(2 * d * iota) + zeta * np.sqrt(n)


@_plain
def radius_tight(
    n: Number, d: int, R: float = 1.0, L: float = 1.0, B: float = 1.0,
    delta: float = 0.01, zeta: float = 0.0,
) -> Number:  # fmt: skip
    r"""What the same proof gives before it is loosened.

    .. math:: 1+R\sqrt{d\log(1+nL^2B^2/d)+2\log(1/\delta)}+\zeta\sqrt n
    """
    _check_curve(n=n)
    _check(d=d, R=R, L=L, B=B, delta=delta, zeta=zeta)
    n = np.asarray(n, dtype=float)[()]
    log_det = d * _log1p_scaled(n, d, L, B)
    return 1 + R * np.sqrt(log_det + 2 * math.log(1 / delta)) + zeta * np.sqrt(n)


# --- Known gap: thm:main ----------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    r"""Constants of ``thm:main`` (DS-OFUL, known gap). Build it with :func:`known_gap`.

    ``repaired`` chooses :math:`\iota_1` as the printed proof really gives it,
    :math:`(24+12R)\log((72+36R)LB\sqrt d/\Delta)+R\sqrt{8\log(1/\delta)}`, in place of the printed
    24+18R and 72+54R. Every other constant follows from :math:`\iota_1`.
    """

    d: int
    Delta: float
    R: float = 1.0
    log_L: float = 0.0
    log_B: float = 0.0
    log_inv_delta: float = math.log(100)
    repaired: bool = False

    def __post_init__(self) -> None:
        _make_plain(self)
        _check(d=self.d, Delta=self.Delta, R=self.R, log_L=self.log_L, log_B=self.log_B)
        _check(log_inv_delta=self.log_inv_delta)
        _check_flag(repaired=self.repaired)

    @property
    def log_LB(self) -> float:
        """log(LB)."""
        return self.log_L + self.log_B

    @property
    def lam(self) -> float:
        r"""Regulariser :math:`\lambda=B^{-2}`."""
        return math.exp(-2 * self.log_B)

    @cached_property
    def iota1(self) -> float:
        r""":math:`\iota_1=(24+18R)\log((72+54R)LB\sqrt d/\Delta)+R\sqrt{8\log(1/\delta)}`."""
        c = 12 if self.repaired else 18
        log_arg = math.log(72 + 3 * c * self.R) + self.log_LB + 0.5 * math.log(self.d)
        return (24 + c * self.R) * (log_arg - math.log(self.Delta)) + self.R * math.sqrt(
            8 * self.log_inv_delta
        )

    @property
    def Gamma(self) -> float:
        r"""Threshold :math:`\Gamma=\Delta/(2\sqrt d\,\iota_1)`."""
        return self.Delta / (2 * math.sqrt(self.d) * self.iota1)

    @property
    def zeta_max(self) -> float:
        r"""Largest admissible ζ: the condition :math:`2\sqrt d\zeta\iota_1\le\Delta` is ζ ≤ Γ."""
        return self.Gamma

    @property
    def iota2(self) -> float:
        r""":math:`\iota_2=\log(3LB/\Gamma)`."""
        return math.log(3) + self.log_LB - math.log(self.Gamma)

    def _log1p_selections(self, c: float, with_LB: bool = True) -> float:
        r""":math:`\log(1+c\,L^2B^2\Gamma^{-2}\iota_2)`, or the same without :math:`L^2B^2`."""
        log_LB = self.log_LB if with_LB else 0.0
        x = math.log(c) + 2 * log_LB - 2 * math.log(self.Gamma) + math.log(self.iota2)
        return float(_log1p_exp(x))

    @property
    def iota3(self) -> float:
        r""":math:`\iota_3=\log((1+16L^2B^2\Gamma^{-2}\iota_2)/\delta)`."""
        return self._log1p_selections(16) + self.log_inv_delta

    @property
    def beta(self) -> float:
        r"""Radius :math:`\beta=1+4\sqrt{d\iota_2}+R\sqrt{2d\iota_3}`."""
        return 1 + 4 * math.sqrt(self.d * self.iota2) + self.R * math.sqrt(2 * self.d * self.iota3)

    @property
    def selections(self) -> float:
        r"""Bound of ``lm:finite`` on :math:`|C_K|`: :math:`16d\Gamma^{-2}\iota_2`."""
        return 16 * self.d / self.Gamma**2 * self.iota2

    @property
    def selections_sharp(self) -> float:
        r"""Sharper bound on :math:`|C_K|`: :math:`2.35\,d\Gamma^{-2}\iota_2` (Γ is below 1/2)."""
        return 2.35 * self.d / self.Gamma**2 * self.iota2

    def _cauchy_schwarz(self, log: float) -> float:
        return (
            32 * self.beta * math.sqrt(2 * self.d**3 * self.iota2 * log) * self.iota1 / self.Delta
        )

    @property
    def bound_printed(self) -> float:
        r""":math:`32\beta\sqrt{2d^3\iota_2\log(1+16d\Gamma^{-2}\iota_2)}\,\iota_1/\Delta`."""
        return self._cauchy_schwarz(self._log1p_selections(16 * self.d, with_LB=False))

    @property
    def bound_cauchy_schwarz(self) -> float:
        r"""R1, the paper's form: the printed bound with :math:`L^2B^2` for d in the logarithm."""
        return self._cauchy_schwarz(self._log1p_selections(16))

    @property
    def bound_gap(self) -> float:
        r"""R1, by the gap: :math:`8d(\beta+1)^2\log(1+16L^2B^2\Gamma^{-2}\iota_2)/\Delta`."""
        return 8 * self.d * (self.beta + 1) ** 2 * self._log1p_selections(16) / self.Delta

    @property
    def bound_sharp(self) -> float:
        r"""R1': :math:`d(4(\beta+1)^2+\tfrac12)\log(1+2.35L^2B^2\Gamma^{-2}\iota_2)/\Delta`."""
        factor = 4 * (self.beta + 1) ** 2 + 0.5
        return self.d * factor * self._log1p_selections(2.35) / self.Delta

    @property
    def aux1_slack(self) -> float:
        r"""Slack of ``lm:aux1``: :math:`\iota_1/(2+4\sqrt{\iota_2}+R\sqrt{2\iota_3})`."""
        return self.iota1 / (2 + 4 * math.sqrt(self.iota2) + self.R * math.sqrt(2 * self.iota3))


@_plain
def known_gap(
    d: int, Delta: float, R: float = 1.0, L: float = 1.0, B: float = 1.0,
    delta: float = 0.01, repaired: bool = False,
) -> Known:  # fmt: skip
    r"""Constants and bounds of ``thm:main``.

    >>> c = known_gap(d=16, Delta=0.18)
    >>> round(c.iota1, 1), round(c.beta, 2)
    (339.4, 83.85)
    """
    _check(d=d, Delta=Delta, R=R, L=L, B=B, delta=delta)
    return Known(int(d), Delta, R, math.log(L), math.log(B), -math.log(delta), repaired)


@_plain
def skip_regret(Gamma: float, beta: float, zeta: float) -> float:
    r"""Regret that a skipped round cannot reach (``eq:step1``): :math:`2\zeta+2\beta\Gamma`."""
    _check_curve(Gamma=Gamma, beta=beta, zeta=zeta)
    try:
        np.broadcast_shapes(*map(np.shape, (Gamma, beta, zeta)))
    except ValueError as error:
        raise ValueError(f"Gamma, beta, zeta must have shapes that go together: {error}") from None
    return 2 * np.asarray(zeta)[()] + 2 * np.asarray(beta)[()] * np.asarray(Gamma)[()]


def _skip_regret_tight(
    Gamma: float, d: int, R: float, L: float, B: float, delta: float, zeta: float
) -> float:
    n = selections_root(d, Gamma, L, B)
    return skip_regret(Gamma, float(radius_tight(n, d, R, L, B, delta, zeta)), zeta)


@_plain
def largest_Gamma_tight(
    d: int, Delta: float, R: float = 1.0, L: float = 1.0, B: float = 1.0,
    delta: float = 0.01, zeta: float = 0.0,
) -> float:  # fmt: skip
    r"""Largest Γ whose skipped rounds are optimal by the tightest form of the same proof.

    Solves :math:`2\zeta+2\beta\Gamma=\Delta` with β from :func:`radius_tight` at n from
    :func:`selections_root`. NaN when no Γ serves. For ζ > 0 the left side need not be monotone in
    Γ; the largest solution on a fine logarithmic grid is polished by bisection.
    """
    _check(d=d, Delta=Delta, R=R, L=L, B=B, delta=delta, zeta=zeta)
    rest = (d, R, L, B, delta, zeta)
    grid = np.geomspace(1e-8, 1.0, 321)
    good = [g for g in grid if _skip_regret_tight(float(g), *rest) < Delta]
    if not good:
        return math.nan
    low = float(good[-1])
    high = min(1.0, low * float(grid[1] / grid[0]))
    for _ in range(60):
        mid = math.sqrt(low * high)
        low, high = (mid, high) if _skip_regret_tight(mid, *rest) < Delta else (low, mid)
    return low


@_plain
def zeta_max_tight(
    d: int, Delta: float, R: float = 1.0, L: float = 1.0, B: float = 1.0, delta: float = 0.01
) -> tuple[float, float]:
    r"""Largest ζ, and its Γ, with :math:`2\zeta+2\beta\Gamma\le\Delta` by the tightest form.

    For fixed Γ the condition is linear in ζ, namely
    :math:`\zeta\le(\Delta-2\beta_0\Gamma)/(2+2\Gamma\sqrt n)` with :math:`\beta_0` the radius at
    ζ = 0. The maximum is taken over a logarithmic grid of Γ.
    """
    _check(d=d, Delta=Delta, R=R, L=L, B=B, delta=delta)
    grid = np.geomspace(1e-8, 1.0, 1601)
    n = np.array([selections_root(d, float(g), L, B) for g in grid])
    room = Delta - 2 * grid * radius_tight(n, d, R, L, B, delta)
    zeta = room / (2 + 2 * grid * np.sqrt(n))
    best = int(np.argmax(zeta))
    return float(zeta[best]), float(grid[best])


# --- Unknown gap: thm:main-sup ----------------------------------------------------------------


@dataclass(frozen=True)
class SupBeta:
    r"""SupLinUCB's radius per level: ``SupBeta(d, R, L, B, delta)(l)`` is β(l).

    .. math:: \beta(l)=1+R\sqrt{2d\,\iota_2(l)},\qquad \iota_1(l)=\log(3LB2^l).

    Printed: :math:`\iota_2(l)=\log((d2^l+16L^2B^28^l\iota_1(l))/(d\delta))`. Repaired, with the
    factor d that substitution gives: :math:`\iota_2(l)=\log((2^l+16L^2B^28^l\iota_1(l))/\delta)`.
    """

    d: int
    R: float = 1.0
    L: float = 1.0
    B: float = 1.0
    delta: float = 0.01
    repaired: bool = True

    def __post_init__(self) -> None:
        _make_plain(self)
        _check(d=self.d, R=self.R, L=self.L, B=self.B, delta=self.delta)
        _check_flag(repaired=self.repaired)

    @property
    def lam(self) -> float:
        r"""Regulariser :math:`\lambda=B^{-2}`."""
        return self.B**-2

    def iota1(self, l: Number) -> Number:
        r""":math:`\iota_1(l)=\log(3LB2^l)`."""
        _check_curve(l=l)
        return math.log(3) + math.log(self.L) + math.log(self.B) + np.asarray(l)[()] * math.log(2)

    def iota2(self, l: Number) -> Number:
        r""":math:`\iota_2(l)`, printed or repaired."""
        _check_curve(l=l)
        l = np.asarray(l, dtype=float)[()]
        log_LB = math.log(self.L) + math.log(self.B)
        divisor = 0.0 if self.repaired else math.log(self.d)
        second = math.log(16) + 2 * log_LB + 3 * l * math.log(2) + np.log(self.iota1(l)) - divisor
        return np.logaddexp(l * math.log(2), second) - math.log(self.delta)

    def __call__(self, l: Number) -> Number:
        return 1 + self.R * np.sqrt(2 * self.d * self.iota2(l))


@_plain
def level(beta: SupBeta, Delta: float, base: float = 2) -> int:
    r"""Level :math:`l_\Delta`: the smallest l ≥ 1 with :math:`l>\log(8\beta(l)/\Delta)`.

    The proof needs ``base=2``; ``base=math.e`` is the other way to read the printed log.
    """
    _check(Delta=Delta, base=base)
    if not callable(beta):
        raise TypeError(f"beta must be a SupBeta, or a function of the level, got {beta!r}")
    for l in range(1, MOST_LEVELS + 1):
        value = float(beta(l))
        _require(math.isfinite(value) and value > 0, "beta", f"positive at level {l}", value)
        if l * math.log(base) > math.log(8) + math.log(value) - math.log(Delta):
            return l
    raise ValueError(f"beta must grow more slowly than the levels, got {beta!r}")


@dataclass(frozen=True)
class Unknown:
    """Constants of ``thm:main-sup`` (SupLinUCB, unknown gap). Build it with :func:`unknown_gap`."""

    radius: SupBeta
    Delta: float
    base: float = 2

    def __post_init__(self) -> None:
        _make_plain(self)
        if not isinstance(self.radius, SupBeta):
            raise TypeError(f"radius must be a SupBeta, got {self.radius!r}")
        _check(Delta=self.Delta, base=self.base)

    @cached_property
    def l_Delta(self) -> int:
        r"""The level :math:`l_\Delta` after which no sub-optimal arm survives."""
        return level(self.radius, self.Delta, self.base)

    @property
    def iota1(self) -> float:
        r""":math:`\iota_1(l_\Delta)`."""
        return float(self.radius.iota1(self.l_Delta))

    @property
    def iota2(self) -> float:
        r""":math:`\iota_2(l_\Delta)`."""
        return float(self.radius.iota2(self.l_Delta))

    @property
    def beta(self) -> float:
        r""":math:`\beta(l_\Delta)`."""
        return float(self.radius(self.l_Delta))

    @property
    def zeta_max(self) -> float:
        r"""Supremum of ζ with :math:`4l_\Delta\zeta(1+4\sqrt{d\iota_1(l_\Delta)})<\Delta`."""
        return self.Delta / (4 * self.l_Delta * (1 + 4 * math.sqrt(self.radius.d * self.iota1)))

    def W(self, l: Number, zeta: float) -> Number:
        r"""Misspecification per level: :math:`W(l)=\zeta(1+4\sqrt{d\iota_1(l)})`."""
        _check(zeta=zeta)
        return zeta * (1 + 4 * np.sqrt(self.radius.d * self.radius.iota1(l)))

    def selections(self, l: Number, c: float = 16.0) -> Number:
        r"""Bound of ``lm:set`` on :math:`|C^l|`: :math:`c\,d4^l\iota_1(l)`, also with c = 2.35."""
        _check(c=c)
        _check_curve(l=l)
        return c * self.radius.d * 4.0 ** np.asarray(l) * self.radius.iota1(l)

    def bound(self, c: float) -> float:
        r""":math:`c\,d\beta^2(l_\Delta)\iota_1(l_\Delta)/\Delta`."""
        _check(c=c)
        return c * self.radius.d * self.beta**2 * self.iota1 / self.Delta

    @property
    def bound_printed(self) -> float:
        """The paper's constant, 2560."""
        return self.bound(2560)

    @property
    def bound_later(self) -> float:
        """The constant of the first author's dissertation, 2 to the 14."""
        return self.bound(2**14)

    @property
    def bound_repaired(self) -> float:
        """The constant that a full proof gives with the sharper count per level, 1018."""
        return self.bound(1018)

    @property
    def bound_repaired_loose(self) -> float:
        """The constant that a full proof gives with the printed count per level, 6842."""
        return self.bound(6842)


@_plain
def unknown_gap(
    d: int, Delta: float, R: float = 1.0, L: float = 1.0, B: float = 1.0,
    delta: float = 0.01, repaired: bool = False, base: float = 2,
) -> Unknown:  # fmt: skip
    r"""Constants and bounds of ``thm:main-sup``.

    >>> c = unknown_gap(d=16, Delta=0.18)
    >>> c.l_Delta, round(c.beta, 1)
    (11, 31.8)
    """
    _check(Delta=Delta, base=base)
    return Unknown(SupBeta(d, R, L, B, delta, repaired), Delta, base)


# --- Layered DS-OFUL: ours --------------------------------------------------------------------


@dataclass(frozen=True)
class Layered:
    r"""Constants of our theorem on layered DS-OFUL, which plays with the radius 2β(l).

    Build it with :func:`layered`.
    """

    radius: SupBeta
    Delta: float
    zeta: float

    def __post_init__(self) -> None:
        _make_plain(self)
        if not isinstance(self.radius, SupBeta):
            raise TypeError(f"radius must be a SupBeta, got {self.radius!r}")
        _check(Delta=self.Delta, zeta=self.zeta)

    def survivor(self, l: int) -> float:
        r"""Largest gap in :math:`D^{l+1}`: :math:`8\beta(l)2^{-l}+2l\zeta`."""
        return 8 * float(self.radius(l)) * 2.0**-l + 2 * l * self.zeta

    def rest(self, l: int) -> float:
        r"""Largest cost of a round that rests at level l: :math:`4\beta(l)2^{-l}+2l\zeta`."""
        return 4 * float(self.radius(l)) * 2.0**-l + 2 * l * self.zeta

    def zeta_max(self, l: int) -> float:
        r"""Largest ζ that 2β(l) pays for: :math:`\beta(l)2^{-l}/(4\sqrt{d\iota_1(l)})`."""
        root = math.sqrt(self.radius.d * float(self.radius.iota1(l)))
        return float(self.radius(l)) * 2.0**-l / (4 * root)

    @cached_property
    def l_Delta(self) -> int | None:
        r"""The first level l after which :math:`D^{l+1}` holds optimal arms only, None if none."""
        for l in range(1, MOST_LEVELS + 1):
            if self.zeta > self.zeta_max(l):
                return None
            if self.survivor(l) < self.Delta:
                return l
        return None

    @property
    def bound(self) -> float:
        """Regret at most, for ever, with probability at least 1 - δ; infinite if ζ is too large."""
        if self.l_Delta is None:
            return math.inf
        d, total = self.radius.d, 0.0
        for l in range(1, self.l_Delta + 1):
            learnt = 2.35 * d * 4.0**l * float(self.radius.iota1(l))
            total += learnt * min(1.0, self.survivor(l - 1))  # at level 1 that is 1
            if l < self.l_Delta:
                rests = 4 * d if l == 1 else 3 * 4 ** (l - 1) * d
                total += rests * min(1.0, self.rest(l))
        return total


@_plain
def layered(
    d: int, Delta: float, zeta: float = 0.0, R: float = 1.0, L: float = 1.0, B: float = 1.0,
    delta: float = 0.01,
) -> Layered:  # fmt: skip
    r"""Constants and bound of our theorem on layered DS-OFUL.

    >>> layered(d=16, Delta=0.18).l_Delta
    11
    """
    return Layered(SupBeta(d, R, L, B, delta), Delta, zeta)


# --- Lower bound: thm:lower -------------------------------------------------------------------


@_plain
def lower_eps(d: int, arms: int, repaired: bool = False) -> float:
    r"""Coherence ε of ``arms`` unit vectors: printed :math:`\sqrt{8\log|D|/(d-1)}`.

    Repaired: :math:`\sqrt{4\log|D|/d}`, which random vectors already meet.
    """
    _check(d=d, arms=arms)
    _check_flag(repaired=repaired)
    if repaired:
        return math.sqrt(4 * math.log(arms) / d)
    _require(d >= 2, "d", ">= 2 (the printed threshold divides by d - 1)", d)
    return math.sqrt(8 * math.log(arms) / (d - 1))


@_plain
def lower_zeta(d: int, Delta: float, arms: int, repaired: bool = False) -> float:
    r"""Misspecification from which the lower bound applies: :math:`3\Delta\varepsilon`."""
    _check(Delta=Delta)
    return 3 * Delta * lower_eps(d, arms, repaired)


@_plain
def lower_zeta_scaled(d: int, Delta: float, arms: int) -> float:
    r"""Misspecification of the same family around :math:`\theta/(1+\varepsilon)`:
    :math:`3\Delta\varepsilon/(1+\varepsilon)`, with the repaired ε, or 1 where that is larger.

    Never above :math:`\tfrac32\Delta`, because inner products of unit vectors are at most 1.
    """
    _check(Delta=Delta)
    eps = min(1.0, lower_eps(d, arms, repaired=True))
    return 3 * Delta * eps / (1 + eps)


@_plain
def lower_first_printed(K: float, Delta: float) -> float:
    r"""First regime, printed: :math:`K\Delta` for :math:`K\le O(|D|)`."""
    _check(K=K, Delta=Delta)
    return K * Delta


@_plain
def lower_first_repaired(K: int, Delta: float, arms: int) -> float:
    r"""First regime by counting: :math:`\Delta\sum_{t\le K}(n-t)(2(n-t)-1)/n^2`, n = ``arms``.

    At least :math:`K\Delta` whenever :math:`K\le n/3` and :math:`n\ge5`.
    """
    _check(K=K, Delta=Delta, arms=arms)
    _require(Delta <= 0.5, "Delta", "<= 1/2 (the best reward is 2 Delta)", Delta)
    n = int(arms)

    def up_to(m: int) -> int:  # the sum of j(2j - 1) over j <= m
        return m * (m + 1) * (4 * m - 1) // 6

    return Delta * ((up_to(n - 1) - up_to(n - min(int(K), n) - 1)) / n**2)


@_plain
def lower_first_limit(Delta: float, arms: int, noisy: bool = True) -> float:
    r"""Largest K for which :math:`K\Delta` is proved: :math:`n/3`; with N(0,1) noise also
    :math:`n(1-4/n+2/n^2)^2/(5\Delta^2)`, whichever is larger.
    """
    _check(Delta=Delta, arms=arms)
    _check_flag(noisy=noisy)
    _require(arms >= 5, "arms", ">= 5", arms)
    by_noise = arms * (1 - 4 / arms + 2 / arms**2) ** 2 / (5 * Delta**2)
    return max(arms / 3, by_noise) if noisy else arms / 3


@_plain
def lower_second_printed(K: float, Delta: float, arms: int, C: float, alpha: float) -> float:
    r"""Regime (ii), printed: :math:`2(n-1)\Delta^{-1}[\log(\Delta K)-\log(4C)-\alpha\log K]_+`."""
    _check(K=K, Delta=Delta, arms=arms, C=C, alpha=alpha)
    log = (1 - alpha) * math.log(K) - math.log(4 * C / Delta)
    return 2 * (arms - 1) / Delta * max(log, 0.0)


@_plain
def lower_second_repaired(K: float, Delta: float, arms: int, C: float, alpha: float) -> float:
    r"""Regime (ii), repaired: :math:`\tfrac{n-1}{2\Delta}[(1-\alpha)\log K-\log(8C/\Delta)]_+`."""
    _check(K=K, Delta=Delta, arms=arms, C=C, alpha=alpha)
    log = (1 - alpha) * math.log(K) - math.log(8 * C / Delta)
    return (arms - 1) / (2 * Delta) * max(log, 0.0)
