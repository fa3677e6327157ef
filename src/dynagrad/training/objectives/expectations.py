"""Objectives that are expectations over derivations: expected loss, and entropy.

Both are over all derivations of an example's facts, whatever was observed in it: an expectation over what was observed
alone would tell nothing of what a model predicts.

Each is a derivative of log Z along a direction, its gradient a product with a Hessian, and a product with its own
Hessian a derivative of that: the gradient of a mixed derivative along two directions.

Expectations under the derivations of one item are in `forests/sums/expectations.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...calls import strict_options_class
from ...charts.binding.context import read_facts
from ...charts.functions.function import Function
from ...charts.program import Program, context_of, in_probabilities
from ...errors import Error
from ...facts.readers import read
from ...facts.relation import Relation
from ...rules.syntax import Application, Expression, Numeral
from ..examples import Example
from ..parameters.rows import Doubles
from ..totals import Totals
from .evaluation import ModelRun, Task, totals_of
from .losses import cost_key, numbered, weightless, with_losses

_Along = tuple[Function, list[Doubles], list[Doubles]]
"""log Z as a function of log weights, first those of parameters; where it is looked at; and along what."""


@strict_options_class
@dataclass(frozen=True)
class Risk:
    """Minus the expected loss of a derivation (minimum risk training: Smith and Eisner 2006).

    `cost` is a predicate whose facts are factors of rules; their values are not weights but losses, a fact without a
    value is a loss of one, and the loss of a derivation is the sum over its facts. They are among the facts of an
    example, what was observed in it, or `facts` of the model; everything else that the model works out takes them as
    the semiring's one. The mean is over all derivations of the facts, as a model is to predict them: other facts that
    were observed have no part in it, nor has an observed derivation. The expected loss is the derivative of log Z along
    the losses, and its gradient a product with a Hessian, which forward over reverse mode gives exactly.

    >>> import dynagrad as dg
    >>> from dynagrad import training
    >>> sides = {"weight": training.LogLinear({"weight/1": [("h",), ("t",)]})}
    >>> model = dg.Model(":- semiring log. goal += weight(S) * loss(S).", sides, objective=Risk("loss/1"))
    >>> model.score([{"loss/1": [("h", 0.0), ("t", 3.0)]}])  # each has a probability of a half
    -1.5
    """

    cost: str

    def __post_init__(self) -> None:
        cost_key(self.cost)

    @property
    def losses(self) -> frozenset[str]:
        """The predicate whose facts are losses."""
        return frozenset({self.cost})

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard: the values of its examples, and the gradient of their sum."""
        if task.semiring != "log":
            raise Error(f"expected loss is a derivative of log Z: it needs a program in `log`, not {task.semiring}")

        def along_of(example: Example) -> _Along:
            _check_observed(task, example, self.losses)
            facts, sizes = weightless(task.free(example, self.losses), self.losses), []
            for losses in (task.losses.get(self.cost), self._losses(example)):
                if losses is not None:
                    sizes.append(numbered(losses).values)
            along = np.concatenate([np.zeros(0), *sizes])
            return (
                task.function(example, task.goal, [*task.keys, self.cost], facts, "losses"),
                [*task.weights.values(), np.zeros(len(along))],
                [*(np.zeros(len(x)) for x in task.weights.values()), along],
            )

        return _less_expected(task, examples, along_of, with_total=False)

    def _losses(self, example: Example) -> Relation | None:
        """The losses of an example, where it has its own."""
        given = example.clamped.get(self.cost)
        return None if given is None else read(self.cost, given)

    def runs(self, program: Program, goal: str, example: Example) -> Iterator[ModelRun]:
        """Of an example: over all of its facts."""
        yield None, goal, weightless(with_losses(example, self.losses), self.losses)


