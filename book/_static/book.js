// What scrolls sideways must be reachable from the keyboard.
document.addEventListener("DOMContentLoaded", () => {
  const mark = () => {
    document.querySelectorAll("div.math, .pst-scrollable-table-container, .bl-figure, .cell_output, .highlight pre, .output pre").forEach((box) => {
      if (box.scrollWidth > box.clientWidth + 1) box.setAttribute("tabindex", "0");
    });
  };
  window.addEventListener("load", mark);
  window.addEventListener("resize", mark);
  if (window.MathJax && window.MathJax.startup && window.MathJax.startup.promise) window.MathJax.startup.promise.then(mark);
});
