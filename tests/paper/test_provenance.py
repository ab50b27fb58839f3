"""How a page tells where a table came from."""

from __future__ import annotations

import json
import re

import pytest

from banditlib.paper import provenance
from banditlib.paper.experiments import stored


def test_the_panel_says_command_cells_and_downloads():
    panel = provenance.how_made("table-2")
    cells = stored("table-2")
    facts = dict(panel.facts())
    assert facts["Command"] == "banditlib reproduce table-2 --scale full"
    assert facts["Cells"] == str(len(cells))
    assert all(str(cell.provenance["commit"])[:10] in facts["Commit"] for cell in cells)
    assert repr(panel).startswith("Command: banditlib reproduce table-2")
    page = panel._repr_html_()
    links = re.findall(r'href="[^"]*/table-2([^"]*)" download>([^<]*)</a>', page)
    assert links == [(".csv", "CSV"), (".md", "MD")]
    assert json.dumps(cells[0].config["family"]) in page.replace("&quot;", '"')


def test_missing_cells_are_told(monkeypatch):
    some = stored("table-2")[:1]
    monkeypatch.setattr(provenance, "stored", lambda name, scale: some)
    assert "(the others are missing)" in dict(provenance.HowMade("table-2").facts())["Cells"]
    monkeypatch.setattr(provenance, "stored", lambda name, scale: [])
    with pytest.raises(ValueError, match="no stored results for 'table-2'"):
        provenance.how_made("table-2")


def test_a_second_form_of_a_download_is_named():
    assert (
        provenance._label(".csv") == "CSV"
        and provenance._label("-all-runs.csv") == "CSV (all runs)"
    )


def test_local_changes_are_told(monkeypatch):
    (cell, *_) = stored("table-2")
    changed = type(cell)(cell.config, cell.arrays, cell.whole, {**cell.provenance, "dirty": True})
    monkeypatch.setattr(provenance, "stored", lambda name, scale: [changed])
    assert "with local changes" in dict(provenance.HowMade("table-2").facts())["Commit"]
