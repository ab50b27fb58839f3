// What scrolls sideways must be reachable from the keyboard.
document.addEventListener("DOMContentLoaded", () => {
  const boxes = "div.math, mjx-container, .pst-scrollable-table-container, .bl-figure, .cell_output, .play-out, .highlight pre, .output pre";
  const mark = () => {
    document.querySelectorAll(boxes).forEach((box) => {
      const scrolls = box.scrollWidth > box.clientWidth + 1;
      if (scrolls) box.setAttribute("tabindex", "0");
      else if (box.matches("mjx-container")) box.removeAttribute("tabindex");
    });
  };
  // Formulas are typeset some time after the page has come.
  const typeset = () => window.MathJax?.startup?.promise?.then(mark);
  window.addEventListener("load", () => { mark(); typeset(); });
  window.addEventListener("resize", mark);
  typeset();
});
