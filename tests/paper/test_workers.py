"""Workers that die, are killed, are orphaned or are made of something else."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fake_experiment as fake
import pytest
from attacks import SEED, record, tries
from test_store import no_orphans, session, start

from banditlib.paper import cli, experiments, run
from banditlib.paper.experiments import base

ROOT = Path(__file__).resolve().parents[2]
PLACES = (ROOT / "tests", ROOT / "tests" / "paper")
FULL = ["reproduce", "fake", "--scale", "full"]


# --- what a worker is made of -------------------------------------------------------------------


def test_a_worker_of_other_source_is_refused_whatever_is_allowed() -> None:
    mine = run.asked()
    found = {"source": mine.source, **mine.versions}
    mine.check(found)
    for allowed in (False, True):
        with pytest.raises(run.OtherVersion, match="other source"):
            run.asked(allowed).check({**found, "source": "0"})
    with pytest.raises(run.OtherVersion, match=r"numpy 0\.1 instead of .*--allow-versions"):
        mine.check({**found, "numpy": "0.1"})
    run.asked(any_versions=True).check({**found, "numpy": "0.1"})


def test_no_more_workers_than_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def recorded(task: Any, batches: Any, workers: int) -> Iterator[Any]:
        seen.append(workers)
        return run.here(task, batches)

    monkeypatch.setattr(run, "processes", recorded)
    assert len(list(run.local(len, [[1], [2], [3]], workers=40))) == 3 and seen == [3]
    assert len(list(run.local(len, [[1]], workers=40))) == 1 and seen == [3]


# --- processes of this machine ------------------------------------------------------------------


def test_a_worker_that_dies_once_is_replaced(tmp_path: Path) -> None:
    once = str(tmp_path / "once")
    out = tmp_path / "out"
    process = start([*FULL, "--workers", "2"], out, FAKE_DEADLY="7", FAKE_ONCE=once)
    _, said = process.communicate(timeout=120)
    assert process.returncode == cli.OK, said
    assert Path(once).exists() and len(fake.digests(out)) == 60
    assert not list(out.rglob(".*.tmp"))


@pytest.mark.slow
def test_a_batch_that_kills_its_worker_ends_in_a_sentence(tmp_path: Path) -> None:
    process = start([*FULL, "--workers", "2"], tmp_path, FAKE_DEADLY="7")
    _, said = process.communicate(timeout=120)
    assert process.returncode == cli.BROKEN
    assert "A worker process died 3 times" in said and "Traceback" not in said
    assert len(fake.digests(tmp_path)) >= 50  # the others are kept
    assert no_orphans(process.pid)


@pytest.mark.attack
@pytest.mark.skipif(sys.platform != "linux", reason="looks for orphans in /proc")
def test_no_orphans_whenever_the_parent_dies(tmp_path: Path) -> None:
    """Also between the start of a worker and its first task."""
    rng, count, started = random.Random(SEED), tries(3, 40), 0
    for number in range(count):
        process = start([*FULL, "--workers", "2"], tmp_path / str(number), quiet=True)
        deadline = time.monotonic() + 30
        while not session(process.pid) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 1.5))
        started += bool(session(process.pid))
        process.kill()
        process.wait(20)
        assert no_orphans(process.pid)
    record("parents killed while workers start", tried=count, with_workers=started, orphans=0)


# --- a Dask cluster -----------------------------------------------------------------------------


def test_processes_do_every_batch_and_name_it():
    """More batches than workers; a function that pickle cannot send."""
    batches = [[i, i + 1] for i in range(5)]
    found = {batch[0]: total for batch, total in run.local(lambda b: sum(b), batches, 2)}
    assert found == {i: 2 * i + 1 for i in range(5)}


def test_workers_that_keep_dying_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "RETRIES", 1)
    with pytest.raises(run.WorkerDied, match=r"died 2 times .* What is finished is kept"):
        list(run.processes(lambda batch: os._exit(1), [[1], [2]], 2))


@pytest.fixture
def only_fake(monkeypatch: pytest.MonkeyPatch) -> None:
    experiments.registry()  # load the real ones first, so that nothing registers later
    monkeypatch.setattr(base, "_REGISTRY", {"fake": fake.FAKE})


def test_a_tls_address_without_keys_is_a_sentence(
    tmp_path: Path, only_fake: None, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="needs banditlib[cluster]")
    words = ["reproduce", "fake", "--scale", "smoke", "--out", str(tmp_path)]
    assert cli.main([*words, "--scheduler", "tls://127.0.0.1:8786"]) == cli.MISSING
    assert "No Dask scheduler answers at tls://" in capsys.readouterr().err


class Cluster:
    """A scheduler and workers as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes = folder, []  # type: tuple[Path, list[subprocess.Popen[bytes]]]
        self.file = folder / "scheduler.json"
        self.scheduler = self._start("distributed.cli.dask_scheduler", "--port", "0", ROOT)
        deadline = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.address = json.loads(self.file.read_text())["address"]

    def worker(self, root: Path = ROOT) -> subprocess.Popen[bytes]:
        return self._start("distributed.cli.dask_worker", "--nthreads", "1", root)

    def _start(self, module: str, *words: Any) -> subprocess.Popen[bytes]:
        *words, root = words
        end = ["--no-dashboard"] if "scheduler" in module else ["--no-nanny"]
        process = subprocess.Popen(
            [sys.executable, "-m", module, "--scheduler-file", str(self.file), *words, *end],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (root, *PLACES)))},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait(20)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("distributed", reason="needs banditlib[cluster]")
    made = Cluster(tmp_path)
    yield made
    made.close()


def submit(cluster: Cluster, folder: Path, run_cells: Any = fake.run) -> int:
    batches = fake.batches(fake.cells("full"))
    wanted, folder = run.asked(), folder / "cells"
    steps = run.cluster(run_cells, batches, "numpy", wanted, folder, cluster.address)
    return sum(1 for _ in steps)


@pytest.mark.slow
def test_no_dask_worker_is_a_sentence(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PATIENCE", 2.0)
    with pytest.raises(run.Unreachable, match="has had no worker for 2 s"):
        submit(cluster, tmp_path / "out")


@pytest.mark.slow
def test_dask_workers_of_other_source_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(ROOT / "banditlib", other / "banditlib")
    view = other / "banditlib" / "view.py"
    text = view.read_text()
    assert "TAU = 1e-9" in text
    view.write_text(text.replace("TAU = 1e-9", "TAU = 1e-3"))
    cluster.worker(other)
    with pytest.raises(run.OtherVersion, match="other source of banditlib"):
        submit(cluster, tmp_path / "out")
    assert not list(tmp_path.rglob("fake/*.npz"))


@pytest.mark.slow
def test_a_scheduler_that_dies_is_a_sentence(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PATIENCE", 10.0)
    cluster.worker()
    batches = fake.batches(fake.cells("full"))
    folder = tmp_path / "out" / "cells"
    steps = run.cluster(slow, batches, "numpy", run.asked(), folder, cluster.address)
    next(steps)
    cluster.scheduler.send_signal(signal.SIGKILL)
    with pytest.raises((run.WorkerDied, run.Unreachable), match=r"What is finished is kept"):
        list(steps)
    assert fake.digests(tmp_path / "out")


def slow(configs: Any, backend: str) -> Any:
    time.sleep(0.3)
    return fake.run(configs, backend)
