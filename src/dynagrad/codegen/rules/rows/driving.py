"""The functions of joins that an antecedent drives: for one item, for a whole row of items, or both.

Their calls are in `calling.py` and `codegen/rules/running/pops.py`; which joins are made for rows is decided in
`plan/rows/joins.py`.
"""

from __future__ import annotations

from ....plan.model import Join
from ....rules.show import show
from ...cxx import comment
from ..context import ClassContext
from ..statements import JoinWriter
from .elementwise import ElementwiseWriter
from .matrix import MatrixWriter


def write_driven(context: ClassContext, join: Join, *, often: str = "DYNAGRAD_RULE") -> None:
    """Writes the function of a join that is driven by an antecedent.

    `often` says from how many places it is called, as `running/rows.hpp` has it.
    """
    assert join.driver is not None
    place = join.rule.number, join.driver
    if context.shapes is not None:
        context.functions["rule", *place] = context.shapes.function(join)
        return
    context.join_comment(join)
    driver = join.rule.antecedents[join.driver].item
    context.out.line(f"// driver: {comment(show(driver))}, antecedent {join.driver + 1}")
    if context.in_rows(join):
        _write_row(context, join)
        if place in context.elementwise:
            return
    writer = JoinWriter(context.plan, context.names, join, context.out)
    context.join_function(join, "rule", writer, often)


def _write_row(context: ClassContext, join: Join) -> None:
    """The function of a join that is driven by a row of items, `cells` of those from `cell` on."""
    assert join.driver is not None
    place, common = (join.rule.number, join.driver), (context.plan, context.names, join, context.out)
    writer: JoinWriter
    if place in context.elementwise:
        writer = ElementwiseWriter(*common, context.elementwise[place])
    else:
        writer = MatrixWriter(*common, context.matrices[place])
    with context.out.aside(1) as body:
        context.sums_first(join)
        writer.write()
    name = context.drive_name(join, "rows")
    context.out.function(f"DYNAGRAD_RULE void {name}({context.row_parameters(join, writer)})", body)
