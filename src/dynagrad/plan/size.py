"""How large the class of a plan will be, before it is written: what the compiler's options depend on.

The unit is one step of a forward join, which is about three statements. Nothing is planned or written here.
"""

from __future__ import annotations

from collections.abc import Iterable

from .model import Join, Passes, Plan
from .rows.joins import LARGE_PROGRAM
from .traits import may_excuse

BOTH_ENDS = 2
"""What every join has beside its steps: its driver and its head."""


def is_large(plan: Plan) -> bool:
    """Whether a program has very many rules."""
    return len(plan.rules.rules) >= LARGE_PROGRAM


def shares_joins(plan: Plan) -> bool:
    """Whether joins of the same shape share a function: rules are many, and heads have no flags."""
    return is_large(plan) and not any(may_excuse(plan, table) for table in plan.tables.values())


def size(plan: Plan, passes: Passes) -> int:
    """About how large the class of a plan is with these passes, in steps of forward joins.

    A backward join has statements on its way out, too. A nest inside a level that is solved is compiled for three
    visitors: of its values, its edges and its equations; one that a change of facts drives for two: it sends updates,
    or marks heads.
    """
    joins = [join for stage in plan.stages for join in (*stage.fires, *stage.drives)]
    inner = [join for stage in plan.stages for join in stage.inner_joins]
    forward = len(joins) if shares_joins(plan) else _steps(joins)
    total = len(plan.tables) + 2 * len(plan.stages) + 5 * _steps(inner) + _steps(plan.collects or ())
    if Passes.FORWARD in passes:
        total += forward
    if Passes.BACKWARD in passes and plan.adjoint:
        total += 3 * _steps(joins) // 2
    if plan.changes is not None:
        total += 2 * _steps((*plan.changes.facts, *plan.changes.heads))
    return total


def _steps(joins: Iterable[Join]) -> int:
    return sum(len(join.steps) + BOTH_ENDS for join in joins)
