"""How often the tests that attack try, and where their figures go.

With the other tests each tries a seeded sample. ``make attacks``, and the weekly workflow, try the
full counts, seeded by the date (or by ``BANDITLIB_SEED``), and write what came out to
tests/attacks.json.
"""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import Any

FULL = os.environ.get("BANDITLIB_ATTACKS") == "full"
TODAY = datetime.datetime.now(datetime.UTC).date()
SEED = int(os.environ.get("BANDITLIB_SEED") or (TODAY.strftime("%Y%m%d") if FULL else 0))
RECORD = Path(__file__).with_name("attacks.json")


def tries(sample: int, full: int) -> int:
    """How many to try: `sample`, or the `full` count."""
    return full if FULL else sample


def record(name: str, **figures: Any) -> None:
    """Print the figures of one attack; store them if the count was full."""
    print(f"{name}: " + ", ".join(f"{value} {key}" for key, value in figures.items()))
    if FULL:
        stored = json.loads(RECORD.read_text("utf8")) if RECORD.exists() else {}
        stored[name] = {"date": TODAY.isoformat(), "seed": SEED, **figures}
        RECORD.write_text(json.dumps(dict(sorted(stored.items())), indent=1) + "\n")
