"""The tables and figures of the paper and of the book, as data.

A *family* knows how to compute one kind of cell; an *experiment* is a named table or figure: the
cells it needs at each scale and the function that draws it.  Registering a new one takes a few
lines::

    register(
        SYNTHETIC.experiment(
            "phase-map", "Regret over ζ√d/Δ", phase_map_cells, draw_phase_map, smoke=20, full=3600
        )
    )
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from banditlib.paper.store import Arrays, Cell, Config, Damaged, Packed, read_pack

__all__ = ["SCALES", "Experiment", "Family", "NotAvailable", "register"]

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


def _policy(config: Config) -> str:
    policy = config.get("policy", "")
    return str(policy["name"] if isinstance(policy, dict) else policy)


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
    engine
        The number of the engine that computes a cell; a cell of another number is no result.
    stratum
        What a sample must not miss among the cells of one file: by default each policy.
    kinds
        The kinds of problem that the cells play: "arms", "pools", "contexts"; "phases" where a
        policy plans whole phases, "agents" where a live agent decides. A verification holds for
        the source that plays these.
    also
        Modules beside that of `run` which compute something of a cell.
    """

    name: str
    run: Callable[[Sequence[Config], str], list[Arrays]]
    batches: Callable[[list[Config]], list[list[Config]]] = _one_by_one
    seconds: Callable[[Config], float] = lambda config: 1.0
    thin: Callable[[Cell], Arrays] = lambda cell: cell.arrays
    part: Callable[[Config], str] = lambda config: "cells"
    label: Callable[[Config], str] = lambda config: _policy(config)
    unavailable: Callable[[Config], str | None] = lambda config: None
    engine: Callable[[Config], int] = lambda config: 1
    stratum: Callable[[Config], str] = lambda config: _policy(config)
    kinds: tuple[str, ...] = ("arms", "phases", "pools", "contexts", "agents")
    also: tuple[str, ...] = ()

    def is_current(self, config: Config) -> bool:
        """Whether the engine that computed a cell is the one that would compute it now."""
        return bool(config["engine"] == self.engine(config))

    def experiment(
        self,
        name: str,
        title: str,
        cells: Callable[[str], list[Config]],
        render: Callable[[Sequence[Any], str], Rendered],
        needs: str = "nothing",
        **seconds: float,
    ) -> Experiment:
        """A table or figure of cells of this kind; ``seconds`` by scale, see `Experiment`."""
        return Experiment(name, title, self, cells, render, needs, seconds)


@dataclass(frozen=True)
class Experiment:
    """A named table or figure.

    Parameters
    ----------
    cells
        ``cells(scale)`` lists the configurations it needs, the most wanted first.
    render
        ``render(cells, scale)`` returns file contents by suffix, such as ``{".csv": b"…"}``, from
        whole or from thinned cells.
    seconds
        Measured time on two cores by scale; a scale that is absent is not offered.
    """

    name: str
    title: str
    family: Family
    cells: Callable[[str], list[Config]]
    render: Callable[[Sequence[Any], str], Rendered]
    needs: str = "nothing"
    seconds: dict[str, float] = field(default_factory=dict)


_REGISTRY: dict[str, Experiment] = {}


def register(item: Experiment) -> Experiment:
    """Add an experiment to the list; a name can be taken once."""
    if item.name in _REGISTRY:
        raise ValueError(f"register: the name {item.name!r} is already taken")
    _REGISTRY[item.name] = item
    return item


def results_folder() -> Path:
    """The book's stored results: ``data/results`` of the checkout, or of the current folder."""
    checkout = Path(__file__).resolve().parents[3] / "data" / "results"
    return checkout if checkout.is_dir() else Path("data") / "results"


class Outdated(Exception):
    """A stored result that another engine version computed; the message says what to do."""


def stored(family: Family, folder: Path | None = None, only_current: bool = False) -> list[Packed]:
    """All stored cells of a family: the one door through which results reach a table or figure.

    A cell of another engine version is no result: `Outdated`, unless such are to be left out.
    """
    folder = folder or results_folder()
    found: list[Packed] = []
    for path in sorted((folder / family.name).glob("*.npz")):
        try:
            cells = read_pack(path)
        except Damaged as fault:
            raise Damaged(f"({path}) {fault}") from fault
        current = [cell for cell in cells if family.is_current(cell.config)]
        if len(current) < len(cells) and not only_current:
            raise Outdated(
                f"{path} holds {len(cells) - len(current)} cells of {len(cells)} that another "
                "engine version computed, so they are no results: compute them again with "
                f"`banditlib reproduce --scale full --publish {folder}`."
            )
        found += current
    return found


def cell_config(family: str, engine: int = 1, **rest: Any) -> Config:
    """A configuration with the fields that every cell has."""
    return {"family": family, "engine": engine, **rest}
