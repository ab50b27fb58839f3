"""The paper's printed numbers, worked out from its LaTeX source.

The style file of the paper is not part of its source. Its rule is read off the source itself:
theorems, lemmas, corollaries, definitions and remarks share one counter that starts again with
every section (two equations inside the fourth statement of Appendix D, a lemma after a corollary,
carry labels that begin with d4), and so do equations. Figures, tables and algorithms are counted
through. `python -m book.claims.numbering PAPER.TEX` writes labels.yml anew.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
STATEMENTS = ("theorem", "lemma", "corollary", "definition", "remark", "proposition")
FLOATS = {"table": "Table", "wraptable": "Table", "table*": "Table", "algorithm": "Algorithm"}

# Remarks that the paper does not label, by their printed number.
UNLABELLED = {
    "Remark 4.2": "rem:order",
    "Remark 4.3": "rem:expected",
    "Remark 4.4": "rem:papini",
    "Remark 5.2": "rem:l250",
    "Remark 5.3": "rem:l255",
    "Remark 6.3": "rem:l315",
}

_TOKEN = re.compile(
    r"\\(?P<command>section|subsection|appendix|caption)\b(?P<star>\*?)"
    r"|\\begin\{(?P<begin>[^}]*)\}|\\end\{(?P<end>[^}]*)\}"
    r"|\\label\{(?P<label>[^}]*)\}|\\(?P<sub>subfigure)\b"
    r"|(?P<row>\\\\)|\\(?P<silent>notag|nonumber)\b"
)


class _Reader:
    """LaTeX's counters while the source is read from front to back."""

    def __init__(self) -> None:
        self.section, self.subsection, self.letters = 0, 0, False
        self.counts: dict[str, int] = {}
        self.open: list[str] = []
        self.here: str | None = None  # what a label names: the last number that was set
        self.found: dict[str, dict[str, str]] = {}
        self.panel = 0
        self.silent = False
        self.pending: list[str] = []  # labels of the row of an equation that is being read

    @property
    def prefix(self) -> str:
        return chr(ord("A") + self.section - 1) if self.letters else str(self.section)

    def step(self, counter: str, by_section: bool) -> str:
        self.counts[counter] = self.counts.get(counter, 0) + 1
        number = str(self.counts[counter])
        return f"{self.prefix}.{number}" if by_section else number

    def name(self, label: str, printed: str) -> None:
        section = f"{self.prefix}.{self.subsection}" if self.subsection else self.prefix
        self.found[label] = {"printed": printed, "section": section}

    def end_row(self) -> None:
        """A row of an equation ends: it is numbered unless it says otherwise."""
        if not self.silent:
            number = f"Equation ({self.step('equation', True)})"
            for label in self.pending:
                self.name(label, number)
        self.pending, self.silent = [], False

    def token(self, match: re.Match[str]) -> None:
        inside = self.open[-1] if self.open else ""
        equation = inside in ("align", "equation")
        if command := match["command"]:
            self._command(command, bool(match["star"]))
        elif begin := match["begin"]:
            self._begin(begin)
        elif match["end"]:
            if equation:
                self.end_row()
            if self.open and self.open[-1] == match["end"]:
                self.open.pop()
        elif label := match["label"]:
            if equation:
                self.pending.append(label)
            elif self.here is not None:
                self.name(label, self.here)
        elif match["row"] and equation:
            self.end_row()
        elif match["silent"] and equation:
            self.silent = True
        elif match["sub"]:
            self.panel += 1
            figure = self.counts.get("figure", 0) + 1
            self.here = f"Figure {figure}{chr(ord('a') + self.panel - 1)}"

    def _command(self, command: str, star: bool) -> None:
        if command == "appendix":
            self.letters, self.section, self.subsection = True, 0, 0
        elif command == "section" and not star:
            self.section, self.subsection = self.section + 1, 0
            self.counts = {k: v for k, v in self.counts.items() if k not in ("theorem", "equation")}
            self.here = f"{'Appendix' if self.letters else 'Section'} {self.prefix}"
        elif command == "subsection" and not star:
            self.subsection += 1
            self.here = f"Section {self.prefix}.{self.subsection}"
        elif command == "caption":
            kind = FLOATS.get(self.open[-1] if self.open else "", "")
            if kind:
                self.here = f"{kind} {self.step(kind, False)}"
            elif self.open and self.open[-1] == "figure":
                self.here, self.panel = f"Figure {self.step('figure', False)}", 0

    def _begin(self, name: str) -> None:
        if name in STATEMENTS:
            self.here = f"{name.capitalize()} {self.step('theorem', True)}"
            if self.here in UNLABELLED:
                self.name(UNLABELLED[self.here], self.here)
        if name in (*STATEMENTS, *FLOATS, "figure", "align", "equation"):
            self.open.append(name)
            self.silent = False


def numbers(source: str) -> dict[str, dict[str, str]]:
    """Label → printed number and section, in the order of the source.

    >>> text = r"\\section{A}\\begin{lemma}\\label{x}\\end{lemma}\\appendix\\section{B}"
    >>> found = numbers(text + r"\\begin{align}1\\\\2\\notag\\\\3\\label{y}\\end{align}")
    >>> found["x"]["printed"], found["y"]["printed"]
    ('Lemma 1.1', 'Equation (A.2)')
    """
    text = re.sub(r"(?<!\\)%.*", "", source)
    reader = _Reader()
    for match in _TOKEN.finditer(text):
        reader.token(match)
    kept = re.compile(r"(thm|lm|col|def|alg|tab|fig|rm|rem|eq):")
    wanted = lambda label: bool(kept.match(label)) or not re.match(r"(ln|sec|app):", label)  # noqa: E731
    return {label: entry for label, entry in reader.found.items() if wanted(label)}


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        print("usage: python -m book.claims.numbering PAPER.TEX", file=sys.stderr)
        return 2
    found = numbers(Path(argv[0]).read_text(encoding="utf-8"))
    head = (
        "# The paper's printed numbers by label, in the paper's order; written by numbering.py.\n"
    )
    text = yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=100)
    (HERE / "labels.yml").write_text(head + text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
