"""The linter that finds results typed into prose bites, and lets what is marked pass."""

from __future__ import annotations

import pytest

from book import typed_numbers as lint


@pytest.mark.parametrize(
    "line",
    [
        "The regret is 235.75 on average.",
        "It fell by 12%.",
        "It fell by 12 percent.",
        "After 10,000 rounds it stops.",
        "The bound is 7.8 × 10⁹.",
        r"The ratio is $\approx 2.5$ here.",
        "> a quoted 3.14 counts too",
        "1. the first item has 0.5",
        ":::{note}\nHere 1.25 is prose.\n:::",
        "```{prf:remark} Title\n:label: x\nHere 1.25 is prose.\n```",
    ],
)
def test_a_typed_result_is_found(line):
    assert lint.suspects(line)


@pytest.mark.parametrize(
    "line",
    [
        "The regret is {glue:text}`regret` on average.",
        "The paper prints {paper}`405.4`, over {setting}`10,000` rounds.",
        r"Let $\Gamma=0.05$ and $16d\Gamma^{-2}$.",
        "Figure 2 has 3 panels and 512 dimensions.",
        "See {cite:t}`abbasi2011improved`, 2011, and [this](https://example.org/1.5).",
        "```{code-cell} ipython3\nx = 3.14\n```",
        "```{math}\n:label: eq-x\n2.35\n```",
        "$$\n3.14\n$$",
        r"$$x\le3.14\,y$$",
        "The text is under CC BY 4.0.",
        "---\nversion: 1.25\n---\ntext",
        "`2.5` is code.",
    ],
)
def test_what_is_marked_or_not_prose_passes(line):
    assert lint.suspects(line) == []


def test_the_command_names_file_and_line(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nIt was 3.14.\n")
    assert lint.main([str(page)]) == 1
    assert f"{page}:3: 3.14" in capsys.readouterr().out


def test_the_book_has_no_typed_results():
    assert lint.main([]) == 0
