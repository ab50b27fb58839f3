"""Chapters that run in the page: their files, their packages and how a cell is run.

No test here needs npm or a browser; those that start Python in a page are in tests/browser.
"""

from __future__ import annotations

import ast
import base64
import csv
import hashlib
import importlib
import importlib.util
import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT

from book.build import chapters
from book.extensions import live, live_bytecode, live_files, site_assets
from book.extensions.live_files import Release, Unavailable

# ---- A cache made by hand


def line(name: str, data: bytes, depends: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "name": name,
        "version": "1.0",
        "file_name": f"{name}-1.0-py3-none-any.whl",
        "sha256": hashlib.sha256(data).hexdigest(),
        "imports": [name],
        "depends": list(depends),
    }


@pytest.fixture
def release(tmp_path: Path) -> Release:
    """A release of Pyodide whose files are a few bytes, and its tarball in ``tmp_path/cache``."""
    packages = [
        line("numpy", b"numpy"),
        line("scipy", b"scipy", ("numpy",)),
        line("matplotlib", b"matplotlib", ("numpy", "cycler")),
        line("cycler", b"cycler"),
        line("unused", b"unused"),
    ]
    files = {name: name.encode() for name in live_files.CORE}
    lock = {"info": {"python": "3"}, "packages": {p["name"]: p for p in packages}}
    files["pyodide-lock.json"] = json.dumps(lock).encode()
    folder = tmp_path / "cache"
    folder.mkdir()
    with tarfile.open(folder / "pyodide-1.tgz", "w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    digest = hashlib.sha512((folder / "pyodide-1.tgz").read_bytes()).digest()
    return Release("1", f"sha512-{base64.b64encode(digest).decode()}")


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"{name}-1.0-py3-none-any.whl").write_bytes(name.encode())


def test_a_package_counts_only_with_all_it_depends_on(tmp_path, release):
    cache = tmp_path / "cache"
    assert live_files.cached_names(cache, release) == []
    put(cache, "numpy", "matplotlib", "unused")
    assert live_files.cached_names(cache, release) == ["numpy"]
    put(cache, "cycler")
    assert live_files.cached_names(cache, release) == ["cycler", "matplotlib", "numpy"]


def test_staged_site_has_python_the_cached_wheels_and_ours(tmp_path, release):
    put(tmp_path / "cache", "numpy", "unused")
    target = tmp_path / "site" / "pyodide"
    live_files.stage(target, tmp_path / "cache", release)
    lock = json.loads((target / "pyodide-lock.json").read_text())
    ours = {"banditlib", "banditlib-results", *live_files.COPIED}
    assert set(lock["packages"]) == {"numpy", *ours}
    assert {p.name for p in target.iterdir()} == {
        *live_files.CORE,
        "pyodide-lock.json",
        *(p["file_name"] for p in lock["packages"].values()),
    }
    for package in lock["packages"].values():
        assert live_files.sha256(target / package["file_name"]) == package["sha256"]
        assert set(package["depends"]) <= set(lock["packages"])
    assert "numpy" in lock["packages"]["banditlib"]["depends"]


def test_a_wrong_hash_is_refused(tmp_path, release):
    cache = tmp_path / "cache"
    put(cache, "numpy")
    (cache / "numpy-1.0-py3-none-any.whl").write_bytes(b"something else")
    with pytest.raises(Unavailable, match=r"numpy-1\.0.*is not the file of the lock: remove it"):
        live_files.cached_names(cache, release)
    (cache / "pyodide-1.tgz").write_bytes(b"something else")
    with pytest.raises(Unavailable, match=r"pyodide-1\.tgz is not the file that npm published"):
        live_files.stage(tmp_path / "site", cache, release)


def test_fetching_keeps_nothing_with_a_wrong_hash(tmp_path, release, monkeypatch):
    cache = tmp_path / "cache"
    answers = {"numpy": b"numpy", "scipy": b"forged", "cycler": b"cycler"}

    def urlopen(address: str, timeout: int) -> io.BytesIO:
        name = address.rpartition("/")[2].partition("-")[0]
        if name not in answers:
            raise OSError("no route")
        return io.BytesIO(answers[name])

    monkeypatch.setattr(live_files.urllib.request, "urlopen", urlopen)
    problems = live_files.fetch(cache, release)
    assert len(problems) == 2
    assert "matplotlib" in problems[0] and "does not answer: no route" in problems[0]
    assert "scipy" in problems[1] and "has not the hash" in problems[1]
    assert live_files.cached_names(cache, release) == ["cycler", "numpy"]
    assert not list(cache.glob("*.part"))


