"""The rows of parameters that examples can use at all: those that a module is run for where few examples are looked at.

Which rows these are is read off forests, which have derivations of weight zero too, so it is the same whatever the
parameters are. `runs_of` says what runs an objective makes; how weights of some rows alone come about is for
`parameters/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..charts.program import Bound, Program, context_of
from ..errors import Error
from .data.observed import counts_of
from .examples import Example
from .objectives.expectations import Entropy, Risk
from .objectives.items import OfItems
from .objectives.likelihood import Conditional, Likelihood
from .objectives.sums import Sum
from .parameters.rows import Indices
from .specification import Specification

ModelRun = tuple[Program | None, str, Mapping[str, Any]]
"""A run of an example: what program, unless it is the model's; what is asked; and facts."""


def _conditional(objective: Conditional, spec: Specification, example: Example) -> Iterator[ModelRun]:
    clamped, free = objective.facts_of(spec.program, example)
    yield objective.clamped, objective.observed or spec.goal, clamped
    yield None, spec.goal, free


def _sum(objective: Sum, spec: Specification, example: Example) -> Iterator[ModelRun]:
    for _, part in objective.parts:
        yield from RUNS[type(part)](part, spec, example)


RUNS: Mapping[type, Callable[[Any, Specification, Example], Iterator[ModelRun]]] = {
    Likelihood: lambda objective, spec, example: iter([(None, spec.goal, example.clamped)]),
    Risk: lambda objective, spec, example: iter([(None, spec.goal, example.clamped)]),
    Entropy: lambda objective, spec, example: iter([(None, spec.goal, example.facts)]),
    OfItems: lambda objective, spec, example: ((None, item, example.clamped) for item in objective.items),
    Conditional: _conditional,
    Sum: _sum,
}
"""The runs of objectives, by their classes alone: a class that a user derives from one of them may make others."""


def runs_of(spec: Specification, example: Example) -> list[ModelRun] | None:
    """The runs that the objective makes of an example; None where that is not known."""
    try:
        return list(RUNS[type(spec.objective)](spec.objective, spec, example))
    except KeyError:
        return None


Used = Mapping[str, Indices]
"""The rows that are used, in their order, by the name of the parametrisation."""


class UsedRows:
    """The rows of row-wise parametrisations that examples can use, found once for each example of lasting data."""

    def __init__(self, spec: Specification) -> None:
        self._spec = spec
        self._names = [name for name, p in spec.parametrisations.items() if p.rowwise]
        self._known: dict[int, tuple[Example, Used | None]] = {}
        self._bounds: dict[Program | None, Bound] = {}

    def of(self, examples: Sequence[Example]) -> Used | None:
        """Those that some of the examples can use; None where all may be needed."""
        if not self._names or self._spec.program.semiring not in ("real", "log"):
            return None
        found: list[Used] = []
        for example in examples:
            held = self._known.get(id(example))
            if held is None:
                held = self._known[id(example)] = example, self._of_one(example)
            if held[1] is None:
                return None
            found.append(held[1])
        return {name: reduce(np.union1d, [one[name] for one in found], np.zeros(0, np.int64)) for name in self._names}

    def _of_one(self, example: Example) -> Used | None:
        runs, places = runs_of(self._spec, example), self._spec.places
        if runs is None:
            return None
        rows: dict[str, set[int]] = {key: set() for key in places.relations}
        try:
            if example.derivation is not None:
                for key, counts in counts_of(example, places).items():
                    rows[key].update(counts)
            for program, item, facts in runs:
                bound = self._bound(program)
                rules = context_of(bound.program).rules
                chart = bound.run(facts)
                if rules.prunes or rules.beams or not chart.converged:
                    return None
                for key, arguments in chart.forest(item).packed.facts() if item in chart else ():
                    if key in places:
                        rows[key].add(places.row(key, arguments))
        except Error:  # which a pass will tell of, if it is one
            return None
        found: dict[str, Indices] = {}
        for name in self._names:
            begin, parts = 0, [np.zeros(0, np.int64)]
            for key, relation in self._spec.parametrisations[name].rows.relations.items():
                parts.append(begin + np.array(sorted(rows[key]), np.int64))
                begin += relation.count
            found[name] = np.concatenate(parts)
        return found

    def _bound(self, program: Program | None) -> Bound:
        """A program with the weights that training begins with, in whatever place it is taken up."""
        if program not in self._bounds:
            self._bounds[program] = self._spec.with_weights(self._spec.weights(self._spec.start(0)), program)
        return self._bounds[program]
