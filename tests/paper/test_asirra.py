"""Cats against dogs: loading and filtering vectors, and computing them from images."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from banditlib.paper import features
from banditlib.paper.experiments import stored, table_2
from banditlib.paper.experiments.asirra import between
from banditlib.paper.experiments.asirra import cells as asirra_cells
from banditlib.paper.experiments.asirra import figure as asirra_figure
from banditlib.paper.features import FeaturesError
from banditlib.paper.store import Cell, key

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "asirra"


@pytest.fixture
def vectors() -> features.Features:
    rng = np.random.default_rng(0)
    base, shift = rng.normal(size=8), rng.normal(size=8)
    noise = rng.normal(size=(110, 8))
    return features.from_arrays(2 * base + shift + noise[:60], 2 * base - shift + noise[60:])


# ---- loading ------------------------------------------------------------------------------------


def save(path: Path, **changes) -> Path:
    rng = np.random.default_rng(1)
    arrays = {
        "cats": rng.normal(size=(5, 4)).astype(np.float16),
        "dogs": rng.normal(size=(6, 4)).astype(np.float16),
        "cat_ids": np.arange(5),
        "dog_ids": np.arange(6),
        "meta": np.array(json.dumps({"preprocessing": "none"})),
    } | changes
    np.savez(path, **{name: a for name, a in arrays.items() if a is not None})
    return path


def test_vectors_come_back_with_norm_one(tmp_path):
    loaded = features.load(path=save(tmp_path / "f.npz"))
    assert np.allclose(np.linalg.norm(loaded.good, axis=1), 1, atol=1e-15)
    assert loaded.meta == {"preprocessing": "none"}
    assert loaded.good.dtype == np.float64 and loaded.dim == 4


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"cats": None}, "cats"),
        ({"cats": np.zeros((0, 4)), "cat_ids": np.arange(0)}, "non-empty"),
        ({"cats": np.ones((5, 3))}, "dimension 3"),
        ({"cat_ids": np.arange(4)}, "ids"),
        ({"dogs": np.full((6, 4), np.nan)}, "NaN"),
        ({"dogs": np.zeros((6, 4))}, "zero vector"),
        ({"cats": np.ones(5)}, "shape"),
    ],
)
def test_bad_features_are_named(tmp_path, changes, word):
    with pytest.raises(FeaturesError, match=word):
        features.read(save(tmp_path / "f.npz", **changes))


def test_a_truncated_file_is_named(tmp_path):
    path = save(tmp_path / "f.npz")
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(FeaturesError, match="not a readable features file"):
        features.read(path)


def test_a_pickle_is_refused(tmp_path):
    path = tmp_path / "f.npz"
    np.savez(path, cats=np.array([{}], dtype=object), dogs=1, cat_ids=1, dog_ids=1)
    with pytest.raises(FeaturesError, match="not a readable features file"):
        features.read(path)


def test_the_variable_comes_before_the_folders(tmp_path, monkeypatch):
    monkeypatch.setenv(features.VARIABLE, str(save(tmp_path / "mine.npz")))
    assert features.find() == tmp_path / "mine.npz"
    monkeypatch.setenv(features.VARIABLE, str(tmp_path))
    save(tmp_path / features.FILES["tiny"])
    assert features.find("tiny") == tmp_path / features.FILES["tiny"]
    assert features.find("tiny", path=tmp_path) == tmp_path / features.FILES["tiny"]
    assert features.find(path=tmp_path / "other.npz") == tmp_path / "other.npz"


def test_absence_explains_itself(tmp_path, monkeypatch):
    monkeypatch.delenv(features.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(features, "_ROOT", tmp_path / "a" / "b")
    with pytest.raises(FeaturesError, match="banditlib data asirra"):
        features.load()
    with pytest.raises(FeaturesError, match="preprocess is 'big'"):
        features.load("big")


# ---- filtering ----------------------------------------------------------------------------------


def test_least_squares_solves_the_normal_equations(vectors):
    x = np.concatenate([vectors.good, vectors.bad])
    r = np.concatenate([np.ones(60), np.zeros(50)])
    assert np.allclose(x.T @ (x @ features.fit(vectors) - r), 0, atol=1e-10)


def test_the_two_rules(vectors):
    theta = features.fit(vectors)
    good, bad = features.residuals(vectors, theta)
    two = features.kept(vectors, 0.1, "two-sided")
    one = features.kept(vectors, 0.1, "one-sided")
    assert (two[0] == (np.abs(good) <= 0.1)).all() and (two[1] == (np.abs(bad) <= 0.1)).all()
    assert (one[0] == (good >= -0.1)).all() and (one[1] == (bad <= 0.1)).all()
    assert (two[0] <= one[0]).all() and one[0].sum() > two[0].sum() > 0


def test_a_cell_of_table_2_counts_every_vector(vectors):
    found = table_2.measure(vectors)
    assert found["good_residuals"].sum() == 60 and found["bad_residuals"].sum() == 50
    kept = found["kept"].sum(axis=-1)
    assert (kept[0] == 110).all() and (np.diff(kept, axis=0) <= 0).all()  # a smaller ζ keeps less
    good, bad = features.residuals(vectors, features.fit(vectors))
    assert found["misclassified"] == (good <= -0.5).sum() + (bad >= 0.5).sum()
    assert found["top_eigenvalues"].sum() == pytest.approx(1.0, abs=1e-4)  # norms are 1
    assert (np.diff(found["top_eigenvalues"]) <= 0).all()


def test_table_2_counts_and_true_misspecification(vectors):
    rows = features.table_2(vectors)
    assert rows[0]["two-sided"] == (60, 50)
    for row in rows[1:]:
        assert row["two-sided true zeta"] <= row["zeta"]
        assert row["one-sided"][0] >= row["two-sided"][0]


def test_the_pool_holds_what_the_filter_keeps(vectors):
    problem = features.pool(vectors, 0.3)
    good, bad = features.kept(vectors, 0.3)
    assert len(problem.good) == good.sum() and len(problem.bad) == bad.sum()


@pytest.mark.parametrize(
    ("zeta", "rule", "word"),
    [
        (1e-9, "two-sided", "pool is empty"),
        (0.1, "both", "rule"),
        (-1, "two-sided", "zeta"),
        (float("nan"), "two-sided", "zeta"),
    ],
)
def test_bad_filters(vectors, zeta, rule, word):
    with pytest.raises(FeaturesError, match=word):
        features.pool(vectors, zeta, rule)


def test_digits_ship_with_a_package():
    pytest.importorskip("sklearn", reason="scikit-learn (extra: book) is not installed")
    digits = features.digits()
    assert digits.dim == 64 and len(digits.good) + len(digits.bad) == 1797


def test_without_scikit_learn_only_the_small_size_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    monkeypatch.setattr(features, "find", lambda *_: None)
    asirra_cells.pool.cache_clear()
    for family, cells in (
        (asirra_cells.FAMILY, lambda scale: asirra_cells.panel_cells("figure-1b", scale)),
        (table_2.FAMILY, table_2._cells),
    ):
        assert "pip install scikit-learn" in family.unavailable(cells("smoke")[0])
        assert "banditlib data asirra" in family.unavailable(cells("full")[0])


def test_other_features_than_those_of_the_stored_results_are_refused(monkeypatch, vectors):
    monkeypatch.setattr(features, "load", lambda *_: vectors)
    found = vectors.digest()
    assert features.known("standard", found) is vectors
    with pytest.raises(FeaturesError, match=f"digest is {found[:16]}, expected {'0' * 16}"):
        features.known("standard", "0" * 16)
    assert not features.is_known("standard")


def test_own_features_make_cells_of_their_own(monkeypatch, vectors):

    monkeypatch.setattr(features, "find", lambda *_: Path("own.npz"))
    monkeypatch.setattr(features, "read", lambda _: vectors)
    stored = asirra_cells.panel_cells("figure-1b", "full")[0]
    monkeypatch.setenv(features.OWN, "1")
    own = asirra_cells.panel_cells("figure-1b", "full")[0]
    assert stored["digest"] == features.DIGESTS["standard"] != own["digest"]
    assert own == stored | {"digest": vectors.digest()[:16]}
    assert asirra_cells.panel_cells("figure-1b", "smoke")[0]["digest"] == features.DIGESTS["digits"]


# --- the sweep ------------------------------------------------------------------------------------


def test_the_point_shown_has_most_runs_and_least_regret():
    lucky, full, worse = np.array([[0, 1]]), np.array([[1, 3], [0, 4]]), np.array([[2, 5], [2, 6]])
    point, runs = asirra_figure.best({(1, 1): lucky, (1, 3): worse, (3, 1): full})
    assert point == (3, 1) and runs is full


def test_every_run_of_the_figures_is_stored():
    for name in asirra_cells.PANELS:
        wanted = {key(config) for config in asirra_cells.panel_cells(name, "full")}
        assert {key(cell.config) for cell in stored(name)} == wanted


def test_weaker_features_are_run_where_the_standard_ones_are_best():
    cells = stored("figure-1b") + stored("figure-4")
    excess = []
    for panels in asirra_cells.PANELS.values():
        for zeta, gammas in panels.items():
            curves = asirra_figure.curves(cells, zeta)
            assert len(curves) == len(gammas) + 1
            for grid in curves.values():
                least = asirra_figure.best(grid)[1][:, -1].mean()
                excess.append(grid[asirra_cells.PICK][:, -1].mean() / least - 1)
    assert sum(more > 0 for more in excess) == 1  # "of all curves but one that nearly ties"
    assert max(excess) <= 0.01


def test_weaker_features_have_the_whole_grid_in_every_panel():
    cells = stored("asirra-weak")
    assert {key(c.config) for c in cells} == {key(c) for c in asirra_cells.weak_cells("full")}
    for panels in asirra_cells.PANELS.values():
        for zeta, gammas in panels.items():
            curves = asirra_figure.curves(cells, zeta)
            assert len(curves) == len(gammas) + 1
            for grid in curves.values():
                assert len(grid) == len(asirra_cells.BETAS) * len(asirra_cells.LAMS)
                assert {len(runs) for runs in grid.values()} == {asirra_cells.RUNS}


def test_sentences_at_one_grid_point_look_at_no_other():
    cells = stored("figure-1b") + stored("figure-4")
    point = (1.0, 3.0)
    there = [c for c in cells if (c.config["policy"]["beta"], c.config["policy"]["lam"]) == point]
    assert asirra_figure.sentences(cells, point) == asirra_figure.sentences(there)
    assert asirra_figure.sentences(cells, point) != asirra_figure.sentences(cells)


def made_up(total, late):
    """Cells of all panels at PICK, four runs, with given totals and second halves."""
    marks = [250_000, 500_000, 1_000_000]
    for name in asirra_cells.PANELS:
        for config in asirra_cells.panel_cells(name, "full"):
            policy, trial = config["policy"], config["trials"][0]
            if (policy["beta"], policy["lam"]) == asirra_cells.PICK and trial < 4:
                end = total(config["zeta"], asirra_figure.row_of(policy)) + trial % 2
                early = end - late(config["zeta"], asirra_figure.row_of(policy))
                wrong = np.array([[early, early, end]])
                yield Cell({**config, "checkpoints": marks}, {"wrong": wrong}, {})


def test_the_papers_sentences_on_made_up_runs():
    def total(zeta, row):
        axes = asirra_figure.AXES[zeta]
        return axes[1] if row == "SupLinUCB" else axes[0] - (row != "Γ = 0") * 1000

    def words(late):
        found = asirra_figure.sentences(list(made_up(total, late)))
        return {claim: {s.verdict for _, s in seen} for claim, seen in found.items()}

    as_printed = words(lambda zeta, row: total(zeta, row) // 2 if zeta == 0.5 else 0)
    assert set(map(frozenset, as_printed.values())) == {frozenset({"reproduced"})}
    reverse = words(lambda zeta, row: 0 if zeta == 0.5 else total(zeta, row) // 2)
    assert reverse["constant"] == reverse["half"] == {"not reproduced"}
    assert reverse["sup"] == {"reproduced", "not reproduced"}  # higher, but not constant


# --- between the panels ---------------------------------------------------------------------------


def test_every_run_between_the_panels_is_stored():
    found = stored("asirra-between")
    assert {key(c.config) for c in found} == {key(c) for c in between.cells("full")}
    counted = between.mistakes(found)
    for (_, zeta, _), runs in counted.items():
        assert runs.shape == (between.RUNS if zeta in between.LEVELS else asirra_cells.RUNS, 2)
        assert (runs[:, 1] <= runs[:, 0]).all()
    curves = len(between.INPUTS) * len(between.GAMMAS)
    assert len(counted) == curves * len(between.ZETAS) - len(between.INPUTS)  # no Γ = 0.1 at 0.01


def test_mistakes_are_counted_by_curve_with_those_of_the_second_half():
    made = made_up(lambda zeta, row: 100, lambda zeta, row: 0 if zeta < 0.5 else 40)
    counted = between.mistakes([c for c in made if c.config["policy"]["name"] == "DSOFUL"])
    assert counted["standard", 0.5, "Γ = 0"].tolist() == [[100, 40], [101, 40]] * 2
    assert between.is_constant(counted["standard", 0.1, "Γ = 0"])
    assert not between.is_constant(counted["standard", 0.5, "Γ = 0"])


def test_runs_between_the_panels_on_digits_say_so(monkeypatch):
    marked = []
    monkeypatch.setattr(between, "mark_stand_in", lambda fig, note: marked.append(note))
    small = between.cells("smoke")
    arrays = [{"wrong": np.array([np.arange(len(c["checkpoints"]))])} for c in small]
    files = between.render([Cell(c, a, {}) for c, a in zip(small, arrays, strict=True)], "smoke")
    assert marked == [features.STAND_IN]
    assert all("digits" in files[name].decode() for name in (".md", ".csv"))


def test_what_a_search_is_worth_by_hand():
    def runs(*ends: float) -> np.ndarray:
        return np.array(ends)[:, None]

    grid = {
        asirra_cells.PICK: runs(*[4.0] * 8),
        (1.0, 1.0): runs(2.0, 2.0, 2.0, 2.0, 9.0, 9.0, 9.0, 9.0),
        (1.0, 10.0): runs(*[8.0] * 8),
    }
    rows, excess, spread = asirra_figure.searched({0.1: {"Γ = 0": grid}})
    assert rows == [["0.1", "OFUL", "4.0 (0.1, 1)", "9.0 (1, 1)", "4.0", "8.0 (1, 10)"]]
    assert excess == {(0.1, "Γ = 0"): 0.0} and spread == {(0.1, "Γ = 0"): 2.0}
