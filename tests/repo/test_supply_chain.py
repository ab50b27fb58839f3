"""What is installed is what was locked, and what may write to the repository installs nothing."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from conftest import ROOT

LOCKS = (".ci/tools.txt", "requirements.txt", "requirements-test.txt")


def entries(name: str) -> dict[str, list[str]]:
    """The hashes of each pin of a lock."""
    text = (ROOT / name).read_text("utf8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {line.split()[0]: line.split()[1:] for line in lines}


@pytest.mark.parametrize("name", LOCKS)
def test_every_pin_has_the_digest_of_its_wheels(name):
    found = entries(name)
    assert found
    for pin, hashes in found.items():
        assert re.fullmatch(r"[\w.-]+==[\w.+]+", pin)
        assert hashes, f"{pin} has no hash"
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", text) for text in hashes), pin


def test_the_tools_that_install_are_pinned():
    assert [pin.partition("==")[0] for pin in entries(".ci/tools.txt")] == ["pip", "setuptools"]


def test_the_locks_name_no_package_index():
    for name in (*LOCKS, "environment.yml"):
        assert "://" not in (ROOT / name).read_text("utf8"), name


# ---- make installs only that

STUB = """#!/bin/sh
case "$1 $2" in
    "-m venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-m pip") echo "$@" >>asked ;;
esac
"""


def make_environment(folder: Path, python: Path | str, *locks: str, **settings: str):
    (folder / ".ci").mkdir(exist_ok=True)
    shutil.copy(ROOT / ".ci" / "venv", folder / ".ci" / "venv")
    return subprocess.run(
        ["sh", ".ci/venv", *locks],
        cwd=folder,
        env={**os.environ, "PYTHON": str(python), **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_every_installation_checks_hashes_and_builds_nothing_of_others(tmp_path):
    (tmp_path / "python").write_text(STUB)
    (tmp_path / "python").chmod(0o755)
    done = make_environment(tmp_path, tmp_path / "python", *LOCKS[1:])
    assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    installs = [set(shlex.split(line)) for line in asked if " install " in line]
    *locked, own = installs
    assert len(locked) == 3
    for words, lock in zip(locked, LOCKS, strict=True):
        assert {"--require-hashes", "--only-binary", ":all:", "-r", lock} <= words
    assert {"--no-deps", "--no-build-isolation", "--editable", "."} <= own


def wheel(folder: Path, name: str) -> Path:
    """A package of one empty module."""
    path = folder / f"{name}-1-py3-none-any.whl"
    info = f"{name}-1.dist-info"
    with zipfile.ZipFile(path, "w") as stream:
        stream.writestr(f"{name}.py", "")
        stream.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        stream.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        stream.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n")
    return path


@pytest.mark.slow
def test_a_package_that_is_not_the_locked_one_is_refused(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    digests = {
        name: hashlib.sha256(wheel(files, name).read_bytes()).hexdigest()
        for name in ("goodone", "badone")
    }
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "tools.txt").write_text(f"goodone==1 --hash=sha256:{digests['goodone']}\n")
    (tmp_path / "lock.txt").write_text(f"badone==1 --hash=sha256:{digests['goodone']}\n")
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(files), "PIP_CONFIG_FILE": os.devnull}
    done = make_environment(tmp_path, sys.executable, "lock.txt", **settings)
    assert done.returncode != 0
    assert "not the one that was locked" in done.stderr and "badone" in done.stderr
    installed = {path.name for path in (tmp_path / ".venv").rglob("*one.py")}
    assert installed == {"goodone.py"}


# ---- the workflows


def jobs():
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        for name, job in yaml.safe_load(path.read_text("utf8"))["jobs"].items():
            yield f"{path.name}:{name}", job


def test_a_job_that_may_write_runs_nothing_but_git():
    writers = {name: job for name, job in jobs() if job["permissions"].get("contents") == "write"}
    assert list(writers) == ["site.yml:publish"]
    for job in writers.values():
        for step in job["steps"]:
            if "uses" in step:
                assert step["uses"].startswith("actions/download-artifact@")
            else:
                script = step["run"].replace("\\\n", " ")
                assert all(line.startswith("git ") for line in script.splitlines())


def test_every_action_is_named_by_its_commit():
    for name, job in jobs():
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"(actions|pypa)/[\w-]+@[0-9a-f]{40}", step["uses"]), name


def test_what_the_workflow_publishes_arrives_as_it_was(tmp_path):
    """The two halves of the site's workflow, with a folder in the place of the server."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "site.yml").read_text("utf8"))
    (push,) = [s for s in workflow["jobs"]["publish"]["steps"] if "run" in s]
    (commit,) = [s for s in workflow["jobs"]["notebooks"]["steps"] if "bundle" in s.get("run", "")]
    (tmp_path / "publish").mkdir()
    (tmp_path / "publish" / "postBuild").write_text("#!/bin/sh\n")
    (tmp_path / "publish" / "postBuild").chmod(0o755)
    (tmp_path / "publish" / "a b.ipynb").write_text("{}")
    server = tmp_path / "server.git"
    subprocess.run(["git", "init", "--quiet", "--bare", server], check=True)
    environment = {**os.environ, "TOKEN": "secret", "ADDRESS": str(server)}
    made = commit["run"].replace("sh .ci/branch publish\n", "")
    for script in (made, push["run"]):
        subprocess.run(["sh", "-euc", script], cwd=tmp_path, env=environment, check=True)
    words = ["git", "-C", server, "ls-tree", "-r", "notebooks"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[0] + line.split("\t")[1] for line in listed] == [
        "100644a b.ipynb",
        "100755postBuild",
    ]
