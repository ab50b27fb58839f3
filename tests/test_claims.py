"""The claims ledger is whole, its checks run, and its checks can fail."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book"))

import claims  # noqa: E402

ROWS = claims.load()
PAPER = ROOT.parent / "shared" / "paper" / "paper.tex"
LABELS = (ROOT / "book" / "claims" / "labels.txt").read_text(encoding="utf-8").split()


def by_id(rows: list[claims.Row]) -> list:
    return [pytest.param(row, id=row.id) for row in rows]


CHECKED = [row for row in ROWS if row.check]


def test_every_label_of_the_paper_has_a_row():
    assert sorted(set(LABELS) - {row.id for row in ROWS}) == []


def test_every_row_is_shown_on_its_page():
    for row in ROWS:
        page = (ROOT / f"{row.anchor.partition('#')[0]}.md").read_text("utf8")
        shown = re.search(rf"^`{{3,}}\{{verdict\}} {re.escape(row.id)}$", page, re.MULTILINE)
        assert shown, (row.id, row.anchor)


def test_the_committed_labels_are_the_papers():
    if not PAPER.exists():
        pytest.skip("the paper's source is not beside the project")
    found = re.findall(
        r"\\label\{((?:thm|lm|col|def|alg|tab|fig|rm|eq):[^}]*)\}", PAPER.read_text()
    )
    assert sorted(set(found)) == sorted(LABELS)


@pytest.mark.parametrize("row", by_id(ROWS))
def test_a_row_is_coherent(row):
    assert len(row.statement) > 10
    if row.verdict == "not testable here":
        assert row.check is None or row.evidence != "proved"
    else:
        assert row.check, "a verdict needs a check"
    if row.check:
        assert row.mutant, "a check needs a mutant that it rejects"
    if row.severity == "false":
        assert row.counterexample, "a false statement needs a counterexample one can run"
    if row.severity in ("false", "gap"):
        assert row.remains, "say what remains true"
    if row.severity != "none":
        assert row.wrong, "say what is wrong"
    if row.verdict == "holds with repair":
        assert row.repair, "say how it is repaired"


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
    parameters = inspect.signature(check).parameters
    assert "size" in parameters
    assert set(row.mutant) <= set(parameters)


def test_no_chapter_states_something_without_a_row():
    known = {row.slug for row in ROWS} | {claims.slug(row.target) for row in ROWS}
    stray = []
    for statement in claims.all_statements():
        base = re.sub(r"-(repaired|sharp)$", "", statement.label)
        if not {claims.slug(statement.label), claims.slug(base)} & known:
            stray.append(f"{statement.page}#{statement.label}")
    assert stray == []


PROVED = [row for row in ROWS if row.evidence == "proved"]


@pytest.mark.parametrize("row", by_id(PROVED))
def test_a_proof_does_not_sample(row):
    source = inspect.getsource(claims.function(row.check))
    assert not re.search(r"default_rng|\.normal\(|\.standard_normal|\brandom\b", source)


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
@pytest.mark.parametrize("row", by_id(CHECKED))
def test_the_claim_holds_as_the_ledger_says(row):
    claims.function(row.check)(size="ci")


@pytest.mark.claims
@pytest.mark.parametrize("row", by_id(CHECKED))
def test_the_check_rejects_a_mutant(row):
    with pytest.raises(AssertionError):
        claims.function(row.check)(size="ci", **row.mutant)


@pytest.mark.claims
@pytest.mark.parametrize("row", by_id([row for row in ROWS if row.counterexample]))
def test_the_counterexample_runs_on_its_own(row):
    namespace: dict = {}
    counter = claims.function(row.counterexample)
    exec(inspect.getsource(counter), namespace)
    assert namespace[counter.__name__]()
