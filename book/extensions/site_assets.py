"""What every page needs and no chapter should have to think about: numbers, fonts, addresses.

- ``{paper}`405.4` `` marks a number quoted from the paper, ``{setting}`200,000` `` one of ours.
- Executed chapters are remembered under a key that covers package, data and lock file.
- MathJax and the text face are copied out of their pip packages into the built site, so that a page
  asks no other host for anything.
- Where the repository's address is known, it brings the launch, edit and source buttons.
- A policy tells the browser what a page may load: nothing from elsewhere.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinxcontrib.bibtex.plugin import register_plugin
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle

from book import address
from book.extensions.cachekey import PAGE_SOURCES, cache_folder, cache_key

# Scripts that the theme's extensions add although nothing here uses them.
UNUSED_SCRIPTS = ("thebe", "require.js", "require.min.js")

# The part of MathJax that the pages can ask for: the start file, TeX extensions, woff fonts.
MATHJAX_PARTS = ("tex-mml-chtml.js", "input/tex/extensions", "output/chtml/fonts/woff-v2")

# What a page may load. The theme and MathJax put styles and small scripts into the page itself;
# WebAssembly and workers serve the chapters that run in the page; `file:` the site opened from a
# folder.
POLICY = "; ".join(
    [
        "default-src 'self' file:",
        "script-src 'self' file: 'unsafe-inline' 'wasm-unsafe-eval'",
        "worker-src 'self' blob:",
        "style-src 'self' file: 'unsafe-inline'",
        "img-src 'self' file: data: blob:",
        "font-src 'self' file: data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    ]
)

FACES = {
    "Regular": "Regular",
    "It": "Italic",
    "Semibold": "Semibold",
    "SemiboldIt": "SemiboldItalic",
}
UNICODES = "U+0020-007E,U+00A0-017F,U+0218-021B,U+0370-03FF,U+2010-2026,U+2030-203A,U+2070-209C"
UNICODES += ",U+20AC,U+2113,U+2190-2193,U+2200-22FF,U+2713,U+2717,U+FB00-FB04"


def _round() -> BracketStyle:
    return BracketStyle(left="(", right=")")


@dataclass
class RoundStyle(AuthorYearReferenceStyle):
    """Citations as "Chu et al. (2011)" and "(Chu et al., 2011)"."""

    bracket_parenthetical: BracketStyle = field(default_factory=_round)
    bracket_textual: BracketStyle = field(default_factory=_round)
    bracket_author: BracketStyle = field(default_factory=_round)
    bracket_label: BracketStyle = field(default_factory=_round)
    bracket_year: BracketStyle = field(default_factory=_round)


register_plugin("sphinxcontrib.bibtex.style.referencing", "author_year_round", RoundStyle)


def number_role(
    name: str,
    rawtext: str,
    text: str,
    lineno: int,
    inliner: Inliner,
    options: dict[str, Any] | None = None,
    content: list[str] | None = None,
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Render a number as text that a test can tell from a result typed into the prose.

    ``{paper}`405.4` `` is quoted from the paper, ``{setting}`200,000` `` is a setting of ours.
    """
    return [nodes.inline(rawtext, text, classes=[f"{name}-number"])], []


