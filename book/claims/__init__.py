"""The claims ledger: every checkable statement of the paper, its verdict and the check behind it.

`claims.yml` holds the rows, `checks/` the functions they name, `labels.txt` the paper's labels.
`python book/claims [ID ...]` runs the checks.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

KINDS = [
    "theorem",
    "lemma",
    "corollary",
    "definition",
    "algorithm",
    "remark",
    "equation",
    "table",
    "figure",
    "text",
    "number",
]
EVIDENCE = ("proved", "derived", "checked by run", "cited")
VERDICTS = ("holds", "holds with repair", "false as stated", "not testable here")
SEVERITIES = ("false", "gap", "constant", "typo", "none")


@dataclass(frozen=True)
class Row:
    """One claim. Field meanings are in CONTRIBUTING.md."""

    id: str
    kind: str
    statement: str
    anchor: str
    evidence: str
    verdict: str
    severity: str = "none"
    check: str | None = None
    mutant: dict[str, Any] = field(default_factory=dict)
    wrong: str | None = None
    repair: str | None = None
    remains: str | None = None
    counterexample: str | None = None

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


def slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")


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
        ("verdict", VERDICTS),
        ("severity", SEVERITIES),
    ):
        if getattr(row, name) not in allowed:
            raise ValueError(
                f"{where}: {name} is {getattr(row, name)!r}, expected one of {', '.join(allowed)}"
            )
    return row


def load(folder: Path = HERE) -> list[Row]:
    """Read the ledger, in the book's order. A malformed row is an error that names it."""
    path = folder / "claims.yml"
    entries = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    rows = [_row(entry, path.name) for entry in entries]
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise ValueError(f"the claim {row.id} has two rows")
        seen.add(row.id)
    return rows


def function(name: str) -> Callable[..., Any]:
    """Return the function called `name` (``module.function``) among the checks."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(f"claims.checks.{module}"), attribute)


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
