"""What make, the locks, the environment and the workflows promise."""

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
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


# ---- The workflows, and what make offers


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
    makefile = (ROOT / "Makefile").read_text("utf8")
    (targets,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    for target in set(targets.split()) - {"help"}:
        assert f"make {target} " in shown


@pytest.mark.parametrize("target", ["page", "verify-slice"])
def test_make_asks_for_what_is_missing_before_it_installs(tmp_path, target):
    shutil.copy(ROOT / "Makefile", tmp_path)
    done = subprocess.run(["make", target], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"make {target}: say which, such as make {target} " in done.stdout
    assert not (tmp_path / ".venv").exists()


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


# ---- make on a bad day


STUB = """#!/bin/sh
# Stands in for python3: knows just enough of -c, -m venv and -m pip.
case "$1 $2" in
    "--version "*) echo "Python {version}" ;;
    "-c "*) exec "{real}" -c "import sys; sys.version_info = {info}; $2" ;;
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


def make_environment(folder, version="3.11.9", pip_says="done", pip_code=0):
    stub = folder / "stub python"
    info = tuple(map(int, version.split(".")))
    values = dict(version=version, info=info, real=sys.executable)
    values |= dict(pip_says=pip_says, pip_code=pip_code)
    text = STUB
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    stub.write_text(text)
    stub.chmod(0o755)
    return run_with(folder, str(stub))


def run_with(folder, python):
    """Let make try to make its environment with the interpreter `python`."""
    return subprocess.run(
        ["sh", ".ci/venv", "requirements.txt"],
        cwd=folder,
        env={**os.environ, "PYTHON": python},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("version", ["3.11.0", "3.12.1", "3.13.9"])
def test_environment_is_made(folder, version):
    done = make_environment(folder, version)
    assert done.returncode == 0, done.stderr
    assert (folder / ".venv" / "bin" / "python").exists()
    assert not (folder / ".venv" / ".installing").exists()


def test_missing_python_is_named(folder):
    done = run_with(folder, "python-that-is-not-there")
    assert done.returncode != 0
    assert "python-that-is-not-there" in done.stderr and "Python 3.11" in done.stderr


@pytest.mark.parametrize("version", ["3.8.18", "3.10.14", "3.14.0"])
def test_python_without_locks_is_refused_with_a_remedy(folder, version):
    done = make_environment(folder, version)
    assert done.returncode != 0
    assert f"Python {version}; Python 3.11, 3.12 or 3.13 is needed" in done.stderr
    assert "PYTHON=" in done.stderr
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
