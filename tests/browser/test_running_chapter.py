"""Python in the page, in Chromium: it starts, installs our wheels, runs cells, and stops.

Pyodide's tarball comes from the cache or through npm; where neither has it, the tests skip and say
so. What needs numpy's WebAssembly wheel runs where ``make live`` has put it into the cache.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, ROOT, Quiet

from book.extensions import live, live_bytecode, live_files

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

# What pages may load, as strictly as a page can say it.
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"

CELL = """
<div class="cell docutils container">
<div class="cell_input docutils container"><div class="highlight-ipython3 notranslate">
<div class="highlight"><pre>{code}</pre></div></div></div>
<div class="cell_output docutils container"><div class="output stream"><div class="highlight">
<pre>{printed}</pre></div></div></div>
</div>
"""
PAGE = """<!doctype html>
<html lang="en" data-theme="light"><head><meta charset="utf-8"><title>A chapter</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="stylesheet" href="../_static/book.css">
<link rel="stylesheet" href="../_static/live/live.css">
<link rel="icon" href="data:,">
<script defer src="../_static/live/start.js"></script>
</head><body><main class="bd-article">{body}</main></body></html>
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A site that has Python and no page yet, and the packages in it."""
    site = tmp_path_factory.mktemp("site")
    folder, cache = site / "_static" / "pyodide", live_files.cache_folder()
    try:
        live_files.fetch_core(cache)
        packages = live_files.stage(folder)["packages"]
        live_bytecode.compile_staged(folder, cache / "compiled")
    except (live_files.Unavailable, live_bytecode.NotCompiled) as error:
        pytest.skip(str(error))
    static = ROOT / "book" / "_static"
    shutil.copytree(static / "live", site / "_static" / "live")
    css = (static / "book.css").read_text("utf8")
    css = re.sub(r"@font-face \{[^}]*\}", "", css)  # the faces are cut when the book is built
    (site / "_static" / "book.css").write_text(css, "utf8")
    return site, packages


@pytest.fixture(scope="module")
def served(python: tuple[Path, dict[str, Any]]) -> Iterator[str]:
    """The address of that site."""
    handler = functools.partial(Quiet, directory=str(python[0]))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


class Tab:
    """A chapter in a browser, and what a reader does with it."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def press(self) -> None:
        self.page.click(".live button")

    def words(self) -> str:
        return str(self.page.inner_text(".live-words"))

    def note(self, cell: int) -> str:
        return str(self.page.locator(".live-note").nth(cell).inner_text())

    def shown(self, cell: int) -> str:
        return str(self.page.locator(".live-shown").nth(cell).inner_text()).strip()

    def wait(self, cell: int, state: str) -> str:
        """Wait until `cell` is in `state`, or has ended otherwise; return what it shows."""
        self.page.wait_for_function(
            "([i, s]) => [s, 'done', 'failed']"
            ".includes(document.querySelectorAll('.live-row')[i]?.dataset.state)",
            arg=[cell, state],
        )
        found = self.page.locator(".live-row").nth(cell).get_attribute("data-state")
        assert found == state, self.shown(cell)
        return self.shown(cell)

    def wait_for_text(self, cell: int, text: str) -> None:
        """Wait until `cell`, which has run before, shows `text`."""
        self.page.wait_for_function(
            "([i, text]) => document.querySelectorAll('.live-shown')[i].innerText.trim() === text",
            arg=[cell, text],
        )

    def write(self, cell: int, code: str) -> None:
        area = self.page.locator(".live-code textarea").nth(cell)
        area.fill(code)
        area.press("Control+Enter")


@pytest.fixture
def faults() -> list[str]:
    """What went wrong in the pages of a test."""
    return []


