"""Run the checks of the claims ledger, or try their mutants: ``python -m book.claims [ID ...]``."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tqdm import tqdm

from book import claims
from book.claims import mutants, scores
from book.claims.formula import Found


def run(name: str, size: str) -> tuple[float, Found | None, str | None]:
    """Run one check; return seconds, what it found, and the traceback if it failed."""
    start = time.perf_counter()
    try:
        found = claims.function(name)(size=size)
    except Exception:
        return time.perf_counter() - start, None, traceback.format_exc(limit=-3)
    return time.perf_counter() - start, found, None


def line(row: claims.Row, found: Found | None, seconds: float, tried: scores.Score | None) -> str:
    """One row of the report: verdict, evidence, slack, mutants, time."""
    verdict = row.verdict + (f" ({row.grade})" if row.grade else "")
    slack = "" if found is None or found.shown is None else f"slack {found.shown:.3g}"
    score = "not tried" if tried is None else str(tried)
    word = "ok" if found is not None else "FAILED"
    return (
        f"{word:6} {row.named:40.40} {verdict:32.32} {row.evidence:15} {slack:12} "
        f"{score:18} {seconds:5.1f} s"
    )


def checks(args: argparse.Namespace, rows: list[claims.Row]) -> int:
    """Run the chosen checks and print a line for every row."""
    chosen = [row for row in rows if not args.id or row.id in args.id]
    by_check: dict[str, list[claims.Row]] = {}
    for row in chosen:
        if row.check:
            by_check.setdefault(row.check, []).append(row)
    results = scores.stored()
    failed: list[str] = []
    with ProcessPoolExecutor(max_workers=max(1, args.jobs)) as pool:
        jobs = {pool.submit(run, name, args.size): name for name in by_check}
        with tqdm(total=len(jobs), unit="check", disable=None) as bar:
            for job in as_completed(jobs):
                seconds, found, error = job.result()
                for row in by_check[jobs[job]]:
                    bar.write(line(row, found, seconds, scores.row_score(row, results)))
                    failed += [row.id] if error else []
                if error:
                    bar.write(error)
                bar.update()
    without = [row for row in chosen if row.check is None]
    for row in without:
        print(f"–      {row.named:40.40} {row.verdict:32.32} {row.evidence:15} no check")
    print(
        f"{len(chosen) - len(without) - len(failed)} rows passed, {len(failed)} failed, "
        f"{len(without)} have no check"
    )
    return 1 if failed else 0


def compact(result: dict) -> dict:
    """The stored form of a check's mutants: counts of the usual, names of the rest."""
    states = result.pop("states")
    rest = {s: [m for m, t in states.items() if t == s] for s in ("slack", "unseen", "survived")}
    odd = [f"{m} [{t}]" for m, t in states.items() if t not in scores.STATES]
    if odd:
        raise RuntimeError(f"mutants that could not be judged: {odd[:3]}")
    return {
        "rejected": sum(t == "rejected" for t in states.values()),
        "weaker": sum(t == "weaker" for t in states.values()),
        "states": {s: names for s, names in rest.items() if names},
        **result,
    }


def all_mutants(args: argparse.Namespace, rows: list[claims.Row]) -> int:
    """Try every mutant of every check, store the score, name the survivors."""
    chosen = [row for row in rows if row.check and (not args.id or row.id in args.id)]
    names = list(dict.fromkeys(row.check for row in chosen if row.check))
    commit = scores.commit()
    results = {
        name: {**compact(r), "commit": commit}
        for name, r in mutants.run_all(names, args.jobs).items()
    }
    kept = scores.stored()
    kept["checks"] = {**kept["checks"], **results} if args.id else results
    used = {row.check for row in rows}
    kept["checks"] = {k: v for k, v in sorted(kept["checks"].items()) if k in used}
    kept["commit"] = ", ".join(sorted({entry["commit"] for entry in kept["checks"].values()}))
    scores.STORE.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
    bad = 0
    for row in chosen:
        tried = scores.row_score(row, kept)
        assert tried is not None
        print(f"{row.id:28} {tried}; {tried.weaker} weaker, {tried.slack} within the slack")
        for name in tried.survivors:
            bad += 1
            print(f"    SURVIVED {name}")
    all_ = scores.totals(rows)
    print(
        f"{all_['mutants rejected']} of {all_['mutants relevant']} mutants rejected by the checks"
    )
    print(f"{bad} survivors without a reason")
    return 1 if bad else 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make claims", description=__doc__)
    parser.add_argument(
        "id", nargs="*", help="claims to check, e.g. lm:he (all when none is given)"
    )
    parser.add_argument("--size", choices=("ci", "full"), default="full", help="how much to run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="checks at a time")
    parser.add_argument("--mutants", action="store_true", help="try every mutant (make mutants)")
    parser.add_argument("--mutants-of", metavar="CHECK", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.mutants_of:
        print(json.dumps(mutants.try_check(args.mutants_of), ensure_ascii=False))
        return 0
    rows = claims.load()
    ids = [row.id for row in rows]
    for name in args.id:
        if name not in ids:
            near = difflib.get_close_matches(name, ids, n=1, cutoff=0.3)
            hint = f"; did you mean {near[0]}?" if near else ""
            print(f"claims: there is no claim {name!r}{hint}", file=sys.stderr)
            return 2
    return all_mutants(args, rows) if args.mutants else checks(args, rows)


if __name__ == "__main__":
    sys.exit(main())
