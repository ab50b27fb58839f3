"""Pick an array library by name; everything else takes its namespace from the arrays it is given.

Random numbers are always drawn on the host with numpy. A backend only has to offer the array API;
numpy, CuPy, torch (CPU) and ``array_api_strict`` do.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from array_api_compat import (
    array_namespace,
    is_array_api_strict_namespace,
    is_cupy_namespace,
    is_torch_namespace,
)

Array = Any
DTYPES = ("float64", "float32")
NUMPY: ModuleType = (
    np if hasattr(np, "astype") else importlib.import_module("array_api_compat.numpy")
)
"""numpy speaks the array API itself from 2.1 on; wrapping it would cost a tenth of the speed."""


class BackendError(RuntimeError):
    """The array library asked for cannot be used on this machine."""


def namespace(name: str = "numpy") -> ModuleType:
    """Array-API namespace called ``name``: "numpy", "cupy", "torch", "dpnp" or "array_api_strict".

    CuPy is accepted only where a GPU answers: the package imports without one and fails at the
    first array.
    """
    if not isinstance(name, str):
        raise TypeError(f"backend: expected the name of an array library, got {name!r}")
    if name == "numpy":
        return NUMPY
    if name == "cupy":
        return _cupy()
    if name in ("torch", "dpnp", "array_api_strict"):
        module = "array_api_compat.torch" if name == "torch" else name
        try:
            return importlib.import_module(module)
        except ImportError as error:
            raise BackendError(f"backend={name!r} needs the package {name}: {error}") from error
    raise ValueError(
        f"backend: expected 'numpy', 'cupy', 'torch', 'dpnp' or 'array_api_strict', got {name!r}"
    )


def _cupy() -> ModuleType:
    extra = "in the clone pip install -e '.[gpu-cuda12]' (or gpu-cuda13, to match the driver)"
    try:
        import cupy
    except ImportError as error:
        raise BackendError(f"backend='cupy' needs CuPy, which is not installed: {extra}") from error
    if not cupy.cuda.is_available():
        raise BackendError(
            "backend='cupy': CuPy finds no GPU here (cupy.cuda.is_available() is False);"
            f" use backend='numpy', or on a machine with an NVIDIA GPU {extra}"
        )
    return importlib.import_module("array_api_compat.cupy")


def namespace_of(array: Array) -> ModuleType:
    """The namespace an array belongs to; numpy is recognised at once, as this runs every round."""
    return NUMPY if type(array) is np.ndarray else array_namespace(array)


def device_array(xp: ModuleType, values: Any, dtype: Any = None) -> Array:
    """Copy host values to an array of ``xp``; the dtype stays unless another is named."""
    host = np.ascontiguousarray(values)
    if is_torch_namespace(xp) and not host.flags.writeable:
        host = host.copy()
    return xp.asarray(host, dtype=dtype, copy=True)


def to_numpy(values: Any) -> np.ndarray:
    """Host copy (or view) of an array of any supported library."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "get") and type(values).__module__.startswith("cupy"):
        return values.get()
    if hasattr(values, "asnumpy"):  # dpnp
        return values.asnumpy()
    if hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    if type(values).__module__.startswith("array_api_strict"):
        return np.from_dlpack(values)
    return np.asarray(values)


@lru_cache(maxsize=64)
def row_starts(xp: ModuleType, rows: int, size: int) -> Array:
    """Flat index of the first element of each row of a (rows, size) array; not to be changed."""
    return xp.arange(rows, dtype=xp.int64) * size


def pick(values: Array, index: Array, xp: ModuleType) -> Array:
    """``values[..., index]`` row by row: values (..., M), index (...), result (...)."""
    if values.ndim == 1:
        return values[index]
    size = values.shape[-1]
    if index.ndim == 1:
        return xp.reshape(values, (-1,))[row_starts(xp, index.shape[0], size) + index]
    flat = pick(xp.reshape(values, (-1, size)), xp.reshape(index, (-1,)), xp)
    return xp.reshape(flat, index.shape)


def first_true(mask: Array, xp: ModuleType) -> Array:
    """Index of the first True along the last axis (0 where there is none)."""
    if xp is not NUMPY and (is_array_api_strict_namespace(xp) or is_torch_namespace(xp)):
        mask = xp.astype(mask, xp.int8)  # argmax of booleans is not in the standard
    return xp.argmax(mask, axis=-1)


def put(target: Array, rows: Array, values: Array, xp: ModuleType) -> Array:
    """``target[rows] = values`` along the first axis, rows distinct; returns the array to use.

    Scatters in place where the library can, else picks the new row through a one-hot mask: the
    standard has no assignment by an array of integers, and ``array_api_extra.at`` adds none.
    """
    if not is_array_api_strict_namespace(xp):
        target[rows] = values
        return target
    onehot = xp.arange(target.shape[0], dtype=rows.dtype)[:, None] == rows[None, :]
    source = xp.argmax(xp.astype(onehot, xp.int8), axis=1)
    hit = xp.reshape(xp.any(onehot, axis=1), (-1, *(1,) * (target.ndim - 1)))
    return xp.where(hit, xp.take(values, source, axis=0), target)


def free_memory(xp: ModuleType) -> int | None:
    """Bytes free on the GPU that ``xp`` computes on, None if it computes on the host.

    What CuPy's pool keeps of arrays that are gone counts as free: it hands it out again.
    """
    if not is_cupy_namespace(xp):
        return None
    import cupy

    return int(cupy.cuda.Device().mem_info[0]) + int(cupy.get_default_memory_pool().free_bytes())
