"""Plain notebooks for Colab, made from the chapters.

sphinx-tojupyter turns a chapter into a notebook in which numbers of statements, citations and
quoted results are resolved. What it leaves out is added here: a cell that installs the package,
captions, folded cells, targets for references, links that lead somewhere, and the list of what the
chapter cites.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from book.address import NOTEBOOK_BRANCH

Cell = dict[str, Any]

# An editable install, so that the package finds the recorded results beside it. A kernel that is
# already running learns of it by reading the site folder again.
INSTALL = """\
# @title Get the package (needed once on Colab; elsewhere, where it is installed, nothing happens)
import importlib.util
import site
import sysconfig

if importlib.util.find_spec("banditlib") is None:
    !test -d project || git clone --quiet --depth 1 {repository} project
    %pip install --quiet -e "./project[paper,chapters]"
    site.addsitedir(sysconfig.get_path("purelib"))
"""

# Where no public address is known there is nothing to fetch: the notebook lies in a clone.
INSTALL_FROM_CLONE = """\
# @title Get the package from this clone (where it is installed, nothing happens)
import importlib.util
import pathlib
import site
import sysconfig

if importlib.util.find_spec("banditlib") is None:
    here = pathlib.Path.cwd()
    clone = next((p for p in (here, *here.parents) if (p / "banditlib" / "paper").is_dir()), None)
    if clone is None:
        raise ModuleNotFoundError(
            "banditlib is not installed, and this notebook lies in no clone of the project: "
            "move it into one, or run there: pip install -e '.[paper,chapters]'"
        )
    %pip install --quiet -e "{{clone}}[paper,chapters]"
    site.addsitedir(sysconfig.get_path("purelib"))
"""

TITLES = {"hide-cell": "Solution", "hide-input": "Code", "hide-output": ""}
VERDICT = re.compile(
    r"(?m)^(✓ holds|↻ holds with repair|✗ false as stated(?:, [a-z ]+?)?|– not testable here)"
    r" (proved|derived|checked by run|cited) · "
)
LINK = re.compile(
    r"\[((?:[^\[\]]|\\\[|\\\])*)\]\((?P<page>[^()\s#]*\.ipynb)?(?P<anchor>#[^()\s]*)?\)"
)
TABLE_ROW = re.compile(r"(?m)^\|.*\|[ \t]*$")
STRAY = re.compile(r"(?m)^(?:[*`]|\[[*`]*\]\([^()\s]*\))+(?=\|)")
TABLE_END = re.compile(r"(?m)^(\|.*\|)[ \t]*\n(?=[^|\s])")
FORMULA = re.compile(r"\$[^$\n]+\$")
ANCHOR = re.compile(r"(?:<a id='[^']*'></a>\s*)+")
ROLE = re.compile(r"\{[\w:-]+\}`([^`<]*?)\s*(?:<[^`>]*>)?`")


def run_export(
    root: Path, command: Iterable[str], pages: list[Path], repository: str, target: Path
) -> int:
    """Call the builder `command`, then finish its notebooks into `target`."""
    code = subprocess.run(list(command), cwd=root, check=False).returncode
    if code:
        return code
    made = root / "_build" / "export" / "_build" / "jupyter"
    numbers = json.loads((made / "figure-numbers.json").read_text("utf8"))
    references = Bibliography(root / "book" / "references.bib")
    target.mkdir(parents=True, exist_ok=True)
    for path in pages:
        notebook = finish(
            json.loads((made / "notebooks" / f"{path.stem}.ipynb").read_text("utf8")),
            path,
            repository,
            numbers.get(f"notebooks/{path.stem}", {}),
            references,
        )
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        (target / f"{path.stem}.ipynb").write_text(text, "utf8")
    print(f"plain notebooks: {os.path.relpath(target, Path.cwd())}")
    return 0


class Bibliography:
    """The book's references as lines of text, by key."""

    def __init__(self, path: Path) -> None:
        from pybtex.database import parse_file

        self.database = parse_file(str(path))

    def lines(self, keys: Iterable[str]) -> list[str]:
        """One Markdown line for each of `keys`, in order of author and year."""
        from pybtex.plugin import find_plugin

        style = find_plugin("pybtex.style.formatting", "plain")()
        backend = find_plugin("pybtex.backends", "markdown")()
        wanted = [key for key in dict.fromkeys(keys) if key in self.database.entries]
        shown = style.format_bibliography(self.database, wanted)
        lines = (" ".join(entry.text.render(backend).split()) for entry in shown)
        return [re.sub(r"\\([-.,()])", r"\1", line) for line in lines]


