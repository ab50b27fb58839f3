// What a symbol means: under the mouse, on keyboard focus, on a tap. Escape closes it.
(() => {
  const looks = /\\(?:mathbf|mathcal|boldsymbol)(?![a-zA-Z])/g;
  const plain = (tex) => tex[0] === "{" ? tex : tex.replace(looks, "").replace(/\s+/g, "").replace(/\{(\\?\w)\}/g, "$1");
  const tip = document.createElement("div");
  tip.className = "symbol-tip tex2jax_process";
  tip.id = "symbol-tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  let owner = null, timer = 0;

  const place = () => {
    const at = owner.getBoundingClientRect(), box = tip.getBoundingClientRect();
    const wide = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(at.left + at.width / 2 - box.width / 2, wide - box.width - 8));
    const above = at.top - box.height - 7;
    tip.style.left = `${left + window.scrollX}px`;
    tip.style.top = `${(above > 8 ? above : at.bottom + 7) + window.scrollY}px`;
  };
  const hide = () => {
    clearTimeout(timer);
    tip.hidden = true;
    owner?.removeAttribute("aria-describedby");
    owner = null;
  };
  const hideSoon = () => { clearTimeout(timer); timer = setTimeout(hide, 180); };
  const show = (span, row) => {
    clearTimeout(timer);
    if (owner === span) return;
    hide();
    owner = span;
    window.MathJax.typesetClear([tip]);
    tip.innerHTML = row.html;
    tip.style.visibility = "hidden";
    tip.hidden = false;
    window.MathJax.typesetPromise([tip]).then(() => {
      if (owner !== span) return;
      span.setAttribute("aria-describedby", tip.id);
      place();
      tip.style.visibility = "visible";
    });
  };

  const attach = () => {
    const rows = new Map((window.bookSymbols || []).flatMap((row) => row.symbols.map((s) => [s, row])));
    const article = document.querySelector(".bd-article");
    if (!rows.size || !article || article.querySelector("section#notation")) return;
    const met = new Set();
    for (const item of window.MathJax.startup.document.math) {
      const row = !item.display && rows.get(plain(item.math.trim()));
      const span = row && item.typesetRoot?.closest("span.math");
      if (!span || !article.contains(span) || span.closest("a, summary, label, button, h1, h2, h3, h4, [data-play], [data-phase]")) continue;
      span.classList.add("symbol");
      if (!met.has(row)) span.tabIndex = 0; // the first of a page is a stop of the keyboard, the others are not
      met.add(row);
      span.addEventListener("pointerenter", (e) => { if (e.pointerType === "mouse") { clearTimeout(timer); timer = setTimeout(() => show(span, row), 250); } });
      span.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") hideSoon(); });
      span.addEventListener("click", () => show(span, row));
      span.addEventListener("focus", () => show(span, row));
      span.addEventListener("blur", hide);
    }
    if (!met.size) return;
    document.body.append(tip);
    tip.addEventListener("pointerenter", () => clearTimeout(timer));
    tip.addEventListener("pointerleave", hideSoon);
    document.addEventListener("keydown", (e) => { if (e.key === "Escape") hide(); });
    document.addEventListener("pointerdown", (e) => { if (owner && !owner.contains(e.target) && !tip.contains(e.target)) hide(); });
    window.addEventListener("resize", hide);
  };
  // MathJax comes some time after the page.
  const wait = (left) => {
    if (window.MathJax?.startup?.promise) window.MathJax.startup.promise.then(attach);
    else if (left) setTimeout(() => wait(left - 1), 100);
  };
  window.addEventListener("load", () => wait(100));
})();
