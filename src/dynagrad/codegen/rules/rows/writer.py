"""What joins of a whole row of drivers have in common: no value is computed by itself, so no visitor is told of it.

The kinds are in `elementwise.py` and `matrix.py`; how they are gone back over is in
`codegen/rules/backward/row_joins.py`.
"""

from __future__ import annotations

from ....plan.model import Join, Plan
from ....plan.right_sides import factors
from ...cxx import Writer
from ..nests import NestWriter
from ..scope import Names


class RowWriter(NestWriter):
    """Writes a join for the `cells` of a row, a bit each from `cell` on; `a0`, ... are those of the first one.

    The join is over the `variable` of the row.
    """

    def __init__(self, plan: Plan, names: Names, join: Join, writer: Writer, variable: str) -> None:
        super().__init__(plan, names, join, writer)
        self.variable = variable
        self.product = factors(join.rule.value)
        self.cells: dict[int, str] = {}  # antecedent -> its cell or row

    def begin(self) -> None:
        if not self.together and self.rule.head.key in self.plan.heads_summed:
            self.out.line("together.end(this);", "sums that wait come first")

    def driver(self, driver: int) -> None:
        pass

    def outside(self, i: int, value: str) -> None:
        self.take(i, value)

    def found(self, i: int, at: str) -> None:
        self.cells[i] = at
        self.take(i, f"{self.place(i)}.value[{at}]")

    def take(self, antecedent: int, value: str) -> None:
        """The value of an antecedent that was found."""
