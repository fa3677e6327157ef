"""`Batch`, what a batch of examples gave: values, charts, errors, derivations and gradients, by example.

Nothing is run here: results come from `one_by_one.py` and `parts.py`, sums of gradients from `objective.py`.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...calls import maker, public
from ...errors import Error, ProgramWarning, QueryError, Said, counted, shown, warn
from ...facts.relation import concatenate
from ...facts.table import Table, make_table, relation_of
from ...forests.derivation import Derivation
from ...forests.sums.draws import Samples
from ...rules.suggestions import nearest
from ...semirings import Scale

if TYPE_CHECKING:
    from ..chart import Chart

Array = npt.NDArray[Any]


class BatchGradient(Mapping[str, Any]):
    """The derivatives of a batch's objective, by predicate.

    A predicate with bound facts has a table like them: the same rows in the same order and shape, with derivatives in
    place of values, summed over the examples that did not fail. A predicate whose facts each example brings has a list
    of such tables, one an example, None where it failed; `ragged` has the same numbers in one array. A predicate whose
    facts are bound, and of which examples bring more, has one table: the bound rows, with their sums, then the rows of
    each example, without those that failed; `ragged` has the numbers of the latter.

    >>> import dynagrad as dg
    >>> program = dg.Program("goal += emit(_,S) * weight(S).", "real")
    >>> bound = program.bind({"weight/1": np.array([1.0, 2.0])})
    >>> examples = [{"emit/2": np.ones((1, 2))}, {"emit/2": 7}, {"emit/2": np.ones((3, 2))}]
    >>> batch = bound.run_batch(examples, query="goal", gradient=["weight/1", "emit/2"])
    >>> batch.gradient["weight/1"].values, batch.gradient["emit/2"][0].values, batch.gradient["emit/2"][1]
    (array([4., 4.]), array([[1., 2.]]), None)
    >>> batch.gradient.ragged("emit/2")
    (array([1., 2., 1., 2., 1., 2., 1., 2.]), array([0, 2, 2, 8]))
    """

    def __init__(
        self,
        tables: Mapping[str, Table | list[Table | None]],
        own: Mapping[str, list[Table | None]] | None = None,
    ) -> None:
        self._tables = dict(tables)
        self._own = dict(own or {})  # tables by the facts of each example

    @public
    def __getitem__(self, key: str) -> Any:
        if not isinstance(key, str) or key not in self._tables:
            near = nearest(key, self._tables) if isinstance(key, str) else ""
            raise QueryError(f"there is no gradient for {shown(key)}.{near}")
        return self._tables[key]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._tables

    @public
    def get(self, key: str, default: Any = None) -> Any:
        """The derivatives by a predicate, or `default` where they were not asked for."""
        return self._tables[key] if key in self else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    __reversed__ = None  # as for any mapping

    def __len__(self) -> int:
        return len(self._tables)

    @public
    def ragged(self, key: str) -> tuple[Array, npt.NDArray[np.int64]]:
        """The derivatives by the facts of all examples, concatenated, and the offset at which each example starts.

        Example n has the numbers from `offsets[n]` to `offsets[n + 1]`, in the order of its rows, or of its dense array
        in C order; none where it failed. In `expectation` a row is a pair, along a second axis.
        """
        if key not in self._own:
            self[key]  # raises where there is none
            raise QueryError(f"the facts of {key} are bound, so there is one table for all examples and nothing ragged")
        tables = self._own[key]
        rows = [np.zeros((0, 1)) if table is None else _rows(table) for table in tables]
        width = max((part.shape[1] for part in rows if len(part)), default=1)
        values = np.concatenate([np.zeros((0, width)), *(part for part in rows if len(part))])
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return (values[:, 0] if width == 1 else values), offsets

    def _ipython_key_completions_(self) -> list[str]:
        """What IPython offers after `batch.gradient["`."""
        return list(self)

    def __repr__(self) -> str:
        return f"<BatchGradient by {', '.join(self) or 'nothing'}>"


def _rows(table: Table) -> Array:
    """The values of a table, a row of numbers for each."""
    values = relation_of(table).values
    assert values is not None
    return values[:, None] if values.ndim == 1 else values


make_batchgradient = maker(
    BatchGradient, "gradients of a batch come from run_batch(examples, query=..., gradient=[...])"
)


@dataclass(frozen=True, eq=False)
class Batch:
    """The result of `run_batch`.

    `values` has one value per example, NaN where the example failed: an array of floats, of booleans, or of whole
    numbers (where an example failed, of floats, 1 for true; but whole numbers above 2**53 stay exact, as objects); in
    `expectation` and for tuples it has a row per example and a column per number. `charts` has a chart per example,
    None where it failed; it is empty where a query was given. `errors` has the error of each example that failed, by
    its number from 0: the message of a `dg.Error` starts with that number; any other error, such as one of your
    functions, has a note with it. A warning that the filters of `warnings` turn into an error is among them. `gradient`
    has, for each predicate that was asked for, the derivatives of the objective by its facts; see `BatchGradient`.
    `best` and `samples` have the derivations of each example that were asked for, None where it failed;
    draws are None, too, where there is nothing to draw: no derivation, or none whose weight is not zero.

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
    gradient: BatchGradient = field(default_factory=lambda: make_batchgradient({}))
    best: tuple[list[Derivation] | None, ...] = ()
    samples: tuple[Samples | None, ...] = ()


