"""Build the book, or one page of it.

Usage::

    python -m book.build                        # the whole book, strictly, into _build/html
    python -m book.build notebooks/model.md     # one page, into _build/page/model/_build/html
    python -m book.build --execute              # run the chapters only, two at a time
    python -m book.build --notebooks            # plain notebooks for Colab, into _build/notebooks
    python -m book.build --linkcheck            # ask every outside link whether it is still there

Chapters that are not yet in the cache are executed first, two at a time, and their outputs put
where Sphinx will look for them. A chapter that raises stops the build with its traceback.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from banditlib.paper.experiments.base import results_folder
from banditlib.paper.published import Unlisted, check_manifest
from book import address
from book.export import run_export
from book.extensions.cachekey import ROOT, cache_folder

# In a page built alone, references to pages that are not there are no fault of the page.
ABSENT = re.compile(
    r"undefined label|unknown document|xref_missing|reference target not found"
    r"|equation not found|label .* not found|not found in any|nonexisting document"
    r"|Failed to create a cross reference"
)
COMPLAINT = re.compile(r"\b(WARNING|ERROR|CRITICAL): ")


def toc_entries(node: Any) -> list[str]:
    """Return the files named in a table of contents, in order, without suffix."""
    if isinstance(node, list):
        return [name for child in node for name in toc_entries(child)]
    if isinstance(node, dict):
        own = [node[key] for key in ("root", "file") if key in node]
        below = [n for key in ("parts", "chapters", "sections") for n in toc_entries(node.get(key))]
        return own + below
    return []


def chapters(root: Path = ROOT) -> list[Path]:
    """Return the executable chapters of the table of contents, in order."""
    import yaml

    toc = yaml.safe_load((root / "_toc.yml").read_text("utf8"))
    names = [name for name in toc_entries(toc) if name.startswith("notebooks/")]
    return [root / f"{name.removesuffix('.md')}.md" for name in names]


def run_chapter(path: Path, timeout: int = 600) -> tuple[Any, dict[str, float], str]:
    """Execute one chapter in a kernel of its own; return notebook, times and traceback."""
    import resource

    from jupyter_cache.executors.utils import single_nb_execution

    def processor() -> float:
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent.ru_utime + spent.ru_stime

    os.dup2(
        os.open(os.devnull, os.O_WRONLY), 2
    )  # kernels chatter; tracebacks come back in `result`
    notebook, before = read_chapter(path), processor()
    result = single_nb_execution(
        notebook, cwd=str(path.parent), allow_errors=False, timeout=timeout, meta_override=True
    )
    times = {"execution_seconds": float(result.time), "processor_seconds": processor() - before}
    return notebook, times, result.exc_string or "" if result.err else ""


def read_chapter(path: Path) -> Any:
    """Read a chapter exactly as Sphinx will, so that the cache recognises it."""
    from myst_nb.core.read import read_myst_markdown_notebook

    return read_myst_markdown_notebook(
        path.read_text("utf8"), config=None, add_source_map=True, path=path
    )


def execute(paths: list[Path], root: Path = ROOT, jobs: int = 2) -> bool:
    """Execute those of `paths` that the cache does not know; return whether all succeeded."""
    from jupyter_cache import get_cache
    from jupyter_cache.base import CacheBundleIn

    folder = Path(os.environ.get("BOOK_CACHE", cache_folder(root)))
    folder.mkdir(parents=True, exist_ok=True)
    forget_old_caches(folder)
    cache = get_cache(str(folder))
    missing = [path for path in paths if not is_cached(cache, path)]
    print(f"chapters: {len(paths) - len(missing)} unchanged, {len(missing)} to run", flush=True)
    good = True
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        running = {pool.submit(run_chapter, path): path for path in missing}
        for done, future in enumerate(as_completed(running), start=1):
            path = running[future]
            notebook, times, traceback = future.result()
            word, seconds = "failed" if traceback else "ran", times["execution_seconds"]
            print(f"  [{done}/{len(missing)}] {path.name} {word} in {seconds:.1f} s", flush=True)
            if traceback:
                good = False
                print(traceback, file=sys.stderr, flush=True)
                continue
            bundle = CacheBundleIn(notebook, str(path), data=times)
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    return good


def is_cached(cache: Any, path: Path) -> bool:
    """Say whether the outputs of this very text are in the cache."""
    try:
        cache.match_cache_notebook(read_chapter(path))
    except KeyError:
        return False
    return True


def forget_old_caches(current: Path, keep: int = 3) -> None:
    """Remove all but the newest few caches of earlier sources."""
    current.touch()
    others = sorted(current.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[keep:]:
        shutil.rmtree(path, ignore_errors=True)


def jupyter_book(arguments: list[str], root: Path) -> list[str]:
    """Return the command that calls this environment's Jupyter Book."""
    call = "import sys; from jupyter_book.cli.main import main; sys.exit(main())"
    return [sys.executable, "-c", call, "build", *arguments, str(root)]


