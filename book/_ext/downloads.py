"""Draws every table and figure from the stored results and puts the files into the site.

The panels "how this was made" (`banditlib.paper.made`) link to them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

from banditlib.paper import experiments, made

logger = logging.getLogger(__name__)


def write_downloads(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    for name, item in experiments.registry().items():
        if "full" in item.seconds:
            for suffix, content in made.rendered(name).items():
                (folder / f"{name}{suffix}").write_bytes(content)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", write_downloads)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
