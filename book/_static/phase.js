// The phase map: choose problem, misspecification, gap, dimension and threshold; see the map and the
// curves. What is chosen stands in the address, so that it can be kept and sent.
// Reads the committed results from the page itself; needs no network.
(() => {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const node = (make) => (tag, attributes = {}, ...children) => {
    const made = make(tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const html = node((tag) => document.createElement(tag));
  const svg = node((tag) => document.createElementNS(SVG, tag));
  const short = (x, digits = 3) => {
    const text = String(Number(x.toPrecision(digits)));
    return text.replace(/\B(?=(\d{3})+(?!\d)(?<!\.\d*))/g, ",").replace("-", "−");
  };

  const QUANTITIES = {
    scaled: ["regret ÷ KΔ", (c, data) => c.mean.at(-1) / (data.rounds * c.Delta), (v) => v.toFixed(v < 0.1 ? 3 : 2), (v) => (Math.log10(Math.max(v, 1e-3)) + 3) / 3.1],
    exponent: ["growth exponent, last half", (c) => c.exponent, (v) => v.toFixed(2), (v) => v],
    locked: ["share of runs locked", (c) => c.locked, (v) => (v === null ? "·" : `${Math.round(100 * v)}%`), (v) => v ?? 0],
    versus: ["regret ÷ UCB's", (c) => c.versus, (v) => (v === null ? "·" : short(v, 2)), (v) => (v === null ? 0 : (Math.log10(Math.max(v, 0.01)) + 2) / 3)],
  };
  const COLOURS = { OFUL: "oful", "DS-OFUL": "ds", SupLinUCB: "sup", UCB: "ucb", LSW: "lsw", Thompson: "rlb" };
  const FAMILIES = [["fixed", "fixed arms"], ["lessons", "contexts: lessons and tests"]];
  const MARK = "#phase:";
  const fraction = (v) => (v === null ? null : v / 100);

  const start = (root) => {
    const families = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    for (const family of Object.values(families)) {
      family.found = new Map(Object.entries(family.cells).map(([key, c]) => [key, {
        Delta: Number(key.split("|")[2]), mean: c[0].map((v) => v / 10), half: c[1].map((v) => v / 10),
        exponent: c[2] / 100, locked: fraction(c[3]), low: fraction(c[4]), high: fraction(c[5]),
      }]));
      for (const [key, c] of family.found) {
        const other = family.found.get(["UCB", ...key.split("|").slice(1)].join("|"));
        c.versus = other ? c.mean.at(-1) / other.mean.at(-1) : null;
      }
    }
    let data = families.fixed;
    const state = { family: "fixed", kind: "adversarial", policy: "DS-OFUL", quantity: "scaled", plane: "d", column: data.ratios.indexOf(2), row: data.dims.indexOf(8), gamma: data.multiples.indexOf(1) };
    const series = () => data.series.map((policy) => [policy, COLOURS[policy]]);

    // ---- the address -------------------------------------------------------------------------------
    const enter = (family) => {
      data = families[family];
      state.family = family;
      if (!data.kinds.some(([kind]) => kind === state.kind)) state.kind = data.kinds[0][0];
      if (!data.series.includes(state.policy)) state.policy = "DS-OFUL";
      state.plane = data.deltas.length > 1 ? state.plane : "d";
      state.row = Math.max(0, (state.plane === "d" ? data.dims : data.deltas).indexOf(state.plane === "d" ? data.d : data.Delta));
      state.column = Math.max(0, data.ratios.indexOf(family === "fixed" ? 2 : 0.5));
    };
    const known = { family: Object.keys(families), policy: Object.keys(COLOURS), quantity: Object.keys(QUANTITIES), plane: ["d", "Delta"] };
    const read = () => {
      if (!location.hash.startsWith(MARK)) return;
      const asked = new URLSearchParams(location.hash.slice(MARK.length));
      if (known.family.includes(asked.get("family"))) enter(asked.get("family"));
      for (const key of ["policy", "quantity", "plane"]) if (known[key].includes(asked.get(key))) state[key] = asked.get(key);
      if (!data.series.includes(state.policy)) state.policy = "DS-OFUL";
      if (state.plane === "Delta" && data.deltas.length < 2) state.plane = "d";
      if (data.kinds.some(([kind]) => kind === asked.get("kind"))) state.kind = asked.get("kind");
      const most = { column: data.ratios.length, row: (state.plane === "d" ? data.dims : data.deltas).length, gamma: data.multiples.length };
      for (const [key, size] of Object.entries(most)) {
        const value = Number(asked.get(key) ?? NaN);
        if (Number.isInteger(value) && value >= 0 && value < size) state[key] = value;
      }
    };
    const write = () => history.replaceState(null, "", MARK + new URLSearchParams(state).toString());
    read();

    const rows = () => (state.plane === "d" ? data.dims : data.deltas);
    const place = (row) => (state.plane === "d" ? [rows()[row], data.Delta] : [data.d, rows()[row]]);
    const name = (policy) => (policy === "DS-OFUL" ? `DS-OFUL ${data.multiples[state.gamma]}` : policy);
    const find = (policy, row, column) => {
      const [d, Delta] = place(row);
      const ratio = data.ratios[column];
      return data.found.get([name(policy), d, Delta, ratio, ratio === 0 ? "random" : state.kind].join("|"));
    };

    // ---- controls ---------------------------------------------------------------------------------
    const form = html("form", { class: "phase-controls", "aria-label": "What to show" });
    form.addEventListener("submit", (event) => event.preventDefault());
    const boxes = [];
    const select = (label, key, options) => {
      const box = html("select", { id: `phase-${key}` });
      box.addEventListener("change", () => {
        if (key === "family") enter(box.value);
        else state[key] = box.value;
        if (key === "plane") state.row = rows().indexOf(box.value === "d" ? data.d : data.Delta);
        refill();
        change();
      });
      boxes.push(() => {
        box.replaceChildren(...options().map(([value, text]) => html("option", { value }, text)));
        box.value = state[key];
        box.disabled = options().length < 2;
      });
      form.append(html("label", { for: `phase-${key}` }, label, box));
    };
    const refill = () => boxes.forEach((fill) => fill());
    const sliders = {};
    const slider = (label, key, text) => {
      const input = html("input", { type: "range", id: `phase-${key}`, min: 0, step: 1 });
      const output = html("output", { for: `phase-${key}` });
      input.addEventListener("input", () => { state[key] = Number(input.value); change(); });
      sliders[key] = { input, output, text, label: html("span") };
      form.append(html("label", { for: `phase-${key}` }, sliders[key].label, input, output));
      sliders[key].name = label;
    };
    select("problem", "family", () => FAMILIES.filter(([key]) => families[key]));
    select("misspecification", "kind", () => data.kinds);
    select("rows of the map", "plane", () => [["d", `dimension d (Δ = ${data.Delta})`], ["Delta", `gap Δ (d = ${data.d})`]].slice(0, data.deltas.length));
    select("map shows", "policy", () => series().map(([p]) => [p, p]));
    select("quantity", "quantity", () => Object.entries(QUANTITIES).map(([key, q]) => [key, q[0]]));
    const here = () => { const [d, Delta] = place(state.row); return { d, Delta, ratio: data.ratios[state.column], zeta: (data.ratios[state.column] * Delta) / Math.sqrt(d) }; };
    slider(() => "misspecification ζ", "column", () => `ζ√d/Δ = ${short(here().ratio)}, ζ = ${short(here().zeta, 2)}`);
    slider(() => (state.plane === "d" ? "dimension d" : "gap Δ"), "row", () => `d = ${here().d}, Δ = ${here().Delta}`);
    slider(() => "threshold Γ of DS-OFUL", "gamma", () => { const { d, Delta } = here(); const m = data.multiples[state.gamma]; return `${m} × Δ/√d = ${short((m * Delta) / Math.sqrt(d), 2)}`; });

    // ---- the map ------------------------------------------------------------------------------------
    const grid = html("table", { class: "phase-grid", role: "grid", "aria-label": "Map of results; arrow keys move, and the curves below follow" });
    const move = (row, column) => {
      state.row = Math.max(0, Math.min(rows().length - 1, row));
      state.column = Math.max(0, Math.min(data.ratios.length - 1, column));
      change();
      grid.querySelector("td[tabindex='0']").focus();
    };
    grid.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -99], End: [0, 99] }[event.key];
      if (!step) return;
      event.preventDefault();
      move(state.row + step[0], state.column + step[1]);
    });
    const drawGrid = () => {
      const [label, value, format, shade] = QUANTITIES[state.quantity];
      const head = html("tr", { role: "row" }, html("th", { scope: "col", role: "columnheader" }, state.plane === "d" ? "d \\ ζ√d/Δ" : "Δ \\ ζ√d/Δ"));
      data.ratios.forEach((r) => head.append(html("th", { scope: "col", role: "columnheader" }, short(r, 2))));
      const body = rows().map((name_, row) => {
        const line = html("tr", { role: "row" }, html("th", { scope: "row", role: "rowheader" }, String(name_)));
        data.ratios.forEach((_, column) => {
          const c = find(state.policy, row, column);
          const chosen = row === state.row && column === state.column;
          const cell = html("td", { role: "gridcell", tabindex: chosen ? 0 : -1, "aria-selected": chosen }, c ? format(value(c, data)) : "·");
          if (c) cell.style.setProperty("--shade", `${Math.round(62 * Math.max(0, Math.min(1, shade(value(c, data)))))}%`);
          cell.addEventListener("click", () => move(row, column));
          line.append(cell);
        });
        return line;
      });
      grid.replaceChildren(html("caption", {}, `${state.policy === "DS-OFUL" ? `DS-OFUL, Γ = ${data.multiples[state.gamma]} Δ/√d` : state.policy}: ${label}, ${data.kinds.find(([kind]) => kind === state.kind)[1]}. The stronger the colour, the worse; a dot was not run.`), html("thead", {}, head), html("tbody", {}, ...body));
      inView();
    };
    // On a narrow screen the map scrolls; the chosen cell is never off it.
    const inView = () => {
      const box = grid.parentElement;
      const cell = grid.querySelector("td[aria-selected='true']");
      if (!box || !cell) return;
      const left = cell.offsetLeft - box.scrollLeft;
      if (left < 60 || left + cell.offsetWidth > box.clientWidth) box.scrollLeft = cell.offsetLeft - (box.clientWidth - cell.offsetWidth) / 2;
    };

    // ---- the curves ------------------------------------------------------------------------------------
    const W = 640, H = 300, L = 64, R = 30, T = 12, B = 44;
    const curves = svg("svg", { class: "phase-curves", viewBox: `0 0 ${W} ${H}`, role: "img" });
    const table = html("table", { class: "table phase-table" });
    const say = html("p", { class: "phase-say", "aria-live": "polite" });
    const values = html("p", { class: "phase-values" });
    const HINT = "Point at the curves, or touch them, for the values there.";
    let hovered; // index of the mark under the pointer
    curves.addEventListener("pointermove", (event) => {
      const frame = curves.getBoundingClientRect();
      const k = (((event.clientX - frame.left) * (W / frame.width) - L) / (W - L - R)) * data.rounds;
      const nearest = data.marks.reduce((best, m, i) => (Math.abs(m - k) < Math.abs(data.marks[best] - k) ? i : best), 0);
      if (nearest === hovered) return;
      hovered = nearest;
      drawCurves();
    });
    curves.addEventListener("pointerleave", () => { hovered = undefined; drawCurves(); });
    const drawCurves = () => {
      const { d, Delta, zeta } = here();
      const top = 2.5 * data.rounds * Delta;
      const x = (k) => L + ((W - L - R) * k) / data.rounds;
      const y = (v) => T + (H - T - B) * (1 - Math.log(Math.max(v, 1)) / Math.log(top));
      const parts = [];
      for (let v = 1; v <= top; v *= 10) parts.push(svg("line", { x1: L, x2: W - R, y1: y(v), y2: y(v), class: "phase-line" }), svg("text", { x: L - 8, y: y(v) + 4, "text-anchor": "end" }, short(v, 6)));
      for (let k = 0; k <= data.rounds; k += data.rounds / 4) parts.push(svg("text", { x: x(k), y: H - B + 18, "text-anchor": "middle" }, short(k, 6)));
      parts.push(svg("text", { x: (L + W - R) / 2, y: H - 6, "text-anchor": "middle" }, data.unit), svg("text", { x: 14, y: H / 2 - 10, transform: `rotate(-90 14 ${H / 2 - 10})`, "text-anchor": "middle" }, "regret"));
      const all = data.marks.map((k) => `${x(k)},${y(k * Delta)}`).join(" ");
      parts.push(svg("polyline", { points: all, class: "phase-linear" }));
      const lines = [];
      series().forEach(([policy, colour]) => {
        const c = find(policy, state.row, state.column);
        if (!c) return;
        const up = c.mean.map((m, i) => `${x(data.marks[i])},${y(m + c.half[i])}`);
        const down = c.mean.map((m, i) => `${x(data.marks[i])},${y(Math.max(1, m - c.half[i]))}`).reverse();
        parts.push(svg("polygon", { points: [...up, ...down].join(" "), class: `phase-band phase-${colour}` }));
        parts.push(svg("polyline", { points: c.mean.map((m, i) => `${x(data.marks[i])},${y(m)}`).join(" "), class: `phase-curve phase-${colour}` }));
        lines.push([policy, colour, c]);
      });
      if (hovered === undefined) values.textContent = HINT;
      else {
        const k = data.marks[hovered];
        parts.push(svg("line", { x1: x(k), x2: x(k), y1: T, y2: H - B, class: "phase-rule" }));
        lines.forEach(([, colour, c]) => parts.push(svg("circle", { cx: x(k), cy: y(c.mean[hovered]), r: 3.5, class: `phase-dot phase-${colour}` })));
        const sorted = [...lines].sort((a, b) => b[2].mean[hovered] - a[2].mean[hovered]);
        values.textContent = `${data.unit} ${short(k, 6)}: ${sorted.map(([policy, , c]) => `${policy} ${short(c.mean[hovered])}`).join(", ")}`;
      }
      curves.replaceChildren(...parts);
      curves.setAttribute("aria-label", `Regret against ${data.unit}s at d = ${d}, gap ${Delta}, misspecification ${short(zeta, 2)}; the table below has the numbers.`);
      const head = html("tr", {}, ...["algorithm", "final regret (95% interval)", "growth exponent", "locked"].map((t) => html("th", { scope: "col" }, t)));
      const body = lines.map(([policy, colour, c]) => html("tr", {}, html("th", { scope: "row" }, html("span", { class: `phase-key phase-${colour}`, "aria-hidden": "true" }), policy === "DS-OFUL" ? name(policy).replace(" ", ", Γ = ") + " Δ/√d" : policy),
        html("td", {}, `${short(c.mean.at(-1))} (${short(Math.max(0, c.mean.at(-1) - c.half.at(-1)))} to ${short(c.mean.at(-1) + c.half.at(-1))})`), html("td", {}, c.exponent.toFixed(2)), html("td", {}, c.locked === null ? "·" : `${Math.round(100 * c.locked)}%`)));
      table.replaceChildren(html("thead", {}, head), html("tbody", {}, ...body));
      const best = lines.reduce((a, b) => (b[2].mean.at(-1) < a[2].mean.at(-1) ? b : a));
      const limit = data.thresholds[d] ?? data.thresholds[data.d];
      const side = here().ratio === 0 ? "no misspecification" : here().ratio <= limit[0] ? "inside the theorems' condition" : here().ratio >= limit[1] ? "where no algorithm gains from the features in general" : "in the window that no theorem covers";
      say.textContent = `d = ${d}, Δ = ${Delta}, ζ = ${short(zeta, 2)}: ${side}. Least regret: ${best[0]}, ${short(best[2].mean.at(-1))}; always missing by Δ would cost ${short(data.rounds * Delta, 6)} (dotted line).`;
    };

    const draw = () => {
      sliders.column.input.max = data.ratios.length - 1;
      sliders.row.input.max = rows().length - 1;
      sliders.gamma.input.max = data.multiples.length - 1;
      for (const [key, s] of Object.entries(sliders)) {
        s.input.value = state[key];
        s.label.textContent = s.name();
        s.output.textContent = s.text();
        s.input.setAttribute("aria-valuetext", s.text());
      }
      drawGrid();
      drawCurves();
    };
    const change = () => { draw(); write(); };
    refill();
    draw();
    const scrolling = (label, child) => html("div", { class: "phase-scroll", tabindex: "0", role: "region", "aria-label": label }, child);
    addEventListener("hashchange", () => { read(); refill(); draw(); });
    root.replaceChildren(form, html("div", { class: "phase-scroll" }, grid), say, scrolling("Curves", curves), values, scrolling("Numbers", table));
    inView();
  };

  const begin = () => document.querySelectorAll("[data-phase]").forEach(start);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
