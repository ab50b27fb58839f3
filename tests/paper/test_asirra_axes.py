"""What it takes to reach the axes: the two further players, and the rule that sorts hypotheses."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import banditlib as bl
from banditlib.paper.experiments import rendered, stored
from banditlib.paper.experiments.asirra import axes as asirra_axes
from banditlib.paper.experiments.asirra import cells as asirra_cells
from banditlib.paper.experiments.asirra import single as in_single
from banditlib.paper.experiments.asirra.policies import GrowingOFUL, delayed, single
from banditlib.paper.store import Cell


@pytest.fixture(scope="module")
def small() -> bl.problems.Pool:
    rng = np.random.default_rng(3)
    points = rng.standard_normal((60, 6))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return bl.problems.Pool(points[:30] + 0.2, points[30:], sigma=0.0)


def mistakes(problem: bl.problems.Pool, agent: bl.Agent, rounds: int) -> np.ndarray:
    """Of a live agent on the rounds of trial 0."""
    wrong = np.zeros(rounds, int)
    for k, shown in enumerate(problem.contexts(0, 0, rounds)):
        arm = agent.choose(problem.points[shown])
        paid = problem.reward[shown]
        wrong[k] = paid.max() > paid[arm]
        agent.learn(paid[arm])
    return wrong


@pytest.mark.parametrize("zeta", [0.0, 0.1, 2.0])
def test_the_growing_radius_is_played_as_a_live_agent_plays_it(small, zeta):
    policy, rounds = GrowingOFUL(zeta, 1.0), 600
    run = bl.simulate(small, policy, rounds=rounds, trials=1, checkpoints=range(1, rounds + 1))
    alone = mistakes(small, policy.start(small.dim), rounds)
    assert np.array_equal(run.plays[0, 0, 0, :, 1], np.cumsum(alone))


def test_the_growing_radius_starts_at_one():
    assert GrowingOFUL(0.5, 1.0)._radius(1) == 1.0
    assert GrowingOFUL(0.5, 1.0)._radius(101) == pytest.approx(1 + 0.5 * 10)
    with pytest.raises(ValueError, match="zeta"):
        GrowingOFUL(-1.0, 1.0)


def test_learning_after_every_round_is_oful(small):
    alone = mistakes(small, bl.OFUL(0.3, 1.0).start(small.dim), 400)
    assert np.array_equal(delayed(small, 1, 0.3, 1.0, 400, 0, 0), alone)


def test_late_lessons_cost_mistakes_and_leave_the_contexts_alone(small):
    often, seldom = (delayed(small, n, 0.3, 1.0, 1000, 0, 0).sum() for n in (1, 300))
    assert often < seldom
    assert delayed(small, 300, 0.3, 1.0, 450, 0, 0).shape == (450,)


@pytest.mark.parametrize("play", [single, in_single.in_order])
def test_single_precision_agrees_with_double_while_nothing_is_close(small, play):
    double = mistakes(small, bl.OFUL(0.3, 1.0).start(small.dim), 300)
    assert abs(play(small, 0.3, 1.0, 300, 0, 0).sum() - double.sum()) <= 5


def growing(pool: bl.problems.Pool, rounds: int, trial: int) -> np.ndarray:
    """Arms played with a growing radius, for three errors."""
    policies = [GrowingOFUL(zeta, 1.0) for zeta in (0.01, 0.1, 0.5)]
    kw = dict(rounds=rounds, trials=[trial], record=("arms",), progress=False)
    return bl.simulate(pool, policies, **kw).arms


GOLDEN = {
    "GrowingOFUL": "c9524c7a9c3310ea5360b5324dcdf5d7a6957825737bf171f297ea32e120cce8",
    "DelayedOFUL": "53d58d3dcd0d10c7451a23233964c565d3c0373bf7bca6efc461b31bb523f70f",
    "SingleOFUL": "58e2a6f32b833a43f6e910d8128b89d23563b1dc998ff94c5bedd1b02b93ac3f",
}
"""Of what the further players do in 600 rounds of two trials."""


@pytest.mark.parametrize("name", GOLDEN)
def test_the_further_players_decide_as_ever(small, name):
    found = hashlib.sha256()
    for trial in (0, 1):
        if name == "GrowingOFUL":
            played = growing(small, 600, trial)
        elif name == "DelayedOFUL":
            played = delayed(small, 50, 0.1, 1.0, 600, 0, trial)
        else:
            played = in_single.in_order(small, 0.1, 1.0, 600, 0, trial)
        found.update(np.ascontiguousarray(played, dtype="<i8").tobytes())
    assert found.hexdigest() == GOLDEN[name], (
        f"decisions of {name} changed: raise its number on pools in banditlib.engines (SingleOFUL "
        "has none: compute asirra-single again), then write the digest anew"
    )


@pytest.mark.parametrize("d", [1, 5, 64, 300])
def test_sums_in_single_precision_are_taken_in_one_order(d):
    """Term after term, bit for bit: no processor and no library has a say in it."""
    rng = np.random.default_rng(d)
    x, A = (rng.standard_normal((n, d)).astype(np.float32) for n in (2, d))
    by_row, by_term = np.zeros((2, d), np.float32), np.zeros(2, np.float32)
    for j in range(d):
        by_row += x[:, j, None] * A[j]
        by_term += x[:, j] * A[0, j]
    terms = np.empty((2, d, d), np.float32)
    assert in_single.product(x, A, terms).tobytes() == by_row.tobytes()
    assert in_single.dots(x, A[0]).tobytes() == by_term.tobytes()


def test_a_hypothesis_says_how_it_is_played_in_a_panel():
    by_name = {h.name: h for h in asirra_axes.HYPOTHESES}
    assert len(by_name) == len(asirra_axes.HYPOTHESES)

    def played(name: str, zeta: float) -> dict:
        return by_name[name].cells(zeta, [0], 1000, "digits")[0]

    assert played("radius 12 + 160ζ", 0.5)["policy"]["beta"] == 92.0
    assert played("radius 1 + ζ√k", 0.1)["policy"]["zeta"] == 0.1
    assert played("no filter, radius 1", 0.01)["zeta"] == asirra_axes.EVERYTHING


def test_words_of_the_rule():
    def word(total: float) -> str:
        return asirra_axes.Outcome(np.full((1, 2), total), np.zeros((1, 2)), 3500.0).word

    assert [word(x) for x in (0, 1100, 1200, 2400, 5000, 10_000, 11_000)] == [
        "",
        "",
        "near",
        "fits",
        "fits",
        "near",
        "",
    ]


def test_words_of_the_sum_over_eight_runs():
    outcome = asirra_axes.Outcome(np.full((1, 2), 437.5), np.zeros((1, 2)), 3500.0)
    assert (outcome.word, outcome.word_of_sum) == ("", "fits")


def outcome(*runs: float, axis: float = 3500.0) -> asirra_axes.Outcome:
    return asirra_axes.Outcome(np.array([runs]), np.zeros((1, len(runs))), axis)


def test_a_word_that_hangs_on_one_run_has_a_question_mark():
    spread = {"OFUL": 0.1, "noisy": 0.5}
    told = asirra_axes.told
    assert told("radius 14", outcome(3400.0), spread) == "3,400 ✓"
    assert told("radius 14", outcome(2400.0), spread) == "2,400 ✓?"  # 2,333 is the border
    assert told("radius 14", outcome(1100.0), spread) == "1,100 ?"
    assert told("radius 14", outcome(*[2400.0] * 8), spread) == "2,400* ✓"
    assert told("radius 14, noise N(0, 1)", outcome(3400.0), spread) == "3,400 ✓?"
    assert told("radius 6", outcome(437.5), spread, as_sum=True) == "3,500 ✓"


def test_the_spread_is_that_of_eight_runs_of_the_curve_that_is_judged():
    both = np.array([[1.0, 9.0] + [5.0] * 6, [10.0, 12.0] + [11.0] * 6])
    reached = {
        ("radius 6", 0.5): asirra_axes.Outcome(both, both, 1.0),
        ("radius 7", 0.5): outcome(1.0, 100.0),
    }
    assert asirra_axes.spreads(reached) == {
        "OFUL": pytest.approx(2 / 11), "SupLinUCB": 0.0, "noisy": 0.0
    }  # fmt: skip


def test_the_table_says_so_where_digits_stand_in():
    configs = asirra_axes.cells("smoke")
    cells = [Cell(c, {"wrong": np.full((1, len(c["checkpoints"])), 7)}, {}) for c in configs]
    files = asirra_axes.render(cells, "smoke")
    assert all("digits" in content.decode() for content in files.values())


def test_the_table_has_a_line_for_every_hypothesis():
    lines = rendered("asirra-axes")[".csv"].decode().splitlines()[1:]
    assert [line.split(",")[0].strip('"') for line in lines[:2]] == ["radius 0.1", "radius 1"]
    for name in ("asirra-single", "asirra-lengths"):
        lines += rendered(name)[".csv"].decode().splitlines()[1:]
    assert len(lines) == len(asirra_axes.HYPOTHESES)


def test_the_screen_is_whole_and_all_that_fits_in_it_was_run_eight_times():
    names = ("asirra-axes", "asirra-single", "asirra-lengths", "asirra-weak")
    found = [cell for name in names for cell in stored(name)]
    screen, whole = asirra_axes.outcomes(found, trials=[0]), asirra_axes.outcomes(found)
    every = {(h.name, z) for h in asirra_axes.HYPOTHESES for z in asirra_axes.PANELS}
    assert set(screen) == every
    fits = {where for where, outcome in screen.items() if outcome.word == "fits"}
    assert fits == {where for where, outcome in whole.items() if outcome.word == "fits"}
    assert fits <= set(asirra_axes.EIGHT_TIMES)
    for where in asirra_axes.EIGHT_TIMES:
        assert whole[where].total.shape[1] == asirra_cells.RUNS


@pytest.mark.parametrize(
    ("name", "home", "words"),
    [
        ("radius 6", "tiny", {"fits", "near"}),
        (asirra_axes.AS_WRITTEN, "standard", {"fits", "near", ""}),
    ],
)
def test_what_fits_as_a_sum_was_run_again_on_what_had_not_been_seen(name, home, words):
    again = asirra_axes.confirmed(stored("asirra-axes"))
    ours = {where[1:]: outcome for where, outcome in again.items() if where[0] == name}
    inputs = (home, *asirra_axes.CONFIRMED[name])
    assert set(ours) == {(data, zeta) for data in inputs for zeta in asirra_axes.PANELS}
    assert {outcome.word_of_sum for outcome in ours.values()} <= words
    for zeta in asirra_axes.PANELS:
        assert ours[home, zeta].word_of_sum == "fits"
        assert ours[home, zeta].total.shape == (1, asirra_cells.RUNS)
