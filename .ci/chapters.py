"""Lint and format the code cells of the chapters, which ruff does not look into by itself.

    python .ci/chapters.py          # complain
    python .ci/chapters.py --fix    # format the cells in place, then complain about the rest

A page has room for 80 columns of code, so the cells have at most that many. In cells imports come
where they are needed, a bare expression shows its value, loops and small functions are written the
short way; the rest of the project's rules apply.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUFF = [sys.executable, "-m", "ruff"]
COLUMNS = "line-length = 80"
IGNORED = "E402,E731,B007,B018,B905"
MARK = "# %% cell {}\n"
CELL = re.compile(
    r"(?P<head>^```\{code-cell\}[^\n]*\n(?:---\n.*?\n---\n|(?::[^\n]*\n)+)?\n?)(?P<code>.*?)(?P<tail>^```$)",
    re.MULTILINE | re.DOTALL,
)


def joined(text: str) -> str:
    """Return the code of all cells, each under a marker of its own."""
    cells = [cell["code"].strip("\n") for cell in CELL.finditer(text)]
    return "".join(f"{MARK.format(number)}{code}\n\n" for number, code in enumerate(cells))


def replaced(text: str, code: str) -> str:
    """Put the formatted `code` back into the cells of `text`."""
    parts = re.split(r"^# %% cell \d+\n", code, flags=re.MULTILINE)[1:]
    bodies = iter(part.strip("\n") for part in parts)
    return CELL.sub(lambda cell: f"{cell['head']}{next(bodies)}\n{cell['tail']}", text)


def main() -> int:
    """Check, or fix, every chapter."""
    chapters = sorted((ROOT / "notebooks").glob("*.md"))
    with tempfile.TemporaryDirectory() as folder:
        files = {path: Path(folder) / f"{path.stem}.py" for path in chapters}
        for path, file in files.items():
            file.write_text(joined(path.read_text("utf8")), "utf8")
        config = ["--config", str(ROOT / "pyproject.toml"), "--config", COLUMNS]
        if "--fix" in sys.argv:
            subprocess.run([*RUFF, "check", "--fix-only", "-q", *config, folder], check=False)
            subprocess.run([*RUFF, "format", "-q", *config, folder], check=True)
            for path, file in files.items():
                text = path.read_text("utf8")
                new = replaced(text, file.read_text("utf8"))
                if new != text:
                    path.write_text(new, "utf8")
                    print(f"formatted {path.name}")
        subprocess.run([*RUFF, "format", "-q", *config, folder], check=True)
        lint = subprocess.run(
            [*RUFF, "check", "-q", *config, "--ignore", IGNORED, "."], cwd=folder, check=False
        )
        texts = {path: path.read_text("utf8") for path in chapters}
        ugly = [
            p.stem
            for p, file in files.items()
            if replaced(texts[p], file.read_text("utf8")) != texts[p]
        ]
        if ugly:
            print(f"cells to format (make format): {', '.join(ugly)}")
    return lint.returncode or bool(ugly)


if __name__ == "__main__":
    sys.exit(main())
