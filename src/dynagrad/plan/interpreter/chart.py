"""The chart: the items that were derived so far and have entered it, with their values and indexes; facts, too.

What loops, probes and absences of nests find is exactly what is here. An item that waits in an agenda is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...rules.syntax import Item as Pattern
from ...rules.syntax import Term, Variable
from ..model import IndexPlan, Plan
from ..nest import Absence, Access, Loop
from ..traits import is_dense
from .numbers import Value
from .terms import Binding, Row, build_all, match_all


@dataclass(frozen=True, order=False)
class GroundItem:
    """A ground item: its predicate, `name/arity`, and its arguments."""

    key: str
    row: Row


@dataclass(frozen=True, eq=False)
class GroundChart:
    """Items and facts by predicate, in the order in which they entered; what grows are its dicts and lists."""

    plan: Plan
    values: dict[str, dict[Row, Value]] = field(default_factory=dict)
    indexes: dict[int, dict[Row, list[Row]]] = field(default_factory=dict)
    """By the number of an index: the rows that match its pattern, grouped by what it goes by."""
    rows: dict[str, dict[Row, list[Row]]] = field(default_factory=dict)
    """Of dense tables: the items of a row, in which only the last stored argument differs."""

    def value(self, item: GroundItem) -> Value | None:
        """The value of an item; None where it is not in the chart."""
        return self.values.get(item.key, {}).get(item.row)

    def set(self, item: GroundItem, value: Value) -> None:
        """Gives an item a value; it enters the indexes the first time."""
        table = self.values.setdefault(item.key, {})
        if item.row not in table:
            self._enter(item)
        table[item.row] = value

    def _enter(self, item: GroundItem) -> None:
        for index in self.plan.indexes:
            if index.key == item.key:
                keys = _keys(index, item.row)
                if keys is not None:
                    self.indexes.setdefault(index.number, {}).setdefault(keys, []).append(item.row)
        table = self.plan.tables[item.key]
        if is_dense(table) and table.arity:
            self.rows.setdefault(item.key, {}).setdefault(_without(item.row, table.order[-1]), []).append(item.row)

    def candidates(self, loop: Loop, binding: Binding) -> Iterable[Row]:
        """The rows over which a loop goes; they are still to be matched with its item."""
        match loop.access:
            case Access.ALL:
                return tuple(self.values.get(loop.item.key, ()))
            case Access.INDEX:
                keys = build_all(loop.keys, binding)
                return () if keys is None else tuple(self.indexes.get(loop.index, {}).get(keys, ()))
            case Access.ROW:
                last = self.plan.tables[loop.item.key].order[-1]
                keys = build_all(_without(loop.item.arguments, last), binding)
                return () if keys is None else tuple(self.rows.get(loop.item.key, {}).get(keys, ()))

    def lacks(self, absence: Absence, binding: Binding) -> bool:
        """Whether no item matches a negated one."""
        if absence.index < 0:
            item = ground(absence.item, binding)
            return item is None or self.value(item) is None
        keys = build_all(absence.keys, binding)
        return keys is None or not self.indexes.get(absence.index, {}).get(keys)


def ground(pattern: Pattern, binding: Binding) -> GroundItem | None:
    """The item that a pattern is under a binding; None where it is none."""
    row = build_all(pattern.arguments, binding)
    return None if row is None else GroundItem(pattern.key, row)


def _keys(index: IndexPlan, row: Row) -> Row | None:
    """What an index goes by in a row; None where the row does not match the pattern of the index."""
    bound = match_all(index.pattern, row, {})
    return None if bound is None else build_all(tuple(map(Variable, index.by)), bound)


def _without(terms: Sequence[Term], place: int) -> Row:
    return (*terms[:place], *terms[place + 1 :])
