"""Which source computes the cells of a family: what a verification of them holds for.

A change of any other file leaves every cell as it is, so that hours of verifying stay good.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from banditlib.paper.experiments.base import Family
from banditlib.paper.provenance import ROOT, digest_of

_CORE = (
    "backend.py", "checks.py", "design.py", "engines/__init__.py", "engines/noise.py",
    "engines/tally.py", "intervals.py", "inverses.py", "policies", "problems/seeds.py", "run.py",
    "simulate.py", "theory.py", "view.py",
)  # fmt: skip
_BY_KIND = {
    "arms": (
        "engines/arms.py", "engines/arm_posterior.py", "problems/fixed_arms.py",
        "problems/lower_bound.py", "linear_fit.py",
    ),
    "phases": ("engines/phases.py",),
    "pools": ("engines/pools", "problems/pool.py"),
    "contexts": (
        "engines/contexts.py", "problems/contextual.py", "problems/unit_vectors.py",
        "problems/classification.py", "linear_fit.py",
    ),
    "agents": ("agent.py", "regression.py", "engines/direct.py"),
}  # fmt: skip
"""What plays each kind of problem; on fixed arms a policy that plans whole phases is played apart;
live agents play what takes its decisions one by one, and their regression is that of changing sets.
"""


def engine_source(family: Family) -> str:
    """Digest of the source that computes the cells of ``family``."""
    return digest_of(sorted(set(computing(family))))


def computing(family: Family) -> Iterator[Path]:
    """The files that decide what the cells of ``family`` hold."""
    package = ROOT / "banditlib"
    for name in _CORE + tuple(name for kind in family.kinds for name in _BY_KIND[kind]):
        path = package / name
        yield from path.rglob("*.py") if path.is_dir() else [path]
    for module in (family.run.__module__, *family.also):
        path = Path(str(sys.modules[module].__file__))
        if ROOT in path.parents:  # an experiment of somebody else's may lie elsewhere
            yield path
