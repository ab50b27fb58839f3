"""What a reader likes to know about a page: how long it takes to read, and how long it took to run.

- Under the title of every chapter stands its reading time, counted from its words, formulas and
  figures.
- ``{execution-times}`` is the table of how long each chapter ran when it was last executed.
- ``{result}`notebooks/model#model-gap` `` quotes a number that a chapter glued, and the directive
  ``{figure-from} notebooks/model#fig-band`` shows a figure that a chapter drew, on any page.
- The built site is rid of what no page needs: source maps, translations of the theme, and the
  script of all icons (the icons come from the theme's font).
- For the exported notebooks the numbers of figures are written beside them.
"""

from __future__ import annotations

import ast
import json
import math
import platform
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

logger = logging.getLogger(__name__)

TIMES_PAGE = "book/execution-times"

# A reader of mathematics: words per minute, and seconds for each displayed formula and figure.
WORDS, FORMULA, FIGURE = 180, 8.0, 20.0


def count(doctree: nodes.document) -> tuple[int, int, int]:
    """Words of prose, displayed formulas and figures of a page."""
    words = 0
    for text in doctree.findall(nodes.Text):
        if not inside(text, (nodes.literal_block, nodes.math_block, nodes.raw, nodes.comment)):
            words += len(text.astext().split())
    formulas = sum(1 for _ in doctree.findall(nodes.math_block))
    figures = sum(1 for _ in doctree.findall(nodes.figure))
    return words, formulas, figures


