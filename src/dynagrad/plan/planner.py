"""Puts a plan together: semiring, stages, joins, storage, indexes.

It is long since stages, storage and indexes are decided together: each choice rests on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import ProgramError
from ..rules.aggregators import AGGREGATORS
from ..rules.normal import NormalRule, Rules
from ..rules.semirings import SEMIRINGS
from ..rules.syntax import AntecedentValue, Application, Compound, Expression, Item, Numeral, Term, Variable
from ..rules.types import Domains
from .demand import fixed_arguments, items_of, omitted, restrict
from .joins import JoinPlanner, item_variables, scan_pattern, step_variables, term_variables
from .layout import DENSE_CELLS, cells, extents
from .model import (
    Absent,
    Changes,
    Derivatives,
    Extent,
    IndexPlan,
    Join,
    LinearForm,
    Plan,
    Scan,
    Stage,
    Step,
    Summary,
    TableLayout,
)
from .order import DifferenceBounds, Edge, Gaps, Levels, derive_gaps, find_levels, negated, precedes
from .polynomials import unknowns
from .right_sides import TracedSemiring
from .stable import stable_arguments


@dataclass(frozen=True)
class Options:
    """What a plan depends on beside rules and facts."""

    until: str | None = None  # the predicate of the item that a run stops at
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    user: TracedSemiring | None = None
    dense_cells: int = DENSE_CELLS
    vector: int = 1
    changing: bool = False  # the chart's facts may change after its run
    derivatives: Derivatives | None = None
    iterate: bool = False  # cycles are iterated, and not solved


# -- semiring shape ----------------------------------------------------------------------------------------------------


def _made_of(value: Expression, operator: str) -> bool:
    seen: set[int] = set()
    stack: list[Expression] = [value]
    while stack:
        at = stack.pop()
        match at:
            case Numeral():
                pass
            case AntecedentValue(index=index):
                if index in seen:
                    return False
                seen.add(index)
            case Application(operator=o, operands=operands) if o == operator:
                stack.extend(operands)
            case _:
                return False
    return True


_ORDERS = {
    "arrival": "first in, first out",
    "value": "best first, since plus selects",
    "size": "largest update first",
}

# What aggregator and what operator on right sides make a program of which semiring.
SHAPES = tuple((*row.recognised, name) for name, row in SEMIRINGS.items() if row.recognised is not None)


def effective_semiring(rules: Rules) -> str:
    """The semiring that a program runs in; "plain" for arithmetic that has the shape of none.

    `+=` over products is `real`; `min=` over sums is `tropical`, `max=` over sums `viterbi`, `log+=` over sums
    `log`, each antecedent once. Facts and constants whose predicate no rule defines join by its own aggregator all the
    same.
    """
    if rules.semiring is not None:
        return rules.semiring
    if rules.functions or not rules.rules:
        return "plain"
    aggregators = {p.aggregator for p in rules.predicates.values() if p.defined}
    given = {p.aggregator for p in rules.predicates.values() if not p.defined and not p.external}
    values = [(r, r.value) for r in rules.rules]
    for aggregator, operator, name in SHAPES:
        if (
            aggregators == {aggregator}
            and given <= SEMIRINGS[name].copies.keys()
            and all(
                _made_of(v, operator)
                and _reads_all(r, v)
                and (operator == "*" or not any(a.side for a in r.antecedents))
                for r, v in values
            )
        ):
            return name
    return "plain"


def _reads_all(rule: NormalRule, value: Expression) -> bool:
    """Whether every antecedent but the sides occurs in the value, as in a product it must."""
    seen: set[int] = set()
    stack: list[Expression] = [value]
    while stack:
        at = stack.pop()
        match at:
            case AntecedentValue(index=index):
                seen.add(index)
            case Application(operands=operands):
                stack.extend(operands)
    return all(i in seen or a.side for i, a in enumerate(rule.antecedents))


# -- stages ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Draft:
    """A stage before its joins are made."""

    keys: tuple[str, ...]
    strategy: str
    priority: str
    forms: tuple[LinearForm, ...]
    final: bool
    reason: str
    idle: frozenset[tuple[int, int]] = frozenset()
    inner: frozenset[tuple[int, int]] = frozenset()
    unknowns: int = 0


def _strata(rules: Rules, keys: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Components joined as far as negation, and priorities that read other items, allow."""
    needs: dict[str, set[str]] = {}
    before: dict[str, set[str]] = {}
    for rule in rules.rules:
        needs.setdefault(rule.head.key, set()).update(a.item.key for a in rule.antecedents)
        before.setdefault(rule.head.key, set()).update(i.key for i in negated(rule))
    for declared in rules.priorities:
        own = declared.item.key
        before.setdefault(own, set()).update(i.key for i in items_of(declared.expression) if i.key != own)
    depth: dict[str, int] = {}
    for component in keys:
        level = 0
        for key in component:
            level = max([level, *(depth.get(k, 0) for k in needs.get(key, ()))])
            level = max([level, *(depth.get(k, 0) + 1 for k in before.get(key, ()) if k in depth)])
        for key in component:
            depth[key] = level
    levels = sorted(set(depth.values()))
    return [frozenset(k for k, d in depth.items() if d == level) for level in levels]