@pytest.fixture
def chapter(
    python: tuple[Path, dict[str, Any]], served: str, browser: Any, faults: list[str]
) -> Iterator[Callable[..., Tab]]:
    """Put a chapter of `cells` into the site, open it, and expect no error until the end."""
    site, packages = python
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    context.set_default_timeout(PATIENCE)

    def make(*cells: str, printed: str = "", missing: tuple[str, ...] = (), **more: Any) -> Tab:
        wanted = more.pop("start", ["banditlib", "array-api-compat"])
        data = {
            "cells": cells,
            "shown": list(range(len(cells))),
            "start": [name for name in wanted if name in packages],
            "absent": list(missing),
            "seconds": None,
        }
        folder = site / "_static" / "live" / "chapters"
        folder.mkdir(exist_ok=True)
        (folder / "tiny.json").write_text(json.dumps(data | more))
        body = "".join(CELL.format(code=code, printed=printed) for code in cells)
        (site / "notebooks").mkdir(exist_ok=True)
        text = live.with_button(f"<h1>A chapter</h1>{body}", "tiny", 13)
        (site / "notebooks" / "tiny.html").write_text(PAGE.format(policy=POLICY, body=text))
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console",
            lambda m: faults.append(f"{m.text} {m.location}") if m.type == "error" else None,
        )
        page.on(
            "request",
            lambda r: None if r.url.startswith((served, "data:")) else faults.append(r.url),
        )
        page.goto(f"{served}/notebooks/tiny.html")
        return Tab(page)

    yield make
    context.close()
    assert not faults


VERSIONS = """import importlib.metadata
import sys
print(sys.version_info >= (3, 11), sys.platform)
for name in ("array-api-compat", "banditlib"):
    print(name, importlib.metadata.version(name))
import array_api_compat"""


def test_python_starts_on_the_click_and_has_our_wheels(chapter):
    tab = chapter(VERSIONS, "6 * 7", printed="42\n")
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    tab.page.wait_for_selector(".live button")
    assert "MB" in tab.words() and not asked, "nothing is loaded before the click"
    tab.press()
    lines = tab.wait(0, "done").split("\n")
    assert lines[0] == "True emscripten"
    assert [line.split()[0] for line in lines[1:3]] == ["array-api-compat", "banditlib"]
    tab.page.locator(".live-row button").nth(2).click()
    assert tab.wait(1, "done") == "42"
    assert tab.note(1).endswith("the same as in the book")
    assert tab.words().startswith("Ready")


def test_python_and_its_wheels_come_compiled(chapter):
    code = (
        "import json\nimport linecache\nimport array_api_compat as ours\n"
        "print(json.__file__.rpartition('.')[2], json.loads.__code__.co_filename)\n"
        "print(type(ours.__loader__).__name__, ours.__cached__.rpartition('/')[2])\n"
        "print(linecache.getline(ours.__file__, 1) != '')"
    )
    tab = chapter(code)
    tab.press()
    lines = tab.wait(0, "done").split("\n")
    assert lines[0].startswith("pyc /lib/python3")
    assert lines[1].startswith("SourceFileLoader __init__.cpython-3"), "ours can be quoted"
    assert lines[2] == "True"


def test_the_message_when_numpy_is_missing(chapter):
    tab = chapter("import banditlib", "1 + 1", missing=("numpy",), start=["banditlib"])
    if "numpy" in live_files.cached_names():
        pytest.skip("numpy is in the cache, and Pyodide installs it with banditlib")
    tab.press()
    text = tab.wait(0, "failed")
    assert "This copy of the site was built without numpy" in text
    assert "ModuleNotFoundError: No module named 'numpy'" in text and "cells.py" not in text
    assert "Left out here: numpy." in tab.page.inner_text(".live-about")
    tab.page.locator(".live-row button").nth(2).click()
    assert tab.wait(1, "done") == "2", "cells without numpy run"