@dataclass(frozen=True)
class Entropy:
    """The entropy, in nats, of the distribution over the derivations of each example's facts, summed.

    What was observed has no part in it. It is log Z less the expected log weight, which is the derivative of log Z
    along the log weights of all facts; its gradient is minus a product with a Hessian. As a part of a `Sum` it
    regularises: Grandvalet and Bengio 2004 ("Semi-supervised learning by entropy minimization") take away a part of the
    entropy of what was not observed.

    >>> import dynagrad as dg
    >>> from dynagrad import training
    >>> sides = {"weight": training.LogLinear({"weight/1": [("h",), ("t",)]})}
    >>> model = dg.Model(":- semiring log. goal += weight(S) * seen(S).", sides, objective=Entropy())
    >>> round(model.score([{"seen/1": [("h",), ("t",)]}]), 6)  # log 2
    0.693147
    """

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard: the values of its examples, and the gradient of their sum."""
        if task.semiring != "log":
            raise Error(f"entropy is a derivative of log Z: it needs a program in `log`, not {task.semiring}")
        without_constants(task.bound.program, "the entropy")

        def along_of(example: Example) -> _Along:
            _check_observed(task, example)
            facts = task.free(example)
            given = {key: r for key, r in task.facts_with(facts).items() if key not in task.weights}
            fixed = {key: r for key, r in given.items() if r.values is not None and r.count}
            here = [*task.weights.values(), *(np.asarray(r.values, np.float64) for r in fixed.values())]
            along = [np.where(np.isfinite(x), x, 0.0) for x in here]  # what is impossible is in no derivation
            return task.function(example, task.goal, [*task.keys, *fixed], facts, "entropy"), here, along

        return _less_expected(task, examples, along_of, with_total=True)

    def runs(self, program: Program, goal: str, example: Example) -> Iterator[ModelRun]:
        """Of an example: over all of its facts."""
        yield None, goal, example.facts


def _check_observed(task: Task, example: Example, losses: Collection[str] = ()) -> None:
    """Raises FactError where what was observed, which has no part here, is no facts: as other objectives would."""
    if not example.observed:
        return
    program = task.bound.program
    observed = {k: v for k, v in weightless(task.seen(example.observed), losses).items() if k in program.predicates}

    def check() -> None:
        read_facts(context_of(program), observed, in_probabilities(program))

    if task.cache is None:
        check()
    else:  # once, where the data stay as they are
        task.cache.memoised((example.observed,), ("observed", program, frozenset(losses)), check, lambda _: 64)


def _less_expected(
    task: Task, examples: Sequence[Example], along_of: Callable[[Example], _Along], with_total: bool
) -> Totals:
    """Minus the derivative of log Z along a direction, which each example has; or log Z itself less that."""
    values = np.full(len(examples), np.nan)
    failures: dict[int, Exception] = {}
    gradient = {key: np.zeros(len(numbers)) for key, numbers in task.weights.items()} if task.gradient else {}
    for n, example in enumerate(examples):
        try:
            f, here, along = along_of(example)
            total, expected = f.jvp(here, along)
            if total == -np.inf:
                continue
            values[n] = (total if with_total else 0.0) - expected
            if task.along is not None:  # the direction of the entropy moves with the weights
                rest = here[len(task.along) :]
                moved = [*task.along.values(), *(np.zeros(len(x)) for x in rest)]
                slopes = f.gradient(here, [along, moved])
                if with_total:
                    slopes = tuple(a + b for a, b in zip(slopes, f.hvp(here, moved), strict=True))
            else:
                slopes = f.hvp(here, along) if task.gradient else ()
        except (Error, ArithmeticError) as error:
            failures[n] = error
            continue
        for key, numbers in zip(gradient, slopes, strict=False):  # the others are by facts that are no parameters
            gradient[key] -= example.weight * np.ravel(numbers)
    return totals_of(examples, values, gradient, failures)


def without_constants(program: Program, what: str) -> None:
    """Raises Error where a rule has a constant factor, whose log no fact tells."""
    rules = context_of(program).rules
    for axiom in rules.axioms:
        if axiom.value:  # other than zero, the one of `log`
            raise Error(
                f"{what} needs the logs of all factors, and the text gives {axiom.item.key} one; make it a fact"
            )
    for key, predicate in rules.predicates.items():
        if predicate.external:
            raise Error(f"{what} needs the logs of all factors, and a function gives those of {key}; make them facts")
    for rule in rules.rules:
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
