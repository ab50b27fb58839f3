"""Lessons and tests: the blockwise loop takes the decisions of live agents, round by round."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditlib as bl
from banditlib import theory
from banditlib.agent import Agent
from banditlib.paper.experiments.phase_map import answer
from banditlib.paper.experiments.separation import cells
from banditlib.paper.experiments.separation import course as sep
from banditlib.paper.store import Cell


def round_by_round(course: sep.Course, policy: bl.Policy, tests: int) -> tuple[np.ndarray, int]:
    """Mistakes and learnt rounds of a live agent that sees every lesson."""
    agent = Agent(policy, course.dim)
    unit = np.eye(course.dim)
    wrong, kept = np.zeros(tests, dtype=bool), 0

    def play(arms: np.ndarray, reward: list[float]) -> int:
        nonlocal kept
        arm = agent.choose(arms)
        agent.learn(reward[arm])
        kept += agent.info.selected if agent.info else 0
        return arm

    for i in range(2, course.dim):
        play(unit[[i]], [0.0])
    kept = 0
    for t in range(tests):
        for _ in range(course.lessons):
            play(course.length * unit[[0]], [course.zeta])
        wrong[t] = play(unit[[1, 0]], [course.Delta, 0.0]) == 1
    return wrong, kept


POLICIES = {
    "OFUL": (bl.OFUL(beta=1.0, lam=0.7), lambda: sep.Learner(0.7, lambda k, z: 1.0)),
    "DS-OFUL, lessons kept": (
        bl.DSOFUL(Gamma=0.02, beta=1.5, lam=1.0),
        lambda: sep.Learner(1.0, lambda k, z: 1.5, 0.02),
    ),
    "DS-OFUL, lessons skipped": (
        bl.DSOFUL(Gamma=0.2, beta=1.5, lam=1.0),
        lambda: sep.Learner(1.0, lambda k, z: 1.5, 0.2),
    ),
    "LSW": (bl.LSW(beta=1.0, lam=1.0, eps=0.1), lambda: sep.WithBonus(1.0, 1.0, 0.1)),
    "SupLinUCB": (bl.SupLinUCB(beta=0.6, lam=1.0), lambda: sep.Levels(1.0, lambda l: 0.6, 3)),
    "SupLinUCB, by level": (
        bl.SupLinUCB(beta=theory.SupBeta(3, R=0.2), lam=1.0),
        lambda: sep.Levels(1.0, theory.SupBeta(3, R=0.2), 3),
    ),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("j", [2, 3])
def test_blocks_are_rounds(name: str, j: int) -> None:
    """Same mistakes, same number of learnt rounds."""
    policy, player = POLICIES[name]
    course = sep.Course.of(0.5, j, dim=3)
    wrong, kept = round_by_round(course, policy, 24)
    fast = player()
    assert (sep.play(course, fast, 24) == wrong).all()
    assert fast.kept == kept


def test_ucb_is_ucb_on_the_two_arms() -> None:
    """UCB's index, with log of the round number, written out."""
    course = sep.Course.of(0.3, 2, sigma=0.5)
    got = sep.play(course, sep.Counting(0.5), 300, np.random.default_rng(3))
    rng, n, sums = np.random.default_rng(3), [0, 0], [0.0, 0.0]
    for t, wrong in enumerate(got):
        rng.standard_normal()
        k = (t + 1) * course.cycle
        if 0 in n:
            arm = n.index(0)
        else:
            index = [s / m + math.sqrt(0.5 * math.log(k) / m) for s, m in zip(sums, n, strict=True)]
            arm = int(index[1] > index[0])
        assert wrong == arm
        n[arm] += 1
        sums[arm] += (0.3, 0.0)[arm] + 0.5 * rng.standard_normal()


def test_the_course_is_what_it_says() -> None:
    """ζ = Δ/j, lessons of total weight ½ and pull 2Δ, rewards in [0, 1]."""
    for j in (1, 5, 40):
        c = sep.Course.of(0.4, j, dim=7)
        assert math.isclose(c.zeta * j, 0.4) and math.isclose(c.ratio, math.sqrt(7) / j)
        assert math.isclose(c.lessons * c.length**2, 0.5)
        assert math.isclose(c.lessons * c.length * c.zeta, 0.8)
        assert 0 <= c.zeta <= 1 and c.length <= 1


def test_noise_needs_a_generator() -> None:
    """Bad input is refused with a sentence."""
    with pytest.raises(ValueError, match="rng"):
        sep.play(sep.Course.of(0.5, 2, sigma=0.1), sep.Learner(1.0, None), 3)


@pytest.fixture(scope="module")
def small() -> list[Cell]:
    """Every policy at two ratios, and the twins, over a few tests."""
    configs = cells.cells("smoke")
    return [Cell(c, a, {}) for c, a in zip(configs, cells.run(configs, "numpy"), strict=True)]


def test_a_cell_counts_the_mistakes_of_its_players(small: list[Cell]) -> None:
    """Counts grow from mark to mark, and rows say of which course they are."""
    for cell in small:
        mistakes = cell.arrays["mistakes"]
        marks = np.diff(cell.config["marks"], prepend=0)
        steps = np.diff(mistakes, axis=1, prepend=0)
        assert ((steps >= 0) & (steps <= marks)).all()
    rows = {(row["policy"], row["ratio"]): row for row in cells.rows(small)}
    assert len(rows) == len(small) // 2
    for (policy, ratio), row in rows.items():
        course = cells.course_of(ratio)
        assert row["zeta"] == course.zeta and row["rounds"] == row["tests"] * course.cycle
        assert 0 <= row["second_half"] <= row["regret"] <= cells.DELTA * row["tests"], policy


def test_lines_and_explorer_show_every_policy(small: list[Cell]) -> None:
    """What the answer and the interactive figure read is what the cells say."""
    rows = {(row["policy"], row["ratio"]): row for row in cells.rows(small)}
    for line in answer.lesson_lines(small):
        for q, regret, calm in zip(line.ratios, line.regret, line.calm, strict=True):
            assert regret == rows[line.policy, q]["regret"] and calm == rows[line.policy, q]["twin"]
    shown = cells.explorer(small, {cells.DIM: (0.1, 2.0)})["cells"]
    assert len(shown) == len([p for p, _ in rows if p != "kindest OFUL"])
    for name, (mean, error, *_) in shown.items():
        policy, *_, ratio, _ = name.split("|")
        assert mean[-1] == round(10 * rows[policy, float(ratio)]["regret"])
        assert len(error) == len(mean)
