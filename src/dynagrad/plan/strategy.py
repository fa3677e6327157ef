"""The evaluation strategy of each strongly connected component: once, by levels, solved, from an agenda, or by sweeps.

Components that negation or a priority reads are in an earlier stratum. Orders themselves are found in `order.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..errors import ProgramError
from ..rules.aggregators import AGGREGATORS
from ..rules.normal import NormalRule, Rules
from ..rules.semirings import SEMIRINGS
from ..rules.syntax import (
    INCREASING,
    OF_POSITIVE,
    AntecedentValue,
    Application,
    Compound,
    Expression,
    Numeral,
    Term,
    Variable,
)
from ..rules.types import Domains
from .analyses.demand import fixed_arguments, items_of, omitted, restrict
from .analyses.intervals import extents
from .analyses.polynomials import unknowns
from .analyses.recognise import ORDERS, effective_semiring
from .model import (
    LinearForm,
    Strategy,
    Summary,
)
from .options import Options
from .order import Edge, Gaps, Levels, derive_gaps, find_levels, negated


@dataclass(frozen=True)
class Draft:
    """A stage before its joins are ordered; its fields are those of `Stage` and `Levels`."""

    keys: tuple[str, ...]
    strategy: Strategy
    priority: str
    forms: tuple[LinearForm, ...]
    final: bool
    reason: str
    idle: frozenset[tuple[int, int]] = frozenset()
    inner: frozenset[tuple[int, int]] = frozenset()
    unknowns: int = 0


def _strata(rules: Rules, keys: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Strata: components merged, except where negation or a priority needs items of a complete one."""
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


def _depths(term: Term) -> list[tuple[str, int]]:
    """The variables of a term, each with its depth in functors."""
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


