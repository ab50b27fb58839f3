"""The built site, read as files: links, anchors, ids, and no request to another host."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from book import address
from book.build import settings as book_settings

pytestmark = pytest.mark.site

SEARCH_ONLY = {"genindex.html", "search.html"}


@cache
def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text("utf8"), "html.parser")


@cache
def anchors(path: Path) -> frozenset[str]:
    page = soup(path)
    named = {tag["id"] for tag in page.find_all(id=True)}
    return frozenset(named | {tag["name"] for tag in page.find_all("a", attrs={"name": True})})


def pages(site: Path) -> list[Path]:
    found = [p for p in sorted(site.rglob("*.html")) if "_static" not in p.parts]
    assert len(found) > 5
    return found


def test_internal_links_and_anchors_resolve(site):
    broken = []
    for page in pages(site):
        for tag in soup(page).find_all("a", href=True):
            link = urlsplit(tag["href"])
            if link.scheme or link.netloc or tag["href"] == "#":
                continue
            target = (page.parent / unquote(link.path)).resolve() if link.path else page
            if not target.exists():
                broken.append(f"{page.relative_to(site)}: {tag['href']}")
                continue
            known = anchors(target) if target.suffix == ".html" and link.fragment else None
            if known is not None and unquote(link.fragment) not in known:
                broken.append(f"{page.relative_to(site)}: {tag['href']} (no such anchor)")
    assert not broken, "\n".join(sorted(set(broken)))


def test_the_ledger_can_typeset_its_formulas(site):
    """They are typeset as their rows come into view, so the page must load MathJax."""
    page = soup(site / "book" / "claims-ledger.html")
    assert page.find_all(class_="later-math")
    assert any("mathjax" in (tag.get("src") or "") for tag in page.find_all("script"))


def test_nothing_is_asked_of_another_host(site):
    outside = []
    for page in pages(site):
        for tag in soup(page).find_all(["script", "link", "img", "iframe", "source", "video"]):
            address = tag.get("src") or tag.get("href") or ""
            if re.match(r"(https?:)?//", address) and tag.get("rel") != ["canonical"]:
                outside.append(f"{page.relative_to(site)}: {address}")
    for sheet in (site / "_static").rglob("*.css"):
        for address in re.findall(
            r"url\(\s*[\"']?((?:https?:)?//[^)\"']*)", sheet.read_text("utf8")
        ):
            outside.append(f"{sheet.relative_to(site)}: {address}")
    assert not outside, "\n".join(sorted(set(outside)))


def test_no_script_mentions_a_content_network(site):
    for page in pages(site):
        for script in soup(page).find_all("script"):
            text = script.get_text()
            assert not re.search(r"unpkg|jsdelivr|cdnjs|cdn\.plot\.ly", text), (
                page.name,
                text[:90],
            )


def test_ids_are_unique(site):
    for page in pages(site):
        ids = [tag["id"] for tag in soup(page).find_all(id=True)]
        twice = {name for name in ids if ids.count(name) > 1}
        assert not twice, f"{page.relative_to(site)}: {sorted(twice)[:8]}"


def test_pages_have_language_title_and_one_heading(site):
    for page in pages(site):
        if page.name in SEARCH_ONLY or page == site / "index.html":
            continue
        document = soup(page)
        assert document.html["lang"] == "en" and document.title.get_text().strip()
        assert len(document.article.find_all("h1")) == 1, page.name


def test_images_have_alternatives(site):
    for page in pages(site):
        for image in soup(page).find_all("img"):
            assert image.get("alt"), (page.name, image.get("src"))
        for drawing in soup(page).select("[role=img]"):
            assert len(drawing.get("aria-label", "")) >= 15


def test_hidden_folders_and_tests_are_not_published(site):
    names = {p.relative_to(site).parts[0] for p in site.rglob("*.html")}
    indices = {"index.html", "search.html", "genindex.html"}
    assert names <= {"book", "notebooks", "_static"} | indices


def test_no_buttons_lead_to_an_unknown_repository(site):
    if address.repository(book_settings()["sphinx"]["config"]["repository"]):
        pytest.skip("the repository is known: pages have their buttons")
    for page in pages(site):
        text = page.read_text("utf8")
        assert "mybinder.org/v2" not in text and "colab.research.google.com/github" not in text


def test_pages_describe_themselves_in_words(site):
    told = {}
    for page in pages(site):
        if page.name in SEARCH_ONLY or page == site / "index.html":
            continue
        document = soup(page)
        tags = {tag["property"]: tag["content"] for tag in document.select("meta[property]")}
        assert not re.search(r"[<>]|&lt;", tags["og:title"]), tags["og:title"]
        (description,) = document.select("meta[name=description]")
        text = description["content"]
        assert 40 <= len(text) <= 210, (page.name, text)
        assert text == tags["og:description"] and not re.search(r"[\\\\${}]", text), text
        assert tags.get("og:image", "https://").startswith("https://")
        told.setdefault(text, []).append(page.name)
    assert all(len(names) == 1 for names in told.values()), told


def test_pages_say_what_they_may_load(site):
    for page in pages(site):
        if page != site / "index.html":
            (policy,) = soup(page).select("meta[http-equiv=Content-Security-Policy]")
            assert "default-src 'self'" in policy["content"] and "http" not in policy["content"]


def test_what_is_copied_is_there_and_small(site):
    static = site / "_static"
    for part in (
        "mathjax/tex-mml-chtml.js",
        "fonts/SourceSerifPro-Regular.woff2",
        "fonts/LICENSE.txt",
        "social-card.png",
        "favicon.svg",
    ):
        assert (static / part).stat().st_size > 100
    size = sum(p.stat().st_size for p in (static / "mathjax").rglob("*") if p.is_file())
    assert size < 4e6
