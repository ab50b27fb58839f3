"""The repository's frame: what make, the lock, the configuration and the build promise."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml
from conftest import FRONT, ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from book.build import toc_entries
from book.extensions import cachekey

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]


def pins(lines: list[str]) -> dict[str, str]:
    """Exact versions by canonical name."""
    found = {}
    for line in lines:
        if "==" in line and not line.startswith("#"):
            name, version = line.strip(" \\\n").split("==")
            found[canonicalize_name(name)] = version
    return found


LOCKS = {
    name: pins((ROOT / name).read_text("utf8").splitlines())
    for name in ("requirements.txt", "requirements-test.txt")
}
LOCK = LOCKS["requirements.txt"] | LOCKS["requirements-test.txt"]
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text("utf8"))


# ---- The lock and the environment


@pytest.mark.parametrize("extra", ["", "paper", "book", "test", "cluster"])
def test_lock_pins_what_the_extras_ask_for(extra):
    wanted = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    for text in wanted:
        requirement = Requirement(text)
        version = LOCK[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{text}: the lock has {version}"


def test_package_has_ranges_and_a_small_base():
    base = {Requirement(text).name for text in PROJECT["dependencies"]}
    assert base == {"numpy", "scipy", "array-api-compat"}
    everything = [
        *PROJECT["dependencies"],
        *chain.from_iterable(PROJECT["optional-dependencies"].values()),
    ]
    assert not [text for text in everything if "==" in text]
    assert {"paper", "book", "test", "gpu-cuda12", "gpu-cuda13", "vision", "cluster"} <= set(
        PROJECT["optional-dependencies"]
    )
    assert (ROOT / "banditlib" / "py.typed").exists()


def test_heavy_libraries_stay_out_of_the_lock():
    assert not [n for n in LOCK if n.startswith(("torch", "cupy", "nvidia", "triton"))]


def environment_pins() -> dict[str, str]:
    (pip,) = [entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict)]
    return pins(pip)


def test_environment_is_what_chapters_need_and_jupyterlab():
    listed = environment_pins()
    shared = {name: version for name, version in listed.items() if name in LOCK}
    assert shared == {name: LOCK[name] for name in shared}
    for name in ("numpy", "jupytext", "jupyterlab", "jupyterlab-myst", "matplotlib", "mpmath"):
        assert name in listed
    for name in ("sphinx", "jupyter-book", "pytest", "playwright", "ruff", "mypy", "zizmor"):
        assert name not in listed


@pytest.mark.slow
def test_environment_installs_with_pip(tmp_path):
    wanted = [f"{name}=={version}" for name, version in environment_pins().items()]
    (tmp_path / "list.txt").write_text("\n".join(wanted))
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    done = subprocess.run(
        [*command, "-r", str(tmp_path / "list.txt")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


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
    build = (ROOT / "book" / "build.py").read_text("utf8")
    assert '["-W", "-n", "--keep-going"]' in build


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


def test_workflows_pin_actions_by_hash_and_grant_nothing_by_default():
    files = list((ROOT / ".github" / "workflows").glob("*.yml"))
    assert len(files) >= 3
    for file in files:
        text = file.read_text("utf8")
        assert yaml.safe_load(text)["permissions"] == {}
        for used in re.findall(r"uses: (.*)", text):
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used), used


def test_readme_gives_the_two_commands_and_make_lists_its_targets():
    readme = (ROOT / "README.md").read_text("utf8")
    assert "make book" in readme and "make test" in readme
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("book", "test", "test-all", "check", "claims", "figures", "bench", "clean"):
        assert f"make {target}" in shown


@pytest.mark.slow
def test_tests_of_one_group_stay_on_one_worker(tmp_path):
    """Browsers, environments and exports are shared within a group; side by side they collide."""
    (tmp_path / "test_it.py").write_text(
        "import os, pathlib, pytest\n"
        "@pytest.mark.xdist_group('one')\n"
        "@pytest.mark.parametrize('i', range(6))\n"
        "def test_it(i):\n"
        "    pathlib.Path(f'{i}.txt').write_text(os.environ['PYTEST_XDIST_WORKER'])\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len({path.read_text() for path in tmp_path.glob("*.txt")}) == 1


def test_ci_script_can_be_run():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & stat.S_IXUSR
    asked = ["bash", "-n", str(script)]
    assert subprocess.run(asked, check=False).returncode == 0


# ---- Colours


def colours(theme: str) -> dict[str, str]:
    css = (ROOT / "book" / "_static" / "book.css").read_text("utf8")
    start = css.index(f'html[data-theme="{theme}"]')
    block = css[start : css.index("}", start)]
    assert "--paper" in block
    return dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", block))


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_formula():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_colours_meet_aa(theme):
    palette = colours(theme)
    for ink in ("ink", "quiet", "blue", "brick", "green", "ochre", "plum"):
        for ground in ("paper", "panel"):
            assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)
    for ink, ground in (("green", "wash-green"), ("ochre", "wash-ochre"), ("brick", "wash-brick")):
        assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)
    assert contrast(palette["quiet"], palette["wash-grey"]) >= 4.5


# ---- make on a bad day


STUB = """#!/bin/sh
# Stands in for python3: knows just enough of -c, -m venv and -m pip.
case "$1 $2" in
    "--version "*) echo "Python {version}" ;;
    "-c "*) exit {version_code} ;;
    "-m venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-m pip") case "$3" in --version) exit 0 ;; *) echo "{pip_says}"; exit {pip_code} ;; esac ;;
