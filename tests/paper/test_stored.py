"""Stored cells come out again: one of every policy of every family, however long it takes."""

from __future__ import annotations

import datetime
import random

import pytest

from banditlib.paper import run
from banditlib.paper.experiments import families
from banditlib.paper.experiments.base import stored
from banditlib.paper.verify import recheck

FAMILIES = (
    "synthetic", "asirra", "asirra-single", "asirra-lengths", "table-2", "phase-map", "separation",
    "guide",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_a_cell_of_every_policy_comes_out_again(name: str) -> None:
    """`banditlib verify` draws from every file too, and the weekly job goes through all."""
    family = families()[name]
    strata: dict[str, list] = {}
    for cell in stored(family, only_current=True):
        strata.setdefault(family.stratum(cell.config), []).append(cell)
    assert strata, f"there are no stored results of {name}"
    rng = random.Random(datetime.datetime.now(datetime.UTC).date().toordinal())
    again = 0
    for policy, cells in sorted(strata.items()):
        cell = rng.choice(cells)
        if family.unavailable(cell.config) is not None:
            continue
        ((same, _),) = recheck(family.run, family.thin, run.asked(), [cell])
        assert same, f"{policy}: {cell.key} {family.label(cell.config)}"
        again += 1
    if not again:
        pytest.skip(f"what {name} needs is not on this machine")


def test_every_family_is_in_the_sample() -> None:
    assert set(FAMILIES) == set(families())
