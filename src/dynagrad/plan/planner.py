"""The planner: `make_plan` puts a plan together, from strategies over joins and storage to access paths.

No facts are read here, only statistics of them, and no C++ is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..rules.normal import NormalRule, Rules
from ..rules.syntax import Item
from ..rules.types import Domains
from .access import AccessPaths
from .analyses.stable import stable_arguments
from .joins import JoinPlanner
from .model import Changes, Join, Plan, Stage, Strategy, Summary, TableLayout
from .options import Options
from .order import DifferenceBounds
from .storage.layout import Layouts
from .storage.occupancy import PairCount
from .strategy import Draft, StrategyChoice

Bounds = Callable[[NormalRule], DifferenceBounds]


def make_plan(
    rules: Rules, domains: Domains, summary: Summary, options: Options | None = None, count: PairCount | None = None
) -> Plan:
    """The plan for checked rules and a summary of the facts; `count` is asked where an array would be large."""
    choice = StrategyChoice(rules, domains, summary, options or Options())
    drafts = choice.drafts()
    draft_of = {key: draft for draft in drafts for key in draft.keys}
    bounds = _bounds(choice)
    joins = _joins(choice, drafts, bounds)
    tables = Layouts(choice, draft_of, count).tables(joins.all)
    paths = AccessPaths(choice, draft_of, tables, bounds)
    stages = tuple(_stage(choice, number, draft, joins, tables, paths) for number, draft in enumerate(drafts))
    collects = paths.of(joins.from_heads) if choice.options.collecting else None
    changes = Changes(paths.of(joins.changed), paths.of(joins.from_heads)) if choice.options.changing else None
    gaps = {k: f.gaps for k, f in summary.facts.items()} if any(s.forms for s in stages) else {}
    return Plan(
        rules=rules,
        domains=domains,
        summary=summary,
        semiring=choice.semiring,
        vector=choice.options.vector,
        tables=tables,
        indexes=tuple(paths.indexes.values()),
        stages=stages,
        omitted=choice.omitted,
        fixed=choice.fixed,
        functions=choice.options.functions,
        user=choice.options.user,
        selective=choice.selective,
        until=choice.options.until,
        changes=changes,
        gaps=gaps,
        derivatives=choice.options.derivatives,
        iterates=choice.iterates,
        collects=collects,
    )


def _bounds(choice: StrategyChoice) -> Bounds:
    """The difference bounds of rules, each made once."""
    made: dict[int, DifferenceBounds] = {}

    def bounds(rule: NormalRule) -> DifferenceBounds:
        if rule.number not in made:
            made[rule.number] = DifferenceBounds(rule, choice.gaps, choice.domains, choice.summary)
        return made[rule.number]

    return bounds


# -- joins -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Joins:
    """The joins of a plan, with their steps in order: those of stages by the stage's number."""

    fires: Sequence[list[Join]]
    """At the start of a stage."""
    drives: Sequence[list[Join]]
    """From each item that is popped."""
    changed: list[Join]
    """From each item that was changed from outside of its stage."""
    from_heads: list[Join]
    """From the items that they derive."""

    @property
    def all(self) -> list[Join]:
        return [j for group in (*self.fires, *self.drives, self.changed, self.from_heads) for j in group]


def _joins(choice: StrategyChoice, drafts: Sequence[Draft], bounds: Bounds) -> _Joins:
    """The joins of all rules, in the order of rules."""
    options, planner = choice.options, JoinPlanner(choice.rules, choice.domains, choice.summary)
    resolving = _resolving(choice, drafts)
    stage_of = {key: n for n, d in enumerate(drafts) for key in d.keys}
    made = _Joins([[] for _ in drafts], [[] for _ in drafts], [], [])

    def join(rule: NormalRule, driver: int | None, same: tuple[int, ...] = (), from_head: bool = False) -> Join:
        steps, cost = planner.plan(rule, driver, from_head=from_head)
        return Join(rule, driver, steps, from_head, same=same, cost=cost)

    for rule in choice.live:
        number = stage_of[rule.head.key]
        draft = drafts[number]
        inside = [i for i, a in enumerate(rule.antecedents) if a.item.key in draft.keys]
        if options.changing or options.collecting:
            made.from_heads.append(join(rule, None, from_head=True))
        if options.collecting:
            continue
        if options.changing:
            for i, antecedent in enumerate(rule.antecedents):
                external = choice.rules.predicates[antecedent.item.key].external
                if (resolving or i not in inside) and not external:
                    made.changed.append(join(rule, i))
        if resolving and not inside:
            continue  # from the head alone
        if not inside or draft.strategy is Strategy.SWEEP:
            made.fires[number].append(join(rule, None))
            continue
        for i in inside:
            if (rule.number, i) not in draft.idle and (not resolving or (rule.number, i) in draft.inner):
                made.drives[number].append(join(rule, i, _same(rule, i, inside, bounds)))
    return made


def _resolving(choice: StrategyChoice, drafts: Sequence[Draft]) -> bool:
    """Whether a change is worked out by solving the equations of its stage again."""
    return choice.options.changing and drafts[0].strategy is Strategy.SOLVE


def _same(rule: NormalRule, driver: int, inside: Sequence[int], bounds: Bounds) -> tuple[int, ...]:
    """The other antecedents that may be the same item as the driver."""
    of = [a.item for a in rule.antecedents]
    return tuple(
        i
        for i in inside
        if i != driver and of[i].key == of[driver].key and not _differ(of[i], of[driver], bounds(rule))
    )


def _differ(a: Item, b: Item, bounds: DifferenceBounds) -> bool:
    """Whether difference bounds prove that two items of one predicate are not the same item."""
    return any(bounds.gap(x, y) >= 1 or bounds.gap(y, x) >= 1 for x, y in zip(a.arguments, b.arguments, strict=True))


# -- stages ------------------------------------------------------------------------------------------------------------


def _stage(
    choice: StrategyChoice,
    number: int,
    draft: Draft,
    joins: _Joins,
    tables: Mapping[str, TableLayout],
    paths: AccessPaths,
) -> Stage:
    """A stage, with the access paths of its joins."""
    rules, keys = [r for k in draft.keys for r in choice.by_head.get(k, ())], frozenset(draft.keys)
    fires, drives = paths.of(joins.fires[number]), paths.of(joins.drives[number])
    stable: Mapping[str, int] = {}
    if draft.unknowns == 1 and not draft.forms and choice.semiring not in ("count", "user"):
        stable = {} if choice.options.changing else stable_arguments(rules, draft.keys, tables)
    at_once = "".join(f"; for all values of argument {i + 1} of {k} at once" for k, i in stable.items())
    return Stage(
        number=number,
        keys=draft.keys,
        strategy=draft.strategy,
        priority=draft.priority,
        forms=draft.forms,
        final=draft.final,
        reason=draft.reason + at_once,
        fires=fires,
        drives=drives,
        inner=draft.inner,
        grows=any(choice.grows(r, keys) for r in rules),
        unknowns=draft.unknowns,
        stable=stable,
    )
