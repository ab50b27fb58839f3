"""The account of what was computed again counts only what the present source computed."""

from __future__ import annotations

import json
from pathlib import Path

from banditlib.paper.experiments import families
from banditlib.paper.sources import engine_source
from book.extensions.verified import account


def test_the_account_adds_up_and_forgets_other_sources(tmp_path: Path) -> None:
    packs = {"synthetic/a.npz": 5, "synthetic/b.npz": 4, "guide/c.npz": 3}
    lines = [f"pack {name} {cells} cells {'0' * 64}" for name, cells in packs.items()]
    (tmp_path / "MANIFEST").write_text("\n".join(["# head", *lines, "key digest"]))
    now = engine_source(families()["synthetic"])
    told = {
        "synthetic/a.npz": {"identical": 4, "different": ["x"], "source": now},
        "synthetic/b.npz": {"identical": 4, "different": [], "source": "another"},
        "gone/d.npz": {"identical": 9, "different": [], "source": now},
    }
    assert "| all | 12 | 0 | 0 |" in account(tmp_path)  # nothing recorded yet
    (tmp_path / "VERIFIED.json").write_text(json.dumps({"packs": told}))
    rows = account(tmp_path).splitlines()[2:]
    assert rows == ["| synthetic | 9 | 4 | 1 |", "| guide | 3 | 0 | 0 |", "| all | 12 | 4 | 1 |"]
