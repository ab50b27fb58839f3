"""A small table that reads well in a terminal and in a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True)
class Table:
    """Rows under a head, and a note below.

    Attributes
    ----------
    head : names of the columns
    rows : one tuple per row; numbers stay numbers
    note : what the reader must know, such as what the intervals are
    """

    head: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""

    def __repr__(self) -> str:
        cells = [self.head, *(tuple(map(shown, row)) for row in self.rows)]
        width = [max(len(row[i]) for row in cells) for i in range(len(self.head))]
        numbers = [self._number(i) for i in range(len(self.head))]
        lines = [
            "  ".join(
                cell.rjust(w) if right else cell.ljust(w)
                for cell, w, right in zip(row, width, numbers, strict=True)
            ).rstrip()
            for row in cells
        ]
        return "\n".join([*lines, *textwrap.wrap(self.note, 80)])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.head)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(shown(cell))}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"

    def to_dataframe(self) -> Any:
        """The same as a pandas DataFrame."""
        return dataframe({name: [row[i] for row in self.rows] for i, name in enumerate(self.head)})

    def _number(self, column: int) -> bool:
        return all(isinstance(row[column], (int, float)) for row in self.rows)


def shown(cell: Any, digits: int = 4) -> str:
    """A cell as people read it: fractions in so many digits, 4,431 and not 4.4e+03."""
    if isinstance(cell, float):
        return f"{cell:,.0f}" if 1000 <= abs(cell) < 1e15 else f"{cell:.{digits}g}"
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)


def dataframe(columns: dict[str, Sequence[Any]]) -> Any:
    """A pandas DataFrame, or a sentence that says what is missing."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_dataframe: needs pandas (pip install pandas)") from error
    return pandas.DataFrame(columns)