def _free_of(value: Expression, rule: NormalRule, keys: frozenset[str]) -> bool:
    stack: list[Expression] = [value]
    while stack:
        at = stack.pop()
        match at:
            case AntecedentValue(index=index) if rule.antecedents[index].item.key in keys:
                return False
            case Application(operands=operands):
                stack.extend(operands)
    return True


class _Planner:
    def __init__(self, rules: Rules, domains: Domains, summary: Summary, options: Options) -> None:
        self.rules, self.domains, self.summary, self.options = rules, domains, summary, options
        self.semiring = effective_semiring(rules)
        row = SEMIRINGS[self.semiring]
        self.order: str = row.order
        self.selective = row.selective or (options.user is not None and options.user.less is not None)
        if self.semiring == "user" and self.selective:
            self.order = "value"
        self.omitted = omitted(rules)
        self.held = {p.item.key for p in rules.prunes} | {b.item.key for b in rules.beams}
        needed = [r for r in rules.rules if r.head.key not in self.omitted]
        self.fixed = fixed_arguments(rules, needed)
        self.live = [restrict(r, self.fixed) for r in needed]
        self.by_head: dict[str, list[NormalRule]] = {}
        for rule in self.live:
            self.by_head.setdefault(rule.head.key, []).append(rule)
        self.components = [c for c in rules.components if not c <= set(self.omitted)]
        self.gaps: dict[str, Gaps | None] = derive_gaps(rules, domains, summary)
        self.extents = extents(rules, domains, summary)
        self.iterates = False  # what could be solved is not
        self.antecedent_keys = {a.item.key for r in self.live for a in r.antecedents}

    # -- stages

    def _recursive(self, keys: frozenset[str]) -> list[Edge]:
        return [
            Edge(rule, i)
            for key in keys
            for rule in self.by_head.get(key, ())
            for i, a in enumerate(rule.antecedents)
            if a.item.key in keys
        ]

    def _draft(self, keys: frozenset[str], members: tuple[str, ...]) -> _Draft:
        """The strategy of one strongly connected set of predicates under `auto`."""
        edges = self._recursive(keys)
        if not edges:
            return _Draft(members, "once", "", (), True, "no recursion: its rules fire once")
        levels = find_levels(members, edges, self.rules, self.domains, self.summary, self.gaps)
        if levels is not None and levels.final:
            names = ", then ".join(f.name for f in levels.forms)
            reason = f"items become final in order of {names}; each is popped once"
            return _Draft(members, "levels", "", levels.forms, True, reason, levels.idle)
        if self.semiring != "plain" and self._aggregator(keys) == "|=":
            reason = "an item is worth one by being derived: first in, first out"
            return _Draft(members, "queue", "", (), False, reason)
        if self._grounds(keys):
            return self._solving(keys, members, edges, levels)
        self._refuse_products(keys)
        if self.semiring == "plain":
            if self._aggregator(keys) != "+=" and not self._monotone(keys):
                return _Draft(
                    members,
                    "sweep",
                    "",
                    (),
                    False,
                    "a contribution may get worse: all rules again until nothing changes",
                )
        priority, why = self._priority()
        if self.semiring == "plain" and all(AGGREGATORS[self.rules.predicates[k].aggregator].sign for k in keys):
            priority, why = "value", "best first, since the aggregator selects"
        forms = levels.forms if levels is not None and not self.selective else ()
        if forms:
            names = ", then ".join(f.name for f in forms)
            reason = f"by {names}, which no rule decreases; among equals {why}"
        else:
            reason = f"facts and rules show no order in which items become final: {why}"
        if priority == "arrival":
            return _Draft(members, "heap" if forms else "queue", "", forms, False, reason)
        return _Draft(members, "heap", priority, forms, False, reason)

    def _aggregator(self, keys: Iterable[str]) -> str | None:
        """The aggregator of some predicates, where it is one."""
        found = {self.rules.predicates[k].aggregator for k in keys}
        return found.pop() if len(found) == 1 else None

    def _monotone(self, members: Iterable[str]) -> bool:
        """Whether better antecedents can only make better heads: sums, minima and maxima of recursive values."""
        keys = frozenset(members)
        aggregator = self._aggregator(keys)

        def fine(value: Expression, rule: NormalRule) -> bool:
            match value:
                case Numeral() | AntecedentValue():
                    return True
                case Application(operator="+" | "min" | "max" | "lse" | "tanh" | "sigmoid" | "exp", operands=operands):
                    return all(fine(o, rule) for o in operands)
                case Application(operator="-", operands=(left, right)):
                    return fine(left, rule) and _free_of(right, rule, keys)
            return _free_of(value, rule, keys)

        if aggregator is None or not AGGREGATORS[aggregator].best_first:
            return False
        return all(fine(rule.value, rule) for key in keys for rule in self.by_head.get(key, ()))

    def _grounds(self, keys: frozenset[str]) -> bool:
        """Whether the order of a recursive stage is that of its ground program, found as it runs."""
        if self.rules.agenda != "auto" or self.rules.solve == "iterate":
            return False
        if self.rules.priorities or self.rules.beams or self.rules.prunes or self.selective:
            return False
        if any(self._grows(rule, keys) for key in keys for rule in self.by_head.get(key, ())):
            return False  # there may be no end to the items
        if self.semiring == "plain" and self._monotone(keys):
            return False
        self.iterates = self.options.iterate
        return not self.iterates

    def _grows(self, rule: NormalRule, keys: frozenset[str]) -> bool:
        """Whether a rule may make ever larger arguments: integers without a bound, terms around terms."""
        inside = [a.item for a in rule.antecedents if a.item.key in keys]
        if not inside:
            return False
        depth: dict[str, int] = {}
        for item in inside:
            for term in item.arguments:
                for name, d in _depths(term):
                    depth[name] = max(depth.get(name, 0), d)
        for i, term in enumerate(rule.head.arguments):
            domain = self.summary.domains[self.domains.of[rule.head.key, i]]
            if domain.kind == "int" and self.extents.get((rule.head.key, i)) is None:
                return True
            if any(name in depth and d > depth[name] for name, d in _depths(term)):
                return True
            if domain.kind == "term" and isinstance(term, Variable) and term.name not in depth:
                own = self.domains.variables[rule.number].get(term.name)  # integers among terms have no bound
                if own is not None and self.summary.domains[own].kind == "int":
                    return True
        return False

    def _refuse_products(self, keys: frozenset[str]) -> None:
        """A product of values that still change is not monotone, so it is not iterated."""
        for key in keys:
            for rule in self.by_head.get(key, ()):
                if rule.aggregator == "*=" and any(a.item.key in keys for a in rule.antecedents):
                    source = self.rules.source
                    raise ProgramError(
                        f"`*=` defines {key} by itself, and a product of values that still change is not monotone: it "
                        "cannot be iterated, as max_pops, a tolerance, a declared agenda, pruning or `:- solve "
                        "iterate` would have it.",
                        source.text,
                        rule.span,
                        source.filename,
                    )

    def _solving(
        self, keys: frozenset[str], members: tuple[str, ...], edges: Sequence[Edge], levels: Levels | None
    ) -> _Draft:
        """A stage that finds the components of its ground program, and solves those that are cyclic."""
        found = [unknowns(e.rule, keys, self.semiring) for e in edges]
        additive = self._aggregator(keys) == "+="
        numeric = SEMIRINGS[self.semiring].equations or (self.semiring == "plain" and additive)
        if self.options.user is not None:  # its times need not commute, so one unknown has to stand at one end
            numeric = self.options.user.star is not None and set(found) <= {0, 1}
        most = max(1, *(f or 0 for f in found)) if numeric and None not in found else 0
        reason = "the components of the ground program, found as it runs, antecedents first"
        if most:
            reason += "; cyclic ones are solved"
        forms: tuple[LinearForm, ...] = ()
        idle = frozenset[tuple[int, int]]()
        inner = frozenset((e.rule.number, e.antecedent) for e in edges)
        if levels is not None:
            forms, idle, inner = levels.forms, levels.idle, levels.rest
            reason = f"by {', then '.join(f.name for f in forms)}, which no rule decreases; on one level {reason}"
        return _Draft(members, "solve", "", forms, True, reason, idle, inner, most)

    def _priority(self) -> tuple[str, str]:
        return self.order, _ORDERS[self.order]

    def _resolving_drafts(self) -> list[_Draft] | None:
        """The stages of a fresh run, if one of them solves, and none iterates: see
        `codegen/rules/incremental/resolving.py`."""
        position = {k: i for i, k in enumerate(self.rules.predicates)}
        drafts = [self._draft(c, tuple(sorted(c, key=position.__getitem__))) for c in self.components]
        strategies = {d.strategy for d in drafts}
        if "solve" not in strategies or not strategies <= {"once", "levels", "solve"}:
            return None
        return [d if d.strategy == "solve" else replace(d, strategy="solve") for d in drafts]

    def _changing_draft(self) -> _Draft:
        """One stage for everything: in the order of the components, inside each by its levels."""
        position = {k: i for i, k in enumerate(self.rules.predicates)}
        keys = tuple(sorted((k for c in self.components for k in c), key=position.__getitem__))
        place = {k: n for n, c in enumerate(self.components) for k in c}
        forms: list[dict[str, tuple[tuple[int, int], ...]]] = [{}, {}, {}]
        for component in self.components:
            edges = self._recursive(component)
            members = tuple(sorted(component, key=position.__getitem__))
            levels = find_levels(members, edges, self.rules, self.domains, self.summary, self.gaps) if edges else None
            self.iterates = self.iterates or (
                bool(edges) and not (levels is not None and levels.final) and self._grounds(component)
            )
            for n, form in enumerate(levels.forms if levels is not None else ()):
                forms[n].update(form.coefficients)
        made = [LinearForm("component", {}, place)]
        made += [LinearForm(f"level {n + 1}", {k: f.get(k, ()) for k in keys}) for n, f in enumerate(forms) if f]
        priority = self._priority()[0]
        priority = "" if priority == "arrival" else priority
        return _Draft(keys, "heap", priority, tuple(made), False, "facts change: component by component, by level")

    def drafts(self) -> list[_Draft]:
        if self.options.changing:
            return self._resolving_drafts() or [self._changing_draft()]
        agenda = self.rules.agenda
        declared = {p.item.key for p in self.rules.priorities}
        position = {k: i for i, k in enumerate(self.rules.predicates)}
        ordered = [(c, tuple(sorted(c, key=position.__getitem__))) for c in self.components]
        if agenda == "auto" and not declared and not self.rules.beams and not self.rules.prunes:
            drafts = self._with_readers([self._draft(c, m) for c, m in ordered])
            best_first = self.order == "value"
            if self.options.until is None or not best_first:
                return drafts
        elif self.semiring == "plain" and agenda == "auto" and not declared:
            return [self._held_back(self._draft(c, m)) for c, m in ordered]
        elif self.semiring == "plain":  # the declared agenda rules within a component, where that is right
            drafts = [self._draft(c, m) for c, m in ordered]
            strategy, priority = self._declared(agenda, bool(declared))
            return [
                replace(
                    d,
                    strategy=strategy,
                    priority=priority,
                    forms=(),
                    final=False,
                    idle=frozenset(),
                    reason=f"declared: {agenda}",
                )
                if d.strategy in ("levels", "heap", "queue")
                and (self._aggregator(d.keys) == "+=" or self._monotone(d.keys))
                else d
                for d in drafts
            ]
        strategy, priority = self._declared(agenda, bool(declared))
        reason = f"declared: {agenda}" if agenda != "auto" else "best first, to stop at the item that is asked for"
        if declared:
            reason = "declared: priority of " + ", ".join(sorted(declared))
        elif agenda == "auto" and (self.rules.beams or self.rules.prunes):
            reason = "pruning: " + self._priority()[1]
        return [
            _Draft(tuple(sorted(s, key=position.__getitem__)), strategy, priority, (), False, reason)
            for s in _strata(self.rules, self.components)
        ]

    def _with_readers(self, drafts: list[_Draft]) -> list[_Draft]:
        """Stages without end run together with outputs that read them, so that it is seen when these stand still."""
        readers: dict[int, list[int]] = {}
        for n, draft in enumerate(drafts):
            keys = frozenset(draft.keys)
            endless = any(self._grows(r, keys) for k in keys for r in self.by_head.get(k, ()))
            if not endless or not self.rules.outputs or keys & set(self.rules.outputs) or self.semiring == "plain":
                continue
            known = keys.union(*(d.keys for d in drafts[:n]))
            readers[n] = [m for m, d in enumerate(drafts) if m > n and self._only_reads(d, keys, known)]
        taken = {m for those in readers.values() for m in those}
        return [
            replace(draft, keys=(*draft.keys, *(k for m in readers.get(n, ()) for k in drafts[m].keys)))
            for n, draft in enumerate(drafts)
            if n not in taken
        ]

    def _only_reads(self, draft: _Draft, keys: frozenset[str], known: frozenset[str]) -> bool:
        """Whether outputs that nobody reads are made of items of some predicates, one in each rule, and known ones."""
        if draft.strategy != "once" or not set(draft.keys) <= set(self.rules.outputs):
            return False
        if any(k in self.antecedent_keys or k == self.options.until or k in self.held for k in draft.keys):
            return False
        for rule in (r for k in draft.keys for r in self.by_head.get(k, ())):
            inside = [a for a in rule.antecedents if a.item.key in keys]
            others = {a.item.key for a in rule.antecedents} | {i.key for i in negated(rule)}
            derived = others & self.by_head.keys()
            if len(inside) > 1 or not derived <= known or keys & {i.key for i in negated(rule)}:
                return False
        return True

    def _held_back(self, draft: _Draft) -> _Draft:
        """A stage whose items pruning or a beam may hold back: updates wait apart from values."""
        held = self.held & set(draft.keys)
        if not held or not draft.final:
            return draft
        return replace(
            draft, strategy="heap", final=False, idle=frozenset(), reason=f"{draft.reason}; pruned at the pop"
        )

    def _declared(self, agenda: str, declared: bool) -> tuple[str, str]:
        if agenda in ("fifo", "lifo"):
            return ("queue" if agenda == "fifo" else "stack"), ""
        if declared:
            return "heap", "declared"
        priority = self._priority()[0]
        return ("queue", "") if priority == "arrival" else ("heap", priority)

    # -- all of it

    def plan(self) -> Plan:
        drafts = self.drafts()
        resolving = self.options.changing and drafts[0].strategy == "solve"
        stage_of = {key: n for n, d in enumerate(drafts) for key in d.keys}
        planner = JoinPlanner(self.rules, self.domains, self.summary)
        bounds: dict[int, DifferenceBounds] = {}

        def bound(rule: NormalRule) -> DifferenceBounds:
            if rule.number not in bounds:
                bounds[rule.number] = DifferenceBounds(rule, self.gaps, self.domains, self.summary)
            return bounds[rule.number]

        fires: list[list[Join]] = [[] for _ in drafts]
        drives: list[list[Join]] = [[] for _ in drafts]
        changed: list[Join] = []
        heads: list[Join] = []
        for rule in self.live:
            number = stage_of[rule.head.key]
            draft = drafts[number]
            inside = [i for i, a in enumerate(rule.antecedents) if a.item.key in draft.keys]
            if self.options.changing:
                steps, cost = planner.plan(rule, None, from_head=True)
                heads.append(Join(rule, None, steps, True, cost=cost))
                for i, antecedent in enumerate(rule.antecedents):
                    if (resolving or i not in inside) and not self.rules.predicates[antecedent.item.key].external:
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
        tables = self._tables(drafts, stage_of, joins, self.extents)
        registry: dict[tuple[str, tuple[Term, ...], tuple[str, ...]], IndexPlan] = {}
        stages = []
        for number, draft in enumerate(drafts):
            settled = [
                [self._settle(j, tables, registry, draft, bound) for j in group]
                for group in (fires[number], drives[number])
            ]
            heads_of = [r for k in draft.keys for r in self.by_head.get(k, ())]
            stable: Mapping[str, int] = {}
            if draft.unknowns == 1 and not draft.forms and not resolving and self.semiring not in ("count", "user"):
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
                    any(self._grows(r, frozenset(draft.keys)) for r in heads_of),
                    draft.unknowns,
                    stable,
                )
            )
        changes = None
        if self.options.changing:
            settled = [
                [self._settle(j, tables, registry, drafts[stage_of[j.rule.head.key]], bound) for j in group]
                for group in (changed, heads)
            ]
            changes = Changes(tuple(settled[0]), tuple(settled[1]))
        return Plan(
            self.rules,
            self.domains,
            self.summary,
            self.semiring,
            self.options.vector,
            tables,
            tuple(registry.values()),
            tuple(stages),
            self.omitted,
            self.fixed,
            self.options.functions,
            self.options.user,
            self.selective,
            self.options.until,
            changes,
            {k: f.gaps for k, f in self.summary.facts.items()} if any(s.forms for s in stages) else {},
            self.options.derivatives,
            self.iterates,
        )

    def _tables(
        self,
        drafts: Sequence[_Draft],
        stage_of: Mapping[str, int],
        joins: Sequence[Join],
        extent: Mapping[tuple[str, int], Extent | None],
    ) -> dict[str, TableLayout]:
        last: dict[str, dict[int, float]] = {}
        for join in joins:
            for key, position, weight in self._row_votes(join):
                votes = last.setdefault(key, {})
                votes[position] = votes.get(position, 0.0) + weight
        tables: dict[str, TableLayout] = {}
        for key, predicate in self.rules.predicates.items():
            if key in self.omitted:
                continue
            arity = predicate.arity
            domains = tuple(self.domains.of[key, i] for i in range(arity))
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
            order = self._order(key, arity, draft, last.get(key, {}))
            size = cells(arity, [self.summary.domains[d] for d in domains], ranges, order)
            dense = size is not None and size <= self.options.dense_cells
            held = key in self.held
            sink = (
                key not in self.antecedent_keys and key != self.options.until and not self.options.changing and not held
            )
            tables[key] = TableLayout(
                key,
                number,
                "dense" if dense else "hashed",
                domains,
                ranges,
                order if dense else tuple(range(arity)),
                predicate.aggregator,
                updates=not draft.final and not sink,
                sink=sink,
                cells=size or 0,
            )
        return tables

    def _order(self, key: str, arity: int, draft: _Draft, votes: Mapping[int, float]) -> tuple[int, ...]:
        """The stored order: arguments that levels are made of first, the one that rows run over last."""
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
        draft: _Draft,
        bounds: Callable[[NormalRule], DifferenceBounds],
    ) -> Join:
        """Chooses, for every scan, the row or the index it goes through."""
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
        draft: _Draft,
        bounds: Callable[[NormalRule], DifferenceBounds],
    ) -> str | None:
        """The variable over which the last scan and the head run side by side, if they may."""
        if self.options.derivatives is not None and self.options.derivatives.order:
            return None  # not for rows of jets; the order of what arrives is the same without them
        if not SEMIRINGS[self.semiring].rows or draft.strategy not in ("levels", "solve") or not join.steps:
            return None
        if join.driver is None or (join.rule.number, join.driver) in draft.inner:
            return None  # an item at hand may be the head, or be among what is found
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


