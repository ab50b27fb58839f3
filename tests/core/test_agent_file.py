"""Agents on disk: written whole, read with suspicion, shared by threads."""

from __future__ import annotations

import copy
import io
import json
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from attacks import SEED, record, tries

import banditlib as bl

SAVED = Path(__file__).parent / "saved_agents"
RNG = np.random.default_rng(5)
SETS, REWARDS = RNG.standard_normal((60, 4, 3)), RNG.standard_normal(60)


def play(agent, start, stop):
    shown = (lambda k: None) if agent.arms is not None else (lambda k: SETS[k])
    arms = []
    for k in range(start, stop):
        arms.append(agent.choose(shown(k)))
        agent.learn(float(REWARDS[k]))
    return arms


def saved(policy, rounds=30) -> dict[str, np.ndarray]:
    """The arrays of a saved agent."""
    agent, stream = policy.start(3), io.BytesIO()
    play(agent, 0, rounds)
    agent.save(stream)
    return dict(np.load(io.BytesIO(stream.getvalue())))


def reload(arrays: dict[str, np.ndarray], policy=None):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    stream.seek(0)
    return bl.load(stream, policy)


@pytest.mark.parametrize("name", ["SupLinUCB", "LSW", "UCB", "RobustLinear"])
def test_agents_of_format_1_still_continue(name):
    expected = json.loads((SAVED / "format-1.json").read_text())[name]
    assert play(bl.load(SAVED / f"format-1-{name}.npz"), 30, 60) == expected


@pytest.mark.parametrize(
    "policy",
    [
        bl.DSOFUL(np.float32(0.5), np.float64(1.0), np.int64(2)),
        bl.SupLinUCB(np.array([2.0, 1.0, 0.5, 0.5]), np.float64(1.0)),
        bl.SupLinUCB(lambda level: [2.0, 1.0, 0.5][level - 1], 1.0),  # stops after level 3
        bl.RobustLinear(np.float64(1.0), 1.0, pulls=np.int64(2)),
    ],
    ids=["numpy scalars", "array by level", "function that stops", "numpy count"],
)
def test_parameters_are_saved_by_value(policy, tmp_path):
    agent = policy.start(3, arms=SETS[0] if policy.fixed_arms else None)
    play(agent, 0, 30)
    agent.save(tmp_path / "a.npz")
    assert play(bl.load(tmp_path / "a.npz"), 30, 60) == play(agent, 30, 60)


def test_a_link_beside_the_file_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "a.npz.part").symlink_to(tmp_path / "precious")
    bl.OFUL(1, 1).start(3).save(tmp_path / "a.npz")
    assert (tmp_path / "precious").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npz", "a.npz.part", "precious"]


def test_threads_that_save_and_load_one_file(tmp_path):
    """A reader finds a whole agent whenever it looks, however many write."""
    path, stop, loads = tmp_path / "a.npz", threading.Event(), tries(40, 1000)
    agents = [bl.OFUL(1, 1).start(3), bl.OFUL(1, 1).start(3)]
    for agent in agents:
        play(agent, 0, 20)
    agents[0].save(path)

    def write(agent):
        while not stop.is_set():
            agent.save(path)

    threads = [threading.Thread(target=write, args=(agent,)) for agent in agents]
    for thread in threads:
        thread.start()
    try:
        assert [bl.load(path).round for _ in range(loads)] == [20] * loads
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_snapshot_is_never_torn():
    """Taken while another thread plays: each is the state after whole calls."""
    agent, stop, torn = bl.OFUL(1, 1).start(3), threading.Event(), 0

    def player():
        k = 0
        while not stop.is_set():
            agent.choose(SETS[k % 60])
            agent.learn(1.0)
            k += 1

    thread = threading.Thread(target=player)
    thread.start()
    try:
        for _ in range(tries(40, 400)):
            stream = io.BytesIO()
            agent.save(stream)
            found = np.load(io.BytesIO(stream.getvalue()))
            header = json.loads(found["header"].tobytes())
            torn += int(found["ridge_learnt"][0]) != header["round"] - header["waiting"]
    finally:
        stop.set()
        thread.join()
    assert torn == 0


