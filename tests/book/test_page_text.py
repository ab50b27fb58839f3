"""What the reader gets around the text: times, quoted results, panels, budgets, no lost page."""

from __future__ import annotations

import itertools
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from conftest import ROOT

from book import build, pdf
from book.extensions import page_text, search_index, shown_cells, site_assets, symbols

# Pages whose data are meant to be played with.
INTERACTIVE = {"notebooks/play.html", "notebooks/interplay.html"}
PAGE_BUDGET, SHARED_BUDGET = 500_000, 4_000_000


@cache
def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text("utf8"), "html.parser")


def pages(site: Path) -> list[Path]:
    return [p for folder in ("book", "notebooks") for p in sorted((site / folder).glob("*.html"))]


# ---- Without a built site


def test_reading_time_counts_words_formulas_and_figures():
    assert page_text.minutes(0, 0, 0) == 1
    assert page_text.minutes(page_text.WORDS * 10, 0, 0) == 10
    assert page_text.minutes(page_text.WORDS * 10, 30, 3) == 10 + 4 + 1


def test_words_in_code_and_formulas_are_not_read():
    from docutils import nodes
    from docutils.utils import new_document

    page = new_document("page")
    page += nodes.paragraph("", "three plain words")
    page += nodes.literal_block("", "code is not prose")
    page += nodes.math_block("", "a + b = c")
    assert page_text.count(page) == (3, 1, 0)


@pytest.mark.parametrize("chapter", build.chapters(), ids=lambda path: path.stem)
def test_launch_links_name_the_exported_notebook(chapter):
    colab = "https://colab.research.google.com/github/somebody/something/blob/main/notebooks/"
    binder = "https://mybinder.org/v2/gh/somebody/something/main?urlpath=lab/tree/notebooks/"
    urls = [{"url": f"{start}{chapter.stem}.md"} for start in (colab, binder)]
    site_assets.mend_launch_links(None, "", "", {"header_buttons": [{"buttons": urls}]}, None)
    assert urls[0]["url"].endswith(f"/blob/notebooks/notebooks/{chapter.stem}.ipynb")
    assert urls[1]["url"].endswith(f"/notebooks?urlpath=lab/tree/notebooks/{chapter.stem}.ipynb")


def test_stored_results_have_their_panels():
    """A chapter that reads stored results says how they were made."""
    for chapter in build.chapters():
        text = chapter.read_text("utf8")
        if re.search(r"\b(read_pack|table_1\.load|stored\()", text):
            assert re.search(r'^how_made\("[\w-]+"', text, re.MULTILINE), chapter.name


def test_symbols_are_those_of_the_notation_page():
    source = "| Symbol | In code | Meaning |\n|---|---|---|\n"
    source += "| $\\mathbf x_{k}$, $r_k$ | `r` | an *arm* & its reward, $r<1$ |\n"
    source += "| $\\iota_1,\\iota_2$ | | logarithms |\n"
    arm, logs = symbols.table(source)
    assert arm["symbols"] == ["x_k", "r_k"] and logs["symbols"] == ["\\iota_1", "\\iota_2"]
    assert arm["html"].endswith(": an <em>arm</em> &amp; its reward, \\(r&lt;1\\)")
    rows = symbols.table((ROOT / "book" / "notation.md").read_text("utf8"))
    known = [name for row in rows for name in row["symbols"]]
    assert {"K", "d", "\\zeta", "\\Delta", "\\Gamma", "\\theta^*"} <= set(known)
    assert len(known) == len(set(known)), "a symbol with two meanings"
    assert symbols.plain("{B}") not in known  # the way to say that a letter means something else


def test_formulas_keep_their_punctuation():
    formula = '<span class="math notranslate nohighlight">\\(K\\)</span>'
    kept = page_text.TOUCHING.sub(page_text.bind, f"<p>all ({formula}), and {formula} rounds</p>")
    short = formula.replace(" nohighlight", "")
    assert kept == f'<p>all <span class="nb">({short}),</span> and {short} rounds</p>'


