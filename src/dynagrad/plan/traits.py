"""What a plan says of its tables and stages: every question about one is answered here, and nowhere else.

A question is a function of a stage, or of a plan and a table, and its name is that of the trait. Nothing is decided
here that a plan has not decided: no answer depends on text that is written, or on facts beyond their summary. Rows of
drivers are in `rows/`. Aggregators by themselves stand in the table of `rules/aggregators.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..rules.aggregators import AGGREGATORS, HeadKind
from ..rules.normal import NormalRule
from ..rules.semirings import SEMIRINGS
from ..rules.syntax import Numeral
from .analyses.polynomials import polynomial, recursive
from .model import Join, Plan, Stage, Strategy, TableKind, TableLayout

# -- stages: how items are derived -------------------------------------------------------------------------------------


def fires_once(stage: Stage) -> bool:
    """Whether nothing in the stage is popped: its rules fire when it begins."""
    return stage.strategy is Strategy.ONCE


def sweeps(stage: Stage) -> bool:
    """Whether all rules fire in rounds, until nothing changes."""
    return stage.strategy is Strategy.SWEEP


def solves(stage: Stage) -> bool:
    """Whether the strongly connected components of the stage's ground program are found, and solved."""
    return stage.strategy is Strategy.SOLVE


def has_agenda(stage: Stage) -> bool:
    """Whether items of the stage wait in an agenda, and are popped."""
    return stage.strategy not in (Strategy.ONCE, Strategy.SWEEP)


def by_level(stage: Stage) -> bool:
    """Whether items are popped level by level, and nothing else orders them in the agenda."""
    return stage.strategy in (Strategy.LEVELS, Strategy.SOLVE)


def searches(stage: Stage) -> bool:
    """Whether updates are propagated one by one in the order of an agenda, which may pop an item again."""
    return in_line(stage) or stage.strategy is Strategy.HEAP


def in_line(stage: Stage) -> bool:
    """Whether items wait in the order in which they arrived, or against it."""
    return stage.strategy in (Strategy.QUEUE, Strategy.STACK)


def repeats(stage: Stage) -> bool:
    """Whether an item of the stage may change more than once, so that where it waits is kept with it."""
    return searches(stage) or sweeps(stage)


def resolvable(stage: Stage) -> bool:
    """Whether a finished chart of the stage can be updated component by component."""
    return fires_once(stage) or by_level(stage)


def pops_final_items(stage: Stage) -> bool:
    """Whether items are popped from an agenda, and not solved for."""
    return has_agenda(stage) and not solves(stage)


def rolls_back(stage: Stage) -> bool:
    """Whether a backward pass has to roll the chart back to its state before each pop.

    Not where every item is final and each rule has one driver: such a join finds only items that were popped before its
    driver.
    """
    if not has_agenda(stage):
        return sweeps(stage)
    return not stage.final or not stage.one_driver_each


# -- tables: what is stored, and where it waits ------------------------------------------------------------------------


def is_facts(table: TableLayout) -> bool:
    """Whether a table holds facts, which no rule derives."""
    return table.kind is TableKind.FACTS


def is_external(table: TableLayout) -> bool:
    """Whether values come from a function outside of the program."""
    return table.kind is TableKind.EXTERNAL


def is_derived(table: TableLayout) -> bool:
    """Whether a table holds items, which rules derive."""
    return table.kind in (TableKind.DENSE, TableKind.HASHED)


def is_dense(table: TableLayout) -> bool:
    """Whether items are in an array over the ranges of their arguments."""
    return table.kind is TableKind.DENSE


def stored_order(table: TableLayout) -> Iterable[int]:
    """The arguments in the order in which they are stored."""
    return table.order if is_dense(table) else range(table.arity)


def waits(plan: Plan, table: TableLayout) -> bool:
    """Whether the items of a derived table wait in an agenda."""
    return has_agenda(plan.stage_of[table.key]) and not table.sink


def keeps_updates(plan: Plan, table: TableLayout) -> bool:
    """Whether an item has a pending update beside its value; in a sweep this is the value of the next round."""
    return table.updates or sweeps(plan.stage_of[table.key])


def takes_facts(plan: Plan, table: TableLayout) -> bool:
    """Whether facts may be given for a predicate."""
    known = table.key in plan.summary.facts or plan.rules.predicates[table.key].input
    return is_facts(table) or (is_derived(table) and known)


def has_axioms(plan: Plan, table: TableLayout) -> bool:
    """Whether a predicate that rules define may also have facts."""
    return plan.summary.facts.get(table.key) is not None or plan.rules.predicates[table.key].input


def asked_for(plan: Plan, table: TableLayout) -> bool:
    """Whether the items of a table are declared as output, or nothing is."""
    return not plan.rules.outputs or table.key in plan.rules.outputs


