"""Table 1 from cells: the paper's procedure repeated many times, and the verdict on every number.

Eight runs are one *replicate*: what the paper did once.  Which eight runs belong together
depends on
the reading (eight trials on one instance, or one trial on each of eight instances); how (β, λ) is
chosen depends on the selection.  Everything below works on arrays with axes (replicate, run).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlib.checks import one_of
from banditlib.paper.experiments.base import Rendered, results_folder, stored
from banditlib.paper.experiments.synthetic import cells as synthetic
from banditlib.paper.render import markdown, number, p_value, records_csv, signed
from banditlib.paper.store import Cell, Config, Packed
from banditlib.paper.verdict import FLOOR, Judged, Printed, judge, left_out

Point = tuple[Any, float]  # (β, λ); β is "theorem" for the theorem's β(l)
COLUMNS = ("mean", "std", "last")

#: What the paper prints: mean, standard deviation, regret of the last 1,000 steps, seconds.
PAPER: dict[str, tuple[float, float, float, float]] = {
    "ds 0": (405.4, 76.5, 4.94, 15.06),
    "ds 0.02": (326.5, 68.0, 0.0, 8.59),
    "ds 0.05": (235.75, 40.3, 0.0, 6.30),
    "ds 0.08": (411.6, 566.7, 22.44, 5.97),
    "ds 0.13": (1789.5, 1918.8, 173.67, 5.56),
    "lsw": (433.36, 64.0, 1.79, 7 * 3600.0),
    "rlb": (831.5, 880.4, 42.58, 12.85),
    "sup": (747.9, 329.5, 0.0, 31.86),
}
NAMES = {
    "ds 0": "OFUL, Γ = 0",
    **{f"ds {g:g}": f"DS-OFUL, Γ = {g:g}" for g in synthetic.GAMMAS[1:]},
    "lsw": "LSW",
    "rlb": "RLB (our reading)",
    "sup": "SupLinUCB, constant β",
    "sup-theorem": "SupLinUCB, theorem's β(l)",
}
REFERENCE = "ds 0"
GAP = 0.18


@dataclass(frozen=True)
class Runs:
    """Runs of one policy under one reading, each array (replicates, 8)."""

    regret: NDArray[np.float64]
    last: NDArray[np.float64]
    locked: NDArray[np.bool_]
    rank: NDArray[np.int64]
    first_skip: NDArray[np.int64]
    learnt: NDArray[np.int64]

    def take(self, rows: NDArray[Any] | slice) -> Runs:
        return Runs(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def regroup(self) -> Runs:
        """From eight trials on each instance to one trial on each of eight instances."""

        def turn(a: NDArray[Any]) -> NDArray[Any]:
            n = len(a) // 8 * 8
            return a[:n].reshape(n // 8, 8, 8).swapaxes(1, 2).reshape(n, 8)

        return Runs(*(turn(getattr(self, name)) for name in self.__dataclass_fields__))


Reading = dict[str, dict[Point, Runs]]  # row → grid point → runs


def row_of(policy: Config) -> str:
    """The row of the table that a policy belongs to."""
    if policy["name"] == "DSOFUL":
        return f"ds {policy['Gamma']:g}"
    if policy["beta"] == "theorem":
        return "sup-theorem"
    return {"LSW": "lsw", "RobustLinear": "rlb", "SupLinUCB": "sup"}[policy["name"]]


def load(folder: Path | None = None) -> list[Packed]:
    """All stored cells of the synthetic experiment."""
    return stored(synthetic.FAMILY, folder)


def readings(cells: Iterable[Cell | Packed]) -> dict[str, Reading]:
    """Sort cells into readings; "instances" has instance 0 as its first replicate."""
    found: dict[str, dict[str, dict[Point, list[tuple[list[int], Runs]]]]] = {}
    for cell in cells:
        config = cell.config
        if config["rounds"] > synthetic.ROUNDS:
            continue
        name = synthetic.reading_of(config)
        names = [name]
        if name == "instance 0" and config["trials"] == [0, 8]:
            names.append("instances")
        point = (config["policy"]["beta"], config["policy"]["lam"])
        place = config["instances"] + config["trials"]
        for each in names:
            row = found.setdefault(each, {}).setdefault(row_of(config["policy"]), {})
            row.setdefault(point, []).append((place, _runs(cell)))
    return {
        name: {row: {p: _join(parts) for p, parts in grid.items()} for row, grid in rows.items()}
        for name, rows in found.items()
    }


def _runs(cell: Cell | Packed) -> Runs:
    kept = synthetic.thinned(cell)

    def flat(a: NDArray[Any]) -> NDArray[Any]:
        return a.reshape(1, -1)

    return Runs(
        flat(kept["regret"]) * synthetic.UNIT,
        flat(kept["last"]) * synthetic.UNIT,
        flat(kept["locked"]).astype(bool),
        flat(kept["rank"]),
        flat(kept["first_skip"]),
        flat(kept["learnt"].sum(axis=-1)),
    )


def _join(parts: list[tuple[list[int], Runs]]) -> Runs:
    ordered = [runs for _, runs in sorted(parts, key=lambda part: part[0])]
    fields = Runs.__dataclass_fields__
    return Runs(*(np.concatenate([getattr(r, name) for r in ordered]) for name in fields))


def complete(reading: Reading) -> Reading:
    """Only grid points that were run on every replicate that the reference row has."""
    n = min(len(runs.regret) for runs in reading[REFERENCE].values())
    full = {
        row: {p: runs.take(slice(n)) for p, runs in grid.items() if len(runs.regret) >= n}
        for row, grid in reading.items()
    }
    return {row: grid for row, grid in full.items() if grid}


def first(reading: Reading, replicates: int = 1) -> Reading:
    """The first replicates of every grid point: the paper's own size is one."""
    return {
        row: {p: runs.take(slice(replicates)) for p, runs in grid.items()}
        for row, grid in reading.items()
    }


