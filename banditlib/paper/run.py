"""Batches of cells, computed here, on several processes, or on a Dask cluster.

A *task* is a function of one batch that can be sent to a worker.  Every worker says what it is made
of, and one that differs from what was asked for is refused: the same cell must come out everywhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from banditlib.paper.experiments import engine_of
from banditlib.paper.experiments.base import NotAvailable
from banditlib.paper.provenance import record, source, versions
from banditlib.paper.store import Arrays, Cell, Config, Store

Runner = Callable[[Sequence[Config], str], list[Arrays]]
Batches = list[list[Config]]
B = TypeVar("B")
R = TypeVar("R")

RETRIES = 2
"""How often a batch whose worker died is tried again while nothing else gets done."""
PATIENCE = 30.0
"""Seconds without any Dask worker after which we give up."""


class OtherVersion(Exception):
    """A worker is not what was asked for: other source, engine or versions."""


class CellFailed(Exception):
    """A cell could not be computed; the message names it."""


class WorkerDied(Exception):
    """A worker, or the scheduler, went away in the middle and trying again did not help."""


class Unreachable(Exception):
    """The Dask scheduler or its workers do not answer, or Dask is not installed."""


# --- what a worker is made of -------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """What a worker must be made of: banditlib's source, and versions unless they may differ."""

    source: str
    versions: dict[str, str]
    any_versions: bool = False

    def check(self, found: dict[str, Any]) -> None:
        """`OtherVersion` unless a record of provenance is that of such a worker."""
        if found["source"] != self.source:
            raise OtherVersion(
                f"A worker runs other source of banditlib ({found['source']}) than this process "
                f"({self.source}): install the same banditlib on every machine."
            )
        other = [k for k, v in self.versions.items() if found[k] != v]
        if other and not self.any_versions:
            told = ", ".join(f"{k} {found[k]} instead of {self.versions[k]}" for k in other)
            raise OtherVersion(
                f"A worker has {told}: install the same versions, or allow others with "
                "--allow-versions."
            )


def asked(any_versions: bool = False) -> Asked:
    """Workers made of the same as this process."""
    return Asked(source(), versions(), any_versions)


# --- tasks --------------------------------------------------------------------------------------


def compute(run: Runner, batch: Sequence[Config], backend: str, wanted: Asked) -> list[Cell]:
    """Compute one batch of cells; wall time is shared out evenly among them."""
    wanted.check({"source": source(), **versions()})
    for config in batch:
        if config["engine"] != (here := engine_of(config)):
            raise OtherVersion(
                f"This worker has engine version {here}, but {config['engine']} was asked for: "
                "install the same banditlib on every machine."
            )
    start = time.perf_counter()
    try:
        with one_thread():
            arrays = run(batch, backend)
    except (OSError, NotAvailable):
        raise
    except Exception as error:
        raise CellFailed(
            f"{type(error).__name__}: {error} (in a batch of {len(batch)} cells that begins with "
            f"{batch[0]}). What is finished is kept."
        ) from error
    origin = record((time.perf_counter() - start) / max(1, len(batch)), backend)
    return [Cell(config, a, origin) for config, a in zip(batch, arrays, strict=True)]


def compute_and_store(
    run: Runner, backend: str, wanted: Asked, folder: Path, batch: Sequence[Config]
) -> None:
    """Compute what is still missing of `batch` and write it to `folder`."""
    store = Store(folder)
    missing = store.missing(batch)
    if missing:
        for cell in compute(run, missing, backend, wanted):
            store.write(cell)


# --- here ---------------------------------------------------------------------------------------


def here(task: Callable[[B], R], batches: Sequence[B]) -> Iterator[tuple[B, R]]:
    """Run batches one after the other in this process."""
    for batch in batches:
        yield batch, task(batch)


def local(task: Callable[[B], R], batches: Sequence[B], workers: int) -> Iterator[tuple[B, R]]:
    """Run batches on this machine: here if one worker is enough, else on processes."""
    workers = min(workers, len(batches))
    return here(task, batches) if workers <= 1 else processes(task, batches, workers)


# --- processes of this machine ------------------------------------------------------------------


