"""The architecture page: every module with its one job, and the paths through them as a picture.

``{modules} banditlib`` lists the modules below a folder, each with the first sentence of its
docstring; ``:but: banditlib/paper`` leaves out those below another. ``{module-paths}`` draws what a
call of `simulate`, a run of ``reproduce`` and a build of the book pass through. A room that is not
in the tree is an error.
"""

from __future__ import annotations

import ast
import html
import re
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from book.extensions.cachekey import ROOT

#: Rooms in the order in which they are entered: a file without suffix, or a folder.
PATHS = {
    "A call of simulate": [
        ("banditlib/simulate", "arguments, dispatch"),
        ("banditlib/checks", "refuses what is wrong"),
        ("banditlib/problems", "arms, rewards, gap"),
        ("banditlib/engines", "advances all lanes"),
        ("banditlib/view", "what a policy may read"),
        ("banditlib/policies", "chooses, keeps or skips"),
        ("banditlib/engines/tally", "counts decisions"),
        ("banditlib/run", "regret from the counts"),
    ],
    "A run of reproduce": [
        ("banditlib/paper/cli", "the command line"),
        ("banditlib/paper/reproduce", "what is missing"),
        ("banditlib/paper/experiments", "cells and seeds"),
        ("banditlib/paper/run", "workers"),
        ("banditlib/simulate", "the path above"),
        ("banditlib/paper/store", "a cell on disk"),
        ("banditlib/paper/verdict", "judged"),
        ("banditlib/paper/render", "drawn"),
    ],
    "A build of the book": [
        ("book/build", "runs chapters, calls Sphinx"),
        ("book/extensions/cachekey", "what is still valid"),
        ("banditlib/paper/notebook", "figures, tables, numbers"),
        ("book/claims", "verdicts and checks"),
        ("book/extensions", "what pages show"),
        ("book/extensions/search_index", "what can be found"),
        ("book/extensions/site_assets", "fonts, MathJax"),
    ],
}
WIDE, HIGH, ACROSS, DOWN, COLUMNS = 196, 46, 222, 70, 4


def first_sentence(path: Path) -> str:
    """The first sentence of a module's docstring, on one line."""
    told = ast.get_docstring(ast.parse(path.read_text("utf8"))) or ""
    paragraph = " ".join(told.split("\n\n")[0].split())
    return re.split(r"(?<=[.?])\s", paragraph)[0]


def modules(folder: str, root: Path = ROOT) -> list[tuple[str, str]]:
    """Name, as one imports it, and first sentence of every module below `folder`."""
    found = []
    for path in sorted((root / folder).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if "_static" in parts or "__pycache__" in parts:
            continue
        name = ".".join(parts).removesuffix(".__init__")
        found.append((name, first_sentence(path)))
    return sorted(found)


def missing_rooms(root: Path = ROOT) -> list[str]:
    """Rooms of the paths that are not in the tree."""
    rooms = [room for path in PATHS.values() for room, _ in path]
    return [r for r in rooms if not ((root / f"{r}.py").is_file() or (root / r).is_dir())]


def draw() -> str:
    """The paths as an SVG, one below the other, each read from left to right and on."""
    parts, y = [], 0
    for title, path in PATHS.items():
        parts.append(f'<text class="path-title" x="2" y="{y + 16}">{html.escape(title)}</text>')
        y += 30
        for number, (room, job) in enumerate(path):
            row, column = divmod(number, COLUMNS)
            x, top = 2 + column * ACROSS, y + row * DOWN
            name = html.escape(room.removeprefix("banditlib/").replace("book/extensions/", "…/"))
            parts.append(
                f'<rect x="{x}" y="{top}" width="{WIDE}" height="{HIGH}" rx="4"/>'
                f'<text class="room" x="{x + 10}" y="{top + 20}">{name}</text>'
                f'<text class="job" x="{x + 10}" y="{top + 37}">{html.escape(job)}</text>'
            )
            if number + 1 < len(path) and column + 1 < COLUMNS:
                middle = top + HIGH // 2
                parts.append(f'<path d="M{x + WIDE + 3} {middle}h16m-5-4l5 4l-5 4"/>')
            elif number + 1 < len(path):
                down = f"M{x + WIDE / 2} {top + HIGH}v12H{WIDE / 2}v6m-4-5l4 5l4-5"
                parts.append(f'<path d="{down}"/>')
        y += DOWN * ((len(path) - 1) // COLUMNS + 1) + 14
    label = "; ".join(
        f"{title}: {', '.join(room for room, _ in path)}" for title, path in PATHS.items()
    )
    width = 2 + COLUMNS * ACROSS
    return (
        f'<div class="bl-figure module-paths" role="img" aria-label="{html.escape(label)}">'
        f'<svg viewBox="0 0 {width} {y}" width="{width}" height="{y}" aria-hidden="true" '
        f'focusable="false">{"".join(parts)}</svg></div>'
    )


class ModulePaths(SphinxDirective):
    """``{module-paths}``: the picture."""

    def run(self) -> list[nodes.Node]:
        if absent := missing_rooms():
            raise self.error(f"module-paths: the tree has no {', '.join(absent)}")
        return [nodes.raw("", draw(), format="html")]


class Modules(SphinxDirective):
    """``{modules} banditlib``: every module below a folder, and its one job."""

    required_arguments = 1
    option_spec: ClassVar = {"but": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        items = nodes.definition_list(classes=["module-list"])
        left_out = modules(self.options["but"]) if "but" in self.options else []
        for name, job in modules(self.arguments[0]):
            if (name, job) in left_out:
                continue
            term = nodes.term("", "", nodes.literal("", name))
            told, _ = self.state.inline_text(job, self.lineno)
            paragraph = nodes.paragraph("", "", *told)
            items += nodes.definition_list_item("", term, nodes.definition("", paragraph))
        return [items]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("modules", Modules)
    app.add_directive("module-paths", ModulePaths)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