def build_book(root: Path = ROOT, jobs: int = 2) -> int:
    """Build the whole book; every warning is an error."""
    start = time.perf_counter()
    os.environ["BOOK_CACHE"] = str(cache_folder(root))
    if not execute(chapters(root), root, jobs):
        print("make book: a chapter raised (see above); the book was not built", file=sys.stderr)
        return 1
    command = jupyter_book(["-W", "-n", "--keep-going"], root)
    code = subprocess.run(command, cwd=root, check=False).returncode
    if code == 0:
        print(f"built in {time.perf_counter() - start:.0f} s: open _build/html/book/index.html")
    return code


def build_page(page: Path, root: Path = ROOT) -> int:
    """Build one page strictly, but tolerate references to pages that are not built with it."""
    page = page.resolve()
    if not page.is_file() or root not in page.parents:
        print(f"make page: PAGE must be a file of the book, got {page}", file=sys.stderr)
        return 2
    name = page.relative_to(root).with_suffix("").as_posix()
    if name.startswith("notebooks/") and not execute([page], root, jobs=1):
        return 1
    out = root / "_build" / "page" / page.stem
    out.mkdir(parents=True, exist_ok=True)
    toc = out / "_toc.yml"
    others = [] if name == "book/bibliography" else ["  - file: book/bibliography"]
    toc.write_text("\n".join(["format: jb-book", f"root: {name}", "chapters:", *others, ""]))
    command = jupyter_book(["-n", "--toc", str(toc), "--path-output", str(out)], root)
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", run.stdout + run.stderr).splitlines()
    complaints = [x for x in lines if COMPLAINT.search(x) and not ABSENT.search(x)]
    if run.returncode or complaints:
        print("\n".join(lines if run.returncode else complaints), file=sys.stderr)
        return run.returncode or 1
    print(f"built: {os.path.relpath(out / '_build' / 'html' / (name + '.html'), Path.cwd())}")
    return 0


def settings(root: Path = ROOT) -> dict[str, Any]:
    """Return the book's configuration with paths that work from anywhere."""
    import yaml

    config: dict[str, Any] = yaml.safe_load((root / "_config.yml").read_text("utf8"))
    local = config["sphinx"]["local_extensions"]
    config["sphinx"]["local_extensions"] = {name: str(root / path) for name, path in local.items()}
    return config


def export_notebooks(
    root: Path = ROOT, repository: str | None = None, target: Path | None = None
) -> int:
    """Write every chapter as a plain notebook: numbers and citations resolved, no outputs.

    The notebooks fetch the package from `repository`, by default the one that `book.address` finds;
    without one their first cell installs it from the clone in which they lie.
    """
    import yaml

    if not execute(chapters(root), root):
        return 1
    config = settings(root)
    config["sphinx"]["extra_extensions"].append("sphinx_tojupyter")
    config["sphinx"]["config"]["tojupyter_lang_synonyms"] = ["ipython", "ipython3", "python"]
    out = root / "_build" / "export"
    out.mkdir(parents=True, exist_ok=True)
    (out / "_config.yml").write_text(yaml.safe_dump(config, allow_unicode=True))
    arguments = ["--config", str(out / "_config.yml"), "--path-output", str(out)]
    arguments += ["--builder", "custom", "--custom-builder", "jupyter"]
    known = address.repository(repository or config["sphinx"]["config"]["repository"], root)
    target = target or root / "_build" / "notebooks"
    code = run_export(root, jupyter_book(arguments, root), chapters(root), known, target)
    if code == 0 and not known:
        print(
            "no public address is known (repository in _config.yml, CI, git remote): "
            "the first cell installs the package from the clone in which a notebook lies"
        )
    return code


def check_links(root: Path = ROOT) -> int:
    """Ask every outside link whether it is still there."""
    if not execute(chapters(root), root):
        return 1
    command = jupyter_book(["--builder", "linkcheck"], root)
    return subprocess.run(command, cwd=root, check=False).returncode


def main() -> int:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description="Build the book, or one page of it.")
    parser.add_argument("page", nargs="?", type=Path, help="a page, such as notebooks/model.md")
    parser.add_argument("--execute", action="store_true", help="run the chapters, build nothing")
    parser.add_argument("--notebooks", action="store_true", help="write plain notebooks for Colab")
    parser.add_argument("--repository", help="where the plain notebooks fetch the package")
    parser.add_argument("--output", type=Path, help="folder of the plain notebooks")
    parser.add_argument("--linkcheck", action="store_true", help="check the outside links")
    parser.add_argument("--jobs", type=int, default=2, help="chapters run at a time")
    arguments = parser.parse_args()
    try:
        check_manifest(results_folder())
    except Unlisted as fault:
        print(f"The book is not built from results that are not known:\n{fault}", file=sys.stderr)
        return 1
    if arguments.page:
        return build_page(arguments.page)
    if arguments.execute:
        return 0 if execute(chapters(), jobs=arguments.jobs) else 1
    if arguments.notebooks:
        return export_notebooks(repository=arguments.repository, target=arguments.output)
    if arguments.linkcheck:
        return check_links()
    return build_book(jobs=arguments.jobs)


if __name__ == "__main__":
    raise SystemExit(main())
