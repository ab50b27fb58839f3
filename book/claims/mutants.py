"""Mutation testing of the ledger: every check must notice when its statement is changed.

For each check the formulas it touches are found by watching it run. Each is then changed in every
way the rules below know, one change at a time, and the check is run again. The rules know nothing
of the checks:

- the value of a formula times 0, ½, 2 and 10; also by 1.1 and 1/1.1 where the check reports that
  the bound is attained, and by twice the reported slack in the sharper direction;
- every number in it times 0, ½, 2 and 10 (a zero becomes a one); numbers that only steer an
  iteration are left alone;
- every summand dropped; one side of every min and max taken;
- every comparison made strict or not strict, and replaced by True.

A mutant is *rejected* if the check fails. If it only moves bounds to their weaker side at every
argument that the check tried, it is a *weaker* statement and true as well. If it sharpens a bound
by less than the slack that the check measured, it lies *within the slack*. Everything else that
survives needs a written reason in claims.yml.
"""

from __future__ import annotations
import __future__

import ast
import copy
import dataclasses
import hashlib
import inspect
import json
import math
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
import types
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from banditlib import theory
from book import claims
from book.claims.formula import ALGORITHMS, FORMULAS, SIDES, THEORY, TOOLS, Found, Side

CACHE = claims.ROOT / "_build" / "mutants"
SCALES = (0.0, 0.5, 2.0, 10.0)
CALLS = 48  # recorded calls of one formula on which statements are compared
# Functions that refuse arguments or only build an object.
PLUMBING = ("_require", "_check", "_obey", "known_gap", "unknown_gap", "__post_init__")


# --- formulas ------------------------------------------------------------------------------------


def _theory() -> dict[str, Callable[..., Any]]:
    """Every function, method and property of banditlib.theory, under its qualified name."""
    found: dict[str, Callable[..., Any]] = {}
    for name, value in vars(theory).items():
        if isinstance(value, types.FunctionType) and value.__module__ == theory.__name__:
            found[name] = inspect.unwrap(value)
        elif isinstance(value, type) and value.__module__ == theory.__name__:
            for key, item in vars(value).items():
                inner = getattr(item, "fget", None) or getattr(item, "func", None) or item
                inner = inspect.unwrap(inner) if callable(inner) else inner
                written = isinstance(inner, types.FunctionType) and inner.__module__ == (
                    theory.__name__
                )
                if written and "<" not in inner.__code__.co_filename:
                    found[f"{name}.{key}"] = inner
    plumbing = lambda name: name.rpartition(".")[2].startswith(PLUMBING)  # noqa: E731
    return {f"theory.{k}": f for k, f in found.items() if not plumbing(k)}


def formulas() -> dict[str, Callable[..., Any]]:
    """All formulas that are loaded, by name."""
    return {**_theory(), **FORMULAS}


def side_of(name: str) -> Side:
    if name.startswith("theory."):
        return THEORY.get(name.removeprefix("theory."), "exact")
    return SIDES[name]


# --- watching a check ----------------------------------------------------------------------------


@dataclasses.dataclass
class Trace:
    """What a check did: formulas touched, direct calls of each, files executed, what it found."""

    touched: set[str]
    calls: dict[str, list[tuple[dict[str, Any], Any]]]
    inside: set[str]  # formulas that an algorithm uses, or an algorithm itself
    whole: bool  # every direct call was recorded
    files: set[str]
    found: Found
    seconds: float


