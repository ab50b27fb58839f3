"""How the book is found and shown elsewhere: link previews, descriptions, a map of the site.

sphinxext-opengraph writes the tags of link previews. Here it learns what it cannot know: a
description in words (its own would hold raw TeX), the picture, and the site's address.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from book.extensions.words import words

CARD = "_static/social-card.png"
LENGTH = 200
#: Pages that Sphinx makes and nobody looks for.
UNLISTED = {"genindex", "search", "prf-prf"}


def set_previews(app: Sphinx, config: Config) -> None:
    """Tell sphinxext-opengraph where the site is and which picture stands for it."""
    config["ogp_site_url"] = config["html_baseurl"]
    config["ogp_site_name"] = config["html_title"] or config["project"]
    config["ogp_image"] = CARD
    config["ogp_image_alt"] = "An ellipse of uncertainty, cut by a threshold"
    config["ogp_social_cards"] = {"enable": False}
    config["ogp_type"] = "article"
    config["ogp_custom_meta_tags"] = ['<meta name="twitter:card" content="summary_large_image" />']


def description(doctree: nodes.document) -> str:
    """The first paragraph of a page, in words."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(words(paragraph).split())
        if len(text) > 40 and isinstance(paragraph.parent, nodes.section | nodes.container):
            return textwrap.shorten(text, LENGTH, placeholder=" …")
    return ""


def describe(app: Sphinx, doctree: nodes.document) -> None:
    """Give a page its description, unless its author has."""
    told = app.env.metadata[app.env.docname]
    by_hand = next((m["content"] for m in doctree.findall(nodes.meta) if is_description(m)), "")
    text = by_hand or description(doctree)
    if text:
        told["og:description"] = text.replace('"', "”")


def is_description(meta: nodes.meta) -> bool:
    return meta.get("name") == "description"


def finish_tags(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """One description for search engines too; without a known address, none that is half known."""
    tags = context.get("metatags", "")
    found = re.search(r'<meta property="og:description" content="([^"]*)"', tags)
    if found:
        tags = re.sub(r'<meta [^>]*name="description"[^>]*>\n?', "", tags)
        tags = f'<meta name="description" content="{found[1]}" />\n{tags}'
    if not app.config.html_baseurl:
        tags = re.sub(r'<meta property="og:(?:url|image|image:alt)"[^>]*>\n?', "", tags)
        tags = tags.replace("summary_large_image", "summary")
    context["metatags"] = tags


def write_sitemap(app: Sphinx, exception: Exception | None) -> None:
    """List every page, with its full address, for search engines."""
    base = app.config.html_baseurl
    if exception is not None or app.builder.format != "html" or not base:
        return
    pages = sorted(page for page in app.env.found_docs if page not in UNLISTED)
    lines = "".join(
        f"  <url><loc>{escape(base + app.builder.get_target_uri(page))}</loc></url>\n"
        for page in pages
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    head += '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    folder = Path(app.outdir)
    (folder / "sitemap.xml").write_text(f"{head}{lines}</urlset>\n", "utf8")
    (folder / "robots.txt").write_text(f"User-agent: *\nSitemap: {base}sitemap.xml\n", "utf8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.setup_extension("sphinxext.opengraph")
    app.connect("config-inited", set_previews, priority=700)
    app.connect("doctree-read", describe)
    app.connect("html-page-context", finish_tags, priority=910)
    app.connect("build-finished", write_sitemap)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
