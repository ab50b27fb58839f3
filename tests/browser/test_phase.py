"""The interactive phase map in a real browser: keys, controls, numbers, no faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_pages import violations

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture
def page(visit):
    return visit("notebooks/interplay", "[data-phase] .phase-grid td")


def test_arrow_keys_move_the_choice_and_the_text_follows(page):
    chosen = page.locator(".phase-grid td[tabindex='0']")
    assert chosen.count() == 1
    before = page.locator(".phase-say").inner_text()
    chosen.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".phase-say").inner_text() != before
    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    page.keyboard.press("Home")
    assert "no misspecification" in page.locator(".phase-say").inner_text()
    assert not page.faults


def test_numbers_are_those_of_the_stored_results(page):
    from banditlib.paper.experiments import stored
    from banditlib.paper.experiments.phase_map.cells import summary

    table = page.locator(".phase-table tbody tr").first.inner_text()
    said = page.locator(".phase-say").inner_text()
    assert said.startswith("d = 8, Δ = 0.2")
    here = {"policy": "OFUL", "d": 8, "Delta": 0.2, "ratio": 2.0, "kind": "adversarial"}
    cell = next(c for c in stored("phase-map") if all(c.config[k] == v for k, v in here.items()))
    expected = summary(cell.config, cell.arrays)["regret"]
    shown = float(table.split()[1].replace(",", ""))
    assert shown == pytest.approx(expected, rel=0.01)


def test_every_control_has_a_name_and_works(page):
    for control in page.locator(".phase-controls select, .phase-controls input").all():
        assert page.locator(f"label[for='{control.get_attribute('id')}']").count() == 1
    page.select_option("#phase-plane", "Delta")
    page.select_option("#phase-quantity", "locked")
    assert "share of runs locked" in page.locator(".phase-grid caption").inner_text()
    slider = page.locator("#phase-gamma")
    slider.focus()
    before = slider.get_attribute("aria-valuetext")
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") != before
    assert not page.faults


def test_no_accessibility_fault(page):
    assert not violations(page)


def test_data_is_in_the_page_and_small(page, site: Path):
    source = (site / "notebooks" / "interplay.html").read_text("utf8")
    assert "data-phase" in source and '"marks":' in source and len(source) < 4_000_000
