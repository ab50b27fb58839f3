"""The claims ledger: every checkable statement of the paper, its verdict and the check behind it.

`claims.yml` holds the rows, `checks/` the functions they name, `labels.yml` the paper's printed
numbers, `mutants.json` how the checks fared when their statements were changed.
`python -m book.claims [ID ...]` runs the checks.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

KINDS = (
    "theorem",
    "lemma",
    "corollary",
    "definition",
    "assumption",
    "algorithm",
    "remark",
    "equation",
    "table",
    "figure",
    "text",
    "number",
)
EVIDENCE = ("proved", "derived", "checked by run", "cited", "machine-checked")
VERDICTS = ("holds", "holds with repair", "false as stated", "not testable here")
NO_VERDICT = "no verdict"
GRADES = ("everywhere", "in the stated range", "in a corner")
ERRORS = ("false", "repair", "proof", "slip", "none")
SOURCES = ("paper", "dissertation", "ours")


@dataclass(frozen=True)
class Row:
    """One claim. Field meanings are in CONTRIBUTING.md."""

    id: str
    kind: str
    statement: str
    anchor: str
    evidence: str
    verdict: str
    grade: str | None = None
    error: str = "none"
    root: str | None = None
    check: str | None = None
    mutants: dict[str, str] = field(default_factory=dict)
    wrong: str | None = None
    repair: str | None = None
    remains: str | None = None
    note: str | None = None
    counterexample: str | None = None
    source: str = "paper"
    title: str | None = None
    lean: dict[str, str] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """The id as an HTML anchor: ``lm:finite`` becomes ``lm-finite``."""
        return slug(self.id)

    @property
    def page(self) -> str:
        return self.anchor.partition("#")[0]

    @property
    def target(self) -> str:
        return self.anchor.partition("#")[2]

    @property
    def printed(self) -> str:
        """What the paper calls it, ``Lemma C.4``; the id where the paper has no number."""
        return labels().get(self.id, {}).get("printed") or self.title or self.id

    @property
    def named(self) -> str:
        """Printed number and label: ``Lemma C.4 (lm:finite)``."""
        return f"{self.printed} ({self.id})" if self.printed != self.id else self.id


def slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")


def _read(path: Path) -> Any:
    """The content of a YAML file; by libyaml where there is one, ten times as fast."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)


@cache
def labels() -> dict[str, dict[str, Any]]:
    """Every label of the paper with its printed number, in the paper's order."""
    return _read(HERE / "labels.yml")


def _row(entry: object, where: str) -> Row:
    if not isinstance(entry, dict) or "id" not in entry:
        raise ValueError(f"{where}: a row must be a mapping with an id, got {entry!r}")
    where = f"{where}: {entry['id']}"
    known = {f.name for f in fields(Row)}
    if extra := sorted(set(entry) - known):
        raise ValueError(f"{where}: unknown field(s) {', '.join(extra)}")
    try:
        row = Row(**entry)
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from None
    for name, allowed in (
        ("kind", KINDS),
        ("evidence", EVIDENCE),
        ("verdict", (*VERDICTS, NO_VERDICT)),
        ("grade", (None, *GRADES)),
        ("error", ERRORS),
        ("source", SOURCES),
    ):
        if getattr(row, name) not in allowed:
            raise ValueError(
                f"{where}: {name} is {getattr(row, name)!r}, expected one of "
                + ", ".join(str(a) for a in allowed)
            )
    return row


def load(folder: Path = HERE) -> list[Row]:
    """Read the ledger, in the book's order. A malformed row is an error that names it."""
    path = folder / "claims.yml"
    entries = _read(path) or []
    rows = [_row(entry, path.name) for entry in entries]
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise ValueError(f"the claim {row.id} has two rows")
        seen.add(row.id)
    return rows


def counts(rows: list[Row]) -> Counter[str]:
    """How many rows of each kind there are; pages take every number from here.

    Without a prefix the paper's statements are counted, and definitions are not among them;
    with ``ours`` or ``dissertation`` before it, the rows of that source.
    """
    out: Counter[str] = Counter()
    for row in rows:
        prefix = "" if row.source == "paper" else f"{row.source} "
        out["rows"] += 1
        out[f"{prefix}rows"] += bool(prefix)
        out[f"{prefix}{row.verdict}"] += 1
        if row.verdict != NO_VERDICT:
            out[f"{prefix}all"] += 1
        if row.grade:
            out[f"{prefix}false {row.grade}"] += 1
        if row.error != "none" and not row.root:
            out[f"{prefix}error {row.error}"] += 1
        if row.lean:
            out["lean"] += 1
    return out


def function(name: str) -> Callable[..., Any]:
    """Return the function called `name` (``module.function``) among the checks."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(f"book.claims.checks.{module}"), attribute)


def sources() -> list[Path]:
    """The files that sources of chapters and prose pages live in."""
    return [*sorted((ROOT / "notebooks").glob("*.md")), *sorted((ROOT / "book").glob("*.md"))]


_BLOCK = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{prf:(?P<type>\w+)\}(?P<title>[^\n]*)\n(?P<body>.*?)^(?P=fence)\s*$",
    re.MULTILINE | re.DOTALL,
)
_LABEL = re.compile(r"^:label:\s*(\S+)\s*$", re.MULTILINE)
_REFERENCE = re.compile(r"\{(?:prf:ref|eq|numref)\}`(?:[^`<]*<)?([^`<>]+)>?`")
_SUFFIX = re.compile(r"-(repaired|sharp)$")


@dataclass(frozen=True)
class Statement:
    """A numbered statement of a chapter and the labels its proof refers to."""

    label: str
    type: str
    page: str
    proved: bool
    uses: tuple[str, ...]


def statements(text: str, page: str) -> list[Statement]:
    """Read the statements of one page, each with the references inside the proof after it."""
    found: list[Statement] = []
    for block in _BLOCK.finditer(text):
        if block["type"] == "proof":
            if found:
                last = found[-1]
                uses = (*last.uses, *_REFERENCE.findall(block["body"]))
                found[-1] = Statement(last.label, last.type, page, True, uses)
        elif label := _LABEL.search(block["body"]):
            found.append(Statement(label[1], block["type"], page, False, ()))
    return found


def all_statements() -> list[Statement]:
    return [
        statement
        for path in sources()
        for statement in statements(
            path.read_text(encoding="utf-8"), path.relative_to(ROOT).with_suffix("").as_posix()
        )
    ]


def edges(rows: list[Row]) -> list[tuple[str, str]]:
    """Pairs (claim, claim it uses), read off the references inside the chapters' proofs."""
    known = {row.slug: row.id for row in rows} | {slug(row.target): row.id for row in rows}
    known |= {row.slug: row.id for row in rows}

    def claim(label: str) -> str | None:
        return known.get(slug(label)) or known.get(slug(_SUFFIX.sub("", label)))

    pairs = set()
    for statement in all_statements():
        source = claim(statement.label)
        for label in statement.uses:
            target = claim(label)
            if source and target and source != target:
                pairs.add((source, target))
    return sorted(pairs)
