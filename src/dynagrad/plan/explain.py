"""A plan as text: semiring, storage and indexes, the stages and the reason for their order, every join step by step.

The text is deterministic: the same plan gives the same text. Nothing is decided here; all of it stands in the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..errors import counted
from ..rules.semirings import SEMIRINGS
from ..rules.show import show
from ..rules.syntax import Item, Variable
from .assume import Assumed
from .joins import rough
from .lower import lower
from .model import (
    DomainSummary,
    IndexPlan,
    Join,
    Plan,
    Stage,
    Strategy,
    TableKind,
    TableLayout,
)
from .nest import lines
from .options import DENSE_CELLS
from .rows.joins import LARGE_PROGRAM, RowJoins, place
from .storage.layout import SMALL
from .traits import sweeps

WIDTH = 200
"""The length to which texts of rules are cut."""

_STRATEGIES = {
    Strategy.ONCE: "once",
    Strategy.LEVELS: "by level, lowest first",
    Strategy.SOLVE: "in topological order of the ground program, found at run time",
    Strategy.HEAP: "by priority",
    Strategy.QUEUE: "first in, first out",
    Strategy.STACK: "last in, first out",
    Strategy.SWEEP: "sweep: all rules in each round (naive evaluation)",
}

_PRIORITIES = {
    "size": "largest update first",
    "value": "best value first",
    "declared": "declared priority, largest first",
}


def explain(plan: Plan) -> str:
    """The plan as text, section by section.

    >>> from dynagrad.rules import check, infer, parse
    >>> from dynagrad.plan.assume import assumed_plan
    >>> rules = check(parse("goal += edge(_X,_Y)."))
    >>> print(explain(assumed_plan(rules, infer(rules), ["int", "int"])))
    semiring: real
    facts: none given, so nothing is assumed of them: sizes and estimates are guesses
    <BLANKLINE>
    storage
      goal/0: one value; it drives no rule, so it bypasses the agenda
      edge/2: facts
    <BLANKLINE>
    order of processing
      1. goal/0: once
         why: no recursion: its rules fire once
    <BLANKLINE>
         rule 1: goal += edge(_X,_Y).
           when the stage begins (estimated cost 1,001):
             for (_X, _Y) in edge(_X,_Y)  -- facts, all of them
               head goal
    """
    lines = [f"semiring: {SEMIRINGS[plan.semiring].in_plans or plan.semiring}"]
    if plan.until is not None:
        lines.append(f"the run stops when the item of {plan.until} that is asked for is final")
    if isinstance(plan.summary, Assumed):
        lines.append("facts: none given, so nothing is assumed of them: sizes and estimates are guesses")
    lines += ["", "storage", *_storage(plan)]
    for key, places in plan.fixed.items():
        where = ", ".join(f"argument {i + 1} is {show(constant)}" for i, constant in places.items())
        lines.append(f"  of {key} only items whose {where} are derived: the outputs need no others")
    if plan.omitted:
        lines += ["", "left out"]
        lines += [f"  {key}: {why}" for key, why in plan.omitted.items()]
    lines += ["", "order of processing", *_stages(plan)]
    relied = list(_relied(plan))
    if relied:
        lines += ["", "what the order relies on in the facts", *relied]
    return "\n".join(lines)


# -- storage ---------------------------------------------------------------------------------------------------------


def _storage(plan: Plan) -> Iterator[str]:
    indexes: dict[str, list[IndexPlan]] = {}
    for index in plan.indexes:
        indexes.setdefault(index.key, []).append(index)
    for key, table in plan.tables.items():
        yield f"  {key}: {_DESCRIBE[table.kind](plan, table)}{_bypass(table)}"
        for index in indexes.get(key, ()):
            yield f"    index {_index(index)}"


def _bypass(table: TableLayout) -> str:
    return "; it drives no rule, so it bypasses the agenda" if table.sink else ""


def _facts(plan: Plan, table: TableLayout) -> str:
    facts = plan.summary.facts.get(table.key)
    if isinstance(plan.summary, Assumed):
        return f"facts{_joined(plan, table)}"
    if facts is None:
        return "facts, none given"
    # for facts of a run, the plan has the number of rows in coarse steps
    most = "up to " if facts.rows > 1 and facts.rows == rough(facts.rows) else ""
    return f"facts, {most}{counted(facts.rows, 'row')}{_joined(plan, table)}"


def _joined(plan: Plan, table: TableLayout) -> str:
    """How rows of one fact join, where that is not by a sum, or where they do not."""
    predicate = plan.rules.predicates[table.key]
    if plan.rules.semiring is not None or (predicate.aggregator == "+=" and not predicate.unjoined):
        return ""
    if predicate.unjoined:
        return f"; a fact may be given once, as {_cut(predicate.unjoined)}"
    return f"; rows of one fact join by `{predicate.aggregator}`"


def _dense(plan: Plan, table: TableLayout) -> str:
    if not table.arity:
        return "one value"
    parts = ", then ".join(_dimension(plan, table, i) for i in table.order)
    return f"dense array of {counted(table.cells, 'cell')}, stored by {parts}"


def _dimension(plan: Plan, table: TableLayout, i: int) -> str:
    domain, extent = plan.summary.domains[table.domains[i]], table.extents[i]
    if domain.kind == "int":
        below, above = (extent.below, extent.above) if extent is not None else (0, 0)
        return f"argument {i + 1} (integers {domain.low + below}..{domain.high + above})"
    return f"argument {i + 1} ({counted(domain.count, 'symbol')})"


def _hashed(plan: Plan, table: TableLayout) -> str:
    return f"hash table on {_columns(range(table.arity))}: {_why_hashed(plan, table)}" if table.arity else "one value"


def _why_hashed(plan: Plan, table: TableLayout) -> str:
    domains = [plan.summary.domains[d] for d in table.domains]
    for kind, say in (("term", "terms"), ("int", "integers of unknown range")):
        places = [i for i, d in enumerate(domains) if d.kind == kind and (kind == "term" or table.extents[i] is None)]
        if places:
            return f"{say} in {_columns(places)}"
    if isinstance(plan.summary, Assumed):
        return "the number of items is unknown without facts"
    if table.cells > DENSE_CELLS:
        return f"an array would need {counted(table.cells, 'cell')}, more than {DENSE_CELLS:,}"
    if table.cells > SMALL:
        return f"an array of {counted(table.cells, 'cell')} would be nearly empty, or too large beside those of others"
    return "an array would be larger than its budget"


def _external(plan: Plan, table: TableLayout) -> str:
    return "external: a function computes its values"


_DESCRIBE: dict[TableKind, Callable[[Plan, TableLayout], str]] = {
    TableKind.FACTS: _facts,
    TableKind.DENSE: _dense,
    TableKind.HASHED: _hashed,
    TableKind.EXTERNAL: _external,
}


def _index(index: IndexPlan) -> str:
    """An index by its number: the items in it, if not all, and the arguments that it is keyed by."""
    plain = [t.name for t in index.pattern if isinstance(t, Variable)]
    if len(plain) == len(index.pattern) == len(set(plain)):
        return f"{index.number} by {_columns([plain.index(v) for v in index.by])}" if index.by else f"{index.number}"
    shown = f"{index.number} of the items {_item(Item(_name(index.key), index.pattern))}"
    return f"{shown} by {', '.join(index.by)}" if index.by else shown


def _columns(places: Sequence[int] | range) -> str:
    """`argument 1`, `arguments 1 and 3`."""
    numbers = [str(i + 1) for i in places]
    if len(numbers) < 2:
        return f"argument {''.join(numbers)}"
    return f"arguments {', '.join(numbers[:-1])} and {numbers[-1]}"


# -- stages ----------------------------------------------------------------------------------------------------------


def _stages(plan: Plan) -> Iterator[str]:
    rows = RowJoins.of(plan, len(plan.rules.rules) >= LARGE_PROGRAM)
    for n, stage in enumerate(plan.stages):
        strategy = _STRATEGIES[stage.strategy]
        if stage.strategy is Strategy.HEAP:
            strategy = _PRIORITIES.get(stage.priority, "by level" if stage.forms else "in any order")
            if stage.forms and stage.priority:
                strategy = f"by level, then {strategy}"
        yield from ([""] if n else [])
        yield f"  {n + 1}. {', '.join(stage.keys)}: {strategy}"
        yield f"     why: {stage.reason}"
        for form in stage.forms:
            for key, coefficients in form.coefficients.items():
                if coefficients:
                    yield f"     {form.name} of {key}: {_form(coefficients)}"
        yield from _rules(plan, stage, rows)


def _form(coefficients: Sequence[tuple[int, int]]) -> str:
    """`argument 3 - argument 2`."""
    text = ""
    for i, c in coefficients:
        sign = (" + " if c > 0 else " - ") if text else ("" if c > 0 else "-")
        text += f"{sign}{f'{abs(c)} * ' if abs(c) != 1 else ''}argument {i + 1}"
    return text


def _rules(plan: Plan, stage: Stage, rows: RowJoins) -> Iterator[str]:
    """Every rule of a stage with its joins, in the order of the text."""
    joins: dict[int, list[Join]] = {}
    for join in (*stage.fires, *stage.drives):
        joins.setdefault(join.rule.number, []).append(join)
    for number in sorted(joins):
        rule = joins[number][0].rule
        yield ""
        yield f"     rule {number}: {_cut(rule.text)}"
        for join in sorted(joins[number], key=lambda j: -1 if j.driver is None else j.driver):
            yield from _join(plan, stage, join, rows)
        driven = {j.driver for j in joins[number]}
        for i, antecedent in enumerate(rule.antecedents):
            if antecedent.item.key in stage.keys and i not in driven and None not in driven:
                item = _item(antecedent.item)
                yield f"       from {item}, antecedent {i + 1}: idle, it can never be the last to arrive"


def _join(plan: Plan, stage: Stage, join: Join, rows: RowJoins) -> Iterator[str]:
    rule = join.rule
    cost = f"estimated cost {_estimate(join.cost)}"
    if join.driver is None:
        again = "in every round" if sweeps(stage) else "when the stage begins"
        yield f"       {again} ({cost}):"
    else:
        item = rule.antecedents[join.driver].item
        yield f"       from each popped {_item(item)}, antecedent {join.driver + 1} ({cost}):"
    *operations, head = lines(lower(plan, join))
    for line in [*operations, f"{head}{_in_rows(rows, join)}"]:
        yield f"         {_within(line)}"


def _in_rows(rows: RowJoins, join: Join) -> str:
    """How a whole row of popped items contributes at once."""
    if (name := rows.elementwise.get(place(join))) is not None:
        return f"  -- all popped items of a row, over {name}, in vector operations"
    if (name := rows.matrices.get(place(join))) is not None:
        return f"  -- all popped items of a row, over {name}, times a matrix where no fact is missing"
    return ""


# -- what other facts must satisfy for the plan to fit them ------------------------------------------------------------


def _relied(plan: Plan) -> Iterator[str]:
    for key, gaps in plan.gaps.items():
        for (i, j), least in sorted(gaps.items()):
            if least >= 0:
                yield f"  {key}: argument {j + 1} - argument {i + 1} >= {least}{_ranked(plan, key, i)}"


def _ranked(plan: Plan, key: str, i: int) -> str:
    domain: DomainSummary = plan.summary.domains[plan.domains.of[key, i]]
    return " (in the order that the facts give them)" if domain.ranked else ""


# -- pieces of text ----------------------------------------------------------------------------------------------------


def _item(item: Item) -> str:
    return _cut(show(item))


def _name(key: str) -> str:
    return key.rsplit("/", 1)[0]


def _cut(text: str) -> str:
    """A text on one line, of a length that can be read."""
    return _within(" ".join(text.split()))


def _within(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."


def _estimate(cost: float) -> str:
    return f"{cost:.3g}" if cost < 1000 else f"{cost:,.0f}"