LARGEST_WHOLE = 2**53
"""All whole numbers up to this are floats."""


def gradient_of(
    keys: Sequence[str], shared: Mapping[str, Table], own: Mapping[str, list[Table | None]], one: Any
) -> BatchGradient:
    """The derivatives by bound facts, by those of each example, or by both, in the order of `keys`."""
    found: dict[str, Any] = {**own, **shared}
    for key in own.keys() & shared.keys():
        parts = [relation_of(table) for table in own[key] if table is not None]
        found[key] = make_table(functools.reduce(lambda a, b: concatenate(a, b, one), parts, relation_of(shared[key])))
    return make_batchgradient({key: found[key] for key in keys}, own)


make_batch = maker(Batch, "batches come from program.run_batch(examples)")


def batch_of(
    results: Sequence[Any] | Array, scale: Scale, query: str | None, gradient: BatchGradient | None = None
) -> Batch:
    """From one result per example: a value, a chart, or the error that it ended with; or an array, of values alone."""
    if isinstance(results, np.ndarray):
        return make_batch(results, (), {}, make_batchgradient({}) if gradient is None else gradient)
    errors = {n: _of_example(n, r) for n, r in enumerate(results) if isinstance(r, Exception)}
    if query is None:
        return make_batch(np.zeros(0), tuple(None if isinstance(r, Exception) else r for r in results), errors)
    return make_batch(_values(results, scale), (), errors, make_batchgradient({}) if gradient is None else gradient)


def with_derivations(
    batch: Batch, best: tuple[list[Derivation] | None, ...], samples: tuple[Samples | None, ...]
) -> Batch:
    """A batch with the derivations of its examples."""
    return make_batch(batch.values, batch.charts, batch.errors, batch.gradient, best, samples)


def _of_example(n: int, error: Exception) -> Exception:
    """The error with the number of its example: in the message of a copy for our own errors, else in a note."""
    if not isinstance(error, Error | ProgramWarning):  # perhaps of a user's function; its class may not allow a copy
        with contextlib.suppress(TypeError):  # where its notes are no list
            note = f"in example {n} of the batch"
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
        return error
    told = copy.copy(error)
    told.args = (f"example {n}: {error}", *error.args[1:])
    told.of_the_run = str(error)
    told.__traceback__, told.__cause__ = error.__traceback__, error.__cause__
    return told


def of_the_run(error: Exception) -> str:
    """What an error of a batch says, without the number that its example has there."""
    told = error.of_the_run if isinstance(error, Error | ProgramWarning) else None
    return str(error) if told is None else told


def _values(results: Sequence[Any], scale: Scale) -> Array:
    """The values of all examples as one array, NaN where one failed."""
    failed = [isinstance(r, Exception) for r in results]
    if scale.shape in ("float", "boolean", "count"):
        values = [math.nan if bad else r for bad, r in zip(failed, results, strict=True)]
        if scale.shape == "boolean" and not any(failed):
            return np.array(values, np.bool_)
        largest = max((v for v in values if v == v), default=0) if scale.shape == "count" else 0
        if scale.shape == "count" and not any(failed):
            return np.array(values, object if largest >= 2**63 else np.int64)
        return np.array(values, object if largest > LARGEST_WHOLE else np.float64)
    flat = {n: np.concatenate([np.ravel(part) for part in r]) for n, r in enumerate(results) if not failed[n]}
    width = max(map(len, flat.values()), default=scale.width)  # facts say how long the vectors of expectation are
    rows = np.full((len(results), width), math.nan)
    for n, numbers in flat.items():
        rows[n] = 0.0
        rows[n, : len(numbers)] = numbers
    return rows


def warn_once(said: Mapping[int, Said]) -> None:
    """Issues the warnings of all examples, in their order; those that differ in numbers alone once, for the first."""
    groups: dict[tuple[str, type[Warning]], list[tuple[int, str]]] = {}
    for n, found in sorted(said.items()):
        for text, category in found:
            groups.setdefault((re.sub(r"[\d,]+", "0", text), category), []).append((n, text))
    for (_, category), ((n, text), *others) in groups.items():
        more = len({other for other, _ in others} - {n})
        also = f" ({counted(more, 'more example')} likewise)" if more else ""
        warn(f"example {n}: {text}{also}", category)
