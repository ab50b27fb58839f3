"""The tables and figures of the paper and of the book, as data.

A *family* knows how to compute one kind of cell; an *experiment* is a named table or figure: the
cells it needs at each scale and the function that draws it.  Registering a new one takes a few
lines::

    register(Experiment(
        name="phase-map", title="Regret over ζ√d/Δ", family=SYNTHETIC,
        cells=phase_map_cells, render=draw_phase_map, seconds={"smoke": 20, "full": 3600},
    ))
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from banditlib.paper.results import Arrays, Cell, Config
from banditlib.simulate import ENGINE

__all__ = ["ENGINE", "SCALES", "Experiment", "Family", "NotAvailable", "register", "registry"]

SCALES = ("smoke", "paper", "full")

Rendered = dict[str, bytes]


class NotAvailable(Exception):
    """Something an experiment needs is not on this machine; the message says how to get it."""


def lacks(need: Callable[[Config], object]) -> Callable[[Config], str | None]:
    """For `Family.unavailable`: what `need` says when it raises `NotAvailable`."""

    def told(config: Config) -> str | None:
        try:
            need(config)
        except NotAvailable as error:
            return str(error)
        return None

    return told


def _one_by_one(configs: list[Config]) -> list[list[Config]]:
    return [[config] for config in configs]


@dataclass(frozen=True)
class Family:
    """One kind of cell.

    Parameters
    ----------
    name
        Part of every configuration (``config["family"]``) and the name of its folder.
    run
        ``run(configs, backend)`` computes some cells together and returns the integer arrays of
        each.  A cell's arrays must not depend on what it is computed with.
    batches
        How missing cells are grouped for `run`; a batch should take between a second and a few
        minutes.
    seconds
        Rough cost of one cell, for the progress bar.
    thin
        What the book keeps of a cell.
    part
        In which file of stored results a cell goes.
    label
        A few words for one cell.
    unavailable
        None, or a sentence that says what a cell needs that is missing here, and how to get it.
    """

    name: str
    run: Callable[[Sequence[Config], str], list[Arrays]]
    batches: Callable[[list[Config]], list[list[Config]]] = _one_by_one
    seconds: Callable[[Config], float] = lambda config: 1.0
    thin: Callable[[Cell], Arrays] = lambda cell: cell.arrays
    part: Callable[[Config], str] = lambda config: "cells"
    label: Callable[[Config], str] = lambda config: str(config.get("policy", ""))
    unavailable: Callable[[Config], str | None] = lambda config: None


@dataclass(frozen=True)
class Experiment:
    """A named table or figure.

    Parameters
    ----------
    cells
        ``cells(scale)`` lists the configurations it needs, the most wanted first.
    render
        ``render(cells, scale)`` returns file contents by suffix, such as ``{".csv": b"…"}``.
    seconds
        Measured time on two cores by scale; a scale that is absent is not offered.
    """

    name: str
    title: str
    family: Family
    cells: Callable[[str], list[Config]]
    render: Callable[[Sequence[Cell], str], Rendered]
    needs: str = "nothing"
    seconds: dict[str, float] = field(default_factory=dict)


_REGISTRY: dict[str, Experiment] = {}

#: Modules that register experiments of their own when imported.
_ELSEWHERE = (
    "banditlib.paper.synthetic",
    "banditlib.paper.sweep",
    "banditlib.paper.table_2",
    "banditlib.paper.phase_map",
)


def register(item: Experiment) -> Experiment:
    """Add an experiment to the list; a name can be taken once."""
    if item.name in _REGISTRY:
        raise ValueError(f"register: the name {item.name!r} is already taken")
    _REGISTRY[item.name] = item
    return item


def registry() -> dict[str, Experiment]:
    """All experiments by name, in the order in which they were registered."""
    _load_all()
    return dict(_REGISTRY)


@functools.cache
def _load_all() -> None:
    for module in _ELSEWHERE:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise


def results_folder() -> Path:
    """The book's stored results: ``data/results`` of the checkout, or of the current folder."""
    checkout = Path(__file__).resolve().parents[2] / "data" / "results"
    return checkout if checkout.is_dir() else Path("data") / "results"


def cell_config(family: str, **rest: Any) -> Config:
    """A configuration with the fields that every cell has."""
    return {"family": family, "engine": ENGINE, **rest}
