"""What the tests share: one BLAS thread, the built site, and a browser if there is one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
IN_CI = os.environ.get("CI", "") == "true"


def missing(reason: str) -> None:
    """Skip, and say why; where everything should be there, fail instead."""
    if IN_CI:
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site."""
    folder = ROOT / "_build" / "html"
    if not (folder / "book" / "index.html").exists():
        missing("the site is not built: run make book")
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if found := shutil.which(name):
            return found
    missing("no Chromium was found: install one (Debian: apt-get install chromium)")
    raise AssertionError  # never reached