def finish(
    notebook: dict[str, Any],
    path: Path,
    repository: str,
    numbers: dict[str, str],
    references: Bibliography | None,
) -> dict[str, Any]:
    """Return the exported `notebook` of the chapter `path` as a reader elsewhere needs it."""
    source = path.read_text("utf8")
    cells = join_folds(with_captions(notebook["cells"], source_cells(path), numbers))
    cells = [tidy(cell, repository, path.stem) for cell in cells]
    add_targets(cells)
    cites = re.findall(r"\{cite[^}]*\}`([^`]*)`", source)
    keys = [key.strip() for text in cites for key in text.split(",")]
    if references is not None and (lines := references.lines(keys)):
        listing = "\n".join(f"- {line}" for line in lines)
        cells.append(markdown(f"<a id='references'></a>\n## References\n\n{listing}"))
    text = (INSTALL if repository else INSTALL_FROM_CLONE).format(repository=repository)
    cells.insert(0, {"cell_type": "code", "metadata": folded("hide-input"), "source": text})
    cells = join_anchors([dict(cell) for cell in cells if "".join(cell["source"]).strip()])
    for number, cell in enumerate(cells):
        cell["id"] = hashlib.sha256(f"{path.stem}/{number}".encode()).hexdigest()[:8]
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def source_cells(path: Path) -> list[Cell]:
    """The code cells of a chapter, with their options."""
    from myst_nb.core.read import read_myst_markdown_notebook

    read = read_myst_markdown_notebook(path.read_text("utf8"), config=None, path=path)
    return [cell for cell in read.cells if cell.cell_type == "code"]


def markdown(text: str) -> Cell:
    """A cell of text."""
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def folded(tag: str) -> dict[str, Any]:
    """Metadata with which both JupyterLab and Colab fold a cell's code."""
    hidden: dict[str, bool] = {}
    if tag in ("hide-input", "hide-cell"):
        hidden["source_hidden"] = True
    if tag in ("hide-output", "hide-cell"):
        hidden["outputs_hidden"] = True
    return {"jupyter": hidden, "cellView": "form"} if hidden else {}


def with_captions(cells: list[Cell], sources: list[Cell], numbers: dict[str, str]) -> list[Cell]:
    """Fold what the chapter folds, and put a caption under every numbered figure."""
    out: list[Cell] = []
    waiting = list(sources)
    for cell in cells:
        text = "".join(cell["source"])
        out.append({**cell, "metadata": {}, "source": text})
        if cell["cell_type"] != "code":
            continue
        if not waiting or waiting[0]["source"].strip() != text.strip():
            out[-1] = markdown(f"```\n{text.strip()}\n```")  # a listing, not a cell
            continue
        options = waiting.pop(0)["metadata"]
        tag = next((tag for tag in options.get("tags", []) if tag in TITLES), "")
        figure = options.get("mystnb", {}).get("figure", {})
        number = f"Figure {numbers[figure['name']]}" if figure.get("name") in numbers else ""
        title = (
            f"Code of {number.lower()}" if number and tag == "hide-input" else TITLES.get(tag, "")
        )
        out[-1]["metadata"] = folded(tag)
        if title:
            out[-1]["source"] = f"# @title {title}\n{text}"
        if figure.get("caption"):
            caption = ROLE.sub(r"\1", figure["caption"].strip())
            anchor = f"<a id='{figure['name']}'></a>\n" if "name" in figure else ""
            label = f"**{number}.** " if number else ""
            out.append(markdown(f"{anchor}{label}{caption}"))
    if waiting:
        first = waiting[0]["source"].strip()[:60]
        raise ValueError(f"export: {len(waiting)} code cells are missing, first {first!r}")
    return out


