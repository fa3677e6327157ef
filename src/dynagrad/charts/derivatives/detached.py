"""Gradients and tangents as tables, without the chart that they came from: what their pickles and copies are.

They have the tables of all items, and what errors of lookups need. `copyreg` knows from here how gradients and tangents
of charts are pickled. Nothing is run or differentiated here.
"""

from __future__ import annotations

import copy
import copyreg
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...calls import public
from ...errors import QueryError
from ...facts.relation import take
from ...facts.table import Table, make_table, relation_of
from ...rules.syntax import Term
from ..binding.context import ProgramContext
from ..binding.decoding import matches
from ..binding.loading import Prepared
from ..lookup import check_needed, constants, place, read_known, unknown
from .gradient import Gradient, Tangents, behind, by_items, tables_of


@dataclass(frozen=True)
class Signatures:
    """What can be looked up in a chart: its predicates, those that the outputs do not need, and for others the
    arguments to which the outputs restrict them."""

    keys: tuple[str, ...]
    externals: tuple[str, ...]
    omitted: Mapping[str, str]
    fixed: Mapping[str, Mapping[int, Term]]
    zero: Any

    def check(self, key: str) -> None:
        if key not in self.keys or key in self.omitted:
            raise unknown(key, (*self.keys, *self.externals), self.omitted)

    def number(self, items: Mapping[str, Table], item: Any) -> Any:
        """The number of an item; zero where it was not derived."""
        key, values = place(item, self.check)
        check_needed(self.fixed, key, values)
        try:
            number = items[key][tuple(values)]
        except QueryError:
            return copy.deepcopy(self.zero)
        if isinstance(self.zero, tuple) and isinstance(self.zero[1], np.ndarray):
            return number[0], np.array(number[1])  # as charts have them
        return number


def _known(context: ProgramContext, prepared: Prepared) -> Signatures:
    predicates, plan, scale = context.rules.predicates, prepared.compiled.plan, context.scale
    return Signatures(
        tuple(key for key, predicate in predicates.items() if not predicate.external),
        tuple(key for key, predicate in predicates.items() if predicate.external),
        dict(plan.omitted),
        {key: dict(fixed) for key, fixed in plan.fixed.items()},
        (0.0, scale.zero[1]) if scale.shape == "expectation" else 0.0,
    )


# -- gradients ---------------------------------------------------------------------------------------------------------


class KeptGradient(Gradient):
    """A gradient as tables: for each predicate one like the facts that came in, and one by item."""

    def __init__(self, tables: dict[str, Table], items: dict[str, Table], value: Any, known: Signatures) -> None:
        self._tables, self._by_item, self.value, self._known = tables, items, value, known

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __reduce__(self) -> tuple[Any, ...]:
        return KeptGradient, (self._tables, self._by_item, self.value, self._known)

    @public
    def item(self, item: Any) -> Any:
        """The derivative with respect to one item; zero where it was not derived."""
        return self._known.number(self._by_item, item)


def _kept_gradient(gradient: Gradient) -> tuple[Any, ...]:
    """A gradient of a chart, as `__reduce__` returns it."""
    context, prepared = behind(gradient)
    tables = {key: gradient[key] for key in gradient}
    items = {key: by_items(gradient, key) for key in tables if key in prepared.compiled.plan.tables}
    return KeptGradient, (tables, items, gradient.value, _known(context, prepared))


copyreg.pickle(Gradient, _kept_gradient)


# -- tangents ----------------------------------------------------------------------------------------------------------


class KeptTangents(Tangents):
    """Tangents as tables of items."""

    def __init__(self, items: dict[str, Table], known: Signatures) -> None:
        self._by_item, self._known = items, known

    def __reduce__(self) -> tuple[Any, ...]:
        return KeptTangents, (self._by_item, self._known)

    def _tables(self) -> dict[str, Table]:
        return self._by_item

    @public
    def __getitem__(self, item: Any) -> Any:
        """The tangent of an item; zero where it was not derived."""
        return self._known.number(self._by_item, item)

    @public
    def query(self, pattern: Any) -> Table:
        """The tangents of all items that match a pattern, as `chart.query` finds them."""
        item = read_known(pattern, self._known.check)
        check_needed(self._known.fixed, item.key, constants(item))
        table = self._by_item[item.key]
        rows = [n for n, row in enumerate(table) if matches(item.arguments, row[:-1])]
        return make_table(take(relation_of(table), np.array(rows, np.int64)))


def _kept_tangents(tangents: Tangents) -> tuple[Any, ...]:
    """Tangents of a chart, as `__reduce__` returns them."""
    return KeptTangents, (tables_of(tangents), _known(*behind(tangents)))


copyreg.pickle(Tangents, _kept_tangents)
