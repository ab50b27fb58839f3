"""Ready-made contextual problems: fresh unit vectors, classification tables."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import banditlib as bl
from banditlib.problems import classification, digits, unit_vectors


@pytest.mark.parametrize("kind", ["two-point", "interval", lambda X: np.sign(X[..., 0])])
def test_unit_vectors_keep_their_word(kind):
    problem = unit_vectors(dim=5, arms=4, zeta=0.1, misspecification=kind, gap=0.2)
    X, reward, mask = problem.contexts(seed=1, trial=2, rounds=500)
    np.testing.assert_allclose(np.linalg.norm(X, axis=-1), 1.0)
    error = reward - X @ problem.theta
    assert mask is None and np.abs(error).max() <= 0.1 + 1e-12
    top = np.sort(reward, axis=1)
    assert (top[:, -1] - top[:, -2]).min() >= 0.2 and problem.gap == 0.2 and problem.zeta == 0.1
    if kind == "two-point":
        np.testing.assert_allclose(np.abs(error), 0.1)
    elif kind == "interval":
        assert 0.04 < np.abs(error).mean() < 0.06
    else:
        np.testing.assert_allclose(error, 0.1 * np.sign(X[..., 0]), atol=1e-12)


def test_directions_are_uniform():
    X = unit_vectors(dim=3, arms=5).contexts(0, 0, 4000).X.reshape(-1, 3)
    assert np.abs(X.mean(axis=0)).max() < 0.02
    np.testing.assert_allclose(X.T @ X / len(X), np.eye(3) / 3, atol=0.015)


def test_instances_draw_their_own_theta():
    first, second = unit_vectors(instance=0), unit_vectors(instance=1)
    assert np.linalg.norm(first.theta) == pytest.approx(1.0)
    assert not np.allclose(first.theta, second.theta)
    given = unit_vectors(dim=2, theta=[3.0, 4.0])
    assert given.theta.tolist() == [3.0, 4.0] and math.isnan(given.gap)


def test_a_table_by_hand():
    problem = classification([[3.0, 4.0], [0.0, 2.0], [1.0, 0.0]], ["b", "a", "b"])
    assert problem.sampler.classes == ("a", "b") and problem.dim == 4 and problem.gap == 1.0
    X, reward, _ = problem.contexts(0, 0, 200)
    rows = {tuple(x.ravel()): tuple(r) for x, r in zip(X, reward, strict=True)}
    assert rows == {
        (0.6, 0.8, 0, 0, 0, 0, 0.6, 0.8): (0.0, 1.0),
        (0.0, 1.0, 0, 0, 0, 0, 0.0, 1.0): (1.0, 0.0),
        (1.0, 0.0, 0, 0, 0, 0, 1.0, 0.0): (0.0, 1.0),
    }


def test_tables_as_dataframes_with_intercept_and_without_scaling():
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    table = pandas.DataFrame({"x": [1.0, 2.0], "y": [0, 1], "kind": ["u", "v"]})
    problem = classification(table[["x", "y"]], table["kind"], unit=False, intercept=True)
    named = classification(table, "kind", unit=False, intercept=True)
    np.testing.assert_array_equal(named.contexts(0, 0, 9).X, problem.contexts(0, 0, 9).X)
    with pytest.raises(ValueError, match="labels: expected one of the columns x, y, kind, got 'z'"):
        classification(table, "z")
    X, reward, _ = problem.contexts(0, 0, 50)
    assert problem.dim == 6
    np.testing.assert_array_equal(X[:, 0, 2], np.ones(50))
    assert set(X[:, 0, 0]) == {1.0, 2.0} and set(reward.sum(axis=1)) == {1.0}


def test_digits_are_built_in():
    pytest.importorskip("sklearn", reason="scikit-learn (extra: book) is not installed")
    problem = digits()
    X, reward, _ = problem.contexts(0, 0, 10)
    assert X.shape == (10, 10, 640) and (reward.sum(axis=1) == 1).all()
    np.testing.assert_allclose(np.linalg.norm(X, axis=-1), 1.0)


def test_a_live_agent_learns_a_table():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 2))
    problem = classification(x, (x[:, 0] > 0).astype(int))
    X, reward, _ = problem.contexts(0, 0, 400)
    agent, right = bl.OFUL(0.5, 1.0).start(problem.dim), 0.0
    for k in range(400):
        arm = agent.choose(X[k])
        agent.learn(reward[k, arm])
        right += reward[k, arm] if k >= 200 else 0
    assert right > 170


def test_they_travel_to_other_processes():
    for problem in (unit_vectors(dim=3, zeta=0.1), classification(np.eye(2), [0, 1])):
        twin = pickle.loads(pickle.dumps(problem))
        np.testing.assert_array_equal(twin.contexts(0, 0, 9).X, problem.contexts(0, 0, 9).X)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("dim", lambda: unit_vectors(dim=0)),
        ("arms", lambda: unit_vectors(arms=0)),
        ("zeta", lambda: unit_vectors(zeta=-1)),
        ("misspecification", lambda: unit_vectors(misspecification="both")),
        ("misspecification", lambda: unit_vectors(misspecification=np.sum).contexts(0)),
        (
            "misspecification",
            lambda: unit_vectors(zeta=1, misspecification=lambda X: 2 + X[..., 0]).contexts(0),
        ),
        ("gap", lambda: unit_vectors(gap=3.0, attempts=5).contexts(0)),
        ("theta", lambda: unit_vectors(dim=3, theta=[1.0])),
        ("features", lambda: classification([1.0], [1])),
        ("features", lambda: classification([[math.nan], [1.0]], [0, 1])),
        ("labels", lambda: classification([[1.0], [2.0]], [0])),
        ("labels", lambda: classification([[1.0], [2.0]], "kind")),
        ("labels", lambda: classification([[1.0], [2.0]], [0, 0])),
        ("labels", lambda: classification([[1.0], [2.0]], [0.0, math.nan])),
    ],
)
def test_the_argument_at_fault_is_named(name, call):
    with pytest.raises((TypeError, ValueError), match=rf"^{name}\b"):
        call()
