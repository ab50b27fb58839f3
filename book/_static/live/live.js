// A chapter that runs in the page: its cells become editable, a worker runs them in order, output appears beneath.
// `open` is called on the first click; the chapter's cells and packages stand in chapters/NAME.json.

const KEYWORDS = "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield match case".split(" ");
const TOKEN = /(?<c1>#[^\n]*)|(?<s2>[rbfuRBFU]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(?<mf>\b\d[\w.]*(?:(?<=[eE])[+-]\d+)?)|(?<word>[^\W\d]\w*)|(?<o>[-+*/%@&|^~<>=!]+)/gu;
const escape = (text) => text.replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);

// Colours for the words of a cell, in the classes that the pages' own code has.
function painted(source) {
  let out = "", end = 0, before = "";
  for (const found of source.matchAll(TOKEN)) {
    out += escape(source.slice(end, found.index));
    end = found.index + found[0].length;
    let [name] = Object.entries(found.groups).find(([, text]) => text !== undefined);
    if (name === "word") name = KEYWORDS.includes(found[0]) ? "k" : before === "def" || before === "class" ? "nf" : "n";
    before = found[0];
    out += `<span class="${name}">${escape(found[0])}</span>`;
  }
  return out + escape(source.slice(end)) + "\n";
}

const make = (tag, name, text) => {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
};
const button = (text, action) => {
  const element = make("button", "live-button", text);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
};
const seconds = (value) => (value < 10 ? value.toFixed(1) : Math.round(value)) + " s";
const listed = (names) => names.join(", ").replace(/, ([^,]*)$/, " and $1");

class Cell {
  constructor(chapter, number, source, input) {
    Object.assign(this, { chapter, number, source, input, state: "new" });
    if (input) this.makeEditable();
  }

  get text() { return this.area ? this.area.value : this.source; }

  makeEditable() {
    const box = this.input.querySelector(".highlight"), old = box.querySelector("pre");
    this.box = this.input.closest(".cell");
    this.paint = make("pre");
    this.paint.setAttribute("aria-hidden", "true");
    this.area = make("textarea");
    this.area.value = this.source;
    for (const [name, value] of Object.entries({ spellcheck: "false", autocapitalize: "off", autocomplete: "off", autocorrect: "off", wrap: "off" })) this.area.setAttribute(name, value);
    this.area.setAttribute("aria-label", `Cell ${this.number + 1}. Shift and Enter run it. Escape, then Tab, leaves it.`);
    this.area.addEventListener("input", () => this.repaint());
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.area.addEventListener("blur", () => { this.free = false; });
    const code = make("div", "live-code");
    code.append(this.paint, this.area);
    old.replaceWith(code);
    this.runButton = button("Run", () => this.chapter.run(this));
    this.runButton.setAttribute("aria-label", `Run cell ${this.number + 1}`);
    this.undoButton = button("Undo changes", () => { this.area.value = this.source; this.repaint(); });
    this.note = make("span", "live-note");
    this.row = make("div", "live-row");
    this.row.append(this.runButton, this.undoButton, this.note);
    this.out = make("div", "live-shown");
    const fold = this.box.querySelector(":scope > details.above-input");
    const after = fold && !this.box.matches(".tag_hide-cell") ? fold : this.input;
    after.after(this.row, this.out);
    this.repaint();
  }

  repaint() {
    this.paint.innerHTML = painted(this.area.value);
    this.undoButton.hidden = this.area.value === this.source;
    if (this.state === "done" && this.area.value !== this.ran) this.note.textContent = "changed since it ran";
  }

  key(event) {
    const { key, shiftKey, ctrlKey, metaKey } = event;
    if (key === "Escape") this.free = true;
    else if (key === "Enter" && (shiftKey || ctrlKey || metaKey)) {
      this.chapter.run(this);
      if (shiftKey) this.chapter.after(this)?.area.focus();
    } else if (key === "Enter") {
      const line = this.area.value.slice(0, this.area.selectionStart).split("\n").pop();
      this.type("\n" + line.match(/^ */)[0] + (/:\s*$/.test(line) ? "    " : ""));
    } else if (key === "Tab" && !this.free && !shiftKey) this.type("    ");
    else return;
    event.preventDefault();
  }

  // Through the browser's own editing, so that its undo knows of it.
  type(text) {
    if (!document.execCommand("insertText", false, text)) {
      this.area.setRangeText(text, this.area.selectionStart, this.area.selectionEnd, "end");
      this.repaint();
    }
  }

  set(state, words = "") {
    this.state = state;
    if (!this.input) return;
    this.note.textContent = words;
    this.row.dataset.state = state;
  }

  begin() {
    this.set("running", "running …");
    if (!this.input) return;
    this.out.replaceChildren();
    this.printed = "";
    this.ran = this.area.value;
    const book = [...this.box.querySelectorAll(".cell_output")].find((e) => !e.closest(".live-book"));
    if (book) {
      const fold = make("details", "live-book");
      fold.append(make("summary", "", "What the book shows here"));
      book.replaceWith(fold);
      fold.append(book);
      this.book = book;
    }
  }

  add(kind, text) {
    if (!this.input) return;
    if (kind === "html") {
      const shown = make("div", "output text_html");
      shown.innerHTML = text;
      this.out.append(shown);
      this.printed = null;
    } else if (kind === "png") {
      const picture = make("img");
      picture.alt = "The figure that this cell drew";
      picture.src = `data:image/png;base64,${text}`;
      this.out.append(picture);
      this.printed = null;
    } else if (kind === "missing") {
      this.out.append(make("p", "live-missing", this.chapter.without(text)));
    } else {
      let last = this.out.lastElementChild;
      if (last?.dataset.kind !== kind) {
        last = make("pre", `live-text live-${kind}`);
        last.dataset.kind = kind;
        last.tabIndex = 0;
        this.out.append(last);
      }
      last.textContent += text;
      if (this.printed !== null) this.printed += text;
    }
  }

