"""The API page names everything that is public, and its programs run as written."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

import banditlib as bl

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "api.md"
PUBLIC = sorted({*bl.__all__, *bl.problems.__all__})


def programs() -> list[str]:
    section = PAGE.read_text().split("## Three complete programs")[1].split("\n## ")[0]
    return re.findall(r"```\{code-cell\} ipython3\n(.*?)```", section, re.S)


def test_every_public_name_is_on_the_api_page():
    text = PAGE.read_text()
    names = [*PUBLIC, "contexts", "first_best", "at_least", "within", "stack"]
    names += ["choose", "learn", "skip", "save", "load", "info", "locked", "regret", "selections"]
    names += ["retract", "theta", "means", "widths", "summary", "plot", "compare", "to_dataframe"]
    names += [field.name for field in dataclasses.fields(bl.Run) if not field.name.startswith("_")]
    common = {"problems", "policies", "rounds", "trials", "seed", "backend", "dtype", "summed"}
    missing = [name for name in names if name not in common and name not in text]
    assert not missing


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_anchor_and_stands_in_the_index(name):
    anchor = name.lower().replace("_", "-")
    assert f"```{{index}} {name}\n:name: api-{anchor}\n```" in PAGE.read_text()


def test_there_are_three_programs():
    assert len(programs()) == 3


@pytest.mark.parametrize("number", range(3))
def test_the_programs_run_as_written(number, tmp_path):
    """Each by itself, in a folder with nothing else in it."""
    file = tmp_path / "program.py"
    file.write_text(programs()[number])
    done = subprocess.run([sys.executable, file.name], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_everything_public_has_a_docstring():
    for name in bl.__all__:
        assert (getattr(bl, name).__doc__ or "").strip(), name
