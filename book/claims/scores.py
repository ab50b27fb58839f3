"""How the checks fared with their mutants: the stored result, and scores made from it."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from book import claims
from book.claims.formula import GENERAL

STORE = claims.HERE / "mutants.json"
STATES = ("rejected", "weaker", "slack", "unseen", "survived")


@dataclasses.dataclass(frozen=True)
class Score:
    """How many mutants a check rejects of those that it must reject."""

    rejected: int = 0
    weaker: int = 0
    slack: int = 0
    explained: tuple[tuple[str, str], ...] = ()
    survivors: tuple[str, ...] = ()

    @property
    def relevant(self) -> int:
        return self.rejected + len(self.survivors)

    def __str__(self) -> str:
        if not self.relevant and not self.explained and not self.weaker and not self.slack:
            return "no mutants"
        return f"rejects {self.rejected} of {self.relevant}"


def score(states: Mapping[str, str], reasons: Mapping[str, str]) -> Score:
    """Count the states of a check's mutants; `reasons` maps patterns of mutants to reasons.

    A pattern that begins with "unseen " excuses only mutants that change nothing the check reads.
    """
    counts = dict.fromkeys(STATES, 0)
    explained, survivors = [], []
    for mutant, state in states.items():
        if state in ("unseen", "survived"):
            every = {**GENERAL, **reasons}
            reason = next((r for p, r in every.items() if excuses(p, mutant, state)), None)
            if reason is None:
                survivors.append(mutant)
            else:
                explained.append((mutant, reason))
        else:
            counts[state] = counts.get(state, 0) + 1
    return Score(
        counts["rejected"], counts["weaker"], counts["slack"], tuple(explained), tuple(survivors)
    )


def excuses(pattern: str, mutant: str, state: str) -> bool:
    """Whether a pattern of claims.yml is about this mutant, which survived in this way."""
    only_unseen = pattern.startswith("unseen ")
    if only_unseen and state != "unseen":
        return False
    return fnmatch.fnmatchcase(mutant, pattern.removeprefix("unseen "))


def stored() -> dict[str, Any]:
    """The stored result of the last whole run, empty if there is none."""
    return json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {"checks": {}}


def row_score(row: claims.Row, results: Mapping[str, Any]) -> Score | None:
    """The stored score of a row, or None if its check was never tried."""
    entry = results["checks"].get(row.check or "")
    if entry is None:
        return None
    states = {m: state for state, names in entry["states"].items() for m in names}
    base = score(states, row.mutants)
    return dataclasses.replace(base, rejected=entry["rejected"], weaker=entry["weaker"])


def totals(rows: Iterable[claims.Row]) -> Counter[str]:
    """Mutants of all checks together; a check that several rows share is counted once."""
    results, out = stored(), Counter[str]()
    firsts = {row.check: row for row in reversed(list(rows)) if row.check}
    for row in firsts.values():
        if (found := row_score(row, results)) is not None:
            out["mutants checks"] += 1
            out["mutants rejected"] += found.rejected
            out["mutants relevant"] += found.relevant
            out["mutants weaker"] += found.weaker
            out["mutants slack"] += found.slack
            out["mutants excused"] += len(found.explained)
    return out


def commit() -> str:
    """The commit of the tree, with a mark if files other than the score itself are changed."""
    run = lambda *a: subprocess.run(  # noqa: E731
        ["git", *a], cwd=claims.ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    head = run("rev-parse", "--short=12", "HEAD")
    sources = ("banditlib", "book/claims", ":!book/claims/mutants.json")
    return head + ("+" if run("status", "--porcelain", "--", *sources) else "")
