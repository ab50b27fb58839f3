// Python in a worker: it may compute for minutes, and the page stays alive. Nothing is fetched from elsewhere.
import { loadPyodide } from "../pyodide/pyodide.mjs";

const files = new URL("../pyodide/", import.meta.url).href;
const say = (type, more) => postMessage({ type, ...more });
let python, cells, space;

// One file of the site, while Python waits: only a worker may do this.
function read(name) {
  say("stage", { text: name.split("-")[0] });
  const request = new XMLHttpRequest();
  request.open("GET", files + name, false);
  request.responseType = "arraybuffer";
  request.send();
  say("stage", { text: "" });
  if (request.status !== 200) throw new Error(`${name}: ${request.status}`);
  return new Uint8Array(request.response);
}

async function start({ packages }) {
  say("stage", { text: "Python itself" });
  const text = (address) => fetch(address).then((answer) => answer.text());
  const helper = text(new URL("cells.py", import.meta.url)), lock = text(`${files}pyodide-lock.json`);
  // Packages named here come while Python starts; all others when a cell imports them.
  python = await loadPyodide({ indexURL: files, packages, stdout: () => {}, stderr: (line) => console.info(line) });
  python.FS.writeFile("/home/pyodide/page_cells.py", await helper);
  cells = python.pyimport("page_cells");
  cells.stand_in_for_ipython();
  cells.install_on_demand(await lock, Object.keys(python.loadedPackages), read);
  space = python.runPython("import sys; sys.modules['__main__'].__dict__");
  say("ready", { version: python.runPython("sys.version.split()[0]") });
}

function run({ cell, source }) {
  const began = performance.now();
  const send = (kind, text) => say("output", { cell, kind, text });
  const good = cells.run(source, `cell ${cell + 1}`, space, send);
  say("done", { cell, good, seconds: (performance.now() - began) / 1000 });
}

const tasks = { start, run };
let last = Promise.resolve();
onmessage = ({ data }) => {
  last = last.then(() => tasks[data.task](data)).catch((error) => say("broken", { text: String(error?.message ?? error) }));
};
