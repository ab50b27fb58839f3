"""The results that the book shows: a folder of packs, and the list of what it must hold.

``MANIFEST`` is text, sorted, one line for each file and each cell.  Publishing changes the lines of
what it wrote and no others; everything that reads the folder can be held against it::

    pack synthetic/long.npz 44 cells SHA-256
    KEY DIGEST                              one line for each cell of the pack, by key
    file bench.json SHA-256                 measurements, which have no cells

``python -m banditlib.paper.published data/results`` writes the list anew from what is there; look
at its difference before you commit it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from banditlib.files import locked, sha256, sweep, write_whole
from banditlib.paper.experiments.base import Family
from banditlib.paper.store import Cell, Config, Damaged, Packed, key, read_pack, write_pack

NAME = "MANIFEST"
HEAD = "# What this folder must hold. Publishing writes it, `banditlib verify` compares."
#: Files in the folder that are no results.
_NOT_LISTED = (NAME, "VERIFIED.json", ".lock")


class Unlisted(Exception):
    """The folder is not what its manifest says; the message says in what way."""


@dataclass(frozen=True)
class Entry:
    """One file: its SHA-256, and for a pack the digest of each cell by key."""

    digest: str
    cells: dict[str, str] | None = None


@dataclass
class Manifest:
    """Entries by path, relative to the folder, with forward slashes."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def text(self) -> str:
        """The list as the file ``MANIFEST`` holds it."""
        lines = [HEAD]
        for name, entry in sorted(self.entries.items()):
            if entry.cells is None:
                lines.append(f"file {name} {entry.digest}")
                continue
            lines.append(f"pack {name} {len(entry.cells)} cells {entry.digest}")
            lines += [f"{k} {digest}" for k, digest in sorted(entry.cells.items())]
        return "\n".join(lines) + "\n"

    @classmethod
    def parse(cls, text: str) -> Manifest:
        """Read what :meth:`text` wrote; `Unlisted` names a line that is none of its kind."""
        entries: dict[str, Entry] = {}
        cells: dict[str, str] = {}
        for number, line in enumerate(text.splitlines(), 1):
            match line.split():
                case ["file", name, digest]:
                    entries[name] = Entry(digest)
                case ["pack", name, _, "cells", digest]:
                    cells = {}
                    entries[name] = Entry(digest, cells)
                case [k, digest] if k != "#":
                    cells[k] = digest
                case ["#", *_] | []:
                    pass
                case _:
                    raise Unlisted(f"{NAME}, line {number}: {line!r} is no line of a manifest")
        return cls(entries)


def read_manifest(folder: Path) -> Manifest:
    """The list of `folder`; `Unlisted` if there is none."""
    try:
        return Manifest.parse((folder / NAME).read_text("utf8"))
    except FileNotFoundError:
        raise Unlisted(
            f"{folder} has no {NAME}: publish results there, or write the list of what is there "
            f"with `python -m banditlib.paper.published {folder}`."
        ) from None


def entry_of(path: Path) -> Entry:
    """What the manifest says of a file."""
    digest = sha256(path)
    if path.suffix != ".npz":
        return Entry(digest)
    return Entry(digest, {cell.key: cell.digest for cell in read_pack(path)})


def listed_files(folder: Path) -> dict[str, Path]:
    """The files of results in `folder`, by the name that the manifest gives them."""
    found = [*folder.glob("*"), *folder.glob("*/*")]
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(found)
        if path.name not in _NOT_LISTED and not path.is_dir()
    }


def _save(folder: Path, manifest: Manifest) -> None:
    write_whole(folder / NAME, manifest.text().encode())


def _current_manifest(folder: Path) -> Manifest:
    """The list as it stands; of a folder that never had one, the list of what is there."""
    if (folder / NAME).exists():
        return read_manifest(folder)
    return Manifest({name: entry_of(path) for name, path in listed_files(folder).items()})


def enroll(path: Path) -> None:
    """Put a file that was written by other means (times, speeds) into its folder's list."""
    for folder in path.resolve().parents[:2]:
        if (folder / NAME).exists():
            with locked(folder):
                manifest = read_manifest(folder)
                name = path.resolve().relative_to(folder).as_posix()
                manifest.entries[name] = entry_of(path)
                _save(folder, manifest)
            return


# --- publishing -----------------------------------------------------------------------------------