esac
"""


@pytest.fixture
def folder(tmp_path):
    """A folder, with a space in its name, in which make can try to make its environment."""
    place = tmp_path / "a folder"
    (place / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "venv", place / ".ci" / "venv")
    return place


def make_environment(folder, version="3.11.9", version_code=0, pip_says="done", pip_code=0):
    stub = folder / "stub python"
    values = dict(version=version, version_code=version_code, pip_says=pip_says, pip_code=pip_code)
    text = STUB
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    stub.write_text(text)
    stub.chmod(0o755)
    return subprocess.run(
        ["sh", ".ci/venv", "requirements.txt"],
        cwd=folder,
        env={**os.environ, "PYTHON": str(stub)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_environment_is_made(folder):
    done = make_environment(folder)
    assert done.returncode == 0, done.stderr
    assert (folder / ".venv" / "bin" / "python").exists()
    assert not (folder / ".venv" / ".installing").exists()


def test_missing_python_is_named(folder):
    environment = {**os.environ, "PYTHON": "python-that-is-not-there"}
    done = subprocess.run(
        ["sh", ".ci/venv", "requirements.txt"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "python-that-is-not-there" in done.stderr and "Python 3.11" in done.stderr


def test_old_python_is_refused_with_a_remedy(folder):
    done = make_environment(folder, version="3.8.18", version_code=1)
    assert done.returncode != 0
    assert "3.8.18" in done.stderr and "PYTHON=" in done.stderr
    assert not (folder / ".venv").exists()


def test_no_network_is_explained(folder):
    done = make_environment(folder, pip_says="ERROR: Connection refused", pip_code=1)
    assert done.returncode != 0
    assert "network" in done.stderr and "run make again" in done.stderr


def test_half_made_environment_is_made_anew(folder):
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "rubbish").write_text("")
    done = make_environment(folder)
    assert done.returncode == 0, done.stderr
    assert "half-made" in done.stdout
    assert not (folder / ".venv" / "rubbish").exists()


def test_interrupted_installation_is_completed(folder):
    assert make_environment(folder).returncode == 0
    (folder / ".venv" / ".installing").write_text("999999999")
    assert make_environment(folder).returncode == 0
    assert not (folder / ".venv" / ".installing").exists()


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
    """The frame around one tiny chapter."""
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


@pytest.mark.slow
def test_make_works_in_a_folder_with_a_space(tmp_path):
    clone = tmp_path / "a folder"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    venv = clone / ".venv"
    venv.mkdir()
    for name in ("bin", "lib", "pyvenv.cfg", "share"):
        if (Path(sys.prefix) / name).exists():
            (venv / name).symlink_to(Path(sys.prefix) / name)
    for stamp in (".book", ".test"):
        (venv / stamp).touch()
    done = subprocess.run(
        ["make", "page", "PAGE=book/notation.md"],
        cwd=clone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "built:" in done.stdout
