"""Objectives that users write: any differentiable function of the values of items.

Likelihoods, risk and entropy are in `likelihood.py` and `expectations.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arguments import function_of
from ...calls import strict_options_class
from ...charts.program import Program
from ...eager.verbs.gradients import grad, jvp, value_and_grad
from ...errors import Error, shown
from ..examples import Example
from ..parameters.rows import Doubles
from ..totals import Totals
from .evaluation import LOGS, ModelRun, Task, must_have_products, totals_of


@strict_options_class
@dataclass(frozen=True, eq=False)
class OfItems:
    """Any differentiable function of the values of some items, written in Python and differentiated by `dg.grad`.

    `items` is a list of items, `function` takes their values, in that order and on the semiring's scale, and the
    example, and gives a number. What an example has observed is among its facts. An item that is not derived has the
    semiring's zero; where the function has no finite value for that, the example does not count.

    >>> import dynagrad as dg
    >>> text = ":- semiring real. :- distribution toss(S). side(S) += toss(S) * seen(S). goal += side(_)."
    >>> contrast = OfItems(["side(h)", "side(t)"], lambda values, example: values[0] - values[1] ** 2)
    >>> model = dg.Model(text, {"toss/1": [("h",), ("t",)]}, objective=contrast)
    >>> model.score([{"seen/1": [("h",), ("t",)]}])
    0.25
    """

    items: Sequence[str]
    function: Callable[..., Any]

    def __post_init__(self) -> None:
        items = self.items
        if isinstance(items, str) or not isinstance(items, Sequence) or not items:
            raise Error(f'items is a list of items, such as ["constit(s,0,2)"], not {shown(items)}')
        for item in items:
            if not isinstance(item, str):
                raise Error(f"an item is written as in rules, such as 'constit(s,0,2)', and {shown(item)} is no text")
        object.__setattr__(self, "items", tuple(items))
        function_of("function", self.function, 2, "the values of the items, and the example")

    def _value(self, values: Any, example: Example) -> Any:
        """What the function gives. Raises Error where that is no number."""
        found = self.function(values, example)
        if found is None or callable(found) or np.ndim(found) != 0:
            raise Error(f"the function of items gives {shown(found)}, and not a number")
        return found

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard: the values of its examples, and the gradient of their sum."""
        must_have_products(task)
        values, zero = np.full(len(examples), np.nan), -np.inf if task.semiring in LOGS else 0.0
        failures: dict[int, Exception] = {}
        gradient = {key: np.zeros(len(numbers)) for key, numbers in task.weights.items()} if task.gradient else {}
        for n, example in enumerate(examples):
            try:
                chart = task.bound.run(task.seen(example.clamped))
                found = [float(chart[item]) for item in self.items]
                value, slopes = value_and_grad(lambda x, e=example: self._value(x, e))(found)
                if not np.isfinite(float(value)):
                    # it asks for the log of what is not derived, or the like; or else it is no objective
                    values[n] = np.nan if zero in found else np.inf
                    continue
                if task.along is not None:
                    product = self._product(task, example, found)
                elif task.gradient:
                    items = list(dict.fromkeys(self.items))
                    table = chart.gradient(dict(zip(items, self._summed(items, slopes), strict=True)))
            except (Error, ArithmeticError) as error:
                failures[n] = error
                continue
            values[n] = float(value)
            if task.along is not None:
                for key, part in zip(gradient, product, strict=True):
                    gradient[key] += example.weight * part
                continue
            for key in gradient:
                numbers = np.ravel(np.asarray(table[key].values, np.float64))
                if task.semiring not in LOGS and key not in task.by_value:
                    numbers = numbers * task.weights[key]
                gradient[key] += example.weight * numbers
        return totals_of(examples, values, gradient, failures)

    def _product(self, task: Task, example: Example, values: list[float]) -> list[Doubles]:
        """The derivative of the gradient by log weights, or by values, along the direction of the task."""
        assert task.along is not None
        facts = task.seen(example.clamped)
        f = task.function(example, list(dict.fromkeys(self.items)), task.keys, facts, "items")
        here = list(task.weights.values())
        direct = [task.semiring in LOGS or key in task.by_value for key in task.keys]
        along = [v if d else v * w for d, v, w in zip(direct, task.along.values(), here, strict=True)]
        moved = dict(zip(f.goal, np.atleast_1d(f.jvp(here, along)[1]), strict=True))
        by_items = grad(lambda x: self._value(x, example))
        there = np.isfinite(values)  # what is not derived stays so
        changes = [float(moved[item]) if ok else 0.0 for item, ok in zip(self.items, there, strict=True)]
        slopes, bends = (self._summed(f.goal, x) for x in jvp(by_items, (values,), (changes,)))
        found = [
            np.ravel(a) + np.ravel(b)
            for a, b in zip(f.gradient(here, [along], slopes), f.gradient(here, (), bends), strict=True)
        ]
        if all(direct):
            return found
        first = map(np.ravel, f.gradient(here, (), slopes))
        return [
            x if d else w * (x + v * g)
            for d, w, v, g, x in zip(direct, here, task.along.values(), first, found, strict=True)
        ]

    def _summed(self, items: Sequence[str], numbers: Sequence[Any]) -> list[float]:
        """A number for each of these items, of which one may be among ours more than once."""
        found = dict.fromkeys(items, 0.0)
        for item, x in zip(self.items, numbers, strict=True):
            found[item] += float(x)
        return list(found.values())

    def runs(self, program: Program, goal: str, example: Example) -> Iterator[ModelRun]:
        """Of an example: as if each item were asked for alone."""
        for item in self.items:
            yield None, item, example.clamped
