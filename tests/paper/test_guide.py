"""The guide: cells come out again, judging does what the protocols say, the results are whole."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import banditlib as bl
from banditlib import theory
from banditlib.paper.experiments import stored
from banditlib.paper.experiments.guide import cells as guide
from banditlib.paper.experiments.guide import claims, problems, protocol
from banditlib.paper.store import key


@dataclass
class Fake:
    """A cell with made-up regret."""

    config: dict[str, Any]
    arrays: dict[str, np.ndarray]


def fake(late: list[float], tune: list[list[float]] | None = None, **more: Any) -> Fake:
    config = guide.cell("OFUL", "fixed", 1.0, 8, 0.2) | more
    report = np.zeros((4, len(late), 5), dtype=int)
    report[:, :, -1] = np.array(late) * guide.UNIT
    runs = np.array(tune or [[4, 4], [1, 2], [1, 2], [9, 9]])
    return Fake(config, {"tune": runs, "report": report})


@pytest.mark.parametrize("policy", sorted(guide.CLASSES))
def test_a_small_cell_comes_out_again(policy: str) -> None:
    config = guide.cell(policy, "fixed", 1.0, 8, 0.2, small=True)
    first, second = (guide.run([config], "numpy")[0] for _ in range(2))
    assert all((first[name] == second[name]).all() for name in ("tune", "report"))
    assert first["report"].shape[2] == 5 and first["report"].min() >= 0
    assert (np.diff(first["report"], axis=-1) >= 0).all()


@pytest.mark.parametrize("problem", ["fresh", "separation", "iris"])
def test_the_other_problems_run(problem: str) -> None:
    place = next(p for p in guide.places() if p[0] == problem)
    arrays = guide.run([guide.cell("layered DS-OFUL", *place, small=True)], "numpy")[0]
    assert arrays["tune"].shape == (4, 1) and arrays["report"].shape == (4, 2, 5)


def test_every_policy_has_four_settings_and_its_class() -> None:
    for policy, name in guide.CLASSES.items():
        found = guide.settings(policy, 0.2, 8, 0.1)
        assert len(found) == (9 if "wrong" in policy else 4)
        assert {type(one).__name__ for one in found} == {name}


def test_tuning_takes_the_least_mean_and_other_runs() -> None:
    assert guide.chosen(fake([1.0, 2.0])) == 1  # the first of two that tie
    config = guide.cell("OFUL", "fixed", 1.0, 8, 0.2)
    tune, report = (problems.setting(config, which) for which in (False, True))
    assert not {p.instance for p in tune.problems} & {p.instance for p in report.problems}
    assert protocol.TUNE_SEED != protocol.REPORT_SEED


def test_a_run_is_lost_at_half_the_gap_per_round_of_the_last_quarter() -> None:
    assert guide.lost(fake([99.9, 100.0, 101.0, 0.0])) == 0.5  # 0.1 · 1,000 rounds
    tests = fake([1.2, 1.3], problem="separation", rounds=problems.rounds_of("separation", 1.0))
    assert guide.lost(tests) == 0.5  # 0.1 · 13 of 50 tests


def test_policies_are_told_apart_by_paired_differences() -> None:
    noise = np.random.default_rng(0).standard_normal(16)
    one, other = fake([*(100 + noise)]), fake([*(100 + noise + 0.1 * noise[::-1])])
    assert not guide.apart(one, other)
    assert guide.apart(one, fake([*(101 + noise + 0.1 * noise[::-1])]))


def test_the_problems_are_what_the_protocol_says() -> None:
    for z in protocol.RATIOS["fixed"]:
        place = problems.setting(guide.cell("OFUL", "fixed", z, 8, 0.2), report=True)
        one = place.problems[0]
        assert 0.19 <= one.gap <= 0.21 and one.arms == 20 and one.sigma == 0.25
        assert one.zeta == pytest.approx(place.zeta) and place.zeta * math.sqrt(8) / 0.2 == z
    found = problems.course(2.0)
    assert found.ratio == pytest.approx(2.0) and problems.course(0.0).zeta == 0.0
    assert problems.course(0.0).lessons == problems.course(1.0).lessons
    for name, _, dim, _ in guide.places():
        if name in problems.TABLES:
            assert problems.table(name).dim == dim


def test_stored_results_can_be_judged_and_drawn() -> None:
    found = [*stored("guide"), *stored("guide-asirra")]
    assert found
    rows = guide.rows(found)
    assert all(0 <= row["lost"] <= 1 and row["regret"] >= 0 for row in rows)
    assert set(guide.render(found, "full")) == {".csv"}


def test_a_problem_without_ratio_reads_its_zeta_where_it_can() -> None:
    config = guide.cell("LSW", "lower bound", -1.0, 16, 0.25, small=True)
    place = problems.setting(config, report=True)
    assert place.zeta > 0 and isinstance(place.problems[0], bl.problems.FixedArms)


# --- what is claimed for single policies ----------------------------------------------------------


@pytest.mark.parametrize("problem", sorted(claims.KINDS))
def test_a_small_cell_of_each_claim_comes_out_again(problem: str) -> None:
    configs = [c for c in claims.cells("smoke") if c["problem"] == problem][:4]
    for config in configs:
        first, second = (guide.run([config], "numpy")[0]["regret"] for _ in range(2))
        assert (first == second).all() and first.shape == (2, 5) and first.min() >= 0
        assert (np.diff(first, axis=-1) >= 0).all()


def test_all_cells_of_the_claims_are_different_and_know_their_engine() -> None:
    configs = claims.cells("full")
    assert len({key(c) for c in configs}) == len(configs)
    for config in configs:
        assert config["engine"] == guide.engine_of(config["policy"], config["problem"])


def test_the_adversary_spends_its_budget_on_the_best_arm_and_no_more() -> None:
    """With C = 2.5 and no noise the first plays of the best arm pay 1, 1 and 1/2 less."""
    told: list[tuple[int, float]] = []

    class Spy(bl.policies.Policy):
        def start(self, *_: Any, **__: Any) -> Any:
            return self

        def choose(self, X: np.ndarray) -> int:  # type: ignore[override]
            return len(told) % 2

        def learn(self, reward: float) -> None:
            told.append((len(told) % 2, reward))

    problem = bl.problems.FixedArms(np.eye(2), [0.25, 1.0], sigma=0.0)
    arms = claims.corrupted(Spy(), problem, 2.5, np.zeros(10))
    assert arms.tolist() == [0, 1] * 5
    assert [r for a, r in told if a == 0] == [0.25] * 5
    assert [r for a, r in told if a == 1] == [0.0, 0.0, 0.5, 1.0, 1.0]


def test_the_contenders_under_corruption_are_those_of_the_protocol() -> None:
    of = functools.partial(claims.against_corruption, rounds=10_000, sigma=0.1)
    for name, alpha in (("weighted OFUL", 0.035), ("weighted OFUL, not told C", 0.014)):
        assert of(name, 40).params == pytest.approx({"alpha": alpha, "beta": 2.8, "lam": 1.0})
    assert of("weighted OFUL", 0) == bl.WeightedOFUL(1.0, 1.4, 1.0)  # no width is above 1: OFUL
    assert of("OFUL", 40) == bl.OFUL(1.4, 1.0) and of("OFUL, told C", 40) == bl.OFUL(41.4, 1.0)
    assert of("OFUL, β = 4σ", 0) == bl.OFUL(0.4, 1.0)


def test_the_problem_of_levels_is_what_the_theorem_asks_for() -> None:
    for share in claims.SHARES:
        found = claims.constants(share)
        problem = claims.two_prices(found.zeta, 512, 5, claims.SEED)
        assert math.isfinite(found.bound) and problem.gap == pytest.approx(found.Delta)
        assert problem.zeta == pytest.approx(found.zeta)
        assert np.linalg.norm(problem.X, axis=-1).max() <= 1
    assert not math.isfinite(theory.layered(2, 0.5, 1.01 * found.zeta, 0.05, delta=0.05).bound)


def test_each_needle_is_the_only_arm_that_pays() -> None:
    found = claims.needles(claims.cell("UCB", "needle", 0.5, 256))
    assert len({p.best for p in found}) == claims.RUNS
    assert all((p.reward > 0).sum() == 1 and p.reward.max() == 0.5 for p in found)


def test_stored_claims_are_whole() -> None:
    found = stored("guide-claims")
    assert len(found) == len(claims.cells("full"))
    rows = claims.rows(found)
    assert len(rows) == 5 * len(found) and all(row["regret"] >= 0 for row in rows)
    assert set(claims.render(found, "full")) == {".csv"}


# --- sentences of the chapter that no number on its page stands for ---

LOW = [("fixed", z) for z in protocol.RATIOS["fixed"] if z <= 2]
FRESH = [("fresh", z) for z in protocol.RATIOS["fresh"]]
TABLES = [(name, -1.0) for name in (*problems.TABLES, "asirra")]


@pytest.fixture(scope="module")
def compared() -> dict[tuple[str, float, str], Any]:
    found = stored("guide") + stored("guide-asirra")
    names = ("problem", "ratio", "policy")
    return {tuple(c.config[n] for n in names): c for c in found}


def test_certified_lin_ucb_against_sup_lin_ucb_and_oful(compared):
    def mean(place: tuple[str, float], policy: str) -> float:
        return float(guide.reported(compared[(*place, policy)])[:, -1].mean())

    for place in FRESH + TABLES:
        ours = mean(place, "certified LinUCB")
        assert mean(place, "OFUL") < ours < mean(place, "SupLinUCB")
    for place in [*LOW, ("lower bound", -1.0)]:
        assert mean(place, "certified LinUCB") > mean(place, "SupLinUCB")
    for place in LOW:
        assert guide.lost(compared[(*place, "certified LinUCB")], 2) >= 0.5


def test_from_an_eighth_of_a_run_on_the_order_stays(compared):
    def course(place: tuple[str, float], policy: str, which: int) -> np.ndarray:
        return guide.reported(compared[(*place, policy)], which).mean(axis=0)

    for place in LOW:
        assert (course(place, "DS-OFUL", 3) < course(place, "OFUL", 2)).all()
    for policy in ("layered DS-OFUL", "SupLinUCB"):
        for place in [p for p in FRESH if p[1] <= 2]:
            assert (course(place, policy, 0) > course(place, "OFUL", 2)).all()
        for z in (1.0, 2.0, 4.0):
            place = ("separation", z)
            assert (course(place, policy, 0) < course(place, "OFUL", 2)).all()
