// The ledger page: filters and the chosen row live in the address, formulas are typeset as their
// rows come into view, and the graph fits, zooms, and shows what a claim rests on.
(() => {
  const slug = (text) => text.replace(/[^A-Za-z0-9]+/g, "-");
  const rows = [...document.querySelectorAll("table.claims-table tbody tr")];

  // --- formulas, when they are seen -------------------------------------------------------------
  const typeset = async (element) => {
    const found = [...element.querySelectorAll(".later-math")];
    if (!found.length) return;
    found.forEach((span) => span.classList.replace("later-math", "math"));
    await window.MathJax?.startup?.promise;
    await window.MathJax?.typesetPromise?.(found);
    window.bookMarkScrolling?.(element);
  };
  if (rows.length) {
    const seen = new IntersectionObserver(
      (entries) =>
        entries.forEach((entry) => {
          if (!entry.isIntersecting) return;
          seen.unobserve(entry.target);
          typeset(entry.target);
        }),
      { rootMargin: "400px" },
    );
    const all = () => rows.forEach(typeset);
    if (window.matchMedia("print").matches) all();
    else rows.forEach((row) => seen.observe(row));
    window.addEventListener("beforeprint", all);
  }

  // --- filters ----------------------------------------------------------------------------------
  const form = document.querySelector(".claims-filter");
  if (form && rows.length) {
    const words = rows.map((row) => row.textContent.toLowerCase());
    const names = ["text", "source", "verdict", "kind", "evidence"];
    const field = (name) => form.querySelector(`[data-filter="${name}"]`);
    const given = new URLSearchParams(window.location.search);
    names.forEach((name) => {
      if (given.has(name)) field(name).value = given.get(name);
    });
    const address = () => {
      const query = new URLSearchParams();
      names.forEach((name) => field(name).value && query.set(name, field(name).value));
      const text = query.toString();
      window.history.replaceState(null, "", (text ? `?${text}` : window.location.pathname) + window.location.hash);
    };
    const apply = () => {
      const text = field("text").value.trim().toLowerCase();
      const wanted = names.slice(1).map((n) => field(n).value).filter(Boolean);
      let shown = 0;
      rows.forEach((row, i) => {
        const keep = words[i].includes(text) && wanted.every((w) => row.classList.contains(`is-${slug(w)}`));
        row.hidden = !keep;
        shown += keep;
      });
      form.querySelector("output").textContent = `${shown} of ${rows.length} rows`;
    };
    const changed = () => {
      apply();
      address();
    };
    form.hidden = false;
    form.addEventListener("input", changed);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(changed));
    apply();

    const choose = () => {
      const row = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
      rows.forEach((other) => other.classList.toggle("chosen", other === row));
      if (!row || !rows.includes(row)) return;
      row.hidden = false; // a link to a row shows it, whatever the filter says
      row.scrollIntoView({ block: "start" });
    };
    window.addEventListener("hashchange", choose);
    if (window.location.hash) choose();
    rows.forEach((row) =>
      row.addEventListener("click", (event) => {
        if (event.target.closest("a, button, code") || String(window.getSelection())) return;
        const here = window.location.hash === `#${row.id}`;
        window.history.replaceState(null, "", window.location.search + (here ? "" : `#${row.id}`) || window.location.pathname);
        rows.forEach((other) => other.classList.toggle("chosen", other === row && !here));
      }),
    );
  }

  // --- the graph --------------------------------------------------------------------------------
  document.querySelectorAll(".claims-graph").forEach((graph) => {
    const svg = graph.querySelector("svg");
    const edges = [...graph.querySelectorAll(".edge")];
    const nodes = new Map([...graph.querySelectorAll(".node")].map((node) => [node.dataset.id, node]));
    const said = graph.parentElement.querySelector(".claims-said");
    const below = new Map(); // claim → claims its proof uses
    edges.forEach((e) => below.set(e.dataset.to, [...(below.get(e.dataset.to) || []), e.dataset.from]));

    const restsOn = (id) => {
      const found = new Set([id]);
      const todo = [id];
      while (todo.length)
        for (const next of below.get(todo.pop()) || [])
          if (!found.has(next)) {
            found.add(next);
            todo.push(next);
          }
      return found;
    };
    let shown = null;
    const show = (id) => {
      shown = id;
      const found = id === null ? new Set() : restsOn(id);
      graph.classList.toggle("lit-some", id !== null);
      nodes.forEach((node, name) => node.classList.toggle("lit", found.has(name)));
      edges.forEach((e) => {
        e.classList.toggle("lit", found.has(e.dataset.to));
        e.classList.toggle("above", id !== null && e.dataset.from === id);
      });
      if (id === null || !said) return;
      const row = document.getElementById(`claim-${id}`);
      const statement = row?.querySelector("td:nth-child(2) p");
      said.replaceChildren();
      const head = document.createElement("strong");
      head.textContent = nodes.get(id).getAttribute("aria-label").split("; uses")[0];
      said.append(head);
      if (statement) {
        // Typeset in the row first: a copy of an untouched formula would be typeset twice.
        typeset(row).then(() => {
          if (shown === id) head.after(statement.cloneNode(true));
        });
      }
      const count = document.createElement("p");
      count.className = "claim-evidence";
      count.textContent = found.size > 1 ? `Rests on ${found.size - 1} other claim${found.size > 2 ? "s" : ""}.` : "Rests on no other claim.";
      said.append(count);
    };
    nodes.forEach((node, id) => {
      for (const on of ["mouseenter", "focus"]) node.addEventListener(on, () => show(id));
      for (const off of ["mouseleave", "blur"]) node.addEventListener(off, () => show(null));
    });

    const full = Number(svg.dataset.width);
    // 0 fits the page; where that would make the names unreadable, the graph scrolls instead.
    let scale = graph.clientWidth < 0.5 * full ? 0.75 : 0;
    const resize = () => {
      svg.style.width = scale ? `${full * scale}px` : "100%";
    };
    const buttons = graph.parentElement.querySelector(".claims-zoom");
    if (buttons) {
      buttons.hidden = false;
      buttons.addEventListener("click", (event) => {
        const way = event.target.dataset.zoom;
        if (!way) return;
        const now = scale || svg.getBoundingClientRect().width / full;
        scale = way === "fit" ? 0 : Math.min(2, Math.max(0.2, now * (way === "in" ? 1.25 : 0.8)));
        resize();
      });
    }
    resize();
  });
})();
