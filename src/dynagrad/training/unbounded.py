"""Likelihoods that have no finite maximum, as nothing holds back the weights of a group: what is known, and is said.

Of log-linear weights that are neither normalised nor under a prior it is known beforehand in `log` and `viterbi`: right
sides are products, so that log Z, and the weight of the best derivation, are convex in them, and a convex function that
changes at all grows without limit. In `real` factors may be below zero, and what a user's function does is not known:
there it is seen as weights grow. Conditional likelihoods are at most zero, and other objectives have their own meaning;
so nothing is said of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import shown
from .objectives.evaluation import LOGS
from .objectives.likelihood import Likelihood
from .parameters.log_linear import LogLinear
from .parameters.parametrisation import Parametrisation
from .parameters.rows import Doubles
from .specification import Specification, Theta

LONG = 8
"""The least number of steps after which a run is judged to slow down or not."""
AS_FAST = 0.5
"""How fast the objective grows in the last quarter of a run that does not slow down, beside the second quarter."""
_INSTEAD = (
    "give them a distribution (`:- distribution` in the program, or `given`), the model the objective "
    "training.Conditional(), or a prior, such as training.L2(0.1)"
)


def free_groups(spec: Specification) -> list[str]:
    """The parametrisations whose weights nothing holds back, where it is the likelihood that is made large."""
    if not isinstance(spec.objective, Likelihood) or spec.program.semiring not in (*LOGS, "real"):
        return []
    return [n for n, p in spec.parametrisations.items() if p.logs and p.groups is None and n not in spec.priors]


def known(spec: Specification, p: Parametrisation) -> bool:
    """Whether the objective is convex in the parameters."""
    return type(p) is LogLinear and spec.program.semiring in LOGS


def grows_for_ever(spec: Specification, gradient: Mapping[str, Doubles]) -> str | None:
    """What to say of a likelihood that is known to have no finite maximum, from its gradient by log weights."""
    for name in free_groups(spec):
        p = spec.parametrisations[name]
        if known(spec, p) and p.pull(np.zeros(p.size), p.rows.joined(gradient)).any():
            return (
                f"the likelihood has no finite maximum: it grows for ever with the weights of {shown(name)}, which are "
                f"log-linear and not normalised; {_INSTEAD}"
            )
    return None


def still_grows(spec: Specification, theta: Theta, objectives: Sequence[float]) -> str | None:
    """What to say of a run in the end, if weights are above one and the likelihood grows as fast as it did before."""
    if len(objectives) < LONG:
        return None
    quarter = len(objectives) // 4
    before = objectives[2 * quarter] - objectives[quarter]
    now = objectives[-1] - objectives[-1 - quarter]
    if not 0 < AS_FAST * before <= now:
        return None
    for name in free_groups(spec):
        p = spec.parametrisations[name]
        most = float(p.weights(theta[name]).max(initial=0.0))
        if most > 0 and not known(spec, p):
            return (
                f"the likelihood still grows as fast as it did, with weights of {shown(name)} up to e^{most:.3g}, "
                "which are no probabilities: it may have no finite maximum. If a function gives them, let it normalise "
                f"them, as by log_softmax; or {_INSTEAD}"
            )
    return None