def watch(check: Callable[..., Found], size: str = "ci") -> Trace:
    """Run a check once and record which formulas it calls, with which arguments."""
    own: tuple[str, ...] = getattr(check, "about", ())
    codes = {f.__code__: n for n, f in formulas().items() if n not in TOOLS or n.endswith(own)}
    trace = Trace(set(), {}, set(), True, set(), Found(), 0.0)
    seen: dict[str, int] = {}
    open_: list[tuple[Any, dict[str, Any] | None]] = []
    root = str(claims.ROOT)

    def profile(frame: types.FrameType, event: str, value: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code.co_filename.startswith(root) and ".venv" not in code.co_filename:
                trace.files.add(code.co_filename)
            name = codes.get(code)
            if name is None:
                return
            trace.touched.add(name)
            keep = None
            if name in ALGORITHMS or (open_ and codes[open_[0][0]] in ALGORITHMS):
                trace.inside.add(name)
            elif not open_:
                n = seen[name] = seen.get(name, 0) + 1
                if n <= CALLS or (n & (n - 1)) == 0:  # the first ones, then at powers of two
                    keep = {k: _kept(v) for k, v in frame.f_locals.items()}
                else:
                    trace.whole = False
            open_.append((code, keep))
        elif event == "return" and open_ and frame.f_code is open_[-1][0]:
            code, keep = open_.pop()
            if keep is not None:
                trace.calls.setdefault(codes[code], []).append((keep, _kept(value)))

    start = time.perf_counter()
    sys.setprofile(profile)
    try:
        trace.found = check(size=size)
    finally:
        sys.setprofile(None)
    trace.seconds = time.perf_counter() - start
    return trace


def _kept(value: Any) -> Any:
    """A copy that later changes cannot reach; an instance forgets its cached values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value)
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


# --- deriving mutants ----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change to one formula."""

    formula: str
    change: str
    code: types.CodeType

    @property
    def id(self) -> str:
        return f"{self.formula}: {self.change}"


class _Sites(ast.NodeVisitor):
    """The nodes of a formula that can be changed, in order of appearance."""

    def __init__(self) -> None:
        self.nodes: list[ast.AST] = []

    def visit_For(self, node: ast.For) -> None:
        self.steer(node.iter)
        for part in node.body:
            self.visit(part)

    def visit_While(self, node: ast.While) -> None:
        self.steer(node.test)
        for part in node.body:
            self.visit(part)

    def visit_If(self, node: ast.If) -> None:
        if any(isinstance(part, ast.Break) for part in node.body):
            return  # the end of an iteration
        self.generic_visit(node)

    def steer(self, node: ast.AST) -> None:
        """A loop's own comparison is part of the statement; the numbers of range(...) are not."""
        if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range"):
            self.visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in ("axis", "start", "strict", "dtype", "repeat", "prec"):
            self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def generic_visit(self, node: ast.AST) -> None:
        self.nodes.append(node)
        super().generic_visit(node)


def _numbers(value: float | int) -> Iterator[float | int]:
    if value == 0:
        yield 1
        return
    for scale in SCALES:
        new = value * scale
        yield int(new) if isinstance(value, int) else new


_STRICT: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


def _changes(node: ast.AST, scales: tuple[float, ...]) -> Iterator[ast.AST]:
    """Replacements of one node."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        for new in () if isinstance(node.value, bool) else _numbers(node.value):
            if new != node.value:
                yield ast.Constant(new)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield node.left
        yield node.right if isinstance(node.op, ast.Add) else ast.UnaryOp(ast.USub(), node.right)
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in ("min", "max", "minimum", "maximum") and len(node.args) >= 2:
            yield from node.args
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = _STRICT.get(type(node.ops[0]))
        if other is not None:
            yield ast.Compare(node.left, [other()], node.comparators)
        yield ast.Constant(True)
    elif isinstance(node, ast.Return) and node.value is not None and _scales(node.value):
        for scale in scales:
            factor = ast.Constant(int(scale) if scale == int(scale) else float(scale))
            yield ast.Return(ast.BinOp(factor, ast.Mult(), node.value))


def _scales(value: ast.expr) -> bool:
    """Whether the returned expression is a number rather than a truth value or a collection."""
    odd = (ast.Compare, ast.BoolOp, ast.Tuple, ast.List, ast.Dict, ast.ListComp, ast.Constant)
    truth = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
    named = isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("all", "any", "bool")
    return not (isinstance(value, odd) or truth or named)


class _Replace(ast.NodeTransformer):
    def __init__(self, index: int, new: ast.AST, sites: list[ast.AST]) -> None:
        self.target, self.new = sites[index], new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.target else self.generic_visit(node)


def _parse(function: Callable[..., Any]) -> ast.FunctionDef:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise TypeError(f"{function} is not written as a function")
    return node


def mutants(name: str, function: Callable[..., Any], extra: tuple[float, ...] = ()) -> list[Mutant]:
    """Every change of one formula; `extra` scales its value besides the usual ones."""
    count = len(_sites(_parse(function)))
    scales = tuple(dict.fromkeys(SCALES + extra))
    found: list[Mutant] = []
    seen: dict[str, int] = {}
    for index in range(count):
        for k in range(len(list(_changes(_sites(_parse(function))[index], scales)))):
            tree = _parse(function)
            sites = _sites(tree)
            old = ast.unparse(sites[index])
            new = list(_changes(sites[index], scales))[k]
            change = f"{old} → {ast.unparse(new)}"
            mutated = _Replace(index, new, sites).visit(tree)
            code = _compile(mutated, function)
            seen[change] = seen.get(change, 0) + 1
            if seen[change] > 1:
                change += f" ({seen[change]})"
            found.append(Mutant(name, change, code))
    return found


def _sites(tree: ast.FunctionDef) -> list[ast.AST]:
    """The nodes of the body: not the arguments, their defaults, or annotations."""
    visitor = _Sites()
    for part in tree.body:
        if isinstance(part, ast.AnnAssign) and part.value is not None:
            visitor.visit(part.value)
        else:
            visitor.visit(part)
    return visitor.nodes


def _compile(tree: ast.AST, function: Callable[..., Any]) -> types.CodeType:
    """The code object of a changed function, which can take the place of the original's."""
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list = []
    module = ast.fix_missing_locations(ast.Module([tree], []))
    flags = function.__code__.co_flags & __future__.annotations.compiler_flag
    outer = compile(module, function.__code__.co_filename, "exec", flags, dont_inherit=True)
    for const in outer.co_consts:
        if isinstance(const, types.CodeType) and const.co_name == tree.name:
            return const
    raise ValueError(f"no code for {tree.name}")


# --- judging a mutant ----------------------------------------------------------------------------


def _values(value: Any) -> list[float]:
    """The numbers in a value, flattened; NaN where something cannot be a number."""
    if isinstance(value, np.ndarray | list | tuple):
        return [x for v in np.asarray(value, dtype=object).ravel() for x in _values(v)]
    if isinstance(value, dict):
        return [x for v in value.values() for x in _values(v)]
    try:
        return [float(value)]
    except (TypeError, ValueError, OverflowError):
        return [math.nan]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    if type(a) is type(b) and repr(a) == repr(b):  # balls are never equal to one another
        return True
    try:
        return bool(a == b)
    except Exception:
        return False


@dataclasses.dataclass
class Effect:
    """How a mutant moves the formulas that the check calls itself."""

    changed: bool = False
    wrong: bool = False  # an exact formula changed, or a bound can no longer be compared
    sharper: dict[str, float] = dataclasses.field(default_factory=dict)


def effect(trace: Trace, known: Mapping[str, Callable[..., Any]]) -> Effect:
    """Compare every recorded call with what the formulas give now."""
    out = Effect()
    for name, calls in trace.calls.items():
        side = side_of(name)
        for given, before in calls:
            try:
                after = known[name](**{k: _kept(v) for k, v in given.items()})
            except Exception:
                out.changed = out.wrong = True
                continue
            if _same(before, after):
                continue
            out.changed = True
            old, new = _values(before), _values(after)
            if side == "exact" or len(old) != len(new) or not all(map(math.isfinite, old + new)):
                out.wrong = True
                continue
            for a, b in zip(old, new, strict=True):
                if side == "lower":
                    a, b = b, a
                if b < a:
                    factor = a / b if b > 0 else math.inf
                    out.sharper[name] = max(out.sharper.get(name, 1.0), factor)
    return out


def judge(check: Callable[..., Found], trace: Trace, mutant: Mutant, seconds: float) -> str:
    """Apply a mutant (in a process of its own) and say what becomes of it."""
    known = formulas()
    known[mutant.formula].__code__ = mutant.code
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        moved = effect(trace, known)
        if mutant.formula in trace.inside:
            moved.changed = moved.wrong = True
        if not moved.changed and trace.whole:
            return "unseen"
        if moved.changed and not moved.wrong and not moved.sharper:
            return "weaker"
        check(size="ci")
    except _OutOfTime:
        return "rejected"
    except Exception:
        return "rejected"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if not moved.changed:
        return "unseen"
    if not moved.wrong:
        room = all(f <= trace.found.slack_of(n) * (1 + 1e-9) for n, f in moved.sharper.items())
        if room:
            return "slack"
    return "survived"


class _OutOfTime(BaseException):
    pass


def _out_of_time(*_: object) -> None:
    raise _OutOfTime


def forked(work: Callable[[], str]) -> str:
    """Run `work` in a copy of this process, so that nothing it changes stays."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            answer = work()
        except BaseException as error:
            answer = f"error {error!r}"
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return answer


# --- all mutants of a check ----------------------------------------------------------------------


def derive(trace: Trace) -> list[Mutant]:
    """All mutants of the formulas that a check touches; of tools only those it is about."""
    known = formulas()
    found: list[Mutant] = []
    for name in sorted(trace.touched):
        extra: tuple[float, ...] = ()
        side, slack = side_of(name), trace.found.slack_of(name)
        if name in trace.calls and math.isfinite(slack):
            if side != "exact" and slack > 1.1:
                extra = (1 / (2 * slack),) if side == "upper" else (2 * slack,)
            elif slack <= 1.1:
                extra = (1.1, 1 / 1.1)
        found += mutants(name, known[name], extra)
    return found


def digest(trace: Trace) -> str:
    """A fingerprint of every file of the project that the check executes, and of these rules."""
    hash_ = hashlib.sha256(Path(__file__).read_bytes())
    for name in sorted(trace.files):
        hash_.update(Path(name).read_bytes())
    return hash_.hexdigest()[:16]


def try_check(name: str, sample: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Try the mutants of one check (all, or a seeded sample), reusing what a cache remembers."""
    np.seterr(all="ignore")
    check = claims.function(name)
    trace = watch(check)
    all_ = derive(trace)
    chosen = all_
    if sample is not None and len(all_) > sample:
        chosen = random.Random(f"{seed} {name}").sample(all_, sample)
    cache = CACHE / f"{name}.json"
    mark = digest(trace)
    known: dict[str, str] = {}
    if cache.exists():
        stored = json.loads(cache.read_text())
        known = stored["states"] if stored["digest"] == mark else {}
    limit = 5 + 3 * trace.seconds
    states: dict[str, str] = {}
    for mutant in chosen:
        if mutant.id not in known:
            known[mutant.id] = forked(partial(judge, check, trace, mutant, limit))
            if len(known) % 20 == 0:
                _remember(cache, mark, known)
        states[mutant.id] = known[mutant.id]
    _remember(cache, mark, known)
    found = trace.found
    return {
        "states": states,
        "digest": mark,
        "seconds": round(trace.seconds, 2),
        "slack": found.shown,
        "where": found.where,
        "power": found.power,
    }


def _remember(cache: Path, mark: str, states: Mapping[str, str]) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"digest": mark, "states": dict(states)}, ensure_ascii=False)
    temporary = cache.with_suffix(f".{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(cache)


# --- all checks ---------------------------------------------------------------------------------


def run_all(names: list[str], jobs: int) -> dict[str, Any]:
    """Try every mutant of the named checks, `jobs` checks at a time; show how far it is."""
    from tqdm import tqdm

    results: dict[str, Any] = {}
    with ThreadPoolExecutor(jobs) as pool, tqdm(total=len(names), unit="check") as bar:
        tasks = {name: pool.submit(_separately, name) for name in names}
        for name, task in tasks.items():
            results[name] = task.result()
            bar.update()
            bar.set_postfix_str(name)
    return results


def _separately(name: str) -> dict[str, Any]:
    """Try one check's mutants in a fresh interpreter, which forks for every mutant."""
    command = [sys.executable, "-m", "book.claims", "--mutants-of", name]
    done = subprocess.run(command, cwd=claims.ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the mutants of {name} could not be tried:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
