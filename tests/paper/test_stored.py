"""Stored cells come out again: one of every policy in every file, however long it takes.

All files of cats and dogs, or of the guide, would take half an hour and more: of these it is one
file a day, by the date. A cell in single precision takes ten minutes; it is a plain loop, so its
first rounds are played alone.
"""

from __future__ import annotations

import datetime
import random
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pytest

from banditlib.paper import run
from banditlib.paper.experiments import families
from banditlib.paper.experiments.base import Family, stored
from banditlib.paper.store import Packed
from banditlib.paper.verify import recheck

FAMILIES = (
    "synthetic", "asirra", "asirra-single", "asirra-lengths", "table-2", "phase-map", "separation",
    "guide",
)  # fmt: skip
ONE_A_DAY = ("asirra", "guide")
PLAIN_LOOP, FIRST_ROUNDS = "asirra-single", 100_000


def drawn(family: Family, cells: Iterable[Packed], day: int) -> list[Packed]:
    """A cell of every policy in every file, or in that of the day; files whose data are not on this
    machine are passed over.
    """
    files: dict[str, dict[str, list[Packed]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        files[family.part(cell.config)][family.stratum(cell.config)].append(cell)
    names, rng, found = sorted(files), random.Random(day), []
    first = day % len(names)
    for name in names[first:] + names[:first]:
        some = [rng.choice(same) for _, same in sorted(files[name].items())]
        if family.unavailable(some[0].config) is None:
            found += some
            if family.name in ONE_A_DAY:
                break
    return found


def begins_the_same(family: Family, cell: Packed) -> bool:
    """Whether the first rounds of a cell come out again."""
    marks = [k for k in cell.config["checkpoints"] if k <= FIRST_ROUNDS]
    (again,) = family.run([{**cell.config, "rounds": marks[-1], "checkpoints": marks}], "numpy")
    return np.array_equal(again["wrong"], cell.arrays["wrong"][:, : len(marks)])


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_a_cell_of_every_policy_in_every_file_comes_out_again(name: str) -> None:
    """The weekly job goes through all that need no data."""
    family = families()[name]
    cells = stored(family, only_current=True)
    assert cells, f"there are no stored results of {name}"
    some = drawn(family, cells, datetime.datetime.now(datetime.UTC).date().toordinal())
    if not some:
        pytest.skip(f"what {name} needs is not on this machine")
    for cell in some:
        if name == PLAIN_LOOP:
            same = begins_the_same(family, cell)
        else:
            ((same, _),) = recheck(family.run, family.thin, run.asked(), [cell])
        where = f"{family.part(cell.config)}, {family.stratum(cell.config)}"
        assert same, f"{where}: {cell.key} {family.label(cell.config)}"


def test_every_family_is_in_the_sample() -> None:
    assert set(FAMILIES) == set(families())


def test_the_sample_has_every_policy_of_every_reading() -> None:
    """SupLinUCB and LSW too, which take seconds."""
    family = families()["synthetic"]
    cells = stored(family)
    wanted = {(family.part(c.config), family.stratum(c.config)) for c in cells}
    some = drawn(family, cells, 1)
    assert len(some) == len(wanted) == 33
    assert {(family.part(c.config), family.stratum(c.config)) for c in some} == wanted


def test_day_by_day_every_file_comes_round() -> None:
    family = families()["guide"]
    cells = [cell for cell in stored(family) if cell.config["problem"] != "asirra"]
    parts = sorted({family.part(cell.config) for cell in cells})
    days = [{family.part(c.config) for c in drawn(family, cells, day)} for day in range(len(parts))]
    assert days == [{part} for part in parts]
