"""The built site, read as files: links, anchors, ids, and no request to another host."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

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
    indices = {"index.html", "search.html", "genindex.html", "prf-prf.html"}
    assert names <= {"book", "notebooks", "_static"} | indices


def test_no_buttons_lead_to_an_unknown_repository(site):
    for page in pages(site):
        text = page.read_text("utf8")
        assert "mybinder.org/v2" not in text and "colab.research.google.com/github" not in text


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
