"""The notation page, within reach of every page: what a symbol means, where it is used.

The tables of ``notation.md`` become one small file, ``_static/symbols-data.js``. In the browser
``symbols.js`` attaches a row to every formula in a line that is exactly one of its symbols, and
shows it under the mouse, on keyboard focus and on a tap. A formula in braces, ``${B}$``, is left
alone: there the letter means something else.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

NOTATION = "book/notation"
FORMULA = re.compile(r"\$([^$]+)\$")


def plain(tex: str) -> str:
    """A symbol without what changes only its looks: blanks, needless braces, bold or script."""
    tex = re.sub(r"\\(mathbf|mathcal|boldsymbol)(?![a-zA-Z])", "", tex)
    tex = re.sub(r"\{(\\?\w)\}", r"\1", re.sub(r"\s+", "", tex)) if tex[:1] != "{" else tex
    return tex


def shown(text: str) -> str:
    """A cell of Markdown as HTML that MathJax can typeset."""
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = FORMULA.sub(r"\\(\1\\)", text)
    return re.sub(r"\*([^*$\\]+)\*", r"<em>\1</em>", text)


def table(source: str) -> list[dict[str, Any]]:
    """The rows of the notation page: symbols, as they are looked up, and their line as HTML."""
    rows = []
    for line in source.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        symbols = FORMULA.findall(cells[0])
        if line.startswith("|") and len(cells) == 3 and symbols:
            if all("," in s for s in symbols):  # "$a,b,c$" names three
                symbols = [part for s in symbols for part in s.split(",")]
            text = f"{shown(cells[0])}: {shown(cells[2])}"
            rows.append({"symbols": [plain(s) for s in symbols], "html": text})
    return rows


def write_symbols(app: Sphinx, env: Any) -> None:
    """Put the table where the pages look for it."""
    if app.builder.format != "html":
        return
    path = Path(app.srcdir) / f"{NOTATION}.md"
    rows = table(path.read_text("utf8")) if path.exists() else []
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    data = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    (static / "symbols-data.js").write_text(f"window.bookSymbols={data};\n", "utf8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("env-check-consistency", write_symbols)
    app.add_js_file("symbols-data.js", loading_method="defer")
    app.add_js_file("symbols.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
