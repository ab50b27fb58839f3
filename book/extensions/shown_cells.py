"""What a page shows of its source: cells without their bookkeeping, and text for its readers.

``glue("name", value)`` gives a number the name by which the prose quotes it, and
``how_made("name")`` asks for a panel that the page puts elsewhere. That is bookkeeping: the page
shows the cell without it, and no cell at all where nothing else is left. The exported notebooks
keep every line.

Folded cells that follow one another share one fold.

Some text is for some readers only: ``:::{div} page-only`` (about a knob that an exported notebook
does not have), ``notebook-only``, ``if-published`` (where the repository has a known address, and
with it Colab and Binder), ``unless-published``.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

#: Statements that only contain others.
BLOCKS = (ast.For, ast.If, ast.With)
#: Calls that are bookkeeping.
CALLS = ("glue", "how_made")


def is_bookkeeping(node: ast.stmt) -> bool:
    """Say whether a statement is for the page alone."""
    if isinstance(node, BLOCKS):
        return all(map(is_bookkeeping, [*node.body, *getattr(node, "orelse", [])]))
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    return isinstance(node.value.func, ast.Name) and node.value.func.id in CALLS


def bookkeeping(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of `body`, and of the blocks in it, that only keep books."""
    found = []
    for node in body:
        if is_bookkeeping(node):
            found.append(node)
        elif isinstance(node, BLOCKS):
            found += bookkeeping(node.body)
    return found


def without_glue(code: str) -> str:
    """`code` without its bookkeeping, and without the comments directly above that."""
    if not any(f"{call}(" in code for call in CALLS):
        return code
    lines, dropped = code.splitlines(), set()
    for node in bookkeeping(ast.parse(code).body):
        first = node.lineno - 1
        while first and lines[first - 1].lstrip().startswith("#"):
            first -= 1
        dropped |= set(range(first, node.end_lineno or node.lineno))
    kept = "\n".join(line for number, line in enumerate(lines) if number not in dropped)
    return re.sub(r"\n{4,}", "\n\n\n", kept).strip("\n")


def hide_bookkeeping(app: Sphinx, doctree: nodes.document) -> None:
    """Show the cells of a chapter without their bookkeeping."""
    if app.builder.format != "html" or not app.env.docname.startswith("notebooks/"):
        return
    for box in list(doctree.findall(nodes.container)):
        if "cell_input" not in box.get("classes", []):
            continue
        for block in list(box.findall(nodes.literal_block)):
            code = without_glue(block.astext())
            if code.strip():
                block.rawsource, block[:] = code, [nodes.Text(code)]
            else:
                box.parent.remove(box)
    join_folds(doctree)


def join_folds(doctree: nodes.document) -> None:
    """Put a folded cell with nothing to show into the fold of the folded cell that follows."""
    for cell in list(doctree.findall(nodes.container)):
        if cell.get("nb_element") != "cell_code" or cell.parent is None:
            continue
        if not cell.children:  # it was bookkeeping only, without output
            cell.parent.remove(cell)
            continue
        follower = cell.next_node(descend=False, siblings=True)
        if share_fold(cell, follower):
            cell.parent.remove(cell)
            del cell["hide_mode"]
            code = follower[0]
            follower[0] = nodes.container("", cell, code, nb_element="cell_code_source")


def share_fold(cell: nodes.container, follower: nodes.Node | None) -> bool:
    """Say whether `cell` shows nothing but a fold, right above the fold of `follower`."""
    if not isinstance(follower, nodes.container) or not follower.children:
        return False
    hidden = cell.get("hide_mode")
    if hidden not in ("input", "all") or follower.get("hide_mode") != hidden:
        return False
    codes = [box[0].get("nb_element") == "cell_code_source" for box in (cell, follower)]
    return all(codes) and (hidden == "all" or len(cell) == 1)


def choose_readers(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Leave out what is meant for other readers."""
    absent = {"page-only" if app.builder.name == "jupyter" else "notebook-only"}
    absent.add("unless-published" if app.config.repository else "if-published")
    for box in list(doctree.findall(nodes.container)):
        if absent & set(box.get("classes", [])) and box.parent is not None:
            box.parent.remove(box)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-read", hide_bookkeeping)
    app.connect("doctree-resolved", choose_readers)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
