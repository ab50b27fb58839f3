"""Write requirements.txt and environment.yml from what is installed in .venv (``make lock``).

The lock is the closure of the extras that make installs, and of what Binder needs beside them. It
leaves out torch and CuPy, which have extras of their own. environment.yml is the part of it without
test tools.
"""

from __future__ import annotations

import sys
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
BINDER = ["jupyterlab", "jupyterlab-myst"]
UNPINNED = {"banditlib", "pip", "setuptools", "wheel"}  # ours, and the interpreter's own tools


def closure(requirements: list[str]) -> dict[str, str]:
    """Return the exact version of everything that `requirements` need on this machine."""
    found: dict[str, str] = {}
    done: set[tuple[str, str]] = set()
    todo = [(Requirement(text), "") for text in requirements]
    while todo:
        requirement, extra = todo.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        installed = distribution(requirement.name)
        name = canonicalize_name(requirement.name)
        if name not in UNPINNED:
            found[name] = f"{installed.metadata['Name']}=={installed.version}"
        for wanted in ["", *sorted(requirement.extras)]:
            if (name, wanted) not in done:
                done.add((name, wanted))
                todo += [(Requirement(text), wanted) for text in installed.requires or []]
    return dict(sorted(found.items()))


LOCK_HEAD = """\
# Exact versions that were built and tested together. make uses them as constraints (pip install
# -c); what is installed is said by the extras of pyproject.toml. Remade by: make lock
"""

ENVIRONMENT_HEAD = """\
# For conda and Binder. The pins are those of requirements.txt, without the test tools. Remade by:
#   make lock
# Use it with:
#   conda env create -f environment.yml && conda activate banditlib && pip install --no-deps -e .
name: banditlib
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
  - pip:
"""


def main() -> int:
    """Write both files."""
    lock = closure(["banditlib[paper,book,test,cluster]", *BINDER])
    reader = closure(["banditlib[paper,book]", *BINDER])
    (ROOT / "requirements.txt").write_text(LOCK_HEAD + "\n".join(lock.values()) + "\n")
    pins = "".join(f"      - {pin}\n" for pin in reader.values())
    (ROOT / "environment.yml").write_text(ENVIRONMENT_HEAD + pins)
    print(f"requirements.txt: {len(lock)} pins; environment.yml: {len(reader)} of them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
