"""Runs on disk: integers and a header in one npz file, no pickle, nothing that can run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from banditlib.npz import read_npz, write_npz
from banditlib.policies.base import Policy
from banditlib.policies.by_name import BUILT_IN, plain_params

FORMAT = 2
"""Version of the files that ``Run.save`` writes; older ones are read too.

2 added regret summed round by round, for problems whose arms change.
"""

ARRAYS = ("checkpoints", "plays", "learnt", "first_skip", "final_arm", "arms", "levels", "summed")
SETTINGS = ("rounds", "seed", "wall_time", "drift", "backend", "dtype")


@dataclass(frozen=True, eq=False)
class SavedProblem:
    """What a saved run keeps of a problem: enough for regret, not to play it again."""

    kind: str
    label: str
    instance: int
    gaps: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class SavedPolicy(Policy):
    """A policy of somebody's own class, as a saved run remembers it: its name and parameters."""

    called: str
    values: tuple[tuple[str, Any], ...] = ()

    @property
    def params(self) -> dict[str, Any]:
        """Parameters by name."""
        return dict(self.values)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.values)
        return f"{self.called}({inside})"


def save(run: Any, file: str | Path | IO[bytes]) -> None:
    """Write a run."""
    header: dict[str, Any] = {name: getattr(run, name) for name in SETTINGS}
    header |= {
        "format": FORMAT,
        "trials": list(run.trials),
        "problems": [
            {
                "kind": problem.kind
                if isinstance(problem, SavedProblem)
                else type(problem).__name__,
                "label": problem.label,
                "instance": problem.instance,
                "gaps": [] if changing else np.asarray(problem.gaps).tolist(),
            }
            for problem, changing in zip(run.problems, run.changing, strict=True)
        ],
        "policies": [
            {
                "kind": policy.called if isinstance(policy, SavedPolicy) else type(policy).__name__,
                "params": plain_params(policy),
            }
            for policy in run.policies
        ],
    }
    arrays = {name: getattr(run, name) for name in ARRAYS if getattr(run, name) is not None}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    write_npz(file, arrays, small=True)


def load(file: str | Path | IO[bytes]) -> dict[str, Any]:
    """Read a run that ``save`` wrote: the arguments of :class:`banditlib.Run`."""
    try:
        arrays = read_npz(file)
        header = json.loads(arrays.pop("header").tobytes().decode())
        number = header["format"]
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"file: {file} is not a saved run ({error})") from error
    if not isinstance(number, int) or not 1 <= number <= FORMAT:
        raise ValueError(f"file: format {number} is unknown here, expected 1 to {FORMAT}")
    _whole(file, header, arrays)
    problems = tuple(
        SavedProblem(p["kind"], p["label"], p["instance"], np.array(p["gaps"]))
        for p in header["problems"]
    )
    return {
        "problems": problems,
        "policies": tuple(_policy(p["kind"], p["params"]) for p in header["policies"]),
        "trials": tuple(header["trials"]),
        **{name: header[name] for name in SETTINGS},
        **{name: arrays.get(name) for name in ARRAYS},
    }


def _policy(kind: str, params: dict[str, Any]) -> Policy:
    if kind in BUILT_IN:
        return BUILT_IN[kind](**params)
    values = {n: tuple(v) if isinstance(v, list) else v for n, v in params.items()}
    return SavedPolicy(kind, tuple(values.items()))


def _whole(file: Any, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Refuse a file whose arrays do not fit together."""
    try:
        axes = tuple(len(header[name]) for name in ("problems", "policies", "trials"))
        C, K = len(arrays["checkpoints"]), int(header["rounds"])
        first = {
            "plays": (*axes, C),
            "learnt": (*axes, C),
            "arms": (*axes, K),
            "levels": (*axes, K),
        }
        first |= {"first_skip": axes, "final_arm": axes}
        for name, shape in first.items():
            found = arrays[name].shape if name in arrays or name in ("plays", "learnt") else None
            if found is not None and found[: len(shape)] != shape:
                raise ValueError(f"{name} has shape {found}, expected {shape}")
            if found is not None and not np.issubdtype(arrays[name].dtype, np.integer):
                raise ValueError(f"{name} does not hold integers")
        if "summed" in arrays and arrays["summed"].shape != (*axes, C):
            raise ValueError(f"summed has shape {arrays['summed'].shape}, expected {(*axes, C)}")
        if arrays["checkpoints"][-1] != K:
            raise ValueError("the last checkpoint is not the last round")
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise ValueError(f"file: {file} is not a saved run ({error})") from error
