"""Write the locks from what is installed in .venv (``make lock``).

requirements.txt        what ``make book`` installs: the package's `paper` and `book` extras
requirements-test.txt   what ``make test`` installs beside it
.ci/tools.txt           pip and setuptools, which install the rest
environment.yml         for conda and Binder: what chapters need to run, and JupyterLab; no Sphinx

The first three name, for each version, the SHA-256 of every wheel that a supported system can take,
as the package index that pip is configured for lists them. torch and CuPy are left out: they have
extras of their own.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ["pip", "setuptools"]
BINDER = ["banditlib[paper,chapters]", "jupytext", "jupyterlab", "jupyterlab-myst"]

# Where the locks must install: each Python, its first release included, on each system.
PYTHONS = ("3.11.0", "3.12.0", "3.13.0")
SYSTEMS = {
    "Linux x86_64": ("linux", "Linux", "x86_64"),
    "Linux aarch64": ("linux", "Linux", "aarch64"),
    "macOS arm64": ("darwin", "Darwin", "arm64"),
}


def environments() -> Iterator[dict[str, str]]:
    """Yield what requirement markers are compared with, for each Python on each system."""
    for python, (platform, system, machine) in itertools.product(PYTHONS, SYSTEMS.values()):
        yield {name: str(value) for name, value in default_environment().items()} | {
            "python_version": ".".join(python.split(".")[:2]),
            "python_full_version": python,
            "implementation_version": python,
            "sys_platform": platform,
            "platform_system": system,
            "platform_machine": machine,
        }


def closure(requirements: Iterable[str]) -> dict[str, str]:
    """Return the installed version of everything that `requirements` need on any system.

    What only one system needs is pinned, and installed, on all: such packages are few and small.
    """
    found: dict[str, str] = {}
    done: set[tuple[str, str]] = set()
    places = list(environments())
    todo = [(Requirement(text), "") for text in requirements]
    while todo:
        requirement, extra = todo.pop()
        marker = requirement.marker
        if marker and not any(marker.evaluate(place | {"extra": extra}) for place in places):
            continue
        name = canonicalize_name(requirement.name)
        try:
            installed = distribution(requirement.name)
        except PackageNotFoundError:
            sys.exit(f"lock: {requirement} is not installed; pip install {name}, then make lock")
        if name != "banditlib":
            found[name] = f"{installed.metadata['Name']}=={installed.version}"
        for wanted in ["", *sorted(requirement.extras)]:
            if (name, wanted) not in done:
                done.add((name, wanted))
                todo += [(Requirement(text), wanted) for text in installed.requires or []]
    return dict(sorted(found.items()))


class Links(HTMLParser):
    """The links of a page of a package index."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found.append({name: value or "" for name, value in attrs})


def index() -> str:
    """The address of the package index that pip is configured for."""
    words = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    asked = subprocess.run(words, capture_output=True, text=True, check=False)
    if asked.returncode == 0 and asked.stdout.strip():
        return asked.stdout.strip()
    from pip._internal.models.index import PyPI

    return PyPI.simple_url


def wheels(address: str, pin: str) -> tuple[dict[frozenset[Tag], str], SpecifierSet]:
    """Return the SHA-256 of each wheel of `pin` by its tags, and the Pythons that it asks for."""
    name, _, version = pin.partition("==")
    with urllib.request.urlopen(f"{address.rstrip('/')}/{canonicalize_name(name)}/") as answer:
        page = Links()
        page.feed(answer.read().decode())
    found: dict[frozenset[Tag], str] = {}
    pythons = SpecifierSet()
    for link in page.found:
        url, _, fragment = link["href"].partition("#")
        file = urllib.parse.unquote(url.rsplit("/", 1)[-1])
        try:
            _, its_version, _, tags = parse_wheel_filename(file)
        except InvalidWheelFilename:
            continue
        if its_version == Version(version) and fragment.startswith("sha256="):
            found[tags] = fragment.removeprefix("sha256=")
            pythons = SpecifierSet(link.get("data-requires-python", ""))
    return found, pythons


def accepted(python: str, system: str) -> set[Tag]:
    """The tags of the wheels that this Python takes on this system."""
    version = tuple(int(part) for part in python.split(".")[:2])
    machine = SYSTEMS[system][2]
    if system.startswith("macOS"):
        platforms = list(mac_platforms((14, 0), machine))
    else:
        glibc = [f"manylinux_2_{minor}_{machine}" for minor in range(36, 4, -1)]
        platforms = [*glibc, *(f"manylinux{old}_{machine}" for old in (2014, 2010, 1))]
    tags = [cpython_tags(version, platforms=platforms)]
    tags += [compatible_tags(version, f"cp{version[0]}{version[1]}", platforms)]
    return set(itertools.chain(*tags))


def hashed(pins: Iterable[str]) -> str:
    """One entry for each pin: the pin, and the SHA-256 of each wheel that a system can take."""
    address = index()
    places = list(itertools.product(PYTHONS, SYSTEMS))
    taken = {place: accepted(*place) for place in places}
    text, lacking = "", []
    pins = list(pins)
    with ThreadPoolExecutor(8) as pool:
        listed = list(pool.map(lambda pin: wheels(address, pin), pins))
    for pin, (files, pythons) in zip(pins, listed, strict=True):
        useful = set()
        for place in places:
            fit = {digest for tags, digest in files.items() if tags & taken[place]}
            useful |= fit
            if not fit or place[0] not in pythons:
                lacking.append(f"{pin}: nothing for Python {place[0]} on {place[1]}")
        text += " \\\n    ".join([pin, *(f"--hash=sha256:{d}" for d in sorted(useful))]) + "\n"
    if lacking:
        sys.exit("lock: the index has no wheel of\n  " + "\n  ".join(lacking))
    return text


LOCK_HEAD = """\
# Exact versions that were built and tested together, each with the SHA-256 of its wheels. make
# installs these and nothing else (pip install --require-hashes --only-binary :all:). Remade by:
#   make lock
"""

ENVIRONMENT_HEAD = """\
# For conda and Binder: what the chapters need to run, and JupyterLab. Remade by:
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
    """Write the four files."""
    tools = closure(TOOLS)
    book = {n: p for n, p in closure(["banditlib[paper,book]"]).items() if n not in tools}
    known = tools | book
    more = closure(["banditlib[paper,book,test,cluster]"]).items()
    test = {n: p for n, p in more if n not in known}
    reader = {n: p for n, p in closure(BINDER).items() if n not in tools}
    for name, pins in (
        (".ci/tools.txt", tools),
        ("requirements.txt", book),
        ("requirements-test.txt", test),
    ):
        (ROOT / name).write_text(LOCK_HEAD + hashed(pins.values()))
        print(f"{name}: {len(pins)} pins")
    listed = "".join(f"      - {pin}\n" for pin in reader.values())
    (ROOT / "environment.yml").write_text(ENVIRONMENT_HEAD + listed)
    print(f"environment.yml: {len(reader)} pins")
    return 0


if __name__ == "__main__":
    sys.exit(main())
