"""The order in which items are popped: levels, priorities, and the agendas that go by them."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ...errors import Error
from ...rules.syntax import Integer, Term
from ..analyses.ranks import rank_sources
from ..model import LinearForm, Plan, Stage, Strategy
from ..traits import by_level
from .chart import GroundItem

# -- levels ------------------------------------------------------------------------------------------------------------

Ranks = Mapping[int, Mapping[Term, int]]
"""By domain whose atoms facts order: the rank of each atom that stands in them."""
Arc = tuple[Term, Term]


def level(forms: Sequence[LinearForm], plan: Plan, ranks: Ranks, item: GroundItem) -> tuple[int, ...]:
    """The level of an item: items become final in this order, the first number deciding."""
    domains = plan.tables[item.key].domains

    def place(argument: int) -> int:
        term = item.row[argument]
        if domains[argument] in ranks:
            return ranks[domains[argument]].get(term, 0)
        assert isinstance(term, Integer), "levels are made of integers, and of atoms that facts order"
        return term.value

    return tuple(
        form.constant.get(item.key, 0) + sum(c * place(i) for i, c in form.coefficients.get(item.key, ()))
        for form in forms
    )


def ranks_of(plan: Plan, rows: Mapping[str, Iterable[Sequence[Term]]]) -> Ranks:
    """The ranks of atoms that facts order: by as many pairs of their columns as form no cycle."""
    ranks: dict[int, Mapping[Term, int]] = {}
    for domain, sources in rank_sources(plan.rules, plan.domains).items():
        if not plan.summary.domains[domain].ranked:
            continue
        columns = [[(row[i], row[j]) for row in rows.get(key, ())] for key, i, j in sources]
        ranked = topological_ranks(list(itertools.chain(*columns)))
        if ranked is None:
            acyclic: list[Arc] = []
            for arcs in columns:
                more = topological_ranks([*acyclic, *arcs])
                if more is not None:
                    ranked, acyclic = more, [*acyclic, *arcs]
        ranks[domain] = ranked or {}
    return ranks


def topological_ranks(arcs: Sequence[Arc]) -> Mapping[Term, int] | None:
    """A number for each node, such that every arc goes from a smaller to a larger one; None where arcs form a cycle.

    >>> a, b, c = map(Integer, range(3))
    >>> list(topological_ranks([(a, b), (b, c), (a, c)]).values())
    [0, 1, 2]
    """
    after: dict[Term, list[Term]] = {}
    waiting: dict[Term, int] = {}
    for tail, head in arcs:
        after.setdefault(tail, []).append(head)
        waiting[head] = waiting.get(head, 0) + 1
    ready = [node for node in after if node not in waiting]
    rank = dict.fromkeys(ready, 0)
    for node in ready:
        for head in after.get(node, ()):
            rank[head] = max(rank.get(head, 0), rank[node] + 1)
            waiting[head] -= 1
            if not waiting[head]:
                ready.append(head)
    return None if any(waiting.values()) else rank


# -- agendas -----------------------------------------------------------------------------------------------------------

Priority = tuple[tuple[int, ...], float]
"""The level, of which the smallest comes first, and among equals the priority, of which the largest does."""


class Agenda(Protocol):
    """Items that wait to be popped; one that waits already may be pushed again, when its priority has changed."""

    def push(self, item: GroundItem, priority: Priority) -> None: ...

    def pop(self) -> GroundItem | None: ...


@dataclass(frozen=True, eq=False)
class Heap:
    """By level, then by priority, then first in, first out."""

    entries: list[tuple[tuple[int, ...], float, int, GroundItem]] = field(default_factory=list)
    newest: dict[GroundItem, int] = field(default_factory=dict)
    """The number of the entry of each item that counts: older ones are passed over."""
    numbers: Iterable[int] = field(default_factory=itertools.count)

    def push(self, item: GroundItem, priority: Priority) -> None:
        number = next(iter(self.numbers))
        self.newest[item] = number
        heapq.heappush(self.entries, (priority[0], -priority[1], number, item))

    def pop(self) -> GroundItem | None:
        while self.entries:
            _, _, number, item = heapq.heappop(self.entries)
            if self.newest.get(item) == number:
                del self.newest[item]
                return item
        return None


@dataclass(frozen=True, eq=False)
class Arrivals:
    """First in, first out, or with `last` the other way round."""

    last: bool
    items: deque[GroundItem] = field(default_factory=deque)
    waiting: set[GroundItem] = field(default_factory=set)

    def push(self, item: GroundItem, priority: Priority) -> None:
        if item not in self.waiting:
            self.waiting.add(item)
            self.items.append(item)

    def pop(self) -> GroundItem | None:
        if not self.items:
            return None
        item = self.items.pop() if self.last else self.items.popleft()
        self.waiting.remove(item)
        return item


def agenda(stage: Stage) -> Agenda:
    """The agenda of a stage."""
    if by_level(stage) or stage.strategy is Strategy.HEAP:
        return Heap()
    if stage.strategy in (Strategy.QUEUE, Strategy.STACK):
        return Arrivals(last=stage.strategy is Strategy.STACK)
    raise Error(f"a stage that runs by {stage.strategy.value} has no agenda")
