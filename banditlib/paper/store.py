"""What a finished cell is on disk, how it is written, verified and packed for the book.

A *cell* is the smallest piece of work that is kept: a configuration (problem, policy, block of
trials, seeds, engine version) and the integer arrays it produced.  Its key is the digest of the
configuration; its checksum covers configuration and arrays, and nothing else, so that the same
cell computed on another day or machine has the same checksum.  Provenance (commit, machine, wall
time) travels along but is never compared.

A cell is one ``.npz`` file without pickle, written under a temporary name, flushed to the disk and
renamed, so it is there whole or not at all.  A *pack* is many cells in one file, thinned to what
the book shows; it keeps the checksum of each whole cell, against which a re-run is compared.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from banditlib.files import sweep, write_whole
from banditlib.npz import read_npz

Config = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

META = "cell"
FORMAT = 1
_EPOCH = (1980, 1, 1, 0, 0, 0)


class Damaged(Exception):
    """A file that is not the cell it should be; the message says in what way."""


@dataclass(frozen=True)
class Cell:
    """A configuration, the arrays it produced, and where they came from."""

    config: Config
    arrays: Arrays
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Digest of the configuration: the cell's name."""
        return key(self.config)

    @property
    def checksum(self) -> str:
        """SHA-256 of configuration and arrays."""
        return checksum(self.config, self.arrays)


# --- identity -------------------------------------------------------------------------------------


def canonical(config: Mapping[str, Any]) -> bytes:
    """The one spelling of a configuration: sorted keys, no spaces, no NaN."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def key(config: Mapping[str, Any]) -> str:
    """Digest of a configuration, 20 hexadecimal digits; the name of its cell."""
    return hashlib.sha256(canonical(config)).hexdigest()[:20]


def checksum(config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of configuration and arrays (names, types, shapes and values, little-endian)."""
    digest = hashlib.sha256(canonical(config))
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
        digest.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


# --- one file, whole or not at all --------------------------------------------------------------


def _write_npz(file: BinaryIO, arrays: Mapping[str, NDArray[Any]], level: int) -> None:
    """An ``.npz`` whose bytes depend on the arrays alone (`numpy.savez` stamps the time)."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, buffer.getvalue(), compresslevel=level)


def _as_array(text: Mapping[str, Any]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(text, allow_nan=False).encode(), dtype=np.uint8)


def _load(path: Path) -> tuple[dict[str, Any], Arrays]:
    """What a file holds; `Damaged`, or the disk's own `OSError`, which says nothing of the file."""
    try:
        arrays = read_npz(path)
        meta = json.loads(arrays.pop(META).tobytes())
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise Damaged(f"cannot be read ({type(error).__name__})") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Damaged("cannot be read (a link to itself)") from error
        raise
    except (KeyError, ValueError, RecursionError) as error:
        raise Damaged(f"cannot be read ({error})") from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise Damaged("was not written by this program")
    return meta, arrays


def write_cell(path: Path, cell: Cell) -> None:
    """Write one cell to `path`."""
    meta = {
        "format": FORMAT,
        "config": cell.config,
        "checksum": cell.checksum,
        "provenance": cell.provenance,
    }
    arrays = {META: _as_array(meta), **cell.arrays}
    write_whole(path, lambda file: _write_npz(file, arrays, level=6))


def read_cell(path: Path, config: Mapping[str, Any] | None = None) -> Cell:
    """Read and verify one cell; `Damaged` if it is anything but the cell of `config`."""
    meta, arrays = _load(path)
    try:
        cell = Cell(meta["config"], arrays, meta["provenance"])
        other = config is not None and canonical(cell.config) != canonical(config)
        sound = cell.checksum == meta["checksum"]
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged("lacks a field") from error
    if other:
        raise Damaged("holds another configuration")
    if not sound:
        raise Damaged("does not match its checksum")
    return cell


# --- a folder of cells --------------------------------------------------------------------------


class Store:
    """A folder of cells that several processes may read and write at once.

    Parameters
    ----------
    folder
        Where cells live, as ``family/key.npz``.
    notice
        Called with a sentence whenever a file had to be set aside.
    """

    def __init__(self, folder: Path, notice: Callable[[str], None] | None = None) -> None:
        self.folder = Path(folder)
        self._notice = notice or (lambda sentence: None)

    def path(self, config: Mapping[str, Any]) -> Path:
        """Where the cell of `config` lies, or would."""
        return self.folder / str(config["family"]) / f"{key(config)}.npz"

    def read(self, config: Mapping[str, Any]) -> Cell | None:
        """The verified cell of `config`, or None; what is not that cell is set aside."""
        path = self.path(config)
        if not os.path.lexists(path):
            return None
        try:
            return read_cell(path, config)
        except Damaged as fault:
            aside = self._set_aside(path)
            if aside is not None:
                self._notice(f"{path} {fault}: set aside as {aside.name}, to be computed again.")
            return None

    def write(self, cell: Cell) -> Path:
        """Keep a cell; its path."""
        path = self.path(cell.config)
        write_cell(path, cell)
        return path

    def missing(self, configs: Iterable[Config]) -> list[Config]:
        """Those of `configs` that have no sound cell here, in order."""
        return [config for config in configs if self.read(config) is None]

    def sweep(self) -> int:
        """Remove temporary files whose writer, on this machine, is no longer alive."""
        folders = [self.folder, *(path for path in self.folder.glob("*") if path.is_dir())]
        return sum(sweep(folder) for folder in folders)

    @staticmethod
    def _set_aside(path: Path) -> Path | None:
        for number in range(1, 1000):
            aside = path.with_name(
                f"{path.name}.{number}.damaged" if number > 1 else f"{path.name}.damaged"
            )
            if not os.path.lexists(aside):
                break
        try:
            os.replace(path, aside)
        except FileNotFoundError:  # another process was faster
            return None
        return aside


