"""The objective of a batch, a sum over its examples, and the running sum of its gradient. Nothing is run here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import Error, FactError, NotDifferentiable, ValueRangeError, counted, cut, shown
from ...facts.relation import Relation, fact_text
from ...facts.table import Table
from ...rules.semirings import SEMIRINGS
from ...semirings import Scale
from ..derivatives.gradient import like
from ..replay import differentiable
from .result import Array

MOST_WAITING = 1024
"""The most results that wait for a slow example before them."""
WAITING_BYTES = 1 << 27
"""The most bytes of such results, where they are gradients."""


class BelowZero(NotDifferentiable):
    """A number below zero has no log."""


@dataclass(frozen=True)
class BatchObjective:
    """The objective of a batch: the sum of an item's values, or of their logs, with a weight per example."""

    query: Any
    log: bool
    cotangents: Array | None

    @staticmethod
    def read(scale: Scale, query: Any, objective: str, cotangents: Any, count: int) -> BatchObjective:
        """Raises Error where there is no such objective, in this semiring or at all."""
        differentiable(scale)
        if query is None:
            raise Error('a gradient needs an item that it is of, such as query="goal"')
        if not isinstance(objective, str) or objective not in ("sum", "log"):
            raise Error(f'objective={shown(objective)}: it is "sum", of the values, or "log", the sum of their logs')
        row = SEMIRINGS[scale.name]
        if objective == "log" and (row.times_adds or row.shape != "float"):
            why = f"its values are {row.numbers}" + (" already" if row.times_adds else ", which have no log")
            raise Error(f'objective="log" has no meaning in the {scale.name} semiring: {why}; use "sum"')
        return BatchObjective(query, objective == "log", _cotangents(cotangents, count))

    def cotangent(self, n: int, value: Any) -> float:
        """The cotangent of an example's value. Raises where the value has no log.

        What is impossible trains nothing: where the log is -inf it is 0, as the gradient of such a goal is in `log`.
        """
        weight = 1.0 if self.cotangents is None else float(self.cotangents[n])
        if not self.log:
            return weight
        if value == 0:
            return 0.0
        if not 0 < value < math.inf:
            raise (BelowZero if value < 0 else NotDifferentiable)(
                f'{shown(self.query)} is {value}, and objective="log" takes the log of a positive number'
            )
        if not math.isfinite(weight / value):
            raise ValueRangeError(
                f"{shown(self.query)} is {value}, so small that the derivative of its log is infinite; use the log "
                'semiring, with objective="sum"'
            )
        return weight / float(value)


def _cotangents(given: Any, count: int) -> Array | None:
    if given is None:
        return None
    try:
        numbers = np.asarray(given)
    except Exception:  # other libraries' arrays may raise anything
        numbers = np.array(None)
    if numbers.dtype.kind not in "fiub":
        raise Error(f"cotangents must be numbers, one per example, not {shown(given)}")
    numbers = numbers.astype(np.float64)
    if numbers.shape != (count,):
        wanted = f"{counted(count, 'number')}, one per example"
        raise Error(f"cotangents must be {wanted}, but their shape is {numbers.shape}")
    if not np.isfinite(numbers).all():
        n = int((~np.isfinite(numbers)).argmax())
        raise Error(f"cotangents must be finite, and that of example {n} is {numbers[n]}")
    return numbers


class Sums:
    """The running sums of the examples' gradients, by predicate."""

    def __init__(self, scale: Scale, relations: Sequence[Relation]) -> None:
        self.scale, self.relations = scale, relations
        self.keys = tuple(r.key for r in relations)
        self.totals: list[Array] | None = None

    @property
    def ahead(self) -> int:
        """The number of gradients that may wait for an earlier one."""
        size = sum(r.count for r in self.relations) * self.scale.width * 8
        return min(MOST_WAITING, max(8, WAITING_BYTES // max(1, size)))

    def add(self, rows: Sequence[Array]) -> FactError | None:
        """Adds the gradient of an example, an array of doubles per predicate; returns the error if it does not fit."""
        if self.totals is None:
            self.totals = [r.copy() for r in rows]
            return None
        for total, more in zip(self.totals, rows, strict=True):
            if total.shape != more.shape:
                return FactError(
                    f"the vectors of this example have length {more.shape[1] - 1}, those of the examples before it "
                    f"{total.shape[1] - 1}, so their gradients do not add up"
                )
        with np.errstate(over="ignore"):
            for total, more in zip(self.totals, rows, strict=True):
                total += more
        return None

    def tables(self) -> dict[str, Table]:
        """The sums, per predicate. Raises ValueRangeError where one is too large."""
        totals = self.totals or [np.zeros((r.count, self.scale.width)) for r in self.relations]
        found = {}
        for relation, total in zip(self.relations, totals, strict=True):
            if not np.isfinite(total).all():
                row = int((~np.isfinite(total)).any(axis=1).argmax())
                raise ValueRangeError(
                    f"the gradient with respect to {cut(fact_text(relation, row))}, summed over the examples, is "
                    "infinite"
                )
            found[relation.key] = like(relation, self.scale, total)
        return found