def test_glossary_is_used():
    texts = [p.read_text("utf8") for p in (ROOT / "book").glob("*.md") if p.stem != "glossary"]
    assert sum(text.count("{term}`") for text in texts) >= 4


# ---- In the built site


@pytest.mark.site
def test_chapters_say_how_long_they_take_to_read(site):
    for page in (site / "notebooks").glob("*.html"):
        found = soup(page).select("p.reading-time")
        assert len(found) == 1, page.name
        assert re.fullmatch(r"About \d+ minutes? to read", found[0].get_text())


@pytest.mark.site
def test_execution_times_list_every_chapter(site):
    rows = soup(site / "book" / "execution-times.html").select("table.execution-times tbody tr")
    shown = {row.a["href"] for row in rows if row.a}
    assert shown == {f"../notebooks/{p.name}" for p in (site / "notebooks").glob("*.html")}
    for row in rows:
        assert re.search(r"\d s$", row.find_all("td")[-1].get_text().strip()), row.get_text()


@pytest.mark.site
def test_landing_page_names_the_paper_plays_and_has_three_findings_and_doors(site):
    page = soup(site / "book" / "index.html")
    text = page.article.get_text()
    assert "On the Interplay Between Misspecification" in text and "Quanquan Gu" in text
    assert page.select_one('.paper-line a[href="https://arxiv.org/abs/2303.09390"]')
    assert len(page.select("[data-play=separation]")) == 1
    assert len(page.select(".landing ol > li")) == 3 and len(page.select(".doors .sd-card")) == 3
    assert "?" not in {tag.get_text() for tag in page.select(".landing .pasted-text")}


@pytest.mark.site
def test_chapters_say_once_how_they_were_made(site):
    """One strip at the end, with the panels of the stored results that the chapter reads."""
    for page in sorted((site / "notebooks").glob("*.html")):
        strips = [d for d in soup(page).select("details.made") if not d.find_parent("details")]
        assert len(strips) == bool(soup(page).select(".bl-figure, .bl-table")), page.name
        for panel in soup(page).select("details.made"):
            terms = {dt.get_text() for dt in panel.dl.find_all("dt")}
            assert {"Command", "Commit", "Machine", "Computing time"} <= terms, page.name


@pytest.mark.site
def test_every_figure_and_table_of_a_chapter_can_be_had(site):
    """Links to its files come before the next figure or table, and lead to files."""
    for page in sorted((site / "notebooks").glob("*.html")):
        shown = soup(page).select(".bl-figure, .bl-table, .downloads")
        for here, after in itertools.pairwise([*shown, None]):
            if "downloads" not in here["class"]:
                assert after is not None and "downloads" in after["class"], (
                    page.name,
                    str(here)[:300],
                )
                assert any(a["href"].endswith(".csv") for a in after.select("a[download]"))
        for link in soup(page).select(".downloads a"):
            assert (page.parent / link["href"]).resolve().exists(), (page.name, link["href"])


@pytest.mark.site
def test_files_behind_figures_hold_points(site):
    found = sorted((site / "_static" / "results" / "drawn").glob("*.csv"))
    drawn = [path for path in found if path.with_suffix(".svg").exists()]
    assert drawn
    for path in found:
        assert len(path.read_text("utf8").splitlines()) > 2, path.name
    for path in drawn:
        assert path.read_text("utf8").startswith("panel,series,x,y,value\n")
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert "currentColor" not in path.with_suffix(".svg").read_text("utf8")


@pytest.mark.site
def test_pages_keep_within_their_budget(site):
    heavy = {}
    for page in pages(site):
        name = page.relative_to(site).as_posix()
        own = page.stat().st_size
        for tag in soup(page).find_all(["img", "source"], src=True):
            path = (page.parent / unquote(urlsplit(tag["src"]).path)).resolve()
            own += path.stat().st_size if path.is_file() and "_images" in path.parts else 0
        if own > PAGE_BUDGET and name not in INTERACTIVE:
            heavy[name] = own
    assert not heavy, f"over {PAGE_BUDGET:,} bytes: {heavy}"


