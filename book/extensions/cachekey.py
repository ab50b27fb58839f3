"""One key for everything that a chapter's output depends on besides its own cells.

jupyter-cache recognises a chapter by the text of its cells alone. A change in the package, in a
recorded result or in a pinned version would leave old figures standing. The folder of the cache,
and Sphinx's own memory of the pages, are therefore named after this key.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What the cells read, and what the pages around them read as well.
EXECUTION_SOURCES = ("banditlib", "data", "requirements.txt")
PAGE_SOURCES = (*EXECUTION_SOURCES, "book/claims", "book/extensions")

# Large downloads are described by the results made from them.
SKIPPED = ("data/asirra/", "data/downloads/")
LITTER = {"__pycache__", ".ipynb_checkpoints"}


def source_files(root: Path, sources: tuple[str, ...]) -> Iterator[Path]:
    """Yield every file below `sources`, in a fixed order."""
    for name in sources:
        top = root / name
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            inside = path.relative_to(root)
            left_out = LITTER & set(inside.parts) or inside.as_posix().startswith(SKIPPED)
            if path.is_file() and not left_out:
                yield path


def cache_key(root: Path = ROOT, sources: tuple[str, ...] = EXECUTION_SOURCES) -> str:
    """Return sixteen hex digits that change whenever a source file or the Python version does."""
    digest = hashlib.sha256(platform.python_version().encode())
    for path in source_files(root, sources):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def cache_folder(root: Path = ROOT) -> Path:
    """Return the folder of executed chapters that belongs to the present sources."""
    return root / "_build" / "executed" / cache_key(root)
