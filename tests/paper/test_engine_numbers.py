"""A raised engine number refuses every stored cell that its engine computed, and no other."""

from __future__ import annotations

import pytest

from banditlib.engines import ENGINE_NUMBERS, engine_number
from banditlib.paper.experiments import families
from banditlib.paper.experiments.asirra.policies import LOOPS, GrowingOFUL
from banditlib.paper.experiments.base import stored
from banditlib.paper.store import Config
from banditlib.policies.by_name import BUILT_IN

KINDS = ("arms", "pool", "contexts")
NO_ENGINE = {"asirra-single", "table-2"}
"""Families whose cells are computed by programs of their own, without a number."""
ARMS = {"fixed", "lower bound", "many arms", "needle"}
"""The guide's problems with fixed arms."""
CLASSES = {
    "Thompson": "LinearTS", "Thompson, v = σ": "LinearTS", "weighted OFUL": "WeightedOFUL",
    "weighted OFUL, not told C": "WeightedOFUL", "layered DS-OFUL": "LayeredDSOFUL",
    "certified LinUCB": "CertLinUCB", "robust linear": "RobustLinear", "UCB": "UCB", "LSW": "LSW",
    "phased elimination": "PhasedElimination", "SupLinUCB": "SupLinUCB",
}  # fmt: skip
"""Policies by the name that a configuration has; what is absent is some DS-OFUL."""


def played(config: Config) -> tuple[str, str] | None:
    """Class of policy and kind of problem that a cell plays; None where no number stands for it."""
    family = config["family"]
    if family in NO_ENGINE:
        return None
    if family in ("synthetic", "asirra", "asirra-lengths"):
        return config["policy"]["name"], "arms" if family == "synthetic" else "pool"
    name = CLASSES.get(config["policy"], "DSOFUL")
    if family == "phase-map":
        return name, "arms"
    if family == "separation":  # UCB counts the two arms of the tests
        return name, "arms" if name == "UCB" else "contexts"
    assert family == "guide"
    kinds = {"asirra": "pool"} | dict.fromkeys(ARMS, "arms")
    return name, kinds.get(config["problem"], "contexts")


@pytest.fixture(scope="module")
def configs() -> list[Config]:
    return [cell.config for family in families().values() for cell in stored(family)]


def test_a_raised_number_refuses_the_cells_of_its_engine(
    configs: list[Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = families()
    names = (*BUILT_IN, *LOOPS, GrowingOFUL.__name__)
    pairs = {(name, kind) for name in names for kind in KINDS}
    assert {played(config) for config in configs} <= pairs | {None}
    for pair in pairs:
        with monkeypatch.context() as raised:
            raised.setitem(ENGINE_NUMBERS, pair, engine_number(*pair) + 1)
            for config in configs:
                current = known[config["family"]].is_current(config)
                assert current == (played(config) != pair), (pair, config)


def test_only_planes_of_the_phase_map_are_below_their_number(configs: list[Config]) -> None:
    """SupLinUCB's, of eight trials, were computed by the mended engine before its number was raised
    (the history's test says so), and keep the number 1.
    """
    below = {
        (config["family"], config["policy"], config["trials"], config["engine"])
        for config in configs
        if (pair := played(config)) is not None and config["engine"] != engine_number(*pair)
    }
    assert below == {("phase-map", "SupLinUCB", 8, 1)}
