"""The command line: ``banditlib list · reproduce · verify · data · bench``."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import errno
import hashlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from banditlib.paper import experiments, results, run
from banditlib.paper.experiments import Experiment, Family
from banditlib.paper.results import Config, Packed, Store

OK, FAILED, USAGE, NO_SPACE, MISSING, BROKEN, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

EXIT_CODES = """\
exit codes:
  0    done (or nothing to do)
  1    verify found a result that does not match
  2    wrong use: an unknown name or option
  3    the output folder cannot be written (no space, no permission)
  4    something needed is missing: data, an extra, a GPU, a Dask scheduler
  5    a computation failed; the message says in which cell
  130  interrupted; the same command goes on where it stopped
"""


class CommandError(Exception):
    """One sentence with the remedy, and the exit code."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in (["data"], ["bench"]):  # these parse their own options
        return _guard(lambda: _delegate(words))
    options = parser().parse_args(words)
    return _guard(lambda: options.command(options))


def _guard(command: Any) -> int:
    with _terminate_like_interrupt():
        try:
            return int(command() or OK)
        except CommandError as error:
            return _complain(str(error), error.code)
        except (run.Unreachable, run.OtherVersion, experiments.NotAvailable) as error:
            return _complain(str(error), MISSING)
        except run.CellFailed as error:
            return _complain(str(error), BROKEN)
        except results.Damaged as fault:
            return _complain(f"A stored result {fault}: restore it, or delete it.", FAILED)
        except KeyboardInterrupt:
            return _complain(
                "Interrupted: what is finished is kept, and the same command goes on from there.",
                INTERRUPTED,
            )
        except BrokenPipeError:  # `banditlib list | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        except OSError as error:
            return _complain(_disk(error), NO_SPACE)


def _complain(sentence: str, code: int) -> int:
    print(f"banditlib: {sentence}", file=sys.stderr)
    return code


def _disk(error: OSError) -> str:
    where = error.filename or "the output folder"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"No space left while writing {where}: free some or choose another folder with --out; "
            "what is finished is kept."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"No permission to write {where}: choose another folder with --out."
    return f"{error.strerror or error} ({where}): check the folder, or choose another with --out."


