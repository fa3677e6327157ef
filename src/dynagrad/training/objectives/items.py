"""Any differentiable function of the values of items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...eager.verbs.gradients import value_and_grad
from ...errors import Error
from ..examples import Example
from ..totals import Totals
from .evaluation import LOGS, Task, first_order, totals_of


@dataclass(frozen=True, eq=False)
class OfItems:
    """Any differentiable function of the values of some items, written in Python and differentiated by `dg.grad`.

    `function` takes the values of the items, in their order and on the semiring's scale, and the example.
    """

    items: tuple[str, ...]
    function: Callable[..., Any]

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard: the values of its examples, and the gradient of their sum."""
        first_order(task, "a function of items")
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
        return totals_of(examples, values, gradient, failures)
