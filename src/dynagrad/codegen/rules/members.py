"""What the table of a predicate has beside its items and their values: the rows of `MEMBERS`, of which each says when.

Each table of a generated class is a struct of its own (`tables.py`), with these as members. Arrays are by cell; most
of them grow when they are first written to. What a table is, is in `traits.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...plan.model import Plan, TableLayout
from ...plan.traits import (
    bounded,
    has_axioms,
    head_kind,
    is_external,
    keeps_rest,
    keeps_total,
    keeps_updates,
    may_excuse,
    posteriors,
    rests,
    selects,
    settles,
    solves,
    sums_up,
)
from ...rules.aggregators import HeadKind
from .context import ClassContext

Asked = Callable[[Plan, TableLayout], bool]
When = Callable[[ClassContext, TableLayout], bool]


@dataclass(frozen=True)
class Member:
    """A member of a table: its C++ type, its name, when a table has it, and what it holds."""

    type: str
    name: str
    when: When
    note: str


def _derived(asked: Asked) -> When:
    """What tables of predicates that rules define have."""
    return lambda context, table: table.key in context.plan.stage_of and asked(context.plan, table)


def _goes_back(asked: Asked) -> When:
    """What these have where there is a backward pass."""
    return _derived(lambda plan, table: plan.adjoint and asked(plan, table))


def _runs(asked: Asked) -> When:
    """What these have where the class runs, and does not only collect derivations."""
    return _derived(lambda plan, table: plan.collects is None and asked(plan, table))


def _changes(plan: Plan, _: TableLayout) -> bool:
    return plan.changes is not None


def _solves(plan: Plan, table: TableLayout) -> bool:
    return solves(plan.stage_of[table.key])


def _product(plan: Plan, table: TableLayout) -> bool:
    return head_kind(plan, table) is HeadKind.PRODUCT


def _of_stages(stages: Callable[[ClassContext], frozenset[str]]) -> When:
    """What the tables of some stages have, where the class runs."""
    return lambda context, table: context.plan.collects is None and table.key in stages(context)


MEMBERS = (
    Member("Array<uint8_t>", "excused", _derived(may_excuse), "infinite, and not of its own making"),
    Member("Array<double>", "rest", _derived(keeps_rest), "what rounding took from the log of a sum"),
    Member("Array<uint8_t>", "marked", _derived(_changes), "reached by a change"),
    Member("Array<uint8_t>", "indexed", _derived(_changes), "in the indexes"),
    Member("Array<adjoint_t>", "g", lambda c, t: c.plan.adjoint and not is_external(t), "the adjoint of the value"),
    Member("Array<adjoint_t>", "ga", _goes_back(keeps_updates), "that of the pending update"),
    Member("Array<adjoint_t>", "gt", _goes_back(sums_up), "the sum of the adjoints of all values that an item had"),
    Member("Array<adjoint_t>", "g_axioms", _goes_back(has_axioms), "by row"),
    Member("Array<value_t>", "h", _goes_back(lambda p, _: posteriors(p)), "that over the weight, once complete"),
    Member("Array<uint32_t>", "from", _goes_back(selects), "the pop that made the pending update"),
    Member("Array<uint32_t>", "wait", _goes_back(selects), "that whose update takes the adjoint"),
    Member("Array<value_t>", "aim", _goes_back(selects), "the value of this update"),
    Member("Factors<semiring>", "factors", _goes_back(_product), "of the contributions"),
    Member("Array<value_t>", "total", _goes_back(keeps_total), "of which contributions have a share"),
    Member("Array<value_t>", "tangents", _runs(settles), "of updates that changed nothing"),
    Member("Array<uint8_t>", "is_needed", _goes_back(rests), "updates rest with the item"),
    Member("Array<adjoint_t>", "resting", _goes_back(rests), "the adjoint of these, once solved for"),
    Member("Array<uint32_t>", "node", _runs(_solves), "its node in the block, from 1"),
    Member("Array<uint32_t>", "solved", _runs(_solves), "among solved items, from 1; 0 if it is not one"),
    Member("Array<double>", "error_bound", _runs(bounded), "of its component; below zero: near-critical"),
    Member("Array<uint32_t>", "former", _derived(lambda p, _: p.resolves), "its place among those before a change"),
    Member("Array<double>", "moved", _of_stages(lambda c: c.estimated), "how far the value moved"),
    Member("Array<uint64_t>", "parent", _of_stages(lambda c: c.traced), "the item that it comes from, + 1; 0: none"),
    Member("Array<double>", "most", _of_stages(lambda c: c.estimated), "the contribution of that"),
    Member("Array<int32_t>", "nodes", lambda c, _: c.plan.collects is not None, "of the forest"),
)
"""What tables have."""


def members_of(context: ClassContext, table: TableLayout) -> Iterator[Member]:
    """What a table has."""
    return (member for member in MEMBERS if member.when(context, table))