def test_without_npm_there_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(live_files.shutil, "which", lambda _: None)
    assert live_files.fetch(tmp_path) == ["npm is not installed, and only npm carries Pyodide"]


def test_the_cache_can_be_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("BANDITLIB_PYODIDE", str(tmp_path))
    assert live_files.cache_folder() == tmp_path / live_files.RELEASE.version
    assert live_files.cached_names() == []


# ---- Our wheels


def test_own_wheels_are_wheels(tmp_path):
    lines = live_files.write_own_wheels(tmp_path)
    for package in lines.values():
        with zipfile.ZipFile(tmp_path / package["file_name"]) as wheel:
            names = wheel.namelist()
            (record,) = [name for name in names if name.endswith(".dist-info/RECORD")]
            rows = list(csv.reader(io.TextIOWrapper(wheel.open(record), "utf8")))
            assert [row[0] for row in rows] == names
            for path, digest, size in rows[:-1]:
                data = wheel.read(path)
                found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()
                assert (digest, int(size)) == (f"sha256={found.rstrip('=')}", len(data))
    with zipfile.ZipFile(tmp_path / lines["banditlib"]["file_name"]) as wheel:
        assert "banditlib/paper/notebook.py" in wheel.namelist()
    again = tmp_path / "again"
    again.mkdir()
    assert live_files.write_own_wheels(again) == lines, "the same files make the same wheels"


def test_results_land_where_the_package_looks(tmp_path, monkeypatch):
    """Unpacked side by side, as in a page, the package finds the results."""
    lines = live_files.write_own_wheels(tmp_path)
    for name in ("banditlib", live_files.RESULTS):
        with zipfile.ZipFile(tmp_path / lines[name]["file_name"]) as wheel:
            wheel.extractall(tmp_path / "unpacked")
    module = tmp_path / "unpacked" / "banditlib" / "paper" / "experiments" / "base.py"
    spec = importlib.util.spec_from_file_location("base_elsewhere", module)
    assert spec and spec.loader
    base = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "base_elsewhere", base)
    spec.loader.exec_module(base)
    assert base.results_folder() == tmp_path / "unpacked" / "data" / "results"
    assert any(base.results_folder().rglob("*.json"))


# ---- What a chapter needs


def test_what_functions_import_later_does_not_count(tmp_path):
    package = tmp_path / "banditlib"
    package.mkdir()
    (package / "__init__.py").write_text("import numpy\n")
    (package / "deep.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import cycler\n"
        "try:\n    import scipy.linalg\nexcept ImportError:\n    pass\n"
        "def later():\n    import matplotlib.pyplot\n"
    )
    known = {n: {"imports": [n]} for n in ("numpy", "scipy", "matplotlib", "cycler", "banditlib")}

    source = "from banditlib.deep import later\n"
    assert live_files.needed_packages(source, known, tmp_path) == ["banditlib", "numpy"]
    inside = "def f():\n    import scipy\n"
    assert live_files.needed_packages(inside, known, tmp_path) == ["scipy"]


PACKAGES = {
    name: {"imports": [module]}
    for name, module in {
        "numpy": "numpy",
        "scipy": "scipy",
        "matplotlib": "matplotlib",
        "python-flint": "flint",
        "banditlib": "banditlib",
        live_files.RESULTS: "",
    }.items()
}


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_every_chapter_is_described(path):
    chapter = live.describe(path, PACKAGES, PACKAGES)
    every = live_files.needed_packages("\n".join(chapter["cells"]), PACKAGES)
    assert {"banditlib", "numpy"} <= set(every) and set(chapter["start"]) <= set(every)
    assert chapter["shown"] == list(range(len(chapter["cells"])))
    assert not chapter["absent"]
    for cell in chapter["cells"]:
        compile(cell, path.name, "exec")
    text = "\n".join(chapter["cells"])
    assert ("import flint" in text or "from flint" in text) == ("python-flint" in every)


def test_what_a_site_lacks_is_named():
    path = ROOT / "notebooks" / "model.md"
    few = {name: PACKAGES[name] for name in ("numpy", "banditlib")}
    chapter = live.describe(path, PACKAGES, few)
    assert "matplotlib" in chapter["absent"] and "numpy" not in chapter["absent"]


