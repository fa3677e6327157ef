"""`TrainingStep`, which a method hands to its observer after each step, `Ended`, where it goes no further, and `Trace`,
for what only grows.

Which steps there are is for `methods/`, what becomes of them for `fit.py`; what users read of them is in
`reports/records.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .parameters.rows import Doubles
from .specification import Theta


class Trace:
    """Arrays of one length that a method adds one by one, and that are read again only where a run is taken up.

    A checkpoint adds those that are `new` to a file, and forgets them; `known` are those that are there already.
    """

    def __init__(self, known: Iterable[Doubles] = ()) -> None:
        self.known = known
        self.new: list[Doubles] = []


@dataclass(frozen=True, eq=False)
class TrainingStep:
    """The parameters after a step, and the objective that was found on the way to them.

    `objective` includes priors, and is that of the parameters at the beginning of the step for EM, after it for methods
    that search along a line; where it is `on_the_way`, each example is as it was before the step that it is a part of,
    so that it is that of no parameters. `state` is all that the method needs, beside `theta`, to go on from here:
    numbers, texts, arrays, lists and dicts of these, and on its first level a `Trace`.
    """

    theta: Theta
    objective: float
    data: float
    """The objective without priors."""
    change: float | None = None
    """The norm of the gradient, where there is one."""
    examples: int = 0
    state: Mapping[str, Any] = field(default_factory=dict)
    on_the_way: bool = False
    settled: bool = True
    """Whether a small change from here on means convergence: not while a temperature is still changing."""
    left: float | None = None
    """About how much there is left to gain, where the method can tell; else it is read off the last steps."""
    look: Callable[[], Saddle | None] | None = None
    """Whether the parameters are at a saddle: asked before a run is said to have converged."""
    anew: Callable[[], float] | None = None
    """What is left to gain by more than the last steps: asked before that, where they may not tell."""


NO_BETTER = "no better step"
"""Why a method ended that found none."""


@dataclass(frozen=True, eq=False)
class Ended:
    """Where a method ended that goes no further, why, and how much there is left to gain as far as it can tell."""

    theta: Theta
    why: str
    left: float = np.inf
    look: Callable[[], Saddle | None] | None = None
    anew: Callable[[], float] | None = None


@dataclass(frozen=True)
class Saddle:
    """A place that is stationary, and from which the objective grows."""

    names: tuple[str, str]
    """Two parameters that go apart where it grows."""
    leaving: bool
    """Whether the run is on its way from there."""
    drawn: bool = False
    """Whether all distributions began with numbers that were drawn."""


Observe = Callable[[TrainingStep], bool]
"""Told of each step; whether to stop."""