def test_cells_run_in_order_and_can_be_changed(chapter):
    tab = chapter("a = 1", "b = a + 1\nprint('b is', b)", "b * 10", printed="20\n")
    tab.press()
    tab.wait(0, "done")
    tab.page.locator(".live-code textarea").nth(2).press("Control+Enter")
    assert tab.wait(2, "done") == "20"
    assert tab.shown(1) == "b is 2", "the cell above ran first"
    tab.write(1, "b = 7\nb")
    assert tab.wait(1, "done") == "7"
    tab.write(2, "b * 10")
    tab.page.wait_for_function(
        "() => document.querySelectorAll('.live-shown')[2].innerText === '70'"
    )
    tab.page.get_by_role("button", name="Undo changes").first.click()
    assert tab.page.locator(".live-code textarea").nth(1).input_value().startswith("b = a + 1")
    assert "changed since it ran" in tab.note(1)
    tab.write(0, "print('one')\n1 / 0")
    assert "ZeroDivisionError" in tab.wait(0, "failed") and "one" in tab.shown(0)


def test_typing_in_a_cell(chapter):
    tab = chapter("pass", "pass")
    tab.press()
    tab.wait(0, "done")
    area = tab.page.locator(".live-code textarea").first
    area.fill("for i in range(2):")
    area.press("End")
    area.press("Enter")
    tab.page.keyboard.type("print(i)")
    assert area.input_value() == "for i in range(2):\n    print(i)", "a block is indented"
    area.press("Enter")
    area.press("Tab")
    tab.page.keyboard.type("pass")
    assert area.input_value().endswith("\n        pass")
    painted = tab.page.locator(".live-code pre").first
    assert painted.inner_text().strip() == area.input_value().strip()
    assert painted.locator(".k").all_inner_texts() == ["for", "in", "pass"]
    area.press("Escape")
    area.press("Tab")
    focused = "document.activeElement.tagName"
    assert tab.page.evaluate(focused) == "BUTTON", "Escape, then Tab, leaves the cell"
    area.press("Control+z")
    area.fill("print(1)")
    area.press("Shift+Enter")
    assert tab.page.evaluate(focused) == "TEXTAREA"
    tab.wait_for_text(0, "1")


def test_what_cells_show(chapter):
    shows = (
        "class T:\n    def _repr_html_(self):\n        return '<table><tr><td>x</td></tr></table>'"
    )
    picture = (
        "class P:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n"
        "        data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhg"
        "GAWjR9awAAAABJRU5ErkJggg=='\n        return {'image/png': data}\nP()"
    )
    tab = chapter(f"{shows}\nT()", picture, "from IPython.display import HTML\nHTML('<b>bold</b>')")
    tab.press()
    tab.wait(0, "done")
    assert tab.page.locator(".live-shown").first.locator("td").inner_text() == "x"
    tab.page.get_by_role("button", name="Run all cells").click()
    tab.wait(2, "done")
    image = tab.page.locator(".live-shown").nth(1).locator("img")
    assert image.evaluate("e => e.complete && e.naturalWidth") == 1
    assert tab.page.locator(".live-shown").nth(2).locator("b").inner_text() == "bold"
    assert tab.page.locator("details.live-book").count() == 3, "the book's output is kept, folded"


def test_stop_ends_python_and_says_what_is_lost(chapter):
    tab = chapter("kept = 1", "while True:\n    pass", "kept")
    tab.press()
    tab.wait(0, "done")
    tab.page.get_by_role("button", name="Run all cells").click()
    tab.wait(1, "running")
    tab.page.get_by_role("button", name="Stop").click()
    assert "What the cells had computed is lost" in tab.words()
    assert tab.note(1) == "stopped"
    assert not tab.page.get_by_role("button", name="Stop").is_enabled()
    tab.page.locator(".live-code textarea").nth(1).fill("kept += 1")
    tab.page.locator(".live-code textarea").nth(2).press("Control+Enter")
    assert tab.wait(2, "done") == "2", "Python starts anew, and runs the cells above first"


def test_a_broken_download_is_told(chapter, python, faults):
    stdlib = python[0] / "_static" / "pyodide" / "python_stdlib.zip"
    away = stdlib.rename(stdlib.with_suffix(".away"))
    try:
        tab = chapter("1 + 1")
        tab.press()
        tab.page.get_by_text("Python could not go on").wait_for()
    finally:
        away.rename(stdlib)
    faults.clear()
    tab.page.locator(".live-code textarea").press("Control+Enter")
    assert tab.wait(0, "done") == "2", "once the file is there, it goes on"


