"""What a run says about itself: summary, paired differences, table, plot, file."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import banditlib as bl
from banditlib.estimates import over_clusters, over_values
from banditlib.report import legend

FORMATS = Path(__file__).parent / "saved_runs"


@dataclass(frozen=True)
class Mine(bl.Policy):
    arm: int
    how: str = "always"

    def choose(self, k, view):
        arm = np.full(view.mean.shape[:-1], self.arm)
        return arm, np.ones_like(arm)


def three_arms(instance: int = 0) -> bl.problems.FixedArms:
    return bl.problems.FixedArms(
        np.eye(3), [0.5, 0.3, 0.0], sigma=0.5, instance=instance, label=f"three #{instance}"
    )


@pytest.fixture(scope="module")
def run() -> bl.Run:
    problems = [three_arms(i) for i in range(3)]
    policies = [bl.OFUL(1.0, 1.0), bl.DSOFUL(0.4, 1.0, 1.0), bl.OFUL(3.0, 1.0)]
    return bl.simulate(problems, policies, rounds=400, trials=5, checkpoints=4, progress=False)


def fake(regret: np.ndarray, instances: list[int]) -> bl.Run:
    """A run with one suboptimal arm of gap 1 whose plays are given, (P, Q, T)."""
    plays = np.stack([100 - regret, regret], axis=-1).astype(np.int64)[:, :, :, None, :]
    P, Q, T = regret.shape
    problems = tuple(
        bl.problems.FixedArms(np.eye(2), [1.0, 0.0], instance=i, label=f"p{i}") for i in instances
    )
    return bl.Run(
        problems=problems, policies=tuple(bl.OFUL(float(q), 1.0) for q in range(Q)), rounds=100,
        trials=tuple(range(T)), seed=0, checkpoints=np.array([100]), plays=plays,
        learnt=np.full((P, Q, T, 1, 1), 100), first_skip=np.zeros((P, Q, T), int),
        final_arm=np.zeros((P, Q, T), int), arms=None, levels=None, wall_time=0.0, drift=0.0,
        backend="numpy", dtype="float64",
    )  # fmt: skip


def test_intervals_by_hand():
    found = over_values(np.array([1.0, 2.0, 3.0]), "trials")
    assert found.mean == 2.0 and found.over == "Student t over 3 trials"
    assert found.high - 2.0 == pytest.approx(4.302652730 / math.sqrt(3))  # t with 2 degrees
    assert math.isnan(over_values(np.array([1.0]), "trials").low)
    # cluster means 1 and 3, two values each: error √(2/1 · (4 + 4)) / 4 = 1, t with 1 degree
    found = over_clusters(np.array([0.0, 2.0, 4.0, 2.0]), np.array([5, 5, 9, 9]), "instances")
    assert found.mean == 2.0 and found.high - 2.0 == pytest.approx(12.706204736)


def test_clustered_intervals_cover_and_naive_ones_do_not():
    rng = np.random.default_rng(0)
    hits = np.zeros(2)
    for _ in range(300):
        values = rng.standard_normal(8)[:, None] + 0.1 * rng.standard_normal((8, 20))
        both = (
            over_clusters(values.ravel(), np.repeat(np.arange(8), 20), "instances"),
            over_values(values.ravel(), "values"),
        )
        hits += [e.low <= 0 <= e.high for e in both]
    assert hits[0] / 300 > 0.91 and hits[1] / 300 < 0.5


def test_summary_by_hand():
    table = fake(np.array([[[10, 20, 60], [100, 100, 100]]]), [0]).summary()
    first, second = table.rows
    assert first[:3] == ("p0", "OFUL beta=0", 30.0) and first[5] == 20.0
    assert first[4] - 30.0 == pytest.approx(
        4.302652730 * np.std([10, 20, 60], ddof=1) / math.sqrt(3)
    )
    assert (first[6], second[6]) == (0.0, 1.0)  # the second spent every round on the wrong arm
    assert first[7] == 100.0
    assert "Student t over 3 trials" in table.note and "95%" in table.note
    assert "regret" in repr(table) and "<table>" in table._repr_html_()


def test_pooled_summary_clusters_by_instance():
    run = fake(np.array([[[10, 20]], [[40, 50]]]), [0, 1])
    (row,) = run.summary(pooled=True).rows
    assert row[0] == "all" and row[2] == 30.0
    assert row[4] - 30.0 == pytest.approx(12.706204736 * 15)
    assert "2 instances" in run.summary(pooled=True).note


def test_compare_pairs_trials_by_hand():
    run = fake(np.array([[[10, 20, 30], [10, 25, 40]]]), [0])
    found = run.compare(0, 1)
    assert found.differences.tolist() == [[0.0, -5.0, -10.0]]
    assert found.difference.mean == -5.0 and found.difference.over == "Student t over 3 trials"
    assert found.difference.high + 5.0 == pytest.approx(4.302652730 * 5 / math.sqrt(3))
    assert (found.first_better, found.second_better) == (pytest.approx(2 / 3), 0.0)
    swapped = run.compare(run.policies[1], run.policies[0])
    assert swapped.difference.mean == 5.0
    assert "lower in 67%, equal in 33%, higher in 0% of 3 pairs" in repr(found)
    assert "<p>" in found._repr_html_()


def test_compare_clusters_by_instance(run):
    found = run.compare(0, 1, at=200)
    assert found.round == 200 and found.difference.over == "Student t over 3 instances"
    np.testing.assert_allclose(found.differences, run.regret[:, 0, :, 1] - run.regret[:, 1, :, 1])


def test_repr_is_short(run):
    assert repr(run).startswith("Run of 3 policies on 3 problems: 5 trials of 400 rounds, 4 check")
    assert "\n" not in repr(run) and "<table>" in run._repr_html_()


def test_legend_names_what_varies():
    names = legend([bl.OFUL(1, 1), bl.OFUL(3, 1), bl.DSOFUL(0.1, 1, 1), bl.UCB(), Mine(0), Mine(1)])
    assert names == ["OFUL beta=1", "OFUL beta=3", "DSOFUL", "UCB", "Mine arm=0", "Mine arm=1"]


def test_long_table(run):
    pytest.importorskip("pandas", reason="pandas is optional")
    table = run.to_dataframe()
    assert len(table) == 3 * 3 * 5 * 4
    one = table[(table.instance == 2) & (table.policy == "DSOFUL") & (table.trial == 4)]
    np.testing.assert_allclose(one.regret, run.regret[2, 1, 4])
    assert one["round"].tolist() == [100, 200, 300, 400] and set(one.Gamma) == {0.4}
    np.testing.assert_array_equal(one.selections, run.selections[2, 1, 4])


def test_plot_draws_means_and_bands(run):
    plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is optional")
    plt.switch_backend("agg")
    ax = run.plot(problem=1)
    assert len(ax.lines) == 3 and len(ax.collections) == 3
    np.testing.assert_allclose(ax.lines[0].get_ydata()[1:], run.regret[1, 0].mean(axis=0))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["OFUL beta=1", "DSOFUL", "OFUL beta=3"]
    assert "5 trials" in ax.get_legend().get_title().get_text()
    again = plt.subplots()[1]
    assert run.plot(ax=again) is again
    plt.close("all")


def same(a: bl.Run, b: bl.Run) -> None:
    for field in dataclasses.fields(bl.Run):
        if field.name not in ("problems", "policies"):
            np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))
    np.testing.assert_array_equal(a.regret, b.regret)
    np.testing.assert_array_equal(a.locked(10), b.locked(10))
    assert a.summary().rows == b.summary().rows
    assert list(map(repr, a.policies)) == list(map(repr, b.policies))


def test_saved_runs_come_back(run, tmp_path):
    run.save(tmp_path / "run.npz")
    same(run, bl.Run.load(tmp_path / "run.npz"))
    policies = [
        bl.SupLinUCB(bl.theory.SupBeta(d=3), 1.0),
        bl.UCB(),
        Mine(1),
        bl.SupLinUCB([1, 2], 1),
    ]
    other = bl.simulate(three_arms(), policies, 40, trials=[3, 9], record=("arms", "levels"))
    file = io.BytesIO()
    other.save(file)
    file.seek(0)
    back = bl.Run.load(file)
    np.testing.assert_array_equal(back.arms, other.arms)
    np.testing.assert_array_equal(back.regret, other.regret)
    assert back.trials == (3, 9) and back.policies[0].radius(2) == policies[0].radius(2)
    assert back.policies[2].params == {"arm": 1, "how": "always"}
    assert repr(back.policies[2]) == "Mine(arm=1, how='always')"
    again = io.BytesIO()
    back.save(again)  # a run that was read can be written again
    again.seek(0)
    assert repr(bl.Run.load(again).policies[2]) == "Mine(arm=1, how='always')"


@pytest.mark.parametrize("file", sorted(FORMATS.glob("format-*.npz")), ids=lambda f: f.stem)
def test_files_of_every_format_are_read(file):
    """Files written when each format was current; the numbers beside them were printed then."""
    back = bl.Run.load(file)
    wanted = json.loads(file.with_suffix(".json").read_text())
    np.testing.assert_allclose(back.regret[..., -1], wanted["regret"])
    assert list(map(repr, back.policies)) == wanted["policies"]
    assert [p.label for p in back.problems] == wanted["problems"]


def test_files_that_are_not_runs_are_refused(run, tmp_path):
    file = tmp_path / "run.npz"
    file.write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"^file: .* is not a saved run"):
        bl.Run.load(file)
    with pytest.raises(FileNotFoundError):
        bl.Run.load(tmp_path / "nothing.npz")
    run.save(file)
    with np.load(file) as archive:
        arrays = dict(archive)
    for name, value in {
        "plays": arrays["plays"][:2],
        "learnt": arrays["learnt"].astype(float),
        "checkpoints": arrays["checkpoints"] + 1,
        "header": np.frombuffer(
            arrays["header"].tobytes().replace(b'"format": 2', b'"format": 99'), np.uint8
        ),
    }.items():
        np.savez(file, **{**arrays, name: value})
        with pytest.raises(ValueError, match=r"^file: "):
            bl.Run.load(file)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("a", lambda run: run.compare(9, 0)),
        ("b", lambda run: run.compare(0, bl.UCB())),
        ("at", lambda run: run.compare(0, 1, at=7)),
        ("problem", lambda run: run.plot(problem=3)),
        ("band", lambda run: run.plot(band=(0.9, 0.1))),
        ("last", lambda run: run.summary(last=0)),
    ],
)
def test_the_argument_at_fault_is_named(run, name, call):
    with pytest.raises((TypeError, ValueError), match=rf"^{name}:"):
        call(run)


def test_a_bar_is_shown_in_a_terminal_only(monkeypatch):
    from banditlib.progress import Silent, progress_bar

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream in (io.StringIO(), None):
        monkeypatch.setattr("sys.stderr", stream)
        assert isinstance(progress_bar(True, 10), Silent)
    monkeypatch.setattr("sys.stderr", Terminal())
    assert isinstance(progress_bar(False, 10), Silent)
    pytest.importorskip("tqdm", reason="tqdm draws the bar")
    bar = progress_bar(True, 10)
    assert bar.total == 10 and not bar.disable
    bar.close()
