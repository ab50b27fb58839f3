"""``{verified}``: how many stored cells came out again, computed by the source of this build."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from banditlib.paper.experiments import families
from banditlib.paper.experiments.base import results_folder
from banditlib.paper.render import markdown
from banditlib.paper.sources import engine_source
from banditlib.paper.verify import RECORD


def account(folder: Path) -> str:
    """The account of `banditlib verify --all` as a Markdown table: a row for each folder."""
    told: dict[str, Any] = {}
    if (folder / RECORD).exists():
        told = json.loads((folder / RECORD).read_text("utf8"))["packs"]
    sources = {family.name: engine_source(family) for family in families().values()}
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for name, cells in _stored(folder).items():
        family, entry = name.split("/")[0], told.get(name, {})
        now = entry.get("source") == sources[family]
        row = counts[family]
        row[0] += cells
        row[1] += entry["identical"] if now else 0
        row[2] += len(entry["different"]) if now else 0
    counts["all"] = [sum(column) for column in zip(*counts.values(), strict=True)]
    rows = [[family, *(f"{n:,}" for n in row)] for family, row in counts.items()]
    return markdown(["results", "cells", "computed again: identical", "different"], rows)


def _stored(folder: Path) -> dict[str, int]:
    """Cells of every pack, by the manifest."""
    lines = (folder / "MANIFEST").read_text("utf8").splitlines()
    packs = (line.split() for line in lines if line.startswith("pack "))
    return {words[1]: int(words[2]) for words in packs}


class Verified(SphinxDirective):
    """The account as a table."""

    def run(self) -> list[nodes.Node]:
        folder = results_folder()
        for name in (RECORD, "MANIFEST"):
            self.env.note_dependency(str(folder / name))
        return self.parse_text_to_nodes(account(folder))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("verified", Verified)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
