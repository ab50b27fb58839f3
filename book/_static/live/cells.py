"""Run a chapter's cells inside the page, one at a time, and hand over what they show.

The worker imports this module into Pyodide; it is plain Python, and is tested as such.
`send(kind, text)` takes each piece of output: "out" and "err" (printed text), "plain", "html" and
"png" (what a cell's last line shows), "error" (a traceback) and "missing" (a module that is not
here).
"""

import ast
import base64
import contextlib
import hashlib
import importlib
import io
import json
import linecache
import os
import sys
import sysconfig
import traceback
import types
import zipfile
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

Send = Callable[[str, str], Any]

os.environ["MPLBACKEND"] = "agg"  # figures are drawn into files, not into windows

_sender: Send = lambda kind, text: None  # noqa: E731


class Printed(io.TextIOBase):
    """A stream that hands over what is printed line by line, so that long cells show progress."""

    def __init__(self, kind: str, send: Send) -> None:
        self.kind, self.send, self.held = kind, send, ""

    def write(self, text: str) -> int:
        self.held += text
        head, mark, tail = self.held.rpartition("\n")
        if mark:
            self.send(self.kind, head + mark)
            self.held = tail
        return len(text)

    def flush(self) -> None:
        pass

    def finish(self) -> None:
        if self.held:
            self.send(self.kind, self.held)
        self.held = ""


def forms(value: Any) -> dict[str, Any]:
    """Return the forms in which `value` can be shown, by their type."""
    if hasattr(value, "_repr_mimebundle_"):
        bundle = value._repr_mimebundle_()
        return dict(bundle[0] if isinstance(bundle, tuple) else bundle)
    if hasattr(value, "savefig"):
        return {"image/png": png(value)}
    if hasattr(value, "_repr_html_"):
        return {"text/html": value._repr_html_(), "text/plain": repr(value)}
    return {"text/plain": repr(value)}


def png(figure: Any) -> bytes:
    """Draw a matplotlib figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144, facecolor="white")
    return buffer.getvalue()


def show(value: Any) -> None:
    """Hand over the best form of `value`."""
    found = forms(value)
    if html := found.get("text/html"):
        _sender("html", html)
    elif picture := found.get("image/png"):
        data = picture if isinstance(picture, str) else base64.b64encode(picture).decode()
        _sender("png", data)
    else:
        _sender("plain", str(found.get("text/plain", repr(value))))


def display(*values: Any) -> None:
    """Show each of `values`, as a notebook's function of this name does."""
    for value in values:
        show(value)


def show_open_figures() -> None:
    """Hand over the figures that a cell drew and left open, and close them."""
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        for number in pyplot.get_fignums():
            show(pyplot.figure(number))
        pyplot.close("all")


class OnDemand:
    """Installs a package of the site when it is first imported, at whatever depth that happens.

    `fetch` returns the bytes of a file of the site; `there` are the packages already installed.
    """

    def __init__(
        self, lock: str, there: Iterable[str], fetch: Callable[[str], Any], folder: str = ""
    ) -> None:
        self.packages = json.loads(lock)["packages"]
        self.there, self.fetch = set(there), fetch
        self.folder = folder or sysconfig.get_paths()["purelib"]
        self.owners = {top: n for n, line in self.packages.items() for top in line["imports"]}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Called by Python when nobody else knows the module `name`."""
        owner = self.owners.get(name)
        if path is not None or owner is None or owner in self.there:
            return None
        self.install(owner)
        importlib.invalidate_caches()
        return PathFinder.find_spec(name)

    def install(self, name: str) -> None:
        """Unpack the wheel of `name`, and of all it depends on, if its hash is right."""
        if name in self.there or name not in self.packages:
            return
        self.there.add(name)
        line = self.packages[name]
        for other in line["depends"]:
            self.install(other)
        data = self.fetch(line["file_name"])
        data = data.to_bytes() if hasattr(data, "to_bytes") else data
        if hashlib.sha256(data).hexdigest() != line["sha256"]:
            raise ImportError(f"{line['file_name']} came damaged: load the page again")
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            wheel.extractall(self.folder)


def install_on_demand(lock: str, there: Iterable[str], fetch: Callable[[str], Any]) -> None:
    """Let every later import find the packages of the site."""
    sys.meta_path.append(OnDemand(lock, list(there), fetch))


def stand_in_for_ipython() -> None:
    """Offer what chapters import from IPython, which is too large to come along."""

    class HTML:
        def __init__(self, data: str) -> None:
            self.data = data

        def _repr_html_(self) -> str:
            return self.data

    class Markdown:
        def __init__(self, data: str) -> None:
            self.data = data

        def __repr__(self) -> str:  # the page cannot typeset it: its reader sees the source
            return self.data

    top, inner = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    # matplotlib asks any IPython that it sees how new it is and whether it runs.
    vars(top).update(display=inner, version_info=(9, 0), get_ipython=lambda: None)
    vars(inner).update(HTML=HTML, Markdown=Markdown, display=display)
    sys.modules.setdefault("IPython", top)
    sys.modules.setdefault("IPython.display", inner)


def run(source: str, name: str, space: dict[str, Any], send: Send) -> bool:
    """Run one cell in `space`, show its last expression, and say whether it ended well."""
    global _sender
    _sender = send
    space.setdefault("display", display)
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    out, err = Printed("out", send), Printed("err", send)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            value = _execute(source, file, space)
            out.finish()
            if value is not None:
                show(value)
            show_open_figures()
            return True
        except BaseException as error:  # a cell may also raise SystemExit
            out.finish()
            if isinstance(error, ModuleNotFoundError) and error.name:
                send("missing", error.name.partition(".")[0])
            send("error", _story(error, file))
            return False
        finally:
            err.finish()


def _execute(source: str, file: str, space: dict[str, Any]) -> Any:
    """Execute all statements; return the value of the last if it is an expression without `;`."""
    tree = ast.parse(source, file)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr) or source.rstrip().endswith(";"):
        exec(compile(tree, file, "exec"), space)
        return None
    tree.body.pop()
    exec(compile(tree, file, "exec"), space)
    return eval(compile(ast.Expression(last.value), file, "eval"), space)


def _story(error: BaseException, file: str) -> str:
    """The traceback from the cell on: how it was called is of no interest to its writer."""
    frames = traceback.extract_tb(error.__traceback__)
    start = next((i for i, frame in enumerate(frames) if frame.filename == file), len(frames))
    shown = traceback.TracebackException.from_exception(error)
    shown.stack = traceback.StackSummary.from_list(frames[start:])
    return "".join(shown.format()).rstrip()