def holds_back(plan: Plan, table: TableLayout) -> bool:
    """Whether pruning or a beam may hold items of a table back."""
    return table.key in {*(p.item.key for p in plan.rules.prunes), *(b.item.key for b in plan.rules.beams)}


def held_around(plan: Plan, table: TableLayout) -> bool:
    """Whether pruning or a beam holds back what a cycle through items of the table goes through, and not only what
    leads to one, or away from it."""
    if not plan.rules.prunes and not plan.rules.beams:
        return False
    around = next(keys for keys in plan.rules.components if table.key in keys)
    if not any(key in plan.tables and holds_back(plan, plan.tables[key]) for key in around):
        return False
    rules = [rule for rule in plan.rules.rules if rule.head.key in around]
    return any(antecedent.item.key in around for rule in rules for antecedent in rule.antecedents)


def bounded(plan: Plan, table: TableLayout) -> bool:
    """Whether a table keeps the error bound of each item's component, for later updates of other components."""
    return not table.sink and table.key in plan.stage_of and plan.stage_of[table.key].unknowns > 0


# -- tables: how contributions make a value ----------------------------------------------------------------------------


def clause_defined(plan: Plan, table: TableLayout) -> bool:
    """Whether clauses (`head :- item.`) define the table in a semiring: each of its items is worth one."""
    return plan.semiring != "plain" and table.aggregator == "|="


def head_clause_defined(plan: Plan, join: Join) -> bool:
    """Whether clauses define the head of a join, so that it has no part in the equations of a cycle."""
    return clause_defined(plan, plan.tables[join.rule.head.key])


def head_kind(plan: Plan, table: TableLayout) -> HeadKind:
    """How contributions to an item of the table make its value."""
    if plan.semiring == "plain":
        return AGGREGATORS[table.aggregator].kind
    if clause_defined(plan, table):
        return HeadKind.STEP
    return HeadKind.SELECT if plan.selective else HeadKind.SUM


def copy_kind(plan: Plan, table: TableLayout) -> HeadKind:
    """How copies of a fact make the value of an item of the table."""
    if not is_facts(table) or plan.rules.semiring is not None or plan.semiring == "plain":
        return head_kind(plan, table)
    return SEMIRINGS[plan.semiring].copies[table.aggregator]


def multiplies_as_found(plan: Plan) -> bool:
    """Whether the value of a rule is a product of its antecedents in whatever order they are found.

    Not without a semiring. A user's times need not commute; and where plus selects, the last bit of a value must not
    depend on which antecedent drove the join.
    """
    return plan.semiring not in ("plain", "user") and SEMIRINGS[plan.semiring].order != "value"


def drives_again(plan: Plan, join: Join) -> bool:
    """Whether what drives a join may have driven it before, with another value: no fact, and no item popped once."""
    if join.driver is None or plan.stage_of[join.rule.head.key].final:
        return False
    return not is_facts(plan.tables[join.rule.antecedents[join.driver].item.key])


def selects(plan: Plan, table: TableLayout) -> bool:
    """Whether the value of an item is one of its contributions."""
    return head_kind(plan, table) is HeadKind.SELECT


def sums(plan: Plan, table: TableLayout) -> bool:
    """Whether the value of an item is the sum of its contributions."""
    return head_kind(plan, table) is HeadKind.SUM


def steps(plan: Plan, table: TableLayout) -> bool:
    """Whether the value of an item is piecewise constant, so that it has no derivative."""
    return head_kind(plan, table) is HeadKind.STEP


def merges_copies(plan: Plan, table: TableLayout) -> bool:
    """Whether copies of a fact are one leaf, because they join by times: costs of one thing, or logs, that add up."""
    copies = SEMIRINGS[plan.semiring].copies
    return plan.rules.semiring is None and copies.get(table.aggregator) is HeadKind.SHIFT


def may_excuse(plan: Plan, table: TableLayout) -> bool:
    """Whether items of a table can be infinite though nothing overflowed, so that they need flags which say so."""
    return plan.semiring == "plain" and is_derived(table) and not AGGREGATORS[table.aggregator].truth


def keeps_rest(plan: Plan, table: TableLayout) -> bool:
    """Whether sums of logs in a table keep what rounding took from them, so that the shares of large logs are right.

    A round of a sweep sums anew.
    """
    return head_kind(plan, table) is HeadKind.SOFTMAX and not sweeps(plan.stage_of[table.key])


def closed(plan: Plan, rule: NormalRule, antecedent: int) -> bool:
    """Whether it only matters that an antecedent is derived: its derivations are not part of those of the rule.

    An item that clauses derive is worth one, however often it is derived.
    """
    item = rule.antecedents[antecedent]
    if item.side:
        return True
    states = plan.rules.predicates[item.item.key].aggregator == "|="
    return states and plan.semiring not in ("boolean", "plain")


# -- stages: how they end ----------------------------------------------------------------------------------------------


