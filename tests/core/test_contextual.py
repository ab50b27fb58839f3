"""Problems whose decision sets change: what they show, what they know, what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditlib as bl
from banditlib.problems.contextual import CHUNK, Contextual, Rounds, Sampled, cycle

rng = np.random.default_rng(0)
SETS = rng.normal(size=(5, 3, 2))
PAYS = rng.normal(size=(5, 3))
MASK = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 1], [0, 0, 1], [1, 1, 0]], dtype=bool)
THETA = np.array([0.5, -1.0])


def linear(rng: np.random.Generator, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((len(k), 3, 2))
    return X, X @ THETA


def test_a_cycle_starts_again_from_the_first_set():
    problem = Contextual(SETS, PAYS, MASK)
    seen = problem.contexts(seed=0, rounds=12)
    rows = np.arange(12) % 5
    np.testing.assert_array_equal(seen.X[MASK[rows]], SETS[rows][MASK[rows]])
    np.testing.assert_array_equal(seen.mask, MASK[rows])
    later = problem.block(0, 3, k=7, n=4)
    np.testing.assert_array_equal(later.reward, seen.reward[7:11])
    assert problem.shared and (problem.arms, problem.dim) == (3, 2)


def test_nothing_is_copied_where_the_sets_lie_in_a_row():
    problem = Contextual(SETS, PAYS)
    assert np.shares_memory(problem.block(0, 0, 11, 3).X, problem.X)


def test_an_order_repeats_sets_without_copies():
    problem = cycle([np.eye(2)[:1], np.eye(2)], [[0.1], [0.0, 1.0]], repeats=[3, 1], theta=[0, 1])
    assert problem.X.shape == (2, 2, 2)
    seen = problem.contexts(0, 0, 8)
    assert seen.mask is not None
    assert seen.mask.sum(axis=1).tolist() == [1, 1, 1, 2] * 2
    assert seen.best.tolist() == [0, 0, 0, 1] * 2
    assert problem.gap == 1.0 and problem.zeta == pytest.approx(0.1)


def test_gap_best_and_misspecification_by_hand():
    X = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [9.0, 9.0]]])
    problem = Contextual(X, [[0.5, 0.2], [0.8, 99.0]], mask=[[True, True], [True, False]])
    np.testing.assert_allclose(problem.gaps, [[0.0, 0.3], [0.0, 0.0]])
    assert problem.best.tolist() == [0, 0] and problem.gap == pytest.approx(0.3)
    # r = (0.5, 0.2, 0.8) on e1, e2, e1 + e2: the third is 0.1 off, shared by three
    theta, zeta = problem.best_linear_fit()
    assert zeta == pytest.approx(0.1 / 3) == problem.zeta
    np.testing.assert_allclose(theta, [0.5 + 0.1 / 3, 0.2 + 0.1 / 3])
    given = Contextual(X[:1], [[0.5, 0.2]], theta=[0.4, 0.0])
    assert given.zeta == pytest.approx(0.2)
    assert Contextual(X[:1], [[1.0, 1.0]]).gap == math.inf


def test_pieces_of_a_sampler_equal_one_long_draw():
    problem = Contextual.sampled(linear, dim=2, arms=3)
    whole = problem.contexts(seed=4, trial=2, rounds=3 * CHUNK + 5)
    for k, n in ((0, 1), (CHUNK - 1, 2), (5, 2 * CHUNK), (3 * CHUNK, 5)):
        piece = problem.block(4, 2, k, n)
        np.testing.assert_array_equal(piece.X, whole.X[k : k + n])
        np.testing.assert_array_equal(piece.reward, whole.reward[k : k + n])
    assert isinstance(problem, Contextual) and isinstance(problem, Sampled)


def test_trials_seeds_and_instances_have_contexts_of_their_own_unless_shared():
    own = Contextual.sampled(linear, 2, 3)
    other = Contextual.sampled(linear, 2, 3, instance=1)
    first = own.contexts(0, 0, 9).X
    for elsewhere in (own.contexts(0, 1, 9), own.contexts(1, 0, 9), other.contexts(0, 0, 9)):
        assert not (first == elsewhere.X).any()
    shared = Contextual.sampled(linear, 2, 3, shared=True)
    np.testing.assert_array_equal(shared.contexts(0, 0, 9).X, shared.contexts(0, 5, 9).X)
    assert shared.shared and not own.shared


def test_the_sampler_sees_round_numbers():
    def growing(rng, k):
        return np.ones((len(k), 1, 1)), np.asarray(k, float)[:, None]

    seen = Contextual.sampled(growing, 1, 1).block(0, 0, 100, 3)
    assert seen.reward.ravel().tolist() == [101, 102, 103]


def test_declared_zeta_and_gap_are_checked_on_the_rounds_drawn():
    def bent(rng, k):
        X, reward = linear(rng, k)
        return X, reward + np.where(k == CHUNK + 3, 0.3, 0.0)[:, None]

    problem = Contextual.sampled(bent, 2, 3, theta=THETA, zeta=0.2)
    assert problem.zeta == 0.2 and math.isnan(problem.gap)
    problem.contexts(0, 0, CHUNK)
    with pytest.raises(ValueError, match=r"sampler: declared zeta=0.2, but 0.3 in rounds 65"):
        problem.contexts(0, 0, CHUNK + 1)
    with pytest.raises(ValueError, match=r"sampler: declared gap=5"):
        Contextual.sampled(linear, 2, 3, gap=5.0).contexts(0)


def test_a_sampler_may_offer_sets_of_different_sizes():
    def ragged(rng, k):
        X, reward = linear(rng, k)
        mask = np.ones(reward.shape, bool)
        mask[k % 2 == 0, 0] = False
        X[~mask] = math.nan
        return X, reward, mask if k[0] == 1 else None

    with pytest.raises(ValueError, match="sampler's X: contains NaN"):
        Contextual.sampled(ragged, 2, 3).contexts(0, 0, CHUNK + 1)

    def sometimes(rng, k):
        X, reward = linear(rng, k)
        return X, reward, (np.ones(reward.shape, bool) if k[0] == 1 else None)

    seen = Contextual.sampled(sometimes, 2, 3).contexts(0, 0, CHUNK + 1)
    assert seen.mask is not None and seen.mask.all()


def test_rounds_know_their_gaps():
    rounds = Rounds(
        np.zeros((1, 3, 1)), np.array([[1.0, 9.0, 0.5]]), np.array([[True, False, True]])
    )
    assert rounds.gaps.tolist() == [[0.0, 0.0, 0.5]] and rounds.best.tolist() == [0]


def test_repr_says_what_it_is():
    assert repr(Contextual(SETS, PAYS, MASK)) == (
        "Contextual('contexts', 5 sets of up to 3 arms, d=2, sigma=1)"
    )
    assert "3 arms, d=2" in repr(Contextual.sampled(linear, 2, 3))


REFUSED = [
    ("X", lambda: Contextual(np.ones((2, 2)), np.ones((2, 2)))),
    ("X", lambda: Contextual([[[1.0]], [[1.0], [2.0]]], [[1.0]])),
    ("X", lambda: Contextual(np.full((1, 1, 1), math.nan), [[1.0]])),
    ("X", lambda: Contextual(np.ones((1, 1, 0)), [[1.0]])),
    ("reward", lambda: Contextual(SETS, PAYS[:4])),
    ("reward", lambda: Contextual(SETS, np.full((5, 3), math.inf))),
    ("mask", lambda: Contextual(SETS, PAYS, MASK.astype(int))),
    ("mask", lambda: Contextual(SETS, PAYS, MASK[:, :2])),
    ("mask", lambda: Contextual(SETS, PAYS, MASK & (np.arange(5) != 2)[:, None])),
    ("theta", lambda: Contextual(SETS, PAYS, theta=[1.0])),
    ("sigma", lambda: Contextual(SETS, PAYS, sigma=-1)),
    ("order", lambda: Contextual(SETS, PAYS, order=[0, 1, 2])),
    ("order", lambda: Contextual(SETS, PAYS, order=[0.5])),
    ("instance", lambda: Contextual(SETS, PAYS, instance=-1)),
    ("label", lambda: Contextual(SETS, PAYS, label=3)),
    ("rounds", lambda: Contextual(SETS, PAYS).contexts(0, 0, 0)),
    ("seed", lambda: Contextual(SETS, PAYS).contexts(-1)),
    ("sampler", lambda: Contextual.sampled(3, 2, 3)),
    ("sampler", lambda: Contextual.sampled(lambda rng, k: 3, 2, 3).contexts(0)),
    ("sampler", lambda: Contextual.sampled(linear, 2, 4).contexts(0)),
    ("theta", lambda: Contextual.sampled(linear, 2, 3, zeta=0.1)),
    ("gap", lambda: Contextual.sampled(linear, 2, 3, gap=-1)),
    ("shared", lambda: Contextual.sampled(linear, 2, 3, shared=1)),
    ("dim", lambda: Contextual.sampled(linear, 0, 3)),
    ("arms", lambda: Contextual.sampled(linear, 2, 0)),
    ("best_linear_fit", lambda: Contextual.sampled(linear, 2, 3).best_linear_fit()),
    ("sets", lambda: cycle(np.eye(2), [[1.0]])),
    ("rewards", lambda: cycle([np.eye(2)], [])),
    (r"sets\[1\]", lambda: cycle([np.eye(2), np.eye(3)], [[1, 2], [1, 2, 3]])),
    (r"rewards\[0\]", lambda: cycle([np.eye(2)], [[1, 2, 3]])),
    ("repeats", lambda: cycle([np.eye(2)], [[1, 2]], repeats=[0])),
    ("repeats", lambda: cycle([np.eye(2)], [[1, 2]], repeats=[1, 2])),
]


@pytest.mark.parametrize(
    ("name", "call"), REFUSED, ids=[f"{n}-{i}" for i, (n, _) in enumerate(REFUSED)]
)
def test_the_argument_at_fault_is_named(name, call):
    with pytest.raises((TypeError, ValueError), match=rf"^{name}\b|^{name}"):
        call()


def test_arrays_of_another_library_are_taken():
    import array_api_strict as strict

    problem = Contextual(strict.asarray(SETS), strict.asarray(PAYS), strict.asarray(MASK))
    assert problem.zeta == Contextual(SETS, PAYS, MASK).zeta
    assert bl.problems.Contextual is Contextual
