r"""The interplay of misspecification and gap as a map over ζ√d/Δ, d and Δ.

One *point* of the map is (d, Δ, ζ√d/Δ, kind of misspecification). Many instances and trials are
run there with OFUL, DS-OFUL at several thresholds Γ, SupLinUCB, and UCB, which ignores the
features. Two planes are covered: ζ√d/Δ against d at Δ = 0.2, and against Δ at d = 8. The worst
signs are run in three dimensions, and sets of as many arms as rounds in two.

An instance has 49 random unit vectors whose linear reward is at most 0.3 in size, and one further
arm, the best, which is placed so that the gap is exactly Δ: see :func:`instance`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import banditlib as bl
from banditlib.checks import one_of
from banditlib.engines import engine_number
from banditlib.paper.experiments.base import Family, cell_config
from banditlib.paper.store import Arrays, Cell, Config, Packed
from banditlib.paper.verdict import mean_interval
from banditlib.problems import FixedArms, generator

ARMS, CAP, SIGMA, BETA, LAM = 50, 0.3, 0.25, 1.0, 1.0
DIM, DELTA = 8, 0.2  # where the planes cross
RATIOS = (0.0, *(round(2.0**e, 4) for e in (-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4)))
DIMS = (3, 4, 5, 6, 8, 10, 12, 16)
DELTAS = (0.1, 0.2, 0.4)
KINDS = ("random", "adversarial")
WORST = "worst"
MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
DS = tuple(f"DS-OFUL {g:g}" for g in MULTIPLES)
POLICIES = ("OFUL", *DS, "SupLinUCB")
SHOWN = ("OFUL", "DS-OFUL 1", "SupLinUCB", "UCB")
SEED = 2026
Point = tuple[int, float, float, str]
UNIT = 0.01  # stored regrets are whole multiples of this

ROUNDS = 20_000
MARKS = (250, 500, 1000, 2000, 5000, 10_000, 15_000, 18_000, 20_000)
WORST_DIMS = (3, 8, 16)  # where the worst signs are run
MANY, MANY_DIMS, MANY_MARKS = 2000, (8, 16), (250, 500, 1000, 1800, 2000)  # K = |D|
MANY_RATIOS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


# --- the instance -----------------------------------------------------------------------------


def instance(
    number: int,
    d: int,
    Delta: float,
    zeta: float,
    kind: str = "random",
    arms: int = ARMS,
    seed: int = SEED,
) -> FixedArms:
    r"""One instance with gap exactly Δ and misspecification exactly ζ around :math:`\theta^*=e_1`.

    All arms but one are unit vectors, uniform among those with
    :math:`|\langle x,\theta^*\rangle|\le0.3`; they pay
    :math:`r(x)=\langle x,\theta^*\rangle+\zeta s(x)`. The best arm pays Δ more than these, has
    :math:`s=+1` and a random direction v orthogonal to θ*:
    :math:`x_1=c\theta^*+\sqrt{1-c^2}\,v`, :math:`c=r(x_1)-\zeta`.

    Parameters
    ----------
    number : names the draw; the same number gives the same vectors for every Δ, ζ and kind
    kind : "random", :math:`s(x)` uniform on {−1, 1}; or "adversarial",
        :math:`s(x_a)=-\mathrm{sign}\,v^\top G^{-1}x_a`, :math:`G=\sum_a x_ax_a^\top` over all arms
        but the best: the signs that push the least-squares prediction of the best arm's reward
        down as far as they can along v; or "worst", :math:`s(x_a)=-\mathrm{sign}\,x_1^\top
        G^{-1}x_a`, which push it down as far as signs can
    """
    one_of("kind", kind, (*KINDS, WORST))
    rng = generator(seed, "instance", number, d)
    rest = _belt(rng, arms - 1, d)
    v = np.append(0.0, rng.standard_normal(d - 1))
    v /= np.linalg.norm(v)
    s = np.where(rng.random(arms - 1) < 0.5, -1.0, 1.0)
    order = rng.permutation(arms)
    if kind != KINDS[0]:
        s = _against(rest, v)
    best, r = _crown(rest, s, v, zeta, Delta)
    if kind == WORST:
        best, r = _worst_of(rest, best, v, zeta, Delta)
    top = r.max() + Delta
    X, reward = np.vstack([best, rest])[order], np.append(top, r)[order]
    label = f"{kind} d={d} Delta={Delta:g} zeta={zeta:g} #{number}"
    return FixedArms(X, reward, sigma=SIGMA, theta=np.eye(d)[0], instance=number, label=label)


def _against(rest: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The signs that lower the least-squares prediction at x most."""
    return -np.where(rest @ np.linalg.solve(rest.T @ rest, x) >= 0, 1.0, -1.0)


