"""``banditlib bench``: how fast the engine is, beside plain loops, on this machine.

Contender and baseline alternate in short slices on one thread, timed in seconds of the processor.
Each row gives the median ratio of neighbouring slices with its 10th and 90th percentile.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from banditlib.files import write_whole
from banditlib.paper import provenance
from banditlib.paper.bench import arms, contexts, pools
from banditlib.paper.bench.growth import scaling
from banditlib.paper.bench.libraries import libraries, ours
from banditlib.paper.bench.measure import Row
from banditlib.paper.published import enroll
from banditlib.tables import shown

RESULT = "data/results/bench.json"
#: In the file of an interrupted run: the rows that are still to be measured.
LEFT = "left"
ROWS = [*arms.ROWS, *pools.ROWS, *contexts.ROWS]


def machine() -> dict[str, Any]:
    """What this was measured on, and at which commit."""
    origin = provenance.record(0.0)
    return {
        **{k: origin[k] for k in ("commit", "dirty", "finished")},
        "processor": origin["cpu"],
        "cores": origin["cores"],
        "threads": os.environ.get("OPENBLAS_NUM_THREADS", "library default"),
        **{k: origin[k] for k in ("blas", "python", "numpy")},
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table, and write every row as soon as it is there."""
    options = parser().parse_args(argv)
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        return _with_one_thread(sys.argv[1:] if argv is None else list(argv))
    asked = [row for row in ROWS if not options.rows or row.key in options.rows]
    pending = _read(options.out).get(LEFT, [])
    left = [row.key for row in asked if row.key in pending] or [row.key for row in asked]
    if len(left) < len(asked):
        print(f"Going on with row {left[0]}: {options.out} has those before it.")
    for row in asked:
        if row.key in left:
            left = [key for key in left if key != row.key]
            result = {"title": row.title, "unit": row.unit, "target": row.target}
            try:
                result |= row.measure(options.seconds)
            except ModuleNotFoundError as absent:
                print(f"({row.key}) {row.title}: not measured, {absent.name} is not installed")
                continue
            more = {LEFT: left} if left else {}
            here = machine()
            result["commit"] = here["commit"]
            write(options.out, {"machine": here, "rows": {row.key: result}, **more})
            print(_line(row, result), flush=True)
    if not options.no_libraries:
        speeds = {"ours": ours(), "libraries": libraries(options.seconds / 4)}
        write(options.out, speeds)
        for entry in [*speeds["ours"], *speeds["libraries"]]:
            print("   ", *(f"{k}={shown(v)}" for k, v in entry.items()))
    if not options.no_scaling:
        write(options.out, {"scaling": scaling()})
    enroll(options.out)
    print(f"written to {options.out}")
    return 0


def parser() -> argparse.ArgumentParser:
    """The options of ``banditlib bench``."""
    found = argparse.ArgumentParser(prog="banditlib bench", description=__doc__)
    found.add_argument("--rows", default="", help="letters of the rows to measure (all)")
    found.add_argument("--seconds", type=float, default=40.0, help="time per row")
    found.add_argument("--no-scaling", action="store_true", help="leave out how cost grows")
    found.add_argument("--no-libraries", action="store_true", help="leave out other libraries")
    found.add_argument(
        "--out",
        type=Path,
        default=Path("out/bench.json"),
        help="the file to write (out/bench.json), row by row; rows that are not measured now stay, "
        f"and an interrupted run goes on where it stopped (the book reads {RESULT})",
    )
    return found


def _line(row: Row, result: dict[str, Any]) -> str:
    return (
        f"({row.key}) {row.title:58s} {result['ratio']:6.1f}× "
        f"[{result['p10']:.1f}, {result['p90']:.1f}]  asked {row.target:g}×"
    )


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {"rows": {}}


def write(path: Path, found: dict[str, Any]) -> None:
    """Write what was measured; what the file held and was not measured again stays."""
    old = {key: value for key, value in _read(path).items() if key != LEFT}
    rows = {**old["rows"], **found.get("rows", {})}
    merged = {**old, **found, "rows": {key: rows[key] for key in sorted(rows)}}
    write_whole(path, (json.dumps(merged, indent=1) + "\n").encode())


def _with_one_thread(words: list[str]) -> int:
    """Start again with one BLAS thread: the number is read when numpy is imported."""
    import subprocess

    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    command = [
        sys.executable,
        "-c",
        "from banditlib.paper.bench.command import main; raise SystemExit(main())",
    ]
    return subprocess.call([*command, *words], env={**os.environ, **dict.fromkeys(names, "1")})


if __name__ == "__main__":
    raise SystemExit(main())