@contextlib.contextmanager
def _terminate_like_interrupt() -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does (only in the main thread, where handlers may be set)."""

    def stop(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def parser() -> argparse.ArgumentParser:
    """The argument parser, with its help."""
    top = argparse.ArgumentParser(
        prog="banditlib",
        description="Rebuild any table or figure of the paper and of the book; check stored ones.",
        epilog="examples:\n"
        "  banditlib list\n"
        "  banditlib reproduce table-1 figure-1a --scale paper\n"
        "  banditlib verify table-1\n\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=_version())
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_list(commands)
    _add_reproduce(commands)
    _add_verify(commands)
    commands.add_parser("data", help="fetch and prepare data: banditlib data asirra --help")
    commands.add_parser("bench", help="measure speed on this machine")
    return top


def _version() -> str:
    import banditlib

    version = getattr(banditlib, "__version__", "unknown")
    return f"banditlib {version}, engine {experiments.ENGINE}"


def _add_list(commands: Any) -> None:
    sub = commands.add_parser("list", help="name every table and figure, with needs and times")
    sub.set_defaults(command=_list)


def _add_reproduce(commands: Any) -> None:
    sub = commands.add_parser(
        "reproduce",
        help="run what is missing, then write the table or figure",
        description="Run the missing cells of the named tables and figures, then write each: a "
        "table as CSV and Markdown, a figure as SVG and PNG, with a .json that says how it was "
        "made. Finished cells are kept: an interrupted run goes on where it stopped, a second run "
        "does nothing.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument(
        "names", nargs="*", metavar="NAME", help="from `banditlib list`; none means all"
    )
    sub.add_argument(
        "--scale",
        choices=experiments.SCALES,
        default="paper",
        help="smoke: seconds, to see it work; paper: the paper's own size (default); "
        "full: the size that settles it",
    )
    sub.add_argument("--backend", choices=("numpy", "cupy"), default="numpy", help="default numpy")
    sub.add_argument(
        "--workers",
        type=_positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes on this machine (default: all cores)",
    )
    sub.add_argument(
        "--scheduler", metavar="ADDRESS", help="run on the Dask cluster at tcp://host:port instead"
    )
    sub.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="default: out")
    sub.add_argument(
        "--publish",
        type=Path,
        metavar="DIR",
        help="also write the thinned results there (the book's are in data/results)",
    )
    sub.set_defaults(command=_reproduce)


def _add_verify(commands: Any) -> None:
    sub = commands.add_parser(
        "verify",
        help="check stored results and re-run a random sample of them",
        description="Check the checksums of all stored results, then compute a random sample of "
        "their cells again and compare every array.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument(
        "names", nargs="*", metavar="NAME", help="from `banditlib list`; none means all"
    )
    sub.add_argument(
        "--results", type=Path, default=None, metavar="DIR", help="default: the book's data/results"
    )
    sub.add_argument(
        "--sample", type=int, default=6, metavar="N", help="cells to re-run per name (6)"
    )
    sub.add_argument(
        "--seed", type=int, default=None, help="of the sample (default: a new one each time)"
    )
    sub.add_argument(
        "--limit",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="leave out cells that take longer (20)",
    )
    sub.set_defaults(command=_verify)


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return value


def _chosen(names: Sequence[str]) -> list[Experiment]:
    known = experiments.registry()
    if not names:
        return list(known.values())
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]}?" if near else "`banditlib list` names what there is."
            raise CommandError(f"There is no table or figure called {name!r}: {hint}", USAGE)
    return [known[name] for name in dict.fromkeys(names)]


# --- list ---------------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> int:
    rows: list[tuple[str, ...]] = [("name", "what it is", "needs", *experiments.SCALES)]
    for item in experiments.registry().values():
        times = (_duration(item.seconds.get(scale)) for scale in experiments.SCALES)
        rows.append((item.name, item.title, item.needs, *times))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    print("\nTimes are for two cores. `banditlib reproduce NAME --scale SCALE` makes one.")
    return OK


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


# --- reproduce ----------------------------------------------------------------------------------


def _reproduce(options: argparse.Namespace) -> int:
    chosen = _chosen(options.names)
    if options.backend == "cupy":
        _need_gpu()
    skipped = 0
    for item in chosen:
        try:
            _one(item, options)
        except experiments.NotAvailable as reason:
            if options.names:
                raise CommandError(f"{item.name}: {reason}", MISSING) from None
            skipped += 1
            print(f"{item.name}: left out. {reason}")
    return MISSING if skipped == len(chosen) else OK


def _need_gpu() -> None:
    from banditlib import backend

    try:
        backend.namespace("cupy")
    except Exception as error:  # the backend's own sentence names the extra to install
        raise CommandError(str(error), MISSING) from error


def _one(item: Experiment, options: argparse.Namespace) -> None:
    store = Store(options.out / "cells", notice=_note)
    store.folder.mkdir(parents=True, exist_ok=True)
    store.sweep()
    configs = item.cells(options.scale)
    missing = store.missing(configs)
    start = time.perf_counter()
    if missing:
        if (reason := item.family.unavailable(missing[0])) is not None:
            raise experiments.NotAvailable(reason)
        print(f"{item.name}: {len(missing)} of {len(configs)} cells to compute.", flush=True)
        _compute(item, missing, store, options)
    cells = _collect(configs, store, item, options)
    paths, drawn = _render(item, options, cells)
    took = time.perf_counter() - start
    if missing or drawn:
        print(f"{item.name}: done in {took:.1f} s, written to {_names(paths)}")
    else:
        print(f"{item.name}: nothing to do, it is in {_names(paths)}")
    if options.publish:
        for path in publish(item.family, cells, options.publish):
            print(f"{item.name}: published {path}")


def _names(paths: Sequence[Path]) -> str:
    return " and ".join(str(p) for p in paths)


def _note(sentence: str) -> None:
    print(f"banditlib: {sentence}", file=sys.stderr, flush=True)


def _compute(
    item: Experiment, missing: list[Config], store: Store, options: argparse.Namespace
) -> None:
    from tqdm import tqdm

    family = item.family
    batches = family.batches(missing)
    finished = _finished(family, batches, store.folder, options)
    total = sum(family.seconds(config) for config in missing)
    with tqdm(
        total=round(total, 3),
        desc=item.name,
        bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left",
        disable=None,
    ) as bar:
        for batch in finished:
            bar.update(sum(family.seconds(config) for config in batch))


def _finished(
    family: Family, batches: run.Batches, folder: Path, options: argparse.Namespace
) -> Iterator[list[Config]]:
    if options.scheduler:
        return run.cluster(family.run, batches, options.backend, folder, options.scheduler)
    if options.workers == 1 or len(batches) == 1:
        return run.here(family.run, batches, options.backend, folder)
    return run.processes(family.run, batches, options.backend, folder, options.workers)


def _collect(
    configs: list[Config], store: Store, item: Experiment, options: argparse.Namespace
) -> list[results.Cell]:
    """All cells, each verified; one that was damaged while we worked is computed once more."""
    for _ in range(3):
        cells = [store.read(config) for config in configs]
        missing = [config for config, cell in zip(configs, cells, strict=True) if cell is None]
        if not missing:
            return [cell for cell in cells if cell is not None]
        _compute(item, missing, store, options)
    raise CommandError(
        f"Cells in {store.folder} are damaged as fast as they are written: check the disk.",
        NO_SPACE,
    )


def _render(
    item: Experiment, options: argparse.Namespace, cells: list[results.Cell]
) -> tuple[list[Path], bool]:
    """Draw the table or figure unless its files are already the ones these cells give."""
    stem = options.out / f"{item.name}-{options.scale}"
    card_path = stem.with_name(stem.name + ".json")
    digest = hashlib.sha256("".join(cell.checksum for cell in cells).encode())
    digest.update(_drawing_source(item))
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        card = json.loads(card_path.read_text())
        paths = [options.out / name for name in card["files"]]
        same = all(_digest(p) == d for p, d in zip(paths, card["files"].values(), strict=True))
        if card["input"] == digest.hexdigest() and same:
            return paths, False
    paths = []
    for suffix, content in item.render(cells, options.scale).items():
        path = stem.with_name(stem.name + suffix)
        results.write_whole(path, lambda file, content=content: file.write(content))  # type: ignore[misc]
        paths.append(path)
    card = _card(item, options.scale, cells)
    card |= {"input": digest.hexdigest(), "files": {p.name: _digest(p) for p in paths}}
    text = json.dumps(card, indent=1, ensure_ascii=False).encode()
    results.write_whole(card_path, lambda file: file.write(text))
    return paths, True


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _drawing_source(item: Experiment) -> bytes:
    module = sys.modules[item.render.__module__]
    path = getattr(module, "__file__", None)
    return Path(path).read_bytes() if path else b""


def _card(item: Experiment, scale: str, cells: Sequence[Any]) -> dict[str, Any]:
    """How it was made: command, size, origin and time, in one readable record."""
    origins = [cell.provenance for cell in cells]
    last = max(origins, key=lambda origin: origin["finished"])
    return {
        "name": item.name,
        "title": item.title,
        "command": f"banditlib reproduce {item.name} --scale {scale}",
        "cells": len(cells),
        "engine": experiments.ENGINE,
        "seconds of computing": round(sum(origin["wall"] for origin in origins), 1),
        "provenance": {k: v for k, v in last.items() if k != "wall"},
    }


def publish(family: Family, cells: Sequence[results.Cell], folder: Path) -> list[Path]:
    """Write thinned cells to ``folder/family/part.npz``, together with those already there."""
    parts: dict[str, dict[str, Packed]] = {}
    for cell in cells:
        thinned = Packed(cell.config, family.thin(cell), cell.checksum, cell.provenance)
        parts.setdefault(family.part(cell.config), {})[cell.key] = thinned
    paths = []
    for part, members in sorted(parts.items()):
        path = folder / family.name / f"{part}.npz"
        if path.exists():
            before = {results.key(p.config): p for p in results.read_pack(path)}
            if {k: p.whole for k, p in before.items()} == {k: p.whole for k, p in members.items()}:
                continue
            current = {k: p for k, p in before.items() if p.config["engine"] == experiments.ENGINE}
            members = current | members
        results.write_pack(path, part, [members[k] for k in sorted(members)])
        paths.append(path)
    return paths


# --- verify -------------------------------------------------------------------------------------


def _verify(options: argparse.Namespace) -> int:
    folder = options.results or experiments.results_folder()
    if not folder.is_dir():
        raise CommandError(
            f"There are no results in {folder}: name their folder with --results.", USAGE
        )
    rng = random.Random(options.seed)
    families = {item.family.name: item.family for item in _chosen(options.names)}
    good = True
    for family in families.values():
        packs = sorted((folder / family.name).glob("*.npz"))
        if not packs:
            print(f"{family.name}: no stored results in {folder / family.name}.")
            continue
        stored = _check_packs(packs)
        good &= stored is not None and _check_sample(family, stored, options, rng)
    print("All stored results match." if good else "Some stored results do not match.")
    return OK if good else FAILED


def _check_packs(packs: Sequence[Path]) -> list[Packed] | None:
    stored: list[Packed] | None = []
    for path in packs:
        try:
            cells = results.read_pack(path)
        except results.Damaged as fault:
            print(f"{path}: {fault}. Restore it from version control, or publish it again.")
            stored = None
            continue
        others = {c.config["engine"] for c in cells} - {experiments.ENGINE}
        if others:
            print(
                f"{path}: made by engine version {min(others)}, this is {experiments.ENGINE}. "
                "Run `banditlib reproduce --scale full --publish` again."
            )
            stored = None
            continue
        print(f"{path}: {len(cells)} cells, checksums match.")
        if stored is not None:
            stored += cells
    return stored


def _check_sample(
    family: Family, stored: list[Packed], options: argparse.Namespace, rng: random.Random
) -> bool:
    short = [cell for cell in stored if _cost(family, cell) <= options.limit]
    if len(short) < len(stored):
        print(
            f"  {len(stored) - len(short):,} of {len(stored):,} cells take longer than "
            f"{options.limit:g} s and are not re-run; --limit changes that."
        )
    good = True
    for cell in rng.sample(short, min(options.sample, len(short))):
        if (reason := family.unavailable(cell.config)) is not None:
            print(f"  {family.label(cell.config)}: not re-run. {reason}", flush=True)
            continue
        start = time.perf_counter()
        again = run.compute(family.run, [cell.config], "numpy")[0]
        same = again.checksum == cell.whole and _equal(family.thin(again), cell.arrays)
        took = time.perf_counter() - start
        word = "identical" if same else "DIFFERENT"
        print(f"  {again.key} {family.label(cell.config)}: {word} ({took:.1f} s)", flush=True)
        good &= same
    return good


def _cost(family: Family, cell: Packed) -> float:
    """Seconds that a cell takes: what it took, or what its family expects if that is less."""
    expected = family.seconds(cell.config)
    return min(expected, float(cell.provenance.get("wall", expected)))


def _equal(a: results.Arrays, b: results.Arrays) -> bool:
    """Integers exactly, floating-point values to 1e-9 relative."""
    if a.keys() != b.keys() or any(a[k].shape != b[k].shape for k in a):
        return False
    return all(
        bool(np.allclose(a[k], b[k], rtol=1e-9, atol=0))
        if a[k].dtype.kind == "f"
        else bool(np.array_equal(a[k], b[k]))
        for k in a
    )


# --- data, bench --------------------------------------------------------------------------------


def _delegate(words: Sequence[str]) -> int:
    command, *rest = words
    if command == "bench":
        from banditlib.paper import bench

        return int(bench.main(rest) or OK)
    if rest[:1] == ["asirra"]:
        from banditlib.paper import asirra

        return int(asirra.main(rest[1:]) or OK)
    print("usage: banditlib data asirra [options]     (banditlib data asirra --help)")
    return OK if rest[:1] in (["-h"], ["--help"]) else USAGE


if __name__ == "__main__":
    sys.exit(main())
