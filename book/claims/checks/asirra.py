"""Checks of the claims about the runs on Asirra, from the stored results."""

from __future__ import annotations

import functools
import math

from banditlib.paper import sweep
from banditlib.paper.made import stored


@functools.cache
def _judged(data: str) -> dict:
    """The paper's sentences on the standard features, or on the weaker ones."""
    names = ("figure-1b", "figure-4") if data == "standard" else ("asirra-weak",)
    return sweep.sentences([cell for name in names for cell in stored(name)])


def _seen(claim: str, data: str, *words: str) -> list:
    """What was looked at for a claim, where all the words occur in its description."""
    found = [s for what, s in _judged(data)[claim] if all(w in what for w in words)]
    assert found, (claim, words)
    return found


def _all(found: list, word: str = "reproduced") -> bool:
    return all(sentence.verdict == word for sentence in found)


def figure_1b(size: str = "ci", data: str = "tiny") -> None:
    """The order and the shape on the weaker features; the magnitudes on none."""
    for which in ("standard", "tiny"):
        assert _all(_seen("magnitude", which, "ζ = 0.01"), "not reproduced")
    assert _all(_seen("eventually", data)) and _all(_seen("sup", data))


def figure_4(size: str = "ci", factor: float = 1.0) -> None:
    """Much regret at ζ = 0.5, less at 0.1, and less at 0.05; the magnitudes on none."""
    for data in ("standard", "tiny"):
        top = {z: _seen("magnitude", data, f"ζ = {z:g},", "highest")[0] for z in (0.5, 0.1, 0.05)}
        assert factor * top[0.5].interval[0] > 3 * top[0.1].interval[1]
        assert top[0.1].interval[0] > top[0.05].interval[1]
        assert _all(list(top.values()), "not reproduced")


def figure_4a(size: str = "ci", claim: str = "half") -> None:
    for data in ("standard", "tiny"):
        assert _all(_seen(claim, data, "Γ")) and _all(_seen(claim, data, "OFUL"))


def figure_4b(size: str = "ci", zeta: str = "0.1", oful: str = "not reproduced") -> None:
    """Standard features: everything flattens. Weaker ones: DS-OFUL with Γ = 0.1, not OFUL."""
    assert _all(_seen("constant", "standard", f"ζ = {zeta},"))
    assert _all(_seen("constant", "tiny", f"ζ = {zeta},", "Γ = 0.1"))
    assert _all(_seen("constant", "tiny", f"ζ = {zeta},", "OFUL"), oful)


def figure_4c(size: str = "ci", oful: str = "not reproduced") -> None:
    figure_4b(zeta="0.05", oful=oful)


def eventually(size: str = "ci", data: str = "tiny") -> None:
    """A tie on standard features, a clear win on the weaker ones."""
    assert _seen("eventually", "standard")[0].interval == (0.0, 0.0)
    assert _all(_seen("eventually", data))


def sup(size: str = "ci", claim: str = "sup") -> None:
    for data in ("standard", "tiny"):
        assert _all(_seen(claim, data, "ζ = 0.01"))


def constant(size: str = "ci", curve: str = "SupLinUCB") -> None:
    """SupLinUCB on both kinds of features; Γ = 0.05 below OFUL where OFUL's regret grows."""
    for data in ("standard", "tiny"):
        assert _all(_seen("constant", data, curve))
    for zeta in (0.01, 0.05, 0.1):
        ours, plain = (
            _seen("constant", "tiny", f"ζ = {zeta:g},", row)[0] for row in ("Γ = 0.05", "OFUL")
        )
        assert ours.interval[1] < 0.5 * plain.interval[0]


def half(size: str = "ci", ratio: float = 3.0) -> None:
    for data in ("standard", "tiny"):
        calm = max(s.interval[1] for s in _seen("constant", data, "Γ"))
        assert min(s.interval[0] for s in _seen("half", data)) > ratio * calm


def threshold(size: str = "ci", d: int = 512) -> None:
    """0.05 and 0.1 are above Δ/√d too and go well; 2ζ reaches Δ = 1 where the runs fail, at 0.5."""
    assert 1.0 / math.sqrt(d) < 0.05
    half()
