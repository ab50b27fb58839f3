"""Chapters that run where they are read: the button, the cells behind it, and Python itself.

A chapter gets the button if the cache (see ``live_files``) holds Pyodide and every package that its
first cell imports; otherwise its page is as it would be without this module. On the click the page
fetches the chapter's cells, ``_static/live/chapters/NAME.json``, and Python, ``_static/pyodide``.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

from book.extensions import live_bytecode, live_files
from book.extensions.shown_cells import without_glue

BUTTON = """
<div class="live" data-chapter="{chapter}" hidden>
<button type="button">Run this chapter here</button>
<span class="live-words" role="status">Python in this page; {size} MB come when you press.</span>
</div>
"""

LOG = logging.getLogger(__name__)

# Tags of cells whose code is not on the page; they run with the others.
UNSEEN = {"remove-input", "remove-cell", "remove_input", "remove_cell"}


def code_cells(path: Path) -> list[tuple[str, bool]]:
    """Return the code of a chapter's cells, as pages show it, and whether the page shows it."""
    from myst_nb.core.read import read_myst_markdown_notebook

    text = path.read_text("utf8")
    notebook = read_myst_markdown_notebook(text, config=None, add_source_map=True, path=path)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    codes = [
        (without_glue(cell.source), not UNSEEN & set(cell.metadata.get("tags", ())))
        for cell in cells
    ]
    return [(code, seen) for code, seen in codes if code.strip()]


def describe(path: Path, known: dict[str, Any], staged: dict[str, Any]) -> dict[str, Any]:
    """Return what the page needs to know of the chapter `path`.

    ``cells`` is the code and ``shown`` says which cells the page shows; ``start`` are the packages
    that the first cell needs, the others come when they are imported, and ``absent`` are those
    `known` packages that the chapter needs although they are not `staged`.
    """
    cells = code_cells(path)
    sources = [code for code, _ in cells]
    every = live_files.needed_packages("\n".join(sources), known)
    return {
        "cells": sources,
        "shown": [number for number, (_, seen) in enumerate(cells) if seen],
        "start": live_files.needed_packages(sources[0], known),
        "absent": [name for name in every if name not in staged],
    }


def with_button(body: str, chapter: str, size: int) -> str:
    """Put the button, which says how many megabytes it loads, under the chapter's title."""
    head, mark, tail = body.partition("</h1>")
    return head + mark + BUTTON.format(chapter=chapter, size=size) + tail if mark else body


class Live:
    """The live chapters of one build."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}
        self.staged: dict[str, Any] = {}

    def look_in_cache(self, app: Sphinx, config: Config) -> None:
        """Find out what this build can have; pages are written anew when that changes."""
        config["live_packages"] = live_files.cached_names()

    def stage(self, app: Sphinx) -> None:
        """Copy Python into the site, or take away what an earlier build put there."""
        if app.builder.format != "html":
            return
        self.folder = Path(app.outdir) / "_static" / "pyodide"
        if "numpy" not in app.config["live_packages"]:
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        self.staged = live_files.stage(self.folder)["packages"]
        cache = live_files.cache_folder()
        try:
            live_bytecode.compile_staged(self.folder, cache / "compiled")
        except live_bytecode.NotCompiled as error:
            LOG.info("chapters start slower in the page, from sources: %s", error)
        lock = live_files.read_lock(cache)
        self.known = {**lock["packages"], **self.staged}

    def add_button(
        self, app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
    ) -> None:
        """Give a chapter its button, if its first cell can run here."""
        if not self.staged or not page.startswith("notebooks/") or doctree is None:
            return
        chapter = describe(Path(app.srcdir) / f"{page}.md", self.known, self.staged)
        if set(chapter["start"]) - self.staged.keys():
            return
        data = getattr(app.env, "nb_metadata", {}).get(page, {}).get("exec_data") or {}
        chapter["seconds"] = data.get("runtime")
        name = page.rpartition("/")[2]
        target = Path(app.outdir) / "_static" / "live" / "chapters" / f"{name}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(chapter), "utf8")
        app.add_css_file("live/live.css")
        app.add_js_file("live/start.js", loading_method="defer")
        context["body"] = with_button(context["body"], name, self.megabytes(chapter["start"]))

    def megabytes(self, names: list[str]) -> int:
        """Return what Python and the packages `names`, with their dependencies, weigh."""
        loaded = live_files.with_dependencies(names, self.staged)
        files = [*live_files.CORE, *(self.staged[name]["file_name"] for name in loaded)]
        return round(sum((self.folder / name).stat().st_size for name in files) / 1e6)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register live chapters with Sphinx."""
    live = Live()
    app.add_config_value("live_packages", [], "html", list)
    app.connect("config-inited", live.look_in_cache)
    app.connect("builder-inited", live.stage)
    # Before site_assets looks through the scripts of the page.
    app.connect("html-page-context", live.add_button, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
