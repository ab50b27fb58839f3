"""The API page names everything that is public."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import banditlib as bl

PAGE = Path(__file__).resolve().parent.parent / "notebooks" / "api.md"


def test_every_public_name_is_on_the_api_page():
    text = PAGE.read_text()
    names = [name for name in bl.__all__ if name != "problems"]
    names += ["synthetic", "FixedArms", "Pool", "lower_bound", "lower_bound_family", "contexts"]
    names += ["nearly_orthogonal", "generator", "first_best", "at_least", "within", "stack"]
    names += ["choose", "learn", "skip", "save", "load", "info", "locked", "regret", "selections"]
    names += [field.name for field in dataclasses.fields(bl.Run) if not field.name.startswith("_")]
    common = {"problems", "policies", "rounds", "trials", "seed", "backend", "dtype"}
    missing = [name for name in names if name not in common and name not in text]
    assert not missing


def test_everything_public_has_a_docstring():
    for name in bl.__all__:
        assert (getattr(bl, name).__doc__ or "").strip(), name
