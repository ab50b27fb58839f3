"""Figures are written with few bytes, and what they draw stays where it was."""

from __future__ import annotations

import csv
import re
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from banditlib.paper import notebook, render


def corners(path: str) -> list[tuple[float, float]]:
    """The points that a path of straight lines goes through, absolute or relative."""
    points: list[tuple[float, float]] = []
    x = y = 0.0
    start = (x, y)
    for command, text in re.findall(r"([MLlhvz])([^MLlhvz]*)", path):
        values = [float(v) for v in re.findall(r"-?\d*\.?\d+", text)]
        match command:
            case "M":
                x, y = values
                start = (x, y)
            case "L":
                x, y = values
            case "l":
                x, y = x + values[0], y + values[1]
            case "h":
                x += values[0]
            case "v":
                y += values[0]
            case "z":
                x, y = start
        points.append((x, y))
    return points


def without_middles(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Leave out a point on the way between its neighbours along a horizontal."""
    out: list[tuple[float, float]] = []
    for p in points:
        level = len(out) > 1 and out[-2][1] == out[-1][1] == p[1]
        if level and (p[0] - out[-1][0]) * (out[-1][0] - out[-2][0]) > 0:
            out.pop()
        out.append(p)
    return out


@pytest.mark.parametrize("seed", range(20))
def test_short_steps_go_through_the_same_points(seed):
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(rng.integers(1, 4)):
        steps = rng.integers(-900, 900, (rng.integers(1, 30), 2)) * rng.integers(0, 2, 2)
        steps[:, rng.integers(2)] *= rng.integers(0, 2, len(steps))
        places = np.cumsum(steps, axis=0) / 10
        parts += [f"{'L' if i else 'M'} {x:g} {y:g} " for i, (x, y) in enumerate(places)]
        if rng.random() < 0.5:
            parts += ["z "] + [f"L {x:g} {y:g} " for x, y in places[:1] + 1.5]
    path = "".join(parts)
    short = render._steps(path)
    assert len(short) <= len(path)
    np.testing.assert_allclose(corners(short), without_middles(corners(path)), atol=1e-6)


def test_a_turn_back_along_a_horizontal_is_kept():
    assert render._steps("M 0 0 L 5 0 L 9 0 L 2 0 L 2 3.5") == "M0 0h9h-7v3.5"
    assert render._steps("M 0 0 Q 1 2 3 4") == "M 0 0 Q 1 2 3 4"


def test_every_reference_of_a_drawing_is_its_own():
    drawings = []
    for height in (1, 2):
        fig, ax = plt.subplots()
        ax.plot([0, 1, 2], [0, height, height], marker="o", label="a")
        ax.fill_between([0, 1, 2], [0, 0, 0], [1, height, 1], hatch="//")
        ax.legend()
        drawings.append(render.svg(fig))
        plt.close(fig)
    own = [set(re.findall(r' id="([^"]+)"', text)) for text in drawings]
    for text, ids in zip(drawings, own, strict=True):
        used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text))
        assert {a or b for a, b in used} == ids
        assert text.count("<g") == text.count("</g>")
    assert not own[0] & own[1]


def test_the_points_behind_a_figure_can_be_had():
    fig, (left, right) = plt.subplots(1, 2)
    left.set_title("lines")
    left.plot([0, 1], [2, 3], label="a")
    left.scatter([5], [6])
    left.bar([1, 2], [3, 4], label="bars")
    left.fill_between([0, 1], [0, 0], [1, 1], label="band")
    right.pcolormesh([0, 1, 2], [0, 1], [[7, np.nan]])
    right.imshow([[8.0, 9.0]], extent=(0, 2, 0, 1), origin="lower")
    found = list(csv.reader(notebook.plotted(fig).splitlines()))
    plt.close(fig)
    assert found[0] == ["panel", "series", "x", "y", "value"]
    assert ["lines", "a", "0", "2", ""] in found and ["lines", "a", "1", "3", ""] in found
    assert ["lines", "2", "5", "6", ""] in found
    assert ["lines", "bars", "2", "4", ""] in found
    assert ["lines", "band", "1", "1", ""] in found
    assert ["2", "1", "0.5", "0.5", "7"] in found and ["2", "1", "1.5", "0.5", "nan"] in found
    assert ["2", "2", "1.5", "0.5", "9"] in found


def test_a_long_line_is_thinned_between_its_ends():
    fig, ax = plt.subplots()
    ax.plot(np.arange(5000), np.arange(5000), label="two\nlines")
    found = list(csv.reader(notebook.plotted(fig).splitlines()))[1:]
    plt.close(fig)
    assert len(found) == 1000 and {series for _, series, *_ in found} == {"two lines"}
    assert found[0][2] == "0" and found[-1][2] == "4999"


def test_a_table_comes_as_html_markdown_and_csv():
    forms, behind = notebook.table(["a", "b"], [["x, y", 1]])._repr_mimebundle_()
    assert '<th scope="row">x, y</th><td>1</td>' in forms["text/html"]
    assert forms["text/markdown"].splitlines()[-1] == "| x, y | 1 |"
    assert behind["csv"] == 'a,b\n"x, y",1\n'
    words = notebook.table(["", "work", "ratio"], [["(a)", "LSW by counts, 10 rounds", "3.1×"]])
    text = words._repr_mimebundle_()[0]["text/html"]
    assert '<th scope="col" class="words">work</th><th scope="col">ratio</th>' in text
    assert '<td class="words">LSW by counts, 10 rounds</td><td>3.1×</td>' in text
    with pytest.raises(ValueError, match="a row has 1 cells, head has 2"):
        notebook.table(["a", "b"], [["x"]])


def test_a_figure_comes_as_svg_png_and_words():
    fig, ax = plt.subplots()
    ax.plot([0, 1], [2, 3], label="a")
    with pytest.raises(ValueError, match="alt must be a sentence"):
        notebook.figure(fig, "a line")
    drawing = notebook.figure(fig, 'A line, called "a", that rises.')
    assert not plt.fignum_exists(fig.number)
    forms, behind = drawing.inside("<section>", "</section>")._repr_mimebundle_()
    assert forms["text/html"].startswith('<section><div class="bl-figure" role="img"')
    assert 'aria-label="A line, called &quot;a&quot;, that rises."' in forms["text/html"]
    assert '<svg aria-hidden="true"' in forms["text/html"] and "</section>" in forms["text/html"]
    assert forms["text/plain"] == '[figure: A line, called "a", that rises.]'
    assert behind["csv"].splitlines()[1] == "1,a,0,2,"
    assert "<section>" not in drawing.html


def test_a_named_bar_is_read_from_end_to_end():
    fig, ax = plt.subplots()
    ax.add_patch(plt.Rectangle((1, 4), 2, 1, label="harmless"))
    found = list(csv.reader(notebook.plotted(fig).splitlines()))
    plt.close(fig)
    assert found[1:] == [["1", "harmless", "1", "4.5", ""], ["1", "harmless", "3", "4.5", ""]]


def test_verdicts_stand_first_with_their_sign():
    shown = notebook.table(["row", "ours", "verdict"], [["OFUL", "1.5", "reproduced in kind"]])
    text = shown._repr_mimebundle_()[0]["text/html"]
    assert text.index("verdict</th>") < text.index("ours</th>")
    assert '<td class="verdict-cell is-mixed">≈\N{NO-BREAK SPACE}reproduced in kind</td>' in text


def test_a_plain_notebook_prints_what_the_book_glues(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "myst_nb", None)
    notebook.glue("rounds", 18000, ",")
    assert capsys.readouterr().out == "rounds = 18,000\n"
