"""Every public name, called with thousands of bad arguments: each refused by the argument's name.

A call is a valid one with one or two arguments replaced. It may succeed, where the value happens to
be legal; otherwise it must end, soon, in a ValueError or TypeError that names a replaced argument.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import math
import re
import signal
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attacks import SEED, record, tries
from cases import ARGUMENTS

import banditlib as bl
from banditlib import problems, theory
from banditlib.paper import cli, features

PATIENCE = 60
"""Seconds after which a call counts as hanging, on a machine that is busy with others."""

X = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
SETS = np.stack([X[:3], X[1:]])
PROBLEM = problems.synthetic(seed=0, dim=3, arms=5, gap=None)
POLICY = bl.OFUL(1.0, 1.0)
BETA = theory.SupBeta(4)
UNKNOWN = theory.unknown_gap(4, 0.2)
FEATURES = features.from_arrays(X, -X)
LOG = {"contexts": SETS, "arm": [0, 1], "reward": [0.0, 1.0]}

# The arguments of thm:main and thm:main-sup.
SHARED = {"d": 4, "Delta": 0.2, "R": 1.0, "L": 1.0, "B": 1.0, "delta": 0.01}


def drawn(rng: np.random.Generator, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((len(k), 3, 2)), rng.random((len(k), 3))


def load(file: Any, policy: Any) -> Any:
    stream = io.BytesIO()
    POLICY.start(3).save(stream)
    stream.seek(0)
    return bl.load(stream if file is None else file, policy)


def learn(reward: Any) -> None:
    agent = POLICY.start(4)
    agent.choose(X)
    agent.learn(reward)


TARGETS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    # policies and agents
    **{name: (getattr(bl, name), good) for name, good in ARGUMENTS.items()},
    "grid": (
        lambda policy, beta: bl.grid(policy, beta=beta, lam=1.0),
        {"policy": bl.OFUL, "beta": [1.0]},
    ),
    "Agent": (bl.Agent, {"policy": POLICY, "dim": 4, "arms": None, "seed": None}),
    "start": (POLICY.start, {"dim": 4, "arms": None}),
    "choose": (lambda contexts: POLICY.start(4).choose(contexts), {"contexts": X}),
    "learn": (learn, {"reward": 1.0}),
    "load": (load, {"file": None, "policy": None}),
    # problems
    "FixedArms": (
        problems.FixedArms,
        {"X": X, "reward": np.ones(4), "sigma": 1.0, "theta": None, "instance": 0},
    ),
    "Pool": (problems.Pool, {"good": X, "bad": X, "sigma": 0.0, "instance": 0, "pays": None}),
    "Contextual": (
        problems.Contextual,
        {
            "X": SETS, "reward": np.ones((2, 3)), "mask": None, "theta": None, "sigma": 1.0,
            "order": None, "instance": 0, "label": "x",
        },
    ),
    "sampled": (
        problems.Contextual.sampled,
        {
            "sampler": drawn, "dim": 2, "arms": 3, "theta": None, "zeta": None, "gap": None,
            "sigma": 1.0, "shared": False, "instance": 0, "label": "x",
        },
    ),
    "cycle": (
        problems.cycle,
        {"sets": [X, X[:2]], "rewards": [np.ones(4), np.ones(2)], "repeats": None, "theta": None},
    ),
    "contexts": (problems.Pool(X, -X).contexts, {"seed": 0, "trial": 0, "rounds": 3}),
    "drawn contexts": (
        problems.unit_vectors(3, 4).contexts,
        {"seed": 0, "trial": 0, "rounds": 3},
    ),
    "unit_vectors": (
        problems.unit_vectors,
        {
            "dim": 3, "arms": 4, "zeta": 0.0, "misspecification": "two-point", "gap": 0.0,
            "theta": None, "sigma": 1.0, "seed": 0, "instance": 0, "shared": False, "attempts": 9,
        },
    ),
    "classification": (
        problems.classification,
        {
            "features": X, "labels": [0, 1, 0, 1], "unit": True, "intercept": False, "sigma": 0.0,
            "shared": False, "instance": 0,
        },
    ),
    "synthetic": (
        problems.synthetic,
        {
            "seed": 0, "dim": 2, "arms": 3, "zeta": 0.1, "gap": None, "sigma": 1.0, "instance": 0,
            "misspecification": "two-point", "attempts": 3,
        },
    ),
    "nearly_orthogonal": (
        problems.nearly_orthogonal,
        {"dim": 9, "arms": 4, "eps": None, "seed": 0, "attempts": 9},
    ),
    "lower_bound": (
        problems.lower_bound,
        {"dim": 9, "arms": 4, "Delta": 0.2, "i": 0, "j": 1, "eps": None, "seed": 0, "X": None},
    ),
    "lower_bound_family": (problems.lower_bound_family, {"X": X, "Delta": 0.2}),
    # runs and what is made of data
    "simulate": (
        bl.simulate,
        {
            "problems": PROBLEM, "policies": POLICY, "rounds": 3, "trials": 1, "seed": 0,
            "noise": None, "checkpoints": 2, "record": (), "backend": "numpy", "dtype": "float64",
        },
    ),
    "diagnose": (
        bl.diagnose,
        {"X": X, "rewards": np.arange(4.0), "mask": None, "R": 1.0, "delta": 0.1},
    ),
    "Log": (bl.Log, {**LOG, "propensity": None, "mask": None}),
    "replay": (bl.replay, {"log": LOG, "policies": POLICY, "seed": 0}),
    # features
    "from_arrays": (
        features.from_arrays,
        {"good": X, "bad": X, "good_ids": None, "bad_ids": None, "meta": None},
    ),
    "kept": (
        lambda zeta, rule: features.kept(FEATURES, zeta, rule),
        {"zeta": 0.1, "rule": "two-sided"},
    ),
    "features.find": (features.find, {"preprocess": "standard"}),
    # theory
    "potential_bound": (theory.potential_bound, {"n": 10, "d": 4, "L": 1.0, "lam": 1.0}),
    "potential_bound_he": (theory.potential_bound_he, {"n": 10, "d": 4, "L": 1.0, "lam": 1.0}),
    "selections": (theory.selections, {"d": 4, "Gamma": 0.1, "L": 1.0, "B": 1.0}),
    "selections_sharp": (
        theory.selections_sharp,
        {"d": 4, "Gamma": 0.1, "L": 1.0, "B": 1.0, "simple": False},
    ),
    "selections_root": (theory.selections_root, {"d": 4, "Gamma": 0.1, "L": 1.0, "B": 1.0}),
    "radius": (
        theory.radius,
        {"n": 9, "d": 4, "R": 1.0, "L": 1.0, "B": 1.0, "delta": 0.01, "zeta": 0.0},
    ),
    "radius_tight": (
        theory.radius_tight,
        {"n": 9, "d": 4, "R": 1.0, "L": 1.0, "B": 1.0, "delta": 0.01, "zeta": 0.0},
    ),
    "Known": (
        theory.Known,
        {
            "d": 4, "Delta": 0.2, "R": 1.0, "log_L": 0.0, "log_B": 0.0, "log_inv_delta": 4.6,
            "repaired": False,
        },
    ),
    "known_gap": (theory.known_gap, {**SHARED, "repaired": False}),
    "skip_regret": (theory.skip_regret, {"Gamma": 0.1, "beta": 1.0, "zeta": 0.0}),
    "largest_Gamma_tight": (theory.largest_Gamma_tight, {**SHARED, "zeta": 0.0}),
    "zeta_max_tight": (theory.zeta_max_tight, SHARED),
    "SupBeta": (
        theory.SupBeta,
        {"d": 4, "R": 1.0, "L": 1.0, "B": 1.0, "delta": 0.01, "repaired": True},
    ),
    "beta": (BETA, {"l": 3}),
    "iota1": (BETA.iota1, {"l": 3}),
    "iota2": (BETA.iota2, {"l": 3}),
    "level": (theory.level, {"beta": BETA, "Delta": 0.2, "base": 2}),
    "Unknown": (theory.Unknown, {"radius": BETA, "Delta": 0.2, "base": 2}),
    "unknown_gap": (theory.unknown_gap, {**SHARED, "repaired": False, "base": 2}),
    "W": (UNKNOWN.W, {"l": 3, "zeta": 0.1}),
    "Unknown.selections": (UNKNOWN.selections, {"l": 3, "c": 16.0}),
    "bound": (UNKNOWN.bound, {"c": 16.0}),
    "Layered": (theory.Layered, {"radius": BETA, "Delta": 0.2, "zeta": 0.0}),
    "layered": (theory.layered, {**SHARED, "zeta": 0.0}),
    "lower_eps": (theory.lower_eps, {"d": 4, "arms": 9, "repaired": False}),
    "lower_zeta": (theory.lower_zeta, {"d": 4, "Delta": 0.2, "arms": 9, "repaired": False}),
    "lower_zeta_scaled": (
        getattr(theory, "lower_zeta_scaled", theory.lower_zeta),
        {"d": 4, "Delta": 0.2, "arms": 9},
    ),
    "lower_first_printed": (theory.lower_first_printed, {"K": 9, "Delta": 0.2}),
    "lower_first_repaired": (theory.lower_first_repaired, {"K": 9, "Delta": 0.2, "arms": 9}),
    "lower_first_limit": (theory.lower_first_limit, {"Delta": 0.2, "arms": 9, "noisy": True}),
    "lower_second_printed": (
        theory.lower_second_printed,
        {"K": 9, "Delta": 0.2, "arms": 9, "C": 1.0, "alpha": 0.5},
    ),
    "lower_second_repaired": (
        theory.lower_second_repaired,
        {"K": 9, "Delta": 0.2, "arms": 9, "C": 1.0, "alpha": 0.5},
    ),
}  # fmt: skip

# Names without arguments of their own, or called under another name above.
NOT_CALLED = {"Policy", "Run", "View", "problems", "theory", "Rounds", "Sampled", "digits"}
# Arguments that may be long: a legal value would take long, not fail.
LASTING = {"rounds", "attempts", "pulls"}


def test_every_public_name_is_called():
    public = set(bl.__all__) | set(theory.__all__)
    public |= {
        name
        for name, value in vars(problems).items()
        if not name.startswith("_")
        and callable(value)
        and value.__module__.startswith("banditlib.problems")
        and name in getattr(problems, "__all__", (name,))
    }
    assert public - set(TARGETS) - NOT_CALLED - {"generator"} == set()


# ---- what is thrown

FOREIGN: list[Callable[[], Any]] = [  # never a number, though numpy would make some of it one
    lambda: "1",
    lambda: "0.5",
    lambda: b"1",
    lambda: np.array(["1", "2"]),
    lambda: np.array([["1", "2", "3", "4"]] * 4),
    lambda: np.array(["2026-01-01"], dtype="datetime64[D]"),
    lambda: np.zeros((4, 4), dtype="datetime64[D]"),
    lambda: np.zeros((4, 4), dtype="timedelta64[s]"),
    lambda: np.datetime64("2026-01-01"),
    lambda: np.timedelta64(3, "s"),
    lambda: datetime.date(2026, 1, 1),
    lambda: np.ma.masked_array(X, mask=np.eye(4, dtype=bool)),
    lambda: [np.ma.masked_array(row, mask=[True, False, False, False]) for row in X],
    lambda: np.ma.masked_array([1.0, 2.0, 3.0, 4.0], mask=[0, 1, 0, 0]),
    lambda: np.ma.masked,
    lambda: 1j,
    lambda: X * 1j,
    lambda: object(),
    lambda: {"a": 1},
    lambda: {1, 2},
    lambda: Ellipsis,
    lambda: np.array([None, 1.0]),
    lambda: np.array([[object()]]),
    lambda: [[1.0], [1.0, 2.0]],
    lambda: [["a"]],
    lambda: np.zeros(3, dtype=[("a", float)]),
    lambda: types.SimpleNamespace(shape=(4, 4)),
    lambda: (x for x in [1.0]),
    lambda: Path("x"),
]
STRANGE: list[Callable[[], Any]] = [
    lambda: None,
    lambda: True,
    lambda: False,
    lambda: np.True_,
    lambda: -1,
    lambda: 0,
    lambda: 1,
    lambda: 3,
    lambda: -(2**40),
    lambda: 2**63,
    lambda: 10**30,
    lambda: -(10**400),
    lambda: 10**400,
    lambda: math.nan,
    lambda: math.inf,
    lambda: -math.inf,
    lambda: -0.0,
    lambda: -0.5,
    lambda: 0.5,
    lambda: 1e-300,
    lambda: 5e-324,
    lambda: 1e160,
    lambda: 1e308,
    lambda: np.float32(0.5),
    lambda: np.float16(np.inf),
    lambda: np.int8(-3),
    lambda: np.uint64(2**63),
    lambda: np.longdouble("1e4000"),
    lambda: np.nextafter(1.0, 2.0),
    lambda: Decimal("0.5"),
    lambda: Fraction(1, 2),
    lambda: "",
    lambda: "all",
    lambda: "\0",
    lambda: [],
    lambda: (),
    lambda: [1],
    lambda: [1.0, math.nan],
    lambda: [[]],
    lambda: range(3),
    lambda: slice(3),
    lambda: np.zeros(0),
    lambda: np.zeros((0, 4)),
    lambda: np.zeros((4, 0)),
    lambda: np.zeros((2, 2)),
    lambda: np.zeros((2, 3, 4, 5)),
    lambda: np.full((4, 4), np.nan),
    lambda: np.full((4, 4), -np.inf),
    lambda: np.full((4, 4), 1e308),
    lambda: np.ones((4, 4), dtype=bool),
    lambda: np.ones((4, 4), dtype=np.int8),
    lambda: np.array(0.5),
    lambda: np.array([0.5]),
    lambda: np.float64,
    lambda: len,
    lambda: lambda *a, **k: None,
    lambda: POLICY,
    lambda: PROBLEM,
    lambda: [POLICY, 3],
    lambda: 10**12,
    lambda: 10**15,
]


class Hang(BaseException):
    """A call that did not end."""


@contextlib.contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Raise `Hang` after some seconds (in the main thread, where signals can interrupt)."""

    def stop(number: int, frame: object) -> None:
        raise Hang

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# Arguments for which text, a function or a foreign object is no mistake.
FREE = {
    ("load", "file"),
    ("features.find", "preprocess"),
    ("grid", "beta"),
    ("grid", "policy"),
    ("SupLinUCB", "beta"),
    ("level", "beta"),
    ("classification", "labels"),
    ("Contextual", "label"),
    ("sampled", "label"),
    ("sampled", "sampler"),
    ("unit_vectors", "misspecification"),
    ("from_arrays", "meta"),
    ("simulate", "record"),
}


