// The button "Run this chapter here". Everything behind it is fetched on the click, and from this site only.
(() => {
  const here = document.currentScript.src;
  const bar = document.querySelector(".live");
  if (!bar) return;
  const button = bar.querySelector("button"), words = bar.querySelector(".live-words");
  bar.hidden = false;
  const begin = async () => {
    if (location.protocol === "file:") {
      words.innerHTML = "A page opened from a file cannot start Python. Type <code>make serve</code> in the project’s folder, and open the book at the address it prints.";
      return;
    }
    button.removeEventListener("click", begin);
    try {
      const { open } = await import(new URL("live.js", here));
      await open(bar);
    } catch (error) {
      button.addEventListener("click", begin);
      words.textContent = `Python did not come (${error.message}). Press again to try once more.`;
    }
  };
  button.addEventListener("click", begin);
})();
