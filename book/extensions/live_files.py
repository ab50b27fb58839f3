"""What Python in the page is made of: Pyodide, its wheels and ours, and one list of them.

Pyodide itself is npm's package ``pyodide``. The WebAssembly wheels of numpy and its like are in
Pyodide's own distribution; their names and hashes stand in the ``pyodide-lock.json`` inside that
package. Both come into a folder outside the build, and nothing enters a site unchecked::

    python -m book.extensions.live_files        # fetch what is not there yet (make live)

The folder is ``.cache/pyodide``, or the one named by the variable ``BANDITLIB_PYODIDE``.
"""

from __future__ import annotations

import ast
import base64
import functools
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from book.extensions.cachekey import ROOT

#: The files of npm's package that a browser needs.
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")

#: Packages of Pyodide's distribution that chapters import; each brings what it depends on.
WANTED = ("numpy", "scipy", "matplotlib", "mpmath", "scikit-learn", "joblib", "tqdm")

#: Pure packages that are copied from the environment which builds the book.
COPIED = ("array-api-compat", "array-api-strict")

#: The stored results, packed like a package: they land where the package looks for them.
RESULTS = "banditlib-results"

#: Modules of ``banditlib.paper`` that read no stored results.
WITHOUT_RESULTS = ("banditlib.paper.notebook", "banditlib.paper.render")


class Unavailable(Exception):
    """Something cannot be had here; the message says what and why."""


@dataclass(frozen=True)
class Pinned:
    """A wheel that the package index carries although Pyodide's distribution does not."""

    file_name: str
    sha256: str
    imports: tuple[str, ...]

    @property
    def version(self) -> str:
        """The version, as the file's name says it."""
        return self.file_name.split("-")[1]


@dataclass(frozen=True)
class Release:
    """One release of Pyodide, and what we add to it."""

    version: str
    integrity: str  # of npm's tarball, as npm writes it
    core: tuple[str, ...] = CORE
    pinned: dict[str, Pinned] = field(default_factory=dict)

    @property
    def tarball(self) -> str:
        """The name under which ``npm pack`` saves the package."""
        return f"pyodide-{self.version}.tgz"

    @property
    def distribution(self) -> str:
        """Where Pyodide publishes the wheels of this release."""
        return f"https://cdn.jsdelivr.net/pyodide/v{self.version}/full/"


RELEASE = Release(
    version="314.0.7",
    integrity="sha512-0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi"
    "/6V5JEsOlD2R1A==",
    pinned={
        "python-flint": Pinned(
            "python_flint-0.9.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl",
            "b31f5c00e0e36040ab58d00b3025156e20869b990d776e4bf90f870b1ee11ad3",
            ("flint",),
        )
    },
)


def cache_folder(release: Release = RELEASE) -> Path:
    """Return the folder in which the fetched files of `release` lie or would lie."""
    top = os.environ.get("BANDITLIB_PYODIDE")
    return (Path(top) if top else ROOT / ".cache" / "pyodide") / release.version


# ---- Checked files


def sha256(path: Path) -> str:
    """Return the hash of a file as lock files write it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def core_tarball(folder: Path, release: Release = RELEASE) -> Path:
    """Return npm's tarball in `folder`, if it is there and is what npm published."""
    path = folder / release.tarball
    if not path.is_file():
        raise Unavailable(f"{path} is missing: make live fetches it")
    digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
    if release.integrity != f"sha512-{digest}":
        raise Unavailable(f"{path} is not the file that npm published: remove it, then make live")
    return path


def read_lock(folder: Path, release: Release = RELEASE) -> dict[str, Any]:
    """Return the list of packages that the tarball in `folder` carries."""
    with tarfile.open(core_tarball(folder, release)) as tar:
        member = tar.extractfile("package/pyodide-lock.json")
        assert member is not None
        lock: dict[str, Any] = json.load(member)
    lock["packages"].pop("ipython", None)  # cells.py stands in for the little that chapters use
    for name, pin in release.pinned.items():
        lock["packages"][name] = {
            "name": name,
            "version": pin.version,
            "file_name": pin.file_name,
            "sha256": pin.sha256,
            "imports": list(pin.imports),
            "depends": [],
            "install_dir": "site",
            "package_type": "package",
        }
    return lock


def with_dependencies(names: Iterable[str], packages: dict[str, Any]) -> list[str]:
    """Return `names` and all that they depend on, each once, in alphabetical order."""
    found: set[str] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        if name in packages and name not in found:
            found.add(name)
            queue += packages[name]["depends"]
    return sorted(found)


