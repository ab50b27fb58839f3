"""Draws every table and figure from the stored results and puts the files into the site.

The panels "how this was made" (`banditlib.paper.provenance`) link to them.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import mimetypes
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

from banditlib.paper import experiments
from book.extensions.cachekey import cache_key

logger = logging.getLogger(__name__)

#: The list of all files, in the form that archives of research data read.
CRATE = "ro-crate-metadata.json"


def crate(folder: Path, files: list[str]) -> str:
    """An RO-Crate of the results: each file with its kind, size and SHA-256."""
    described: list[dict[str, Any]] = []
    for name in files:
        content = (folder / name).read_bytes()
        described.append(
            {
                "@id": name,
                "@type": "File",
                "encodingFormat": mimetypes.guess_type(name)[0] or "text/plain",
                "contentSize": str(len(content)),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        )
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": "Tables and figures of Misspecification and the Gap",
        "description": "Drawn from the recorded runs by banditlib reproduce.",
        "license": {"@id": "https://spdx.org/licenses/MIT"},
        "datePublished": datetime.date.today().isoformat(),
        "isBasedOn": {"@id": "https://arxiv.org/abs/2303.09390"},
        "hasPart": [{"@id": name} for name in files],
    }
    about = {
        "@id": CRATE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    context = "https://w3id.org/ro/crate/1.1/context"
    return json.dumps({"@context": context, "@graph": [about, root, *described]}, indent=1)


def write_downloads(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    # What was drawn last, and from what: nothing is drawn twice.
    stamp, key = Path(app.doctreedir) / "downloads.json", cache_key()
    with contextlib.suppress(OSError, ValueError, KeyError):
        last = json.loads(stamp.read_text("utf8"))
        if last["key"] == key and all((folder / name).is_file() for name in last["files"]):
            return
    files = []
    for name, item in experiments.registry().items():
        if "full" in item.seconds:
            for suffix, content in experiments.rendered(name).items():
                files.append(f"{name}{suffix}")
                (folder / files[-1]).write_bytes(content)
    (folder / CRATE).write_text(crate(folder, files), "utf8")
    stamp.write_text(json.dumps({"key": key, "files": [*files, CRATE]}), "utf8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", write_downloads)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
