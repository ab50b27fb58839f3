"""Sphinx side of the claims ledger: verdict badges, the ledger page, its graph, the errata."""

from __future__ import annotations

import html
import inspect
import re
import textwrap
from collections.abc import Iterable
from functools import cache
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from book import claims
from book.claims import scores

logger = logging.getLogger(__name__)

LEDGER_PAGE = "book/claims-ledger"
CLASS = {
    "holds": "verdict-holds",
    "holds with repair": "verdict-repair",
    "false as stated": "verdict-false",
    "not testable here": "verdict-untested",
    "no verdict": "verdict-none",
}
GLYPH = {
    "holds": "✓",
    "holds with repair": "↻",
    "false as stated": "✗",
    "not testable here": "–",
    "no verdict": "·",
}
GRADE_CLASS = {"everywhere": "grade-3", "in the stated range": "grade-2", "in a corner": "grade-1"}
ERROR_TITLE = {
    "false": "Statements that are false",
    "repair": "Statements that need a repair",
    "proof": "Proofs that need one",
    "slip": "Slips of the pen",
}
LEAN = "https://github.com/RemyDegenne/Ito2026Adversarial/blob"


@cache
def whole_ledger() -> tuple[list[str], list[claims.Row]]:
    """The ledger's files and its rows, read once in a build: pages ask some two hundred times."""
    files = sorted(claims.HERE.rglob("*"))
    return [str(path) for path in files if path.suffix in {".yml", ".py", ".json"}], claims.load()


def ledger_rows(directive: SphinxDirective | SphinxRole) -> list[claims.Row]:
    """The rows of the ledger; the page depends on its files."""
    files, rows = whole_ledger()
    for path in files:
        directive.env.note_dependency(path)
    return rows


def verdict_text(row: claims.Row) -> str:
    """``false as stated, in a corner``."""
    return row.verdict + (f", {row.grade}" if row.grade else "")


def badge(row: claims.Row) -> nodes.inline:
    classes = ["verdict", CLASS[row.verdict]]
    if row.grade:
        classes.append(GRADE_CLASS[row.grade])
    return nodes.inline("", f"{GLYPH[row.verdict]} {verdict_text(row)}", classes=classes)


def lean_link(row: claims.Row) -> nodes.reference:
    """The declaration that proves the statement in Lean."""
    uri = f"{LEAN}/{row.lean['commit']}/{row.lean['file']}"
    return nodes.reference("", "", nodes.literal("", row.lean["name"]), refuri=uri)


@cache
def page_title(page: str) -> str:
    """The title of a page of the book, off its source."""
    found = re.search(r"(?m)^# (.+)$", (claims.ROOT / f"{page}.md").read_text("utf8"))
    return found[1] if found else page


def link(directive: SphinxDirective, page: str, target: str, text: str) -> nodes.reference:
    """A link to `target` on another page of the book."""
    here = directive.env.docname
    other = page not in ("", here)
    uri = directive.env.app.builder.get_relative_uri(here, page) if other else ""
    if target:
        uri += "#" + (f"equation-{target}" if target.startswith("eq-") else target)
    return nodes.reference("", text, refuri=uri, internal=True)


class Inline(SphinxDirective):
    """A directive that can parse a line of Markdown."""

    def inline(self, text: str) -> list[nodes.Node]:
        parsed, messages = self.state.inline_text(breakable(text), self.lineno)
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


RELATIONS = {r"\le", r"\ge", r"\leq", r"\geq", r"\approx", r"\to", r"\iff", "=", "<", ">"}
OPENING, CLOSING = {"{", "(", "[", r"\{"}, {"}", ")", "]", r"\}"}


def breakable(text: str, long: int = 36, least: int = 14) -> str:
    """Cut long formulas between dollars before their relations, so that a line may end there."""

    def cut(formula: re.Match[str]) -> str:
        tokens = re.findall(r"\\[a-zA-Z]+|\\.|.", formula[1])
        if len(formula[1]) <= long or {r"\left", r"\begin"} & set(tokens):
            return formula[0]
        parts, depth = [""], 0
        for i, token in enumerate(tokens):
            depth += (token in OPENING) - (token in CLOSING)
            rest = "".join(tokens[i:])
            if token in RELATIONS and depth == 0 and min(len(parts[-1]), len(rest)) >= least:
                parts.append("")
            parts[-1] += token
        return " ".join(f"${part}$" for part in parts)

    return re.sub(r"(?<!\\)\$([^$]+)\$", cut, text)