def test_agents_can_be_copied():
    agent = bl.OFUL(1, 1).start(3)
    play(agent, 0, 20)
    assert play(copy.deepcopy(agent), 20, 40) == play(agent, 20, 40)


def header(**changes):
    def change(arrays):
        found = json.loads(arrays["header"].tobytes()) | changes
        return {"header": np.frombuffer(json.dumps(found).encode(), dtype=np.uint8)}

    return change


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda a: {"ridge_U": a["ridge_U"] * np.nan}, "NaN"),
        (lambda a: {"ridge_b": a["ridge_b"] * np.inf}, "NaN or infinity"),
        (lambda a: {"ridge_U": -a["ridge_U"]}, "lam"),
        (lambda a: {"ridge_inverse": -a["ridge_inverse"]}, "do not belong together"),
        (lambda a: {"ridge_U": a["ridge_U"] + np.triu(np.ones((3, 3)), 1)}, "skew"),
        (lambda a: {"ridge_U": a["ridge_U"][:, :2]}, "shape"),
        (lambda a: {"ridge_U": a["ridge_U"].astype("U8")}, "float64"),
        (lambda a: {"ridge_learnt": -a["ridge_learnt"]}, "negative"),
        (lambda a: {"x": a["x"][:1]}, "shape"),
        (header(lam=2.0), "lam"),
        (header(format=9), "format 9"),
        (header(package="other"), "another program"),
        (header(dim=4), "shape"),
        (header(dim="3"), "dim"),
        (header(round=-1), "round"),
        (header(waiting=1), "waiting"),
        (header(info=[1, 2]), "info"),
        (header(params={"Gamma": -1, "beta": 1, "lam": 1}), "parameters"),
    ],
)
def test_what_a_file_claims_is_checked(change, word):
    arrays = saved(bl.OFUL(1, 1))
    assert reload(arrays).round == 30
    with pytest.raises(ValueError, match=word):
        reload(arrays | change(arrays))


def test_a_policy_with_another_lam_is_refused():
    with pytest.raises(ValueError, match="lam"):
        reload(saved(bl.OFUL(1, 1)), bl.OFUL(1, 4))


@pytest.mark.attack
def test_damaged_files_are_refused_or_read_as_they_were(tmp_path):
    agent = bl.SupLinUCB(1.0, 1.0).start(3)
    play(agent, 0, 30)
    agent.save(tmp_path / "a.npz")
    content, path = (tmp_path / "a.npz").read_bytes(), tmp_path / "b.npz"
    expected, came_out = play(agent, 30, 60), Counter()
    for number in range(tries(200, 10_000)):
        rng = np.random.default_rng([SEED, number])
        bad = bytearray(content)
        bad[rng.integers(len(bad))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(bad[: rng.integers(len(bad))]) if number % 5 == 0 else bytes(bad))
        try:
            assert play(bl.load(path), 30, 60) == expected
            came_out["read as it was"] += 1
        except ValueError as error:
            assert str(error).startswith(("file: ", "policy: "))
            came_out["refused"] += 1
    record("damaged agents", **{"tried": came_out.total(), "believed": 0, **came_out})


@pytest.mark.slow
def test_a_decision_of_lsw_costs_no_more_than_its_history():
    rng, agent, times = np.random.default_rng(0), bl.LSW(1.0, 1.0, 0.1).start(8), []
    for _ in range(6):
        start = time.process_time()
        for _ in range(400):
            agent.choose(rng.standard_normal((10, 8)))
            agent.learn(rng.standard_normal())
        times.append(time.process_time() - start)
    assert times[-1] < 12 * times[0]  # a history eleven times as long
