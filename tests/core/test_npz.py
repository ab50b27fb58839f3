"""Arrays in one file: written to a path or a stream, and read only if they fit into memory."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest

import banditlib as bl
from banditlib.npz import DamagedFileError, read_npz, write_npz

ARRAYS = {"a": np.arange(6).reshape(2, 3), "b": np.zeros(100_000)}


@pytest.mark.parametrize("small", [False, True])
def test_paths_and_streams_hold_the_same(tmp_path: Path, small: bool) -> None:
    path, stream = tmp_path / "file.npz", io.BytesIO()
    for file in (path, str(path), stream):
        write_npz(file, ARRAYS, small)
    stream.seek(0)
    for file in (path, str(path), stream):
        found = read_npz(file)
        assert found.keys() == ARRAYS.keys()
        assert all(np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS)
    assert (path.stat().st_size < 10_000) == small
    assert [p.name for p in tmp_path.iterdir()] == ["file.npz"]


def test_what_is_neither_path_nor_file_is_named() -> None:
    with pytest.raises(TypeError, match=r"^file: expected a path or an open file, got 5"):
        read_npz(5)  # type: ignore[arg-type]


def test_arrays_that_would_take_too_much_are_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    write_npz(path, ARRAYS, small=True)
    with pytest.raises(DamagedFileError, match=r"^claims 80.* bytes, and 500000 are allowed"):
        read_npz(path, largest=500_000)


def claims_gigabytes(path: Path) -> None:
    """Let the list of contents of an archive say of every entry that it has four gigabytes."""
    content = bytearray(path.read_bytes())
    for entry in re.finditer(b"PK\x01\x02", bytes(content)):
        content[entry.start() + 24 : entry.start() + 28] = b"\xf0\xff\xff\xff"
    path.write_bytes(content)


def test_saved_runs_and_agents_that_claim_too_much_are_refused(tmp_path: Path) -> None:
    path, policy = tmp_path / "file.npz", bl.OFUL(1.0, 1.0)
    bl.simulate(bl.problems.synthetic(gap=None), policy, 3, 1, progress=False).save(path)
    claims_gigabytes(path)
    with pytest.raises(ValueError, match=r"^file: .* is not a saved run \(claims \d+ bytes"):
        bl.Run.load(path)
    policy.start(3).save(path)
    claims_gigabytes(path)
    with pytest.raises(ValueError, match=r"^file: .* is not a saved agent \(claims \d+ bytes"):
        bl.load(path)