def table_of(
    name: str, columns: Iterable[tuple[str, int]], rows: Iterable[nodes.row]
) -> nodes.table:
    """A table of the class `name`; `columns` gives the titles and their widths."""
    titles, widths = zip(*columns, strict=True)
    group = nodes.tgroup(cols=len(titles))
    group += [nodes.colspec(colwidth=width) for width in widths]
    head = nodes.row("", *(nodes.entry("", nodes.paragraph("", title)) for title in titles))
    group += [nodes.thead("", head), nodes.tbody("", *rows)]
    return nodes.table("", group, classes=[name])


class Verdict(Inline):
    """``{verdict} lm:he``: what the ledger says of a claim, with a link to its row.

    Several ids, ``{verdict} lm:set, lm:set1``, share a box; with ``:statements:`` it also says what
    each of them states, for claims that the page does not state right above.
    """

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {"statements": directives.flag}

    def run(self) -> list[nodes.Node]:
        rows = {row.id: row for row in ledger_rows(self)}
        chosen: list[claims.Row] = []
        for name in verdict_ids(self.arguments[0]):
            if name not in rows:
                logger.warning(
                    "no row of the claims ledger has the id %s", name, location=self.get_location()
                )
                return []
            chosen.append(rows[name])
        worst = max(chosen, key=lambda row: list(CLASS).index(row.verdict) % len(claims.VERDICTS))
        box = nodes.container("", classes=["verdict-box", CLASS[worst.verdict] + "-box"])
        ids = {row.id for row in chosen}
        for group in self.alike(chosen):
            box += self.line(group)
            if group[-1].root not in ids:  # else the line above has said it
                box += [self.paragraph(label, text) for label, text in notes(group[-1])]
        return [box]

    def alike(self, rows: list[claims.Row]) -> list[list[claims.Row]]:
        """Neighbours about which there is the same to say share a line."""
        said: list[list[claims.Row]] = []
        for row in rows:
            same = said and all(
                (other.verdict, other.grade, other.evidence, notes(other))
                == (row.verdict, row.grade, row.evidence, notes(row))
                for other in said[-1]
            )
            if same and "statements" not in self.options:
                said[-1].append(row)
            else:
                said.append([row])
        return said

    def line(self, group: list[claims.Row]) -> nodes.paragraph:
        first = group[0]
        line = nodes.paragraph("", "")
        if first.verdict != claims.NO_VERDICT:
            line += [badge(first), nodes.Text(f" {first.evidence} · ")]
        line += nodes.Text("ledger: ")
        for k, row in enumerate(group):
            line += nodes.Text(", " if k else "")
            line += link(self, LEDGER_PAGE, f"claim-{row.slug}", row.named)
        if "statements" in self.options:
            line += [nodes.Text(". "), *self.inline(first.statement)]
        return line


def verdict_ids(argument: str) -> list[str]:
    """The claims that a verdict box is about."""
    return [name.strip() for name in argument.split(",") if name.strip()]


def notes(row: claims.Row) -> list[tuple[str, str]]:
    """What a verdict box says of a claim besides its verdict."""
    return [
        (label, text)
        for label, text in (
            ("In the paper’s text:", row.wrong),
            ("Repair:", row.repair),
            ("Note:", row.note),
        )
        if text
    ]