def estimates(plan: Plan, stage: Stage) -> bool:
    """Whether the remainder of a stage is estimated: it iterates sums of numbers that have a size."""
    if plan.changes is not None or any(held_around(plan, plan.tables[key]) for key in stage.keys):
        return False
    if plan.semiring not in ("real", "log", "expectation", "plain", "user") or plan.selective or stage.final:
        return False
    if not searches(stage):
        return False
    return all(plan.tables[k].sink or sums(plan, plan.tables[k]) for k in stage.keys)


def settles_late(plan: Plan) -> bool:
    """Whether a gain around a cycle may come to an end by itself: a user's times may have an upper bound."""
    return plan.semiring == "user" and plan.selective


def gains(plan: Plan, stage: Stage) -> bool:
    """Whether a stage looks for cycles of gain: best-first, where right sides only add to a recursive antecedent."""
    if not searches(stage) or plan.changes is not None:
        return False
    if SEMIRINGS[plan.semiring].order == "value" or settles_late(plan):
        return True
    if plan.semiring != "plain" or any(not AGGREGATORS[plan.tables[k].aggregator].sign for k in stage.keys):
        return False
    keys = frozenset(stage.keys)
    for join in stage.drives:
        found = polynomial(join.rule.value, recursive(join.rule, keys))
        if found is None or any(f and (len(f) > 1 or c != Numeral(1.0)) for f, c in found.items()):
            return False
    return True


def follows(plan: Plan, stage: Stage) -> bool:
    """Whether a best-first stage of other right sides looks for a cycle once a number of it overflowed."""
    if not searches(stage) or plan.changes is not None or plan.semiring != "plain" or gains(plan, stage):
        return False
    return all(AGGREGATORS[plan.tables[k].aggregator].sign for k in stage.keys)


def traces(plan: Plan, stage: Stage) -> bool:
    """Whether items that are popped again and again record the item that they come from: parents close a cycle."""
    return gains(plan, stage) or estimates(plan, stage) or follows(plan, stage)


QUIET = 1_000_000
"""Pops in a row without a changed digit, after which a stage whose arguments may grow without bound stops; and pops
after which values that a user's semiring improves around a cycle are taken to do so without end."""


def watches(plan: Plan, stage: Stage) -> bool:
    """Whether the stage needs what watches over its convergence."""
    return sweeps(stage) or traces(plan, stage)


# -- derivatives -------------------------------------------------------------------------------------------------------


def posteriors(plan: Plan) -> bool:
    """Whether adjoints are with respect to log weights (posteriors): in `log`, where every item is popped once."""
    derivatives = plan.derivatives
    if not SEMIRINGS[plan.semiring].adds_logs or derivatives is None or derivatives.order or derivatives.outside:
        return False
    return plan.pops_once


def keeps_total(plan: Plan, table: TableLayout) -> bool:
    """Whether the total of which contributions have a share is kept in an array: each round of a sweep has another."""
    return head_kind(plan, table) is HeadKind.SOFTMAX and sweeps(plan.stage_of[table.key])


def sums_up(plan: Plan, table: TableLayout) -> bool:
    """Whether the derivative by an item is the sum of the adjoints of all values that it had, one after another.

    In a sweep each round has another. Where plus selects, a value is used until a better one takes its place; else a
    value is a part of the next one, and so is its adjoint.
    """
    stage = plan.stage_of[table.key]
    if sweeps(stage):
        return True
    return selects(plan, table) and table.updates and not table.sink and not stage.final


def rests(plan: Plan, table: TableLayout) -> bool:
    """Whether updates to the items of a table may rest: see `running/sweep.hpp`."""
    if plan.derivatives is None or is_facts(table):
        return False
    by_weight = ("real", "expectation", "plain", *(("log",) if plan.derivatives.outside else ()))
    if plan.semiring not in by_weight:
        return False
    if held_around(plan, table):  # what is held back is not part of the derivative
        return False
    return waits(plan, table) and not plan.stage_of[table.key].final and sums(plan, table)


def settles(plan: Plan, table: TableLayout) -> bool:
    """Whether a table keeps the tangents of resting updates."""
    return plan.order > 0 and rests(plan, table)


def resting(plan: Plan, stage: Stage | None = None) -> list[TableLayout]:
    """The tables whose updates may rest, of one stage or of all."""
    stages = plan.stages if stage is None else (stage,)
    return [plan.tables[key] for s in stages for key in s.keys if rests(plan, plan.tables[key])]


def undoes_rows(plan: Plan, table: TableLayout) -> bool:
    """Whether the pops of items that stand side by side are undone together."""
    return plan.pops_rows(table.key) and not plan.selective and not selects(plan, table)


def goes_back_together(plan: Plan, join: Join) -> bool:
    """Whether stretches of facts are gone back over for many drivers at once: adjoints are posteriors, and nothing else
    is multiplied with the driver."""
    return posteriors(plan) and plan.sums_together(join) and len(join.rule.antecedents) == 2
