"""Stages that are solved: all items are found first, then their values, component by component of the ground program.

A strongly connected component (Tarjan 1972) that is a cycle is a system of equations: each item is the sum of its
instances, which are polynomials in the others. Where they are not, values are iterated until they settle.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Mapping, Sequence

import numpy as np

from ...components import strongly_connected
from ...errors import Error
from ...rules.semirings import SEMIRINGS
from ..analyses.polynomials import Monomials, polynomial
from ..model import Stage
from ..right_sides import product_order, to_node
from ..traits import clause_defined
from .chart import GroundItem
from .equations import Monomial, jacobian, least_logs, least_solution, solve_linear
from .instances import GroundRule
from .numbers import Value, same, value_of
from .order import Heap, level
from .state import MOST_STEPS, Asserted, State, Total


def solve(state: State, stage: Stage) -> None:
    """Finds the items of a stage, then their values."""
    _explore(state, stage)
    heads = [item for item in state.sources if item.key in stage.keys]

    def needs(item: GroundItem) -> list[GroundItem]:
        instances = [source for source in state.sources[item] if isinstance(source, GroundRule)]
        return [other for i in instances for other in state.counts(i) if other.key in stage.keys]

    for component in strongly_connected(heads, needs):
        if len(component) > 1 or component[0] in needs(component[0]):
            _solve_component(state, stage, component)
        else:
            total = _total(state, component[0])
            assert total is not None
            state.enter(component[0], total)


def _explore(state: State, stage: Stage) -> None:
    """Finds all items and instances, whatever their values; by levels, since some antecedents drive nothing because
    another one is always popped later."""
    plan, waiting, seen = state.plan, Heap(), set[GroundItem]()
    unknown = state.right_sides.algebra.zero

    def reach(item: GroundItem) -> None:
        if item not in seen:
            seen.add(item)
            waiting.push(item, (level(stage.forms, plan, state.ranks, item), 0.0))

    for fact in state.axioms(stage.keys):
        state.record(fact)
        reach(fact.item)
    for join in stage.fires:
        for instance in state.instances_of(join):
            state.record(instance)
            reach(instance.head)
    for _ in range(MOST_STEPS):
        item = waiting.pop()
        if item is None:
            return
        state.chart.set(item, unknown)
        for join in stage.drives:
            if join.driver is None or join.rule.antecedents[join.driver].item.key != item.key:
                continue
            for instance in state.instances_of(join, item.row):
                if not any(i > join.driver and instance.antecedents[i] == item for i in join.same):
                    state.record(instance)
                    reach(instance.head)
    raise Error(f"there are too many items of {', '.join(stage.keys)}")


def _total(state: State, item: GroundItem, unknown: Container[GroundItem] = ()) -> Total | None:
    """The value of an item, from those of all that it is derived from; not from items whose value is unknown yet."""
    total: Total | None = None
    for source in state.sources[item]:
        if not isinstance(source, GroundRule) or all(other not in unknown for other in state.counts(source)):
            total = state.plus(total, source)
    return total


def _solve_component(state: State, stage: Stage, component: Sequence[GroundItem]) -> None:
    """Gives the items of a cyclic component their values."""
    solvable = state.plan.semiring != "count" and stage.unknowns > 0 and state.plan.user is None
    solution = _solution(state, component) if solvable else None
    if solution is None:
        _iterate(state, component)
        return
    for item, value in zip(component, solution, strict=True):
        state.chart.set(item, value)


def _iterate(state: State, component: Sequence[GroundItem]) -> None:
    """Each item from the newest values of the others, as far as they are known, until nothing changes."""
    unknown = set(component)
    for _ in range(MOST_STEPS // len(component)):
        settled = not unknown
        for item in component:
            total = _total(state, item, unknown)
            if total is None:
                continue
            old = None if item in unknown else state.chart.value(item)
            settled = settled and old is not None and same(old, total[0])
            if old != total[0]:  # else the source of an earlier turn stays, which reached it first
                state.enter(item, total)
            unknown.discard(item)
        if settled:
            return
    raise Error(f"the value of {component[0].key} does not settle")


# -- equations ---------------------------------------------------------------------------------------------------------

Product = tuple[Value, tuple[int, ...]]
"""A coefficient, a number of the semiring, times unknowns, which are numbered."""


def _solution(state: State, component: Sequence[GroundItem]) -> list[Value] | None:
    """The solution of a component's equations; None where they are to be iterated."""
    number = {item: n for n, item in enumerate(component)}
    equations: list[list[Product]] = []
    for item in component:
        if clause_defined(state.plan, state.plan.tables[item.key]):
            equations.append([(state.right_sides.algebra.one, ())])
            continue
        products: list[Product] = []
        for source in state.sources[item]:
            if isinstance(source, Asserted):
                products.append((source.value, ()))
                continue
            of_instance = _products(state, source, number)
            if of_instance is None:
                return None
            products += of_instance
        equations.append(products)
    weights: list[list[Monomial]] = [[(c[0], unknowns) for c, unknowns in each] for each in equations]
    if SEMIRINGS[state.plan.semiring].adds_logs:
        return [(x,) for x in least_logs(weights)]
    x = least_solution(weights)
    if x is None:
        return None
    if state.plan.semiring != "expectation":
        return [(float(value),) for value in x]
    # a pair has r beside p: r = J r + what r of the coefficients brings, with J the Jacobian at p
    constants = np.array(
        [
            [sum(c[1 + d] * float(np.prod(x[list(u)])) for c, u in each) for d in range(state.plan.vector)]
            for each in equations
        ]
    )
    r = solve_linear(jacobian(weights, x), constants)
    return [(float(p), *map(float, rest)) for p, rest in zip(x, r, strict=True)]


def _products(state: State, instance: GroundRule, number: Mapping[GroundItem, int]) -> list[Product] | None:
    """What an instance contributes as a sum of products of the items that are numbered; None where it is no
    polynomial in them."""
    rule = state.rules[instance.rule]
    inside = [i for i, a in enumerate(rule.antecedents) if not a.side and instance.antecedents[i] in number]
    values = state.values(instance)
    if state.plan.semiring != "plain":
        factors = [
            value_of(state.plan, constant[1]) if constant is not None else values[antecedent or 0]
            for constant, antecedent in product_order(rule.value)
            if constant is not None or antecedent not in inside
        ]
        counted = [factor for factor in factors if factor is not None]
        coefficient = functools.reduce(state.right_sides.algebra.times, counted, state.right_sides.algebra.one)
        return [(coefficient, tuple(number[instance.antecedents[i]] for i in inside))]
    monomials: Monomials | None = polynomial(rule.value, frozenset(inside))
    if monomials is None:
        return None
    inputs = {f"x{i}": value[0] for i, value in enumerate(values) if value is not None}
    return [
        (
            state.right_sides.number(to_node(coefficient, state.plan.functions), inputs),
            tuple(number[instance.antecedents[i]] for i in unknowns),
        )
        for unknowns, coefficient in monomials.items()
    ]
