"""Binder: what the launch buttons open is a JupyterLab with the chapters as notebooks.

The branch is laid out as the site's workflow does it, the environment is built with pip, as conda
would hand the list to it, and postBuild is run. Every chapter is then opened in a real JupyterLab
in headless Chromium: statements, verdicts and formulas must be rendered, no reference may be left
unresolved, links must stay in this JupyterLab, and the kernel must work.
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

import pytest
import yaml
from conftest import IN_CI, PATIENCE, ROOT

from book import build

# The export writes into the tree, so tests that need it do not run side by side.
pytestmark = [pytest.mark.slow, pytest.mark.notebook, pytest.mark.xdist_group("notebooks")]

# Show all cells at once instead of only those in view, and ask no questions.
SETTINGS = {
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}
STATEMENT = re.compile(r"^`{3,}\{prf:(?!proof)\w+\}", re.MULTILINE)
VERDICT = re.compile(r"^`{3,}\{verdict\} (.*)$", re.MULTILINE)
SHOWN = re.compile(r"\*\*(?:✓ holds|↻ holds|✗ false|– not test)[^*]*\*\*")
REPOSITORY = "https://github.com/somebody/something"
# In the rendered text cells: titles of statements, verdicts, and what was left unresolved.
SEEN = r"""() => {
  const cells = [...document.querySelectorAll('.jp-MarkdownCell .jp-MarkdownOutput')];
  const bold = cells.flatMap(c => [...c.querySelectorAll('strong')].map(s => s.textContent.trim()));
  const text = cells.map(c => c.textContent).join('\n');
  return {
    statements: bold.filter(s => /^[A-Z][a-z]+ \d+(\.\d+)*$/.test(s)).length,
    verdicts: bold.filter(s => /^(✓ holds|↻ holds|✗ false|– not test)/.test(s)).length,
    unresolved: text.match(/\{[a-z:]+\}`[^`]*`|\{(verdict|(prf|glue):\w+)\}|undefined/g) || [],
    dollars: text.match(/\$[^$\n]{1,80}\$/g) || [],
    outside: cells.flatMap(c => [...c.querySelectorAll('a[href*="colab.research"]')]).length,
  };
}"""


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
    made = folder / "made"
    done = run(
        *(sys.executable, "-m", "book.build", "--notebooks"),
        *("--repository", REPOSITORY, "--output", made),
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    branch = folder / "branch"
    done = run("sh", ROOT / ".ci" / "branch", branch, made, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    done = run("bash", "postBuild", cwd=branch, env=environment(folder))
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
        server = subprocess.Popen(command, cwd=home, env=environment(home), stdout=log, stderr=log)
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
    page.set_default_timeout(PATIENCE)
    yield page
    page.close()


def open_chapter(tab: Any, lab: str, path: str) -> None:
    workspace = re.sub(r"\W", "-", path)
    tab.goto(f"{lab}/lab/workspaces/{workspace}/tree/{path}")
    tab.wait_for_selector(".jp-Notebook .jp-MarkdownCell .jp-MarkdownOutput")
    tab.wait_for_function(
        "() => { const panel = window.jupyterapp?.shell.currentWidget;"
        " return panel?.content?.model && panel.sessionContext?.isReady; }",
    )


@pytest.mark.parametrize("chapter", build.chapters(), ids=lambda path: path.stem)
def test_chapter_opens_as_a_notebook_with_everything_resolved(tab, lab, home, chapter):
    open_chapter(tab, lab, f"branch/notebooks/{chapter.stem}.ipynb")
    cells = tab.evaluate("() => window.jupyterapp.shell.currentWidget.content.model.cells.length")
    made = json.loads((home / "branch" / "notebooks" / f"{chapter.stem}.ipynb").read_text("utf8"))
    assert cells == len(made["cells"])
    source = chapter.read_text("utf8")
    statements = len(STATEMENT.findall(source))
    text = "\n".join("".join(c["source"]) for c in made["cells"] if c["cell_type"] == "markdown")
    verdicts = len(SHOWN.findall(text))  # definitions have none, like claims share one
    boxes = VERDICT.findall(source)
    assert [i for box in boxes for i in re.split(r",\s*", box.strip()) if i not in text] == []
    tab.wait_for_function(f"() => ({SEEN})().statements >= {statements}")
    seen = tab.evaluate(SEEN)
    assert seen["verdicts"] == verdicts
    assert seen["unresolved"] == [] and seen["dollars"] == [] and seen["outside"] == 0
    assert tab.locator(".katex-error, mjx-merror").count() == 0


def test_cells_run(tab, lab):
    """All cells of a chapter whose code is folded, with the command behind "Run all cells"."""
    open_chapter(tab, lab, "branch/notebooks/play.ipynb")
    tab.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    code = (
        "window.jupyterapp.shell.currentWidget.content.model.toJSON().cells"
        ".filter(cell => cell.cell_type === 'code')"
    )
    tab.wait_for_function(f"() => {code}.every(cell => cell.execution_count)")
    outputs = tab.evaluate(f"() => {code}.flatMap(cell => cell.outputs)")
    assert outputs and not [o for o in outputs if o["output_type"] == "error"]
    assert tab.locator(".jp-RenderedText[data-mime-type*=stderr]").count() == 0
