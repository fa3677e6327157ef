"""`Specification`, what is trained: a program, its parametrisations, priors and an objective, as one immutable value.

It maps parameters (`Theta`) to a program with weights, and a pass over data to the objective and its gradient by the
parameters. How parameters are improved is for `methods/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..calls import nearest_option
from ..charts.binding.example_cache import ExampleCache
from ..charts.program import Bound, Program, binding_of, in_probabilities, with_own_plans, with_weights
from ..errors import Error
from ..facts.relation import Relation
from ..forks import cached
from .data.observed import Places
from .examples import Example
from .objectives.evaluation import LOGS, Objective, Task, programs_of
from .objectives.losses import check_losses, losses_of
from .parameters.parametrisation import Parametrisation
from .parameters.rows import Doubles, Flags, Indices
from .priors import Prior
from .totals import Totals

Theta = dict[str, Doubles]
"""The parameters of each parametrisation, by its name."""

Along = Mapping[str, Doubles]
"""A direction in the log weights."""

Workers = Callable[["Specification", Mapping[str, Doubles], Iterable[list[Example]], bool | Along], Iterator[Totals]]
"""Who works out the totals of shards, in their order; see `workers.py`. The last argument is whether there is to be a
gradient, or along what its derivative."""


@dataclass(frozen=True, eq=False)
class Specification:
    """A program, parametrisations by name, priors by name, an objective, the item that it is about, and fixed facts."""

    program: Program
    parametrisations: Mapping[str, Parametrisation]
    priors: Mapping[str, Prior]
    objective: Objective
    goal: str
    bound: Bound
    """With the fixed facts, in which losses are ones, and the rows of all parameters."""
    others: Mapping[Program, Bound] = field(default_factory=dict)
    """The same of programs that the objective runs beside this one."""
    losses: Mapping[str, Relation] = field(default_factory=dict)
    """The fixed facts that are losses, with their values."""

    def __post_init__(self) -> None:
        learned = [key for p in self.parametrisations.values() for key in p.rows.keys]
        check_losses(self.program, losses_of(self.objective), learned)
        for name, p in self.parametrisations.items():
            if not p.logs and self.program.semiring in LOGS:
                raise Error(
                    f"{name} gives the values of its facts (logs=False), and in {self.program.semiring} these are logs "
                    "already: leave logs=False out, and let it give log weights"
                )

    def start(self, seed: int) -> Theta:
        """Initial parameters."""
        random = np.random.default_rng(seed)
        return {name: p.start(random) for name, p in self.parametrisations.items()}

    def starts(self, seed: int, count: int) -> list[Theta]:
        """Initial parameters, and others that are drawn. Raises Error where none can be."""
        found = [self.start(seed)]
        for number in range(1, count):
            random = np.random.default_rng([seed, number])
            found.append({name: p.draw(random) for name, p in self.parametrisations.items()})
        if count > 1 and all(np.array_equal(x, found[1][name]) for name, x in found[0].items()):
            raise Error(
                "restarts begins anew with parameters that are drawn, and of these none can be: functions and modules "
                "begin with the parameters that they were given, and what is frozen stays as it is"
            )
        return found

    # -- weights

    def weights(self, theta: Theta, used: Mapping[str, Indices] | None = None) -> dict[str, Doubles]:
        """What the parametrisations give for the rows of each predicate: log weights, or values.

        `used` has rows, by the name of their parametrisation, beside which no others of it are needed.
        """
        found: dict[str, Doubles] = {}
        for name, p in self.parametrisations.items():
            some = None if used is None else used.get(name)
            found |= p.rows.split(p.weights(theta[name]) if some is None else p.weights_of(theta[name], some))
        return found

    def values(self, weights: Mapping[str, Doubles]) -> dict[str, Doubles]:
        """The same on the semiring's scale."""
        plain = self.by_value
        logs = self.program.semiring in LOGS
        with np.errstate(over="ignore"):  # infinite weights are an error where they are facts
            return {key: x if logs or key in plain else np.exp(x) for key, x in weights.items()}

    @property
    def by_value(self) -> frozenset[str]:
        """The predicates whose parametrisations give values, not logs."""
        return frozenset(k for p in self.parametrisations.values() if not p.logs for k in p.rows.keys)

    def with_weights(self, weights: Mapping[str, Doubles], program: Program | None = None) -> Bound:
        """The program, or one that the objective runs beside it, with log weights for its parameters."""
        return with_weights(self.bound if program is None else self.others[program], self.values(weights))

    @property
    def fixed(self) -> Mapping[str, Relation]:
        """The facts of all examples that are no parameters."""
        return {key: r for key, r in binding_of(self.bound).given.items() if key not in self.places}

    @property
    def frozen(self) -> Flags:
        """Which parameters stay as they are, one parametrisation after another."""
        parts = [np.zeros(p.size, bool) if p.frozen is None else p.frozen for p in self.parametrisations.values()]
        return np.concatenate([np.zeros(0, bool), *parts])

    @cached
    def places(self) -> Places:
        """The row of each parameter."""
        return Places({key: r for p in self.parametrisations.values() for key, r in p.rows.relations.items()})

    def task(
        self,
        weights: Mapping[str, Doubles],
        gradient: bool | Along,
        threads: int | None,
        before: Task | None = None,
        cache: ExampleCache | None = None,
    ) -> Task:
        """What an objective is asked for. What the pass `before` encoded of the shared facts is not encoded again."""
        values, held = self.values(weights), self if before is None else before
        bound, others = reweighted(held.bound, held.others, values)
        asked = threads, *wanted(gradient), cache
        return Task(bound, self.goal, values, self.by_value, self.places, *asked, others, self.losses)

    # -- the objective

    def log_prior(self, theta: Theta) -> float:
        """The log density of all priors."""
        return sum(prior.log_density(self.parametrisations[n], theta[n]) for n, prior in self.priors.items())

    def push(self, theta: Theta, tangent: Theta) -> dict[str, Doubles]:
        """How log weights change along a direction of the parameters."""
        found: dict[str, Doubles] = {}
        for name, p in self.parametrisations.items():
            found |= p.rows.split(p.push(theta[name], tangent[name]))
        return found

    def curvature(self, theta: Theta, tangent: Theta, first: Totals, second: Totals) -> Theta:
        """The derivative of `pull` along a direction: from the gradient by log weights, and its own derivative."""
        found: Theta = {}
        for name, p in self.parametrisations.items():
            found[name] = p.pull(theta[name], p.rows.joined(second.gradient))
            found[name] = found[name] + p.bend(theta[name], p.rows.joined(first.gradient), tangent[name])
            if name in self.priors:
                found[name] = found[name] + p.free(self.priors[name].curvature(p, theta[name], p.free(tangent[name])))
        return found

    def pull(self, theta: Theta, totals: Totals, part: float = 1.0) -> Theta:
        """The gradient of the objective with its priors, or a part of these, by the parameters."""
        found: Theta = {}
        for name, p in self.parametrisations.items():
            found[name] = p.pull(theta[name], p.rows.joined(totals.gradient))
            if name in self.priors:
                prior = p.free(self.priors[name].gradient(p, theta[name]))
                found[name] = found[name] + (prior if part == 1 else part * prior)
        return found


