"""The one place that refuses arguments, each with a sentence that names the argument."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from banditlib.backend import DTYPES, to_numpy

MOST = 2**62
"""No count may be larger: sums of two still fit into 64 bits."""


LARGEST = 1e100
"""No entry of an array may be larger."""

LARGEST_RATIO = 2.0**20
"""Largest ‖x‖²/λ: there rounding moves a width by about a fortieth of the tolerance for ties."""


_UNSAID = object()


def refuse(
    name: str, expected: str, got: Any = _UNSAID, kind: type[Exception] = ValueError
) -> NoReturn:
    """Refuse an argument in one sentence: ``name: expected ..., got ...``."""
    raise kind(f"{name}: expected {expected}{'' if got is _UNSAID else f', got {got!r}'}")


def require(
    holds: Any, name: str, expected: str, got: Any = _UNSAID, kind: type[Exception] = ValueError
) -> None:
    """Refuse an argument unless something holds of it."""
    if not holds:
        refuse(name, expected, got, kind)


def is_number(value: Any) -> bool:
    """Whether this is one real number: no truth value, no span of time, no text."""
    if isinstance(value, (bool, np.bool_, np.timedelta64)):
        return False
    return isinstance(value, (int, float, np.integer, np.floating))


def integer(name: str, value: Any, low: int, high: int | None = MOST) -> int:
    """Check an integer argument between two bounds."""
    if not is_number(value) or not isinstance(value, (int, np.integer)):
        refuse(name, "an integer", value, TypeError)
    if value < low:
        refuse(name, f"an integer >= {low}", value)
    if high is not None and value > high:
        refuse(name, f"an integer <= {high}", value)
    return int(value)


def below(name: str, value: Any, count: int, what: str = "a number") -> int:
    """Check the number of one of ``count`` things."""
    require(integer(name, value, 0) < count, name, f"{what} below {count}", value)
    return int(value)


def real(name: str, value: Any, low: float = -math.inf, strict: bool = False) -> float:
    """Check a finite real argument with a lower bound."""
    if not is_number(value):
        refuse(name, "a number", value, TypeError)
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        number = math.inf
    if not math.isfinite(number) or number < low or (strict and number == low):
        refuse(name, f"a finite number {'>' if strict else '>='} {low:g}", value)
    return number


def probability(name: str, value: Any) -> float:
    """Check a probability that is neither 0 nor 1."""
    number = real(name, value, 0.0, strict=True)
    require(number < 1.0, name, "a number in (0, 1)", value)
    return number


def flag(name: str, value: Any) -> bool:
    """Check an argument that is True or False."""
    require(isinstance(value, bool), name, "True or False", value, TypeError)
    return bool(value)


def length(name: str, values: Any, count: int, what: str) -> None:
    """Refuse a list that is shorter or longer than another thing has parts, which ``what`` says."""
    require(len(values) == count, name, f"{count} values, {what}", len(values))


def columns(name: str, points: np.ndarray, count: int, like: str) -> None:
    """Refuse points (N, d) that have another dimension than those of another argument."""
    require(points.shape[1] == count, name, f"{count} columns like {like}", points.shape[1])


def real_array(name: str, value: Any, ndim: int) -> np.ndarray:
    """Check an array argument: real, finite, ``ndim`` axes, none empty. Returns float64, host."""
    host = numbers(name, value, f"a real array with {ndim} axes")
    shape = f"got shape {host.shape}"
    require(host.ndim == ndim, name, f"an array with {ndim} axes, {shape}")
    require(0 not in host.shape, name, f"a non-empty array, {shape}")
    if not np.isfinite(host).all():
        raise ValueError(f"{name}: contains NaN or infinity")
    small = np.abs(host).max() <= LARGEST
    require(small, name, f"numbers up to {LARGEST:g}, whose squares are numbers")
    return host


def in_scale(name: str, points: np.ndarray, lam: float) -> None:
    """Refuse points (..., d) so long that ridge arithmetic with λ would lose its digits."""
    longest = float(np.einsum("...i,...i->...", points, points).max())
    require(
        longest <= LARGEST_RATIO * lam, name,
        f"squared norms up to 2^20 lam = {LARGEST_RATIO * lam:g}, beyond which decisions are lost "
        f"in rounding, got {longest:g}; scale {name} down, or raise lam",
    )  # fmt: skip


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


def one_of(name: str, value: Any, names: Sequence[str]) -> str:
    """Check an argument that is one of some words."""
    require(isinstance(value, str) and value in names, name, f"one of {names}", value)
    return str(value)


def listed(name: str, value: Any, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    """One of some kinds, or a list of such, as a tuple."""
    several = isinstance(value, Sequence) and not isinstance(value, (str, *kinds))
    items = tuple(value) if several else (value,)
    for item in items:
        if not isinstance(item, kinds):
            names = [kind.__name__ for kind in kinds]
            accepted = " or ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
            got = f"{item.__name__} itself: call it" if hasattr(item, "__name__") else brief(item)
            refuse(name, f"one or a list of {accepted}, got {got}", kind=TypeError)
    require(items, name, "at least one")
    return items


def trial_numbers(trials: Any) -> tuple[int, ...]:
    if _is_list(trials):
        numbers = tuple(integer("trials", t, 0) for t in trials)
        distinct = numbers and len(set(numbers)) == len(numbers)
        require(distinct, "trials", "distinct trial numbers", trials)
        return numbers
    count = integer("trials", trials, 1)
    fits("trials", 100.0 * count, "the numbers of the trials")
    return tuple(range(count))


def checkpoint_rounds(checkpoints: Any, rounds: int) -> np.ndarray:
    if _is_list(checkpoints):
        marks = np.array(
            [integer("checkpoints", c, 1) for c in checkpoints] + [rounds], dtype=np.int64
        )
        last = int(marks.max())
        require(last <= rounds, "checkpoints", f"rounds up to {rounds}", last)
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
    listing, expected = isinstance(record, (list, tuple, set)), "names among 'arms' and 'levels'"
    require(listing or isinstance(record, str), "record", expected, record, TypeError)
    names = tuple(record) if listing else (record,)
    for name in names:
        require(name in ("arms", "levels"), "record", expected, name)
    return names


def dtype_name(dtype: str) -> str:
    return one_of("dtype", dtype, DTYPES)


def noise_array(noise: Any, shape: tuple[int, int]) -> np.ndarray | None:
    """Noise given by the caller, (trials, rounds), or None."""
    if noise is None:
        return None
    one_backend(noise=noise)
    values = real_array("noise", noise, 2)
    require(values.shape == shape, "noise", f"shape (trials, rounds) = {shape}", values.shape)
    return values


def playable(policies: Sequence[Any], changing: Sequence[Any]) -> None:
    """Refuse policies that need fixed arms if some problems' arms change."""
    for policy in policies:
        if policy.fixed_arms and changing:
            raise ValueError(
                f"policies: {type(policy).__name__} needs fixed arms; {changing[0].label} has none"
            )
