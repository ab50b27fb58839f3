"""The algorithms, one file each."""

from banditlib.policies.base import Policy, grid, stack
from banditlib.policies.cert_lin_ucb import CertLinUCB
from banditlib.policies.ds_oful import DSOFUL, OFUL
from banditlib.policies.layered_ds_oful import LayeredDSOFUL
from banditlib.policies.linear_ts import LinearTS
from banditlib.policies.lsw import LSW
from banditlib.policies.phased_elimination import PhasedElimination
from banditlib.policies.robust_linear import RobustLinear
from banditlib.policies.sup_lin_ucb import SupLinUCB
from banditlib.policies.ucb import UCB
from banditlib.policies.weighted_oful import WeightedOFUL

__all__ = [
    "DSOFUL",
    "LSW",
    "OFUL",
    "UCB",
    "CertLinUCB",
    "LayeredDSOFUL",
    "LinearTS",
    "PhasedElimination",
    "Policy",
    "RobustLinear",
    "SupLinUCB",
    "WeightedOFUL",
    "grid",
    "stack",
]