def cached_packages(folder: Path, lock: dict[str, Any], release: Release) -> dict[str, Any]:
    """Return those wanted packages whose wheel, and all it depends on, lies in `folder`."""
    packages = lock["packages"]
    wanted = with_dependencies((*WANTED, *release.pinned), packages)
    there = {name for name in wanted if (folder / packages[name]["file_name"]).is_file()}
    for name in there:
        path = folder / packages[name]["file_name"]
        if sha256(path) != packages[name]["sha256"]:
            raise Unavailable(f"{path} is not the file of the lock: remove it, then make live")
    whole = (n for n in sorted(there) if there.issuperset(with_dependencies([n], packages)))
    return {name: packages[name] for name in whole}


# ---- Our own wheels


def write_wheel(
    folder: Path,
    name: str,
    version: str,
    files: dict[str, bytes],
    imports: tuple[str, ...],
    depends: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Write a pure wheel of `files` into `folder`; return its line for the lock file."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    tag = "Wheel-Version: 1.0\nGenerator: the book\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {**files, f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": tag.encode()}
    record = "".join(f"{path},{_record_hash(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    target = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED)
    return {
        "name": name,
        "version": version,
        "file_name": target.name,
        "sha256": sha256(target),
        "imports": list(imports),
        "depends": list(depends),
        "install_dir": "site",
        "package_type": "package",
    }


def _record_hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return "sha256=" + digest.decode().rstrip("=")


def _folder_files(top: Path, root: Path) -> dict[str, bytes]:
    """Return the files below `top` by their path from `root`, without what Python leaves behind."""
    paths = (p for p in sorted(top.rglob("*")) if p.is_file() and "__pycache__" not in p.parts)
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in paths}


def _installed_files(name: str) -> dict[str, bytes]:
    """Return the modules of an installed distribution by their path in site-packages."""
    paths = importlib.metadata.files(name) or []
    modules = (p for p in paths if p.suffix in (".py", ".pyi", ".typed") and ".." not in p.parts)
    return {p.as_posix(): p.read_binary() for p in modules}


def write_own_wheels(folder: Path, root: Path = ROOT) -> dict[str, Any]:
    """Write wheels of banditlib, its results and its pure companions; return their lock lines."""
    lines = [
        write_wheel(
            folder,
            name,
            importlib.metadata.version(name),
            _installed_files(name),
            (name.replace("-", "_"),),
        )
        for name in COPIED
    ]
    version = importlib.metadata.version("banditlib")
    package = _folder_files(root / "banditlib", root)
    needs = ("numpy", "array-api-compat")
    lines.append(write_wheel(folder, "banditlib", version, package, ("banditlib",), needs))
    results = _folder_files(root / "data" / "results", root)
    lines.append(write_wheel(folder, RESULTS, version, results, ()))
    return {line["name"]: line for line in lines}


# ---- What a chapter imports


def _guarded(node: ast.stmt) -> bool:
    """Say whether `node` is a try statement that can do without what it imports."""
    if not isinstance(node, ast.Try):
        return False
    names = {n.id for h in node.handlers for n in ast.walk(h.type or h) if isinstance(n, ast.Name)}
    return bool(names & {"ImportError", "ModuleNotFoundError"})


def imported_names(tree: ast.AST, everywhere: bool) -> Iterator[str]:
    """Yield the dotted names that `tree` imports: at once, or `everywhere` also inside functions.

    What only a type checker imports does not count.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            yield from (n for child in node.orelse for n in imported_names(child, everywhere))
        elif everywhere or not (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            or (isinstance(node, ast.stmt) and _guarded(node))
        ):
            yield from imported_names(node, everywhere)


@functools.cache
def _module_imports(name: str, root: Path) -> tuple[str, ...]:
    """Return what one of our modules imports at once; nothing if `name` is not a module."""
    stem = root.joinpath(*name.split("."))
    for path in (stem.with_suffix(".py"), stem / "__init__.py"):
        if path.is_file():
            return tuple(imported_names(ast.parse(path.read_text("utf8")), everywhere=False))
    return ()


def reached_modules(source: str, root: Path = ROOT) -> set[str]:
    """Return the names that `source` imports, and those that banditlib's modules import with it."""
    seen: set[str] = set()
    queue = list(imported_names(ast.parse(source), everywhere=True))
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        if name.partition(".")[0] != "banditlib":
            continue
        if "." in name:
            queue.append(name.rpartition(".")[0])
        queue += _module_imports(name, root)
    return seen


def needed_packages(source: str, packages: dict[str, Any], root: Path = ROOT) -> list[str]:
    """Return the packages of a lock file that `source` needs, in alphabetical order.

    What a function imports when it is called does not count: the page fetches it then.
    """
    modules = reached_modules(source, root)
    tops = {name.partition(".")[0] for name in modules}
    needed = {name for name, line in packages.items() if tops & set(line["imports"])}
    own = set(imported_names(ast.parse(source), everywhere=True))
    if any(n.startswith("banditlib.paper.") and not n.startswith(WITHOUT_RESULTS) for n in own):
        needed.add(RESULTS)
    return sorted(needed & packages.keys())


# ---- Into the site


def cached_names(folder: Path | None = None, release: Release = RELEASE) -> list[str]:
    """Return the packages that lie whole in the cache; none if Pyodide itself does not."""
    folder = folder or cache_folder(release)
    if not (folder / release.tarball).is_file():
        return []
    return sorted(cached_packages(folder, read_lock(folder, release), release))


def stage(
    target: Path, folder: Path | None = None, release: Release = RELEASE, root: Path = ROOT
) -> dict[str, Any]:
    """Put Pyodide, the cached wheels and ours into `target`; return the lock file written there."""
    folder = folder or cache_folder(release)
    lock = read_lock(folder, release)
    packages = cached_packages(folder, lock, release)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tarfile.open(core_tarball(folder, release)) as tar:
        for name in release.core:
            member = tar.extractfile(f"package/{name}")
            assert member is not None
            (target / name).write_bytes(member.read())
    for line in packages.values():
        shutil.copyfile(folder / line["file_name"], target / line["file_name"])
    lock["packages"] = {**packages, **write_own_wheels(target, root)}
    for line in lock["packages"].values():
        line["depends"] = [name for name in line["depends"] if name in lock["packages"]]
    (target / "pyodide-lock.json").write_text(json.dumps(lock, sort_keys=True))
    return lock


# ---- Fetching


def fetch_core(folder: Path, release: Release = RELEASE) -> Path:
    """Let npm fetch Pyodide into `folder`, unless it is there; return the checked tarball."""
    if not (folder / release.tarball).is_file():
        if shutil.which("npm") is None:
            raise Unavailable("npm is not installed, and only npm carries Pyodide")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            command = ["npm", "pack", "--silent", f"pyodide@{release.version}"]
            run = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
            got = Path(scratch) / release.tarball
            if run.returncode or not got.is_file():
                raise Unavailable(f"npm could not fetch Pyodide: {run.stderr.strip()[-300:]}")
            got.replace(folder / release.tarball)
    return core_tarball(folder, release)


def fetch_pinned(folder: Path, pin: Pinned) -> None:
    """Let pip fetch a pinned wheel into `folder`; which platform it is for says its name."""
    name, version, python, abi, platform = pin.file_name.removesuffix(".whl").split("-")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    command += [str(folder), "--only-binary", ":all:", "--platform", platform]
    command += ["--python-version", python.removeprefix("cp"), "--abi", abi, f"{name}=={version}"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise Unavailable(f"pip could not fetch {pin.file_name}: {run.stderr.strip()[-300:]}")


def fetch_wheel(folder: Path, line: dict[str, Any], release: Release = RELEASE) -> None:
    """Fetch one wheel of Pyodide's distribution into `folder`, if its hash is right."""
    address = release.distribution + line["file_name"]
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            data = answer.read()
    except OSError as error:
        raise Unavailable(f"{address} does not answer: {error}") from error
    if hashlib.sha256(data).hexdigest() != line["sha256"]:
        raise Unavailable(f"{address} has not the hash of the lock file; nothing was kept")
    scratch = folder / f"{line['file_name']}.part"
    scratch.write_bytes(data)
    scratch.replace(folder / line["file_name"])


def fetch(folder: Path | None = None, release: Release = RELEASE) -> list[str]:
    """Fetch all that is not yet in the cache; return a sentence for each thing not to be had."""
    folder = folder or cache_folder(release)
    try:
        fetch_core(folder, release)
        packages = read_lock(folder, release)["packages"]
    except Unavailable as error:
        return [str(error)]
    problems = []
    for name in with_dependencies((*WANTED, *release.pinned), packages):
        if (folder / packages[name]["file_name"]).is_file():
            continue
        try:
            if name in release.pinned:
                fetch_pinned(folder, release.pinned[name])
            else:
                fetch_wheel(folder, packages[name], release)
        except Unavailable as error:
            problems.append(str(error))
    return problems


def main() -> int:
    """Fetch into the cache, and say what the next build will do with it."""
    for problem in (problems := fetch()):
        print(f"make live: {problem}", file=sys.stderr)
    if "numpy" in cached_names():
        print(f"{cache_folder()}: the next make book lets chapters run in the page")
    else:
        print("make live: without numpy's wheel the book is built without the button")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
