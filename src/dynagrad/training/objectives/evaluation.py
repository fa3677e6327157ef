"""Runs of examples and what is read off them: what all objectives are made of.

A `Task` has a bound program with the weights of now, and says what is asked; `Scores` are the goals of a shard, with
the gradient of their sum by the log weights of parameters. Facts that are losses are for `losses.py`.

The objectives themselves are in the other files of this folder; how parameters give weights is in
`training/parameters/`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from ...charts.batches.objective import BelowZero
from ...charts.batches.result import Batch
from ...charts.binding.context import read_facts
from ...charts.binding.example_cache import CachedBatch, ExampleCache
from ...charts.functions.function import Function, bytes_of
from ...charts.program import (
    Bound,
    Program,
    binding_of,
    context_of,
    in_probabilities,
    rerun_cached,
    run_cached,
    with_facts,
    with_own_plans,
)
from ...errors import Error, FactError
from ...facts.relation import Relation, concatenate
from ..data.observed import Places, counts_of, fixed_weight, log_weight
from ..examples import Example, name_of
from ..parameters.rows import Doubles
from ..totals import Totals
from .losses import weightless, with_losses

T = TypeVar("T")
ModelRun = tuple[Program | None, str, Mapping[str, Any]]
"""A run of an example: what program, unless it is the model's; what is asked; and facts."""
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
    """Those whose gradient is wanted by the values, not by their logs; none where values are logs."""
    places: Places
    threads: int | None = 1
    gradient: bool = True
    along: Mapping[str, Doubles] | None = None
    """A direction in the log weights: then it is not the gradient that is wanted, but its derivative along this."""
    cache: ExampleCache | None = None
    """The facts of examples, loaded, where the data stay as they are from pass to pass."""
    others: Mapping[Program, Bound] = field(default_factory=dict)
    """Programs that the objective runs beside the model's, with the same weights."""
    losses: Mapping[str, Relation] = field(default_factory=dict)
    """The losses of all examples, which are ones in `bound`."""
    ones: frozenset[str] = frozenset()
    """Predicates whose facts are losses of other objectives of the model."""

    def of(self, program: Program | None) -> Task:
        """The same asked of another program."""
        return self if program is None else replace(self, bound=self.others[program])

    def seen(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Facts of an example as the objective has to take them: losses of others count as the semiring's one."""
        return weightless(facts, self.ones)

    def free(self, example: Example, own: Collection[str] = ()) -> Mapping[str, Any]:
        """The facts of an example without what was observed, but with losses that stand there: those of others as ones.

        `own` are those of the objective.
        """
        return self.seen(with_losses(example, {*self.ones, *own}))

    def made(self, examples: Sequence[Example], what: Hashable, make: Callable[[], T]) -> T:
        """What is made of the examples of a shard: once, where the data stay as they are."""
        return make() if self.cache is None else self.cache.made(examples, what, make)

    def function(
        self, example: Example, goal: str | Sequence[str], inputs: Sequence[str], facts: Mapping[str, Any], side: str
    ) -> Function:
        """The items of an example as a function of weights: made once, where the data stay as they are.

        It has plans of its own, which those of other examples would else share, and so have passes of another kind: its
        numbers are the same to the bit whatever ran before, in any process. `side` tells apart the facts of an example
        that it may be made of.
        """

        def made() -> Function:
            given: dict[str, Any] = {"values": "weights"} if in_probabilities(self.bound.program) else {}
            program = with_own_plans(with_facts(self.bound.program, self.facts_with(facts)))
            return program.function(goal, list(inputs), **given)

        if self.cache is None:
            return made()
        asked = self.gradient, self.along is not None
        what = self.bound.program, goal if isinstance(goal, str) else tuple(goal), tuple(inputs), side, asked
        return self.cache.memoised((example.facts, example.observed), what, made, bytes_of)

    def facts_with(self, facts: Mapping[str, Any]) -> dict[str, Relation]:
        """The facts that are bound with those of an example, which come after them, with values on the scale."""
        context, bound = context_of(self.bound.program), binding_of(self.bound).given
        own = read_facts(context, facts, in_probabilities(self.bound.program))
        both = {key: concatenate(bound[key], own[key], context.scale.one) for key in own if key in bound}
        return {**bound, **own, **both}

    def weights_of(self, examples: Sequence[Example]) -> Doubles:
        """How often each example counts."""
        return self.made(examples, "weights", lambda: np.array([e.weight for e in examples], np.float64))

    @property
    def keys(self) -> tuple[str, ...]:
        """The predicates of parameters."""
        return tuple(self.weights)

    @property
    def semiring(self) -> str:
        """The semiring of the program."""
        return self.bound.program.semiring


class Objective(Protocol):
    """What training maximises.

    It may have three more: `programs`, those that it runs besides the model's own; `losses`, the predicates whose facts
    it takes for losses; and a method `runs(program, goal, example)`, which gives all runs of an example that `totals`
    makes, each a `ModelRun`.
    """

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard; where the task has a direction, with the derivative of the gradient along it as the gradient."""
        ...


def programs_of(objective: Any) -> tuple[Program, ...]:
    """The programs that an objective runs beside that of the model."""
    found: tuple[Program, ...] = getattr(objective, "programs", ())
    return found


def runs_of(objective: Any, program: Program, goal: str, example: Example) -> list[ModelRun]:
    """The runs of an example that an objective tells of; the one of its own facts where it tells of none."""
    if not hasattr(type(objective), "runs"):
        return [(None, goal, example.clamped)]
    return list(objective.runs(program, goal, example))


def of_each(examples: Sequence[Example], make: Callable[[Example], T]) -> list[T]:
    """What is made of each example. An error in the facts of one names it."""
    found = []
    for example in examples:
        try:
            found.append(make(example))
        except FactError as error:
            raise FactError(f"{name_of(example)}: {error}") from None
    return found


def facts_for(facts: Mapping[str, Any], here: Collection[str], there: Collection[str]) -> dict[str, Any]:
    """The facts for one of two programs: those of its own predicates, and of unknown ones, so that it reports these."""
    return {key: rows for key, rows in facts.items() if key in here or key not in there}


@dataclass(frozen=True, eq=False)
class Scores:
    """The log of the goal of each example, NaN where it was not derived, and what the weighted sum's gradient is."""

    values: Doubles
    gradient: dict[str, Doubles]
    errors: Mapping[int, Exception]


@dataclass(frozen=True)
class RunSide:
    """Which runs of an objective these are; those that are likely to have a `single` derivation are searched for it."""

    name: str
    single: bool = False


ALONE = RunSide("alone")
"""That of an objective with one run for each example."""


def scores_of(
    task: Task,
    examples: Sequence[Example],
    facts: Sequence[Mapping[str, Any]],
    weights: Sequence[float] | Doubles,
    goal: str,
    observed: bool = True,
    side: RunSide = ALONE,
) -> Scores:
    """Of examples over these facts; with `observed`, of their derivations alone where these were observed."""
    runs = _Runs(examples, facts, weights, goal, side)
    if task.along is not None:
        return _curvature(task, runs, observed)
    run: Sequence[int] = range(len(examples))
    if observed and task.made(examples, "derivations", lambda: any(e.derivation is not None for e in examples)):
        run = [n for n, e in enumerate(examples) if e.derivation is None]
    if len(run) == len(examples) > 0:
        ran = _counted(task, runs)
        return Scores(_values_of(task, ran, runs), _gradient(task, ran), ran.errors)
    values = np.full(len(examples), np.nan)
    errors: dict[int, Exception] = {}
    gradient = {key: np.zeros(len(x)) for key, x in task.weights.items()} if task.gradient else {}
    if run:
        some = runs.of(run)
        ran = _counted(task, some)
        values[run] = _values_of(task, ran, some)
        errors = {run[n]: error for n, error in ran.errors.items()}
        gradient = _gradient(task, ran)
    if len(run) < len(examples):
        gradient, numbers = {key: x.copy() for key, x in gradient.items()}, _logs(task)
        for n, e in enumerate(examples):
            if observed and e.derivation is not None:
                try:
                    values[n] = _of_derivation(task, e, facts[n], side, numbers)
                except Error as error:
                    errors[n] = error
                    continue
                if np.isnan(values[n]):
                    continue
                for key, rows in counts_of(e, task.places).items() if task.gradient else ():
                    for row, count in rows.items():
                        gradient[key][row] += (
                            weights[n] * count / (task.weights[key][row] if key in task.by_value else 1)
                        )
    return Scores(values, gradient, errors)


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs for one goal: examples, the facts of each, and the weight of each in the sum."""

    examples: Sequence[Example]
    facts: Sequence[Mapping[str, Any]]
    weights: Sequence[float] | Doubles
    goal: str
    side: RunSide

    def of(self, numbers: Sequence[int]) -> _Runs:
        """Those of some examples, by their numbers."""
        examples, facts = [self.examples[n] for n in numbers], [self.facts[n] for n in numbers]
        return replace(self, examples=examples, facts=facts, weights=[self.weights[n] for n in numbers])


def _curvature(task: Task, runs: _Runs, observed: bool) -> Scores:
    """The gradient's derivative along a direction: products with Hessians, by a backward pass over dual numbers.

    The log weight of an observed derivation is linear in log weights, so it adds nothing; by the values of weights its
    second derivative is minus the count of each, divided by the square of the value.
    """
    assert task.along is not None
    must_have_products(task)
    facts, weights = runs.facts, runs.weights
    values = np.full(len(runs.examples), np.nan)
    gradient = {key: np.zeros(len(x)) for key, x in task.weights.items()}
    errors: dict[int, Exception] = {}
    logs, plain = task.semiring == "log", task.semiring == "plain"
    numbers = _logs(task) if any(e.derivation is not None for e in runs.examples) else {}
    here, direct = list(task.weights.values()), [logs or key in task.by_value for key in task.weights]
    along = [v if d else v * w for d, v, w in zip(direct, task.along.values(), here, strict=True)]
    for n, e in enumerate(runs.examples):
        try:
            if observed and e.derivation is not None:
                values[n] = _of_derivation(task, e, facts[n], runs.side, numbers)
                for key, rows in counts_of(e, task.places).items() if not np.isnan(values[n]) else ():
                    for row, count in rows.items() if key in task.by_value else ():
                        gradient[key][row] -= weights[n] * count * task.along[key][row] / task.weights[key][row] ** 2
                continue
            f = task.function(e, runs.goal, task.keys, facts[n], runs.side.name)
            total, slope = f.jvp(here, along)
            if _underived(task, runs, n, total) if plain else total == (-np.inf if logs else 0.0):
                continue
            if not (logs or plain) and total < 0:
                raise BelowZero(f"{runs.goal} is below 0")
            values[n] = total if logs or plain else np.log(total)
            found = [np.ravel(x) for x in f.hvp(here, along)]
            if plain:
                slopes = [np.ravel(x) for x in f.gradient(here)]
                found = [
                    second if d else w * (second + v * first)
                    for d, w, v, first, second in zip(direct, here, task.along.values(), slopes, found, strict=True)
                ]
            elif not logs:  # of log Z by weights or by their logs, from those of Z by weights
                slopes = [np.ravel(x) for x in f.gradient(here)]
                found = [
                    (second - slope / total * first if d else w * (second + (v - slope / total) * first)) / total
                    for d, w, v, first, second in zip(direct, here, task.along.values(), slopes, found, strict=True)
                ]
        except (Error, ArithmeticError) as error:
            errors[n] = error
            continue
        for key, part in zip(gradient, found, strict=True):
            gradient[key] += weights[n] * part
    return Scores(values, gradient, errors)


def _of_derivation(
    task: Task, example: Example, facts: Mapping[str, Any], side: RunSide, numbers: Mapping[str, Doubles]
) -> float:
    """The log weight of a derivation that was observed, NaN where it has none. Raises Error where it is of no use."""
    shared, program = binding_of(task.bound).given, task.bound.program
    found = log_weight(counts_of(example, task.places), numbers)
    found += fixed_weight(example, program, task.places, shared, facts, side.name)
    return np.nan if np.isneginf(found) else found


def _logs(task: Task) -> Mapping[str, Doubles]:
    """The logs of parameters."""
    if task.semiring in LOGS:
        return task.weights
    if task.semiring != "real":
        raise Error(f"an observed derivation has a weight in real, log and viterbi, not in {task.semiring}")
    with np.errstate(divide="ignore", invalid="ignore"):
        return {key: np.log(x) for key, x in task.weights.items()}


@dataclass(frozen=True, eq=False)
class _Ran:
    """What came of runs: the values of the goals, the gradient by the facts of parameters, and what failed."""

    values: Doubles
    gradient: Mapping[str, Doubles]
    errors: Mapping[int, Exception]

    @staticmethod
    def of(batch: Batch) -> _Ran:
        """What a batch has."""
        gradient = {key: np.ravel(np.asarray(table.values, np.float64)) for key, table in batch.gradient.items()}
        return _Ran(np.asarray(batch.values, np.float64), gradient, batch.errors)


def _run(task: Task, runs: _Runs) -> _Ran:
    """The goal of each example, and the gradient of the weighted sum of their logs."""
    objective, cotangents = "log" if task.semiring == "real" else "sum", np.asarray(runs.weights, np.float64)
    asked: dict[str, Any] = {"query": runs.goal, "threads": task.threads}
    if task.gradient:
        asked |= {"gradient": task.keys, "objective": objective, "cotangents": cotangents}
    # Elsewhere the search would seldom pay, and of examples that do not stay it is made anew in each pass.
    linear = runs.side.single and task.gradient and task.semiring == "log"
    linear = linear and all(np.isfinite(x).all() for x in task.weights.values())
    if task.cache is None and not linear:
        return _Ran.of(task.bound.run_batch(runs.facts, **asked))

    def named() -> list[tuple[Any, ...]]:
        return [(e.facts, e.observed) if e.observed else (e.facts,) for e in runs.examples]

    names = task.made(runs.examples, "names", named)
    cache = ExampleCache(0) if task.cache is None else task.cache  # with no room, if examples do not stay as they are
    how = (task.bound.program, runs.goal, runs.side, task.gradient)
    cached = CachedBatch(cache, names, how, runs.examples, linear)
    if task.gradient and (task.threads == 1 or cached.brief()):
        again = rerun_cached(task.bound, runs.facts, cached, runs.goal, task.keys, objective, cotangents)
        if again is not None:
            return _Ran(again[0], dict(zip(task.keys, again[1], strict=True)), {})
    return _Ran.of(run_cached(task.bound, runs.facts, cached, **asked))


def _counted(task: Task, runs: _Runs) -> _Ran:
    """The same, where what is derived with a weight of zero does not count: in `viterbi` it has a best derivation."""
    ran = _run(task, runs)
    if task.semiring == "real" and (ran.values < 0).any():
        below = {n: BelowZero(f"{runs.goal} is below 0") for n in np.flatnonzero(ran.values < 0).tolist()}
        return replace(ran, errors={**ran.errors, **below})
    if task.semiring != "viterbi" or not task.gradient:
        return ran
    dead = np.isneginf(ran.values) & (np.asarray(runs.weights) != 0)
    if not dead.any():
        return ran
    return _run(task, replace(runs, weights=np.where(dead, 0.0, runs.weights)))


def _gradient(task: Task, ran: _Ran) -> dict[str, Doubles]:
    """By log weights: in `real` the derivative by a value, times the value."""
    found: dict[str, Doubles] = {}
    for key in task.keys if task.gradient else ():
        numbers = ran.gradient[key]
        if task.semiring not in LOGS and key not in task.by_value:
            numbers = numbers * task.weights[key]
        found[key] = numbers
    return found


def _values_of(task: Task, ran: _Ran, runs: _Runs) -> Doubles:
    """The log of each example's goal, or in plain arithmetic the goal; NaN where it was not derived."""
    values = ran.values
    if task.semiring == "real":
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.log(values)
    found = np.where(np.isneginf(values), np.nan, values) if task.semiring != "plain" else values.copy()
    if task.semiring == "plain":  # what is not derived has a value there, which others may have, too
        for n in range(len(values)):
            if n not in ran.errors and _underived(task, runs, n, values[n]):
                found[n] = np.nan
    found[list(ran.errors)] = np.nan
    return found


def _underived(task: Task, runs: _Runs, n: int, value: float) -> bool:
    """Whether the goal of an example is not derived: in plain arithmetic it has a value then, which others may have.

    That does not depend on weights, so it is asked once where the data stay as they are.
    """
    if value != 0 and np.isfinite(value):
        return False

    def made() -> bool:
        return runs.goal not in task.bound.run(runs.facts[n])

    if task.cache is None:
        return made()
    example, what = runs.examples[n], ("derived", task.bound.program, runs.goal, runs.side)
    return task.cache.memoised((example.facts, example.observed), what, made, lambda _: 64)


def totals_of(
    examples: Sequence[Example],
    values: Doubles,
    gradient: dict[str, Doubles],
    errors: Mapping[int, Exception],
    weights: Doubles | None = None,
) -> Totals:
    """The totals of a shard from what each example has, NaN where it does not count, and the gradient of their sum."""
    if weights is None:
        weights = np.array([e.weight for e in examples], np.float64)
    there = ~np.isnan(values)
    value = float(np.add.reduce(np.where(there, values, 0.0) * weights))
    return Totals(value, gradient, values, float(weights[there].sum()), dict(errors))


def must_have_products(task: Task) -> None:
    """Raises Error where a product with the Hessian is asked for, and the semiring has none."""
    if task.along is not None and task.semiring not in ("real", "log", "plain"):
        raise Error(
            f"products with the Hessian are there in real, log and plain arithmetic, not in {task.semiring}; "
            "a method that asks for gradients alone is 'l-bfgs'"
        )
