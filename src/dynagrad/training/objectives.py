"""Objectives: what training makes large, each with its gradient by the log weights of parameters.

An objective maps a bound program and a shard of examples to `Totals`. It is a value, so that it can be sent to other
processes; data, parametrisations and optimisers are not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..arguments import real_number
from ..charts.batch import Batch
from ..charts.kept import Kept, KeptFor
from ..charts.program import Bound, Program, binding_of, context_of, run_kept
from ..eager.verbs.gradients import value_and_grad
from ..errors import Error, shown
from ..facts.readers import read
from ..rules.syntax import Application, Expression, Numeral
from .data.observed import Places, counts_of, fixed_weight, log_weight
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
    places: Places
    threads: int | None = 1
    gradient: bool = True
    along: Mapping[str, Doubles] | None = None
    """A direction in the log weights: then it is not the gradient that is wanted, but its derivative along this."""
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
        """Of a shard; where the task has a direction, with the derivative of the gradient along it as the gradient."""
        ...


@dataclass(frozen=True, eq=False)
class Scores:
    """The log of the goal of each example, NaN where it was not derived, and what the weighted sum's gradient is."""

    values: Doubles
    gradient: dict[str, Doubles]
    errors: Mapping[int, Exception]


def _scores(
    task: Task,
    examples: Sequence[Example],
    facts: Sequence[Mapping[str, Any]],
    weights: Sequence[float],
    goal: str,
    observed: bool = True,
    side: str = "clamped",
) -> Scores:
    """Of examples over these facts; with `observed`, of their derivations alone where these were observed."""
    if task.along is not None:
        return _curvature(task, examples, facts, weights, goal, observed)
    run = [n for n, e in enumerate(examples) if not observed or e.derivation is None]
    values = np.full(len(examples), np.nan)
    errors: dict[int, Exception] = {}
    gradient = {key: np.zeros(len(x)) for key, x in task.weights.items()} if task.gradient else {}
    if run:
        batch = _run(task, [examples[n] for n in run], [facts[n] for n in run], [weights[n] for n in run], goal, side)
        values[run] = _values_of(task, batch)
        errors = {run[n]: error for n, error in batch.errors.items()}
        gradient = _gradient(task, batch)
    if len(run) < len(examples):
        gradient = {key: x.copy() for key, x in gradient.items()}
        logs = _logs(task)
        fixed = binding_of(task.bound).given
        for n, e in enumerate(examples):
            if observed and e.derivation is not None:
                try:
                    counts = counts_of(e, task.places)
                    values[n] = fixed_weight(e, task.bound.program, task.places, fixed) + log_weight(counts, logs)
                except Error as error:
                    errors[n] = error
                    continue
                if np.isneginf(values[n]):
                    values[n] = np.nan
                    continue
                for key, rows in counts.items() if task.gradient else ():
                    for row, count in rows.items():
                        gradient[key][row] += (
                            weights[n] * count / (task.weights[key][row] if key in task.by_value else 1)
                        )
    return Scores(values, gradient, errors)


def _curvature(
    task: Task,
    examples: Sequence[Example],
    facts: Sequence[Mapping[str, Any]],
    weights: Sequence[float],
    goal: str,
    observed: bool,
) -> Scores:
    """The gradient's derivative along a direction: products with Hessians, by a backward pass over dual numbers.

    The log weight of an observed derivation is linear in log weights, so it adds nothing.
    """
    assert task.along is not None
    if task.semiring not in ("real", "log") or task.by_value:
        raise Error(
            f"products with the Hessian are of log weights in real and log, not in {task.semiring}; {FIRST_ORDER}"
        )
    values = np.full(len(examples), np.nan)
    gradient = {key: np.zeros(len(x)) for key, x in task.weights.items()}
    errors: dict[int, Exception] = {}
    logs = task.semiring == "log"
    here = list(task.weights.values())
    along = [task.along[key] if logs else task.along[key] * x for key, x in task.weights.items()]
    for n, e in enumerate(examples):
        if observed and e.derivation is not None:
            values[n] = 0.0
            continue
        try:
            f = task.bound.function(goal, list(task.keys), facts[n])
            total, slope = f.jvp(here, along)
            if total == (-np.inf if logs else 0.0):
                continue
            values[n] = total if logs else np.log(total)
            found = [np.ravel(x) for x in f.hvp(here, along)]
            if not logs:  # of log Z by log weights, from those of Z by weights
                slopes = [np.ravel(x) for x in f.gradient(here)]
                found = [
                    w * (second + (v - slope / total) * first) / total
                    for w, v, first, second in zip(here, task.along.values(), slopes, found, strict=True)
                ]
        except (Error, ArithmeticError) as error:
            errors[n] = error
            continue
        for key, numbers in zip(gradient, found, strict=True):
            gradient[key] += weights[n] * numbers
    return Scores(values, gradient, errors)


