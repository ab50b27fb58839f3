"""What the tests share: one BLAS thread, the built site and its address, and one browser."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
IN_CI = os.environ.get("CI", "") == "true"

# The head of a chapter.
FRONT = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
"""

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


# Milliseconds that a browser may take for one thing on a machine that is busy with others.
PATIENCE = 180_000


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


class Quiet(SimpleHTTPRequestHandler):
    """A server that writes no log."""

    def log_message(self, *_: Any) -> None:
        pass

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file; a reader may go away before it is all there."""
        with contextlib.suppress(ConnectionError):
            super().copyfile(source, outputfile)


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The site, served on a port of this machine."""
    handler = functools.partial(Quiet, directory=str(site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Any]:
    """One running browser; a process cannot drive two."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    with playwright.sync_playwright() as play:
        running = play.chromium.launch(executable_path=chromium, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def visit(browser: Any, address: str, site: Path) -> Iterator[Callable[[str, str], Any]]:
    """Open a page of the site and wait for what a script puts there; errors go to `faults`."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)

    def go(name: str, selector: str) -> Any:
        if not (site / f"{name}.html").exists():
            pytest.skip(f"the built site has no {name}")
        tab = context.new_page()
        tab.faults = []
        tab.on("pageerror", lambda error: tab.faults.append(str(error)))
        tab.goto(f"{address}/{name}.html")
        tab.wait_for_selector(selector)
        return tab

    yield go
    context.close()