  end(good, time) {
    const words = [good ? "" : "stopped with an error", seconds(time)];
    if (good && this.printed && this.book && this.text === this.source) {
      const texts = [...this.book.querySelectorAll("pre")].map((pre) => pre.textContent);
      if (texts.join("").trim() === this.printed.trim()) words.push("the same as in the book");
    }
    this.set(good ? "done" : "failed", words.filter(Boolean).join(" · "));
  }
}

class Chapter {
  constructor(bar, data) {
    Object.assign(this, { bar, data, queue: [], state: "off" });
    const inputs = [...document.querySelectorAll(".bd-article div.cell_input")];
    this.cells = data.cells.map((source, i) => new Cell(this, i, source, inputs[data.shown.indexOf(i)]));
    this.words = bar.querySelector(".live-words");
    this.clock = make("span", "live-clock");
    this.clock.setAttribute("aria-hidden", "true");
    this.all = bar.querySelector("button");
    this.all.textContent = "Run all cells";
    this.all.addEventListener("click", () => this.run(this.cells.at(-1)));
    this.stopButton = button("Stop", () => this.stop());
    this.all.after(this.stopButton);
    this.words.after(this.clock);
    bar.classList.add("live-on");
    bar.after(make("p", "live-about", this.about()));
    setInterval(() => this.tick(), 200);
  }

  say(text) { this.words.textContent = text; }
  tick() { this.clock.textContent = this.since && this.state !== "ready" ? seconds((performance.now() - this.since) / 1000) : ""; }
  about() {
    const { absent, seconds: time } = this.data;
    const parts = ["Change any cell and run it; the cells above it run first. Shift and Enter run a cell and go to the next."];
    if (time > 5) parts.push(`The book’s own run of all cells took ${seconds(time)}; here it takes several times as long.`);
    if (absent.length) parts.push(`Left out here: ${listed(absent)}.`);
    return parts.join(" ");
  }
  after(cell) { return this.cells.slice(cell.number + 1).find((other) => other.input); }

  without(name) {
    const where = this.data.absent.includes(name) ? `This copy of the site was built without ${name}` : `${name} is not among the packages of this page`;
    return `${where}: a cell that needs it cannot run here. Cells that do not need it can.`;
  }

  start() {
    this.since = performance.now();
    this.state = "starting";
    this.now = "";
    this.stopButton.disabled = false;
    this.bar.dataset.state = "busy";
    this.worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }) => this[`on_${data.type}`](data);
    this.worker.onerror = (event) => { event.preventDefault(); this.on_broken({ text: event.message || "its files did not come" }); };
    this.worker.postMessage({ task: "start", packages: this.data.start });
  }

  // A cell, and before it all those above it that have not run.
  run(cell) {
    const due = this.cells.filter((other) => other === cell ? other.state !== "running" : other.number < cell.number && other.state === "new");
    for (const one of due) if (!this.queue.includes(one)) { this.queue.push(one); one.set("waiting", "waiting"); }
    this.queue.sort((a, b) => a.number - b.number);
    if (this.state === "off") this.start();
    this.next();
  }

  next() {
    if (this.state !== "ready") return;
    const cell = this.queue[0];
    if (!cell) return this.rest();
    this.queue.shift();
    this.state = "running";
    this.since = performance.now();
    this.bar.dataset.state = "busy";
    this.now = `Cell ${cell.number + 1} of ${this.cells.length}`;
    this.say(this.now);
    cell.begin();
    this.worker.postMessage({ task: "run", cell: cell.number, source: cell.text });
  }

  rest() {
    this.bar.dataset.state = "ready";
    this.say("Ready");
  }

  on_stage({ text }) { this.say([this.now, text && `loading ${text} …`].filter(Boolean).join(": ")); }
  on_ready({ version }) { this.state = "ready"; this.bar.dataset.python = version; this.next(); }
  on_output({ cell, kind, text }) { this.cells[cell].add(kind, text); }
  on_done({ cell, good, seconds: time }) {
    this.cells[cell].end(good, time);
    this.state = "ready";
    if (!good) this.forget();
    this.next();
  }
  on_broken({ text }) {
    this.halt();
    this.say(`Python could not go on: ${text}. Running a cell starts it anew.`);
  }

  forget() {
    this.queue.forEach((cell) => cell.set("new"));
    this.queue = [];
  }

  halt() {
    this.worker?.terminate();
    this.worker = null;
    this.state = "off";
    this.since = 0;
    this.bar.dataset.state = "off";
    this.stopButton.disabled = true;
    this.forget();
    this.cells.forEach((cell) => cell.set("new", cell.state === "running" ? "stopped" : ""));
  }

  stop() {
    this.halt();
    this.say("Stopped. What the cells had computed is lost; your changes to their text are kept. Running a cell starts Python anew.");
  }
}

export async function open(bar) {
  const style = make("link");
  style.rel = "stylesheet";
  style.href = new URL("cells.css", import.meta.url);
  const styled = new Promise((done) => { style.onload = style.onerror = done; });
  document.head.append(style);
  const answer = await fetch(new URL(`chapters/${bar.dataset.chapter}.json`, import.meta.url));
  if (!answer.ok) throw new Error(`the chapter’s cells: ${answer.status}`);
  const [data] = await Promise.all([answer.json(), styled]);
  const chapter = new Chapter(bar, data);
  chapter.run(chapter.cells[0]);
}
