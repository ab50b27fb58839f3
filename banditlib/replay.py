"""What would policies have earned on rounds that somebody else played? Offline evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from banditlib.checks import integer, length, listed, numbers, real_array, require
from banditlib.estimates import Estimate, around, over_values
from banditlib.policies.base import Policy
from banditlib.problems import generator
from banditlib.problems.contextual import Contextual
from banditlib.tables import Table


@dataclass(frozen=True, eq=False)
class Log:
    """Rounds that some policy played: what it could choose from, what it chose, what came of it.

    Parameters
    ----------
    contexts : (K, M, d) the arms on offer in each round; or (N, d), the same arms in every round
    arm : (K,) row of the arm that was played
    reward : (K,) its reward
    propensity : (K,) probability with which the logging policy played that arm in that round; None
        if it chose uniformly among the arms on offer
    mask : (K, M) True where there is an arm, for sets of different sizes
    """

    contexts: np.ndarray = field(repr=False)
    arm: np.ndarray = field(repr=False)
    reward: np.ndarray = field(repr=False)
    propensity: np.ndarray | None = field(default=None, repr=False)
    mask: np.ndarray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        reward = real_array("reward", self.reward, 1)
        object.__setattr__(self, "contexts", numbers("contexts", self.contexts))
        fixed = np.ndim(self.contexts) == 2
        contexts, mask = real_array("contexts", self.contexts, 2) if fixed else None, None
        if contexts is None:
            shape = np.shape(self.contexts)
            require(
                len(shape) == 3 and shape[0] == len(reward), "contexts",
                "arms (N, d), or sets (K, M, d) with a round for each of the "
                f"{len(reward)} values of reward, got shape {shape}",
            )  # fmt: skip
            shown = Contextual(self.contexts, np.zeros(shape[:2]), self.mask)
            contexts, mask = shown.X, shown.mask
        else:
            require(self.mask is None, "mask", "None, as the arms are the same in every round")
        object.__setattr__(self, "contexts", contexts)
        object.__setattr__(self, "mask", mask)
        object.__setattr__(self, "reward", reward)
        object.__setattr__(self, "arm", self._played(len(reward)))
        object.__setattr__(self, "propensity", self._propensity(len(reward)))

    def _played(self, rounds: int) -> np.ndarray:
        try:
            arm = np.array(self.arm)
        except ValueError as error:
            raise TypeError(f"arm: expected a list of row numbers ({error})") from None
        whole = arm.ndim == 1 and np.issubdtype(arm.dtype, np.integer)
        require(whole, "arm", "a list of row numbers", kind=TypeError)
        length("arm", arm, rounds, "one per reward")
        last = self.contexts.shape[-2] - 1
        require(arm.min() >= 0 and arm.max() <= last, "arm", f"rows 0 to {last}")
        if self.mask is not None and not self.mask[np.arange(rounds), arm].all():
            raise ValueError("arm: some round played an arm that was not on offer")
        return arm.astype(np.int64)

    def _propensity(self, rounds: int) -> np.ndarray | None:
        if self.propensity is None:
            return None
        p = real_array("propensity", self.propensity, 1)
        length("propensity", p, rounds, "one per reward")
        within = p.min() > 0 and p.max() <= 1
        require(within, "propensity", "probabilities above 0 and up to 1")
        return p

    @property
    def rounds(self) -> int:
        """Number K of logged rounds."""
        return len(self.reward)

    @property
    def probability(self) -> np.ndarray:
        """(K,) the propensities, or those of a uniform choice among the arms on offer."""
        if self.propensity is not None:
            return self.propensity
        M = self.contexts.shape[-2]
        if self.mask is None:
            return np.full(self.rounds, 1.0 / M)
        return 1.0 / self.mask.sum(axis=1)

    @classmethod
    def from_dataframe(cls, table: Any, features: Sequence[str] | None = None) -> Log:
        """A log in long form: one row for each arm on offer.

        Columns: ``round`` (any label; rounds keep the order in which they first appear), ``played``
        (True in one row of each round), ``reward`` and, if known, ``propensity`` (both read in the
        row that was played); ``features`` names the others, by default all that are left.
        """
        names = [str(name) for name in table.columns]
        for name in ("round", "played", "reward"):
            require(name in names, "log", f"a column {name!r}", names)
        special = {"round", "played", "reward", "propensity"}
        features = [n for n in names if n not in special] if features is None else list(features)
        missing = [name for name in features if name not in names]
        if missing or not features:
            raise ValueError(f"features: expected columns of the log, got {missing or 'none'}")
        _, first, which = np.unique(table["round"], return_index=True, return_inverse=True)
        which = np.argsort(np.argsort(first))[which]  # rounds by first appearance
        order = np.argsort(which, kind="stable")
        which, sizes = which[order], np.bincount(which)
        row = np.arange(len(which)) - (np.cumsum(sizes) - sizes)[which]
        contexts = np.zeros((len(sizes), sizes.max(), len(features)))
        contexts[which, row] = np.asarray(table[list(features)], dtype=float)[order]
        mask = np.arange(sizes.max()) < sizes[:, None]
        played = np.asarray(table["played"], dtype=bool)[order]
        once = (np.bincount(which[played], minlength=len(sizes)) == 1).all()
        require(once, "played", "True in exactly one row of each round")
        known = "propensity" in names
        return cls(
            contexts,
            row[played],
            np.asarray(table["reward"], dtype=float)[order][played],
            np.asarray(table["propensity"], dtype=float)[order][played] if known else None,
            mask,
        )


@dataclass(frozen=True)
class Replayed:
    """What a log says about one policy.

    Attributes
    ----------
    policy : the policy
    rounds : logged rounds that were looked at
    matched : rounds in which policy and log chose the same arm and that were kept: what it learnt
        from
    replay : mean reward of the matched rounds; the policy's mean reward over its first ``matched``
        rounds
    ips : mean over all logged rounds of (agreed) × reward / propensity: the mean reward of the
        decisions that the policy, as far as it had learnt, would have taken in each of them
    snips : the same with weights that sum to one: less variance, a bias that vanishes
    """

    policy: Policy
    rounds: int
    matched: int
    replay: Estimate
    ips: Estimate
    snips: Estimate


@dataclass(frozen=True, repr=False)
class Replay:
    """Result of :func:`replay`: one :class:`Replayed` per policy, in the order given.

    Attributes
    ----------
    results : what the log says about each policy
    logged : mean reward of the log itself
    """

    results: tuple[Replayed, ...]
    logged: Estimate

    def __getitem__(self, index: int) -> Replayed:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def table(self) -> Table:
        """One row per policy: matched rounds, and each estimate with its interval."""
        names = ("replay", "ips", "snips")
        sides = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
        rows = []
        for found in self.results:
            estimates = (found.replay, found.ips, found.snips)
            ends = [value for e in estimates for value in (e.mean, e.low, e.high)]
            rows.append((repr(found.policy), found.rounds, found.matched, *ends))
        note = f"Mean reward of the log: {self.logged}. Intervals: 95%, Student t over rounds."
        return Table(("policy", "rounds", "matched", *sides), tuple(rows), note)

    def to_dataframe(self) -> Any:
        """The table as a pandas DataFrame."""
        return self.table().to_dataframe()

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def replay(log: Any, policies: Any, seed: int = 0) -> Replay:
    r"""What policies would have earned on logged rounds.

    Each policy walks through the log and chooses in every round. Where it chooses the arm that was
    played, it sees the reward and learns; all other rounds have never happened to it (Li, Chu,
    Langford and Wang, 2011). With propensities p a round that agrees is kept with probability
    :math:`\min p / p`, so that kept rounds look as if the log had chosen uniformly.

    The replay estimate is the mean reward of the kept rounds. The inverse-propensity estimate is
    :math:`\frac1K\sum_k \mathbb 1\{\text{agreed}\}\, r_k/p_k` over all rounds, with the policy as
    it stood in round k. Both are unbiased if the rounds are independent draws and the propensities
    are true; rounds logged by a policy that never tries some arm cannot tell what that arm pays.

    Parameters
    ----------
    log : a :class:`Log`; a dict of its arguments; or a DataFrame in long form, see
        :meth:`Log.from_dataframe`
    policies : a policy or a list of them
    seed : for keeping rounds and for policies that draw random numbers
    """
    rounds = _as_log(log)
    chosen = listed("policies", policies, (Policy,))
    integer("seed", seed, 0, None)
    for policy in chosen:
        if policy.fixed_arms and rounds.contexts.ndim == 3:
            raise ValueError(
                f"policies: {type(policy).__name__} needs fixed arms; give the log's contexts as "
                "one array (N, d)"
            )
    return Replay(
        tuple(_walk(rounds, policy, seed) for policy in chosen),
        over_values(rounds.reward, "rounds"),
    )


def _as_log(log: Any) -> Log:
    if isinstance(log, Log):
        return log
    if isinstance(log, Mapping):
        try:
            return Log(**log)
        except TypeError as error:
            if "argument" in str(error):
                raise TypeError(
                    "log: expected the keys contexts, arm, reward and, if known, propensity and "
                    f"mask, got {sorted(map(str, log))}"
                ) from error
            raise
    if hasattr(log, "columns"):
        return Log.from_dataframe(log)
    raise TypeError(
        f"log: expected a banditlib.Log, a dict of its arguments or a DataFrame, got {log!r}"
    )


def _walk(log: Log, policy: Policy, seed: int) -> Replayed:
    """One policy through the whole log."""
    fixed = log.contexts.ndim == 2
    agent = policy.start(log.contexts.shape[-1], arms=log.contexts if fixed else None, seed=seed)
    probability = log.probability
    keep = generator(seed, "order").random(log.rounds) < probability.min() / probability
    agreed, kept = np.zeros(log.rounds, dtype=bool), np.zeros(log.rounds, dtype=bool)
    for k in range(log.rounds):
        there = None if log.mask is None else np.flatnonzero(log.mask[k])
        X = None if fixed else log.contexts[k] if there is None else log.contexts[k, there]
        choice = agent.choose(X)
        arm = choice if there is None else int(there[choice])
        agreed[k] = arm == log.arm[k]
        kept[k] = agreed[k] and keep[k]
        if kept[k]:
            agent.learn(float(log.reward[k]))
        else:
            agent.retract()
    weight = agreed / probability
    return Replayed(
        policy,
        log.rounds,
        int(kept.sum()),
        over_values(log.reward[kept], "rounds"),
        over_values(weight * log.reward, "rounds"),
        _snips(log.reward, weight),
    )


def _snips(reward: np.ndarray, weight: np.ndarray) -> Estimate:
    """Self-normalised estimate; its interval by the delta method."""
    if np.count_nonzero(weight) < 2:
        return Estimate(math.nan, math.nan, math.nan, "fewer than two rounds")
    mean = float(weight @ reward / weight.sum())
    error = weight * (reward - mean) / weight.mean()
    n = len(reward)
    return around(mean, math.sqrt(float(np.mean(error**2)) / n), n - 1, f"{n:,} rounds")
