"""What the book says of its own order of events, checked against the history."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

from banditlib.paper import verdict
from banditlib.paper.experiments.synthetic import table as table_1
from banditlib.paper.store import read_pack

ROOT = Path(__file__).resolve().parents[2]


def git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"git cannot tell the history here: {done.stderr.strip()}")
    return done.stdout.strip()


def added(path: str, *words: str) -> tuple[str, int]:
    """The commit that brought ``path`` (or, with -S, the words), and when."""
    if git("rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("this clone is shallow: it does not know when the rule was written")
    lines = git("log", "--format=%H %ct", *words, "--", path).splitlines()
    if not lines:
        pytest.skip(f"the history does not reach back to the first {path}")
    commit, when = lines[-1].split()
    return commit, int(when)


def is_ancestor(first: str, second: str) -> bool:
    words = ["git", "-C", str(ROOT), "merge-base", "--is-ancestor", first, second]
    return subprocess.run(words, check=False).returncode == 0


def test_the_rule_for_printed_numbers_came_before_the_results_of_table_1() -> None:
    """Before the first computation of each of its cells, and in the source that computed it."""
    rule, when = added("banditlib/paper/verdict.py", "--diff-filter=A")
    results, _ = added("data/results/synthetic", "--diff-filter=A")
    assert rule != results and is_ancestor(rule, results)
    runs = [cell.provenance.get("first") or cell.provenance for cell in table_1.load()]
    assert min(datetime.fromisoformat(run["finished"]).timestamp() for run in runs) > when
    assert all(is_ancestor(rule, commit) for commit in {run["commit"] for run in runs})


def test_the_rule_for_printed_numbers_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its four numbers, and what it says of Table 1."""
    commit, _ = added("banditlib/paper/verdict.py", "--diff-filter=A")
    rule = ModuleType("rule")
    monkeypatch.setitem(sys.modules, "rule", rule)  # dataclasses look there
    exec(git("show", f"{commit}:banditlib/paper/verdict.py"), rule.__dict__)
    for name in ("ALPHA", "FACTOR", "ORDER", "FLOOR"):
        assert getattr(rule, name) == getattr(verdict, name)
    readings = table_1.readings(table_1.load())
    claims = table_1.claims(table_1.choose(readings["instances"]))
    claims += table_1.time_claims(table_1.times()["loop"])
    then = [judged.verdict for judged in rule.judge([rule.Cell(**vars(c)) for c in claims])]
    assert then == [judged.verdict for judged in verdict.judge(claims)] and len(set(then)) > 1


def test_when_the_rule_for_curves_was_written_only_first_runs_had_been_seen(
    tmp_path: Path,
) -> None:
    """The chapter on cats and dogs says so, and judges the later runs by themselves too."""
    rule, _ = added("banditlib/paper/verdict.py", "-Sdef constant(")
    seen = []
    for name in git("ls-tree", "-r", "--name-only", rule, "data/results/asirra").splitlines():
        pack = tmp_path / Path(name).name
        words = ["git", "-C", str(ROOT), "show", f"{rule}:{name}"]
        pack.write_bytes(subprocess.run(words, capture_output=True, check=True).stdout)
        seen += read_pack(pack)
    assert len(seen) == 80 and {tuple(cell.config["trials"]) for cell in seen} == {(0, 1)}
    text = (ROOT / "notebooks" / "asirra.md").read_text("utf8")
    assert "the first run of many a curve had been seen, {setting}`80` in all" in text


def test_the_phase_map_was_computed_after_suplinucb_was_mended() -> None:
    """Its SupLinUCB cells keep engine number 1 for this reason alone."""
    if git("rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("this clone is shallow: it does not know when the engine was mended")
    mended = git("log", "--format=%H", "--grep=^Lanes at rest wake at the end of an epoch")
    if not mended:
        pytest.skip("the history does not reach back to the commit that mended the engine")
    first = mended.split()[-1]
    when = datetime.fromtimestamp(int(git("show", "-s", "--format=%ct", first)), UTC)
    packs = (ROOT / "data" / "results" / "phase-map").glob("*.npz")
    cells = [cell for pack in packs for cell in read_pack(pack)]
    runs = [cell.provenance for cell in cells if cell.config["policy"] == "SupLinUCB"]
    assert runs and all(datetime.fromisoformat(run["finished"]) > when for run in runs)
    commits = {run["commit"] for run in runs} & set(git("rev-list", "HEAD").split())
    assert commits and all(is_ancestor(first, commit) for commit in commits)


def test_every_stored_cell_names_a_commit_of_this_history() -> None:
    """Else nobody could look at the code that computed it."""
    if git("rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("this clone is shallow: it does not know the commits of older results")
    known = set(git("rev-list", "HEAD").split())
    packs = sorted((ROOT / "data" / "results").glob("*/*.npz"))
    cells = [(pack, cell.provenance) for pack in packs for cell in read_pack(pack)]
    strangers = {(pack.name, run["commit"]) for pack, run in cells if run["commit"] not in known}
    assert cells and strangers == set()
