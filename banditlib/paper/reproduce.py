"""``banditlib reproduce``: compute the missing cells, draw the table or figure, publish."""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from banditlib.files import sha256, sweep, write_whole
from banditlib.paper import provenance, run
from banditlib.paper.exits import MISSING, NO_SPACE, OK, CommandError
from banditlib.paper.experiments.base import Experiment, Family, NotAvailable, stored
from banditlib.paper.published import publish
from banditlib.paper.store import Cell, Config, Packed, Store, key

Found = Cell | Packed


def reproduce(chosen: Sequence[Experiment], options: argparse.Namespace) -> int:
    """Make each of `chosen`; what lacks its data is left out, or an error if it was named."""
    if options.backend == "cupy":
        _need_gpu()
    skipped = 0
    for item in chosen:
        try:
            _one(item, options)
        except NotAvailable as reason:
            if options.names:
                raise CommandError(f"{item.name}: {reason}", MISSING) from None
            skipped += 1
            print(f"{item.name}: left out. {reason}")
        finally:
            sweep(options.out)
    return MISSING if skipped == len(chosen) else OK


def _need_gpu() -> None:
    from banditlib import backend

    try:
        backend.namespace("cupy")
    except Exception as error:  # the backend's own sentence names the extra to install
        raise CommandError(str(error), MISSING) from error


def scale_of(item: Experiment, asked: str) -> str:
    """The scale at which `item` is made: some are only run at the paper's own size, in full."""
    if asked in item.seconds:
        return asked
    return "full" if asked == "paper" else next(iter(item.seconds))


def _one(item: Experiment, options: argparse.Namespace) -> None:
    scale = scale_of(item, options.scale)
    if scale != options.scale:
        print(f"{item.name}: is not run at scale {options.scale}; made at scale {scale}.")
    store = Store(options.out / "cells", notice=_note)
    store.folder.mkdir(parents=True, exist_ok=True)
    store.sweep()
    start = time.perf_counter()
    configs = item.cells(scale)
    published = _published(item, options)
    missing = [c for c in store.missing(configs) if key(c) not in published]
    if missing:
        if (reason := item.family.unavailable(missing[0])) is not None:
            raise NotAvailable(reason)
        print(f"{item.name}: {len(missing)} of {len(configs)} cells to compute.", flush=True)
        _compute(item, missing, store, options)
    cells = _collect(configs, published, store, item, options)
    paths, drawn = _draw(item, scale, options.out, cells)
    took = time.perf_counter() - start
    if missing or drawn:
        print(f"{item.name}: done in {took:.1f} s, written to {_names(paths)}")
    else:
        print(f"{item.name}: nothing to do, it is in {_names(paths)}")
    _show(paths)
    if options.publish:
        for path in publish(item.family, cells, options.publish):
            print(f"{item.name}: published {path}")


def _published(item: Experiment, options: argparse.Namespace) -> dict[str, Packed]:
    """What the folder to publish in holds already: it need not be computed to be drawn."""
    if not options.publish:
        return {}
    return {cell.key: cell for cell in stored(item.family, options.publish, only_current=True)}


def _names(paths: Sequence[Path]) -> str:
    return " and ".join(str(p) for p in paths)


def _show(paths: Sequence[Path]) -> None:
    """Print the first table of a Markdown file, and say how many more there are."""
    for path in paths:
        if path.suffix == ".md":
            first, *more = path.read_text("utf8").split("\n## ")
            if more and "|" not in first:
                first, more = f"{first}\n## {more[0]}", more[1:]
            print(f"\n{first.strip()}\n")
            if more:
                tables = "1 more table is" if len(more) == 1 else f"{len(more)} more tables are"
                print(f"{tables} in {path}.")


def _note(sentence: str) -> None:
    print(f"banditlib: {sentence}", file=sys.stderr, flush=True)


# --- computing ----------------------------------------------------------------------------------


