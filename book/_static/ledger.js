// Filters the claims table and lights up the edges of the graph's node in focus.
(() => {
  const form = document.querySelector(".claims-filter");
  const rows = [...document.querySelectorAll("table.claims-table tbody tr")];
  if (form && rows.length) {
    const slug = (text) => text.replace(/[^A-Za-z0-9]+/g, "-");
    const words = rows.map((row) => row.textContent.toLowerCase());
    const field = (name) => form.querySelector(`[data-filter="${name}"]`);
    const apply = () => {
      const text = field("text").value.trim().toLowerCase();
      const wanted = ["verdict", "kind", "evidence"].map((n) => field(n).value).filter(Boolean);
      let shown = 0;
      rows.forEach((row, i) => {
        const keep =
          words[i].includes(text) && wanted.every((w) => row.classList.contains(`is-${slug(w)}`));
        row.hidden = !keep;
        shown += keep;
      });
      form.querySelector("output").textContent = `${shown} of ${rows.length} claims`;
    };
    form.hidden = false;
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(apply));
    apply();
  }

  document.querySelectorAll(".claims-graph").forEach((graph) => {
    const edges = [...graph.querySelectorAll(".edge")];
    const light = (id) =>
      edges.forEach((e) =>
        e.classList.toggle("lit", id !== null && (e.dataset.from === id || e.dataset.to === id)),
      );
    graph.querySelectorAll(".node").forEach((node) => {
      for (const on of ["mouseenter", "focus"]) node.addEventListener(on, () => light(node.dataset.id));
      for (const off of ["mouseleave", "blur"]) node.addEventListener(off, () => light(null));
    });
  });
})();
