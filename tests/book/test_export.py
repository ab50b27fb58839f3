"""Plain notebooks for Colab: what the export adds, and that they run on what they install."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import IN_CI, ROOT
from schemas import validate

from book import build, export

REPOSITORY = "https://github.com/somebody/something"
COLAB = "https://colab.research.google.com/github/somebody/something/blob/notebooks/notebooks"
# The versions that Colab brings along; the install cell must leave them alone.
COLABS_OWN = {"numpy": "2.0.2", "matplotlib": "3.10.0"}

CHAPTER = """---
kernelspec:
  display_name: Python 3
  name: python3
---
(ch-tiny)=
# Tiny

See {cite:t}`chu2011contextual`.

```{code-cell} ipython3
:tags: [hide-input]

import numpy as np
```

```{code-cell} ipython3
---
mystnb:
  figure:
    caption: "What {prf:ref}`lm-x` leaves."
    name: fig-tiny
tags: [hide-input]
---
draw()
```

```{code-cell} ipython3
:tags: [hide-cell]

assert 1 + 1 == 2
```
"""


def text(source: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def code(source: str) -> dict:
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": ["old"]}


EXPORTED = [
    text("# Tiny\n\nSee Chu *et al.* ([2011](../book/bibliography.ipynb#id8))."),
    text(
        "# What you need to know first\n\n"
        "[The model](model.ipynb#ch-model), [Notation](../book/notation.ipynb#n)."
    ),
    code("import numpy as np"),
    text("**Lemma 1.1** (Title)\n\nText."),
    text("✗ false as stated proved · [ledger: lm:x](../book/claims-ledger.ipynb#claim-lm-x)"),
    text("✗ false as stated, in a corner checked by run · ledger: lm:y"),
    text("**Proof.**\n\nProof. By [Lemma 1.1](#lm-x)."),
    code("make book"),
    code("draw()"),
    code("assert 1 + 1 == 2"),
]  # fmt: skip


@pytest.fixture
def chapter(tmp_path):
    path = tmp_path / "tiny.md"
    path.write_text(CHAPTER)
    return path


def finished(chapter: Path, repository: str = REPOSITORY) -> dict:
    references = export.Bibliography(ROOT / "book" / "references.bib")
    numbers = {"fig-tiny": "1.1"}
    return export.finish({"cells": EXPORTED}, chapter, repository, numbers, references)


def joined(notebook: dict) -> str:
    return "\n\n".join("".join(cell["source"]) for cell in notebook["cells"])


def test_folded_code_that_shows_nothing_joins_the_next_fold():
    hidden = export.folded("hide-input")
    cells = [
        {**code(f"# @title Code\n{source}"), "metadata": hidden}
        for source in ("x = 1", "y = x", "y", "z = 2", "print(z)", "z")
    ]
    joined = export.join_folds([*cells[:3], text("between"), *cells[3:]])
    assert [cell["source"] for cell in joined] == [
        "# @title Code\nx = 1\n\n\ny = x\n\n\ny",
        "between",
        "# @title Code\nz = 2\n\n\nprint(z)",
        "# @title Code\nz",
    ]


def test_notebook_is_valid_and_holds_no_outputs(chapter):
    notebook = finished(chapter)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    validate(notebook, "nbformat", "v4/nbformat.v4.5.schema.json")
    cells = notebook["cells"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")
    ids = [cell["id"] for cell in cells]
    assert len(set(ids)) == len(ids) and ids == [c["id"] for c in finished(chapter)["cells"]]


def test_install_cell_comes_first_and_names_the_repository(chapter):
    first = finished(chapter)["cells"][0]
    assert first["cell_type"] == "code" and f"{REPOSITORY} project" in first["source"]
    assert "find_spec" in first["source"] and "[paper,chapters]" in first["source"]
    alone = finished(chapter, repository="")["cells"][0]["source"]
    assert "from this clone" in alone and "git clone" not in alone and "{clone}[paper," in alone


def test_install_cell_asks_for_extras_that_exist():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for cell in (export.INSTALL, export.INSTALL_FROM_CLONE):
        asked = re.findall(r"\[([\w]+(?:,\w+)+)\]", cell)
        assert asked
        for extras in asked:
            assert set(extras.split(",")) <= set(project["optional-dependencies"])


def test_bars_in_formulas_do_not_end_the_cells_of_a_table():
    row = "| $\\|x\\|\\le|D|$ | two |"
    shown = export.tidy(text(f"| a | b |\n|---|---|\n{row}"), "", "tiny")["source"]
    assert shown.endswith("| $\\Vert x\\Vert \\le\\vert D\\vert $ | two |")
    assert export.tidy(text("all $|x|$ here"), "", "tiny")["source"] == "all $|x|$ here"


def test_marks_of_a_tables_cells_do_not_stand_before_it():
    table = "|a|b|\n|---|---|\n|A one|(2017)|"
    for page in ("", "../book/bibliography.ipynb"):
        marks = f"**[]({page}#id8)[**]({page}#id8)"
        shown = export.tidy(text(f"Above.\n\n{marks}{table}"), REPOSITORY, "tiny")
        assert shown["source"] == f"Above.\n\n{table}"


def test_an_empty_cell_is_a_cell():
    assert broken_tables("||b|\n|---|---|\n|1|2|") == []


def test_text_below_a_table_is_no_row_of_it():
    shown = export.tidy(text("| a | b |\n|---|---|\n| 1 | 2 |\nBelow."), "", "tiny")["source"]
    assert shown == "| a | b |\n|---|---|\n| 1 | 2 |\n\nBelow."


def test_a_lone_anchor_joins_the_text_below_it():
    cells = export.join_anchors([text("<a id='ch-x'></a>"), code("1"), text("# X")])
    assert [c["source"] for c in cells] == ["1", "<a id='ch-x'></a>\n\n# X"]


def broken_tables(source: str) -> list[str]:
    """Lines that are meant as rows of a table and that GFM does not read as one."""
    from markdown_it import MarkdownIt

    def width_of(line: str) -> int:
        return len(re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|")))

    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(source)
    inside: set[int] = set()
    bad = []
    lines = source.splitlines()
    width = 0
    for token in tokens:
        if token.type in ("table_open", "fence", "code_block") and token.map:
            inside |= set(range(*token.map))
        if token.type == "table_open":
            width = width_of(lines[token.map[0]])
        if token.type == "tr_open" and token.map:
            row = lines[token.map[0]]
            bad += [] if width_of(row) == width else [row]
    outside = [line for i, line in enumerate(lines) if i not in inside]
    return bad + [line for line in outside if re.match(r"\s*\|.*\|\s*$", line)]


def test_broken_tables_are_found():
    good = "| a | b |\n|---|---|\n| $\\vert x\\vert$ | 2 |"
    assert broken_tables(good) == []
    assert broken_tables(good.replace("\\vert", "|"))
    assert broken_tables("| a | b |\n| 1 | 2 |")


@pytest.mark.site
@pytest.mark.xdist_group("notebooks")
def test_exported_notebooks_have_whole_tables_and_begin_with_text(tmp_path):
    target = tmp_path / "notebooks"
    done = run(sys.executable, "-m", "book.build", "--notebooks", "--output", target, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    for path in sorted(target.glob("*.ipynb")):
        cells = json.loads(path.read_text("utf8"))["cells"]
        texts = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
        assert re.match(r"(<a id='[^']*'></a>\s*)?# \S", texts[0]), (path.name, texts[0][:80])
        for source in texts:
            assert not broken_tables(source), (path.name, broken_tables(source))
            assert not export.ANCHOR.fullmatch(source.strip()), path.name
    play = (target / "play.ipynb").read_text("utf8")
    assert "slider" not in play
    assert "The knobs belong to the book" in play  # quotes are set as in print


def test_links_lead_where_they_can_be_read(chapter):
    shown = joined(finished(chapter))
    assert f"[The model]({COLAB}/model.ipynb#ch-model)" in shown
    assert f"[Notation]({REPOSITORY}/blob/main/book/notation.md)" in shown
    assert f"[ledger: lm:x]({REPOSITORY}/blob/main/book/claims/claims.yml)" in shown
    assert ".ipynb" not in joined(finished(chapter, repository=""))


def test_statements_verdicts_and_proofs_read_well(chapter):
    shown = joined(finished(chapter))
    assert "<a id='lm-x'></a>\n**Lemma 1.1** (Title)" in shown
    assert "**✗ false as stated** · proved · " in shown
    assert "**✗ false as stated, in a corner** · checked by run · ledger: lm:y" in shown
    assert "**Proof.** By [Lemma 1.1](#lm-x)." in shown
    assert "**What you need to know first**" in shown and "\n# What you need" not in shown


def test_citations_lead_to_a_list_of_references(chapter):
    shown = joined(finished(chapter))
    assert "([2011](#references))" in shown
    assert "## References" in shown and "Wei Chu" in shown.split("## References")[1]


def test_figures_have_captions_and_code_is_folded(chapter):
    cells = finished(chapter)["cells"]
    shown = joined({"cells": cells})
    assert "<a id='fig-tiny'></a>\n**Figure 1.1.** What lm-x leaves." in shown
    (figure,) = [c for c in cells if "draw()" in c["source"]]
    assert figure["source"].startswith("# @title Code of figure 1.1\n")
    assert figure["metadata"]["jupyter"] == {"source_hidden": True}
    (solution,) = [c for c in cells if "1 + 1" in c["source"]]
    assert solution["source"].startswith("# @title Solution\n")
    assert solution["metadata"] == {
        "jupyter": {"source_hidden": True, "outputs_hidden": True},
        "cellView": "form",
    }


def test_listings_are_not_made_to_run(chapter):
    (listing,) = [c for c in finished(chapter)["cells"] if "make book" in c["source"]]
    assert listing["cell_type"] == "markdown" and listing["source"].startswith("```\n")


def test_a_lost_cell_is_an_error(chapter):
    cells = [cell for cell in EXPORTED if cell["source"] != "draw()"]
    with pytest.raises(ValueError, match="missing"):
        export.finish({"cells": cells}, chapter, "", {}, None)


# ---- In an environment that has only what the install cell brings


def run(*command: object, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)


@pytest.fixture(scope="module")
def colab(tmp_path_factory) -> Path:
    """A fresh environment with a kernel and Colab's own NumPy, and nothing of ours."""
    folder = tmp_path_factory.mktemp("colab")
    python = folder / "env" / "bin" / "python"
    assert run(sys.executable, "-m", "venv", folder / "env").returncode == 0
    own = [f"{name}=={version}" for name, version in COLABS_OWN.items()]
    done = run(python, "-m", "pip", "install", "--quiet", "ipykernel", *own)
    if done.returncode and not IN_CI:
        pytest.skip(f"pip could not fetch what Colab brings: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    kernel = folder / "share" / "kernels" / "colab"
    kernel.mkdir(parents=True)
    start = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    about = {"argv": start, "display_name": "Colab", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(about))
    return folder


@pytest.mark.slow
@pytest.mark.notebook
@pytest.mark.xdist_group("notebooks")
def test_exported_notebooks_run_on_what_their_first_cell_installs(colab):
    notebooks = colab / "notebooks"
    # The committed state of this checkout stands in for the repository.
    done = run(
        *(sys.executable, "-m", "book.build", "--notebooks"),
        *("--repository", f"file://{ROOT}", "--output", notebooks),
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    names = sorted(path.name for path in notebooks.glob("*.ipynb"))
    assert names == sorted(f"{path.stem}.ipynb" for path in build.chapters())
    paths = {
        "JUPYTER_PATH": str(colab / "share"),
        "PATH": f"{colab / 'env' / 'bin'}:{os.environ['PATH']}",
    }
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | paths
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbmake"]
    command += ["--nbmake-kernel=colab", "--nbmake-timeout=900", f"--rootdir={notebooks}"]
    # The first one installs; the others find it installed, as after a restart.
    first, *rest = names
    for batch in ([first], rest):
        done = run(*command, *batch, cwd=notebooks, env=environment)
        assert done.returncode == 0, done.stdout[-4000:]
    listed = run(colab / "env" / "bin" / "python", "-m", "pip", "list", "--format=json")
    versions = {entry["name"]: entry["version"] for entry in json.loads(listed.stdout)}
    assert {name: versions[name] for name in COLABS_OWN} == COLABS_OWN
    assert not {"jupyter-book", "sphinx", "pytest", "torch"} & set(versions)
