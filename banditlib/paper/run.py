"""Running the missing cells of an experiment: here, on several processes, or on a Dask cluster."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from banditlib.paper.results import Arrays, Cell, Config, Store, provenance

Runner = Callable[[Sequence[Config], str], list[Arrays]]
Batches = list[list[Config]]


class OtherVersion(Exception):
    """A worker would run another engine version than the one that was asked for."""


class CellFailed(Exception):
    """A cell could not be computed; the message names it."""


class Unreachable(Exception):
    """The Dask scheduler does not answer, or Dask is not installed."""


def compute(run: Runner, batch: Sequence[Config], backend: str) -> list[Cell]:
    """Compute one batch of cells; wall time is shared out evenly among them."""
    from banditlib.paper.experiments import ENGINE, NotAvailable

    for config in batch:
        if config["engine"] != ENGINE:
            raise OtherVersion(
                f"This worker has engine version {ENGINE}, but {config['engine']} was asked for: "
                "install the same banditlib on every machine."
            )
    start = time.perf_counter()
    try:
        arrays = run(batch, backend)
    except (OSError, NotAvailable):
        raise
    except Exception as error:
        raise CellFailed(
            f"{type(error).__name__}: {error} (in a batch of {len(batch)} cells that begins with "
            f"{batch[0]}). What is finished is kept."
        ) from error
    origin = provenance((time.perf_counter() - start) / max(1, len(batch)), backend)
    return [Cell(config, a, origin) for config, a in zip(batch, arrays, strict=True)]


def work(run: Runner, batch: Sequence[Config], backend: str, folder: Path) -> int:
    """Compute and store what is still missing of `batch`; the size of the batch."""
    store = Store(folder)
    missing = store.missing(batch)
    if missing:
        for cell in compute(run, missing, backend):
            store.write(cell)
    return len(batch)


def here(run: Runner, batches: Batches, backend: str, folder: Path) -> Iterator[list[Config]]:
    """Run batches one after the other in this process; yield each when it is on disk."""
    with one_thread():
        for batch in batches:
            work(run, batch, backend, folder)
            yield batch


def processes(
    run: Runner, batches: Batches, backend: str, folder: Path, workers: int
) -> Iterator[list[Config]]:
    """Run batches on `workers` processes of this machine (joblib, loky)."""
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky import get_reusable_executor

    def numbered(index: int) -> Any:
        return delayed(_indexed)(index, run, batches[index], backend, folder)

    finished = False
    try:
        with parallel_config(backend="loky", inner_max_num_threads=1):
            pool = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
            for index in pool(numbered(i) for i in range(len(batches))):
                yield batches[index]
        finished = True
    finally:
        if not finished:  # an error or an interrupt: do not wait for what is still running
            get_reusable_executor().shutdown(wait=False, kill_workers=True)


def _indexed(index: int, run: Runner, batch: Sequence[Config], backend: str, folder: Path) -> int:
    _follow_parent()
    work(run, batch, backend, folder)
    return index


@functools.cache
def _follow_parent() -> None:
    """End this worker process soon after the process that started it has died."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def cluster(
    run: Runner, batches: Batches, backend: str, folder: Path, address: str
) -> Iterator[list[Config]]:
    """Run batches on an existing Dask cluster; results come back and are written here.

    A batch whose worker dies is started again elsewhere by the scheduler.
    """
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise Unreachable(
            "Running on a cluster needs Dask: pip install 'banditlib[cluster]'."
        ) from error
    store = Store(folder)
    with contextlib.closing(_connect(Client, address)) as client:
        futures = {
            client.submit(compute, run, batch, backend, pure=False, retries=3): batch
            for batch in batches
        }
        try:
            for future in as_completed(list(futures)):
                for cell in future.result():
                    store.write(cell)
                yield futures[future]
        finally:
            client.cancel(list(futures))


def _connect(client: Any, address: str) -> Any:
    try:
        return client(address, timeout="10s")
    except (OSError, ValueError, TimeoutError) as error:
        raise Unreachable(
            f"No Dask scheduler answers at {address}: start one with `dask scheduler` and give its "
            "address, for example tcp://host:8786."
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