class ClaimsTable(Inline):
    """The whole ledger as a table that can be searched and filtered.

    Its formulas are typeset as their rows come into view (ledger.js): all at once they are tens of
    thousands of elements.
    """

    columns = (("Claim", 16), ("Statement", 46), ("Verdict", 18), ("Check", 20))

    def run(self) -> list[nodes.Node]:
        rows = ledger_rows(self)
        tried = scores.stored()
        uses: dict[str, list[str]] = {}
        for source, target in claims.edges(rows):
            uses.setdefault(source, []).append(target)
        by_id = {row.id: row for row in rows}
        body = []
        for row in rows:
            score = scores.row_score(row, tried)
            found = tried["checks"].get(row.check or "", {})
            body.append(self.row(row, [by_id[name] for name in uses.get(row.id, [])], score, found))
        table = table_of("claims-table", self.columns, body)
        # The first formula stays one, so that Sphinx knows that the page needs MathJax.
        for math in list(table.findall(nodes.math))[1:]:
            parent = math.parent
            place = next(k for k, child in enumerate(parent.children) if child is math)
            later = html.escape(rf"\({math.astext()}\)")
            parent[place] = nodes.raw("", f'<span class="later-math">{later}</span>', format="html")
        return [nodes.raw("", self.controls(rows), format="html"), table]

    def controls(self, rows: list[claims.Row]) -> str:
        def select(name: str, label: str, values: list[str]) -> str:
            options = "".join(f"<option>{html.escape(v)}</option>" for v in values)
            return (
                f'<label>{label} <select data-filter="{name}"><option value="">all</option>'
                f"{options}</select></label>"
            )

        kinds = [kind for kind in claims.KINDS if any(row.kind == kind for row in rows)]
        verdicts = [*claims.VERDICTS, *claims.GRADES, claims.NO_VERDICT]
        return (
            '<form class="claims-filter" role="search" aria-label="Filter the ledger" hidden>'
            '<label>Search <input type="search" data-filter="text" autocomplete="off"></label>'
            + select("source", "Whose", list(claims.SOURCES))
            + select("verdict", "Verdict", verdicts)
            + select("kind", "Kind", kinds)
            + select("evidence", "Evidence", list(claims.EVIDENCE))
            + '<button type="reset">Clear</button>'
            '<output aria-live="polite"></output></form>'
        )

    def row(
        self,
        row: claims.Row,
        used: list[claims.Row],
        score: scores.Score | None,
        found: dict[str, Any],
    ) -> nodes.row:
        claim = nodes.paragraph("", "", link(self, row.page, row.target, row.printed))
        if row.printed != row.id:
            claim += [nodes.Text(" "), nodes.literal("", row.id)]
        claim += nodes.inline("", f" {row.kind}", classes=["claim-kind"])
        statement = nodes.entry("", nodes.paragraph("", "", *self.inline(row.statement)))
        for label, text in (
            ("In the paper’s text:", row.wrong),
            ("Repair:", row.repair),
            ("What remains:", row.remains),
            ("Note:", row.note),
        ):
            if text:
                statement += self.paragraph(label, text)
        if used:
            line = nodes.paragraph("", "", nodes.strong("", "Uses:"), classes=["claim-note"])
            for other in used:
                line += [nodes.Text(" "), link(self, "", f"claim-{other.slug}", other.printed)]
            statement += line
        verdict = nodes.entry("", nodes.paragraph("", "", badge(row)))
        verdict += nodes.paragraph("", row.evidence, classes=["claim-evidence"])
        if row.lean:
            machine = nodes.paragraph("", "machine-checked: ", classes=["claim-evidence"])
            machine += lean_link(row)
            if note := row.lean.get("note"):
                machine += [nodes.Text(" "), *self.inline(note)]
            verdict += machine
        entry = nodes.row("", nodes.entry("", claim), statement, verdict)
        entry += self.check(row, score, found)
        entry["ids"].append(f"claim-{row.slug}")
        entry["classes"] += [
            f"is-{claims.slug(word)}"
            for word in (row.verdict, row.kind, row.evidence, row.source, row.grade or "ungraded")
        ] + (["is-machine-checked"] if row.lean else [])
        return entry

    def check(
        self, row: claims.Row, score: scores.Score | None, found: dict[str, Any]
    ) -> nodes.entry:
        """The command, how much room the bound had, and how the check fared with mutants."""
        if not row.check:
            return nodes.entry("", nodes.paragraph("", "no check"))
        out = nodes.entry(
            "", nodes.paragraph("", "", nodes.literal("", f"make claims ID={row.id}"))
        )
        parts = []
        slack = found.get("slack")
        if slack is not None:
            parts.append("attained" if slack < 1.01 else f"slack {slack:.3g}")
            if found.get("where"):
                parts[-1] += f" ({found['where']})"
        if found.get("power"):
            parts.append(found["power"])
        if score is not None:
            parts.append(f"{score} mutants")
            if score.weaker:
                parts.append(f"{score.weaker} more only weaken it")
            if score.slack:
                parts.append(f"{score.slack} lie within the slack")
            if score.explained:
                reasons = "; ".join(dict.fromkeys(reason for _, reason in score.explained))
                parts.append(f"{len(score.explained)} excused: {reasons}")
        if parts:
            text = "; ".join(parts)
            out += nodes.paragraph("", "", *self.inline(text), classes=["claim-evidence"])
        return out


