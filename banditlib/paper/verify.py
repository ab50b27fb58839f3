"""``banditlib verify``: is the folder what its manifest says, and do its cells come out again?"""

from __future__ import annotations

import argparse
import functools
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from banditlib.files import write_whole
from banditlib.paper import provenance, run
from banditlib.paper.exits import FAILED, MISSING, OK, USAGE, CommandError
from banditlib.paper.experiments.base import Experiment, Family, results_folder
from banditlib.paper.published import faults
from banditlib.paper.reproduce import progress
from banditlib.paper.store import Arrays, Cell, Config, Damaged, Packed, key, read_pack

RECORD = "VERIFIED.json"


@dataclass
class Outcome:
    """What became of the cells: re-run and identical, re-run and different, not re-run and why."""

    identical: dict[str, float] = field(default_factory=dict)
    different: dict[str, float] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@dataclass(frozen=True)
class Pack:
    """A pack of a family, read; its name is the manifest's."""

    name: str
    family: Family
    cells: list[Packed]


def verify(chosen: Sequence[Experiment], options: argparse.Namespace) -> int:
    """Compare the folder with its manifest, then compute cells again and compare every array."""
    folder = options.results or results_folder()
    if not folder.is_dir():
        raise CommandError(
            f"There are no results in {folder}: name their folder with --results.", USAGE
        )
    told = faults(folder)
    packs = list(_packs(chosen, folder, told))
    for sentence in told:
        print(sentence)
    if not told:
        cells = sum(len(pack.cells) for pack in packs)
        print(f"{folder}: {len(packs)} packs with {cells:,} cells are what the MANIFEST says.")
    outcome = _rerun_all(packs, folder, options) if options.all else _rerun_some(packs, options)
    return _conclude(packs, outcome, not told)


def _packs(chosen: Sequence[Experiment], folder: Path, told: list[str]) -> Iterator[Pack]:
    """The sound packs of the chosen experiments; what is wrong with the others goes to `told`."""
    for family in {item.family.name: item.family for item in chosen}.values():
        paths = sorted((folder / family.name).glob("*.npz"))
        if not paths:
            told.append(f"There are no stored results of {family.name} in {folder}.")
        for path in paths:
            try:
                cells = read_pack(path)
            except Damaged as fault:
                if not any(str(path) in sentence for sentence in told):
                    told.append(f"{path} {fault}. Restore it from version control.")
                continue
            if old := sum(not family.is_current(cell.config) for cell in cells):
                told.append(
                    f"{path}: {old} of {len(cells)} cells were made by an engine version that is "
                    "no longer ours. Run `banditlib reproduce --scale full --publish` again."
                )
            current = [cell for cell in cells if family.is_current(cell.config)]
            yield Pack(path.relative_to(folder).as_posix(), family, current)


def _conclude(packs: Sequence[Pack], outcome: Outcome, good: bool) -> int:
    stored = sum(len(pack.cells) for pack in packs)
    again = len(outcome.identical) + len(outcome.different)
    print(
        f"Re-ran {again:,} of {stored:,} cells in {outcome.seconds:,.0f} s: "
        f"{len(outcome.identical):,} identical, {len(outcome.different):,} different."
    )
    for reason, count in outcome.left.items():
        print(f"Not re-run: {count:,} cells. {reason}")
    if outcome.different or not good:
        print("Some stored results do not match.")
        return FAILED
    if not again:
        print("Nothing was re-run, so nothing is verified.")
        return MISSING if outcome.left else FAILED
    print("All that was re-run matches.")
    return OK


# --- a sample -----------------------------------------------------------------------------------


def _rerun_some(packs: Sequence[Pack], options: argparse.Namespace) -> Outcome:
    """Some cells of every stratum: of every policy in every pack."""
    seed = random.randrange(10**6) if options.seed is None else options.seed
    rng = random.Random(seed)
    outcome, chosen = Outcome(), []
    for pack in packs:
        for cells in _strata(pack).values():
            short = cells
            if options.limit is not None:
                short = [c for c in cells if _cost(pack, c) <= options.limit]
                reason = f"They take longer than --limit {options.limit:g} s."
                outcome.left[reason] += len(cells) - len(short)
            drawn = rng.sample(short, min(options.sample, len(short)))
            outcome.left["They were not drawn."] += len(short) - len(drawn)
            chosen.append(Pack(pack.name, pack.family, drawn))
    outcome.left += Counter()  # drop what counts nothing
    print(f"Re-running {sum(len(p.cells) for p in chosen)} cells, drawn with --seed {seed}.")

    def tell(cell: Packed, family: Family, same: bool, seconds: float) -> None:
        word = "identical" if same else "DIFFERENT"
        print(f"  {cell.key} {family.label(cell.config)}: {word} ({seconds:.1f} s)", flush=True)

    _rerun(chosen, options, outcome, tell)
    return outcome


def _strata(pack: Pack) -> dict[str, list[Packed]]:
    found: dict[str, list[Packed]] = {}
    for cell in pack.cells:
        found.setdefault(pack.family.stratum(cell.config), []).append(cell)
    return found


def _cost(pack: Pack, cell: Packed) -> float:
    """Seconds that a cell takes: what it took, or what its family expects if that is less."""
    expected = pack.family.seconds(cell.config)
    return min(expected, float(cell.provenance.get("wall", expected)))


# --- all of them --------------------------------------------------------------------------------


