"""A run that can be replayed: a value that says what it was made of and how it went, from which it is made again.

Charts, gradients, tangents and jets share it. Which item is popped next depends on values alone, never on derivatives,
so the run that is made again is the same, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen.rules.compiled import STATUS, Settings, Stop
from ..errors import Error, NotDifferentiable
from ..plan.model import Derivatives
from ..rules.semirings import SEMIRINGS
from ..semirings import Scale
from .binding.database import Database
from .binding.decoding import reported_item
from .binding.loading import Along, Prepared
from .ends import End, check_replayed
from .externals import connect


def differentiable(scale: Scale) -> None:
    """Raises NotDifferentiable for value types that have no derivatives."""
    why = SEMIRINGS[scale.name].no_derivatives
    if why:
        raise NotDifferentiable(
            f"a program in the {scale.name} semiring has no gradient: {why}. "
            "Use real or log for sums, viterbi or tropical for the best derivation"
        )


def class_of(order: int, adjoint: bool) -> Derivatives | None:
    """What a class has to differentiate: forward along `order` directions, and backward. None: neither."""
    return Derivatives(order, adjoint) if order or adjoint else None


@dataclass(frozen=True)
class Replay:
    """A run, as what it was made of: the facts, and how it went.

    `course` has, for each time that it was started: how many pops there were when it stopped (None: it came to its
    end), the tolerance, and whether that was lowered where it left too much. Which item is popped next depends on
    values alone, never on derivatives, so the run can be made again, to the bit. `stopped` is the stage that it stopped
    in, from one, and 0 where it came to its end.
    """

    facts: Database
    course: tuple[tuple[int | None, float, bool], ...]
    until: str | None
    max_bytes: int
    stopped: int = 0
    iterate: bool = False  # cycles were iterated

    @property
    def scale(self) -> Scale:
        return self.facts.context.scale

    def again(
        self, adjoint: bool, along: Along | None = None, *, outside: bool = False, stop: Stop | None = None
    ) -> Prepared:
        """The same run in a class with derivatives. Raises what a function behind an external predicate raises."""
        along = along or Along()
        raised: list[BaseException] = []  # by functions behind external predicates
        try:
            prepared = self._prepared(Derivatives(along.order, adjoint, outside), along, stop, raised)
            for settings in self._runs(prepared, stop):
                status = STATUS[prepared.chart.run(settings, stop).status]
                check_replayed(End(status, prepared, self.scale))
        except Error:
            if raised:
                raise raised[0] from None
            raise
        return prepared

    def _prepared(
        self, derivatives: Derivatives, along: Along, stop: Stop | None, raised: list[BaseException]
    ) -> Prepared:
        facts = self.facts
        prepared = facts.binding.prepare(
            facts.run,
            self.until,
            instead=facts.instead,
            derivatives=derivatives,
            along=along,
            iterate=self.iterate,
            room=self.max_bytes if self.max_bytes >= 0 else None,
            deadline=None if stop is None else stop.deadline,
        )
        connect(facts.context, prepared, raised)
        return prepared

    def _runs(self, prepared: Prepared, stop: Stop | None) -> Iterator[Settings]:
        for pops, tolerance, refine in self.course:
            most = -1 if pops is None else pops
            left = -1 if stop is None else stop.nanoseconds
            until = left if left < 0 else prepared.chart.report.nanoseconds + left
            yield Settings(most, until, -1, self.max_bytes, -1, -1, -1, tolerance, self.stopped, refine)

    def first_steep(self, key: str, row: int, stop: Stop | None = None) -> tuple[str, list[Any]] | None:
        """The item, of all in the order in which they came, whose derivative by a given fact is the first that is NaN
        or infinite. None where none is, or where the run cannot be made again over dual numbers.
        """
        shared, axioms, run = self.facts.places(key)
        direction = np.zeros((shared + axioms + run, self.scale.width))
        direction[row if row < shared else row + axioms, 0] = 1.0
        along = Along(({key: direction},), (None,))
        try:
            prepared = self._prepared(Derivatives(along.order, False), along, stop, [])
        except Error:
            return None
        for settings in self._runs(prepared, stop):
            status = STATUS[prepared.chart.run(settings, stop).status]
            if status == "interrupted":
                raise KeyboardInterrupt
            if status == "bad_value":
                return reported_item(prepared, prepared.chart.report)
            if status not in ("done", "max_pops"):
                break
        return None
