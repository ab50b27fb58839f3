"""Where random numbers come from: one generator for each purpose, instance and trial.

Every stream has the key ``SeedSequence(root, spawn_key=(stream, instance, trial))``, so that a run
depends neither on what shares its batch nor on how many workers there are.
"""

from __future__ import annotations

import numpy as np

from banditlib.checks import integer

STREAMS = {"instance": 0, "contexts": 1, "order": 2, "noise": 3, "policy": 4}
"""First entry of a spawn key by what is drawn."""


def generator(
    root: int, stream: str, instance: int = 0, trial: int = 0, *part: int
) -> np.random.Generator:
    """The generator of one stream, seeded by its key (stream, instance, trial, part of it)."""
    key = (STREAMS[stream], integer("instance", instance, 0), integer("trial", trial, 0), *part)
    return np.random.default_rng(
        np.random.SeedSequence(integer("seed", root, 0, None), spawn_key=key)
    )
