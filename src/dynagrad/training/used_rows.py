"""The rows of parameters that examples can use at all: those that a module is run for where few examples are looked at.

Which rows these are is read off forests, which have derivations of weight zero too, so it is the same whatever the
parameters are. What runs an objective makes it says itself; how weights of some rows alone come about is for
`parameters/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..charts.program import Bound, Program, context_of
from ..errors import Error
from ..forks import cached
from .data.observed import counts_of
from .examples import Example
from .objectives.evaluation import runs_of
from .objectives.sums import Sum
from .parameters.rows import Doubles, Indices
from .specification import Specification

Used = Mapping[str, Indices]
"""The rows that are used, in their order, by the name of the parametrisation."""


def tells_all_runs(objective: Any) -> bool:
    """Whether the runs that an objective tells of are all that `totals` makes: a subclass may make others."""
    own = getattr(objective, "__dict__", {})
    makes, tells = (
        None if name in own else next((c for c in type(objective).__mro__ if name in vars(c)), None)
        for name in ("totals", "runs")
    )
    parts = objective.parts if isinstance(objective, Sum) else ()
    return makes is tells is not None and all(tells_all_runs(part) for _, part in parts)


class UsedRows:
    """The rows of row-wise parametrisations that examples can use, found once for each example of lasting data."""

    def __init__(self, spec: Specification) -> None:
        self._spec = spec
        self._names = [name for name, p in spec.parametrisations.items() if p.rowwise]
        self._known_beforehand = spec.program.semiring in ("real", "log") and tells_all_runs(spec.objective)
        self._known: dict[int, tuple[Example, Used | None]] = {}
        self._bounds: dict[Program | None, Bound] = {}

    def of(self, examples: Sequence[Example]) -> Used | None:
        """Those that some of the examples can use; None where all may be needed."""
        if not self._names or not self._known_beforehand:
            return None
        found: list[Used] = []
        for example in examples:
            held = self._known.get(id(example))
            if held is None:
                held = self._known[id(example)] = example, self._of_one(example)
            if held[1] is None:
                return None
            found.append(held[1])
        none = np.zeros(0, np.int64)
        return {name: np.unique(np.concatenate([none, *(one[name] for one in found)])) for name in self._names}

    def _of_one(self, example: Example) -> Used | None:
        spec, places, none = self._spec, self._spec.places, np.zeros(0, np.int64)
        rows: dict[str, list[Any]] = {key: [] for key in places.relations}
        try:
            if example.derivation is not None:
                for key, counts in counts_of(example, places).items():
                    rows[key].append(np.array([*counts], np.int64))
            for program, item, facts in runs_of(spec.objective, spec.program, spec.goal, example):
                bound = self._bound(program)
                rules = context_of(bound.program).rules
                chart = bound.run(facts)
                if rules.prunes or rules.beams or not chart.converged:
                    return None
                if item in chart:
                    forest = chart.forest(item).packed
                    for key, used in rows.items():
                        used.append(forest.rows(key))
        except Error:  # which a pass will tell of, if it is one
            return None
        found: dict[str, Indices] = {}
        for name in self._names:
            begin, parts = 0, [none]
            for key, relation in self._spec.parametrisations[name].rows.relations.items():
                parts.append(begin + np.unique(np.concatenate([none, *rows[key]])))
                begin += relation.count
            found[name] = np.concatenate(parts)
        return found

    def _bound(self, program: Program | None) -> Bound:
        """A program with the weights that training begins with, in whatever place it is taken up."""
        if program not in self._bounds:
            self._bounds[program] = self._spec.with_weights(self._first_weights, program)
        return self._bounds[program]

    @cached
    def _first_weights(self) -> Mapping[str, Doubles]:
        return self._spec.weights(self._spec.start(0))