def inside(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    """Say whether `node` lies in a node of one of these kinds."""
    parent = node.parent
    while parent is not None:
        if isinstance(parent, kinds):
            return True
        parent = parent.parent
    return False


def minutes(words: int, formulas: int, figures: int) -> int:
    """Reading time in whole minutes, at least one."""
    return max(1, math.ceil(words / WORDS + (FORMULA * formulas + FIGURE * figures) / 60))


def say_reading_time(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the reading time under the title of a chapter."""
    title = next(doctree.findall(nodes.title), None)
    if app.builder.format != "html" or not docname.startswith("notebooks/") or title is None:
        return
    time = minutes(*count(doctree))
    text = f"About {time} minute{'s' if time > 1 else ''} to read"
    line = nodes.paragraph("", text, classes=["reading-time"])
    title.parent.insert(title.parent.index(title) + 1, line)


class times_table(nodes.General, nodes.Element):
    """Stands for the table of execution times until every chapter has been run."""


class ExecutionTimes(SphinxDirective):
    """``{execution-times}``: how long each chapter ran."""

    def run(self) -> list[nodes.Node]:
        return [times_table()]


def recorded(folder: Path) -> dict[str, float]:
    """Seconds by chapter, as the cache of executed chapters has them."""
    if not (folder / "global.db").exists():
        return {}
    from jupyter_cache import get_cache

    records = sorted(get_cache(str(folder)).list_cache_records(), key=lambda r: r.created)
    return {
        Path(record.uri).stem: float(record.data["execution_seconds"])
        for record in records
        if record.data.get("execution_seconds") is not None
    }


def row(*cells: nodes.Node | str) -> nodes.row:
    """A row of a table."""
    out = nodes.row()
    for cell in cells:
        content = nodes.Text(cell) if isinstance(cell, str) else cell
        out += nodes.entry("", nodes.paragraph("", "", content))
    return out


def fill_times(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Replace the placeholder by the table."""
    for place in list(doctree.findall(times_table)):
        seconds = recorded(Path(app.config.nb_execution_cache_path))
        pages = [name for name in app.env.toctree_includes.get(app.config.root_doc, [])]
        pages = [name for name in pages if name.startswith("notebooks/")]
        rows, known = [], []
        for name in pages:
            title = app.env.titles[name].astext()
            uri = app.builder.get_relative_uri(docname, name)
            link = nodes.reference("", title, refuri=uri, internal=True)
            time = seconds.get(Path(name).name)
            known += [] if time is None else [time]
            rows.append(row(link, "not recorded" if time is None else f"{time:.1f} s"))
        rows.append(row(nodes.strong("", "All chapters"), nodes.strong("", f"{sum(known):.0f} s")))
        table = nodes.table(classes=["execution-times"])
        group = nodes.tgroup(cols=2)
        table += group
        group += [nodes.colspec(colwidth=70), nodes.colspec(colwidth=30)]
        group += nodes.thead("", row("Chapter", "Time"))
        group += nodes.tbody("", *rows)
        machine = f"{platform.system()} on {platform.machine()}, Python {platform.python_version()}"
        place.replace_self([table, nodes.paragraph("", f"Machine of the last build: {machine}.")])


class quoted(nodes.Inline, nodes.Element):
    """Stands for a number of a chapter until the chapter has been run."""


class Result(SphinxRole):
    """``{result}`notebooks/model#model-gap` ``: a number that a chapter glued."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        page, _, name = self.text.partition("#")
        self.env.metadata[self.env.docname]["quotes"] = "yes"
        return [quoted(page=page, name=name)], []


class FigureFrom(SphinxDirective):
    """``{figure-from} notebooks/model#fig-band``: a figure that a chapter drew; caption below."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        page, _, name = self.arguments[0].partition("#")
        self.env.metadata[self.env.docname]["quotes"] = "yes"
        box = nodes.container(classes=["landing-figure"])
        box += quoted(page=page, name=name, figure=True)
        self.state.nested_parse(self.content, self.content_offset, box)
        return [box]


def glued(app: Sphinx, page: str, name: str) -> str | None:
    """The text that `page` glued under `name`, if it did."""
    env: Any = app.env
    path = Path(env.mystnb_config.output_folder) / f"{page}.glue.json"
    found = json.loads(path.read_text("utf8")) if path.exists() else {}
    if name not in found:
        return None
    text = found[name]["data"]["text/plain"]
    return str(ast.literal_eval(text)) if text[:1] in "'\"" else str(text)


def drawn(app: Sphinx, page: str, name: str) -> nodes.raw | None:
    """The drawing of the figure `name` of `page`, if there is one."""
    if page not in app.env.all_docs:
        return None
    for box in app.env.get_doctree(page).findall(nodes.figure):
        if name in box["ids"] + box["names"]:
            for raw in box.findall(nodes.raw):
                if "bl-figure" in raw.astext():
                    return nodes.raw("", raw.astext(), format="html")
    return None


def fill_quotes(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the chapters' numbers and figures where other pages ask for them."""
    for place in list(doctree.findall(quoted)):
        page, name = place["page"], place["name"]
        new: nodes.Node | None
        if place.get("figure"):
            new = drawn(app, page, name)
        else:
            text = glued(app, page, name)
            new = None if text is None else nodes.inline("", text, classes=["pasted-text"])
        if new is None:
            logger.warning("reference target not found: %s#%s", page, name, location=docname)
            new = nodes.Text("?")
        place.replace_self(new)


def always_fresh(app: Sphinx, env: Any, added: set[str], *_: Any) -> list[str]:
    """Times, and what is quoted from chapters, may change although a page's text has not."""
    quoting = [page for page, data in env.metadata.items() if "quotes" in data]
    return [page for page in [TIMES_PAGE, *quoting] if page in env.found_docs]


# Files below _static that no page asks for.
NEEDLESS = ("**/*.map", "**/*.ttf", "locales", "scripts/fontawesome.js*", "**/all-packages.js")
CITATIONS = '<div class="citation-list">'
# What the buttons of folded cells say. Only solutions are folded whole.
FOLDS = {
    "Show code cell source": "Show the code",
    "Hide code cell source": "Hide the code",
    "Show code cell content": "Show the solution",
    "Hide code cell content": "Hide the solution",
    "Show code cell output": "Show the output",
    "Hide code cell output": "Hide the output",
}
ICON_SCRIPT = re.compile(r"<(script|link)\b[^>]*scripts/fontawesome\.js[^>]*>(?:</script>)?\s*")


def lighten(app: Sphinx, error: Exception | None) -> None:
    """Take out of the site what only makes it heavier."""
    if error is not None or app.builder.format != "html":
        return
    for pattern in NEEDLESS:
        for path in list((Path(app.outdir) / "_static").glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text("utf8")
        if "scripts/fontawesome.js" in text:
            page.write_text(ICON_SCRIPT.sub("", text), "utf8")


# A short formula in a line, with the brackets and marks that touch it.
TOUCHING = re.compile(
    r'([(\[“‘]*)(<span class="math notranslate)(?: nohighlight)?(">\\\([^<]{0,60}\\\)</span>)'
    r"([,.;:!?)\]’”-]*)"
)


def bind(match: re.Match[str]) -> str:
    """Let no line end between a formula and the marks that belong to it."""
    before, start, formula, after = match.groups()
    whole = f"{before}{start}{formula}{after}"
    return f'<span class="nb">{whole}</span>' if before or after else whole


def mend_words(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Name the folds by what is in them, and keep formulas and their punctuation together.

    The bibliography is no list to assistive technology: its entries have a role of their own.
    """
    body = context.get("body", "")
    for theirs, ours in FOLDS.items():
        body = body.replace(theirs, ours)
    body = TOUCHING.sub(bind, body)
    context["body"] = body.replace('<div role="list" class="citation-list">', CITATIONS)


def write_figure_numbers(app: Sphinx, env: Any) -> None:
    """Tell the export which figure has which number (its builder never reports an end)."""
    if app.builder.name == "jupyter":
        numbers = {
            page: {name: ".".join(map(str, number)) for name, number in kinds["figure"].items()}
            for page, kinds in env.toc_fignumbers.items()
            if "figure" in kinds
        }
        Path(app.outdir).mkdir(parents=True, exist_ok=True)
        (Path(app.outdir) / "figure-numbers.json").write_text(json.dumps(numbers), "utf8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_node(times_table)
    app.add_node(quoted)
    app.add_role("result", Result())
    app.add_directive("figure-from", FigureFrom)
    app.add_directive("execution-times", ExecutionTimes)
    app.connect("env-get-outdated", always_fresh)
    for finish in (say_reading_time, fill_times, fill_quotes):
        app.connect("doctree-resolved", finish)
    app.connect("env-check-consistency", write_figure_numbers)
    app.connect("html-page-context", mend_words, priority=900)
    app.connect("build-finished", lighten, priority=900)
    app.add_css_file("page_text.css")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
