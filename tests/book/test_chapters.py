"""The form of a chapter, and how long each takes in a kernel of its own."""

from __future__ import annotations

import ast
import re
import statistics
import sys
from pathlib import Path

import pytest
from conftest import FRONT, ROOT

from book import build
from book.extensions.shown_cells import without_glue

CHAPTERS = sorted((ROOT / "notebooks").glob("*.md"))
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ALLOWED = {
    "banditlib", "numpy", "scipy", "matplotlib", "mpmath", "flint", "IPython", "sklearn",
    *sys.stdlib_module_names,
}  # fmt: skip
TOOLS = {"play", "api"}  # pages that are instruments or reference, not derivations


def cells(text: str) -> list[tuple[str, str]]:
    """Options and code of every cell."""
    found = []
    for body in CELL.findall(text):
        options = re.match(r"(?:---\n.*?\n---\n|(?::[^\n]*\n)*)", body, re.DOTALL)
        assert options is not None
        found.append((options[0], body[options.end() :].strip("\n")))
    return found


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def chapter(request):
    return request.param


def test_front_matter_label_and_title(chapter):
    text = chapter.read_text("utf8")
    assert text.startswith(FRONT)
    assert re.match(rf"\n?\(ch-{chapter.stem}\)=\n# \S", text.removeprefix(FRONT))
    assert not re.match(r"\d", chapter.stem)


def test_starts_and_ends_as_a_chapter_should(chapter):
    text = chapter.read_text("utf8")
    assert ":::{admonition} What you need to know first\n:class: prerequisites" in text
    if chapter.stem not in TOOLS:
        assert "\n## What we learnt\n" in text and "\n## Exercises\n" in text
        exercises = text.split("\n## Exercises\n")[1]
        assert exercises.count("hide-cell") >= 2, "two or three exercises with hidden solutions"


def test_cells_hold_no_outputs():
    assert not list((ROOT / "notebooks").glob("*.ipynb")) or (
        "*.ipynb" in (ROOT / ".gitignore").read_text("utf8")
    )
    for path in CHAPTERS:
        assert '"outputs"' not in path.read_text("utf8"), path.name


def test_cells_are_short_and_long_ones_folded(chapter):
    shown = []
    for options, code in cells(chapter.read_text("utf8")):
        lines = len([line for line in without_glue(code).splitlines() if line.strip()])
        if "hide-" not in options and lines:
            shown.append(lines)
            assert lines <= 24, f"{lines} lines in plain view:\n{code[:200]}"
    assert statistics.median(shown or [0]) <= 8, f"median cell of {statistics.median(shown)} lines"


def test_pages_show_cells_without_their_bookkeeping():
    code = "x = 1\n# for the prose\nglue('x', x)\nfor i in (1, 2):\n    glue(f'{i}', i)\nx"
    assert without_glue(code) == "x = 1\nx"
    assert without_glue("glue('x', 1)") == without_glue("how_made('table-1')") == ""
    loop = "for i in range(3):\n    y = i\n    glue(f'{i}', y)"
    assert without_glue(loop) == "for i in range(3):\n    y = i"
    assert without_glue("print(glue('x', 1))") == "print(glue('x', 1))"


def test_cells_parse_and_import_only_what_travels(chapter):
    for _, code in cells(chapter.read_text("utf8")):
        for node in ast.walk(ast.parse(code)):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert {name.split(".")[0] for name in names} <= ALLOWED


def test_checks_are_assertions(chapter):
    code = "\n".join(code for _, code in cells(chapter.read_text("utf8")))
    assert "print(np.allclose" not in code and "remove-input" not in chapter.read_text("utf8")
    if chapter.stem not in TOOLS:
        assert re.search(r"^\s*assert ", code, re.MULTILINE)


def test_what_a_cell_shows_is_its_last_line(chapter):
    """A notebook shows the last expression of a cell only: a table before it would be lost."""
    for _, code in cells(chapter.read_text("utf8")):
        for node in ast.parse(code).body[:-1]:
            call = node.value if isinstance(node, ast.Expr) else None
            name = call.func if isinstance(call, ast.Call) else None
            assert not (isinstance(name, ast.Name) and name.id in {"table", "figure", "how_made"})


@pytest.mark.site
@pytest.mark.usefixtures("site")
def test_every_chapter_takes_under_a_minute():
    """The build runs each in a kernel of its own, and fails where one raises.

    Processor time: with one BLAS thread, what a chapter takes on a machine that has nothing else.
    """
    from jupyter_cache import get_cache

    records = get_cache(str(build.cache_folder(ROOT))).list_cache_records()
    spent = {Path(record.uri).stem: record.data["processor_seconds"] for record in records}
    assert {path.stem for path in build.chapters()} <= set(spent)
    assert {name: s for name, s in spent.items() if not 0 < s < 60} == {}


def test_figures_are_drawn_by_the_helpers(chapter):
    """Panels, lines, bands and levels come from `banditlib.paper.plots`: one look for all."""
    text = chapter.read_text("utf8")
    assert "plt." not in text and "import matplotlib" not in text
    assert not re.search(r"\.(?:loglog|semilog[xy]|errorbar|barh?)\(", text)
