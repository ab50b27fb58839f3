"""Cells on disk: whole or absent, verified, and unharmed by kills, full disks and company."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

import fake_experiment as fake
import numpy as np
import pytest
from attacks import SEED, record, tries

from banditlib import files
from banditlib.paper import cli, experiments, provenance, store
from banditlib.paper.experiments import base
from banditlib.paper.store import Cell, Damaged, Packed, Store, read_cell, write_cell

SCRIPT = Path(fake.__file__)
CONFIG = fake.cells("smoke")[0]


def a_cell() -> Cell:
    return Cell(CONFIG, fake.run([CONFIG], "numpy")[0], provenance.record(0.5))


# --- identity -----------------------------------------------------------------------------------


def test_key_depends_on_the_configuration_alone_and_not_on_its_order() -> None:
    assert store.key({"a": 1, "b": [1, 2]}) == store.key({"b": [1, 2], "a": 1})
    assert store.key({"a": 1}) != store.key({"a": 2})


def test_checksum_sees_values_types_shapes_names_and_configuration() -> None:
    base = np.arange(6)
    seen = {
        store.checksum({}, {"x": base}),
        store.checksum({}, {"x": base + 1}),
        store.checksum({}, {"x": base.astype(np.int32)}),
        store.checksum({}, {"x": base.reshape(2, 3)}),
        store.checksum({}, {"y": base}),
        store.checksum({"a": 1}, {"x": base}),
    }
    assert len(seen) == 6
    big = base.astype(base.dtype.newbyteorder(">"))
    assert store.checksum({}, {"x": big}) == store.checksum({}, {"x": base})


def test_checksum_leaves_provenance_out() -> None:
    cell = a_cell()
    assert Cell(cell.config, cell.arrays, {"wall": 99}).checksum == cell.checksum


def test_provenance_has_every_field() -> None:
    wanted = "python numpy platform cpu cores blas banditlib commit dirty source backend dtype"
    assert set(provenance.record(1.0)) >= {*wanted.split(), "wall", "finished"}


# --- one file -----------------------------------------------------------------------------------


def test_round_trip_without_pickle(tmp_path: Path) -> None:
    path = tmp_path / "cell.npz"
    cell = a_cell()
    write_cell(path, cell)
    back = read_cell(path, CONFIG)
    assert back.checksum == cell.checksum and back.provenance == cell.provenance
    with np.load(path, allow_pickle=False) as archive:  # any numpy can read it
        assert set(archive.files) == {"cell", "plays"}
    assert [p.name for p in tmp_path.iterdir()] == ["cell.npz"]


@pytest.mark.parametrize("cut", [0, 1, 20, 300, -1])
def test_a_truncated_cell_is_damaged(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "cell.npz"
    write_cell(path, a_cell())
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(Damaged):
        read_cell(path, CONFIG)


@pytest.mark.attack
def test_every_flipped_bit_is_noticed_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "cell.npz"
    cell = a_cell()
    write_cell(path, cell)
    good = path.read_bytes()
    bits = range(8 * len(good))
    chosen = sorted(random.Random(SEED).sample(bits, min(len(bits), tries(400, 10**6))))
    noticed = 0
    for bit in chosen:
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            back = read_cell(path, CONFIG)
        except Damaged:
            noticed += 1
        else:  # a bit of the archive that means nothing, such as a time stamp or a flag
            assert back.checksum == cell.checksum
    record("bit flips of a cell", tried=len(chosen), noticed=noticed, crashes=0)
    assert noticed > 0.75 * len(chosen)


@pytest.mark.parametrize("error", [errno.EIO, errno.EMFILE, errno.EACCES])
def test_a_passing_fault_of_the_disk_sets_no_cell_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    folder = Store(tmp_path)
    path = folder.write(a_cell())
    real = Path.read_bytes

    def fails(self: Path) -> bytes:
        raise OSError(error, os.strerror(error), str(self))

    monkeypatch.setattr(Path, "read_bytes", fails)
    with pytest.raises(OSError, match="npz"):
        folder.read(CONFIG)
    monkeypatch.setattr(Path, "read_bytes", real)
    assert path.exists() and folder.read(CONFIG) is not None
    assert not list(tmp_path.rglob("*.damaged"))


def test_what_is_no_file_is_set_aside(tmp_path: Path) -> None:
    folder = Store(tmp_path)
    path = folder.path(CONFIG)
    path.mkdir(parents=True)
    assert folder.read(CONFIG) is None and not path.exists()
    path.symlink_to(path)
    assert folder.read(CONFIG) is None and not path.is_symlink()


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "cell.npz"
    victim.write_bytes(b"precious")
    link.symlink_to(victim)
    files.write_whole(link, b"new")
    assert victim.read_bytes() == b"precious" and link.read_bytes() == b"new"
    assert not link.is_symlink() and sorted(p.name for p in tmp_path.iterdir()) == [
        "cell.npz",
        "victim",
    ]


def test_a_foreign_cell_under_the_right_name_is_not_trusted(tmp_path: Path) -> None:
    other = fake.cells("smoke")[1]
    folder = Store(tmp_path)
    write_cell(folder.path(CONFIG), Cell(other, fake.run([other], "numpy")[0]))
    assert folder.read(CONFIG) is None


def test_forged_arrays_are_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "cell.npz"
    write_cell(path, a_cell())
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["plays"] = arrays["plays"] + 1
    np.savez(path, **arrays)
    with pytest.raises(Damaged, match="checksum"):
        read_cell(path, CONFIG)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04" + bytes(100)])
def test_damaged_files_are_named_set_aside_and_computed_again(
    tmp_path: Path, content: bytes
) -> None:
    said: list[str] = []
    folder = Store(tmp_path, notice=said.append)
    path = folder.write(a_cell())
    for number in (1, 2):
        path.write_bytes(content)
        assert folder.missing([CONFIG]) == [CONFIG]
        assert not path.exists() and len(list(path.parent.glob("*.damaged"))) == number
        assert str(path) in said[-1] and "set aside" in said[-1]
    folder.write(a_cell())
    assert folder.missing([CONFIG]) == []


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cell.npz"
    np.savez(path, cell=np.array([{"a": 1}], dtype=object))
    with pytest.raises(Damaged):
        read_cell(path)


def half_written(path: Path, pid: int, host: str = "") -> Path:
    """What a writer leaves that was killed while it wrote."""
    half = path.with_name(f".{path.name}.{host or files._host()}.{pid}.0123abcd.tmp")
    half.write_bytes(b"half")
    return half


def test_temporary_files_of_dead_writers_are_swept(tmp_path: Path) -> None:
    folder = Store(tmp_path)
    path = folder.write(a_cell())
    zombie = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)  # dead, and not asked about yet
    try:
        gone = half_written(path, zombie.pid)
        reused = half_written(path, os.getpid())  # its writer's number is ours now
        elsewhere = half_written(path, zombie.pid, "another-host")
        assert folder.sweep() == 2
        assert not gone.exists() and not reused.exists() and elsewhere.exists()
    finally:
        zombie.wait()


def test_a_file_that_is_being_written_is_not_swept(tmp_path: Path) -> None:
    swept = []

    def write(file: BinaryIO) -> None:
        file.write(b"half")
        swept.append(files.sweep(tmp_path))
        file.write(b" and half")

    files.write_whole(tmp_path / "a", write)
    assert swept == [0] and (tmp_path / "a").read_bytes() == b"half and half"


def test_a_sweep_between_opening_and_locking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, swept = files._lock, []

    def lock(file: BinaryIO, wait: bool) -> bool | None:
        if wait and not swept:
            swept.append(files.sweep(tmp_path))
        return real(file, wait)

    monkeypatch.setattr(files, "_lock", lock)
    files.write_whole(tmp_path / "a", b"whole")
    assert swept == [1] and [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("how", ["Windows", "a folder without locks"])
def test_where_files_cannot_be_locked_the_process_number_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def refuses(*asked: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    if how == "Windows":
        monkeypatch.setattr(files, "fcntl", None)
    else:
        monkeypatch.setattr(files.fcntl, "flock", refuses)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    path = Store(tmp_path).write(a_cell())
    gone, alive = half_written(path, dead.pid), half_written(path, os.getpid())
    assert files.sweep(path.parent) == 1
    assert not gone.exists() and alive.exists()
    with pytest.raises(OSError, match="cannot be locked"), files.locked(tmp_path):
        pass


# --- a full disk --------------------------------------------------------------------------------


def test_no_space_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    real, calls = os.fsync, []

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    experiments.registry()  # load the real ones first, so that nothing registers later
    monkeypatch.setattr(base, "_REGISTRY", {"fake": fake.FAKE})
    monkeypatch.setattr(files.os, "fsync", full)
    words = ["reproduce", "fake", "--scale", "paper", "--workers", "1", "--out", str(out)]
    assert cli.main(words) == cli.NO_SPACE
    assert "No space left" in capsys.readouterr().err
    assert not list(out.glob("**/*.tmp"))
    kept = fake.digests(out)
    assert 0 < len(kept) < 24
    monkeypatch.setattr(files.os, "fsync", real)
    assert cli.main(words) == cli.OK
    assert kept.items() <= fake.digests(out).items() and len(fake.digests(out)) == 24


@pytest.fixture
def tiny_disk(tmp_path: Path) -> object:
    """A file system of 160 KB, if we are allowed to mount one."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = shutil.which("mount")
    done = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(folder)], capture_output=True
    )
    if not done or done.returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=False)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_really_full_disk(tiny_disk: Path, tmp_path: Path, workers: str) -> None:
    command = ["reproduce", "fake", "--scale", "full", "--workers", workers]
    full = start(command, tiny_disk)
    _, said = full.communicate(timeout=60)
    assert full.returncode == cli.NO_SPACE and "No space left" in said and "Traceback" not in said
    kept = fake.digests(tiny_disk)  # every file that is there is sound
    assert kept
    roomy = tmp_path / "roomy"
    shutil.copytree(tiny_disk, roomy)
    assert start(command, roomy).wait(60) == 0
    assert kept.items() <= fake.digests(roomy).items() and len(fake.digests(roomy)) == 60


