"""Reduction: a machine that carries out the rules, and leaves a tree of steps behind.

The rules are in the parts that the machine is made of. What is here starts it.
"""

from __future__ import annotations

from ..infer import infer
from ..terms import PullbackTerm
from ..trampoline import Call, watched
from ..trees import checked_steps
from .call_by_value import CallByValue
from .premises import Premises
from .pullbacks import Pullbacks
from .steps import Reduction
from .transpose import Reverse
from .values import Activation, residual_term

MOST_STEPS = 1_000_000
"""How many steps a reduction may take, unless it is told otherwise. A step that stays takes about a kilobyte."""


class Reducer(CallByValue, Pullbacks, Premises, Reverse):
    """The machine with all its parts."""

    def whole(self, of: PullbackTerm) -> Call[PullbackTerm]:
        """The reduction of a term."""
        self.context = (self.with_residual, None)
        value: PullbackTerm = yield self.evaluate(of, Activation())
        self.context = None  # which would keep the machine in a circle
        return residual_term(self.residual, value)


def reduce(of: PullbackTerm | str, *, filename: str = "", max_steps: int = MOST_STEPS, keep: bool = True) -> Reduction:
    """The reduction of a term, which starts when it is looked at; unless `keep`, steps are gone once they are seen.

    >>> reduce(r"((W \\<x, y>. square((x + 1) * (2 * x + y * y))) . (\\_. 1^)) <1, 3>").result
    (660, 528)^
    """
    typed = infer(of, filename=filename)
    machine = Reducer(typed, checked_steps(max_steps))
    return Reduction(typed.term, typed.type, watched(machine.whole(typed.term), machine.events), keep)
