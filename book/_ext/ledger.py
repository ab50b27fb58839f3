"""Sphinx side of the claims ledger: verdict badges, the ledger page, its graph, the errata."""

from __future__ import annotations

import html
import inspect
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import claims

logger = logging.getLogger(__name__)

LEDGER_PAGE = "book/claims-ledger"
CLASS = {
    "holds": "verdict-holds",
    "holds with repair": "verdict-repair",
    "false as stated": "verdict-false",
    "not testable here": "verdict-untested",
}
GLYPH = {"holds": "✓", "holds with repair": "↻", "false as stated": "✗", "not testable here": "–"}
SEVERITY_TITLE = {
    "false": "Serious: the statement itself is false",
    "gap": "Gaps in a proof",
    "constant": "Wrong constants",
    "typo": "Slips of the pen",
}


def ledger_rows(directive: SphinxDirective | SphinxRole) -> list[claims.Row]:
    """Load the ledger and make the page depend on its files."""
    for path in sorted(claims.HERE.rglob("*")):
        if path.suffix in {".yml", ".py"}:
            directive.env.note_dependency(str(path))
    return claims.load()


def badge(verdict: str) -> nodes.inline:
    text = f"{GLYPH[verdict]} {verdict}"
    return nodes.inline("", text, classes=["verdict", CLASS[verdict]])


def link(directive: SphinxDirective, page: str, target: str, text: str) -> nodes.reference:
    """A link to `target` on another page of the book."""
    here = directive.env.docname
    uri = directive.env.app.builder.get_relative_uri(here, page) if page != here else ""
    if target:
        uri += "#" + (f"equation-{target}" if target.startswith("eq-") else target)
    return nodes.reference("", text, refuri=uri, internal=True)


class Inline(SphinxDirective):
    """A directive that can parse a line of Markdown."""

    def inline(self, text: str) -> list[nodes.Node]:
        parsed, messages = self.state.inline_text(text, self.lineno)
        return [*parsed, *messages]

    def paragraph(self, label: str, text: str) -> nodes.paragraph:
        return nodes.paragraph(
            "",
            "",
            nodes.strong("", label),
            nodes.Text(" "),
            *self.inline(text),
            classes=["claim-note"],
        )


