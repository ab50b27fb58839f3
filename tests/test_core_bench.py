"""The bench: what it measures, how it sums up, what it writes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import banditlib as bl
from banditlib.paper import bench


def test_alternate_compares_neighbouring_slices(monkeypatch):
    ticks = iter(np.arange(0.0, 1e6))
    monkeypatch.setattr(bench, "clock", lambda: next(ticks))  # every slice takes one second
    found = bench.alternate(lambda: 30.0, lambda: 10.0, seconds=0.0, least=7)
    assert found == {
        "ratio": 3.0, "p10": 3.0, "p90": 3.0, "contender": 30.0, "baseline": 10.0, "slices": 7,
    }  # fmt: skip


def test_plain_loops_are_the_algorithm():
    """The baselines do the work they claim: same arms as the engine on the same noise."""
    problem = bl.problems.synthetic(seed=0, dim=4, arms=10, gap=None)
    noise = np.random.default_rng(0).standard_normal(200)
    for Gamma in (0.0, 0.2):
        run = bl.simulate(
            problem, bl.DSOFUL(Gamma, 1.0, 1.0), rounds=200, trials=1, noise=noise[None],
            record=("arms",), progress=False,
        )  # fmt: skip
        for loop in (bench.plain_oful, bench.tight_oful):
            arms = loop(problem.X, problem.reward, noise, Gamma, 1.0, 1.0)
            np.testing.assert_array_equal(arms, run.arms[0, 0, 0])


def test_rows_not_measured_again_stay(tmp_path):
    path = tmp_path / "deep" / "bench.json"
    bench.write(path, {"rows": {"b": {"ratio": 2.0}}, "machine": "old", "scaling": 1})
    bench.write(path, {"rows": {"a": {"ratio": 3.0}}, "machine": "new"})
    found = json.loads(path.read_text())
    assert list(found["rows"]) == ["a", "b"]
    assert found["machine"] == "new" and found["scaling"] == 1


def test_absent_libraries_are_rows(monkeypatch):
    monkeypatch.setattr(bench, "LIBRARIES", {"no_such_library": lambda: ("x", 1.0), "json": broken})
    absent, failing = bench.libraries()
    assert absent == {"library": "no_such_library", "installed": False}
    assert failing["installed"] and "broken on purpose" in failing["error"]


def broken() -> tuple[str, float]:
    raise RuntimeError("broken on purpose")


def test_cost_reports_time_and_memory():
    found = bench.cost(arms=5, dim=2, lanes=3, rounds=20)
    assert found["us"] > 0 and found["mb"] > 0


@pytest.mark.slow
def test_rows_of_fixed_arms():
    for row in bench.ROWS:
        found = row.measure(1.0)
        assert found["p10"] <= found["ratio"] <= found["p90"]
        assert found["ratio"] > 0.3 * row.target  # a broken fast path, not a busy machine
