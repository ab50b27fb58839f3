"""The page to play with: its three instruments in a real browser."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from test_pages import STICKS_OUT, WIDTHS, settle, violations

from banditlib import theory

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

CASES: list[dict[str, float]] = [
    {"d": 16, "Delta": 0.18, "R": 1, "L": 1, "B": 1, "delta": 0.01, "zeta": 0.02, "arms": 100},
    {"d": 1, "Delta": 1, "R": 0, "L": 1, "B": 1, "delta": 0.5, "zeta": 0, "arms": 2},
    {"d": 512, "Delta": 0.03, "R": 0.5, "L": 2.5, "B": 7.62, "delta": 1e-9, "zeta": 0, "arms": 99},
    {"d": 3, "Delta": 1e-4, "R": 20, "L": 1000, "B": 1, "delta": 1e-200, "zeta": 5, "arms": 17},
]  # fmt: skip


@pytest.fixture
def page(visit):
    return visit("notebooks/play", "[data-play=watch] button")


# ---- DS-OFUL in the plane

STATE = """() => { const g = document.querySelector('[data-play=watch]').game();
  return {U: g.U, b: g.b, history: g.history, regret: g.regret, arms: g.arms, reward: g.reward,
          best: g.best, Gamma: g.Gamma, beta: g.beta, theta: g.theta, zeta: g.zeta}; }"""


def set_range(tab: Any, name: str, value: float) -> None:
    tab.locator(f"#play-{name}").evaluate(
        "(n, v) => { n.value = v; n.dispatchEvent(new Event('input', {bubbles: true})); }", value
    )


def press(tab: Any, name: str, times: int = 1) -> None:
    for _ in range(times):
        tab.get_by_role("button", name=name, exact=True).click()


def replayed(state: dict[str, Any], lam: float) -> None:
    """Go through the recorded rounds with plain arithmetic and compare every decision's frame."""
    U = [[lam, 0.0], [0.0, lam]]
    regret = 0.0
    for entry in state["history"]:
        x, y = state["arms"][entry["arm"]]
        det = U[0][0] * U[1][1] - U[0][1] ** 2
        width = math.sqrt((U[1][1] * x * x - 2 * U[0][1] * x * y + U[0][0] * y * y) / det)
        assert entry["width"] == pytest.approx(width, rel=1e-9)
        assert entry["kept"] == (width >= state["Gamma"] * (1 - 1e-9))
        if entry["kept"]:
            U = [[U[0][0] + x * x, U[0][1] + x * y], [U[0][1] + x * y, U[1][1] + y * y]]
        regret += state["best"] - state["reward"][entry["arm"]]
    assert state["U"] == pytest.approx([U[0][0], U[0][1], U[1][1]], rel=1e-12)
    assert state["regret"] == pytest.approx(regret)


@pytest.mark.parametrize("Gamma", [0.0, 0.2, 0.4])
def test_rounds_are_kept_and_skipped_by_the_rule(page, Gamma):
    set_range(page, "Gamma", Gamma)
    press(page, "20 steps", times=5)
    state = page.evaluate(STATE)
    assert len(state["history"]) == 100
    replayed(state, lam=1.0)
    kept = [entry["kept"] for entry in state["history"]]
    if Gamma == 0:
        assert all(kept)
    else:
        assert kept == sorted(kept, reverse=True), "the first skip is final"
        assert not kept[-1]


def test_misspecification_is_exactly_zeta(page):
    set_range(page, "zeta", 0.3)
    state = page.evaluate(STATE)
    for (x, y), reward in zip(state["arms"], state["reward"], strict=True):
        linear = x * state["theta"][0] + y * state["theta"][1]
        assert abs(reward - linear) == pytest.approx(0.3)


def test_steps_are_told_and_drawn(page):
    say = page.locator("[data-play=watch] .play-say")
    assert "Round 0" in say.inner_text()
    press(page, "Step")
    assert re.search(r"Round 1: arm \d, width 1\.000, kept", say.inner_text())
    assert "Round 1" in page.locator(".play-plane").get_attribute("aria-label")
    assert page.locator(".play-strip circle").count() == 1
    press(page, "Start again")
    assert "Round 0" in say.inner_text()


def test_runs_by_itself_until_paused(page):
    press(page, "Run")
    page.wait_for_function(
        "() => document.querySelector('[data-play=watch]').game().history.length > 3"
    )
    press(page, "Pause")
    rounds = page.evaluate(STATE)["history"]
    page.wait_for_timeout(500)
    assert len(page.evaluate(STATE)["history"]) == len(rounds)


def test_same_seed_same_run(page):
    runs = []
    for _ in range(2):
        press(page, "Start again")
        press(page, "20 steps")
        runs.append(page.evaluate(STATE))
    assert runs[0] == runs[1]
    set_range(page, "seed", 8)
    press(page, "20 steps")
    assert page.evaluate(STATE)["arms"] != runs[0]["arms"]


# ---- The theorems as a calculator


def calculate(tab: Any, values: dict[str, float]) -> dict[str, Any]:
    for name, value in values.items():
        tab.locator(f"#calc-{name}").fill(repr(value))
    return tab.evaluate("() => document.querySelector('[data-play=calculator]').result")


