"""``backend="cupy"`` without a GPU, on a stand-in that is stricter than CuPy."""

from __future__ import annotations

import gc
import importlib.util
import sys
import weakref
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from cases import FIXED_ARMS, POLICIES
from strict_cupy import POOL, installed

import banditlib as bl
from banditlib.backend import free_memory, namespace, namespace_of
from banditlib.engines import arms as engine
from banditlib.view import first_best


@dataclass(frozen=True)
class Thompson(bl.Policy):
    """Independent samples by arm: a policy that draws random numbers."""

    lam: float = 1.0
    per_lane: ClassVar[tuple[str, ...]] = ("lam",)
    needs: ClassVar[frozenset[str]] = frozenset({"draws"})

    def choose(self, k, view, draws):
        xp = namespace_of(view.mean)
        arm = first_best(view.mean + xp.sqrt(view.var) * draws)
        return arm, xp.ones_like(arm)


KEPT = dict(trials=2, seed=5, record=("arms", "levels"), progress=False)


@pytest.fixture
def meter():
    with installed() as meter:
        yield meter


def test_the_stand_in_refuses_what_a_device_refuses(meter):
    xp = namespace("cupy")
    assert xp.__name__ == "array_api_compat.cupy"
    x = xp.asarray(np.arange(3.0))
    for wrong in (
        lambda: np.asarray(x),
        lambda: x + np.ones(3),
        lambda: np.ones(3) * x,
        lambda: x * np.float64(2),
        lambda: np.float64(2) * x,
        lambda: xp.sum(np.ones(3)),
        lambda: np.sum(x),
        lambda: x[np.array([0, 1])],
        lambda: x.__setitem__(0, np.float64(1)),
    ):
        with pytest.raises(TypeError):
            wrong()
    assert type(xp.sum(x)) is type(x) and float(xp.sum(x)) == 3.0
    np.testing.assert_array_equal((2.0 * x + 1).get(), [1, 3, 5])


@pytest.mark.parametrize("policy", [*POLICIES, Thompson(), bl.LinearTS(1.0, 1.0)], ids=repr)
def test_every_policy_on_fixed_arms(meter, policy):
    here = bl.simulate(FIXED_ARMS, policy, rounds=120, **KEPT)
    there = bl.simulate(FIXED_ARMS, policy, rounds=120, backend="cupy", **KEPT)
    np.testing.assert_array_equal(here.arms, there.arms)
    np.testing.assert_array_equal(here.levels, there.levels)
    np.testing.assert_array_equal(here.plays, there.plays)
    assert meter.names


CHANGING = [
    bl.problems.unit_vectors(dim=4, arms=5, zeta=0.1),
    bl.problems.cycle([np.eye(3)[:1], np.eye(3)], [[0.1], [0.0, 0.5, 0.2]], repeats=[3, 1]),
]


@pytest.mark.parametrize("problem", CHANGING, ids=lambda p: p.label)
@pytest.mark.parametrize(
    "policy",
    [*(p for p in POLICIES if not p.fixed_arms), Thompson(), bl.LinearTS(1.0, 1.0)],
    ids=lambda p: repr(p),
)
def test_every_policy_on_changing_sets(meter, policy, problem):
    here = bl.simulate(problem, policy, rounds=40, **KEPT)
    there = bl.simulate(problem, policy, rounds=40, backend="cupy", **KEPT)
    np.testing.assert_array_equal(here.arms, there.arms)
    np.testing.assert_array_equal(here.levels, there.levels)
    np.testing.assert_allclose(here.regret, there.regret)


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed")
def test_all_names_used_are_known(meter):
    """What a run asks of CuPy is looked up in the one that is installed."""
    bl.simulate(FIXED_ARMS, POLICIES, rounds=300, backend="cupy", trials=2, progress=False)
    bl.simulate(CHANGING, POLICIES[:5], rounds=40, backend="cupy", trials=2, progress=False)
    bl.simulate(FIXED_ARMS, bl.LinearTS(1.0, 1.0), 20, 2, backend="cupy", progress=False)
    names, methods = set(meter.names), set(meter.methods)
    cupy = real_cupy()
    assert sorted(n for n in names if not found(cupy, n)) == []
    assert sorted(m for m in methods if not hasattr(cupy.ndarray, m)) == []


def found(cupy, name: str) -> bool:
    """Whether ``cupy.linalg.eigh`` or the like exists."""
    for part in name.split(".")[1:]:
        if not hasattr(cupy, part):
            return False
        cupy = getattr(cupy, part)
    return True


def real_cupy():
    """The CuPy that is installed, in place of the stand-in."""
    for name in [n for n in sys.modules if n.split(".")[0] == "cupy"]:
        del sys.modules[name]
    return importlib.import_module("cupy")


def test_free_memory_counts_what_the_pool_keeps(meter):
    xp = namespace("cupy")
    before = free_memory(xp)
    POOL.kept = 1 << 20
    try:
        assert free_memory(xp) == before
    finally:
        POOL.kept = 0
    held = xp.zeros(1000)
    assert free_memory(xp) == before - 8000
    del held
    assert free_memory(xp) == before


@pytest.fixture(scope="module")
def nothing_to_collect():
    """What is alive by now stays out of collections, which would look through all of it again."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("nothing_to_collect")
@pytest.mark.parametrize(("dim", "arms"), [(1, 2), (4, 12), (16, 100), (64, 20)])
@pytest.mark.parametrize("policy", [*POLICIES[2:], Thompson()], ids=lambda p: type(p).__name__)
def test_a_lane_takes_no_more_than_was_reckoned(meter, policy, dim, arms, monkeypatch):
    """The peak over 16 lanes, measured by the stand-in, against the engine's own estimate."""
    monkeypatch.setattr(engine, "CHUNK", 128)  # rounds enough for a whole one
    rng = np.random.default_rng(0)
    problem = bl.problems.FixedArms(rng.standard_normal((arms, dim)), rng.random(arms))
    gc.collect()
    before, trials = meter.alive, 16
    meter.reset()
    bl.simulate(problem, policy, 260, trials, backend="cupy", checkpoints=1, progress=False)
    reckoned = engine.lane_bytes(policy, problem, policy.levels(dim, 260))
    used = (meter.peak - before) / trials
    assert reckoned / 6 < used <= reckoned


def test_a_batch_is_gone_before_the_next_is_built(meter, monkeypatch):
    living: list[weakref.ref] = []
    build = engine.Batch.__init__

    def counted(self, *args):
        assert not any(ref() for ref in living)
        living.append(weakref.ref(self))
        build(self, *args)

    monkeypatch.setattr(engine.Batch, "__init__", counted)
    monkeypatch.setattr(engine, "lane_limit", lambda *args: 2)
    bl.simulate(FIXED_ARMS[:1], POLICIES[:2], 20, 4, backend="cupy", progress=False)
    assert len(living) > 2
