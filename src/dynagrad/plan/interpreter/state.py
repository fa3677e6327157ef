"""What a run has at hand: the plan, the chart, values of right sides, and the instances that were found, by head.

The instances are kept for derivatives, and for the equations of components.
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
from .numbers import Value, contributed, read
from .order import Ranks
from .terms import Row
from .values import RightSides

MOST_STEPS = 200_000
"""Pops, or rounds, after which a run is given up."""

Outside = Mapping[str, Callable[..., float]]
"""By predicate, the functions that compute the values of external items, of ground terms."""


@dataclass(frozen=True)
class Asserted:
    """A fact of a predicate that rules define, which is a contribution like any other."""

    item: GroundItem
    number: int
    """Its place among the facts of its predicate."""
    value: Value


Source = Asserted | GroundRule
"""What a contribution comes from."""


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
    given: Mapping[str, Sequence[Asserted]]
    outside: Outside
    sources: dict[GroundItem, dict[Source, None]] = field(default_factory=dict)
    """What each derived item was derived from, in the order in which it was found."""
    best: dict[GroundItem, Source] = field(default_factory=dict)
    """Of items whose value is one of their contributions: what that came from."""
    nests: dict[int, Nest] = field(default_factory=dict)
    rules: dict[int, NormalRule] = field(default_factory=dict)

    def of(self, join: Join, given: Row = ()) -> Iterator[GroundRule]:
        """The instances that a join finds, which begin with an item of these arguments, or with nothing."""
        if id(join) not in self.nests:
            self.nests[id(join)] = lower(self.plan, join)
            self.rules[join.rule.number] = join.rule
        return instances(self.nests[id(join)], self.chart, given)

    def contribution(self, instance: GroundRule, values: Sequence[Value | None]) -> Value:
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
            if item.key not in self.outside:
                raise Error(f"no function was given for the external predicate {item.key}")
            return read(self.plan, self.outside[item.key](*item.row))
        return self.chart.value(item)

    def counts(self, instance: GroundRule) -> Iterator[GroundItem]:
        """The antecedents of an instance whose values are part of its contribution."""
        for i, item in enumerate(instance.antecedents):
            if not closed(self.plan, self.rules[instance.rule], i):
                yield item

    def axioms(self, keys: Sequence[str]) -> Iterator[Asserted]:
        """The facts of predicates that rules define."""
        for key in keys:
            yield from self.given.get(key, ())

    def found(self, source: Source, *, best: bool = False) -> None:
        """Keeps what an item was derived from."""
        head = head_of(source)
        self.sources.setdefault(head, {})[source] = None
        if best or head not in self.best:
            self.best[head] = source
