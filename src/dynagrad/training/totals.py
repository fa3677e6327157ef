"""What a pass over data gives: the objective, and its gradient by the log weights of parameters.

Sums have a fixed order: examples in a shard, then shards. So they are the same to the last bit, however many workers
there are.

They are worked out by `objectives/`, and pulled back to free parameters by `specification.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .parameters.rows import Doubles


@dataclass(frozen=True, eq=False)
class Totals:
    """Of a shard, or of all data.

    `gradient` has for each predicate of parameters the derivative of `value` by the log weight of each row (the
    expected count), or by its value where the parametrisation is not of logs. `values` are those of the examples, NaN
    where the goal was not derived, `failures` the errors of examples that failed, by number.
    """

    value: float
    gradient: dict[str, Doubles]
    values: Doubles
    weight: float
    failures: dict[int, Exception]

    @property
    def counted(self) -> int:
        """How many examples count."""
        return len(self.values) - len(self.missing)

    @property
    def missing(self) -> list[int]:
        """The examples whose goal was not derived, or that failed."""
        return np.flatnonzero(np.isnan(self.values)).tolist()


def added(parts: Iterable[Totals]) -> Totals:
    """The totals of shards, added in their order."""
    value, weight, count = 0.0, 0.0, 0
    gradient: dict[str, Doubles] = {}
    values: list[Doubles] = [np.zeros(0)]
    failures: dict[int, Exception] = {}
    for part in parts:
        value += part.value
        weight += part.weight
        for key, numbers in part.gradient.items():
            gradient[key] = gradient[key] + numbers if key in gradient else numbers
        failures.update({count + n: error for n, error in part.failures.items()})
        values.append(part.values)
        count += len(part.values)
    return Totals(value, gradient, np.concatenate(values), weight, failures)
