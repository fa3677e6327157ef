"""The likelihood, of all derivations or of the best, and the conditional likelihood with its large-margin kin.

Priors are no part of them; they are in `training/priors.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...calls import strict_options_class
from ...charts.program import Program
from ...errors import Error, shown
from ...facts.readers import read
from ..data.observed import counts_of
from ..examples import Example
from ..parameters.rows import Doubles
from ..totals import Totals
from .evaluation import ModelRun, RunSide, Scores, Task, facts_for, of_each, scores_of, totals_of
from .losses import charged, cost_key, numbered, weightless, with_losses


@dataclass(frozen=True)
class Likelihood:
    """The log of the goal's value, summed over examples: in `viterbi`, of the best derivation.

    What an example has observed is among its facts; of an observed derivation it is its own weight.

    >>> import dynagrad as dg
    >>> text = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."
    >>> rows, either = {"toss/1": [("h", 3.0), ("t", 1.0)]}, {"seen/1": [("h",), ("t",)]}
    >>> dg.Model(text, rows, objective=Likelihood()).score([either])  # of both sides together
    0.0
    """

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard: the values of its examples, and the gradient of their sum."""
        clamped = task.made(examples, ("clamped", None), lambda: of_each(examples, lambda e: task.seen(e.clamped)))
        weights = task.weights_of(examples)
        found = scores_of(task, examples, clamped, weights, task.goal)
        return totals_of(examples, found.values, found.gradient, found.errors, weights)

    def runs(self, program: Program, goal: str, example: Example) -> Iterator[ModelRun]:
        """Of an example."""
        yield None, goal, example.clamped


