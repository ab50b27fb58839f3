"""Fetching one large file: what was cut short goes on, and only the right bytes are kept."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from banditlib.files import sha256
from banditlib.paper.features import FeaturesError

_TRIES = 5


@dataclass(frozen=True)
class Remote:
    """A file elsewhere: its address, its length in bytes and its SHA-256."""

    url: str
    size: int
    digest: str

    @property
    def name(self) -> str:
        """The last part of its address."""
        return self.url.rsplit("/", 1)[-1]


def download(remote: Remote, target: Path, progress: bool = True) -> Path:
    """Fetch `remote` to `target`, going on where an earlier try was cut short.

    A file is judged by its length first: one that is too short is kept, and completed by the next
    try. One of the right length is judged by its whole SHA-256, and deleted if that is wrong.
    """
    if target.is_file():
        if target.stat().st_size == remote.size and sha256(target) == remote.digest:
            return target
        raise FeaturesError(f"{target} is not {remote.name}; delete it and run again")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    if part.is_symlink():
        part.unlink()
    have = _length(part)
    for _ in range(_TRIES):
        if have >= remote.size:
            break
        _fetch_rest(remote, part, progress)
        if _length(part) == have:
            break
        have = _length(part)
    if have < remote.size:
        raise FeaturesError(
            f"{remote.url} was cut short: {have} of {remote.size} bytes are in {part}; run again "
            "to go on"
        )
    if have > remote.size or sha256(part) != remote.digest:
        part.unlink()
        raise FeaturesError(
            f"{remote.url} is not the file that was expected (wrong length or SHA-256) and was "
            "deleted; run again, or fetch it yourself and name the file on the command line"
        )
    part.replace(target)
    return target


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _fetch_rest(remote: Remote, part: Path, progress: bool) -> None:
    """Append what is missing of `part`, or as much of it as arrives."""
    from tqdm import tqdm

    start = _length(part)
    with _asked(remote, start) as answer:
        goes_on = answer.status == 206 and _starts_at(answer, start)
        if not goes_on:
            start = 0
        with (
            part.open("ab" if goes_on else "wb") as stream,
            tqdm(
                total=remote.size,
                initial=start,
                unit="B",
                unit_scale=True,
                desc=remote.name,
                disable=None if progress else True,
            ) as bar,
        ):
            # One byte more than expected is enough to know that the file is another.
            left = remote.size - start + 1
            while piece := _piece(answer, min(left, 1 << 18)):
                stream.write(piece)
                bar.update(len(piece))
                left -= len(piece)


def _asked(remote: Remote, start: int) -> http.client.HTTPResponse:
    """The server's answer to the wish for all bytes from `start` on."""
    wish = urllib.request.Request(remote.url, headers={"Range": f"bytes={start}-"})
    try:
        answer: http.client.HTTPResponse = urllib.request.urlopen(wish, timeout=60)
        return answer
    except urllib.error.HTTPError as error:
        raise FeaturesError(f"{remote.url} answered {error.code} {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise FeaturesError(
            f"could not download {remote.url} ({getattr(error, 'reason', error)}); run again to go "
            "on, or fetch it yourself and name the file on the command line"
        ) from None


def _piece(answer: http.client.HTTPResponse, size: int) -> bytes:
    """The next bytes, or none at the end, which may come too early."""
    try:
        return answer.read(size)
    except (OSError, http.client.HTTPException):
        return b""


def _starts_at(answer: http.client.HTTPResponse, start: int) -> bool:
    """Whether a partial answer begins where ours ends."""
    return answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
