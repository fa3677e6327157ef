"""Gradients by the instances of a run: the adjoint of each item from those of the items that it is used in.

Components of the ground program are gone back over in reverse order. Within a cycle adjoints are the solution of the
transposed linear system (the implicit function theorem). What a contribution gets of the adjoint of its item is said by
the kind of the item's aggregator, and what an antecedent gets of that by the derivatives of the right side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from ...components import strongly_connected
from ...errors import NotDifferentiable
from ...rules.aggregators import HeadKind
from ...rules.semirings import SEMIRINGS
from ..traits import copy_kind, head_kind, is_external, is_facts
from .chart import GroundItem
from .equations import solve_linear
from .instances import GroundRule
from .numbers import Number, Value, add, number_of
from .state import Asserted, Source, State
from .terms import Row

Adjoints = dict[GroundItem, Value]
Facts = Mapping[str, list[tuple[Row, Value]]]


def pull_back(state: State, facts: Facts, goal: GroundItem, cotangent: Value) -> dict[str, list[Value]]:
    """The derivatives of a goal by the numbers of all facts, row by row, for a cotangent of its value."""
    row = SEMIRINGS[state.plan.semiring]
    if row.no_derivatives:
        raise NotDifferentiable(f"there are no derivatives: {row.no_derivatives}")
    nothing = (0.0,) * len(state.right_sides.algebra.one)
    value = state.chart.value(goal)
    adjoints: Adjoints = {}
    by_fact: dict[tuple[str, int], Value] = {}
    if value is not None and (row.sums_up or state.plan.semiring == "plain" or math.isfinite(value[0])):
        adjoints[goal] = cotangent
    order = strongly_connected([goal], lambda item: _antecedents(state, item))
    for component in reversed(order):
        if len(component) > 1 or component[0] in _antecedents(state, component[0]):
            _solve_adjoints(state, component, adjoints)
        for item in component:
            if item in adjoints:
                for at, part in _parts(state, item, adjoints[item]):
                    if isinstance(at, Asserted):
                        place = at.item.key, at.number
                        by_fact[place] = add(by_fact.get(place, nothing), part)
                    elif at not in component:
                        adjoints[at] = add(adjoints.get(at, nothing), part)
    return {key: _by_rows(state, key, rows, adjoints, by_fact, nothing) for key, rows in facts.items()}


def _antecedents(state: State, item: GroundItem) -> list[GroundItem]:
    """The items whose values are part of an item's value, but for those whose values come from outside."""
    instances = [source for source in state.sources.get(item, ()) if isinstance(source, GroundRule)]
    inside = [other for instance in instances for other in state.counts(instance)]
    return [other for other in inside if not is_external(state.plan.tables[other.key])]


def _parts(state: State, item: GroundItem, adjoint: Value) -> Iterator[tuple[GroundItem | Asserted, Value]]:
    """What the items and facts that an item is made of get of its adjoint."""
    if not any(adjoint):
        return
    sources = state.sources.get(item, {})
    contributions = {source: state.contribution(source) for source in sources}
    for source, share in _shares(state, item, contributions).items():
        part = tuple(share * a for a in adjoint)
        if isinstance(source, Asserted):
            yield source, part
        elif any(part):
            values = state.values(source)
            for i, g in state.right_sides.partials(state.rules[source.rule], values, part).items():
                yield source.antecedents[i], g


def _shares(state: State, item: GroundItem, contributions: Mapping[Source, Value]) -> Mapping[Source, float]:
    """The derivatives of an item's value by its contributions, where they are not zero."""
    table, total = state.plan.tables[item.key], state.chart.value(item)
    assert total is not None
    kind = _of_numbers(state, head_kind(state.plan, table))
    if kind is HeadKind.SELECT:
        best = state.best.get(item)
        return {} if best is None or math.isinf(total[0]) else {best: 1.0}
    return dict(zip(contributions, shares(kind, [x[0] for x in contributions.values()], total[0]), strict=True))


