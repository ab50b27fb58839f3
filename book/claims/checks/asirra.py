"""Checks of the claims about the runs on Asirra, from the stored results."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

from banditlib.paper import verdict
from banditlib.paper.experiments import stored
from banditlib.paper.experiments.asirra import between as asirra_between
from banditlib.paper.experiments.asirra import cells as asirra_cells
from banditlib.paper.experiments.asirra import figure as asirra_figure
from book.claims.formula import ATTAINED, Found, formula


@functools.cache
def _judged(data: str) -> dict[str, Any]:
    """The paper's sentences on the standard features, or on the weaker ones."""
    names = ("figure-1b", "figure-4") if data == "standard" else ("asirra-weak",)
    return asirra_figure.sentences([cell for name in names for cell in stored(name)])


def _seen(claim: str, data: str, *words: str) -> list[Any]:
    """What was looked at for a claim, where all the words occur in its description."""
    found = [s for what, s in _judged(data)[claim] if all(w in what for w in words)]
    assert found, (claim, words)
    return found


@formula()
def says(verdict: str, word: str) -> bool:
    """Whether a sentence of the paper was judged so."""
    return verdict == word


def _all(found: list[Any], word: str = "reproduced") -> bool:
    """Whether all were judged so; a verdict that fits every word would fit none."""
    assert not says("reproduced", "not reproduced")
    return all(says(sentence.verdict, word) for sentence in found)


RUNS = Found(None, "8 runs of a million rounds")


def figure_1b(size: str = "ci") -> Found:
    """The order and the shape on the weaker features; the magnitudes on none."""
    for which in ("standard", "tiny"):
        assert _all(_seen("magnitude", which, "ζ = 0.01"), "not reproduced")
    assert _all(_seen("eventually", "tiny")) and _all(_seen("sup", "tiny"))
    assert not _all(_seen("eventually", "standard"))
    late = {row: _seen("constant", "tiny", "ζ = 0.01,", row)[0] for row in ("OFUL", "Γ = 0.05")}
    assert _all(list(late.values()), "not reproduced")
    assert half_of(late["Γ = 0.05"].interval[1], late["OFUL"].interval[0])
    assert not half_of(late["OFUL"].interval[1], late["Γ = 0.05"].interval[0])
    _half_is_half()
    return RUNS


@formula()
def half_of(ours: float, plain: float) -> bool:
    """Clearly less: the interval lies below half of the other."""
    return ours < 0.5 * plain


def _half_is_half() -> None:
    assert not half_of(1.0, 2.0) and half_of(0.9, 2.0) and not half_of(1.1, 2.0)


@formula()
def three_times(high: float, low: float) -> bool:
    """Much more: the interval of one lies above three times that of the other."""
    return high > 3 * low


def figure_4(size: str = "ci") -> Found:
    """Much regret at ζ = 0.5, less at 0.1, and less at 0.05; the magnitudes on none."""
    for data in ("standard", "tiny"):
        top = {z: _seen("magnitude", data, f"ζ = {z:g},", "highest")[0] for z in (0.5, 0.1, 0.05)}
        assert three_times(top[0.5].interval[0], top[0.1].interval[1])
        assert not three_times(top[0.1].interval[0], top[0.5].interval[1])
        assert top[0.1].interval[0] > top[0.05].interval[1]
        assert _all(list(top.values()), "not reproduced")
    assert not three_times(3.0, 1.0) and three_times(3.1, 1.0) and not three_times(2.9, 1.0)
    return RUNS


def figure_4a(size: str = "ci") -> Found:
    """At ζ = 0.5 OFUL and DS-OFUL keep making mistakes, on both kinds of features."""
    for data in ("standard", "tiny"):
        assert _all(_seen("half", data, "Γ")) and _all(_seen("half", data, "OFUL"))
    return RUNS


def _panel(zeta: str) -> None:
    """Standard features: everything flattens. Weaker ones: DS-OFUL with Γ = 0.1, and neither OFUL
    nor Γ = 0.05, which the paper recommends.
    """
    assert _all(_seen("constant", "standard", f"ζ = {zeta},"))
    assert _all(_seen("constant", "tiny", f"ζ = {zeta},", "Γ = 0.1"))
    for row in ("OFUL", "Γ = 0.05"):
        assert _all(_seen("constant", "tiny", f"ζ = {zeta},", row), "not reproduced")


def figure_4b(size: str = "ci") -> Found:
    """At ζ = 0.1 data selection keeps regret from growing."""
    _panel("0.1")
    return RUNS


def figure_4c(size: str = "ci") -> Found:
    """At ζ = 0.05 data selection keeps regret from growing."""
    _panel("0.05")
    return RUNS


def eventually(size: str = "ci") -> Found:
    """A tie on standard features, a clear win on the weaker ones."""
    assert _seen("eventually", "standard")[0].interval == (0.0, 0.0)
    assert _all(_seen("eventually", "tiny")) and not _all(_seen("eventually", "standard"))
    return RUNS


@formula()
def less(ours: float, other: float) -> bool:
    """Less: one interval ends before the other begins."""
    return ours < other