def test_from_a_file_the_button_says_make_serve(python, browser):
    site, _ = python
    body = live.with_button("<h1>A chapter</h1>", "tiny", 13)
    path = site / "from-a-file.html"
    text = PAGE.format(policy="", body=body).replace("../_static", "_static")
    path.write_text(re.sub(r"<meta http-equiv[^>]*>", "", text))
    page = browser.new_page()
    page.goto(path.as_uri())
    page.click(".live button")
    assert "make serve" in page.inner_text(".live-words")
    page.close()


def test_a_running_chapter_fits_and_is_legible(chapter):
    from test_pages import STICKS_OUT, violations

    tab = chapter(f"print('{'x' * 200}')", "1 / 0", "import no_such_module")
    tab.press()
    tab.wait(0, "done")
    for cell in (1, 2):
        tab.page.locator(".live-code textarea").nth(cell).press("Control+Enter")
        tab.wait(cell, "failed")
    for width in (320, 375, 1440):
        tab.page.set_viewport_size({"width": width, "height": 700})
        assert tab.page.evaluate(STICKS_OUT) == []
    for theme in ("light", "dark"):
        tab.page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        assert violations(tab.page) == []


# ---- With numpy


README = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf8"), re.DOTALL)


def need(*names: str) -> None:
    if lacking := set(names) - set(live_files.cached_names()):
        pytest.skip(
            f"{', '.join(sorted(lacking))} for WebAssembly not in {live_files.cache_folder()}: "
            "make live fetches what Pyodide's distribution has"
        )


def test_the_readme_runs_in_the_page_with_the_same_regrets(chapter):
    need("numpy")
    assert README
    namespace: dict[str, Any] = {}
    exec(README[1], namespace)
    tab = chapter(
        "import banditlib", README[1], "print(*run.regret[..., -1].ravel().tolist(), sep='\\n')"
    )
    began = time.perf_counter()
    tab.press()
    tab.wait(0, "done")
    print(f"first cell after {time.perf_counter() - began:.1f} s")
    tab.page.locator(".live-code textarea").nth(2).press("Control+Enter")
    found = [float(line) for line in tab.wait(2, "done").split()]
    assert found == pytest.approx(namespace["run"].regret[..., -1].ravel().tolist(), rel=1e-12)


def test_counts_of_64_bits_and_figures_work_in_the_page(chapter):
    need("numpy", "matplotlib")
    phases = (
        "import banditlib as bl\nproblem = bl.problems.synthetic(seed=0, zeta=0.02)\n"
        "policies = [bl.PhasedElimination(0.01), bl.SupLinUCB(1, 1), bl.LayeredDSOFUL(1, 1)]\n"
        "bl.simulate(problem, policies, rounds=500, trials=2).regret.shape"
    )
    tab = chapter(
        phases,
        "import matplotlib.pyplot as plt\nplt.plot([1, 2]);",
        start=["banditlib", "matplotlib"],
    )
    tab.press()
    assert tab.wait(0, "done").startswith("(1, 3, 2, ")
    tab.page.get_by_role("button", name="Run all cells").click()
    tab.wait(1, "done")
    assert tab.page.locator(".live-shown").nth(1).locator("img").count() == 1


@pytest.mark.slow
def test_a_chapter_runs_whole(visit, site):
    need("numpy", "scipy", "matplotlib")
    page = visit("notebooks/model", ".live button")
    page.click(".live button")
    page.wait_for_selector(".live-row[data-state=done]")
    page.get_by_role("button", name="Run all cells").click()
    page.wait_for_function(
        "() => { const rows = [...document.querySelectorAll('.live-row')];"
        " return rows.every(r => r.dataset.state === 'done')"
        " || rows.some(r => r.dataset.state === 'failed'); }",
        timeout=10 * PATIENCE,
    )
    assert page.locator(".live-row[data-state=failed]").count() == 0
    assert page.locator(".live-shown svg").count() >= 3
