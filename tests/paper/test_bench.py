"""The bench: what it measures, how it sums up, what it writes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import banditlib as bl
from banditlib.paper import features, published
from banditlib.paper.bench import arms, command, contexts, growth, libraries, plain_loops, pools
from banditlib.paper.bench import measure as measure_module


def test_alternate_compares_neighbouring_slices(monkeypatch):
    ticks = iter(np.arange(0.0, 1e6))
    monkeypatch.setattr(measure_module, "clock", lambda: next(ticks))  # a second a slice
    found = measure_module.alternate(lambda: 30.0, lambda: 10.0, seconds=0.0, least=7)
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
        for loop in (arms.plain_oful, arms.tight_oful):
            played = loop(problem.X, problem.reward, noise, Gamma, 1.0, 1.0)
            np.testing.assert_array_equal(played, run.arms[0, 0, 0])


def test_the_loop_on_changing_sets_is_the_algorithm():
    problem = contexts.drawn(dim=4, arms=5, rounds=200)
    noise = np.random.default_rng(0).standard_normal(200)
    run = bl.simulate(
        problem, bl.OFUL(3.0, 1.0), 200, 1, noise=noise[None], record=("arms",), progress=False
    )
    np.testing.assert_array_equal(contexts.plain_lane(problem, noise, 3.0), run.arms[0, 0, 0])


def test_a_live_agent_and_lanes_are_rows():
    found = contexts.many_lanes(0.0, dim=3, arms=4, betas=2, trials=2, rounds=20)
    assert found["slices"] == 5 and found["p10"] <= found["ratio"] <= found["p90"]
    assert libraries.live_agent()._replace(slice=3).work() == 3.0


def test_a_row_that_needs_an_absent_library_is_passed_over(tmp_path, monkeypatch, capsys):
    def absent(seconds):
        raise ModuleNotFoundError("No module named 'x'", name="x")

    rows = [measure_module.Row("a", "needs x", "rounds", 1.0, absent)]
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setattr(command, "ROWS", rows)
    out = tmp_path / "bench.json"
    assert command.main(["--out", str(out), "--no-scaling", "--no-libraries"]) == 0
    assert "not measured, x is not installed" in capsys.readouterr().out


def test_rows_not_measured_again_stay(tmp_path):
    path = tmp_path / "deep" / "bench.json"
    command.write(path, {"rows": {"b": {"ratio": 2.0}}, "machine": "old", "scaling": 1})
    command.write(path, {"rows": {"a": {"ratio": 3.0}}, "machine": "new"})
    found = json.loads(path.read_text())
    assert list(found["rows"]) == ["a", "b"]
    assert found["machine"] == "new" and found["scaling"] == 1


def test_an_interrupted_bench_keeps_its_rows_and_goes_on(tmp_path, monkeypatch, capsys):
    measured = []

    def row(key):
        def measure(seconds):
            if key == "b" and measured.count("b") == 0:
                measured.append(key)
                raise KeyboardInterrupt
            measured.append(key)
            return {"ratio": 1.0, "p10": 1.0, "p90": 1.0}

        return measure_module.Row(key, f"row {key}", "rounds", 1.0, measure)

    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setattr(command, "ROWS", [row(key) for key in "abc"])
    out = tmp_path / "bench.json"
    words = ["--out", str(out), "--no-scaling", "--no-libraries"]
    with pytest.raises(KeyboardInterrupt):
        command.main(words)
    assert list(json.loads(out.read_text())["rows"]) == ["a"]
    assert command.main(words) == 0
    assert measured == ["a", "b", "b", "c"] and "Going on with row b" in capsys.readouterr().out
    assert set(json.loads(out.read_text())) == {"rows", "machine"}
    command.main(words)
    assert measured[-3:] == ["a", "b", "c"]  # a finished run is measured anew


def test_absent_libraries_are_rows(monkeypatch):
    monkeypatch.setattr(libraries, "LIBRARIES", {"no_such_library": broken, "json": broken})
    absent, failing = libraries.libraries(0.0)
    assert absent == {"library": "no_such_library", "installed": False}
    assert failing["installed"] and "broken on purpose" in failing["error"]


def broken() -> libraries.Player:
    raise RuntimeError("broken on purpose")


def test_speeds_and_growth_are_written_beside_the_rows(tmp_path, monkeypatch, capsys):
    ticks = iter(np.arange(0.0, 1e6))
    monkeypatch.setattr(measure_module, "clock", lambda: next(ticks))  # a second a slice
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setattr(command, "ROWS", [])
    monkeypatch.setattr(command, "scaling", lambda: {"lanes": []})
    monkeypatch.setattr(libraries, "_lanes", lambda: 40.0)
    player = libraries.Player("one by one", lambda: None, 5)
    monkeypatch.setattr(libraries, "live_agent", lambda: player)
    monkeypatch.setattr(libraries, "LIBRARIES", {"json": lambda: player})
    out = tmp_path / "bench.json"
    assert command.main(["--out", str(out), "--seconds", "0"]) == 0
    found = json.loads(out.read_text())
    assert [row["rate"] for row in found["ours"]] == [40.0, 5.0]
    (other,) = found["libraries"]
    assert other["library"] == "json" and other["policy"] == "one by one" and other["installed"]
    assert other["rate"] == other["contender"] == 5.0 and other["ratio"] == 1.0
    assert found["scaling"] == {"lanes": []} and "rate=40" in capsys.readouterr().out


def test_cost_reports_time_and_memory():
    found = growth.cost(arms=5, dim=2, lanes=3, rounds=20)
    assert found["us"] > 0 and found["mb"] > 0


def test_without_features_pools_are_measured_on_two_clusters(monkeypatch):
    def absent(name):
        raise features.FeaturesError("no features here")

    monkeypatch.setattr(features, "load", absent)
    assert pools.pool().label == "two clusters" and pools.pool().dim == 512


def test_rows_of_pools_say_what_they_timed(monkeypatch):
    problem = pools.two_clusters(dim=8, each=30)
    monkeypatch.setattr(pools, "pool", lambda: problem)
    blocks = pools.gram_blocks(0.0)
    assert blocks["slices"] == 5 and blocks["note"] == "two clusters; blocks of 96"
    policy = bl.DSOFUL(0.3, 1.0, 1.0)
    found = pools.whole_run(policy, 0.0, rounds=4000)
    run = bl.simulate(problem, policy, 4000, 1, progress=False)
    assert found["learnt"] == run.selections[0, 0, 0, -1] < 4000
    assert found["p10"] <= found["ratio"] <= found["p90"]
    assert found["ratio"] == pytest.approx(found["direct_seconds_extrapolated"] / found["seconds"])


def test_the_row_of_levels_says_what_it_timed(monkeypatch):
    problem = pools.two_clusters(dim=8, each=30)
    monkeypatch.setattr(pools, "pool", lambda: problem)
    policy = bl.SupLinUCB(0.3, 1.0)
    found = pools.whole_run_by_levels(policy, 0.0, rounds=4000)
    run = bl.simulate(problem, policy, 4000, 1, progress=False)
    assert found["learnt"] == run.selections[0, 0, 0, -1] < 4000
    assert found["p10"] <= found["ratio"] <= found["p90"]
    assert found["ratio"] == pytest.approx(found["direct_seconds_extrapolated"] / found["seconds"])


def test_every_row_of_table_1_is_timed_and_listed(tmp_path, monkeypatch):
    measure = plain_loops.measure
    monkeypatch.setattr(plain_loops, "measure", lambda repeats: measure(repeats, rounds=30))
    published.main([str(tmp_path)])
    out = tmp_path / "times.json"
    assert plain_loops.main(["--out", str(out), "--repeats", "2"]) == 0
    found = json.loads(out.read_text())
    assert found["rounds"] == 30 and set(found["loop"]) == set(found["engine"])
    assert {len(times) for times in found["loop"].values()} == {2}
    assert "times.json" in published.read_manifest(tmp_path).entries


@pytest.mark.slow
def test_rows_of_lanes():
    for row in [*arms.ROWS, *contexts.ROWS[:2]]:
        found = row.measure(1.0)
        assert found["p10"] <= found["ratio"] <= found["p90"]
        assert found["ratio"] > 0.3 * row.target  # a broken fast path, not a busy machine
