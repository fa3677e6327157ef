"""A run as a value: its facts and its stopping history, from which it is repeated with a tape or over dual numbers.

Gradients, tangents and jets of a chart share it. Which item is popped next depends on values alone, never on
derivatives, so a repetition pops the same items and gets the same values, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import Error, NotDifferentiable
from ..plan.model import Derivatives
from ..rules.semirings import SEMIRINGS
from ..runtime.engine import STATUS, Settings
from ..runtime.library import Stop
from ..semirings import Scale
from .binding.binding import Purpose, SetupLimits
from .binding.database import Database
from .binding.decoding import reported_item
from .binding.loading import Directions, Prepared
from .ends import End, Phase, check_end
from .externals import connect


def differentiable(scale: Scale) -> None:
    """Raises NotDifferentiable for semirings without derivatives."""
    why = SEMIRINGS[scale.name].no_derivatives
    if why:
        raise NotDifferentiable(
            f"a program in the {scale.name} semiring has no gradient: {why}. "
            "Use real or log for sums, viterbi or tropical for the best derivation"
        )


def class_of(order: int, adjoint: bool) -> Derivatives | None:
    """The derivatives that a class has to compute: forward along `order` directions, backward, or None for neither."""
    return Derivatives(order, adjoint) if order or adjoint else None


class Segment(NamedTuple):
    """A part of a run: from where it was started or resumed to where it stopped."""

    pops: int | None
    """The number of pops when it stopped; None: it came to its end."""
    tolerance: float
    refine: bool
    """Whether the tolerance could be lowered."""


@dataclass(frozen=True)
class Replay:
    """A run as a value: its facts, and its stopping history, segment by segment.

    `stopped` is the stage in which the run stopped, from one, and 0 where it came to its end.
    """

    facts: Database
    history: tuple[Segment, ...]
    until: str | None
    max_bytes: int
    stopped: int = 0
    iterate: bool = False  # cycles were iterated

    @property
    def scale(self) -> Scale:
        return self.facts.context.scale

    def rerun(
        self, adjoint: bool, directions: Directions | None = None, *, outside: bool = False, stop: Stop | None = None
    ) -> Prepared:
        """Repeats the run in a class with derivatives. Raises what a function behind an external predicate raises."""
        directions = directions or Directions()
        raised: list[BaseException] = []  # by functions behind external predicates
        try:
            prepared = self._prepared(Derivatives(directions.order, adjoint, outside), directions, stop, raised)
            for settings in self._runs(prepared, stop):
                status = STATUS[prepared.chart.run(settings, stop).status]
                check_end(End(status, prepared, self.scale, Phase.REPEATED))
        except Error:
            if raised:
                raise raised[0] from None
            raise
        return prepared

    def _prepared(
        self, derivatives: Derivatives, directions: Directions, stop: Stop | None, raised: list[BaseException]
    ) -> Prepared:
        facts = self.facts
        prepared = facts.binding.prepare(
            facts.run,
            Purpose(self.until, derivatives=derivatives, iterate=self.iterate),
            SetupLimits(self.max_bytes if self.max_bytes >= 0 else None, None if stop is None else stop.deadline),
            overrides=facts.overrides,
            directions=directions,
        )
        connect(facts.context, prepared, raised)
        return prepared

    def _runs(self, prepared: Prepared, stop: Stop | None) -> Iterator[Settings]:
        for segment in self.history:
            most = -1 if segment.pops is None else segment.pops
            left = -1 if stop is None else stop.nanoseconds
            until = left if left < 0 else prepared.chart.report.nanoseconds + left
            yield Settings(
                max_pops=most,
                timeout_ns=until,
                max_bytes=self.max_bytes,
                tolerance=segment.tolerance,
                stopped=self.stopped,
                refine=segment.refine,
            )

    def first_non_finite(self, key: str, row: int, stop: Stop | None = None) -> tuple[str, list[Any]] | None:
        """The first item in pop order whose derivative with respect to a fact is not finite.

        None where there is none, or where the run cannot be repeated over dual numbers.
        """
        shared, axioms, run = self.facts.places(key)
        direction = np.zeros((shared + axioms + run, self.scale.width))
        direction[row if row < shared else row + axioms, 0] = 1.0
        directions = Directions(({key: direction},), (None,))
        try:
            prepared = self._prepared(Derivatives(directions.order, False), directions, stop, [])
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
