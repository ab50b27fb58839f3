"""Files that several processes share: written whole or not at all, changed by one at a time."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import re
import socket
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_TEMPORARY = re.compile(r"^\..+\.([A-Za-z0-9-]+)\.(\d+)\.[0-9a-f]{8}\.tmp$")


def write_whole(path: Path, write: Callable[[BinaryIO], object] | bytes) -> None:
    """Create or replace `path`; readers see the old content or the new one, never a part.

    `write` is the content, or a function that puts it into an open file. It goes to a new file of
    its own beside `path` (never one that exists, so no link is followed), is flushed to the disk
    and renamed. A symbolic link at `path` is replaced, and what it points to is left alone.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _new_beside(path) as file:
        try:
            if isinstance(write, bytes):
                file.write(write)
            else:
                write(file)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows renames no file that is open
            os.replace(file.name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                file.close()
            Path(file.name).unlink(missing_ok=True)
            raise
    _sync_folder(path.parent)


def sha256(path: Path) -> str:
    """SHA-256 of a file, read in pieces, in hexadecimal digits."""
    total = hashlib.sha256()
    with Path(path).open("rb") as stream:
        while piece := stream.read(1 << 20):
            total.update(piece)
    return total.hexdigest()


def sweep(folder: Path) -> int:
    """Remove temporary files in `folder` whose writer, on this machine, is no longer alive.

    A writer holds the lock of its file until it has renamed it. The number of its process, which
    is in the file's name, decides only where files cannot be locked: a dead process may have left
    its number to another one, or wait as a zombie for a parent that does not ask.
    """
    removed = 0
    for path in Path(folder).glob(".*.tmp"):
        match = _TEMPORARY.match(path.name)
        if not match or match[1] != _host():
            continue
        with contextlib.suppress(FileNotFoundError, PermissionError):
            with path.open("rb") as file:
                left = _lock(file, wait=False)
                if left:
                    path.unlink()
            if left is None and not _alive(int(match[2])):
                path.unlink()  # closed by now, as Windows asks
                left = True
            removed += bool(left)
    return removed


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of `folder` (the file ``.lock`` in it); others wait. A dead holder lets go."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "ab") as file:
        if not _lock(file, wait=True):
            raise OSError(errno.ENOLCK, "files here cannot be locked", str(folder))
        yield


def _new_beside(path: Path) -> BinaryIO:
    """A new file beside `path`, locked for as long as it is open."""
    while True:
        name = f".{path.name}.{_host()}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp"
        file = open(path.with_name(name), "xb")  # noqa: SIM115 (the caller closes it)
        _lock(file, wait=True)
        if os.path.exists(file.name):
            return file
        file.close()  # a sweep came between opening and locking


def _lock(file: BinaryIO, wait: bool) -> bool | None:
    """Whether the lock of `file` is ours now; None where files cannot be locked."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@functools.cache
def _host() -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname()) or "host"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
