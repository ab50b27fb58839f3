"""Where a number came from: the record that travels with every cell, and how a page tells it."""

from __future__ import annotations

import datetime
import functools
import hashlib
import html
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from banditlib.paper.experiments import registry, stored

ROOT = Path(__file__).resolve().parents[2]

#: Where the site keeps what can be downloaded, seen from a page one folder down.
DOWNLOADS = "../_static/results"


# --- where something is computed ----------------------------------------------------------------


def record(wall: float, backend: str = "numpy", dtype: str = "float64") -> dict[str, Any]:
    """Where and how something was computed, with its wall time in seconds."""
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    return {
        **_machine(),
        **_source(),
        "backend": backend,
        "dtype": dtype,
        "wall": round(wall, 4),
        "finished": now.isoformat(),
    }


@functools.cache
def _machine() -> dict[str, Any]:
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "blas": f"{blas.get('name', '?')} {blas.get('version', '')}".strip(),
    }


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown"
    names = re.findall(r"model name\s*:\s*(.+)", text)
    return " ".join(names[0].split()) if names else "unknown"


def versions() -> dict[str, str]:
    """The versions on which decisions could hang."""
    return {k: str(_machine()[k]) for k in ("python", "numpy", "blas")}


@functools.cache
def source() -> str:
    """Digest of all source of banditlib, as it was when first asked for."""
    return digest_of(sorted((ROOT / "banditlib").rglob("*.py")))


def digest_of(paths: Iterable[Path]) -> str:
    """16 hexadecimal digits over the names and contents of files of the project."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"|{path.relative_to(ROOT).as_posix()}|".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def _source() -> dict[str, Any]:
    import banditlib

    commit, dirty = _git()
    return {
        "banditlib": getattr(banditlib, "__version__", "unknown"),
        "commit": commit,
        "dirty": dirty,
        "source": source(),
    }


def _git() -> tuple[str | None, bool | None]:
    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(ROOT), *words],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        return done.stdout.strip()

    if not (ROOT / ".git").exists():
        return None, None
    try:
        return git("rev-parse", "HEAD"), bool(git("status", "--porcelain", "--", "banditlib"))
    except (OSError, subprocess.SubprocessError):
        return None, None


# --- how a page tells it --------------------------------------------------------------------------


def folded(
    title: str, facts: Iterable[tuple[str, str]], links: Sequence[str], more: str = ""
) -> str:
    """A folded panel in HTML: pairs of term and text, links to downloads, and what `more` adds."""
    told = "".join(f"<dt>{html.escape(a)}</dt><dd>{html.escape(b)}</dd>" for a, b in facts)
    if links:
        told += f"<dt>Download</dt><dd>{' · '.join(links)}</dd>"
    title = html.escape(title)
    return f'<details class="made"><summary>{title}</summary><dl>{told}</dl>{more}</details>'


class HowMade:
    """A panel with command, configuration, seeds, commit, machine, time and downloads."""

    def __init__(self, name: str, scale: str = "full") -> None:
        self.name, self.scale = name, scale
        item = registry()[name]
        self.cells = stored(name, scale)
        if not self.cells:
            raise ValueError(
                f"how_made: there are no stored results for {name!r} at scale {scale!r}"
            )
        self.wanted = len(item.cells(scale))
        self.downloads: list[str] = []

    def facts(self) -> list[tuple[str, str]]:
        """What the panel says, as pairs of term and text."""
        origins = [cell.provenance for cell in self.cells]

        def unique(*names: str) -> str:
            texts = (" ".join(str(o.get(n)) for n in names) for o in origins)
            return "; ".join(dict.fromkeys(texts))

        commits = dict.fromkeys(
            f"{str(o.get('commit'))[:10]}{' with local changes' if o.get('dirty') else ''}"
            for o in origins
        )
        wall = sum(float(o.get("wall") or 0) for o in origins)
        cells = f"{len(self.cells)}" + (
            "" if len(self.cells) == self.wanted else f" of {self.wanted} (the others are missing)"
        )
        return [
            ("Command", f"banditlib reproduce {self.name} --scale {self.scale}"),
            ("Cells", cells),
            (
                "Engine version",
                "; ".join(dict.fromkeys(str(c.config["engine"]) for c in self.cells)),
            ),
            ("Commit", "; ".join(commits)),
            ("Machine", f"{unique('cpu')}, {unique('cores')} cores, {unique('blas')}"),
            ("Software", f"Python {unique('python')}, numpy {unique('numpy')}, {unique('dtype')}"),
            ("Computing time", f"{wall:,.0f} s on one core"),
        ]

    def _repr_html_(self) -> str:
        config = html.escape(json.dumps(self.cells[0].config, indent=1, ensure_ascii=False))
        links = [
            f'<a href="{DOWNLOADS}/{self.name}{suffix}" download>{_label(suffix)}</a>'
            for suffix in self.downloads
        ]
        seeds = "<p>Configuration and seeds of its first cell:</p>"
        more = f'{seeds}<pre tabindex="0">{config}</pre>'
        return folded(f"How {self.name} was made", self.facts(), links, more)

    def __repr__(self) -> str:
        return "\n".join(f"{term}: {text}" for term, text in self.facts())


def _label(suffix: str) -> str:
    """What a link to a download says: CSV, or CSV (all runs) for a second form."""
    form, _, kind = suffix.rpartition(".")
    return kind.upper() + (f" ({form.strip('-').replace('-', ' ')})" if form else "")


def how_made(name: str, scale: str = "full") -> HowMade:
    """The panel "how this was made" for a table or figure of the book."""
    from banditlib.paper.render import names_only  # loads matplotlib

    panel = HowMade(name, scale)
    with names_only():
        panel.downloads = sorted(registry()[name].render(panel.cells, scale))
    return panel
