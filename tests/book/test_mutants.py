"""Mutants are derived by rule, told from weaker statements, and rejected by the checks."""

from __future__ import annotations

import math

import pytest

from book import claims
from book.claims import formula, mutants, scores
from book.claims.formula import Found

ROWS = claims.load()
CHECKED = [row for row in ROWS if row.check]


def bound(n: float) -> float:
    """A formula to change: 2n + 3."""
    return 2 * n + 3


@pytest.fixture
def marked(monkeypatch):
    name = formula.name_of(bound)
    monkeypatch.setitem(formula.FORMULAS, name, bound)
    monkeypatch.setitem(formula.SIDES, name, "upper")
    return name


def ids(found: list[mutants.Mutant]) -> set[str]:
    return {m.change for m in found}


def test_values_numbers_and_summands_are_changed(marked):
    found = ids(mutants.mutants(marked, bound))
    assert {f"{a} → {b}" for a, b in ((2, 0), (2, 1), (2, 4), (2, 20), (3, 0), (3, 6))} <= found
    assert {"2 * n + 3 → 2 * n", "2 * n + 3 → 3"} <= found
    whole = "return 2 * n + 3 → return"
    assert {f"{whole} {k} * (2 * n + 3)" for k in (0, 0.5, 2, 10)} <= found
    assert len(found) == 14


def test_comparisons_are_loosened_and_steering_numbers_left_alone():
    def rule(x: float, y: float) -> bool:
        for _ in range(100):
            if x > 1e-9:
                break
        return min(x, y) <= 7

    found = ids(mutants.mutants("rule", rule))
    assert {"min(x, y) <= 7 → min(x, y) < 7", "min(x, y) <= 7 → True"} <= found
    assert {"min(x, y) → x", "min(x, y) → y"} <= found
    assert not any("100" in change or "1e-09" in change for change in found)


def states(check, marked) -> dict[str, str]:
    trace = mutants.watch(check)
    return {
        m.change: mutants.forked(lambda m=m: mutants.judge(check, trace, m, 10.0))
        for m in mutants.derive(trace)
    }


def test_a_tight_check_rejects_what_sharpens_and_knows_what_weakens(marked):
    def check(size: str = "ci") -> Found:
        assert all(2 * n + 3 <= bound(n) for n in (0.0, 1.0, 10.0))
        return Found({"bound": 1.0})

    got = states(check, marked)
    assert got["2 → 1"] == got["3 → 1"] == got["2 * n + 3 → 2 * n"] == "rejected"
    assert got["2 → 4"] == got["3 → 30"] == "weaker"
    assert set(got.values()) == {"rejected", "weaker"}


def test_a_loose_check_says_how_loose_and_more_is_rejected(marked):
    def check(size: str = "ci") -> Found:
        assert all(0.5 * n + 0.7 <= bound(n) for n in (0.0, 1.0, 10.0))
        return Found({"bound": 3.5})

    got = states(check, marked)
    assert got["return 2 * n + 3 → return 0.5 * (2 * n + 3)"] == "slack"
    beyond = next(change for change in got if "0.14" in change)  # twice the slack
    assert got[beyond] == "rejected"


def test_a_check_that_never_looks_is_found_out(marked):
    def check(size: str = "ci") -> Found:
        assert bound(1.0) > -math.inf
        return Found({"bound": 1.0})

    assert "survived" in states(check, marked).values()


def test_survivors_need_a_reason():
    tried = {"f: 2 → 1": "survived", "f: 3 → 4": "rejected", "g: a": "unseen"}
    score = scores.score(tried, {"g: *": "g is never used"})
    assert (score.rejected, score.relevant, score.survivors) == (1, 2, ("f: 2 → 1",))
    assert score.explained == (("g: a", "g is never used"),)
    assert str(score) == "rejects 1 of 2"


def test_the_stored_score_covers_every_check_and_leaves_no_survivor():
    results = scores.stored()
    assert set(results["checks"]) == {row.check for row in CHECKED}
    assert all(entry["commit"] for entry in results["checks"].values())
    left = {row.id: found.survivors for row in CHECKED
            if (found := scores.row_score(row, results)) and found.survivors}  # fmt: skip
    assert left == {}


def test_an_excuse_for_the_unseen_does_not_cover_a_survivor():
    tried = {"f: 2 → 1": "survived", "f: 3 → 4": "unseen"}
    score = scores.score(tried, {"unseen f: *": "a branch of f that is not taken"})
    assert score.survivors == ("f: 2 → 1",)
    assert [name for name, _ in score.explained] == ["f: 3 → 4"]


def test_no_reason_is_idle():
    results = scores.stored()["checks"]
    idle = []
    for row in CHECKED:
        left = [(m, s) for s, names in results[row.check]["states"].items() for m in names]
        for pattern in row.mutants:
            if not any(scores.excuses(pattern, m, s) for m, s in left):
                idle.append((row.id, pattern))
    assert idle == []


def test_no_reason_covers_a_whole_formula():
    """A survivor that changes what the check reads is excused by name, not with all its kin."""
    for row in ROWS:
        for pattern in row.mutants:
            change = pattern.partition(":")[2].strip()
            assert pattern.startswith("unseen ") or change.strip("*"), (row.id, pattern)


@pytest.mark.claims
@pytest.mark.parametrize("name", sorted({row.check for row in CHECKED}))
def test_a_sample_of_mutants_is_rejected(name, tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "CACHE", tmp_path)
    tried = mutants.try_check(name, sample=3, seed=20)
    for row in CHECKED:
        if row.check == name:
            assert scores.score(tried["states"], row.mutants).survivors == ()
