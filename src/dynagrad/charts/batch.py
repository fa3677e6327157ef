"""Batches: many examples run on several threads, and the sum of their gradients, deterministic to the bit.

All that depends on order is done by one thread in the order of the examples: preparing them (the first one may compile,
and the others use that) and adding up their gradients. So the result is the same for any number of threads. What an
example is, and how it runs, is for the caller.
"""

from __future__ import annotations

import contextlib
import copy
import math
import re
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..calls import maker, public
from ..errors import (
    Error,
    FactError,
    NotDifferentiable,
    ProgramWarning,
    QueryError,
    Said,
    ValueRangeError,
    cut,
    shown,
    warn,
)
from ..facts.relation import Relation, fact_text
from ..facts.table import Table, relation_of
from ..forests.derivation import Derivation
from ..forests.sums.draws import Samples
from ..rules.checks.report import nearest
from ..rules.semirings import SEMIRINGS
from ..semirings import Scale
from .derivatives.gradient import like
from .replay import differentiable

if TYPE_CHECKING:
    from .chart import Chart

Prepared = TypeVar("Prepared")
Result = TypeVar("Result")
Array = npt.NDArray[Any]

SIGNAL_INTERVAL = 0.2  # seconds between checks for signals
MOST_WAITING = 1024
"""The most results that wait for a slow example before them."""
WAITING_BYTES = 1 << 27
"""The most bytes of such results, where they are gradients."""


