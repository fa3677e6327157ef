"""The evaluations that a gradient method asks for, kept in their order, so that a run that is taken up replays them.

What a method keeps is not looked into, and of scipy's it cannot be. Which methods there are is in `descent.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...errors import Error, NotConverged, NotDifferentiable
from ..parameters.rows import Doubles
from ..problem import Problem
from ..specification import Theta, ravelled, unravelled
from ..steps import Trace
from ..totals import Totals


class Evaluations:
    """Objectives and gradients in the order in which they were asked for: those of a checkpoint, then new ones.

    A log weight of minus infinity, of a probability of zero, stays as it is: a method sees a zero in its place, along
    which nothing changes.
    """

    def __init__(self, problem: Problem, like: Theta, state: Mapping[str, Any]) -> None:
        self._problem, self._like = problem, like
        self.trace: Trace = state.get("evaluations") or Trace()
        self.start = np.asarray(state["start"]) if "start" in state else ravelled(like)
        """Where the run began, from which it is replayed."""
        self._held = np.isneginf(self.start)
        self._some_held = bool(self._held.any())
        self.told = int(state.get("told", 0))
        """The steps that the observer knows of a run that was taken up."""
        self._known = iter(self.trace.known)
        self.data = np.nan
        """The objective of the data alone, where it was last asked for."""
        self.refused: Error | None = None
        """Why the last evaluation that found no objective found none."""
        self.counted = int(state.get("counted", 0))
        """How many examples count where the run began."""
        self.count = 0
        self._last: tuple[bytes, Totals] | None = None

    def shown(self, vector: Doubles) -> Doubles:
        """Parameters as a method sees them."""
        return np.where(self._held, 0.0, vector) if self._some_held else vector

    def whole(self, vector: Doubles) -> Doubles:
        """Parameters from what a method has."""
        return np.where(self._held, -np.inf, vector) if self._some_held else vector

    def __call__(self, vector: Doubles) -> tuple[float, Doubles]:
        """The objective and its gradient, of parameters as a method has them.

        Where it is not finite, or examples do not count that did where the run began, it is minus infinity, with a
        gradient of zero: a step that is to be shortened. Raises Error where the run would begin there.
        """
        vector = self.whole(vector)
        words = vector.tobytes()
        mark = float(zlib.crc32(words))
        found = self._next(mark)
        if found is None:
            found = self._found(vector, words, mark)
            self.trace.new.append(found)
        elif np.isneginf(found[0]):
            self.refused = NotConverged("the objective is not finite")
        self.data = float(found[1])
        return float(found[0]), self.shown(found[3:])

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Evaluations that are no steps of the method: they are not kept, and leave nothing behind."""
        held = self.trace, self._known, self.data, self.refused, self.count
        self.trace, self._known = Trace(), iter(())
        try:
            yield
        finally:
            self.trace, self._known, self.data, self.refused, self.count = held

    def _found(self, vector: Doubles, words: bytes, mark: float) -> Doubles:
        """What is kept of an evaluation: the objective, that of the data alone, a mark, and the gradient."""
        theta = unravelled(vector, self._like)
        try:
            value, totals = self._problem.objective(theta, least=self.counted)
            found = np.concatenate([[value, totals.value, mark], *self._problem.spec.pull(theta, totals).values()])
            if not np.isfinite(found).all():
                raise NotConverged("the objective or its gradient is not finite")
        except (NotConverged, NotDifferentiable) as error:
            if not self.counted:
                raise
            self.refused = error
            return np.concatenate([[-np.inf, np.nan, mark], np.zeros(len(vector))])
        self._last = (words, totals)
        self.counted = self.counted or totals.counted
        self.count += len(totals.values)
        return found

    def _next(self, mark: float) -> Doubles | None:
        """What a run that is taken up found here."""
        found = next(self._known, None)
        if found is not None and found[2] != mark:
            raise Error(
                "the run of the checkpoint took other steps than this one: it was made by another version of dynagrad "
                "or scipy, or on another machine; remove it to begin again"
            )
        return found

    def product(self, vector: Doubles, direction: Doubles) -> Doubles:
        """The Hessian times a vector: kept and replayed as objectives are, with no numbers but its own."""
        vector, direction = self.whole(vector), self.shown(direction)
        mark = float(zlib.crc32(vector.tobytes() + direction.tobytes()))
        found = self._next(mark)
        if found is None:
            theta = unravelled(vector, self._like)
            if self._last is None or self._last[0] != vector.tobytes():
                self._last = (vector.tobytes(), self._problem.objective(theta)[1])
            product = self._problem.product(theta, self._last[1], unravelled(direction, self._like))
            found = np.concatenate([[0.0, 0.0, mark], ravelled(product)])
            self.trace.new.append(found)
        return self.shown(found[3:])
