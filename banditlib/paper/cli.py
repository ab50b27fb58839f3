"""The command line: ``banditlib list · reproduce · verify · data · bench``."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import errno
import math
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from banditlib.paper import experiments, run
from banditlib.paper.exits import (
    BROKEN,
    EXIT_CODES,
    FAILED,
    INTERRUPTED,
    MISSING,
    NO_SPACE,
    OK,
    USAGE,
    CommandError,
)
from banditlib.paper.experiments.base import SCALES, Experiment, NotAvailable, Outdated
from banditlib.paper.published import Unlisted
from banditlib.paper.reproduce import reproduce
from banditlib.paper.store import Damaged
from banditlib.paper.verify import verify


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
        except (run.Unreachable, run.OtherVersion, NotAvailable) as error:
            return _complain(str(error), MISSING)
        except (run.CellFailed, run.WorkerDied) as error:
            return _complain(str(error), BROKEN)
        except Damaged as fault:
            return _complain(f"A stored result {fault}: restore it, or delete it.", FAILED)
        except (Outdated, Unlisted) as error:
            return _complain(str(error), FAILED)
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
        return f"No permission for {where}: choose another folder with --out."
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
    return f"banditlib {version}"


def _add_list(commands: Any) -> None:
    sub = commands.add_parser("list", help="name every table and figure, with needs and times")
    sub.set_defaults(command=_list)


def _on_experiments(commands: Any, name: str, brief: str, whole: str) -> argparse.ArgumentParser:
    """A command that takes names of tables and figures."""
    sub: argparse.ArgumentParser = commands.add_parser(
        name,
        help=brief,
        description=whole,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument(
        "names", nargs="*", metavar="NAME", help="from `banditlib list`; none means all"
    )
    return sub


def _add_reproduce(commands: Any) -> None:
    sub = _on_experiments(
        commands,
        "reproduce",
        "run what is missing, then write the table or figure",
        "Run the missing cells of the named tables and figures, then write each: a "
        "table as CSV and Markdown, a figure as SVG and PNG, with a .json that says how it was "
        "made. Finished cells are kept: an interrupted run goes on where it stopped, a second run "
        "does nothing.",
    )
    sub.add_argument(
        "--scale",
        choices=SCALES,
        default="paper",
        help="smoke: seconds, to see it work; paper: the paper's own size (default); "
        "full: the size that settles it",
    )
    sub.add_argument("--backend", choices=("numpy", "cupy"), default="numpy", help="default numpy")
    _add_workers(sub)
    sub.add_argument(
        "--scheduler", metavar="ADDRESS", help="run on the Dask cluster at tcp://host:port instead"
    )
    sub.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="default: out")
    sub.add_argument(
        "--publish",
        type=Path,
        metavar="DIR",
        help="also write the thinned results there (the book's are in data/results); what is there "
        "already is not computed again",
    )
    sub.add_argument(
        "--allow-versions",
        action="store_true",
        help="let workers have other versions of Python, numpy or BLAS (never other source)",
    )
    sub.set_defaults(command=lambda options: reproduce(_chosen(options.names), options))


def _add_verify(commands: Any) -> None:
    sub = _on_experiments(
        commands,
        "verify",
        "compare stored results with their manifest and re-run some or all of them",
        "Compare the stored results with their MANIFEST (missing, extra, swapped and "
        "altered files and cells are named), then compute cells again and compare every array: by "
        "default one cell of every policy in every file, drawn at random, however long it takes.",
    )
    sub.add_argument(
        "--results", type=Path, default=None, metavar="DIR", help="default: the book's data/results"
    )
    sub.add_argument(
        "--sample",
        type=_positive,
        default=1,
        metavar="N",
        help="cells to re-run of every policy in every file (1)",
    )
    sub.add_argument(
        "--random",
        type=_positive,
        default=None,
        metavar="N",
        help="re-run N cells instead, drawn from all alike",
    )
    sub.add_argument(
        "--seed", type=int, default=None, help="of the sample (default: a new one each time)"
    )
    sub.add_argument(
        "--limit",
        type=_seconds,
        default=None,
        metavar="SECONDS",
        help="leave out cells that take longer (default: none)",
    )
    sub.add_argument(
        "--all",
        action="store_true",
        help="re-run every cell that VERIFIED.json among the results does not name as identical "
        "under the present source and numpy; it is kept up to date, so that an interrupted run "
        "goes on where it stopped, on another machine too",
    )
    sub.add_argument(
        "--fresh",
        action="store_true",
        help="with --all: re-run every cell, whatever VERIFIED.json names, and begin it anew",
    )
    sub.add_argument(
        "--slice",
        type=_slice,
        default=None,
        metavar="K/N",
        help="with --all: re-run every cell of the K-th of N parts of all, whatever VERIFIED.json "
        "names, and leave it as it is",
    )
    _add_workers(sub)
    sub.add_argument("--out", type=Path, help=argparse.SUPPRESS)  # once the folder of a log
    sub.set_defaults(command=lambda options: verify(_chosen(options.names), options))


def _add_workers(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--workers",
        type=_positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes on this machine (default: all cores)",
    )


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, got {text!r}")
    return value


def _slice(text: str) -> tuple[int, int]:
    k, _, n = text.partition("/")
    if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise argparse.ArgumentTypeError(f"expected K/N with 1 ≤ K ≤ N, such as 3/26, got {text!r}")
    return int(k), int(n)


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
    rows: list[tuple[str, ...]] = [("name", "what it is", "needs", *SCALES)]
    for item in experiments.registry().values():
        times = (_duration(item.seconds.get(scale)) for scale in SCALES)
        rows.append((item.name, item.title, item.needs, *times))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    print(
        "\nAsirra features: `banditlib data asirra` makes them; at scale smoke the digits of "
        "scikit-learn\nstand in. Without --scale it is the paper's own size, which for some is "
        "the full one."
    )
    print("Times are for two cores. `banditlib reproduce NAME --scale SCALE` makes one.")
    return OK


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


# --- data, bench --------------------------------------------------------------------------------


def _delegate(words: Sequence[str]) -> int:
    command, *rest = words
    if command == "bench":
        from banditlib.paper.bench import command as bench

        return int(bench.main(rest) or OK)
    if rest[:1] == ["asirra"]:
        from banditlib.paper import vision

        return int(vision.main(rest[1:]) or OK)
    print(
        "usage: banditlib data asirra [options]     (banditlib data asirra --help)", file=sys.stderr
    )
    return OK if rest[:1] in (["-h"], ["--help"]) else USAGE


if __name__ == "__main__":
    sys.exit(main())