# ---- Bytecode


def packed(**modules: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, source in modules.items():
            archive.writestr(f"{name}.py", source)
        archive.writestr("read.me", "kept as it is")
    return out.getvalue()


@pytest.mark.parametrize("keep", [False, True])
def test_compiled_modules_are_imported_without_their_sources(tmp_path, monkeypatch, keep):
    old = packed(small_live_module="def f():\n    return 1 / 0\n", broken="def f(:\n")
    new = live_bytecode.compiled(old, str(tmp_path), keep)
    with zipfile.ZipFile(io.BytesIO(new)) as archive:
        archive.extractall(tmp_path)
        names = set(archive.namelist())
    assert {"read.me", "broken.py"} <= names and ("small_live_module.py" in names) == keep
    if keep:  # bytecode that is not checked against its source is what runs
        source = tmp_path / "small_live_module.py"
        source.write_text(source.read_text().replace("1 / 0", "'compiled anew'"))
    else:
        assert "small_live_module.pyc" in names
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("small_live_module")
    del sys.modules["small_live_module"]
    assert module.f.__code__.co_filename == str(tmp_path / "small_live_module.py")
    with pytest.raises(ZeroDivisionError):
        module.f()


def test_what_pyodide_brings_is_compiled_once_and_ours_keeps_its_sources(tmp_path, monkeypatch):
    site, cache = tmp_path / "site", tmp_path / "cache"
    for folder in (site, cache):
        folder.mkdir()
        (folder / "numpy-1.0.whl").write_bytes(packed(n="1"))
    (site / live_bytecode.LIBRARY).write_bytes(packed(os="1"))
    (site / "ours-1.0.whl").write_bytes(packed(o="1"))
    (site / "results-1.0.whl").write_bytes(b"no archive")
    lines = {n: {"file_name": f"{n}-1.0.whl", "sha256": ""} for n in ("numpy", "ours", "results")}
    (site / "pyodide-lock.json").write_text(json.dumps({"packages": lines}))
    before = {path.name: path.read_bytes() for path in site.iterdir()}
    asked: list[dict[str, bool]] = []

    def node(core: Path, jobs: list[tuple[Path, Path, bool]]) -> None:
        asked.append({archive.name: keep for archive, _, keep in jobs})
        for archive, result, keep in jobs:
            result.write_bytes(live_bytecode.compiled(archive.read_bytes(), "/lib", keep))

    monkeypatch.setattr(live_bytecode, "run_node", node)
    for _ in range(2):
        for name, data in before.items():
            (site / name).write_bytes(data)
        live_bytecode.compile_staged(site, cache / "compiled")
    first = {live_bytecode.LIBRARY: False, "numpy-1.0.whl": False, "ours-1.0.whl": True}
    assert asked == [first, {"ours-1.0.whl": True}]
    packages = json.loads((site / "pyodide-lock.json").read_text())["packages"]
    for name in ("numpy", "ours"):
        assert packages[name]["sha256"] == live_files.sha256(site / f"{name}-1.0.whl")
    assert packages["results"] == lines["results"]
    with zipfile.ZipFile(site / "numpy-1.0.whl") as archive:
        assert set(archive.namelist()) == {"n.pyc", "read.me"}
    assert {path.name.partition("-")[2] for path in (cache / "compiled").iterdir()} == {
        live_bytecode.LIBRARY,
        "numpy-1.0.whl",
    }


def test_without_node_sources_stay(tmp_path, monkeypatch):
    (tmp_path / live_bytecode.LIBRARY).write_bytes(packed(os="1"))
    (tmp_path / "pyodide-lock.json").write_text('{"packages": {}}')
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(live_bytecode.NotCompiled, match="node is not installed"):
        live_bytecode.compile_staged(tmp_path, tmp_path.parent / "compiled")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# ---- The button


def test_button_stands_under_the_title():
    body = live.with_button("<h1>A</h1><p>B</p><h1>C</h1>", "model", 42)
    assert body.startswith("<h1>A</h1>\n<div class=") and body.count("live-words") == 1
    assert 'data-chapter="model" hidden' in body and "42 MB" in body
    assert live.with_button("<p>no title</p>", "model", 42) == "<p>no title</p>"


def test_without_python_in_the_cache_pages_stay_as_they_are():
    context = {"body": "<h1>A</h1>"}
    live.Live().add_button(None, "notebooks/model", "page.html", context, object())
    assert context == {"body": "<h1>A</h1>"}


def test_the_script_is_added_before_the_scripts_are_looked_through():
    class App:
        def __init__(self) -> None:
            self.priorities: list[int] = []

        def connect(self, event: str, handler: Any, priority: int = 500) -> None:
            if event == "html-page-context":
                self.priorities.append(priority)

        def __getattr__(self, name: str) -> Any:
            return lambda *arguments, **named: None

    first, then = App(), App()
    live.setup(first)
    site_assets.setup(then)
    assert max(first.priorities) < min(then.priorities)


def test_a_page_pays_little_for_the_button():
    folder = ROOT / "book" / "_static" / "live"
    assert sum((folder / name).stat().st_size for name in ("start.js", "live.css")) < 4_000
    everything = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    assert everything < 40_000


@pytest.mark.site
def test_pages_show_the_cells_that_run(site):
    from bs4 import BeautifulSoup

    for path in chapters():
        page = BeautifulSoup((site / "notebooks" / f"{path.stem}.html").read_text(), "html.parser")
        shown = [pre.get_text() for pre in page.select(".bd-article div.cell_input .highlight pre")]
        cells = [code for code, seen in live.code_cells(path) if seen]
        assert [s.strip() for s in shown] == [c.strip() for c in cells], path.stem


@pytest.mark.site
def test_button_is_there_if_and_only_if_its_chapter_can_start(site):
    staged = {}
    if (lock := site / "_static" / "pyodide" / "pyodide-lock.json").exists():
        staged = json.loads(lock.read_text())["packages"]
    for path in chapters():
        page = (site / "notebooks" / f"{path.stem}.html").read_text()
        described = site / "_static" / "live" / "chapters" / f"{path.stem}.json"
        if '<div class="live"' in page:
            assert set(json.loads(described.read_text())["start"]) <= set(staged)
        else:
            assert "live/start.js" not in page


# ---- A cell


@pytest.fixture
def cells() -> ModuleType:
    """The module that runs cells in the page, here in this Python."""
    path = ROOT / "book" / "_static" / "live" / "cells.py"
    spec = importlib.util.spec_from_file_location("page_cells", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outputs(
    cells: ModuleType, source: str, space: dict[str, Any] | None = None
) -> tuple[bool, list[tuple[str, str]]]:
    sent: list[tuple[str, str]] = []
    space = {"__name__": "__main__"} if space is None else space
    good = cells.run(source, "cell 1", space, lambda kind, text: sent.append((kind, text)))
    return good, sent


def test_a_cell_shows_what_it_prints_and_its_last_line(cells):
    good, sent = outputs(cells, "print('a')\nprint('b', end='')\n1 + 1")
    assert good and sent == [("out", "a\n"), ("out", "b"), ("plain", "2")]
    assert outputs(cells, "x = 1") == (True, [])
    assert outputs(cells, "1 + 1;") == (True, [])
    assert outputs(cells, "") == (True, [])
    assert outputs(cells, "None") == (True, [])


def test_cells_share_their_names(cells):
    space: dict[str, Any] = {"__name__": "__main__"}
    outputs(cells, "import math\ndef f(x):\n    return math.sqrt(x)", space)
    assert outputs(cells, "f(9)", space) == (True, [("plain", "3.0")])


def test_an_error_is_told_from_the_cell_on(cells):
    good, sent = outputs(cells, "def f():\n    return 1 / 0\nprint('before')\nf()")
    assert not good and sent[0] == ("out", "before\n")
    kind, story = sent[1]
    assert kind == "error" and "ZeroDivisionError" in story and "return 1 / 0" in story
    assert "cells.py" not in story
    good, sent = outputs(cells, "x = (1")
    assert not good and "SyntaxError" in sent[0][1] and "cells.py" not in sent[0][1]
    good, sent = outputs(cells, "raise SystemExit(3)")
    assert not good and "SystemExit: 3" in sent[0][1]


def test_a_missing_module_is_named(cells):
    good, sent = outputs(cells, "import no_such_module.inside")
    assert not good and sent[0] == ("missing", "no_such_module") and sent[1][0] == "error"


def test_warnings_are_shown_apart(cells):
    _, sent = outputs(cells, "import sys\nprint('careful', file=sys.stderr)")
    assert sent == [("err", "careful\n")]


def test_figures_tables_and_html(cells):
    source = (
        "import matplotlib.pyplot as plt\nfrom banditlib.paper.notebook import figure, table\n"
        "fig, ax = plt.subplots()\nax.plot([1, 2])\ndisplay(table(['a'], [[1]]))\n"
        "figure(fig, alt='A line that goes up from one to two.')"
    )
    good, sent = outputs(cells, source)
    assert good and [kind for kind, _ in sent] == ["html", "html"]
    assert "<table" in sent[0][1] and "<svg" in sent[1][1]
    good, sent = outputs(cells, "fig, ax = plt.subplots()\nax.plot([1, 2]);", {"plt": _pyplot()})
    assert good and [kind for kind, _ in sent] == ["png"]
    assert base64.b64decode(sent[0][1]).startswith(b"\x89PNG")
    assert not _pyplot().get_fignums()


def _pyplot() -> Any:
    import matplotlib.pyplot as plt

    return plt


def test_packages_come_when_they_are_imported(cells, tmp_path, monkeypatch):
    wheels, target = tmp_path / "wheels", tmp_path / "installed"
    wheels.mkdir()
    target.mkdir()
    lines = [
        live_files.write_wheel(wheels, "wanted", "1", {"wanted.py": b"import under"}, ("wanted",)),
        live_files.write_wheel(wheels, "under", "1", {"under.py": b"x = 3"}, ("under",)),
        live_files.write_wheel(wheels, "forged", "1", {"forged.py": b""}, ("forged",)),
    ]
    lines[0]["depends"] = ["under"]
    lines[2]["sha256"] = "0"
    asked: list[str] = []

    def fetch(name: str) -> bytes:
        asked.append(name.partition("-")[0])
        return (wheels / name).read_bytes()

    lock = json.dumps({"packages": {line["name"]: line for line in lines}})
    finder = cells.OnDemand(lock, ["numpy"], fetch, str(target))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder])
    monkeypatch.syspath_prepend(str(target))
    assert outputs(cells, "import wanted\nwanted.under.x") == (True, [("plain", "3")])
    assert asked == ["under", "wanted"], "what a package depends on comes first, and once"
    good, sent = outputs(cells, "import forged")
    assert not good and "came damaged" in sent[0][1]
    assert outputs(cells, "import no_such_module")[1][0] == ("missing", "no_such_module")
    for name in ("wanted", "under"):
        del sys.modules[name]