def _compute(
    item: Experiment, missing: list[Config], store: Store, options: argparse.Namespace
) -> None:
    family = item.family
    finished = _finished(family, family.batches(missing), store.folder, options)
    try:
        with progress(item.name, sum(family.seconds(config) for config in missing)) as bar:
            for batch, _ in finished:
                bar.update(sum(family.seconds(config) for config in batch))
    finally:
        store.sweep()


def progress(name: str, seconds: float) -> Any:
    """A bar that counts expected seconds."""
    from tqdm import tqdm

    return tqdm(
        total=round(seconds, 3),
        desc=name,
        bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left",
        disable=None,
    )


def _finished(
    family: Family, batches: run.Batches, folder: Path, options: argparse.Namespace
) -> Iterator[tuple[list[Config], None]]:
    wanted = run.asked(options.allow_versions)
    if options.scheduler:
        address = options.scheduler
        return run.cluster(family.run, batches, options.backend, wanted, folder, address)
    task = functools.partial(run.compute_and_store, family.run, options.backend, wanted, folder)
    return run.local(task, batches, options.workers)


def _collect(
    configs: list[Config],
    published: dict[str, Packed],
    store: Store,
    item: Experiment,
    options: argparse.Namespace,
) -> list[Found]:
    """All cells, each verified; one that was damaged while we worked is computed once more."""
    for _ in range(3):
        cells = [store.read(config) or published.get(key(config)) for config in configs]
        missing = [config for config, cell in zip(configs, cells, strict=True) if cell is None]
        if not missing:
            return [cell for cell in cells if cell is not None]
        _compute(item, missing, store, options)
    raise CommandError(
        f"Cells in {store.folder} are damaged as fast as they are written: check the disk.",
        NO_SPACE,
    )


# --- drawing ------------------------------------------------------------------------------------


def _draw(
    item: Experiment, scale: str, out: Path, cells: Sequence[Found]
) -> tuple[list[Path], bool]:
    """Draw the table or figure unless its files are already the ones these cells give."""
    stem = f"{item.name}-{scale}"
    card_path = out / f"{stem}.json"
    digest = hashlib.sha256("".join(cell.checksum for cell in cells).encode())
    digest.update(drawing_source(item))
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        card = json.loads(card_path.read_text())
        paths = [out / name for name in card["files"]]
        same = all(sha256(p) == d for p, d in zip(paths, card["files"].values(), strict=True))
        if card["input"] == digest.hexdigest() and same:
            return paths, False
    paths = []
    for suffix, content in item.render(cells, scale).items():
        paths.append(out / f"{stem}{suffix}")
        write_whole(paths[-1], content)
    card = _card(item, scale, cells)
    card |= {"input": digest.hexdigest(), "files": {p.name: sha256(p) for p in paths}}
    write_whole(card_path, json.dumps(card, indent=1, ensure_ascii=False).encode())
    return paths, True


def drawing_source(item: Experiment) -> bytes:
    """Stands for the code that draws: all of banditlib, and the file of `render` if elsewhere.

    Drawing anew takes seconds; finding out which lines a drawing depends on can go wrong.
    """
    render = item.render
    while isinstance(render, functools.partial):
        render = render.func
    path = getattr(sys.modules[render.__module__], "__file__", None)
    return provenance.source().encode() + (Path(path).read_bytes() if path else b"")


def _card(item: Experiment, scale: str, cells: Sequence[Any]) -> dict[str, Any]:
    """How it was made: command, size, origin and time, in one readable record."""
    origins = [cell.provenance for cell in cells]
    last = max(origins, key=lambda origin: origin["finished"])
    data = sorted({cell.config["data"] for cell in cells if "data" in cell.config})
    return {
        "name": item.name,
        "title": item.title,
        "command": f"banditlib reproduce {item.name} --scale {scale}",
        **({"data": data} if data else {}),
        "cells": len(cells),
        "engine": sorted({cell.config["engine"] for cell in cells}),
        "seconds of computing": round(sum(origin["wall"] for origin in origins), 1),
        "provenance": {k: v for k, v in last.items() if k != "wall"},
    }
