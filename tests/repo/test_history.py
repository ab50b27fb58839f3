"""What the book says of its own order of events, checked against the history."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from banditlib.paper import verdict
from banditlib.paper.experiments import stored
from banditlib.paper.experiments.asirra import axes
from banditlib.paper.experiments.asirra.cells import ROUNDS
from banditlib.paper.experiments.synthetic import table as table_1
from banditlib.paper.store import key, read_pack

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


def computed(provenance: dict[str, Any]) -> float:
    """When a cell was computed for the first time."""
    first = provenance.get("first") or provenance
    return datetime.fromisoformat(first["finished"]).timestamp()


def test_the_rule_for_printed_numbers_came_before_the_results_of_table_1() -> None:
    """Before the first computation of each of its cells, and in the source that computed it."""
    rule, when = added("banditlib/paper/verdict.py", "--diff-filter=A")
    results, _ = added("data/results/synthetic", "--diff-filter=A")
    assert rule != results and is_ancestor(rule, results)
    runs = [cell.provenance for cell in table_1.load()]
    assert min(map(computed, runs)) > when
    commits = {run.get("first", run)["commit"] for run in runs}
    assert all(is_ancestor(rule, commit) for commit in commits)


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
    rule, when = added("banditlib/paper/verdict.py", "-Sdef constant(")
    seen = []
    for name in git("ls-tree", "-r", "--name-only", rule, "data/results/asirra").splitlines():
        pack = tmp_path / Path(name).name
        words = ["git", "-C", str(ROOT), "show", f"{rule}:{name}"]
        pack.write_bytes(subprocess.run(words, capture_output=True, check=True).stdout)
        seen += read_pack(pack)
    assert len(seen) == 80 and {tuple(cell.config["trials"]) for cell in seen} == {(0, 1)}
    text = (ROOT / "notebooks" / "asirra.md").read_text("utf8")
    assert "{setting}`80` runs were stored" in text
    packs = sorted((ROOT / "data" / "results" / "asirra").glob("*.npz"))
    used = [cell for pack in packs for cell in read_pack(pack)]
    ended = [cell for cell in used if computed(cell.provenance) < when]
    assert {tuple(cell.config["trials"]) for cell in ended} == {(0, 1)}
    assert f"{{setting}}`{len(ended)}` had ended" in text


@pytest.mark.parametrize(
    ("hypotheses", "name"),
    [
        (axes.SECOND, "radius 12 + 160ζ"),
        (axes.THIRD, "not normalised, radius 14"),
        (axes.FOURTH, "noise N(0, 1), radius 2"),
    ],
)
def test_later_lists_of_hypotheses_were_committed_before_their_runs(
    hypotheses: tuple[axes.Hypothesis, ...], name: str
) -> None:
    """The chapter on cats and dogs says so, with the one exception that it names."""
    assert name in {h.name for h in hypotheses}
    _, when = added("banditlib", f"-S{name}")
    found = {c.key: c for n in ("asirra-axes", "asirra-lengths") for c in stored(n)}
    ours = [
        found[key(config)].provenance
        for h in hypotheses
        if h.name != axes.AS_WRITTEN and h.family != "asirra-single"
        for zeta in axes.PANELS
        for config in h.cells(zeta, [0], ROUNDS, h.data)
    ]
    assert ours and min(map(computed, ours)) > when


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
