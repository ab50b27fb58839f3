r"""DS-OFUL at every threshold at once: our own rule for Γ, which needs neither Δ nor ζ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from banditlib.backend import Array, namespace_of, pick
from banditlib.policies.sup_lin_ucb import SupLinUCB
from banditlib.view import at_least, first_best


@dataclass(frozen=True)
class LayeredDSOFUL(SupLinUCB):
    r"""DS-OFUL with :math:`\Gamma=2^{-l}` at level l, going down when the clock calls for it.

    From level l = 1 on, with :math:`D^1 = D_k`, take the arm of highest index
    :math:`x^\top\theta^l + \beta(l)\|x\|` in :math:`D^l`. If its width is at least :math:`2^{-l}`,
    play and learn it at level l; else, if :math:`k \le 4^l d`, play it and learn nothing: so far
    this is DS-OFUL. Else the threshold is too coarse for so late a round. Then, if some arm of
    :math:`D^l` has width at least :math:`2^{-l}`, play the widest and learn it at level l; else
    keep the arms whose index is within :math:`2\beta(l)2^{-l}` of the best and go on to level l+1.

    The rule is ours. SupLinUCB asks for the widest arm first and so explores every arm before it
    trusts any; here that happens only to rounds that must go down. The regret is bounded for ever
    under a condition on ζ as for SupLinUCB (chapter *Which algorithm should I use?*).

    Parameters
    ----------
    beta : a number, a sequence by level (the first entry is level 1), or a callable l → β(l)
    lam : regulariser λ, > 0
    """

    certifies: ClassVar[bool] = False

    def _stop(
        self, k: Any, l: int, dim: int, score: Array, width: Array
    ) -> tuple[Array, Array, Array]:
        xp = namespace_of(score)
        best = first_best(score)
        teaches = at_least(pick(width, best, xp), 2.0**-l)
        rests = (k <= 4**l * dim) & ~teaches
        wide = at_least(xp.max(width, axis=-1), 2.0**-l) & ~rests
        here = xp.where(teaches | rests, best, first_best(width))
        level = xp.astype(xp.asarray(teaches | wide), xp.int64) * l
        return here, level, teaches | rests | wide
