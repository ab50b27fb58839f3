"""What all lanes of a call share, and what an engine counts for one problem."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from banditlib.checks import fits


@dataclass
class Settings:
    """What all lanes of a call share."""

    rounds: int
    trials: tuple[int, ...]
    seed: int
    noise: np.ndarray | None
    checkpoints: np.ndarray
    record: tuple[str, ...]
    xp: ModuleType
    dtype: str
    bar: Any = None

    @property
    def device_dtype(self) -> Any:
        """The dtype as the array library names it."""
        return getattr(self.xp, self.dtype)


@dataclass
class Tally:
    """What the engines return for one problem: integers, with axes (policies, trials, ...).

    Attributes
    ----------
    plays : (Q, T, C, N) plays by arm up to each checkpoint; a pool: by class
    learnt : (Q, T, C, S) rounds learnt by level up to each checkpoint
    first_skip : (Q, T) first round that learnt nothing, 0 if there was none
    final_arm : (Q, T) arm of the last round (for a pool: its class)
    arms, levels : (Q, T, K) every decision, if recorded (for a pool: the position shown)
    regret : (Q, T, C) summed round by round, for problems whose arms change
    drift : largest error that a refresh found
    """

    ARRAYS: ClassVar[tuple[str, ...]] = (
        "plays", "learnt", "first_skip", "final_arm", "arms", "levels",
    )  # fmt: skip

    plays: np.ndarray
    learnt: np.ndarray
    first_skip: np.ndarray
    final_arm: np.ndarray
    arms: np.ndarray | None = None
    levels: np.ndarray | None = None
    regret: np.ndarray | None = None
    drift: float = 0.0

    @classmethod
    def empty(cls, Q: int, N: int, S: int, settings: Settings, regret: bool = False) -> Tally:
        """Zeros for Q policies, N arms and S levels."""
        T, C, K = len(settings.trials), len(settings.checkpoints), settings.rounds
        whole = np.int32 if np.iinfo(np.int32).max >= K else np.int64
        fits(
            "rounds, trials, checkpoints, record",
            float(Q * T) * (C * (N + S) * np.dtype(whole).itemsize + 4 * K * len(settings.record)),
            "counting plays",
        )
        kept: dict[str, Any] = {name: np.zeros((Q, T, K), np.int32) for name in settings.record}
        return cls(
            plays=np.zeros((Q, T, C, N), whole),
            learnt=np.zeros((Q, T, C, S), whole),
            first_skip=np.zeros((Q, T), np.int64),
            final_arm=np.zeros((Q, T), np.int64),
            regret=np.zeros((Q, T, C)) if regret else None,
            **kept,
        )


def joined(arrays: list[Any]) -> Any:
    """Stack, padding the last axis with zeros to one length; None if nothing was recorded."""
    if arrays[0] is None:
        return None
    if len(arrays) == 1:
        return arrays[0][None]  # not copied
    size = max(a.shape[-1] for a in arrays)
    stacked = np.zeros((len(arrays), *arrays[0].shape[:-1], size), arrays[0].dtype)
    for p, a in enumerate(arrays):
        stacked[p, ..., : a.shape[-1]] = a
    return stacked