def attack(rng: np.random.Generator) -> str:
    """One call with bad arguments; returns what came of it."""
    target = list(TARGETS)[rng.integers(len(TARGETS))]
    function, arguments = TARGETS[target]
    count = 1 + int(rng.random() < 0.2 and len(arguments) > 1)
    names = rng.choice(sorted(arguments), size=count, replace=False).tolist()
    foreign = False
    thrown = {}
    for name in names:
        pool = FOREIGN if rng.random() < 0.4 else STRANGE
        value = pool[rng.integers(len(pool))]()
        if name in LASTING and isinstance(value, (int, float, np.integer)) and value > 1000:
            value = 2**63
        foreign |= pool is FOREIGN and (target, name) not in FREE
        thrown[name] = value
    told = ", ".join(f"{name}={value!r:.100}" for name, value in thrown.items())
    try:
        with patience(PATIENCE), np.errstate(all="ignore"):
            function(**{**arguments, **thrown})
    except (ValueError, TypeError) as error:
        named = any(re.search(rf"(^|\W){re.escape(name)}\b", str(error)) for name in names)
        assert named, f"{target}({told}): {error!r} names no argument"
        return "refused by name"
    except OSError:
        assert target == "load" and "file" in names, told
        return "refused by name"
    except Hang:
        pytest.fail(f"{target}({told}) did not end in {PATIENCE} s")
    except (MemoryError, Exception) as error:
        pytest.fail(f"{target}({told}): {error!r}")
    assert not foreign, f"{target}({told}) was accepted"
    return "legal after all"