# --- choosing (β, λ) ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Chosen:
    """One row after (β, λ) was chosen in each replicate."""

    points: list[Point]
    runs: Runs

    @property
    def mean(self) -> NDArray[np.float64]:
        return self.runs.regret.mean(axis=1)

    @property
    def std(self) -> NDArray[np.float64]:
        """Over the eight runs, with ``ddof=0``, as the paper's numbers suggest."""
        return self.runs.regret.std(axis=1)

    @property
    def last(self) -> NDArray[np.float64]:
        return self.runs.last.mean(axis=1)

    def column(self, name: str) -> NDArray[np.float64]:
        return getattr(self, name)


SELECTIONS = ("best per row", "shared", "other seeds")


def choose(reading: Reading, selection: str = "best per row") -> dict[str, Chosen]:
    """Repeat the grid search in every replicate.

    ``best per row``: the (β, λ) of least mean regret in the replicate itself, row by row.
    ``shared``: the (β, λ) at which OFUL has least regret, for all rows (those that were run there).
    ``other seeds``: the best of the next replicate, reported on this one.
    """
    one_of("selection", selection, SELECTIONS)
    picks = {row: _best(grid) for row, grid in reading.items()}
    out = {}
    for row, grid in reading.items():
        points = picks[row]
        if selection == "other seeds":
            points = points[1:] + points[:1]
        elif selection == "shared" and row != "sup-theorem":
            points = picks[REFERENCE]
        if all(point in grid for point in points):
            out[row] = Chosen(points, _pick(grid, points))
    return out


def fixed(reading: Reading, points: Mapping[str, Point], default: Point) -> dict[str, Chosen]:
    """No search: one (β, λ) per row, the same throughout; rows not run there are left out."""
    out = {}
    for row, grid in reading.items():
        point = points.get(row, default)
        if point in grid:
            out[row] = Chosen([point] * len(grid[point].regret), grid[point])
    return out