class Numbers(Inline):
    """The paper, number by number: what each numbered item says and what became of it."""

    columns = (("In the paper", 16), ("What it says", 50), ("In the book", 16), ("Verdict", 18))

    def run(self) -> list[nodes.Node]:
        rows = {row.id: row for row in ledger_rows(self)}
        sections: dict[str, list[claims.Row]] = {}
        for label, entry in claims.labels().items():
            sections.setdefault(str(entry["section"]).partition(".")[0], []).append(rows[label])
        out: list[nodes.Node] = []
        for name, found in sections.items():
            word = "Appendix" if name.isalpha() else "Section"
            section = nodes.section(ids=[f"paper-{name.lower()}"])
            section += nodes.title("", f"{word} {name}")
            section += table_of("numbers-table", self.columns, map(self.row, found))
            out.append(section)
        return out

    def row(self, row: claims.Row) -> nodes.row:
        place = link(self, row.page, row.target, page_title(row.page))
        verdict = nodes.paragraph("", "")
        if row.verdict != claims.NO_VERDICT:
            verdict += badge(row)
        ledger = link(self, LEDGER_PAGE, f"claim-{row.slug}", "ledger")
        verdict += [nodes.Text(" "), ledger]
        number = nodes.paragraph("", "", nodes.strong("", row.printed), nodes.Text(" "))
        number += nodes.literal("", row.id)
        return nodes.row(
            "",
            nodes.entry("", number),
            nodes.entry("", nodes.paragraph("", "", *self.inline(row.statement))),
            nodes.entry("", nodes.paragraph("", "", place)),
            nodes.entry("", verdict),
        )


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


WORDS = {
    "Lemma": "L", "Theorem": "Thm", "Corollary": "Cor", "Equation": "Eq", "Definition": "Def",
    "Algorithm": "Alg", "Remark": "Rem", "Table": "Table", "Figure": "Figure",
    "Dissertation": "Diss",
}  # fmt: skip


def short(row: claims.Row, most: int = 9) -> str:
    """A name for a small box: ``L C.4``, ``Eq (B.1)``, ``sherman-…`` for a lemma of ours."""
    word, _, rest = row.printed.partition(" ")
    numbered = f"{WORDS[word]} {rest}" if rest and word in WORDS else ""
    name = numbered or row.id.partition(":")[2] or row.id
    return name if len(name) <= most else name[: most - 1].rstrip(" ,-") + "…"


def draw(
    rows: dict[str, claims.Row], pairs: list[tuple[str, str]], directive: SphinxDirective
) -> str:
    """The graph as an inline SVG of links; every node says its verdict and what it uses."""
    place = arrange(pairs, list(rows))
    if not place:
        return ""
    labels = {name: f"{GLYPH[rows[name].verdict]} {short(rows[name])}" for name in place}
    box_w, box_h = 14 + round(6.6 * max(map(len, labels.values()))), 24
    step_x, step_y = box_w + 24, 31
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
        used = ", ".join(rows[t].printed for s, t in pairs if s == name) or "nothing in the graph"
        uri = link(directive, row.page, row.target, "")["refuri"]
        title = f"{row.named}: {verdict_text(row)}; uses {used}"
        parts.append(
            f'<a class="node {CLASS[row.verdict]}" data-id="{row.slug}" href="{html.escape(uri)}" '
            f'aria-label="{html.escape(title)}">'
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{box_w}" height="{box_h}" rx="4"/>'
            f'<text x="{x + 8:.0f}" y="{y + 16:.0f}">{html.escape(labels[name])}</text></a>'
        )
    return (
        '<div class="claims-zoom" role="group" aria-label="Size of the graph" hidden>'
        '<button type="button" data-zoom="fit">Fit</button>'
        '<button type="button" data-zoom="out" aria-label="Smaller">−</button>'
        '<button type="button" data-zoom="in" aria-label="Larger">+</button></div>'
        '<div class="claims-graph" tabindex="0" role="region" aria-label="Graph of what uses what">'
        f'<svg viewBox="0 0 {width:.0f} {tall:.0f}" data-width="{width:.0f}" '
        'role="group" aria-label="Claims as nodes; an edge leads from a claim to one whose proof '
        'uses it">' + "".join(parts) + "</svg></div>"
        '<div class="claims-said" aria-live="polite"></div>'
    )