@pytest.mark.parametrize("values", CASES, ids=lambda v: f"d={v['d']:g}")
def test_calculator_equals_the_package(page, values):
    got = calculate(page, values)
    given = {name: values[name] for name in ("R", "L", "B", "delta")}
    d, Delta = int(values["d"]), values["Delta"]
    for i, repaired in enumerate((False, True)):
        want = theory.known_gap(d, Delta, repaired=repaired, **given)
        names = ["Gamma", "beta", "zeta_max", "bound_printed", "bound_gap", "bound_sharp"]
        for name in names:
            assert got["known"][i][name] == pytest.approx(getattr(want, name), rel=1e-9), name
        sup = theory.unknown_gap(d, Delta, repaired=repaired, **given)
        assert got["unknown"][i]["l_Delta"] == sup.l_Delta
        assert got["unknown"][i]["zeta_max"] == pytest.approx(sup.zeta_max, rel=1e-9)
        bound = sup.bound_repaired if repaired else sup.bound_printed
        assert got["unknown"][i]["bound"] == pytest.approx(bound, rel=1e-9)
        key = "zeta_repaired" if repaired else "zeta_printed"
        if d > 1:
            zeta = theory.lower_zeta(d, Delta, int(values["arms"]), repaired)
            assert got["lower"][key] == pytest.approx(zeta, rel=1e-9)
            scaled = theory.lower_zeta_scaled(d, Delta, int(values["arms"]))
            assert got["lower"]["zeta_scaled"] == pytest.approx(scaled, rel=1e-9)


def test_calculator_says_what_is_wrong(page):
    page.locator("#calc-Delta").fill("2")
    alert = page.locator("[data-play=calculator] [role=alert]")
    assert "gap" in alert.inner_text()
    page.locator("#calc-Delta").fill("0.5")
    assert alert.count() == 0


def test_calculator_says_whether_a_theorem_applies(page):
    rows = page.locator("[data-play=calculator] tr", has_text="cover your")
    calculate(page, CASES[0] | {"zeta": 0.0})
    assert all("yes" in text for text in rows.all_inner_texts())
    calculate(page, CASES[0] | {"zeta": 1.0})
    assert all("no" in text for text in rows.all_inner_texts())


# ---- The regret explorer


def explorer_data(site: Path) -> dict[str, Any]:
    text = (site / "notebooks" / "play.html").read_text("utf8")
    start = text.index('data-play="explorer"')
    found = re.search(r'type="application/json">(.*?)</script>', text[start:], re.DOTALL)
    assert found
    return json.loads(found[1])


def test_explorer_shows_what_is_stored(page, site):
    data = explorer_data(site)
    for beta, lam in ((3.0, 1.0), (10.0, 3.0)):
        page.locator("#explore-beta").select_option(str(beta).removesuffix(".0"))
        page.locator("#explore-lam").select_option(str(lam).removesuffix(".0"))
        chosen = [c for c in data["curves"] if c["beta"] in (beta, "any") and c["lam"] == lam]
        shown = page.locator("[data-play=explorer] tbody tr").all_inner_texts()
        assert len(shown) == len(chosen) >= 8
        for row, curve in zip(shown, chosen, strict=True):
            assert curve["name"] in row and str(curve["runs"]) in row
    assert page.locator("[data-play=explorer] .play-chart path[stroke]").count() >= 2 * len(chosen)


def test_explorer_data_are_the_committed_results(site):
    import numpy as np

    from banditlib.paper.experiments.synthetic import figure as figures
    from banditlib.paper.experiments.synthetic import table as table_1

    data = explorer_data(site)
    marks, found = figures.curves(table_1.load(), "instance 0")
    assert data["rounds"] == marks[::2].tolist()
    names = {name: row for row, name in figures.SHORT.items()}
    for curve in data["curves"]:
        grid = found[names[curve["name"]]]
        point = next(p for p in grid if p[1] == curve["lam"] and curve["beta"] in (p[0], "any"))
        runs = grid[point].reshape(-1, grid[point].shape[-1])
        assert len(runs) == curve["runs"]
        assert np.abs(runs.mean(0)[::2] - curve["mean"]).max() <= 0.5 + 1e-9


def test_explorer_switches_statistic_and_scale(page):
    chart = page.locator("[data-play=explorer] .play-chart")
    before = chart.inner_html()
    page.locator("#explore-stat").select_option("median")
    middle = chart.inner_html()
    page.locator("#explore-scale").select_option("linear")
    assert len({before, middle, chart.inner_html()}) == 3
    assert "NaN" not in chart.inner_html()
    page.locator("#explore-bands").check()
    assert chart.locator("path[fill-opacity]").count() >= 8


# ---- All of it


def test_everything_is_reached_and_worked_from_the_keyboard(page):
    wanted = set(
        page.evaluate(
            "() => [...document.querySelectorAll('[data-play] :is(input, select, button)')]"
            ".map((n, i) => n.dataset.stop = String(i))"
        )
    )
    page.locator("[data-play=watch] input").first.focus()
    seen = {page.evaluate("() => document.activeElement.dataset.stop")}
    for _ in range(3 * len(wanted) + 60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("() => document.activeElement.dataset.stop || ''"))
    assert wanted <= seen
    page.get_by_role("button", name="Step", exact=True).focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    assert len(page.evaluate(STATE)["history"]) == 2
    page.locator("#play-Gamma").focus()
    before = page.locator("#play-Gamma").input_value()
    page.keyboard.press("ArrowRight")
    assert page.locator("#play-Gamma").input_value() != before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_use_it_stays_accessible_and_inside_the_page(page, scheme):
    page.emulate_media(color_scheme=scheme)
    press(page, "20 steps", times=2)
    page.locator("#explore-bands").check()
    assert violations(page) == []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        settle(page)
        assert page.evaluate(STICKS_OUT) == []


def test_without_scripts_pictures_and_a_table_stand_in(browser, address, site):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(f"{address}/notebooks/play.html")
    assert tab.locator("[data-play=watch] [role=img]").is_visible()
    assert tab.locator("[data-play=calculator] td").count() >= 10
    assert tab.locator("[data-play=explorer] [role=img]").is_visible()
    context.close()
