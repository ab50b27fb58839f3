"""Golden decisions: every policy on every kind of problem, in runs that wake, refresh, change
level, skip and lock. Short runs, and those long enough for a refresh and for a lane that falls
asleep as an epoch ends, are quick tests; long runs of all are slow ones. If decisions change, the
number in ``ENGINE_NUMBERS`` must be raised; then ``python tests/core/test_golden.py`` writes the
new digests.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import banditlib as bl
from banditlib.engines import arms, engine_number
from banditlib.policies.by_name import BUILT_IN

FILE = Path(__file__).with_name("golden.json")
SHORT, LONG = 600, 4000
"""Rounds of the runs."""

POLICIES = {
    "DSOFUL": [bl.OFUL(1.0, 1.0), bl.DSOFUL(0.05, 1.0, 1.0), bl.DSOFUL(0.3, 3.0, 4.0)],
    "SupLinUCB": [bl.SupLinUCB(0.3, 1.0), bl.SupLinUCB(1.0, 2.0)],
    "LSW": [bl.LSW(1.0, 1.0, 0.05)],
    "UCB": [bl.UCB(2.0)],
    "LinearTS": [bl.LinearTS(1.0, 1.0), bl.LinearTS(0.3, 2.0)],
    "RobustLinear": [bl.RobustLinear(1.0, 1.0, pulls=3), bl.RobustLinear(1.0, 1.0, sigma=0.05)],
    "LayeredDSOFUL": [bl.LayeredDSOFUL(0.3, 1.0), bl.LayeredDSOFUL(1.0, 2.0)],
    "CertLinUCB": [bl.CertLinUCB(0.3, 1.0), bl.CertLinUCB(1.0, 2.0, -1.0)],
    "WeightedOFUL": [bl.WeightedOFUL(0.1, 1.0, 1.0), bl.WeightedOFUL(0.5, 0.3, 2.0)],
    "PhasedElimination": [bl.PhasedElimination(0.01, 0.3), bl.PhasedElimination(0.1)],
}


def problems() -> dict[str, list]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6, 4))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    mask = rng.random((40, 6)) < 0.8
    mask[:, 0] = True
    reward = X @ np.array([0.5, -0.5, 0.5, 0.5])
    two = [bl.problems.synthetic(seed=1, dim=4, arms=12, gap=None, instance=i) for i in range(2)]
    return {
        "arms": two,
        "pool": [bl.problems.Pool(X[0] + 0.3, X[1] - 0.3, sigma=0.2)],
        "contexts": [
            bl.problems.Contextual(X, reward, mask=mask, sigma=0.3),
            bl.problems.unit_vectors(dim=4, arms=5, sigma=0.3),
        ],
    }


CASES = [
    (name, kind)
    for name, policies in POLICIES.items()
    for kind in ("arms", "pool", "contexts")
    if kind == "arms" or not policies[0].fixed_arms
]


def digest(name: str, kind: str, rounds: int) -> str:
    """Of every arm and level of the runs of one policy on one kind of problem."""
    found = hashlib.sha256()
    for problem in problems()[kind]:
        run = bl.simulate(
            problem, POLICIES[name], rounds=rounds, trials=2, seed=7, record=("arms", "levels"),
            progress=False,
        )  # fmt: skip
        for array in (run.arms, run.levels, run.plays, run.learnt, run.first_skip):
            found.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return found.hexdigest()


def lengths(name: str, kind: str) -> tuple[int, ...]:
    """How many rounds a policy plays: few with LSW on changing sets, as it counts every point."""
    return (300,) if name == "LSW" and kind != "arms" else (SHORT, LONG)


def test_no_policy_is_left_out():
    assert set(POLICIES) == set(BUILT_IN)


def is_slow(name: str, kind: str, rounds: int) -> bool:
    """Whether a run takes seconds and a shorter one stands for it."""
    return rounds == LONG and (name, kind) not in (("DSOFUL", "arms"), ("SupLinUCB", "arms"))


@pytest.mark.parametrize(
    ("name", "kind", "rounds"),
    [
        pytest.param(*case, rounds, marks=pytest.mark.slow if is_slow(*case, rounds) else ())
        for case in CASES
        for rounds in lengths(*case)
    ],
)
def test_decisions_keep_their_number(name, kind, rounds):
    number, expected = json.loads(FILE.read_text())[f"{name} {kind}"]
    assert engine_number(name, kind) == number, "write the digests anew: see the top of this file"
    assert digest(name, kind, rounds) == expected[str(rounds)], (
        f"decisions of {name} on {kind} changed: raise its number in banditlib.engines, then "
        "write the digests anew (see the top of this file)"
    )


def test_the_runs_meet_what_they_should():
    """On fixed arms short runs skip, lock and enter every level; a long one is refreshed."""
    kw = dict(trials=2, seed=7, progress=False)
    short = bl.simulate(problems()["arms"], POLICIES["DSOFUL"], rounds=SHORT, **kw)
    assert (short.first_skip > 0).any() and short.locked(100).any()
    levels = bl.simulate(problems()["arms"], POLICIES["SupLinUCB"], rounds=SHORT, **kw)
    assert (levels.learnt[..., -1, :] > 0).any(axis=(0, 1, 2)).all()
    assert bl.simulate(problems()["arms"], POLICIES["DSOFUL"], rounds=LONG, **kw).drift > 0


def never(batch: arms.Batch) -> None:
    """Who rests is never woken."""


def late(batch: arms.Batch) -> None:
    """Who falls asleep as an epoch ends sleeps through the next, while all others are awake."""
    if len(batch.live) == len(batch.lane_problem):
        batch._compact()
    else:
        wake(batch)


wake = arms.Batch._wake


@pytest.mark.parametrize("fault", [never, late])
def test_lanes_rest_and_wake_in_the_long_run_of_sup_lin_ucb(fault, monkeypatch):
    """A fault in who wakes, and when, changes its digest."""
    woken: list[int] = []

    def faulty(batch: arms.Batch) -> None:
        if not hasattr(batch, "live"):  # at the start
            return wake(batch)
        woken.append(len(batch.lane_problem) - len(batch.live))
        fault(batch)

    monkeypatch.setattr(arms.Batch, "_wake", faulty)
    _, expected = json.loads(FILE.read_text())["SupLinUCB arms"]
    assert digest("SupLinUCB", "arms", LONG) != expected[str(LONG)]
    assert max(woken) > 0  # some were at rest


if __name__ == "__main__":
    table = {
        f"{name} {kind}": [
            engine_number(name, kind),
            {rounds: digest(name, kind, rounds) for rounds in lengths(name, kind)},
        ]
        for name, kind in CASES
    }
    FILE.write_text(json.dumps(table, indent=1) + "\n")
    sys.exit(0)
