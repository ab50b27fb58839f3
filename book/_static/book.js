// What scrolls sideways must be reachable from the keyboard, and show that there is more.
document.addEventListener("DOMContentLoaded", () => {
  const stops = "div.math, mjx-container, .pst-scrollable-table-container, .bl-figure, .cell_output, .play-out, .highlight pre, .output pre";
  const shaded = ".bl-figure, .bl-table, .pst-scrollable-table-container, .phase-scroll, .play-scroll, .highlight pre";
  const scrolls = (box) => box.scrollWidth > box.clientWidth + 1;
  const mark = () => {
    // Measure everything, then write: by turns, every write would lay the page out again.
    const measured = (boxes) => [...document.querySelectorAll(boxes)].map((box) => [box, scrolls(box)]);
    const [reached, shown] = [measured(stops), measured(shaded)];
    reached.forEach(([box, wide]) => {
      if (wide) box.setAttribute("tabindex", "0");
      else if (box.matches("mjx-container")) box.removeAttribute("tabindex");
    });
    shown.forEach(([box, wide]) => box.classList.toggle("scrolls", wide));
  };
  // Formulas are typeset some time after the page has come.
  const typeset = () => window.MathJax?.startup?.promise?.then(mark);
  window.addEventListener("load", () => { mark(); typeset(); });
  window.addEventListener("resize", mark);
  typeset();
});
