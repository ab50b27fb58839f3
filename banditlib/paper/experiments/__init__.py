"""Every table and figure by name: its cells, how they are stored, how it is drawn."""

from __future__ import annotations

import functools
from pathlib import Path

from banditlib.checks import one_of
from banditlib.paper.experiments import base
from banditlib.paper.experiments.base import Experiment, Family, Rendered
from banditlib.paper.store import Config, Packed, key


def registry() -> dict[str, Experiment]:
    """All experiments by name, in the order in which they were registered."""
    _load_all()
    return dict(base._REGISTRY)


@functools.cache
def _load_all() -> None:
    from banditlib.paper.experiments import (
        asirra,
        guide,
        phase_map,
        separation,
        synthetic,
        table_2,
    )

    for module in (synthetic, asirra, table_2, phase_map, separation, guide):
        for item in module.EXPERIMENTS:
            base.register(item)


def families() -> dict[str, Family]:
    """All families of cells by name."""
    return {item.family.name: item.family for item in registry().values()}


def stored(name: str, scale: str = "full", folder: Path | None = None) -> list[Packed]:
    """The stored cells of the experiment `name`, in its order; absent cells are left out."""
    known = registry()
    one_of("name", name, tuple(known))
    found = {cell.key: cell for cell in base.stored(known[name].family, folder)}
    wanted = [key(config) for config in known[name].cells(scale)]
    return [found[k] for k in wanted if k in found]


def rendered(name: str, scale: str = "full", folder: Path | None = None) -> Rendered:
    """Draw a table or figure from its stored cells: file contents by suffix; empty without."""
    cells = stored(name, scale, folder)
    return registry()[name].render(cells, scale) if cells else {}


def engine_of(config: Config) -> int:
    """The number of the engine that would compute a cell here and now."""
    family = families().get(config["family"])
    return 1 if family is None else family.engine(config)