def reweighted(
    bound: Bound, others: Mapping[Program, Bound], values: Mapping[str, Doubles]
) -> tuple[Bound, dict[Program, Bound]]:
    """A program, and those beside it, with these values of parameters."""
    return with_weights(bound, values), {program: with_weights(b, values) for program, b in others.items()}


def wanted(gradient: bool | Along) -> tuple[bool, Along | None]:
    """Whether a task has a gradient, and along what its derivative."""
    return (gradient, None) if isinstance(gradient, bool) else (True, gradient)


# -- rows of parameters among the facts


def with_rows(bound: Bound, parametrisations: Mapping[str, Parametrisation]) -> Bound:
    """A program with the rows of all parameters, whatever their values. Raises Error for a row that is in two.

    It shares no plans with other models of the program: a worker in another process knows only its own.
    """
    owner: dict[str, str] = {}
    for name, p in parametrisations.items():
        for key, relation in p.rows.relations.items():
            if key in owner:
                raise Error(f"{key} has its weights from {owner[key]} and from {name}: only one can give them")
            owner[key] = name
            bound = bound.bind({key: _weightless(relation, bound.program)})
    return with_own_plans(bound)


def bind_others(
    objective: Objective,
    program: Program,
    facts: Mapping[str, Any],
    parametrisations: Mapping[str, Parametrisation],
) -> dict[Program, Bound]:
    """The programs that an objective runs beside that of the model, with the facts that they have predicates for.

    Raises Error for one that has no predicate of some parameters, which both have to share, or other numbers.
    """
    found: dict[Program, Bound] = {}
    for other in programs_of(objective):
        if (other.semiring, other.values) != (program.semiring, program.values):
            raise Error(
                f"the program of the clamped run is in {other.semiring}, with {other.values}, and that of the model in "
                f"{program.semiring}, with {program.values}: the two share their parameters, so they have to be alike"
            )
        keys = [key for p in parametrisations.values() for key in p.rows.keys]
        for key in keys:
            if key not in other.predicates:
                raise Error(
                    f"the program of the clamped run has no {key}, whose weights are learned: it has to use the "
                    f"parameters of the model{nearest_option(key, other.predicates)}"
                )
        bound = other.bind({key: rows for key, rows in facts.items() if key in other.predicates})
        found[other] = with_rows(bound, parametrisations)
    return found


def _weightless(relation: Relation, program: Program) -> Relation:
    """The rows with placeholder values of the right form."""
    if program.semiring not in (*LOGS, "real", "plain"):
        raise Error(
            "a model needs values that have derivatives: real, log, viterbi or plain arithmetic, not "
            f"{program.semiring}"
        )
    logs = program.semiring in LOGS and not in_probabilities(program)
    return replace(relation, values=np.full(relation.count, -1.0 if logs else 0.5))


# -- parameters as one vector


def ravelled(theta: Theta) -> Doubles:
    """All parameters, one parametrisation after another: a new vector of floats, which an optimiser may write to.

    `ir/ops/ravelling.py` has the operation that is differentiated; it may give what it was given.
    """
    return np.concatenate([np.zeros(0), *theta.values()])


def unravelled(vector: Doubles, like: Theta) -> Theta:
    """A vector as parameters of the same sizes."""
    found, begin = {}, 0
    for name, x in like.items():
        found[name] = np.array(vector[begin : begin + len(x)])
        begin += len(x)
    return found
