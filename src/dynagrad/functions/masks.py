"""Which elements of an adjoint are alive, on tapes where arrays were chosen from.

`np.where(x > 0, np.log(x), 0)` must have derivative zero where log is not taken, though that of log may be infinite
there, and zero times infinity is NaN. So the sweep remembers, for each cell that is only reached through a choice,
which of its elements were chosen; the others pass nothing on, whatever the partial derivatives are. A zero that was
computed is another matter: times infinity it stays NaN, and the verb says that the chain rule has no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..graph import operations as ops
from ..graph.arrays import sum_to
from ..graph.operation import apply
from .entries import CHOOSING, Recorded
from .numbers import real_part


class Masks:
    """The living elements of cells during one sweep; a cell without a mask is alive as a whole."""

    __slots__ = ("alive", "of")

    def __init__(self) -> None:
        self.of: dict[int, Any] = {}
        self.alive: set[int] = set()  # cells that were reached other than through a choice

    def mark(self, number: int, mask: Any) -> None:
        """One more increment reached a cell; None for a mask says that all of it counts."""
        if mask is None:
            self.alive.add(number)
            self.of.pop(number, None)
        elif number not in self.alive:
            self.of[number] = self.of[number] | mask if number in self.of else mask

    def pull(
        self, number: int, entry: Any, delta: Any, whole: Callable[[Any, Any], Iterable[tuple[int, Any]]]
    ) -> Iterable[tuple[int, Any]]:
        """The increments of an entry; `whole` computes them where nothing is chosen."""
        mask = self.of.pop(number, None)
        if isinstance(entry, Recorded) and entry.operation.elementwise:
            if mask is not None or entry.operation in CHOOSING:
                return self._chosen(entry, delta, mask)
        if mask is not None and type(entry) is tuple:  # of cells of the same shape
            living = [(parent, apply(ops.where, mask, part, 0.0)) for parent, part in whole(entry, delta)]
            for parent, _ in living:
                self.mark(parent, mask)
            return living
        pairs = whole(entry, delta)
        for parent, _ in pairs:
            self.mark(parent, None)
        return pairs

    def _chosen(self, entry: Recorded, delta: Any, mask: Any) -> list[tuple[int, Any]]:
        operation, y, arguments = entry.operation, entry.result, entry.arguments
        rules = operation.tangent
        assert rules is not None
        found = []
        for number, i in zip(entry.numbers, entry.places, strict=True):
            rule = rules[i]
            if rule is None:
                continue
            chosen = mask
            if operation in CHOOSING:
                plain = [real_part(x) for x in arguments]
                own = np.not_equal(rule(np.ones(np.shape(y)), real_part(y), *plain), 0)
                chosen = own if mask is None else own & mask
            part = apply(ops.where, chosen, rule(delta, y, *arguments), 0.0)
            shape = np.shape(arguments[i])
            reached = np.broadcast_to(chosen, np.shape(y))
            if np.shape(part) != shape:
                part = sum_to(shape)(part)
                extra = reached.ndim - len(shape)
                single = tuple(k + extra for k, n in enumerate(shape) if n == 1)
                reached = reached.any(axis=(*range(extra), *single)).reshape(shape)
            self.mark(number, reached)
            found.append((number, part))
        return found
