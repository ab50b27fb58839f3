"""The one place that refuses arguments, each with a sentence that names the argument."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from banditlib.backend import DTYPES, to_numpy

MOST = 2**62
"""No count may be larger: sums of two still fit into 64 bits."""


LARGEST = 1e100
"""No entry of an array may be larger."""

LARGEST_RATIO = 2.0**20
"""Largest ‖x‖²/λ: there rounding moves a width by about a fortieth of the tolerance for ties."""


def is_number(value: Any) -> bool:
    """Whether this is one real number: no truth value, no span of time, no text."""
    if isinstance(value, (bool, np.bool_, np.timedelta64)):
        return False
    return isinstance(value, (int, float, np.integer, np.floating))


def integer(name: str, value: Any, low: int, high: int | None = MOST) -> int:
    """Check an integer argument between two bounds."""
    if not is_number(value) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}: expected an integer, got {value!r}")
    if value < low:
        raise ValueError(f"{name}: expected an integer >= {low}, got {value!r}")
    if high is not None and value > high:
        raise ValueError(f"{name}: expected an integer <= {high}, got {value!r}")
    return int(value)


def real(name: str, value: Any, low: float = -math.inf, strict: bool = False) -> float:
    """Check a finite real argument with a lower bound."""
    if not is_number(value):
        raise TypeError(f"{name}: expected a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        number = math.inf
    if not math.isfinite(number) or number < low or (strict and number == low):
        raise ValueError(
            f"{name}: expected a finite number {'>' if strict else '>='} {low:g}, got {value!r}"
        )
    return number


def probability(name: str, value: Any) -> float:
    """Check a probability that is neither 0 nor 1."""
    if (number := real(name, value, 0.0, strict=True)) >= 1.0:
        raise ValueError(f"{name}: expected a number in (0, 1), got {value!r}")
    return number


def real_array(name: str, value: Any, ndim: int) -> np.ndarray:
    """Check an array argument: real, finite, ``ndim`` axes, none empty. Returns float64, host."""
    host = numbers(name, value, f"a real array with {ndim} axes")
    if host.ndim != ndim:
        raise ValueError(f"{name}: expected an array with {ndim} axes, got shape {host.shape}")
    if 0 in host.shape:
        raise ValueError(f"{name}: expected a non-empty array, got shape {host.shape}")
    if not np.isfinite(host).all():
        raise ValueError(f"{name}: contains NaN or infinity")
    if np.abs(host).max() > LARGEST:
        raise ValueError(f"{name}: expected numbers up to {LARGEST:g}, whose squares are numbers")
    return host


def in_scale(name: str, points: np.ndarray, lam: float) -> None:
    """Refuse points (..., d) so long that ridge arithmetic with λ would lose its digits."""
    longest = float(np.einsum("...i,...i->...", points, points).max())
    if longest > LARGEST_RATIO * lam:
        raise ValueError(
            f"{name}: expected squared norms up to 2^20 lam = "
            f"{LARGEST_RATIO * lam:g}, beyond which decisions are lost in rounding, got "
            f"{longest:g}; scale {name} down, or raise lam"
        )


def points_in_scale(name: str, value: Any, lam: float) -> np.ndarray:
    """Points (M, d) that ridge arithmetic with λ can bear; not copied if they are float64 already.

    Where all is well one look suffices: a norm that is a small number has no entry that is none.
    """
    plain = type(value) is np.ndarray and value.ndim == 2 and value.dtype == np.float64
    most = min(LARGEST_RATIO * lam, LARGEST * LARGEST)
    if plain and value.size and np.vecdot(value, value).max() <= most:
        return value
    one_backend(**{name: value})
    points = real_array(name, value, 2)
    in_scale(name, points, lam)
    return points


def numbers(name: str, value: Any, expected: str = "a real array") -> np.ndarray:
    """A host copy, float64, of what holds real numbers and nothing else.

    Masked entries, dates, text and complex numbers are refused, though numpy would convert them.
    """
    try:
        rows = value if isinstance(value, (list, tuple)) else (value,)
        if any(isinstance(row, np.ma.MaskedArray) for row in rows):
            raise TypeError("masked entries are not numbers")
        host = to_numpy(value)
        if host.dtype.kind not in "biuf":
            raise TypeError(f"got {KINDS.get(host.dtype.kind, 'no numbers')}")
        return np.array(host, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise TypeError(f"{name}: expected {expected} ({error})") from error


KINDS = {"c": "complex numbers", "U": "text", "S": "text", "M": "dates", "m": "spans of time"}


def fits(names: str, size: float, what: str) -> None:
    """Refuse, before anything is allocated, what is larger than this machine's memory."""
    memory = host_memory()
    if size > memory:
        raise ValueError(
            f"{names}: {what} would take {size:.3g} bytes, and this machine has {memory:.3g}"
        )


