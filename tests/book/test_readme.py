"""The README says what the results say, and its example prints what it shows."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess

from conftest import ROOT

from book import readme

TEXT = readme.README.read_text("utf8")


def test_the_findings_are_those_of_the_results():
    assert readme.filled(TEXT) == TEXT, "python -m book.readme writes them anew"
    assert len(re.findall(r"^\d\. \*\*", TEXT, re.MULTILINE)) == 3


def test_the_picture_shows_the_stored_numbers():
    digest = readme.picture()[1]
    assert f"<desc>{digest}</desc>" in readme.PICTURE.read_text("utf8"), "python -m book.readme"
    assert f"]({readme.PICTURE.relative_to(ROOT)})" in TEXT


def test_the_example_prints_what_it_says():
    shown = re.search(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", TEXT, re.DOTALL)
    assert shown
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(shown[1], {})
    assert printed.getvalue() == shown[2]


def test_the_table_names_every_folder():
    rows = re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE)
    named = set(re.findall(r"`([^`]+)`", " ".join(rows)))
    assert all((ROOT / name).exists() for name in named), named
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\n")
    top = {f"{name.split('/')[0]}/" for name in tracked if "/" in name and name[0] != "."}
    assert top <= named
    inside = {path.parent.name for path in (ROOT / "banditlib").glob("*/__init__.py")}
    core = next(line for line in TEXT.splitlines() if line.startswith("| `banditlib/`"))
    assert all(f"`{name}/`" in core or f"banditlib/{name}/" in named for name in inside)
