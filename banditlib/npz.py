"""Arrays in one ``.npz`` file: written whole; read although damaged, or made to do damage."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from banditlib.files import write_whole

LARGEST = 8 << 30
"""Bytes that the arrays of one file may take in memory."""


class DamagedFileError(ValueError):
    """A file whose content is not what its name promises; the message says what is wrong."""


def write_npz(file: str | Path | IO[bytes], arrays: Mapping[str, Any], small: bool = False) -> None:
    """Write arrays by name, compressed if ``small``; a file that was there is replaced whole."""
    save = np.savez_compressed if small else np.savez
    if isinstance(file, (str, Path)):
        write_whole(Path(file), lambda stream: save(stream, **arrays))
    else:
        save(file, **arrays)


def read_npz(file: str | Path | IO[bytes], largest: int = LARGEST) -> dict[str, NDArray[Any]]:
    """Return all arrays of an ``.npz`` by name, or raise `DamagedFileError`.

    An `OSError` is the disk's and says nothing about the content; whatever reading the bytes then
    trips over is the content's (one flipped bit can raise nearly anything). Pickles are refused,
    and so are arrays that would take more than `largest` bytes, before any of them is unpacked.
    """
    if isinstance(file, (str, Path)):
        content = Path(file).read_bytes()
    elif hasattr(file, "read"):
        content = file.read()
    else:
        raise TypeError(f"file: expected a path or an open file, got {file!r}")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            claimed = sum(entry.file_size for entry in archive.infolist())
        if claimed > largest:
            raise DamagedFileError(f"claims {claimed} bytes, and {largest} are allowed")
        with np.load(io.BytesIO(content), allow_pickle=False) as data:
            return {name: data[name] for name in data.files}
    except DamagedFileError:
        raise
    except Exception as error:
        reason = str(error) or "no reason given"
        raise DamagedFileError(f"is not a readable .npz file ({reason})") from None