def _crown(
    rest: np.ndarray, s: np.ndarray, v: np.ndarray, zeta: float, Delta: float
) -> tuple[np.ndarray, np.ndarray]:
    """The best arm above arms with these signs, and the rewards of the others."""
    r = rest[:, 0] + zeta * s
    c = r.max() + Delta - zeta
    return c * np.eye(len(v))[0] + math.sqrt(1 - c * c) * v, r


def _worst_of(
    rest: np.ndarray, best: np.ndarray, v: np.ndarray, zeta: float, Delta: float
) -> tuple[np.ndarray, np.ndarray]:
    """The worst signs for the best arm, whose place depends on them: the lowest prediction of
    twenty rounds of "signs against the arm, arm above the signs".
    """
    found = []
    for _ in range(20):
        s = _against(rest, best)
        best, r = _crown(rest, s, v, zeta, Delta)
        bias = rest @ np.linalg.solve(rest.T @ rest, best) @ s
        found.append((float(bias), best, r))
    return min(found, key=lambda one: one[0])[1:]


def _belt(rng: np.random.Generator, count: int, d: int) -> np.ndarray:
    """(count, d) unit vectors, uniform among those whose first coordinate is at most CAP in
    size.
    """
    kept = np.empty((0, d))
    while len(kept) < count:
        x = rng.standard_normal((4 * count, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        kept = np.vstack([kept, x[np.abs(x[:, 0]) <= CAP]])
    return kept[:count]


def zeta_of(ratio: float, d: int, Delta: float) -> float:
    r"""ζ from :math:`\zeta\sqrt d/\Delta`."""
    return ratio * Delta / math.sqrt(d)


def policy_of(name: str, d: int, Delta: float) -> bl.Policy:
    r"""The policy called `name`; "DS-OFUL g" has :math:`\Gamma=g\Delta/\sqrt d`."""
    if name == "OFUL":
        return bl.OFUL(beta=BETA, lam=LAM)
    if name == "SupLinUCB":
        return bl.SupLinUCB(beta=BETA, lam=LAM)
    if name == "UCB":
        return bl.UCB(alpha=2 * SIGMA**2)
    return bl.DSOFUL(Gamma=float(name.split()[1]) * Delta / math.sqrt(d), beta=BETA, lam=LAM)


# --- cells ------------------------------------------------------------------------------------


def cell(
    d: int, Delta: float, ratio: float, kind: str, policy: str,
    instances: int = 32, trials: int = 8, marks: Sequence[int] = MARKS, arms: int = ARMS,
) -> Config:  # fmt: skip
    """The configuration of one policy at one point of the map."""
    return cell_config(
        "phase-map", engine=_engine(policy, trials), d=d, Delta=Delta, ratio=ratio,
        kind=kind if ratio else KINDS[0], policy=policy, instances=instances, trials=trials,
        marks=list(marks), arms=arms, seed=SEED,
    )  # fmt: skip


def _engine(policy: str, trials: int) -> int:
    """SupLinUCB's number became 2 when a fault was mended. The planes of eight trials were computed
    after that and before the number was raised, so they are right and keep the number 1.
    """
    number = engine_number(policy if policy in ("SupLinUCB", "UCB") else "DSOFUL", "arms")
    return 1 if (policy, trials, number) == ("SupLinUCB", 8, 2) else number


def points(
    dims: Iterable[int],
    Deltas: Iterable[float],
    ratios: Iterable[float],
    kinds: Sequence[str] = KINDS,
) -> list[Point]:
    """All (d, Δ, ratio, kind); at ratio 0 there is one kind only."""
    return [
        (d, Delta, ratio, kind)
        for d in dims
        for Delta in Deltas
        for ratio in ratios
        for kind in (kinds if ratio else KINDS[:1])
    ]


def cells(scale: str) -> list[Config]:
    """The cells of a scale: all policies on the plane over d, all but SupLinUCB on that over Δ;
    then UCB on both, the worst signs, and many arms.
    """
    if scale == "smoke":
        some = points((4, 8), (DELTA,), (0.0, 1.0, 4.0))
        return [cell(*p, name, 4, 2, (500, 1000, 1800, 2000)) for p in some for name in POLICIES]
    plane = points(DIMS, (DELTA,), RATIOS)
    others = points((DIM,), [Delta for Delta in DELTAS if Delta != DELTA], RATIOS)
    return [
        *(cell(*p, name) for p in plane for name in POLICIES),
        *(cell(*p, name) for p in others for name in POLICIES[:-1]),
        *(cell(*p, "UCB", trials=2) for p in [*plane, *others]),
        *_worst(),
        *_many(),
    ]


def _worst() -> list[Config]:
    """The worst signs on the plane over d; SupLinUCB, which takes longest, where planes cross."""
    some = points(WORST_DIMS, (DELTA,), RATIOS[1:], (WORST,))
    pairs = [(p, name) for p in some for name in SHOWN if name != "SupLinUCB" or p[0] == DIM]
    return [cell(*p, name, trials=2) for p, name in pairs]


def _many() -> list[Config]:
    """As many arms as rounds, worst signs: the regime in which features are needed."""
    some = points(MANY_DIMS, (DELTA,), MANY_RATIOS, (WORST,))
    return [cell(*p, name, 16, 1, MANY_MARKS, MANY) for p in some for name in SHOWN]


@functools.lru_cache(maxsize=32)
def problems(
    d: int, Delta: float, ratio: float, kind: str, instances: int, arms: int = ARMS
) -> tuple[FixedArms, ...]:
    """The instances of one point."""
    zeta = zeta_of(ratio, d, Delta)
    return tuple(instance(number, d, Delta, zeta, kind, arms) for number in range(instances))


def _where(config: Config) -> tuple[Any, ...]:
    return tuple(config[name] for name in ("d", "Delta", "ratio", "kind", "instances", "arms"))


def run(configs: Sequence[Config], backend: str) -> list[Arrays]:
    """Plays by arm at the checkpoints, (instances, trials, checkpoints, arms), and the
    first skip of each lane.
    """
    found: dict[int, Arrays] = {}
    for batch in batches(list(configs)):
        first = batch[0]
        where = list(dict.fromkeys(map(_where, batch)))
        names = list(dict.fromkeys(c["policy"] for c in batch))
        done = bl.simulate(
            [p for w in where for p in problems(*w)],
            [policy_of(name, first["d"], first["Delta"]) for name in names],
            rounds=first["marks"][-1], trials=first["trials"], seed=first["seed"],
            checkpoints=first["marks"], backend=backend, progress=False,
        )  # fmt: skip
        for c in batch:
            at, q = where.index(_where(c)) * c["instances"], names.index(c["policy"])
            rows = slice(at, at + c["instances"])
            arrays = {"plays": done.plays[rows, q], "first_skip": done.first_skip[rows, q]}
            found[id(c)] = {name: a.astype(np.int32) for name, a in arrays.items()}
    return [found[id(c)] for c in configs]


def batches(configs: list[Config]) -> list[list[Config]]:
    """Lanes that run for equally long together, about 256 of them: thresholds of one point,
    or some points of one policy.
    """
    groups: dict[Any, list[Config]] = {}
    for c in configs:
        alike = _where(c) if c["policy"] in DS else (c["d"], c["policy"], c["arms"])
        groups.setdefault((alike, c["instances"], c["trials"], tuple(c["marks"])), []).append(c)
    out = []
    for group in groups.values():
        lanes = group[0]["instances"] * group[0]["trials"]
        size = len(group) if group[0]["policy"] in DS else max(1, 256 // lanes)
        out += [group[i : i + size] for i in range(0, len(group), size)]
    return out


def thin(done: Cell) -> Arrays:
    """What the book keeps: integers, regrets in hundredths.

    ``regret`` (checkpoints, instances) is the mean over trials, ``spread`` the 5, 25, 50,
    75 and 95% quantiles of the
    final regret over all runs, ``locked`` (instances,) the runs that never played the best
    arm in the last tenth, and
    ``learnt`` the mean number of rounds before the first skip.
    """
    plays = done.arrays["plays"]
    gaps = np.array([p.gaps for p in problems(*_where(done.config))])
    best = np.array([p.best for p in problems(*_where(done.config))])
    regret = np.einsum("itca,ia->itc", plays.astype(float), gaps)
    recent = plays[:, :, -1] - plays[:, :, -2]
    locked = np.take_along_axis(recent, best[:, None, None], axis=2)[..., 0] == 0
    skip, last = done.arrays["first_skip"], done.config["marks"][-1]
    return {
        "regret": _whole(regret.mean(axis=1).T),
        "spread": _whole(np.quantile(regret[..., -1], (0.05, 0.25, 0.5, 0.75, 0.95))),
        "locked": locked.sum(axis=1).astype(np.int32),
        "learnt": _whole(np.where(skip > 0, skip - 1, last).mean(keepdims=True)[0]),
    }


def _whole(values: NDArray[np.float64]) -> NDArray[np.int32]:
    return np.rint(values / UNIT).astype(np.int32)


# --- what a cell says -------------------------------------------------------------------------


def summary(config: Config, kept: Arrays) -> dict[str, Any]:
    """One row of the map: means over instances with 95% intervals (instances are
    independent, trials within are not).
    """
    regret = kept["regret"] * UNIT
    half = config["marks"].index(config["marks"][-1] // 2)
    mean, low, high = interval(regret[-1])
    share, share_low, share_high = interval(kept["locked"] / config["trials"])
    return {
        **{name: config[name] for name in ("d", "Delta", "ratio", "kind", "policy", "arms")},
        "zeta": zeta_of(config["ratio"], config["d"], config["Delta"]),
        "rounds": config["marks"][-1], "runs": config["instances"] * config["trials"],
        "regret": mean, "low": low, "high": high, "median": float(kept["spread"][2] * UNIT),
        "exponent": exponent(regret[half].mean(), regret[-1].mean()),
        "locked": share, "locked_low": max(0.0, share_low), "locked_high": min(1.0, share_high),
        "learnt": float(np.ravel(kept["learnt"])[0] * UNIT),
    }  # fmt: skip


def interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean and 95% interval of independent values."""
    return float(values.mean()), *mean_interval(values)


def exponent(half: float, full: float) -> float:
    """Growth exponent over the last half: log₂ of regret at K over regret at K/2."""
    return math.log2(full / half) if half > 0 else 0.0


def rows(found: Sequence[Cell | Packed], arms: int = ARMS) -> list[dict[str, Any]]:
    """The summaries of whole or thinned cells on sets of `arms` arms."""
    return [summary(c.config, _kept(c)) for c in found if c.config["arms"] == arms]


def _kept(found: Cell | Packed) -> Arrays:
    return thin(found) if isinstance(found, Cell) else found.arrays


def dims(found: Sequence[Cell | Packed]) -> list[int]:
    """The dimensions of the plane over d that were run."""
    return sorted({int(c.config["d"]) for c in found if c.config["Delta"] == DELTA})


def gaps(found: Sequence[Cell | Packed]) -> list[float]:
    """The gaps of the plane over Δ that were run."""
    return sorted({float(c.config["Delta"]) for c in found if c.config["d"] == DIM})


def paired(one: Packed, other: Packed) -> tuple[float, float, float]:
    """Mean final regret of `one` minus that of `other` on the same instances and noise,
    with a 95% interval.
    """
    return interval((one.arrays["regret"][-1] - other.arrays["regret"][-1]) * UNIT)


def explorer(found: Sequence[Packed], limits: dict[int, tuple[float, float]]) -> dict[str, Any]:
    """What the interactive figure reads: by cell the mean curve and its half-width in
    tenths, growth and locked in %.

    `limits` gives for each d where the theorems' condition ends and where the lower bound's begins.
    """
    cells: dict[str, Any] = {}
    for c in found:
        row, regret = summary(c.config, c.arrays), c.arrays["regret"] * UNIT
        spread = [interval(r) for r in regret]
        name = "|".join(
            f"{c.config[k]:g}" if k != "policy" else c.config[k]
            for k in ("policy", "d", "Delta", "ratio")
        )
        cells[f"{name}|{c.config['kind']}"] = [
            [round(10 * mean) for mean, _, _ in spread],
            [round(10 * (high - mean)) for mean, _, high in spread],
            *(round(100 * row[k]) for k in ("exponent", "locked", "locked_low", "locked_high")),
        ]
    return {
        "ratios": RATIOS, "dims": dims(found), "deltas": gaps(found), "multiples": MULTIPLES,
        "d": DIM, "Delta": DELTA,
        "marks": MARKS, "rounds": ROUNDS, "thresholds": limits, "cells": cells,
        "kinds": [[WORST, "worst signs"], *([k, f"{k} signs"] for k in reversed(KINDS))],
        "unit": "round", "series": ["OFUL", "DS-OFUL", "SupLinUCB", "UCB"],
    }  # fmt: skip


def part(config: Config) -> str:
    """One file for each policy and plane; the worst signs and many arms apart."""
    if config["arms"] != ARMS:
        return "many-arms"
    if config["kind"] == WORST:
        return "worst-signs"
    plane = "by-dimension" if config["Delta"] == DELTA else "by-gap"
    return f"{config['policy'].lower().replace(' ', '-')}-{plane}"


_SECONDS = {"SupLinUCB": 8.0, "OFUL": 4.0, "UCB": 4.0}  # rough, by policy

FAMILY = Family(
    name="phase-map",
    run=run,
    batches=batches,
    seconds=lambda c: _SECONDS.get(c["policy"], 0.3) * (1 if c["trials"] > 2 else 0.25),
    thin=thin,
    part=part,
    label=lambda c: f"{c['policy']} d={c['d']} Delta={c['Delta']} ratio={c['ratio']} {c['kind']}",
    engine=lambda c: _engine(c["policy"], c["trials"]),
    kinds=("arms",),
)
