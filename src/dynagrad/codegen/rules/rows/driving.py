"""The functions of joins that a row of items drives.

Their calls are in `calling.py` and `codegen/rules/running/pops.py`; which joins are made for rows is decided in
`plan/rows/joins.py`.
"""

from __future__ import annotations

from ....plan.model import Join
from ....rules.show import show
from ...cxx import comment
from ..context import ClassContext
from .elementwise import ElementwiseWriter
from .matrix import MatrixWriter
from .writer import RowWriter


def write_row(context: ClassContext, join: Join) -> None:
    """The function of a join that is driven by a row of items, `cells` of those from `cell` on."""
    assert join.driver is not None
    context.join_comment(join)
    driver = join.rule.antecedents[join.driver].item
    context.out.line(f"// driver: a row of {comment(show(driver))}, antecedent {join.driver + 1}")
    place, common = (join.rule.number, join.driver), (context.plan, context.names, join, context.out)
    writer: RowWriter
    if place in context.elementwise:
        writer = ElementwiseWriter(*common, context.elementwise[place])
    else:
        writer = MatrixWriter(*common, context.matrices[place])
    with context.out.aside(1) as body:
        writer.write()
    name = context.drive_name(join, "rows")
    context.out.function(f"DYNAGRAD_RULE void {name}({context.row_parameters(join, writer)})", body)
