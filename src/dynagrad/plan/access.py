"""Access paths of scans (Selinger et al. 1979): a row of an array, all items, or an index; and which indexes there are.

Where the last scan of a join and its head both run along rows, the two are one vector operation. The order of the steps
of a join is decided in `joins.py`, the layouts of tables in `storage/layout.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..rules.normal import NormalRule
from ..rules.semirings import SEMIRINGS
from ..rules.syntax import Item, Term, Variable
from .joins import (
    free_position,
    item_variables,
    scan_pattern,
    starting_variables,
    step_variables,
    term_variables,
)
from .model import Absent, IndexPlan, Join, Scan, Step, Strategy, TableLayout
from .order import DifferenceBounds, precedes
from .strategy import Draft, StrategyChoice
from .traits import is_dense, is_facts


@dataclass(frozen=True, eq=False)
class AccessPaths:
    """Chooses the access path of each scan; `indexes` grows by those that are chosen, in the order of their numbers."""

    choice: StrategyChoice
    drafts: Mapping[str, Draft]
    tables: Mapping[str, TableLayout]
    bounds: Callable[[NormalRule], DifferenceBounds]
    indexes: dict[tuple[str, tuple[Term, ...], tuple[str, ...]], IndexPlan] = field(default_factory=dict)

    def of(self, joins: Iterable[Join]) -> tuple[Join, ...]:
        """Joins with their access paths."""
        return tuple(self._with_paths(join) for join in joins)

    def _index(self, item: Item, bound: set[str]) -> tuple[int, tuple[Term, ...]]:
        """The number of the index for a scan, and the keys that are looked up in it."""
        pattern, by, keys = scan_pattern(item, frozenset(bound))
        place = (item.key, pattern, by)
        found = self.indexes.setdefault(place, IndexPlan(item.key, len(self.indexes), pattern, by))
        return found.number, keys

    def _with_paths(self, join: Join) -> Join:
        bound = starting_variables(join)
        steps: list[Step] = []
        for step in join.steps:
            match step:
                case Scan(antecedent=antecedent):
                    steps.append(self._scan(antecedent, join.rule.antecedents[antecedent].item, bound))
                case Absent(item=item) if not item_variables(item) <= bound:
                    steps.append(Absent(item, *self._index(item, bound)))
                case _:
                    steps.append(step)
            bound |= step_variables(step, join.rule)
        found = replace(join, steps=tuple(steps))
        return replace(found, vector=self._vector(found))

    def _scan(self, antecedent: int, item: Item, bound: set[str]) -> Scan:
        table = self.tables[item.key]
        free = free_position(item, bound)
        if is_dense(table) and free is not None and free == table.order[-1]:
            return Scan(antecedent, "rows")
        if _matches_all(item, bound):
            return Scan(antecedent, "all")
        return Scan(antecedent, "index", *self._index(item, bound))

    def _vector(self, join: Join) -> str | None:
        """The variable over which the last scan and the head can be one vector operation; None where they cannot."""
        options, draft = self.choice.options, self.drafts[join.rule.head.key]
        if options.derivatives is not None and options.derivatives.order:
            return None  # not for rows of jets; contributions arrive in the same order without vectors
        if (
            not SEMIRINGS[self.choice.semiring].rows
            or draft.strategy not in (Strategy.LEVELS, Strategy.SOLVE)
            or not join.steps
        ):
            return None
        if join.driver is None or (join.rule.number, join.driver) in draft.inner:
            return None  # the head may be the driver, or be among the scanned items
        last = join.steps[-1]
        head = self.tables[join.rule.head.key]
        if not isinstance(last, Scan) or not is_dense(head) or not head.arity or head.sink:
            return None
        antecedent = join.rule.antecedents[last.antecedent]
        item, table = antecedent.item, self.tables[antecedent.item.key]
        if last.via == "rows":
            free: int | None = table.order[-1]
        elif last.via == "index" and is_facts(table):
            known = starting_variables(join).union(*(step_variables(s, join.rule) for s in join.steps[:-1]))
            free = free_position(item, known)
        else:
            return None
        if free is None or antecedent.side:
            return None
        name, place = item.arguments[free], head.order[-1]
        if not isinstance(name, Variable) or join.rule.head.arguments[place] != name:
            return None
        if sum(name.name in term_variables(t) for t in join.rule.head.arguments) > 1:
            return None
        if head.domains[place] != table.domains[free]:
            return None
        if item.key in draft.keys and not precedes(
            join.rule, last.antecedent, join.driver, draft.forms, self.bounds(join.rule)
        ):
            return None
        return name.name


def _matches_all(item: Item, bound: set[str]) -> bool:
    """Whether every item of the predicate matches: distinct free variables and nothing else."""
    names = [t.name for t in item.arguments if isinstance(t, Variable)]
    return len(names) == len(item.arguments) == len(set(names)) and not set(names) & bound