def package_folder(name: str) -> Path:
    """Return the folder of an installed package whose name need not be an identifier."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise RuntimeError(f'package "{name}" is missing: run "make book", which installs it')
    return Path(spec.origin).parent


def set_cache(app: Sphinx, config: Config) -> None:
    """Give executed chapters and remembered pages a place named after what they depend on."""
    root = Path(app.srcdir)
    # build.py, which has just filled a cache, says which; a file saved since then changes nothing
    config["nb_execution_cache_path"] = os.environ.get("BOOK_CACHE") or str(cache_folder(root))
    config["page_key"] = cache_key(root, PAGE_SOURCES)


def set_repository(app: Sphinx, config: Config) -> None:
    """Turn the repository's address, where it is known, into the theme's buttons."""
    known = address.repository(config["repository"], Path(app.srcdir))
    config["repository"] = known
    config["html_baseurl"] = address.site(config["html_baseurl"], known)
    if not known:
        return
    config["html_theme_options"].update(
        repository_url=known,
        repository_branch="main",
        path_to_docs="",
        use_repository_button=True,
        use_edit_page_button=True,
        use_issues_button=True,
    )
    if known.startswith(address.GITHUB):
        config["html_theme_options"]["launch_buttons"] = {
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com",
            "notebook_interface": "jupyterlab",
        }


def mend_launch_links(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Point Colab and Binder at the plain notebooks, in which all references are resolved."""

    def mend(entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            mend(entry.get("buttons", []))
            url = entry.get("url", "") or ""
            if "colab.research.google.com" in url or "mybinder.org" in url:
                url = re.sub(r"/main(?=[/?])", f"/{address.NOTEBOOK_BRANCH}", url, count=1)
                entry["url"] = url.removesuffix(".md").removesuffix(".ipynb") + ".ipynb"

    mend(context.get("header_buttons", []))


def script_text(script: Any) -> str:
    """Return a script's address and, if it stands in the page itself, its text."""
    return f"{getattr(script, 'filename', script)} {getattr(script, 'attributes', {})}"


def mend_proofs(body: str) -> str:
    """Remove ids that sphinx-proof repeats on every statement, and set "Proof." apart."""
    body = body.replace(' id="proof-content"', "")
    return re.sub(
        r'<div class="proof admonition" id="proof">\s*<p>Proof\.',
        '<div class="proof admonition proof-text"><p><em class="proof-label">Proof.</em>',
        body,
    )


def mend_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Drop scripts that nothing uses, and say what the page may load."""
    context["script_files"] = [
        script
        for script in context.get("script_files", [])
        if not any(word in script_text(script).lower() for word in UNUSED_SCRIPTS)
    ]
    context["body"] = mend_proofs(context.get("body", ""))
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}" />\n'
    context["metatags"] = policy + context.get("metatags", "")


def copy_mathjax(static: Path) -> None:
    """Copy the part of MathJax that the pages use."""
    source = package_folder("sphinx-mathjax-offline") / "static" / "mathjax"
    for part in MATHJAX_PARTS:
        target = static / "mathjax" / part
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / part).is_dir():
            shutil.copytree(source / part, target)
        else:
            shutil.copyfile(source / part, target)


def copy_fonts(static: Path) -> None:
    """Cut the text face to the characters that the book can use, as woff2."""
    from fontTools import subset

    source = package_folder("font_source_serif_pro") / "files"
    target = static / "fonts"
    target.mkdir(parents=True, exist_ok=True)
    for name, style in FACES.items():
        out = target / f"SourceSerifPro-{style}.woff2"
        if out.exists():
            continue
        subset.main(
            [
                str(source / f"SourceSerifPro-{name}.ttf"),
                f"--unicodes={UNICODES}",
                "--layout-features=kern,liga,onum,lnum,tnum,pnum,smcp,c2sc,sups,case",
                "--flavor=woff2",
                f"--output-file={out}",
            ]
        )
    shutil.copyfile(source / "LICENSE.txt", target / "LICENSE.txt")


def draw_social_card(static: Path, title: str) -> None:
    """Draw the picture that stands for the book where it is linked to."""
    target = static / "social-card.png"
    if target.exists():
        return
    from book.extensions.socialcard import draw

    draw(target, title)


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Make the built site self-contained."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    copy_mathjax(static)
    copy_fonts(static)
    draw_social_card(static, app.config.html_title)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_config_value("repository", "", "html", str)
    app.add_config_value("page_key", "", "env", str)
    app.add_role("paper", number_role)
    app.add_role("setting", number_role)
    app.connect("config-inited", set_cache)
    app.connect("config-inited", set_repository)
    app.connect("html-page-context", mend_launch_links, priority=900)
    app.connect("html-page-context", mend_page, priority=900)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
