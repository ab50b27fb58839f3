"""The claims ledger is whole, its checks run, and its checks can fail."""

from __future__ import annotations

import importlib
import inspect
import re

import numpy as np
import pytest
from conftest import ROOT

from book import claims
from book.claims import numbering
from book.claims.formula import Found
from book.extensions import ledger

ROWS = claims.load()
PAPER = ROOT.parent / "shared" / "paper" / "paper.tex"
LABELS = list(claims.labels())


def by_id(rows: list[claims.Row]) -> list:
    return [pytest.param(row, id=row.id) for row in rows]


CHECKED = [row for row in ROWS if row.check]


def test_every_label_of_the_paper_has_a_row():
    assert sorted(set(LABELS) - {row.id for row in ROWS}) == []


def test_every_row_is_shown_on_its_page():
    for row in ROWS:
        page = (ROOT / f"{row.anchor.partition('#')[0]}.md").read_text("utf8")
        boxes = re.findall(r"^`{3,}\{verdict\} (.+)$", page, re.MULTILINE)
        shown = [name.strip() for box in boxes for name in box.split(",")]
        assert row.id in shown, (row.id, row.anchor)


def test_no_two_verdict_boxes_touch():
    """Boxes in a row are badges without their statements: one box can hold several claims."""
    box = r"^```\{verdict\} [^\n]+\n(?::\w+:\n)?```\s*"
    for path in claims.sources():
        text = path.read_text(encoding="utf-8")
        touching = re.search(rf"(?:{box}){{2,}}", text, re.MULTILINE)
        assert not touching, (path.name, touching and touching[0])


def test_the_committed_numbers_are_the_papers():
    if not PAPER.exists():
        pytest.skip("the paper's source is not beside the project")
    source = PAPER.read_text(encoding="utf-8")
    assert numbering.numbers(source) == claims.labels()
    found = re.findall(r"\\label\{((?:thm|lm|col|def|alg|tab|fig|rm|eq):[^}]*)\}", source)
    assert set(found) <= set(LABELS)


def test_numbers_follow_latex():
    text = r"""
    \section{One} \begin{definition}\label{def:a}\end{definition}
    \begin{equation}1\label{eq:a}\end{equation} % \begin{lemma}
    \section{Two}\subsection{x}
    \begin{align}a\\b\label{eq:b}\notag\\c\label{eq:c}\end{align}
    \begin{align*}a\\b\end{align*}
    \begin{theorem}\label{thm:a}\end{theorem}\begin{corollary}\label{col:a}\end{corollary}
    \begin{figure}\subfigure[x]{\label{fig:a}}\subfigure[y]{\label{fig:b}}\caption{z}\label{fig:c}
    \end{figure}\begin{wraptable}{r}\caption{t}\label{tab:a}\end{wraptable}
    \appendix\section{Three}\begin{lemma}\label{lm:a}\end{lemma}
    """
    printed = {label: entry["printed"] for label, entry in numbering.numbers(text).items()}
    assert printed == {
        "def:a": "Definition 1.1", "eq:a": "Equation (1.1)", "eq:c": "Equation (2.2)",
        "thm:a": "Theorem 2.1", "col:a": "Corollary 2.2", "fig:a": "Figure 1a",
        "fig:b": "Figure 1b", "fig:c": "Figure 1", "tab:a": "Table 1", "lm:a": "Lemma A.1",
    }  # fmt: skip


@pytest.mark.parametrize("row", by_id(ROWS))
def test_a_row_is_coherent(row):
    assert len(row.statement) > 10
    defines = row.kind in ("definition", "assumption", "algorithm")
    assert defines == (row.verdict == claims.NO_VERDICT)
    if row.verdict not in ("not testable here", claims.NO_VERDICT):
        assert row.check, "a verdict needs a check"
    assert (row.verdict == "false as stated") == (row.grade is not None) == (row.error == "false")
    if row.verdict == "holds with repair":
        assert row.error == "repair" and row.repair, "say how it is repaired"
    if row.verdict == "holds":
        assert row.error in ("none", "slip", "proof"), "what is wrong is a slip, or the proof"
    if row.error == "false":
        assert row.counterexample, "a false statement needs a counterexample one can run"
        assert row.remains, "say what remains true"
    assert (row.error != "none") == (row.wrong is not None)
    if row.source == "ours":
        assert row.verdict == "holds" and row.error == "none"


def test_roots_are_rows_that_are_wrong_themselves():
    by_name = {row.id: row for row in ROWS}
    for row in ROWS:
        if row.root:
            root = by_name[row.root]
            assert root.error != "none" and root.root is None, (row.id, row.root)


def test_every_kind_of_count_adds_up():
    counts = claims.counts(ROWS)
    assert sum(counts[v] for v in claims.VERDICTS) == counts["all"]
    assert sum(counts[f"false {g}"] for g in claims.GRADES) == counts["false as stated"]
    parts = counts["all"] + counts["no verdict"] + counts["ours rows"] + counts["dissertation rows"]
    assert parts == counts["rows"] == len(ROWS)


