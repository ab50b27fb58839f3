"""The algorithms, one file each."""

from banditlib.policies.base import Policy, grid, stack
from banditlib.policies.ds_oful import DSOFUL, OFUL
from banditlib.policies.lsw import LSW
from banditlib.policies.robust_linear import RobustLinear
from banditlib.policies.sup_lin_ucb import SupLinUCB
from banditlib.policies.ucb import UCB

__all__ = ["DSOFUL", "LSW", "OFUL", "UCB", "Policy", "RobustLinear", "SupLinUCB", "grid", "stack"]
