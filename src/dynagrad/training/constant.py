"""Objectives that do not depend on the parameters: what is known, and is said.

A gradient of zero may be that of a maximum, or of a start where all is alike. So it is asked for at other parameters
too, which are drawn, and at their opposites: where a margin is kept by some weights, it is not by the opposite ones.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import shown
from .parameters.log_linear import LogLinear
from .parameters.parametrisation import Parametrisation
from .parameters.rows import Doubles, Flags
from .specification import Specification, Theta
from .totals import Totals

NOTHING = 1e-10
"""A gradient is zero up to rounding if it is below this, for an objective of size one."""
DRAWS = 2


def moves(spec: Specification, weights: Mapping[str, Doubles], totals: Totals) -> bool:
    """Whether some parameter changes the objective, as far as its gradient by weights tells."""
    for p in spec.parametrisations.values():
        slopes = p.rows.joined(totals.gradient)
        if p.groups is not None:
            logs = np.zeros(p.groups.size)
            logs[p.groups.parameter] = p.rows.joined(weights)
            slopes = p.groups.pulled(logs, p.groups.of_parameters(slopes))
        if isinstance(p, LogLinear):
            slopes = p.totals(slopes)
        if _large(p.free(slopes) if len(slopes) == p.size else slopes, totals):
            return True
    return False


def elsewhere(spec: Specification, theta: Theta) -> list[Theta]:
    """Other parameters at which the gradient of a constant objective is zero, too."""
    random, found = np.random.default_rng(0), []
    for _ in range(DRAWS):
        noise = {name: random.normal(size=len(x)) for name, x in theta.items()}
        for sign in (1.0, -1.0):
            found.append(
                {n: np.where(_free(spec.parametrisations[n], x), sign * noise[n], x) for n, x in theta.items()}
            )
    return found


def _free(p: Parametrisation, x: Doubles) -> Flags:
    """Which parameters may change; a probability of zero stays."""
    return np.isfinite(x) if p.frozen is None else np.isfinite(x) & ~p.frozen


def moves_at(spec: Specification, theta: Theta, totals: Totals) -> bool:
    """Whether some parameter changes the objective, from the totals at these parameters; priors do not count."""
    gradients = (p.pull(theta[n], p.rows.joined(totals.gradient)) for n, p in spec.parametrisations.items())
    return any(_large(x, totals) for x in gradients)


def _large(gradient: Doubles, totals: Totals) -> bool:
    finite = totals.values[np.isfinite(totals.values)]
    return float(np.abs(gradient).max(initial=0.0)) > NOTHING * max(1.0, float(np.abs(finite).sum()))


def said_of(spec: Specification) -> str:
    """The warning."""
    keys = ", ".join(key for p in spec.parametrisations.values() for key in p.rows.keys)
    return (
        f"the objective, {type(spec.objective).__name__}, is constant: its gradient is zero by every parameter of the "
        f"model ({shown(keys)}), whatever they are, so that data teach nothing. Has each example one derivation only, "
        "do all derivations have the same loss, or is no parameter a part of them?"
    )
