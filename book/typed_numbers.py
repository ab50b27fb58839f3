"""Find numbers typed into prose that look like results.

A result belongs in a cell, from which the prose quotes it: ``{glue:text}`name` ``. A number that
the paper prints is marked ``{paper}`405.4` ``, a setting of ours ``{setting}`200,000` ``. What
is left and looks like a result (a decimal, a percentage, a power of ten, or an integer of four
digits or more) is reported. Maths, code, roles and links are not prose, except that ``\\approx``
followed by a number is.

    python -m book.typed_numbers [FILE ...]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from book.extensions.cachekey import ROOT

#: Directives whose content is prose; the content of all others is code, maths or a listing.
PROSE = {"admonition", "note", "tip", "warning", "important", "dropdown", "margin", "prf"}
_FENCE = re.compile(r"^(\s*)(`{3,}|:{3,})\s*(?:\{([\w:-]+)\})?")
_NUMBER = re.compile(
    r"(?<![\w.,/#^_-])(?:\d+\.\d+|\d{1,3}(?:,\d{3})+|\d{4,}|\d+(?=\s?(?:%|percent|per cent)))"
    r"(?![\w/-])"
    r"|\d(?:\.\d+)?\s*(?:×|x)\s*10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹^-]"
)
_YEAR = re.compile(r"^(?:19|20)\d\d$")
_APPROX = re.compile(r"\\approx\s*-?\d+(?:\.\d+)?")


def prose(text: str) -> list[tuple[int, str]]:
    """Lines of `text` with their numbers, blanked where they are not prose."""
    lines, out, front = text.split("\n"), [], False
    stack: list[tuple[str, bool]] = []
    for number, line in enumerate(lines, 1):
        if number == 1 and line.strip() == "---":
            front = True
        elif front:
            front = line.strip() != "---"
        elif match := _FENCE.match(line):
            fence, name = match[2], match[3]
            if name is None and stack and fence == stack[-1][0]:
                stack.pop()
            else:
                domain = (name or "").partition(":")[0]
                stack.append((fence, domain in PROSE))
        elif all(is_prose for _, is_prose in stack) and not line.startswith(":"):
            out.append((number, line))
    return out


def strip(line: str) -> str:
    """`line` without maths, code, roles, link targets and HTML."""
    approx = " ".join(_APPROX.findall(line))
    line = re.sub(r"\{[\w:-]+\}`[^`]*`", " ", line)
    line = re.sub(r"\$\$.*?\$\$|\$[^$]*\$", " ", line)
    line = re.sub(r"`[^`]*`", " ", line)
    line = re.sub(r"\]\([^)]*\)|<[^>]*>|https?://\S+|CC BY 4\.0", " ", line)
    return line + " " + approx.replace("\\approx", "≈")


def suspects(text: str) -> list[tuple[int, str]]:
    """Line numbers and typed numbers of one page."""
    found, maths = [], False
    for number, line in prose(text):
        if line.count("$$") % 2:
            maths = not maths
            continue
        if maths:
            continue
        stripped = strip(line)
        found += [(number, m[0]) for m in _NUMBER.finditer(stripped) if not _YEAR.match(m[0])]
        found += [(number, m) for m in re.findall(r"≈\s*-?\d+(?:\.\d+)?", stripped)]
    return found


def main(paths: list[str]) -> int:
    files = [Path(p) for p in paths] or [
        *sorted((ROOT / "notebooks").glob("*.md")),
        *sorted((ROOT / "book").glob("*.md")),
    ]
    bad = 0
    for path in files:
        for line, word in suspects(path.read_text(encoding="utf-8")):
            bad += 1
            print(
                f"{path}:{line}: {word} is typed: glue it, or mark it with {{paper}} or {{setting}}"
            )
    print(f"numbers: {len(files)} pages, {bad} typed numbers that look like results")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
