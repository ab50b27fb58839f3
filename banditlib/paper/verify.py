"""``banditlib verify``: is the folder what its manifest says, and do its cells come out again?"""

from __future__ import annotations

import argparse
import functools
import hashlib
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
from banditlib.paper.exits import FAILED, INTERRUPTED, MISSING, OK, USAGE, CommandError
from banditlib.paper.experiments.base import Experiment, Family, results_folder
from banditlib.paper.published import faults
from banditlib.paper.reproduce import progress
from banditlib.paper.sources import engine_source
from banditlib.paper.store import Arrays, Cell, Config, Damaged, Packed, key, read_pack

RECORD = "VERIFIED.json"
EVERY = 10.0
"""Seconds between two writings of the record while cells are re-run."""
SHORT = 12
"""Digits by which the record names a cell of a pack that is not yet whole."""


@dataclass
class Outcome:
    """What became of the cells: re-run and identical, re-run and different, not re-run and why.

    ``before`` has those that came out identically in earlier runs, and so were not re-run.
    """

    identical: dict[str, float] = field(default_factory=dict)
    before: dict[str, float] = field(default_factory=dict)
    different: dict[str, float] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@dataclass(frozen=True)
class Pack:
    """A pack of a family, read; its name is the manifest's."""

    name: str
    family: Family
    cells: list[Packed]

    @functools.cached_property
    def named(self) -> list[tuple[str, str]]:
        """Key and digest of each cell, worked out once: the record is written every few seconds."""
        return [(cell.key, cell.digest) for cell in self.cells]


def verify(chosen: Sequence[Experiment], options: argparse.Namespace) -> int:
    """Compare the folder with its manifest, then compute cells again and compare every array."""
    folder = options.results or results_folder()
    if (options.slice or options.fresh) and not options.all:
        raise CommandError("--slice and --fresh go with --all.", USAGE)
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
    try:
        if options.slice:
            outcome = _rerun_slice(packs, options)
        elif options.all:
            outcome = _rerun_all(packs, folder, options)
        else:
            outcome = _rerun_some(packs, options)
    except KeyboardInterrupt:
        raise CommandError(_interrupted(options), INTERRUPTED) from None
    return _conclude(packs, outcome, not told)


def _interrupted(options: argparse.Namespace) -> str:
    if options.slice or not options.all:
        return "Interrupted: the same command begins anew."
    rest = " without --fresh" if options.fresh else ""
    return f"Interrupted: what is finished is kept, and the same command{rest} goes on from there."


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
    again, before = len(outcome.identical) + len(outcome.different), len(outcome.before)
    if again or before < stored:
        print(
            f"Re-ran {again:,} of {stored:,} cells now: {len(outcome.identical):,} identical, "
            f"{len(outcome.different):,} different, in {outcome.seconds:,.0f} s."
        )
        if before:
            print(f"{before:,} cells came out identically in earlier runs.")
    for reason, count in outcome.left.items():
        print(f"Not re-run: {count:,} cells. {reason}")
    if outcome.different or not good:
        print("Some stored results do not match.")
        return FAILED
    if again:
        print("All that was re-run matches.")
        return OK
    if before == stored > 0:
        print(
            f"Nothing was re-run: all {stored:,} cells came out identically before, under this "
            "very source and numpy; --fresh re-runs them."
        )
        return OK
    print("Nothing was re-run, so nothing is verified.")
    return MISSING if outcome.left else FAILED


# --- a sample -----------------------------------------------------------------------------------


def _rerun_some(packs: Sequence[Pack], options: argparse.Namespace) -> Outcome:
    """Some cells of every stratum, or so many of all cells."""
    seed = random.randrange(10**6) if options.seed is None else options.seed
    rng = random.Random(seed)
    outcome, draw = Outcome(), _short(packs, options.limit)
    every = sum(len(pack.cells) for pack in packs)
    if too_long := every - sum(len(pack.cells) for pack in draw):
        outcome.left[f"They take longer than --limit {options.limit:g} s."] = too_long
    chosen = _drawn(draw, options, rng)
    if rest := every - too_long - sum(len(pack.cells) for pack in chosen):
        outcome.left["They were not drawn."] = rest
    print(f"Re-running {sum(len(p.cells) for p in chosen)} cells, drawn with --seed {seed}.")

    def tell(cell: Packed, family: Family, same: bool, seconds: float) -> None:
        word = "identical" if same else "DIFFERENT"
        print(f"  {cell.key} {family.label(cell.config)}: {word} ({seconds:.1f} s)", flush=True)

    _rerun(chosen, options, outcome, tell)
    return outcome


def _short(packs: Sequence[Pack], limit: float | None) -> list[Pack]:
    """The cells that take at most ``limit`` seconds."""
    if limit is None:
        return list(packs)
    return [Pack(p.name, p.family, [c for c in p.cells if _cost(p, c) <= limit]) for p in packs]


