"""Binder: environment.yml and postBuild give a JupyterLab in which chapters are notebooks.

The environment is built with pip, as conda would hand the list to it, and every chapter is opened
in a real JupyterLab in headless Chromium: its statements must be rendered, its kernel must work.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jupytext
import pytest
import yaml
from conftest import IN_CI, ROOT

sys.path.insert(0, str(ROOT / "book"))

import build

pytestmark = [pytest.mark.slow, pytest.mark.notebook, pytest.mark.xdist_group("binder")]

# Show all cells at once instead of only those in view, and ask no questions.
SETTINGS = {
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}
STATEMENT = re.compile(r"^`{3,}\{prf:(?!proof)\w+\}", re.MULTILINE)


def run(*command: object, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A home folder with the environment of environment.yml, after postBuild."""
    folder = tmp_path_factory.mktemp("binder")
    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (pins,) = [entry["pip"] for entry in listed if isinstance(entry, dict)]
    (folder / "list.txt").write_text("\n".join(pins))
    assert run(sys.executable, "-m", "venv", folder / "env").returncode == 0
    pip = [folder / "env" / "bin" / "python", "-m", "pip", "install", "--quiet"]
    done = run(*pip, "-r", folder / "list.txt")
    if done.returncode and not IN_CI:
        pytest.skip(f"pip could not fetch environment.yml: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    clone = folder / "project"
    assert run("git", "clone", "--quiet", ROOT, clone).returncode == 0
    done = run("bash", "postBuild", cwd=clone, env=environment(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    overrides = folder / "config" / "labconfig" / "default_setting_overrides.json"
    overrides.write_text(json.dumps(json.loads(overrides.read_text()) | SETTINGS))
    return folder


def environment(folder: Path) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "PYTHON"))}
    return clean | {
        "HOME": str(folder),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "PATH": f"{folder / 'env' / 'bin'}:{os.environ['PATH']}",
    }


@pytest.fixture(scope="module")
def lab(home) -> Iterator[str]:
    """The address of a running JupyterLab."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["jupyter-lab", "--no-browser", "--allow-root", "--expose-app-in-browser"]
    command += [f"--ServerApp.port={port}", "--IdentityProvider.token=", "--ServerApp.password="]
    with open(home / "lab.log", "w") as log:
        server = subprocess.Popen(
            command, cwd=home / "project", env=environment(home), stdout=log, stderr=log
        )
    address = f"http://127.0.0.1:{port}"
    for _ in range(240):
        try:
            urllib.request.urlopen(f"{address}/api", timeout=5).close()
            break
        except OSError:
            assert server.poll() is None, (home / "lab.log").read_text()[-2000:]
            time.sleep(0.5)
    yield address
    server.terminate()
    server.wait(30)


@pytest.fixture(scope="module")
def tab(browser) -> Iterator[Any]:
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    yield page
    page.close()


def open_chapter(tab: Any, lab: str, name: str) -> None:
    tab.goto(f"{lab}/lab/workspaces/{name}/tree/notebooks/{name}.md")
    tab.wait_for_selector(".jp-Notebook .jp-MarkdownCell .myst", timeout=120_000)
    tab.wait_for_function(
        "() => { const panel = window.jupyterapp?.shell.currentWidget;"
        " return panel?.content?.model && panel.sessionContext?.isReady; }",
        timeout=120_000,
    )


@pytest.mark.parametrize("chapter", build.chapters(), ids=lambda path: path.stem)
def test_chapter_opens_as_a_notebook_with_its_statements_rendered(tab, lab, chapter):
    open_chapter(tab, lab, chapter.stem)
    cells = tab.evaluate("() => window.jupyterapp.shell.currentWidget.content.model.cells.length")
    assert cells == len(jupytext.read(chapter).cells)
    statements = len(STATEMENT.findall(chapter.read_text("utf8")))
    titles = "() => document.querySelectorAll('.myst-proof-title').length"
    if statements:
        tab.wait_for_function(f"() => ({titles})() >= {statements}", timeout=60_000)
    assert tab.locator(".katex-error").count() == 0


def test_cells_run(tab, lab):
    open_chapter(tab, lab, "play")
    tab.locator(".jp-CodeCell .cm-content").first.click()
    tab.keyboard.press("Shift+Enter")
    tab.wait_for_function(
        "() => [...window.jupyterapp.shell.currentWidget.content.model.cells]"
        ".some(cell => cell.executionCount)",
        timeout=120_000,
    )
    assert tab.locator(".jp-RenderedText[data-mime-type*=stderr]").count() == 0