def _best(grid: Mapping[Point, Runs]) -> list[Point]:
    points = list(grid)
    means = np.stack([grid[p].regret.mean(axis=1) for p in points])
    return [points[i] for i in means.argmin(axis=0)]


def _pick(grid: Mapping[Point, Runs], points: Sequence[Point]) -> Runs:
    fields = Runs.__dataclass_fields__
    return Runs(*(np.stack([getattr(grid[p], f)[i] for i, p in enumerate(points)]) for f in fields))


# --- the verdict --------------------------------------------------------------------------------


def claims(chosen: Mapping[str, Chosen]) -> list[Printed]:
    """Every printed regret beside our replicates; rows that were not run are left out."""
    floors = {
        "mean": FLOOR * GAP * synthetic.ROUNDS,
        "std": FLOOR * GAP * synthetic.ROUNDS,
        "last": FLOOR * GAP * synthetic.LAST,
    }
    out = []
    for row, printed in PAPER.items():
        if row not in chosen:
            continue
        for place, column in enumerate(COLUMNS):
            reference = None
            if row != REFERENCE:
                reference = (PAPER[REFERENCE][place], chosen[REFERENCE].column(column))
            ours = chosen[row].column(column)
            if reference is not None and len(ours) != len(reference[1]):
                reference = (reference[0], reference[1][: len(ours)])
            claim = Printed(f"{row}|{column}", printed[place], ours, reference, floors[column])
            out.append(claim)
    return out


def time_claims(seconds: Mapping[str, Sequence[float]]) -> list[Printed]:
    """Elapsed times as ratios to the reference row, measured in alternation."""
    base = np.asarray(seconds[REFERENCE])
    out = []
    for row, printed in PAPER.items():
        ratio = np.asarray(seconds[row]) / base
        reference = None if row == REFERENCE else (1.0, np.ones(len(base)))
        out.append(
            Printed(
                f"{row}|time",
                printed[3] / PAPER[REFERENCE][3],
                ratio,
                reference,
                timed=True,
                at_least=row == "lsw",
                testable=row != REFERENCE,
            )
        )
    return out


def verdicts(
    chosen: Mapping[str, Chosen], seconds: Mapping[str, Sequence[float]] | None = None
) -> dict[tuple[str, str], Judged]:
    """The judged table by (row, column)."""
    everything = claims(chosen) + (time_claims(seconds) if seconds else [])
    judged = judge(everything)
    return {(j.name.split("|")[0], j.name.split("|")[1]): j for j in judged}


def misfit(chosen: Mapping[str, Chosen]) -> float:
    """Squares of t, summed over all printed regrets of the rows in ``chosen``."""
    return sum(j.difference**2 for j in verdicts(chosen).values())


def misfits_left_out(chosen: Mapping[str, Chosen]) -> NDArray[np.float64]:
    """The misfit that each of our replicates would have, judged by the others: shape (n,)."""
    values = np.stack([claim.replicates for claim in claims(chosen)], axis=-1)
    return (left_out(values) ** 2).sum(axis=-1)


def misfit_p(chosen: Mapping[str, Chosen]) -> float:
    """Share of replicates, the paper's counted as one, that fit no better than the paper does."""
    ours = misfits_left_out(chosen)
    return float((1 + np.count_nonzero(ours >= misfit(chosen))) / (len(ours) + 1))


