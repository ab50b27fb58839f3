"""What a symbol means, where it stands: by mouse, keyboard and touch, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE
from test_pages import STICKS_OUT, violations

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

PAGE = "notebooks/model.html"


@pytest.fixture(params=["light", "dark"])
def page(browser: Any, address: str, site: Path, request: Any) -> Iterator[Any]:
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme=request.param, has_touch=True
    )
    context.set_default_timeout(PATIENCE)
    tab = context.new_page()
    tab.goto(f"{address}/{PAGE}")
    tab.wait_for_selector(".symbol[tabindex]")
    yield tab
    context.close()


def test_mouse_shows_the_meaning_and_escape_hides_it(page):
    tip = page.locator(".symbol-tip")
    symbol = page.locator(".bd-article p .symbol").first
    before = page.evaluate("document.querySelector('.bd-article').getBoundingClientRect().height")
    symbol.hover()
    tip.locator("mjx-container").first.wait_for()
    assert "number of rounds" in tip.inner_text()
    assert symbol.get_attribute("aria-describedby") == tip.get_attribute("id")
    after = page.evaluate("document.querySelector('.bd-article').getBoundingClientRect().height")
    assert before == after, "the text moves"
    assert violations(page) == []
    page.keyboard.press("Escape")
    tip.wait_for(state="hidden")


def test_keyboard_reaches_each_symbol_once(page):
    stops = page.locator(".symbol[tabindex]")
    assert 5 <= stops.count() < page.locator(".symbol").count()
    tip = page.locator(".symbol-tip")
    stops.nth(1).focus()
    tip.locator("mjx-container").first.wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") != ""


def test_tap_shows_and_a_tap_elsewhere_hides_it(page):
    page.set_viewport_size({"width": 375, "height": 800})
    tip = page.locator(".symbol-tip")
    for i in (0, page.locator(".bd-article p .symbol").count() // 2):
        page.locator(".bd-article p .symbol").nth(i).tap()
        tip.locator("mjx-container").first.wait_for()
        assert page.evaluate(STICKS_OUT) == []
    page.locator(".bd-article h1").tap()
    tip.wait_for(state="hidden")


def test_the_notation_page_does_not_explain_itself(browser, address):
    tab = browser.new_page()
    tab.goto(f"{address}/book/notation.html")
    tab.wait_for_selector("mjx-container")
    tab.wait_for_timeout(500)
    assert tab.locator(".symbol").count() == 0
    tab.close()
