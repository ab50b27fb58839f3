"""A build of the book: what is strict, what is kept, and what a small copy of it shows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import FRONT, ROOT

from book.build import toc_entries
from book.extensions import cachekey

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))


# ---- The cache key


@pytest.fixture
def tree(tmp_path):
    kept = "data/results/asirra/x.npz"
    for name in ("banditlib/a.py", kept, "data/asirra/big.npy", "notebooks/c.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    (tmp_path / "requirements.txt").write_text("numpy==2.4.6\n")
    return tmp_path


@pytest.mark.parametrize(
    "name", ["banditlib/a.py", "data/results/asirra/x.npz", "requirements.txt"]
)
def test_cache_key_covers_package_data_and_lock(tree, name):
    before = cachekey.cache_key(tree)
    assert cachekey.cache_key(tree) == before
    (tree / name).write_text("two")
    assert cachekey.cache_key(tree) != before


def test_cache_key_covers_new_and_renamed_files(tree):
    keys = {cachekey.cache_key(tree)}
    (tree / "banditlib" / "b.py").write_text("new")
    keys.add(cachekey.cache_key(tree))
    (tree / "banditlib" / "b.py").rename(tree / "banditlib" / "c.py")
    keys.add(cachekey.cache_key(tree))
    assert len(keys) == 3


@pytest.mark.parametrize("name", ["notebooks/c.md", "data/asirra/big.npy"])
def test_cache_key_ignores_the_rest(tree, name):
    before = cachekey.cache_key(tree)
    (tree / name).write_text("two")
    assert cachekey.cache_key(tree) == before


# ---- Configuration and contents


def toc_pages() -> list[str]:
    return toc_entries(yaml.safe_load((ROOT / "_toc.yml").read_text("utf8")))


def test_configuration_is_strict():
    assert CONFIG["execute"]["execute_notebooks"] == "cache"
    assert CONFIG["execute"]["raise_on_error"] is True
    assert {".*", ".*/**", "notebooks/*.ipynb"} <= set(CONFIG["exclude_patterns"])


def test_contents_lists_every_page_once():
    pages = toc_pages()
    assert len(pages) == len(set(pages))
    files = [p for folder in ("book", "notebooks") for p in (ROOT / folder).glob("*.md")]
    assert sorted(pages) == sorted(p.relative_to(ROOT).with_suffix("").as_posix() for p in files)


def test_one_setting_alone_names_the_repository():
    assert isinstance(CONFIG["sphinx"]["config"]["repository"], str)
    assert "repository" not in CONFIG and "launch_buttons" not in CONFIG
    assert not [name for name in CONFIG["html"] if "repository" in name or "launch" in name]


PAPER_KEYS = [
    "abbasi2011improved",
    "agrawal2013thompson",
    "auer2002using",
    "camilleri2021high",
    "chu2011contextual",
    "5206848",
    "du2019good",
    "asirra-a-captcha-that-exploits-interest-aligned-manual-image-categorization",
    "foster2020adapting",
    "ghosh2017misspecified",
    "hao2020adaptive",
    "he2021logarithmic",
    "he2021uniformpac",
    "he22corruptions",
    "he2016deep",
    "lattimore2020bandit",
    "lattimore2020learning",
    "li2010contextual",
    "mnih2013playing",
    "papini2021leveraging",
    "schulman2015trust",
    "schulman2017proximal",
    "shalev2014understanding",
    "takemura2021parameter",
    "van2019comments",
    "Zanette2020LearningNO",
]


def test_bibliography_has_the_papers_references():
    text = (ROOT / "book" / "references.bib").read_text("utf8")
    keys = re.findall(r"^@\w+\{([^,]+),", text, re.MULTILINE)
    assert len(keys) == len(set(keys))
    assert set(PAPER_KEYS) <= set(keys) and len(PAPER_KEYS) == 26
    for doi in re.findall(r"doi\s*=\s*\{([^}]*)\}", text):
        assert re.fullmatch(r"10\.\d{4,}/\S+", doi)
    for number in re.findall(r"eprint\s*=\s*\{([^}]*)\}", text):
        assert re.fullmatch(r"\d{4}\.\d{4,5}", number)


# ---- Builds of a small copy


TINY = (
    FRONT
    + """\
(ch-tiny)=
# A tiny chapter

The paper prints {paper}`405.4`, we chose {setting}`8`, and {cite:t}`chu2011contextual` came first.

