"""The verdict rule: fixed tolerances, Holm's correction, and one example of every word."""

from __future__ import annotations

import numpy as np
import pytest

from banditlib.paper import verdict
from banditlib.paper.verdict import Printed, holm, judge, mean_interval

RNG = np.random.default_rng(5)
BASE = 400 + 60 * RNG.standard_normal(64)


def word(**kw: object) -> str:
    return judge([Printed("cell", **kw)])[0].verdict  # type: ignore[arg-type]


def test_tolerances_are_the_ones_written_down() -> None:
    assert (verdict.ALPHA, verdict.FACTOR, verdict.ORDER, verdict.FLOOR) == (0.05, 1.5, 3.0, 0.01)


def test_holm_by_hand() -> None:
    # sorted .01 .02 .04: 3*.01, max(2*.02, .03), max(.04, .04)
    assert np.allclose(holm([0.04, 0.01, 0.02]), [0.04, 0.03, 0.04])
    assert np.allclose(holm([0.5, np.nan, 0.9]), [1.0, np.nan, 1.0], equal_nan=True)


def test_interval_by_hand() -> None:
    low, high = mean_interval([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5), rel=1e-6)


def test_every_word_can_be_reached() -> None:
    assert word(paper=405.4, replicates=BASE) == "reproduced"
    assert word(paper=1000.0, replicates=BASE) == "reproduced in kind"  # factor 3 of the reference
    assert word(paper=4000.0, replicates=BASE) == "not reproduced"
    assert word(paper=15.0, replicates=BASE, testable=False) == "cannot be tested"
    assert word(paper=15.0, replicates=BASE[:1]) == "cannot be tested"


def test_in_kind_is_the_side_of_the_reference_row() -> None:
    lower = BASE - 100 + RNG.standard_normal(64)
    assert word(paper=10.0, replicates=lower, reference=(400.0, BASE)) == "reproduced in kind"
    assert word(paper=900.0, replicates=lower, reference=(400.0, BASE)) == "not reproduced"
    noise = BASE + 50 * RNG.standard_normal(64)  # no clear side
    assert word(paper=10.0, replicates=noise, reference=(400.0, BASE)) == "not reproduced"


def test_a_wide_spread_alone_is_not_reproduction() -> None:
    wide = np.abs(RNG.standard_normal(64)) * 1000
    assert word(paper=1.0, replicates=wide, reference=(0.5, wide + 1)) == "not reproduced"


def test_zero_against_zero_and_floor() -> None:
    assert word(paper=0.0, replicates=np.zeros(8)) == "reproduced"
    few = np.array([0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert word(paper=0.0, replicates=few, floor=1.8) == "reproduced"
    assert word(paper=0.0, replicates=few) == "not reproduced"


def test_correction_is_over_the_whole_table() -> None:
    spread = float(np.std(BASE, ddof=1))
    doubtful = Printed("x", paper=float(np.mean(BASE)) + 2.3 * spread, replicates=BASE)
    alone = judge([doubtful])[0]
    among = judge([doubtful] + [Printed("y", paper=400.0, replicates=BASE)] * 20)[0]
    assert alone.p == among.p and alone.p_holm < 0.05 <= among.p_holm
    assert alone.difference == pytest.approx(2.3 / np.sqrt(1 + 1 / 64))


def test_times_have_no_p_value_and_lower_bounds_hold_upwards() -> None:
    ratios = np.array([0.50, 0.52, 0.51])
    judged = judge([Printed("t", paper=0.42, replicates=ratios, timed=True)])[0]
    assert judged.verdict == "reproduced" and np.isnan(judged.p)
    assert word(paper=1000.0, replicates=ratios, timed=True, at_least=True) == "not reproduced"
    assert word(paper=0.3, replicates=ratios, timed=True, at_least=True) == "reproduced"


def test_sentences_about_curves() -> None:
    low, high = np.array([10.0, 12.0, 11.0, 9.0]), np.array([15.0, 18.0, 15.0, 16.0])
    assert verdict.smaller(low, high).verdict == "reproduced"
    assert verdict.smaller(high, low).verdict == "not reproduced"
    assert verdict.smaller(low, low[::-1]).verdict == "not reproduced"  # a tie is not a win
    assert verdict.smaller(low[:1], high[:1]).verdict == "cannot be tested"
    assert verdict.smaller(low, high).value == pytest.approx(-5.5)


def test_constant_and_growing_leave_a_gap_between_them() -> None:
    total = np.full(8, 1000.0)
    assert verdict.constant(total, np.full(8, 99.0)).verdict == "reproduced"
    assert verdict.growing(total, np.full(8, 101.0)).verdict == "reproduced"
    unsure = np.tile([60.0, 140.0], 4)
    assert verdict.constant(total, unsure).verdict == "not reproduced"
    assert verdict.growing(total, unsure).verdict == "not reproduced"
    few = np.array([0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0])  # of three mistakes in all
    assert verdict.constant(few + 3, few).verdict == "reproduced"


def test_magnitude_is_a_factor_of_three() -> None:
    runs = np.array([1000.0, 1010.0, 990.0])
    assert verdict.magnitude(runs, 2900).verdict == "reproduced"
    assert verdict.magnitude(runs, 3100).verdict == "not reproduced"
    assert verdict.magnitude(np.zeros(3), 3100).verdict == "not reproduced"


def test_rank_by_hand() -> None:
    ours = np.arange(1.0, 20.0)  # 19 replicates
    assert verdict.rank_p(0.0, ours) == pytest.approx(2 * 1 / 20)
    assert verdict.rank_p(2.5, ours) == pytest.approx(2 * 3 / 20)
    assert verdict.rank_p(10.0, ours) == 1.0
    assert judge([Printed("cell", paper=0.0, replicates=ours)])[0].p_rank == pytest.approx(0.1)


def test_the_share_left_out_counts_the_printed_value_in() -> None:
    ours = np.arange(1.0, 20.0)
    assert verdict.left_out_p(0.0, ours) == 1.0
    assert verdict.left_out_p(1e9, ours) == pytest.approx(1 / 20)
    scores = np.abs(verdict.left_out(ours))
    assert verdict.left_out_p(-scores[0], ours) == pytest.approx((1 + 2) / 20)  # both ends
    far, near = judge(
        [Printed("far", paper=99.0, replicates=ours), Printed("near", paper=10.0, replicates=ours)]
    )
    assert far.p_left_out == pytest.approx(1 / 20) and near.p_left_out == 1.0
    assert np.isnan(verdict.left_out_p(1.0, ours[:2]))


def test_leaving_one_out_is_judging_it_by_the_others() -> None:
    values = np.column_stack([BASE[:12], np.zeros(12)])
    values[3, 1] = 5.0  # all others are zero
    found = verdict.left_out(values)
    for i in range(12):
        others = np.delete(BASE[:12], i)
        assert found[i, 0] == pytest.approx(judge([Printed("", BASE[i], others)])[0].difference)
    assert np.isinf(found[3, 1]) and (found[[0, 1, 2], 1] < 0).all()