@pytest.mark.site
def test_shared_files_keep_within_their_budget(site):
    static = site / "_static"
    shared = [p for p in static.rglob("*") if p.is_file() and "results" not in p.parts]
    sizes = sorted(((p.stat().st_size, p.name) for p in shared), reverse=True)
    assert sum(size for size, _ in sizes) < SHARED_BUDGET, sizes[:8]
    assert not list(static.rglob("*.map"))


@pytest.mark.site
def test_no_page_is_an_orphan(site):
    """From the landing page every page can be reached by links inside the site."""
    start = site / "book" / "index.html"
    seen, todo = {start}, [start]
    while todo:
        page = todo.pop()
        for tag in soup(page).find_all("a", href=True):
            link = urlsplit(tag["href"])
            if link.scheme or link.netloc or not link.path.endswith(".html"):
                continue
            target = (page.parent / unquote(link.path)).resolve()
            if target.exists() and target not in seen:
                seen.add(target)
                todo.append(target)
    assert set(pages(site)) <= seen


@pytest.mark.site
def test_previous_and_next_follow_the_contents(site):
    import yaml

    order = build.toc_entries(yaml.safe_load((ROOT / "_toc.yml").read_text("utf8")))
    for here, after in itertools.pairwise(order):
        page = site / f"{here}.html"
        link = soup(page).select_one("a.right-next")
        assert link is not None, here
        assert (page.parent / link["href"]).resolve() == (site / f"{after}.html").resolve()


# ---- The whole book as a PDF


def test_links_between_pages_become_links_inside_the_pdf():
    pages = ["book/index", "notebooks/model"]
    assert pdf.target("book/index", "../notebooks/model.html", pages) == "#notebooks-model"
    assert pdf.target("book/index", "../notebooks/model.html#x", pages) == "#notebooks-model--x"
    assert pdf.target("notebooks/model", "#x", pages) == "#notebooks-model--x"
    assert pdf.target("notebooks/model", "https://example.org/#x", pages).startswith("https")


@pytest.mark.site
def test_pdf_has_every_page_and_no_lost_link(site):
    import yaml

    pages = build.toc_entries(yaml.safe_load((ROOT / "_toc.yml").read_text("utf8")))
    book = BeautifulSoup(pdf.whole(site, pages), "html.parser")
    assert [tag["id"] for tag in book.select("section.book-page")] == [pdf.anchor(p) for p in pages]
    ids = [tag["id"] for tag in book.find_all(id=True) if tag.find_parent("svg") is None]
    assert len(ids) == len(set(ids))
    inside = {a["href"][1:] for a in book.find_all("a", href=True) if a["href"].startswith("#")}
    assert inside <= set(ids) | {""}, sorted(inside - set(ids))[:5]


# ---- Folded cells


def folded(text: str, mode: str, *outputs: str):
    from docutils import nodes

    cell = nodes.container(nb_element="cell_code", hide_mode=mode, classes=["cell"])
    cell += nodes.container("", nodes.literal_block(text, text), nb_element="cell_code_source")
    cell.extend(nodes.paragraph(output, output) for output in outputs)
    return cell


def test_folded_cells_in_a_row_share_a_fold():
    from docutils import nodes
    from docutils.utils import new_document

    page = new_document("page")
    page += [folded("a", "input"), folded("b", "input"), folded("c", "input", "seen")]
    page += [folded("d", "input"), nodes.paragraph("", "between"), folded("e", "input")]
    page += [
        folded("f", "all", "unseen"),
        folded("g", "all"),
        nodes.container(nb_element="cell_code"),
    ]
    shown_cells.join_folds(page)
    cells = [box for box in page if isinstance(box, nodes.container)]
    codes = [[x.astext() for x in box.findall(nodes.literal_block)] for box in cells]
    assert codes == [["a", "b", "c"], ["d"], ["e"], ["f", "g"]]
    assert [len(box) for box in cells] == [2, 1, 1, 1] and cells[0][1].astext() == "seen"
    assert all(box[0]["nb_element"] == "cell_code_source" for box in cells)
    inner = [box for cell in cells for box in cell.findall(nodes.container) if box is not cell]
    assert not any("hide_mode" in box for box in inner)


