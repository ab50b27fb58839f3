"""Every table and figure is drawn by the same path, from whole and from thinned cells alike."""

from __future__ import annotations

import csv
import functools
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
import pytest

from banditlib.paper import experiments, features, render
from banditlib.paper.experiments.asirra import cells as asirra_cells
from banditlib.paper.experiments.asirra import figure as asirra_figure
from banditlib.paper.experiments.base import stored
from banditlib.paper.experiments.phase_map import cells as phase_map
from banditlib.paper.experiments.phase_map import figure as phase_figure
from banditlib.paper.experiments.synthetic import cells as synthetic
from banditlib.paper.experiments.synthetic import controls, table
from banditlib.paper.experiments.synthetic import figure as figure_1a
from banditlib.paper.store import Cell, Config, Packed

ROOT = Path(__file__).resolve().parents[2]


def some(family: Any, wanted: Callable[[Config], bool]) -> list[Packed]:
    return [cell for cell in stored(family) if wanted(cell.config)]


def few_synthetic(c: Config) -> bool:
    return bool((c["instances"][0] == 0 and c["trials"][0] < 16) or c["rounds"] > synthetic.ROUNDS)


@functools.cache
def few(name: str) -> list[Packed]:
    """Stored cells of an experiment, enough to draw it."""
    if name in ("table-1", "figure-1a"):
        return some(synthetic.FAMILY, few_synthetic)
    if name == "phase-map":
        return some(
            phase_map.FAMILY, lambda c: c["d"] in (4, 8) and c["policy"] in phase_figure.POLICIES
        )
    cells = experiments.stored(name)
    if name == "separation":
        return cells
    point = asirra_cells.PICK
    return [c for c in cells if "policy" not in c.config or _point(c.config["policy"]) == point]


def _point(policy: Any) -> tuple[float, float]:
    return policy["beta"], policy["lam"]