# --- many cells in one file ---------------------------------------------------------------------


@dataclass(frozen=True)
class Packed:
    """A thinned cell: `arrays` is what was kept, `whole` the checksum of the whole cell."""

    config: Config
    arrays: Arrays
    whole: str
    provenance: dict[str, Any]

    @property
    def key(self) -> str:
        """Digest of the configuration: the cell's name."""
        return key(self.config)

    @property
    def checksum(self) -> str:
        """That of the whole cell, of which this is a part."""
        return self.whole

    @property
    def digest(self) -> str:
        """24 hexadecimal digits over the whole cell's checksum and all that was kept of it."""
        text = self.whole + checksum(self.config, self.arrays)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


#: Provenance of one cell alone. `first` is there if the cell was computed again since: when and
#: at which commit it was computed the first time.
_PER_CELL = ("wall", "finished")
_FIRST = "first"


def write_pack(path: Path, name: str, cells: Sequence[Packed]) -> None:
    """Write thinned cells to one file: layouts stacked, integers in their smallest type."""
    layouts: dict[str, list[int]] = {}
    for index, cell in enumerate(cells):
        layouts.setdefault(_layout(cell.arrays), []).append(index)
    arrays: Arrays = {}
    for number, members in enumerate(layouts.values()):
        for array_name in cells[members[0]].arrays:
            stacked = np.stack([cells[i].arrays[array_name] for i in members])
            arrays[f"{number}.{array_name}"] = _smallest(stacked)
    shared, origin = _share(cells)
    meta = {
        "format": FORMAT,
        "name": name,
        "layouts": [
            {
                "members": members,
                "types": {k: v.dtype.str for k, v in cells[members[0]].arrays.items()},
            }
            for members in layouts.values()
        ],
        "cells": [
            {
                "config": cell.config,
                "whole": cell.whole,
                "origin": origin[i],
                **{k: cell.provenance.get(k) for k in _PER_CELL},
                **{k: cell.provenance[k] for k in (_FIRST,) if k in cell.provenance},
            }
            for i, cell in enumerate(cells)
        ],
        "origins": shared,
    }
    meta["checksum"] = checksum(meta, arrays)
    write_whole(path, lambda file: _write_npz(file, {META: _as_array(meta), **arrays}, level=9))


def read_pack(path: Path) -> list[Packed]:
    """Read and verify a pack; `Damaged` if any part of it was changed."""
    meta, arrays = _load(path)
    try:
        if meta.pop("checksum", None) != checksum(meta, arrays):
            raise Damaged("does not match its checksum")
        return _unpack(meta, arrays)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise Damaged(f"lacks a part ({error})") from error


def _unpack(meta: Mapping[str, Any], arrays: Arrays) -> list[Packed]:
    kept: dict[int, Arrays] = {}
    for number, layout in enumerate(meta["layouts"]):
        whole = {n: arrays[f"{number}.{n}"].astype(t) for n, t in layout["types"].items()}
        for position, index in enumerate(layout["members"]):
            kept[index] = {n: a[position] for n, a in whole.items()}
    out = []
    for index, row in enumerate(meta["cells"]):
        origin = {**meta["origins"][row["origin"]], **{k: row[k] for k in _PER_CELL}}
        origin |= {k: row[k] for k in (_FIRST,) if k in row}
        out.append(Packed(row["config"], kept[index], row["whole"], origin))
    return out


def _layout(arrays: Arrays) -> str:
    return repr([(name, array.dtype.str, array.shape) for name, array in arrays.items()])


def _smallest(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "iu" or array.size == 0:
        return array
    low, high = int(array.min()), int(array.max())
    for kind in (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return array.astype(kind)
    return array


def _share(cells: Sequence[Packed]) -> tuple[list[dict[str, Any]], list[int]]:
    """Provenance that many cells have in common, listed once, and each cell's place in the list."""
    places: dict[str, int] = {}
    shared: list[dict[str, Any]] = []
    origin = []
    for cell in cells:
        common = {k: v for k, v in cell.provenance.items() if k not in (*_PER_CELL, _FIRST)}
        text = json.dumps(common, sort_keys=True)
        if text not in places:
            places[text] = len(shared)
            shared.append(common)
        origin.append(places[text])
    return shared, origin
