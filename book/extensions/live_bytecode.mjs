// Node runs Pyodide on this machine, and Pyodide compiles what it will import in the page.
// node live_bytecode.mjs CORE PROGRAM < jobs: a list of [archive, result, keep] as JSON
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [core, program] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${core}/pyodide.mjs`).href);
const python = await loadPyodide({ indexURL: core });
python.FS.writeFile("/home/pyodide/compiler.py", readFileSync(program, "utf8"));
const { compiled, folder_of } = python.pyimport("compiler");
for (const [archive, result, keep] of JSON.parse(readFileSync(0, "utf8"))) {
  const data = python.toPy(new Uint8Array(readFileSync(archive)));
  writeFileSync(result, compiled(data, folder_of(archive), keep).toJs());
}
