"""A strict stand-in for CuPy, for machines without a GPU: numpy underneath, a device's manners.

It is installed as the module ``cupy``, so ``array_api_compat.cupy`` and all code behind
``backend="cupy"`` run as they are. Stricter than CuPy where CuPy is lenient: no implicit copy to
the host, no numpy array and no numpy scalar in a device operation, results of reductions stay on
the device. It counts the bytes that are alive, and notes every name that is used.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np


class Meter:
    """Bytes alive, their peak, and the names used since the last reset."""

    def __init__(self) -> None:
        self.alive = self.peak = 0
        self.names: set[str] = set()
        self.methods: set[str] = set()
        self._known: dict[int, weakref.ref[np.ndarray]] = {}

    def hold(self, array: np.ndarray) -> None:
        """Count the memory under an array until nobody refers to it."""
        owner: Any = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        number, size = id(owner), owner.nbytes
        if number in self._known:
            return
        self._known[number] = weakref.ref(owner, lambda _: self._drop(number, size))
        self.alive += size
        self.peak = max(self.peak, self.alive)

    def _drop(self, number: int, size: int) -> None:
        del self._known[number]
        self.alive -= size

    def reset(self) -> None:
        """Start the peak from what is alive now."""
        self.peak = self.alive


METER = Meter()
PYTHON = (bool, int, float, complex, str, bytes, type(None), slice, type(Ellipsis), type)


class ndarray:
    """An array on the pretended device."""

    __array_ufunc__ = None  # numpy operands meet __radd__ and friends, which refuse them
    __array_priority__ = 100

    def __init__(self, values: np.ndarray) -> None:
        self._values = values
        METER.hold(values)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use `.get()`.")

    def __array_function__(self, func: Any, *_: Any) -> Any:
        raise TypeError(f"numpy.{func.__name__} was given a device array")

    def get(self) -> np.ndarray:
        """Copy to the host."""
        METER.methods.add("get")
        return self._values.copy()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        METER.methods.add(name)
        value = getattr(self._values, name)
        if callable(value):
            return lambda *args, **kw: _out(value(*_in(name, args), **_in(name, kw)))
        return _out(value)

    def __getitem__(self, key: Any) -> ndarray:
        return ndarray(np.asarray(self._values[_in("indexing", key)]))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[_in("indexing", key)] = _in("assignment", value)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[ndarray]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self._values)

    def __float__(self) -> float:
        return float(self._values)

    def __int__(self) -> int:
        return int(self._values)

    def __index__(self) -> int:
        raise TypeError("only integer arrays on the host can be an index")

    def __repr__(self) -> str:
        return f"device {self._values!r}"

    __hash__ = None  # type: ignore[assignment]


ndarray.__module__ = "cupy"

BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")


def _operator(name: str) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        result = getattr(self._values, name)(_in(name, other))
        if result is self._values:
            return self
        return _out(result)

    return method


for base in BINARY:
    for prefix in ("", "r", "i"):
        if hasattr(np.ndarray, f"__{prefix}{base}__"):
            setattr(ndarray, f"__{prefix}{base}__", _operator(f"__{prefix}{base}__"))
for name in ("lt", "le", "eq", "ne", "gt", "ge"):
    setattr(ndarray, f"__{name}__", _operator(f"__{name}__"))
for name in ("neg", "pos", "abs", "invert"):
    setattr(
        ndarray,
        f"__{name}__",
        lambda self, name=name: _out(getattr(self._values, f"__{name}__")()),
    )


def _in(where: str, value: Any) -> Any:
    """Arguments of a device operation: device arrays and Python values, nothing of the host's."""
    if isinstance(value, ndarray):
        return value._values
    if isinstance(value, (np.ndarray, np.generic)):
        raise TypeError(f"{where}: unsupported type {type(value)} in a device operation")
    if isinstance(value, (list, tuple)):
        return type(value)(_in(where, item) for item in value)
    if isinstance(value, dict):
        return {key: _in(where, item) for key, item in value.items()}
    if isinstance(value, (*PYTHON, np.dtype)):
        return value
    raise TypeError(f"{where}: unsupported type {type(value)}")


