"""What a batch of runs gives back: a value or a chart per example, and what failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .semirings import Scale

if TYPE_CHECKING:
    from .chart import Chart


@dataclass(frozen=True)
class Batch:
    """What `run_batch` gives back.

    `values` has one value per example, the semiring's zero where the example failed: an array of floats, of booleans,
    or of whole numbers; in `expectation` and for tuples it has a row per example and a column per number. `charts` has
    a chart per example, or None where it failed; it is empty where only a query was asked for. `errors` says by
    example what failed and why.

    >>> import dynagrad as dg
    >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(V) min= start(V).")
    >>> bound = program.bind({"edge/2": [("a", "b", 2.0)]})
    >>> batch = bound.run_batch([{"start/1": [("a", 0.0)]}, {"start/1": [("a", 5.0)]}], query="path(b)")
    >>> batch.values, batch.errors
    (array([2., 7.]), {})
    """

    values: npt.NDArray[Any]
    charts: tuple[Chart | None, ...]
    errors: dict[int, Exception]

    @staticmethod
    def of(results: Sequence[Any], scale: Scale, query: str | None) -> Batch:
        """From one result per example: a value, a chart, or the error that it ended with."""
        errors = {n: r for n, r in enumerate(results) if isinstance(r, Exception)}
        if query is None:
            return Batch(np.zeros(0), tuple(None if isinstance(r, Exception) else r for r in results), errors)
        values = [scale.zero if isinstance(r, Exception) else r for r in results]
        if scale.shape in ("float", "boolean"):
            return Batch(np.array(values, np.float64 if scale.shape == "float" else np.bool_), (), errors)
        if scale.shape == "count":
            big = any(v >= 2**63 for v in values)
            return Batch(np.array(values, object if big else np.int64), (), errors)
        flat = [np.concatenate([np.ravel(part) for part in v]) for v in values]
        width = max(map(len, flat), default=scale.width)  # facts say how long the vectors of expectation are
        rows = np.zeros((len(flat), width))
        for row, numbers in zip(rows, flat, strict=True):
            row[: len(numbers)] = numbers
        return Batch(rows, (), errors)
