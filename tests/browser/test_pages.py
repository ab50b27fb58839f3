"""Every page of the built site in a real browser, in two passes that may run side by side.

A page is opened in light and then turned dark, or the other way round, by turns. The passes record
what the tests below then judge: messages on the console, requests to other hosts, whether
mathematics was typeset, whether anything sticks out sideways at five widths, what the keyboard
cannot reach, and what axe-core finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE

pytestmark = pytest.mark.browser

WIDTHS = (320, 375, 768, 1440, 1920)
# One worker for both: two browsers that start at the same moment have been seen to hang.
PASSES = [pytest.param(i, marks=pytest.mark.xdist_group("browser")) for i in range(2)]
# What a resize or a change of theme sets going is over after two frames. A page that is not drawn
# gets none and would wait for ever: then the answer is no.
SETTLED = """() => new Promise(done => {
  setTimeout(() => done(false), 20000);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const moving = document.getAnimations()
      .filter(a => a.effect && a.effect.getComputedTiming().endTime < Infinity);
    Promise.allSettled(moving.map(a => a.finished)).then(() => done(true));
  }));
})"""
TYPESET = """() => !window.MathJax || !window.MathJax.startup || Promise.race([
  window.MathJax.startup.promise.then(() => true),
  new Promise(done => setTimeout(() => done(false), 180000)),
])"""
STICKS_OUT = """() => {
  const root = document.documentElement, limit = root.clientWidth;
  if (root.scrollWidth <= limit + 1) return [];
  const clipped = (e) => {
    for (let p = e.parentElement; p && p !== document.body && p !== root; p = p.parentElement)
      if (getComputedStyle(p).overflowX !== 'visible') return true;
    return false;
  };
  return [...document.querySelectorAll('body *')]
    .filter(e => e.getBoundingClientRect().right > limit + 1 && !clipped(e))
    .slice(0, 4).map(e => e.tagName + '.' + e.className).concat(['width ' + root.scrollWidth]);
}"""
# What a mouse can scroll or press and a keyboard cannot get to.
OUT_OF_REACH = """() => {
  const inside = (e) => e.matches('a[href], button, input, select, summary, [tabindex]')
    || e.querySelector('a[href], button, input, select, summary, [tabindex]');
  const scrolls = (e) => e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1
    && /auto|scroll/.test(getComputedStyle(e).overflowX);
  const boxes = [...document.querySelectorAll('.bd-article *')]
    .filter(e => scrolls(e) && !inside(e));
  const presses = [...document.querySelectorAll('[onclick]:not(a, button, input, summary)')];
  const banned = [...document.querySelectorAll('.bd-article :is(a[href], button, input, select)')]
    .filter(e => e.tabIndex < 0 && e.offsetParent && !e.matches('.headerlink, .copybtn'));
  return [...boxes, ...presses, ...banned].slice(0, 4).map(e => e.tagName + '.' + e.className);
}"""


@dataclass
class Report:
    """What one page did."""

    page: str
    console: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    formulas: int = 0
    typeset: int = 0
    errors: list[str] = field(default_factory=list)
    overflow: dict[int, list[str]] = field(default_factory=dict)
    unreached: dict[int, list[str]] = field(default_factory=dict)
    theme: dict[str, str] = field(default_factory=dict)
    axe: dict[str, list[str]] = field(default_factory=dict)


def settle(tab: Any) -> None:
    """Wait until a page is drawn as it will stay; ask for a frame if none comes by itself."""
    for _ in range(3):
        if tab.evaluate(SETTLED):
            return
        tab.bring_to_front()
        tab.screenshot()
    raise AssertionError(f"{tab.url} is not drawn")


# The rules of axe-core that depend on colours; all others read the document, which has no theme.
COLOURS = ["color-contrast", "link-in-text-block"]


def violations(tab: Any, rules: list[str] | None = None) -> list[str]:
    """What axe-core calls serious or critical, by all rules or by those named."""
    from axe_playwright_python.sync_playwright import Axe

    # Without "preload", which asks for imported style sheets at a wrong address.
    options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
    if rules is not None:
        options["runOnly"] = rules
    found = Axe().run(tab, options=options).response["violations"]
    return [
        f"{v['id']}: {v['nodes'][0]['target']} ({len(v['nodes'])}×) {v['nodes'][0]['html'][:120]}"
        for v in found
        if v["impact"] in ("serious", "critical")
    ]


def listen(tab: Any, address: str, report: Report) -> None:
    """Write down messages on the console and requests to other hosts."""
    tab.on(
        "console",
        lambda m: report.console.append(m.text) if m.type in ("error", "warning") else None,
    )
    tab.on("pageerror", lambda error: report.console.append(str(error)))
    tab.on(
        "request",
        lambda r: (
            None if r.url.startswith((address, "data:", "blob:")) else report.outside.append(r.url)
        ),
    )


def visit(context: Any, address: str, page: str, schemes: tuple[str, str]) -> Report:
    """Open one page in the first of two schemes, turn it to the other, and note what happens."""
    report = Report(page)
    tab = context.new_page()
    listen(tab, address, report)
    tab.set_viewport_size({"width": 1440, "height": 900})
    for scheme in schemes:
        tab.emulate_media(color_scheme=scheme)
        if scheme == schemes[0]:
            tab.goto(f"{address}/{page}", wait_until="load")
            assert tab.evaluate(TYPESET), f"{page}: formulas are not typeset in three minutes"
        settle(tab)
        report.theme[scheme] = tab.evaluate("document.documentElement.dataset.theme")
        report.axe[scheme] = violations(tab, None if scheme == schemes[0] else COLOURS)
    report.formulas = tab.locator("span.math, div.math").count()
    report.typeset = tab.locator("span.math mjx-container, div.math mjx-container").count()
    report.errors = tab.locator("mjx-merror, [data-mjx-error]").all_inner_texts()
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 800})
        settle(tab)
        report.overflow[width] = tab.evaluate(STICKS_OUT)
        report.unreached[width] = tab.evaluate(OUT_OF_REACH)
    tab.close()
    return report


@pytest.fixture(scope="session", params=PASSES)
def reports(request: Any, site: Path, address: str, browser: Any) -> list[Report]:
    """One pass over every second page; the other half is the other pass's."""
    pages = [p for p in sorted(site.rglob("*.html")) if "_static" not in p.parts]
    names = [p.relative_to(site).as_posix() for p in pages if p != site / "index.html"]
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    found = [
        visit(context, address, name, ("light", "dark") if turn % 2 else ("dark", "light"))
        for turn, name in enumerate(names[request.param :: 2])
    ]
    context.close()
    return found


