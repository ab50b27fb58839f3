"""The colours of text can be read, by day and by night."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT


def colours(theme: str) -> dict[str, str]:
    css = (ROOT / "book" / "_static" / "book.css").read_text("utf8")
    start = css.index(f'html[data-theme="{theme}"]')
    block = css[start : css.index("}", start)]
    assert "--paper" in block
    return dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", block))


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_formula():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_colours_meet_aa(theme):
    palette = colours(theme)
    for ink in ("ink", "quiet", "blue", "brick", "green", "ochre", "plum"):
        for ground in ("paper", "panel"):
            assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)
    for ink, ground in (("green", "wash-green"), ("ochre", "wash-ochre"), ("brick", "wash-brick")):
        assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)
    assert contrast(palette["quiet"], palette["wash-grey"]) >= 4.5