def publish(family: Family, cells: Sequence[Cell | Packed], folder: Path) -> list[Path]:
    """Merge cells of a family into its packs in `folder`; the paths that changed.

    One process at a time; cells that others published stay, but for those of another engine
    version.  A cell that is there already and came out the same is left as it is.
    """
    parts: dict[str, dict[str, Cell | Packed]] = {}
    for cell in cells:
        parts.setdefault(family.part(cell.config), {})[cell.key] = cell
    paths = []
    with locked(folder):
        sweep(folder)
        manifest = _current_manifest(folder)
        for name, members in sorted(parts.items()):
            path = folder / family.name / f"{name}.npz"
            if _merge(family, path, name, members):
                paths.append(path)
                manifest.entries[path.relative_to(folder).as_posix()] = entry_of(path)
        if paths or not (folder / NAME).exists():
            _save(folder, manifest)
    return paths


def _merge(family: Family, path: Path, name: str, members: dict[str, Cell | Packed]) -> bool:
    """Write `members` and what `path` held; whether that changed anything."""
    sweep(path.parent)
    there = read_pack(path) if path.exists() else []
    before = {p.key: p for p in there}
    ancestors = {_ageless(p.config): p for p in there}
    merged = {k: p for k, p in before.items() if family.is_current(p.config)}
    for k, cell in members.items():
        if k not in merged or merged[k].whole != cell.checksum:
            merged[k] = _thinned(family, cell, ancestors.get(_ageless(cell.config)))
    if merged.keys() == before.keys() and all(merged[k] is before[k] for k in merged):
        return False
    write_pack(path, name, [merged[k] for k in sorted(merged)])
    return True


def _ageless(config: Config) -> str:
    """What a cell computes, whatever the engine version."""
    return key({**config, "engine": 0})


def _thinned(family: Family, cell: Cell | Packed, earlier: Packed | None) -> Packed:
    arrays = family.thin(cell) if isinstance(cell, Cell) else cell.arrays
    origin = dict(cell.provenance)
    if earlier is not None and "first" not in origin:
        then = earlier.provenance
        origin["first"] = then.get("first") or {
            "finished": then.get("finished"),
            "commit": then.get("commit"),
            "engine": earlier.config["engine"],
        }
    return Packed(cell.config, arrays, cell.checksum, origin)


# --- holding the folder against its list ----------------------------------------------------------


def faults(folder: Path) -> list[str]:
    """In what way `folder` is not what its manifest says, a sentence for each; none if it is."""
    try:
        listed = read_manifest(folder).entries
    except Unlisted as error:
        return [str(error)]
    there = listed_files(folder)
    told = [f"{folder / name} is missing." for name in sorted(listed.keys() - there.keys())]
    told += [
        f"{folder / name} is not in the {NAME}: publish it, or delete it."
        for name in sorted(there.keys() - listed.keys())
    ]
    for name in sorted(listed.keys() & there.keys()):
        told += _altered(there[name], name, listed)
    if not listed:
        told.append(f"The {NAME} of {folder} lists nothing.")
    return told


def _altered(path: Path, name: str, listed: dict[str, Entry]) -> Iterable[str]:
    digest = sha256(path)
    if digest == listed[name].digest:
        return []
    for other, entry in listed.items():
        if digest == entry.digest:
            return [f"{path} is {other} under another name."]
    cells = listed[name].cells
    if cells is None:
        return [f"{path} is not the file that the {NAME} lists."]
    try:
        now = entry_of(path).cells or {}
    except Damaged as fault:
        return [f"{path} {fault}. Restore it from version control, or publish it again."]
    missing, extra = sorted(cells.keys() - now.keys()), sorted(now.keys() - cells.keys())
    changed = sorted(k for k in cells.keys() & now.keys() if cells[k] != now[k])
    said = [
        f"{len(some)} cells are {word} ({', '.join(some[:3])}{', …' if len(some) > 3 else ''})"
        for some, word in ((missing, "missing"), (extra, "extra"), (changed, "altered"))
        if some
    ] or ["its cells are the ones listed, but what is said of their origin is altered"]
    return [f"{path} is not the pack that the {NAME} lists: {'; '.join(said)}."]


def check_manifest(folder: Path) -> None:
    """`Unlisted`, with every fault in its message, unless `folder` is what its manifest says."""
    if told := faults(folder):
        raise Unlisted("\n".join(told))


def main(argv: Sequence[str] | None = None) -> int:
    """Write the manifest of a folder anew from what is there."""
    words = list(sys.argv[1:] if argv is None else argv)
    if len(words) != 1 or not Path(words[0]).is_dir():
        print("usage: python -m banditlib.paper.published FOLDER", file=sys.stderr)
        return 2
    folder = Path(words[0])
    with locked(folder):
        found = {name: entry_of(path) for name, path in listed_files(folder).items()}
        _save(folder, Manifest(found))
    print(f"{folder / NAME}: {len(found)} files.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
