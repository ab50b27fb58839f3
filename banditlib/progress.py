"""How far a long run has come, shown where someone watches."""

from __future__ import annotations

import sys
from typing import Any


class Silent:
    """A progress bar that shows nothing."""

    def update(self, n: int) -> None: ...

    def close(self) -> None: ...


def progress_bar(wanted: bool, rounds: int) -> Any:
    """A bar over all rounds of a run, in a terminal and after two seconds; silent without tqdm."""
    if not wanted or sys.stderr is None or not sys.stderr.isatty():
        return Silent()
    try:
        from tqdm import tqdm
    except ImportError:
        return Silent()
    return tqdm(total=rounds, delay=2, unit="round", unit_scale=True, leave=False)
