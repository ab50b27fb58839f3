// The book's search: as one types, places on pages, each with the words around the hit.
(() => {
  "use strict";
  const GREEK = { alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ε", zeta: "ζ", eta: "η", theta: "θ", iota: "ι", lambda: "λ", sigma: "σ", tau: "τ", omega: "ω" };
  // A reader who types a printed number has the paper open: its rows come before the book's own.
  const PRINTED = /^(?:theorem|lemma|corollary|definition|assumption|equation|algorithm|table|figure|remark|proposition)\s+\(?[a-z]?[\d.]/;
  const PAPERS = /^book\/(?:paper-numbers|claims-ledger|errata)\.html/;
  // A reader who types a name of the package, bl.simulate( say, wants to know what it does.
  const named = (phrase) => `api-${phrase.replace(/\(.*/, "").split(".").pop().replaceAll("_", "-")}`;
  const ROOT = document.documentElement.dataset.content_root ?? "../";
  const MOST = 12;

  const plain = (text) => text.toLowerCase().replace(/[‐‑–—−]/g, "-");
  const spelt = (query) => plain(query.trim()).replace(/^eq\.?\s+/, "equation ");
  const tokens = (query) => spelt(query).split(/[\s,;]+/).filter(Boolean);
  const forms = (word) => (GREEK[word] ? [word, GREEK[word]] : [word]);

  let loading;
  const index = () => {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${ROOT}_static/search-index.js`;
      script.onload = () => resolve(window.bookSearchIndex.flatMap((page, place) =>
        page.entries.map(([anchor, title, text]) => ({ page, place, anchor, title, text, low: plain(text), lowTitle: plain(title) }))));
      script.onerror = () => reject(new Error("the index could not be loaded"));
      document.head.append(script);
    });
    return loading;
  };

  // Every word must occur; whole words, titles and the phrase as typed count more.
  const score = (entry, words, phrase) => {
    let sum = 0;
    for (const word of words) {
      let best = 0;
      for (const form of forms(word)) {
        const at = entry.low.indexOf(form);
        if (at < 0) continue;
        const starts = at === 0 || /[^\p{L}\p{N}.]/u.test(entry.low[at - 1]);
        const ends = /[^\p{L}\p{N}]|^$/u.test(entry.low[at + form.length] ?? "");
        best = Math.max(best, 1 + 2 * starts + 2 * (starts && ends) + (entry.lowTitle.includes(form) ? 6 : 0));
      }
      if (!best) return 0;
      sum += best;
    }
    if (words.length > 1 && entry.low.includes(phrase)) sum += 8;
    if (entry.lowTitle.startsWith(phrase)) {
      // the thing itself, Theorem 6.1 (thm:lower), before its parts: Theorem 6.1, first regime
      sum += /^(?: \(| [a-z]+:|$)/.test(entry.lowTitle.slice(phrase.length)) ? 14 : 10;
    }
    if (PRINTED.test(phrase) && PAPERS.test(entry.page.url) && entry.lowTitle.includes(phrase)) sum += 20;
    if (entry.anchor === named(phrase)) sum += 30;
    return sum + 3 / (1 + entry.text.length / 400);
  };

  const excerpt = (entry, words, phrase) => {
    const spots = [phrase, ...words.flatMap(forms)].map((w) => entry.low.indexOf(w)).filter((i) => i >= 0);
    const near = Math.max(0, (spots[0] ?? 0) - 60);
    const from = near && entry.text.indexOf(" ", near) + 1; // a whole word first, and last
    const piece = entry.text.slice(from, from + 190).replace(from + 190 < entry.text.length ? /\s\S*$/ : /$^/, "");
    const node = document.createElement("p");
    const pattern = words.flatMap(forms).map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
    let last = 0;
    node.append(from > 0 ? "… " : "");
    for (const match of plain(piece).matchAll(new RegExp(pattern, "gu"))) {
      const mark = document.createElement("mark");
      mark.textContent = piece.slice(match.index, match.index + match[0].length);
      node.append(piece.slice(last, match.index), mark);
      last = match.index + match[0].length;
    }
    node.append(piece.slice(last), from + 190 < entry.text.length ? " …" : "");
    return node;
  };

  const find = async (query) => {
    const words = tokens(query);
    if (!words.length) return [];
    const phrase = spelt(query);
    return (await index())
      .map((entry) => ({ entry, points: score(entry, words, phrase) }))
      .filter(({ points }) => points > 0)
      .sort((a, b) => b.points - a.points || a.entry.place - b.entry.place)
      .map(({ entry }) => ({ entry, words, phrase }));
  };

  const link = ({ entry, words, phrase }) => {
    const node = document.createElement("a");
    node.href = `${ROOT}${entry.page.url}#${entry.anchor}`;
    const title = document.createElement("strong");
    title.textContent = entry.title;
    const where = document.createElement("span");
    where.textContent = entry.title === entry.page.title ? "" : ` ${entry.page.title}`;
    node.append(title, where, excerpt(entry, words, phrase));
    return node;
  };

  const show = async (query, list, most) => {
    let hits;
    try {
      hits = await find(query);
    } catch (error) {
      list.textContent = `Search: ${error.message}.`;
      return;
    }
    const said = document.createElement("p");
    said.className = "search-count";
    said.textContent = query.trim() ? `${hits.length || "No"} place${hits.length === 1 ? "" : "s"}` : "";
    list.replaceChildren(said, ...hits.slice(0, most).map(link));
  };

  const attach = (form, most) => {
    const input = form.querySelector("input[name=q]");
    const list = document.createElement("div");
    list.className = "search-hits";
    list.setAttribute("aria-live", "polite");
    form.after(list);
    input.setAttribute("autocomplete", "off");
    input.placeholder = "Search: Lemma C.4, 405.4, zeta, OFUL …";
    let asked = 0;
    const update = async () => {
      const mine = ++asked;
      const box = document.createElement("div");
      await show(input.value, box, most);
      if (mine === asked) list.replaceChildren(...box.childNodes);
    };
    input.addEventListener("input", update);
    input.addEventListener("focus", () => index().catch(() => {}));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      list.querySelector("a")?.click();
    });
    const move = (event) => {
      const stops = [input, ...list.querySelectorAll("a")];
      const at = stops.indexOf(document.activeElement);
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || at < 0) return;
      event.preventDefault();
      stops[Math.min(stops.length - 1, Math.max(0, at + step))].focus();
    };
    [form, list].forEach((node) => node.addEventListener("keydown", move));
    list.addEventListener("click", (event) => event.target.closest("a") && form.closest("dialog")?.close());
    return { input, update };
  };

  const start = () => {
    const dialog = document.querySelector("#pst-search-dialog form");
    if (dialog) attach(dialog, MOST);
    const page = document.querySelector("#search-results");
    if (!page) return;
    const own = document.querySelector("main form.bd-search, main form");
    if (!own) return;
    const { input, update } = attach(own, 60);
    input.value = new URLSearchParams(location.search).get("q") ?? "";
    update();
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
  window.bookSearch = find; // for tests
})();
