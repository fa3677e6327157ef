"""Objectives: what training makes large, each with its gradient by the log weights of parameters.

An objective maps a bound program and a shard of examples to `Totals`. It is a value, so that it can be sent to other
processes; data, parametrisations and optimisers are not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..charts.batch import Batch
from ..charts.kept import Kept, KeptFor
from ..charts.program import Bound, run_kept
from ..eager.verbs.gradients import value_and_grad
from ..errors import Error
from ..facts.readers import read
from .examples import Example
from .parameters.rows import Doubles
from .totals import Totals

LOGS = ("log", "viterbi")
"""Semirings whose values are logs."""


@dataclass(frozen=True, eq=False)
class Task:
    """What an objective is worked out for: a program with the weights of now, and what is asked."""

    bound: Bound
    goal: str
    weights: Mapping[str, Doubles]
    """The values of parameters, on the semiring's scale, by predicate."""
    by_value: frozenset[str]
    """Those whose gradient is wanted by the values, not by their logs."""
    threads: int | None = 1
    gradient: bool = True
    kept: Kept | None = None
    """The facts of examples, loaded, where the data stay as they are from pass to pass."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The predicates of parameters."""
        return tuple(self.weights)

    @property
    def semiring(self) -> str:
        """The semiring of the program."""
        return self.bound.program.semiring


class Objective(Protocol):
    """What training makes large."""

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard."""
        ...


def _run(
    task: Task,
    examples: Sequence[Example],
    facts: Sequence[Mapping[str, Any]],
    weights: Sequence[float],
    goal: str,
    side: str = "clamped",
) -> Batch:
    """The goal of each example, and the gradient of the weighted sum of their logs."""
    asked: dict[str, Any] = {"query": goal, "threads": task.threads}
    if task.gradient:
        objective = "log" if task.semiring == "real" else "sum"
        asked |= {"gradient": task.keys, "objective": objective, "cotangents": np.asarray(weights, np.float64)}
    if task.kept is None:
        return task.bound.run_batch(facts, **asked)
    names = [(e.facts, *((e.observed,) if e.observed else ()), side, task.gradient) for e in examples]
    return run_kept(task.bound, facts, KeptFor(task.kept, names), **asked)


def _gradient(task: Task, batch: Batch) -> dict[str, Doubles]:
    """By log weights: in `real` the derivative by a value, times the value."""
    found: dict[str, Doubles] = {}
    for key in task.keys if task.gradient else ():
        table = batch.gradient[key]
        numbers = np.ravel(np.asarray(table.values, np.float64))
        if task.semiring not in LOGS and key not in task.by_value:
            numbers = numbers * task.weights[key]
        elif task.semiring in LOGS and key in task.by_value:
            raise Error(f"{key}: in {task.semiring} values are logs, so a parametrisation is one of logs")
        found[key] = numbers
    return found


def _values_of(task: Task, batch: Batch) -> Doubles:
    """The log of each example's goal, or in plain arithmetic the goal; NaN where it was not derived."""
    values = np.asarray(batch.values, np.float64)
    if task.semiring == "real":
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.log(values)
    found = np.where(np.isneginf(values), np.nan, values) if task.semiring != "plain" else values.copy()
    found[list(batch.errors)] = np.nan
    return found


def _totals(
    task: Task,
    examples: Sequence[Example],
    values: Doubles,
    gradient: dict[str, Doubles],
    errors: Mapping[int, Exception],
) -> Totals:
    weights = np.array([e.weight for e in examples], np.float64)
    there = ~np.isnan(values)
    value = float(np.add.reduce(np.where(there, values, 0.0) * weights))
    return Totals(value, gradient, values, float(weights[there].sum()), dict(errors))


def _difference(
    task: Task,
    examples: Sequence[Example],
    clamped: tuple[Doubles, dict[str, Doubles], Mapping[int, Exception]],
    free: tuple[Doubles, dict[str, Doubles], Mapping[int, Exception]],
) -> Totals:
    gradient = {key: clamped[1][key] - free[1][key] for key in clamped[1]}
    return _totals(task, examples, clamped[0] - free[0], gradient, {**free[2], **clamped[2]})