def sup(size: str = "ci") -> Found:
    """SupLinUCB: more than twice OFUL's regret, and constant, at ζ = 0.01, on both kinds; less than
    OFUL's where ζ is large.
    """
    for data in ("standard", "tiny"):
        assert _all(_seen("sup", data, "ζ = 0.01"))
        plain = _seen("magnitude", data, "ζ = 0.01", "highest")[0]
        ours = _seen("magnitude", data, "ζ = 0.01", "SupLinUCB")[0]
        assert half_of(plain.interval[1], ours.interval[0])
        assert not half_of(ours.interval[1], plain.interval[0])
    for data, zeta in (("tiny", 0.1), ("tiny", 0.5), ("standard", 0.5)):
        plain = _seen("magnitude", data, f"ζ = {zeta:g},", "highest")[0]
        ours = _seen("magnitude", data, f"ζ = {zeta:g},", "SupLinUCB")[0]
        assert less(ours.interval[1], plain.interval[0])
        assert not less(plain.interval[1], ours.interval[0])
    assert "not reproduced" in _anywhere("sup", "ζ = 0.01, SupLinUCB")
    _half_is_half()
    assert less(1.0, 2.0) and not less(1.0, 1.0)
    return RUNS


@functools.cache
def _anywhere(claim: str, start: str) -> frozenset[str]:
    """Verdicts of one sentence on the weaker features, all curves at the same grid point."""
    cells = stored("asirra-weak")
    points = itertools.product(asirra_cells.BETAS, asirra_cells.LAMS)
    found = [asirra_figure.sentences(cells, point)[claim] for point in points]
    words = [s.verdict for lines in found for what, s in lines if what.startswith(start)]
    assert len(words) == 9
    return frozenset(words)


def constant(size: str = "ci") -> Found:
    """SupLinUCB on both kinds of features; Γ = 0.05 below OFUL where OFUL's regret grows."""
    for data in ("standard", "tiny"):
        assert _all(_seen("constant", data, "SupLinUCB"))
    for zeta in (0.01, 0.05, 0.1):
        assert "not reproduced" in _anywhere("constant", f"ζ = {zeta:g}, SupLinUCB")
        ours, plain = (
            _seen("constant", "tiny", f"ζ = {zeta:g},", row)[0] for row in ("Γ = 0.05", "OFUL")
        )
        assert half_of(ours.interval[1], plain.interval[0])
        assert not half_of(plain.interval[1], ours.interval[0])
    _half_is_half()
    return RUNS


def half(size: str = "ci") -> Found:
    """The least regret of the last part at ζ = 0.5 is above three times the most at smaller ζ."""
    for data in ("standard", "tiny"):
        calm = max(s.interval[1] for s in _seen("constant", data, "Γ"))
        least = min(s.interval[0] for s in _seen("half", data))
        assert three_times(least, calm) and not three_times(calm, least)
    assert not three_times(3.0, 1.0) and three_times(3.1, 1.0) and not three_times(2.9, 1.0)
    return RUNS


@formula()
def scale(Delta: float, d: int) -> float:
    """The threshold that the text names."""
    return Delta / math.sqrt(d)


@formula()
def jump(last: float, before: float) -> bool:
    """A step that grows clearly faster than the one before it."""
    return last > 1.5 * before


def threshold(size: str = "ci") -> Found:
    """0.05 and 0.1 are above Δ/√d too and go well on standard features, at the best grid point;
    where 2ζ is below Δ, runs fail; and OFUL's late mistakes make no jump in the step to 2ζ = Δ.
    """
    assert abs(scale(1.0, 512) - 0.0442) < 1e-4 and scale(1.0, 512) < 0.05
    half(size)
    mistakes = asirra_between.mistakes(stored("asirra-between"))
    words: dict[str, list[str]] = {"standard": [], "tiny": []}
    for data, found in words.items():
        for zeta in asirra_between.ZETAS:
            total, late = mistakes[data, zeta, "Γ = 0"].T
            calm, grows = verdict.constant(total, late), verdict.growing(total, late)
            found.append("constant" if says(calm.verdict, "reproduced") else "grows")
            assert says(grows.verdict, "reproduced") == (found[-1] == "grows")
        late = {z: mistakes[data, z, "Γ = 0"][:, 1].mean() for z in (0.3, 0.4, 0.5)}
        assert not jump(late[0.5] / late[0.4], late[0.4] / late[0.3])
    runs = asirra_figure.curves(stored("figure-4"), 0.1)["Γ = 0"][1.0, 10.0]
    calmer = asirra_figure.curves(stored("figure-4"), 0.05)["Γ = 0"][1.0, 10.0]
    half_way = asirra_cells.checkpoints(asirra_cells.ROUNDS).index(asirra_cells.ROUNDS // 2)
    for found_here, judge in ((runs, verdict.growing), (calmer, verdict.constant)):
        tail = found_here[:, -1] - found_here[:, half_way]
        assert says(judge(found_here[:, -1], tail).verdict, "reproduced")
    assert words == {"standard": ["constant"] * 3 + ["grows"] * 4, "tiny": ["grows"] * 7}
    assert jump(1.6, 1.0) and not jump(1.5, 1.0) and not jump(1.4, 1.0)
    return ATTAINED