def join_folds(cells: list[Cell]) -> list[Cell]:
    """Put folded code that shows nothing into the folded cell that follows it."""
    out: list[Cell] = []
    for cell in cells:
        before = out[-1] if out else cell
        if out and before["metadata"] == cell["metadata"] == folded("hide-input"):
            code = without_title(before)
            if shows_nothing(code):
                title = cell["source"].partition("\n")[0]
                joined = f"{title}\n{code.rstrip()}\n\n\n{without_title(cell)}"
                cell = {**out.pop(), "source": joined}
        out.append(cell)
    return out


def without_title(cell: Cell) -> str:
    """The code of a folded cell, below the line that names the fold."""
    return cell["source"].partition("\n")[2]


def shows_nothing(code: str) -> bool:
    """Say whether a cell with this code has no output."""
    last = ast.parse(code).body[-1:]
    talks = re.search(r"\b(?:print|display)\(", code)
    return not talks and not any(isinstance(node, ast.Expr) for node in last)


def tidy(cell: Cell, repository: str, name: str) -> Cell:
    """Make the text of a Markdown cell readable away from the site."""
    if cell["cell_type"] == "code":
        return cell
    text = cell["source"].replace("**Proof.**\n\nProof. ", "**Proof.** ")
    text = re.sub(r"(?m)^# (What you need to know first)$", r"**\1**", text)
    text = VERDICT.sub(r"**\1** · \2 · ", text)
    text = TABLE_ROW.sub(lambda row: FORMULA.sub(without_bars, row[0]), text)
    text = STRAY.sub("", text)  # marks of bold, code and citations in a table's cells
    text = TABLE_END.sub(r"\1\n\n", text)  # text right below would be one more row
    return {**cell, "source": LINK.sub(lambda match: link(match, repository, name), text)}


def without_bars(formula: re.Match[str]) -> str:
    """A formula whose bars are commands: in a row of a table a bar ends the cell."""
    text = formula[0].replace("\\|", "\\Vert ").replace("|", "\\vert ")
    return text


def join_anchors(cells: list[Cell]) -> list[Cell]:
    """Put a cell that holds nothing but an anchor at the head of the next cell of text."""
    out: list[Cell] = []
    waiting = ""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            if ANCHOR.fullmatch(cell["source"].strip()):
                waiting += cell["source"].strip() + "\n"
                continue
            if waiting:
                cell = {**cell, "source": f"{waiting}\n{cell['source']}"}
                waiting = ""
        out.append(cell)
    return out


def link(match: re.Match[str], repository: str, name: str) -> str:
    """Send a link to another page where it can be read; without a repository, drop it."""
    text, page, anchor = match[1], match["page"], match["anchor"] or ""
    if not page:
        return match[0]
    stem = page.rsplit("/", 1)[-1].removesuffix(".ipynb")
    if stem == "bibliography":
        return f"[{text}](#references)"
    if stem == name:
        return f"[{text}]({anchor})"
    if not repository:
        return text
    if page.startswith("../book/"):
        file = "book/claims/claims.yml" if stem == "claims-ledger" else f"book/{stem}.md"
        return f"[{text}]({repository}/blob/main/{file})"
    if "://github.com/" not in repository:
        return f"[{text}]({stem}.ipynb{anchor})"
    where = repository.split("://github.com/")[1]
    host = "https://colab.research.google.com/github"
    return f"[{text}]({host}/{where}/blob/{NOTEBOOK_BRANCH}/notebooks/{stem}.ipynb{anchor})"


def add_targets(cells: list[Cell]) -> None:
    """Give statements the anchors by which the notebook's own links call them."""
    markdown = [cell for cell in cells if cell["cell_type"] == "markdown"]
    labels = {
        found[1]: found[2]
        for cell in markdown
        for found in re.finditer(r"\[([A-Z][a-z]+ \d+(?:\.\d+)*)\]\(#([\w-]+)\)", cell["source"])
    }
    for cell in markdown:
        title = re.match(r"\s*\*\*([A-Z][a-z]+ \d+(?:\.\d+)*)\*\*", cell["source"])
        if title and title[1] in labels:
            cell["source"] = f"<a id='{labels[title[1]]}'></a>\n{cell['source'].lstrip()}"
