"""A tiny experiment for tests of the machinery: every cell is a seeded integer array.

Run as a script it is the command line with this experiment and no other: ``python
fake_experiment.py reproduce fake --out DIR``.  ``FAKE_SECONDS`` slows each cell down, so that a
kill can hit it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from banditlib.paper import cli, experiments
from banditlib.paper.experiments import base
from banditlib.paper.store import Arrays, Cell, Config, canonical

ENGINE = 1


def cells(scale: str) -> list[Config]:
    count = {"smoke": 6, "paper": 24, "full": 60}[scale]
    return [
        base.cell_config("fake", engine=ENGINE, seed=7, number=n, size=2000) for n in range(count)
    ]


def run(configs: Sequence[Config], backend: str) -> list[Arrays]:
    out = []
    for config in configs:
        log = os.environ.get("FAKE_LOG")
        if log:
            with open(log, "a") as file:
                file.write(f"{config['number']}\n")
        time.sleep(float(os.environ.get("FAKE_SECONDS", "0")))
        _die_if_told(config["number"])
        rng = np.random.default_rng(list(canonical(config)))
        out.append({"plays": rng.integers(0, 1000, size=config["size"])})
    return out


def _die_if_told(number: int) -> None:
    """Kill this process at the cell ``FAKE_DEADLY``: always, or only once (``FAKE_ONCE``)."""
    once = os.environ.get("FAKE_ONCE")
    if str(number) == os.environ.get("FAKE_DEADLY") and not (once and os.path.exists(once)):
        if once:
            Path(once).touch()
        os.kill(os.getpid(), signal.SIGKILL)


def render(found: Sequence[Cell], scale: str) -> dict[str, bytes]:
    rows = [f"{cell.config['number']},{cell.arrays['plays'][:50].sum()}" for cell in found]
    return {".csv": "\n".join(["number,total", *rows]).encode()}


def batches(configs: list[Config]) -> list[list[Config]]:
    return [configs[i : i + 2] for i in range(0, len(configs), 2)]


FAMILY = base.Family(
    "fake",
    run,
    batches=batches,
    thin=lambda cell: {"plays": cell.arrays["plays"][:50]},
    engine=lambda config: ENGINE,
)
FAKE = base.Experiment(
    "fake",
    "A fake table",
    FAMILY,
    cells,
    render,
    seconds={"smoke": 1.0, "paper": 2.0, "full": 5.0},
)


def digests(folder: Path) -> dict[str, str]:
    """Checksums of all cells in a folder, by key: what "identical results" means."""
    from banditlib.paper.store import read_cell

    found = (read_cell(path) for path in sorted(folder.glob("cells/fake/*.npz")))
    return {cell.key: cell.checksum for cell in found}


if __name__ in ("__main__", "__mp_main__"):  # the command, or a worker that it started
    experiments._load_all = lambda: None  # nor the drawing code that the real ones import
    base.register(FAKE)
if __name__ == "__main__":
    sys.exit(cli.main())
