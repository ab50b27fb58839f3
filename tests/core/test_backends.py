"""The same code on other array libraries takes the same decisions; CuPy without a GPU says so."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
from cases import FIXED_ARMS, POLICIES

import banditlib as bl
from banditlib.backend import BackendError, namespace, put, to_numpy


def need_torch() -> None:
    if importlib.util.find_spec("torch") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("torch is missing, and in CI nothing may be skipped")
        pytest.skip("torch is not installed (pip install torch==2.13.0 gives a CPU build)")


def same_decisions(backend: str, problems, rounds: int = 70) -> None:
    kw = dict(rounds=rounds, trials=2, seed=5, record=("arms", "levels"), progress=False)
    here = bl.simulate(problems, POLICIES, **kw)
    there = bl.simulate(problems, POLICIES, backend=backend, **kw)
    np.testing.assert_array_equal(here.arms, there.arms)
    np.testing.assert_array_equal(here.levels, there.levels)
    np.testing.assert_array_equal(here.plays, there.plays)
    np.testing.assert_array_equal(here.learnt, there.learnt)
    np.testing.assert_array_equal(here.first_skip, there.first_skip)


def test_array_api_strict():
    same_decisions("array_api_strict", FIXED_ARMS)


def test_torch():
    need_torch()
    same_decisions("torch", FIXED_ARMS)


def test_dpnp():
    """A device's manners on a CPU: slow, so a few rounds; a weekly job runs it."""
    pytest.importorskip("dpnp", reason="dpnp is not installed")
    same_decisions("dpnp", FIXED_ARMS[:1], rounds=40)


def test_users_arrays_of_another_library():
    import array_api_strict as strict

    X = np.eye(3)
    problem = bl.problems.FixedArms(strict.asarray(X), strict.asarray(np.array([1.0, 0.0, 0.5])))
    np.testing.assert_array_equal(problem.X, X)
    with pytest.raises(TypeError, match="X and reward: arrays of different libraries"):
        bl.problems.FixedArms(strict.asarray(X), np.array([1.0, 0.0, 0.5]))
    agent = bl.OFUL(1.0, 1.0).start(3)
    assert agent.choose(strict.asarray(X)) == 0


def test_put_with_and_without_scatter():
    import array_api_strict as strict

    for xp in (namespace("numpy"), strict):
        target = xp.asarray(np.zeros((4, 2)))
        rows, values = xp.asarray(np.array([2, 0])), xp.asarray(np.array([[1.0, 2.0], [3.0, 4.0]]))
        expected = [[3.0, 4.0], [0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]
        np.testing.assert_array_equal(to_numpy(put(target, rows, values, xp)), expected)


def test_cupy_without_gpu_says_so():
    try:
        import cupy

        if cupy.cuda.is_available():
            pytest.skip("this machine has a GPU")
    except ImportError:
        pass
    with pytest.raises(BackendError, match=r"gpu-cuda12"):
        bl.simulate(bl.problems.synthetic(gap=None), bl.OFUL(1, 1), rounds=2, backend="cupy")


def test_unknown_backend_is_named():
    with pytest.raises(ValueError, match="backend"):
        bl.simulate(bl.problems.synthetic(gap=None), bl.OFUL(1, 1), rounds=2, backend="jax")


def test_no_backend_is_imported_unasked():
    code = (
        "import sys, banditlib as bl; bl.simulate(bl.problems.synthetic(gap=None), bl.OFUL(1, 1),"
        " rounds=3, trials=1); "
        "print([m for m in ('torch', 'cupy', 'array_api_strict', 'scipy', 'matplotlib')"
        " if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_float32_runs_and_may_decide_otherwise():
    """Single precision: the same until a near tie, then another path, never a crash."""
    problem = bl.problems.synthetic(seed=0, dim=8, arms=30, gap=None)
    kw = dict(rounds=3000, trials=2, record=("arms",), progress=False)
    double = bl.simulate(problem, [bl.OFUL(1, 1), bl.DSOFUL(0.05, 1, 1)], **kw)
    single = bl.simulate(problem, [bl.OFUL(1, 1), bl.DSOFUL(0.05, 1, 1)], dtype="float32", **kw)
    np.testing.assert_array_equal(double.arms[..., 0], single.arms[..., 0])
    assert single.plays[..., -1, :].sum() == double.plays[..., -1, :].sum()
    assert single.drift > 1e3 * double.drift  # too coarse for thresholds: widths are off by 1e-6
    assert np.isfinite(single.regret).all()