@dataclass(frozen=True)
class Best:
    """The log of the weight of the best derivation, for Viterbi EM; its gradient counts what that uses."""

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard: the values of its examples, and the gradient of their sum."""
        batch = task.bound.run_batch(
            of_each(examples, lambda e: task.seen(e.clamped)), query=task.goal, best=1, threads=task.threads
        )
        zero = -np.inf if task.semiring == "log" else 0.0
        found = [
            replace(e, derivation=best[0]) if best and best[0].weight != zero and e.derivation is None else e
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
                one = scores_of(task, [example], [task.seen(example.clamped)], [example.weight], task.goal)
                values[n] = one.values[0]
                if np.isnan(values[n]):
                    continue  # it has a weight of zero
            for key, rows in counts_of(derived, task.places).items():
                for row, count in rows.items():
                    gradient[key][row] += example.weight * count
        return totals_of(examples, values, gradient, batch.errors)

    def runs(self, program: Program, goal: str, example: Example) -> Iterator[ModelRun]:
        """Of an example."""
        yield None, goal, example.clamped


@strict_options_class
@dataclass(frozen=True)
class Conditional:
    """The log-probability of what was observed, given the facts: log Z of the clamped run less that of the free one.

    The clamped run has the facts of `Example.observed` in place of those of the same predicates, asks for another item,
    `observed`, or is of another program, `clamped`, which has the same parameters; or all of these. Each program takes
    of an example the facts that it has predicates for. An observed derivation stands for its clamped run, so it is one
    of `clamped` where that is given. In `viterbi` this is the structured perceptron's objective (Collins 2002,
    "Discriminative training methods for hidden Markov models"): the score of what was observed, less that of the best
    derivation; and with `cost` it is the max-margin one (Taskar, Guestrin and Koller 2003): the facts of that predicate
    are taken as they are in the free run, and count as the semiring's one in the clamped run, and in everything else
    that the model works out.

    >>> import dynagrad as dg
    >>> from dynagrad import training
    >>> weights = training.LogLinear({"weight/1": [("h",), ("t",)]}, initial={"weight(h)": 1.0})
    >>> model = dg.Model(
    ...     ":- semiring log. goal += weight(S) * seen(S).", {"weight": weights}, objective=Conditional()
    ... )
    >>> example = training.Example({"seen/1": [("h",), ("t",)]}, {"seen/1": [("h",)]})
    >>> round(model.score([example]), 6)  # log of e / (e + 1)
    -0.313262
    """

    observed: str | None = None
    cost: str | None = None
    clamped: Program | None = None

    def __post_init__(self) -> None:
        if self.clamped is not None and not isinstance(self.clamped, Program):
            raise Error(f"clamped is the program of the clamped run, a dg.Program, not {shown(self.clamped)}")
        if self.observed is not None and not isinstance(self.observed, str):
            raise Error(f"observed is an item, such as 'goal', not {shown(self.observed)}")
        if self.cost is not None:
            cost_key(self.cost)

    @property
    def programs(self) -> tuple[Program, ...]:
        """Those that are run beside the program of the model."""
        return () if self.clamped is None else (self.clamped,)

    @property
    def losses(self) -> frozenset[str]:
        """The predicate whose facts are costs."""
        return frozenset(() if self.cost is None else (self.cost,))

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard: the values of its examples, and the gradient of their sum."""
        program = task.bound.program

        def facts() -> list[Mapping[str, Any]]:
            return of_each(examples, lambda e: task.seen(self.facts_of(program, e)[0]))

        clamped = task.made(examples, ("clamped", self), facts)
        weights = task.weights_of(examples)
        asked = task.goal if self.observed is None else self.observed
        side = RunSide(f"clamped {self.cost}", single=True)

        def observed(weights: Doubles) -> Scores:
            return scores_of(task.of(self.clamped), examples, clamped, weights, asked, side=side)

        # what was not derived counts on neither side
        top = observed(weights)
        bottom = self._free(task, examples, np.where(np.isnan(top.values), 0.0, weights))
        lost = np.isnan(bottom.values) & ~np.isnan(top.values)
        if lost.any():
            top = observed(np.where(lost, 0.0, weights))
        gradient = {key: x - bottom.gradient[key] for key, x in top.gradient.items()}
        return totals_of(examples, top.values - bottom.values, gradient, {**bottom.errors, **top.errors}, weights)

    def runs(self, program: Program, goal: str, example: Example) -> Iterator[ModelRun]:
        """Of an example: the clamped one, and the free one."""
        clamped, free = self.facts_of(program, example)
        yield self.clamped, self.observed or goal, clamped
        yield None, goal, free

    def _free(self, task: Task, examples: Sequence[Example], weights: Doubles) -> Scores:
        program = task.bound.program

        def made() -> list[Mapping[str, Any]]:
            return of_each(examples, lambda e: task.seen(self.facts_of(program, e, task.ones)[1]))

        facts, side = task.made(examples, ("free", self), made), RunSide(f"free {self.cost}")
        task = replace(task, bound=charged(task.bound, self.cost, task.losses))
        return scores_of(task, examples, facts, weights, task.goal, observed=False, side=side)

    def free(self, task: Task, examples: Sequence[Example]) -> Totals:
        """The free runs alone, of examples that count on both sides: for iterative scaling."""
        there = ~np.isnan(self.totals(replace(task, gradient=False), examples).values)
        weights = np.array([e.weight for e in examples], np.float64)
        found = self._free(task, examples, np.where(there, weights, 0.0))
        return totals_of(examples, np.where(there, found.values, np.nan), found.gradient, found.errors)

    def facts_of(
        self, program: Program, example: Example, others: Collection[str] = ()
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The facts of the clamped run of an example, and those of the free one, which is of a program.

        `others` are losses that are not of this objective.
        """
        clamped, free = weightless(example.clamped, self.losses), with_losses(example, {*self.losses, *others})
        here = {key: numbered(read(key, free[key])) for key in self.losses if key in free}
        free = {**free, **here} if here else free
        if self.clamped is None:
            return clamped, free
        one, other = self.clamped.predicates, program.predicates
        return facts_for(clamped, one, other), facts_for(free, other, one)
