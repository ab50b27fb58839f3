// What a reader sets in a widget stands in the page's address, so that it can be shared: ?watch.Gamma=0.2
window.bookAddress = {
  read(name) {
    const pairs = [...new URLSearchParams(location.search)].filter(([key]) => key.startsWith(`${name}.`));
    return Object.fromEntries(pairs.map(([key, value]) => [key.slice(name.length + 1), value]));
  },
  write(name, values) {
    const search = new URLSearchParams(location.search);
    for (const [key, value] of Object.entries(values)) search.set(`${name}.${key}`, value);
    try {
      history.replaceState(null, "", `?${search}${location.hash}`);
    } catch {
      // A page opened from a file may not change its address.
    }
  },
};

// What scrolls sideways must be reachable from the keyboard, and show that there is more.
document.addEventListener("DOMContentLoaded", () => {
  const stops = "div.math, mjx-container, .pst-scrollable-table-container, .bl-figure, .cell_output, .play-out, .highlight pre, .output pre";
  const shaded = ".bl-figure, .bl-table, .pst-scrollable-table-container, .phase-scroll, .play-scroll, .play-out, .highlight pre, div.math, mjx-container";
  const scrolls = (box) => box.scrollWidth > box.clientWidth + 1;
  const markIn = (root) => {
    // Measure everything, then write: by turns, every write would lay the page out again.
    const measured = (boxes) => [...root.querySelectorAll(boxes)].map((box) => [box, scrolls(box)]);
    const [reached, shown] = [measured(stops), measured(shaded)];
    reached.forEach(([box, wide]) => {
      if (wide) box.setAttribute("tabindex", "0");
      else if (box.matches("mjx-container")) box.removeAttribute("tabindex");
    });
    shown.forEach(([box, wide]) => box.classList.toggle("scrolls", wide));
  };
  const mark = () => markIn(document);
  window.bookMarkScrolling = markIn; // for what is put on the page later
  // Formulas are typeset some time after the page has come.
  const typeset = () => window.MathJax?.startup?.promise?.then(mark);
  window.addEventListener("load", () => { mark(); typeset(); });
  window.addEventListener("resize", mark);
  document.addEventListener("toggle", mark, true); // what was folded had no width until now
  typeset();
});