# --- kills and company --------------------------------------------------------------------------


def start(command: list[str], out: Path, quiet: bool = False, **env: str) -> subprocess.Popen[str]:
    """The command line with the fake experiment, in a process group of its own."""
    where = subprocess.DEVNULL if quiet else subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *command, "--out", str(out)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SCRIPT.parent.parent)]), **env},
        stdout=where,
        stderr=where,
        text=True,
        start_new_session=True,
        preexec_fn=hears_interrupts,
    )


def hears_interrupts() -> None:
    """Undo what a shell does to the jobs it puts into the background: it makes them deaf."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("undisturbed")
    assert start(["reproduce", "fake", "--scale", "full", "--workers", "1"], out).wait(60) == 0
    return fake.digests(out)


def session(pid: int) -> list[int]:
    """The processes of the session that process `pid` leads or led, but for itself."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == pid and fields[0] != "Z" and int(path.parent.name) != pid:
                found.append(int(path.parent.name))
    return found


def no_orphans(pid: int, seconds: float = 10.0) -> bool:
    """Whether all that process `pid` started is gone soon after it died."""
    deadline = time.monotonic() + seconds
    while session(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not session(pid)


def kill_and_resume(out: Path, kills: int, workers: str, rng: random.Random) -> int:
    """Kill a run at random moments, whole group or parent alone; then let it finish."""
    command = ["reproduce", "fake", "--scale", "full", "--workers", workers]
    hit = 0
    for number in range(kills):
        before = len(list(out.glob("cells/fake/*.npz")))
        process = start(command, out, quiet=True, FAKE_SECONDS="0.05")
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and process.poll() is None:
            if len(list(out.glob("cells/fake/*.npz"))) > before:  # it is at work
                break
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.15))
        hit += process.poll() is None
        if number % 2:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait(20)
        assert no_orphans(process.pid)
    process = start(command, out)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return hit