class Verdict(Inline):
    """``{verdict} lm:he``: what the ledger says of a claim, with a link to its row."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        rows = {row.id: row for row in ledger_rows(self)}
        name = self.arguments[0].strip()
        if name not in rows:
            logger.warning(
                "no row of the claims ledger has the id %s", name, location=self.get_location()
            )
            return []
        row = rows[name]
        line = nodes.paragraph("", "", badge(row.verdict), nodes.Text(f" {row.evidence} · "))
        line += link(self, LEDGER_PAGE, f"claim-{row.slug}", f"ledger: {row.id}")
        box = nodes.container("", line, classes=["verdict-box", CLASS[row.verdict] + "-box"])
        if row.wrong:
            box += self.paragraph("In the paper’s text:", row.wrong)
        if row.repair:
            box += self.paragraph("Repair:", row.repair)
        return [box]


class ClaimsTable(Inline):
    """The whole ledger as a table that can be searched and filtered."""

    columns = (("Claim", 16), ("Statement", 48), ("Verdict", 16), ("Check", 20))

    def run(self) -> list[nodes.Node]:
        rows = ledger_rows(self)
        uses: dict[str, list[str]] = {}
        for source, target in claims.edges(rows):
            uses.setdefault(source, []).append(target)
        table = nodes.table(classes=["claims-table"])
        group = nodes.tgroup(cols=len(self.columns))
        table += group
        for _, width in self.columns:
            group += nodes.colspec(colwidth=width)
        head = nodes.row()
        for title, _ in self.columns:
            head += nodes.entry("", nodes.paragraph("", title))
        group += nodes.thead("", head)
        body = nodes.tbody()
        by_id = {row.id: row for row in rows}
        for row in rows:
            body += self.row(row, [by_id[name] for name in uses.get(row.id, [])])
        group += body
        return [nodes.raw("", self.controls(rows), format="html"), table]

    def controls(self, rows: list[claims.Row]) -> str:
        def select(name: str, label: str, values: list[str]) -> str:
            options = "".join(f"<option>{html.escape(v)}</option>" for v in values)
            return (
                f'<label>{label} <select data-filter="{name}"><option value="">all</option>'
                f"{options}</select></label>"
            )

        kinds = [kind for kind in claims.KINDS if any(row.kind == kind for row in rows)]
        return (
            '<form class="claims-filter" role="search" aria-label="Filter the ledger" hidden>'
            '<label>Search <input type="search" data-filter="text" autocomplete="off"></label>'
            + select("verdict", "Verdict", list(claims.VERDICTS))
            + select("kind", "Kind", kinds)
            + select("evidence", "Evidence", list(claims.EVIDENCE))
            + '<button type="reset">Clear</button>'
            '<output aria-live="polite"></output></form>'
        )

    def row(self, row: claims.Row, used: list[claims.Row]) -> nodes.row:
        claim = nodes.paragraph("", "", link(self, row.page, row.target, row.id))
        claim += nodes.inline("", f" {row.kind}", classes=["claim-kind"])
        statement = nodes.entry("", nodes.paragraph("", "", *self.inline(row.statement)))
        for label, text in (
            ("In the paper’s text:", row.wrong),
            ("Repair:", row.repair),
            ("What remains:", row.remains),
        ):
            if text:
                statement += self.paragraph(label, text)
        if used:
            line = nodes.paragraph("", "", nodes.strong("", "Uses:"), classes=["claim-note"])
            for other in used:
                line += [nodes.Text(" "), link(self, LEDGER_PAGE, f"claim-{other.slug}", other.id)]
            statement += line
        verdict = nodes.entry("", nodes.paragraph("", "", badge(row.verdict)))
        verdict += nodes.paragraph("", row.evidence, classes=["claim-evidence"])
        command = (
            nodes.literal("", f"make claims ID={row.id}") if row.check else nodes.Text("no check")
        )
        check = nodes.entry("", nodes.paragraph("", "", command))
        entry = nodes.row("", nodes.entry("", claim), statement, verdict, check)
        entry["ids"].append(f"claim-{row.slug}")
        entry["classes"] += [
            f"is-{claims.slug(row.verdict)}",
            f"is-{row.kind}",
            f"is-{claims.slug(row.evidence)}",
        ]
        return entry


class ClaimsGraph(SphinxDirective):
    """What uses what, drawn from the references in the chapters' proofs."""

    def run(self) -> list[nodes.Node]:
        rows = {row.id: row for row in ledger_rows(self)}
        for path in claims.sources():
            self.env.note_dependency(str(path))
        pairs = claims.edges(list(rows.values()))
        return [nodes.raw("", draw(rows, pairs, self), format="html")]


def layers(pairs: list[tuple[str, str]]) -> dict[str, int]:
    """Column of each claim: one more than the deepest claim it uses (cycles are cut)."""
    uses: dict[str, list[str]] = {}
    for source, target in pairs:
        uses.setdefault(source, []).append(target)
        uses.setdefault(target, [])
    depth: dict[str, int] = {}

    def visit(name: str, path: frozenset[str]) -> int:
        if name not in depth:
            below = [visit(t, path | {name}) for t in uses[name] if t not in path | {name}]
            depth[name] = 1 + max(below, default=-1)
        return depth[name]

    for name in sorted(uses):
        visit(name, frozenset())
    return depth


def arrange(pairs: list[tuple[str, str]], order: list[str]) -> dict[str, tuple[int, float]]:
    """Place each claim at (column, height) by a few sweeps of the barycentre rule."""
    depth = layers(pairs)
    columns: dict[int, list[str]] = {}
    for name in sorted(depth, key=order.index):
        columns.setdefault(depth[name], []).append(name)
    near: dict[str, list[str]] = {name: [] for name in depth}
    for source, target in pairs:
        near[source].append(target)
        near[target].append(source)
    tallest = max(map(len, columns.values()), default=1)
    height = {
        name: (i + 0.5) * tallest / len(names)
        for names in columns.values()
        for i, name in enumerate(names)
    }
    for _ in range(24):
        for names in columns.values():
            names.sort(key=lambda n: sum(height[m] for m in near[n]) / max(1, len(near[n])))
            for i, name in enumerate(names):
                height[name] = (i + 0.5) * tallest / len(names)
    return {name: (depth[name], height[name]) for name in depth}