@pytest.fixture
def stand_in(cells, monkeypatch):
    """What the page offers under the name of IPython."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "IPython"]:
        monkeypatch.delitem(sys.modules, name)
    cells.stand_in_for_ipython()
    yield sys.modules["IPython.display"]
    for name in ("IPython", "IPython.display"):
        del sys.modules[name]  # for good: monkeypatch would bring the stand-in back


def test_stand_in_for_ipython(cells, stand_in):
    source = (
        "from IPython.display import HTML, display\ndisplay(HTML('<b>a</b>'))\nHTML('<i>b</i>')"
    )
    assert outputs(cells, source) == (True, [("html", "<b>a</b>"), ("html", "<i>b</i>")])
    source = "from IPython.display import Markdown\nMarkdown('*a*')"
    assert outputs(cells, source) == (True, [("plain", "*a*")])


def test_matplotlib_draws_beside_the_stand_in(cells, stand_in, monkeypatch):
    from matplotlib import pyplot

    # As in a fresh page: matplotlib looks for IPython when it draws its first figure.
    monkeypatch.setattr(pyplot, "_REPL_DISPLAYHOOK", pyplot._ReplDisplayHook.NONE)
    source = "import matplotlib.pyplot as plt\nplt.switch_backend('agg')\nplt.figure();"
    good, sent = outputs(cells, source)
    assert good and [kind for kind, _ in sent] == ["png"]


def test_the_stand_in_has_all_that_chapters_import(stand_in):
    cells = (code for path in chapters() for code, _ in live.code_cells(path))
    names = {
        name
        for code in cells
        for name in live_files.imported_names(ast.parse(code), everywhere=True)
    }
    wanted = {name for name in names if name.startswith("IPython.display.")}
    assert wanted, "some chapters import from IPython"
    assert {name.rpartition(".")[2] for name in wanted} <= vars(stand_in).keys()