def test_pages_take_every_count_from_the_ledger():
    """No page types a number of statements, rows or verdicts; all ask the same function."""
    counts = claims.counts(ROWS)
    asked = set()
    for path in (*claims.sources(), ROOT / "README.md"):
        text = path.read_text(encoding="utf-8")
        asked |= set(re.findall(r"\{claims\}`([^`]+)`", text))
        typed = re.search(r"\b\d+ (?:statements|claims|rows of the ledger)\b", text)
        assert not typed, (path.name, typed and typed[0])
    known = {*counts, *claims.VERDICTS} | {name for name in asked if name.startswith("mutants ")}
    assert asked <= known
    assert {"all", *claims.VERDICTS} <= asked


@pytest.mark.parametrize("row", by_id(ROWS))
def test_the_anchor_of_a_row_exists(row):
    source = ROOT / f"{row.page}.md"
    assert source.exists(), f"{row.page}.md is missing"
    text = source.read_text(encoding="utf-8")
    label = re.escape(row.target)
    forms = rf"^:label:\s*{label}\s*$|^\({label}\)=|^\s*name: {label}\s*$|^:name:\s*{label}\s*$"
    assert re.search(forms, text, re.MULTILINE), f"{row.anchor} is not in the page"


@pytest.mark.parametrize("row", by_id(CHECKED))
def test_the_check_of_a_row_exists(row):
    check = claims.function(row.check)
    assert list(inspect.signature(check).parameters) == ["size"]
    assert check.__doc__ and check.__annotations__["return"] == "Found"


def test_every_check_belongs_to_a_row():
    named = {row.check for row in ROWS}
    stray = []
    for path in sorted((claims.HERE / "checks").glob("*.py")):
        module = importlib.import_module(f"book.claims.checks.{path.stem}")
        for name, value in vars(module).items():
            own = inspect.isfunction(value) and value.__module__ == module.__name__
            if own and "size" in inspect.signature(value).parameters and not name.startswith("_"):
                stray += [f"{path.stem}.{name}"] if f"{path.stem}.{name}" not in named else []
    assert stray == []


def test_no_chapter_states_something_without_a_row():
    known = {row.slug for row in ROWS} | {claims.slug(row.target) for row in ROWS}
    stray = []
    for statement in claims.all_statements():
        base = re.sub(r"-(repaired|sharp)$", "", statement.label)
        if not {claims.slug(statement.label), claims.slug(base)} & known:
            stray.append(f"{statement.page}#{statement.label}")
    assert stray == []


PROVED = {row.check for row in ROWS if row.evidence == "proved"}


def test_edges_are_read_off_the_proofs():
    text = (
        "```{prf:lemma} One\n:label: lm-one\nbody\n```\n"
        "```{prf:proof}\nBy {prf:ref}`lm-two` and {eq}`eq-three`.\n```\n"
        "````{prf:theorem} Four\n:label: thm-four\n```{math}\nx\n```\n````\n"
    )
    one, four = claims.statements(text, "page")
    assert (one.label, one.proved, one.uses) == ("lm-one", True, ("lm-two", "eq-three"))
    assert (four.label, four.proved, four.uses) == ("thm-four", False, ())


def test_a_malformed_row_is_named(tmp_path):
    good = "- {id: x, kind: text, statement: s, anchor: a, evidence: derived, verdict: holds}\n"
    for bad, word in (
        (good.replace("holds", "hold"), "verdict"),
        (good.replace("kind: text", "kind: rumour"), "kind"),
        (good.replace("anchor: a, ", ""), "anchor"),
        (good.replace("anchor", "anker"), "anker"),
        (good + good, "two rows"),
    ):
        (tmp_path / "claims.yml").write_text(bad)
        with pytest.raises(ValueError, match=word):
            claims.load(tmp_path)


@pytest.mark.claims
@pytest.mark.parametrize("name", sorted({row.check for row in CHECKED}))
def test_the_claim_holds_as_the_ledger_says(name, monkeypatch):
    check = claims.function(name)
    if name in PROVED:  # a proof does not sample
        monkeypatch.setattr(np.random, "default_rng", None)
    found = check(size="ci")
    assert isinstance(found, Found)
    assert found.shown is None or found.shown >= 1 - 1e-9, "a slack below 1 is a violated bound"


@pytest.mark.claims
@pytest.mark.parametrize("row", by_id([row for row in ROWS if row.counterexample]))
def test_the_counterexample_runs_on_its_own(row):
    namespace: dict = {}
    counter = claims.function(row.counterexample)
    exec(inspect.getsource(counter), namespace)
    assert namespace[counter.__name__]()


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("short: $a\\le b$", "short: $a\\le b$"),
        (
            "$\\sum_{i\\le I}\\min\\{1,\\|\\phi_i\\|^2\\}\\le2d\\log(1+I/\\lambda)$.",
            "$\\sum_{i\\le I}\\min\\{1,\\|\\phi_i\\|^2\\}$ $\\le2d\\log(1+I/\\lambda)$.",
        ),
        (
            "$\\left(a+b+c+d+e+f+g+h=i+j+k+l+m\\right)$",
            "$\\left(a+b+c+d+e+f+g+h=i+j+k+l+m\\right)$",
        ),
        ("costs \\$5, then $x$", "costs \\$5, then $x$"),
    ],
)
def test_long_formulas_may_end_a_line_before_a_relation(text, wanted):
    assert ledger.breakable(text) == wanted
