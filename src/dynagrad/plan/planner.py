"""The planner: `make_plan` decides joins, storage and indexes of the stages that `strategy.py` chose.

No facts are read here, only statistics of them, and no C++ is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf

from ..rules.normal import NormalRule, Rules
from ..rules.semirings import SEMIRINGS
from ..rules.syntax import Item, Term, Variable
from ..rules.types import Domains
from .joins import JoinPlanner, item_variables, scan_pattern, step_variables, term_variables
from .layout import MOST_RULES, Occupancy, PairCount, cells, dense_tables
from .model import (
    Absent,
    Changes,
    Extent,
    IndexPlan,
    Join,
    Plan,
    Scan,
    Stage,
    Step,
    Summary,
    TableLayout,
)
from .options import Options
from .order import DifferenceBounds, precedes
from .stable import stable_arguments
from .strategy import Draft, StrategyChoice


class _Planner:
    """Joins, storage and indexes for the stages that were chosen."""

    def __init__(self, choice: StrategyChoice, count: PairCount | None) -> None:
        self.choice, self.count = choice, count

    def plan(self) -> Plan:
        drafts = self.choice.drafts()
        resolving = self.choice.options.changing and drafts[0].strategy == "solve"
        stage_of = {key: n for n, d in enumerate(drafts) for key in d.keys}
        planner = JoinPlanner(self.choice.rules, self.choice.domains, self.choice.summary)
        bounds: dict[int, DifferenceBounds] = {}

        def bound(rule: NormalRule) -> DifferenceBounds:
            if rule.number not in bounds:
                bounds[rule.number] = DifferenceBounds(rule, self.choice.gaps, self.choice.domains, self.choice.summary)
            return bounds[rule.number]

        fires: list[list[Join]] = [[] for _ in drafts]
        drives: list[list[Join]] = [[] for _ in drafts]
        changed: list[Join] = []
        heads: list[Join] = []
        for rule in self.choice.live:
            number = stage_of[rule.head.key]
            draft = drafts[number]
            inside = [i for i, a in enumerate(rule.antecedents) if a.item.key in draft.keys]
            if self.choice.options.changing or self.choice.options.collecting:
                steps, cost = planner.plan(rule, None, from_head=True)
                heads.append(Join(rule, None, steps, True, cost=cost))
            if self.choice.options.collecting:
                continue
            if self.choice.options.changing:
                for i, antecedent in enumerate(rule.antecedents):
                    if (resolving or i not in inside) and not self.choice.rules.predicates[
                        antecedent.item.key
                    ].external:
                        steps, cost = planner.plan(rule, i)
                        changed.append(Join(rule, i, steps, cost=cost))
            if resolving and not inside:
                continue  # from the head alone
            if not inside or draft.strategy == "sweep":
                steps, cost = planner.plan(rule, None)
                fires[number].append(Join(rule, None, steps, cost=cost))
                continue
            for i in inside:
                if (rule.number, i) in draft.idle or (resolving and (rule.number, i) not in draft.inner):
                    continue
                steps, cost = planner.plan(rule, i)
                same = tuple(
                    j
                    for j in inside
                    if j != i
                    and rule.antecedents[j].item.key == rule.antecedents[i].item.key
                    and not _differ(rule.antecedents[j].item, rule.antecedents[i].item, bound(rule))
                )
                drives[number].append(Join(rule, i, steps, same=same, cost=cost))
        joins = [j for stage in (*fires, *drives, changed, heads) for j in stage]
        tables = self._tables(drafts, stage_of, joins, self.choice.extents)
        registry: dict[tuple[str, tuple[Term, ...], tuple[str, ...]], IndexPlan] = {}
        stages = []
        for number, draft in enumerate(drafts):
            settled = [
                [self._settle(j, tables, registry, draft, bound) for j in group]
                for group in (fires[number], drives[number])
            ]
            heads_of = [r for k in draft.keys for r in self.choice.by_head.get(k, ())]
            stable: Mapping[str, int] = {}
            if (
                draft.unknowns == 1
                and not draft.forms
                and not resolving
                and self.choice.semiring not in ("count", "user")
            ):
                stable = stable_arguments(heads_of, draft.keys, tables)
            stages.append(
                Stage(
                    number,
                    draft.keys,
                    draft.strategy,
                    draft.priority,
                    draft.forms,
                    draft.final,
                    draft.reason
                    + "".join(f"; for all values of argument {i + 1} of {k} at once" for k, i in stable.items()),
                    tuple(settled[0]),
                    tuple(settled[1]),
                    draft.inner,
                    any(self.choice.grows(r, frozenset(draft.keys)) for r in heads_of),
                    draft.unknowns,
                    stable,
                )
            )
        changes = None
        collects = None
        if self.choice.options.collecting:
            collects = tuple(self._settle(j, tables, registry, drafts[0], bound) for j in heads)
        if self.choice.options.changing:
            settled = [
                [self._settle(j, tables, registry, drafts[stage_of[j.rule.head.key]], bound) for j in group]
                for group in (changed, heads)
            ]
            changes = Changes(tuple(settled[0]), tuple(settled[1]))
        return Plan(
            self.choice.rules,
            self.choice.domains,
            self.choice.summary,
            self.choice.semiring,
            self.choice.options.vector,
            tables,
            tuple(registry.values()),
            tuple(stages),
            self.choice.omitted,
            self.choice.fixed,
            self.choice.options.functions,
            self.choice.options.user,
            self.choice.selective,
            self.choice.options.until,
            changes,
            {k: f.gaps for k, f in self.choice.summary.facts.items()} if any(s.forms for s in stages) else {},
            self.choice.options.derivatives,
            self.choice.iterates,
            collects,
        )

    def _tables(
        self,
        drafts: Sequence[Draft],
        stage_of: Mapping[str, int],
        joins: Sequence[Join],
        extent: Mapping[tuple[str, int], Extent | None],
    ) -> dict[str, TableLayout]:
        last: dict[str, dict[int, float]] = {}
        for join in joins:
            for key, position, weight in self._row_votes(join):
                votes = last.setdefault(key, {})
                votes[position] = votes.get(position, 0.0) + weight
        orders = {
            key: self._order(key, p.arity, drafts[stage_of[key]], last.get(key, {}))
            for key, p in self.choice.rules.predicates.items()
            if key in stage_of and key not in self.choice.omitted and not p.external
        }
        sizes = {key: self._cells(key, order) for key, order in orders.items()}
        stored = dense_tables(sizes, self.choice.options.dense_cells, self._occupancy)
        tables: dict[str, TableLayout] = {}
        for key, predicate in self.choice.rules.predicates.items():
            if key in self.choice.omitted:
                continue
            arity = predicate.arity
            domains = tuple(self.choice.domains.of[key, i] for i in range(arity))
            ranges = tuple(extent.get((key, i)) for i in range(arity))
            number = len(tables)
            if predicate.external:
                tables[key] = TableLayout(key, number, "external", domains, ranges, (), predicate.aggregator)
                continue
            if key not in stage_of:
                tables[key] = TableLayout(
                    key, number, "facts", domains, ranges, tuple(range(arity)), predicate.aggregator
                )
                continue
            draft = drafts[stage_of[key]]
            held = key in self.choice.held
            sink = (
                key not in self.choice.antecedent_keys
                and key != self.choice.options.until
                and not self.choice.options.changing
                and not held
            )
            tables[key] = TableLayout(
                key,
                number,
                "dense" if key in stored else "hashed",
                domains,
                ranges,
                orders[key] if key in stored else tuple(range(arity)),
                predicate.aggregator,
                updates=not draft.final and not sink,
                sink=sink,
                cells=sizes[key] or 0,
            )
        return tables

    def _cells(self, key: str, order: Sequence[int]) -> int | None:
        """How many cells a dense table would have."""
        arity, domains = len(order), self.choice.domains
        kinds = [self.choice.summary.domains[domains.of[key, i]] for i in range(arity)]
        return cells(arity, kinds, [self.choice.extents.get((key, i)) for i in range(arity)], order)

    def _occupancy(self) -> Occupancy | None:
        """An estimate of the numbers of items, where facts can be counted."""
        if self.count is None or len(self.choice.live) > MOST_RULES:
            return None
        return Occupancy(self.choice.rules, self.choice.live, self._spread, self.count)

    def _spread(self, key: str, position: int) -> float:
        """How many values an argument may have."""
        domain = self.choice.summary.domains[self.choice.domains.of[key, position]]
        extent = self.choice.extents.get((key, position))
        if domain.kind == "term" or (domain.kind == "int" and extent is None):
            return inf
        return max(0, domain.count - (extent.below if extent else 0) + (extent.above if extent else 0))

    def _order(self, key: str, arity: int, draft: Draft, votes: Mapping[int, float]) -> tuple[int, ...]:
        """The storage order: the arguments in levels first, the one that rows run over last."""
        if not arity:
            return ()
        tail = max(range(arity), key=lambda i: (votes.get(i, 0.0), i))
        leveled = [i for form in draft.forms for i, _ in form.coefficients.get(key, ()) if i != tail]
        head = list(dict.fromkeys(leveled))
        return (*head, *(i for i in range(arity) if i != tail and i not in head), tail)

    def _row_votes(self, join: Join) -> list[tuple[str, int, float]]:
        votes: list[tuple[str, int, float]] = []
        bound = starting_variables(join)
        for step in join.steps:
            if isinstance(step, Scan):
                item = join.rule.antecedents[step.antecedent].item
                free = _free_position(item, bound)
                if free is not None:
                    votes.append((item.key, free, join.cost))
                    name = item.arguments[free]
                    for i, term in enumerate(join.rule.head.arguments):
                        if term == name:
                            votes.append((join.rule.head.key, i, join.cost / 2))
            bound |= step_variables(step, join.rule)
        return votes

    def _settle(
        self,
        join: Join,
        tables: Mapping[str, TableLayout],
        registry: dict[tuple[str, tuple[Term, ...], tuple[str, ...]], IndexPlan],
        draft: Draft,
        bounds: Callable[[NormalRule], DifferenceBounds],
    ) -> Join:
        """The join with a row or an index chosen for each scan."""
        bound = starting_variables(join)
        steps: list[Step] = []

        def index(item: Item) -> tuple[int, tuple[Term, ...]]:
            pattern, by, keys = scan_pattern(item, frozenset(bound))
            place = (item.key, pattern, by)
            if place not in registry:
                registry[place] = IndexPlan(item.key, len(registry), pattern, by)
            return registry[place].number, keys

        for step in join.steps:
            match step:
                case Scan(antecedent=antecedent):
                    item = join.rule.antecedents[antecedent].item
                    table = tables[item.key]
                    free = _free_position(item, bound)
                    if table.kind == "dense" and free is not None and free == table.order[-1]:
                        steps.append(Scan(antecedent, "rows"))
                    elif _plain_and_free(item, bound):
                        steps.append(Scan(antecedent, "all"))
                    else:
                        number, keys = index(item)
                        steps.append(Scan(antecedent, "index", number, keys))
                case Absent(item=item) if not item_variables(item) <= bound:
                    number, keys = index(item)
                    steps.append(Absent(item, number, keys))
                case _:
                    steps.append(step)
            bound |= step_variables(step, join.rule)
        settled = replace(join, steps=tuple(steps))
        return replace(settled, vector=self._vector(settled, tables, draft, bounds))

    def _vector(
        self,
        join: Join,
        tables: Mapping[str, TableLayout],
        draft: Draft,
        bounds: Callable[[NormalRule], DifferenceBounds],
    ) -> str | None:
        """The variable over which the last scan and the head can be one vector operation; None where they cannot."""
        if self.choice.options.derivatives is not None and self.choice.options.derivatives.order:
            return None  # not for rows of jets; contributions arrive in the same order without vectors
        if not SEMIRINGS[self.choice.semiring].rows or draft.strategy not in ("levels", "solve") or not join.steps:
            return None
        if join.driver is None or (join.rule.number, join.driver) in draft.inner:
            return None  # the head may be the driver, or be among the scanned items
        last = join.steps[-1]
        head = tables[join.rule.head.key]
        if not isinstance(last, Scan) or head.kind != "dense" or not head.arity or head.sink:
            return None
        antecedent = join.rule.antecedents[last.antecedent]
        item, table = antecedent.item, tables[antecedent.item.key]
        if last.via == "rows":
            free: int | None = table.order[-1]
        elif last.via == "index" and table.kind == "facts":
            known = starting_variables(join).union(*(step_variables(s, join.rule) for s in join.steps[:-1]))
            free = _free_position(item, known)
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
        if item.key in draft.keys:
            bound = bounds(join.rule)
            if not precedes(join.rule, last.antecedent, join.driver, draft.forms, bound):
                return None
        return name.name


def starting_variables(join: Join) -> set[str]:
    """The variables that are bound before the first step."""
    if join.from_head:
        return item_variables(join.rule.head)
    return set() if join.driver is None else item_variables(join.rule.antecedents[join.driver].item)


def _differ(a: Item, b: Item, bounds: DifferenceBounds) -> bool:
    """Whether difference bounds prove that two items of one predicate are not the same item."""
    return any(bounds.gap(x, y) >= 1 or bounds.gap(y, x) >= 1 for x, y in zip(a.arguments, b.arguments, strict=True))


def _free_position(item: Item, bound: set[str]) -> int | None:
    """The only argument that is not bound, if it is a variable; else None."""
    free = [i for i, term in enumerate(item.arguments) if not term_variables(term) <= bound]
    if len(free) != 1 or not isinstance(item.arguments[free[0]], Variable):
        return None
    return free[0]


def _plain_and_free(item: Item, bound: set[str]) -> bool:
    """Whether every item of the predicate matches: distinct free variables and nothing else."""
    names = [t.name for t in item.arguments if isinstance(t, Variable)]
    return len(names) == len(item.arguments) == len(set(names)) and not set(names) & bound


def make_plan(
    rules: Rules, domains: Domains, summary: Summary, options: Options | None = None, count: PairCount | None = None
) -> Plan:
    """The plan for checked rules and a summary of the facts; `count` is asked where an array would be large."""
    return _Planner(StrategyChoice(rules, domains, summary, options or Options()), count).plan()
