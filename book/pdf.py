"""The whole book as one PDF, printed by Chromium from the built site (``make pdf``).

The articles of all pages are put one after the other into a single page: links between pages become
links inside it, formulas are typeset once, and the print style does the rest.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from book.build import toc_entries
from book.extensions.cachekey import ROOT

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
STYLE = """
.book-page { break-before: page; padding-top: 3mm; }
.book-title { break-after: page; padding-top: 30vh; text-align: center; }
.book-title h1::after { margin-inline: auto; }
.book-title p { color: var(--quiet); }
.book-contents { break-before: page; }
.book-contents ul { padding-left: 0; }
.book-contents li { list-style: none; margin: 0; }
.book-contents li.book-part { margin-top: 1.1em; color: var(--quiet); font-size: .85em; }
@media print {
  .book-page :is(.reading-time, .doors, .doors + p, .landing-play) { display: none; }
}
"""
SUBTITLE = "Linear contextual bandits, derived, run and refereed<br>The project’s contributors"
FOOTER = (
    '<div style="font: 8pt serif; width: 100%; text-align: center; color: #555">'
    '<span class="pageNumber"></span></div>'
)


def anchor(page: str, name: str = "") -> str:
    """The name in the whole book of an anchor of one page."""
    return page.replace("/", "-") + (f"--{name}" if name else "")


def target(page: str, href: str, pages: list[str]) -> str:
    """Where a link of `page` leads in the whole book."""
    link = urlsplit(href)
    if link.scheme or link.netloc:
        return href
    fragment = unquote(link.fragment)
    if not link.path:
        return f"#{anchor(page, fragment)}"
    other = os.path.normpath(os.path.join(os.path.dirname(page), unquote(link.path)))
    other = other.removesuffix(".html")
    return f"#{anchor(other, fragment)}" if other in pages else href


def article(site: Path, page: str, pages: list[str]) -> Any:
    """The article of one page, with names and links of the whole book."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup((site / f"{page}.html").read_text("utf8"), "html.parser")
    body = soup.select_one("article.bd-article")
    if body is None:
        raise ValueError(f"pdf: {page}.html has no article")
    for tag in body.find_all(id=True):
        if tag.find_parent("svg") is None:  # drawings have names of their own
            tag["id"] = anchor(page, str(tag["id"]))
    for tag in body.find_all("a", href=True):
        tag["href"] = target(page, str(tag["href"]), pages)
    for tag in body.select("script, .headerlink, .toggle-button"):
        tag.decompose()
    body.name = "section"
    body["id"] = anchor(page)
    body["class"] = "book-page"
    return body


def whole(site: Path, pages: list[str], captions: dict[str, str] | None = None) -> str:
    """The book as a single page of HTML, to be read from the folder ``book`` of the site.

    `captions` names the part that begins with a page.
    """
    from bs4 import BeautifulSoup

    first = (site / f"{pages[0]}.html").read_text("utf8")
    soup = BeautifulSoup(first, "html.parser")
    title = soup.select_one("article h1").get_text().rstrip("#")  # type: ignore[union-attr]
    head = "".join(str(tag) for tag in soup.select('head link[rel="stylesheet"]'))
    mathjax = "".join(
        str(tag) for tag in soup.find_all("script") if "mathjax" in str(tag).lower()[:400]
    )
    parts, contents = [], []
    for page in pages:
        body = article(site, page, pages)
        name = body.find("h1").get_text().rstrip("#")
        if captions and page in captions:
            contents.append(f'<li class="book-part">{captions[page]}</li>')
        contents.append(f'<li><a href="#{anchor(page)}">{name}</a></li>')
        parts.append(str(body))
    return (
        f'<!doctype html><html lang="en" data-theme="light" data-mode="light"><head>'
        f'<meta charset="utf-8"><title>{title}</title>{head}<style>{STYLE}</style>{mathjax}</head>'
        f'<body><main class="bd-main"><div class="bd-content"><div class="bd-article-container">'
        f'<div class="bd-article"><div class="book-title"><h1>{title}</h1><p>{SUBTITLE}</p></div>'
        f'<nav class="book-contents"><h2>Contents</h2><ul>{"".join(contents)}</ul></nav>'
        f"{''.join(parts)}</div></div></div></main></body></html>"
    )


def write_pdf(site: Path, out: Path, pages: list[str], captions: dict[str, str]) -> None:
    """Print the whole book."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        raise SystemExit("make pdf: no Chromium was found (Debian: apt-get install chromium)")
    page = site / "book" / "whole-book.html"
    page.write_text(whole(site, pages, captions), "utf8")
    try:
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=found, args=FLAGS)
            tab = browser.new_page()
            tab.set_default_timeout(600_000)
            tab.goto(page.resolve().as_uri(), wait_until="load")
            tab.evaluate("() => window.MathJax ? window.MathJax.startup.promise : null")
            tab.evaluate("() => document.fonts.ready.then(() => true)")
            tab.pdf(
                path=str(out), format="A4", tagged=True, outline=True, display_header_footer=True,
                header_template="<span></span>", footer_template=FOOTER,
                margin={"top": "18mm", "bottom": "20mm", "left": "16mm", "right": "16mm"},
            )  # fmt: skip
            browser.close()
    finally:
        page.unlink()


def main() -> int:
    """Print the built site."""
    import yaml

    parser = argparse.ArgumentParser(description="Print the whole book as one PDF.")
    parser.add_argument("--site", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--output", type=Path, default=ROOT / "_build" / "book.pdf")
    arguments = parser.parse_args()
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf8"))
    pages = [re.sub(r"\.md$", "", name) for name in toc_entries(toc)]
    captions = {toc_entries(part)[0]: part["caption"] for part in toc["parts"]}
    if not (arguments.site / f"{pages[0]}.html").exists():
        raise SystemExit("make pdf: the site is not built: run make book first")
    write_pdf(arguments.site, arguments.output, pages, captions)
    print(f"printed: {os.path.relpath(arguments.output, Path.cwd())}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
