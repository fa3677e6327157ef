"""Layouts of tables: a predicate with bounded arguments over small domains is a dense array, any other a hash table.

A predicate whose array would be large and nearly empty is a hash table, too. The argument that joins run along is last
in the order of an array, so that its items lie side by side. Indexes are chosen in `plan/access.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from ..joins import free_position, starting_variables, step_variables
from ..model import DomainSummary, Extent, Join, Scan, TableKind, TableLayout
from ..strategy import Draft, StrategyChoice
from .occupancy import MOST_RULES, Occupancy, PairCount

SMALL = 1 << 22
"""A table of at most so many cells is dense whatever the number of its items."""
LEAST_SHARE = 1 / 8
"""The least share of the cells of a larger table that has to be filled, as is estimated: a hash table then needs no
more memory than the array."""


def cells(
    arity: int, domain_of: Sequence[DomainSummary], ranges: Sequence[Extent | None], order: Sequence[int]
) -> int | None:
    """The number of cells of a dense table in the runtime's layout; None where an argument is unbounded."""
    total = 1
    for place, i in enumerate(order):
        domain = domain_of[i]
        if domain.kind == "term":
            return None
        count = domain.count
        if domain.kind == "int":
            extent = ranges[i]
            if extent is None:
                return None
            count = max(0, count - extent.below + extent.above)
        total *= (count + 7) // 8 * 8 if place == arity - 1 else count
    return total


def dense_tables(
    sizes: Mapping[str, int | None], most: int, occupancy: Callable[[], Occupancy | None]
) -> frozenset[str]:
    """The predicates that are stored as arrays, from the numbers of cells that these would have.

    >>> sorted(dense_tables({"a/1": 100, "b/2": 60, "c/1": None}, 120, lambda: None))
    ['b/2']
    """
    found, left, estimate = set[str](), most, None
    for key, size in sorted(sizes.items(), key=lambda pair: (pair[1] or 0, pair[0])):
        if size is None or size > left:
            continue
        if size > SMALL:
            estimate = estimate or occupancy()
            if estimate is not None and estimate.items(key) < LEAST_SHARE * size:
                continue
        found.add(key)
        left -= size
    return frozenset(found)


def still_dense(now: Mapping[str, int | None], planned: Mapping[str, int], most: int) -> bool:
    """Whether tables that are dense in a plan, with so many cells there, may be with as many as they have now."""
    total = 0
    for key, size in now.items():
        if size is None or (size > SMALL and planned[key] <= SMALL):
            return False  # how full it would be was never asked
        total += size
    return total <= most


@dataclass(frozen=True, eq=False)
class Layouts:
    """The layouts of a plan's tables, from the stages that were chosen, by predicate."""

    choice: StrategyChoice
    drafts: Mapping[str, Draft]
    count: PairCount | None

    def tables(self, joins: Sequence[Join]) -> dict[str, TableLayout]:
        """The layout of each predicate that is not omitted, for these joins."""
        choice = self.choice
        kept = {key: p for key, p in choice.rules.predicates.items() if key not in choice.omitted}
        votes = _votes(joins)
        orders = {
            key: _order(key, p.arity, self.drafts[key], votes.get(key, {}))
            for key, p in kept.items()
            if key in self.drafts and not p.external
        }
        sizes = {key: self._cells(key, order) for key, order in orders.items()}
        dense = dense_tables(sizes, choice.options.dense_cells, self._occupancy)
        tables: dict[str, TableLayout] = {}
        for number, (key, predicate) in enumerate(kept.items()):
            domains = tuple(choice.domains.of[key, i] for i in range(predicate.arity))
            ranges = tuple(choice.extents.get((key, i)) for i in range(predicate.arity))
            as_given = tuple(range(predicate.arity))
            if key not in orders:
                kind, order = (TableKind.EXTERNAL, ()) if predicate.external else (TableKind.FACTS, as_given)
                tables[key] = TableLayout(key, number, kind, domains, ranges, order, predicate.aggregator)
                continue
            sink = self._is_sink(key)
            tables[key] = TableLayout(
                key,
                number,
                TableKind.DENSE if key in dense else TableKind.HASHED,
                domains,
                ranges,
                orders[key] if key in dense else as_given,
                predicate.aggregator,
                updates=not self.drafts[key].final and not sink,
                sink=sink,
                cells=sizes[key] or 0,
            )
        return tables

    def _is_sink(self, key: str) -> bool:
        """Whether nothing reads the items of a predicate before the run ends."""
        choice = self.choice
        read = key in choice.antecedent_keys or key in choice.held or key == choice.options.until
        return not read and not choice.options.changing

    def _cells(self, key: str, order: Sequence[int]) -> int | None:
        """How many cells a dense table would have."""
        arity, domains = len(order), self.choice.domains
        kinds = [self.choice.summary.domains[domains.of[key, i]] for i in range(arity)]
        return cells(arity, kinds, [self.choice.extents.get((key, i)) for i in range(arity)], order)

    def _occupancy(self) -> Occupancy | None:
        """An estimate of the numbers of items, where facts can be counted."""
        if self.count is None or len(self.choice.live) > MOST_RULES:
            return None
        return Occupancy(self.choice.rules, self.choice.live, self._most, self.count)

    def _most(self, key: str, position: int) -> float:
        """How many values an argument may have."""
        domain = self.choice.summary.domains[self.choice.domains.of[key, position]]
        extent = self.choice.extents.get((key, position))
        if domain.kind == "term" or (domain.kind == "int" and extent is None):
            return inf
        return max(0, domain.count - (extent.below if extent else 0) + (extent.above if extent else 0))


def _order(key: str, arity: int, draft: Draft, votes: Mapping[int, float]) -> tuple[int, ...]:
    """The storage order: the arguments in levels first, the one that rows run over last."""
    if not arity:
        return ()
    tail = max(range(arity), key=lambda i: (votes.get(i, 0.0), i))
    leveled = [i for form in draft.forms for i, _ in form.coefficients.get(key, ()) if i != tail]
    head = list(dict.fromkeys(leveled))
    return (*head, *(i for i in range(arity) if i != tail and i not in head), tail)


def _votes(joins: Sequence[Join]) -> dict[str, dict[int, float]]:
    """What joins would gain, by predicate and argument, if that argument were the one that rows run over."""
    votes: dict[str, dict[int, float]] = {}

    def vote(key: str, position: int, weight: float) -> None:
        of_key = votes.setdefault(key, {})
        of_key[position] = of_key.get(position, 0.0) + weight

    for join in joins:
        bound = starting_variables(join)
        for step in join.steps:
            if isinstance(step, Scan):
                item = join.rule.antecedents[step.antecedent].item
                free = free_position(item, bound)
                if free is not None:
                    vote(item.key, free, join.cost)
                    for i, term in enumerate(join.rule.head.arguments):
                        if term == item.arguments[free]:
                            vote(join.rule.head.key, i, join.cost / 2)
            bound |= step_variables(step, join.rule)
    return votes