def _drawn(packs: Sequence[Pack], options: argparse.Namespace, rng: random.Random) -> list[Pack]:
    """``--random`` of all cells alike, or ``--sample`` of every policy in every pack."""
    if options.random is None:
        return [
            Pack(p.name, p.family, rng.sample(cells, min(options.sample, len(cells))))
            for p in packs
            for cells in _strata(p).values()
        ]
    every = [(pack, cell) for pack in packs for cell in pack.cells]
    return [
        Pack(pack.name, pack.family, [cell])
        for pack, cell in rng.sample(every, min(options.random, len(every)))
    ]


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
    """Every cell that is not known to come out identically from the source that computes it.

    With ``--fresh`` nothing is known of these packs.
    """
    path = folder / RECORD
    told = _told(path)
    if options.fresh:
        mine = {pack.name for pack in packs}
        told = {name: entry for name, entry in told.items() if name not in mine}
    known = _known(told, packs)
    outcome, due = Outcome(), []
    for pack in packs:
        old = {k: known[digest] for k, digest in pack.named if digest in known}
        outcome.before |= old
        new = [c for c, (k, _) in zip(pack.cells, pack.named, strict=True) if k not in old]
        due.append(Pack(pack.name, pack.family, new))
    if not any(pack.cells for pack in due):
        return outcome
    if outcome.before:
        print(f"{len(outcome.before):,} cells came out identically before ({path}).")
    written = time.monotonic()

    def tell(cell: Packed, family: Family, same: bool, seconds: float) -> None:
        nonlocal written
        _tell_different(cell, family, same, seconds)
        if time.monotonic() - written > EVERY:
            write_whole(path, _record(packs, outcome, told))
            written = time.monotonic()

    try:
        _rerun(due, options, outcome, tell)
    finally:
        write_whole(path, _record(packs, outcome, told))
        print(f"How far it got is in {path}.")
    return outcome


def _rerun_slice(packs: Sequence[Pack], options: argparse.Namespace) -> Outcome:
    """Every cell of one part of all; the record is neither asked nor changed."""
    outcome = Outcome()
    _rerun(packs, options, outcome, _tell_different, options.slice)
    return outcome


def _tell_different(cell: Packed, family: Family, same: bool, seconds: float) -> None:
    if not same:
        print(f"  {cell.key} {family.label(cell.config)}: DIFFERENT", flush=True)


def _told(path: Path) -> dict[str, dict[str, Any]]:
    """What the record says of each pack; nothing if there is none or it cannot be read.

    A pack that names no versions was verified under those of the whole record.
    """
    try:
        record = json.loads(path.read_text("utf8"))
        common = {"versions": dict(record.get("versions", {}))}
        return {str(name): common | entry for name, entry in record["packs"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError):
        print(f"{path} cannot be read: all cells are re-run.")
        return {}


def _known(told: dict[str, Any], packs: Sequence[Pack]) -> dict[str, float]:
    """Cells that the record names as identical under the present source and numpy, by digest, with
    the seconds that each took on average.
    """
    found: dict[str, float] = {}
    numpy = provenance.versions()["numpy"]
    for pack in packs:
        entry = told.get(pack.name, {})
        if entry.get("source") != engine_source(pack.family):
            continue
        if entry["versions"].get("numpy") != numpy:
            continue
        which = entry.get("which", [])
        cells = [digest for _, digest in pack.named]
        here = set(cells) if which == _all(cells) else {d for d in cells if d[:SHORT] in which}
        each = entry.get("seconds", 0.0) / max(1, entry.get("identical", 0))
        found |= dict.fromkeys(here, each)
    return found


def _all(digests: Iterable[str]) -> str:
    """One digest over those of all cells of a pack."""
    return hashlib.sha256(" ".join(sorted(digests)).encode()).hexdigest()


def _record(packs: Sequence[Pack], outcome: Outcome, told: dict[str, Any]) -> bytes:
    """What was verified, of which source, pack by pack, as JSON: enough to go on from.

    ``told`` is what an earlier record said; it is kept of packs of which nothing was re-run.
    """
    origin, versions = provenance.record(0.0), provenance.versions()
    per_pack = dict(told)
    now = outcome.identical.keys() | outcome.different.keys()
    seconds = outcome.before | outcome.identical
    for pack in packs:
        if pack.name in told and now.isdisjoint(k for k, _ in pack.named):
            continue
        same = {d: seconds[k] for k, d in pack.named if k in seconds}
        whole = len(same) == len(pack.cells)
        per_pack[pack.name] = {
            "cells": len(pack.cells),
            "identical": len(same),
            "different": [k for k, _ in pack.named if k in outcome.different],
            "source": engine_source(pack.family),
            "versions": versions,
            "seconds": round(sum(same.values()), 1),
            "which": _all(same) if whole else sorted(digest[:SHORT] for digest in same),
        }
    found = {
        "commit": origin["commit"],
        "local changes": origin["dirty"],
        "versions": versions,
        "finished": origin["finished"],
        "cells": sum(entry["cells"] for entry in per_pack.values()),
        "identical": sum(entry["identical"] for entry in per_pack.values()),
        "different": sum(len(entry["different"]) for entry in per_pack.values()),
        "seconds of computing": round(sum(entry["seconds"] for entry in per_pack.values()), 1),
        "not re-run": dict(outcome.left),
        "packs": {
            name: {k: v for k, v in entry.items() if (k, v) != ("versions", versions)}
            for name, entry in per_pack.items()
        },
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
