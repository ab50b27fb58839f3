"""The phase map: instances with an exact gap, cells independent of their batch, summaries."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from banditlib.paper.experiments import stored
from banditlib.paper.experiments.phase_map import answer
from banditlib.paper.experiments.phase_map import cells as pm
from banditlib.paper.experiments.phase_map import figure as pf
from banditlib.paper.store import Cell, Packed


@pytest.mark.parametrize("kind", [*pm.KINDS, pm.WORST])
@pytest.mark.parametrize(("d", "Delta", "ratio"), [(3, 0.05, 16.0), (8, 0.2, 0.0), (16, 0.5, 2.0)])
def test_instance_has_the_gap_and_misspecification_of_its_axes(kind, d, Delta, ratio):
    problem = pm.instance(1, d, Delta, pm.zeta_of(ratio, d, Delta), kind)
    assert math.isclose(problem.gap, Delta, rel_tol=1e-9)
    assert math.isclose(problem.zeta * math.sqrt(d) / Delta, ratio, rel_tol=1e-9, abs_tol=1e-12)
    assert np.allclose(np.linalg.norm(problem.X, axis=1), 1)
    eta = problem.reward - problem.X @ problem.theta
    assert np.allclose(np.abs(eta), problem.zeta)


def test_kinds_share_vectors_and_differ_in_signs():
    random, hostile = (pm.instance(0, 8, 0.2, 0.1, kind) for kind in pm.KINDS)
    others = [np.arange(p.arms) != p.best for p in (random, hostile)]
    assert np.array_equal(random.X[others[0]], hostile.X[others[1]])
    assert not np.array_equal(random.reward, hostile.reward)


def test_adversarial_signs_are_the_worst_along_v():
    p = pm.instance(2, 6, 0.2, 0.05, "adversarial")
    rest = np.arange(p.arms) != p.best
    v = p.X[p.best] * (np.arange(6) > 0)
    h = p.X[rest] @ np.linalg.solve(p.X[rest].T @ p.X[rest], v)
    s = (p.reward - p.X @ p.theta)[rest] / 0.05
    assert math.isclose(h @ s, -np.abs(h).sum(), rel_tol=1e-9)


def test_the_worst_signs_are_worse():
    def bias(kind: str, number: int, d: int) -> float:
        p = pm.instance(number, d, 0.2, 0.05, kind)
        rest = np.arange(p.arms) != p.best
        h = p.X[rest] @ np.linalg.solve(p.X[rest].T @ p.X[rest], p.X[p.best])
        return h @ (p.reward - p.X @ p.theta)[rest] / 0.05

    for d in pm.WORST_DIMS:
        worst, other = (
            np.mean([bias(kind, i, d) for i in range(10)]) for kind in (pm.WORST, "adversarial")
        )
        assert worst < 1.1 * other < 0


def test_unknown_kind_is_named():
    with pytest.raises(ValueError, match="kind"):
        pm.instance(0, 4, 0.2, 0.1, "friendly")


def _small() -> list[dict]:
    marks = (100, 200, 360, 400)
    return [
        pm.cell(4, 0.2, ratio, "adversarial", name, 4, 2, marks)
        for ratio in (0.0, 2.0)
        for name in (*pm.POLICIES, "UCB")
    ]


def test_a_cell_does_not_depend_on_its_batch():
    configs = _small()
    together = pm.run(configs, "numpy")
    for config, arrays in zip(configs, together, strict=True):
        alone = pm.run([config], "numpy")[0]
        assert all(np.array_equal(alone[name], arrays[name]) for name in arrays)


def test_summary_and_explorer_read_thinned_cells():
    configs = _small()
    whole = [Cell(c, a) for c, a in zip(configs, pm.run(configs, "numpy"), strict=True)]
    thin = [Packed(c.config, pm.thin(c), c.checksum, {}) for c in whole]
    rows = pm.rows(thin)
    assert rows == pm.rows(whole)
    for row, cell in zip(rows, whole, strict=True):
        assert row["low"] <= row["regret"] <= row["high"] and 0 <= row["locked"] <= 1
        assert cell.arrays["plays"][..., -1, :].sum(axis=-1).min() == 400
    data = json.loads(json.dumps(pm.explorer(thin, {4: (0.1, 12.0)})))
    assert data["dims"] == [4] and len(data["cells"]) == len(configs)
    figure = pf.draw_map(rows)
    assert len(figure.axes) == 9


def test_every_scale_has_distinct_cells_and_a_grid_of_twelve_ratios():
    for scale in ("smoke", "paper", "full"):
        cells = pm.cells(scale)
        assert len({json.dumps(c, sort_keys=True) for c in cells}) == len(cells)
    full = pm.cells("full")
    assert len({c["ratio"] for c in full}) >= 12 and len({c["d"] for c in full}) >= 8
    map_ = [c for c in full if c["policy"] in pm.POLICIES and c["kind"] in pm.KINDS]
    map_ = [c for c in map_ if c["arms"] == pm.ARMS]
    assert all(c["marks"][-1] >= 20_000 and c["instances"] >= 32 for c in map_)
    assert all(c["trials"] >= 8 for c in map_)
    assert all(c["marks"][-1] <= c["arms"] for c in full if c["arms"] != pm.ARMS)


def test_crossing_interpolates_in_the_logarithm():
    rows = [{"ratio": r, "locked": v} for r, v in ((0.0, 0.0), (1.0, 0.25), (4.0, 0.75))]
    assert math.isclose(pf.crossing(rows), 2.0)
    assert math.isnan(pf.crossing(rows, level=0.9))


def test_lines_on_fixed_arms_are_the_stored_regrets():
    found = stored("phase-map")
    at = {
        (row["policy"], row["ratio"]): row["regret"]
        for row in pm.rows(found, pm.ARMS)
        if (row["d"], row["Delta"], row["kind"]) == (pm.DIM, pm.DELTA, pm.WORST)
    }
    lines = answer.fixed_lines(found, pm.DIM, pm.WORST)
    assert [line.policy for line in lines] == [*pm.SHOWN]
    for line in lines:
        assert line.regret == tuple(at[line.policy, q] for q in line.ratios)
        assert line.ucb == tuple(at["UCB", q] for q in line.ratios) and len(set(line.calm)) == 1


def test_words_for_a_regret():
    assert answer.verdict(1.4, 1.0, 0.5) == "harmless"
    assert answer.verdict(2.0, 1.0, 3.0) == "costly"
    assert answer.verdict(4.0, 1.0, 3.0) == "fatal"
    line = answer.Line("OFUL", (1.0, 2.0, 4.0), (4.0, 1.0, 9.0), (1.0,) * 3, (3.0,) * 3)
    assert line.words == ["fatal", "harmless", "fatal"]
    assert line.onset("fatal") == 4.0 and line.onset("costly") == math.inf
    figure = answer.draw_answer([("one", [line]), ("two", [line])], 0.1, [2.0, math.inf])
    assert len(figure.axes) == 2
