"""What is trained: a program, its parametrisations, priors and an objective, as one immutable value.

It maps parameters (`Theta`) to a program with weights, and a pass over data to the objective and its gradient by the
parameters. How parameters are improved is for `methods/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..charts.kept import Kept
from ..charts.program import Bound, Program
from .examples import Example
from .objectives import LOGS, Objective, Task
from .parameters.parametrisation import Parametrisation
from .parameters.rows import Doubles
from .priors import Prior
from .totals import Totals

Theta = dict[str, Doubles]
"""The parameters of each parametrisation, by its name."""

Workers = Callable[["Specification", Mapping[str, Doubles], Iterable[list[Example]], bool], Iterator[Totals]]
"""Who works out the totals of shards, in their order; see `workers.py`."""


@dataclass(frozen=True, eq=False)
class Specification:
    """A program, parametrisations by name, priors by name, an objective, the item that it is about, and fixed facts."""

    program: Program
    parametrisations: Mapping[str, Parametrisation]
    priors: Mapping[str, Prior]
    objective: Objective
    goal: str
    bound: Bound
    """With the fixed facts, and the rows of all parameters."""

    def start(self, seed: int) -> Theta:
        """Initial parameters."""
        random = np.random.default_rng(seed)
        return {name: p.start(random) for name, p in self.parametrisations.items()}

    # -- weights

    def weights(self, theta: Theta) -> dict[str, Doubles]:
        """What the parametrisations give for the rows of each predicate: log weights, or values."""
        found: dict[str, Doubles] = {}
        for name, p in self.parametrisations.items():
            found |= p.rows.split(p.weights(theta[name]))
        return found

    def values(self, weights: Mapping[str, Doubles]) -> dict[str, Doubles]:
        """The same on the semiring's scale."""
        plain = self.by_value
        logs = self.program.semiring in LOGS
        return {key: x if logs or key in plain else np.exp(x) for key, x in weights.items()}

    @property
    def by_value(self) -> frozenset[str]:
        """The predicates whose parametrisations give values, not logs."""
        return frozenset(k for p in self.parametrisations.values() if not p.logs for k in p.rows.keys)

    def with_weights(self, weights: Mapping[str, Doubles]) -> Bound:
        """The program with log weights for its parameters."""
        return self.bound.with_values(self.values(weights))

    def task(
        self,
        weights: Mapping[str, Doubles],
        gradient: bool,
        threads: int | None,
        before: Bound | None = None,
        kept: Kept | None = None,
    ) -> Task:
        """What an objective is asked for. What the pass `before` encoded of the shared facts is not encoded again."""
        values = self.values(weights)
        bound = (self.bound if before is None else before).with_values(values)
        return Task(bound, self.goal, values, self.by_value, threads, gradient, kept)

    # -- the objective

    def log_prior(self, theta: Theta) -> float:
        """The log density of all priors."""
        return sum(prior.log_density(self.parametrisations[n], theta[n]) for n, prior in self.priors.items())

    def pull(self, theta: Theta, totals: Totals) -> Theta:
        """The gradient of the objective with its priors by the parameters."""
        found: Theta = {}
        for name, p in self.parametrisations.items():
            found[name] = p.pull(theta[name], p.rows.joined(totals.gradient))
            if name in self.priors:
                found[name] = found[name] + self.priors[name].gradient(p, theta[name])
        return found


# -- parameters as one vector


def ravelled(theta: Theta) -> Doubles:
    """All parameters, one parametrisation after another."""
    return np.concatenate([np.zeros(0), *theta.values()])


def unravelled(vector: Doubles, like: Theta) -> Theta:
    """A vector as parameters of the same sizes."""
    found, begin = {}, 0
    for name, x in like.items():
        found[name] = np.array(vector[begin : begin + len(x)])
        begin += len(x)
    return found
