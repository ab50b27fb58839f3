"""Reading ``.npz`` files that may be damaged, or made to do damage."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 8 << 30
"""Bytes that the arrays of one file may take in memory."""


class DamagedFileError(ValueError):
    """A file whose content is not what its name promises; the message says what is wrong."""


def read_npz(path: str | Path | io.BytesIO, largest: int = LARGEST) -> dict[str, NDArray[Any]]:
    """Return all arrays of an ``.npz``, or raise `DamagedFileError`.

    An `OSError` is the disk's and says nothing about the content; whatever reading the bytes then
    trips over is the content's (one flipped bit can raise nearly anything). Pickles are refused,
    and so are arrays that would take more than `largest` bytes, before any of them is unpacked.
    """
    content = path.getvalue() if isinstance(path, io.BytesIO) else Path(path).read_bytes()
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
