"""Policies and problems that several tests of the core share."""

from __future__ import annotations

import numpy as np

import banditlib as bl

POLICIES = [
    bl.OFUL(1.0, 1.0),
    bl.DSOFUL(0.15, 2.0, 1.0),
    bl.DSOFUL(0.4, 1.0, 3.0),
    bl.SupLinUCB(0.5, 1.0),
    bl.LSW(1.0, 1.0, 0.05),
    bl.UCB(2.0),
    bl.RobustLinear(1.0, 1.0, pulls=3),
    bl.LayeredDSOFUL(0.5, 1.0),
    bl.CertLinUCB(1.0, 1.0),
    bl.WeightedOFUL(0.1, 1.0, 1.0),
]

# Good arguments of every policy, for tests that spoil one of them.
ARGUMENTS = {
    "DSOFUL": {"Gamma": 0.1, "beta": 1.0, "lam": 1.0},
    "OFUL": {"beta": 1.0, "lam": 1.0},
    "SupLinUCB": {"beta": 1.0, "lam": 1.0},
    "LSW": {"beta": 1.0, "lam": 1.0, "eps": 0.1},
    "LinearTS": {"scale": 1.0, "lam": 1.0},
    "LayeredDSOFUL": {"beta": 1.0, "lam": 1.0},
    "CertLinUCB": {"beta": 1.0, "lam": 1.0, "low": 0.0, "high": 1.0},
    "WeightedOFUL": {"alpha": 0.1, "beta": 1.0, "lam": 1.0},
    "PhasedElimination": {"delta": 0.1, "sigma": 1.0},
    "UCB": {"alpha": 2.0},
    "RobustLinear": {
        "beta": 1.0, "lam": 1.0, "alpha": 1.0, "pulls": 2, "delta": 0.1, "sigma": 1.0, "eps": 0.0,
    },
}  # fmt: skip

_BASIS = np.concatenate([np.eye(4), np.eye(4)])

# Two of one shape, so that lanes of several problems share a batch, and one full of ties.
FIXED_ARMS = [
    bl.problems.synthetic(seed=2, dim=4, arms=12, gap=None, instance=0),
    bl.problems.synthetic(seed=2, dim=4, arms=12, gap=None, instance=1),
    bl.problems.FixedArms(_BASIS, _BASIS @ np.array([0.5, 0.5, 0.25, 0.0]), sigma=0.5),
]
