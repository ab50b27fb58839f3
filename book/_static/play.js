// Four things to play with: OFUL beside DS-OFUL on the landing page, DS-OFUL round by round, a theorem
// calculator, a regret explorer. Each looks for its container, replaces the static figure or table
// inside, and works offline. What the reader sets goes into the page's address (bookAddress, book.js).
(() => {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";

  const svg = (tag, attributes = {}, ...children) => {
    const node = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const html = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const field = (label, attributes, id) => {
    const input = html("input", { id, ...attributes });
    const output = html("output", { for: id });
    const show = () => (output.textContent = attributes.type === "range" ? input.value : "");
    input.addEventListener("input", show);
    input.show = show;
    show();
    return [html("label", { for: id }, label, " ", input, " ", output), input];
  };
  const choice = (label, options, id) => {
    const select = html("select", { id });
    options.forEach(([value, text]) => select.append(html("option", { value }, text)));
    return [html("label", { for: id }, label, " ", select), select];
  };

  // Take the settings from the page's address, and put them back there whenever they change.
  const remember = (name, form, inputs) => {
    const told = window.bookAddress?.read(name) ?? {};
    for (const [key, input] of Object.entries(inputs)) {
      if (!(key in told)) continue;
      if (input.type === "checkbox") input.checked = told[key] === "1";
      else input.value = told[key];
      input.show?.();
    }
    form.addEventListener("input", () => {
      const values = Object.entries(inputs).map(([key, input]) =>
        [key, input.type === "checkbox" ? Number(input.checked) : input.value]);
      window.bookAddress?.write(name, Object.fromEntries(values));
    });
  };

  // ---- numbers ---------------------------------------------------------------------------------

  const pretty = (x) => {
    if (!Number.isFinite(x)) return "–";
    if (x !== 0 && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5)) {
      const power = Math.floor(Math.log10(Math.abs(x)));
      const digits = String(power).replace(/./g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
      return `${(x / 10 ** power).toFixed(2)} × 10${digits}`;
    }
    return Number.isInteger(x) ? String(x) : x.toPrecision(4).replace(/\.?0+$/, "");
  };

  // A small generator with a seed (mulberry32) and normal deviates by Box and Muller.
  const generator = (seed) => {
    let state = seed >>> 0;
    const uniform = () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    const normal = () =>
      Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
    return { uniform, normal };
  };

  // ---- 1. DS-OFUL in the plane -----------------------------------------------------------------

  const TAU = 1e-9;

  class Game {
    constructor({ Gamma, beta, lam, zeta, seed }) {
      Object.assign(this, { Gamma, beta, zeta });
      this.rng = generator(seed);
      const turn = this.rng.uniform() * 2 * Math.PI;
      this.theta = [Math.cos(turn), Math.sin(turn)];
      this.arms = Array.from({ length: 9 }, (_, i) => {
        const angle = (2 * Math.PI * (i + 0.6 * this.rng.uniform())) / 9;
        return [Math.cos(angle), Math.sin(angle)];
      });
      this.reward = this.arms.map(
        (x) => x[0] * this.theta[0] + x[1] * this.theta[1] + (this.rng.uniform() < 0.5 ? -zeta : zeta),
      );
      this.best = Math.max(...this.reward);
      this.U = [lam, 0, lam]; // u11, u12, u22
      this.b = [0, 0];
      this.history = [];
      this.regret = 0;
    }
    get inverse() {
      const [a, c, e] = this.U;
      const det = a * e - c * c;
      return [e / det, -c / det, a / det];
    }
    get estimate() {
      const [a, c, e] = this.inverse;
      return [a * this.b[0] + c * this.b[1], c * this.b[0] + e * this.b[1]];
    }
    width([x, y]) {
      const [a, c, e] = this.inverse;
      return Math.sqrt(a * x * x + 2 * c * x * y + e * y * y);
    }
    scores() {
      const [s, t] = this.estimate;
      return this.arms.map((x) => x[0] * s + x[1] * t + this.beta * this.width(x));
    }
    step() {
      const scores = this.scores();
      const top = Math.max(...scores);
      const arm = scores.findIndex((s) => s >= top - TAU * (1 + Math.abs(top)));
      const [x, y] = this.arms[arm];
      const width = this.width(this.arms[arm]);
      const kept = width >= this.Gamma * (1 - TAU);
      const noise = 0.5 * this.rng.normal();
      if (kept) {
        const r = this.reward[arm] + noise;
        this.U = [this.U[0] + x * x, this.U[1] + x * y, this.U[2] + y * y];
        this.b = [this.b[0] + r * x, this.b[1] + r * y];
      }
      const loss = this.best - this.reward[arm];
      this.regret += loss;
      this.history.push({ arm, width, kept, loss });
      return this.history.at(-1);
    }
  }

  // ---- OFUL beside DS-OFUL, on the instance that separates them ---------------------------------

  // A cycle: `lessons` rounds that offer only a·e1 and pay ζ (a linear model would say 0), then one test
  // that offers e1, worth nothing, and e2, worth Δ. The two directions never mix, so U is diagonal.
  const INSTANCE = { Delta: 0.5, zeta: 0.1, a: 0.1, lam: 1, beta: 0.7, Gamma: 0.2, noise: 0.05, lessons: 50 };

  class Learner {
    constructor(Gamma, settings) {
      Object.assign(this, settings, { Gamma, U: [settings.lam, settings.lam], b: [0, 0], regret: 0, path: [0], errors: 0 });
    }
    learn(direction, x, reward) {
      if (x / Math.sqrt(this.U[direction]) < this.Gamma * (1 - TAU)) return;
      this.U[direction] += x * x;
      this.b[direction] += x * reward;
    }
    cycle(noises) {
      for (let i = 0; i < this.lessons; i++) this.learn(0, this.a, this.zeta + noises[i]);
      const index = [0, 1].map((i) => this.b[i] / this.U[i] + this.beta / Math.sqrt(this.U[i]));
      const arm = index[1] > index[0] + TAU * (1 + Math.abs(index[0])) ? 1 : 0;
      this.learn(arm, 1, (arm ? this.Delta : 0) + noises[this.lessons]);
      this.regret += arm ? 0 : this.Delta;
      this.errors += arm ? 0 : 1;
      this.path.push(this.regret);
    }
  }

  const separation = (root) => {
    const most = 400;
    const span = 312; // of the axis; the names stand to the right of it, at a phone's size of letters too
    const chart = svg("svg", { viewBox: "0 0 460 306", role: "img", class: "play-race" });
    const say = html("p", { class: "play-say" });
    const again = html("button", { type: "button" }, "Pause");
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    let rng, oful, selecting, timer;
    const begin = () => {
      rng = generator(11);
      oful = new Learner(0, INSTANCE);
      selecting = new Learner(INSTANCE.Gamma, INSTANCE);
    };
    const cycle = () => {
      const noises = Array.from({ length: INSTANCE.lessons + 1 }, () => INSTANCE.noise * rng.normal());
      [oful, selecting].forEach((learner) => learner.cycle(noises));
    };
    const line = (learner, name) => {
      const x = (i) => 46 + (i * span) / most;
      const y = (v) => 262 - (v * 236) / 110;
      const last = learner.path.length - 1;
      const points = learner.path.map((v, i) => `${x(i).toFixed(1)} ${y(v).toFixed(1)}`);
      return [
        svg("path", { d: `M${points.join("L")}`, class: `race-line race-${name}` }),
        svg("circle", { cx: x(last), cy: y(learner.regret), r: 4, class: `race-dot race-${name}` }),
        // above the other's name, however close the curves are
        svg("text", { x: x(last) + 8, y: name === "ds" ? y(learner.regret) - 6 : Math.min(y(learner.regret) + 4, y(selecting.regret) - 28), class: `race-${name}` },
          name === "ds" ? "DS-OFUL" : "OFUL"),
      ];
    };
    const draw = () => {
      const tests = oful.path.length - 1;
      chart.replaceChildren(
        svg("path", { d: "M46 262H450M46 262V14", class: "play-axis" }),
        ...[0, 50, 100].map((v) => svg("text", { x: 40, y: 266 - (v * 236) / 110, "text-anchor": "end" }, String(v))),
        svg("text", { x: 50, y: 22 }, "reward lost so far"),
        ...[0, 200, 400].map((v) => svg("text", { x: 46 + (v * span) / most, y: 280, "text-anchor": "middle" }, String(v))),
        svg("text", { x: 202, y: 301, "text-anchor": "middle" }, "choices made"),
        ...line(oful, "oful"),
        ...line(selecting, "ds"),
      );
      const times = (n) => (n === 1 ? "once" : `${n} times`);
      const text = `After ${tests} choices OFUL was wrong ${times(oful.errors)}, DS\u2011OFUL ${times(selecting.errors)}.`;
      say.textContent = text;
      chart.setAttribute("aria-label", `Reward lost by OFUL and by DS-OFUL, side by side. ${text}`);
    };
    const stop = () => {
      clearInterval(timer);
      timer = undefined;
      again.textContent = oful.path.length > most ? "Run again" : "Go on";
    };
    const go = () => {
      if (oful.path.length > most) begin();
      again.textContent = "Pause";
      timer = setInterval(() => {
        if (document.hidden) return;
        cycle();
        draw();
        if (oful.path.length > most) stop();
      }, 45);
    };
    again.addEventListener("click", () => (timer ? stop() : go()));
    root.replaceChildren(chart, html("div", { class: "play-race-foot" }, say, again));
    begin();
    if (still) {
      while (oful.path.length <= most) cycle();
      stop();
      draw();
    } else {
      draw();
      go();
    }
    root.learners = () => [oful, selecting]; // for tests
  };

  const watch = (root) => {
    const controls = html("form", { class: "play-controls", "aria-label": "Settings of the run" });
    const make = (label, key, attributes) => {
      const [wrap, input] = field(label, { type: "range", ...attributes }, `play-${key}`);
      controls.append(wrap);
      return input;
    };
    const inputs = {
      Gamma: make("threshold Γ", "Gamma", { min: 0, max: 0.6, step: 0.02, value: 0.2 }),
      beta: make("radius β", "beta", { min: 0.2, max: 3, step: 0.1, value: 1.2 }),
      lam: make("regulariser λ", "lam", { min: 0.2, max: 5, step: 0.2, value: 1 }),
      zeta: make("misspecification ζ", "zeta", { min: 0, max: 0.4, step: 0.02, value: 0.1 }),
      seed: make("seed", "seed", { min: 1, max: 50, step: 1, value: 7 }),
    };
    const buttons = html("div", { class: "play-buttons" });
    const button = (text, act) => {
      const node = html("button", { type: "button" }, text);
      node.addEventListener("click", act);
      buttons.append(node);
      return node;
    };
    const plane = svg("svg", { viewBox: "-1.9 -1.9 3.8 3.8", role: "img", class: "play-plane" });
    const strip = svg("svg", { viewBox: "0 0 400 220", role: "img", class: "play-strip" });
    const say = html("p", { "aria-live": "polite", class: "play-say" });
    let game, timer;

    const draw = () => {
      const last = game.history.at(-1);
      const [s, t] = game.estimate;
      const [a, c, e] = game.inverse;
      // Half axes of the ellipsoid {θ : ‖θ − θ_k‖_U ≤ β} are β times the roots of U⁻¹'s eigenvalues.
      const mid = (a + e) / 2;
      const off = Math.hypot((a - e) / 2, c);
      const angle = (Math.atan2(2 * c, a - e) / 2) * (180 / Math.PI);
      plane.replaceChildren(
        svg("circle", { r: 1, class: "play-guide" }),
        svg("ellipse", {
          rx: game.beta * Math.sqrt(mid + off),
          ry: game.beta * Math.sqrt(Math.max(mid - off, 0)),
          transform: `translate(${s} ${-t}) rotate(${-angle})`,
          class: "play-ellipse",
        }),
        ...game.arms.map(([x, y], i) =>
          svg("circle", {
            cx: x,
            cy: -y,
            r: last && last.arm === i ? 0.09 : 0.055,
            class:
              (game.reward[i] === game.best ? "play-best" : "play-arm") +
              (last && last.arm === i ? " play-now" : ""),
          }),
        ),
        svg("path", { d: `M0 0L${game.theta[0]} ${-game.theta[1]}`, class: "play-truth" }),
        svg("circle", { cx: s, cy: -t, r: 0.045, class: "play-estimate" }),
      );
      const shown = game.history.slice(-80);
      const x = (i) => 34 + (i * 358) / 80;
      const y = (w) => 200 - Math.min(w, 1.1) * 170;
      strip.replaceChildren(
        svg("path", { d: "M34 200H396M34 200V10", class: "play-axis" }),
        svg("path", { d: `M34 ${y(game.Gamma)}H396`, class: "play-threshold" }),
        svg("text", { x: 38, y: y(game.Gamma) - 5 }, "Γ"),
        svg("text", { x: 38, y: 16 }, "width of the arm played"),
        svg("text", { x: 392, y: 216, "text-anchor": "end" }, "rounds (last 80)"),
        ...shown.map((h, i) =>
          svg("circle", {
            cx: x(i),
            cy: y(h.width),
            r: 3,
            class: h.kept ? "play-kept" : "play-skipped",
          }),
        ),
      );
      const kept = game.history.filter((h) => h.kept).length;
      const text = last
        ? `Round ${game.history.length}: arm ${last.arm + 1}, width ${last.width.toFixed(3)}, ` +
          `${last.kept ? "kept" : "skipped"}. ${kept} kept so far, regret ${game.regret.toFixed(2)}` +
          `${last.kept ? "" : last.loss > 0 ? "; the skip commits to a wrong arm for ever." : "; the skip commits to the best arm for ever."}`
        : "Round 0: nothing is known yet. Press Step.";
      say.textContent = text;
      plane.setAttribute("aria-label", `The plane with nine arms, θ*, its estimate and the confidence ellipsoid. ${text}`);
      strip.setAttribute("aria-label", `Widths of the arms played against Γ. ${text}`);
    };
    const stop = () => {
      clearInterval(timer);
      timer = undefined;
      run.textContent = "Run";
    };
    // With `rounds`, the new game is played as far as the old one had come.
    const reset = (rounds = 0) => {
      game = new Game(Object.fromEntries(Object.entries(inputs).map(([k, n]) => [k, Number(n.value)])));
      while (game.history.length < rounds) game.step();
      draw();
    };
    const step = () => {
      game.step();
      draw();
    };
    button("Step", step);
    button("20 steps", () => {
      for (let i = 0; i < 20; i++) game.step();
      draw();
    });
    const run = button("Run", () => {
      if (timer) return stop();
      run.textContent = "Pause";
      timer = setInterval(() => (game.history.length < 400 ? step() : stop()), 120);
    });
    button("Start again", () => {
      stop();
      reset();
    });
    controls.addEventListener("input", () => reset(game.history.length));
    remember("watch", controls, inputs);
    controls.addEventListener("submit", (event) => event.preventDefault());
    controls.append(buttons);
    const legend = html("p", { class: "play-legend" });
    legend.innerHTML =
      "<span class='key play-best'></span> best arm <span class='key play-arm'></span> other arms " +
      "<span class='key play-estimate'></span> estimate θ<sub>k</sub> (line: θ*) " +
      "<span class='key play-kept'></span> kept <span class='key play-skipped'></span> skipped";
    root.replaceChildren(controls, html("div", { class: "play-panels" }, plane, strip), legend, say);
    reset();
    root.game = () => game; // for tests
  };

  // ---- 2. The theorems as a calculator ---------------------------------------------------------

  const log = Math.log;
  const log1pexp = (x) => (x > 30 ? x : Math.log1p(Math.exp(x)));

  const known = ({ d, Delta, R, L, B, delta }, repaired) => {
    const logLB = log(L) + log(B);
    const c = repaired ? 12 : 18;
    const iota1 =
      (24 + c * R) * (log(72 + 3 * c * R) + logLB + 0.5 * log(d) - log(Delta)) +
      R * Math.sqrt(8 * log(1 / delta));
    const Gamma = Delta / (2 * Math.sqrt(d) * iota1);
    const iota2 = log(3) + logLB - log(Gamma);
    const grow = (k, withLB) => log1pexp(log(k) + (withLB ? 2 * logLB : 0) - 2 * log(Gamma) + log(iota2));
    const iota3 = grow(16, true) + log(1 / delta);
    const beta = 1 + 4 * Math.sqrt(d * iota2) + R * Math.sqrt(2 * d * iota3);
    return {
      iota1,
      Gamma,
      beta,
      zeta_max: Gamma,
      selections: ((16 * d) / Gamma ** 2) * iota2,
      selections_sharp: ((2.35 * d) / Gamma ** 2) * iota2,
      bound_printed: (32 * beta * Math.sqrt(2 * d ** 3 * iota2 * grow(16 * d, false)) * iota1) / Delta,
      bound_gap: (8 * d * (beta + 1) ** 2 * grow(16, true)) / Delta,
      bound_sharp: (d * (4 * (beta + 1) ** 2 + 0.5) * grow(2.35, true)) / Delta,
    };
  };

  const unknown = ({ d, Delta, R, L, B, delta }, repaired) => {
    const logLB = log(L) + log(B);
    const iota1 = (l) => log(3) + logLB + l * log(2);
    const iota2 = (l) => {
      const first = l * log(2);
      const second = log(16) + 2 * logLB + 3 * l * log(2) + log(iota1(l)) - (repaired ? 0 : log(d));
      return Math.max(first, second) + Math.log1p(Math.exp(-Math.abs(first - second))) - log(delta);
    };
    const radius = (l) => 1 + R * Math.sqrt(2 * d * iota2(l));
    let level = 1;
    while (!(level * log(2) > log((8 * radius(level)) / Delta))) level += 1;
    const beta = radius(level);
    return {
      l_Delta: level,
      beta,
      zeta_max: Delta / (4 * level * (1 + 4 * Math.sqrt(d * iota1(level)))),
      bound: ((repaired ? 1018 : 2560) * d * beta ** 2 * iota1(level)) / Delta,
    };
  };

  const lower = ({ d, Delta, arms }) => {
    const epsilon = Math.sqrt((4 * log(arms)) / d); // no two of the vectors are nearer to parallel
    return {
      zeta_printed: d > 1 ? 3 * Delta * Math.sqrt((8 * log(arms)) / (d - 1)) : NaN,
      zeta_repaired: 3 * Delta * epsilon,
      zeta_scaled: (3 * Delta) / (1 + 1 / Math.min(1, epsilon)), // around θ/(1 + ε)
    };
  };

  const calculator = (root) => {
    const form = html("form", { class: "play-controls", "aria-label": "Parameters of the theorems" });
    const names = [
      ["d", "dimension d", 16, 1, 1e6, 1],
      ["Delta", "gap Δ", 0.18, 1e-6, 1, "any"],
      ["R", "noise R", 1, 0, 1e3, "any"],
      ["L", "norm bound L", 1, 1, 1e6, "any"],
      ["B", "norm bound B", 1, 1, 1e6, "any"],
      ["delta", "failure probability δ", 0.01, 1e-300, 0.999, "any"],
      ["zeta", "misspecification ζ", 0.02, 0, 10, "any"],
      ["arms", "arms |D|", 100, 2, 1e12, 1],
    ];
    const inputs = {};
    for (const [key, label, value, min, max, step] of names) {
      const [wrap, input] = field(label, { type: "number", value, min, max, step }, `calc-${key}`);
      inputs[key] = input;
      form.append(wrap);
    }
    const out = html("div", { class: "play-out", "aria-live": "polite" });
    const update = () => {
      const wrong = Object.values(inputs).find((input) => !input.checkValidity() || input.value === "");
      if (wrong) {
        out.replaceChildren(
          html("p", { role: "alert" }, `${wrong.labels[0].textContent.trim()}: ${wrong.validationMessage}`),
        );
        return;
      }
      const p = Object.fromEntries(Object.entries(inputs).map(([k, n]) => [k, Number(n.value)]));
      const [a, b, c, e, f] = [known(p, false), known(p, true), unknown(p, false), unknown(p, true), lower(p)];
      const covers = (limit, strict) => ((strict ? p.zeta < limit : p.zeta <= limit) ? "yes" : "no");
      const rows = [
        ["DS-OFUL: threshold Γ", a.Gamma, b.Gamma],
        ["DS-OFUL: radius β", a.beta, b.beta],
        ["DS-OFUL: largest ζ", a.zeta_max, b.zeta_max],
        ["DS-OFUL: does it cover your ζ?", covers(a.zeta_max), covers(b.zeta_max)],
        ["DS-OFUL: rounds it may keep", a.selections, b.selections_sharp],
        ["DS-OFUL: regret bound", a.bound_printed, b.bound_sharp],
        ["SupLinUCB: level l_Δ", c.l_Delta, e.l_Delta],
        ["SupLinUCB: radius β(l_Δ)", c.beta, e.beta],
        ["SupLinUCB: ζ must be below", c.zeta_max, e.zeta_max],
        ["SupLinUCB: does it cover your ζ?", covers(c.zeta_max, true), covers(e.zeta_max, true)],
        ["SupLinUCB: regret bound", c.bound, e.bound],
        ["Lower bound: applies from ζ", f.zeta_printed, f.zeta_scaled],
        ["Lower bound: does it apply?", p.zeta >= f.zeta_printed ? "yes" : "no", p.zeta >= f.zeta_scaled && p.Delta <= 0.5 ? "yes" : "no"],
      ];
      const head = html("tr", {}, ...["", "as printed", "as repaired"].map((t) => html("th", { scope: "col" }, t)));
      const body = rows.map(([name, x, y]) =>
        html("tr", {}, html("th", { scope: "row" }, name), ...[x, y].map((v) => html("td", {}, typeof v === "number" ? pretty(v) : v))),
      );
      out.replaceChildren(html("table", { class: "table play-table" }, html("thead", {}, head), html("tbody", {}, ...body)));
      root.result = { known: [a, b], unknown: [c, e], lower: f }; // for tests
    };
    remember("calculator", form, inputs);
    form.addEventListener("input", update);
    form.addEventListener("submit", (event) => event.preventDefault());
    root.replaceChildren(form, out);
    update();
  };

  // ---- 3. Regret explorer ----------------------------------------------------------------------

  // Data: {rounds, facets: {key: label}, start: {key: value}, curves: [{name, color, dash, runs, locked, mean,
  // median, low, high, and a value for each facet, or "any" where the facet does not apply}]}
  const explorer = (root) => {
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const form = html("form", { class: "play-controls", "aria-label": "What to show" });
    const selects = {};
    for (const [key, label] of Object.entries(data.facets)) {
      const values = [...new Set(data.curves.map((c) => c[key]))].filter((v) => v !== "any").sort((a, b) => a - b);
      const [wrap, select] = choice(label, values.map((v) => [v, String(v)]), `explore-${key}`);
      if (data.start && key in data.start) select.value = data.start[key];
      selects[key] = select;
      form.append(wrap);
    }
    const [wrapStat, stat] = choice("statistic", [["mean", "mean"], ["median", "median"]], "explore-stat");
    const [wrapScale, scale] = choice("vertical axis", [["log", "logarithmic"], ["linear", "linear"]], "explore-scale");
    const bands = html("input", { type: "checkbox", id: "explore-bands" });
    form.append(wrapStat, wrapScale, html("label", { for: "explore-bands" }, "middle 80% of runs ", bands));
    const chart = svg("svg", { viewBox: "0 0 800 380", role: "img", class: "play-chart" });
    const table = html("div", { class: "play-out", "aria-live": "polite" });
    const box = { left: 62, right: 590, top: 14, bottom: 330 };
    let shown = [];
    let hovered; // index of the round under the pointer
    const update = () => {
      shown = data.curves.filter((c) =>
        Object.entries(selects).every(([key, select]) => c[key] === "any" || String(c[key]) === select.value),
      );
      const most = Math.max(1e-9, ...shown.flatMap((c) => (c.low && bands.checked ? [...c[stat.value], ...c.high] : c[stat.value])));
      // Round numbers: steps of 1, 2 or 5 times a power of ten, or powers of ten.
      const unit = 10 ** Math.floor(Math.log10(most / 4));
      const step = [1, 2, 5, 10].find((k) => 5 * k * unit >= most) * unit;
      const tall = scale.value === "log" ? Math.ceil(Math.log10(most)) : Math.ceil(most / step);
      const top = scale.value === "log" ? 10 ** tall : tall * step;
      const low = scale.value === "log" ? 10 ** Math.max(0, tall - 4) : 0;
      const fx = (k) => box.left + ((box.right - box.left) * k) / data.rounds.at(-1);
      const fy = (v) => {
        const share = scale.value === "log" ? log(Math.max(v, low) / low) / log(top / low) : v / top;
        return box.bottom - (box.bottom - box.top) * share;
      };
      const ticks = scale.value === "log"
        ? Array.from({ length: Math.round(Math.log10(top / low)) + 1 }, (_, i) => low * 10 ** i)
        : Array.from({ length: tall + 1 }, (_, i) => i * step);
      chart.replaceChildren(
        svg("path", { d: `M${box.left} ${box.bottom}H${box.right}M${box.left} ${box.bottom}V${box.top}`, class: "play-axis" }),
        ...ticks.flatMap((v) => [
          svg("path", { d: `M${box.left} ${fy(v)}H${box.right}`, class: "play-grid" }),
          svg("text", { x: box.left - 6, y: fy(v) + 4, "text-anchor": "end" }, Number(v.toPrecision(6)).toLocaleString("en-GB")),
        ]),
        ...[0, 0.5, 1].map((s) =>
          svg("text", { x: fx(s * data.rounds.at(-1)), y: box.bottom + 18, "text-anchor": "middle" }, (s * data.rounds.at(-1)).toLocaleString("en-GB")),
        ),
        svg("text", { x: (box.left + box.right) / 2, y: box.bottom + 42, "text-anchor": "middle" }, "round"),
        ...shown.flatMap((c) => {
          const points = c[stat.value].map((v, i) => `${fx(data.rounds[i]).toFixed(1)} ${fy(v).toFixed(1)}`);
          const band = c.low && bands.checked
            ? [svg("path", {
                d: `M${c.high.map((v, i) => `${fx(data.rounds[i]).toFixed(1)} ${fy(v).toFixed(1)}`).join("L")}L${c.low
                  .map((v, i) => `${fx(data.rounds[i]).toFixed(1)} ${fy(v).toFixed(1)}`).reverse().join("L")}Z`,
                fill: c.color, "fill-opacity": 0.15,
              })]
            : [];
          return [...band, svg("path", { d: `M${points.join("L")}`, fill: "none", stroke: c.color, "stroke-width": 2, "stroke-dasharray": c.dash || "none" })];
        }),
        ...legend(hovered === undefined ? shown : [...shown].sort((a, b) => b[stat.value][hovered] - a[stat.value][hovered])),
        ...(hovered === undefined ? [] : [
          svg("path", { d: `M${fx(data.rounds[hovered])} ${box.bottom}V${box.top}`, class: "play-rule" }),
          svg("text", { x: fx(data.rounds[hovered]), y: box.bottom + 18, "text-anchor": "middle", class: "play-hover" }, `round ${data.rounds[hovered].toLocaleString("en-GB")}`),
          ...shown.map((c) => svg("circle", { cx: fx(data.rounds[hovered]), cy: fy(c[stat.value][hovered]), r: 3.5, fill: c.color })),
        ]),
      );
      const head = html("tr", {}, ...["algorithm", "final mean", "final median", "runs on a wrong arm", "runs"].map((t) => html("th", { scope: "col" }, t)));
      const rows = shown.map((c) => html("tr", {}, html("th", { scope: "row" }, c.name),
        html("td", {}, pretty(c.mean.at(-1))), html("td", {}, pretty(c.median.at(-1))),
        html("td", {}, `${(100 * c.locked).toFixed(1)}%`), html("td", {}, String(c.runs))));
      table.replaceChildren(html("table", { class: "table play-table" }, html("thead", {}, head), html("tbody", {}, ...rows)));
      chart.setAttribute("aria-label", `Cumulative regret (${stat.value}); the table below has the final values.`);
    };
    // Names beside the chart; while the pointer is on it, in the order of their values there.
    const legend = (curves) => curves.map((c, i) => svg("g", {},
      svg("path", { d: `M598 ${24 + 24 * i}h26`, stroke: c.color, "stroke-width": 2.5, "stroke-dasharray": c.dash || "none" }),
      svg("text", { x: 630, y: 28 + 24 * i }, hovered === undefined ? c.name : `${c.name}: ${pretty(c[stat.value][hovered])}`)));
    chart.addEventListener("pointermove", (event) => {
      const frame = chart.getBoundingClientRect();
      const share = ((event.clientX - frame.left) * (800 / frame.width) - box.left) / (box.right - box.left);
      const wanted = share * data.rounds.at(-1);
      const nearest = data.rounds.reduce((best, k, i) => (Math.abs(k - wanted) < Math.abs(data.rounds[best] - wanted) ? i : best), 0);
      const now = share < -0.02 || share > 1.02 ? undefined : nearest;
      if (now !== hovered) {
        hovered = now;
        update();
      }
    });
    chart.addEventListener("pointerleave", () => {
      hovered = undefined;
      update();
    });
    remember("explorer", form, { ...selects, statistic: stat, axis: scale, bands });
    form.addEventListener("input", update);
    form.addEventListener("submit", (event) => event.preventDefault());
    root.replaceChildren(form, html("div", { class: "play-scroll", tabindex: "0", role: "region", "aria-label": "Chart" }, chart), table);
    update();
    root.shown = () => table.innerText; // for tests
  };

  const start = () => {
    const kinds = { separation, watch, calculator, explorer };
    document.querySelectorAll("[data-play]").forEach((root) => kinds[root.dataset.play](root));
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
