"""Show which share of the package the tests ran, and fail below the floors of pyproject.toml.

Reads `.coverage`, which `make test-all` leaves.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Print one line for each module and one for each floor."""
    floors = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["banditlib"]["coverage"]
    measured = coverage.Coverage(data_file=str(ROOT / ".coverage"))
    measured.load()
    good = True
    for folder, floor in sorted(floors.items(), reverse=True):
        inner = [f"{other}/*" for other in floors if other.startswith(f"{folder}/")]
        share = measured.report(include=[f"{folder}/*"], omit=inner or None, skip_covered=True)
        word = "" if share >= floor else ", which is too little"
        print(f"{folder}: {share:.1f} % of its lines were run; at least {floor} % are asked{word}")
        good &= share >= floor
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