@pytest.mark.slow
def test_killed_at_random_a_run_resumes_to_identical_results(
    tmp_path: Path, expected: dict[str, str]
) -> None:
    hit = kill_and_resume(tmp_path, 4, "2", random.Random(3))
    assert hit >= 3
    assert fake.digests(tmp_path) == expected


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.parametrize("workers", ["1", "2"])
def test_killed_dozens_of_times(tmp_path: Path, expected: dict[str, str], workers: str) -> None:
    rng, hit = random.Random(SEED), 0
    rounds = tries(2, 7)
    for number in range(rounds):
        out = tmp_path / str(number)
        hit += kill_and_resume(out, 8, workers, rng)
        assert fake.digests(out) == expected
        assert not list(out.rglob("*.tmp")) and not list(out.rglob("*.damaged"))
    record(f"kills, {workers} workers", tried=8 * rounds, at_work=hit, orphans=0, differing=0)
    assert hit >= 4 * rounds


def test_two_processes_on_one_folder(tmp_path: Path, expected: dict[str, str]) -> None:
    command = ["reproduce", "fake", "--scale", "full", "--workers", "2"]
    pair = [start(command, tmp_path, FAKE_SECONDS="0.02") for _ in range(2)]
    for process in pair:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    assert fake.digests(tmp_path) == expected
    assert not list(tmp_path.glob("**/*.damaged")) and not list(tmp_path.glob("**/*.tmp"))


