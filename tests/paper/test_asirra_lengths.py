"""Vectors that keep their lengths: measured, predicted from directions, or a file's own."""

from __future__ import annotations

import numpy as np
import pytest
from test_pictures import SHARED, vision_or_skip

import banditlib as bl
from banditlib.npz import write_npz
from banditlib.paper import features, vision
from banditlib.paper.experiments.asirra import axes as asirra_axes
from banditlib.paper.experiments.asirra import lengths
from banditlib.paper.experiments.base import NotAvailable


def configs(data: str = "digits", how: str = lengths.EACH) -> dict:
    [found] = [
        h
        for h in asirra_axes.THIRD
        if h.lengths == how and h.policies[0]["beta"] == 1.0 and h.axis == 0
    ]
    return found.cells(0.5, [0], 400, data)[0]


def test_errors_on_what_is_left_out_are_those_of_leaving_it_out():
    rng = np.random.default_rng(1)
    X = rng.random((30, 4))
    y = np.exp(X @ [1.0, -0.5, 0.2, 0.0] + 0.1 * rng.standard_normal(30))
    found = lengths.regress(X, y, 0.3)
    for i in range(30):
        rest = np.arange(30) != i
        alone = lengths.regress(X[rest], y[rest], 0.3)
        assert found.errors[i] == pytest.approx(np.log(y[i]) - alone(X[i : i + 1])[0])
    left = np.log(y) - np.log(y).mean()
    assert found.explained == pytest.approx(1 - (found.errors @ found.errors) / (left @ left))


@pytest.mark.parametrize("s", [0.2, 1.0, 39.0])
@pytest.mark.parametrize(
    "play", [bl.OFUL, lambda beta, lam: bl.DSOFUL(0.05, beta, lam), bl.SupLinUCB]
)
def test_one_length_for_all_is_another_regulariser(s, play):
    """Means and widths of sx at λ are those of x at λ/s²."""
    rng = np.random.default_rng(4)
    points = rng.standard_normal((80, 6))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    long, short = (bl.problems.Pool(c * points[:40], c * points[40:]) for c in (s, 1.0))
    runs = [
        bl.simulate(pool, play(0.7, lam), rounds=1500, trials=2, progress=False)
        for pool, lam in ((long, 2.0), (short, 2.0 / s**2))
    ]
    assert np.array_equal(runs[0].plays, runs[1].plays)
    assert np.array_equal(runs[0].learnt, runs[1].learnt)


def test_digits_have_lengths_of_their_own():
    config = configs()
    assert config["measured"] == "own"
    problem, explained = lengths.pool_of(config)
    norms = np.linalg.norm(problem.points, axis=1)
    assert explained == 1.0 and norms.min() > 20 and np.ptp(norms) > 10
    alike, _ = lengths.pool_of(configs(how=lengths.COMMON))
    assert np.ptp(np.linalg.norm(alike.points, axis=1)) < 1e-9
    arrays = lengths.run([config], "numpy")[0]
    assert arrays["kept"].tolist() == np.bincount(problem.kind).tolist()
    assert arrays["wrong"].shape == (1, len(config["checkpoints"]))


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    """A small features file of one's own, with or without lengths."""

    def write(**norms: np.ndarray) -> features.Features:
        rng = np.random.default_rng(2)
        vectors = {
            n: rng.random((n_pictures, 5)) + 0.1 for n, n_pictures in (("cats", 6), ("dogs", 4))
        }
        ids = {"cat_ids": np.arange(6), "dog_ids": np.arange(4)}
        write_npz(tmp_path / features.FILES["tiny"], vectors | ids | norms)
        monkeypatch.setenv(features.VARIABLE, str(tmp_path))
        monkeypatch.setenv(features.OWN, "1")
        features._own_digest.cache_clear()
        return features.load("tiny")

    return write


def test_a_file_with_lengths_is_taken_at_its_word(own_file):
    vectors = own_file(cat_norms=np.arange(1.0, 7.0), dog_norms=np.full(4, 9.0))
    config = configs("tiny") | {"zeta": 10.0}
    assert config["measured"] == "own"
    problem, _ = lengths.pool_of(config)
    found = np.linalg.norm(problem.points, axis=1)
    assert np.allclose(found, [*range(1, 7), 9, 9, 9, 9])
    assert np.allclose(problem.points[0], vectors.good[0])


@pytest.mark.parametrize(
    "norms",
    [
        {"cat_norms": np.ones(5), "dog_norms": np.ones(4)},
        {"cat_norms": np.ones(6), "dog_norms": np.array([1.0, np.nan, 1.0, 1.0])},
        {"cat_norms": np.zeros(6), "dog_norms": np.ones(4)},
    ],
)
def test_lengths_that_cannot_be_are_refused(own_file, norms):
    own_file(**norms)
    with pytest.raises(NotAvailable, match=r"_norms of the tiny features must be . positive"):
        lengths.pool_of(configs("tiny"))


def test_without_lengths_the_table_is_needed_and_must_fit(own_file):
    own_file()
    config = configs("tiny")
    assert config["measured"] != "own"
    with pytest.raises(NotAvailable, match=r"lengths.csv is not among the features"):
        lengths.pool_of(config)
    with pytest.raises(features.FeaturesError, match="of the tiny features, not of standard"):
        lengths.predicted("standard", features.load("tiny"))


def test_predictions_are_measured_lengths_where_there_are_some():
    if not features.is_known("tiny"):
        pytest.skip("the tiny features of the stored results are not on this machine")
    vectors = features.load("tiny")
    (good, bad), explained = lengths.predicted("tiny", vectors)
    for name, found, ids in (("cat", good, vectors.good_ids), ("dog", bad, vectors.bad_ids)):
        here = {int(i): found[n] for n, i in enumerate(ids)}
        assert all(abs(here[i] / l - 1) < 1e-6 for i, l in lengths.table()[name].items())
    assert explained > 0.85
    assert 8 < np.std(good) < 11 and 8 < np.std(bad) < 13
    directions = np.concatenate([vectors.good, vectors.bad])
    ids = {int(i): n for n, i in enumerate(vectors.good_ids)}
    dogs = {int(i): len(ids) + n for n, i in enumerate(vectors.bad_ids)}
    at = [ids[i] for i in lengths.table()["cat"]] + [dogs[i] for i in lengths.table()["dog"]]
    measured = np.array([l for part in lengths.table().values() for l in part.values()])
    by_penalty = {p: lengths.regress(directions[at], measured, p) for p in (0.01, 0.1, 1.0)}
    assert max(by_penalty, key=lambda p: by_penalty[p].explained) == lengths.PENALTY


@pytest.mark.slow
def test_the_table_of_lengths_is_what_the_network_gives(tmp_path):
    if not (SHARED / "resnet18.pth").exists():
        pytest.skip("sample images and weights are not beside the project (../shared/data/asirra)")
    vision_or_skip()
    out = vision.prepare(
        str(SHARED / "images"), str(SHARED / "resnet18.pth"), lengths.MEASURED, str(tmp_path), False
    )
    with np.load(out) as found:
        for name, known in lengths.table().items():
            ids, norms = found[f"{name}_ids"], found[f"{name}_norms"]
            assert sorted(ids) == sorted(known)
            again = [known[int(i)] for i in ids]
            assert np.allclose(again, norms, rtol=1e-3)