def _out(value: Any) -> Any:
    """Results stay on the device, scalars too."""
    if isinstance(value, (np.ndarray, np.generic)):
        return ndarray(np.asarray(value))
    if isinstance(value, (list, tuple)):
        return (
            type(value)(*map(_out, value))
            if hasattr(value, "_fields")
            else type(value)(map(_out, value))
        )
    return value


def _function(name: str, call: Any) -> Any:
    def function(*args: Any, **kw: Any) -> Any:
        METER.names.add(name)
        return _out(call(*_in(name, args), **_in(name, kw)))

    function.__name__ = name
    return function


def _array(values: Any, dtype: Any = None, copy: Any = True, **_: Any) -> ndarray:
    """The one door from the host to the device."""
    METER.names.add("cupy.array")
    if isinstance(values, ndarray):
        values = values._values
    return ndarray(np.array(values, dtype=dtype, copy=bool(copy) or None))


class Device:
    """The pretended device: so much memory, what is alive subtracted."""

    total = 1 << 30
    id = 0

    def __init__(self, device: Any = None) -> None:
        pass

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free and total bytes; what the pool keeps is not free to the driver."""
        return self.total - METER.alive - POOL.kept, self.total


class Pool:
    """CuPy's memory pool: it keeps blocks that nobody uses."""

    kept = 0

    def free_bytes(self) -> int:
        """Bytes kept and unused."""
        return self.kept

    def free_all_blocks(self) -> None:
        """Give them back."""
        self.kept = 0


POOL = Pool()


def _module(name: str, source: ModuleType) -> ModuleType:
    module = ModuleType(name)
    for key in dir(source):
        value = getattr(source, key)
        if key.startswith("_") or isinstance(value, ModuleType):
            continue
        plain = isinstance(value, type) or not callable(value)
        setattr(module, key, value if plain else _function(f"{name}.{key}", value))
    return module


def build() -> dict[str, ModuleType]:
    """The modules that stand for CuPy, by name."""
    cupy = _module("cupy", np)
    cupy.ndarray, cupy.array, cupy.asarray = ndarray, _array, _array  # type: ignore[attr-defined]
    del cupy.vecdot  # type: ignore[attr-defined]  # CuPy 14 has none; array_api_compat makes up for it
    cupy.__version__ = "14.2.0"  # type: ignore[attr-defined]
    cuda = ModuleType("cupy.cuda")
    cuda.is_available, cuda.Device = lambda: True, Device  # type: ignore[attr-defined]
    cupy.cuda = cuda  # type: ignore[attr-defined]
    cupy.get_default_memory_pool = lambda: POOL  # type: ignore[attr-defined]
    cupy.linalg = _module("cupy.linalg", np.linalg)  # type: ignore[attr-defined]
    cupy.fft = _module("cupy.fft", np.fft)  # type: ignore[attr-defined]
    device = ModuleType("cupy.cuda.device")
    device.Device = Device  # type: ignore[attr-defined]
    modules = {"cupy": cupy, "cupy.cuda": cuda, "cupy.cuda.device": device}
    return modules | {"cupy.linalg": cupy.linalg, "cupy.fft": cupy.fft}


@contextmanager
def installed() -> Iterator[Meter]:
    """Let ``import cupy`` find the stand-in."""
    before = {n: m for n, m in sys.modules.items() if _ours(n)}
    for name in before:
        del sys.modules[name]
    sys.modules.update(build())
    METER.names, METER.methods = set(), set()
    METER.reset()
    try:
        yield METER
    finally:
        for name in [n for n in sys.modules if _ours(n)]:
            del sys.modules[name]
        sys.modules.update(before)


def _ours(name: str) -> bool:
    return name.split(".")[0] == "cupy" or name.startswith("array_api_compat.cupy")