def complain(found: dict[str, Any]) -> None:
    assert not found, "\n".join(f"{page}: {what}" for page, what in found.items())


def test_no_console_messages(reports):
    complain({r.page: r.console for r in reports if r.console})


def test_no_outside_requests(reports):
    complain({r.page: r.outside for r in reports if r.outside})


def test_mathematics_is_typeset(reports):
    complain({r.page: (r.typeset, r.formulas) for r in reports if r.typeset < r.formulas})
    complain({r.page: r.errors for r in reports if r.errors})
    assert sum(r.typeset for r in reports) > 100


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out(reports, width):
    complain({r.page: r.overflow[width] for r in reports if r.overflow[width]})


@pytest.mark.parametrize("width", (320, 1440))
def test_keyboard_reaches_everything(reports, width):
    complain({r.page: r.unreached[width] for r in reports if r.unreached[width]})


def test_theme_follows_the_reader(reports):
    complain({r.page: r.theme for r in reports if r.theme != {"light": "light", "dark": "dark"}})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(reports, scheme):
    complain({r.page: r.axe[scheme] for r in reports if r.axe[scheme]})


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """An empty tab, in light."""
    context = browser.new_context(color_scheme="light")
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


@pytest.mark.xdist_group("browser")
def test_navigation_leads_through_the_book(tab, address):
    tab.route("**/mathjax/**", lambda route: route.abort())  # formulas need not wait for us here
    tab.goto(f"{address}/book/index.html")
    seen = {tab.url}
    while tab.locator("a.right-next").count():
        tab.locator("a.right-next").click()
        tab.wait_for_load_state()
        assert tab.url not in seen
        seen.add(tab.url)
    assert len(seen) >= 5


@pytest.mark.xdist_group("browser")
def test_search_finds_the_gap(tab, address):
    tab.goto(f"{address}/search.html?q=misspecification")
    tab.wait_for_selector('main .search-hits a[href*="notebooks/model.html"]')


@pytest.mark.xdist_group("browser")
def test_search_puts_what_was_typed_first(tab, address):
    tab.goto(f"{address}/search.html")
    first = "async (typed) => (await window.bookSearch(typed))[0].entry.anchor"
    wanted = {
        "DSOFUL": "api-dsoful", "SupLinUCB": "api-suplinucb", "simulate": "api-simulate",
        "bl.simulate(": "api-simulate", "lower_bound": "api-lower-bound", "View": "api-view",
        "Theorem 6.1": "erratum-thm-lower", "Lemma C.4": "erratum-lm-thm1",
    }  # fmt: skip
    assert {typed: tab.evaluate(first, typed) for typed in wanted} == wanted


@pytest.mark.xdist_group("browser")
def test_theme_button_changes_the_theme(tab, address):
    tab.goto(f"{address}/book/index.html")
    before = tab.evaluate("document.documentElement.dataset.mode")
    tab.locator("button.theme-switch-button").first.click()
    assert tab.evaluate("document.documentElement.dataset.mode") != before


@pytest.mark.xdist_group("browser")
def test_folded_cells_open(tab, address):
    tab.goto(f"{address}/notebooks/model.html")
    folded = tab.locator("details.hide").first
    assert folded.get_attribute("open") is None
    folded.locator("summary").click()
    assert folded.get_attribute("open") is not None