def host_memory() -> float:
    """Bytes of memory of this machine, infinite where nobody knows."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return math.inf


def one_backend(**arrays: Any) -> None:
    """Refuse arrays of different libraries in one call."""
    found = {name: a for name, a in arrays.items() if a is not None and is_array_api_obj(a)}
    try:
        array_namespace(*found.values()) if found else None
    except TypeError as error:
        kinds = ", ".join(
            f"{name} is {type(a).__module__.split('.')[0]}" for name, a in found.items()
        )
        raise TypeError(
            f"{' and '.join(found)}: arrays of different libraries ({kinds})"
        ) from error


def brief(value: Any) -> str:
    """What an error says that it got; of arrays and tables the shape."""
    if getattr(value, "shape", ()):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    return repr(value)


def listed(name: str, value: Any, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    """One of some kinds, or a list of such, as a tuple."""
    several = isinstance(value, Sequence) and not isinstance(value, (str, *kinds))
    items = tuple(value) if several else (value,)
    for item in items:
        if not isinstance(item, kinds):
            names = [kind.__name__ for kind in kinds]
            accepted = " or ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
            got = f"{item.__name__} itself: call it" if hasattr(item, "__name__") else brief(item)
            raise TypeError(f"{name}: expected one or a list of {accepted}, got {got}")
    if not items:
        raise ValueError(f"{name}: expected at least one")
    return items


def trial_numbers(trials: Any) -> tuple[int, ...]:
    if _is_list(trials):
        numbers = tuple(integer("trials", t, 0) for t in trials)
        if not numbers or len(set(numbers)) < len(numbers):
            raise ValueError(f"trials: expected distinct trial numbers, got {trials!r}")
        return numbers
    count = integer("trials", trials, 1)
    fits("trials", 100.0 * count, "the numbers of the trials")
    return tuple(range(count))


def checkpoint_rounds(checkpoints: Any, rounds: int) -> np.ndarray:
    if _is_list(checkpoints):
        marks = np.array(
            [integer("checkpoints", c, 1) for c in checkpoints] + [rounds], dtype=np.int64
        )
        if marks.max() > rounds:
            raise ValueError(f"checkpoints: expected rounds up to {rounds}, got {marks.max()}")
        return np.unique(marks)
    count = min(integer("checkpoints", checkpoints, 1), rounds)
    fits("checkpoints", 24.0 * count, "their list")
    return np.unique(np.arange(1, count + 1, dtype=np.int64) * rounds // count)


def _is_list(value: Any) -> bool:
    """Whether the value lists numbers, each to be checked for itself."""
    if isinstance(value, (str, bytes, np.ma.MaskedArray)):
        return False
    return isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim == 1)


def recorded(record: Any) -> tuple[str, ...]:
    if not isinstance(record, (str, list, tuple, set)):
        raise TypeError(f"record: expected names among 'arms' and 'levels', got {record!r}")
    names = (record,) if isinstance(record, str) else tuple(record)
    for name in names:
        if name not in ("arms", "levels"):
            raise ValueError(f"record: expected names among 'arms' and 'levels', got {name!r}")
    return names


def dtype_name(dtype: str) -> str:
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"dtype: expected one of {DTYPES}, got {dtype!r}")
    return dtype


def noise_array(noise: Any, shape: tuple[int, int]) -> np.ndarray | None:
    """Noise given by the caller, (trials, rounds), or None."""
    if noise is None:
        return None
    one_backend(noise=noise)
    values = real_array("noise", noise, 2)
    if values.shape != shape:
        raise ValueError(f"noise: expected shape (trials, rounds) = {shape}, got {values.shape}")
    return values


def playable(policies: Sequence[Any], changing: Sequence[Any]) -> None:
    """Refuse policies that need fixed arms if some problems' arms change."""
    for policy in policies:
        if policy.fixed_arms and changing:
            raise ValueError(
                f"policies: {type(policy).__name__} needs fixed arms; {changing[0].label} has none"
            )
