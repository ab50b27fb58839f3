"""Run the checks of the claims ledger: ``python book/claims [ID ...]``."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tqdm import tqdm

import claims


def run(name: str, size: str) -> tuple[float, str | None]:
    """Run one check; return seconds and the traceback if it failed."""
    start = time.perf_counter()
    try:
        claims.function(name)(size=size)
    except Exception:
        return time.perf_counter() - start, traceback.format_exc(limit=-3)
    return time.perf_counter() - start, None


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make claims", description=__doc__)
    parser.add_argument(
        "id", nargs="*", help="claims to check, e.g. lm:he (all when none is given)"
    )
    parser.add_argument("--size", choices=("ci", "full"), default="full", help="how much to run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="checks at a time")
    args = parser.parse_args(argv)
    rows = claims.load()
    ids = [row.id for row in rows]
    for name in args.id:
        if name not in ids:
            near = difflib.get_close_matches(name, ids, n=1, cutoff=0.3)
            hint = f"; did you mean {near[0]}?" if near else ""
            print(f"claims: there is no claim {name!r}{hint}", file=sys.stderr)
            return 2
    chosen = [row for row in rows if not args.id or row.id in args.id]
    testable = {row.check: row for row in chosen if row.check}
    failed: list[str] = []
    with ProcessPoolExecutor(max_workers=max(1, args.jobs)) as pool:
        jobs = {pool.submit(run, name, args.size): row for name, row in testable.items()}
        with tqdm(total=len(jobs), unit="check", disable=None) as bar:
            for job in as_completed(jobs):
                row = jobs[job]
                seconds, error = job.result()
                word = "FAILED" if error else "ok"
                bar.write(f"{word:6} {row.id:24} {row.verdict:18} {seconds:6.1f} s")
                if error:
                    failed.append(row.id)
                    bar.write(error)
                bar.update()
    without = sum(row.check is None for row in chosen)
    print(
        f"{len(jobs) - len(failed)} passed, {len(failed)} failed "
        f"({len(chosen)} claims, {without} of them not testable)"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