@pytest.mark.attack
@pytest.mark.filterwarnings("ignore")
def test_bad_calls_are_refused_by_name():
    came_out: Counter[str] = Counter()
    for number in range(tries(1500, 20_000)):
        came_out[attack(np.random.default_rng([SEED, number]))] += 1
    record("bad calls", **{"tried": came_out.total(), "hangs or crashes": 0, **came_out})
    assert came_out["refused by name"] > came_out.total() / 2


# ---- the command line

WORDS = ["", "-1", "0", "nan", "inf", "1e99", "x", "--", "-", "٣", "\0", "a" * 5000, "=", "0x10"]
COMMANDS = ["reproduce", "verify", "bench", "data", "list", "nonsense", "", "-h", "--version"]


@pytest.mark.attack
def test_bad_command_lines_end_with_a_sentence(capsys, monkeypatch, tmp_path):
    """Option values that cannot be right, for every option of every command."""
    monkeypatch.chdir(tmp_path)
    options = ["--scale", "--workers", "--backend", "--sample", "--limit", "--seed", "--input"]
    came_out: Counter[str] = Counter()
    for number in range(tries(150, 1000)):
        rng = np.random.default_rng([SEED, 1, number])
        command = COMMANDS[rng.integers(len(COMMANDS))]
        line = [command, *(["asirra"] if command == "data" and rng.random() < 0.5 else [])]
        for _ in range(rng.integers(1, 4)):
            line += [options[rng.integers(len(options))], WORDS[rng.integers(len(WORDS))]]
        line.append("--no-such-option")  # nothing may start to run
        try:
            with patience(PATIENCE):
                code = cli.main(line)
        except SystemExit as stop:
            code = stop.code
        except Hang:
            pytest.fail(f"{line} did not end")
        said = capsys.readouterr()
        assert code in (0, 2), (line, code, said.err)
        assert code == 0 or said.err.strip(), line
        came_out[f"code {code}"] += 1
    record("bad command lines", **{"tried": came_out.total(), **came_out})