class BatchGradient(Mapping[str, Any]):
    """The derivatives of a batch's objective, by predicate.

    A predicate with bound facts has a table like them: the same rows in the same order and shape, with derivatives in
    place of values, summed over the examples that did not fail. A predicate whose facts each example brings has a list
    of such tables, one an example, None where it failed; `ragged` has the same numbers in one array.

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

    def __init__(self, tables: Mapping[str, Table | list[Table | None]]) -> None:
        self._tables = dict(tables)

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
        tables = self[key]
        if not isinstance(tables, list):
            raise QueryError(f"the facts of {key} are bound, so there is one table for all examples and nothing ragged")
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

    `values` has one value per example, the semiring's zero where the example failed: an array of floats, of booleans,
    or of whole numbers; in `expectation` and for tuples it has a row per example and a column per number. `charts` has
    a chart per example, None where it failed; it is empty where a query was given. `errors` has the error of each
    example that failed, by its number from 0: the message of a `dg.Error` starts with that number; any other error,
    such as one of your functions, has a note with it. A warning that the filters of `warnings` turn into an error is
    among them. `gradient` has, for each predicate that was asked for, the derivatives of the objective by its facts;
    see `BatchGradient`. `best` and `samples` have the derivations of each example that were asked for, None where it
    failed.

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


make_batch = maker(Batch, "batches come from program.run_batch(examples)")


def batch_of(results: Sequence[Any], scale: Scale, query: str | None, gradient: BatchGradient | None = None) -> Batch:
    """From one result per example: a value, a chart, or the error that it ended with."""
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
    vars(told)["of_the_run"] = str(error)
    told.__traceback__, told.__cause__ = error.__traceback__, error.__cause__
    return told


def of_the_run(error: Exception) -> str:
    """What an error of a batch says, without the number that its example has there."""
    return str(getattr(error, "of_the_run", error))


def _values(results: Sequence[Any], scale: Scale) -> Array:
    """The values of all examples as one array."""
    values = [scale.zero if isinstance(r, Exception) else r for r in results]
    if scale.shape in ("float", "boolean"):
        return np.array(values, np.float64 if scale.shape == "float" else np.bool_)
    if scale.shape == "count":
        big = any(v >= 2**63 for v in values)
        return np.array(values, object if big else np.int64)
    flat = [np.concatenate([np.ravel(part) for part in v]) for v in values]
    width = max(map(len, flat), default=scale.width)  # facts say how long the vectors of expectation are
    rows = np.zeros((len(flat), width))
    for row, numbers in zip(rows, flat, strict=True):
        row[: len(numbers)] = numbers
    return rows


def warn_once(said: Mapping[int, Said]) -> None:
    """Issues the warnings of all examples, in their order; those that differ in numbers alone once, for the first."""
    groups: dict[tuple[str, type[Warning]], list[tuple[int, str]]] = {}
    for n, found in sorted(said.items()):
        for text, category in found:
            groups.setdefault((re.sub(r"[\d,]+", "0", text), category), []).append((n, text))
    for (_, category), ((n, text), *others) in groups.items():
        more = len({other for other, _ in others} - {n})
        also = f" ({more:,} more example{'' if more == 1 else 's'} likewise)" if more else ""
        warn(f"example {n}: {text}{also}", category)


# -- many examples -----------------------------------------------------------------------------------------------------


def in_order(
    count: int,
    prepare: Callable[[int], Prepared],
    finish: Callable[[int, Prepared], Result],
    *,
    threads: int,
    ahead: int,
    stop: Callable[[], None],
) -> Generator[Result | Exception, None, None]:
    """The results of `count` examples in their order, or the errors that they ended with.

    `prepare` is called by this thread, for one example after the other, and `finish` by `threads` others. At most
    `ahead` examples are begun beyond the one whose result comes next. `stop` is to end the examples that are running.

    >>> numbers = [3, 0, 2]
    >>> found = in_order(3, numbers.__getitem__, lambda _, x: 6 / x, threads=2, ahead=4, stop=lambda: None)
    >>> list(found)
    [2.0, ZeroDivisionError('division by zero'), 3.0]
    """
    room = Semaphore(threads + 1)

    def started(n: int) -> Prepared | Exception:
        try:
            return prepare(n)
        except Exception as error:
            return error

    def finished(n: int, prepared: Prepared | Exception) -> Result | Exception:
        try:
            return prepared if isinstance(prepared, Exception) else finish(n, prepared)
        except Exception as error:  # of a function that the program calls, too
            return error
        finally:
            room.release()

    if threads == 1:
        for n in range(count):
            yield finished(n, started(n))
        return
    waiting: deque[Future[Result | Exception]] = deque()
    tasks: SimpleQueue[tuple[Future[Result | Exception], int, Prepared | Exception] | None] = SimpleQueue()

    def work() -> None:
        while (task := tasks.get()) is not None:
            future, n, prepared = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(finished(n, prepared))
            except BaseException as error:  # KeyboardInterrupt and the like: raised where the results are read
                future.set_exception(error)

    # Daemons, unlike the threads of an executor: whoever reads the results waits for them, and the interpreter waits
    # for that thread, unless it is a daemon itself.
    workers = [Thread(target=work, name=f"dynagrad-batch-{n}", daemon=True) for n in range(threads)]
    try:
        for worker in workers:
            worker.start()
        for n in range(count):
            while waiting and (waiting[0].done() or len(waiting) >= ahead):
                yield _awaited(waiting.popleft())
            while not room.acquire(timeout=SIGNAL_INTERVAL):
                pass
            waiting.append(Future())
            tasks.put((waiting[-1], n, started(n)))
        while waiting:
            yield _awaited(waiting.popleft())
    except BaseException:  # Ctrl-C, or the reader closes this generator
        stop()
        for future in waiting:
            future.cancel()
        raise
    finally:
        for _ in workers:
            tasks.put(None)
        for worker in workers:
            if worker.ident is not None:
                worker.join()


def _awaited(future: Future[Result]) -> Result:
    """The result of a future, waited for in intervals, so that a signal is handled: it may reach another thread."""
    while not future.done():
        wait([future], SIGNAL_INTERVAL)
    return future.result()


# -- the gradient of a sum ---------------------------------------------------------------------------------------------


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
        """The cotangent of an example's value. Raises where the value has no log."""
        weight = 1.0 if self.cotangents is None else float(self.cotangents[n])
        if not self.log:
            return weight
        if not 0 < value < math.inf:
            raise NotDifferentiable(
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
        raise Error(f"cotangents must be {count:,} numbers, one per example, but their shape is {numbers.shape}")
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
