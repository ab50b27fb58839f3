"""How a table or figure of the book was made, told from the stored results themselves."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from banditlib.paper import experiments
from banditlib.paper.results import Packed, key, read_pack

#: Where the site keeps what can be downloaded, seen from a page one folder down.
DOWNLOADS = "../_static/results"


def stored(name: str, scale: str = "full", folder: Path | None = None) -> list[Packed]:
    """The stored cells of the experiment `name`, in its order; absent cells are left out."""
    registry = experiments.registry()
    if name not in registry:
        raise ValueError(f"name is {name!r}, expected one of {', '.join(registry)}")
    item = registry[name]
    found: dict[str, Packed] = {}
    for path in sorted(((folder or experiments.results_folder()) / item.family.name).glob("*.npz")):
        found |= {key(cell.config): cell for cell in read_pack(path)}
    wanted = [key(config) for config in item.cells(scale)]
    return [found[k] for k in wanted if k in found]


def rendered(name: str, scale: str = "full", folder: Path | None = None) -> experiments.Rendered:
    """Draw a table or figure from its stored cells: file contents by suffix; empty without."""
    cells = stored(name, scale, folder)
    item = experiments.registry()[name]
    return item.render(cells, scale) if cells else {}  # type: ignore[arg-type]


def panel(
    title: str, facts: Iterable[tuple[str, str]], links: Sequence[str], more: str = ""
) -> str:
    """A folded panel in HTML: pairs of term and text, links to downloads, and what `more` adds."""
    told = "".join(f"<dt>{html.escape(a)}</dt><dd>{html.escape(b)}</dd>" for a, b in facts)
    if links:
        told += f"<dt>Download</dt><dd>{' · '.join(links)}</dd>"
    title = html.escape(title)
    return f'<details class="made"><summary>{title}</summary><dl>{told}</dl>{more}</details>'


class Made:
    """A panel with command, configuration, seeds, commit, machine, time and downloads."""

    def __init__(self, name: str, scale: str = "full", downloads: Sequence[str] = ()) -> None:
        self.name, self.scale = name, scale
        item = experiments.registry()[name]
        self.cells = stored(name, scale)
        if not self.cells:
            raise ValueError(f"made: there are no stored results for {name!r} at scale {scale!r}")
        self.wanted = len(item.cells(scale))
        self.downloads = list(downloads)

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
        return panel(f"How {self.name} was made", self.facts(), links, more)

    def __repr__(self) -> str:
        return "\n".join(f"{term}: {text}" for term, text in self.facts())


def _label(suffix: str) -> str:
    """What a link to a download says: CSV, or CSV (better) for a second form."""
    form, _, kind = suffix.rpartition(".")
    return kind.upper() + (f" ({form.strip('-')})" if form else "")


def made(name: str, scale: str = "full") -> Made:
    """The panel "how this was made" for a table or figure of the book."""
    return Made(name, scale, downloads=sorted(rendered(name, scale)))
