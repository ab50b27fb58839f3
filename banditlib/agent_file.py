"""Agents on disk: an ``.npz`` without pickle, written whole, and believed only after checking."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import IO, Any

import numpy as np

from banditlib.agent import Agent, Info
from banditlib.checks import integer, is_number, real_array
from banditlib.npz import DamagedFileError, read_npz, write_npz
from banditlib.policies import Policy
from banditlib.policies.by_name import BUILT_IN, plain_params
from banditlib.policies.phased_elimination import Phase
from banditlib.regression import Ridge

PACKAGE = "banditlib"
FORMAT = 2
"""Version of the files that ``Agent.save`` writes. 1 did not name the package and λ."""

INEXACT = 0.01
"""Largest error of U U⁻¹ = I that a saved agent may have."""


def write(agent: Agent, file: str | Path | IO[bytes]) -> None:
    """Write the agent; what :func:`load` reads continues it bit for bit."""
    write_npz(file, _arrays(agent))


Agent.write_file = write


def _arrays(agent: Agent) -> dict[str, Any]:
    header = {
        "package": PACKAGE,
        "format": FORMAT,
        "policy": type(agent.policy).__name__,
        "params": plain_params(agent.policy),
        "lam": float(agent.policy.regulariser),
        "dim": agent.dim,
        "round": agent.round,
        "waiting": agent._waiting,
        "flag": bool(agent._flag),
        "info": None if agent.info is None else list(agent.info),
        "draws": None if agent._draws is None else agent._draws.bit_generator.state,
    }
    agent._ridge.absorb()
    arrays = {f"ridge_{name}": getattr(agent._ridge, name) for name in Ridge.FIELDS}
    arrays |= {"counts": agent._counts, "totals": agent._totals, "x": agent._x}
    arrays["points"] = agent._history[: len(agent._points)]
    if agent.arms is not None:
        arrays["arms"] = agent.arms
    if agent._phase is not None:
        header["phase"] = agent._phase.number
        arrays |= {"phase_active": agent._phase.active, "phase_plays": agent._phase.plays}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    return arrays


def load(file: str | Path | IO[bytes], policy: Policy | None = None) -> Agent:
    """Read an agent that ``save`` wrote; a policy of your own class has to be given again.

    Everything is checked before it is believed: shapes, finite numbers, positive definite matrices
    that are inverse to each other, and that the policy has the λ of the file.
    """
    if policy is not None and not isinstance(policy, Policy):
        raise TypeError(f"policy: expected a policy, got {policy!r}")
    try:
        arrays: dict[str, Any] = read_npz(file)
        header = json.loads(arrays.pop("header").tobytes().decode())
        _require(isinstance(header, dict), "its header is no list of names")
        form = header.get("format")
        _require(form == 1 or header.get("package") == PACKAGE, "another program wrote it")
    except OSError:
        raise
    except (DamagedFileError, KeyError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"file: {file} is not a saved agent ({error})") from None
    if form not in (1, FORMAT):
        raise ValueError(f"file: {file} has format {form!r}; this version reads 1 and {FORMAT}")
    policy = _policy(header, policy)
    try:
        return _restored(header, arrays, policy)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        said = f"lacks {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"file: {file} is a damaged agent ({said})") from None


def _policy(header: dict[str, Any], given: Policy | None) -> Policy:
    kind, params = header.get("policy"), header.get("params") or {}
    if given is not None:
        if type(given).__name__ != kind:
            raise ValueError(f"policy: the file holds {kind}, got {type(given).__name__}")
        return given
    if kind not in BUILT_IN:
        raise ValueError(f"policy: {kind} is not built in; give it, load(file, policy={kind}())")
    try:
        return BUILT_IN[kind](**params)
    except (TypeError, ValueError) as error:
        raise ValueError(f"file: the parameters of its policy are damaged ({error})") from None


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _restored(header: dict[str, Any], arrays: dict[str, Any], policy: Policy) -> Agent:
    """The agent of a file, or a ValueError that says what is wrong with it."""
    dim = integer("dim", header["dim"], 1)
    lam = policy.regulariser
    _require(header.get("lam", lam) == lam, f"its lam is {header.get('lam')}, the policy's {lam}")
    agent = Agent(policy, dim, arms=arrays.get("arms"), seed=0)
    ridge = agent._ridge
    S = len(np.atleast_1d(arrays["ridge_learnt"]))
    _require(S >= 1, "it has no regression")
    ridge.grow(S)
    for name, shape in {"U": (S, dim, dim), "inverse": (S, dim, dim), "b": (S, dim)}.items():
        setattr(ridge, name, _numbers(f"ridge_{name}", arrays, shape))
    ridge.theta = _numbers("ridge_theta", arrays, (S, dim))
    ridge.learnt, ridge.since = (_counts(f"ridge_{n}", arrays, S) for n in ("learnt", "since"))
    ridge.grown = _numbers("ridge_grown", arrays, (S,))
    _check_regressions(ridge, lam)
    rows = len(agent.arms) if agent.arms is not None else len(arrays["points"])
    agent._history = _numbers("points", arrays, (len(arrays["points"]), dim))
    agent._counts = _numbers("counts", arrays, (rows,))
    agent._totals = _numbers("totals", arrays, (rows,))
    agent._x = _numbers("x", arrays, (dim,))
    _require(bool((agent._counts >= 0).all()), "counts are negative")
    agent._points = {point.tobytes(): i for i, point in enumerate(agent._history)}
    _require(len(agent._points) == len(agent._history), "points are listed twice")
    agent.round = integer("round", header["round"], 0)
    for name in ("waiting", "flag"):
        _require(isinstance(header[name], bool), f"{name} is neither true nor false")
    agent._waiting, agent._flag = header["waiting"], header["flag"]
    agent.info = _info(header["info"], agent, S)
    if agent._draws is not None:
        agent._draws.bit_generator.state = header["draws"]
    if agent._phase is not None:
        agent._phase = _phase(header, arrays, agent)
    return agent


def _phase(header: dict[str, Any], arrays: dict[str, Any], agent: Agent) -> Phase:
    """The phase that a policy that plans was in, with plays of active arms only."""
    number = integer("phase", header["phase"], 1, 62)
    active, plays = arrays["phase_active"], _counts("phase_plays", arrays, len(agent._counts))
    _require(active.dtype == bool and active.shape == plays.shape, "phase_active is damaged")
    _require(bool(plays.sum() > 0 and (plays[~active] == 0).all()), "its phase plays no active arm")
    _require(bool((agent._counts <= plays).all()), "its phase has more plays than planned")
    return Phase(number, active, plays)


def _numbers(name: str, arrays: dict[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    """A finite array of this shape, in float64 as it was written."""
    found = arrays[name]
    _require(found.dtype == np.float64, f"{name} holds {found.dtype} in place of float64")
    _require(found.shape == shape, f"{name} has shape {found.shape}, expected {shape}")
    return found if 0 in shape else real_array(name, found, len(shape))


def _counts(name: str, arrays: dict[str, Any], size: int) -> np.ndarray:
    found = arrays[name]
    _require(found.dtype == np.int64 and found.shape == (size,), f"{name} is no list of counts")
    _require(bool((found >= 0).all()), f"{name} is negative")
    return np.array(found)


def _check_regressions(ridge: Ridge, lam: float) -> None:
    """U symmetric, at least λI, exactly λI where nothing was learnt; U⁻¹ its inverse."""
    _require(bool((ridge.since <= ridge.learnt).all() and (ridge.grown >= 0).all()), "its counts")
    eye = np.eye(ridge.dim)
    for s, U in enumerate(ridge.U):
        inverse, level = ridge.inverse[s], f"level {s + 1}"
        for name, matrix in (("U", U), ("inverse", inverse)):
            skew = np.abs(matrix - matrix.T).max()
            _require(bool(skew <= 1e-6 * np.abs(matrix).max()), f"{name} of {level} is skew")
        lowest = np.linalg.eigvalsh(U)
        _require(
            bool(lowest[0] >= lam - 1e-9 * lowest[-1]),
            f"U of {level} is not at least lam times the identity, lam = {lam:g}",
        )
        _require(
            bool(np.abs(U @ inverse - eye).max() <= INEXACT),
            f"U and its inverse at {level} do not belong together",
        )
        _require(bool((np.diag(inverse) > 0).all()), f"inverse of {level} is not positive")
        if ridge.learnt[s] == 0:
            _require(np.array_equal(U, lam * eye), f"{level} learnt nothing, and U is not lam I")
        if ridge.learnt[s] < ridge.dim:  # then some direction was never seen
            _require(bool(lowest[0] <= lam + 1e-9 * lowest[-1]), f"{level} has another lam")


def _info(found: Any, agent: Agent, levels: int) -> Info | None:
    """What the last decision rested on; a decision that waits must have it."""
    if found is None:
        _require(not agent._waiting, "a decision waits, and nothing says which")
        return None
    _require(isinstance(found, list) and len(found) == len(Info._fields), "its info is damaged")
    round_, arm, width, level, selected = found
    _require(integer("info", round_, 1) == agent.round, "its info is of another round")
    integer("info", arm, 0), integer("info", level, 0)
    _require(is_number(width) and (math.isnan(width) or width >= 0), "its info has no width")
    _require(selected is (level > 0) and level <= levels, "its info has no such level")
    return Info(round_, arm, width, level, selected)
