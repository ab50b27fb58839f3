"""What can be had of a figure or table, and one strip per page that says how it was made.

Beside the caption of everything that a cell shows through `figure` or `table` stand links to the
drawing and to the points behind it. At the end of the page one folded strip tells the command that
runs the chapter again, commit, machine and running time; where the page reads stored results, their
own panels (`banditlib.paper.provenance.how_made`) move into it, and their links stay behind.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from banditlib.paper import provenance

SHOWN = re.compile(r'class="(bl-figure|bl-table)"')
MADE = '<details class="made">'
NAMED = re.compile(r"<summary>How (\S+) was made")
LINK = re.compile(r"<a [^>]*\bdownload\b[^>]*>.*?</a>")
LINKS = re.compile(r"<dt>Download</dt><dd>.*?</dd>")
FOLDER = "drawn"


def file_name(page: str, content: str) -> str:
    """The name, without suffix, under which what a cell of `page` shows is kept."""
    return f"{page}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"


def links_line(links: list[str], inline: bool, label: str = "") -> nodes.raw:
    """The links to downloads: in a caption, or in a line of their own."""
    tag = "span" if inline else "div"
    line = f' <{tag} class="downloads">{label}{" · ".join(links)}</{tag}>'
    return nodes.raw("", line, format="html")


def stored_label(raw: nodes.raw, before: nodes.raw | None) -> str:
    """What a line of links to stored results is about, unless it stands right below that."""
    cell = cell_of(raw)
    place = cell.parent.index(cell)
    shown = before is not None and SHOWN.search(before.astext()) and cell_of(before)
    if place and cell.parent[place - 1] is shown:
        return ""
    name = NAMED.search(raw.astext())
    return f"Stored results of {name[1]}: " if name else ""


def cell_of(node: nodes.Element) -> nodes.Element:
    """The cell whose output a node is."""
    while node.parent is not None and node.get("nb_element") != "cell_code":
        node = node.parent
    return node


def own_links(docname: str, content: str, label: str) -> list[str]:
    """Links to the files of `content`, a figure or table in HTML with the name `label`."""
    page = docname.rpartition("/")[2]
    stem = f"{provenance.DOWNLOADS}/{FOLDER}/{file_name(page, content)}"
    return [
        f'<a href="{stem}.{suffix}" download="{label}.{suffix}">{suffix.upper()}</a>'
        for suffix in (("csv", "png", "svg") if "bl-figure" in content else ("csv",))
    ]


def strip(docname: str, seconds: float | None, panels: list[str]) -> str:
    """The folded strip of a page, with the `panels` of the stored results that it reads."""
    origin = provenance.record(0.0)
    facts = [
        ("Command", f"make page PAGE={docname}.md"),
        ("Configuration, seeds", "in the cells of this page"),
        ("Commit", str(origin["commit"])[:10] + (" with local changes" if origin["dirty"] else "")),
        ("Machine", f"{origin['cpu']}, {origin['cores']} cores, {origin['blas']}"),
        ("Software", f"Python {origin['python']}, numpy {origin['numpy']}"),
        ("Computing time", "not recorded" if seconds is None else f"{seconds:.0f} s, whole page"),
    ]
    told = "<p>Stored results that it reads:</p>" + "".join(panels) if panels else ""
    return provenance.folded("How this page was made", facts, [], told)


def enclosing(raw: nodes.Element) -> nodes.Element:
    """The figure in which something stands, or the output of its cell."""
    box = raw
    while box.parent is not None and not isinstance(box, nodes.figure):
        if "cell_output" in box.get("classes", []):
            break
        box = box.parent
    return box


def add_links(app: Sphinx, doctree: nodes.document) -> None:
    """Put links beside every caption, and the strip at the end of the page."""
    docname = app.env.docname
    if not docname.startswith("notebooks/"):
        return
    found = list(doctree.findall(nodes.raw))
    shown = [raw for raw in found if SHOWN.search(raw.astext()) or MADE in raw.astext()]
    panels: list[str] = []
    for number, (raw, after) in enumerate(pairwise([*shown, None]), 1):
        assert raw is not None
        content = raw.astext()
        if MADE in content:
            panels.append(LINKS.sub("", content))
            links = LINK.findall(content)
            before = shown[number - 2] if number > 1 else None
            label = stored_label(raw, before)
            raw.replace_self(links_line(links, inline=False, label=label))
        elif after is None or MADE not in after.astext():
            box = enclosing(raw)
            names = [*box.get("ids", []), *box.get("names", []), f"fig-shown-{number}"]
            label = f"{docname.rpartition('/')[2]}-{names[0].removeprefix('fig-')}"
            links = own_links(docname, content, label)
            caption = next(iter(box.findall(nodes.caption)), None)
            if isinstance(box, nodes.figure) and caption is not None:
                caption += links_line(links, inline=True)
            else:
                raw.parent.insert(raw.parent.index(raw) + 1, links_line(links, inline=False))
    section = next(iter(doctree.findall(nodes.section)), None)
    if section is not None and shown:
        whole = strip(docname, running_time(app, docname), list(dict.fromkeys(panels)))
        section += nodes.raw("", whole, format="html")


def running_time(app: Sphinx, docname: str) -> float | None:
    """Seconds that the chapter ran when it was last executed."""
    data = getattr(app.env, "nb_metadata", {}).get(docname, {}).get("exec_data", {})
    return data.get("runtime")


def outputs(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every figure and table of the chapters executed into the cache `folder`, as (name of its
    files, its forms)."""
    if not (folder / "global.db").exists():
        return
    from jupyter_cache import get_cache

    cache = get_cache(str(folder))
    for record in cache.list_cache_records():
        for cell in cache.get_cache_bundle(record.pk).nb.cells:
            for output in cell.get("outputs", []):
                forms = output.get("data", {})
                text = forms.get("text/html", "")
                if SHOWN.search(text) and "csv" in output["metadata"]:
                    yield file_name(Path(record.uri).stem, text), forms | output["metadata"]


def write_files(app: Sphinx, error: Exception | None) -> None:
    """Put the files that the links lead to into the site, and take away older ones."""
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static" / "results" / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    old = set(os.listdir(folder))
    for name, forms in outputs(Path(app.config.nb_execution_cache_path)):
        contents = {".csv": forms["csv"].encode()}
        if "image/png" in forms:
            drawing = re.search(r"<svg.*</svg>", forms["text/html"], re.DOTALL)
            assert drawing is not None
            contents[".svg"] = drawing[0].replace("currentColor", "#1d2126").encode()
            contents[".png"] = base64.b64decode(forms["image/png"])
        for suffix, content in contents.items():
            path = folder / (name + suffix)
            if path.name not in old or path.read_bytes() != content:
                path.write_bytes(content)
            old.discard(path.name)
    for left in old:
        (folder / left).unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-read", add_links)
    app.connect("build-finished", write_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
