"""The instances of a rule, by its nest: its operations are run as nested loops, from the outermost in.

This is all that a nest means: whatever else is done with an instance (its value, an edge, an equation) is done by who
asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..model import TableKind
from ..nest import Absence, Guard, Let, Loop, Match, Nest, Probe
from .chart import GroundChart, GroundItem, ground
from .terms import Binding, Row, build, holds, match, match_all


@dataclass(frozen=True)
class GroundRule:
    """A ground rule: the number of its rule, its head, and its antecedents in the order of the text."""

    rule: int
    head: GroundItem
    antecedents: tuple[GroundItem, ...]


def instances(nest: Nest, chart: GroundChart, start: Row = ()) -> Iterator[GroundRule]:
    """The instances of a rule that begin with an item of these arguments, or with nothing."""
    binding = match_all(nest.given, start, {})
    if binding is not None:
        yield from _inside(nest, 0, chart, binding)


def _inside(nest: Nest, depth: int, chart: GroundChart, binding: Binding) -> Iterator[GroundRule]:
    """The instances that the operations from `depth` on find."""
    if depth == len(nest.body):
        instance = _instance(nest, binding)
        if instance is not None:
            yield instance
        return
    for extended in _step(nest, depth, chart, binding):
        yield from _inside(nest, depth + 1, chart, extended)


def _step(nest: Nest, depth: int, chart: GroundChart, binding: Binding) -> Iterator[Binding]:
    """The bindings with which an operation goes on: of a loop any number, of all others one, or none."""
    extended: Binding | None = None
    match nest.body[depth]:
        case Loop(item=item, matches=matches) as loop:
            for row in chart.candidates(loop, binding):
                bound = match_all(tuple(item.arguments[k] for k in matches), tuple(row[k] for k in matches), binding)
                if bound is not None:
                    yield bound
            return
        case Probe(item=item, kind=kind):
            at = ground(item, binding)
            if at is not None and (kind is TableKind.EXTERNAL or chart.value(at) is not None):
                extended = binding
        case Guard(condition=condition):
            extended = binding if holds(condition, binding) else None
        case Absence() as absence:
            extended = binding if chart.lacks(absence, binding) else None
        case Let(variable=variable, term=term, exact=exact):
            value = build(term, binding)
            if value is not None:
                extended = {**binding, variable: value}
                if exact is not None and build(exact[0], extended) != build(exact[1], extended):
                    extended = None
        case Match(variable=variable, pattern=pattern):
            extended = match(pattern, binding[variable], binding)
    if extended is not None:
        yield extended


def _instance(nest: Nest, binding: Binding) -> GroundRule | None:
    """The instance that a binding of all variables is; None where the head is no item."""
    head = ground(nest.head.item, binding)
    items = [ground(antecedent.item, binding) for antecedent in nest.rule.antecedents]
    antecedents = tuple(item for item in items if item is not None)
    return None if head is None or len(antecedents) < len(items) else GroundRule(nest.rule.number, head, antecedents)
