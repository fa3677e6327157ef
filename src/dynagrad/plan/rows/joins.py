"""The joins of a plan that are driven by whole rows. Which joins these may be is for the other files of this folder."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import Join, Plan
from .elementwise import elementwise
from .matrix import matrix

LARGE_PROGRAM = 500
"""From this many rules on each becomes a function that is not inlined, so that compiling takes linear time."""

Place = tuple[int, int | None]
"""The number of a rule, and its driver."""


@dataclass(frozen=True)
class RowJoins:
    """The joins of either kind, each with the variable that drivers run over."""

    elementwise: dict[Place, str]
    matrices: dict[Place, str]

    @staticmethod
    def of(plan: Plan, large: bool) -> RowJoins:
        """Those of a plan; a large program has none."""
        few = [] if large else [j for stage in plan.stages for j in stage.drives]
        return RowJoins(
            {place(j): name for j in few if (name := elementwise(plan, j)) is not None},
            {place(j): name for j in few if (name := matrix(plan, j)) is not None},
        )

    def __contains__(self, join: Join) -> bool:
        return place(join) in self.elementwise or place(join) in self.matrices


def place(join: Join) -> Place:
    """What tells a join from others."""
    return join.rule.number, join.driver
