"""Pictures in a folder or a zip archive: listing them, and decoding them one at a time.

An archive is read in place, never unpacked, so no path can escape and no bomb can fill the disk.
Only JPEG is decoded, by its decoder and no other; sizes are judged before anything is decoded.
A file that cannot be decoded raises `Unreadable`, and the others go on.
"""

from __future__ import annotations

import errno
import hashlib
import io
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from banditlib.paper.features import FeaturesError

# Both layouts: PetImages/Cat/12.jpg (Microsoft) and train/cat.12.jpg (Kaggle).
_NAME = re.compile(r"(?:^|/)(cat|dog)s?(?:/|\.)([0-9]{1,9})\.jpe?g$", re.IGNORECASE)
# The collection's own pictures have up to about a million pixels in 150 kB.
LARGEST_FILE = 4 << 20
LARGEST_PICTURE = 16_000_000
MOST_SCANS = 100
"""A progressive JPEG is decoded once for each scan; this many are enough for any camera."""


class Unreadable(ValueError):
    """One picture that is left out; the message says why."""


@dataclass(frozen=True)
class Picture:
    """One picture of the collection: its class, its id, and how to get its bytes."""

    label: str
    id: int
    read: Callable[[], bytes]

    @property
    def name(self) -> str:
        """Class and number, ``cat 12``."""
        return f"{self.label} {self.id}"

    def content(self) -> bytes:
        """The bytes of the file, or `Unreadable`; a fault of the disk is a `FeaturesError`."""
        try:
            return self.read()
        except OSError as error:
            if error.errno in (None, errno.EINVAL):  # EINVAL: an offset that points nowhere
                raise Unreadable(str(error)) from None
            raise FeaturesError(f"images: {self.name} cannot be read: {error}") from None
        except Exception as error:  # bytes of others: a flipped bit can raise nearly anything
            raise Unreadable(str(error) or type(error).__name__) from None

    def digest(self) -> str:
        """SHA-256 of the file, or what is wrong with it."""
        try:
            return hashlib.sha256(self.content()).hexdigest()
        except Unreadable as error:
            return f"unreadable: {error}"


def pictures(source: str | Path) -> list[Picture]:
    """List the cats and dogs in a folder or a zip archive, cats first, by id."""
    source = Path(source)
    if source.is_dir():
        items = list(_in_folder(source))
    elif source.is_file():
        items = list(_in_archive(source))
    else:
        raise FeaturesError(f"images: {source} is neither a folder nor a zip archive")
    if not items:
        raise FeaturesError(f"images: {source} holds no image named like Cat/12.jpg or cat.12.jpg")
    seen: dict[tuple[str, int], Picture] = {}
    for item in items:
        if (item.label, item.id) in seen:
            raise FeaturesError(f"images: {source} holds {item.name} twice")
        seen[item.label, item.id] = item
    return [seen[key] for key in sorted(seen)]


def _in_folder(source: Path) -> Iterator[Picture]:
    for path in sorted(source.rglob("*")):
        match = _NAME.search(path.as_posix())
        if match and path.is_file():
            yield Picture(match[1].lower(), int(match[2]), _file(path))


def _file(path: Path) -> Callable[[], bytes]:
    def read() -> bytes:
        with path.open("rb") as stream:
            return _within(stream)

    return read


def _in_archive(source: Path) -> Iterator[Picture]:
    try:
        archive = zipfile.ZipFile(source)
    except PermissionError as error:
        raise FeaturesError(f"images: {source} cannot be read: {error.strerror}") from None
    except Exception as error:  # a damaged list of contents can raise nearly anything
        raise FeaturesError(
            f"images: {source} is not a whole zip archive ({error}); it may be truncated: "
            "delete it and download it again"
        ) from None
    for entry in archive.infolist():
        match = _NAME.search(entry.filename)
        if match and not entry.is_dir():
            yield Picture(match[1].lower(), int(match[2]), _member(archive, entry))


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
            raise Unreadable("is not a plain file")
        if entry.flag_bits & 1:
            raise Unreadable("is encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Unreadable("is compressed in a way that zip archives of pictures do not use")
        if entry.file_size > LARGEST_FILE:
            raise Unreadable(f"claims {entry.file_size} bytes, and {LARGEST_FILE} are allowed")
        with archive.open(entry) as stream:
            return _within(stream)

    return read


def _within(stream: Any) -> bytes:
    data: bytes = stream.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise Unreadable(f"has more than the {LARGEST_FILE} bytes that are allowed")
    return data


def decoded(data: bytes) -> Any:
    """The RGB picture (of Pillow) in the bytes of a JPEG file, or `Unreadable`."""
    from PIL.JpegImagePlugin import JpegImageFile

    if data.count(b"\xff\xda") > MOST_SCANS:
        raise Unreadable(f"has more than {MOST_SCANS} scans")
    try:
        picture = JpegImageFile(io.BytesIO(data))  # only this decoder; nothing is decoded yet
        pixels = picture.width * picture.height
    except Exception:
        raise Unreadable("is not a JPEG file") from None
    if not 0 < pixels <= LARGEST_PICTURE:
        raise Unreadable(f"has {pixels} pixels, and 1 to {LARGEST_PICTURE} are allowed")
    try:
        return picture.convert("RGB")
    except Exception as error:
        raise Unreadable(f"is damaged ({error})") from None
