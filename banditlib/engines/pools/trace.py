"""What one lane on a pool comes to."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Trace:
    """Every decision of a lane (K,), the largest error that a refresh found, and what it cost."""

    arms: np.ndarray
    levels: np.ndarray
    drift: float = 0.0
    cost: dict[str, int] = field(default_factory=dict)