@pytest.mark.site
def test_no_fold_stands_right_below_another(site):
    for path in pages(site):
        for fold in soup(path).select("div.cell > details.above-input:only-child"):
            after = fold.parent.find_next_sibling()
            kind = "tag_hide-input" in fold.parent["class"]
            same = after is not None and after.select_one(":scope > details.above-input")
            assert not same or ("tag_hide-input" in after["class"]) != kind, f"{path.name}: {after}"


# ---- The search


PAGE = """<section id="top"><h1>Title<a class="headerlink">#</a></h1><p>The paper prints 405.4.</p>
<section id="inner"><h2>Inner</h2><p>About <span class="math">\\(\\zeta\\sqrt d\\)</span>.</p>
<div class="proof lemma admonition" id="lm-x"><p class="admonition-title"><span>Lemma 1.2 </span>
(Nice)</p><p>It holds.</p></div></section>
<div class="cell_input"><pre>hidden = code</pre></div>
<table><tr id="claim-lm-he"><td>Lemma C.4</td><td>false as stated</td></tr></table></section>"""


def test_search_knows_sections_statements_and_rows():
    found = {anchor: (title, text) for anchor, title, text in search_index.entries(PAGE)}
    assert list(found) == ["top", "inner", "lm-x", "claim-lm-he"]
    assert found["top"][0] == "Title" and "405.4" in found["top"][1]
    assert "ζ√d" in found["inner"][1] and "holds" not in found["inner"][1]
    assert found["lm-x"] == ("Lemma 1.2 (Nice)", "Lemma 1.2 (Nice) It holds.")
    assert found["claim-lm-he"][1] == "Lemma C.4 false as stated"
    assert not any("hidden" in text for _, text in found.values())


NAMES = """<section id="policies"><h2>Policies</h2>
<span id="api-dsoful"><span id="index-1"></span></span><dl class="simple myst" id="api-oful">
<dt><code>bl.DSOFUL(Gamma, beta)</code>, <code>bl.OFUL(beta)</code></dt><dd>Algorithm 1.</dd></dl>
<p id="api-lower-bound"><span id="api-nearly-orthogonal"></span>The family is
<code>bl.problems.lower_bound</code>, on <code>nearly_orthogonal(n)</code> arms.</p></section>"""


def test_search_knows_names_of_the_package():
    found = {anchor: (title, text) for anchor, title, text in search_index.entries(NAMES)}
    assert found["api-dsoful"] == (
        "bl.DSOFUL(Gamma, beta)", "bl.DSOFUL(Gamma, beta), bl.OFUL(beta) Algorithm 1."
    )  # fmt: skip
    assert found["api-oful"][0] == "bl.OFUL(beta)"
    assert found["api-lower-bound"][0] == "bl.problems.lower_bound"
    assert found["api-nearly-orthogonal"][0] == "nearly_orthogonal(n)"


@pytest.mark.site
def test_search_index_leads_to_places_that_exist(site):
    import json

    text = (site / "_static" / "search-index.js").read_text("utf8")
    index = json.loads(text.removeprefix("window.bookSearchIndex=").rstrip(";\n"))
    assert len(text.encode()) < 1_500_000 and len(index) >= 25
    for page in index:
        ids = {tag["id"] for tag in soup(site / page["url"]).find_all(id=True)}
        assert {anchor for anchor, _, _ in page["entries"]} <= ids, page["url"]
        assert not re.search(r"\\\\(?:frac|mathbf|zeta)", json.dumps(page["entries"])), page["url"]
    everything = " ".join(body for page in index for _, _, body in page["entries"])
    assert "405.4" in everything and "SupLinUCB" in everything
