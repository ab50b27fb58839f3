"""Problems to play: fixed arms, decision sets that change, pools; and ready-made ones of each kind.

Each knows its exact gap, misspecification and optimal arm where they are finite and few.
"""

from banditlib.problems.classification import classification, digits
from banditlib.problems.contextual import Contextual, Rounds, Sampled, cycle
from banditlib.problems.fixed_arms import FixedArms, synthetic
from banditlib.problems.lower_bound import lower_bound, lower_bound_family, nearly_orthogonal
from banditlib.problems.pool import Pool
from banditlib.problems.seeds import STREAMS, generator
from banditlib.problems.unit_vectors import unit_vectors

__all__ = [
    "STREAMS", "Contextual", "FixedArms", "Pool", "Rounds", "Sampled", "classification", "cycle",
    "digits", "generator", "lower_bound", "lower_bound_family", "nearly_orthogonal", "synthetic",
    "unit_vectors",
]  # fmt: skip