def draw(
    rows: dict[str, claims.Row], pairs: list[tuple[str, str]], directive: SphinxDirective
) -> str:
    """The graph as an inline SVG of links; every node says its verdict and what it uses."""
    place = arrange(pairs, list(rows))
    if not place:
        return ""
    # a sign, a blank and the longest name, in a face of 12.5 pixels
    box_w, box_h = 16 + round(7.6 * (2 + max(map(len, place)))), 24
    step_x, step_y = box_w + 44, 34
    xy = {name: (12 + column * step_x, 6 + y * step_y) for name, (column, y) in place.items()}
    width = max(x for x, _ in xy.values()) + box_w + 12
    tall = max(y for _, y in xy.values()) + step_y
    parts = []
    for source, target in pairs:
        (x1, y1), (x0, y0) = xy[source], xy[target]
        x0, y0, y1 = x0 + box_w, y0 + box_h / 2, y1 + box_h / 2
        bend = max(30, abs(x1 - x0) / 2)
        parts.append(
            f'<path class="edge" data-from="{rows[target].slug}" data-to="{rows[source].slug}" '
            f'd="M{x0:.0f} {y0:.0f}C{x0 + bend:.0f} {y0:.0f} '
            f'{x1 - bend:.0f} {y1:.0f} {x1:.0f} {y1:.0f}"/>'
        )
    for name, (x, y) in xy.items():
        row = rows[name]
        used = (
            ", ".join(target for source, target in pairs if source == name)
            or "nothing in the graph"
        )
        uri = link(directive, row.page, row.target, "")["refuri"]
        parts.append(
            f'<a class="node {CLASS[row.verdict]}" data-id="{row.slug}" href="{html.escape(uri)}" '
            f'aria-label="{html.escape(f"{name}: {row.verdict}; uses {used}")}">'
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{box_w}" height="{box_h}" rx="4"/>'
            f'<text x="{x + 8:.0f}" y="{y + 16:.0f}">'
            f"{GLYPH[row.verdict]} {html.escape(name)}</text></a>"
        )
    return (
        '<div class="claims-graph" tabindex="0" role="region" aria-label="Graph of what uses what; '
        'scroll sideways to see all of it">'
        f'<svg viewBox="0 0 {width:.0f} {tall:.0f}" width="{width:.0f}" height="{tall:.0f}" '
        'role="group" aria-label="Claims as nodes; an edge leads from a claim to one whose proof '
        'uses it">' + "".join(parts) + "</svg></div>"
    )


class Errata(Inline):
    """Everything the ledger finds wrong, most serious first, with runnable counterexamples."""

    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        rows = ledger_rows(self)
        sections: list[nodes.Node] = []
        for severity, title in SEVERITY_TITLE.items():
            found = [row for row in rows if row.severity == severity]
            if found:
                section = nodes.section(ids=[f"errata-{severity}"])
                section += nodes.title("", f"{title} ({len(found)})")
                for row in found:
                    section += self.entry(row)
                sections.append(section)
        return sections

    def entry(self, row: claims.Row) -> nodes.container:
        head = nodes.paragraph("", "", link(self, row.page, row.target, row.id), nodes.Text(" "))
        head += badge(row.verdict)
        box = nodes.container("", head, classes=["erratum"], ids=[f"erratum-{row.slug}"])
        box += nodes.paragraph("", "", *self.inline(row.statement))
        for label, text in (
            ("What is wrong:", row.wrong),
            ("Repair:", row.repair),
            ("What remains true:", row.remains),
        ):
            if text:
                box += self.paragraph(label, text)
        if row.counterexample:
            counter = claims.function(row.counterexample)
            source = textwrap.dedent(inspect.getsource(counter)).rstrip()
            code = f"{source}\n\n{counter.__name__}()"
            box += nodes.literal_block(code, code, language="python")
            shown = ", ".join(f"{key} = {show(value)}" for key, value in counter().items())
            box += nodes.paragraph("", "", nodes.strong("", "It returns:"), nodes.Text(f" {shown}"))
        return box


def show(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


class Count(SphinxRole):
    """``{claims}`holds` ``: how many rows have that verdict (or severity, or ``all``)."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        rows = ledger_rows(self)
        counts = Counter(row.verdict for row in rows) + Counter(row.severity for row in rows)
        counts["all"] = len(rows)
        if self.text not in counts and self.text not in (*claims.VERDICTS, *claims.SEVERITIES):
            logger.warning("claims role: unknown verdict or severity %r", self.text)
        return [nodes.Text(str(counts[self.text]))], []


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("verdict", Verdict)
    app.add_directive("claims-table", ClaimsTable)
    app.add_directive("claims-graph", ClaimsGraph)
    app.add_directive("errata", Errata)
    app.add_role("claims", Count())
    app.add_css_file("ledger.css")
    app.add_js_file("ledger.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