def processes(task: Callable[[B], R], batches: Sequence[B], workers: int) -> Iterator[tuple[B, R]]:
    """Run batches on processes of this machine; each result is yielded as it comes.

    If a worker dies, new workers go on with what is left, the batches it may have had last.
    """
    left = dict(enumerate(batches))
    fruitless = 0
    while left:
        try:
            for index, result in _on_pool(task, dict(left), min(workers, len(left))):
                fruitless = 0
                yield left.pop(index), result
        except BrokenProcessPool as error:
            suspects = list(left)[:workers]
            left |= {index: left.pop(index) for index in suspects}
            fruitless += 1
            if fruitless > RETRIES:
                raise WorkerDied(
                    f"A worker process died {fruitless} times over the same work: perhaps memory "
                    "ran out, try fewer --workers. What is finished is kept."
                ) from error


def _on_pool(
    task: Callable[[B], R], batches: dict[int, B], workers: int
) -> Iterator[tuple[int, R]]:
    import cloudpickle  # sends functions that pickle cannot, such as lambdas

    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _worker_starts, (os.getpid(),))
    sent = cloudpickle.dumps(task)
    finished = False
    try:
        futures = {pool.submit(_call, sent, batch): index for index, batch in batches.items()}
        for future in as_completed(futures):
            yield futures[future], future.result()
        finished = True
    finally:  # after an error or an interrupt do not wait for what is still running
        if not finished:
            for process in set(multiprocessing.active_children()) - others:
                process.kill()
        pool.shutdown(wait=finished, cancel_futures=True)


def _call(task: bytes, batch: Any) -> Any:
    return pickle.loads(task)(batch)


def _worker_starts(parent: int) -> None:
    """End with the parent, however it ends; interrupts are the parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # 1 is PR_SET_PDEATHSIG

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=watch, daemon=True).start()


# --- a Dask cluster -----------------------------------------------------------------------------


def cluster(
    run: Runner, batches: Batches, backend: str, wanted: Asked, folder: Path, address: str
) -> Iterator[tuple[list[Config], None]]:
    """Run batches on an existing Dask cluster; results come back and are written here.

    A batch whose worker dies is started again elsewhere by the scheduler.
    """
    try:
        from distributed import Client
        from distributed import as_completed as as_finished
    except ImportError as error:
        raise Unreachable(
            'Running on a cluster needs Dask: pip install -e ".[cluster]" in the clone.'
        ) from error
    store = Store(folder)
    client = _connect(Client, address)
    try:
        futures = {
            client.submit(compute, run, batch, backend, wanted, pure=False, retries=RETRIES): batch
            for batch in batches
        }
        finished = as_finished(list(futures))
        quiet = time.monotonic()
        while not finished.is_empty():
            ready = finished.next_batch(block=False)
            for future in ready:
                for cell in _result(future):
                    wanted.check(cell.provenance)
                    store.write(cell)
                yield futures[future], None
            quiet = time.monotonic() if ready or _has_workers(client, address) else quiet
            if time.monotonic() - quiet > PATIENCE:
                raise Unreachable(
                    f"The Dask scheduler at {address} has had no worker for {PATIENCE:.0f} s: "
                    f"start some with `dask worker {address}`. What is finished is kept."
                )
            if not ready:
                time.sleep(0.05)
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            client.close(timeout=2)


def _result(future: Any) -> list[Cell]:
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError

    try:
        return future.result(timeout=PATIENCE)
    except KilledWorker as error:
        raise WorkerDied(
            f"The Dask workers that had the same batch died {RETRIES + 1} times: perhaps memory "
            "ran out. What is finished is kept."
        ) from error
    except (FutureCancelledError, CommClosedError, TimeoutError) as error:
        raise _scheduler_lost() from error
    except (CellFailed, OtherVersion, NotAvailable, OSError):
        raise
    except Exception as error:  # Dask's own trouble, such as a function it cannot send
        raise CellFailed(f"Dask could not run a batch ({type(error).__name__}: {error})") from error


def _has_workers(client: Any, address: str) -> bool:
    """Whether the scheduler answers and has workers; `WorkerDied` if it went away."""
    if client.status != "running":
        raise _scheduler_lost()
    return bool(client.scheduler_info(n_workers=-1)["workers"])


def _scheduler_lost() -> WorkerDied:
    return WorkerDied(
        "The Dask scheduler went away. What is finished is kept: start it again, and the same "
        "command goes on."
    )


def _connect(client: Any, address: str) -> Any:
    try:
        return client(address, timeout="10s")
    except Exception as error:  # no answer, a malformed address, a tls:// one without keys
        raise Unreachable(
            f"No Dask scheduler answers at {address} ({type(error).__name__}): start one with "
            "`dask scheduler` and give its address, for example tcp://host:8786."
        ) from error


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS on one thread: our matrices are small, and processes share the cores."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(1):
        yield