NAMES = [
    "table-1",
    "figure-1a",
    "figure-1b",
    "figure-4",
    "asirra-weak",
    "asirra-between",
    "table-2",
    "phase-map",
    "separation",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_file_of_every_experiment(name: str) -> None:
    files = experiments.registry()[name].render(few(name), "full")
    assert any(suffix.endswith(".csv") for suffix in files)
    for suffix, content in files.items():
        if suffix.endswith(".png"):
            picture = matplotlib.image.imread(io.BytesIO(content), format="png")
            assert (picture[0, 0, :3] == 1).all()  # white paper
            assert picture.shape[2] == 3 or (picture[..., 3] == 1).all()
        elif suffix.endswith(".svg"):
            text = content.decode()
            assert "currentColor" in text and render.INK not in text and text.startswith("<svg")
        elif suffix.endswith(".csv"):
            head, *rows = csv.reader(content.decode().splitlines())
            assert rows and all(len(row) == len(head) for row in rows)


def test_the_other_figures_of_the_phase_map() -> None:
    rows = phase_map.rows(few("phase-map"))
    for kind in phase_map.KINDS:
        fig = phase_figure.draw_fate(rows, kind)
        assert len(fig.axes) == 8
        plt.close(fig)
    crossing = phase_figure.crossing(
        phase_figure.both_kinds(rows), policy="OFUL", kind="random", d=8, Delta=phase_map.DELTA
    )
    assert crossing > 0
    fixed = [c for c in few("phase-map") if c.config["arms"] == phase_map.ARMS]
    explorer = phase_map.explorer(fixed, {8: (0.1, 1.0)})
    assert explorer["dims"] == phase_map.dims(fixed) and len(explorer["cells"]) == len(fixed)


def test_the_controls_of_the_synthetic_experiment() -> None:
    cells = few("table-1")
    readings = table.readings(cells)
    reading = readings["instance 0"]
    assert len(controls.paired_rows(reading)) == len(synthetic.DS_ROWS) - 1
    long = controls.long_runs(cells)
    assert controls.long_rows(long)[0][0] == "OFUL, Γ = 0"
    figures = [controls.paired_figure(reading), controls.long_figure(long)]
    for fig in figures:
        assert render.png(fig).startswith(b"\x89PNG")
        plt.close(fig)
    for search in (False, True):
        rows = controls.reading_rows(readings, ["instance 0"], search)
        assert rows[0][0] == "OFUL, Γ = 0" and "%" in rows[0][2]
    assert "%" in controls.relative_rows(readings, {"instance 0": "one"})[0][1]
    assert controls.theory_rows()[0][0] == "Γ"
    chosen = table.choose(table.complete(reading))
    judged = table.verdicts(chosen, table.times()["loop"])
    assert table.verdict_rows("mean", judged, table.choose(table.first(reading)))
    assert figure_1a.replicates_of(figure_1a.curves(cells, "instance 0")[1]) == 2


def test_digits_say_so_in_every_file() -> None:
    """Smoke runs of the Asirra experiments are no cats and dogs."""
    rng = np.random.default_rng(0)
    cells = []
    for config in asirra_cells.panel_cells("figure-1b", "smoke"):
        wrong = np.cumsum(rng.integers(0, 3, (1, len(config["checkpoints"]))), axis=1)
        cells.append(Cell(config, {"wrong": wrong}, {}))
    files = asirra_figure.render(cells, "smoke")
    rows = list(csv.reader(files[".csv"].decode().splitlines()))[1:]
    assert all(row[0].startswith("digits, ") for row in rows)
    fig = asirra_figure.draw(cells, [0.01])
    render.mark_stand_in(fig, features.STAND_IN)
    assert fig.get_suptitle() == features.STAND_IN
    plt.close(fig)
    from banditlib.paper.experiments import table_2

    digits = [c for c in stored(table_2.FAMILY) if c.config["data"] == "digits"]
    files = table_2.render(digits, "smoke")
    assert b"not cats and dogs" in files[".md"] and b"digits" in files[".csv"].splitlines()[0]


def test_names_of_files_without_drawing_them() -> None:
    with render.names_only():
        assert render.figure_files(plt.figure(), "-x") == {"-x.svg": b"", "-x.png": b""}
    assert all(render.figure_files(plt.figure()).values())


def test_numbers_and_tables() -> None:
    assert [render.number(v) for v in (-1.234, 12.34, 1234.5)] == ["−1.23", "12.3", "1234"]
    assert [render.p_value(p) for p in (1e-5, 0.0123, 0.5)] == ["< 0.001", "0.012", "0.50"]
    assert render.signed(-3.2) == "−3" and render.pretty(1.2e9, ".1e") == "1.2 × 10⁹"
    assert render.with_interval(np.array([1.0, 1.0])) == "+1 [+1, +1]"
    assert render.csv_text(["a", "b"], [[None, "x, y"]]) == 'a,b\n,"x, y"\n'
    assert render.markdown(["a"], [[None]]).splitlines() == ["| a |", "| --- |", "|  |"]
    assert render.records_csv([{"a": 1 / 3, "b": 2}]) == b"a,b\n0.333333,2\n"


def reproduce(package: Path, out: Path) -> str:
    words = ["reproduce", "table-2", "--scale", "smoke", "--workers", "1", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "banditlib.paper.cli", *words],
        env={**os.environ, "PYTHONPATH": str(package)}, cwd=package,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_an_edited_drawing_is_drawn_again(tmp_path: Path) -> None:
    """Also if the edit is in a module that the drawing function only imports."""
    pytest.importorskip("sklearn", reason="scikit-learn (extra: book) is not installed")
    shutil.copytree(ROOT / "banditlib", tmp_path / "banditlib")
    out = tmp_path / "out"
    assert "| zeta |" in reproduce(tmp_path, out)
    assert "nothing to do" in reproduce(tmp_path, out)
    drawing = tmp_path / "banditlib" / "paper" / "render.py"
    drawing.write_text(drawing.read_text().replace('" | "', '"  |  "').replace("' | '", "'  |  '"))
    said = reproduce(tmp_path, out)
    assert "done in" in said and "|  paper cats  |" in said
    assert sorted(p.name for p in out.iterdir() if p.is_file()) == [
        "table-2-smoke.csv", "table-2-smoke.json", "table-2-smoke.md",
    ]  # fmt: skip


def test_no_file_is_named_after_a_scale_that_was_not_run() -> None:
    from banditlib.paper.reproduce import scale_of

    for item in experiments.registry().values():
        assert scale_of(item, "paper") == ("paper" if "paper" in item.seconds else "full")
        assert scale_of(item, "smoke") == "smoke"


def test_the_list_fits_a_hundred_columns(capsys: pytest.CaptureFixture[str]) -> None:
    from banditlib.paper import cli

    assert cli.main(["list"]) == cli.OK
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100