@dataclass(frozen=True)
class Likelihood:
    """The log of the goal's value, summed over examples: in `viterbi`, of the best derivation.

    What an example has observed is among its facts.
    """

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard: the values of its examples, and the gradient of their sum."""
        batch = _run(task, examples, [e.clamped for e in examples], [e.weight for e in examples], task.goal)
        return _totals(task, examples, _values_of(task, batch), _gradient(task, batch), batch.errors)


@dataclass(frozen=True)
class Conditional:
    """The log-probability of what was observed, given the facts: log Z of the clamped run less that of the free one.

    The clamped run has the facts of `Example.observed` in place of those of the same predicates, or asks for another
    item, `observed`; an example may have both. In `viterbi` this is the structured perceptron's objective (Collins
    2002, "Discriminative training methods for hidden Markov models"): the score of what was observed, less that of the
    best derivation; and with `cost` it is the max-margin one (Taskar, Guestrin and Koller 2003): the facts of that
    predicate are taken as they are in the free run, and count as the semiring's one in the clamped run.
    """

    observed: str | None = None
    cost: str | None = None

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard: the values of its examples, and the gradient of their sum."""
        clamped = [self._without_cost(task, e.clamped) for e in examples]
        weights = np.array([e.weight for e in examples], np.float64)
        first = _run(task, examples, clamped, weights.tolist(), task.goal if self.observed is None else self.observed)
        top = _values_of(task, first)
        free = [self._with_cost(e) for e in examples]
        weights = np.where(np.isnan(top), 0.0, weights)  # what was not derived counts on neither side
        second = _run(task, examples, free, weights.tolist(), task.goal, "free")
        bottom = _values_of(task, second)
        return _difference(
            task,
            examples,
            (top, _gradient(task, first), first.errors),
            (bottom, _gradient(task, second), second.errors),
        )

    def _with_cost(self, example: Example) -> Mapping[str, Any]:
        if self.cost is None or self.cost not in example.clamped:
            return example.facts
        return {**example.facts, self.cost: example.clamped[self.cost]}

    def _without_cost(self, task: Task, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.cost is None or self.cost not in facts:
            return facts
        relation = read(self.cost, facts[self.cost])
        return {**facts, self.cost: replace(relation, values=None)}


@dataclass(frozen=True, eq=False)
class OfItems:
    """Any differentiable function of the values of some items, written in Python and differentiated by `dg.grad`.

    `function` takes the values of the items, in their order and on the semiring's scale, and the example.
    """

    items: tuple[str, ...]
    function: Callable[..., Any]

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard: the values of its examples, and the gradient of their sum."""
        values = np.full(len(examples), np.nan)
        failures: dict[int, Exception] = {}
        gradient = {key: np.zeros(len(numbers)) for key, numbers in task.weights.items()} if task.gradient else {}
        for n, example in enumerate(examples):
            try:
                chart = task.bound.run(example.clamped)
                found = [float(chart[item]) for item in self.items]
                value, slopes = value_and_grad(lambda x, e=example: self.function(x, e))(found)
                if task.gradient:
                    table = chart.gradient(dict(zip(self.items, map(float, slopes), strict=True)))
            except (Error, ArithmeticError) as error:
                failures[n] = error
                continue
            values[n] = float(value)
            for key in gradient:
                numbers = np.ravel(np.asarray(table[key].values, np.float64))
                if task.semiring not in LOGS and key not in task.by_value:
                    numbers = numbers * task.weights[key]
                gradient[key] += example.weight * numbers
        return _totals(task, examples, values, gradient, failures)


@dataclass(frozen=True)
class Risk:
    """Minus the expected loss of a derivation (minimum risk training: Smith and Eisner 2006).

    `cost` is a predicate whose facts are factors of rules; their values, in an example, are not weights but losses, and
    the loss of a derivation is the sum over its facts. The expected loss is the derivative of log Z along the losses,
    and its gradient a product with a Hessian, which forward over reverse mode gives exactly.
    """

    cost: str

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard: the values of its examples, and the gradient of their sum."""
        if task.semiring != "log":
            raise Error(f"expected loss is a derivative of log Z: it needs a program in `log`, not {task.semiring}")
        values = np.full(len(examples), np.nan)
        failures: dict[int, Exception] = {}
        gradient = {key: np.zeros(len(numbers)) for key, numbers in task.weights.items()} if task.gradient else {}
        for n, example in enumerate(examples):
            try:
                losses = read(self.cost, example.clamped.get(self.cost, ()))
                facts = {**example.clamped, self.cost: replace(losses, values=None)}
                f = task.bound.function(task.goal, [*task.keys, self.cost], facts)
                here = [*task.weights.values(), np.zeros(losses.count)]
                sizes = np.ones(losses.count) if losses.values is None else losses.values
                along = [*(np.zeros(len(x)) for x in task.weights.values()), sizes]
                total, expected = f.jvp(here, along)
                if total == -np.inf:
                    continue
                values[n] = -expected
                slopes = f.hvp(here, along) if task.gradient else ()
            except (Error, ArithmeticError) as error:
                failures[n] = error
                continue
            for key, numbers in zip(gradient, slopes, strict=False):  # the last one is by the losses
                gradient[key] -= example.weight * np.ravel(numbers)
        return _totals(task, examples, values, gradient, failures)