def _rerun_all(packs: Sequence[Pack], folder: Path, options: argparse.Namespace) -> Outcome:
    """Every cell that is not known to come out identically from this very source."""
    log = options.out / f"verified-{provenance.engine_source()}.txt"
    known = _known(log)
    outcome = Outcome()
    due = []
    for pack in packs:
        new = [cell for cell in pack.cells if cell.digest not in known]
        outcome.identical |= {c.key: known[c.digest] for c in pack.cells if c.digest in known}
        due.append(Pack(pack.name, pack.family, new))
    if outcome.identical:
        print(f"{len(outcome.identical):,} cells came out identically before ({log}).")
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "a", encoding="utf8") as file:

        def tell(cell: Packed, family: Family, same: bool, seconds: float) -> None:
            if not same:
                print(f"  {cell.key} {family.label(cell.config)}: DIFFERENT", flush=True)
                return
            file.write(f"{cell.digest} {seconds}\n")
            file.flush()

        try:
            _rerun(due, options, outcome, tell, options.slice)
        finally:
            write_whole(folder / RECORD, _record(packs, outcome))
            print(f"How far it got is in {folder / RECORD}.")
    return outcome


def _known(log: Path) -> dict[str, float]:
    """Cells that a log names as identical, by digest, with the seconds each took."""
    if not log.exists():
        return {}
    rows = (line.split() for line in log.read_text("utf8").splitlines())
    return {row[0]: float(row[1]) for row in rows if len(row) == 2}


def _record(packs: Sequence[Pack], outcome: Outcome) -> bytes:
    """What was verified, of which source, pack by pack, as JSON."""
    origin = provenance.record(0.0)
    per_pack = {}
    for pack in packs:
        names = [cell.key for cell in pack.cells]
        per_pack[pack.name] = {
            "cells": len(names),
            "identical": sum(name in outcome.identical for name in names),
            "different": [name for name in names if name in outcome.different],
        }
    found = {
        "commit": origin["commit"],
        "local changes": origin["dirty"],
        "engine source": provenance.engine_source(),
        "finished": origin["finished"],
        "cells": sum(len(pack.cells) for pack in packs),
        "identical": len(outcome.identical),
        "different": len(outcome.different),
        "seconds of computing": round(
            sum(outcome.identical.values()) + sum(outcome.different.values()), 1
        ),
        "not re-run": dict(outcome.left),
        "packs": per_pack,
    }
    return (json.dumps(found, indent=1) + "\n").encode()


# --- running cells again ------------------------------------------------------------------------

Tell = Callable[[Packed, Family, bool, float], None]


def _rerun(
    packs: Sequence[Pack],
    options: argparse.Namespace,
    outcome: Outcome,
    tell: Tell,
    part: tuple[int, int] = (1, 1),
) -> None:
    """Compute cells again in their family's batches (of these, one `part`), on all workers."""
    start = time.perf_counter()
    wanted = run.asked()
    for family, cells in _by_family(packs, outcome):
        by_key = {cell.key: cell for cell in cells}
        batches = family.batches([cell.config for cell in cells])
        mine = batches[part[0] - 1 :: part[1]]
        if part != (1, 1):
            others = sum(map(len, batches)) - sum(map(len, mine))
            outcome.left[f"They are in other slices than {part[0]}/{part[1]}."] += others
        groups = [[by_key[key(config)] for config in batch] for batch in mine]
        expected = sum(float(cell.provenance.get("wall", 0)) for group in groups for cell in group)
        workers = max(1, min(options.workers, len(groups)))
        print(
            f"{family.name}: {sum(map(len, groups)):,} cells, about {expected / workers:,.0f} s "
            f"on {workers} workers by their recorded times.",
            flush=True,
        )
        task = functools.partial(recheck, family.run, family.thin, wanted)
        with progress(family.name, expected) as bar:
            for group, found in run.local(task, groups, options.workers):
                for cell, (same, seconds) in zip(group, found, strict=True):
                    (outcome.identical if same else outcome.different)[cell.key] = seconds
                    tell(cell, family, same, seconds)
                    bar.update(float(cell.provenance.get("wall", 0)))
                outcome.seconds = time.perf_counter() - start


def _by_family(packs: Iterable[Pack], outcome: Outcome) -> Iterator[tuple[Family, list[Packed]]]:
    """The cells of each family that can be computed here; the others are counted as left."""
    found: dict[str, tuple[Family, list[Packed]]] = {}
    for pack in packs:
        if not pack.cells:
            continue
        if (reason := pack.family.unavailable(pack.cells[0].config)) is not None:
            outcome.left[reason] += len(pack.cells)
            continue
        found.setdefault(pack.family.name, (pack.family, []))[1].extend(pack.cells)
    yield from found.values()


def recheck(
    compute: run.Runner,
    thin: Callable[[Cell], Arrays],
    wanted: run.Asked,
    batch: Sequence[Packed],
) -> list[tuple[bool, float]]:
    """Whether each stored cell of `batch` comes out again, and the seconds it took."""
    configs: list[Config] = [cell.config for cell in batch]
    again = run.compute(compute, configs, "numpy", wanted)
    return [
        (
            new.checksum == old.whole and equal(thin(new), old.arrays),
            float(new.provenance["wall"]),
        )
        for new, old in zip(again, batch, strict=True)
    ]


def equal(a: Arrays, b: Arrays) -> bool:
    """Integers exactly, floating-point values to 1e-9 relative."""
    if a.keys() != b.keys() or any(a[k].shape != b[k].shape for k in a):
        return False
    return all(_close(a[k], b[k]) for k in a)


def _close(a: Any, b: Any) -> bool:
    if a.dtype.kind == "f":
        return bool(np.allclose(a, b, rtol=1e-9, atol=0))
    return bool(np.array_equal(a, b))
