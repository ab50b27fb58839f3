"""One vector of each class in every round, in random order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from banditlib.checks import (
    columns,
    fits,
    integer,
    length,
    one_backend,
    real,
    real_array,
    require,
)
from banditlib.problems.seeds import generator

MOST_CLASSES = 255
"""Decisions of a pool are kept as bytes."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Each round shows one vector of each class, in random order: reward 1 for the good one, 0 for
    the bad ones.

    Parameters
    ----------
    good : (G, d) vectors of the class that pays
    bad : (H, d) vectors of the other class; or a list of such arrays, one for each other class.
        Each round draws one vector of each class, uniformly, independently of all else
    sigma : deviation of the noise (0: rewards are exact)
    instance : number that names this instance in the seeds of its runs
    label : how results call it
    pays : expected reward of each class, the good one first; by default 1, 0, 0, ...

    Attributes
    ----------
    points : (P, d) all vectors, class by class
    kind : (P,) number of each point's class
    gaps : (C,) best expected reward minus that of each class
    """

    good: np.ndarray = field(repr=False)
    bad: Any = field(repr=False)
    sigma: float = 0.0
    instance: int = 0
    label: str = "pool"
    pays: Any = field(default=None, repr=False)
    points: np.ndarray = field(init=False, repr=False)
    kind: np.ndarray = field(init=False, repr=False)
    gaps: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        others = self.bad if _several(self.bad) else [self.bad]
        one_backend(good=self.good, **{f"bad[{i}]": bad for i, bad in enumerate(others)})
        classes = [real_array("good", self.good, 2)]
        classes += [real_array("bad", bad, 2) for bad in others]
        for bad in classes[1:]:
            columns("bad", bad, classes[0].shape[1], "good")
        few = len(classes) <= MOST_CLASSES
        require(few, "bad", f"at most {MOST_CLASSES - 1} classes", len(others))
        real("sigma", self.sigma, 0.0)
        integer("instance", self.instance, 0)
        pays = np.eye(1, len(classes))[0] if self.pays is None else real_array("pays", self.pays, 1)
        length("pays", pays, len(classes), "one per class")
        values = {
            "good": classes[0],
            "bad": np.concatenate(classes[1:]),
            "pays": pays,
            "points": np.concatenate(classes),
            "kind": np.repeat(np.arange(len(classes)), [len(c) for c in classes]),
            "gaps": pays.max() - pays,
        }
        for name, value in values.items():
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def dim(self) -> int:
        """Dimension d."""
        return self.points.shape[1]

    @property
    def gap(self) -> float:
        """Minimal positive gap Δ, infinite if all classes pay the same."""
        return float(self.gaps[self.gaps > 0].min(initial=np.inf))

    @property
    def reward(self) -> np.ndarray:
        """Expected reward of every row of ``points``."""
        return self.pays[self.kind]

    def contexts(self, seed: int, trial: int = 0, rounds: int = 1) -> np.ndarray:
        """What a run saw: (rounds, C) indices into ``points``, in the order shown."""
        integer("rounds", rounds, 1)
        fits("rounds", 24.0 * rounds * len(self.gaps), "their contexts")
        return next(self.stream(seed, trial, rounds))

    def stream(self, seed: int, trial: int, block: int) -> Iterator[np.ndarray]:
        """Endless blocks (block, C) of ``contexts``; drawing in pieces gives the same rounds."""
        which = generator(seed, "contexts", self.instance, trial)
        order = generator(seed, "order", self.instance, trial)
        sizes = np.bincount(self.kind)
        first, C = np.cumsum(sizes) - sizes, len(sizes)
        while True:
            shown = (which.random((block, C)) * sizes).astype(np.int64) + first
            if C == 2:
                swap = order.random(block) < 0.5
                shown[swap] = shown[swap, ::-1]
            else:
                places = np.argsort(order.random((block, C)), axis=1)
                shown = np.take_along_axis(shown, places, axis=1)
            yield shown


def _several(bad: Any) -> bool:
    """Whether ``bad`` lists the vectors of several classes."""
    return isinstance(bad, Sequence) and len(bad) > 0 and all(np.ndim(part) == 2 for part in bad)