def verdict_rows(
    column: str,
    judged: Mapping[tuple[str, str], Judged],
    small: Mapping[str, Chosen] | None = None,
) -> list[list[str]]:
    """One column of the table, formatted: verdict, paper, ours at its size, ours settled, t, p
    corrected, and p by rank and by leaving out.
    """
    out = []
    for row in (r for r in PAPER if (r, column) in judged):
        j = judged[row, column]
        eight = f"{small[row].column(column)[0]:.1f}" if small and row in small else "–"
        low, high = j.interval
        out.append(
            [
                NAMES[row],
                j.verdict,
                ("≥ " if (row, column) == ("lsw", "time") else "") + number(j.paper),
                *([eight] if small else []),
                f"{number(j.ours)} [{number(low)}, {number(high)}]",
                *(
                    []
                    if column == "time"
                    else [
                        signed(j.difference, "+.1f"),
                        p_value(j.p_holm),
                        f"{p_value(j.p_rank)}, {p_value(j.p_left_out)}",
                    ]
                ),
            ]
        )
    return out


def times(folder: Path | None = None) -> dict[str, Any]:
    """The stored elapsed times, with their provenance (see `banditlib.paper.bench.plain_loops`)."""
    path = (folder or results_folder()) / "synthetic" / "times.json"
    return json.loads(path.read_text())


# --- the table as files -------------------------------------------------------------------------

HEADER = (
    "row",
    "paper mean",
    "paper std",
    "paper last 1k",
    "mean",
    "std (ddof=0)",
    "standard error",
    "median",
    "last 1k",
    "locked",
    "beta, lambda",
    "runs",
)


def summary(chosen: Mapping[str, Chosen]) -> list[dict[str, Any]]:
    """One flat record per row, over all replicates together."""
    out = []
    for row in (r for r in NAMES if r in chosen):
        item = chosen[row]
        regret = item.runs.regret
        printed = PAPER.get(row, (None,) * 4)
        n = len(regret)
        between = item.mean.std(ddof=1) / np.sqrt(n) if n > 1 else regret.std(ddof=1) / np.sqrt(8)
        often = max(set(item.points), key=item.points.count)
        out.append(
            dict(
                zip(
                    HEADER,
                    (
                        NAMES[row],
                        *printed[:3],
                        round(float(regret.mean()), 2),
                        round(float(item.std.mean()), 2),
                        round(float(between), 2),
                        round(float(np.median(regret)), 2),
                        round(float(item.runs.last.mean()), 3),
                        round(float(item.runs.locked.mean()), 4),
                        f"{often[0]}, {often[1]:g}"
                        + (" mostly" if len(set(item.points)) > 1 else ""),
                        regret.size,
                    ),
                    strict=True,
                )
            )
        )
    return out


READING_TITLES = {
    "smoke": "Instance 0, 2,000 rounds: only to see it work",
    "instance 0": "One instance, 8 trials at a time (the headline reading)",
    "instances": "One instance of gap 0.175–0.185, 8 trials, over all instances",
    "eight instances": "Eight instances of gap 0.175–0.185, one trial each",
    "any gap": "Eight unconditioned instances, one trial each",
    "interval": "η uniform on [−ζ, ζ], eight instances of gap 0.175–0.185",
    "no misspecification": "ζ = 0, eight instances of gap 0.175–0.185",
}


def render(cells: Sequence[Cell], scale: str) -> Rendered:
    """Table 1 as CSV and Markdown: every reading and selection that the cells allow."""
    found = readings(cells)
    records, text = [], [f"# Table 1 at scale {scale}\n"]
    for name in (n for n in READING_TITLES if n in found):
        reading = complete(found[name])
        replicates = len(next(iter(reading[REFERENCE].values())).regret)
        for selection in SELECTIONS[: 2 if replicates == 1 else 3]:
            rows = summary(choose(reading, selection))
            records += [{"reading": name, "selection": selection, **row} for row in rows]
            text.append(f"## {READING_TITLES[name]}; (β, λ): {selection}\n")
            text += [markdown(list(rows[0]), [list(row.values()) for row in rows]), ""]
    note = "\n± in the paper is a standard deviation (it looks like `ddof=0`); our header says.\n"
    return {".csv": records_csv(records), ".md": ("\n".join(text) + note).encode()}
