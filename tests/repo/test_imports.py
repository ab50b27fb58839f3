"""The import graph is a ladder: core, then paper, then book; no module waits for one that waits for
it.
"""

from __future__ import annotations

import graphlib
import subprocess
import sys

import grimp
import pytest

RUNGS = [
    ("banditlib.backend",),
    ("banditlib.checks",),
    ("banditlib.view", "banditlib.intervals", "banditlib.regression"),
    ("banditlib.policies", "banditlib.problems"),
    ("banditlib.agent",),
    ("banditlib.engines",),
    ("banditlib.simulate",),
]
"""The core from the ground up; a rung may import from those before it, never from those after."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("banditlib", exclude_type_checking_imports=True)


def test_the_core_does_not_know_the_paper(graph):
    core = {m for m in graph.modules if not m.startswith("banditlib.paper")}
    above = {
        (m, other)
        for m in core
        for other in graph.find_modules_directly_imported_by(m)
        if other.startswith("banditlib.paper")
    }
    assert not above


def test_the_package_does_not_know_the_book():
    graph = grimp.build_graph("banditlib", include_external_packages=True)
    assert "book" not in graph.modules


@pytest.mark.parametrize("package", ["banditlib", "book"])
def test_no_import_leads_back(package):
    """Late imports count too. A package may import its own modules, which gathers names."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=True)
    needs = {
        m: {
            other
            for other in graph.find_modules_directly_imported_by(m)
            if not m.startswith(f"{other}.")
        }
        for m in graph.modules
    }
    order = [*graphlib.TopologicalSorter(needs).static_order()]  # raises CycleError, with the cycle
    assert len(order) == len(graph.modules)


def test_the_core_is_a_ladder(graph):
    def inside(module: str, rung: tuple[str, ...]) -> bool:
        return any(module == name or module.startswith(f"{name}.") for name in rung)

    for height, rung in enumerate(RUNGS):
        higher = [name for later in RUNGS[height + 1 :] for name in later]
        for module in graph.modules:
            if inside(module, rung):
                found = {
                    other
                    for other in graph.find_modules_directly_imported_by(module)
                    if inside(other, tuple(higher))
                }
                assert not found, (module, found)


def test_importing_the_package_loads_neither_scipy_nor_matplotlib():
    code = (
        "import sys, banditlib; dir(banditlib);"
        " print([m for m in ('scipy', 'matplotlib', 'pandas', 'sklearn') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_is_visible():
    import banditlib

    assert set(banditlib.__all__) <= set(dir(banditlib))
    for name in banditlib.__all__:
        assert getattr(banditlib, name) is not None