```{code-cell} ipython3
print("ran", 6 * 7)
```
"""
)


def small_copy(target: Path, cell: str = "", repository: str = "") -> Path:
    """The book around one tiny chapter."""
    for name in ("_config.yml", "requirements.txt"):
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)
    for name in ("book/extensions", "book/_static", "book/claims", "banditlib", "data/results"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (ROOT / "book").iterdir():
        if path.suffix == ".py" or path.name == "references.bib":
            shutil.copy(path, target / "book" / path.name)
    (target / "book" / "bibliography.md").write_text(
        "(bibliography)=\n# Bibliography\n\n```{bibliography}\n:all:\n```\n"
    )
    config = (target / "_config.yml").read_text("utf8")
    config, found = re.subn(
        r"^( *repository:).*$", rf'\1 "{repository}"', config, flags=re.MULTILINE
    )
    assert found == 1
    (target / "_config.yml").write_text(config)
    (target / "notebooks").mkdir()
    (target / "notebooks" / "tiny.md").write_text(TINY + cell)
    (target / "_toc.yml").write_text(
        "format: jb-book\nroot: notebooks/tiny\nchapters:\n  - file: book/bibliography\n"
    )
    return target


def build(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = arguments or ("-m", "book.build", "--jobs", "1")
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_small_copy_builds_with_buttons_once_the_repository_is_known(tmp_path):
    made_up = "https://github.com/somebody/something"
    folder = small_copy(tmp_path / "a copy", repository=made_up)
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (folder / "_build/html/notebooks/tiny.html").read_text("utf8")
    assert "ran 42" in page
    assert '<span class="paper-number">405.4</span>' in page
    assert '<span class="setting-number">8</span>' in page
    binder = "mybinder.org/v2/gh/somebody/something/notebooks?urlpath=lab/tree/notebooks/tiny.ipynb"
    assert binder in page
    colab = re.findall(r'https://colab\.research\.google\.com[^"]*', page)
    assert colab and all(
        link.endswith("somebody/something/blob/notebooks/notebooks/tiny.ipynb") for link in colab
    )
    assert f"{made_up}/edit/main/notebooks/tiny.md" in page
    base = "https://somebody.github.io/something/"
    assert f'<link rel="canonical" href="{base}notebooks/tiny.html"' in page
    assert f'<meta property="og:image" content="{base}_static/social-card.png" />' in page
    assert f'<meta property="og:url" content="{base}notebooks/tiny.html" />' in page
    assert "<loc>" + base in (folder / "_build/html/sitemap.xml").read_text("utf8")
    for part in (
        "mathjax/tex-mml-chtml.js",
        "fonts/SourceSerifPro-Regular.woff2",
        "social-card.png",
    ):
        assert (folder / "_build/html/_static" / part).exists()
    # a second build runs nothing again, and one changed page does not disturb the search
    with (folder / "book/bibliography.md").open("a", encoding="utf8") as file:
        file.write("\nOne sentence more.\n")
    again = build(folder)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "1 unchanged, 0 to run" in again.stdout
    index = (folder / "_build/html/_static/search-index.js").read_text("utf8")
    assert "One sentence more" in index and "A tiny chapter" in index
    # a change in the package runs the chapter again
    (folder / "banditlib" / "new.py").write_text("x = 1\n")
    assert "0 unchanged, 1 to run" in build(folder, "-m", "book.build", "--execute").stdout


@pytest.mark.slow
def test_raising_cell_fails_the_build(tmp_path):
    cell = '\n```{code-cell} ipython3\nraise RuntimeError("planted")\n```\n'
    folder = small_copy(tmp_path / "copy", cell)
    done = build(folder)
    assert done.returncode != 0
    assert "planted" in done.stderr and "not built" in done.stderr
    assert not (folder / "_build/html/notebooks/tiny.html").exists()
    plain = "import sys; from jupyter_book.cli.main import main; sys.exit(main())"
    done = build(folder, "-c", plain, "build", ".")
    assert done.returncode != 0 and "planted" in done.stdout + done.stderr


@pytest.mark.slow
def test_warning_fails_the_build(tmp_path):
    folder = small_copy(tmp_path / "copy", "\nSee {ref}`nowhere`.\n")
    done = build(folder)
    assert done.returncode != 0 and "nowhere" in done.stdout + done.stderr


@pytest.mark.slow
def test_plain_notebooks_are_exported(tmp_path):
    import json

    folder = small_copy(tmp_path / "copy", repository="https://github.com/somebody/something")
    texts = []
    for _ in range(2):
        done = build(folder, "-m", "book.build", "--notebooks")
        assert done.returncode == 0, done.stdout + done.stderr
        texts.append((folder / "_build/notebooks/tiny.ipynb").read_text("utf8"))
    assert texts[0] == texts[1], "cell ids are not stable"
    cells = json.loads(texts[0])["cells"]
    assert "somebody/something" in "".join(cells[0]["source"])
    assert any("6 * 7" in "".join(cell["source"]) for cell in cells)
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")
