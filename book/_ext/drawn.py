"""How a figure or table that a chapter computes itself was made, and what can be had of it.

What is read from stored results has a panel of its own (`banditlib.paper.made`), put there by the
chapter. Everything else that a cell shows through `figure` or `table` gets one here: the command
that runs the chapter again, commit, machine and running time, and the figure and the points behind
it as files.
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

from banditlib.paper import made
from banditlib.paper.results import provenance

SHOWN = re.compile(r'class="(bl-figure|bl-table)"')
STORED = "; stored results that they read have panels of their own"
FOLDER = "drawn"


def file_name(page: str, content: str) -> str:
    """The name, without suffix, under which what a cell of `page` shows is kept."""
    return f"{page}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"


def panel(docname: str, content: str, label: str, seconds: float | None, reads: bool) -> str:
    """The folded panel for `content`, a figure or table in HTML with the name `label`.

    `reads` says whether the page reads stored results.
    """
    page = docname.rpartition("/")[2]
    kind = "figure" if "bl-figure" in content else "table"
    origin = provenance(0.0)
    facts = [
        ("Command", f"make page PAGE={docname}.md"),
        ("Configuration, seeds", "in the cells of this page" + (STORED if reads else "")),
        ("Commit", str(origin["commit"])[:10] + (" with local changes" if origin["dirty"] else "")),
        ("Machine", f"{origin['cpu']}, {origin['cores']} cores, {origin['blas']}"),
        ("Software", f"Python {origin['python']}, numpy {origin['numpy']}"),
        ("Computing time", "not recorded" if seconds is None else f"{seconds:.0f} s, whole page"),
    ]
    suffixes = ("csv", "png", "svg") if kind == "figure" else ("csv",)
    stem = f"{made.DOWNLOADS}/{FOLDER}/{file_name(page, content)}"
    links = [
        f'<a href="{stem}.{suffix}" download="{label}.{suffix}">{suffix.upper()}</a>'
        for suffix in suffixes
    ]
    return made.panel(f"How this {kind} was made", facts, links)


def add_panels(app: Sphinx, doctree: nodes.document) -> None:
    """Put a panel under every figure and table that has none."""
    docname = app.env.docname
    if not docname.startswith("notebooks/"):
        return
    shown = [
        raw
        for raw in doctree.findall(nodes.raw)
        if SHOWN.search(raw.astext()) or 'class="made"' in raw.astext()
    ]
    seconds = running_time(app, docname)
    reads = any('class="made"' in raw.astext() for raw in shown)
    number = 0
    for raw, after in pairwise([*shown, None]):
        if raw is None or not SHOWN.search(raw.astext()):
            continue
        number += 1
        if after is not None and 'class="made"' in after.astext():
            continue
        box: nodes.Element = raw
        while box.parent is not None and not isinstance(box, nodes.figure):
            if "cell_output" in box.get("classes", []):
                break
            box = box.parent
        ids = box.get("ids") or box.get("names") or []
        label = ids[0] if isinstance(box, nodes.figure) and ids else f"shown-{number}"
        name = f"{docname.rpartition('/')[2]}-{label.removeprefix('fig-')}"
        new = nodes.raw("", panel(docname, raw.astext(), name, seconds, reads), format="html")
        if isinstance(box, nodes.figure):
            box.parent.insert(box.parent.index(box) + 1, new)
        else:
            raw.parent.insert(raw.parent.index(raw) + 1, new)


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
    """Put the files that the panels link to into the site, and take away older ones."""
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
    app.connect("doctree-read", add_panels)
    app.connect("build-finished", write_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
