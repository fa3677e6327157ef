"""Batches: examples taken in order by several threads, the sum of their gradients, and what comes back.

Whatever depends on order happens in the order of the examples, in one thread: preparing them (the first one may
compile, and what it makes serves the others) and adding up what they give. So the result is the same, to the bit, for
any number of threads. What an example is, and how it runs, is not known here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from .errors import Error, FactError, NotDifferentiable, ValueRangeError, cut, shown
from .gradient import differentiable, like
from .relation import Relation, fact_text
from .semirings import Scale
from .table import Table

if TYPE_CHECKING:
    from .chart import Chart

Prepared = TypeVar("Prepared")
Result = TypeVar("Result")
Array = npt.NDArray[Any]

LOOK = 0.2  # seconds between looks at signals
MOST_WAITING = 1024
"""So many results, at most, wait for an example before them that takes long."""
WAITING_BYTES = 1 << 27
"""And no more than such of them as fit in here, where they are gradients."""


@dataclass(frozen=True)
class Batch:
    """What `run_batch` gives back.

    `values` has one value per example, the semiring's zero where the example failed: an array of floats, of
    booleans, or of whole numbers; in `expectation` and for tuples it has a row per example and a column per number.
    `charts` has a chart per example, or None where it failed; it is empty where only a query was asked for.
    `errors` says by example, counted from 0, what failed and why. `gradient` has, for each predicate that was asked
    for, a table like its bound facts: the same rows in the same order and shape, with the derivative of the
    objective in place of the value, summed over the examples that did not fail.

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
    gradient: Mapping[str, Table] = field(default_factory=dict)

    @staticmethod
    def of(
        results: Sequence[Any], scale: Scale, query: str | None, gradient: Mapping[str, Table] | None = None
    ) -> Batch:
        """From one result per example: a value, a chart, or the error that it ended with."""
        errors = {n: _of_example(n, r) for n, r in enumerate(results) if isinstance(r, Exception)}
        if query is None:
            return Batch(np.zeros(0), tuple(None if isinstance(r, Exception) else r for r in results), errors)
        return Batch(_values(results, scale), (), errors, gradient or {})


def _of_example(n: int, error: Exception) -> Exception:
    """The error with the number of its example in its message, as in `Batch.errors`."""
    if isinstance(error, Error):
        error.args = (f"example {n}: {error}", *error.args[1:])
    return error


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

    `prepare` is called here, for one example after the other, and `finish` by the threads. Few examples are prepared
    before their time, and at most `ahead` are beyond the one whose result comes next. `stop` ends those that run.

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
            except BaseException as error:  # what ends more than one example, and is raised where the results are read
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
            while not room.acquire(timeout=LOOK):
                pass
            waiting.append(Future())
            tasks.put((waiting[-1], n, started(n)))
        while waiting:
            yield _awaited(waiting.popleft())
    except BaseException:  # Ctrl-C, and whoever reads this goes away
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
    """The result of a future, with a look at signals now and then: one may have reached another thread."""
    while not future.done():
        wait([future], LOOK)
    return future.result()


# -- the gradient of a sum ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Objective:
    """What a batch is differentiated for: the sum of an item's values, or of their logs, with a weight per example."""

    query: Any
    log: bool
    cotangents: Array | None

    @staticmethod
    def read(scale: Scale, query: Any, objective: str, cotangents: Any, count: int) -> Objective:
        """Raises Error where there is no such objective, in this semiring or at all."""
        differentiable(scale)
        if query is None:
            raise Error('a gradient needs an item that it is of, such as query="goal"')
        if objective not in ("sum", "log"):
            raise Error(f'objective={shown(objective)}: it is "sum", of the values, or "log", the sum of their logs')
        if objective == "log" and scale.name not in ("real", "plain"):
            why = (
                "its values are pairs, which have no log"
                if scale.name == "expectation"
                else f"its values are {'costs' if scale.name == 'tropical' else 'logs'} already"
            )
            raise Error(f'objective="log" has no meaning in the {scale.name} semiring: {why}; use "sum"')
        return Objective(query, objective == "log", _cotangents(cotangents, count))

    def cotangent(self, n: int, value: Any) -> float:
        """What the backward pass of an example starts with. Raises where the value has no log."""
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
        raise Error(f"cotangents are numbers, one per example, and {shown(given)} is something else")
    numbers = numbers.astype(np.float64)
    if numbers.shape != (count,):
        raise Error(f"cotangents are one number per example: {count:,}, but their shape is {numbers.shape}")
    if not np.isfinite(numbers).all():
        n = int((~np.isfinite(numbers)).argmax())
        raise Error(f"cotangents are finite, and that of example {n} is {numbers[n]}")
    return numbers


class Sums:
    """Gradients of examples by the facts of some predicates, added up as they come."""

    def __init__(self, scale: Scale, relations: Sequence[Relation]) -> None:
        self.scale, self.relations = scale, relations
        self.keys = tuple(r.key for r in relations)
        self.totals: list[Array] | None = None

    @property
    def ahead(self) -> int:
        """How many gradients may wait for an earlier one."""
        size = sum(r.count for r in self.relations) * self.scale.width * 8
        return min(MOST_WAITING, max(8, WAITING_BYTES // max(1, size)))

    def add(self, rows: Sequence[Array]) -> FactError | None:
        """Adds those of an example: an array of doubles per predicate. Gives back what is wrong with them."""
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
