"""The book's own search index: every section, statement, row of the ledger and name, in words.

While a page is written its sections are read off its HTML, in which all numbers and references are
resolved, and kept beside Sphinx's memory of the page. At the end they become one file,
``_static/search-index.js``, which ``search.js`` loads when somebody searches. Sphinx's own index,
which knows neither printed numbers nor where on a page a word stands, is left out.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from book.extensions.words import plain_formula

#: Scripts of the search that this one replaces.
THEIRS = re.compile(
    r'<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>\s*'
)
#: What is on a page but is not its text.
SILENT_TAGS = {"script", "style", "svg", "button", "form", "select", "template", "summary"}
SILENT_CLASSES = {"headerlink", "made", "downloads", "cell_input", "reading-time", "live"}
BLOCKS = {"p", "li", "tr", "td", "th", "div", "h1", "h2", "h3", "h4", "dt", "dd", "figcaption"}
VOID = {"br", "img", "input", "hr", "link", "meta", "col", "wbr"}
#: How anchors of the package's names begin, on the page that explains them.
NAME = "api-"
FORMULA = re.compile(r"\\[(\[](.*?)\\[)\]]", re.DOTALL)


@dataclass
class Entry:
    """A place on a page that a search can lead to."""

    anchor: str
    title: str = ""
    parts: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)  # anchors of names explained together with it

    def text(self) -> str:
        """Its text, formulas as words."""
        whole = FORMULA.sub(lambda m: f" {plain_formula(m[1])} ", "".join(self.parts))
        return " ".join(whole.split())


class Reader(HTMLParser):
    """Reads the entries off the body of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.open: list[tuple[str, Entry | None, bool]] = []  # tag, entry it began, silent?
        self.titles: list[str] | None = None
        self.waiting: list[str] = []  # anchors of names that the next entry explains

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        given = {name: value or "" for name, value in attrs}
        classes = set(given.get("class", "").split())
        silent = tag in SILENT_TAGS or bool(classes & SILENT_CLASSES)
        began = None
        name = given.get("id", "")
        if tag == "span" and name.startswith(NAME):
            inside = self.current()
            (inside.others if inside and is_name(inside) else self.waiting).append(name)
        elif begins_entry(tag, name, classes):
            began = Entry(name, others=self.waiting)
            self.waiting = []
            self.entries.append(began)
        self.open.append((tag, began, silent))
        if tag in ("h1", "h2", "h3", "h4") or "admonition-title" in classes:
            self.titles = []
        if label := given.get("aria-label") if "bl-figure" in classes else "":
            self.say(f" {label} ")

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1][0] != tag:
            self.open.pop()
        if self.open:
            self.open.pop()
        if self.titles is not None and tag in ("h1", "h2", "h3", "h4", "p"):
            entry = self.current()
            if entry is not None and not entry.title:
                entry.title = Entry("", parts=self.titles).text()
            self.titles = None
        if tag in BLOCKS:
            self.say(" ")

    def handle_data(self, data: str) -> None:
        if any(silent for _, _, silent in self.open):
            return
        if self.titles is not None:
            self.titles.append(data)
        self.say(data)

    def current(self) -> Entry | None:
        """The innermost entry that is open."""
        return next((began for _, began, _ in reversed(self.open) if began is not None), None)

    def say(self, text: str) -> None:
        """Add text to the innermost entry."""
        entry = self.current()
        if entry is not None:
            entry.parts.append(text)


def begins_entry(tag: str, name: str, classes: set[str]) -> bool:
    """Say whether an element is a place of its own."""
    if not name:
        return False
    if tag == "section":
        return True
    return (
        name.startswith(("claim-", NAME))
        or "erratum" in classes
        or {"proof", "admonition"} <= classes
    )


def is_name(entry: Entry) -> bool:
    """Say whether an entry explains a name of the package."""
    return entry.anchor.startswith(NAME)


def signature(anchor: str, text: str) -> str:
    """How `text` writes the name of the package whose anchor this is, with its arguments."""
    name = re.escape(anchor.removeprefix(NAME)).replace(r"\-", "[-_ ]")
    found = re.search(rf"[\w.]*\b{name}\b(?:\([^)]*\))?", text, re.IGNORECASE)
    return found[0] if found else ""


def entries(body: str) -> list[tuple[str, str, str]]:
    """Anchor, title and text of every place in the HTML of a page."""
    reader = Reader()
    reader.feed(body)
    found = []
    for entry in reader.entries:
        text = entry.text()
        for anchor in [entry.anchor, *entry.others] if text else []:
            name = signature(anchor, text) if is_name(entry) else entry.title
            title = name or text[:60].rsplit(" ", 1)[0]
            found.append((anchor, html.unescape(title), text))
    return found


def notes(app: Sphinx) -> Path:
    """Where the entries of each page wait for the end of the build."""
    return Path(app.doctreedir) / "search"


def read_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Note the entries of a page."""
    if doctree is None or app.builder.format != "html":
        return
    title = re.sub(r"<[^>]*>", "", context.get("title", ""))
    page = {
        "url": app.builder.get_target_uri(pagename),
        "title": html.unescape(title),
        "entries": entries(context.get("body", "")),
    }
    path = notes(app) / f"{pagename}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(page, ensure_ascii=False), "utf8")


def write_index(app: Sphinx, exception: Exception | None) -> None:
    """Put all entries into one file that a page can load from a server or from a folder."""
    if exception is not None or app.builder.format != "html":
        return
    pages = []
    order = [app.config.root_doc, *app.env.toctree_includes.get(app.config.root_doc, [])]
    for name in dict.fromkeys([*order, *sorted(app.env.found_docs)]):
        path = notes(app) / f"{name}.json"
        if name in app.env.found_docs and path.exists():
            pages.append(json.loads(path.read_text("utf8")))
    data = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    outdir = Path(app.outdir)
    (outdir / "_static" / "search-index.js").write_text(f"window.bookSearchIndex={data};\n", "utf8")
    for left in ("searchindex.js", "_static/searchtools.js", "_static/language_data.js"):
        (outdir / left).unlink(missing_ok=True)
    for page in outdir.rglob("*.html"):
        text = page.read_text("utf8")
        if "searchtools.js" in text:
            page.write_text(THEIRS.sub("", text), "utf8")


def without_theirs(app: Sphinx) -> None:
    """Sphinx need not read its own index of the last build: it is not kept."""
    if app.builder.format == "html":
        setattr(app.builder, "load_indexer", lambda docnames: None)  # noqa: B010


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", without_theirs)
    app.connect("html-page-context", read_page, priority=940)
    app.connect("build-finished", write_index)
    app.add_css_file("search.css")
    app.add_js_file("search.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
