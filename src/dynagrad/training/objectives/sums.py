"""Sums of objectives, each times a number. What the terms are is for the other files of this folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...arguments import real_number
from ...charts.program import Program
from ...errors import Error, shown
from ..examples import Example
from ..totals import Totals
from .evaluation import ModelRun, Objective, Task, programs_of, runs_of, totals_of
from .losses import losses_of, weightless, with_losses


@dataclass(frozen=True)
class Sum:
    """Objectives added, each times a number: `Sum((1.0, Conditional()), (-0.5, Entropy()))`.

    An example that one of them has no value for does not count for any. The losses of one are ones for the others.

    >>> import dynagrad as dg
    >>> from dynagrad import training
    >>> sides = {"weight": training.LogLinear({"weight/1": [("h",), ("t",)]})}
    >>> certain = Sum((1.0, training.Conditional()), (-0.5, training.Entropy()))
    >>> model = dg.Model(":- semiring log. goal += weight(S) * seen(S).", sides, objective=certain)
    >>> example = training.Example({"seen/1": [("h",), ("t",)]}, {"seen/1": [("h",)]})
    >>> round(model.score([example]), 6)  # log of a half, and half of log 2 less
    -1.039721
    """

    parts: tuple[tuple[float, Objective], ...]

    def __init__(self, *parts: tuple[float, Objective]) -> None:
        for part in parts:
            if not isinstance(part, tuple) or len(part) != 2 or not hasattr(part[1], "totals"):
                raise Error(f"a part of a sum is a number and an objective, not {shown(part)}")
        if not parts:
            raise Error("a sum of objectives has at least one")
        for x, _ in parts:
            if not np.isfinite(real_number("the factor of an objective", x)):
                raise Error(f"the factor of an objective must be a finite number, not {x}")
        object.__setattr__(self, "parts", tuple((float(x), objective) for x, objective in parts))

    @property
    def programs(self) -> tuple[Program, ...]:
        """Those that its parts run beside the program of the model."""
        return tuple(dict.fromkeys(program for _, part in self.parts for program in programs_of(part)))

    @property
    def losses(self) -> frozenset[str]:
        """The predicates whose facts its parts take for losses."""
        return frozenset().union(*(losses_of(part) for _, part in self.parts))

    def _tasks(self, task: Task) -> list[Task]:
        """What each part is asked for."""
        return [replace(task, ones=task.ones | (self.losses - losses_of(part))) for _, part in self.parts]

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        """Of a shard: the values of its examples, and the gradient of their sum."""
        tasks = self._tasks(task)
        found = [part.totals(own, examples) for own, (_, part) in zip(tasks, self.parts, strict=True)]
        there = ~np.isnan(np.sum([part.values for part in found], axis=0))
        if not there.all() and there.any() and any(len(part.missing) < (~there).sum() for part in found):
            chosen = [e for e, ok in zip(examples, there.tolist(), strict=True) if ok]
            some = [part.totals(own, chosen) for own, (_, part) in zip(tasks, self.parts, strict=True)]
        else:
            some = found
        values = np.sum([x * part.values for (x, _), part in zip(self.parts, found, strict=True)], axis=0)
        gradient = {
            key: np.add.reduce([x * part.gradient[key] for (x, _), part in zip(self.parts, some, strict=True)])
            for key in some[0].gradient
        }
        failures = {n: error for part in reversed(found) for n, error in part.failures.items()}
        return totals_of(examples, values, gradient, failures)

    def runs(self, program: Program, goal: str, example: Example) -> Iterator[ModelRun]:
        """Of an example: those of the parts."""
        for _, part in self.parts:
            others = self.losses - losses_of(part)
            plain = replace(example, facts=weightless(with_losses(example, others), others))
            for other, item, facts in runs_of(part, program, goal, plain):
                yield other, item, weightless(facts, others)