def test_readers_never_see_half_a_file(tmp_path: Path) -> None:
    folder, cell, stop, bad = Store(tmp_path), a_cell(), threading.Event(), []
    folder.write(cell)

    def look() -> None:
        while not stop.is_set():
            try:
                read_cell(folder.path(CONFIG), CONFIG)
            except Damaged as fault:
                bad.append(fault)

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(60):
        folder.write(cell)
    stop.set()
    reader.join()
    assert not bad


# --- packs --------------------------------------------------------------------------------------


def packed() -> list[Packed]:
    out = []
    for config in fake.cells("paper"):
        cell = Cell(config, fake.run([config], "numpy")[0], provenance.record(0.1))
        out.append(Packed(config, fake.FAMILY.thin(cell), cell.checksum, cell.provenance))
    return out


def test_packs_round_trip_exactly(tmp_path: Path) -> None:
    path, cells = tmp_path / "p.npz", packed()
    store.write_pack(path, "p", cells)
    for before, after in zip(cells, store.read_pack(path), strict=True):
        assert before.config == after.config and before.whole == after.whole
        assert before.provenance == after.provenance
        kept, back = before.arrays["plays"], after.arrays["plays"]
        assert back.dtype == kept.dtype and np.array_equal(back, kept)


def test_the_bytes_of_a_pack_depend_on_its_content_alone(tmp_path: Path) -> None:
    cells = packed()
    store.write_pack(tmp_path / "a.npz", "p", cells)
    time.sleep(1.1)
    store.write_pack(tmp_path / "b.npz", "p", cells)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_changed_pack_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    store.write_pack(path, "p", packed())
    with np.load(path) as archive:
        arrays = dict(archive)
    name = next(n for n in arrays if n.endswith("plays"))
    arrays[name] = arrays[name] ^ 1
    np.savez_compressed(path, **arrays)
    with pytest.raises(Damaged, match="checksum"):
        store.read_pack(path)
