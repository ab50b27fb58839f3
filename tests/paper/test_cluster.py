"""A real local Dask cluster of several processes, one of which is killed: same results."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import fake_experiment as fake
import pytest
from test_store import start

from banditlib.paper import run

pytestmark = pytest.mark.slow


@pytest.fixture
def local_cluster():
    distributed = pytest.importorskip("distributed", reason="needs banditlib[cluster]")
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


def kill_one(cluster: object, when: threading.Event, killed: list[int]) -> None:
    when.wait(60)
    process = next(iter(cluster.workers.values())).process.process  # type: ignore[attr-defined]
    os.kill(process.pid, signal.SIGKILL)
    killed.append(process.pid)


def test_a_worker_killed_mid_run_changes_nothing(local_cluster: object, tmp_path: Path) -> None:
    undisturbed = tmp_path / "here"
    assert (
        start(["reproduce", "fake", "--scale", "full", "--workers", "1"], undisturbed).wait(60) == 0
    )
    batches = fake.batches(fake.cells("full"))
    begun, killed = threading.Event(), []  # type: ignore[var-annotated]
    killer = threading.Thread(target=kill_one, args=(local_cluster, begun, killed))
    killer.start()
    folder = tmp_path / "there" / "cells"
    address = local_cluster.scheduler_address  # type: ignore[attr-defined]
    done = 0
    for _ in run.cluster(slow_run, batches, "numpy", run.asked(), folder, address):
        done += 1
        begun.set()
    killer.join()
    assert killed and done == len(batches)
    assert fake.digests(tmp_path / "there") == fake.digests(undisturbed)


def slow_run(configs, backend):  # type: ignore[no-untyped-def]
    time.sleep(0.05)
    return fake.run(configs, backend)


def test_the_command_line_with_a_scheduler(local_cluster: object, tmp_path: Path) -> None:
    address = local_cluster.scheduler_address  # type: ignore[attr-defined]
    process = start(["reproduce", "fake", "--scale", "paper", "--scheduler", address], tmp_path)
    out, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "24 of 24 cells" in out and len(fake.digests(tmp_path)) == 24
