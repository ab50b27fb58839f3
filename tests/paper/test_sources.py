"""The source that a verification holds for is the source that computes cells: all of it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

from banditlib.paper import provenance, sources
from banditlib.paper.experiments import base, families, registry
from banditlib.paper.experiments.asirra import cells as asirra

PACKAGE = provenance.ROOT / "banditlib"
#: These run while cells are computed and decide nothing of what they hold.
AROUND = {
    "paper/store.py", "paper/experiments/base.py", "paper/experiments/__init__.py", "progress.py",
    "policies/by_name.py", "paper/provenance.py", "files.py", "npz.py", "__init__.py",
}  # fmt: skip
SLOW = ("guide", "phase-map", "synthetic", "asirra", "asirra-single")


def executed(family: base.Family) -> set[str]:
    """Files of the package in which some function runs while one cell of every stratum is made."""
    items = [item for item in registry().values() if item.family.name == family.name]
    every = [config for item in items for config in item.cells("smoke")]
    chosen = {(family.part(c), family.stratum(c)): c for c in reversed(every)}
    configs = [c for c in chosen.values() if family.unavailable(c) is None]
    if not configs:
        pytest.skip(f"what {family.name} needs is not on this machine")
    seen: set[str] = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        # Every run on fixed arms asks `simulate_phases`; where no policy plans, it plays no lane.
        if event == "call" and frame.f_code.co_name != "simulate_phases":
            seen.add(frame.f_code.co_filename)

    asirra.pool.cache_clear()
    sys.setprofile(look)
    try:
        for config in configs:
            family.run([config], "numpy")
    finally:
        sys.setprofile(None)
    paths = (Path(name) for name in seen)
    return {p.relative_to(PACKAGE).as_posix() for p in paths if PACKAGE in p.parents}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in families()],
)
def test_what_runs_is_in_the_digest(name: str) -> None:
    family = families()[name]
    counted = {p.relative_to(PACKAGE).as_posix() for p in sources.computing(family)}
    assert executed(family) - counted <= AROUND


def test_every_file_of_the_digest_is_there() -> None:
    for family in families().values():
        found = list(sources.computing(family))
        assert found and all(path.is_file() for path in found)


def test_an_engine_of_another_kind_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = PACKAGE / "engines" / "contexts.py"
    before = {f.name: sources.engine_source(f) for f in families().values()}
    kept = Path.read_bytes
    monkeypatch.setattr(
        Path, "read_bytes", lambda self: b"changed" if self == changed else kept(self)
    )
    after = {f.name: sources.engine_source(f) for f in families().values()}
    assert {name for name in before if before[name] != after[name]} == {"separation", "guide"}