def _of_numbers(state: State, kind: HeadKind) -> HeadKind:
    """The kind by which the numbers of values are joined: a sum of weights is a softmax of their logs."""
    return HeadKind.SOFTMAX if SEMIRINGS[state.plan.semiring].adds_logs and kind is HeadKind.SUM else kind


def shares(kind: HeadKind, contributions: list[float], total: float) -> list[float]:
    """The derivatives of a value by its contributions; of several that tie where one is selected, the first has all.

    >>> shares(HeadKind.PRODUCT, [2.0, 0.0, 3.0], 0.0)
    [0.0, 6.0, 0.0]
    """
    match kind:
        case HeadKind.SUM | HeadKind.SHIFT:
            return [1.0] * len(contributions)
        case HeadKind.SOFTMAX:
            return [0.0 if total == -math.inf else math.exp(x - total) for x in contributions]
        case HeadKind.PRODUCT:
            return [math.prod(contributions[:n] + contributions[n + 1 :]) for n in range(len(contributions))]
        case HeadKind.SELECT:
            first = contributions.index(total)
            return [float(n == first and math.isfinite(total)) for n in range(len(contributions))]
    return [0.0] * len(contributions)


def _solve_adjoints(state: State, component: list[GroundItem], adjoints: Adjoints) -> None:
    """The adjoints of the items of a cycle, from those that they got from outside."""
    width = len(state.right_sides.algebra.one)
    number = {item: n for n, item in enumerate(component)}
    size = len(component) * width
    transfer = np.zeros((size, size))
    for item, n in number.items():
        for c in range(width):
            unit = tuple(float(c == d) for d in range(width))
            for at, part in _parts(state, item, unit):
                if isinstance(at, GroundItem) and at in number:
                    place = number[at] * width
                    transfer[place : place + width, n * width + c] += part
    nothing = (0.0,) * width
    received = np.array([adjoints.get(item, nothing) for item in component]).reshape(size)
    solution = solve_linear(transfer, received).reshape(len(component), width)
    adjoints.update((item, tuple(map(float, solution[n]))) for item, n in number.items())


def _by_rows(
    state: State,
    key: str,
    rows: list[tuple[Row, Value]],
    adjoints: Adjoints,
    by_fact: Mapping[tuple[str, int], Value],
    nothing: Value,
) -> list[Value]:
    """The derivatives by the facts of a predicate: copies of one have their shares."""
    table = state.plan.tables[key]
    if not is_facts(table):
        return [by_fact.get((key, n), nothing) for n in range(len(rows))]
    copies: dict[Row, list[int]] = {}
    for n, (row, _) in enumerate(rows):
        copies.setdefault(row, []).append(n)
    derivatives = [nothing] * len(rows)
    kind = _of_numbers(state, copy_kind(state.plan, table))
    for row, places in copies.items():
        adjoint, total = adjoints.get(GroundItem(key, row), nothing), state.chart.value(GroundItem(key, row))
        assert total is not None
        parts = [1.0] if len(places) == 1 else shares(kind, [rows[n][1][0] for n in places], total[0])
        for n, share in zip(places, parts, strict=True):
            derivatives[n] = tuple(share * a for a in adjoint)
    return derivatives


def derivative(state: State, facts: Facts, goal: GroundItem) -> dict[str, list[Number]]:
    """The derivatives of a goal by all facts, row by row; in `expectation` they are numbers of the semiring, too."""
    width = len(state.right_sides.algebra.one)
    if state.plan.semiring != "expectation":
        by_facts = pull_back(state, facts, goal, (1.0,))
        return {key: [number_of(value) for value in values] for key, values in by_facts.items()}
    # r of the goal is p of the derivative times r of the fact, and r of the derivative times p of the fact
    by_part = [pull_back(state, facts, goal, tuple(float(c == d) for c in range(width))) for d in range(1, width)]
    return {
        key: [(by_part[0][key][n][1], *(part[key][n][0] for part in by_part)) for n in range(len(facts[key]))]
        for key in facts
    }
