// What scrolls sideways must be reachable from the keyboard, and show that there is more.
document.addEventListener("DOMContentLoaded", () => {
  const stops = "div.math, mjx-container, .pst-scrollable-table-container, .bl-figure, .cell_output, .play-out, .highlight pre, .output pre";
  const shaded = ".bl-figure, .bl-table, .pst-scrollable-table-container, .phase-scroll, .play-scroll, .highlight pre";
  const scrolls = (box) => box.scrollWidth > box.clientWidth + 1;
  const mark = () => {
    document.querySelectorAll(stops).forEach((box) => {
      if (scrolls(box)) box.setAttribute("tabindex", "0");
      else if (box.matches("mjx-container")) box.removeAttribute("tabindex");
    });
    document.querySelectorAll(shaded).forEach((box) => box.classList.toggle("scrolls", scrolls(box)));
  };
  // Formulas are typeset some time after the page has come.
  const typeset = () => window.MathJax?.startup?.promise?.then(mark);
  window.addEventListener("load", () => { mark(); typeset(); });
  window.addEventListener("resize", mark);
  typeset();
});
