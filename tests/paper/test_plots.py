"""The few ways in which figures show numbers."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from banditlib.paper import plots
from banditlib.paper.experiments import stored
from banditlib.paper.experiments.asirra import figure as asirra_figure
from banditlib.paper.render import COLORS


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_labels_keep_their_distance_and_move_as_little_as_possible():
    assert plots.spread([3.0, 100.0, 50.0], 10).tolist() == [3, 100, 50]
    assert plots.spread([10.0, 10.0], 10).tolist() == [5, 15]
    found = plots.spread(heights := [4.0, 0.0, 3.0, 30.0], 5)
    assert (np.diff(np.sort(found)) >= 5 - 1e-12).all()
    assert np.argsort(found).tolist() == np.argsort(heights).tolist() and found[3] == 30


def test_runs_are_a_mean_and_its_standard_error():
    _, ax = plots.panels(log="xy", xlabel="round", ylabel="regret")
    found = np.array([[1.0, 4.0], [3.0, 8.0]])
    plots.runs(ax, [1, 10], found, "ds", "DS-OFUL")
    assert ax.lines[0].get_ydata().tolist() == [2, 6] and ax.get_xscale() == "log"
    band = ax.collections[0].get_paths()[0].vertices
    assert {1.0, 3.0, 4.0, 8.0} == set(band[:, 1])  # means ∓ the standard errors 1 and 2
    assert ax.lines[0].get_color() == COLORS["ds"]


def test_bars_reach_the_ends_of_their_intervals():
    _, ax = plots.panels()
    plots.intervals(ax, [0, 1], [2.0, 5.0], ([1.0, 4.5], [4.0, 6.0]), "ds", "share")
    ends = ax.collections[0].get_segments()
    assert [sorted(segment[:, 1]) for segment in ends] == [[1, 4], [4.5, 6]]
    assert ax.get_legend_handles_labels()[1] == ["share"]


def test_panels_label_the_left_edge_only():
    _, axes = plots.panels(3, xlabel="round", ylabel="regret")
    assert [ax.get_ylabel() for ax in axes] == ["regret", "", ""]
    assert all(ax.get_xlabel() == "round" for ax in axes)


def test_curves_that_coincide_are_drawn_as_one_and_said_to():
    fig = asirra_figure.draw(stored("figure-1b"), [0.01])
    words = " ".join(text.get_text() for text in fig.axes[0].texts)
    assert "OFUL, Γ = 0.01 and Γ = 0.05:\none curve" in words and "SupLinUCB" in words
    a, b = np.array([[1, 2]]), np.array([[1, 3]])
    assert asirra_figure.together({"x": a, "y": b, "z": a.copy()}) == [["x", "z"], ["y"]]


@pytest.mark.parametrize("letters, ncols", [(5, 4), (15, 2), (400, 1)])
def test_one_legend_has_as_many_columns_as_fit(letters, ncols):
    fig, axes = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
    for i in range(4):
        axes[i % 2].plot([0, i], label=f"{i}" + "a" * letters)
        axes[0].plot([0, i], label=f"{i}" + "a" * letters)
    plots.one_legend(fig)
    (legend,) = fig.legends
    assert legend._ncols == ncols and len(legend.get_texts()) == 4
