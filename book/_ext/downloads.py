"""Draws every table and figure from the stored results and puts the files into the site.

The panels "how this was made" (`banditlib.paper.made`) link to them.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from cachekey import cache_key
from sphinx.application import Sphinx
from sphinx.util import logging

from banditlib.paper import experiments, made

logger = logging.getLogger(__name__)


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
            for suffix, content in made.rendered(name).items():
                files.append(f"{name}{suffix}")
                (folder / files[-1]).write_bytes(content)
    stamp.write_text(json.dumps({"key": key, "files": files}), "utf8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", write_downloads)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
