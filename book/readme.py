"""What the README takes from the results: its findings, and its picture.

`python -m book.readme` writes both; a test compares.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt

from banditlib.paper.experiments import stored
from banditlib.paper.experiments.separation import figure
from banditlib.paper.experiments.synthetic import table as table_1
from banditlib.paper.notebook import plotted
from banditlib.paper.render import svg
from book import claims

ROOT = Path(__file__).resolve().parent.parent
README, PICTURE = ROOT / "README.md", ROOT / "book" / "readme.svg"
PART = re.compile(r"(<!-- findings: python -m book.readme -->\n).*?(\n<!-- end -->)", re.DOTALL)


def _statements() -> str:
    rows = claims.load()
    theorems = [r for r in rows if r.kind == "theorem" and r.source == "paper"]
    assert {r.verdict for r in theorems} == {"holds with repair"} and len(theorems) == 3
    n = claims.counts(rows)
    return (
        f"**The theorems stand, with repairs.** {n['all']} of the paper's statements have a "
        f"verdict in the ledger: {n['holds']} hold, slips of the pen aside, and "
        f"{n['holds with repair']}, the three theorems among them, with a repair that is proved "
        "or run; "
        f"{n['false as stated']} are false as stated, each with a counterexample that runs; "
        f"{n['not testable here']} cannot be tested here."
    )


def _skipping() -> str:
    counts = figure.mistakes(stored("separation"))
    oful, ds = (counts[name][:, -1] for name in ("OFUL", "DS-OFUL 1"))
    config = stored("separation")[0].config
    tests = config["marks"][-1]
    return (
        "**Skipping data has its place.** Where short vectors teach a direction, "
        f"OFUL is wrong in {oful.mean():,.0f} of {tests:,} choices and DS-OFUL in {ds.mean():.0f} "
        f"(means of {len(ds)} runs, in the picture), although the model is wrong by "
        f"{100 * figure.RATIO / config['d'] ** 0.5:.1f}% of the gap at the most."
    )


def _experiments() -> str:
    readings = table_1.readings(table_1.load())
    chosen = {
        name: table_1.choose(table_1.complete(readings[name]))
        for name in ("instances", "no misspecification")
    }
    gains = [
        100 * (1 - found["ds 0.05"].mean.mean() / found["ds 0"].mean.mean())
        for found in chosen.values()
    ]
    judged = table_1.verdicts(chosen["instances"], table_1.times()["loop"])
    words = Counter(j.verdict for (_, column), j in judged.items() if column == "mean")
    return (
        f"**The experiments come back in shape more than in size.** {words['reproduced']} of the "
        f"{sum(words.values())} mean regrets in the paper's Table 1 are reproduced, "
        f"{words['reproduced in kind']} in kind (on the same side of OFUL, at another size), "
        f"{words['not reproduced']} not. "
        f"Skipping at Γ = 0.05 saves {gains[0]:.0f}% of OFUL's regret there, and {gains[1]:.0f}% "
        "if the model is made exact: what the table shows is not the effect of a wrong model."
    )


def findings() -> str:
    """The three findings as a numbered list."""
    found = (_statements(), _skipping(), _experiments())
    return "\n".join(f"{i}. {text}" for i, text in enumerate(found, 1))


def filled(text: str) -> str:
    """The README with the findings that the results give."""
    return PART.sub(lambda m: m[1] + findings() + m[2], text)


def picture() -> tuple[str, str]:
    """The picture on white paper as SVG, and the digest of the numbers that it shows."""
    fig = figure.draw(stored("separation"))
    digest = hashlib.sha256(plotted(fig).encode()).hexdigest()
    drawn = svg(fig).replace("currentColor", "#1f2328")
    plt.close(fig)
    paper = f'\n<desc>{digest}</desc>\n<rect width="100%" height="100%" fill="white"/>'
    return re.sub(r"(<svg[^>]*>)", lambda m: m[1] + paper, drawn, count=1) + "\n", digest


def main() -> None:
    README.write_text(filled(README.read_text("utf8")), "utf8")
    PICTURE.write_text(picture()[0], "utf8")


if __name__ == "__main__":
    main()
