"""Facts that are given twice though their rows do not join: an error that names both rows and the ways out.

How rows join is settled in `rules/checks/joining.py`, and done in native code. Native code says how many facts there
are, so that rows are compared only where some were given twice.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import FactError, cut
from ...facts.relation import Relation, earlier_copies, fact_text, row_numbers
from ...facts.terms import float_text
from ...rules.aggregators import AGGREGATORS
from .context import ProgramContext
from .loading import Prepared

Places = Callable[[str], tuple[int, int, int]]
"""How many rows of a predicate are bound, stand in the text, and are the run's own, in this order."""


def check_copies(context: ProgramContext, prepared: Prepared, places: Places) -> None:
    """Raises where a fact of a chart is given twice, and its rows do not join, or contradict each other under `=`."""
    for key in context.unjoined:
        table, relation = prepared.compiled.plan.tables.get(key), prepared.relations.get(key)
        held = None if table is None else prepared.chart.weights[table.number]
        if relation is not None and held is not None and held.facts.rows < relation.count:
            _check(context, relation, places(key))


def _check(context: ProgramContext, relation: Relation, parts: tuple[int, int, int]) -> None:
    predicate, numbers = context.rules.predicates[relation.key], row_numbers(relation)
    firsts = np.zeros(int(numbers.max()) + 1, np.int64)
    firsts[numbers[::-1]] = np.arange(relation.count - 1, -1, -1)
    again = np.flatnonzero(earlier_copies(numbers) > 0)
    before = firsts[numbers[again]]
    if not predicate.unjoined:
        if relation.values is None:
            return
        differ = (relation.values[again] != relation.values[before]).reshape(len(again), -1).any(axis=1)
        again, before = again[differ], before[differ]
        if not len(again):
            return
    rows = int(before[0]), int(again[0])
    fact, places = cut(fact_text(relation, rows[1])), _places(relation, rows, parts)
    if relation.values is not None and relation.values.ndim == 1:
        values = [relation.values[row].item() for row in rows]
        places += f", with the values {' and '.join(float_text(v) if isinstance(v, float) else str(v) for v in values)}"
    if not predicate.unjoined:
        raise FactError(f"{fact} is given two different values by `=`: {places}. Give one row for each fact")
    raise FactError(
        f"{fact} is given twice: {places}. Rows of one fact do not join here, since {predicate.unjoined}. Give one row "
        f"for each fact, or say how they join: {_ways(context, relation.key)} or another aggregator"
    )


def _ways(context: ProgramContext, key: str) -> str:
    """Declarations by which rows would join: first by the aggregators of the rules that read them."""
    readers = [r for r in context.rules.rules if any(a.item.key == key and not a.side for a in r.antecedents)]
    read = [a for a in dict.fromkeys(r.aggregator for r in readers) if a in AGGREGATORS and a not in ("=", "|=")]
    first, second, third = list(dict.fromkeys((*read, "+=", "min=", "max=")))[:3]
    return f"`:- input {key} {first}.`, or with {second}, {third}"


def _places(relation: Relation, rows: tuple[int, int], parts: tuple[int, int, int]) -> str:
    """Where two rows of one fact come from."""
    shared, axioms, _ = parts
    several = sum(bool(part) for part in parts) > 1

    def place(row: int) -> tuple[str, str]:
        here, there = relation.places.of(row)
        if here.file:
            return f" of {cut(here.file)}", here.row(there)
        if row < shared:
            return " of the bound facts" * several, f"row {row + 1}"
        if row < shared + axioms:
            return " of the constants in the text", f"row {row - shared + 1}"
        return " of the facts of the run" * several, f"row {row - shared - axioms + 1}"

    (first, a), (second, b) = map(place, rows)
    if first != second:
        return f"in {a}{first} and {b}{second}"
    noun, number = a.split(" ")
    return f"in {noun}s {number} and {b.split(' ')[1]}{first}"