class StrategyChoice:
    """Chooses the strategies of a program's stages; keeps the analyses that they depend on."""

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
        self.iterates = False  # see `Plan.iterates`
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

    def _draft(self, keys: frozenset[str], members: tuple[str, ...]) -> Draft:
        """The strategy of one strongly connected component of predicates under `auto`."""
        edges = self._recursive(keys)
        if not edges:
            return Draft(members, Strategy.ONCE, "", (), True, "no recursion: its rules fire once")
        levels = find_levels(members, edges, self.rules, self.domains, self.summary, self.gaps)
        if levels is not None and levels.final:
            names = ", then ".join(f.name for f in levels.forms)
            reason = f"items become final in order of {names}; each is popped once"
            return Draft(members, Strategy.LEVELS, "", levels.forms, True, reason, levels.idle)
        if self.semiring != "plain" and self._aggregator(keys) == "|=":
            reason = "each derived item is worth one: first in, first out"
            return Draft(members, Strategy.QUEUE, "", (), False, reason)
        if self._grounds(keys):
            return self._solving(keys, members, edges, levels)
        self._refuse_products(keys)
        if self.semiring == "plain":
            if self._aggregator(keys) != "+=" and not self._monotone(keys):
                return Draft(
                    members,
                    Strategy.SWEEP,
                    "",
                    (),
                    False,
                    "a contribution may get worse: all rules in rounds until nothing changes",
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
            return Draft(members, Strategy.HEAP if forms else Strategy.QUEUE, "", forms, False, reason)
        return Draft(members, Strategy.HEAP, priority, forms, False, reason)

    def _aggregator(self, keys: Iterable[str]) -> str | None:
        """The aggregator that some predicates share; None where they have several."""
        found = {self.rules.predicates[k].aggregator for k in keys}
        return found.pop() if len(found) == 1 else None

    def _monotone(self, members: Iterable[str]) -> bool:
        """Whether right sides are monotone in recursive antecedents, so that a better one makes the head better."""
        keys = frozenset(members)
        aggregator = self._aggregator(keys)

        def fine(value: Expression, rule: NormalRule) -> bool:
            match value:
                case Numeral() | AntecedentValue():
                    return True
                case Application(operator=operator, operands=operands) if operator in INCREASING - OF_POSITIVE:
                    return all(fine(o, rule) for o in operands)
                case Application(operator="-", operands=(left, right)):
                    return fine(left, rule) and _free_of(right, rule, keys)
            return _free_of(value, rule, keys)

        if aggregator is None or not AGGREGATORS[aggregator].best_first:
            return False
        return all(fine(rule.value, rule) for key in keys for rule in self.by_head.get(key, ()))

    def _grounds(self, keys: frozenset[str]) -> bool:
        """Whether a recursive stage runs in topological order of its ground program, found at run time."""
        if self.rules.agenda != "auto" or self.rules.solve == "iterate":
            return False
        if self.rules.priorities or self.rules.beams or self.rules.prunes or self.selective:
            return False
        if any(self.grows(rule, keys) for key in keys for rule in self.by_head.get(key, ())):
            return False  # there may be infinitely many items
        if self.semiring == "plain" and self._monotone(keys):
            return False
        self.iterates = self.options.iterate
        return not self.iterates

    def grows(self, rule: NormalRule, keys: frozenset[str]) -> bool:
        """Whether a recursive rule may make ever larger arguments: unbounded integers, or deeper terms."""
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
        """Raises for a recursive `*=`: a product of values that still change is not monotone, so it is not iterated."""
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
    ) -> Draft:
        """A stage that finds the components of its ground program, and solves the cyclic ones."""
        found = [unknowns(e.rule, keys, self.semiring) for e in edges]
        additive = self._aggregator(keys) == "+="
        numeric = SEMIRINGS[self.semiring].equations or (self.semiring == "plain" and additive)
        if self.options.user is not None:  # its times need not commute, so the one unknown must be the first or last
            numeric = self.options.user.star is not None and set(found) <= {0, 1}
        most = max(1, *(f or 0 for f in found)) if numeric and None not in found else 0
        reason = "in topological order of the ground program's components, found at run time"
        if most:
            reason += "; cyclic ones are solved"
        forms: tuple[LinearForm, ...] = ()
        idle = frozenset[tuple[int, int]]()
        inner = frozenset((e.rule.number, e.antecedent) for e in edges)
        if levels is not None:
            forms, idle, inner = levels.forms, levels.idle, levels.rest
            reason = f"by {', then '.join(f.name for f in forms)}, which no rule decreases; within a level {reason}"
        return Draft(members, Strategy.SOLVE, "", forms, True, reason, idle, inner, most)

    def _priority(self) -> tuple[str, str]:
        return self.order, ORDERS[self.order]

    def _resolving_drafts(self) -> list[Draft] | None:
        """The stages of a fresh run, all as `SOLVE`, if one of them solves and none iterates: see
        `changing/resolve.hpp`. None otherwise."""
        position = {k: i for i, k in enumerate(self.rules.predicates)}
        drafts = [self._draft(c, tuple(sorted(c, key=position.__getitem__))) for c in self.components]
        strategies = {d.strategy for d in drafts}
        if Strategy.SOLVE not in strategies or not strategies <= {Strategy.ONCE, Strategy.LEVELS, Strategy.SOLVE}:
            return None
        return [d if d.strategy is Strategy.SOLVE else replace(d, strategy=Strategy.SOLVE) for d in drafts]

    def _changing_draft(self) -> Draft:
        """One stage for all predicates: component by component, within each by its levels."""
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
        return Draft(
            keys, Strategy.HEAP, priority, tuple(made), False, "facts change: component by component, by level"
        )

    def drafts(self) -> list[Draft]:
        if self.options.collecting:
            keys = tuple(k for k in self.rules.predicates if any(k in c for c in self.components))
            return [
                Draft(keys, Strategy.ONCE, "", (), True, "derivations are collected from their heads; nothing runs")
            ]
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
                if d.strategy in (Strategy.LEVELS, Strategy.HEAP, Strategy.QUEUE)
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
            Draft(tuple(sorted(s, key=position.__getitem__)), strategy, priority, (), False, reason)
            for s in _strata(self.rules, self.components)
        ]

    def _with_readers(self, drafts: list[Draft]) -> list[Draft]:
        """Stages that may never end, together with the outputs that read them: they stop when these change no more."""
        readers: dict[int, list[int]] = {}
        for n, draft in enumerate(drafts):
            keys = frozenset(draft.keys)
            endless = any(self.grows(r, keys) for k in keys for r in self.by_head.get(k, ()))
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

    def _only_reads(self, draft: Draft, keys: frozenset[str], known: frozenset[str]) -> bool:
        """Whether a stage has only outputs, made of `known` predicates, with at most one antecedent among `keys`."""
        if draft.strategy is not Strategy.ONCE or not set(draft.keys) <= set(self.rules.outputs):
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

    def _held_back(self, draft: Draft) -> Draft:
        """A stage, with updates kept beside values if pruning or a beam may hold its items back."""
        held = self.held & set(draft.keys)
        if not held or not draft.final:
            return draft
        return replace(
            draft, strategy=Strategy.HEAP, final=False, idle=frozenset(), reason=f"{draft.reason}; pruned when popped"
        )

    def _declared(self, agenda: str, declared: bool) -> tuple[Strategy, str]:
        if agenda in ("fifo", "lifo"):
            return (Strategy.QUEUE if agenda == "fifo" else Strategy.STACK), ""
        if declared:
            return Strategy.HEAP, "declared"
        priority = self._priority()[0]
        return (Strategy.QUEUE, "") if priority == "arrival" else (Strategy.HEAP, priority)

    # -- the plan
