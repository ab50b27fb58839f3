r"""A mean, its 95% interval, and what the interval is over."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Estimate:
    """A mean with a 95% interval; NaN where there is too little to say.

    Attributes
    ----------
    mean, low, high : the mean and the ends of the interval
    over : what varies, in words: "Student t over 8 trials"
    """

    mean: float
    low: float
    high: float
    over: str = ""

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


def over_values(values: np.ndarray, what: str) -> Estimate:
    r"""Mean of independent values (n,), with :math:`\pm\, t_{n-1}\,s/\sqrt n`."""
    n = len(values)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, f"no {what}")
    mean = float(np.mean(values))
    if n == 1:
        return Estimate(mean, math.nan, math.nan, f"one {what[:-1]}, so no interval")
    return around(mean, float(np.std(values, ddof=1)) / math.sqrt(n), n - 1, f"{n:,} {what}")


def over_clusters(values: np.ndarray, cluster: np.ndarray, what: str) -> Estimate:
    r"""Mean of values (n,) in clusters (n,), at least two, that share their luck.

    The error is that of the mean of cluster sums: :math:`\frac1n\sqrt{\frac G{G-1}\sum_g(\sum_{i\in
    g}(v_i-\bar v))^2}` with G clusters and Student t with G - 1 degrees of freedom.
    """
    mean = float(np.mean(values))
    _, number = np.unique(cluster, return_inverse=True)
    sums = np.bincount(number, values - mean)
    G = len(sums)
    error = math.sqrt(G / (G - 1) * float(sums @ sums)) / len(values)
    return around(mean, error, G - 1, f"{G:,} {what}")


def around(mean: float, error: float, freedom: int, what: str) -> Estimate:
    """Mean ± the 97.5% point of Student t × its standard error."""
    from scipy.special import stdtrit

    half = float(stdtrit(freedom, 0.975)) * error
    return Estimate(mean, mean - half, mean + half, f"Student t over {what}")