def _depths(term: Term) -> list[tuple[str, int]]:
    """The variables of a term, each with how many functors stand around it."""
    found: list[tuple[str, int]] = []
    stack = [(term, 0)]
    while stack:
        at, depth = stack.pop()
        match at:
            case Variable(name=name):
                found.append((name, depth))
            case Compound(arguments=arguments):
                stack.extend((a, depth + 1) for a in arguments)
    return found


def starting_variables(join: Join) -> set[str]:
    """What is known before the first step."""
    if join.from_head:
        return item_variables(join.rule.head)
    return set() if join.driver is None else item_variables(join.rule.antecedents[join.driver].item)


def _differ(a: Item, b: Item, bounds: DifferenceBounds) -> bool:
    """Whether two items of one predicate can be told apart from the order of their arguments."""
    return any(bounds.gap(x, y) >= 1 or bounds.gap(y, x) >= 1 for x, y in zip(a.arguments, b.arguments, strict=True))


def _free_position(item: Item, bound: set[str]) -> int | None:
    """The one argument that is a free variable, all others being known; None where it is not so."""
    free = [i for i, term in enumerate(item.arguments) if not term_variables(term) <= bound]
    if len(free) != 1 or not isinstance(item.arguments[free[0]], Variable):
        return None
    return free[0]


def _plain_and_free(item: Item, bound: set[str]) -> bool:
    """Whether every item of the predicate matches: distinct free variables and nothing else."""
    names = [t.name for t in item.arguments if isinstance(t, Variable)]
    return len(names) == len(item.arguments) == len(set(names)) and not set(names) & bound


def make_plan(rules: Rules, domains: Domains, summary: Summary, options: Options | None = None) -> Plan:
    """The plan for checked rules, given what the facts are like."""
    return _Planner(rules, domains, summary, options or Options()).plan()