FIRST_ORDER = "a method that asks for gradients alone is 'l-bfgs'"


def _logs(task: Task) -> Mapping[str, Doubles]:
    """The logs of parameters."""
    if task.semiring in LOGS:
        return task.weights
    if task.semiring != "real":
        raise Error(f"an observed derivation has a weight in real, log and viterbi, not in {task.semiring}")
    with np.errstate(divide="ignore", invalid="ignore"):
        return {key: np.log(x) for key, x in task.weights.items()}


def _run(
    task: Task,
    examples: Sequence[Example],
    facts: Sequence[Mapping[str, Any]],
    weights: Sequence[float],
    goal: str,
    side: str,
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


def _first_order(task: Task, what: str) -> None:
    if task.along is not None:
        raise Error(f"products with the Hessian are had of likelihoods, and not of {what}; {FIRST_ORDER}")


@dataclass(frozen=True)
class Likelihood:
    """The log of the goal's value, summed over examples: in `viterbi`, of the best derivation.

    What an example has observed is among its facts; of an observed derivation it is its own weight.
    """

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        found = _scores(task, examples, [e.clamped for e in examples], [e.weight for e in examples], task.goal)
        return _totals(task, examples, found.values, found.gradient, found.errors)


@dataclass(frozen=True)
class Best:
    """The log of the weight of the best derivation, for Viterbi EM; its gradient counts what that uses."""

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        batch = task.bound.run_batch([e.clamped for e in examples], query=task.goal, best=1, threads=task.threads)
        found = [
            replace(e, derivation=best[0]) if best and e.derivation is None else e
            for e, best in zip(examples, batch.best, strict=True)
        ]
        values = np.full(len(examples), np.nan)
        gradient = {key: np.zeros(len(x)) for key, x in task.weights.items()}
        for n, (example, derived) in enumerate(zip(examples, found, strict=True)):
            if derived.derivation is None:
                continue
            if example.derivation is None:
                weight = float(derived.derivation.weight)
                values[n] = weight if task.semiring == "log" else float(np.log(weight))
            else:
                one = _scores(task, [example], [example.clamped], [example.weight], task.goal)
                values[n] = one.values[0]
            for key, rows in counts_of(derived, task.places).items():
                for row, count in rows.items():
                    gradient[key][row] += example.weight * count
        return _totals(task, examples, values, gradient, batch.errors)


@dataclass(frozen=True)
class Conditional:
    """The log-probability of what was observed, given the facts: log Z of the clamped run less that of the free one.

    The clamped run has the facts of `Example.observed` in place of those of the same predicates, or asks for another
    item, `observed`; an example may have both. An observed derivation stands for its clamped run. In `viterbi` this is
    the structured perceptron's objective (Collins 2002, "Discriminative training methods for hidden Markov models"):
    the score of what was observed, less that of the best derivation; and with `cost` it is the max-margin one (Taskar,
    Guestrin and Koller 2003): the facts of that predicate are taken as they are in the free run, and count as the
    semiring's one in the clamped run.
    """

    observed: str | None = None
    cost: str | None = None

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard: the values of its examples, and the gradient of their sum."""
        clamped = [self._without_cost(task, e.clamped) for e in examples]
        weights = np.array([e.weight for e in examples], np.float64)
        top = _scores(
            task,
            examples,
            clamped,
            weights.tolist(),
            task.goal if self.observed is None else self.observed,
            side=f"clamped {self.cost}",
        )
        weights = np.where(np.isnan(top.values), 0.0, weights)  # what was not derived counts on neither side
        bottom = self._free(task, examples, weights)
        gradient = {key: x - bottom.gradient[key] for key, x in top.gradient.items()}
        return _totals(task, examples, top.values - bottom.values, gradient, {**bottom.errors, **top.errors})

    def _free(self, task: Task, examples: Sequence[Example], weights: Doubles) -> Scores:
        facts = [self._with_cost(e) for e in examples]
        return _scores(task, examples, facts, weights.tolist(), task.goal, observed=False, side=f"free {self.cost}")

    def free(self, task: Task, examples: Sequence[Example]) -> Totals:
        """The free runs alone, of examples that count on both sides: for iterative scaling."""
        there = ~np.isnan(self.totals(replace(task, gradient=False), examples).values)
        weights = np.array([e.weight for e in examples], np.float64)
        found = self._free(task, examples, np.where(there, weights, 0.0))
        return _totals(task, examples, np.where(there, found.values, np.nan), found.gradient, found.errors)

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
        _first_order(task, "a function of items")
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
        _first_order(task, "expected loss")
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


@dataclass(frozen=True)
class Entropy:
    """The entropy, in nats, of the distribution over the derivations of each example's facts, summed.

    It is log Z less the expected log weight, which is the derivative of log Z along the log weights of all facts; its
    gradient is minus a product with a Hessian. As a part of a `Sum` it regularises: Grandvalet and Bengio 2004
    ("Semi-supervised learning by entropy minimization") take away a part of the entropy of what was not observed.
    """

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        if task.semiring != "log":
            raise Error(f"entropy is a derivative of log Z: it needs a program in `log`, not {task.semiring}")
        _first_order(task, "entropy")
        without_constants(task.bound.program, "the entropy")
        bound = {key: r for key, r in binding_of(task.bound).given.items() if key not in task.weights}
        values = np.full(len(examples), np.nan)
        failures: dict[int, Exception] = {}
        gradient = {key: np.zeros(len(x)) for key, x in task.weights.items()} if task.gradient else {}
        for n, example in enumerate(examples):
            try:
                given = {**bound, **{key: read(key, rows) for key, rows in example.facts.items()}}
                fixed = {key: r for key, r in given.items() if r.values is not None and r.count}
                f = task.bound.function(task.goal, [*task.keys, *fixed], example.facts)
                here = [*task.weights.values(), *(np.asarray(r.values, np.float64) for r in fixed.values())]
                along = [np.where(np.isfinite(x), x, 0.0) for x in here]  # what is impossible is in no derivation
                total, expected = f.jvp(here, along)
                if total == -np.inf:
                    continue
                values[n] = total - expected
                slopes = f.hvp(here, along) if task.gradient else ()
            except (Error, ArithmeticError) as error:
                failures[n] = error
                continue
            for key, numbers in zip(gradient, slopes, strict=False):  # the others are by fixed facts
                gradient[key] -= example.weight * np.ravel(numbers)
        return _totals(task, examples, values, gradient, failures)


def without_constants(program: Program, what: str) -> None:
    """Raises Error where a rule has a constant factor, whose log no fact tells."""
    for rule in context_of(program).rules.rules:
        if _has_constant(rule.value):
            raise Error(
                f"{what} needs the logs of all factors, and the rule `{rule.text}` has a constant among its own; make "
                "it a fact"
            )


def _has_constant(value: Expression) -> bool:
    match value:
        case Numeral(value=number):
            return number != 0  # the one of `log`
        case Application(operands=operands):
            return any(map(_has_constant, operands))
    return False


@dataclass(frozen=True)
class Sum:
    """Objectives added, each times a number: `Sum((1.0, Conditional()), (-0.5, Entropy()))`.

    An example that one of them has no value for does not count for any.
    """

    parts: tuple[tuple[float, Objective], ...]

    def __init__(self, *parts: tuple[float, Objective]) -> None:
        for part in parts:
            if not isinstance(part, tuple) or len(part) != 2 or not hasattr(part[1], "totals"):
                raise Error(f"a part of a sum is a number and an objective, not {shown(part)}")
        if not parts:
            raise Error("a sum of objectives has at least one")
        object.__setattr__(self, "parts", tuple((real_number("the factor of an objective", x), o) for x, o in parts))

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        found = [objective.totals(task, examples) for _, objective in self.parts]
        there = ~np.isnan(np.sum([part.values for part in found], axis=0))
        if not there.all() and there.any() and any(len(part.missing) < (~there).sum() for part in found):
            chosen = [e for e, ok in zip(examples, there.tolist(), strict=True) if ok]
            some = [objective.totals(task, chosen) for _, objective in self.parts]
        else:
            some = found
        values = np.sum([x * part.values for (x, _), part in zip(self.parts, found, strict=True)], axis=0)
        gradient = {
            key: np.add.reduce([x * part.gradient[key] for (x, _), part in zip(self.parts, some, strict=True)])
            for key in some[0].gradient
        }
        failures = {n: error for part in reversed(found) for n, error in part.failures.items()}
        return _totals(task, examples, values, gradient, failures)
