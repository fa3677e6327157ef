"""What a run has at hand: the plan, the chart, values of right sides, and by item what it was derived from.

That is kept for derivatives, which go back from an item to what it was derived from, and for the equations of
components.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...errors import Error
from ...rules.normal import NormalRule
from ..lower import lower
from ..model import Join, Plan
from ..nest import Nest
from ..traits import closed, is_external
from .chart import GroundChart, GroundItem
from .instances import GroundRule, instances
from .numbers import Number, Value, contributed, improves, number_of, plus_of, value_of
from .order import Ranks
from .terms import Row
from .values import RightSides

MOST_STEPS = 50_000
"""Pops of a stage, or rounds, after which its values are taken not to settle."""

Externals = Mapping[str, Callable[..., Number]]
"""By external predicate, the function of ground terms that computes the values of its items."""


@dataclass(frozen=True)
class Asserted:
    """A fact of a predicate that rules define, which is a contribution like any other."""

    item: GroundItem
    number: int
    """Its place among the facts of its predicate."""
    value: Value


Source = Asserted | GroundRule
"""What a contribution comes from."""


Total = tuple[Value, Source]
"""A sum of contributions; where plus selects, the second is the source of the one that it is, the first of several."""


def head_of(source: Source) -> GroundItem:
    """The item that a contribution goes to."""
    return source.item if isinstance(source, Asserted) else source.head


@dataclass(frozen=True, eq=False)
class State:
    """A run; what grows are its dicts, and the chart."""

    plan: Plan
    chart: GroundChart
    right_sides: RightSides
    ranks: Ranks
    asserted: Mapping[str, Sequence[Asserted]]
    externals: Externals
    sources: dict[GroundItem, dict[Source, None]] = field(default_factory=dict)
    """What each derived item was derived from, in the order in which it was found."""
    best: dict[GroundItem, Source] = field(default_factory=dict)
    """Of items whose value is one of their contributions: the source of that one, the first where several tie."""
    nests: dict[int, Nest] = field(default_factory=dict)
    rules: dict[int, NormalRule] = field(default_factory=dict)

    def instances_of(self, join: Join, start: Row = ()) -> Iterator[GroundRule]:
        """The instances that a join finds by the chart as it is: those that begin with an item of these arguments, or
        with nothing."""
        if id(join) not in self.nests:
            self.nests[id(join)] = lower(self.plan, join)
            self.rules[join.rule.number] = join.rule
        return instances(self.nests[id(join)], self.chart, start)

    def contribution(self, source: Source) -> Value:
        """What a source adds to its item, by the values in the chart."""
        if isinstance(source, GroundRule):
            return self.contribution_by(source, self.values(source))
        return contributed(self.plan, self.plan.tables[source.item.key], source.value)

    def contribution_by(self, instance: GroundRule, values: Sequence[Value | None]) -> Value:
        """What an instance adds to its head, where its antecedents have these values."""
        table = self.plan.tables[instance.head.key]
        return contributed(self.plan, table, self.right_sides.value(self.rules[instance.rule], values))

    def values(self, instance: GroundRule) -> list[Value | None]:
        """The values of an instance's antecedents in the chart; none of those that only have to be there."""
        sides = [antecedent.side for antecedent in self.rules[instance.rule].antecedents]
        return [None if side else self.value(item) for side, item in zip(sides, instance.antecedents, strict=True)]

    def value(self, item: GroundItem) -> Value | None:
        """The value of an item in the chart, or outside of the program."""
        if is_external(self.plan.tables[item.key]):
            if item.key not in self.externals:
                raise Error(f"no function was given for the external predicate {item.key}")
            return value_of(self.plan, self.externals[item.key](*item.row))
        return self.chart.value(item)

    def counts(self, instance: GroundRule) -> Iterator[GroundItem]:
        """The antecedents of an instance whose values are part of its contribution."""
        for i, item in enumerate(instance.antecedents):
            if not closed(self.plan, self.rules[instance.rule], i):
                yield item

    def axioms(self, keys: Sequence[str]) -> Iterator[Asserted]:
        """The facts of predicates that rules define."""
        for key in keys:
            yield from self.asserted.get(key, ())

    def record(self, source: Source) -> None:
        """Keeps that an item was derived from a source."""
        self.sources.setdefault(head_of(source), {})[source] = None

    def plus(self, total: Total | None, source: Source) -> Total:
        """A total with what one more source contributes."""
        x = self.contribution(source)
        if total is None:
            return x, source
        table = self.plan.tables[head_of(source).key]
        if table.aggregator == "=" and self.plan.semiring == "plain" and x != total[0]:
            raise Error(f"an item of {table.key} has two values, {number_of(total[0])} and {number_of(x)}")
        best = source if improves(self.plan, table, x, total[0]) else total[1]
        return plus_of(self.plan, table)(total[0], x), best

    def enter(self, item: GroundItem, total: Total) -> None:
        """Gives an item of the chart its value."""
        self.chart.set(item, total[0])
        self.best[item] = total[1]