class Errata(Inline):
    """Everything the ledger finds wrong, most serious first, with runnable counterexamples.

    Errors that follow from another error are listed with it.
    """

    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        rows = ledger_rows(self)
        self.listed: dict[str, claims.Row] = {}  # counterexamples and the entry that has them
        sections: list[nodes.Node] = []
        rank = {grade: k for k, grade in enumerate(claims.GRADES)}
        for error, title in ERROR_TITLE.items():
            found = [r for r in rows if r.error == error and not r.root and r.source != "ours"]
            found.sort(key=lambda r: rank.get(r.grade or "", len(rank)))
            if found:
                section = nodes.section(ids=[f"errata-{error}"])
                section += nodes.title("", f"{title} ({len(found)})")
                for row in found:
                    section += self.entry(row, [r for r in rows if r.root == row.id])
                sections.append(section)
        return sections

    def entry(self, row: claims.Row, follow: list[claims.Row]) -> nodes.container:
        head = nodes.paragraph("", "", link(self, row.page, row.target, row.named), nodes.Text(" "))
        if row.verdict != claims.NO_VERDICT:
            head += badge(row)
        box = nodes.container("", head, classes=["erratum"], ids=[f"erratum-{row.slug}"])
        box += nodes.paragraph("", "", *self.inline(row.statement))
        for label, text in (
            ("What is wrong:", row.wrong),
            ("Repair:", row.repair),
            ("What remains true:", row.remains),
        ):
            if text:
                box += self.paragraph(label, text)
        self.counterexample(row, box, row)
        if follow:
            box += nodes.paragraph("", "", nodes.strong("", "The same error touches:"))
            items = nodes.bullet_list()
            for other in follow:
                line = nodes.paragraph(
                    "", "", link(self, other.page, other.target, other.named), nodes.Text(" ")
                )
                line += badge(other)
                item = nodes.list_item("", line)
                for label, text in (("What is wrong:", other.wrong), ("Repair:", other.repair)):
                    if text:
                        item += self.paragraph(label, text)
                if other.counterexample != row.counterexample:
                    self.counterexample(other, item, row)
                items += item
            box += items
        return box

    def counterexample(self, row: claims.Row, box: nodes.Element, entry: claims.Row) -> None:
        """The code of the row's counterexample, if it has one, and what it returns.

        Code that the page has already shown, in the entry of another row, is linked.
        """
        if not row.counterexample:
            return
        known = row.counterexample in self.listed
        first = self.listed.setdefault(row.counterexample, entry)
        if known:
            same = nodes.reference("", "", nodes.Text(first.named), refid=f"erratum-{first.slug}")
            box += nodes.paragraph("", "", nodes.Text("The code that shows it is that of "), same)
            return
        counter = claims.function(row.counterexample)
        source = textwrap.dedent(inspect.getsource(counter)).rstrip()
        code = f"{source}\n\n{counter.__name__}()"
        box += nodes.literal_block(code, code, language="python")
        shown = ", ".join(f"{key} = {show(value)}" for key, value in counter().items())
        box += nodes.paragraph("", "", nodes.strong("", "It returns:"), nodes.Text(f" {shown}"))


def show(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


class Count(SphinxRole):
    """``{claims}`holds` ``: how many of the paper's statements have that verdict.

    Also ``ours holds``, ``dissertation all``, ``false in a corner``, ``error slip``, ``rows``; and
    of the mutants ``mutants rejected``, ``mutants relevant``, ``mutants weaker``.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        rows = ledger_rows(self)
        counts = claims.counts(rows)
        if self.text.startswith("mutants "):
            counts.update(scores.totals(rows))
        if self.text not in counts:
            logger.warning("claims role: nothing is counted as %r", self.text)
        return [nodes.Text(f"{counts[self.text]:,}")], []


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("verdict", Verdict)
    app.add_directive("claims-table", ClaimsTable)
    app.add_directive("claims-graph", ClaimsGraph)
    app.add_directive("paper-numbers", Numbers)
    app.add_directive("errata", Errata)
    app.add_role("claims", Count())
    app.add_css_file("ledger.css")
    app.add_js_file("ledger.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
