"""Bytecode for Python in the page, made when the site is built.

Pyodide's archives hold sources, and a browser would compile them anew at every start: that is most
of the way to a chapter's first output. Only Pyodide's own Python writes bytecode that it can read,
so Node runs it here, and `compiled` runs inside it. Where Node is missing, sources stay.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import marshal
import os
import shutil
import subprocess
import sysconfig
import tempfile
import warnings
import zipfile
from pathlib import Path

#: The modules of Python itself.
LIBRARY = "python_stdlib.zip"

# ---- Inside Pyodide


def folder_of(archive: str) -> str:
    """Return the folder in which the modules of `archive` lie when they are imported."""
    if archive.endswith(LIBRARY):
        return os.path.dirname(os.__file__)
    return "/" + sysconfig.get_paths()["purelib"].lstrip("/")


def bytecode(source: bytes, path: str) -> bytes | None:
    """Return what a ``.pyc`` file of `source` holds, never to be checked against a source."""
    with warnings.catch_warnings(), contextlib.suppress(SyntaxError, ValueError):
        warnings.simplefilter("ignore")
        code = compile(source, path, "exec", dont_inherit=True)
        flags = (1).to_bytes(4, "little")
        head = importlib.util.MAGIC_NUMBER + flags + importlib.util.source_hash(source)
        return head + marshal.dumps(code)
    return None


def compiled(archive: bytes, folder: str, keep: bool) -> bytes:
    """Return `archive` with bytecode in place of its modules, or beside them to `keep` these."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(archive)) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            data = old.read(name)
            code = bytecode(data, f"{folder}/{name}") if name.endswith(".py") else None
            if keep or code is None:
                new.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
            if code is not None:
                target = importlib.util.cache_from_source(name) if keep else f"{name}c"
                new.writestr(zipfile.ZipInfo(target), code, zipfile.ZIP_DEFLATED)
    return out.getvalue()


# ---- Outside


class NotCompiled(Exception):
    """No bytecode can be made here; the message says why."""


def run_node(core: Path, jobs: list[tuple[Path, Path, bool]]) -> None:
    """Let the Pyodide in `core` compile archives; each job is an archive, its result, `keep`."""
    node = shutil.which("node")
    if node is None:
        raise NotCompiled("node is not installed")
    script = Path(__file__).with_suffix(".mjs")
    text = json.dumps([(str(archive), str(result), keep) for archive, result, keep in jobs])
    command = [node, str(script), str(core.resolve()), __file__]
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if run.returncode:
        raise NotCompiled(f"node could not run Pyodide: {run.stderr.strip()[-300:]}")


def _has_modules(path: Path) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith(".py") for name in archive.namelist())


def compile_staged(target: Path, store: Path) -> None:
    """Give bytecode to the archives in `target`, and write their new hashes into its lock file.

    What Pyodide brings is compiled once and kept in the folder `store`. Our own wheels, those that
    `store` has no original of beside it, are compiled every time and keep their sources, so that
    tracebacks can quote them.
    """
    lock = json.loads((target / "pyodide-lock.json").read_text())
    lines = {line["file_name"]: line for line in lock["packages"].values()}
    found = [name for name in (LIBRARY, *lines) if _has_modules(target / name)]
    program = Path(__file__).read_bytes()
    store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=store) as scratch:
        results: dict[str, Path] = {}
        jobs = []
        for name in found:
            own = name != LIBRARY and not (store.parent / name).is_file()
            digest = hashlib.sha256(program + (target / name).read_bytes()).hexdigest()
            results[name] = Path(scratch) / name if own else store / f"{digest[:16]}-{name}"
            if not results[name].is_file():
                jobs.append((target / name, Path(scratch) / name, own))
        if jobs:
            run_node(target, jobs)
        for _, made, own in jobs:
            if not own:
                made.replace(results[made.name])
        for name, result in results.items():
            shutil.copyfile(result, target / name)
            if name in lines:
                lines[name]["sha256"] = hashlib.sha256(result.read_bytes()).hexdigest()
    (target / "pyodide-lock.json").write_text(json.dumps(lock, sort_keys=True))
